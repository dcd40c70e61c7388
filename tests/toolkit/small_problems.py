"""Small problems of many kinds with known optima, worked out by hand: `crosscheck` must contradict none of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.certify.corpus.known import INFEASIBLE, UNBOUNDED, Known, least, most

E = float(np.e)
R2, R3 = float(np.sqrt(2.0)), float(np.sqrt(3.0))


def x(n: int | tuple[int, ...] = (), **more: Any) -> cp.Variable:
    return cp.Variable(n, name="x", **more)


def _with(build: Callable[[Any], Any], n: Any = (), **more: Any) -> Any:
    return build(x(n, **more))


D = np.diag([1.0, 2.0, 3.0])
A = np.array([[2.0, 1.0], [1.0, 2.0]])
P2 = np.array([[3.0, 1.0], [1.0, 1.0]])
HERMITIAN = np.array([[2.0, 1j], [-1j, 2.0]])

#: name -> (build of the problem, value, or the status where it has no optimum)
SMALL: dict[str, tuple[Callable[[], cp.Problem], float | str]] = {
    # whole numbers
    "knapsack": (
        lambda: _with(lambda v: most(np.array([5, 4, 3]) @ v, [np.array([2, 3, 1]) @ v <= 5]), 3, boolean=True),
        9,
    ),
    "knapsack of odd": (lambda: _with(lambda v: most(cp.sum(v), [2 * cp.sum(v) <= 5]), 3, boolean=True), 2),
    "nearest whole point": (lambda: _with(lambda v: least(cp.sum_squares(v - [0.4, 1.6])), 2, integer=True), 0.32),
    "whole and free": (lambda: _with(lambda v: least(cp.abs(v - 2.5)), integer=True), 0.5),
    "rounded down": (lambda: _with(lambda v: most(v, [3 * v <= 10]), integer=True), 3),
    "rounded up": (lambda: _with(lambda v: least(v, [3 * v >= 10]), integer=True), 4),
    "no whole number between": (lambda: _with(lambda v: least(v, [v >= 0.2, v <= 0.8]), integer=True), INFEASIBLE),
    "parity": (
        lambda: _with(lambda v: least(cp.sum(v), [2 * v[0] + 2 * v[1] == 3, v >= 0, v <= 3]), 2, integer=True),
        INFEASIBLE,
    ),
    "whole without end": (lambda: _with(lambda v: most(v), integer=True), UNBOUNDED),
    "set of values": (lambda: _with(lambda v: least(cp.square(v - 2), [cp.FiniteSet(v, [0.0, 1.0, 3.5])])), 1),
    "whole in a cone": (lambda: _with(lambda v: most(cp.sum(v), [cp.norm(v) <= 2.5]), 2, integer=True), 3),
    "fixed charge": (lambda: _fixed_charge(), 3),
    # complex numbers
    "modulus": (lambda: _with(lambda v: least(cp.abs(v - (3 + 4j)), [cp.abs(v) <= 1]), complex=True), 4),
    "real part on a disc": (lambda: _with(lambda v: most(cp.real(v), [cp.abs(v - 1j) <= 2]), complex=True), 2),
    "imaginary part": (
        lambda: _with(lambda v: most(cp.imag(v), [cp.abs(v) <= 1, cp.real(v) == 0.6]), complex=True),
        0.8,
    ),
    "hermitian eigenvalue": (
        lambda: _with(
            lambda X: least(cp.real(cp.trace(HERMITIAN @ X)), [X >> 0, cp.real(cp.trace(X)) == 1]),
            (2, 2),
            hermitian=True,
        ),
        1,
    ),
    "hermitian from above": (lambda: _with(lambda t: least(t, [t * np.eye(2) - HERMITIAN >> 0])), 3),
    "complex least squares": (
        lambda: _with(lambda v: least(cp.sum_squares(v - np.array([1 + 1j, 0])), [cp.sum(v) == 0]), 2, complex=True),
        1,
    ),
    "complex norm": (lambda: _with(lambda v: least(cp.norm(v), [v[0] + 1j * v[1] == 2]), 2, complex=True), R2),
    # exponential cones
    "exp above a line": (lambda: _with(lambda v: least(cp.exp(v) - v)), 1),
    "exp with slope": (lambda: _with(lambda v: least(cp.exp(v) - 2 * v)), 2 - 2 * np.log(2)),
    "x log x": (lambda: _with(lambda v: least(-cp.entr(v))), -1 / E),
    "log below": (lambda: _with(lambda v: most(cp.log(v) - v)), -1),
    "two logs on a line": (lambda: _with(lambda v: most(cp.sum(cp.log(v)), [cp.sum(v) == 2]), 2), 0),
    "relative entropy to uniform": (
        lambda: _with(lambda v: least(cp.sum(cp.rel_entr(v, np.ones(4) / 4)), [cp.sum(v) == 1]), 4),
        0,
    ),
    "divergence with a bound": (
        lambda: _with(lambda v: least(cp.sum(cp.rel_entr(v, [0.5, 0.5])), [cp.sum(v) == 1, v[0] <= 0.25]), 2),
        0.25 * np.log(0.5) + 0.75 * np.log(1.5),
    ),
    "log sum exp": (lambda: _with(lambda v: least(cp.log_sum_exp(v), [cp.sum(v) == 3]), 3), 1 + np.log(3)),
    "logistic sum": (lambda: _with(lambda v: least(cp.logistic(v) + cp.logistic(-v))), 2 * np.log(2)),
    "exp cone as written": (lambda: _exp_cone(), E),
    "log of a sum": (lambda: _with(lambda v: most(cp.log(cp.sum(v)), [v <= [1, 2]]), 2), np.log(3)),
    "xexp": (lambda: _with(lambda v: least(cp.xexp(v), [v >= 1]), nonneg=True), E),
    "exp out of reach": (lambda: _with(lambda v: least(v, [cp.exp(v) <= -1])), INFEASIBLE),
    "log without end": (lambda: _with(lambda v: most(cp.log(v))), UNBOUNDED),
    # power cones
    "cube": (lambda: _with(lambda v: least(cp.power(v, 3), [v >= 2])), 8),
    "square root": (lambda: _with(lambda v: most(cp.sqrt(v) - v)), 0.25),
    "power 1.5 and a line": (lambda: _with(lambda v: least(cp.power(v, 1.5) - 3 * v)), -4),
    "inverse and itself": (lambda: _with(lambda v: least(cp.inv_pos(v) + v)), 2),
    "power -2": (lambda: _with(lambda v: least(cp.power(v, -2), [v <= 2])), 0.25),
    "geometric mean": (lambda: _with(lambda v: most(cp.geo_mean(v), [v[0] + 2 * v[1] <= 4]), 2), R2),
    "weighted geometric mean": (
        lambda: _with(lambda v: most(cp.geo_mean(v, [1, 2]), [cp.sum(v) <= 3]), 2),
        4 ** (1 / 3),
    ),
    "3-norm": (lambda: _with(lambda v: least(cp.pnorm(v, 3), [cp.sum(v) == 2]), 2), 2 ** (1 / 3)),
    "power cone as written": (lambda: _power_cone(), 2.0),
    "square over line": (lambda: _with(lambda v: least(cp.quad_over_lin(v[0], v[1]), [v[0] >= 2, v[1] <= 4]), 2), 1),
    "harmonic mean": (lambda: _with(lambda v: most(cp.harmonic_mean(v), [v <= [1, 3]]), 2), 1.5),
    # semidefinite matrices
    "largest eigenvalue": (lambda: _with(lambda X: least(cp.lambda_max(X), [X == A]), (2, 2), symmetric=True), 3),
    "least eigenvalue": (lambda: _with(lambda X: least(cp.trace(A @ X), [cp.trace(X) == 1]), (2, 2), PSD=True), 1),
    "sum of two eigenvalues": (
        lambda: _with(lambda X: least(cp.lambda_sum_largest(X, 2), [X == D]), (3, 3), symmetric=True),
        5,
    ),
    "nuclear norm": (lambda: _with(lambda X: least(cp.normNuc(X), [X[0, 0] == 1, X[1, 1] == 1]), (2, 2)), 2),
    "spectral norm": (lambda: _with(lambda X: least(cp.sigma_max(X - A)), (2, 2), diag=True), 1),
    "log determinant": (
        lambda: _with(lambda X: most(cp.log_det(X), [cp.trace(X) <= 4]), (2, 2), PSD=True),
        2 * np.log(2),
    ),
    "matrix fraction": (
        lambda: _with(lambda X: least(cp.matrix_frac([1.0, 1.0], X), [X << A]), (2, 2), symmetric=True),
        2 / 3,
    ),
    "completion": (lambda: _with(lambda X: most(X[0, 1], [cp.diag(X) == 1]), (2, 2), PSD=True), 1),
    "entry off the diagonal": (lambda: _with(lambda X: least(cp.trace(X), [X[0, 1] >= 2]), (2, 2), PSD=True), 4),
    "negative semidefinite": (lambda: _with(lambda X: most(cp.trace(X), [X[0, 0] <= -1]), (2, 2), NSD=True), -1),
    "PSD of negative trace": (
        lambda: _with(lambda X: least(X[0, 1], [cp.trace(X) == -1]), (2, 2), PSD=True),
        INFEASIBLE,
    ),
    "PSD without end": (lambda: _with(lambda X: most(X[0, 0]), (2, 2), PSD=True), UNBOUNDED),
    "trace of an inverse": (
        lambda: _with(lambda X: least(cp.tr_inv(X), [X << np.diag([1.0, 4.0])]), (2, 2), symmetric=True),
        1.25,
    ),
    "max cut of a triangle": (
        lambda: _with(lambda X: most(cp.sum(1 - X) / 4, [cp.diag(X) == 1]), (3, 3), PSD=True),
        2.25,
    ),
    # bounds of many kinds
    "bounds as attributes": (lambda: _with(lambda v: least(cp.sum(v)), 2, bounds=[[-1, 2], [3, 4]]), 1),
    "one side infinite": (
        lambda: _with(lambda v: least(v[0] + cp.square(v[1] - 1)), 2, bounds=[[-2, -np.inf], [np.inf, 0]]),
        -1,
    ),
    "bounds that meet": (lambda: _with(lambda v: least(cp.exp(v)), bounds=[1, 1]), E),
    "nonneg and a row": (lambda: _with(lambda v: most(v[0] - v[1], [cp.sum(v) == 1]), 2, nonneg=True), 1),
    "nonpos": (lambda: _with(lambda v: most(cp.sum(v), [v >= -1]), 2, nonpos=True), 0),
    "sparse variable": (lambda: _with(lambda X: least(cp.sum_squares(X - A)), (2, 2), sparsity=[(0, 1), (0, 1)]), 2),
    "bounds that cross": (lambda: _with(lambda v: least(v, [v >= 1, v <= 0.5])), INFEASIBLE),
    "nonneg and negative row": (lambda: _with(lambda v: least(v[0], [cp.sum(v) <= -1]), 2, nonneg=True), INFEASIBLE),
    # repeated constraints and objects
    "one row ten times": (lambda: _repeated(10), 1),
    "one object twice": (lambda: _twice(), 2),
    "row and its double": (
        lambda: _with(lambda v: least(cp.sum_squares(v), [v[0] + v[1] == 2, 2 * v[0] + 2 * v[1] == 4]), 2),
        2,
    ),
    "equality as inequalities": (
        lambda: _with(lambda v: least(cp.sum_squares(v), [cp.sum(v) >= 1, cp.sum(v) <= 1]), 2),
        0.5,
    ),
    "constant rows": (lambda: _with(lambda v: least(v, [cp.Constant(1) <= 2, v >= 3])), 3),
    # ill scale
    "tiny objective": (lambda: _with(lambda v: least(1e-7 * cp.square(v - 1), [v <= 0])), 1e-7),
    "large rows": (lambda: _with(lambda v: most(v, [1e8 * v <= 3e8])), 3),
    "tiny coefficient": (lambda: _with(lambda v: least(v, [1e-6 * v >= 1])), 1e6),
    "offset of 1e6": (lambda: _with(lambda v: least(1e6 + cp.square(v - 2), [v <= 1])), 1e6 + 1),
    "columns apart": (lambda: _with(lambda v: most(1e4 * v[0] + 1e-4 * v[1], [v <= [1e-4, 1e4]]), 2), 2),
    # Hock and Schittkowski's, where convex
    "HS3": (lambda: _with(lambda v: least(v[1] + 1e-5 * cp.square(v[1] - v[0]), [v[1] >= 0]), 2), 0),
    "HS21": (
        lambda: _with(
            lambda v: least(
                0.01 * cp.square(v[0]) + cp.square(v[1]) - 100,
                [10 * v[0] - v[1] >= 10, v[0] >= 2, v[0] <= 50, v[1] >= -50, v[1] <= 50],
            ),
            2,
        ),
        -99.96,
    ),
    "HS28": (
        lambda: _with(
            lambda v: least(cp.square(v[0] + v[1]) + cp.square(v[1] + v[2]), [v[0] + 2 * v[1] + 3 * v[2] == 1]), 3
        ),
        0,
    ),
    "HS35": (
        lambda: _with(
            lambda v: least(
                9 - np.array([8, 6, 4]) @ v + cp.quad_form(v, np.array([[2, 1, 1], [1, 2, 0], [1, 0, 1]])),
                [v[0] + v[1] + 2 * v[2] <= 3, v >= 0],
            ),
            3,
        ),
        1 / 9,
    ),
    "HS48": (
        lambda: _with(
            lambda v: least(
                cp.square(v[0] - 1) + cp.square(v[1] - v[2]) + cp.square(v[3] - v[4]),
                [cp.sum(v) == 5, v[2] - 2 * (v[3] + v[4]) == -3],
            ),
            5,
        ),
        0,
    ),
    "HS76": (
        lambda: _with(
            lambda v: least(
                cp.quad_form(v, np.array([[1, 0, -0.5, 0], [0, 0.5, 0, 0], [-0.5, 0, 1, 0.5], [0, 0, 0.5, 0.5]]))
                + np.array([-1, -3, 1, -1]) @ v,
                [
                    v[0] + 2 * v[1] + v[2] + v[3] <= 5,
                    3 * v[0] + v[1] + 2 * v[2] - v[3] <= 4,
                    v[1] + 4 * v[2] >= 1.5,
                    v >= 0,
                ],
            ),
            4,
        ),
        -4.681818181818182,
    ),
    # domains that atoms imply
    "root in a row": (lambda: _with(lambda v: least(v, [cp.sqrt(v) >= 0])), 0),
    "power 1.5 at its end": (lambda: _with(lambda v: least(v + cp.power(v, 1.5), [v <= 4])), 0),
    "geo_mean in a row": (lambda: _with(lambda v: least(cp.sum(v), [cp.geo_mean(v) >= 0]), 2), 0),
    "log at its end": (lambda: _with(lambda v: least(v, [cp.log(v + 1) >= -5])), np.exp(-5) - 1),
    "entropy below zero": (lambda: _with(lambda v: most(cp.entr(v), [v <= -1])), INFEASIBLE),
    # kinks and norms
    "one-norm": (lambda: _with(lambda v: least(cp.norm1(v), [v[0] + 3 * v[1] == 3]), 2), 1),
    "largest entry": (lambda: _with(lambda v: least(cp.norm_inf(v), [v[0] + 3 * v[1] == 4]), 2), 1),
    "median": (lambda: _with(lambda v: least(cp.norm1(v - np.array([0.0, 1.0, 10.0])))), 10),
    "huber": (lambda: _with(lambda v: least(cp.huber(v, 1) + cp.abs(v - 3))), 2.75),
    "total variation": (lambda: _with(lambda v: least(cp.tv(v) + cp.sum_squares(v - [0, 2])), 2), 1.5),
    "distance to a ball": (lambda: _with(lambda v: least(cp.norm(v - [3, 4]), [cp.norm(v) <= 2]), 2), 3),
    "triangle of norms": (
        lambda: _with(lambda v: least(cp.norm(v) + cp.norm(v - [1, 0]) + cp.norm(v - [0.5, R3 / 2])), 2),
        R3,
    ),
    "dual norm": (lambda: _with(lambda v: most(v[0] + v[1], [cp.norm(v) <= 1]), 2), R2),
    "dead zone": (lambda: _with(lambda v: least(cp.pos(cp.abs(v) - 1), [v >= 2])), 1),
    "quadratic form": (lambda: _with(lambda v: least(cp.quad_form(v, P2) - 2 * v[0], [v[1] >= 0]), 2), -1 / 3),
}


def _fixed_charge() -> cp.Problem:
    flow, opened = cp.Variable(2, name="flow", nonneg=True), cp.Variable(2, name="open", boolean=True)
    return least(np.array([2, 1]) @ opened + flow[0] + flow[1], [cp.sum(flow) >= 2, flow <= 5 * opened])


def _exp_cone() -> cp.Problem:
    z = cp.Variable(name="z")
    return least(z, [cp.ExpCone(cp.Constant(1.0), cp.Constant(1.0), z)])


def _power_cone() -> cp.Problem:
    v, z = cp.Variable(2, name="v"), cp.Variable(name="z")
    return most(z, [cp.PowCone3D(v[0], v[1], z, 0.5), v <= [1, 4]])


def _repeated(times: int) -> cp.Problem:
    v = x()
    return least(v, [v >= 1 for _ in range(times)])


def _twice() -> cp.Problem:
    v = x(2)
    row = v >= 1
    return least(cp.sum(v), [row, row])


def known_of(name: str) -> Known:
    """Return a problem with its truth."""
    build, truth = SMALL[name]
    if isinstance(truth, str):
        return Known(build(), truth, name=name)
    return Known(build(), value=float(truth), far=1e-5, name=name)
