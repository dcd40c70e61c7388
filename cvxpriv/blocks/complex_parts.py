"""A problem with complex numbers as one of real variables: z is `z.real` + i `z.imag`, each a block's own variable.

The products that make a problem multi-convex stay products, so a block that is convex in z is convex in its two parts.
"""

from collections.abc import Iterable
from typing import Any

import cvxpy as cp
from cvxpy.atoms.affine.upper_tri import vec_to_upper_tri
from cvxpy.reductions.complex2real.complex2real import Complex2Real

from cvxpriv.errors import ModelError


class RealProblem(cp.Problem):  # type: ignore[misc]  # cvxpy has no types
    """A problem in real variables that stands for one with complex numbers. `wholes`: For each complex variable, by id:
    the variable, and its expression in the real ones.
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
