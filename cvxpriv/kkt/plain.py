"""The real, continuous problem that is measured in place of a problem, at its current values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp

from cvxpriv.errors import ModelError
from cvxpriv.kkt.complex_numbers import is_complex, real_form
from cvxpriv.kkt.integers import MixedInteger, mixed_integer
from cvxpriv.kkt.lifting import lifted


@dataclass(frozen=True, eq=False)
class Plain:
    """A problem that can be measured.

    `problem`: The problem; its variables hold the values.
    `changed`: Whether it differs from the given problem, whose multipliers are then not this one's.
    `off`: Relative distance of each restricted variable or expression from its nearest allowed value, where not zero.
    """

    problem: cp.Problem
    names: Mapping[str, Any]
    changed: bool = False
    off: Mapping[str, float] = field(default_factory=dict)


def remedy(problem: cp.Problem) -> str:
    """Return what to do with a problem that is not DCP.

    >>> x = cp.Variable(pos=True, name="x")
    >>> remedy(cp.Problem(cp.Minimize(1 / x), [x * x <= 1]))
    'it is a geometric program: take its convex form, cvxpy.reductions.Dgp2Dcp(problem).reduce()'
    """
    if problem.is_dgp():
        return "it is a geometric program: take its convex form, cvxpy.reductions.Dgp2Dcp(problem).reduce()"
    if problem.is_dqcp():
        return "it is quasiconvex: take the convex problem of one step of its bisection"
    return "rewrite it with cvxpy's atoms (https://dcp.stanford.edu)"


def real_and_continuous(problem: cp.Problem, names: Mapping[str, Any]) -> Plain:
    """Return the problem with complex numbers in parts and whole numbers fixed at the nearest.

    Raises ModelError: A variable has no value.

    >>> x = cp.Variable(integer=True, name="x")
    >>> x.save_value(1.25)
    >>> real_and_continuous(cp.Problem(cp.Minimize(x), [x >= 1]), {}).off
    {'x is allowed': 0.2}
    """
    empty = [variable.name() for variable in problem.variables() if variable.value is None]
    if empty:
        raise ModelError(f"variable {empty[0]!r} has no value: assign one or solve first")
    whole = lifted(problem)
    if whole is not problem:
        names = {}
    changed = whole is not problem
    if is_complex(whole):
        form = real_form(whole)
        form.place()
        whole, names, changed = form.problem, {}, True
    mixed = mixed_integer(whole)
    if mixed is None:
        return Plain(whole, names, changed)
    names = _renamed(mixed, names)
    for variable, twin in mixed.twins:
        twin.save_value(variable.value)
    off = {f"{one.name} is allowed": one.off for one in mixed.restrictions if one.off > 0.0}
    left = mixed.fixed()
    mixed.round()
    return Plain(left, names, True, off)


def _renamed(mixed: MixedInteger, names: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same names for the constraints of the relaxation, which come in the same order."""
    kept = [constraint for constraint in mixed.problem.constraints if not isinstance(constraint, cp.FiniteSet)]
    known = {constraint.id: name for name, constraint in names.items()}
    pairs = zip(kept, mixed.relaxed.constraints, strict=False)
    return {known[old.id]: new for old, new in pairs if old.id in known}
