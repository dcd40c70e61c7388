"""cvxpriv: declarative convex modelling for privacy.

Every convex subproblem of a privacy method is written once as a DCP problem, solved by any engine (a cone solver, a
closed form, or both at once), alternated by one small orchestrator, and certified by residuals that trust no solver.

    import cvxpriv as cpv
    from cvxpriv.models import PrivacyFunnel

Models are found through the entry-point group `cvxpriv.models` (`cvxpriv.models.available()`).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from cvxpriv import constraints
    from cvxpriv.blocks.block import Block
    from cvxpriv.blocks.declaration import Declaration, Known
    from cvxpriv.blocks.engines import DCP, Checked, ClosedForm
    from cvxpriv.certify import (
        Case,
        CrossCheck,
        Formulations,
        Tolerances,
        Verdict,
        case_of_block,
        compare_formulations,
        crosscheck,
    )
    from cvxpriv.certify.pytest_plugin import assert_solvers_agree
    from cvxpriv.divergences import FDivergence
    from cvxpriv.divergences.verification import Verification, verify
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
    from cvxpriv.mechanisms.mechanism import Mechanism
    from cvxpriv.privacy import Accounting, Audit, PrivacyWarning, audit
    from cvxpriv.runs.saved import load
    from cvxpriv.schedules.running import run
    from cvxpriv.schedules.steps import Context, Draw, Invariant, Loop, Parallel, Public, Sweep, Update
    from cvxpriv.tables.joint import Alphabet, JointTable

#: Where each public name lives. It is imported when first used: cvxpy takes a second that not every command needs.
_HOMES = {
    "blocks.block": ("Block",),
    "certify": (
        "Case",
        "CrossCheck",
        "Formulations",
        "Tolerances",
        "Verdict",
        "case_of_block",
        "compare_formulations",
        "crosscheck",
    ),
    "blocks.declaration": ("Declaration", "Known"),
    "tables.joint": ("Alphabet", "JointTable"),
    "divergences": ("FDivergence",),
    "blocks.engines": ("DCP", "Checked", "ClosedForm"),
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
    "mechanisms.mechanism": ("Mechanism",),
    "privacy": ("Accounting", "Audit", "PrivacyWarning", "audit"),
    "schedules.running": ("run",),
    "runs.saved": ("load",),
    "schedules.steps": ("Context", "Draw", "Invariant", "Loop", "Parallel", "Public", "Sweep", "Update"),
    "certify.pytest_plugin": ("assert_solvers_agree",),
    "divergences.verification": ("Verification", "verify"),
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
