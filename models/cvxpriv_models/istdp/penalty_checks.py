"""`cpv.verify` of a penalty: are its value, its proximal step, its residual and its weak convexity those of one P?

Sizes of coefficients come from the working interval of `cvxpriv.verify`, 1e-3 to 1e3 unless told otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

import numpy as np

from cvxpriv.divergences.verification.dispatch import Options, verification_of
from cvxpriv.divergences.verification.findings import NOT_APPLICABLE, Check, Finding, Verification, judged, run_checks
from cvxpriv.numerics.arrays import Array

from . import prox_checks
from .penalties import Penalty, require_penalty
from .penalty_setting import PenaltySetting

__all__ = ["CHECKS", "WithPenaltyMethods", "verify_penalty"]

#: Differences of p lose half the digits.
DIFFERENCES = 1e-6
#: Of differences, second ones: cells are a hundredth of the size.
BENDS = 1e-7


@runtime_checkable
class WithPenaltyMethods(Protocol):
    """Whatever has the methods of a penalty, whether it inherits from `Penalty` or not."""

    def value(self, theta: Array) -> float:
        """See `Penalty.value`."""
        ...

    def prox(self, s: Array, step: float) -> Array:
        """See `Penalty.prox`."""
        ...

    def residual(self, theta: Array, gradient: Array) -> Array:
        """See `Penalty.residual`."""
        ...


def verify_penalty(penalty: Penalty, interval: tuple[float, float], seed: int = 0) -> Verification:
    """Return the verification of a penalty.

    Raises
    ------
    ModelError
        It lacks a part of the contract; the message names which.

    Examples
    --------
    >>> import cvxpriv as cpv
    >>> from cvxpriv_models.istdp import MCP
    >>> cpv.verify(MCP(0.5, 3.0), (1e-2, 10.0)).passed
    True
    """
    require_penalty(penalty)
    setting = PenaltySetting(penalty, interval, seed)
    name = getattr(penalty, "name", repr(penalty))
    return Verification(f"{name}, |theta| in [{interval[0]:g}, {interval[1]:g}]", run_checks(CHECKS, setting))


@verification_of.register(WithPenaltyMethods)
def _(target: Penalty, options: Options) -> Verification:
    return verify_penalty(target, options.interval, options.seed)


def _zero_at_zero(setting: PenaltySetting) -> Finding:
    at_zero = np.abs([float(setting.penalty.value(np.zeros(3)))])
    return judged(at_zero, 1e-12, lambda _: {"theta": 0.0}, "no coefficient costs nothing", "subtract P(0)")


def _sum_over_coordinates(setting: PenaltySetting) -> Finding:
    whole = float(setting.penalty.value(setting.centers))
    apart = float(setting.heights(setting.centers).sum())
    return judged(
        np.array([abs(whole - apart)]),
        1e-12 * (1.0 + abs(whole)),
        lambda _: {"P(theta)": whole, "sum": apart},
        "every coordinate has its own proximal problem",
        "P is not the sum of its coordinates: the block and Newton steps assume that it is",
    )


def _symmetric(setting: PenaltySetting) -> Finding:
    t = setting.sizes
    right = setting.heights(t)
    gap = np.abs(right - setting.heights(-t))
    return judged(gap, 1e-12 * (1.0 + np.abs(right)), _at(t), "signs cost nothing", "p(-t) is not p(t)")


def _increasing(setting: PenaltySetting) -> Finding:
    t = np.concatenate([[0.0], setting.sizes])
    p = setting.heights(t)
    fall = np.maximum(np.maximum(-np.diff(p), -p[1:]), 0.0)
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
        residual = np.asarray(setting.penalty.residual(t, np.full(t.size, gradient)))
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
    Check("p is not negative and does not fall", _increasing, needs=("P is a sum over coordinates",)),
    Check("weak convexity is enough", _convexified, needs=("P is a sum over coordinates",)),
    Check("weak convexity is the least", _tight, needs=("weak convexity is enough",)),
    Check("prox is the least", prox_checks.least, needs=("p is symmetric", "p is not negative and does not fall")),
    Check("prox of an array", prox_checks.whole_step),
    Check("residual is 0 at prox", prox_checks.stationary, needs=("prox is the least",)),
    Check("residual is the distance", _distance, needs=("p is symmetric",)),
    Check("DCP form", prox_checks.declared, needs=("prox is the least",)),
)
