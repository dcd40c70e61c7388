"""From a line of text to an `FDivergence`: derivatives, limits, kinks, convexity, and a DCP form where there is one."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any, Literal, NamedTuple

import mpmath
import numpy as np
import sympy

from cvxpriv.divergences.cancellation import derivative
from cvxpriv.divergences.deadline import DeadlinePassed, deadline
from cvxpriv.divergences.definition import FDivergence
from cvxpriv.divergences.parsing import T, expression_of
from cvxpriv.divergences.patterns import pattern_of
from cvxpriv.divergences.slopes import sides_of
from cvxpriv.divergences.symbolic import DIGITS, array_function, limit, precise, roots
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array

__all__ = ["divergence_of_text"]

#: Where f and f'' are read; an even number of points, so that none of them is 1, where kinks lie.
SAMPLES = np.geomspace(1e-6, 1e6, 240)
#: What counts as zero in `DIGITS` digits: f(1), and f'' beside the size of f.
ZERO = mpmath.mpf(10) ** -30
#: Relative distance from a kink at which slopes are compared, and the least difference that is a kink.
ASIDE, JUMP = mpmath.mpf(10) ** -30, mpmath.mpf(10) ** -9
#: Where the analysis ends; texts that make a divergence take a fraction of a second.
SECONDS = 20.0
#: A larger f'' is not asked for its sign symbolically.
MOST_OPERATIONS = 200


class Kink(NamedTuple):
    """A place where f' jumps, and by how much."""

    at: float
    jump: float


def divergence_of_text(text: str, name: str | None = None) -> FDivergence:
    """Return the divergence of a line of text in t: see `FDivergence.parse`.

    Raises
    ------
    ModelError
        The text is refused, f is no number somewhere, f(1) is not 0, f is not convex, or sympy takes too long.
    """
    try:
        with deadline(SECONDS):
            return _analysed(text, name)
    except DeadlinePassed:
        raise ModelError(
            f"f={text!r} takes more than {SECONDS:g} seconds to differentiate: write it more simply, "
            "or pass it as functions, FDivergence(name, f=..., fprime=...)"
        ) from None


def _analysed(text: str, name: str | None) -> FDivergence:
    f = expression_of(text)
    text = text.strip()
    first = derivative(f)
    second = derivative(first)
    _require_values(text, f)
    _require_zero_at_one(text, f)
    kinks = _kinks(f, first)
    least = _least_curvature(text, f, second, kinks)
    pattern = pattern_of(f)
    forms_of_second = (second, sympy.diff(f, T, 2))  # the sign may show in one of them only
    proved = pattern is not None or (not kinks and any(map(_surely_convex, forms_of_second)))
    convexity: Literal["proved", "sampled"] = "proved" if proved else "sampled"
    at = tuple(kink.at for kink in kinks)
    at_zero, slope_at_infinity = _limit(text, f, -1), _limit(text, f / T, 1)
    in_p, in_q = (None, None) if kinks else sides_of(f, at_zero, slope_at_infinity)
    return FDivergence(
        name or text,
        f=array_function(f),
        fprime=_from_the_right(first, at),
        fsecond=_from_the_right(second, at),
        expression=pattern.form if pattern else None,
        auxiliary=pattern.auxiliary if pattern else None,
        formula=text,
        at_zero=at_zero,
        slope_at_infinity=slope_at_infinity,
        in_p=in_p,
        in_q=in_q,
        kinks=at,
        strictly_convex=least > 0.0,
        convexity=convexity,
    )


def _require_values(text: str, f: sympy.Expr) -> None:
    """Refuse an f that has no value at a sample, or a pole between two of them."""
    value = precise(f)
    with mpmath.workdps(DIGITS):
        for t in (*SAMPLES, 1.0):
            if not mpmath.isfinite(value(mpmath.mpf(t))):
                raise ModelError(f"f={text!r} is no real number at t={t:.6g}: f must be finite for every t > 0")
        for one in f.atoms(sympy.Pow):
            if one.exp.is_number and one.exp.is_negative and one.base.has(T):
                for pole in roots(one.base):
                    raise ModelError(
                        f"f={text!r} divides by zero at t={float(pole):.6g}: f must be finite for every t > 0"
                    )


def _require_zero_at_one(text: str, f: sympy.Expr) -> None:
    at_one = f.subs(T, 1)
    with mpmath.workdps(DIGITS):
        value = precise(f)(mpmath.mpf(1))
        if abs(value) > ZERO:
            constant = sympy.sstr(at_one).replace("E", "e")
            raise ModelError(
                f"f={text!r} has f(1) = {float(value):.6g}, and the divergence of p from itself must be 0: "
                f"subtract it, '{text} - ({constant})'"
            )


def _limit(text: str, of: sympy.Expr, direction: int) -> float:
    found = limit(precise(of), direction)
    if np.isnan(found):
        which = "f(t) at 0" if direction < 0 else "f(t)/t at infinity"
        raise ModelError(
            f"f={text!r} moves too slowly for its limit of {which} to be read off: pass it as functions, with "
            "at_zero= and slope_at_infinity="
        )
    return found


def _kinks(f: sympy.Expr, first: sympy.Expr) -> list[Kink]:
    """Where f' jumps: among the sign changes of what stands in abs, max and min."""
    inner = {one.args[0] for one in f.atoms(sympy.Abs)}
    for one in f.atoms(sympy.Max, sympy.Min):
        inner |= {left - right for left, right in combinations(one.args, 2)}
    slope = precise(first)
    found: dict[float, Kink] = {}
    with mpmath.workdps(2 * DIGITS):
        for place in (root for one in inner for root in roots(one)):
            jump = slope(place * (1 + ASIDE)) - slope(place * (1 - ASIDE))
            if abs(jump) > JUMP * max(1, abs(slope(place * (1 + ASIDE)))):
                found[float(place)] = Kink(float(place), float(jump))
    return [found[at] for at in sorted(found)]


def _least_curvature(text: str, f: sympy.Expr, second: sympy.Expr, kinks: list[Kink]) -> float:
    """Return the sign of the least f'' sampled: 1 or 0. Refuse a negative one, and a slope that falls at a kink."""
    for kink in kinks:
        if kink.jump < 0.0:
            raise ModelError(
                f"f={text!r} is not convex: its slope falls by {-kink.jump:.6g} at t={kink.at:.6g}. "
                "Only a convex f makes a divergence"
            )
    value, curvature = precise(f), precise(second)
    least = 1.0
    with mpmath.workdps(DIGITS):
        for t in map(mpmath.mpf, SAMPLES):
            found, noise = curvature(t), ZERO * max(1, abs(value(t))) / t**2
            if not found >= -noise:
                raise ModelError(
                    f"f={text!r} is not convex: f''({float(t):.6g}) = {float(found):.6g}. "
                    "Only a convex f makes a divergence"
                )
            least = min(least, 1.0 if found > 0 else 0.0)
    return least


def _surely_convex(second: sympy.Expr) -> bool:
    """Whether sympy sees from the form of f'' that it is not negative."""
    if second.count_ops() > MOST_OPERATIONS:
        return False
    return bool(second.is_nonnegative or sympy.together(second).is_nonnegative)


def _from_the_right(derivative: sympy.Expr, kinks: tuple[float, ...]) -> Callable[[Array], Array]:
    """Return a derivative that at a kink is the one from the right."""
    values = array_function(derivative)
    if not kinks:
        return values
    at = np.array(kinks)

    def shifted(t: Array) -> Array:
        t = np.asarray(t, dtype=float)
        near: Any = np.isclose(t[..., None], at, rtol=1e-15, atol=0.0).any(axis=-1)
        return values(np.where(near, t * (1.0 + 1e-12), t))

    return shifted
