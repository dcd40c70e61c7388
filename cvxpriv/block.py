"""A block: one convex subproblem, declared once as a DCP problem.

A block says what it reads of the state and what it writes, how the state becomes Parameters, how a solver's values
become state again, and, where one is known, the exact update that does the same job without a solver. Which of the
two runs is the engine's choice (`cvxpriv.engines`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import cvxpy as cp
import numpy as np

from cvxpriv.errors import ModelError
from cvxpriv.solvers import Solution, Solved, fallback_chain, solve
from cvxpriv.state import Array, Values

if TYPE_CHECKING:
    from cvxpriv.kkt import Residuals

__all__ = ["Block", "Declaration", "NotDPPWarning", "Rule"]

#: A user's constraint: takes the whole mechanism as a cvxpy expression, returns one constraint or several.
Rule = Callable[[cp.Expression], "cp.Constraint | Iterable[cp.Constraint]"]


class NotDPPWarning(UserWarning):
    """A block is DCP but not DPP: cvxpy compiles it again at every solve."""


def _one_structure(view: Values) -> Hashable:
    return ()


@dataclass(frozen=True)
class Declaration:
    """What a block tells cvxpy.

    Attributes
    ----------
    objective : cvxpy.Minimize or cvxpy.Maximize
    constraints : mapping of str to cvxpy.Constraint
        Named, and explicit: a bound given as a variable's attribute has no multiplier.
    variables, parameters : mapping of str to cvxpy.Variable, cvxpy.Parameter
    mechanism : cvxpy.Expression, optional
        The whole mechanism, row-stochastic, which the rules of `Block.constrain` receive.
    """

    objective: cp.Minimize | cp.Maximize
    constraints: Mapping[str, cp.Constraint]
    variables: Mapping[str, cp.Variable]
    parameters: Mapping[str, cp.Parameter] = field(default_factory=dict)
    mechanism: cp.Expression | None = None

    @cached_property
    def problem(self) -> cp.Problem:
        """The cvxpy problem; one object, since another would be compiled again."""
        return cp.Problem(self.objective, list(self.constraints.values()))

    def values(self) -> dict[str, Array]:
        """Return the variables' current values by name."""
        return {name: np.array(variable.value, dtype=float) for name, variable in self.variables.items()}

    def duals(self) -> dict[str, Any]:
        """Return the constraints' multipliers by name (a list for a cone constraint with several)."""
        return {name: constraint.dual_value for name, constraint in self.constraints.items()}


@dataclass(frozen=True)
class Block:
    """One convex subproblem of a model.

    Attributes
    ----------
    name : str
    reads, writes : frozenset of str
        Keys of the state.
    declare : callable
        Structure to `Declaration`. The structure is what the problem's shape depends on; () when it never changes.
    parameters : callable
        One start of the state to the Parameters' values. Logs, squares and products are taken here, which keeps
        the declaration DPP.
    embed : callable
        (state after, state before), one start each, to the variables' values: where residuals are measured.
    repair : callable
        (a solver's values, one start of the state) to values in the domain: a solver's are only nearly feasible, and
        nothing is evaluated before they are repaired.
    write : callable
        (Solution with repaired values, one start of the state) to the state entries written.
    direct : callable, optional
        The exact update, all starts at once. None: this block has only its DCP form.
    structure : callable
        One start of the state to a hashable structure.
    rules : tuple of (str, Rule)
        Constraints that a user added.

    Raises
    ------
    ModelError
        On the first use, if the declaration is not DCP: the message names the part that is not.
    """

    name: str
    reads: frozenset[str]
    writes: frozenset[str]
    declare: Callable[[Any], Declaration]
    parameters: Callable[[Values], Values]
    embed: Callable[[Values, Values], Values]
    repair: Callable[[Values, Values], Values]
    write: Callable[[Solution, Values], Values]
    direct: Callable[[Values], Values] | None = None
    structure: Callable[[Values], Hashable] = _one_structure
    rules: tuple[tuple[str, Rule], ...] = ()
    _compiled: dict[tuple[Hashable, str], Declaration] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    #: Compiled problems kept; a block whose structure changes at each step must not grow without bound.
    KEPT = 12

    def __getstate__(self) -> dict[str, Any]:
        # cvxpy problems cannot be pickled once some solvers have touched them: a worker compiles its own.
        return {**self.__dict__, "_compiled": {}}

    def constrain(self, name: str, rule: Rule) -> Block:
        """Return this block with one more constraint on the whole mechanism; its exact update no longer applies.

        Parameters
        ----------
        name : str
            How residuals and messages call it.
        rule : callable
            The mechanism (a cvxpy expression) to a constraint or an iterable of constraints.

        Raises
        ------
        ModelError
            If the name is taken. What the rule returns is checked when the block is first declared.
        """
        if name in dict(self.rules):
            raise ModelError(f"name={name!r} is already a constraint of block {self.name!r}: choose another name")
        return replace(self, rules=(*self.rules, (name, rule)), direct=None)

    def declaration(self, structure: Hashable = (), solver: str = "") -> Declaration:
        """Return the declaration for a structure, made once a solver and checked to be DCP."""
        key = (structure, solver)
        if key not in self._compiled:
            if len(self._compiled) >= self.KEPT:
                del self._compiled[next(iter(self._compiled))]
            self._compiled[key] = self._declare(structure)
        return self._compiled[key]

    def solve(
        self,
        view: Values,
        *,
        solver: str | tuple[str, ...] | None = None,
        tolerance: float | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[Values, Solution]:
        """Solve the DCP form at one start of the state; return the entries written and the repaired solution.

        Raises
        ------
        SolverFailure
            If no solver of the fallback chain has an answer.
        """
        structure, parameters = self.structure(view), self.parameters(view)
        problems: dict[str, Declaration] = {}

        def problem_for(name: str) -> cp.Problem:
            declaration = problems[name] = self.declaration(structure, name)
            for key, value in parameters.items():
                declaration.parameters[key].value = value
            return declaration.problem

        def read(name: str) -> Solved:
            declaration = problems[name]
            values = self.repair(declaration.values(), view)
            for key, value in values.items():
                declaration.variables[key].value = value
            return values, declaration.duals(), float(declaration.objective.value)

        solution = solve(problem_for, read, chain=fallback_chain(solver), tolerance=tolerance, options=options)
        return self.write(solution, view), solution

    def objective(self, point: Values, at: Values) -> float:
        """Return the declared objective at the variables that `point` stands for, Parameters taken from `at`.

        Both are one start of the state. `at` is the state before the block ran, `point` the state after it; the same
        state twice asks whether the block would move from there.
        """
        return float(self.place(point, at).objective.value)

    def residual(self, point: Values, at: Values, duals: Mapping[str, Any] | None = None) -> Residuals:
        """Return the exact KKT residuals at `point`, Parameters taken from `at` (see `objective`).

        Without `duals` the multipliers are the best ones for that point (`cvxpriv.kkt.residuals`).
        """
        from cvxpriv.kkt import residuals

        declaration = self.place(point, at)
        return residuals(declaration.problem, duals=duals, names=declaration.constraints)

    def place(self, point: Values, at: Values, solver: str = "") -> Declaration:
        """Return the declaration with Parameters set from `at` and variables from `point`."""
        declaration = self.declaration(self.structure(at), solver)
        for name, value in self.parameters(at).items():
            declaration.parameters[name].value = value
        for name, value in self.embed(point, at).items():
            declaration.variables[name].value = value
        return declaration

    def _declare(self, structure: Hashable) -> Declaration:
        declaration = self.declare(structure)
        for name, rule in self.rules:
            declaration = _with_rule(declaration, self.name, name, rule)
        _require_dcp(self.name, declaration)
        return declaration


def _with_rule(declaration: Declaration, block: str, name: str, rule: Rule) -> Declaration:
    if declaration.mechanism is None:
        raise ModelError(f"block {block!r} has no mechanism to constrain: constrain the block that designs it")
    returned = rule(declaration.mechanism)
    several = [returned] if isinstance(returned, cp.Constraint) else returned
    if not isinstance(several, Iterable) or not all(isinstance(one, cp.Constraint) for one in several):
        raise ModelError(
            f"constraint {name!r} returned {type(returned).__name__}, not a cvxpy constraint or a list of them: "
            "a rule takes the mechanism and returns, for example, mechanism >= 0.01"
        )
    several = list(several)
    labels = [name] if len(several) == 1 else [f"{name}[{index}]" for index in range(len(several))]
    return replace(declaration, constraints={**declaration.constraints, **dict(zip(labels, several, strict=True))})


def _require_dcp(block: str, declaration: Declaration) -> None:
    parts: dict[str, Any] = {"objective": declaration.objective, **declaration.constraints}
    wrong = [name for name, part in parts.items() if not part.is_dcp()]
    if wrong:
        shown = "; ".join(f"{name}: {parts[name]}" for name in wrong)
        raise ModelError(
            f"block {block!r} is not DCP in {shown}: rewrite it with cvxpy's atoms (https://dcp.stanford.edu)"
        )
    if not all(part.is_dcp(dpp=True) for part in parts.values()):
        warnings.warn(
            f"block {block!r} is not DPP and is compiled again at every solve: move nonlinear functions of Parameters "
            "into the Parameters' values",
            NotDPPWarning,
            stacklevel=4,
        )
