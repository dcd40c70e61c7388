"""A test on the problem as written of whether a direction improves it for ever.

A compiled problem may know less than the one it came from: cvxpy drops the small eigenvalues of a quadratic form, and
along such a direction a program of cones is unbounded where the problem ends at a value of 31.6. And a direction that
is right to nine digits leaves, after 1e9 steps, a constraint that it should not touch. So the point is moved along the
direction, ten times further each time, and every constraint and the objective are evaluated there.
"""

import numpy as np

from cvxpriv.kkt.written import Written
from cvxpriv.numerics.arrays import Array

STEPS = 10.0 ** np.arange(13)
"""Multiples of the point's size that are tried."""
FEASIBLE = 1e-7
"""Violation, relative to the size of a row's terms, up to which a point counts as feasible."""
NOISE = (0.0, 1e-9, 1e-7, 1e-5)
"""Shares of a direction's largest entry below which entries count as a solver's rounding, and are left out in turn."""
ROUNDING = 2e-15
"""Violation, relative to the row's own terms, that is theirs to the last digits."""
SQUARE = 0.01
"""Largest violation, relative to the square of the gain for a step of one, of a direction in a curved cone.

``|(L, 1)| <= L`` is missed by ``1 / 2L``, which nobody sees at L = 1e5, and the second entry grows without end.
"""
LASTING = 0.5
"""Largest fall of the mean slope from one of the last steps to the next: that of a logarithm falls by more."""


def improves_for_ever(written: Written, start: Array, direction: Array) -> bool:
    """Return whether all steps from a feasible point along a direction are feasible and better, and the slope lasts.

    `start`, `direction`, (n,): Start and direction as flat vectors (`cvxpriv.kkt.coordinates`). The direction is also
    tried without its smallest entries.
    """
    largest = float(np.abs(direction).max(initial=0.0))
    if not (np.isfinite(direction).all() and largest > 0.0):
        return False
    direction = direction / largest
    kept = {tuple(np.abs(direction) > noise) for noise in NOISE}
    return any(_endless(written, start, np.where(mask, direction, 0.0)) for mask in kept)


def feasible(written: Written, x: Array, tolerance: float = FEASIBLE) -> bool:
    """Return whether a point satisfies every condition, relative to its row's terms, and has a finite value."""
    return _off(written, x) <= tolerance


def met(written: Written, x: Array) -> bool:
    """Return whether a point satisfies every condition to the rounding of its row's own terms, be they ever so small.

    ``exp(-30) <= 0`` is missed by 1e-13, and by all that stands there: no point satisfies it.
    """
    state = written.state(x)
    known = np.isfinite(written.objective(state))
    return known and bool((written.violation(written.values(state)) <= ROUNDING * written.row_terms(state)).all())


def violations(written: Written, x: Array) -> Array:
    """Return each row's violation at a point, relative to the row's terms."""
    state = written.state(x)
    return np.asarray(written.violation(written.values(state)) / written.sizes(state))


def _off(written: Written, x: Array) -> float:
    """Return the worst violation, relative to its row's terms; infinite where the objective has no finite value."""
    known = np.isfinite(written.objective(written.state(x)))
    return float(violations(written, x).max(initial=0.0)) if known else float("inf")


def _endless(written: Written, start: Array, direction: Array) -> bool:
    size = 1.0 + float(np.abs(start).max(initial=0.0))
    value = written.sign * written.objective(written.state(start))
    slopes, worst = [], 0.0
    for step in STEPS:
        x = start + step * size * direction
        now = written.sign * written.objective(written.state(x))
        if not ((off := _off(written, x)) <= FEASIBLE and now < value):
            return False
        worst = max(worst, off)
        slopes.append((value - now) / (step * size))
    curved = bool(written.flat.atoms) or bool(written.cone.any())
    if curved and worst > SQUARE * (slopes[-1] / float(np.abs(written.cost).max())) ** 2:
        return False
    return all(b >= LASTING * a for a, b in zip(slopes[-4:-1], slopes[-3:], strict=True))
