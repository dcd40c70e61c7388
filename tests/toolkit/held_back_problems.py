"""Families of problems with known optima that were held back while the judge was written, each drawn from a seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.transforms.indicator import indicator
from cvxpy.transforms.partial_optimize import partial_optimize
from scipy.optimize import brentq

from cvxpriv.certify.corpus.known import INFEASIBLE, UNBOUNDED, UNKNOWN, Known, at, least, most

CLOSE = 1e-5
"""Relative distance to the optimum from which a value is not right."""
HELD_BACK: dict[str, Callable[[np.random.Generator], Known]] = {}


def K(problem: cp.Problem, value: Any, far: float = CLOSE, **more: Any) -> Known:
    return Known(problem, value=float(value), far=far, **more)


def fam(family: Callable[[np.random.Generator], Known]) -> Callable[[np.random.Generator], Known]:
    HELD_BACK[family.__name__] = family
    return family


@fam
def scaled_vars(r: np.random.Generator) -> Known:
    # min c'x, x_j in units 10^k_j : lp diag
    n = int(r.integers(2, 6))
    d = 10.0 ** r.uniform(-9, 9, n)
    x = cp.Variable(n, name="x")
    u = r.uniform(0.5, 2, n)
    c = r.uniform(0.5, 2, n)
    # max sum c_j x_j/d_j s.t. x<= d u
    p = most((c / d) @ x, [x <= d * u])
    return K(p, c @ u, answers=at(x, truth=d * u, lie=d * u * (1 - 1e-3)))


@fam
def scaled_qp(r: np.random.Generator) -> Known:
    n = int(r.integers(2, 6))
    d = 10.0 ** r.uniform(-6, 6, n)
    x = cp.Variable(n, name="x")
    t = r.uniform(0.5, 2, n)
    # min sum ((x/d - t)^2) + 1, sum(x/d) <= sum t - n*.1 -> y=t-.1
    p = least(cp.sum_squares(cp.multiply(1 / d, x) - t) + 1, [cp.sum(cp.multiply(1 / d, x)) <= t.sum() - 0.1 * n])
    y = t - 0.1
    return K(p, 1 + n * 0.01, answers=at(x, truth=d * y, lie=d * (y - 0.05 * np.ones(n))))


@fam
def cancel_sum(r: np.random.Generator) -> Known:
    # big terms that cancel: min (M x + b) - M x + (x-1)^2
    M = 10.0 ** r.uniform(3, 8)
    x = cp.Variable(name="x")
    y = cp.Variable(name="y")
    p = least(cp.square(x - 1) + M * (x - y) + 1, [x == y])
    return K(p, 1, unit=1.0, answers={"truth": {x: 1.0, y: 1.0}, "lie": {x: 1.1, y: 1.1}})


@fam
def cancel_lp(r: np.random.Generator) -> Known:
    # objective M*s - M*c where s>=c
    M = 10.0 ** r.uniform(3, 8)
    n = int(r.integers(2, 5))
    x = cp.Variable(n, name="x")
    c = r.uniform(0.5, 2, n)
    p = least(M * cp.sum(x) - M * float(c.sum()) + 3, [x >= c])
    return K(p, 3, unit=M, answers=at(x, truth=c, lie=c * 1.001))


@fam
def sym_bounds(r: np.random.Generator) -> Known:
    # projection of symmetric A onto box and psd? choose diag dominant so psd inactive
    n = int(r.integers(2, 4))
    A = r.normal(size=(n, n))
    A = (A + A.T) / 2 + 5 * n * np.eye(n)
    b = r.uniform(0.01, 0.3)
    kw = [{"symmetric": True}, {"PSD": True}][int(r.integers(2))]
    X = cp.Variable((n, n), name="X", **kw)
    off = 1 - np.eye(n)
    p = least(cp.sum_squares(X - A) + 1, [cp.multiply(off, X) <= b, cp.multiply(off, X) >= -b])
    T = np.where(off > 0, np.clip(A, -b, b), A)
    return K(p, 1 + ((T - A) ** 2).sum(), answers=at(X, truth=T, lie=T + 0.02 * np.eye(n)))


@fam
def psd_trace_entry(r: np.random.Generator) -> Known:
    # min <D,X>, X>>0, X11>=a, |X01|<=... ; X[0,1] == b : min d0 X00 + d1 X11 = 2 sqrt(d0 d1)|b|
    d = 10.0 ** r.uniform(-3, 3, 2)
    b = r.uniform(0.5, 2)
    X = cp.Variable((2, 2), name="X", PSD=True)
    p = least(d[0] * X[0, 0] + d[1] * X[1, 1], [X[0, 1] >= b])
    q = np.sqrt(d[1] / d[0]) * b
    T = np.array([[q, b], [b, b * b / q]])
    return K(p, 2 * np.sqrt(d[0] * d[1]) * b, unit=max(1, d.max() * max(q, b * b / q)), answers=at(X, truth=T))


@fam
def herm_bound(r: np.random.Generator) -> Known:
    X = cp.Variable((2, 2), name="X", hermitian=True)
    b = r.uniform(0.5, 2)
    p = least(cp.real(cp.trace(X)), [X >> 0, cp.imag(X[0, 1]) >= b])
    T = np.array([[b, 1j * b], [-1j * b, b]])
    return K(p, 2 * b, answers=at(X, truth=T, lie=T + 0.01 * np.eye(2)))


@fam
def power_end(r: np.random.Generator) -> Known:
    e = float(r.choice([1.1, 1.5, 2.5, 3.3]))
    a = 10.0 ** r.uniform(-3, 3)
    x = cp.Variable(name="x")
    p = least(a * x + cp.power(x, e) + 1, [x <= 4])
    return K(p, 1, unit=max(1, a), answers=at(x, truth=0.0, lie=0.05))


@fam
def neg_power(r: np.random.Generator) -> Known:
    e = float(r.choice([-0.5, -1, -2]))
    a = 10.0 ** r.uniform(-2, 2)
    x = cp.Variable(name="x")
    # min a x + x^e: a + e x^(e-1)=0 -> x=( -e/a)^(1/(1-e))
    x0 = (-e / a) ** (1 / (1 - e))
    v = a * x0 + x0**e
    return K(least(a * x + cp.power(x, e)), v, answers=at(x, truth=x0, lie=x0 * 1.05))


@fam
def kl_scaled(r: np.random.Generator) -> Known:
    n = int(r.integers(2, 5))
    q = 10.0 ** r.uniform(-5, 3, n)
    x = cp.Variable(n, name="x")
    # min kl_div(x,q) - c'x : log(x/q)=c -> x=q e^c ; value = sum -x+q
    c = r.uniform(-1, 1, n)
    T = q * np.exp(c)
    return K(
        least(cp.sum(cp.kl_div(x, q)) - c @ x),
        (q - T).sum(),
        unit=max(1, T.sum()),
        answers=at(x, truth=T, lie=T * 1.02 if T.sum() > 1 else T + 1),
    )


@fam
def rel_entr_two(r: np.random.Generator) -> Known:
    # min rel_entr(x,y) st x==a, y<=b : a log(a/b)
    a, b = 10.0 ** r.uniform(-2, 2, 2)
    x = cp.Variable(name="x")
    y = cp.Variable(name="y")
    v = a * np.log(a / b)
    return K(
        least(cp.rel_entr(x, y), [x == a, y <= b]),
        v,
        unit=max(1, a),
        answers={"truth": {x: a, y: b}, "lie": {x: a, y: b * 0.99}} if a > 0.05 else {"truth": {x: a, y: b}},
    )


@fam
def lse_overflow(r: np.random.Generator) -> Known:
    n = int(r.integers(2, 5))
    s = 10.0 ** r.uniform(2, 3.5)
    x = cp.Variable(n, name="x")
    o = s * r.normal(size=n)
    # min lse(x+o) st sum x == 0 -> all equal: x = m-o, value m+log n
    m = o.mean()
    T = m - o
    return K(least(cp.log_sum_exp(x + o), [cp.sum(x) == 0]), m + np.log(n), unit=max(1, s), answers=at(x, truth=T))


@fam
def inv_pos_sum(r: np.random.Generator) -> Known:
    n = int(r.integers(2, 5))
    w = 10.0 ** r.uniform(-3, 3, n)
    x = cp.Variable(n, name="x")
    T = np.sqrt(w) / np.sqrt(w).sum()
    v = np.sqrt(w).sum() ** 2
    return K(least(w @ cp.inv_pos(x), [cp.sum(x) <= 1]), v, answers=at(x, truth=T, lie=0.99 * T))


@fam
def hair_feasible(r: np.random.Generator) -> Known:
    h = float(r.choice([1e-6, 1e-7, 1e-8]))
    n = int(r.integers(1, 4))
    x = cp.Variable(n, name="x")
    a = r.uniform(0.5, 2, n)
    return Known(least(cp.sum(x), [a @ x >= 1 + h, a @ x <= 1, x <= 5, x >= -5]), INFEASIBLE if h >= 1e-6 else UNKNOWN)


@fam
def hair_cone(r: np.random.Generator) -> Known:
    h = float(r.choice([1e-4, 1e-6, -1e-6, -1e-4]))
    n = int(r.integers(2, 4))
    x = cp.Variable(n, name="x")
    a = r.normal(size=n)
    # ball radius 1, halfplane a'x >= |a|(1+h)
    if h > 0:
        return Known(
            least(x[0], [cp.norm(x) <= 1, a @ x >= np.linalg.norm(a) * (1 + h)]), INFEASIBLE if h > 1e-5 else UNKNOWN
        )
    p = most(a @ x / np.linalg.norm(a), [cp.norm(x) <= 1, a @ x >= np.linalg.norm(a) * (1 + h)])
    return K(p, 1, answers=at(x, truth=a / np.linalg.norm(a)))


@fam
def closure_ray(r: np.random.Generator) -> Known:
    x = cp.Variable(name="x")
    y = cp.Variable(name="y")
    a = r.uniform(0.5, 2)
    ps = [
        least(cp.inv_pos(x) + a * y, [y >= 0]),
        least(cp.exp(-a * x) + cp.square(y - 1)),
        least(cp.quad_over_lin(y, x) + a * cp.abs(y - 1)),
        most(-cp.kl_div(1, x) + cp.log(x) - x + 1 - 0 * y, [y == 0]),
    ]
    k = int(r.integers(3))
    return Known(ps[k], value=0.0)


@fam
def slow_unbounded(r: np.random.Generator) -> Known:
    x = cp.Variable(name="x")
    y = cp.Variable(name="y")
    a = r.uniform(0.5, 2)
    k = int(r.integers(4))
    ps = [
        most(cp.sqrt(x) - a * y, [y >= 0]),
        most(cp.log(x) + cp.log(y) - a * x),
        least(-cp.power(x, 0.25) + cp.square(y)),
        most(cp.geo_mean(cp.hstack([x, y])), [x == a]),
    ]
    return Known(ps[k], UNBOUNDED, -np.inf if k == 2 else np.inf)


@fam
def degenerate_lp(r: np.random.Generator) -> Known:
    # assignment-like with many ties
    n = int(r.integers(2, 4))
    X = cp.Variable((n, n), name="X", nonneg=True)
    p = least(cp.sum(X), [cp.sum(X, axis=0) == 1, cp.sum(X, axis=1) == 1])
    return K(p, n, answers=at(X, truth=np.ones((n, n)) / n, lie=np.eye(n) * 1.01))


@fam
def zero_objective(r: np.random.Generator) -> Known:
    n = int(r.integers(1, 5))
    x = cp.Variable(n, name="x")
    k = int(r.integers(4))
    a = r.normal(size=n)
    rows = [
        [cp.sum_squares(x) <= 1],
        [a @ x == 1],
        [cp.norm(x, 1) <= 1, a @ x >= 100 * np.abs(a).max()],
        [cp.exp(x) <= 2, x >= -1],
    ][k]
    pr = [least(0), most(0 * cp.sum(x)), cp.Problem(cp.Minimize(cp.Constant(2)))][int(r.integers(3))]
    p = cp.Problem(pr.objective, rows)
    v = float(2 if isinstance(pr.objective.args[0], cp.Constant) and np.asarray(pr.objective.args[0].value) == 2 else 0)
    if k == 2:
        return Known(p, INFEASIBLE)
    return K(p, v)


@fam
def dup_rows(r: np.random.Generator) -> Known:
    n = int(r.integers(2, 5))
    A = r.normal(size=(2, n))
    T = r.uniform(0.5, 2, n)
    b = A @ T
    x = cp.Variable(n, name="x", nonneg=True)
    c = A.T @ r.normal(size=2)
    rows = [A @ x == b] * 2 + [3 * A @ x == 3 * b, -A @ x <= -b, x <= 10]
    return K(least(c @ x, rows), c @ T, unit=max(1, np.abs(c) @ T), answers=at(x, truth=T, outside=T + 0.01))


@fam
def inconsistent_eq(r: np.random.Generator) -> Known:
    n = int(r.integers(2, 5))
    A = r.normal(size=(2, n))
    b = r.normal(size=2)
    x = cp.Variable(n, name="x")
    h = float(r.choice([1e-3, 1.0]))
    return Known(least(cp.sum_squares(x), [A @ x == b, A[0] @ x + A[1] @ x == b.sum() + h]), INFEASIBLE)


@fam
def power_cone_odd(r: np.random.Generator) -> Known:
    al = float(r.choice([0.001, 0.01, 0.5, 0.99, 0.999, 1 / 3, np.pi / 4]))
    x = cp.Variable(3, name="x")
    c = 10.0 ** r.uniform(-2, 2, 2)
    # max x2, x0^al x1^(1-al)>=|x2|, c0 x0 + c1 x1<=1 -> x0=al/c0,x1=(1-al)/c1
    v = (al / c[0]) ** al * ((1 - al) / c[1]) ** (1 - al)
    T = np.array([al / c[0], (1 - al) / c[1], v])
    return K(most(x[2], [cp.PowCone3D(x[0], x[1], x[2], al), c @ x[:2] <= 1]), v, answers=at(x, truth=T, lie=T * 0.99))


@fam
def exp_cone_direct(r: np.random.Generator) -> Known:
    x = cp.Variable(3, name="x")
    y0 = 10.0 ** r.uniform(-2, 2)
    z0 = 10.0 ** r.uniform(-2, 2)
    # max x0: y exp(x/y)<=z, y==y0, z<=z0 -> x= y log(z/y)
    v = y0 * np.log(z0 / y0)
    T = np.array([v, y0, z0])
    return K(
        most(x[0], [cp.ExpCone(x[0], x[1], x[2]), x[1] == y0, x[2] <= z0]),
        v,
        answers=at(x, truth=T, outside=T + np.array([max(1, abs(v)) * 0.01 + 0.01 * y0, 0, 0])),
    )


@fam
def soc_tangent(r: np.random.Generator) -> Known:
    n = int(r.integers(2, 4))
    a = r.normal(size=n)
    a /= np.linalg.norm(a)
    R = 10.0 ** r.uniform(-3, 3)
    x = cp.Variable(n, name="x")
    # ball radius R meets halfplane a'x>=R at one point
    c = r.normal(size=n)
    T = R * a
    return K(
        least(c @ x, [cp.norm(x) <= R, a @ x >= R]),
        c @ T,
        unit=max(1, R),
        far=1e-2,
        answers=at(x, truth=T, outside=T - 0.1 * R * np.ones(n)),
    )


@fam
def big_m(r: np.random.Generator) -> Known:
    M = float(r.choice([1e2, 1e4, 1e6]))
    n = int(r.integers(1, 4))
    b = cp.Variable(n, name="b", boolean=True)
    x = cp.Variable(n, name="x")
    c = r.uniform(0.5, 2, n)
    f = r.uniform(0.1, 3, n)
    # max c'x - f'b, 0<=x<=1, x<=M b
    on = (c > f).astype(float)
    v = ((c - f) * on).sum()
    return K(
        most(c @ x - f @ b, [x >= 0, x <= 1, x <= M * b]),
        v,
        far=1e-3,
        answers={"truth": {b: on, x: on}, "lie": {b: 1 - on, x: 1 - on}},
    )


@fam
def int_qp(r: np.random.Generator) -> Known:
    n = int(r.integers(1, 4))
    z = cp.Variable(n, name="z", integer=True)
    t = r.uniform(-3, 3, n)
    T = np.round(t)
    return K(
        least(cp.sum_squares(z - t) + 1, [cp.abs(z) <= 10]), ((T - t) ** 2).sum() + 1, answers=at(z, truth=T, lie=T + 1)
    )


@fam
def complex_proj(r: np.random.Generator) -> Known:
    n = int(r.integers(1, 4))
    c = r.normal(size=n) + 1j * r.normal(size=n)
    z = cp.Variable(n, name="z", complex=True)
    T = c / np.maximum(1, np.abs(c) * 2)
    v = (np.abs(T - c) ** 2).sum()
    return K(least(cp.sum_squares(z - c) + 1, [cp.abs(z) <= 0.5]), v + 1, answers=at(z, truth=T, lie=T * 0.8))


@fam
def complex_eq(r: np.random.Generator) -> Known:
    n = int(r.integers(2, 4))
    A = r.normal(size=(1, n)) + 1j * r.normal(size=(1, n))
    z = cp.Variable(n, name="z", complex=True)
    T = A.conj().T @ np.linalg.solve(A @ A.conj().T, [1 + 2j])
    T = T.ravel()
    return K(least(cp.norm(z), [A @ z == 1 + 2j]), np.linalg.norm(T), answers=at(z, truth=T, outside=T * 0.99))


@fam
def params(r: np.random.Generator) -> Known:
    n = int(r.integers(1, 5))
    x = cp.Variable(n, name="x")
    A = cp.Parameter((n, n), name="A", PSD=True)
    b = cp.Parameter(n, name="b")
    g = cp.Parameter(name="g", nonneg=True)
    Q = r.normal(size=(n, n))
    A.value = Q @ Q.T + np.eye(n)
    b.value = r.normal(size=n)
    g.value = r.uniform(0.1, 1)
    T = np.linalg.solve(2 * A.value * 1 + 2 * g.value * np.eye(n), b.value)
    v = T @ A.value @ T + g.value * T @ T - b.value @ T
    return K(least(cp.quad_form(x, A) + g * cp.sum_squares(x) - b @ x), v, answers=at(x, truth=T, lie=T + 0.1))


@fam
def ind(r: np.random.Generator) -> Known:
    n = int(r.integers(1, 4))
    x = cp.Variable(n, name="x")
    t = r.normal(size=n)
    T = np.maximum(t, 0.2)
    return K(
        least(cp.sum_squares(x - t) + indicator([x >= 0.2])), ((T - t) ** 2).sum(), answers=at(x, truth=T, lie=T + 0.1)
    )


@fam
def part_opt(r: np.random.Generator) -> Known:
    x = cp.Variable(name="x")
    y = cp.Variable(name="y")
    a = r.uniform(0.5, 2)
    inner = partial_optimize(least(cp.square(x - y) + a * cp.abs(y), [y >= -1]), [y])
    # h(x)=huber-like; min h(x)+ (x-3)^2: joint: x,y: y = ?
    # d/dx:2(x-y)+2(x-3)=0 -> x=(y+3)/2 ; cost=((3-y)/2)^2*2 + a y => (3-y)^2/2+a y -> y=3-a
    y0 = 3 - a
    v = (3 - y0) ** 2 / 2 + a * y0
    return K(least(inner + cp.square(x - 3)), v)


@fam
def no_vars(r: np.random.Generator) -> Known:
    k = int(r.integers(3))
    c = float(r.normal())
    p = [
        cp.Problem(cp.Minimize(cp.Constant(c))),
        cp.Problem(cp.Maximize(cp.Constant(c)), [cp.Constant(1) <= 2]),
        cp.Problem(cp.Minimize(cp.Constant(c)), [cp.Constant(3) <= 2]),
    ][k]
    return Known(p, INFEASIBLE) if k == 2 else K(p, c)


@fam
def slightly_indefinite(r: np.random.Generator) -> Known:
    n = int(r.integers(2, 4))
    Q = np.linalg.qr(r.normal(size=(n, n)))[0]
    e = r.uniform(0.5, 2, n)
    e[0] = -1e-13
    P = Q @ np.diag(e) @ Q.T
    P = (P + P.T) / 2
    x = cp.Variable(n, name="x")
    t = r.normal(size=n)
    # min (x-t)'P(x-t), |x-t|<=1 : value ~ -1e-13
    return K(least(cp.quad_form(x - t, cp.psd_wrap(P)) + 1, [cp.abs(x - t) <= 1]), 1, answers=at(x, truth=t))


@fam
def attrs(r: np.random.Generator) -> Known:
    n = int(r.integers(1, 5))
    t = r.normal(size=n)
    k = int(r.integers(5))
    kw = [
        {"nonneg": True},
        {"nonpos": True},
        {"bounds": [-0.3, 0.4]},
        {"pos": True},
        {"bounds": [None, 0.1 * np.ones(n)]},
    ][k]
    x = cp.Variable(n, name="x", **kw)
    T = [np.maximum(t, 0), np.minimum(t, 0), np.clip(t, -0.3, 0.4), np.maximum(t, 0), np.minimum(t, 0.1)][k]
    sgn = [1, -1, 1, 1, -1][k]
    return K(
        least(cp.sum_squares(x - t) + 1),
        1 + ((T - t) ** 2).sum(),
        answers=at(
            x,
            truth=T,
            lie=T * 0.9 - 0.05 * np.array(1)
            if k in (1, 4)
            else np.clip(T + 0.05 * sgn, None, 0.4)
            if k == 2 and (T < 0.3).all()
            else T + 0.05 * sgn,
        )
        if k != 2
        else at(x, truth=T),
    )


@fam
def sparse_attr(r: np.random.Generator) -> Known:
    n = 3
    idx = (np.array([0, 1, 2]), np.array([0, 2, 1]))
    X = cp.Variable((n, n), name="X", sparsity=idx)
    A = r.normal(size=(n, n))
    m = np.zeros((n, n))
    m[idx] = 1
    T = A * m
    return K(least(cp.sum_squares(X - A)), ((T - A) ** 2).sum(), answers=at(X, truth=T))


@fam
def diag_attr(r: np.random.Generator) -> Known:
    n = int(r.integers(2, 4))
    X = cp.Variable((n, n), name="X", diag=True)
    A = r.normal(size=(n, n))
    A = A @ A.T + np.eye(n)
    # min trace(A X) s.t. X<=... max logdet? keep simple: project A
    return K(
        least(cp.sum_squares(X - A)), ((np.diag(np.diag(A)) - A) ** 2).sum(), answers=at(X, truth=np.diag(np.diag(A)))
    )


@fam
def huge_offset(r: np.random.Generator) -> Known:
    o = 10.0 ** r.uniform(4, 9)
    x = cp.Variable(2, name="x")
    t = r.normal(size=2)
    return K(least(cp.sum_squares(x - t) + o), o, unit=o, answers=at(x, truth=t))


@fam
def tiny_obj(r: np.random.Generator) -> Known:
    s = 10.0 ** r.uniform(-9, -4)
    n = int(r.integers(2, 5))
    c = r.uniform(0.5, 2, n)
    x = cp.Variable(n, name="x")
    T = np.eye(n)[c.argmin()]
    lie = np.eye(n)[c.argmax()]
    # value tiny; lie should not agree
    return Known(
        least(s * (c @ x), [cp.sum(x) == 1, x >= 0]),
        value=float(s * c.min()),
        unit=s,
        far=1e-3,
        answers=at(x, truth=T, lie=lie),
    )


@fam
def huge_obj(r: np.random.Generator) -> Known:
    s = 10.0 ** r.uniform(4, 9)
    n = int(r.integers(2, 5))
    c = r.uniform(0.5, 2, n)
    x = cp.Variable(n, name="x")
    T = np.eye(n)[c.argmin()]
    return Known(
        least(s * (c @ x), [cp.sum(x) == 1, x >= 0]),
        value=float(s * c.min()),
        answers=at(x, truth=T, lie=T * 0.999 + 0.001 * np.eye(n)[c.argmax()]),
    )


@fam
def tiny_variables(r: np.random.Generator) -> Known:
    s = 10.0 ** r.uniform(-9, -5)
    n = int(r.integers(2, 5))
    t = s * r.uniform(0.5, 2, n)
    x = cp.Variable(n, name="x")
    # min sum_squares(x/s - t/s), right = t ; lie = 2t
    return K(least(cp.sum_squares((x - t) / s) + 1), 1, answers=at(x, truth=t, lie=1.01 * t))


@fam
def norms(r: np.random.Generator) -> Known:
    n = int(r.integers(2, 5))
    y = r.normal(size=n) * 10.0 ** r.uniform(-2, 2)
    x = cp.Variable(n, name="x")
    k = int(r.integers(5))
    at_ = [cp.norm(x, 1), cp.norm(x, 2), cp.norm(x, "inf"), cp.pnorm(x, 3), cp.pnorm(x, 1.5)][k]
    q = [np.inf, 2, 1, 1.5, 3][k]
    v = -np.linalg.norm(y, q)
    return K(least(-y @ x, [at_ <= 1]), v)


@fam
def sum_largest(r: np.random.Generator) -> Known:
    n = int(r.integers(3, 6))
    kk = int(r.integers(1, n))
    x = cp.Variable(n, name="x")
    lo = np.sort(r.normal(size=n))
    return K(least(cp.sum_largest(x, kk), [x >= lo]), lo[-kk:].sum(), answers=at(x, truth=lo, lie=lo + 0.01))


@fam
def logdet_box(r: np.random.Generator) -> Known:
    n = int(r.integers(2, 4))
    d = 10.0 ** r.uniform(-3, 3, n)
    X = cp.Variable((n, n), name="X", PSD=True)
    v = np.log(d).sum()
    return K(most(cp.log_det(X), [cp.diag(X) <= d]), v, answers=at(X, truth=np.diag(d), lie=np.diag(d) * 0.99))


@fam
def matfrac_tight(r: np.random.Generator) -> Known:
    b = r.normal(size=2)
    X = cp.Variable((2, 2), name="X", symmetric=True)
    m = 10.0 ** r.uniform(-2, 2)
    # min matrix_frac(b,X), X<<m I -> b'b/m at X=mI
    return K(least(cp.matrix_frac(b, X), [X << m * np.eye(2)]), b @ b / m, answers=at(X, truth=m * np.eye(2)))


@fam
def lambda_sum(r: np.random.Generator) -> Known:
    n = 3
    A = r.normal(size=(n, n))
    A = A + A.T
    t = cp.Variable(name="t")
    return K(least(t, [t * np.eye(n) >> A]), np.linalg.eigvalsh(A)[-1])


@fam
def kink_ties(r: np.random.Generator) -> Known:
    n = int(r.integers(3, 7))
    y = np.round(r.normal(size=n), 1)
    x = cp.Variable(name="x")
    v = np.abs(y - np.median(y)).sum()
    return K(least(cp.sum(cp.abs(x - y))), v, answers=at(x, truth=np.median(y), lie=np.median(y) + 10))


@fam
def tv(r: np.random.Generator) -> Known:
    n = int(r.integers(3, 7))
    y = np.ones(n) * r.normal()
    x = cp.Variable(n, name="x")
    return K(least(cp.sum_squares(x - y) + 10 * cp.tv(x)), 0, answers=at(x, truth=y, lie=y + 0.1))


@fam
def huber_f(r: np.random.Generator) -> Known:
    x = cp.Variable(name="x")
    M = r.uniform(0.5, 2)
    a = r.uniform(2.1, 4) * M
    # min huber(x,M)+ (x-a)^2 ; huber slope 2M outside: 2M+2(x-a)=0 -> x=a-M>=M ok
    x0 = a - M
    return K(
        least(cp.huber(x, M) + cp.square(x - a)), 2 * M * x0 - M * M + M * M, answers=at(x, truth=x0, lie=x0 + 0.1)
    )


@fam
def nearly_unbounded(r: np.random.Generator) -> Known:
    e = 10.0 ** r.uniform(-8, -3)
    x = cp.Variable(name="x")
    # min -x + e x^2/2 : x=1/e
    return K(least(-x + e / 2 * cp.square(x)), -0.5 / e, answers=at(x, truth=1 / e, lie=0.9 / e))


@fam
def nearly_unbounded_lp(r: np.random.Generator) -> Known:
    e = 10.0 ** r.uniform(-7, -3)
    x = cp.Variable(2, name="x")
    # max x0 - (1-?)... max x0, x0<=x1, x1<= (1-e)x0 + 1 -> x1=x0=1/e
    return K(
        most(x[0], [x[0] <= x[1], x[1] <= (1 - e) * x[0] + 1]),
        1 / (1 - (1 - e)),
        far=1e-3,
        answers=at(x, truth=np.ones(2) / (1 - (1 - e))),
    )


@fam
def quad_lin_scale(r: np.random.Generator) -> Known:
    a = 10.0 ** r.uniform(-4, 4)
    b = 10.0 ** r.uniform(-2, 2)
    x = cp.Variable(name="x")
    y = cp.Variable(name="y")
    # min x^2/y + b y, x==a -> 2 a sqrt b at y=a/sqrt b
    return K(
        least(cp.quad_over_lin(x, y) + b * y, [x == a]),
        2 * a * np.sqrt(b),
        unit=max(1, 2 * a * np.sqrt(b)),
        answers={"truth": {x: a, y: a / np.sqrt(b)}},
    )


@fam
def entropy_hot(r: np.random.Generator) -> Known:
    n = int(r.integers(2, 5))
    T_ = 10.0 ** r.uniform(-2, 1)
    c = r.uniform(0, 3, n)
    x = cp.Variable(n, name="x")
    w = np.exp(-(c - c.min()) / T_)
    v = c.min() - T_ * np.log(w.sum())
    t = w / w.sum()
    return K(least(c @ x - T_ * cp.sum(cp.entr(x)), [cp.sum(x) == 1]), v, answers=at(x, truth=t))


@fam
def unused_var(r: np.random.Generator) -> Known:
    x = cp.Variable(name="x")
    y = cp.Variable(3, name="y")
    return K(least(cp.square(x - 1) + 2, [y >= 0, cp.sum(y) <= 1]), 2)


@fam
def feas_eq_int(r: np.random.Generator) -> Known:
    z = cp.Variable(2, name="z", integer=True)
    a, b = [(2, 4), (3, 6), (6, 9)][int(r.integers(3))]
    return Known(least(z[0], [a * z[0] + b * z[1] == 1, cp.abs(z) <= 20]), INFEASIBLE)


@fam
def sdp_gap(r: np.random.Generator) -> Known:
    # max cut 2 nodes etc: max <L,X> diag 1, optimum for bipartite: complete
    n = 3
    X = cp.Variable((n, n), name="X", symmetric=True)
    W = np.ones((n, n)) - np.eye(n)
    # min <W,X>, diag(X)=1 -> X with offdiag -1/2: value -3
    return K(
        least(cp.trace(W @ X), [X >> 0, cp.diag(X) == 1]),
        -3,
        answers=at(X, truth=1.5 * np.eye(3) - 0.5 * np.ones((3, 3)), lie=np.eye(3)),
    )


@fam
def vstack_soc_axis(r: np.random.Generator) -> Known:
    n = int(r.integers(2, 4))
    X = cp.Variable((n, 2), name="X")
    t = cp.Variable(n, name="t")
    A = r.normal(size=(n, 2))
    return K(
        least(cp.sum(t), [cp.SOC(t, X, axis=1), X == A]),
        np.linalg.norm(A, axis=1).sum(),
        answers={"truth": {X: A, t: np.linalg.norm(A, axis=1)}, "outside": {X: A, t: np.linalg.norm(A, axis=1) - 0.01}},
    )


@fam
def dotsort_f(r: np.random.Generator) -> Known:
    n = 3
    x = cp.Variable(n, name="x")
    w = np.array([1.0, 2, 3])
    lo = np.sort(r.uniform(0, 1, n))
    return K(least(cp.dotsort(x, w), [x >= lo]), np.sort(w) @ np.sort(lo), answers=at(x, truth=lo, lie=lo + 0.01))


@fam
def cvar(r: np.random.Generator) -> Known:
    n = 5
    x = cp.Variable(n, name="x")
    lo = r.normal(size=n)
    return K(least(cp.cvar(x, 0.6), [x >= lo]), np.sort(lo)[-2:].mean(), answers=at(x, truth=lo, lie=lo + 0.01))


@fam
def logistic_sep(r: np.random.Generator) -> Known:
    # attained only in the limit: separable data
    A = np.abs(r.normal(size=(4, 2)))
    w = cp.Variable(2, name="w")
    return Known(least(cp.sum(cp.logistic(-A @ w))), value=0.0)


@fam
def xexp_f(r: np.random.Generator) -> Known:
    x = cp.Variable(name="x", nonneg=True)
    a = r.uniform(0.5, 5)
    # min xexp(x) - a x, x>=0 ; (1+x)e^x=a -> if a<1: x=0
    x0 = 0.0 if a <= 1 else brentq(lambda t: (1 + t) * np.exp(t) - a, 0, 5)
    return K(least(cp.xexp(x) - a * x, [x >= 0]), x0 * np.exp(x0) - a * x0, answers=at(x, truth=x0, lie=x0 + 0.1))


@fam
def loggamma_like(r: np.random.Generator) -> Known:
    x = cp.Variable(name="x")
    a = r.uniform(0.5, 3)
    # min -log(x) - log1p? : log1p
    # max log1p(x) - a x + ..., x>=0: 1/(1+x)=a -> x=max(0,1/a-1)
    x0 = max(0, 1 / a - 1)
    return K(most(cp.log1p(x) - a * x, [x >= 0]), np.log1p(x0) - a * x0, answers=at(x, truth=x0, lie=x0 + 0.1))


@fam
def von_neumann(r: np.random.Generator) -> Known:
    n = 2
    X = cp.Variable((n, n), name="X", PSD=True)
    return K(most(cp.von_neumann_entr(X), [cp.trace(X) == 1]), np.log(n), answers=at(X, truth=np.eye(n) / n), far=1e-4)


@fam
def quantum_rel(r: np.random.Generator) -> Known:
    n = 2
    X = cp.Variable((n, n), name="X", PSD=True)
    B = np.diag([0.3, 0.7])
    return K(least(cp.quantum_rel_entr(X, B), [cp.trace(X) == 1]), 0, answers=at(X, truth=B), far=1e-4)


@fam
def relentr_quad(r: np.random.Generator) -> Known:
    x = cp.Variable(name="x")
    y = cp.Variable(name="y")
    z = cp.Variable(name="z")
    a = r.uniform(0.5, 2)
    return K(least(z, [cp.constraints.RelEntrConeQuad(x, y, z, 3, 3), x == a, y == 1]), a * np.log(a), far=1e-3)


@fam
def tr_inv_f(r: np.random.Generator) -> Known:
    n = 2
    X = cp.Variable((n, n), name="X", symmetric=True)
    d = 10.0 ** r.uniform(-1, 1, 2)
    return K(least(cp.tr_inv(X), [X << np.diag(d)]), (1 / d).sum(), answers=at(X, truth=np.diag(d)))


@fam
def perspective_f(r: np.random.Generator) -> Known:
    x = cp.Variable(name="x")
    s = cp.Variable(name="s", nonneg=True)
    a = r.uniform(0.5, 2)
    return K(
        least(cp.perspective(cp.square(x), s) + a * s, [x == 1]),
        2 * np.sqrt(a),
        answers={"truth": {x: 1.0, s: 1 / np.sqrt(a)}, "lie": {x: 1.0, s: 1 / np.sqrt(a) + 0.2}},
    )
