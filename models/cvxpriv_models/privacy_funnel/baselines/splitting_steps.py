"""The two steps of the Douglas-Rachford splitting, on a batch of runs at once. `splitting` says what they are for."""

from dataclasses import dataclass

import numpy as np
from scipy.special import entr, wrightomega

from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.simplex import projected_rows

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
    result: Array = p / p.sum(axis=-1, keepdims=True)
    return result


def public_value(splitting: Splitting, q: Array, p: Array, dual: Array, beta: Array) -> Array:
    """``L(p, q, v) - F(p)``, ``(runs,)``, which the q-step lowers.

    q is ``(runs, |X|, |Y|)``, p and the dual ``(runs, |S|, |Y|)``, beta ``(runs,)``.
    """
    released = entr(splitting.p_x @ q).sum(axis=-1)
    given_x = entr(q).sum(axis=-1) @ splitting.p_x
    residual = p - splitting.backward @ q
    coupling = (residual * (dual + 0.5 * splitting.penalty * residual)).sum(axis=(-2, -1))
    value: Array = (1.0 - beta) * released + beta * given_x + coupling
    return value


def public_gradient(splitting: Splitting, q: Array, p: Array, dual: Array, beta: Array) -> Array:
    """Gradient of `public_value` divided by ``p_x``, up to a constant in each row, ``(runs, |X|, |Y|)``; q > 0."""
    price = beta[:, None, None]
    released = np.log(splitting.p_x @ q)[:, None, :]
    residual = p - splitting.backward @ q
    tied = splitting.pull @ (dual + splitting.penalty * residual)
    gradient: Array = -(1.0 - price) * released - price * np.log(q) - tied
    return gradient


def stationarity(splitting: Splitting, q: Array, beta: Array) -> Array:
    """Return q's distance from a stationary point of ``I(S;Y) - beta I(X;Y)``: ``max |q - projection(q - gradient)|``.

    It knows neither p nor v nor c: a large penalty, which makes the iteration creep, can't feign convergence. The
    entries of q are at or above `FLOOR`.
    """
    p = splitting.backward @ q
    # With p = B q, the gradient of -H(Y|S) stands in for the multiplier's pull, up to a constant in each row.
    gradient = public_gradient(splitting, q, p, -splitting.p_s[:, None] * np.log(p), beta)
    residual: Array = np.abs(q - projected_rows(q - gradient, FLOOR)).max(axis=(-2, -1))
    return residual


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
