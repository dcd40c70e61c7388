"""The base of runs on a user's own problem: the best of the starts, and its history."""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.parts import named, real_problem
from cvxpriv.certify.cases import Case, case_of_block
from cvxpriv.errors import DataError
from cvxpriv.numerics.arrays import Values
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import pd
from cvxpriv.reports.facts import Fact, Facts, Picture, Section, Table
from cvxpriv.reports.files import PathLike
from cvxpriv.reports.pictures import plot_history, plot_passes
from cvxpriv.runs.run import Run
from cvxpriv.runs.saved import decoded, read_run, starts_of
from cvxpriv.schedules.alternation import placed
from cvxpriv.schedules.history import Context, History

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Relative difference below which two objectives count as equal.
SAME = 1e-9
RESIDUAL = "The largest residual of the whole problem's optimality conditions, exact, without a solver."
VIOLATION = "By how much a constraint is violated at most."
STATIONARY = (
    "The point is stationary to the residual above: no small move improves it to first order. A saddle is stationary "
    "too, and whether a better point exists elsewhere is not known; compare starts."
)


@door
@dataclass(frozen=True, eq=False, repr=False)
class ProblemRun(Run):
    """The best of the starts on a problem that is not convex.

    Attributes
    ----------
    problem : cvxpy.Problem
        The problem; its variables hold the best values.
    values : mapping of str to ndarray
        The value of every variable by name.
    starts : DataFrame
        One row per start: origin, objective, violation, kkt, iterations, converged, and in words how it ended.
    start : int
        Number of the best start: among those that converged, if any did, it has the best objective.
    tol : float
        The requested residual.
    seconds : float
    log : History
    interrupted, overdue : bool
        Whether the keyboard, or the time limit, ended it.
    """

    problem: cp.Problem
    values: Values
    starts: pd.DataFrame
    start: int
    tol: float
    seconds: float
    log: History = field(default_factory=History)
    interrupted: bool = False
    overdue: bool = False

    @classmethod
    def of_starts(
        cls,
        problem: cp.Problem,
        states: Sequence[Values],
        table: pd.DataFrame,
        tol: float,
        begun: float,
        log: History,
        endings: Sequence[Any],
        **more: Any,
    ) -> Self:
        """Return the run of the best start, and place its values in the problem."""
        best = best_start(table, isinstance(problem.objective, cp.Maximize), tol)
        placed(problem, states[best])
        seconds = time.perf_counter() - begun
        interrupted, overdue = any(one.interrupted for one in endings), any(one.overdue for one in endings)
        return cls(problem, states[best], table, best, tol, seconds, log, interrupted, overdue, **more)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the residual of the best start, pass by pass: see `Run`. DataError: the run was read from a file."""
        return plot_passes(self.history if self.log.records else pd.DataFrame(), "kkt", "KKT residual", ax)

    @property
    def objective(self) -> float:
        """The problem's objective at the best start."""
        return float(self.starts["objective"].iloc[self.start])

    @property
    def residual(self) -> float:
        """The largest residual of the whole problem's optimality conditions, as `measured`."""
        return float(self.starts["kkt"].iloc[self.start])

    @property
    def converged(self) -> bool:
        """Whether the residual is within the tolerance."""
        return bool(self.starts["converged"].iloc[self.start])

    @property
    def history(self) -> pd.DataFrame:
        """The steps of the best start: iteration, block, measurements, seconds, engine, solver, status."""
        return self.log.frame(self.start)

    @property
    def facts(self) -> Facts:
        """The facts of the run: numbers with unit and sentence, its starts, its history, its promises."""
        steps = self.log.frame()
        measured = len(steps) > 0 and {"objective", "kkt"} <= set(steps)
        draw = partial(plot_history, steps, residual="kkt", best=self.start)
        pictures = [Picture(draw, "Objective and residual by pass, one line for each start.")] if measured else []
        split = [Fact(name, text, main=True) for name, text in self.described().items()]
        worked = int(self.starts["converged"].sum())
        ended = str(self.starts["ended"].iloc[self.start])
        state = f"{'' if self.converged else 'NOT converged: '}{ended}; {self.tol:.0e} asked for"
        missed = [f"This run did NOT converge: its residual is above {self.tol:.0e}; {ended}."]
        return Facts(
            title=f"{type(self).__name__} of {len(self.values)} variables",
            summary=f"The best of {len(self.starts)} starts on a problem that is not convex.",
            facts=[
                Fact("objective", self.objective, main=True),
                Fact("residual", self.residual, sentence=RESIDUAL, detail=state, digits=2, main=True),
                Fact("violation", float(self.starts["violation"].iloc[self.start]), sentence=VIOLATION, digits=2),
                Fact("starts_converged", worked, detail=f"of {len(self.starts)}", main=True),
                *split,
                Fact("seconds", self.seconds, "s"),
            ],
            sections=[Section("Starts", pictures=pictures, tables=[Table(self.starts.reset_index(), sortable=True)])],
            settings=[Fact("tol", self.tol)],
            messages=[] if self.converged else missed,
            promises=[STATIONARY],
            tables={"starts": self.starts.reset_index(), "history": steps},
            converged=self.converged,
            interrupted=self.interrupted or self.overdue,
        )

    @abstractmethod
    def blocks(self) -> dict[str, Block]:
        """Return the convex blocks by name."""

    @abstractmethod
    def measured(self) -> float:
        """Return the residual at the values."""

    def described(self) -> dict[str, str]:
        """Return further facts by name."""
        return {}

    @abstractmethod
    def saved(self) -> dict[str, Any]:
        """Return what a file holds beside values, starts and tolerance."""

    @classmethod
    @abstractmethod
    def restored(cls, document: Mapping[str, Any], problem: cp.Problem) -> dict[str, Any]:
        """Return the further attributes that a file holds."""

    def cases(self) -> list[Case]:
        return [case_of_block(block, self.values) for block in self.blocks().values()]

    def document(self) -> dict[str, Any]:
        """See `Run`. The problem itself is not in it."""
        return {
            "values": {name: np.asarray(value).tolist() for name, value in self.values.items()},
            "starts": self.starts.to_dict(orient="list"),
            "start": self.start,
            "tol": self.tol,
            "seconds": self.seconds,
            **self.saved(),
        }

    @classmethod
    def of_document(cls, document: Mapping[str, Any], problem: cp.Problem | None = None, **more: Any) -> Self:
        """See `Run`. The file is one of this problem; `more` are a subclass's own fields.

        Raises
        ------
        DataError
            No problem is given, or the file is of another one.
        """
        if problem is None:
            raise DataError("problem=None: a run's file does not hold its problem; pass it to `load` of its class")
        problem = real_problem(problem)
        names = named(problem)
        values = {name: np.array(value, dtype=float) for name, value in document["values"].items()}
        wrong = [name for name in names if name not in values or values[name].shape != names[name].shape]
        if wrong or set(values) - set(names):
            raise DataError("problem is another one: the file does not hold the variables of this one")
        starts = starts_of(document["starts"])
        kinds = {"start": int, "tol": float, "seconds": float}
        given = {name: decoded(kind, document[name]) for name, kind in kinds.items()}
        if not 0 <= given["start"] < len(starts):
            raise DataError(f"start={given['start']} is none of the {len(starts)} starts")
        placed(problem, values)
        return cls(problem, values, starts, **given, **cls.restored(document, problem), **more)

    def contradiction(self) -> str:
        found = self.measured() if self.facts.facts else math.nan
        if not np.isclose(found, self.residual, rtol=1e-3, atol=1e-9):
            return f"it is of another problem: its residual is {self.residual:.2e}, here {found:.2e}"
        value = float(self.problem.objective.value)
        same = np.isclose(value, self.objective, rtol=1e-6, atol=1e-9)
        return "" if same else f"the run claims objective={self.objective!r}, its values have {value!r}"

    @classmethod
    def load(cls, path: PathLike, problem: cp.Problem | None = None) -> Self:
        """Read what `save` wrote of a problem.

        Raises
        ------
        DataError
            No such file, not a saved run of this kind, or of another problem.
        """
        return cls.opened(read_run(path, cls.model), path, problem=problem)


def unfinished(context: Context) -> str:
    """Return why a start ended that neither converged nor stood still."""
    return "time or the keyboard ended it" if context.ended else "the passes were used up"


def best_start(table: pd.DataFrame, maximise: bool, tol: float) -> int:
    """Return the start of the best objective among those that converged; of equals, that of the least residual."""
    candidates = table[table["converged"]]
    if candidates.empty:
        candidates = table[table["violation"] <= max(tol, float(table["violation"].min()))]
    cost = -candidates["objective"] if maximise else candidates["objective"]
    near = candidates[cost <= cost.min() + SAME * max(1.0, abs(float(cost.min())))]
    return int(near["kkt"].idxmin())
