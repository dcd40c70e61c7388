"""Euclidean projection onto the power cone and its dual, for many cones of one dimension at once.

The cone is ``K = {(x, z): prod_i x_i^a_i >= |z|, x >= 0}`` with ``a > 0`` and ``sum a = 1``; its dual is
``{(u, w): prod_i (u_i/a_i)^a_i >= |w|, u >= 0}``. Away from the faces the projection is (Hien 2015, "Differential
properties of Euclidean projection onto power cone")::

    x_i(r) = (x_i + sqrt(x_i^2 + 4 a_i r (|z| - r))) / 2,   prod_i x_i(r)^a_i = r,   0 < r < |z|.

The root is sought in ``t = log(r / (|z| - r))``, which resolves both ends, and in logarithms of both sides.
"""

import numpy as np

from cvxpriv.numerics.arrays import Array, Flags
from cvxpriv.numerics.roots import Rows, increasing_root

LOGIT_RANGE = 740.0  # exp(-740) is the smallest positive double


def in_power(x: Array, z: Array, alpha: Array) -> Flags:
    """Return exact membership of ``(x, z)``; ``x`` and ``alpha`` are (m, n), ``z`` is (m,)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.exp((alpha * np.log(np.maximum(x, 0.0))).sum(axis=1))
    return np.asarray((x >= 0).all(axis=1) & (mean >= np.abs(z)))


def in_power_dual(x: Array, z: Array, alpha: Array) -> Flags:
    """Return exact membership in the dual cone; shapes as in `in_power`."""
    return in_power(x / alpha, z, alpha)


def project_power(v: Array, alpha: Array) -> Array:
    """Return the nearest points of the power cone.

    `v`, (m, n + 1): One point ``(x_1 .. x_n, z)`` in each row.
    `alpha`, (m, n): Exponents: positive, each row sums to one.
    Returns (m, n + 1).
    """
    v = np.asarray(v, dtype=float)
    x, z = v[:, :-1], v[:, -1]
    projected = np.zeros_like(v)
    inside = in_power(x, z, alpha)
    polar = ~inside & in_power_dual(-x, z, alpha)
    face = ~inside & ~polar & (z == 0)
    projected[inside] = v[inside]
    projected[face, :-1] = np.maximum(x[face], 0.0)
    curved = ~(inside | polar | face)
    if curved.any():
        scale = np.abs(v[curved]).max(axis=1)
        projected[curved] = _project_curved(v[curved] / scale[:, None], alpha[curved]) * scale[:, None]
    return projected


def _split(t: Array, height: Array) -> tuple[Array, Array]:
    """``r`` and ``height - r`` from the logit, both to full relative precision."""
    shrink = np.exp(-np.abs(t))
    small, large = height * shrink / (1.0 + shrink), height / (1.0 + shrink)
    return np.where(t < 0, small, large), np.where(t < 0, large, small)


def _coordinates(x: Array, alpha: Array, r: Array, rest: Array) -> tuple[Array, Array]:
    """``x_i(r)`` without cancellation, and the square root in it."""
    product = 4.0 * alpha * (r * rest)[:, None]
    root = np.hypot(x, np.sqrt(product))
    with np.errstate(divide="ignore", invalid="ignore"):
        negative = 0.5 * product / (root - x)
    return np.where(x > 0, 0.5 * (x + root), negative), root


def _project_curved(v: Array, alpha: Array) -> Array:
    """Projection where the curved part of the boundary is hit; rows are scaled to largest entry one."""
    x, z = v[:, :-1], v[:, -1]
    height = np.abs(z)

    def equation(t: Array, rows: Rows) -> tuple[Array, Array]:
        """``log r - sum a_i log x_i(r)`` and its slope in ``t``."""
        a = alpha[rows]
        r, rest = _split(t, height[rows])
        values, root = _coordinates(x[rows], a, r, rest)
        with np.errstate(all="ignore"):
            value = np.log(r) - (a * np.log(values)).sum(axis=1)
            pull = (a * a * (rest - r)[:, None] / (root * values)).sum(axis=1)
            slope = (1.0 / r - pull) * r * rest / height[rows]
        # Underflow of r and of an x_i together: the root lies at an end, where only the sign of t matters.
        return np.where(np.isnan(value), t, value), slope

    ends = np.full(height.shape, LOGIT_RANGE)
    t = increasing_root(equation, -ends, ends, start=np.zeros_like(height))
    r, rest = _split(t, height)
    values, _ = _coordinates(x, alpha, r, rest)
    return np.column_stack([np.where(np.isfinite(values), values, 0.0), np.copysign(r, z)])
