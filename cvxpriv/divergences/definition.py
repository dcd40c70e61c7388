"""What an f-divergence is: one convex f, and everything the models need of p f(q/p).

The argument is t = q/p. Textbooks often use p/q, under which the same names stand for other functions: the formula is
printed beside each name for that reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import cvxpy as cp
import numpy as np

from cvxpriv.errors import ModelError
from cvxpriv.state import Array

__all__ = ["DCPForm", "FDivergence"]

Function = Callable[[Array], Array]
Partials = Callable[[Array, Array], tuple[Array, Array]]
#: (P, Q) to sum_i P_i f(Q_i / P_i) as a convex cvxpy expression, and the constraints that define it.
DCPForm = Callable[[cp.Expression, cp.Expression], tuple[cp.Expression, list[cp.Constraint]]]

#: Relative steps of central differences that balance rounding against truncation, for f' and f''.
STEP_FIRST, STEP_SECOND = np.finfo(float).eps ** (1 / 3), np.finfo(float).eps ** (1 / 4)
#: Where limits at 0 and at infinity are read off when they are not given.
FAR = 1e12


@dataclass(frozen=True)
class FDivergence:
    """The divergence D_f(p, q) = sum_i p_i f(q_i / p_i), f convex on (0, inf) with f(1) = 0.

    Attributes
    ----------
    name : str
    f : callable
        Array of t > 0 to f(t), of the same shape.
    fprime, fsecond : callable, optional
        f' and f''; at a kink f' is the derivative from the right. None: central differences, good to about 1e-10 and
        1e-7 of the scale of f.
    expression : callable, optional
        (P, Q), two cvxpy expressions of one shape, to (expression, constraints): the DCP form of sum p f(q/p).
        Weights enter by homogeneity: pass W*P and W*Q. None: adaptive tangents do its job.
    formula : str
        f as text in t, for people.
    at_zero : float, optional
        f(0+), may be inf.
    slope_at_infinity : float, optional
        lim f(t)/t for t to infinity, may be inf: the price of q where p = 0.
    partials : callable, optional
        (p, q) to the derivatives of p f(q/p) in p and in q. None: f(t) - t f'(t) and f'(t). A form that divides by
        neither p nor q stays exact where one of them is 0.
    kinks : tuple of float
        Where f' jumps.
    strictly_convex : bool
        Whether f is strictly convex on (0, inf). Where it is not, minimisers need not be unique.

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
    kinks: tuple[float, ...] = ()
    strictly_convex: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ModelError(f"name={self.name!r} is not a name: pass a non-empty string, for example 'my-divergence'")
        for label in ("f", "fprime", "fsecond", "expression", "partials"):
            value = getattr(self, label)
            if not callable(value) and (label == "f" or value is not None):
                optional = "" if label == "f" else ", or leave it out"
                raise ModelError(
                    f"{label}={value!r} of divergence {self.name!r} is not callable: pass a function{optional}"
                )

    def __repr__(self) -> str:
        return f"FDivergence({self.name!r}, f(t) = {self.formula or '?'})"

    @property
    def smooth(self) -> bool:
        """Whether f has a derivative everywhere on (0, inf)."""
        return not self.kinks

    def derivative(self, t: Array) -> Array:
        """Return f'(t); from the right at a kink."""
        if self.fprime is not None:
            return np.asarray(self.fprime(t), dtype=float)
        if self.partials is not None:
            return self.partials(np.ones_like(t), t)[1]
        step = STEP_FIRST * t
        return np.asarray((self.f(t + step) - self.f(t - step)) / (2.0 * step))

    def second_derivative(self, t: Array) -> Array:
        """Return f''(t)."""
        if self.fsecond is not None:
            return np.asarray(self.fsecond(t), dtype=float)
        if self.fprime is not None or self.partials is not None:
            step = STEP_FIRST * t
            return np.asarray((self.derivative(t + step) - self.derivative(t - step)) / (2.0 * step))
        step = STEP_SECOND * t
        return np.asarray((self.f(t + step) - 2.0 * self.f(t) + self.f(t - step)) / step**2)

    @cached_property
    def limit_at_zero(self) -> float:
        """f(0+): as given, else read off near 0."""
        return self.at_zero if self.at_zero is not None else _limit(lambda t: self.f(1.0 / t))

    @cached_property
    def limit_slope(self) -> float:
        """lim f(t)/t for t to infinity: as given, else read off far out."""
        return self.slope_at_infinity if self.slope_at_infinity is not None else _limit(lambda t: self.f(t) / t)

    def terms(self, p: Array, q: Array) -> Array:
        """Return p f(q/p) element by element, exact where p or q is 0; 0 where both are."""
        p, q = np.broadcast_arrays(np.asarray(p, dtype=float), np.asarray(q, dtype=float))
        value = np.zeros(p.shape)
        both = (p > 0.0) & (q > 0.0)
        value[both] = p[both] * self.f(q[both] / p[both])
        only_p, only_q = (p > 0.0) & (q == 0.0), (p == 0.0) & (q > 0.0)
        if only_p.any():
            value[only_p] = p[only_p] * self.limit_at_zero
        if only_q.any():
            value[only_q] = q[only_q] * self.limit_slope
        return value

    def between(self, p: Array, q: Array, axis: int | tuple[int, ...] | None = None) -> float | Array:
        """Return D_f(p, q) = sum p f(q/p) over `axis`; over everything when it is None."""
        total = self.terms(p, q).sum(axis=axis)
        return float(total) if axis is None else np.asarray(total)

    def gradients(self, p: Array, q: Array) -> tuple[Array, Array]:
        """Return the derivatives of p f(q/p) in p and in q, element by element; p, q > 0 unless `partials` is given.

        They depend on q/p alone. At a kink they belong to the derivative of f from the right.
        """
        if self.partials is not None:
            return self.partials(np.asarray(p, dtype=float), np.asarray(q, dtype=float))
        t = np.asarray(q, dtype=float) / p
        slope = self.derivative(t)
        return np.asarray(self.f(t) - t * slope), slope


def _limit(of: Function) -> float:
    """Return the limit of a monotone function far out: inf when it still grows from one decade to the next."""
    with np.errstate(all="ignore"):
        near, far = (float(np.asarray(of(np.array([at])))[0]) for at in (FAR / 1e3, FAR))
    if not np.isfinite(far) or abs(far) > 1e3 or abs(far - near) > 1e-3 * max(1.0, abs(far)):
        return float(np.copysign(np.inf, far)) if not np.isnan(far) else np.nan
    return far
