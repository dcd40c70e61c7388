"""DCP forms of sum p f(q/p), vectorised: one cone per cell, no loop over cells.

Every form is jointly convex and positively homogeneous in (P, Q), like p f(q/p) itself. Side constraints stand where
no vectorised atom exists: cvxpy's `quad_over_lin` takes no vector of denominators.
"""

from collections.abc import Callable

import cvxpy as cp
import numpy as np

from cvxpriv.divergences.definition import DCPForm
from cvxpriv.numerics.arrays import Array

Form = tuple[cp.Expression, list[cp.Constraint]]


def summed(term: Callable[[cp.Expression, cp.Expression], cp.Expression]) -> DCPForm:
    """Return the form that is the sum of one atom over all cells."""
    return lambda p, q: (cp.sum(term(p, q)), [])


def _to_midpoint(p: cp.Expression, q: cp.Expression) -> cp.Expression:
    middle = (p + q) / 2.0
    return cp.rel_entr(p, middle) + cp.rel_entr(q, middle)


#: f = -log t: sum p log(p/q), and f = t log t: sum q log(q/p); exponential cones.
relative_entropy = summed(cp.rel_entr)
reverse_relative_entropy = summed(lambda p, q: cp.rel_entr(q, p))
#: f = t log(2t/(t+1)) + log(2/(t+1)): two relative entropies to the midpoint; exponential cones.
jensen_shannon = summed(_to_midpoint)
#: f = |1 - t| / 2: sum |p - q| / 2; linear.
absolute_difference = summed(lambda p, q: cp.abs(p - q) / 2.0)


def with_variable(
    value: Callable[..., cp.Expression], cones: Callable[..., cp.Constraint | list[cp.Constraint]]
) -> DCPForm:
    """Return the form of sum value(p, q, z) with a variable z, one entry for each cell, in cones(p, q, z)."""

    def form(p: cp.Expression, q: cp.Expression) -> Form:
        p, q, z = flat(p), flat(q), cp.Variable(int(p.size))
        bounds = cones(p, q, z)
        return cp.sum(value(p, q, z)), bounds if isinstance(bounds, list) else [bounds]

    return form


def itself(p: cp.Expression, q: cp.Expression, z: cp.Expression) -> cp.Expression:
    """Return z."""
    return z


def squares_over(weight_p: float, weight_q: float) -> DCPForm:
    """Return the form of sum (p - q)^2 / (weight_p p + weight_q q); second-order cones of dimension 3. With
    d = weight_p p + weight_q q, z d >= (p - q)^2 says ||(2 (p - q), z - d)|| <= z + d."""

    def cone(p: cp.Expression, q: cp.Expression, z: cp.Expression) -> cp.Constraint:
        below = weight_p * p + weight_q * q
        return cp.SOC(z + below, cp.vstack([2.0 * (p - q), z - below]), axis=0)

    return with_variable(itself, cone)


def mean_difference(p: cp.Expression, q: cp.Expression, mean: cp.Expression) -> cp.Expression:
    """p + q - 2 mean: with the geometric mean it is (sqrt p - sqrt q)^2."""
    return p + q - 2.0 * mean


#: f = (1 - sqrt t)^2: sum p + q - 2 g with g <= sqrt(p q); second-order cones of dimension 3.
squared_hellinger = with_variable(mean_difference, lambda p, q, g: cp.SOC(p + q, cp.vstack([2.0 * g, p - q]), axis=0))


def power(a: float) -> DCPForm:
    """Return the form of sum (p^a q^(1-a) - p) / (a (a - 1)), constant a not 0 or 1; three-dimensional power cones. The
    product p^a q^(1-a) is concave for 0 < a < 1 and convex otherwise, where it is the z of p = z^(1/a) q^(1-1/a) (a >
    1) or of q = z^(1/(1-a)) p^(-a/(1-a)) (a < 0)."""

    def cone(p: cp.Expression, q: cp.Expression, z: cp.Expression) -> cp.Constraint:
        if 0.0 < a < 1.0:
            return cp.PowCone3D(p, q, z, a)
        return cp.PowCone3D(z, q, p, 1.0 / a) if a > 1.0 else cp.PowCone3D(z, p, q, 1.0 / (1.0 - a))

    return with_variable(lambda p, q, z: (z - p) / (a * (a - 1.0)), cone)


def hinge(gamma: float) -> DCPForm:
    """Return the form of sum (p - gamma q)_+; linear."""
    return summed(lambda p, q: cp.pos(p - gamma * q))


def square_over(numerator: Array, denominator: Array) -> Array:
    """numerator^2 / denominator, 0 where both are 0: the z of `squares_over`."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(numerator == 0.0, 0.0, numerator**2 / denominator)


def weighted_mean(p: Array, q: Array, a: float) -> Array:
    """p^a q^(1-a), 0 where both are 0: the z of `power`."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # By their ratio: the powers of two tiny numbers alone would underflow and overflow.
        return np.where(p > 0.0, p * (q / p) ** (1.0 - a), np.where((q == 0.0) | (a > 0.0), 0.0, np.inf))


def flat(expression: cp.Expression) -> cp.Expression:
    """Return an expression as a vector."""
    return cp.vec(expression, order="C")
