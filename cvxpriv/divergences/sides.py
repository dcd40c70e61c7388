"""Derivatives of x f(q/x) for any divergence: first and second, in x and in q, exact at zeros.

With t = q/x they are f_x = f(t) - t f'(t), f_xx = t^2 f''(t)/x, f_q = f'(t) and f_qq = f''(t)/x. A divergence that has
`in_p` and `in_q` evaluates its own, in a few numpy calls; for any other they come from f, f' and f''.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cvxpriv.divergences.definition import FDivergence
from cvxpriv.numerics.arrays import Array

Pair = tuple[Array, Array]
Evaluate = Callable[[Array, Array], Pair]

TINY = 1e-300
#: Largest t for which f(t) - t f'(t) of an f that grows like t is not rounding; its value there stands for its limit.
FAR_CANCELLING, FAR = 1e8, 1e150


@dataclass(frozen=True)
class Slopes:
    """Derivatives of x f(q/x), element by element.

    `in_x`, `in_q`: Map (x, q) to the first and second derivative in x, and in q. They warn where they divide by 0:
    callers hold one `np.errstate` around a whole update.
    `steep_x`, `steep_q`: Whether f_x falls to -inf as x falls to 0 at q = 1, and f_q as q falls to 0 at x = 1. Where
    they do, no cell of an optimum is 0.
    """

    in_x: Evaluate
    in_q: Evaluate
    steep_x: bool
    steep_q: bool


def _sides(divergence: FDivergence) -> tuple[Evaluate, Evaluate]:
    """Return the divergence's own two evaluations, or those made of its f, f' and f''."""
    if divergence.in_p is not None and divergence.in_q is not None:
        return divergence.in_p, divergence.in_q
    cancels = divergence.partials is None and 0.0 < abs(divergence.limit_slope) < np.inf
    far = FAR_CANCELLING if cancels else FAR

    def first(x: Array, q: Array) -> Pair:
        x, q = np.broadcast_arrays(x, q)
        if divergence.partials is not None:
            return divergence.gradients(x, q)
        in_x, in_q = divergence.gradients(np.maximum(x, np.maximum(q, TINY) / far), np.maximum(q, x / FAR))
        return np.where(q > 0.0, in_x, divergence.limit_at_zero), np.where(x > 0.0, in_q, divergence.limit_slope)

    def second(x: Array, q: Array) -> Array:
        x, q = np.broadcast_arrays(x, q)
        t = np.clip(q / x, 1.0 / FAR, far)
        curvature = np.asarray(divergence.second_derivative(t))
        return np.asarray(np.where((x > 0.0) & (q > 0.0), np.maximum(curvature, 0.0), 0.0))

    def bounded(x: Array, q: Array) -> Array:
        # The x of the t that `second` takes: its f'' divided by a smaller x would be no derivative at all.
        return np.maximum(x, q / far)

    def in_x(x: Array, q: Array) -> Pair:
        least = bounded(x, q)
        scaled = second(x, q) * (q / least) ** 2 / least
        return first(x, q)[0], np.where(np.isfinite(scaled), scaled, 0.0)

    def in_q(x: Array, q: Array) -> Pair:
        scaled = second(x, q) / bounded(x, q)
        return first(x, q)[1], np.where(np.isfinite(scaled), scaled, 0.0)

    return in_x, in_q


@lru_cache(maxsize=64)
def slopes_of(divergence: FDivergence) -> Slopes:
    """Return the derivatives of a divergence, made once."""
    in_x, in_q = _sides(divergence)
    one, least = np.ones(1), np.full(1, TINY)
    with np.errstate(all="ignore"):
        steep_x = bool(in_x(least, one)[0][0] < -100.0)
        steep_q = bool(in_q(one, least)[0][0] < -100.0)
    return Slopes(in_x, in_q, steep_x, steep_q)
