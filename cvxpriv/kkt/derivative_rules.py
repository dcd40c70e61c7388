"""Derivatives of scalar functions, elementwise, as closed intervals, at and beyond the boundary of their domain.

A rule maps argument values to one ``(low, high)`` pair of arrays for each argument: equal where the function is
differentiable, a proper interval at a kink, and equal infinities where a one-sided slope is infinite (``entr`` at 0).
Left of its domain a function is taken as at the boundary; whether that is allowed is the caller's business.
"""

from collections.abc import Callable, Sequence
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.atoms.elementwise.power import Power

from cvxpriv.numerics.arrays import Array

Interval = tuple[Array, Array]
Floor = float | Array
Rule = Callable[[cp.Expression, Sequence[Array], Floor], list[Interval]]


def _smooth(slope: Callable[[Array, Floor], Array]) -> Rule:
    """Return the rule of a function of one argument that has a slope everywhere, given a floor for its argument."""

    def rule(_: cp.Expression, args: Sequence[Array], floor: Floor) -> list[Interval]:
        found = slope(args[0], floor)
        return [(found, found)]

    return rule


def _above(x: Array, floor: Floor) -> Array:
    """Return the argument of a function whose domain is x >= 0, lifted to ``floor``."""
    return np.maximum(np.maximum(x, 0.0), floor)


def _relative_entropy(_: cp.Expression, args: Sequence[Array], floor: Floor) -> list[Interval]:
    """``x log(x/y)``: slopes -inf and 0 at x = 0 < y; at x = y = 0 any pair with the second at most 0 bounds them."""
    x, y = args
    u, v = _above(x, floor), _above(y, floor)
    apex = (x <= 0) & (y <= 0)
    log_ratio = np.where(apex, 0.0, np.log(u) - np.log(v))
    slope = np.where(apex, 0.0, -np.where(u == 0, 0.0, u / v))
    return [
        (np.where(apex, -np.inf, log_ratio + 1.0), np.where(apex, np.inf, log_ratio + 1.0)),
        (np.where(apex, -np.inf, slope), slope),
    ]


def _kl_div(atom: cp.Expression, args: Sequence[Array], floor: Floor) -> list[Interval]:
    first, second = _relative_entropy(atom, args, floor)
    return [(first[0] - 1.0, first[1] - 1.0), (second[0] + 1.0, second[1] + 1.0)]


def _power(atom: cp.Expression, args: Sequence[Array], floor: Floor) -> list[Interval]:
    """``x^p``; for p > 1 other than powers of two cvxpy's function ends at zero; 0 < p < 1 is steep there."""
    x, p = args[0], float(atom.p.value)
    if p > 1.0:
        slope = p * np.power(np.maximum(x, 0.0) if needs_nonnegative(p) else x, p - 1.0)
    else:
        slope = np.full_like(x, p) if p in (0.0, 1.0) else p * np.power(_above(x, floor), p - 1.0)
    return [(slope, slope)]


def _logistic(x: Array) -> Array:
    tail = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1.0, tail) / (1.0 + tail))


def _abs(_: cp.Expression, args: Sequence[Array], floor: Floor) -> list[Interval]:
    x = args[0]
    return [(np.where(x > 0, 1.0, -1.0), np.where(x < 0, -1.0, 1.0))]


def _huber(atom: cp.Expression, args: Sequence[Array], floor: Floor) -> list[Interval]:
    bend = float(atom.M.value)
    slope = 2.0 * np.clip(args[0], -bend, bend)
    return [(slope, slope)]


def _extreme(args: Sequence[Array], sign: float) -> list[Interval]:
    """Return slopes of the largest (sign 1) or smallest argument: 1 where it stands alone, [0, 1] where it is tied."""
    shape = np.broadcast_shapes(*(np.shape(x) for x in args))
    stacked = sign * np.stack([np.broadcast_to(x, shape) for x in args])
    top = stacked == stacked.max(axis=0)
    alone = top & (top.sum(axis=0) == 1)
    return [(alone[k].astype(float), top[k].astype(float)) for k in range(len(args))]


ELEMENTWISE: dict[type, Rule] = {
    cp.entr: _smooth(lambda x, floor: -np.log(_above(x, floor)) - 1.0),
    cp.log: _smooth(lambda x, floor: 1.0 / _above(x, floor)),
    cp.log1p: _smooth(lambda x, floor: 1.0 / _above(1.0 + x, floor)),
    cp.rel_entr: _relative_entropy,
    cp.kl_div: _kl_div,
    Power: _power,
    cp.exp: _smooth(lambda x, _: np.exp(x)),
    cp.logistic: _smooth(lambda x, _: _logistic(x)),
    cp.xexp: _smooth(lambda x, _: (1.0 + x) * np.exp(x)),
    cp.abs: _abs,
    cp.huber: _huber,
    cp.maximum: lambda _, args, floor: _extreme(args, 1.0),
    cp.minimum: lambda _, args, floor: _extreme(args, -1.0),
}


def elementwise_rule(atom: cp.Expression) -> Rule | None:
    """Return the rule of an elementwise atom, or None."""
    rule = ELEMENTWISE.get(type(atom))
    if rule is None and isinstance(atom, Power):
        return _power
    return rule


def elementwise_key(atom: cp.Expression) -> tuple[Any, ...] | None:
    """Return a key that elementwise atoms of the same function share; None for an atom without a rule."""
    if elementwise_rule(atom) is None:
        return None
    number = atom.p if isinstance(atom, Power) else getattr(atom, "M", None)
    return type(atom), len(atom.args), None if number is None else float(number.value)


def domain_shortfall(atom: cp.Expression, args: Sequence[Array]) -> float:
    """Return how far the arguments lie outside the atom's domain, 0 inside."""
    kind = type(atom)
    if kind in (cp.entr, cp.log, cp.rel_entr, cp.kl_div):
        values = list(args)
    elif kind is cp.log1p:
        values = [1.0 + args[0]]
    elif kind is cp.xexp or (isinstance(atom, Power) and needs_nonnegative(float(atom.p.value))):
        values = [args[0]]
    else:
        return 0.0
    return max(0.0, *(float(-np.min(value, initial=0.0)) for value in values))


def needs_nonnegative(p: float) -> bool:
    """Return whether cvxpy's ``x^p`` has the domain x >= 0: all exponents but 0, 1 and the powers of two."""
    even = p >= 2.0 and p == int(p) and int(p) & (int(p) - 1) == 0
    return p not in (0.0, 1.0) and not even
