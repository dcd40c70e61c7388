"""The history of a run, step by step, kept cheaply and read as a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.later import pd

if TYPE_CHECKING:
    from cvxpriv.blocks.engines import Outcome


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
        table = pd.DataFrame(rows)
        ordered = ["start", "iteration", "block"]
        tail = ["seconds", "engine", "solver", "status"]
        middle = [name for name in table.columns if name not in (*ordered, *tail)]
        table = table.reindex(columns=[*ordered, *middle, *tail])
        return table if start is None else table.drop(columns="start")


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
