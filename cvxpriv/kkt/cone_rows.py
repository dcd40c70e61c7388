"""Constraints as rows: expressions, in an order and scale, that are zero, at most zero, or in a cone.

Some constraints are not written: attributes of variables, and domains of atoms. Where an atom ends with a finite slope,
such as ``x^1.5`` at zero, the end of its domain carries a multiplier like a constraint. Logarithms and roots end with
an infinite slope, which leaves nothing for a multiplier to do.
"""

import operator
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
from cvxpriv.kkt.conic.cones.layout import KINDS
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
    if isinstance(constraint, Zero | Equality):
        return _scalar("zero", constraint.expr)
    if isinstance(constraint, Inequality | NonPos):
        return _scalar("nonpos", constraint.expr)
    if isinstance(constraint, NonNeg):
        return _scalar("nonpos", -constraint.args[0])
    return _cone(name, constraint)


def _scalar(kind: Kind, expression: Any) -> Rows:
    return Rows(kind, (expression,), np.arange(expression.size), np.ones(expression.size))


def _cone(name: str, constraint: Any) -> Rows:
    args = tuple(constraint.args)
    if isinstance(constraint, cp.PSD):
        return _semidefinite(args[0])
    count = args[0].size
    rows = np.arange(count)[:, None] + count * np.arange(3)
    if isinstance(constraint, cp.SOC):
        size = constraint._cone_size()
        table = np.arange(count * (size - 1))
        x = table.reshape(size - 1, count, order="F").T if constraint.axis == 0 else table.reshape(count, -1, order="F")
        rows = np.column_stack([np.arange(count), count + x])
        return _whole(args, rows, ConeLayout(soc=(size,) * count))
    if isinstance(constraint, cp.ExpCone):
        return _whole(args, rows, ConeLayout(exp=count))
    if isinstance(constraint, PowCone3D):
        alpha = np.broadcast_to(dense(constraint.alpha.value).ravel(order="F"), (count,))
        return _whole(args, rows, ConeLayout(power=tuple((float(a), 1.0 - float(a)) for a in alpha)))
    if isinstance(constraint, PowConeND):
        return _power(constraint, args)
    raise ModelError(
        f"constraint {name!r} is a {type(constraint).__name__}: residuals are known for equalities, "
        "inequalities, SOC, ExpCone, PSD, PowCone3D and PowConeND; rewrite it with these"
    )


def _whole(args: tuple[Any, ...], rows: np.ndarray, layout: ConeLayout) -> Rows:
    return Rows("cone", args, rows.ravel(), np.ones(rows.size), layout)


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
    return _whole(args, rows, layout)


def arranged(forms: Sequence[Rows], places: Sequence[int]) -> tuple[np.ndarray, Array, list[np.ndarray], ConeLayout]:
    """Return the flat row of each condition and its factor, those of cones at the end in the order of one layout.

    `places`: The flat row at which each piece of the forms begins.
    """
    read, scale, layouts = [], [], []
    starts = iter(places)
    for form in forms:
        first, *_ = [next(starts) for _ in form.pieces]  # a form's pieces stand one after the other
        read.append(first + form.order)
        scale.append(form.scale)
        if form.kind == "cone":
            layouts.append(form.layout)
    joined, order = joined_layouts(layouts)
    scalar = sum(form.size for form in forms if form.kind != "cone")
    place = np.empty(order.size, dtype=int)
    place[order] = scalar + np.arange(order.size)
    rows, taken = [], {"cone": 0, "scalar": 0}
    for form in forms:
        kind = "cone" if form.kind == "cone" else "scalar"
        piece = np.arange(taken[kind], taken[kind] + form.size)
        rows.append(place[piece] if kind == "cone" else piece)
        taken[kind] += form.size
    total = scalar + order.size
    chosen, weights = np.zeros(total, dtype=int), np.ones(total)
    for own, source, factor in zip(rows, read, scale, strict=True):
        chosen[own], weights[own] = source, factor
    return chosen, weights, rows, joined


def joined_layouts(layouts: Sequence[ConeLayout]) -> tuple[ConeLayout, np.ndarray]:
    """Return one layout for several laid end to end, and the place there of each entry of the joined one."""
    whole: dict[str, Any] = {
        kind: sum((getattr(layout, kind) for layout in layouts), getattr(NO_CONES, kind)) for kind in KINDS
    }
    found: dict[str, list[np.ndarray]] = {}
    start = 0
    for layout in layouts:
        for name, piece in layout.slices.items():
            found.setdefault(name.split("[")[0], []).append(np.arange(start + piece.start, start + piece.stop))
        start += layout.size
    ordered = [place for kind in KINDS for place in found.get(kind, [])]
    return ConeLayout(**whole), np.concatenate([np.zeros(0, dtype=int), *ordered]).astype(int)


SHOWN = 40
"""Number of characters of an atom's text that stand for it."""
SIGNS = (
    (("nonneg", "pos"), ">=", operator.ge),
    (("nonpos", "neg"), "<=", operator.le),
    (("PSD",), ">>", operator.rshift),
    (("NSD",), "<<", operator.lshift),
)
UNREAD = ("boolean", "integer", "complex", "imag", "hermitian")


def of_attributes(variables: Sequence[cp.Variable]) -> Iterator[tuple[str, Any]]:
    """Return the constraints in variables' attributes, with their names.

    Raises ModelError: A variable is not real and continuous.
    """
    for variable in variables:
        attributes, name = variable.attributes, variable.name()
        if wrong := [one for one in UNREAD if attributes.get(one)]:
            raise ModelError(f"variable {name!r} has the attribute {wrong[0]}: only real, continuous ones are read")
        for kinds, symbol, condition in SIGNS:
            if any(attributes.get(one) for one in kinds):
                yield f"{name} {symbol} 0", condition(variable, 0)
        sides = attributes["bounds"] or ()
        for (symbol, sign), side in zip(((">=", 1.0), ("<=", -1.0)), sides, strict=False):
            number = dense(side.value if isinstance(side, cp.Expression) else side)  # cvxpy takes Parameters as well
            bound = np.broadcast_to(number, variable.shape).ravel(order="F")
            finite = np.flatnonzero(np.isfinite(bound))
            if finite.size:
                yield f"{name} {symbol} bound", sign * variable.flatten(order="F")[finite] >= sign * bound[finite]


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
