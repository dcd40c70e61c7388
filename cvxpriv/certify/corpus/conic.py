"""Problems over cones with closed-form answers, including degenerate and badly scaled ones."""

from dataclasses import replace

import cvxpy as cp
import numpy as np

from cvxpriv.certify.corpus import liars
from cvxpriv.certify.corpus.known import INFEASIBLE, UNBOUNDED, Known, at, least, most


def ball(rng: np.random.Generator) -> Known:
    """Project a point onto a ball, or minimise a linear function over an ellipsoid."""
    n = int(rng.integers(2, 6))
    a = rng.normal(size=n)
    x = cp.Variable(n, name="x")
    if rng.integers(2):
        radius = 0.5 * float(np.linalg.norm(a))
        return Known(least(cp.norm(x - a), [cp.norm(x) <= radius]), value=radius, answers=at(x, truth=a / 2, lie=a / 4))
    A = rng.normal(size=(n, n)) + 2 * np.eye(n)
    u = np.linalg.solve(A.T, a)
    answer = -np.linalg.solve(A, u) / np.linalg.norm(u)
    problem = least(a @ x, [cp.SOC(cp.Constant(1.0), A @ x)])
    return Known(problem, value=-float(np.linalg.norm(u)), answers=at(x, truth=answer, lie=0.9 * answer))


def thin_ellipsoid(rng: np.random.Generator) -> Known:
    """Maximise c'x where x'Px <= 1 and P has eigenvalues up to eleven decades apart."""
    n = int(rng.integers(2, 4))
    d = 10.0 ** rng.uniform(-3, 8, n)
    c = np.zeros(n)
    c[int(rng.integers(n))] = 1.0
    value = float(np.sqrt((c * c / d).sum()))
    x = cp.Variable(n, name="x")
    problem = most(c @ x, [cp.quad_form(x, np.diag(d)) <= 1])
    return Known(problem, value=value, unit=value, answers=at(x, truth=c / d / value, lie=np.zeros(n)))


def softmin(rng: np.random.Generator) -> Known:
    """Minimise c'x - H(x) on the simplex, with masses down to e^-40."""
    n, size = int(rng.integers(2, 7)), float(rng.choice([1.0, 10.0, 40.0]))
    known = liars.softmin(size * rng.random(n), redundant=bool(rng.integers(2)))
    lie = np.full(n, 1 / n) + 0.1 * (np.arange(n) == 0) - 0.1 * (np.arange(n) == 1)
    return replace(known, answers={**known.answers, **at(known.problem.variables()[0], lie=lie)})


def barrier(rng: np.random.Generator) -> Known:
    """Minimise c'x - sum log x: x = 1/c."""
    n = int(rng.integers(1, 6))
    c = 10.0 ** rng.uniform(-2, 2, n)
    x = cp.Variable(n, name="x", pos=bool(rng.integers(2)))
    problem = least(c @ x - cp.sum(cp.log(x)))
    return Known(problem, value=n + float(np.log(c).sum()), answers=at(x, truth=1 / c, lie=2 / c))


def soft_maximum(rng: np.random.Generator) -> Known:
    """Minimise log sum exp of x with a given sum, or exp x with a floor."""
    n, total = int(rng.integers(1, 6)), float(rng.normal())
    x = cp.Variable(n, name="x")
    if rng.integers(2):
        problem = least(cp.log_sum_exp(x), [cp.sum(x) == total])
        return Known(problem, value=total / n + float(np.log(n)), answers=at(x, truth=np.full(n, total / n)))
    floor = rng.normal(size=n)
    problem = least(cp.sum(cp.exp(x)), [x >= floor])
    return Known(problem, value=float(np.exp(floor).sum()), answers=at(x, truth=floor, lie=floor + 0.5))


def powers(rng: np.random.Generator) -> Known:
    """Minimise over powers with whole and fractional exponents, at and away from the end of their domain."""
    p = float(rng.choice([1.5, 3.0, 2.5, 4.0, 1.25]))
    c, floor = float(rng.choice([1.0, -1.0])), float(rng.choice([-1.0, 0.5]))
    x = cp.Variable(name="x")
    whole = p == 4.0
    best = np.sign(-c) * (1.0 / p) ** (1.0 / (p - 1.0)) if whole or c < 0 else 0.0
    answer = max(best, floor)
    problem = least(cp.power(x, p) + c * x, [x >= floor, x <= 4])
    value = answer**p + c * answer if answer >= 0 or whole else 0.0
    return Known(problem, value=float(value), answers=at(x, truth=np.array(answer), lie=np.array(answer + 0.4)))


def spectrahedron(rng: np.random.Generator) -> Known:
    """Minimise <C, X> over matrices of trace one: the least eigenvalue, simple or repeated."""
    n = int(rng.integers(2, 5))
    Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    eigenvalues = np.sort(rng.integers(0, 3, n)).astype(float)
    C = (Q * eigenvalues) @ Q.T
    form = int(rng.integers(3))
    X = cp.Variable((n, n), name="X", PSD=form == 0, symmetric=form == 1)
    rows = [cp.trace(X) == 1, *([X >> 0] if form else []), *([X == X.T] if form == 2 else [])]
    problem = least(cp.trace(C @ X), rows)
    return Known(problem, value=float(eigenvalues[0]), answers=at(X, truth=np.outer(Q[:, 0], Q[:, 0])))


def matrix_functions(rng: np.random.Generator) -> Known:
    """Minimise a log-determinant, matrix fraction, largest eigenvalue or nuclear norm, each with its closed form."""
    n, kind = int(rng.integers(2, 4)), int(rng.integers(4))
    B = rng.normal(size=(n, n))
    A = B @ B.T + np.eye(n)
    X = cp.Variable((n, n), name="X", symmetric=True)
    if kind == 0:
        value = n + float(np.linalg.slogdet(A)[1])
        return Known(least(cp.trace(A @ X) - cp.log_det(X)), value=value, answers=at(X, truth=np.linalg.inv(A)))
    if kind == 1:
        a = rng.normal(size=n)
        return Known(least(cp.matrix_frac(a, X) + cp.trace(X)), value=2 * float(np.linalg.norm(a)))
    if kind == 2:
        problem = least(cp.lambda_max(X), [cp.trace(X) == n])
        return Known(problem, value=1.0, answers=at(X, truth=np.eye(n), lie=np.diag(np.r_[n, np.zeros(n - 1)])))
    left, sizes, right = np.linalg.svd(B)
    kept = np.maximum(sizes - 0.5, 0.0)
    Y = cp.Variable((n, n), name="Y")
    problem = least(0.5 * cp.sum_squares(Y - B) + 0.5 * cp.normNuc(Y))
    value = 0.5 * float(np.square(kept - sizes).sum()) + 0.5 * float(kept.sum())
    return Known(problem, value=value, answers=at(Y, truth=np.asarray((left * kept) @ right, dtype=float), lie=B))


def empty_cone(rng: np.random.Generator) -> Known:
    """Pose cone constraints that contradict each other strictly."""
    n, kind = int(rng.integers(2, 5)), int(rng.integers(4))
    x = cp.Variable(n, name="x")
    if kind == 0:
        return Known(least(x[0], [cp.norm(x) <= 1, cp.sum(x) >= 2 * n]), INFEASIBLE)
    if kind == 1:
        return Known(least(x[0], [cp.sum(cp.exp(x)) <= 0.5 * n, cp.sum(x) >= 0]), INFEASIBLE)
    if kind == 2:
        X = cp.Variable((n, n), name="X", PSD=True)
        return Known(least(X[0, 0], [cp.trace(X) == -1]), INFEASIBLE)
    return Known(most(cp.sum(cp.log(x)), [cp.sum(x) <= -1]), INFEASIBLE)


def endless_cone(rng: np.random.Generator) -> Known:
    """Pose an unbounded problem, with a ray or without one."""
    kind = int(rng.integers(4))
    x = cp.Variable(2, name="x")
    if kind == 0:
        return Known(least(x[1] - 2 * x[0], [cp.norm(x[:1]) <= x[1]]), UNBOUNDED, -np.inf)
    if kind == 1:
        return Known(most(cp.sum(cp.log(x))), UNBOUNDED, np.inf)
    if kind == 2:
        return Known(least(x[0], [cp.exp(x[0]) <= x[1]]), UNBOUNDED, -np.inf)
    return Known(most(cp.sqrt(x[0]) - x[1], [x[1] >= 0]), UNBOUNDED, np.inf)


FAMILIES = (
    *(ball, thin_ellipsoid, softmin, barrier, soft_maximum, powers, spectrahedron, matrix_functions),
    *(empty_cone, endless_cone),
)
