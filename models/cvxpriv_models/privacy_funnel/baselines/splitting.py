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
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, wrightomega

from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.simplex import projected_rows
from cvxpriv_models.privacy_funnel.baselines.outcome import Baseline, least_leaking, measured, require_attainable

#: Least entry of ``P(Y|X)`` during the iteration; an entry that ends there is returned as 0.
FLOOR = 1e-10
#: Largest step size of the q-step; runs on a plateau would double theirs without end.
LARGEST_STEP = 1e9


@dataclass(frozen=True)
class Splitting:
    """The data and the constants of the iteration.

    `p_s`, ``(|S|,)``, and `p_x`, ``(|X|,)``: Marginals; `p_s` is positive.
    `backward`, ``(|S|, |X|)``: P(X|S).
    `pull`, ``(|X|, |S|)``: P(S|X) / P(S), the transpose of `backward` in the metric of `p_x`; 0 where `p_x` is 0.
    `penalty`, `relaxation`: c and alpha.
    `inner`: Gradient steps of a q-step.
    """

    p_s: Array
    p_x: Array
    backward: Array
    pull: Array
    penalty: float
    relaxation: float
    inner: int


def split(p_sx: Array, penalty: float, relaxation: float, inner: int) -> Splitting:
    """Return the conditionals of a joint table, ``(|S|, |X|)``, without the private symbols that never occur."""
    table = p_sx[p_sx.sum(axis=1) > 0]
    p_s, p_x = table.sum(axis=1), table.sum(axis=0)
    likelihood = np.divide(table, p_x, out=np.zeros_like(table), where=p_x > 0)
    return Splitting(p_s, p_x, table / p_s[:, None], (likelihood / p_s[:, None]).T, penalty, relaxation, inner)


def private_step(p_s: Array, target: Array, dual: Array, penalty: float) -> Array:
    """The exact p-step: minimise ``-H(Y|S) + <v, p> + c/2 ||p - Bq||^2`` over row-stochastic p.

    A row satisfies ``P_S(s) (log p + 1) + v + c (p - Bq) + nu = 0``, so ``p = (P_S(s) / c) omega(.)`` with Wright's
    omega function, the solution of ``w + log w = z``. The row sum is convex and falling in nu: Newton's method from
    the left of the root climbs to it without overshooting. `target` is ``B q`` and `dual` v, ``(..., |S|, |Y|)``.
    """
    mass = p_s[:, None]
    linear = np.log(penalty / mass) + (penalty * target - dual) / mass - 1.0
    # The nu at which the largest entry of the row would be exactly 1.
    nu = (penalty * (target - 1.0) - dual).max(axis=-1, keepdims=True) - mass
    for _ in range(60):
        omega = wrightomega(linear - nu / mass)
        excess = (mass / penalty) * omega.sum(axis=-1, keepdims=True) - 1.0
        if np.abs(excess).max() <= 1e-13:
            break
        nu = nu + penalty * excess / (omega / (1.0 + omega)).sum(axis=-1, keepdims=True)
    p = (mass / penalty) * omega
    return np.asarray(p / p.sum(axis=-1, keepdims=True))


def public_value(splitting: Splitting, q: Array, p: Array, dual: Array, beta: Array) -> Array:
    """``L(p, q, v) - F(p)``, ``(runs,)``, which the q-step lowers.

    q is ``(runs, |X|, |Y|)``, p and the dual ``(runs, |S|, |Y|)``, beta ``(runs,)``.
    """
    released = entr(splitting.p_x @ q).sum(axis=-1)
    given_x = entr(q).sum(axis=-1) @ splitting.p_x
    residual = p - splitting.backward @ q
    coupling = (residual * (dual + 0.5 * splitting.penalty * residual)).sum(axis=(-2, -1))
    return np.asarray((1.0 - beta) * released + beta * given_x + coupling)


def public_gradient(splitting: Splitting, q: Array, p: Array, dual: Array, beta: Array) -> Array:
    """Gradient of `public_value` divided by ``p_x``, up to a constant in each row, ``(runs, |X|, |Y|)``; q > 0."""
    price = beta[:, None, None]
    released = np.log(splitting.p_x @ q)[:, None, :]
    residual = p - splitting.backward @ q
    tied = splitting.pull @ (dual + splitting.penalty * residual)
    return np.asarray(-(1.0 - price) * released - price * np.log(q) - tied)


def stationarity(splitting: Splitting, q: Array, beta: Array) -> Array:
    """Return q's distance from a stationary point of ``I(S;Y) - beta I(X;Y)``: ``max |q - projection(q - gradient)|``.

    It knows neither p nor v nor c: a large penalty, which makes the iteration creep, can't feign convergence. The
    entries of q are at or above `FLOOR`.
    """
    p = splitting.backward @ q
    # With p = B q, the gradient of -H(Y|S) stands in for the multiplier's pull, up to a constant in each row.
    gradient = public_gradient(splitting, q, p, -splitting.p_s[:, None] * np.log(p), beta)
    return np.asarray(np.abs(q - projected_rows(q - gradient, FLOOR)).max(axis=(-2, -1)))


def public_step(splitting: Splitting, q: Array, p: Array, dual: Array, beta: Array, step: Array) -> tuple[Array, Array]:
    """The q-step: projected gradient steps on `public_value`, which never rises.

    Each run has its own step size, the first one to try; it keeps its q where no step size lowers the value. Returns q
    and twice the step sizes that served last.
    """
    for _ in range(splitting.inner):
        gradient = public_gradient(splitting, q, p, dual, beta)
        value = public_value(splitting, q, p, dual, beta)
        moved, waiting, trial = q.copy(), np.arange(len(q)), step
        step = step.copy()
        for _ in range(25):
            candidate = projected_rows(q[waiting] - trial[:, None, None] * gradient[waiting], FLOOR)
            move = candidate - q[waiting]
            # Sufficient descent: a quarter of what the squared move in the metric of p_x promises.
            promised = 0.25 * ((move**2).sum(axis=-1) @ splitting.p_x) / trial
            reached = public_value(splitting, candidate, p[waiting], dual[waiting], beta[waiting])
            accepted = reached <= value[waiting] - promised
            moved[waiting[accepted]] = candidate[accepted]
            step[waiting[accepted]] = np.minimum(2.0 * trial[accepted], LARGEST_STEP)
            waiting, trial = waiting[~accepted], 0.5 * trial[~accepted]
            if waiting.size == 0:
                break
        q = moved
    return q, step


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
