"""The base of the runs of models that learn: common facts, a file of their fields, a picture."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from cvxpriv.errors import DataError
from cvxpriv.numerics.packages import pd
from cvxpriv.privacy.accounting import Accounting
from cvxpriv.privacy.ledger import Release, account_ledger
from cvxpriv.reports.facts import Fact, Facts
from cvxpriv.reports.formatting import at_most, format_number
from cvxpriv.reports.pictures import plot_passes
from cvxpriv.runs.run import Run
from cvxpriv.runs.saved import UNSAVED, decoded, fields_of
from cvxpriv.schedules.history import History

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SEEDED = "The noise can be drawn again by whoever knows its seed: the guarantee holds only while that is secret."

#: Relative difference of an epsilon that was found by bisection, on another machine.
SAME = 1e-6
#: Columns of a history that hold nothing public.
_HIDDEN = ["block", "seconds", "engine", "solver", "status"]


class _Learned(Run):
    """A run whose file holds its fields; a subclass is a dataclass."""

    #: Whether the run holds only numbers that were released with a guarantee.
    private: ClassVar[bool]
    #: The column of its history that is drawn, and its meaning.
    drawn: ClassVar[tuple[str, str]]

    history: Any
    settings: Any
    interrupted: bool

    @property
    def posable(self) -> bool:
        """Whether there is a block to certify."""
        return True

    def document(self) -> dict[str, Any]:
        return {"private": self.private, **fields_of(self)}

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Self:
        if bool(document.get("private")) is not cls.private:
            kind = "is not private" if cls.private else "is private"
            raise DataError(f"path holds a run of {cls.model} that {kind}: read it by cvxpriv.load")
        run: Self = decoded(cls, document)
        return run

    def contradiction(self) -> str:
        """See `Run`. Parts that do not fit each other have no facts."""
        return "" if self.finite and self.facts.facts else "a coefficient is no finite number"

    @property
    def finite(self) -> bool:
        """Whether all coefficients are finite numbers."""
        several = [getattr(self, name) for name in ("coefficients", "parameters") if hasattr(self, name)]
        return all(np.isfinite(one).all() for held in several for one in (held if isinstance(held, list) else [held]))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the residuals that stopped the run, or the releases of a private one, pass by pass.

        `ax`: The axes to draw on. By default a new figure.
        Raises DataError: The run was read from a file: its history is not in it. ModelError: matplotlib is missing.
        """
        return plot_passes(self.history, *self.drawn, ax, linear=self.private)

    def _options(self) -> list[Fact]:
        return [Fact(name, value) for name, value in asdict(self.settings).items()]


@dataclass(frozen=True)
class Start:
    """The end of one start: a row of a run's `starts`."""

    objective: float
    kkt: float
    iterations: int
    converged: bool
    best: bool


class _Judged(_Learned):
    """A run with a residual and a bound: fields in some models, properties in others."""

    converged: Any
    kkt: Any
    gap: Any


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LearningRun(_Judged):
    """A run that is not private; a subclass adds `converged`, `kkt` and `gap`.

    Attributes
    ----------
    settings : dataclass
        The options that decide the result.
    iterations : int
        Number of passes.
    objective : float
    seconds : float
    interrupted : bool
        Whether a keyboard interrupt or a callback ended the solve.
    overdue : bool
        Whether the time limit ended it.
    tried : tuple of Start
        The end of each start; `starts` is the table of them.
    log : History
        The steps; `history` is the table of them.
    """

    private = False
    drawn = ("kkt", "KKT residual")
    #: Remedies for a run that did not converge.
    remedies: ClassVar[str] = "raise --max-iter, or allow a larger --tol"
    #: The parts of the run that reveal the rows.
    open: ClassVar[str]
    #: The problems whose gap is known.
    bounded: ClassVar[str]

    settings: Any
    iterations: int
    objective: float
    seconds: float
    interrupted: bool = False
    overdue: bool = False
    tried: tuple[Start, ...] = ()
    log: History = field(default_factory=History, metadata=UNSAVED)

    @property
    def finite(self) -> bool:
        """Whether all coefficients and the objective are finite numbers."""
        return super().finite and bool(np.isfinite(self.objective))

    @property
    def history(self) -> pd.DataFrame:
        """The steps of the solve: iteration, block, the model's figures, seconds, engine, solver, status."""
        return self.log.frame(0)

    @property
    def starts(self) -> pd.DataFrame:
        """One row per start: objective, kkt, iterations, converged, best; made when asked for, since pandas is slow."""
        return pd.DataFrame([asdict(one) for one in self.tried]).rename_axis("start")

    def own_facts(self) -> Sequence[Fact]:
        """Return what this model's run says beside what every run does."""
        return ()

    @property
    def no_gap(self) -> str:
        """The reason why `gap` is None; empty where it is not."""
        return "" if self.gap is not None else f"a bound is known only for {self.bounded}"

    @property
    def reached(self) -> str:
        """Whether the run converged, and by which rule where there are several."""
        return "converged" if self.converged else "NOT converged"

    @property
    def facts(self) -> Facts:
        """The facts of the run: numbers with a sentence each, the options, and its promises."""
        tol = format_number(self.settings.tol, 1)
        unknown = self.gap is None
        gap = None if unknown else max(self.gap, 0.0)
        bound = self.no_gap or "the objective is above its optimum by at most this"
        kkt, sentence = self.kkt.largest, "Distance from the optimality conditions, which hold at 0."
        end = ", where the time limit ended it" if self.overdue else ""
        missed = f"the KKT residual is {kkt:.1e} after {self.iterations} passes{end}, above tol={self.settings.tol:g}"
        remedy = "raise --time-limit, or allow a larger --tol" if self.overdue else self.remedies
        return Facts(
            title=self.model,
            facts=[
                Fact("kkt", kkt, "", sentence, "KKT residual", f"{self.reached}; {tol} asked for", digits=2, main=True),
                Fact("objective", self.objective, "", "What was minimised.", main=True),
                Fact("gap", gap, "", "Certified bound.", "", bound, digits=2, main=not unknown, aside=unknown),
                *self.own_facts(),
                Fact("iterations", self.iterations, "", "Sweeps of all blocks.", "passes", main=True),
                Fact("seconds", self.seconds, "s", "Wall time.", digits=3),
            ],
            settings=self._options(),
            messages=[] if self.converged else [f"This fit did NOT converge: {missed}."],
            promises=[f"{self.open} tell of the rows; a private fit (solve_private, --epsilon) gives a guarantee."],
            promised="Not private",
            converged=bool(self.converged),
            interrupted=self.interrupted,
            unmet="" if self.converged else f"{missed}: {remedy}",
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PrivateLearningRun(_Learned):
    """A private run: its facts are its guarantees, and only released numbers.

    Attributes
    ----------
    settings : dataclass
        The public options, with their defaults filled in.
    accounting : Accounting
        Accounting of the ledger: the guarantee of the run.
    ledger : tuple of Release
        Every release, with its cost and whom it touches.
    history : DataFrame
        One row per pass, of released figures only.
    interrupted : bool
        Whether a keyboard interrupt or a callback ended the run; the accounting then covers the releases so far.
    """

    private = True
    #: Subject and verb of the guarantee, such as "the coefficients are".
    covered: ClassVar[str]

    settings: Any
    accounting: Accounting
    ledger: tuple[Release, ...]
    history: pd.DataFrame
    interrupted: bool = False

    def contradiction(self) -> str:
        """See `Run`. A contradiction is a guarantee that is not that of the ledger."""
        said = self.accounting
        found = account_ledger(self.ledger, said.claims[0].delta or None, neighbours=said.neighbours)
        held = [min((claim.epsilon for claim in one.claims if claim.holds), default=np.inf) for one in (said, found)]
        if held[0] != held[1] and not abs(held[0] - held[1]) <= SAME * held[1]:
            return f"the run claims epsilon={held[0]!r}, its ledger has {held[1]!r}"
        return super().contradiction()

    def own_facts(self) -> Sequence[Fact]:
        """Return the facts of this model's run beside the common ones."""
        return ()

    @abstractmethod
    def own_promises(self) -> Sequence[str]:
        """Return further guarantees, and limits of the guarantees."""

    @property
    def facts(self) -> Facts:
        """The guarantees of the run: the budget that was spent, the releases, the neighbour relation, the options."""
        found = self.accounting
        valid = any(claim.holds for claim in found.claims)
        epsilon, delta = (found.epsilon, found.delta) if valid else (None, None)
        sentence = "No event of what was released is more likely by more than a factor exp(epsilon), and delta."
        touched = "Releases that touch the records of one neighbour's change."
        detail = "no rule holds for this mechanism" if not valid else "pure: delta is 0" if delta == 0.0 else ""
        return Facts(
            title=self.model,
            facts=[
                Fact("epsilon", epsilon, "", sentence, "Privacy: epsilon", detail, main=True),
                Fact("delta", delta, "", "The part that epsilon leaves open.", digits=1, main=True),
                Fact("releases", found.releases, "", touched, detail=f"neighbours: {found.neighbours}", main=True),
                Fact("neighbours", found.neighbours, "", "What two neighbouring data sets differ in.", aside=True),
                *self.own_facts(),
            ],
            settings=self._options(),
            promises=[
                *([self._promise()] if valid else []),
                *self.own_promises(),
                *(() if found.secure else (SEEDED,)),
            ],
            promised="What is guaranteed, and what is not",
            interrupted=self.interrupted,
        )

    def _promise(self) -> str:
        found = self.accounting
        epsilon = at_most(found.epsilon)
        budget = epsilon if found.delta == 0.0 else f"({epsilon}, {at_most(found.delta)})"
        return f"{self.covered} {budget}-differentially private: {found.neighbours}."


def history_of_loop(log: History, loop: str) -> pd.DataFrame:
    """Return the measured figures of a loop, one row per iteration, without solvers and times."""
    if not log.records:
        return pd.DataFrame()
    table = log.frame(0)
    shown = [name for name in table.columns if name not in _HIDDEN]
    return table.loc[table["block"] == loop, shown].reset_index(drop=True)
