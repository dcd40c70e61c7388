"""The natural residual: the distance that each variable alone would move, in its own units.

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

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.atoms.norm1 import norm1

from cvxpriv.kkt.derivative_rules import ELEMENTWISE, Floor, Rule, elementwise_rule
from cvxpriv.kkt.flat import Atom, Flat, State
from cvxpriv.kkt.jacobian_sets import Derivative
from cvxpriv.kkt.vector_rules import groups as groups_of
from cvxpriv.numerics.arrays import Array, Flags

KINKED = tuple(ELEMENTWISE[atom] for atom in (cp.abs, cp.maximum, cp.minimum))  # their slopes jump, all others bend
HALVINGS = 100  # geometric ones down from 1e300; to the last digit a few
SHORT = 2.0**-10  # share of a bracket left of an infinite end: an entropy may end beside zero
SHARP = 4.0 * float(np.finfo(float).eps)  # a step is known to this, relative


@dataclass(frozen=True, eq=False)
class Term:
    """``sum_j weight_j phi(args_j)`` along every coordinate that it depends on: one row for each (j, coordinate)."""

    rule: Rule
    atom: Any
    coordinate: np.ndarray
    weight: Array
    values: tuple[Array, ...]
    tilts: tuple[Array, ...]

    def slopes(self, step: Array, floor: float) -> tuple[Array, Array]:
        """Return low and high derivative of each row when its coordinate has moved by ``step`` (n,)."""
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


@dataclass(frozen=True, eq=False)
class Parts:
    """A scalar function around the point: exact terms, and a part that is frozen at its gradient there.

    `gradient`: (n,).
    `kinks`, (sparse (k, n), array (k,), array (k,)): Directions of the frozen kinks, each with the interval of its
    weight.
    """

    gradient: Array
    terms: tuple[Term, ...]
    kinks: tuple[sp.csr_array, Array, Array]


@dataclass(frozen=True, eq=False)
class Separable:
    """Atoms that act entry by entry on affine arguments: a row for each (entry, coordinate) that depends on it.

    `rule`, `atom`: Of a `Term`.
    `place`, `share`: The atom's value among ``t`` that a row counts in, and the factor.
    `rows`: The rows of the flat expressions that hold each argument.
    `tilts`: Movement of each argument with the coordinate.
    """

    rule: Rule
    atom: Any
    place: np.ndarray
    share: Array
    coordinate: np.ndarray
    rows: tuple[np.ndarray, ...]
    tilts: tuple[Array, ...]

    def term(self, weight: Array, state: State) -> Term:
        """Return the term of a Lagrangian in which the atoms' values have these weights (t,)."""
        used = weight[self.place] != 0.0
        values = tuple(state.u[rows[used]] for rows in self.rows)
        own = weight[self.place[used]] * self.share[used]
        return Term(self.rule, self.atom, self.coordinate[used], own, values, tuple(tilt[used] for tilt in self.tilts))


def separable(flat: Flat) -> tuple[tuple[Separable, ...], Flags]:
    """Return the separable atoms of flat expressions, and a mask of their entries of ``t``."""
    mask = np.zeros(flat.M.shape[1] - flat.size, dtype=bool)
    groups, others = flat.grouped[0] if flat.grouped else ((), ())
    several: list[tuple[Any, ...]] = [
        (elementwise_rule(one.node), one.node, one.places, np.ones(one.places.size), one.rows) for one in groups
    ]
    for kind, atoms in _vector_atoms(others).items():
        values, shares, read = (np.concatenate(part) for part in zip(*atoms, strict=True))
        several.append((kind, atoms[0], values, shares, (read,)))
    found = []
    for rule, atom, place, share, rows in several:
        mask[place] = True
        maps = [sp.csr_array(flat.M[read][:, : flat.size]) for read in rows]
        j, i = map(np.asarray, sp.coo_array(sum(map(abs, maps[1:]), start=abs(maps[0]))).coords)
        tilts = tuple(np.ravel(matrix[j, i]) if matrix.nnz and j.size else np.zeros(j.size) for matrix in maps)
        found.append(Separable(rule, atom, place[j], share[j], i, tuple(read[j] for read in rows), tilts))
    return tuple(found), mask


def _vector_atoms(atoms: Sequence[Atom]) -> dict[Rule, list[tuple[np.ndarray, Array, np.ndarray]]]:
    """Return one-norms and sums of squares by the rule of their entries: value, factor and row of each entry."""
    found: dict[Rule, list[tuple[np.ndarray, Array, np.ndarray]]] = {}
    for atom in atoms:
        node = atom.node
        if isinstance(node, norm1):
            rule, factor = ELEMENTWISE[cp.abs], 1.0
        elif isinstance(node, cp.quad_over_lin) and node.args[1].is_constant():
            rule, factor = _doubled, 1.0 / float(np.squeeze(node.args[1].value))
        else:
            continue
        rows = np.arange(atom.rows[0].start, atom.rows[0].stop)
        place = atom.place.start + groups_of(node, node.args[0].shape)
        found.setdefault(rule, []).append((place, np.full(rows.size, factor), rows))
    return found


def _doubled(_: cp.Expression, args: Sequence[Array], floor: Floor) -> list[tuple[Array, Array]]:
    return [(2.0 * args[0], 2.0 * args[0])]


def decompose(
    weight: Array, flat: Flat, state: State, atoms: Derivative, parts: tuple[Sequence[Separable], Flags]
) -> Parts:
    """Split a weighted sum of ``[x; t]`` into separable terms and a frozen rest.

    `weight`: (n + t,).
    `atoms`: Derivatives of ``t`` (`cvxpriv.kkt.derivatives.slopes_at`).
    `parts`: The result of `separable`.
    """
    several, mask = parts
    own = weight[flat.size :]
    frozen = np.where(mask, 0.0, own)
    gradient, kept = weight[: flat.size], np.zeros(0, dtype=int)
    directions = sp.csr_array((0, flat.size))
    if moved := np.flatnonzero(frozen).tolist():  # an infinite slope with weight zero counts nothing
        with np.errstate(invalid="ignore"):
            gradient = gradient + atoms.base[moved].T @ frozen[moved]
        if atoms.low.size:
            pull = atoms.outer.T @ frozen
            kept = np.flatnonzero(pull)
            directions = sp.csr_array(sp.diags_array(pull[kept]) @ atoms.inner[kept])
    terms = (one.term(own, state) for one in several)
    return Parts(
        gradient, tuple(one for one in terms if one.coordinate.size), (directions, atoms.low[kept], atoms.high[kept])
    )


def slopes(parts: Parts, frozen: Array, step: Array, floor: float, jumps_only: bool = False) -> tuple[Array, Array]:
    """Return low and high derivative of the Lagrangian along every coordinate after a ``step`` (n,) of it alone.

    `jumps_only`: Terms that bend keep their slopes at the point. On any way, an entropy near 0 has nearly all of them.
    """
    low, high = frozen.copy(), frozen.copy()
    with np.errstate(invalid="ignore"):  # one term may rise without bound where another falls
        for term in parts.terms:
            held = jumps_only and term.rule not in KINKED
            below, above = term.slopes(np.zeros_like(step) if held else step, floor)
            low += np.bincount(term.coordinate, below, minlength=low.size)
            high += np.bincount(term.coordinate, above, minlength=high.size)
    return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)


def proximal_steps(parts: Parts, frozen: Array, below: Array, above: Array, floor: float, push: float = 0.0) -> Array:
    """Return each coordinate's step to the minimum of its own proximal problem.

    `parts`: Parts with the terms of the Lagrangian.
    `frozen`, (n,): Gradient of all the other terms.
    `below`, `above`, (n,): Room of each coordinate downwards (at most 0) and upwards.
    `push`: Slope that replaces the Lagrangian's at the point: it measures a coordinate's response to a slope.
    """
    size = np.abs(frozen)  # of the terms' slopes along each coordinate, of which rounding is a part
    for term in parts.terms:
        sides = (np.where(np.isfinite(one), np.abs(one), 0.0) for one in term.slopes(np.zeros(frozen.size), floor))
        size += np.bincount(term.coordinate, np.maximum(*sides), minlength=frozen.size)
    parts, frozen = _joined(parts, frozen)
    low, high = slopes(parts, frozen, np.zeros(frozen.size), floor)
    offset = np.zeros(frozen.size)
    if push:
        with np.errstate(invalid="ignore"):  # a term may fall without end on one side and rise so on the other
            middle = 0.5 * (np.where(np.isfinite(low), low, high) + np.where(np.isfinite(high), high, low))
        offset = push - np.where(np.isfinite(middle), middle, 0.0)
        low, high = low + offset, high + offset
    with np.errstate(invalid="ignore"):
        direction = np.where(low > 0, -1.0, np.where(high < 0, 1.0, 0.0))
        room = np.where(direction < 0, -below, above)
        reach = np.where(direction == 0, 0.0, np.minimum(np.where(direction < 0, low, -high), room)).clip(0.0, 1e300)

    def left(distance: Array) -> Array:
        """Return the remaining slope at a distance: negative before the minimum, positive behind it."""
        step = direction * distance
        below_, above_ = slopes(parts, frozen, step, floor)
        return np.where(direction < 0, -(below_ + offset + step), above_ + offset + step)

    nearest = np.full(direction.size, np.inf)  # kink in each coordinate's direction
    for coordinate, signed in kinks_of(parts.terms):
        distance = signed * direction[coordinate]
        np.minimum.at(nearest, coordinate, np.where(distance > 0.0, distance, np.inf))
    return direction * _first_not_negative(left, reach, size + np.abs(offset), nearest)


def _joined(parts: Parts, frozen: Array) -> tuple[Parts, Array]:
    """Return parts with one square of each coordinate in place of all the rows of squares, and the frozen gradient."""
    squares = [one for one in parts.terms if one.rule is _doubled]
    bend = np.zeros(frozen.size)
    for one in squares:
        pull = one.weight * one.tilts[0]
        frozen = frozen + 2.0 * np.bincount(one.coordinate, pull * one.values[0], minlength=frozen.size)
        bend += np.bincount(one.coordinate, pull * one.tilts[0], minlength=frozen.size)
    square = Term(_doubled, None, np.arange(bend.size), bend, (np.zeros(bend.size),), (np.ones(bend.size),))
    others = tuple(one for one in parts.terms if one.rule is not _doubled)
    return (replace(parts, terms=(square, *others)) if squares else parts), frozen


def kinks_of(terms: Iterable[Term]) -> Iterator[tuple[np.ndarray, Array]]:
    """Yield the coordinates of each term with kinks, and the distance along each to its kink; not finite for none."""
    for term in terms:
        if term.rule in KINKED:
            (value, tilt), *others = zip(term.values, term.tilts, strict=True)
            apart, closing = (value - others[0][0], tilt - others[0][1]) if others else (value, tilt)
            with np.errstate(all="ignore"):
                yield term.coordinate, -apart / closing


def _first_not_negative(left: Callable[[Array], Array], reach: Array, size: Array, kinks: Array) -> Array:
    """Return where each of some increasing functions ceases to be negative, at most at its reach.

    First where the chord of the bracket is zero, which is the answer itself for a quadratic, and on both sides of the
    nearest kink. Then pairs of points: the middle, of logarithms while the bracket spans more than a factor of four,
    and Ridders' point beside it, or one near the far end where the function is infinite. A value that is rounding,
    beside the sizes of its terms, is zero.
    """
    near, far = np.zeros(reach.size), reach
    at_near, at_far = left(near), left(far)
    near = np.where(at_far < 0.0, far, near)

    def narrowed(point: Array) -> tuple[Array, Array]:
        """Narrow each bracket to a side of a point, or of its middle if that is outside; return point and value."""
        nonlocal near, far, at_near, at_far
        point = np.where((point >= near) & (point <= far), point, 0.5 * (near + far))
        value = left(point)
        exact = np.abs(value) <= SHARP * np.maximum(size, point)
        low, high = (value < 0.0) | exact, ~(value < 0.0) | exact
        near, at_near = np.where(low, point, near), np.where(low, value, at_near)
        far, at_far = np.where(high, point, far), np.where(high, value, at_far)
        return point, value

    with np.errstate(all="ignore"):
        narrowed(near + (far - near) * (at_near / (at_near - at_far)))
        for beside_kink in (1.0 - SHARP, 1.0 + SHARP) if np.isfinite(kinks).any() else ():
            narrowed(kinks * beside_kink)
        for _ in range(HALVINGS):
            if (far - near <= SHARP * far).all():
                break
            least, product = np.maximum(near, 1e-30), at_near * at_far
            wide, start = far > 4.0 * least, near
            middle, value = narrowed(np.where(wide, np.sqrt(least) * np.sqrt(far), 0.5 * (near + far)))
            beside = middle - (middle - start) * value / np.sqrt(value * value - product)
            narrowed(np.where(np.isinf(at_far), far - (far - near) * SHORT, beside))
    return far
