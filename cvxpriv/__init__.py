"""cvxpriv: declarative convex modelling for privacy.

Every convex subproblem of a privacy method is written once as a DCP problem, solved by any engine (a cone solver, a
closed form, or both at once), alternated by one small orchestrator, and certified by residuals that trust no solver.

    import cvxpriv as cpv
    from cvxpriv.models import PrivacyFunnel

Models are found through the entry-point group `cvxpriv.models` (`cvxpriv.models.available()`).
"""

from cvxpriv._version import __version__
from cvxpriv.block import Block, Declaration
from cvxpriv.crosscheck import CrossCheck, crosscheck
from cvxpriv.distributions import Alphabet, JointTable
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
from cvxpriv.runs import load
from cvxpriv.schedule import Context, Invariant, Loop, Parallel, Sweep, Update, run
from cvxpriv.verdicts import Tolerances, Verdict

__all__ = [
    "DCP",
    "Alphabet",
    "Block",
    "Checked",
    "ClosedForm",
    "Context",
    "CrossCheck",
    "CvxprivError",
    "DataError",
    "Declaration",
    "Disagreement",
    "Invariant",
    "JointTable",
    "Loop",
    "Mechanism",
    "ModelError",
    "NotConverged",
    "Parallel",
    "PrivacyError",
    "Residuals",
    "SolverFailure",
    "Sweep",
    "Tolerances",
    "Update",
    "Verdict",
    "__version__",
    "crosscheck",
    "load",
    "residuals",
    "run",
]
