"""Convex bounds of differences of convex functions: nowhere below the expression, and equal to it at a point.

Convex parts stay as they are, concave parts become their tangents at the point, held in Parameters. cvxpy's own
analysis says which is which, part by part: a sum is taken apart, and inside a monotone function each argument gets
what its direction asks for. A product of two affine expressions is a difference of two squares, and an indefinite
quadratic form that of its two parts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.atoms.affine.add_expr import AddExpression
from cvxpy.atoms.affine.affine_atom import AffAtom
from cvxpy.atoms.affine.binary_operators import DivExpression, MulExpression, multiply
from cvxpy.atoms.atom import Atom
from cvxpy.atoms.elementwise.elementwise import Elementwise
from cvxpy.atoms.quad_form import QuadForm

from cvxpriv.blocks.parts import sign_of
from cvxpriv.errors import DataError, ModelError
from cvxpriv.kkt.coordinates import dense
from cvxpriv.numerics.arrays import Array

ABOVE, BELOW = 1, -1
#: Least distance of tangents from 0, where slopes jump or are infinite; a tangent there still bounds.
INSIDE = 1e-8
SHOWN = 100


@dataclass(frozen=True, eq=False)
class Tangent:
    """The tangent of one atom in its arguments: constant + sum of slopes times arguments.

    `constant`: Name of the constant's Parameter.
    `slopes`: Names of the Parameters of the arguments that are not constant.
    `signs`: Sign of each slope: +1 where it is known not to be negative, -1 not to be positive, else 0.
    """

    atom: Atom
    constant: str
    slopes: Mapping[int, str]
    signs: Mapping[int, int]

    def values(self) -> dict[str, Array]:
        """Return the Parameters' values at the values that the variables have."""
        at = [np.asarray(one.value, dtype=float) for one in self.atom.args]
        for k in self.slopes:  # on the side that it comes from: one side for all would draw every argument one way
            away = INSIDE if self.atom._domain() else np.copysign(INSIDE, at[k])
            at[k] = np.where(np.abs(at[k]) < INSIDE, away, at[k])
        found = {self.constant: np.array(self.atom.numeric(at), dtype=float).reshape(self.atom.shape, order="F")}
        jacobians = self.atom._grad(at)
        for k, name in self.slopes.items():
            if jacobians[k] is None:
                raise DataError(f"{str(self.atom)[:SHOWN]} has no tangent there: start inside of its domain")
            jacobian = sp.csc_array(jacobians[k])
            sign = self.signs[k]
            jacobian.data = np.clip(jacobian.data, 0.0 if sign > 0 else -np.inf, 0.0 if sign < 0 else np.inf)
            moved = jacobian.T @ at[k].ravel(order="F")
            found[self.constant] = found[self.constant] - moved.reshape(self.atom.shape, order="F")
            found[name] = _laid_out(self.atom, k, jacobian)
        if not all(np.isfinite(one).all() for one in found.values()):
            raise DataError(f"{str(self.atom)[:SHOWN]} is not finite there: start inside of its domain")
        return found


@dataclass(eq=False)
class Tangents:
    """Convex bounds of expressions, and the tangents that they are made with.

    `domains`: The domains of the atoms that have become tangents.
    """

    bounding: bool = True

    parameters: dict[str, cp.Parameter] = field(default_factory=dict)
    tangents: list[Tangent] = field(default_factory=list)
    domains: list[cp.Constraint] = field(default_factory=list)
    held: dict[str, cp.Expression] = field(default_factory=dict)
    _seen: dict[tuple[int, int], tuple[Any, Any]] = field(default_factory=dict)

    def above(self, part: cp.Expression) -> cp.Expression:
        """Return a convex expression that is nowhere below `part` and meets it at the point."""
        return self._bound(part, ABOVE)

    def below(self, part: cp.Expression) -> cp.Expression:
        """Return a concave expression that is nowhere above `part` and meets it at the point."""
        return self._bound(part, BELOW)

    def values(self) -> dict[str, Array]:
        """Return the Parameters' values at the values that the variables have."""
        found = {name: np.asarray(one.value, dtype=float) for name, one in self.held.items()}
        for one in self.tangents:
            found |= one.values()
        return found

    def _bound(self, part: Any, side: int) -> Any:
        if part.is_convex() if side == ABOVE else part.is_concave():
            return part
        key = (id(part), side)
        if key not in self._seen:
            self._seen[key] = part, self._new(part, side)  # what is seen stays alive, and its id its own
        return self._seen[key][1]

    def _new(self, part: Any, side: int) -> Any:
        if not self.bounding and isinstance(part, MulExpression | multiply | QuadForm):
            moving = [k for k, one in enumerate(part.args) if not one.is_constant()]
            if len(moving) == 2:
                return self._one_at_a_time(part, moving, side)
        rewritten = _as_squares(part)
        if rewritten is not None:
            return self._bound(rewritten, side)
        if isinstance(part, AddExpression):
            bounds = [self._bound(one, side) for one in part.args]
            return sum(bounds[1:], start=bounds[0])
        if isinstance(part, (MulExpression, multiply)) and any(one.is_constant() for one in part.args):
            return self._scaled(part, side)
        if (
            isinstance(part, MulExpression | multiply | DivExpression)
            and sum(not one.is_constant() for one in part.args) > 1
        ):
            raise _no_difference(part)
        if isinstance(part, AffAtom | DivExpression) or (
            part.is_atom_convex() if side == ABOVE else part.is_atom_concave()
        ):
            return part.copy([self._inner(part, k, side) for k in range(len(part.args))])
        if isinstance(part, Atom) and (part.is_atom_concave() if side == ABOVE else part.is_atom_convex()):
            return self._tangent(part, side)
        raise _no_difference(part)

    def _inner(self, part: Any, k: int, side: int) -> Any:
        """Return an argument of a function that is bounded by bounding its arguments."""
        one = part.args[k]
        if one.is_affine():
            return one
        falls = part.is_decr(k)
        if self.bounding and not falls and not part.is_incr(k):
            raise _no_difference(part)
        bound = self._bound(one, -side if falls else side)
        if self.bounding or bound.is_affine():
            return bound
        if not falls and not part.is_incr(k):
            raise _no_difference(part)
        return cp.pos(bound) if bound.is_convex() and one.is_nonneg() else bound  # a bound has lost the sign

    def _one_at_a_time(self, part: Any, moving: list[int], side: int) -> Any:
        """Return a product of two factors at the values of one and of the other, less its value at both."""
        held = {}
        for k in moving:
            one, name = part.args[k], f"held[{len(self.parameters)}]"
            marks = {"PSD": one.is_psd() or None} if isinstance(part, QuadForm) and k == 1 else sign_of(one)
            held[k] = self.parameters[name] = cp.Parameter(one.shape, name=name, **marks)
            self.held[name] = one
        name = f"held[{len(self.parameters)}]"
        total = -cp.Parameter(part.shape, name=name)
        self.parameters[name], self.held[name] = total.args[0], part
        for k, other in (moving, moving[::-1]):
            one, fixed = part.args[k], part.args[other]
            if not one.is_affine():
                one = self._bound(one, -side if fixed.is_nonpos() else side)
            total = total + part.copy([one if j == k else held.get(j, arg) for j, arg in enumerate(part.args)])
        return total

    def _scaled(self, part: Any, side: int) -> Any:
        """Return a constant times an expression, with its positive and its negative entries apart."""
        first = part.args[0].is_constant()
        factor, other = part.args if first else part.args[::-1]
        value = dense(factor.value)

        def times(entries: Array, one: Any) -> Any:
            return part.copy([cp.Constant(entries), one] if first else [one, cp.Constant(entries)])

        total = 0.0
        if (value > 0).any():
            total = times(np.maximum(value, 0.0), self._bound(other, side))
        if (value < 0).any():
            total = total + times(np.minimum(value, 0.0), self._bound(other, -side))
        return total

    def _tangent(self, atom: Atom, side: int) -> Any:
        moving = [k for k, one in enumerate(atom.args) if not one.is_constant()]
        number = len(self.parameters)
        name, expression = f"tangent[{number}]", None
        self.parameters[name] = constant = cp.Parameter(atom.shape, name=name)
        slopes, signs = {}, {}
        for k in moving:
            signs[k] = 1 if atom.is_incr(k) else -1 if atom.is_decr(k) else 0
            slopes[k] = f"slope[{number},{k}]"
            parameter = cp.Parameter(
                _slope_shape(atom, k), name=slopes[k], nonneg=signs[k] > 0 or None, nonpos=signs[k] < 0 or None
            )
            self.parameters[slopes[k]] = parameter
            inner = atom.args[k]
            if not inner.is_affine():
                if not signs[k]:
                    raise _no_difference(atom)
                inner = self._bound(inner, side * signs[k])
            expression = constant if expression is None else expression
            expression = expression + _term(atom, parameter, inner)
        self.domains += [one for one in atom.domain if one.is_dcp()]
        self.tangents.append(Tangent(atom, name, slopes, signs))
        return expression


def _no_difference(part: Any) -> ModelError:
    return ModelError(
        f"{str(part)[:SHOWN]} is no difference of convex functions by cvxpy's rules: write it as a sum of convex and "
        "concave parts, declare a sign that is missing, cp.Variable(nonneg=True), or alternate over blocks of "
        "variables in which it is convex (cvxpriv.alternate)"
    )


def _as_squares(part: Any) -> Any:
    """Return a product of two affine expressions, or an indefinite quadratic form, by squares; otherwise None."""
    if isinstance(part, QuadForm) and part.args[1].is_constant() and part.args[0].is_affine():
        matrix = dense(part.args[1].value)
        values, vectors = np.linalg.eigh((matrix + matrix.T) / 2.0)
        roots = np.sqrt(np.abs(values))[:, None] * vectors.T
        up, down = roots[values > 0], roots[values < 0]
        return cp.sum_squares(up @ part.args[0]) - cp.sum_squares(down @ part.args[0])
    if not isinstance(part, MulExpression | multiply) or any(one.is_constant() for one in part.args):
        return None
    left, right = part.args
    if not (left.is_affine() and right.is_affine()):
        return None
    if isinstance(part, multiply) or left.is_scalar() or right.is_scalar():
        return _difference(left, right)
    if left.ndim == 1 and right.ndim == 1:
        return cp.sum(_difference(left, right))
    rows = left if left.ndim == 2 else cp.reshape(left, (1, left.size), order="F")
    columns = right if right.ndim == 2 else cp.reshape(right, (right.size, 1), order="F")
    inner = sum(_difference(rows[:, k : k + 1], columns[k : k + 1]) for k in range(rows.shape[1]))
    return cp.reshape(inner, part.shape, order="F")


def _difference(left: Any, right: Any) -> Any:
    return cp.square(left + right) / 4.0 - cp.square(left - right) / 4.0


def _slope_shape(atom: Atom, k: int) -> tuple[int, ...]:
    if isinstance(atom, Elementwise):
        return tuple(atom.shape)
    return tuple(atom.args[k].shape) if atom.is_scalar() else (atom.args[k].size, atom.size)


def _laid_out(atom: Atom, k: int, jacobian: sp.csc_array) -> Array:
    """Return a Jacobian, one column per entry of the atom, in the shape of its Parameter."""
    shape = _slope_shape(atom, k)
    if isinstance(atom, Elementwise):  # one row serves all entries where the argument is a number
        return np.asarray(jacobian.sum(axis=0), dtype=float).reshape(shape, order="F")
    dense = np.asarray(jacobian.toarray(), dtype=float)
    return dense.reshape(shape, order="F")


def _term(atom: Atom, slope: cp.Parameter, inner: Any) -> Any:
    if isinstance(atom, Elementwise):
        return cp.multiply(slope, inner)
    if atom.is_scalar():
        return cp.reshape(cp.sum(cp.multiply(slope, inner)), atom.shape, order="F")
    return cp.reshape(slope.T @ cp.vec(inner, order="F"), atom.shape, order="F")
