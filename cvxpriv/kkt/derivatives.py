"""Exact derivatives of cvxpy expressions at a point, also where cvxpy's own ``.grad`` is None.

The walk goes down the expression and multiplies sets of Jacobians (`cvxpriv.kkt.jacobian_sets`). Affine pieces use
cvxpy's own derivative, which is exact; the atoms with rules of their own are right at kinks and boundaries too; others
fall back to cvxpy's subgradient, or to an error that names the atom.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.atoms.affine.affine_atom import AffAtom

from cvxpriv.errors import ModelError
from cvxpriv.kkt.conic.cones._types import Array
from cvxpriv.kkt.derivative_rules import domain_shortfall, elementwise_rule
from cvxpriv.kkt.jacobian_sets import Derivative, DerivativeError, add, broadcast_rows, clean, compose, intervals
from cvxpriv.kkt.ties import smooth_atom, untied
from cvxpriv.kkt.vector_rules import extreme_of_stacked, vector_rule

__all__ = ["Coordinates", "Derivative", "DerivativeError", "derivative", "domain_violation", "local_derivative"]


class Coordinates:
    """Where each variable's entries stand in the flat point, column-major within a variable.

    Parameters
    ----------
    variables : sequence of cvxpy.Variable
    """

    def __init__(self, variables: Sequence[cp.Variable]) -> None:
        self.variables = tuple(variables)
        sizes = [int(variable.size) for variable in self.variables]
        ends = np.cumsum([0, *sizes])
        self.slices = {v.id: slice(int(a), int(b)) for v, a, b in zip(self.variables, ends[:-1], ends[1:], strict=True)}
        self.size = int(ends[-1])

    def point(self) -> Array:
        """The variables' current values, flat."""
        for variable in self.variables:
            if variable.value is None:
                raise ModelError(f"variable {variable.name()!r} has no value: assign one or solve first")
        return np.concatenate([np.zeros(0), *(_flat(variable.value) for variable in self.variables)])

    def name(self, index: int) -> str:
        """The variable and position of a flat entry, such as ``x[0, 2]``."""
        for variable in self.variables:
            piece = self.slices[variable.id]
            if piece.start <= index < piece.stop:
                position = np.unravel_index(index - piece.start, variable.shape, order="F")
                return f"{variable.name()}[{', '.join(str(int(k)) for k in position)}]" if position else variable.name()
        raise IndexError(index)


def _flat(value: Any) -> Array:
    return np.asarray(_dense(value), dtype=float).ravel(order="F")


def _dense(value: Any) -> Any:
    held: Any = value
    return held.toarray() if sp.issparse(value) else np.asarray(value)


def derivative(
    expression: cp.Expression,
    coordinates: Coordinates,
    *,
    kink_tolerance: float = 0.0,
    domain_tolerance: float = 0.0,
    floor: float = 0.0,
) -> Derivative:
    """Generalised Jacobian of ``expression`` at its variables' current values.

    Parameters
    ----------
    coordinates : Coordinates
        The variables of the columns; others in the expression are an error.
    kink_tolerance : float
        Arguments this near to a kink count as on it.
    domain_tolerance : float
        How far outside its domain an argument may lie; it is then taken as on the boundary.
    floor : float
        Lifts the arguments of logarithms and roots to at least this, which makes all derivatives finite.

    Raises
    ------
    DerivativeError
        If an atom has no derivative there that is known here.
    """
    walk = _Walk(coordinates, kink_tolerance, domain_tolerance, floor)
    return walk.visit(expression)


def domain_violation(expression: cp.Expression) -> float:
    """Largest distance of an argument outside the domain of its atom, anywhere in the expression."""
    if expression.is_constant() or not expression.args:
        return 0.0
    own = domain_shortfall(expression, [_value(arg, expression) for arg in expression.args])
    return max(own, *(domain_violation(arg) for arg in expression.args))


class _Walk:
    """One evaluation; nodes that occur twice are differentiated once."""

    def __init__(self, coordinates: Coordinates, kink: float, domain: float, floor: float) -> None:
        self.coordinates, self.kink, self.domain, self.floor = coordinates, kink, domain, floor
        self.seen: dict[int, Derivative] = {}

    def visit(self, node: cp.Expression) -> Derivative:
        if id(node) not in self.seen:
            self.seen[id(node)] = self._differentiate(node)
        return self.seen[id(node)]

    def _differentiate(self, node: cp.Expression) -> Derivative:
        n = self.coordinates.size
        if isinstance(node, cp.Variable):
            piece = self.coordinates.slices.get(node.id)
            if piece is None:
                raise DerivativeError(f"variable {node.name()!r} is not among the coordinates: add it")
            return Derivative.smooth(sp.eye_array(node.size, n, k=piece.start))
        if node.is_constant():
            return Derivative.smooth(sp.csr_array((node.size, n)))
        values = [_value(arg, node) for arg in node.args]
        if isinstance(node, cp.maximum | cp.minimum):
            return self._extreme(node, values)
        local = local_derivative(node, values, self.kink, self.domain, self.floor)
        total: Derivative | None = None
        for arg, part in zip(node.args, local, strict=True):
            if arg.is_constant():
                continue
            composed = compose(part, self.visit(arg))
            total = composed if total is None else add(total, composed)
        if total is None:
            return Derivative.smooth(sp.csr_array((node.size, n)))
        if np.isnan(total.base.data).any():
            raise DerivativeError(
                f"{_label(node)}: opposite infinite derivatives meet; move the point off the boundary"
            )
        return total

    def _extreme(self, node: cp.Expression, values: Sequence[Array]) -> Derivative:
        """``maximum`` and ``minimum``, whose arguments share the weights of a tie."""
        parts = [self.visit(arg) for arg in node.args]
        reads = [broadcast_rows(arg.shape, node.shape) for arg in node.args]
        pairs = list(zip(parts, reads, strict=True))
        stack = Derivative(
            clean(sp.vstack([part.base[read] for part, read in pairs])),
            clean(sp.block_diag([part.outer[read] for part, read in pairs])),
            clean(sp.vstack([part.inner for part in parts])),
            np.concatenate([part.low for part in parts]),
            np.concatenate([part.high for part in parts]),
            all(part.exact for part in parts),
        )
        return compose(extreme_of_stacked(node, values, self.kink), stack)


def _label(node: cp.Expression) -> str:
    return f"atom {type(node).__name__!r} of shape {node.shape}"


def _value(arg: cp.Expression, node: cp.Expression) -> Array:
    value = arg.value
    if value is None:
        missing = [p.name() for p in arg.parameters() if p.value is None]
        missing += [v.name() for v in arg.variables() if v.value is None]
        raise DerivativeError(f"{_label(node)}: an argument has no value; give values to {', '.join(missing) or 'it'}")
    dense = _dense(value)
    if np.iscomplexobj(dense):
        raise DerivativeError(f"{_label(node)}: complex arguments are not supported; write real and imaginary parts")
    return np.asarray(dense, dtype=float)


def local_derivative(
    node: cp.Expression, values: Sequence[Array], kink: float = 0.0, domain: float = 0.0, floor: float = 0.0
) -> list[Derivative]:
    """Generalised Jacobian of one atom in each of its arguments."""
    if isinstance(node, AffAtom):
        return _own(node, values, exact=True)
    shortfall = domain_shortfall(node, values)
    if shortfall > domain:
        raise DerivativeError(
            f"{_label(node)}: an argument lies {shortfall:.3g} outside the domain; repair the point first"
        )
    rule = elementwise_rule(node)
    if rule is not None:
        near = [np.where(np.abs(x) <= kink, 0.0, x) for x in values] if isinstance(node, cp.abs) else values
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            slopes = rule(node, [np.broadcast_to(x, node.shape) for x in near], floor)
        return [_elementwise(node, arg, *slope) for arg, slope in zip(node.args, slopes, strict=True)]
    found = vector_rule(node, values, kink, floor)
    if found is not None:
        return found
    return _own(node, values, exact=smooth_atom(node) or untied(node, values, kink))


def _elementwise(node: cp.Expression, arg: cp.Expression, low: Array, high: Array) -> Derivative:
    """Diagonal Jacobian, with one kink for each entry whose interval is proper."""
    low, high = _flat(np.broadcast_to(low, node.shape)), _flat(np.broadcast_to(high, node.shape))
    if np.isnan(low).any() or np.isnan(high).any():
        raise DerivativeError(f"{_label(node)}: no derivative at its arguments' values; repair the point first")
    read = broadcast_rows(arg.shape, node.shape)
    return intervals(node.size, arg.size, np.arange(node.size), read, low, high)


def _own(node: cp.Expression, values: Sequence[Array], exact: bool) -> list[Derivative]:
    """cvxpy's own derivative of one atom: exact for affine atoms, one subgradient for others."""
    try:
        parts = node._grad([np.asarray(value) for value in values])
    except (ValueError, ZeroDivisionError, np.linalg.LinAlgError, NotImplementedError) as error:
        raise DerivativeError(f"{_label(node)}: no derivative known here ({error})") from error
    local = []
    parts = [*parts, *[0.0] * (len(node.args) - len(parts))]  # dotsort leaves out its constant weights
    for part, arg in zip(parts, node.args, strict=True):
        if part is None:
            raise DerivativeError(f"{_label(node)}: no derivative at its arguments' values; move the point inside")
        matrix = np.full((arg.size, node.size), part) if np.isscalar(part) else part
        jacobian = clean(sp.csr_array(matrix).T)
        if not np.isfinite(jacobian.data).all():
            raise DerivativeError(f"{_label(node)}: the derivative is not finite; move the point inside its domain")
        local.append(Derivative.smooth(jacobian, exact))
    return local
