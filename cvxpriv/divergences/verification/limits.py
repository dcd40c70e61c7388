"""Checks of f(0+) and of the slope of f at infinity: the price of a cell where q, or p, is 0."""

from __future__ import annotations

import numpy as np

from cvxpriv.divergences.verification.findings import FAILS, HOLDS, Finding
from cvxpriv.divergences.verification.setting import DivergenceSetting
from cvxpriv.numerics.arrays import Array

#: Powers of ten up to where squares still have a value.
DECADES = np.array([1, 2, 3, 6, 9, 12, 25, 50, 75, 100, 125, 150])
#: Allowed error of a limit that was given, and of one that was read off at 1e12.
GIVEN, READ_OFF = 1e-6, 1e-5


def at_zero(setting: DivergenceSetting) -> Finding:
    """The declared f(0+) is the limit of f."""
    f = setting.f
    with np.errstate(all="ignore"):
        return _limit(setting.values(10.0**-DECADES), f.limit_at_zero, "at_zero", f.at_zero is not None)


def at_infinity(setting: DivergenceSetting) -> Finding:
    """The declared slope at infinity is the limit of f(t)/t."""
    f, t = setting.f, 10.0**DECADES
    with np.errstate(all="ignore"):
        return _limit(setting.values(t) / t, f.limit_slope, "slope_at_infinity", f.slope_at_infinity is not None)


def _limit(values: Array, claimed: float, argument: str, given: bool) -> Finding:
    sign = -1 if argument == "at_zero" else 1
    usable = np.flatnonzero(np.isfinite(values))
    if usable.size < 2 and np.isposinf(claimed) and np.isposinf(values).any():
        return Finding(HOLDS, f"the limit is inf: f outgrows doubles before t = {10.0 ** (sign * DECADES[1]):g}", 0.0)
    if usable.size < 2:
        return Finding(FAILS, f"f has no value near the limit: give {argument} and mend f", float("nan"))
    last, earlier = usable[-1], usable[usable.size // 2]
    found = float(values[last])
    point = {"t": float(10.0 ** (sign * DECADES[last]))}
    source = "as given" if given else "as read off"
    grows = abs(found) > 1e12 or abs(found - values[earlier]) > 1e-3 * max(1.0, abs(found))
    tolerance = GIVEN if given else READ_OFF
    if np.isinf(claimed):
        right, error = bool(grows and found > 0.0 and claimed > 0.0), 0.0
    else:
        error = abs(found - claimed)
        right = bool(error <= tolerance * (1.0 + abs(claimed)))
    if right:
        return Finding(HOLDS, f"the limit is {claimed:.6g}, {source}", error, point)
    what = "f(t)" if argument == "at_zero" else "f(t)/t"
    course = (
        ("grows" if found > 0.0 else "falls") + " without end"
        if grows and abs(found) > 1.0
        else f"is {found:.6g} there"
    )
    remedy = "correct" if given else "pass"
    return Finding(
        FAILS, f"{argument} is {claimed:.6g} {source}, but {what} {course}: {remedy} {argument}", error, point
    )
