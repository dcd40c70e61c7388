"""cvxpriv: declarative convex modelling for privacy.

Every convex subproblem of a privacy method is written once as a DCP problem, solved by any engine (a cone solver, a
closed form, or both at once), alternated by one small orchestrator, and certified by residuals that trust no solver.

    import cvxpriv as cpv
    from cvxpriv.models import PrivacyFunnel

Models are found through the entry-point group `cvxpriv.models` (`cvxpriv.models.available()`).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cvxpriv._version import __version__

if TYPE_CHECKING:
    from cvxpriv import constraints
    from cvxpriv.block import Block
    from cvxpriv.crosschecks import (
        Case,
        CrossCheck,
        Formulations,
        Tolerances,
        Verdict,
        case_of_block,
        compare_formulations,
        crosscheck,
    )
    from cvxpriv.declaration import Declaration, Known
    from cvxpriv.distributions import Alphabet, JointTable
    from cvxpriv.divergences import FDivergence
    from cvxpriv.engines import DCP, Checked, ClosedForm
    from cvxpriv.errors import (
        CvxprivError,
        DataError,
        Disagreement,
        ModelError,
        NotConverged,
        PrivacyError,
        SolverFailure,
    )
    from cvxpriv.kkt import Residuals, residuals
    from cvxpriv.mechanism import Mechanism
    from cvxpriv.privacy import Accounting, Audit, PrivacyWarning, audit
    from cvxpriv.running import run
    from cvxpriv.runs import load
    from cvxpriv.schedule import Context, Draw, Invariant, Loop, Parallel, Public, Sweep, Update
    from cvxpriv.testing import assert_solvers_agree
    from cvxpriv.verification import Verification, verify

#: Where each public name lives. It is imported when first used: cvxpy takes a second that not every command needs.
_HOMES = {
    "block": ("Block",),
    "crosschecks": (
        "Case",
        "CrossCheck",
        "Formulations",
        "Tolerances",
        "Verdict",
        "case_of_block",
        "compare_formulations",
        "crosscheck",
    ),
    "declaration": ("Declaration", "Known"),
    "distributions": ("Alphabet", "JointTable"),
    "divergences": ("FDivergence",),
    "engines": ("DCP", "Checked", "ClosedForm"),
    "errors": (
        "CvxprivError",
        "DataError",
        "Disagreement",
        "ModelError",
        "NotConverged",
        "PrivacyError",
        "SolverFailure",
    ),
    "kkt": ("Residuals", "residuals"),
    "mechanism": ("Mechanism",),
    "privacy": ("Accounting", "Audit", "PrivacyWarning", "audit"),
    "running": ("run",),
    "runs": ("load",),
    "schedule": ("Context", "Draw", "Invariant", "Loop", "Parallel", "Public", "Sweep", "Update"),
    "testing": ("assert_solvers_agree",),
    "verification": ("Verification", "verify"),
}
#: Modules that are reached as they are, such as `cvxpriv.constraints.floor`.
_MODULES = ("constraints",)

__all__ = [
    "DCP",
    "Accounting",
    "Alphabet",
    "Audit",
    "Block",
    "Case",
    "Checked",
    "ClosedForm",
    "Context",
    "CrossCheck",
    "CvxprivError",
    "DataError",
    "Declaration",
    "Disagreement",
    "Draw",
    "FDivergence",
    "Formulations",
    "Invariant",
    "JointTable",
    "Known",
    "Loop",
    "Mechanism",
    "ModelError",
    "NotConverged",
    "Parallel",
    "PrivacyError",
    "PrivacyWarning",
    "Public",
    "Residuals",
    "SolverFailure",
    "Sweep",
    "Tolerances",
    "Update",
    "Verdict",
    "Verification",
    "__version__",
    "assert_solvers_agree",
    "audit",
    "case_of_block",
    "compare_formulations",
    "constraints",
    "crosscheck",
    "load",
    "residuals",
    "run",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"cvxpriv.{name}")
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"cvxpriv.{home}"), name)
    raise AttributeError(f"module 'cvxpriv' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
