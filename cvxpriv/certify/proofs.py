"""Proofs about a case that need no solver's certificate, computed when a verdict needs them.

A claim that there is no solution is true or false whatever its solver gives as a proof. HiGHS claims `unbounded` and
returns no ray; maximising ``log x`` is unbounded and has none. So the questions are asked here again: is there an exact
certificate of infeasibility, is there a ray (`cvxpriv.kkt.conic.certificates`) that holds in the problem as written
(`cvxpriv.kkt.rays`), and, where there is no ray, do values grow with the room that the variables are given?
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.certify.answers import SOLVED, Answer
from cvxpriv.certify.cases import Case, values_kept
from cvxpriv.certify.solver_answers import solver_answer
from cvxpriv.kkt.conic.certificates import Certificate, infeasibility_proof, ray, roomy
from cvxpriv.kkt.conic.data import Compilations, ConeData, approximated, extract
from cvxpriv.kkt.conic.scaling import solve_scaled
from cvxpriv.kkt.conic.solving import ConicSolution, attempts
from cvxpriv.kkt.quadratic_forms import with_every_eigenvalue
from cvxpriv.kkt.rays import feasible, improves_for_ever, met
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.solvers.place import HERE, Place
from cvxpriv.solvers.registry import installed, solver_spec

PROVER = "CLARABEL"
"""The solver for proofs: it takes every cone, and its answers are checked, not believed."""
BOXES = (10.0, 100.0, 1000.0)
"""Bounds on the variables' entries, in multiples of the largest entry of the points to beat."""
SOLVED_SIZE = 1e6
"""Largest entry of these points that counts: in boxes beyond, solvers leave no digits."""
FEASIBLE = 1e-6
"""Worst violation of a constraint, relative to its row's terms, of a point that beats another."""
NOISE = 1e-12
"""Largest effect of rounding, relative to the objective's terms, which cancel at points with large entries."""
PRICED = 10.0
"""Multiple of the worth of a point's violations, at its multipliers, that its value must leave: these are not exact."""
STEADY = 0.5
"""Ratio of gains from box to box down to which they show no limit: those of a logarithm do not fall."""
ATTEMPTS = tuple(
    (name, tolerance)
    for name, tolerance in (("CLARABEL", 1e-9), ("ECOS", 1e-9), ("CLARABEL", 1e-7), ("SCS", 1e-7))
    if name in installed()
)


@dataclass(frozen=True)
class Growth:
    """The best values found with the variables in boxes, each ten times the size of the one before.

    `sizes`, `values`: Bounds on the entries, and the objective at a feasible point within them, evaluated there; as
    many as could be solved.
    """

    sizes: tuple[float, ...]
    values: tuple[float, ...]

    def endless(self, least: float, maximise: bool) -> bool:
        """Return whether every box gains at least so much, relative, and the gains do not fade: there is no limit."""
        gains = np.diff(self.values) if maximise else -np.diff(self.values)
        if gains.size < len(BOXES) - 1 or (gains <= least * max(1.0, abs(self.values[0]))).any():
            return False
        return bool(gains[-1] >= STEADY * gains[0])

    def __str__(self) -> str:
        steps = [f"{value:.6g} within {size:.0e}" for size, value in zip(self.sizes, self.values, strict=True)]
        return ", ".join(steps)


@dataclass(eq=False)
class Proofs:
    """Proofs about one case; each is searched for at most once.

    A proof counts as not found if the solvers fail while it is searched for, by a crash included.

    `place`: The place where solvers are called.
    """

    case: Case
    place: Place = HERE

    @cached_property
    def infeasible(self) -> Certificate | None:
        """Return an exact certificate of infeasibility, or None; of the other constraints, where cvxpy alters some."""
        problem = self.case.declare().problem
        whole = self._whole
        if whole is None and any(map(approximated, [problem.objective, *problem.constraints])):
            kept = [one for one in problem.constraints if not approximated(one)]
            sides = [side for one in [problem.objective, *problem.constraints] for side in one.args]
            domains = [condition for side in sides for condition in side.domain]
            whole = _compiled(cp.Problem(cp.Minimize(0), [*kept, *domains]))
        proof: Certificate | None = None if whole is None else self._called(infeasibility_proof, whole.portable())
        return proof

    def endless(self, direction: Values, starts: Sequence[Values]) -> bool:
        """Return whether the problem as written improves for ever along a direction from these points or others."""
        return bool(self._called(_endless, self.case, direction, tuple(starts)))

    def ray(self, starts: Sequence[Values]) -> bool:
        """Return whether a direction is found along which it improves for ever."""
        return self.direction is not None and self.endless(self.direction, starts)

    @cached_property
    def direction(self) -> Values | None:
        """Return a direction along which the compiled problem improves without end, by variable."""
        if self._whole is None or (found := self._asked(ray)) is None:
            return None
        entries = self._whole.variables(found)
        names = self.case.declare().variables
        return None if entries is None else {name: entries[one.id] for name, one in names.items() if one.id in entries}

    @cached_property
    def roomy(self) -> bool:
        """Return whether there are feasible points with room around them."""
        return bool(self._asked(roomy))

    @cached_property
    def priced(self) -> bool:
        """Return whether multipliers are finite: without room in a curved cone, rounding may buy any value."""
        return bool(self._asked(partial(roomy, curved=True)))

    def inhabited(self, starts: Sequence[Values]) -> bool:
        """Return whether a feasible point is known: with room around it, or one of these, moved onto affine rows."""
        if self.roomy:
            return True
        yardstick = self.case.yardstick
        points = [np.zeros(yardstick.written.flat.size), *(yardstick.point(one) for one in starts)]
        points += [] if self.inside is None else [self.inside]
        return any(met(yardstick.written, x) for one in points for x in (one, yardstick.firm(one)))

    @cached_property
    def inside(self) -> Array | None:
        """Return a feasible point, with room around it where there is any, or None: that of an interior method."""
        found: Array | None = self._called(_feasible_point, self.case)
        return found

    @cached_property
    def bound(self) -> float:
        """Return a certified bound on the optimum that no answer brings, in the sense of the problem; or NaN."""
        found = self._called(_bound, self.case)
        return float("nan") if found is None else float(found)

    def witnesses(self, asked: Collection[str]) -> list[Answer]:
        """Return answers whose bounds decide where those of the solvers that were asked do not."""
        ways = (True,) if PROVER in asked else (False, True)
        found = [self._called(partial(solver_answer, rescaled=way), self.case, PROVER, None, {}) for way in ways]
        return [one for one in found if one is not None]

    def growth(self, size: float) -> Growth:
        """Return the best values of the variables in boxes that are larger than a point of some size."""
        return self._called(_growth, self.case, min(size, SOLVED_SIZE)) or Growth((), ())

    def _asked(self, question: Callable[[ConeData], Any]) -> Any:
        return None if self._whole is None else self._called(question, self._whole.portable())

    def _called(self, function: Callable[..., Any], *arguments: Any) -> Any:
        with suppress(Exception):  # solvers and atoms raise what they like
            return self.place.call(function, *arguments).value
        return None

    @cached_property
    def _whole(self) -> ConeData | None:
        """The problem compiled."""
        return _compiled(self.case.declare().problem, self.case.compilations)


def _compiled(problem: cp.Problem, shared: Compilations | None = None) -> ConeData | None:
    """Return a problem compiled; None where that fails, or is another problem, with a quadrature in an atom's place."""
    if PROVER in installed():
        with suppress(Exception):
            compiled = extract(problem, PROVER, {}, shared)
            return None if compiled.altered_by_cvxpy else compiled
    return None


def _endless(case: Case, direction: Values, starts: Sequence[Values]) -> bool:
    """Follow a direction from the first feasible point there is."""
    yardstick = case.yardstick
    zeros = {name: np.zeros(variable.shape) for name, variable in yardstick.declaration.variables.items()}
    flat = yardstick.point({**zeros, **direction})
    points = [yardstick.point(values) for values in starts]
    with np.errstate(all="ignore"):
        start = next((x for x in points if feasible(yardstick.written, x)), None)
        if start is None and (start := _feasible_point(case)) is None:
            return False
        return improves_for_ever(yardstick.written, start, flat)


def _feasible_point(case: Case) -> Array | None:
    """Return a point that satisfies all constraints and has a value, found with little effort, or None."""
    yardstick = case.yardstick
    declaration = yardstick.declaration
    conditions = [*declaration.constraints.values(), *declaration.objective.args[0].domain]
    with values_kept(case):
        zero = yardstick.point({name: np.zeros(one.shape) for name, one in declaration.variables.items()})
        bare = cp.Problem(cp.Minimize(0), conditions)
        found = (x for x, _ in _points(case, bare)) if bare.variables() else [zero]
        return next((x for x in found if feasible(yardstick.written, x)), None)


def _points(case: Case, problem: cp.Problem) -> Iterator[tuple[Array, float]]:
    """Yield the solutions of a problem in a case's variables, moved into the domain, by one solver after the other.

    With each comes what its violations are worth at its multipliers: the optimum may be worse by so much.
    """
    yardstick = case.yardstick
    for solution in attempts(problem, ATTEMPTS):
        if solution.status in SOLVED and not solution.error:
            for variable in yardstick.declaration.variables.values():
                if variable.value is None:
                    variable.save_value(np.zeros(variable.shape))
            yield yardstick.domain.moved(yardstick.point(yardstick.declaration.values()))[0], _worth(solution)


def _worth(solution: ConicSolution) -> float:
    """Return the worth of a solution's violations at its multipliers."""
    if solution.x is None or solution.z is None:
        return 0.0
    layout, slack = solution.program.layout, solution.program.slack(solution.x)
    return float(layout.block_distances(slack) @ layout.block_norms(solution.z))


def _bound(case: Case) -> float:
    """Return the bound of the first dual that certifies one: of the problem in other units, all eigenvalues kept."""
    whole = with_every_eigenvalue(case.declare().problem, below=True)
    for solver, tolerance in ATTEMPTS:
        with suppress(cp.error.SolverError):
            solution, _ = solve_scaled(whole, solver, solver_spec(solver).timed_options(tolerance))
            if solution.status in SOLVED and (value := solution.lower_bound.value) is not None:
                return solution.program.user_value(value)
    return float("nan")


def _growth(case: Case, size: float) -> Growth:
    found: list[tuple[float, float]] = []
    with values_kept(case):
        for times in BOXES:
            value = _within(case, times * size)
            if not np.isfinite(value):
                break
            found.append((times * size, value))
    return Growth(tuple(bound for bound, _ in found), tuple(value for _, value in found))


def _within(case: Case, size: float) -> float:
    """Return the objective at the best point found with entries of at most `size`; NaN if none is feasible."""
    declaration = case.yardstick.declaration
    variables = declaration.variables.values()
    box = [bound for variable in variables for bound in (variable <= size, variable >= -size)]
    boxed = cp.Problem(declaration.objective, [*declaration.constraints.values(), *box])
    with np.errstate(all="ignore"):
        found = ((x, worth) for x, worth in _points(case, boxed) if feasible(case.yardstick.written, x, FEASIBLE))
        return next((_worst_case(case, x, worth) for x, worth in found), float("nan"))


def _worst_case(case: Case, x: Array, worth: float) -> float:
    """Return the objective at a point, made worse by the effects of rounding of its terms and of its violations."""
    written = case.yardstick.written
    state = written.state(x)
    return written.objective(state) + written.sign * (NOISE * written.terms(state) + PRICED * worth)
