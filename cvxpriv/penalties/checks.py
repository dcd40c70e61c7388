"""The checks of a penalty: value, proximal step, residual and weak convexity must belong to one P.

A penalty that is not convex must be a sum of p(|x_i|) with p >= 0 that does not fall: only then does a grid on [0, s]
contain the minimiser of each proximal problem. A convex penalty is compared with the points around each step instead.
Sizes of coefficients come from the working interval of `cvxpriv.verify`, 1e-3 to 1e3 unless told otherwise.
"""

from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

import numpy as np

from cvxpriv.divergences.verification.findings import NOT_APPLICABLE, Check, Finding, Verification, judged, run_checks
from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties import step_checks
from cvxpriv.penalties.contract import Penalty, require_penalty
from cvxpriv.penalties.step_checks import CENTERS, PenaltySetting

#: Relative error of differences of p, which lose half the digits.
DIFFERENCES = 1e-6
#: Relative error of second differences: cells are a hundredth of the size.
BENDS = 1e-7


@runtime_checkable
class WithPenaltyMethods(Protocol):
    """An object with the methods of a penalty, whether it inherits from `Penalty` or not."""

    def value(self, theta: Array) -> float: ...

    def prox(self, s: Array, step: float) -> Array: ...

    def residual(self, theta: Array, gradient: Array) -> Array: ...


def verify_penalty(penalty: Penalty, interval: tuple[float, float], seed: int = 0) -> Verification:
    """Return the verification of a penalty.

    >>> import cvxpriv as cpv
    >>> from cvxpriv.penalties import MCP
    >>> cpv.verify(MCP(0.5, 3.0), (1e-2, 10.0)).passed
    True
    """
    require_penalty(penalty)
    setting = PenaltySetting(penalty, interval, seed)
    name = getattr(penalty, "name", repr(penalty))
    return Verification(f"{name}, |theta| in [{interval[0]:g}, {interval[1]:g}]", run_checks(CHECKS, setting))


def _zero_at_zero(setting: PenaltySetting) -> Finding:
    at_zero = np.abs([float(setting.penalty.value(np.zeros(CENTERS)))])
    if setting.penalty.weak_convexity == 0.0 and np.isinf(at_zero).all():
        return Finding(NOT_APPLICABLE, "a set need not hold 0")
    return judged(at_zero, 1e-12, lambda _: {"theta": 0.0}, "no coefficient costs nothing", "subtract P(0)")


def _sum_over_coordinates(setting: PenaltySetting) -> Finding:
    penalty = setting.penalty
    if penalty.weak_convexity == 0.0 and not setting.additive:
        return Finding(NOT_APPLICABLE, "a convex penalty may tie coordinates together")
    whole = float(penalty.value(setting.centers))
    return judged(
        np.array([0.0 if setting.additive else 1.0]),
        0.5,
        lambda _: {"P(theta)": whole, "sum": float(setting.heights(setting.centers).sum())},
        "every coordinate has its own proximal problem",
        "P is not the sum of its coordinates: the block and Newton steps assume that it is",
    )


def _symmetric(setting: PenaltySetting) -> Finding:
    t = setting.sizes
    right, left = setting.heights(t), setting.heights(-t)
    same = np.isclose(left, right, rtol=1e-12, atol=1e-12)
    if setting.penalty.weak_convexity == 0.0 and not same.all():
        return Finding(NOT_APPLICABLE, "a convex penalty may depend on signs")
    return judged(np.where(same, 0.0, 1.0), 0.5, _at(t), "signs cost nothing", "p(-t) is not p(t)")


def _increasing(setting: PenaltySetting) -> Finding:
    t = np.concatenate([[0.0], setting.sizes])
    p = setting.heights(t)
    with np.errstate(invalid="ignore"):  # inf stays inf
        fall = np.nan_to_num(np.maximum(np.maximum(-np.diff(p), -p[1:]), 0.0), nan=0.0, posinf=np.inf)
    return judged(
        fall,
        1e-12 * (1.0 + np.abs(p[1:])),
        _at(t[1:]),
        "larger coefficients never cost less",
        "p is negative or falls as |t| grows: minimisers may lie beyond the centre, and run away",
    )


def _distance(setting: PenaltySetting) -> Finding:
    """Off zero, where p is smooth, the residual is |gradient + P'|."""
    t = setting.sizes
    h = 1e-4 * t
    left, right = (setting.heights(t) - setting.heights(t - h)) / h, (setting.heights(t + h) - setting.heights(t)) / h
    smooth = np.abs(right - left) <= 1e-2 * (1e-9 + np.abs(left) + np.abs(right))
    slope, errors = 0.5 * (left + right), []
    for gradient in (-1.0, 0.3):
        residual = np.abs(setting.penalty.residual(t, np.full(t.size, gradient)))
        errors.append(np.where(smooth, np.abs(residual - np.abs(gradient + slope)), 0.0))
    # A cell with a kink inside it passes for smooth if the slope changes by a hundredth: allow what that moves.
    noise = DIFFERENCES * (1.0 + np.abs(slope)) + np.abs(right - left)
    return judged(
        np.max(errors, axis=0),
        noise,
        _at(t),
        "the residual is the distance to stationary",
        "the residual is not |gradient + p'(t)|: a run would stop too early, or never",
    )


def _convexified(setting: PenaltySetting) -> Finding:
    bend = float(setting.penalty.weak_convexity)
    if not np.isfinite(bend):
        return Finding(NOT_APPLICABLE, "no quadratic makes P convex: every proximal step compares two pieces")
    return judged(
        np.maximum(-setting.bends() - bend, 0.0),
        BENDS * (1.0 + bend),
        _at(setting.sizes),
        "P + (c/2) ||.||^2 is convex",
        "P bends down by more than weak_convexity: proximal steps taken for convex are not; raise it",
    )


def _tight(setting: PenaltySetting) -> Finding:
    bend = float(setting.penalty.weak_convexity)
    if not 0.0 < bend < np.inf:
        return Finding(NOT_APPLICABLE, "there is nothing to lower")
    needed = float(-setting.bends().min())
    return judged(
        np.array([max(bend - needed, 0.0)]),
        1e-3 * bend,
        lambda _: {"needed": needed},
        "no smaller number would do",
        f"{needed:.4g} would do on this interval: convex steps could be longer, or the interval has no bend of P in it",
    )


def _at(t: Array) -> Callable[[int], Mapping[str, float]]:
    return lambda k: {"t": float(t[k])}


CHECKS: tuple[Check[PenaltySetting], ...] = (
    Check("P(0) = 0", _zero_at_zero),
    Check("P is a sum over coordinates", _sum_over_coordinates),
    Check("p is symmetric", _symmetric, needs=("P is a sum over coordinates",)),
    Check("p is not negative and does not fall", _increasing, needs=("P is a sum over coordinates", "p is symmetric")),
    Check("weak convexity is enough", _convexified, needs=("P is a sum over coordinates", "p is symmetric")),
    Check("weak convexity is the least", _tight, needs=("weak convexity is enough",)),
    Check("prox is the least", step_checks.least, barred_by=("p is symmetric", "p is not negative and does not fall")),
    Check("prox of an array", step_checks.whole_step, needs=("P is a sum over coordinates", "p is symmetric")),
    Check("residual is 0 at prox", step_checks.stationary, needs=("prox is the least",)),
    Check("residual is the distance", _distance, needs=("p is symmetric",)),
    Check("DCP form", step_checks.declared, needs=("prox is the least",)),
)
