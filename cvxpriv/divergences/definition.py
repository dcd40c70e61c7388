"""The definition of an f-divergence: one convex f, and everything the models need of p f(q/p).

The argument is t = q/p. Textbooks often use p/q, under which the same names stand for other functions: for that reason
the formula is printed beside each name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import cvxpy as cp
import numpy as np

from cvxpriv.divergences.analysis import analysed
from cvxpriv.divergences.curves import AtomCurve
from cvxpriv.divergences.limits import limit_of
from cvxpriv.errors import DataError, ModelError, shown
from cvxpriv.numerics.arguments import real_numbers
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.doors import door

Function = Callable[[Array], Array]
Partials = Callable[[Array, Array], tuple[Array, Array]]
#: Maps (p, q) to the first and the second derivative of p f(q/p) in one of them.
Side = Callable[[Array, Array], tuple[Array, Array]]
Auxiliary = Callable[[Array, Array], tuple[Array, ...]]
#: Maps (P, Q) to sum_i P_i f(Q_i / P_i) as a convex cvxpy expression, and the constraints that define it.
DCPForm = Callable[[cp.Expression, cp.Expression], tuple[cp.Expression, list[cp.Constraint]]]

#: Relative steps of central differences that balance rounding against truncation, for f' and f''.
STEP_FIRST, STEP_SECOND = np.finfo(float).eps ** (1 / 3), np.finfo(float).eps ** (1 / 4)
#: Powers of ten at which limits that are not given are read off, where f may still cube its argument; and relative
#: differences that count as zero.
DISTANCES, SETTLED = (6, 12, 24, 48, 96), 1e-12


@door
@dataclass(frozen=True)
class FDivergence:
    """The divergence D_f(p, q) = sum_i p_i f(q_i / p_i), f convex on (0, inf) with f(1) = 0.

    Attributes
    ----------
    name : str
    f : callable
        Maps an array of t > 0 to f(t), of the same shape.
    fprime, fsecond : callable, optional
        f' and f''; at a kink f' is the derivative from the right. None: central differences, good to about 1e-10 and
        1e-7 of the scale of f.
    expression : callable, optional
        Maps (P, Q), two cvxpy expressions of one shape, to (expression, constraints): the DCP form of sum p f(q/p).
        Weights enter by homogeneity: pass ``W*P`` and ``W*Q``. None: adaptive tangents replace it.
    formula : str
        f as text in t, for readers.
    at_zero : float, optional
        f(0+), which may be inf.
    slope_at_infinity : float, optional
        lim f(t)/t for t to infinity, which may be inf: the price of q where p = 0.
    partials : callable, optional
        Maps (p, q) to the derivatives of p f(q/p) in p and in q. None: f(t) - t f'(t) and f'(t). A form that divides by
        neither p nor q stays exact where one of them is 0.
    in_p, in_q : callable, optional
        Maps (p, q) to the first and the second derivative of p f(q/p) in p, and in q, for Newton steps, in one pass; at
        a kink they are those from the right in t. `parse` makes them.
    kinks : tuple of float
        Places where f' jumps.
    strictly_convex : bool
        Whether f is strictly convex on (0, inf). Where it is not, minimisers need not be unique.
    auxiliary : callable, optional
        Maps flat (p, q) to the values of the variables that `expression` adds, in the order in which it makes them.
        None: where there are any, a small problem finds them.
    convexity : {"declared", "proved", "not refuted"}
        Whether f is known to be convex: its author declares it, it is proved, or no tested point refutes it.
    notes : tuple of str
        Remarks of the analysis of a typed f: how convexity is known, the parts of its DCP form, and the changes that
        were made.

    Examples
    --------
    >>> import cvxpriv as cpv
    >>> quartic = cpv.FDivergence("quartic", f=lambda t: (t - 1.0) ** 4, fprime=lambda t: 4.0 * (t - 1.0) ** 3)
    >>> round(quartic.between(np.array([0.5, 0.5]), np.array([0.25, 0.75])), 6)
    0.0625
    """

    name: str
    f: Function
    fprime: Function | None = None
    fsecond: Function | None = None
    expression: DCPForm | None = None
    formula: str = ""
    at_zero: float | None = None
    slope_at_infinity: float | None = None
    partials: Partials | None = None
    in_p: Side | None = None
    in_q: Side | None = None
    kinks: tuple[float, ...] = ()
    strictly_convex: bool = True
    auxiliary: Auxiliary | None = None
    convexity: Literal["declared", "proved", "not refuted"] = "declared"
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ModelError(f"name={self.name!r} is not a name: pass a non-empty string, for example 'my-divergence'")
        for label in ("f", "fprime", "fsecond", "expression", "partials", "in_p", "in_q", "auxiliary"):
            value = getattr(self, label)
            if not callable(value) and (label == "f" or value is not None):
                optional = "" if label == "f" else ", or leave it out"
                raise ModelError(
                    f"{label}={value!r} of divergence {self.name!r} is not callable: pass a function{optional}"
                )

    @classmethod
    def parse(cls, text: str, name: str | None = None) -> FDivergence:
        """Return the divergence of one line of text in t.

        The text becomes a tree, and everything follows from it: derivatives, f(0+), the slope at infinity, kinks,
        convexity, and the DCP form where rules of composition give one; otherwise blocks take tangents. `notes` says
        which. The text is never executed.

        Parameters
        ----------
        text : str
            f(t) with t, pi, e, numbers, + - * / **, and log, exp, sqrt, abs, pos, max, min.
        name : str, optional
            The name. None: the text.

        Raises
        ------
        ModelError
            The text is refused, f has no value somewhere on (0, inf), f(1) is not 0, f is not convex, or it is
            a straight line.

        Examples
        --------
        >>> f = FDivergence.parse("t*log(2*t/(t+1)) + log(2/(t+1))", name="mine")
        >>> f.convexity, f.strictly_convex, f.notes[1]
        ('proved', True, 'the DCP form is derived from f: exponential cones')
        >>> round(f.limit_at_zero, 6)
        0.693147
        """
        found = analysed(text)
        curve = found.curve
        return cls(
            name or found.formula,
            f=curve.value,
            fprime=curve.first,
            fsecond=curve.second,
            expression=curve.form if isinstance(curve, AtomCurve) else None,
            auxiliary=curve.auxiliary if isinstance(curve, AtomCurve) else None,
            formula=found.formula,
            at_zero=curve.at_zero,
            slope_at_infinity=curve.slope_at_infinity,
            in_p=curve.in_p,
            in_q=curve.in_q,
            kinks=found.kinks,
            strictly_convex=found.strictly_convex,
            convexity=found.convexity,
            notes=found.notes,
        )

    def __repr__(self) -> str:
        return f"FDivergence({self.name!r}, f(t) = {self.formula or '?'})"

    @property
    def smooth(self) -> bool:
        """Whether f has a derivative everywhere on (0, inf)."""
        return not self.kinks

    def derivative(self, t: Array) -> Array:
        """Return f'(t), from the right at a kink; raises DataError where t is no number >= 0."""
        t = _ratios(t)
        if self.fprime is not None:
            return np.asarray(self.fprime(t), dtype=float)
        if self.partials is not None:
            return self.partials(np.ones_like(t), t)[1]
        return _difference(self.f, t)

    def second_derivative(self, t: Array) -> Array:
        """Return f''(t); raises DataError where t is no number >= 0."""
        t = _ratios(t)
        if self.fsecond is not None:
            return np.asarray(self.fsecond(t), dtype=float)
        if self.fprime is not None or self.partials is not None:
            return _difference(self.derivative, t)
        step = STEP_SECOND * t
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray((self.f(t + step) - 2.0 * self.f(t) + self.f(t - step)) / step**2)

    @cached_property
    def limit_at_zero(self) -> float:
        """f(0+): as given, otherwise read off near 0.

        Raises
        ------
        ModelError
            It cannot be read off.
        """
        return self.at_zero if self.at_zero is not None else self._read_off("at_zero", self.f, -1)

    @cached_property
    def limit_slope(self) -> float:
        """lim f(t)/t for t to infinity: as given, otherwise read off far out.

        Raises
        ------
        ModelError
            It cannot be read off.
        """
        if self.slope_at_infinity is not None:
            return self.slope_at_infinity
        return self._read_off("slope_at_infinity", lambda t: self.f(t) / t, 1)

    def form(self, p: cp.Expression, q: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """Return the DCP form of sum p f(q/p) and its constraints, checked against the contract of `expression`.

        Raises
        ------
        ModelError
            There is no `expression`, or it returns something other than a scalar and constraints.
        """
        if self.expression is None:
            raise ModelError(
                f"divergence {self.name!r} has no DCP form: pass expression=, or leave it to a block's tangents"
            )
        returned = self.expression(p, q)
        try:
            value, constraints = returned
            constraints = list(constraints)
        except (TypeError, ValueError):
            value, constraints = returned, [None]
        scalar = isinstance(value, cp.Expression) and value.is_scalar()
        if not scalar or not all(isinstance(one, cp.Constraint) for one in constraints):
            raise ModelError(
                f"expression of divergence {self.name!r} returned {returned!r}: "
                "return a scalar cvxpy expression and a list of constraints, for example `cp.sum(...), []`"
            )
        return value, constraints

    def terms(self, p: Array, q: Array) -> Array:
        """Return p f(q/p) element by element, exact where p or q is 0; 0 where both are.

        Raises
        ------
        DataError
            They are no numbers, or their shapes do not fit each other.
        """
        p, q = _together(p, q)
        value = np.zeros(p.shape)
        with np.errstate(over="ignore"):  # a ratio, or its power, may be beyond what a float holds
            ratio = np.divide(q, p, out=np.full(p.shape, np.inf), where=p > 0.0)
            both = (ratio > 0.0) & (ratio < np.inf)
            value[both] = p[both] * self.f(ratio[both])
        only_p, only_q = (p > 0.0) & (ratio == 0.0), (p >= 0.0) & (q > 0.0) & (ratio == np.inf)
        if only_p.any():
            value[only_p] = p[only_p] * self.limit_at_zero
        if only_q.any():
            value[only_q] = q[only_q] * self.limit_slope
        return value

    def between(self, p: Array, q: Array, axis: int | tuple[int, ...] | None = None) -> float | Array:
        """Return D_f(p, q) = sum p f(q/p) over `axis`, or over everything when it is None.

        Raises
        ------
        DataError
            An entry is no number >= 0, the shapes do not fit each other, or there is no such axis.
        """
        terms = self.terms(_masses(p, "p"), _masses(q, "q"))
        try:
            total = terms.sum(axis=axis)
        except (np.exceptions.AxisError, TypeError, ValueError) as error:  # numpy's word on an axis that is not there
            raise DataError(f"axis={shown(axis)} is none of shape {terms.shape} ({error}): pass another") from error
        return float(total) if axis is None else np.asarray(total)

    def gradients(self, p: Array, q: Array) -> tuple[Array, Array]:
        """Return the derivatives of p f(q/p) in p and in q, element by element. Both are > 0 unless `partials`, or
        `in_p` and `in_q`, are given. They depend on q/p alone. At a kink they are those of f from the right."""
        p, q = _together(p, q)
        if self.partials is not None:
            return self.partials(p, q)
        if self.in_p is not None and self.in_q is not None:
            with np.errstate(all="ignore"):
                return self.in_p(p, q)[0], self.in_q(p, q)[0]
        t = q / p
        slope = self.derivative(t)
        return np.asarray(self.f(t) - t * slope), slope

    def _read_off(self, argument: str, of: Function, direction: int) -> float:
        """Return the limit of a monotone function for its argument to 0 (direction -1) or to infinity (+1)."""
        places = (np.array([10.0 ** (direction * power)]) for power in DISTANCES)
        with np.errstate(all="ignore"):
            found = limit_of((float(np.asarray(of(at), dtype=float)[0]) for at in places), SETTLED)
        if np.isnan(found):
            far = 10.0 ** (direction * DISTANCES[-1])
            raise ModelError(
                f"divergence {self.name!r} has no {argument}, and it cannot be read off at t = {far:g}: f moves too "
                f"slowly, or is no number there; pass {argument}="
            )
        return found


def _together(p: Array, q: Array) -> tuple[Array, Array]:
    """Return two arrays of one shape."""
    p, q = real_numbers(p, "p", copy=False), real_numbers(q, "q", copy=False)
    try:
        p, q = np.broadcast_arrays(p, q)
    except ValueError as error:
        raise DataError(f"p, q have shapes {p.shape} and {q.shape}: pass arrays of one shape") from error
    return p, q


def _ratios(t: Array) -> Array:
    found = real_numbers(t, "t", copy=False)
    if (found < 0.0).any():
        raise DataError(f"t={shown(t)} holds a ratio below 0: f is a function of q/p >= 0")
    return found


def _masses(values: Array, argument: str) -> Array:
    found = real_numbers(values, argument, copy=False)
    if not (found >= 0.0).all() or not np.isfinite(found).all():
        raise DataError(f"{argument}={shown(values)} holds an entry that is no finite number >= 0: pass masses")
    return found


def _difference(of: Function, t: Array) -> Array:
    """Return the central difference quotient; NaN where the function overflows."""
    step = STEP_FIRST * t
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray((of(t + step) - of(t - step)) / (2.0 * step))
