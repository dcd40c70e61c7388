"""The proximal problem of each penalty as a solver sees it: one convex problem, or two convex pieces to compare.

Up to the step 1 / weak_convexity, ||t - s||^2 / 2 + step P(t) is convex, but not as it stands by the rules of DCP: it
is a difference. Rewritten without one it is DCP, and DPP with `step` in the weights alone (ERRATA ISTDP 3). Beyond that
step it is not convex. By coordinate its least then lies on one of two pieces of |t|, on each of which it is convex, or
concave and replaced by its chord, which has the same least.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import singledispatch

import cvxpy as cp
import numpy as np

from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array

from .penalties import MCP, SCAD, CappedL1, ElasticNet

__all__ = ["Pieces", "ProxForm", "prox_form"]

Weights = Mapping[str, float]


@dataclass(frozen=True)
class Pieces:
    """Two convex problems in r = |t| >= 0 for a coordinate with centre s.

    near: bend r^2 / 2 + (slope - |s|) r over r <= near_end; far: r^2 / 2 - |s| r + plateau over r >= far_start.
    """

    bend: float
    slope: float
    near_end: float
    far_start: float
    plateau: float

    def heights(self, near: Array, far: Array, s: Array) -> tuple[Array, Array]:
        """Return the objectives of the two pieces, coordinate by coordinate."""
        size = np.abs(s)
        return 0.5 * self.bend * near**2 + (self.slope - size) * near, 0.5 * far**2 - size * far + self.plateau

    def leasts(self, s: Array) -> tuple[Array, Array]:
        """Return the least of each piece, coordinate by coordinate."""
        size = np.abs(s)
        if self.bend > 0.0:
            near = np.clip((size - self.slope) / self.bend, 0.0, self.near_end)
        else:
            near = np.where(size > self.slope, self.near_end, 0.0)
        return near, np.maximum(size, self.far_start)


@dataclass(frozen=True)
class ProxForm:
    """How a penalty's proximal problem is declared.

    Attributes
    ----------
    weights : callable
        A step to the values, >= 0, of the Parameters of `convex`, by name.
    convex : callable
        (t, the Parameters by name) to step P(t) + ||t||^2 / 2 as a convex expression, right up to 1 / weak_convexity.
        None: the problem is convex at no step.
    pieces : callable
        A step beyond that to its `Pieces`. None: there is none beyond.
    """

    weights: Callable[[float], Weights]
    convex: Callable[[cp.Expression, Mapping[str, cp.Parameter]], cp.Expression] | None = None
    pieces: Callable[[float], Pieces] | None = None


@singledispatch
def prox_form(penalty: object) -> ProxForm:
    """Return the proximal form of a penalty; register a function for the class of your own.

    Raises
    ------
    ModelError
        None is registered for its class.
    """
    raise ModelError(
        f"penalty={penalty!r} has no DCP form: solve with engine='closed_form', or register one with "
        "cvxpriv_models.istdp.prox_forms.prox_form"
    )


@prox_form.register
def _(penalty: MCP) -> ProxForm:
    lam, alpha = penalty.lam, penalty.alpha

    def convex(t: cp.Expression, weight: Mapping[str, cp.Parameter]) -> cp.Expression:
        beyond = cp.sum_squares(cp.pos(cp.abs(t) - alpha * lam))
        return (
            0.5 * weight["square"] * cp.sum_squares(t) + 0.5 * weight["bend"] * beyond + weight["shrink"] * cp.norm1(t)
        )

    return ProxForm(
        lambda step: {"square": max(1.0 - step / alpha, 0.0), "bend": step / alpha, "shrink": step * lam},
        convex,
        # Concave up to alpha lam, so least at an end: the chord from 0 to there.
        lambda step: Pieces(0.0, 0.5 * lam * (alpha + step), alpha * lam, alpha * lam, 0.5 * step * alpha * lam**2),
    )


@prox_form.register
def _(penalty: SCAD) -> ProxForm:
    lam, a = penalty.lam, penalty.a

    def convex(t: cp.Expression, weight: Mapping[str, cp.Parameter]) -> cp.Expression:
        # huber(t, lam) = t^2 - (|t| - lam)_+^2 takes the concave part of P out of the square.
        return (
            0.5 * weight["square"] * cp.sum_squares(t)
            + 0.5 * weight["bend"] * cp.sum(cp.huber(t, lam) + cp.square(cp.pos(cp.abs(t) - a * lam)))
            + weight["shrink"] * cp.norm1(t)
        )

    return ProxForm(
        lambda step: {"square": max(1.0 - step / (a - 1.0), 0.0), "bend": step / (a - 1.0), "shrink": step * lam},
        convex if lam > 0.0 else _square,  # huber takes no width 0
        lambda step: Pieces(1.0, step * lam, lam, a * lam, 0.5 * step * lam**2 * (a + 1.0)),
    )


@prox_form.register
def _(penalty: CappedL1) -> ProxForm:
    lam, cap = penalty.lam, penalty.cap
    return ProxForm(
        lambda step: {"square": 1.0},
        _square if lam == 0.0 else None,
        lambda step: Pieces(1.0, step * lam, cap, cap, step * lam * cap),
    )


@prox_form.register
def _(penalty: ElasticNet) -> ProxForm:
    lam, ratio = penalty.lam, penalty.ratio

    def convex(t: cp.Expression, weight: Mapping[str, cp.Parameter]) -> cp.Expression:
        return 0.5 * weight["square"] * cp.sum_squares(t) + weight["shrink"] * cp.norm1(t)

    return ProxForm(lambda step: {"square": 1.0 + step * lam * (1.0 - ratio), "shrink": step * lam * ratio}, convex)


def _square(t: cp.Expression, weight: Mapping[str, cp.Parameter]) -> cp.Expression:
    """Without a penalty; the other Parameters that a family has are left out."""
    return 0.5 * cp.sum_squares(t)
