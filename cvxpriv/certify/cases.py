"""Cases: the problems that a cross-check solves, from a block, a user's problem, or a function that returns one."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Declaration
from cvxpriv.certify.problem_checks import label, require_checkable, require_finite, require_sound
from cvxpriv.certify.yardstick import Yardstick
from cvxpriv.errors import ModelError, shown
from cvxpriv.kkt.conic.data import Compilations
from cvxpriv.kkt.coordinates import held
from cvxpriv.kkt.integers import MixedInteger, mixed_integer
from cvxpriv.kkt.plain import RealForm, is_complex, lifted, real_form
from cvxpriv.numerics.arguments import few
from cvxpriv.numerics.arrays import Values
from cvxpriv.numerics.doors import door
from cvxpriv.solvers.place import HERE, Place


@dataclass(frozen=True, eq=False)
class Case:
    """One problem to cross-check.

    Attributes
    ----------
    name : str
    declare : callable
        Returns the declaration, with Parameters set. It is called once per solver: alternating solvers on one problem
        recompiles, and a solver keeps options from one solve to the next.
    repair : callable, optional
        Maps the variables' values to values in the domain, where the objective is evaluated. None moves a point that is
        slightly outside the domain into it (`cvxpriv.certify.yardstick`).
    exact : mapping of str to ndarray, optional
        The variables' values from a closed form.
    exact_seconds : float
        Seconds that the closed form took.
    mixed : MixedInteger, optional
        The mixed-integer problem of which `declare` gives the relaxation.
    real : RealForm, optional
        The complex problem that `declare` gives in real numbers.
    plain : tuple of cvxpy.Problem, optional
        The problem as its user wrote it, and `lifted`, if that adds variables.
    """

    name: str
    declare: Callable[[], Declaration]
    repair: Callable[[Values], Values] | None = None
    exact: Values | None = None
    exact_seconds: float = float("nan")
    mixed: MixedInteger | None = None
    real: RealForm | None = None
    plain: tuple[cp.Problem, cp.Problem] | None = None

    def split(self, values: Mapping[Any, Any]) -> Mapping[Any, Any]:
        """Values of complex variables in real and imaginary parts; others as they are, and those that follow."""
        if self.plain is not None:
            values = _followed(*self.plain, values)
        return values if self.real is None else self.real.split(values)

    @property
    def whole(self) -> cp.Problem:
        """The problem that solvers are asked: with its whole numbers, where it has any."""
        return self.declare().problem if self.mixed is None else self.mixed.problem

    @cached_property
    def yardstick(self) -> Yardstick:
        """The yardstick that measures the answers."""
        return Yardstick(self.declare(), self.compilations)

    @cached_property
    def compilations(self) -> Compilations:
        """The steps of the problem's compilation that solvers share."""
        return Compilations()

    def __getstate__(self) -> dict[str, Any]:
        """Drop the parts that another process makes again."""
        return {name: value for name, value in vars(self).items() if name not in ("yardstick", "compilations")}


MOST_CASES = 100_000
"""Problems of one cross-check."""
_One: TypeAlias = "cp.Problem | Case | Callable[[], cp.Problem]"
Target: TypeAlias = "_One | Block | Mapping[str, _One] | Sequence[Case | Block]"


def cases_of(target: Target, at: Values | None = None, place: Place = HERE) -> list[Case]:
    """Return the cases that a target of `cvxpriv.certify.check.crosscheck` stands for.

    Raises ModelError: There is nothing to check, two cases have one name, a block lacks a state, or a problem cannot be
    checked.
    """
    if isinstance(target, Mapping):
        cases = [replace(_case(one, str(name), at, place), name=str(name)) for name, one in target.items()]
    elif isinstance(target, Iterable) and not isinstance(target, cp.Problem):
        cases = [_case(one, f"problem[{k}]", at, place) for k, one in enumerate(few("target", target, MOST_CASES))]
    else:
        cases = [_case(target, "problem", at, place)]
    if not cases:
        raise ModelError(f"target={shown(target)} holds nothing to check: give a problem, a block, or some of them")
    names = [case.name for case in cases]
    if len(set(names)) < len(names):
        raise ModelError(f"two cases have the same name among {', '.join(names)}: give each its own")
    return cases


@door
def declared(block: Block, view: Values) -> Declaration:
    """Return a block's problem at a state, compiled anew, with its Parameters set."""
    declaration = replace(block).declaration(block.structure(view))  # a copy compiles its own
    declaration.give(block.parameters(view), {})
    return declaration


@door
def case_of_block(block: Block, view: Values, place: Place = HERE) -> Case:
    """Return the case that a block poses at one start of the state, with its exact update if it has one.

    A block with cuts is solved for them, at `place`; where that ends without an answer its first cuts stay.

    Raises
    ------
    ModelError
        The state lacks what the block reads, or makes a Parameter NaN or infinite.
    """
    if lacking := sorted(block.reads - set(view)):
        raise ModelError(f"view lacks {', '.join(lacking)}, which block {block.name!r} reads: pass a start's state")
    exact, seconds = None, float("nan")
    if block.direct is not None:
        begun = time.perf_counter()
        written = block.direct({name: np.asarray(value)[None] for name, value in view.items()})
        seconds = time.perf_counter() - begun
        exact = block.embed({**view, **{name: value[0] for name, value in written.items()}}, view)
    if block.refinement is not None:  # what is checked is the problem with its last cuts
        view = {**view, **(place.call(_refined, block, view).value or {})}
        view = view if exact is None else block.cut_at(exact, view)

    require_finite(block.name, declared(block, view).problem)
    return Case(block.name, lambda: declared(block, view), lambda values: block.repair(values, view), exact, seconds)


def _refined(block: Block, view: Values) -> Values:
    return dict(block.solve(view)[1].refined)


def case_of_problem(name: str, problem: cp.Problem) -> Case:
    """Return the case of a user's own problem, which is solved as a copy without any solver's cache.

    Raises ModelError: The problem cannot be checked: see `cvxpriv.certify.problem_checks.require_checkable`.
    """
    whole: cp.Problem = lifted(problem) if isinstance(problem, cp.Problem) else problem
    require_checkable(name, whole)
    plain = whole
    real = real_form(whole) if is_complex(whole) else None
    whole = whole if real is None else real.problem
    mixed = mixed_integer(whole)
    whole = whole if mixed is None else mixed.relaxed
    require_sound(name, whole)
    return Case(name, _Same(whole), mixed=mixed, real=real, plain=None if plain is problem else (problem, plain))


def _followed(problem: cp.Problem, plain: cp.Problem, values: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return values with those of the variables that `lifted` made, which follow from them."""
    with held(problem.variables()), suppress(Exception):  # values are checked later, and cvxpy raises what it likes
        for variable in problem.variables():
            variable.save_value(np.asarray(values.get(variable, values.get(variable.name()))))
        pairs = zip(plain.variables(), lifted(problem).variables(), strict=True)
        return {**{old.name(): new.value for old, new in pairs if old is not new}, **values}
    return values


def _case(one: object, name: str, at: Values | None, place: Place) -> Case:
    if isinstance(one, Case):
        return one
    if isinstance(one, Block):
        if at is None:
            raise ModelError(f"block {one.name!r} needs the state that it is solved at: pass at=state")
        return case_of_block(one, at, place)
    if not isinstance(one, cp.Problem) and callable(one):
        own = getattr(one, "__name__", name) if name == "problem" else name
        # A function that raises does so again here, with its own error.
        if place.isolate and (ending := place.call(_called, one)).status not in ("returned", "raised"):
            raise ModelError(f"{own} returned no problem: it {ending.status}, {ending.error}; mend the function")
        return case_of_problem(own, one())
    return case_of_problem(name, one)  # says what it is, if it is no problem


def _called(build: Callable[[], object]) -> None:
    build()


class _Same:
    """A user's problem: each declaration is a new problem of the same expressions, without a solver's cache."""

    def __init__(self, problem: cp.Problem) -> None:
        self._objective, self._constraints = problem.objective, tuple(problem.constraints)
        variables, parameters = problem.variables(), problem.parameters()
        self._labels = _labels(self._constraints)
        self._variables = dict(zip(_names(variables), variables, strict=True))
        self._parameters = dict(zip(_names(parameters), parameters, strict=True))

    def __call__(self) -> Declaration:
        constraints = dict(zip(self._labels, self._constraints, strict=True))
        return Declaration(self._objective, constraints, self._variables, self._parameters)


def _labels(constraints: Sequence[cp.Constraint]) -> list[str]:
    labels = [label(constraint, index) for index, constraint in enumerate(constraints)]
    return [text if labels.count(text) == 1 else f"[{index}] {text}" for index, text in enumerate(labels)]


def _names(leaves: Sequence[cp.Variable | cp.Parameter]) -> list[str]:
    """Return the names of variables or parameters; the second of the same name is ``x#2``."""
    names: list[str] = []
    for leaf in leaves:
        name, count = leaf.name(), 1
        while name in names:
            count += 1
            name = f"{leaf.name()}#{count}"
        names.append(name)
    return names


def values_kept(case: Case) -> AbstractContextManager[None]:
    """Restore the values of a user's variables and constraints afterwards."""
    declaration = case.declare()
    return held(declaration.variables.values(), declaration.constraints.values())
