"""Derivatives of x f(q/x): first and second in x and in q, fast where the paper has a form, exact at zeros.

With t = q/x they are f_x = f(t) - t f'(t), f_xx = t^2 f''(t)/x, f_q = f'(t) and f_qq = f''(t)/x. The four f of the
paper have forms that a few numpy calls evaluate, since the blocks of IAS (20) and (21) live on them; every other f goes
through `FDivergence`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cvxpriv.divergences import FDivergence
from cvxpriv.divergences.builtin import BUILT_IN
from cvxpriv.numerics.arrays import Array

__all__ = ["TINY", "Slopes", "slopes_of"]

Pair = tuple[Array, Array]
Evaluate = Callable[[Array, Array], Pair]

TINY = 1e-300
#: Beyond this t, f(t) - t f'(t) of an f that grows like t is rounding; its value there stands for its limit.
FAR_CANCELLING, FAR = 1e8, 1e150


@dataclass(frozen=True)
class Slopes:
    """Derivatives of x f(q/x), element by element.

    Attributes
    ----------
    in_x, in_q : callable
        (x, q) to the first and second derivative in x, and in q. They warn where they divide by 0: callers hold one
        `np.errstate` around a whole update.
    steep_x, steep_q : bool
        Whether f_x falls to -inf as x falls to 0 at q = 1, and f_q as q falls to 0 at x = 1. Where they do, no cell of
        an optimum is 0.
    form : str
        The name in `FORMS` where the paper's own form is used, which may have closed-form roots; else "".
    """

    in_x: Evaluate
    in_q: Evaluate
    steep_x: bool
    steep_q: bool
    form: str = ""


def _logarithm_in_x(x: Array, q: Array) -> Pair:
    return np.log(x / q) + 1.0, 1.0 / x


def _logarithm_in_q(x: Array, q: Array) -> Pair:
    t = x / q
    return -t, t / q


def _jensen_shannon_in_x(x: Array, q: Array) -> Pair:
    share = x / (x + q)
    return np.log(2.0 * share), (1.0 - share) / x


def _jensen_shannon_in_q(x: Array, q: Array) -> Pair:
    return _jensen_shannon_in_x(q, x)


def _le_cam_in_x(x: Array, q: Array) -> Pair:
    total = x + q
    share = q / total
    square = share * share
    return 0.5 - 2.0 * square, 4.0 * square / total


def _le_cam_in_q(x: Array, q: Array) -> Pair:
    return _le_cam_in_x(q, x)


def _hellinger_in_x(x: Array, q: Array) -> Pair:
    root = np.sqrt(q / x)
    return 1.0 - root, 0.5 * root / x


def _hellinger_in_q(x: Array, q: Array) -> Pair:
    return _hellinger_in_x(q, x)


FORMS: dict[str, tuple[Evaluate, Evaluate]] = {
    "mutual-information": (_logarithm_in_x, _logarithm_in_q),
    "jensen-shannon": (_jensen_shannon_in_x, _jensen_shannon_in_q),
    "le-cam": (_le_cam_in_x, _le_cam_in_q),
    "hellinger": (_hellinger_in_x, _hellinger_in_q),
}


def _of_any(divergence: FDivergence) -> tuple[Evaluate, Evaluate]:
    """The two evaluations for an f that only `FDivergence` knows."""
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


def _form(divergence: FDivergence) -> str:
    """The form that a divergence has, by name and by value: a worker process holds a copy of the built-in one."""
    if divergence.name not in FORMS:
        return ""
    t = np.geomspace(1e-3, 1e3, 31)
    same = np.allclose(divergence.f(t), BUILT_IN[divergence.name].f(t), rtol=1e-13, atol=1e-13)
    return divergence.name if same else ""


@lru_cache(maxsize=64)
def slopes_of(divergence: FDivergence) -> Slopes:
    """Return the derivatives of a divergence, made once."""
    form = _form(divergence)
    in_x, in_q = FORMS[form] if form else _of_any(divergence)
    one, least = np.ones(1), np.full(1, TINY)
    with np.errstate(all="ignore"):
        steep_x = bool(in_x(least, one)[0][0] < -100.0)
        steep_q = bool(in_q(one, least)[0][0] < -100.0)
    return Slopes(in_x, in_q, steep_x, steep_q, form)
