"""The natural residual: how far each variable alone would move, in its own units.

For one coordinate at a time, hold the others and the multipliers, and let the Lagrangian ``L`` decide::

    x_i+ = argmin over l_i <= t <= u_i of  L(x with x_i = t) + (t - x_i)^2 / 2,      natural = max_i |x_i+ - x_i|.

It is zero exactly at a KKT point. For a linear ``L`` it is the projected gradient step. For an entropy ``x log x``
it is nearly the exact minimiser: a cell of mass 1e-9 that is off by a factor 2 moves by 1e-9 although its gradient is
off by .69, and a cell at 1e-17 whose true mass is 4.5e-5 moves by 4.5e-5 although its second-order step would be 1e-15.
The quadratic keeps the step finite where ``L`` is flat. Bounds on single variables are met by the projection and
carry no multiplier, as in the classical natural map.

``L`` along a coordinate is exact for sums of elementwise atoms, one-norms, and quadratics of affine arguments; other
atoms (norms, log_sum_exp, compositions) are linearised at the point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.atoms.affine.affine_atom import AffAtom
from cvxpy.atoms.norm1 import norm1

from cvxpriv.kkt.conic.cones._types import Array
from cvxpriv.kkt.derivative_rules import ELEMENTWISE, Floor, Rule, elementwise_rule
from cvxpriv.kkt.derivatives import Coordinates, derivative, local_derivative
from cvxpriv.kkt.jacobian_sets import Derivative, broadcast_rows
from cvxpriv.kkt.vector_rules import groups

HALVINGS = 90  # geometric ones down from 1e300, then sixty linear ones to the last digit


@dataclass(frozen=True, eq=False)
class Term:
    """``sum_j weight_j phi(args_j)`` along every coordinate that it depends on: one row for each (j, coordinate)."""

    rule: Rule
    atom: cp.Expression
    coordinate: np.ndarray
    weight: Array
    values: tuple[Array, ...]
    tilts: tuple[Array, ...]

    def slopes(self, step: Array, floor: float) -> tuple[Array, Array]:
        """Low and high derivative of each row when its coordinate has moved by ``step`` (n,)."""
        moved = step[self.coordinate]
        low, high = np.zeros(moved.size), np.zeros(moved.size)
        args = [value + tilt * moved for value, tilt in zip(self.values, self.tilts, strict=True)]
        # Only the point itself is lifted off the boundary; a step across it must meet the infinite slope there.
        floors = np.where(moved == 0, floor, 0.0)
        with np.errstate(all="ignore"):
            for (below, above), tilt in zip(self.rule(self.atom, args, floors), self.tilts, strict=True):
                factor = self.weight * tilt
                used = factor != 0
                low += np.where(used, np.where(factor > 0, factor * below, factor * above), 0.0)
                high += np.where(used, np.where(factor > 0, factor * above, factor * below), 0.0)
        return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)


@dataclass(eq=False)
class Parts:
    """A scalar function around the point: exact terms, and what is frozen at its gradient there."""

    gradient: Array
    terms: list[Term] = field(default_factory=list)
    kinks: list[tuple[sp.csr_array, Array, Array]] = field(default_factory=list)


@dataclass(frozen=True)
class Settings:
    """Tolerances of the derivatives, as in `cvxpriv.kkt.derivatives.derivative`."""

    kink: float
    domain: float
    floor: float


def decompose(expression: cp.Expression, weight: Array, coordinates: Coordinates, settings: Settings) -> Parts:
    """Split ``weight' expression`` into separable terms and a frozen rest.

    Parameters
    ----------
    weight : array (m,)
        For the entries of ``expression``, column-major.
    """
    parts = Parts(np.zeros(coordinates.size))
    _descend(expression, weight, coordinates, settings, parts)
    return parts


def _descend(node: Any, weight: Array, coordinates: Coordinates, settings: Settings, parts: Parts) -> None:
    if node.is_constant() or not weight.any():
        return
    if node.is_affine() or isinstance(node, cp.Variable):
        parts.gradient += derivative(node, coordinates).base.T @ weight
        return
    if isinstance(node, AffAtom):
        values = [np.asarray(arg.value, dtype=float) for arg in node.args]
        for arg, local in zip(node.args, local_derivative(node, values), strict=True):
            _descend(arg, local.base.T @ weight, coordinates, settings, parts)
        return
    term = _as_term(node, weight, coordinates)
    if term is not None:
        parts.terms.append(term)
        return
    frozen = derivative(
        node,
        coordinates,
        kink_tolerance=settings.kink,
        domain_tolerance=settings.domain,
        floor=settings.floor,
    )
    parts.gradient += _weighted(weight, frozen)
    if frozen.low.size:
        directions = sp.csr_array(sp.diags_array(frozen.outer.T @ weight) @ frozen.inner)
        parts.kinks.append((directions, frozen.low, frozen.high))


def _weighted(weight: Array, jacobian: Derivative) -> Array:
    with np.errstate(invalid="ignore"):
        return np.asarray(jacobian.base.T @ weight)


def _doubled(_: cp.Expression, args: Sequence[Array], floor: Floor) -> list[tuple[Array, Array]]:
    return [(2.0 * args[0], 2.0 * args[0])]


def _as_term(node: Any, weight: Array, coordinates: Coordinates) -> Term | None:
    """A term for an atom that acts entry by entry on affine arguments, else None."""
    if not all(arg.is_affine() for arg in node.args):
        return None
    if isinstance(node, norm1):
        spread = weight[groups(node, node.args[0].shape)]
        return _term(ELEMENTWISE[cp.abs], node, spread, node.args, node.args[0].shape, coordinates)
    if isinstance(node, cp.quad_over_lin) and node.args[1].is_constant():
        spread = weight[groups(node, node.args[0].shape)] / float(np.squeeze(node.args[1].value))
        return _term(_doubled, node, spread, node.args[:1], node.args[0].shape, coordinates)
    rule = elementwise_rule(node)
    return None if rule is None else _term(rule, node, weight, node.args, node.shape, coordinates)


def _term(
    rule: Rule, node: Any, weight: Array, args: Sequence[Any], shape: tuple[int, ...], coordinates: Coordinates
) -> Term:
    """A term whose rows stand for the entries of ``shape``, to which every argument is broadcast."""
    reads = [broadcast_rows(arg.shape, shape) for arg in args]
    maps = [derivative(arg, coordinates).base[read] for arg, read in zip(args, reads, strict=True)]
    pattern = sp.coo_array(sum((abs(matrix) for matrix in maps[1:]), start=abs(maps[0])))
    j, i = pattern.coords
    values = [np.asarray(arg.value, dtype=float).ravel(order="F")[read] for arg, read in zip(args, reads, strict=True)]
    return Term(
        rule,
        node,
        np.asarray(i),
        weight[j],
        tuple(value[j] for value in values),
        tuple(_entries(matrix, j, i) for matrix in maps),
    )


def _entries(matrix: sp.csr_array, j: np.ndarray, i: np.ndarray) -> Array:
    if matrix.nnz == 0 or j.size == 0:
        return np.zeros(j.size)
    return np.asarray(matrix[j, i], dtype=float).ravel()


def slopes(parts: Sequence[Parts], frozen: Array, step: Array, floor: float) -> tuple[Array, Array]:
    """Low and high derivative of the Lagrangian along every coordinate after a ``step`` (n,) of it alone."""
    low, high = frozen.copy(), frozen.copy()
    with np.errstate(invalid="ignore"):  # one term may rise without bound where another falls
        for part in parts:
            for term in part.terms:
                below, above = term.slopes(step, floor)
                low += np.bincount(term.coordinate, below, minlength=low.size)
                high += np.bincount(term.coordinate, above, minlength=high.size)
    return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)


def proximal_steps(
    parts: Sequence[Parts], frozen: Array, below: Array, above: Array, floor: float, push: float = 0.0
) -> Array:
    """Each coordinate's step to the minimum of its own proximal problem.

    Parameters
    ----------
    parts : sequence of Parts
        Terms of the Lagrangian.
    frozen : array (n,)
        Gradient of all the rest.
    below, above : array (n,)
        How far each coordinate may go down (at most 0) and up.
    push : float
        Instead of the Lagrangian's slope at the point, take this one: measures how a coordinate answers to a slope.
    """
    low, high = slopes(parts, frozen, np.zeros(frozen.size), floor)
    offset = np.zeros(frozen.size)
    if push:
        middle = 0.5 * (np.where(np.isfinite(low), low, high) + np.where(np.isfinite(high), high, low))
        offset = push - np.where(np.isfinite(middle), middle, 0.0)
        low, high = low + offset, high + offset
    with np.errstate(invalid="ignore"):
        direction = np.where(low > 0, -1.0, np.where(high < 0, 1.0, 0.0))
        room = np.where(direction < 0, -below, above)
        reach = np.minimum(np.where(direction < 0, low, -high), room)
    reach = np.clip(np.where(direction == 0, 0.0, reach), 0.0, 1e300)
    near, far = np.zeros(reach.size), reach
    for _ in range(HALVINGS):
        smallest = np.maximum(near, 1e-30)
        middle = np.where(far > 4.0 * smallest, np.sqrt(smallest) * np.sqrt(far), 0.5 * (near + far))
        step = direction * middle
        below_, above_ = slopes(parts, frozen, step, floor)
        short = np.where(direction < 0, below_ + offset + step > 0, above_ + offset + step < 0)
        near, far = np.where(short, middle, near), np.where(short, far, np.minimum(far, middle))
    # Where even the whole reach falls short, a bound stops the coordinate.
    return direction * far
