"""Douglas-Rachford splitting.

Huang, El Gamal and El Gamal 2022, "A Linearly Convergent Douglas-Rachford Splitting Solver for Markovian
Information-Theoretic Optimization Problems"; PF Appendix B.

The Lagrangian ``I(S;Y) - beta I(X;Y)`` is split over ``p = P(Y|S)`` and ``q = P(Y|X)``, which ``p = B q`` with
``B = P(X|S)`` ties together::

    F(p) = -H(Y|S)                                  strongly convex
    G(q) = (1 - beta) H(Y) + beta H(Y|X)            weakly convex, where q stays away from 0
    L(p, q, v) = F(p) + G(q) + <v, p - B q> + c/2 ||p - B q||^2

One iteration with relaxation alpha in (0, 2)::

    p     <- argmin L(., q, v)
    v     <- v - (1 - alpha) c (p - B q)
    q     <- descent on L(p, ., v)
    v     <- v + c (p - B q)

A reconstruction from what is public, not the authors' program. It differs where that serves a fair comparison: the
p-step is exact (Wright's omega function and one scalar root a row) instead of a gradient step; the q-step takes
projected gradient steps with backtracking, in the metric that weighs the rows of q by ``P_X``; a run counts as
converged when q is stationary for the Lagrangian too, not when its gap alone is closed.

What stays is the method's nature. ``B' B`` is singular for ``|S| < |X|``, so no c makes the q-step convex, and the c
that the guarantee asks for is beyond any use (PF Appendix B): the q-step only descends, and the result is local. And
the rate comes out; it does not go in. Where the curve is straight, no beta reaches its inner points.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.simplex import projected_rows
from cvxpriv_models.privacy_funnel.baselines.outcome import Baseline, least_leaking, measured, require_attainable
from cvxpriv_models.privacy_funnel.baselines.splitting_steps import (
    FLOOR,
    Splitting,
    private_step,
    public_step,
    split,
    stationarity,
)

#: Runs that are iterated as one array hold at most this many entries of ``P(Y|X)``.
BATCH_ENTRIES = 1_000_000


def drs_curve(
    p_sx: Array,
    betas: Sequence[float] | None = None,
    starts: int = 10,
    seed: int = 0,
    *,
    size_y: int | None = None,
    penalty: float = 30.0,
    relaxation: float = 1.0,
    max_iter: int = 500,
    inner: int = 2,
    tolerance: float = 1e-5,
) -> list[Baseline]:
    """Run the splitting for each multiplier from several starts.

    `p_sx`, ``(|S|, |X|)``: Joint probabilities.
    `betas`: Multipliers of I(X;Y), positive; by default 24 in geometric progression from 0.001 to 1. Above 1 full
    disclosure is optimal.
    `starts`: Starts for each multiplier: in turn one of Dirichlet rows and one of nearly deterministic rows.
    `size_y`: |Y|; |X| + 1 by default.
    `penalty`: c, positive.
    `relaxation`: alpha, inside (0, 2); 1 is the alternating direction method of multipliers.
    `max_iter`, `inner`: Most iterations of a run, and gradient steps in each q-step.
    `tolerance`: A run has converged when ``max |p - B q|`` and the `stationarity` of q are both at or below it.
    Returns: One for each multiplier and start, multipliers first; every mechanism is finite and row-stochastic, also of
    a run that has not converged. Its figures are those of the mechanism itself: p serves only the iteration.
    Raises ModelError: An option is outside its range.
    """
    prices = np.geomspace(1e-3, 1.0, 24) if betas is None else np.asarray(betas, dtype=np.float64)
    size = p_sx.shape[1] + 1 if size_y is None else size_y
    _check_options(prices, starts, size, penalty, relaxation, max_iter, inner)
    splitting = split(p_sx, penalty, relaxation, inner)
    beta = np.repeat(prices, starts)
    q = _starting_points(len(beta), p_sx.shape[1], size, starts, np.random.default_rng(seed))
    runs = max(1, BATCH_ENTRIES // (p_sx.shape[1] * size))
    found: list[Baseline] = []
    for first in range(0, len(beta), runs):
        batch = slice(first, first + runs)
        mechanisms, gaps, iterations, converged = _iterate(splitting, q[batch], beta[batch], max_iter, tolerance)
        found += [
            measured("drs", p_sx, mechanism, int(count), converged=bool(done), multiplier=float(price), gap=float(gap))
            for mechanism, gap, count, done, price in zip(
                mechanisms, gaps, iterations, converged, beta[batch], strict=True
            )
        ]
    return found


def drs(p_sx: Array, rate: float, *args: Any, **options: Any) -> Baseline:
    """The mechanism of `drs_curve`, with its arguments, that leaks least among those that reach a rate in nats.

    The rate may be exceeded by far: the method cannot aim at one. Full disclosure, the limit of a large beta, stands
    among the candidates (``multiplier`` is then infinite), so that every rate up to ``H(X)`` is reached.

    Examples
    --------
    >>> p_sx = np.array([[0.2, 0.2, 0.0, 0.1], [0.0, 0.1, 0.3, 0.1]])
    >>> found = drs(p_sx, rate=0.6, betas=[0.1, 0.2, 0.4], starts=4)
    >>> found.utility >= 0.6, found.gap < 1e-3
    (True, True)
    """
    require_attainable(rate, p_sx)
    curve = drs_curve(p_sx, *args, **options)
    disclosure = measured("drs", p_sx, np.eye(p_sx.shape[1]), 0, multiplier=np.inf)
    return least_leaking([*curve, disclosure], rate)


def _iterate(
    splitting: Splitting, q: Array, beta: Array, max_iter: int, tolerance: float
) -> tuple[Array, Array, NDArray[np.int64], NDArray[np.bool_]]:
    """Iterate a batch; a run that has converged leaves it. Returns mechanisms, gaps, iterations, converged."""
    backward, penalty = splitting.backward, splitting.penalty
    final, gaps = q.copy(), np.zeros(len(q))
    iterations, converged = np.zeros(len(q), dtype=np.int64), np.zeros(len(q), dtype=bool)
    running = np.arange(len(q))
    dual = np.zeros((len(q), len(splitting.p_s), q.shape[-1]))
    step = np.full(len(q), 1.0 / penalty)
    for iteration in range(1, max_iter + 1):
        target = backward @ q
        p = private_step(splitting.p_s, target, dual, penalty)
        dual = dual - (1.0 - splitting.relaxation) * penalty * (p - target)
        q, step = public_step(splitting, q, p, dual, beta, step)
        residual = p - backward @ q
        dual = dual + penalty * residual
        gap = np.abs(residual).max(axis=(-2, -1))
        ended = (gap <= tolerance) & (stationarity(splitting, q, beta) <= tolerance)
        final[running], gaps[running], iterations[running], converged[running] = q, gap, iteration, ended
        if ended.all():
            break
        alive = ~ended
        running, q, dual, step, beta = running[alive], q[alive], dual[alive], step[alive], beta[alive]
    final = np.where(final <= 2.0 * FLOOR, 0.0, final)
    return final / final.sum(axis=-1, keepdims=True), gaps, iterations, converged


def _starting_points(runs: int, size_x: int, size_y: int, starts: int, rng: np.random.Generator) -> Array:
    """Dirichlet rows for even starts; for odd ones a random label for each symbol, kept with probability 0.9."""
    scattered = rng.dirichlet(np.ones(size_y), size=(runs, size_x))
    labelled = np.eye(size_y)[rng.integers(size_y, size=(runs, size_x))]
    odd = (np.arange(runs) % starts % 2 == 1)[:, None, None]
    return projected_rows(np.where(odd, 0.9 * labelled + 0.1 * scattered, scattered), FLOOR)


def _check_options(
    betas: Array, starts: int, size_y: int, penalty: float, relaxation: float, max_iter: int, inner: int
) -> None:
    """Refuse options outside their range."""
    if not (np.isfinite(betas) & (betas > 0)).all():
        raise ModelError(f"betas={betas.tolist()}: expected positive finite numbers; the useful ones are at most 1")
    if not 0 < penalty < np.inf:
        raise ModelError(f"penalty={penalty}: expected a positive number; leave it out for 30")
    if not 0 < relaxation < 2:
        raise ModelError(f"relaxation={relaxation}: expected a number inside (0, 2); leave it out for 1")
    for name, count in (("starts", starts), ("size_y", size_y), ("max_iter", max_iter), ("inner", inner)):
        if count < 1:
            raise ModelError(f"{name}={count}: expected at least 1")
