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
    from cvxpriv import constraints as constraints, models as models, penalties as penalties
    from cvxpriv.blocks.block import Block as Block
    from cvxpriv.blocks.declaration import Constraint as Constraint, Declaration as Declaration, Known as Known
    from cvxpriv.blocks.engines import DCP as DCP, Checked as Checked, ClosedForm as ClosedForm
    from cvxpriv.certify import (
        Case as Case,
        CrossCheck as CrossCheck,
        Formulations as Formulations,
        Tolerances as Tolerances,
        Verdict as Verdict,
        case_of_block as case_of_block,
        compare_formulations as compare_formulations,
        crosscheck as crosscheck,
    )
    from cvxpriv.certify.pytest_plugin import assert_solvers_agree as assert_solvers_agree
    from cvxpriv.divergences import FDivergence as FDivergence, divergence as divergence
    from cvxpriv.divergences.verification import Verification as Verification
    from cvxpriv.errors import (
        CvxprivError as CvxprivError,
        DataError as DataError,
        Disagreement as Disagreement,
        ModelError as ModelError,
        NoGuaranteeWarning as NoGuaranteeWarning,
        NotConverged as NotConverged,
        PartyError as PartyError,
        PrivacyError as PrivacyError,
        SolverFailure as SolverFailure,
    )
    from cvxpriv.kkt import Residuals as Residuals, proximal_step as proximal_step, residuals as residuals
    from cvxpriv.learning.encoding import Encoding as Encoding
    from cvxpriv.learning.schema import PublicSchema as PublicSchema
    from cvxpriv.learning.scores import private_scores as private_scores, scores_of as scores_of
    from cvxpriv.mechanisms.decoding import Decoded as Decoded, decode as decode
    from cvxpriv.mechanisms.disclosure import Disclosure as Disclosure, disclosure as disclosure
    from cvxpriv.mechanisms.mechanism import Mechanism as Mechanism
    from cvxpriv.mechanisms.plots import plot_curve as plot_curve, plot_mechanism as plot_mechanism
    from cvxpriv.numerics.arrays import Array as Array, Values as Values
    from cvxpriv.privacy import (
        Accounting as Accounting,
        Audit as Audit,
        Budget as Budget,
        PrivacyWarning as PrivacyWarning,
        audit as audit,
    )
    from cvxpriv.privacy.private_tables import private_table as private_table
    from cvxpriv.reports.pictures import plot_history as plot_history, save_figure as save_figure
    from cvxpriv.runs.alternation import AlternationRun as AlternationRun, alternate as alternate
    from cvxpriv.runs.convex_concave import ConvexConcaveRun as ConvexConcaveRun, convex_concave as convex_concave
    from cvxpriv.runs.saved import load as load
    from cvxpriv.runs.sweep import sweep as sweep
    from cvxpriv.runs.verification import verify as verify
    from cvxpriv.schedules.history import Below as Below, Context as Context, History as History
    from cvxpriv.schedules.running import run as run
    from cvxpriv.schedules.steps import (
        Draw as Draw,
        Invariant as Invariant,
        Loop as Loop,
        Parallel as Parallel,
        Public as Public,
        Sweep as Sweep,
        Update as Update,
    )
    from cvxpriv.tables import datasets as datasets
    from cvxpriv.tables.joint import Alphabet as Alphabet, JointTable as JointTable
    from cvxpriv.tables.preparing import prepare as prepare
    from cvxpriv.tables.recipe import Prepared as Prepared, Recipe as Recipe

#: Home of each public name. It is imported when first used: cvxpy takes a second that not every command needs.
_HOMES = {
    "blocks.block": ("Block",),
    "blocks.declaration": ("Declaration", "Known", "Constraint"),
    "blocks.engines": ("Checked", "ClosedForm", "DCP"),
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
    "certify.pytest_plugin": ("assert_solvers_agree",),
    "divergences": ("FDivergence", "divergence"),
    "divergences.verification": ("Verification",),
    "errors": (
        "CvxprivError",
        "DataError",
        "Disagreement",
        "ModelError",
        "NoGuaranteeWarning",
        "NotConverged",
        "PartyError",
        "PrivacyError",
        "SolverFailure",
    ),
    "kkt": ("Residuals", "proximal_step", "residuals"),
    "learning.encoding": ("Encoding",),
    "learning.schema": ("PublicSchema",),
    "learning.scores": ("private_scores", "scores_of"),
    "mechanisms.decoding": ("Decoded", "decode"),
    "mechanisms.disclosure": ("Disclosure", "disclosure"),
    "mechanisms.mechanism": ("Mechanism",),
    "mechanisms.plots": ("plot_curve", "plot_mechanism"),
    "numerics.arrays": ("Array", "Values"),
    "privacy": ("Accounting", "Audit", "Budget", "PrivacyWarning", "audit"),
    "privacy.private_tables": ("private_table",),
    "reports.pictures": ("plot_history", "save_figure"),
    "runs.alternation": ("AlternationRun", "alternate"),
    "runs.convex_concave": ("ConvexConcaveRun", "convex_concave"),
    "runs.saved": ("load",),
    "runs.sweep": ("sweep",),
    "schedules.history": ("Below", "Context", "History"),
    "schedules.running": ("run",),
    "schedules.steps": ("Draw", "Invariant", "Loop", "Parallel", "Public", "Sweep", "Update"),
    "tables.joint": ("Alphabet", "JointTable"),
    "tables.preparing": ("prepare",),
    "tables.recipe": ("Prepared", "Recipe"),
    "runs.verification": ("verify",),
}
#: Rooms that are reached as they are, such as `cvxpriv.constraints.floor`, and where each stands.
_ROOMS = {
    "constraints": "constraints",
    "datasets": "tables.datasets",
    "models": "models",
    "penalties": "penalties",
}

__all__ = sorted(["__version__", *_ROOMS, *(name for names in _HOMES.values() for name in names)])


if not TYPE_CHECKING:  # type checkers read the imports above, and refuse names that are not there

    def __getattr__(name: str) -> Any:
        if name in _ROOMS:
            return import_module(f"cvxpriv.{_ROOMS[name]}")
        for home, names in _HOMES.items():
            if name in names:
                return getattr(import_module(f"cvxpriv.{home}"), name)
        raise AttributeError(f"module 'cvxpriv' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
