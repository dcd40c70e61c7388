"""The run of a model that designs a mechanism: the best of its starts, its facts, and how it is saved."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from cvxpriv import models
from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Constraint, Known
from cvxpriv.certify.cases import Case, case_of_block
from cvxpriv.certify.check import CrossCheck
from cvxpriv.constraints.documents import from_document, to_document
from cvxpriv.constraints.gate import missed
from cvxpriv.errors import NoGuaranteeWarning, warn
from cvxpriv.mechanisms.disclosure import Disclosure
from cvxpriv.mechanisms.mechanism import Mechanism
from cvxpriv.mechanisms.noisy_frequencies import NoisyCounts
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import pd, versions
from cvxpriv.reports.facts import Facts, untimed
from cvxpriv.reports.files import PathLike
from cvxpriv.reports.readers import INTERNAL
from cvxpriv.runs.run import Run
from cvxpriv.runs.saved import UNSAVED, decoded, encoded, fields_of, starts_of
from cvxpriv.runs.shadow_prices import shadow_prices
from cvxpriv.schedules.history import History
from cvxpriv.solvers.place import Elsewhere, apart, process, supervised
from cvxpriv.tables.arrays import stochastic_matrix
from cvxpriv.tables.documents import table_document
from cvxpriv.tables.joint import JointTable
from cvxpriv.tables.protection import PRIVATE

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class OnTable(Protocol):
    """The data of a model: the joint table of private data and the mechanism's input, among others."""

    @property
    def table(self) -> JointTable: ...


class Solved(Protocol):
    """The options that decided a run, a dataclass."""

    @property
    def tol(self) -> float: ...


Problem = TypeVar("Problem", bound=OnTable)
Settings = TypeVar("Settings", bound=Solved)
Answer = TypeVar("Answer")

FIGURE_TOLERANCE = 1e-9
"""Relative amount by which a figure in a file may differ from that of its mechanism: another processor's rounding."""
LOOSEST_RESIDUAL = 1e-3
"""Largest residual of a run that counts as converged: the square root of a solver's accuracy in the value."""


@dataclass(frozen=True)
class Beside:
    """The results that were computed beside a run; None for those that were not asked for.

    `source`: The table's name for readers.
    `curve`: The curve, as the model's `curve` returns it.
    `interrupted`: Whether a keyboard interrupt ended it.
    `mechanisms`: The mechanism at each point of the curve, where they are known.
    `costs`: The cost of noise in the table: see `cvxpriv.runs.noise_costs`.
    """

    source: str = ""
    curve: pd.DataFrame | None = None
    check: CrossCheck | None = None
    disclosure: Disclosure | None = None
    interrupted: bool = False
    mechanisms: Sequence[Array] = ()
    costs: pd.DataFrame | None = None


@door
@dataclass(frozen=True, eq=False, repr=False)
class MechanismRun(Run, Generic[Problem, Settings]):
    """The best of a solve's starts.

    Attributes
    ----------
    problem : Problem
    state : mapping of str to ndarray
        The final state of the best start, without a leading axis.
    each_start : mapping of str to sequence
        The columns of `starts`.
    start : int
        Number of the best start.
    settings : Settings
    seconds : float
        Wall time of the whole solve.
    log : History
    constraints : tuple of (str, Constraint)
        The user's constraints.
    interrupted : bool
        Whether a keyboard interrupt or a callback ended the solve.
    overdue : bool
        Whether its time limit ended it.
    no_gap : str
        Reason why `gap` is None; empty where it is not.
    isolate : float or None
        Seconds after which a solver that is asked about the run is ended in its process; None: it is asked here.
    """

    #: Name of the block that designs the whole mechanism: a point is stationary where this block would stay.
    whole: ClassVar[str]

    problem: Problem
    state: Values
    each_start: Mapping[str, Any]
    start: int
    settings: Settings
    seconds: float
    log: History = field(default_factory=History)
    constraints: tuple[tuple[str, Constraint], ...] = ()
    interrupted: bool = False
    overdue: bool = field(default=False, kw_only=True)
    no_gap: str = field(default="", kw_only=True)
    isolate: float | None = field(default=None, kw_only=True, metadata=UNSAVED)

    @property
    @abstractmethod
    def mechanism(self) -> Array:
        """The mechanism, with one row per input; rows sum to 1."""

    @property
    @abstractmethod
    def kkt(self) -> Any:
        """The whole problem's residuals at the mechanism; `largest` is their greatest."""

    @abstractmethod
    def blocks(self) -> dict[str, Block]:
        """The model's blocks, with the constraints added so far."""

    @abstractmethod
    def as_mechanism(self) -> Mechanism:
        """Return the mechanism with its alphabets and figures, ready to be saved and applied to rows."""

    def as_model(self) -> Any:
        """Return the model of this run with its constraints, to be changed and solved again.

        Examples
        --------
        >>> from cvxpriv import constraints
        >>> from cvxpriv.models import PrivacyFunnel
        >>> funnel = PrivacyFunnel([[0.4, 0.1], [0.1, 0.4]], rate=0.1).constrain("ldp", constraints.parse("ldp=1.0"))
        >>> model = funnel.solve(starts=1).as_model()
        >>> model.constraints, model.without("ldp").solve().converged
        ((('ldp', local_differential_privacy(epsilon=1)),), True)
        """
        return models.available()[self.model].load().of_problem(self.problem, self.constraints)

    def _designed(
        self,
        figures: Mapping[str, float],
        origin: Mapping[str, Any],
        private_columns: Sequence[str] = (),
        outputs: Sequence[str] = (),
    ) -> Mechanism:
        """Return the mechanism with what every model says of it beside its own figures and lines of provenance."""
        table = self.problem.table
        return Mechanism(
            self.mechanism,
            inputs=table.public,
            outputs=outputs,
            model=self.model,
            figures=figures,
            private_columns=private_columns,
            origin={**versions(["numpy", "cvxpy"]), **origin, **self.publishing},
            constraints=self.kept,
            recipe=table.recipe,
            noisy=NoisyCounts.of(table) if table.protection else None,
        )

    @property
    def publishing(self) -> dict[str, str | float]:
        """The lines of provenance that say whether the mechanism may be published, and by which guarantee."""
        protection = self.problem.table.protection
        return {"publish": PRIVATE} if protection is None else protection.provenance

    @abstractmethod
    def _described(self, beside: Beside) -> Facts:
        """Return all facts of the run, and of the results that were computed beside it."""

    def described(self, beside: Beside) -> Facts:
        """Return the facts of the run and of what was computed beside it; without times where they may be published."""
        facts = self._described(beside)
        return untimed(facts) if facts.published else facts

    @property
    def facts(self) -> Facts:
        """The facts of the run: numbers with unit and sentence, tables, pictures, promises."""
        return self.described(Beside())

    def report(self, path: PathLike, page: str = INTERNAL, beside: Beside | None = None) -> Path:
        """See `Run`; `beside` has what was computed beside the run: a curve with its mechanisms, a disclosure."""
        from cvxpriv.reports.page import write

        return write(self.described(beside or Beside()), path, page)

    @cached_property
    def starts(self) -> pd.DataFrame:
        """One row per start, with the columns origin, kkt, iterations, converged, and the model's figures in nats."""
        return pd.DataFrame(dict(self.each_start)).rename_axis("start")

    @property
    def converged(self) -> bool:
        """Whether the best start's residual, or gap, is within the tolerance, and ready constraints hold in doubles."""
        return bool(self.each_start["converged"][self.start]) and not self.missed

    @property
    def gap(self) -> float | None:
        """Certified distance from the best mechanism; None where `no_gap` says why."""
        return None

    @property
    def kept(self) -> list[dict[str, Any]]:
        """The ready constraints that the mechanism satisfies, as its file holds them."""
        return [{"name": name, **to_document(one)} for name, one in self.constraints if name not in self.missed]

    @cached_property
    def missed(self) -> dict[str, float]:
        """The amount by which the mechanism, as it stands in doubles, misses each ready constraint that it misses."""
        if not self.constraints:
            return {}
        return missed(self.mechanism, self.constraints, Known.of_table(self.problem.table))

    @property
    def iterations(self) -> int:
        """Number of passes of the best start."""
        return int(self.each_start["iterations"][self.start])

    @property
    def residual(self) -> float:
        """The best start's KKT residual, to which `tol` applies, in nats."""
        return float(self.each_start["kkt"][self.start])

    @property
    def tol(self) -> float:
        """The requested KKT residual, in nats."""
        return float(self.settings.tol)

    @property
    def history(self) -> pd.DataFrame:
        """The steps of the best start: iteration, block, the model's figures, kkt, seconds, engine, solver, status."""
        return self.log.frame(self.start)

    @cached_property
    def shadow_prices(self) -> pd.DataFrame:
        """Return the cost of a unit of each constraint: columns constraint, per, price.

        The price is the number of nats by which the objective improves for each unit by which the constraint's
        parameter, or a slack in all its parts, grows (`cvxpriv.runs.shadow_prices`). It holds at a converged
        run.

        Raises
        ------
        SolverFailure
            No solver solves the block that designs the mechanism.
        """
        if not self.constraints:
            return pd.DataFrame(columns=["constraint", "per", "price"])
        return self._supervised("the prices", shadow_prices, self.blocks()[self.whole], self.state)

    def _supervised(self, what: str, function: Callable[..., Answer], *arguments: Any) -> Answer:
        """Return what a function returns, from a process of its own where solvers were asked there."""
        with apart(process() if self.isolate is None else Elsewhere(self.isolate)):
            return supervised(what, function, *arguments)

    def cases(self) -> list[Case]:
        return [case_of_block(block, self.state) for block in self.blocks().values()]

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the mechanism as a heatmap: one row per input, one column per output; see `Run`."""
        from cvxpriv.mechanisms.plots import plot_mechanism

        figure = plot_mechanism(self.mechanism, self.problem.table.public, ax=ax)
        return figure.axes[0] if ax is None else ax

    @property
    def figures(self) -> dict[str, float]:
        """The figures of the mechanism, in nats, under the names of the columns of `starts`."""
        named = ("leakage", "utility", "accuracy", "objective")
        return {name: float(getattr(self, name)) for name in named if hasattr(self, name)}

    def contradiction(self) -> str:
        """See `Run`. A contradiction is a figure that is not the mechanism's, or a false claim of convergence."""
        stochastic_matrix(self.mechanism, "the mechanism of the run")
        claimed = self.starts.iloc[self.start]
        for name, found in self.figures.items():
            if name not in claimed.index:
                if hasattr(self, name):
                    return f"the table of its starts has no {name}"
                continue
            if not abs(float(claimed[name]) - found) <= FIGURE_TOLERANCE * (1.0 + abs(found)):
                return f"the run claims {name}={claimed[name]!r}, its mechanism has {found!r}"
        residual, accepted = self.kkt.largest, max(10.0 * self.tol, LOOSEST_RESIDUAL)
        proved = self.gap is not None and self.gap <= 10.0 * self.tol  # near an optimum of 0 the residual may be large
        claimed_to = bool(claimed["converged"]) and not self.missed  # what else counts as convergence is computed
        if claimed_to and not (proved or residual <= accepted):
            return f"the run claims to have converged, and the residual of its mechanism is {residual:.1e}"
        return ""

    def document(self) -> dict[str, Any]:
        """See `Run`. The file holds the private table, unlike that of `as_mechanism`: keep it where the table is kept.

        Ready constraints are kept with their parameters; of a user's own function only the name is kept.
        """
        return {
            **table_document(self.problem.table),
            "state": encoded(Values, self.state),
            "starts": encoded(pd.DataFrame, self.starts),
            "start": self.start,
            "settings": fields_of(self.settings),
            "seconds": self.seconds,
            "constraints": [{"name": name, **to_document(one)} for name, one in self.constraints],
            "no_gap": self.no_gap,
            **self.saved(),
        }

    @abstractmethod
    def saved(self) -> dict[str, Any]:
        """Return the rest of a run's file beside the table, the state and the starts: the problem's numbers."""


def restored(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a mechanism's run that its `document` holds, except the problem and the settings."""
    starts = starts_of(document["starts"]["columns"])
    constraints = [(one["name"], from_document(one)) for one in document["constraints"]]
    if missing := sorted(name for name, made in constraints if made is None):
        starts["converged"] = False
        warn(
            f"constraint {', '.join(missing)} was a function of the user's own, of which the file holds the name alone:"
            " residual and gap speak of the problem without it, and the run does not count as converged",
            NoGuaranteeWarning,
        )
    return {
        "state": decoded(Values, document["state"]),
        "each_start": dict(starts),
        "start": decoded(int, document["start"]),
        "seconds": decoded(float, document["seconds"]),
        "constraints": tuple(one for one in constraints if one[1] is not None),
        "no_gap": decoded(str, document.get("no_gap", "")),
    }


def unsought(given: Mapping[str, bool]) -> str:
    """Return why a solve looked for no bound: options that the caller gave, of those that leave it out.

    >>> unsought({"method": True, "init": False})
    'with method given, no bound is looked for: leave it out, or call bound()'
    """
    names = [name for name, there in given.items() if there]
    them = "it" if len(names) == 1 else "them"
    return (
        f"with {' and '.join(names)} given, no bound is looked for: leave {them} out, or call bound()" if names else ""
    )
