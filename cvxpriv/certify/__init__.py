"""Cross-checks: one convex problem, every solver, exact residuals, a verdict for each.

The names are imported when they are first used: pytest loads `cvxpriv.certify.pytest_plugin` at each start, in every
project where cvxpriv is installed, and must not wait for cvxpy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cvxpriv.certify.answers import Stored as Stored
    from cvxpriv.certify.cases import Case as Case, case_of_block as case_of_block
    from cvxpriv.certify.check import CrossCheck as CrossCheck, crosscheck as crosscheck
    from cvxpriv.certify.formulations import Formulations as Formulations, compare_formulations as compare_formulations
    from cvxpriv.certify.verdicts import Tolerances as Tolerances, Verdict as Verdict

_NAMES = {
    "answers": ("Stored",),
    "cases": ("Case", "case_of_block"),
    "check": ("CrossCheck", "crosscheck"),
    "formulations": ("Formulations", "compare_formulations"),
    "verdicts": ("Tolerances", "Verdict"),
}


def __getattr__(name: str) -> Any:
    for home, names in _NAMES.items():
        if name in names:
            return getattr(import_module(f"cvxpriv.certify.{home}"), name)
    raise AttributeError(f"module 'cvxpriv.certify' has no attribute {name!r}")
