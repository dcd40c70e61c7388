"""Analysis of a line of text: f, derivatives, limits, kinks, convexity and DCP form, all that a divergence needs."""

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import mpmath
import numpy as np

from cvxpriv.divergences.atoms import Total
from cvxpriv.divergences.breakpoints import Branches, branches_of, roots_of
from cvxpriv.divergences.convexity import Convexity, bends, convexity_of
from cvxpriv.divergences.curves import AtomCurve, Curve
from cvxpriv.divergences.derivation import derived
from cvxpriv.divergences.jets import DIGITS, MANY_DIGITS, jet, value_at
from cvxpriv.divergences.limits import limit_of_tree
from cvxpriv.divergences.parsing import Line, line_of
from cvxpriv.divergences.spellings import spread
from cvxpriv.divergences.tree import ONE, Node, Product, Sum, T, add, constant, linear, multiply, number, power, scaled
from cvxpriv.errors import ModelError

#: Points at which f must have a value.
SAMPLES = np.geomspace(1e-6, 1e6, 48)
#: Size that counts as zero in `DIGITS` digits, and the least rise of f' that is a kink.
ZERO, JUMP = mpmath.mpf(10) ** -30, mpmath.mpf(10) ** -9
#: Powers of ten of an f around t = 1 that need no other unit, and the largest of a unit, which is a double.
ORDINARY, MOST_POWER = 3, 250


@dataclass(frozen=True)
class Analysis:
    """The analysis of an f that was typed as text.

    `formula`: The text, with the multiple of t - 1 that was taken away.
    `convexity`: {"proved", "not refuted"}.
    `notes`: Remarks on how convexity is known, the parts of the form, and the changes that were made.
    """

    formula: str
    curve: Curve
    kinks: tuple[float, ...]
    strictly_convex: bool
    convexity: Literal["proved", "not refuted"]
    notes: tuple[str, ...]


def analysed(text: str) -> Analysis:
    """Return the analysis of a line of text in t: see `FDivergence.parse`.

    >>> analysed("abs(t-1)/2").kinks
    (1.0,)
    """
    line = line_of(text)
    text = text.strip()
    _require_values(text, line)
    unit = _unit(line.f)
    line = replace(line, f=multiply(number(1 / unit), line.f))
    branches = branches_of(line.f)
    _require_bend(text, branches)
    _require_zero_at_one(text, line.f, unit)
    steepness = _slope_at_one(line.f)
    notes: tuple[str, ...] = ()
    if steepness:
        taken = f"{steepness * float(unit):.17g}*(t - 1)"
        text, notes = (
            f"{text} - {taken}",
            (f"{taken} was taken from f, which changes no divergence: f is least at t = 1",),
        )
        branches = _less(branches, number(steepness))
        line = replace(line, f=_tilted(line.f, number(steepness)))
    atom = derived(line.f, branches)
    found = Convexity("proved") if atom is not None else convexity_of(branches)
    if found.verdict == "refuted":
        raise _not_convex(text, found, branches, unit)
    times = float(unit)
    numbers = times * _limit(text, line.f, -1), times * _limit(text, line.f, 1), line.f, times
    if atom is not None and unit != 1:
        atom = Total(((times, atom),))
    curve = Curve(*numbers) if atom is None else AtomCurve(*numbers, atom)
    with mpmath.workdps(DIGITS):
        kinks = tuple(float(t) for index, t in enumerate(branches.at) if branches.jump(index) > JUMP)
    return Analysis(
        text,
        curve,
        kinks,
        all(bends(branches)),
        "proved" if found.verdict == "proved" else "not refuted",
        (*_how(found, curve), *notes),
    )


def _how(found: Convexity, curve: Curve) -> tuple[str, str]:
    """Return how convexity is known, and the parts that blocks are made of."""
    if isinstance(curve, AtomCurve):
        cones = ", ".join(sorted(curve.atom.cones)) or "linear"
        return "convexity is proved by composition rules", f"the DCP form is derived from f: {cones} cones"
    proof = (
        f"convexity is proved by interval arithmetic on f'', {found.cells:,} intervals"
        if found.verdict == "proved"
        else f"convexity is not refuted: of {found.cells:,} intervals none is known to hold a point where f'' < 0"
    )
    return proof, "no DCP form is derived: blocks take adaptive tangents"


def _require_values(text: str, line: Line) -> None:
    """Refuse an f that divides by zero, or has no value at a sample."""
    for node in line.denominators:
        for base in (base for base, _ in node.factors) if isinstance(node, Product) else (node,):
            roots = roots_of(base)
            for pole in (*roots.at, *(t for t in roots.touching if abs(value_at(base, t)) < 1e-9)):
                raise ModelError(
                    f"f={text!r} divides by zero at t={float(pole):.6g}: f must be finite for every t > 0, also where "
                    "what stands above is zero, too"
                )
    for t in (*SAMPLES, 1.0):
        if not mpmath.isfinite(value_at(line.f, t)):
            raise ModelError(f"f={text!r} is no real number at t={t:.6g}: f must be finite for every t > 0")


def _unit(f: Node) -> Fraction:
    """Return the power of ten by which f is divided first: what counts as zero is meant for a size of 1."""
    for points in ((0.25, 0.5, 2.0, 4.0), (1e-3, 1e3)):
        size = max(abs(value_at(f, t)) for t in points)
        if size >= mpmath.mpf(10) ** -MOST_POWER:
            power_of_ten = int(min(mpmath.nint(mpmath.log10(size)), MOST_POWER))
            return Fraction(10) ** power_of_ten if abs(power_of_ten) > ORDINARY else Fraction(1)
    return Fraction(1)


def _require_zero_at_one(text: str, f: Node, unit: Fraction) -> None:
    value = value_at(f, 1)
    if abs(value) > ZERO:
        value *= unit.numerator / mpmath.mpf(unit.denominator)
        at_one = re.sub(r"\bt\b", "1", text)
        raise ModelError(
            f"f={text!r} has f(1) = {float(value):.6g}, and the divergence of p from itself must be 0: "
            f"subtract it, '{text} - ({at_one})'"
        )


def _require_bend(text: str, branches: Branches) -> None:
    with mpmath.workdps(DIGITS):
        kinked = any(abs(branches.jump(index)) > ZERO for index in range(len(branches.at)))
    if not kinked and not any(bends(branches)):
        raise ModelError(
            f"f={text!r} is a straight line: its divergence is the same for any two distributions, so it measures "
            "nothing. Write an f that bends somewhere"
        )


def _slope_at_one(f: Node) -> float:
    """Return the c of the c (t - 1) that is taken away: f' at 1, where the text holds a multiple of t."""
    if not _holds_t(f):
        return 0.0
    with mpmath.workdps(DIGITS):
        left, right = (jet(f, mpmath.mpf(1), MANY_DIGITS, side=side)[1] for side in (-1, 1))
        nearest = left if left > 0 else right if right < 0 else mpmath.mpf(0)
        return float(nearest) if abs(nearest) > JUMP else 0.0


def _holds_t(f: Node) -> bool:
    """Whether a multiple of t is one of the terms, also of a sum that stands times a number, as in pi*(t - 1)."""
    for term in linear(f):
        factors = term.factors if isinstance(term, Product) else ((term, ONE),)
        moving = [factor for factor in factors if not constant(factor[0])]
        if len(moving) == 1 and moving[0][1] == ONE:
            base = moving[0][0]
            if base == T or (isinstance(base, Sum) and _holds_t(base)):
                return True
    return False


def _tilted(f: Node, c: Node) -> Node:
    return add(f, multiply(scaled(-1, c), add(T, number(-1))))


def _less(branches: Branches, c: Node) -> Branches:
    return replace(branches, trees=tuple(_tilted(tree, c) for tree in branches.trees))


def _limit(text: str, f: Node, direction: int) -> float:
    found = limit_of_tree(f if direction < 0 else spread(power(T, number(-1)), f), direction)
    if np.isnan(found):
        which = "f(t) at 0" if direction < 0 else "f(t)/t at infinity"
        raise ModelError(
            f"f={text!r} moves too slowly for its limit of {which} to be read off: pass it as functions, with "
            "at_zero= and slope_at_infinity="
        )
    return found


def _not_convex(text: str, found: Convexity, branches: Branches, unit: Fraction) -> ModelError:
    t = _written(found.t)
    at_kink = any(one == found.t for one in branches.at)
    size = _written(abs(found.curvature) * mpmath.mpf(unit.numerator) / unit.denominator)
    what = (
        f"f'' < 0 from t={t} on"
        if mpmath.isinf(found.curvature)
        else f"its slope falls by {size} at t={t}"
        if at_kink
        else f"f''({t}) = -{size}"
    )
    return ModelError(f"f={text!r} is not convex: {what}. Only a convex f makes a divergence")


def _written(value: Any) -> str:
    return f"{float(value):.6g}" if value == 0 or 0.0 < abs(float(value)) < np.inf else str(mpmath.nstr(value, 6))
