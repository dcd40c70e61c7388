"""The parts that the steps of a run share: its context, its history, and the rules that stop a loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cvxpriv.blocks.engines import Engine, Outcome, Until
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import pd
from cvxpriv.privacy.ledger import Release
from cvxpriv.privacy.noise import Noise


@dataclass(frozen=True)
class _Record:
    iteration: int
    block: str
    starts: npt.NDArray[np.intp]
    seconds: float
    figures: Mapping[str, Array] = field(default_factory=dict)
    engine: str = ""
    solver: tuple[str, ...] = ()
    status: tuple[str, ...] = ()


@dataclass
class History:
    """Records of a run: one per block solved, and one per iteration of a loop with the figures it measured."""

    records: list[_Record] = field(default_factory=list)

    def block(self, iteration: int, name: str, starts: npt.NDArray[np.intp], outcome: Outcome) -> None:
        """Record a block's outcome."""
        self.records.append(
            _Record(
                iteration,
                name,
                starts,
                outcome.seconds,
                engine=outcome.engine,
                solver=outcome.solver,
                status=outcome.status,
            )
        )

    def iteration(
        self,
        iteration: int,
        name: str,
        starts: npt.NDArray[np.intp],
        engine: str,
        measured: Mapping[str, Array],
        seconds: float,
    ) -> None:
        """Record one iteration of a loop; `seconds` is for all its starts together."""
        self.records.append(_Record(iteration, name, starts, seconds, dict(measured), engine))

    @classmethod
    def joined(cls, pieces: Iterable[tuple[History, int]]) -> History:
        """Return the histories of the pieces of a run as one; each comes with its number of starts, numbered on."""
        whole, first = cls(), 0
        for piece, starts in pieces:
            whole.records += [replace(record, starts=record.starts + first) for record in piece.records]
            first += starts
        return whole

    def frame(self, start: int | None = None) -> pd.DataFrame:
        """Return the records as a table, of one start, or of all with a column `start`.

        Columns: iteration, block, the measured figures, seconds (of the record, shared by the starts it covers),
        engine, solver, status.
        """
        rows: list[dict[str, Any]] = []
        for record in self.records:
            for position, which in enumerate(record.starts):
                if start is None or which == start:
                    rows.append(_row(record, position, int(which)))
        tail = ["seconds", "engine", "solver", "status"]
        figures = dict.fromkeys(name for record in self.records for name in record.figures)
        ordered = ["start", "iteration", "block"][start is not None :]
        return pd.DataFrame(rows, columns=[*ordered, *figures, *tail])


def _row(record: _Record, position: int, which: int) -> dict[str, Any]:
    return {
        "start": which,
        "iteration": record.iteration,
        "block": record.block,
        **{name: float(values[position]) for name, values in record.figures.items()},
        "seconds": record.seconds,
        "engine": record.engine,
        "solver": record.solver[position] if record.solver else "",
        "status": record.status[position] if record.status else "",
    }


class Stop(Protocol):
    """A rule for which starts are done."""

    def __call__(
        self, iteration: int, before: Values, after: Values, measured: Mapping[str, Array]
    ) -> npt.NDArray[np.bool_]:
        """Return a mask of the starts that may stop, or one answer for all."""


@door
@dataclass(frozen=True)
class Below:
    """Stop a start when a measured figure is at most a bound: `Below("kkt", 1e-7)`."""

    figure: str
    bound: float

    def __call__(
        self, iteration: int, before: Values, after: Values, measured: Mapping[str, Array]
    ) -> npt.NDArray[np.bool_]:
        """See `Stop`."""
        return np.asarray(measured[self.figure] <= self.bound)


@dataclass(frozen=True)
class Moved:
    """Stop a start when an entry of the state, or with None each, moved by at most a bound in the largest component."""

    entry: str | None
    bound: float

    def __call__(
        self, iteration: int, before: Values, after: Values, measured: Mapping[str, Array]
    ) -> npt.NDArray[np.bool_]:
        """See `Stop`."""
        names = after if self.entry is None else [self.entry]
        steps = [np.abs(after[name] - before[name]) for name in names]
        still = [step.reshape(step.shape[0], -1).max(axis=1) <= self.bound for step in steps]
        return np.asarray(np.all(still, axis=0))


@dataclass(frozen=True)
class Never:
    """Run to the loop's limit."""

    def __call__(
        self, iteration: int, before: Values, after: Values, measured: Mapping[str, Array]
    ) -> npt.NDArray[np.bool_]:
        """See `Stop`."""
        return np.zeros(1, dtype=bool)


@dataclass(frozen=True)
class AnyOf:
    """Stop a start when one of several rules holds."""

    rules: tuple[Stop, ...]

    def __call__(
        self, iteration: int, before: Values, after: Values, measured: Mapping[str, Array]
    ) -> npt.NDArray[np.bool_]:
        """See `Stop`."""
        return reduce(np.logical_or, [rule(iteration, before, after, measured) for rule in self.rules])


@dataclass(frozen=True)
class LoopReport:
    """The ending of a loop, per start: iterations done, whether the stopping rule held, and what was measured last."""

    iterations: npt.NDArray[np.intp]
    converged: npt.NDArray[np.bool_]
    figures: Mapping[str, Array] = field(default_factory=dict)


@door
@dataclass
class Context:
    """The objects that one run shares among its steps.

    Attributes
    ----------
    engine : Engine
    history : History
    callback : callable, optional
        Called as `callback(loop, iteration, measured)` after each iteration of a loop that measures; returning True
        ends the run as a keyboard interrupt would.
    iteration : int
        Iteration of the innermost loop that runs.
    starts : ndarray of int
        Numbers of the starts of the whole run that the current state holds.
    noise : Noise
        The source of randomness of the `Draw` steps.
    ledger : list of Release
        Their releases so far, with the costs.
    published : list of mapping
        The entries that each of them wrote, in the order of the ledger's steps.
    released : frozenset of str, optional
        Entries whose present values are public; None, for all, until a draw claims privacy.
    interrupted : bool
        Set by a keyboard interrupt or by the callback; loops then return their results so far.
    overdue : bool
        Set where the engine's deadline passed before a loop ended; loops then return their results so far.
    """

    engine: Engine
    history: History = field(default_factory=History)
    callback: Callable[[str, int, Mapping[str, Array]], bool | None] | None = None
    iteration: int = 0
    starts: npt.NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    noise: Noise = field(default_factory=Noise)
    ledger: list[Release] = field(default_factory=list)
    published: list[Values] = field(default_factory=list)
    released: frozenset[str] | None = None
    interrupted: bool = False
    overdue: bool = False
    reports: dict[str, LoopReport] = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        """Whether the work should end with its results so far."""
        return self.interrupted or self.overdue

    def look_at_the_clock(self) -> None:
        """Set `overdue` where the engine's deadline has passed."""
        self.overdue = self.overdue or (isinstance(self.engine, Until) and self.engine.over)
