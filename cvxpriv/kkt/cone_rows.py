"""Constraints as rows: expressions, in an order and scale, that are zero, at most zero, or in a cone.

Some constraints are not written: attributes of variables, and domains of atoms. Where an atom ends with a finite slope,
such as ``x^1.5`` at zero, the end of its domain carries a multiplier like a constraint. Logarithms and roots end with
an infinite slope, which leaves nothing for a multiplier to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import cvxpy as cp
import numpy as np
from cvxpy.atoms.elementwise.power import Power
from cvxpy.atoms.geo_mean import GeoMean
from cvxpy.atoms.matrix_frac import MatrixFrac
from cvxpy.atoms.pnorm import Pnorm
from cvxpy.constraints import Equality, Inequality, NonNeg, NonPos, PowCone3D, PowConeND, Zero

from cvxpriv.errors import ModelError
from cvxpriv.kkt.conic.cones import ConeLayout, triangle_indices
from cvxpriv.kkt.coordinates import dense
from cvxpriv.kkt.derivative_rules import needs_nonnegative
from cvxpriv.numerics.arrays import Array

Kind = Literal["zero", "nonpos", "cone"]
NO_CONES = ConeLayout()
SQRT2 = float(np.sqrt(2.0))


@dataclass(frozen=True, eq=False)
class Rows:
    """The condition ``v = 0``, ``v <= 0`` or ``v in K`` of a constraint, ``v = scale * stacked(pieces)[order]``."""

    kind: Kind
    pieces: tuple[Any, ...]
    order: np.ndarray
    scale: Array
    layout: ConeLayout = NO_CONES

    @property
    def size(self) -> int:
        """The number of rows."""
        return int(self.order.size)


def rows_of_constraint(name: str, constraint: Any) -> Rows:
    """Return the rows of a constraint.

    Raises ModelError: The kind of the constraint is not known.
    """
    if isinstance(constraint, Zero):
        return _scalar("zero", constraint.args[0])
    if isinstance(constraint, Equality):
        return _scalar("zero", constraint.args[0] - constraint.args[1])
    if isinstance(constraint, Inequality):
        return _scalar("nonpos", constraint.args[0] - constraint.args[1])
    if isinstance(constraint, NonPos):
        return _scalar("nonpos", constraint.args[0])
    if isinstance(constraint, NonNeg):
        return _scalar("nonpos", -constraint.args[0])
    return _cone(name, constraint)


def _scalar(kind: Kind, expression: Any) -> Rows:
    return Rows(kind, (expression,), np.arange(expression.size), np.ones(expression.size))


def _cone(name: str, constraint: Any) -> Rows:
    args = tuple(constraint.args)
    if isinstance(constraint, cp.SOC):
        count, size = args[0].size, constraint._cone_size()
        table = np.arange(count * (size - 1))
        x = table.reshape(size - 1, count, order="F").T if constraint.axis == 0 else table.reshape(count, -1, order="F")
        rows = np.column_stack([np.arange(count), count + x])
        return Rows("cone", args, rows.ravel(), np.ones(rows.size), ConeLayout(soc=(size,) * count))
    if isinstance(constraint, cp.ExpCone):
        count = args[0].size
        rows = np.arange(count)[:, None] + count * np.arange(3)
        return Rows("cone", args, rows.ravel(), np.ones(rows.size), ConeLayout(exp=count))
    if isinstance(constraint, PowCone3D):
        count = args[0].size
        rows = np.arange(count)[:, None] + count * np.arange(3)
        alpha = np.broadcast_to(dense(constraint.alpha.value).ravel(order="F"), (count,))
        return Rows(
            "cone",
            args,
            rows.ravel(),
            np.ones(rows.size),
            ConeLayout(power=tuple((float(a), 1.0 - float(a)) for a in alpha)),
        )
    if isinstance(constraint, PowConeND):
        return _power(constraint, args)
    if isinstance(constraint, cp.PSD):
        return _semidefinite(args[0])
    raise ModelError(
        f"constraint {name!r} is a {type(constraint).__name__}: residuals are known for equalities, "
        "inequalities, SOC, ExpCone, PSD, PowCone3D and PowConeND; rewrite it with these"
    )


def _semidefinite(matrix: Any) -> Rows:
    """Return lower triangles of one matrix, or of all behind the first axes, off the diagonal times sqrt(2)."""
    order, axes = int(matrix.shape[-1]), tuple(range(len(matrix.shape)))
    turned = matrix.T if len(axes) == 2 else cp.transpose(matrix, (*axes[:-2], axes[-1], axes[-2]))
    i, j = triangle_indices(order, "lower")
    entries = np.arange(matrix.size).reshape(matrix.shape, order="F").reshape(-1, order, order)[:, i, j]
    scale = np.where(i == j, 1.0, SQRT2)
    count = entries.shape[0]
    layout = ConeLayout(psd=(order,) * count)
    return Rows("cone", (0.5 * (matrix + turned),), entries.ravel(), np.tile(scale, count), layout)


def _power(constraint: Any, args: tuple[Any, ...]) -> Rows:
    """Return the rows of an n-dimensional power cone constraint."""
    shape = args[0].shape if len(args[0].shape) == 2 else (args[0].size, 1)
    by_columns = constraint.axis == 0 or len(args[0].shape) < 2
    table = np.arange(args[0].size).reshape(shape, order="F")
    alpha = dense(constraint.alpha.value).reshape(shape, order="F")
    table, alpha = (table.T, alpha.T) if by_columns else (table, alpha)
    rows = np.column_stack([table, args[0].size + np.arange(table.shape[0])])
    layout = ConeLayout(power=tuple(tuple(float(a) for a in row) for row in alpha))
    return Rows("cone", args, rows.ravel(), np.ones(rows.size), layout)


SHOWN = 40
"""Number of characters of an atom's text that stand for it."""
UNREAD = ("boolean", "integer", "complex", "imag", "hermitian")


def of_attributes(variables: Sequence[cp.Variable]) -> Iterator[tuple[str, Any]]:
    """Return the constraints in variables' attributes, with their names.

    Raises ModelError: A variable is not real and continuous.
    """
    for variable in variables:
        yield from _of_variable(variable)


def _of_variable(variable: cp.Variable) -> Iterator[tuple[str, Any]]:
    attributes = variable.attributes
    for name in UNREAD:
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
        low, high = (np.broadcast_to(_number(side), variable.shape) for side in attributes["bounds"])
        flat = variable.flatten(order="F")
        for symbol, sign, bound in ((">=", 1.0, low), ("<=", -1.0, high)):
            finite = np.flatnonzero(np.isfinite(bound.ravel(order="F")))
            if finite.size:
                side = bound.ravel(order="F")[finite]
                yield f"{variable.name()} {symbol} bound", sign * flat[finite] >= sign * side


def _number(side: Any) -> Any:
    """Return a bound's value: cvxpy takes Parameters and expressions of them as well."""
    return dense(side.value if isinstance(side, cp.Expression) else side)


def of_atoms(problem: cp.Problem) -> Iterator[tuple[str, Any]]:
    """Return the constraints that atoms of finite slope imply, with their names."""
    seen: set[int] = set()
    count = 0
    left = [problem.objective.args[0], *(arg for constraint in problem.constraints for arg in constraint.args)]
    while left:
        node = left.pop()
        if id(node) in seen or node.is_constant():
            continue
        seen.add(id(node))
        left += node.args
        for constraint in _ends(node):
            if constraint.variables() and constraint.is_dcp():
                yield f"domain[{count}] of {str(node)[:SHOWN]}", constraint
                count += 1


def _ends(node: Any) -> list[Any]:
    """Return the ends of an atom's domain that have a finite slope."""
    if isinstance(node, Power):
        p = float(node.p.value)
        return [node.args[0] >= 0] if p > 1.0 and needs_nonnegative(p) else []
    if isinstance(node, cp.xexp | GeoMean) or (isinstance(node, Pnorm) and float(node.p) < 1.0):
        return [node.args[0] >= 0]
    if isinstance(node, cp.quad_over_lin):
        return [node.args[1] >= 0]
    if isinstance(node, MatrixFrac):
        return [node.args[1] >> 0]
    return []
