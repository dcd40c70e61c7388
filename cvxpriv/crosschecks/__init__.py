"""Cross-checks: one convex problem, every solver, exact residuals, a verdict for each."""

from cvxpriv.crosschecks.cases import Case, case_of_block
from cvxpriv.crosschecks.check import CrossCheck, crosscheck
from cvxpriv.crosschecks.formulations import Formulations, compare_formulations
from cvxpriv.crosschecks.verdicts import Tolerances, Verdict

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
