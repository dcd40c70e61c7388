"""Solutions along a range of weights, each started from the one before."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.errors import ModelError
from cvxpriv.numerics.arguments import few, real_numbers, require_at_most, require_counts
from cvxpriv.numerics.later import pd
from cvxpriv.numerics.sizes import MOST_POINTS
from cvxpriv.penalties import Penalty

from .problem import Problem
from .run import SparseRun

#: The least weight of a path as a share of the largest, where only their number is given.
LEAST = 0.01


def path_table(
    problem: Problem,
    lams: Iterable[float] | int,
    init: ArrayLike | None,
    solve: Callable[[Penalty, ArrayLike | None], SparseRun],
) -> pd.DataFrame:
    """Return the table of `ISTDP.path`; `solve` takes a penalty and a start."""
    weights = _weights(lams, problem)
    columns = _columns(problem)
    start = init
    rows = []
    for lam in weights:
        run = solve(_reweighted(problem.penalty, lam), start)
        start = run.theta
        figures = {
            "objective": run.objective,
            "kkt": run.kkt.largest,
            "converged": run.converged,
            "support": run.support.size,
            "iterations": run.iterations,
            "seconds": run.seconds,
        }
        rows.append({**figures, **dict(zip(columns, run.theta, strict=True))})
    return pd.DataFrame(rows, index=pd.Index(weights, name="lam"))


def _weights(lams: Iterable[float] | int, problem: Problem) -> list[float]:
    if isinstance(lams, (int, np.integer)):
        require_counts(lams=lams)
        require_at_most(MOST_POINTS, lams=lams)
        return [float(problem.lambda_max * share) for share in np.geomspace(1.0, LEAST, int(lams))]
    weights = real_numbers(few("lams", lams, MOST_POINTS), "lams", ModelError).ravel()
    require_at_most(MOST_POINTS, lams=weights.size)
    if not weights.size or not (weights >= 0.0).all():
        raise ModelError(f"lams={weights.tolist()!r} holds no weights: pass numbers >= 0, or how many")
    return [float(weight) for weight in np.sort(weights)[::-1]]


def _columns(problem: Problem) -> tuple[str, ...]:
    names = tuple(f"theta[{name}]" for name in problem.names)
    return (*names, "(intercept)") if problem.intercept else names


def _reweighted(penalty: Penalty, lam: float) -> Penalty:
    if not is_dataclass(penalty) or "lam" not in {one.name for one in fields(penalty)}:
        raise ModelError(f"penalty={penalty!r} has no weight lam: a path needs a dataclass with a field lam")
    return replace(penalty, lam=lam)
