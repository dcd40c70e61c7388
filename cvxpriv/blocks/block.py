"""A block: one convex subproblem, declared once as a DCP problem.

A block declares the state entries that it reads and writes, how the state becomes Parameters, how a solver's values
become state again, and, where one is known, the exact update that replaces a solver. The engine chooses which of the
two runs (`cvxpriv.blocks.engines`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.declaration import Constraint, Declaration, require_dcp, require_usable, with_constraint
from cvxpriv.blocks.fastpath.problem import FastProblem, FastSolution
from cvxpriv.blocks.infeasibility import explain, give_values
from cvxpriv.blocks.refinement import Refinement, Round, solve_refined
from cvxpriv.errors import ModelError, SolverFailure, shown
from cvxpriv.numerics.arrays import Array, Values, single, starts_in
from cvxpriv.numerics.doors import door
from cvxpriv.solvers.chain import Attempt, Solution, Solved, solve, try_solver
from cvxpriv.solvers.place import process
from cvxpriv.solvers.registry import fallback_chain

if TYPE_CHECKING:
    from cvxpriv.kkt import Residuals

#: Number of compiled problems kept; a block whose structure changes at each step must not grow without bound.
KEPT = 12

#: Distance from a kink up to which a point is also measured as standing there.
BESIDE_KINK = 1e-7

NO_FAST_PATH = "no fast path"


def _make_room(kept: dict[Any, Any]) -> None:
    """Forget the oldest entry of a full cache."""
    if len(kept) >= KEPT:
        del kept[next(iter(kept))]


def _one_structure(view: Values) -> Hashable:
    return ()


@door
@dataclass(frozen=True)
class Block:
    """One convex subproblem of a model.

    Attributes
    ----------
    name : str
    reads, writes : frozenset of str
        Keys of the state.
    declare : callable
        Maps a structure to a `Declaration`. The structure is whatever the problem's shape depends on; () when it never
        changes.
    parameters : callable
        Maps one start of the state to the Parameters' values. Logs, squares and products are taken here, which keeps
        the declaration DPP.
    embed : callable
        Maps (state after, state before), one start each, to the variables' values at which residuals are measured.
    repair : callable
        Maps (a solver's values, one start of the state) to values in the domain: a solver's values are only nearly
        feasible, and nothing is evaluated before they are repaired.
    write : callable
        Maps (Solution with repaired values, one start of the state) to the state entries written.
    direct : callable, optional
        The exact update, for all starts at once. None: this block has only its DCP form.
    structure : callable
        Maps one start of the state to a hashable structure.
    constraints : tuple of (str, Constraint)
        Constraints that a user added.
    refinement : Refinement, optional
        For a declaration that only bounds its objective, by cuts in its Parameters: how they are placed, and the gap
        that `solve` has to reach (`cvxpriv.blocks.refinement`).

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
    constraints: tuple[tuple[str, Constraint], ...] = ()
    refinement: Refinement | None = None
    _programs: dict[Hashable, FastProblem | str | None] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _compiled: dict[tuple[Hashable, str], Declaration] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __getstate__(self) -> dict[str, Any]:
        # cvxpy problems cannot be pickled once some solvers have touched them: a worker compiles its own.
        return {**self.__dict__, "_compiled": {}, "_programs": {}}

    def constrain(self, name: str, constraint: Constraint) -> Block:
        """Return this block with one more constraint on the whole mechanism; its exact update no longer applies.

        Parameters
        ----------
        name : str
            Name of the constraint in residuals and messages.
        constraint : callable
            Maps the mechanism (a cvxpy expression) to a constraint or an iterable of constraints.

        Raises
        ------
        ModelError
            The name is taken. The returned constraints are checked when the block is first declared.
        """
        if not isinstance(name, str):
            raise ModelError(f"name={shown(name)} is no text: pass a name for the constraint")
        if name in dict(self.constraints):
            raise ModelError(f"name={name!r} is already a constraint of block {self.name!r}: choose another name")
        return replace(self, constraints=(*self.constraints, (name, constraint)), direct=None)

    def constrained(self, constraints: Iterable[tuple[str, Constraint]]) -> Block:
        """Return this block with several more constraints: see `constrain`."""
        return reduce(lambda block, one: block.constrain(*one), constraints, self)

    def declaration(self, structure: Hashable = (), solver: str = "") -> Declaration:
        """Return the declaration for a structure, made once per solver and checked to be DCP."""
        key = (structure, solver)
        if key not in self._compiled:
            _make_room(self._compiled)
            declaration = self.declare(structure)
            for name, constraint in self.constraints:
                declaration = with_constraint(declaration, self.name, name, constraint)
            require_dcp(self.name, declaration)
            self._compiled[key] = declaration
        return self._compiled[key]

    def solve(
        self,
        view: Values,
        *,
        solver: str | tuple[str, ...] | None = None,
        tolerance: float | None = None,
        options: Mapping[str, Any] | None = None,
        fast: bool = True,
    ) -> tuple[Values, Solution]:
        """Solve the DCP form at one start of the state; return the entries written and the repaired solution.

        Parameters
        ----------
        view : mapping
            One start of the state.
        solver, tolerance, options
            See `cvxpriv.solvers.chain.solve`.
        fast : bool
            Go, from the second solve of a structure on, from Parameters to the solver's own update, without cvxpy's
            `solve` (`cvxpriv.blocks.fastpath`), where the solver has one and the block is small enough to be compiled
            once (`Declaration.symbolic`). The answers are the same.

        Raises
        ------
        ModelError
            If the user's constraints cannot hold; the message says which, and by how much they would have to give way.
        SolverFailure
            If no solver of the fallback chain has an answer, or memory does not hold the problem.

        Notes
        -----
        With a `refinement` the problem is solved in rounds, and `write` sees the state with the last cuts.
        """
        chain = fallback_chain(solver)
        if options is None and (there := process()) is not None:
            return there.solve(self, view, solver=chain, tolerance=tolerance, fast=fast)

        def once(at: Values) -> Round:
            try:
                return self._solve(at, chain, tolerance, options, fast)
            except SolverFailure as failure:
                if self.constraints and failure.infeasible:
                    self._refuse_conflict(at, chain, failure)
                failure.args = (f"block {self.name!r}: {failure}",)
                raise

        refinement = self.refinement
        solution = once(view).solution if refinement is None else solve_refined(refinement, once, view)
        return self.write(solution, {**view, **solution.refined}), solution

    def _solve(
        self,
        view: Values,
        chain: tuple[str, ...],
        tolerance: float | None,
        options: Mapping[str, Any] | None,
        fast: bool,
    ) -> Round:
        """Raise an error if the constraints contradict each other or the block."""
        structure, parameters = self.structure(view), self.parameters(view)
        placed: dict[str, Declaration] = {}
        answers: dict[str, FastSolution] = {}
        raw: dict[str, tuple[Values, float]] = {}

        def attempt(name: str, full: Mapping[str, Any]) -> Attempt:
            placed[name] = self.declaration(structure, name)
            program = self._program(structure, name, full) if fast else None
            if program is not None:
                answers[name] = answer = program.solve(parameters)
                return Attempt(name, answer.status, answer.seconds, answer.iterations, answer.message)
            placed[name].give(parameters, {})
            return try_solver(placed[name].problem, name, full, symbolic=placed[name].symbolic)

        def read(name: str) -> Solved:
            declaration, answer = placed[name], answers.get(name)
            if answer is None:
                raw[name] = declaration.values(), float(declaration.problem.value)
            else:
                raw[name] = answer.values, answer.objective
            found, _ = raw[name]
            declaration.give(parameters, {})
            require_usable(declaration, found, tolerance or 0.0)
            values = self.repair(found, view)
            declaration.give({}, values)  # variables that constraints brought along keep what was found
            duals = declaration.duals() if answer is None else answer.duals
            return values, duals, float(declaration.objective.value)

        solution = solve(attempt, read, chain=chain, tolerance=tolerance, options=options)
        maximise = isinstance(placed[solution.solver].objective, cp.Maximize)
        return Round(solution, *raw[solution.solver], maximise)

    def _refuse_conflict(self, view: Values, chain: tuple[str, ...], failure: SolverFailure) -> None:
        """Raise if the constraints are what no solution can satisfy."""
        declaration = self.declaration(self.structure(view), chain[0])
        declaration.give(self.parameters(view), {})
        if (conflict := explain(declaration, chain)) is not None:
            raise ModelError(f"block {self.name!r}: {conflict}") from failure

    def _program(self, structure: Hashable, solver: str, options: Mapping[str, Any]) -> FastProblem | None:
        """Return the fast program of a structure, made at its second solve; None before, or without a fast path.

        A structure that is solved once, as pruning makes many, is not worth a second compilation.
        """
        key = (structure, solver, tuple(sorted(options.items())))
        if key not in self._programs:
            _make_room(self._programs)
            self._programs[key] = None
        elif self._programs[key] is None:
            declaration = self.declaration(structure, solver)
            self._programs[key] = NO_FAST_PATH
            names = {kind: getattr(declaration, kind) for kind in ("variables", "parameters", "constraints")}
            with suppress(ModelError):
                if declaration.symbolic:
                    self._programs[key] = FastProblem(declaration.problem, solver, options, **names)
        program = self._programs[key]
        return program if isinstance(program, FastProblem) else None

    def objective(self, point: Values, at: Values) -> float:
        """Return the declared objective at the variables of `point`, with Parameters taken from `at`.

        Both are one start of the state. `at` is the state before the block ran, `point` the state after it; the same
        state twice asks whether the block would move from there.
        """
        return float(self.place(point, at).objective.value)

    def residual(self, point: Values, at: Values, duals: Mapping[str, Any] | None = None) -> Residuals:
        """Return the exact KKT residuals at `point`, Parameters taken from `at` (see `objective`).

        Without `duals` the multipliers are the best ones for that point (`cvxpriv.kkt.residuals`), and a point may
        stand beside a kink, which a solver meets only nearly: the distance counts as a residual.
        """
        return self.place(point, at).residuals(duals, BESIDE_KINK if duals is None else 0.0)

    def own_residuals(self, state: Values) -> Array:
        """Return each start's largest residual at its own point, (starts,): 0 where the block would stay."""
        views = [single(state, start) for start in range(starts_in(state))]
        return np.array([self.residual(view, view).largest for view in views])

    def place(self, point: Values, at: Values, solver: str = "") -> Declaration:
        """Return the declaration with Parameters set from `at`, cuts at `point`, and variables from `point`."""
        values = self.embed(point, at)
        at = self.cut_at(values, at)
        declaration = self.declaration(self.structure(at), solver)
        declaration.give(self.parameters(at), values)
        if declaration.brought:
            give_values(declaration)
        return declaration

    def cut_at(self, values: Values, view: Values) -> Values:
        """Return one start of the state with cuts at the variables' values; as it is where the block has no cuts."""
        return view if self.refinement is None else {**view, **self.refinement.refine(values, view)}
