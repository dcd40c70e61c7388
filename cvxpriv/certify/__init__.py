"""Cross-checks: one convex problem, every solver, exact residuals, a verdict for each.

The names are imported when they are first used: pytest loads `cvxpriv.certify.pytest_plugin` at each start, in every
project where cvxpriv is installed, and must not wait for cvxpy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cvxpriv.certify.answers import Stored
    from cvxpriv.certify.cases import Case, case_of_block
    from cvxpriv.certify.check import CrossCheck, crosscheck
    from cvxpriv.certify.formulations import Formulations, compare_formulations
    from cvxpriv.certify.verdicts import Tolerances, Verdict

_HOMES = {
    "Case": "cases",
    "CrossCheck": "check",
    "Formulations": "formulations",
    "Stored": "answers",
    "Tolerances": "verdicts",
    "Verdict": "verdicts",
    "case_of_block": "cases",
    "compare_formulations": "formulations",
    "crosscheck": "check",
}

__all__ = [
    "Case",
    "CrossCheck",
    "Formulations",
    "Stored",
    "Tolerances",
    "Verdict",
    "case_of_block",
    "compare_formulations",
    "crosscheck",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"cvxpriv.certify.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'cvxpriv.certify' has no attribute {name!r}")
