"""Local pricing on faces: many starts at once go down phi until they stop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from cvxpriv.numerics.arrays import Array

IntArray: TypeAlias = NDArray[np.intp]

TINY = float(np.finfo(np.float64).tiny)
SETTLED = 1e-13
"""Newton's method ends with a step that gains less than this everywhere, nats."""

NEGLIGIBLE_WEIGHT = 1e-10
"""A symbol with less posterior probability leaves a column: the column is then another, still exact one."""

LEAST_WEIGHT = 1e-14
"""A weight below this leaves the support."""


@dataclass(frozen=True)
class FaceFunction:
    """phi(pi) = -H(A pi) + lam H(pi) - nu.pi on faces, one per row.

    `a`: P(S|X) of each face's symbols.
    """

    a: Array
    lam: float
    nu: Array

    @classmethod
    def on(cls, p_s_given_x: Array, lam: float, nu: Array, supports: IntArray) -> FaceFunction:
        """The function on the faces that `supports` lists, (n, F)."""
        return cls(p_s_given_x[:, supports].transpose(1, 0, 2), lam, nu[supports])

    def part(self, some: NDArray[np.bool_]) -> FaceFunction:
        """The faces that a mask picks."""
        return FaceFunction(self.a[some], self.lam, self.nu[some])

    def private(self, w: Array) -> Array:
        """A pi, (n, |S|)."""
        return np.asarray(np.einsum("nsf,nf->ns", self.a, w))

    def value(self, w: Array) -> Array:
        """phi, (n,)."""
        t = self.private(w)
        return np.asarray(xlogy(t, t).sum(axis=1) - self.lam * xlogy(w, w).sum(axis=1) - (self.nu * w).sum(axis=1))

    def slopes(self, w: Array) -> Array:
        """A' log t - lam log pi - nu, (n, F): the gradient without its constant; its mean under pi is phi."""
        log_t = np.log(np.maximum(self.private(w), TINY))
        return np.asarray(np.einsum("nsf,ns->nf", self.a, log_t) - self.lam * np.log(np.maximum(w, TINY)) - self.nu)


def descend(function: FaceFunction, w: Array, steps: int = 30) -> tuple[Array, Array]:
    """Exponentiated gradient, ``w <- w exp(-eta g)``, with a step per start that grows and shrinks.

    Returns
    -------
    w : array, ``(n, F)``
    value : array, ``(n,)``
        phi there, never above where it started.
    """
    value, eta = function.value(w), np.full(len(w), 1.0)
    for _ in range(steps):
        g = function.slopes(w)
        move = -eta[:, None] * (g - g.min(axis=1, keepdims=True))
        trial = w * np.exp(np.maximum(move, -50.0))
        trial /= trial.sum(axis=1, keepdims=True)
        new = function.value(trial)
        better = new < value
        w = np.where(better[:, None], trial, w)
        value = np.where(better, new, value)
        eta = np.where(better, 1.5 * eta, 0.3 * eta)
    return w, value


def newton(function: FaceFunction, w: Array, steps: int = 6) -> tuple[Array, Array]:
    """Newton's method on each face, kept inside it; a step is taken only where phi falls.

    Returns
    -------
    w : array, ``(n, F)``
    value : array, ``(n,)``
    """
    value, size = function.value(w), w.shape[1]
    if size == 1:
        return w, value
    basis = np.vstack([np.eye(size - 1), -np.ones(size - 1)])
    for _ in range(steps):
        t = np.maximum(function.private(w), TINY)
        hessian = np.einsum("nsf,ns,nsg->nfg", function.a, 1.0 / t, function.a)
        hessian[:, np.arange(size), np.arange(size)] -= function.lam / np.maximum(w, LEAST_WEIGHT)
        inner = basis.T @ hessian @ basis
        slope = function.slopes(w) @ basis
        inner[:, np.arange(size - 1), np.arange(size - 1)] += 1e-13 * np.abs(inner).max(axis=(1, 2))[:, None] + TINY
        try:
            move = -np.linalg.solve(inner, slope[:, :, None])[:, :, 0] @ basis.T
        except np.linalg.LinAlgError:
            break
        move[~np.isfinite(move).all(axis=1)] = 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(move < 0.0, -w / move, np.inf).min(axis=1)
        trial = np.maximum(w + np.minimum(1.0, 0.9 * room)[:, None] * move, 0.0)
        trial /= trial.sum(axis=1, keepdims=True)
        new = function.value(trial)
        better, gain = new < value, float((value - new).max())
        w, value = np.where(better[:, None], trial, w), np.where(better, new, value)
        if gain <= SETTLED:
            break
    return w, value


def on_all_symbols(size: int, supports: IntArray, weights: Array) -> Array:
    """Columns (size, n) from supports (n, F) and weights (n, F); negligible weights leave, sums are 1."""
    kept = np.where(weights < NEGLIGIBLE_WEIGHT, 0.0, weights)
    kept = kept / kept.sum(axis=1, keepdims=True)
    columns = np.zeros((size, len(supports)))
    columns[supports.T, np.arange(len(supports))] = kept.T
    return columns
