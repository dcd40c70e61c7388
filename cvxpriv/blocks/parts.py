"""Blocks of a cvxpy problem that is convex in some of its variables while the others are fixed.

Each expression of the fixed variables becomes one Parameter, with the sign that cvxpy knows of it: H'H inside ||X - W
H||^2 stands as H, and the square of a distance to fixed centres as one nonnegative matrix. Each block is then affine in
its Parameters wherever cvxpy allows it, and compiled once.

A problem with complex numbers becomes one of real variables: z is `z.real` + i `z.imag`, each a block's own variable.

The products that make a problem multi-convex stay products, so a block that is convex in z is convex in its two parts.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.upper_tri import vec_to_upper_tri
from cvxpy.constraints.nonpos import Inequality, NonNeg, NonPos
from cvxpy.constraints.psd import PSD
from cvxpy.constraints.zero import Equality, Zero
from cvxpy.reductions.complex2real.complex2real import Complex2Real

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Declaration, why_not_dcp
from cvxpriv.errors import DataError, ModelError
from cvxpriv.numerics.arrays import Array, Values


class RealProblem(cp.Problem):  # type: ignore[misc]  # cvxpy has no types
    """A problem in real variables that stands for one with complex numbers.

    `wholes`: For each complex variable, by id: the variable, and its expression in the real ones.
    """

    wholes: dict[int, tuple[cp.Variable, cp.Expression]]

    def give_back(self) -> None:
        """Set the complex variables to the values of their parts."""
        for whole, parts in self.wholes.values():
            whole.save_value(parts.value)


def real_problem(problem: cp.Problem) -> cp.Problem:
    """Return the problem in real variables; the problem itself where no leaf is complex.

    >>> z = cp.Variable(name="z", complex=True)
    >>> [one.name() for one in real_problem(cp.Problem(cp.Minimize(cp.abs(z - 1j)))).variables()]
    ['z.real', 'z.imag']
    """
    if not isinstance(problem, cp.Problem) or not any(
        one.is_complex() for one in (*problem.variables(), *problem.parameters(), *problem.constants())
    ):
        return problem
    wholes = {one.id: (one, _in_parts(one)) for one in problem.variables() if one.is_complex()}

    def written(part: Any) -> Any:
        if isinstance(part, cp.Variable):
            return wholes[part.id][1] if part.id in wholes else part
        if isinstance(part, cp.Parameter) and part.is_complex():
            if part.value is None:
                raise ModelError(f"Parameter {part.name()!r} has no value: set it")
            return cp.Constant(part.value)
        return part.copy([written(one) for one in part.args]) if part.args else part

    objective = type(problem.objective)(written(problem.objective.args[0]))
    found, _ = Complex2Real().apply(cp.Problem(objective, [written(one) for one in problem.constraints]))
    real = RealProblem(found.objective, found.constraints)
    real.wholes = wholes
    return real


def _in_parts(whole: cp.Variable) -> cp.Expression:
    """Return a complex variable in real ones: a Hermitian matrix is symmetric, plus i times a skew one."""
    name, shape = whole.name(), whole.shape
    if whole.attributes["hermitian"]:
        real = cp.Variable(shape, name=f"{name}.real", symmetric=True)
        above = cp.Variable(shape[0] * (shape[0] - 1) // 2, name=f"{name}.imag") if shape[0] > 1 else None
        upper = None if above is None else vec_to_upper_tri(above, strict=True)
        return real if upper is None else real + 1j * (upper - upper.T)
    imaginary = 1j * cp.Variable(shape, name=f"{name}.imag")
    return imaginary if whole.attributes["imag"] else cp.Variable(shape, name=f"{name}.real") + imaginary


def in_real_parts(problem: cp.Problem, group: cp.Variable | Iterable[cp.Variable]) -> tuple[cp.Variable, ...]:
    """Return a block's variables with the real ones that complex ones of them stand for, in a `real_problem`."""
    wholes = problem.wholes if isinstance(problem, RealProblem) else {}
    found: list[cp.Variable] = []
    for one in [group] if isinstance(group, cp.Variable) else group:
        found += wholes[one.id][1].variables() if getattr(one, "id", None) in wholes else [one]
    return tuple(found)


Names = Mapping[str, cp.Variable]
#: The state's entry for the price of a unit of slack.
PRICE = "price of slack"


@dataclass(eq=False)
class Part:
    """A problem in some of its variables.

    Attributes
    ----------
    problem : cvxpy.Problem
        The whole problem; its variables hold the values at which Parameters are computed.
    own, others : mapping of str to cvxpy.Variable
        The variables that it solves for, and the fixed ones.
    parameters : mapping of str to (cvxpy.Parameter, cvxpy.Expression)
        Each Parameter with the expression of the fixed variables that it replaces.
    slack : bool
        Whether constraints of the whole problem that are not convex may be violated at a price.
    """

    problem: cp.Problem
    own: Names
    others: Names
    parameters: dict[str, tuple[cp.Parameter, cp.Expression]] = field(default_factory=dict)
    slack: bool = False
    _seen: dict[int, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Names of its variables."""
        return ", ".join(self.own)

    def declaration(self) -> Declaration:
        """Return the problem in the own variables; constraints on the others alone are left out."""
        self.parameters, self._seen = {}, {}
        objective = type(self.problem.objective)(self._rewritten(self.problem.objective.args[0]))
        constraints: dict[str, cp.Constraint] = {}
        slacks: dict[str, cp.Variable] = {}
        for place, one in enumerate(self.problem.constraints):
            name = label(one, place)
            loose = loosened(one, name, self._rewritten, slacks) if self.slack and not one.is_dcp() else None
            if self._moves(one):
                constraints |= loose or {name: one.copy([self._rewritten(part) for part in one.args])}
        used = {one.id for one in cp.Problem(objective, list(constraints.values())).variables()}
        parameters = {name: parameter for name, (parameter, _) in self.parameters.items()}
        if slacks := {name: one for name, one in slacks.items() if one.id in used}:
            objective, parameters[PRICE] = priced(objective, slacks)
        own = {name: one for name, one in self.own.items() if one.id in used}
        return Declaration(objective, constraints, {**own, **slacks}, parameters, generated=True)

    def values(self, view: Values) -> dict[str, Array]:
        """Return the Parameters' values at the fixed variables' values in a view."""
        for name, variable in self.others.items():
            variable.save_value(view[name])
        found = {}
        for name, (_, expression) in self.parameters.items():
            value = np.asarray(expression.value, dtype=float)
            if not np.isfinite(value).all():
                raise DataError(
                    f"block {self.name!r}: {str(expression)[:100]} is not finite at the values of the others"
                )
            found[name] = value
        return {**found, PRICE: np.asarray(view[PRICE], dtype=float)} if PRICE in view else found

    def block(self) -> Block:
        """Return the block."""
        kept = {name: one.size for name, one in self.own.items()}

        def write(solution: Any, view: Values) -> Values:
            return {name: np.asarray(solution.values[name], dtype=float) for name in kept}

        return Block(
            name=self.name,
            reads=frozenset(
                [*(self.others or kept), *([PRICE] if self.slack else [])]
            ),  # one block of all variables still has a number of starts
            writes=frozenset(kept),
            declare=lambda _: self.declaration(),
            parameters=self.values,
            embed=lambda point, at: {name: point[name] for name in kept},
            repair=lambda values, view: {name: values[name] for name in kept},
            write=write,
        )

    def _moves(self, part: Any) -> bool:
        ours = {one.id for one in self.own.values()}
        return any(one.id in ours for one in part.variables())

    def _rewritten(self, part: Any) -> Any:
        """Return an expression with a Parameter for each largest part that only the fixed variables move."""
        if id(part) not in self._seen:
            self._seen[id(part)] = self._new(part)
        return self._seen[id(part)]

    def _new(self, part: Any) -> Any:
        if not part.variables():
            return _number(part)
        if not self._moves(part):
            name = f"fixed[{len(self.parameters)}]"
            parameter = cp.Parameter(part.shape, name=name, **sign_of(part))
            self.parameters[name] = (parameter, part)
            return parameter
        return part if isinstance(part, cp.Variable) else part.copy([self._rewritten(one) for one in part.args])


def loosened(
    one: cp.Constraint, name: str, bounded: Callable[[Any], Any], slacks: dict[str, cp.Variable] | None
) -> dict[str, cp.Constraint] | None:
    """Return the constraints that stand for one with each expression `bounded`; None for another kind of constraint.

    `slacks`: Where slack goes that lets them be violated; None for none.
    """

    def most(shape: tuple[int, ...]) -> Any:
        if slacks is None:
            return 0.0
        slacks[f"slack of {name}"] = added = cp.Variable(shape, nonneg=True, name=f"slack of {name}")
        return added

    if isinstance(one, Inequality | NonPos):
        return {name: bounded(one.expr) <= most(one.expr.shape)}
    if isinstance(one, NonNeg):
        return {name: bounded(-one.expr) <= most(one.expr.shape)}
    if isinstance(one, Equality | Zero):
        added = most(one.expr.shape)
        sides = {f"{name}, at most": one.expr, f"{name}, at least": -one.expr}
        return {side: bounded(expression) <= added for side, expression in sides.items()}
    if isinstance(one, PSD) and slacks is not None:
        return {name: bounded(one.args[0]) + most(()) * np.eye(one.args[0].shape[0]) >> 0}
    return None


def priced(
    objective: cp.Minimize | cp.Maximize, slacks: Mapping[str, cp.Variable]
) -> tuple[cp.Minimize | cp.Maximize, cp.Parameter]:
    """Return an objective with the cost of slack, and the Parameter of its price."""
    price = cp.Parameter(name=PRICE, nonneg=True)
    cost = price * sum(cp.sum(one) for one in slacks.values())
    return type(objective)(objective.args[0] + (cost if isinstance(objective, cp.Minimize) else -cost)), price


def sign_of(part: Any) -> dict[str, bool]:
    """Return the sign that cvxpy knows of an expression, as a Parameter's attribute; bounds of variables are signs.

    >>> sign_of(2 * cp.Variable(bounds=[0, 1])), sign_of(cp.Variable())
    ({'nonneg': True}, {})
    """
    if any(one.attributes["bounds"] is not None for one in part.variables()):
        part = _signed(part)
    return {"nonneg": True} if part.is_nonneg() else {"nonpos": True} if part.is_nonpos() else {}


def _signed(part: Any) -> Any:
    """Return an expression with the signs of its variables' bounds as attributes, which are all that cvxpy looks at."""
    if isinstance(part, cp.Variable):
        low, high = (np.asarray(one) for one in part.get_bounds())
        return cp.Variable(part.shape, nonneg=(low >= 0.0).all() or None, nonpos=(high <= 0.0).all() or None)
    return part.copy([_signed(one) for one in part.args]) if part.args else part


def _number(part: Any) -> Any:
    """Return an expression without variables, with the values that the user's Parameters have now."""
    if empty := [one.name() for one in part.parameters() if one.value is None]:
        raise ModelError(f"Parameter {empty[0]!r} has no value: set it")
    return cp.Constant(part.value) if part.parameters() else part


def label(constraint: cp.Constraint, place: int) -> str:
    """Return a block's name for a constraint: its own label, otherwise its place in the problem."""
    return str(getattr(constraint, "label", None) or f"constraint[{place}]")


def named(problem: cp.Problem) -> dict[str, cp.Variable]:
    """Return a problem's variables by name, in the order in which they were made."""
    names: dict[str, cp.Variable] = {}
    variables = sorted(problem.variables(), key=lambda one: one.id)
    if not variables:
        raise ModelError("the problem has no variables: there is nothing to solve for")
    for variable in variables:
        if variable.name() in names:
            raise ModelError(f"two variables are called {variable.name()!r}: give each a name, cp.Variable(name=...)")
        if variable.attributes["integer"] or variable.attributes["boolean"]:
            raise ModelError(
                f"variable {variable.name()!r} takes whole numbers, where nothing tells a stationary point from any "
                "other: relax it, cp.Variable(bounds=[0, 1]); a block that is linear in it, such as shares of points "
                "in clusters, has its optimum at whole numbers"
            )
        names[variable.name()] = variable
    return names


def parts_of_problem(problem: cp.Problem, groups: Sequence[Sequence[cp.Variable]], slack: bool = False) -> list[Part]:
    """Return the parts of a problem, each convex while the other variables are fixed; `slack`: see `Part`.

    >>> w, h = cp.Variable(name="w"), cp.Variable(name="h")
    >>> [part.name for part in parts_of_problem(cp.Problem(cp.Minimize(cp.square(w * h - 1))), [[w], [h]])]
    ['w', 'h']
    """
    names = named(problem)
    known = {variable.id: name for name, variable in names.items()}
    parts = []
    for group in groups:
        members = [group] if isinstance(group, cp.Variable) else list(group)
        strange = [one for one in members if not isinstance(one, cp.Variable) or one.id not in known]
        if not members or strange:
            raise ModelError(f"blocks: {strange or 'an empty one'}: each is a list of variables of the problem")
        own = {known[one.id]: one for one in members}
        parts.append(Part(problem, own, {name: one for name, one in names.items() if name not in own}, slack=slack))
    if missing := set(names) - {name for part in parts for name in part.own}:
        raise ModelError(f"blocks: {', '.join(sorted(missing))} is in none: give each variable a block")
    for part in parts:
        declaration = part.declaration()
        if not declaration.problem.is_dcp():
            raise ModelError(
                f"block {part.name!r} is not convex where {', '.join(part.others) or 'nothing'} is held: "
                f"{why_not_dcp(declaration.problem)} If a sign is missing, declare it: cp.Variable(nonneg=True)."
            )
    return parts


def proposed(problem: cp.Problem) -> list[list[cp.Variable]]:
    """Return blocks for a problem: each variable joins the first block that stays convex with it.

    >>> w, h, b = (cp.Variable(name=name) for name in "whb")
    >>> groups = proposed(cp.Problem(cp.Minimize(cp.square(w * h + b - 1))))
    >>> [[variable.name() for variable in group] for group in groups]
    [['w', 'b'], ['h']]
    """
    names = named(problem)
    groups: list[list[cp.Variable]] = []
    for variable in names.values():
        for group in groups:
            if _convex(problem, names, [*group, variable]):
                group.append(variable)
                break
        else:
            groups.append([variable])
    return groups


def _convex(problem: cp.Problem, names: Names, members: Sequence[cp.Variable]) -> bool:
    ours = {one.id for one in members}
    own = {name: one for name, one in names.items() if one.id in ours}
    part = Part(problem, own, {name: one for name, one in names.items() if one.id not in ours})
    return bool(part.declaration().problem.is_dcp())
