"""The inner problem of the price with what a column costs beside g: its peak, its total variation, cells that are 0."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cvxpriv.bounds.conjugates import Conjugate, moved_away, within
from cvxpriv.bounds.lines import Lines
from cvxpriv.numerics.arrays import Array, Flags

from .pricing import Inner, Pricing, solve_simplex

#: A t at which H* is -H(0), or above it by less than rounding.
FAR = -1e12


@dataclass(frozen=True, eq=False)
class SummedCosts:
    """The cost of a column x of one class of outputs.

    `plain`: The pricing without these costs.
    `bare`: Conjugate of f, without limits of the ratios.
    `allowed`, (|Y|,): Cells that may be above 0.
    `peak`: Price of max_y x(y)/p(y).
    `away`, (|Y|,): Price of |x(y)/p(y) - 1|, of beta p(y).
    `limits`: Limits of the ratios.
    """

    plain: Pricing
    bare: Conjugate
    allowed: Flags
    peak: float
    away: Array
    limits: tuple[float, float] | None

    def solver(self) -> Callable[[Array, int, float, Array | None], Inner]:
        """The solver of the inner problem: see `Pricing.solve`."""
        plain, allowed = self.plain, self.allowed
        if self.peak == 0.0 and not self.away.any() and allowed.all():
            return plain.solve
        p_y, beta, beside = plain.p_y[allowed], plain.beta, plain.beta * self.away[allowed]
        limited = self.bare if self.limits is None else within(self.bare, *self.limits)
        conjugate = moved_away(limited, self.away[allowed]) if self.away.any() else limited

        def solve(c: Array, limit: int, precision: float, near: Array | None) -> Inner:
            net = levelled(c, p_y, self.peak, beside) if self.peak > 0.0 else c
            return solve_simplex(net, p_y, beta, conjugate, limit, precision, near)

        if allowed.all():
            return solve
        nothing = beta * float(plain.p_y[~allowed].sum()) * float(self.bare.value(np.array([FAR]))[0])

        def among_allowed(c: Array, limit: int, precision: float, near: Array | None) -> Inner:
            found = solve(c[:, allowed], limit, precision, near)
            x, spread = np.zeros(c.shape), np.zeros(c.shape)
            x[:, allowed], spread[:, allowed] = found.x, found.spread
            return Inner(found.value + nothing, x, spread, found.n)

        return among_allowed

    def as_lines(self) -> list[tuple[Lines, Array]]:
        """Return the costs, and the limits, as lines with their prices."""
        p_y, ratios, found = self.plain.p_y, np.diag(1.0 / self.plain.p_y), list[tuple[Lines, Array]]()
        if self.peak > 0.0:
            found.append((Lines("most", ratios), np.array([self.peak])))
        if self.away.any():
            found.append((Lines("away", ratios - 1.0), self.plain.beta * p_y * self.away))
        if self.limits is not None:
            low, high = self.limits
            found.append((Lines("never", np.hstack([ratios / high - 1.0, low - ratios])), np.zeros(0)))
        return found


def levelled(c: Array, p_y: Array, price: float, beside: Array) -> Array:
    """Return c less what the largest ratio of a column costs: price max_y r_y is the largest v.r over v of sum price.

    Every such v >= 0 bounds the inner problem from above at c - v / p(y), and the v that cuts c - beside to one level
    is the best: the cells above it then have equal ratios.

    `c`: (B, |Y|). `p_y`: (|Y|,). `price`: > 0. `beside`, (|Y|,): Other cost of ratios above 1.

    Examples
    --------
    >>> levelled(np.array([[3.0, 1.0]]), np.array([0.5, 0.5]), 0.5, np.zeros(2)).tolist()
    [[2.0, 1.0]]
    """
    net = c - beside
    order = np.argsort(-net, axis=1, kind="stable")
    mass = np.cumsum(p_y[order], axis=1)
    level = (np.cumsum(p_y[order] * np.take_along_axis(net, order, axis=1), axis=1) - price) / mass
    return np.asarray(np.minimum(net, level.max(axis=1, keepdims=True)) + beside)
