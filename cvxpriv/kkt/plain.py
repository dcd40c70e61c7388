"""The real, continuous problem that is measured in place of a problem, at its current values.

Inner problems and logic are written out: ``indicator(C)`` is zero where the constraints C hold, so that they hold at
every solution; a `partial_optimize` is the best value of an inner problem, whose variables are then variables of the
whole. ``And``, ``Or`` and ``Xor`` are boolean variables with linear constraints. An approximate cone of relative
entropies is the second-order cones that make it up. A support function is the dual of its maximum. Each is the same
problem, and every function in it can be evaluated.

A complex variable ``x`` becomes ``Re x`` and ``Im x``; the imaginary part of a Hermitian matrix is its strict upper
triangle. Rows of an equality that hold nothing but rounding, such as the imaginary part of ``trace(A X)`` for Hermitian
``A`` and ``X``, are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import cvxpy.lin_ops.lin_utils as identifiers
import numpy as np
from cvxpy.atoms.elementwise import logic
from cvxpy.atoms.suppfunc import SuppFuncAtom
from cvxpy.constraints import Equality, Zero
from cvxpy.constraints.exponential import OpRelEntrConeQuad, RelEntrConeQuad
from cvxpy.reductions.complex2real.complex2real import Complex2Real
from cvxpy.reductions.cone2cone.approx import OpRelEntrConeQuad_canon, RelEntrConeQuad_canon
from cvxpy.reductions.dcp2cone.canonicalizers.suppfunc_canon import suppfunc_canon
from cvxpy.reductions.eval_params import EvalParams
from cvxpy.transforms.indicator import indicator
from cvxpy.transforms.partial_optimize import PartialProblem

from cvxpriv.errors import DataError, ModelError
from cvxpriv.kkt.coordinates import Coordinates, dense
from cvxpriv.kkt.flat import flatten
from cvxpriv.kkt.integers import mixed_integer
from cvxpriv.kkt.quadratic_forms import Rebuild, rebuilder

ROUNDING = 64.0 * float(np.finfo(float).eps)
"""Size of a row's coefficients, relative to the equality's largest, up to which it is rounding."""


@dataclass(frozen=True, eq=False)
class RealForm:
    """A complex problem in real numbers.

    `parts`, (variable, real part, imaginary part): The parts by the name of the complex variable; a part that is always
    zero is None.
    """

    problem: cp.Problem
    parts: Mapping[str, tuple[cp.Variable, cp.Variable | None, cp.Variable | None]]

    def split(self, values: Mapping[Any, Any]) -> dict[Any, Any]:
        """Return values by complex variable or its name, as values of the parts; others unchanged.

        Raises DataError: A value of another shape.
        """
        found: dict[Any, Any] = {}
        for key, value in values.items():
            name = key.name() if isinstance(key, cp.Variable) else str(key)
            if name not in self.parts:
                found[key] = value
                continue
            variable, real, imaginary = self.parts[name]
            try:
                array = np.asarray(value, dtype=complex)
            except (TypeError, ValueError) as error:
                raise DataError(f"the value of {name!r} does not hold numbers: {error}") from error
            if array.shape != variable.shape:
                raise DataError(f"the value of {name!r} has the shape {array.shape}: expected {variable.shape}")
            if real is not None:
                found[real] = array.real
            if imaginary is not None:
                triangle = variable.is_hermitian() and imaginary.shape != variable.shape
                found[imaginary] = array.imag[np.triu_indices(variable.shape[0], 1)] if triangle else array.imag
        return found

    def place(self) -> None:
        """Set the parts to the current values of the complex variables."""
        for name, (variable, _, _) in self.parts.items():
            if variable.value is not None:
                for part, value in self.split({name: dense_complex(variable.value)}).items():
                    part.save_value(value)


def dense_complex(value: Any) -> Any:
    """Return a value as an array, complex where it is."""
    return np.asarray(value) if np.iscomplexobj(value) else dense(value)


def is_complex(problem: cp.Problem) -> bool:
    """Return whether a problem has complex variables, Parameters or constants."""
    return any(leaf.is_complex() for leaf in [*problem.variables(), *problem.parameters(), *problem.constants()])


def real_form(problem: cp.Problem) -> RealForm:
    """Return a complex problem in real numbers, its Parameters at their values.

    >>> x = cp.Variable(complex=True, name="x")
    >>> form = real_form(cp.Problem(cp.Minimize(cp.abs(x - 1j))))
    >>> sorted(variable.name() for variable in form.problem.variables())
    ['Im x', 'Re x']
    """
    plain = EvalParams().apply(problem)[0] if problem.parameters() else problem
    reduction = Complex2Real()
    real, inverse = reduction.apply(plain)
    real = _without_rounding(real, inverse.real2imag)
    parts = {}
    for variable, (whole, imaginary) in reduction.canon_methods._variables.items():
        for part, prefix in ((whole, "Re"), (imaginary, "Im")):
            if part is not None:
                part._name = f"{prefix} {variable.name()}"
        parts[variable.name()] = (variable, whole, imaginary)
    return RealForm(real, parts)


def _without_rounding(real: cp.Problem, imaginary: Mapping[int, int]) -> cp.Problem:
    """Return a problem without the rows of split equalities that are rounding of the whole equality's coefficients."""
    by_id = {constraint.id: constraint for constraint in real.constraints}
    for whole, part in imaginary.items():
        pair = [by_id[key] for key in (whole, part) if isinstance(by_id.get(key), Equality | Zero)]
        if len(pair) < 2:
            continue
        flat = flatten([one.expr for one in pair], Coordinates(real.variables()))
        sizes = abs(flat.M).max(axis=1).toarray().ravel()
        for one, place in zip(pair, flat.places, strict=True):
            kept = np.flatnonzero(sizes[place] > ROUNDING * sizes.max(initial=0.0))
            if kept.size < one.size:
                by_id[one.id] = one.expr.flatten(order="F")[kept] == 0 if kept.size else None
    return cp.Problem(real.objective, [one for one in by_id.values() if one is not None])


APPROXIMATE: dict[type, Callable[..., Any]] = {
    RelEntrConeQuad: RelEntrConeQuad_canon,
    OpRelEntrConeQuad: OpRelEntrConeQuad_canon,
}
LOGIC = logic.And | logic.Or | logic.Xor | logic.Not


def lifted(problem: cp.Problem) -> cp.Problem:
    """Return the same problem without indicators and inner problems; itself where it has none.

    >>> x = cp.Variable(name="x")
    >>> len(lifted(cp.Problem(cp.Minimize(x + cp.transforms.indicator([x >= 1])))).constraints)
    1
    """
    # A problem that came by pickle brings its numbers along: objects made here must not repeat them.
    parts = [*problem.constraints, *(one for row in problem.constraints for one in row.dual_variables)]
    largest = max((one.id for one in [*problem.variables(), *problem.parameters(), *parts]), default=0)
    identifiers.ID_COUNTER.count = max(identifiers.ID_COUNTER.count, largest + 1)
    found: list[Any] = []

    def written_out(node: Any, rebuilt: Rebuild) -> Any:
        if isinstance(node, indicator):
            found.extend(map(rebuilt, node.args))
            return cp.Constant(0.0)
        if isinstance(node, PartialProblem):
            inner = node.args[0]
            found.extend(map(rebuilt, inner.constraints))
            return rebuilt(inner.objective.args[0])
        if type(node) in APPROXIMATE:
            cone, constraints = APPROXIMATE[type(node)](node, node.args)
            found.extend(constraints)
            return cone
        if isinstance(node, LOGIC | SuppFuncAtom):
            write = _in_numbers if isinstance(node, LOGIC) else _dual
            number, constraints = write(node, [rebuilt(arg) for arg in node.args])
            found.extend(constraints)
            return number
        return None

    parts = [problem.objective.args[0], *problem.constraints]
    rewritten = list(map(rebuilder(written_out), parts))
    if not problem.variables():  # cvxpy answers such a problem itself: with a variable, solvers do
        nothing = cp.Variable(name="nothing")
        nothing.save_value(0.0)
        rewritten[0] = rewritten[0] + 0.0 * nothing
    elif all(new is old for new, old in zip(rewritten, parts, strict=True)):
        return problem
    return cp.Problem(type(problem.objective)(rewritten[0]), [*rewritten[1:], *found])


def _in_numbers(node: Any, args: list[Any]) -> tuple[Any, list[Any]]:
    """Return a boolean function as a number, with constraints that make it 0 or 1 where its arguments are."""
    if isinstance(node, logic.Not):
        return 1 - args[0], []
    value, pairs = cp.Variable(node.shape, boolean=True), cp.Variable(node.shape, integer=True)
    total, known = sum(args[1:], args[0]), [arg.value for arg in args]
    if all(one is not None for one in known):
        whole = [np.round(one) for one in known]
        value.save_value(node.numeric(whole))
        pairs.save_value((sum(whole) - value.value) / 2)
    if isinstance(node, logic.And):
        return value, [*(value <= arg for arg in args), value >= total - (len(args) - 1)]
    if isinstance(node, logic.Or):
        return value, [*(value >= arg for arg in args), value <= total]
    return value, [total == 2 * pairs + value, pairs >= 0, pairs <= len(args) // 2]


def _dual(node: Any, args: list[Any]) -> tuple[Any, list[Any]]:
    """Return a support function as a linear one of multipliers of its set, which attain its value or miss a row."""
    known = None
    if args[0].value is not None:
        least, rows = suppfunc_canon(node, [cp.Constant(args[0].value)])
        with suppress(cp.SolverError):
            cp.Problem(cp.Minimize(least), rows).solve(solver="CLARABEL")
        known = np.zeros(node._eta.shape) if node._eta.value is None else node._eta.value
    written: tuple[Any, list[Any]] = suppfunc_canon(node, args)
    node._eta.save_value(known)
    return written


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
    if empty := [variable.name() for variable in problem.variables() if variable.value is None]:
        ended = f" (the last solve ended as {problem.status})" if problem.status else ""
        raise ModelError(f"variable {empty[0]!r} has no value: assign one or solve first{ended}")
    whole = lifted(problem)
    if any(variable.value is None for variable in whole.variables()):
        what = "an inner problem, a support function or an approximate cone has variables of its own, without values"
        raise ModelError(f"{what}: assign them, write the cone as rel_entr(x, y) <= z, or cross-check the problem")
    if is_complex(whole):
        form = real_form(whole)
        form.place()
        whole = form.problem
    names = names if whole is problem else {}
    mixed = mixed_integer(whole)
    if mixed is None:
        return Plain(whole, names, whole is not problem)
    kept = [constraint for constraint in mixed.problem.constraints if not isinstance(constraint, cp.FiniteSet)]
    known = {constraint.id: name for name, constraint in names.items()}
    pairs = zip(kept, mixed.relaxed.constraints, strict=False)
    names = {known[old.id]: new for old, new in pairs if old.id in known}
    for variable, twin in mixed.twins:
        twin.save_value(variable.value)
    off = {f"{one.name} is allowed": one.off for one in mixed.restrictions if one.off > 0.0}
    return Plain(mixed.fixed(), names, True, off)
