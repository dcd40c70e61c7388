"""The inner problem of the price under costs of a column that bend: f-information, Renyi divergences.

Such a cost is at least any of its tangents, which are lines: what is paid for a column less a tangent bounds the inner
problem from above, exactly where the tangent is taken at its best column. Newton's method looks for that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cvxpriv.numerics.arrays import Array

from .column_costs import Bent
from .line_costs import BATCH, CUT, FLAT, LONGER, Solve, joined, until
from .pricing import LIMIT, SUM, ULPS, Inner

#: The barrier: the first, its share that a step leaves, and the last, also where few steps are asked; the most steps.
FIRST_BARRIER, BARRIER_LEFT, LAST_BARRIER = 1e-2, 0.03, 1e-13
LOOSE, STEPS = 1e-9, 70

Curved = Callable[[Array, Array], tuple[Array, Array, Array]]


def under_bent(solve: Solve, bent: Sequence[Bent], prices: Array, p_y: Array, base: Curved) -> Solve:
    """Return a solver of the inner problem less the prices of costs that bend, where `solve` has no other costs.

    A barrier keeps columns inside while Newton's method looks for the best one; the tangents at that are lines, and
    bound the inner problem whatever the column is.

    `base`: c and columns to the inner problem without the costs, its slope, and minus its second derivatives.
    """
    apart, at = list[tuple[Bent, Array]](), 0
    for one in bent:
        apart.append((one, prices[at : at + len(one.lines)]))
        at += len(one.lines)
    apart = [(one, own) for one, own in apart if own.any()]
    if not apart:
        return solve

    def tangent(x: Array) -> Array:
        return np.asarray(sum(np.einsum("k,kyn->ny", own, one.tangents(x)) for one, own in apart))

    def solved(c: Array, limit: int, precision: float, near: Array | None) -> Inner:
        size = max(BATCH // len(p_y) ** 2, 1)
        return joined(
            [
                part(c[first : first + size], LOOSE if limit < LIMIT else LAST_BARRIER)
                for first in range(0, max(len(c), 1), size)
            ]
        )

    def part(c: Array, last: float) -> Inner:
        x = 0.5 * solve(c, LIMIT, SUM, None).x + 0.5 * p_y
        barrier, length = np.full(len(c), FIRST_BARRIER), np.ones(len(c))

        def merit(x: Array) -> Array:
            cost = sum(one.values(x) @ own for one, own in apart)
            return np.asarray(base(c, x)[0] - cost + barrier * (np.log(x) @ p_y))

        for _ in range(STEPS):
            _, slope, bend = base(c, x)
            g = slope - tangent(x) + barrier[:, None] * p_y / x
            second = sum(one.bends(x, own) for one, own in apart if one.bends is not None)
            second = second + (bend + barrier[:, None] * p_y / x**2)[:, :, None] * np.eye(len(p_y))
            scale = 1.0 / np.sqrt(np.einsum("nyy->ny", second))
            found = (
                np.linalg.solve(second * scale[:, :, None] * scale[:, None, :], np.stack([g * scale, scale], axis=2))
                * scale[:, :, None]
            )
            step = found[:, :, 0] - (found[:, :, 0].sum(axis=1) / found[:, :, 1].sum(axis=1))[:, None] * found[:, :, 1]
            trial = x + (length * until(x, step))[:, None] * step
            trial = trial / trial.sum(axis=1, keepdims=True)
            rise = merit(trial) - merit(x)
            good = rise >= -FLAT * barrier
            x = np.where(good[:, None], trial, x)
            near = good & ((step * g).sum(axis=1) * length <= barrier)
            if (near & (barrier <= last)).all():
                break
            barrier = np.where(near, np.maximum(BARRIER_LEFT * barrier, last), barrier)
            length = np.where(good, np.minimum(LONGER * length, 1.0), CUT * length)
        v = tangent(x)
        inner = solve(c - v, LIMIT, SUM, None)
        return inner._replace(value=inner.value + ULPS * np.abs(v).max(axis=1), x=x)

    return solved
