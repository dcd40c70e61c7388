"""What a solve of the funnel returns: `FunnelRun`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Constraint
from cvxpriv.kkt import Residuals
from cvxpriv.mechanisms.mechanism import Mechanism, provenance
from cvxpriv.numerics.arrays import Array, Values, single
from cvxpriv.reports.files import PathLike
from cvxpriv.runs.mechanism_run import MechanismRun, restored
from cvxpriv.runs.saved import read_run, write_run
from cvxpriv.schedules.history import History
from cvxpriv.schedules.steps import Context
from cvxpriv.tables.documents import table_of

from . import algorithm, closed_form
from .kkt import FunnelResiduals, PointResiduals, residuals
from .problem import Problem

__all__ = ["FunnelRun", "Settings"]

#: Two starts whose leakages differ by less are one answer: the converged one is kept.
SAME_LEAKAGE = 1e-9


@dataclass(frozen=True)
class Settings:
    """The options of `PrivacyFunnel.solve` that decide its result."""

    engine: str
    method: str
    accelerate: str
    starts: int
    seed: int
    max_iter: int
    tol: float


@dataclass(frozen=True, eq=False)
class FunnelRun(MechanismRun[Problem, Settings]):
    """The best of a funnel's starts: see `MechanismRun`; leakage and utility among the columns of `starts`."""

    @cached_property
    def mechanism(self) -> Array:
        """P(Y|X), (|X|, |Y|), rows sum to 1."""
        rows = np.exp(self.state["log_u"])
        return np.asarray(rows / rows.sum(axis=1, keepdims=True))

    @cached_property
    def leakage(self) -> float:
        """I(S;Y) in nats."""
        return self.problem.leakage(self.mechanism)

    @cached_property
    def utility(self) -> float:
        """I(X;Y) in nats; at least the rate."""
        return self.problem.utility(self.mechanism)

    @cached_property
    def kkt(self) -> PointResiduals | Residuals:
        """The whole problem's residuals at the final point; `largest` is the figure that the run was stopped by.

        With user constraints: those of the convex-concave block at its own point, which stays there iff the point is
        stationary.
        """
        problem = self.problem
        if self.constraints:
            return self.blocks()["(q, u, r)"].residual(self.state, self.state)
        return _residuals(problem, self.state["log_u"][None]).of(0)

    def blocks(self) -> dict[str, Block]:
        """See `MechanismRun`."""
        return algorithm.blocks(self.problem, self.constraints)

    def as_mechanism(self) -> Mechanism:
        """See `MechanismRun`."""
        table = self.problem.table
        return Mechanism(
            self.mechanism,
            inputs=table.public,
            model="PrivacyFunnel",
            figures={
                "leakage": self.leakage,
                "utility": self.utility,
                "rate": self.problem.rate,
                "kkt": self.kkt.largest,
            },
            private_columns=table.private.columns,
            origin=provenance(**asdict(self.settings)),
        )

    def save(self, path: PathLike) -> Path:
        """Write the run to a JSON file, whole or not at all.

        The file holds the private table, unlike that of `as_mechanism`: keep it where the table is kept. A run with
        user constraints is saved without them: they are code.
        """
        document = {**self.saved(), "rate": self.problem.rate, "size_y": self.problem.size_y}
        return write_run(path, "PrivacyFunnel", document)

    @classmethod
    def load(cls, path: PathLike) -> FunnelRun:
        """Read what `save` wrote; the history is not in it.

        Raises
        ------
        DataError
            No such file, not a saved run of the funnel, or of another version.
        """
        document = read_run(path, "PrivacyFunnel")
        return cls(
            problem=Problem(table_of(document), document["rate"], document["size_y"]),
            settings=Settings(**document["settings"]),
            **restored(document),
        )


def _residuals(problem: Problem, log_u: Array) -> FunnelResiduals:
    """The residuals of mechanisms, (starts, |X|, |Y|), each with the multiplier that makes them least."""
    return residuals(log_u, problem.p_x, problem.p_s_given_x, problem.target)


def best_run(
    problem: Problem,
    constraints: tuple[tuple[str, Constraint], ...],
    pieces: Sequence[tuple[Values, Context]],
    origins: Sequence[str],
    settings: Settings,
    seconds: float,
) -> FunnelRun:
    """Return the run of the best start among those of all pieces.

    The best is the one of least leakage; of several within `SAME_LEAKAGE` of it, a converged one of least residual.
    """
    state = {name: np.concatenate([piece[name] for piece, _ in pieces]) for name in pieces[0][0]}
    state = {**state, **closed_form.complete(state["log_u"], problem.p_s_given_x, state["lam"])}
    measured = algorithm.measure(problem, constraints)(state)
    kkt = measured["kkt"] if constraints else _residuals(problem, state["log_u"]).largest
    reports = [context.reports[algorithm.LOOP] for _, context in pieces]
    starts = pd.DataFrame(
        {
            "origin": origins,
            "leakage": measured["objective"],
            "utility": measured["utility"],
            "kkt": kkt,
            "iterations": np.concatenate([report.iterations for report in reports]),
            "converged": kkt <= settings.tol,
        }
    )
    starts.index.name = "start"
    near = starts[starts["leakage"] <= starts["leakage"].min() + SAME_LEAKAGE]
    start = int(near["kkt"].idxmin())
    log = History()
    for offset, (_, context) in zip(np.cumsum([0, *[r.iterations.size for r in reports]])[:-1], pieces, strict=True):
        log.extend(context.history, shift=int(offset))
    interrupted = any(context.interrupted for _, context in pieces)
    return FunnelRun(problem, single(state, start), starts, start, settings, seconds, log, constraints, interrupted)
