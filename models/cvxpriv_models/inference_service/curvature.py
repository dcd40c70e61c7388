"""The Hessian of the joint problem IAS (10), and its inverse with a barrier's diagonal added, symbol by symbol.

With xi = p_u / m_u (so that P_Y . xi = 1) and h_y = beta p(y) f_xx the block of symbol u is

    H = G' diag(h) G,   G = I - xi P_Y',   G p_u = 0:

p f(q/p) is homogeneous and does not see the scale of a symbol. H + diag(delta) is nearly singular where the barrier is
thin, and yet its inverse needs no difference of nearly equal numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cvxpriv.numerics.arrays import Array

__all__ = ["Inverse", "inverse"]

#: Relative; with a single live symbol the sum of the inverses is of rank one up to rounding.
RIDGE = 1e-14


class Inverse(NamedTuple):
    """(H + diag(delta))^-1 = diag(1/scale) + vv v v' + vw (v w' + w v') - ww w w' for each start and symbol.

    `scale`, `v`, `w` are (B, |Y|, |U|), the three coefficients (B, 1, |U|).
    """

    scale: Array
    v: Array
    w: Array
    vv: Array
    vw: Array
    ww: Array

    def times(self, right: Array) -> Array:
        """Apply it to `right`, (B, |Y|, |U|)."""
        by_v = (self.v * right).sum(axis=-2, keepdims=True)
        by_w = (self.w * right).sum(axis=-2, keepdims=True)
        along_v, along_w = self.vv * by_v + self.vw * by_w, self.vw * by_v - self.ww * by_w
        return np.asarray(right / self.scale + self.v * along_v + self.w * along_w)

    def total(self) -> Array:
        """Its sum over symbols, (B, |Y|, |Y|)."""
        cross = (self.v * self.vw) @ self.w.mT
        result: Array = (self.v * self.vv) @ self.v.mT + cross + cross.mT - (self.w * self.ww) @ self.w.mT
        diagonal = np.arange(result.shape[-1])
        result[..., diagonal, diagonal] += (1.0 / self.scale).sum(axis=-1)
        result[..., diagonal, diagonal] *= 1.0 + RIDGE
        return result


def inverse(mechanism: Array, p_y: Array, h: Array, delta: Array) -> Inverse:
    """Return (H + diag(delta))^-1.

    Parameters
    ----------
    mechanism, h, delta : array, (B, |Y|, |U|)
        h = beta p(y) f_xx >= 0, delta > 0.
    p_y : array, (|Y|,)
    """
    weight = p_y[:, None]
    xi = mechanism / (p_y @ mechanism)[:, None, :]
    scale = h + delta
    thin, thick = delta / scale, h / scale
    v, w = thick * xi, weight / scale
    # In d = (H + diag(delta))^-1 r two numbers are unknown, P_Y . d and (h xi) . G d; this is their 2 x 2 system.
    kept = (weight * thin * xi).sum(axis=-2, keepdims=True)
    tau = (weight * w).sum(axis=-2, keepdims=True)
    omega = (thick * delta * xi * xi).sum(axis=-2, keepdims=True)
    determinant = kept * kept + tau * omega
    return Inverse(scale, v, w, tau / determinant, kept / determinant, omega / determinant)
