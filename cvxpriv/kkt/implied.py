"""Conditions without a written constraint: attributes of variables, and domains of atoms.

Where an atom ends with a finite slope, such as ``x^1.5`` at zero, the end of its domain carries a multiplier like a
constraint. Logarithms and roots end with an infinite slope, which leaves nothing for a multiplier to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.atoms.elementwise.power import Power
from cvxpy.atoms.geo_mean import GeoMean
from cvxpy.atoms.matrix_frac import MatrixFrac
from cvxpy.atoms.pnorm import Pnorm

from cvxpriv.errors import ModelError
from cvxpriv.kkt.coordinates import dense
from cvxpriv.kkt.derivative_rules import needs_nonnegative

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
