"""Linear and quadratic problems with built-in answers: the optimality conditions are chosen first, the data after.

They are adversarial by scales, repeated rows, redundant equalities, and bounds written as attributes.
"""

from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.certify.corpus.known import INFEASIBLE, UNBOUNDED, Known, at, least, most
from cvxpriv.numerics.arrays import Array


def spread(rng: np.random.Generator, size: int, decades: float) -> Array:
    """Return factors of many sizes, from 10^-decades to 10^decades."""
    return np.asarray(10.0 ** rng.uniform(-decades, decades, size))


def linear(rng: np.random.Generator, decades: float = 0.0) -> Known:
    """Minimise c'x over A x <= b, with c = -A'y for multipliers y of the rows that hold with equality at the answer."""
    n, extra = int(rng.integers(1, 7)), int(rng.integers(0, 6))
    active = int(rng.integers(1, n + 3))
    A, x = rng.normal(size=(active + extra, n)), rng.normal(size=n)
    y = np.r_[rng.uniform(0.1, 1, active), np.zeros(extra)]
    b = A @ x + np.r_[np.zeros(active), rng.uniform(0.1, 2, extra)]
    rows, columns = spread(rng, active + extra, decades), spread(rng, n, decades / 2)
    c = -(A.T @ y) * columns
    z = cp.Variable(n, name="x")
    problem = least(c @ z, [((rows[:, None] * A) * columns) @ z <= rows * b])
    return Known(problem, value=float(c @ (x / columns)), unit=_unit(c, x / columns), answers=at(z, truth=x / columns))


def badly_scaled_linear(rng: np.random.Generator) -> Known:
    """Minimise as `linear` does, with rows and columns of sizes from 1e-4 to 1e4."""
    return linear(rng, 4.0)


def transport(rng: np.random.Generator) -> Known:
    """Pose equalities that depend on each other, and vertices where more bounds hold than needed."""
    m, n = int(rng.integers(2, 5)), int(rng.integers(2, 5))
    u, v = rng.integers(-3, 4, m).astype(float), rng.integers(-3, 4, n).astype(float)
    flow = rng.integers(0, 3, (m, n)).astype(float)
    slack = np.where(flow > 0, 0.0, rng.integers(0, 4, (m, n)))
    cost = u[:, None] + v + slack
    x = cp.Variable((m, n), name="flow", nonneg=bool(rng.integers(2)))
    rows = [cp.sum(x, axis=1) == flow.sum(axis=1), cp.sum(x, axis=0) == flow.sum(axis=0)]
    rows += [x >= 0] if not x.attributes["nonneg"] else []
    return Known(least(cp.sum(cp.multiply(cost, x)), rows), value=float((cost * flow).sum()), answers=at(x, truth=flow))


def quadratic(rng: np.random.Generator, cancel: float = 0.0) -> Known:
    """Minimise x'Px/2 + q'x + r over A x <= b and C x = d, with P of any rank."""
    n = int(rng.integers(1, 7))
    rank, active, extra = int(rng.integers(0, n + 1)), int(rng.integers(0, n + 1)), int(rng.integers(0, 4))
    factor, x = rng.normal(size=(n, rank)), rng.normal(size=n) * 10.0**cancel
    P = factor @ factor.T
    A = rng.normal(size=(active + extra, n))
    y = np.r_[rng.uniform(0.1, 1, active), np.zeros(extra)]
    b = A @ x + np.r_[np.zeros(active), rng.uniform(0.1, 2, extra)]
    q = -P @ x - A.T @ y
    r = -float(0.5 * x @ P @ x + q @ x) if cancel else 0.0
    z = cp.Variable(n, name="x")
    cost = 0.5 * cp.quad_form(z, P, assume_PSD=True) + q @ z + r
    rows = [A @ z <= b] if A.size else []
    value = 0.0 if cancel else float(0.5 * x @ P @ x + q @ x)
    terms = float(np.abs(x) @ np.abs(P) @ np.abs(x) + np.abs(q) @ np.abs(x))
    return Known(least(cost, rows), value=value, unit=max(1.0, terms), answers=at(z, truth=x))


def cancelling_quadratic(rng: np.random.Generator) -> Known:
    """Minimise terms of 1e4 that cancel to an optimum of zero."""
    return quadratic(rng, 2.0)


def flat_squares(rng: np.random.Generator) -> Known:
    """Minimise least squares times 1e-9 or 1e9 over one plane: the distance to it."""
    n, scale = int(rng.integers(2, 6)), 10.0 ** float(rng.choice([-9.0, -6.0, 6.0, 9.0]))
    x = cp.Variable(n, name="x")
    target = rng.uniform(1, 2, n)
    answer = target - (target.sum() - 1.0) / n
    problem = least(scale * cp.sum_squares(x - target), [cp.sum(x) <= 1])
    value = scale * float(np.square(answer - target).sum())
    return Known(problem, value=value, unit=scale, answers=at(x, truth=answer, lie=answer - 0.3))


def far_away(rng: np.random.Generator) -> Known:
    """Pose an optimum at 1e5 to 1e9, where a coefficient is tiny or a chain of rows climbs."""
    size, kind = 10.0 ** int(rng.integers(5, 10)), int(rng.integers(3))
    if kind == 0:
        x = cp.Variable(name="x")
        return Known(least(x, [x / size >= 1]), value=size, answers=at(x, truth=np.array(size)))
    z = cp.Variable(2, name="x")
    if kind == 1:
        problem = most(z[0], [z[0] <= size * z[1], z[1] <= 1])
        return Known(problem, value=size, answers=at(z, truth=np.array([size, 1.0]), lie=np.array([size / 2, 1.0])))
    problem = least(cp.square(z[0]) / size - z[0] + cp.square(z[1]))
    return Known(problem, value=-size / 4, answers=at(z, truth=np.array([size / 2, 0.0]), lie=np.zeros(2)))


def pieces(rng: np.random.Generator) -> Known:
    """Minimise the largest of affine pieces that all meet at one point, whose slopes average to zero."""
    n = int(rng.integers(1, 5))
    A = rng.normal(size=(n + 2, n))
    weights = rng.uniform(0.1, 1, n + 2)
    A[-1] = -(weights[:-1] @ A[:-1]) / weights[-1]
    point, height = rng.normal(size=n), float(rng.normal())
    x = cp.Variable(n, name="x")
    parts = A @ x + (height - A @ point)
    form = int(rng.integers(3))
    if form == 0:
        problem = least(cp.max(parts))
    elif form == 1:
        problem = least(cp.maximum(*[parts[k] for k in range(n + 2)]))
    else:
        t = cp.Variable(name="t")
        return Known(least(t, [parts <= t]), value=height, answers={"truth": {x: point, t: np.array(height)}})
    return Known(problem, value=height, answers=at(x, truth=point, lie=point + 0.1))


def shrinkage(rng: np.random.Generator) -> Known:
    """Minimise |x - a|^2 / 2 + lam |x|_1: soft thresholding, with entries on and beside the kink."""
    n, lam = int(rng.integers(1, 8)), float(rng.uniform(0.2, 1))
    a = rng.choice([0.0, lam, -lam, 0.5 * lam, 2.0, -3.0], n)
    answer = np.sign(a) * np.maximum(np.abs(a) - lam, 0.0)
    x = cp.Variable(n, name="x")
    penalty = cp.norm1(x) if rng.integers(2) else cp.sum(cp.abs(x))
    problem = least(0.5 * cp.sum_squares(x - a) + lam * penalty)
    value = float(0.5 * np.square(answer - a).sum() + lam * np.abs(answer).sum())
    return Known(problem, value=value, answers=at(x, truth=answer, lie=answer + 0.2))


def box(rng: np.random.Generator) -> Known:
    """Pose bounds as attributes, as constraints, repeated, and some that leave one value."""
    n = int(rng.integers(1, 6))
    low = rng.uniform(-2, 1, n)
    high = np.where(rng.random(n) < 0.3, low, low + rng.uniform(0, 2, n))
    target = rng.uniform(-3, 3, n)
    answer = np.clip(target, low, high)
    form = int(rng.integers(3))
    x = cp.Variable(n, name="x", bounds=[low, high]) if form == 0 else cp.Variable(n, name="x")
    one = [x >= low, x <= high]
    rows = {0: [], 1: one, 2: [*one, *one, x[0] <= high[0] + 1]}[form]
    problem = least(cp.sum_squares(x - target), rows)
    return Known(problem, value=float(np.square(answer - target).sum()), answers=at(x, truth=answer))


def contradiction(rng: np.random.Generator) -> Known:
    """Pose rows whose combination reads 0 <= -1, at any scale; or two bounds that miss each other by little."""
    kind = int(rng.integers(3))
    if kind == 0:
        n, m = int(rng.integers(1, 5)), int(rng.integers(2, 6))
        A, y = rng.normal(size=(m, n)), rng.uniform(0.1, 1, m)
        A[-1] = -(y[:-1] @ A[:-1]) / y[-1]
        b = rng.normal(size=m)
        b[-1] = (-1.0 - y[:-1] @ b[:-1]) / y[-1]
        scale = spread(rng, m, 2.0)
        x = cp.Variable(n, name="x")
        return Known(least(rng.normal(size=n) @ x, [(scale[:, None] * A) @ x <= scale * b]), INFEASIBLE)
    x = cp.Variable(2, name="x")
    if kind == 1:
        gap = 10.0 ** -int(rng.integers(0, 4))
        return Known(least(x[1], [x[0] >= 1, x[0] <= 1 - gap, x[1] >= 0]), INFEASIBLE)
    rows: list[Any] = [cp.sum(x) == 1, cp.sum(x) == 2] if rng.integers(2) else [x >= 0, cp.sum(x) <= -1]
    return Known(least(cp.sum_squares(x), rows), INFEASIBLE)


def endless(rng: np.random.Generator) -> Known:
    """Pose a cone of directions along which the objective falls for ever."""
    n, m = int(rng.integers(1, 5)), int(rng.integers(1, 5))
    d = rng.normal(size=n)
    A = rng.normal(size=(m, n))
    # Rows turn away from d by more than rounding, of which 1e-16 would be a limit at 1e15.
    A -= np.maximum(A @ d + 1e-3, 0.0)[:, None] * d / (d @ d)
    c = rng.normal(size=n)
    c -= (c @ d + 1.0) * d / (d @ d)
    scale = spread(rng, m, 2.0)
    x = cp.Variable(n, name="x")
    rows = [(scale[:, None] * A) @ x <= scale * rng.uniform(0, 2, m)]
    return Known(least(c @ x, rows), UNBOUNDED, -np.inf)


def _unit(c: Array, x: Array) -> float:
    """Return the size of a linear objective's terms."""
    return float(np.abs(c) @ np.abs(x)) or 1.0


FAMILIES = (
    *(linear, badly_scaled_linear, transport, quadratic, cancelling_quadratic, flat_squares, far_away, pieces),
    *(shrinkage, box, contradiction, endless),
)
