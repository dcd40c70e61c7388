"""A problem's constraints in one form: ``v = 0``, ``v <= 0`` or ``v in K``, with their derivative and multiplier.

Signs: ``L = f + sum multiplier * (lhs - rhs)`` for a minimisation, ``>=`` turned round first, and ``L = f - <z, v>``
for ``v in K``; a maximisation of ``-f`` has the same multipliers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.constraints import Equality, Inequality, NonNeg, NonPos, PowCone3D, PowConeND, Zero

from cvxpriv.errors import ModelError
from cvxpriv.kkt.conic.cones import ConeLayout, triangle_indices
from cvxpriv.kkt.conic.cones._types import Array
from cvxpriv.kkt.derivatives import Coordinates, derivative
from cvxpriv.kkt.jacobian_sets import Derivative
from cvxpriv.kkt.natural import Settings

Kind = Literal["zero", "nonpos", "cone"]
SQRT2 = float(np.sqrt(2.0))


@dataclass(frozen=True, eq=False)
class Condition:
    """One constraint at the point.

    Parameters
    ----------
    name : str
    kind : {"zero", "nonpos", "cone"}
    expression : cvxpy expression or None
        Whose value is ``values``; None for cones.
    values : array (m,)
    jacobian : Derivative
    layout : ConeLayout
        Of ``values``; empty unless the kind is ``"cone"``.
    dual : array (m,) or None
        The constraint's own multiplier.
    """

    name: str
    kind: Kind
    expression: Any
    values: Array
    jacobian: Derivative
    layout: ConeLayout
    dual: Array | None

    def violation(self) -> Array:
        """How far each entry (or block) is from satisfied."""
        if self.kind == "zero":
            return np.abs(self.values)
        if self.kind == "nonpos":
            return np.maximum(self.values, 0.0)
        return self.layout.block_distances(self.values)

    def dual_violation(self, dual: Array) -> Array:
        """How far each entry (or block) of a multiplier is from the sign, or dual cone, that it needs."""
        if self.kind == "zero":
            return np.zeros(dual.size)
        if self.kind == "nonpos":
            return np.maximum(-dual, 0.0)
        return self.layout.block_distances(dual, dual=True)

    def products(self, dual: Array) -> Array:
        """Complementarity of each entry or block."""
        if self.kind == "cone":
            return np.abs(np.add.reduceat(self.values * dual, self.layout.starts))
        return np.abs(self.values * dual)

    def single_rows(self) -> tuple[np.ndarray, np.ndarray, Array]:
        """Rows of an affine inequality that bound one variable: their number, variable and slope."""
        if self.kind != "nonpos" or not self.expression.is_affine():
            empty = np.zeros(0, dtype=int)
            return empty, empty, np.zeros(0)
        rows = np.flatnonzero(np.diff(self.jacobian.base.indptr) == 1)
        entries = self.jacobian.base.indptr[rows]
        return rows, self.jacobian.base.indices[entries].astype(int), self.jacobian.base.data[entries]


def conditions(
    problem: cp.Problem, names: Mapping[str, cp.Constraint], coordinates: Coordinates, settings: Settings
) -> list[Condition]:
    """All constraints of ``problem``, then those that its variables' attributes imply."""
    known = {constraint.id: name for name, constraint in names.items()}
    found = [
        _condition(known.get(constraint.id, f"constraint[{k}]"), constraint, coordinates, settings)
        for k, constraint in enumerate(problem.constraints)
    ]
    for variable in coordinates.variables:
        for name, constraint in _implied(variable):
            found.append(_condition(name, constraint, coordinates, settings, attribute=True))
    return found


def _implied(variable: cp.Variable) -> Iterator[tuple[str, Any]]:
    """Constraints that stand in a variable's attributes: they have no multiplier of their own."""
    attributes = variable.attributes
    for name in ("boolean", "integer", "complex", "imag", "hermitian", "sparsity"):
        if attributes.get(name):
            raise ModelError(
                f"variable {variable.name()!r} has the attribute {name}: only real, continuous ones are read"
            )
    if attributes.get("nonneg") or attributes.get("pos"):
        yield f"{variable.name()} >= 0", variable >= 0
    if attributes.get("nonpos") or attributes.get("neg"):
        yield f"{variable.name()} <= 0", variable <= 0
    if attributes.get("PSD"):
        yield f"{variable.name()} >> 0", variable >> 0
    if attributes.get("NSD"):
        yield f"{variable.name()} << 0", variable << 0
    if attributes.get("bounds") is not None:
        low, high = (np.broadcast_to(np.asarray(side, dtype=float), variable.shape) for side in attributes["bounds"])
        flat = variable.flatten(order="F")
        for symbol, sign, bound in ((">=", 1.0, low), ("<=", -1.0, high)):
            finite = np.flatnonzero(np.isfinite(bound.ravel(order="F")))
            if finite.size:
                side = bound.ravel(order="F")[finite]
                yield f"{variable.name()} {symbol} bound", sign * flat[finite] >= sign * side


def violations(problem: cp.Problem, names: Mapping[str, cp.Constraint]) -> dict[str, float]:
    """Worst violation of each of a problem's constraints, which needs no derivative.

    Infinite where a constraint's function has no value at the point.
    """
    known = {constraint.id: name for name, constraint in names.items()}
    found: dict[str, float] = {}
    for k, constraint in enumerate(problem.constraints):
        name = known.get(constraint.id, f"constraint[{k}]")
        condition = _without_derivative(name, constraint)[0]
        worst = float(condition.violation().max(initial=0.0))
        found[name] = worst if np.isfinite(worst) else float("inf")
    return found


def _condition(
    name: str, constraint: Any, coordinates: Coordinates, settings: Settings, attribute: bool = False
) -> Condition:
    tolerances = {"kink_tolerance": settings.kink, "domain_tolerance": settings.domain, "floor": settings.floor}
    condition, pieces, order, scale = _without_derivative(name, constraint)
    dual = None
    if condition.expression is not None:
        jacobian = derivative(condition.expression, coordinates, **tolerances)
        dual = None if attribute else _flat_or_none(constraint.dual_value)
    else:
        jacobians = [derivative(piece, coordinates, **tolerances).base for piece in pieces]
        jacobian = Derivative.smooth(sp.diags_array(scale) @ sp.csr_array(sp.vstack(jacobians))[order])
        if not attribute and all(variable.value is not None for variable in constraint.dual_variables):
            dual = scale * np.concatenate([_flat(variable.value) for variable in constraint.dual_variables])[order]
    return replace(condition, jacobian=jacobian, dual=dual)


def _without_derivative(name: str, constraint: Any) -> tuple[Condition, list[Any], np.ndarray, Array]:
    """A condition with its values, and for a cone the pieces, order and scale of its entries."""
    expression, kind = _scalar_form(constraint)
    none = Derivative.smooth(sp.csr_array((0, 0)))
    if expression is not None:
        flat = _flat(expression.value)
        return Condition(name, kind, expression, flat, none, ConeLayout(), None), [], np.zeros(0, int), np.zeros(0)
    pieces, order, scale, layout = _cone_form(name, constraint)
    values = scale * np.concatenate([_flat(piece.value) for piece in pieces])[order]
    return Condition(name, "cone", None, values, none, layout, None), pieces, order, scale


def _scalar_form(constraint: Any) -> tuple[Any, Kind]:
    if isinstance(constraint, Zero):
        return constraint.args[0], "zero"
    if isinstance(constraint, Equality):
        return constraint.args[0] - constraint.args[1], "zero"
    if isinstance(constraint, Inequality):
        return constraint.args[0] - constraint.args[1], "nonpos"
    if isinstance(constraint, NonPos):
        return constraint.args[0], "nonpos"
    if isinstance(constraint, NonNeg):
        return -constraint.args[0], "nonpos"
    return None, "cone"


def _cone_form(name: str, constraint: Any) -> tuple[list[Any], np.ndarray, Array, ConeLayout]:
    """Expressions whose stacked entries, reordered and scaled, lie in a layout's cone."""
    args = list(constraint.args)
    if isinstance(constraint, cp.SOC):
        count, size = args[0].size, constraint._cone_size()
        table = np.arange(count * (size - 1))
        x = table.reshape(size - 1, count, order="F").T if constraint.axis == 0 else table.reshape(count, -1, order="F")
        rows = np.column_stack([np.arange(count), count + x])
        return args, rows.ravel(), np.ones(rows.size), ConeLayout(soc=(size,) * count)
    if isinstance(constraint, cp.ExpCone):
        count = args[0].size
        rows = np.arange(count)[:, None] + count * np.arange(3)
        return args, rows.ravel(), np.ones(rows.size), ConeLayout(exp=count)
    if isinstance(constraint, PowCone3D):
        count = args[0].size
        rows = np.arange(count)[:, None] + count * np.arange(3)
        alpha = np.broadcast_to(_flat(constraint.alpha.value), (count,))
        return args, rows.ravel(), np.ones(rows.size), ConeLayout(power=tuple((float(a), 1 - float(a)) for a in alpha))
    if isinstance(constraint, PowConeND):
        return _power_form(constraint, args)
    if isinstance(constraint, cp.PSD) and len(args[0].shape) == 2:
        order = int(args[0].shape[0])
        i, j = triangle_indices(order, "lower")
        symmetric = 0.5 * (args[0] + args[0].T)
        scale = np.where(i == j, 1.0, SQRT2)
        return [symmetric], i + order * j, scale, ConeLayout(psd=(order,))
    raise ModelError(
        f"constraint {name!r} is a {type(constraint).__name__}: residuals are known for equalities, "
        "inequalities, SOC, ExpCone, PSD, PowCone3D and PowConeND; rewrite it with these"
    )


def _power_form(constraint: Any, args: list[Any]) -> tuple[list[Any], np.ndarray, Array, ConeLayout]:
    """Rows and layout of an n-dimensional power cone constraint."""
    shape = args[0].shape if len(args[0].shape) == 2 else (args[0].size, 1)
    by_columns = constraint.axis == 0 or len(args[0].shape) < 2
    table = np.arange(args[0].size).reshape(shape, order="F")
    alpha = np.asarray(constraint.alpha.value, dtype=float).reshape(shape, order="F")
    table, alpha = (table.T, alpha.T) if by_columns else (table, alpha)
    rows = np.column_stack([table, args[0].size + np.arange(table.shape[0])])
    layout = ConeLayout(power=tuple(tuple(float(a) for a in row) for row in alpha))
    return args, rows.ravel(), np.ones(rows.size), layout


def _flat(value: Any) -> Array:
    held: Any = value
    return np.asarray(held.toarray() if sp.issparse(value) else held, dtype=float).ravel(order="F")


def _flat_or_none(value: Any) -> Array | None:
    return None if value is None else _flat(value)
