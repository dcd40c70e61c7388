"""Cross-checks: one convex problem, every solver, exact residuals, a verdict for each."""

from cvxpriv.certify.cases import Case, case_of_block
from cvxpriv.certify.check import CrossCheck, crosscheck
from cvxpriv.certify.formulations import Formulations, compare_formulations
from cvxpriv.certify.verdicts import Tolerances, Verdict

__all__ = [
    "Case",
    "CrossCheck",
    "Formulations",
    "Tolerances",
    "Verdict",
    "case_of_block",
    "compare_formulations",
    "crosscheck",
]
