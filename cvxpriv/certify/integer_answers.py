"""Answers to mixed-integer problems: measured with integers fixed, and bounded by branches of the relaxation.

An answer is measured as one of the convex problem that is left with its whole numbers fixed: is it feasible there, and
is the continuous rest as good as it can be? Whether other whole numbers are better is for bounds to say: the relaxation
is branched over. Each branch is a convex problem with a bound that its dual certifies, or a certificate of
infeasibility; the least bound of what is left of them bounds the whole.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.certify.answers import INTEGRAL, NAN, Answer, measured
from cvxpriv.certify.cases import Case, case_of_problem
from cvxpriv.certify.proofs import Growth, Proofs
from cvxpriv.certify.solver_answers import FIRST, LIMIT, OPTIONS
from cvxpriv.certify.verdicts import CERTIFIED, SMALL, Verdict
from cvxpriv.errors import ModelError
from cvxpriv.kkt.conic.certificates import Certificate
from cvxpriv.kkt.conic.solving import attempts
from cvxpriv.kkt.coordinates import held
from cvxpriv.kkt.integers import MixedInteger
from cvxpriv.kkt.rays import feasible
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.solvers.chain import Attempt, try_solver
from cvxpriv.solvers.place import Place, solvers_silent
from cvxpriv.solvers.registry import fallback_chain

NODES = 60
"""Branches that are looked at at most."""
WHOLE = 1e-9
"""Distance from an allowed value that need not be cut off: behind a coefficient of 1e6, one of 1e-6 is worth 1."""
SECONDS = 10.0
"""Limit on the clock: no branch is begun after it, and none that is begun may take longer than this."""


@dataclass(frozen=True)
class Branched:
    """The proofs that the branches of a relaxation give.

    `bound`: Certified, in the sense of the problem; NaN where there is none.
    `infeasible`: Every branch is proven empty.
    `nodes`: Branches looked at.
    `late`: Whether it ended at `SECONDS`.
    """

    bound: float
    infeasible: bool
    nodes: int
    late: bool = False


def branched(mixed: MixedInteger, incumbent: float, unit: float = 1.0) -> Branched:
    """Return what branches of the relaxation prove of the optimum.

    `incumbent`: The best value of a feasible point in the sense of the problem, or NaN: branches that cannot be better
    are left.
    `unit`: Size of the objective's coefficients, at most 1.
    """
    sign = -1.0 if isinstance(mixed.problem.objective, cp.Maximize) else 1.0
    best = sign * incumbent if np.isfinite(incumbent) else np.inf
    target = best - 1e-9 * max(unit, abs(best)) if np.isfinite(best) else np.inf
    order, leaves = count(), [best]
    everywhere = [
        (np.full(one.expression.size, -np.inf), np.full(one.expression.size, np.inf)) for one in mixed.restrictions
    ]
    open_nodes: list[tuple[float, int, list[tuple[Array, Array]]]] = [(-np.inf, next(order), everywhere)]
    nodes, end = 0, time.perf_counter() + SECONDS
    while open_nodes and nodes < NODES and time.perf_counter() < end:
        above, _, boxes = heapq.heappop(open_nodes)
        if above >= target:
            leaves.append(above)
            continue
        nodes += 1
        bound, children = _node(mixed, boxes, sign)
        bound = max(bound, above)
        if bound == np.inf:
            continue
        if bound >= target or not children:
            leaves.append(bound)
            continue
        for child in children:
            heapq.heappush(open_nodes, (bound, next(order), child))
    lowest = min([*leaves, *(bound for bound, _, _ in open_nodes)])
    empty = lowest == np.inf
    late = bool(open_nodes) and nodes < NODES
    return Branched(sign * lowest if np.isfinite(lowest) else NAN, empty, nodes, late)


def _node(
    mixed: MixedInteger, boxes: list[tuple[Array, Array]], sign: float
) -> tuple[float, list[list[tuple[Array, Array]]]]:
    """The certified bound of one branch, infinite if it is empty, and its two halves; none where it need not be cut."""
    chain = ((solver, None) for solver in fallback_chain(None))
    solution = next(attempts(mixed.within(boxes), chain, SECONDS), None)
    if solution is None:
        return -np.inf, []
    if (proof := solution.certificate) is not None and solution.status.startswith("infeasible") and proof.exact:
        return np.inf, []
    found = solution.lower_bound.value if solution.status == cp.OPTIMAL else None
    bound = -np.inf if found is None else found
    if solution.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        return bound, []
    worst, place = WHOLE, None
    for k, one in enumerate(mixed.restrictions):
        at = one.value
        off = np.abs(at - one.nearest(at))
        if off.max(initial=0.0) > worst:
            worst, place = float(off.max()), (k, int(off.argmax()))
    if place is None:
        return bound, []
    k, entry = place
    below, above = mixed.restrictions[k].around(float(mixed.restrictions[k].value[entry]))
    halves = []
    for side, limit in ((1, below), (0, above)):
        half = [(low.copy(), high.copy()) for low, high in boxes]
        half[k][side][entry] = limit
        halves.append(half)
    return bound, halves


ASKED = 1e-6
"""The gap that a mixed-integer answer must reach: the gap requested of each solver is smaller."""
_OPEN = (cp.USER_LIMIT, cp.OPTIMAL_INACCURATE, cp.INFEASIBLE_INACCURATE, cp.UNBOUNDED_INACCURATE)
"""Statuses of a solve that a limit ended."""


GAPS = frozenset(
    ("mip_rel_gap", "mip_abs_gap", "mi_rel_eps", "mi_abs_eps", "limits/gap", "limits/absgap", "MIPGap", "MIPGapAbs")
)
"""Options of solvers by which a caller may ask for less."""


def integer_options(solver: str, own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the whole option set of a mixed-integer solve, overridden by a caller's own."""
    asked: dict[str, Any] = dict(OPTIONS.get(solver, {}))
    for name, value in own.items():
        asked[name] = {**asked[name], **value} if isinstance(asked.get(name), Mapping) else value
    return asked


def _accuracy(own: Mapping[str, Any]) -> float:
    """Return the gap that a caller's own options ask for, where that is more than `ASKED`."""
    parts = [part for value in own.values() if isinstance(value, Mapping) for part in value.items()]
    return max([ASKED, *(float(value) for name, value in [*own.items(), *parts] if name in GAPS)])


def integer_answer(case: Case, solver: str, own: Mapping[str, Any]) -> Answer:
    """Solve a mixed-integer case by one solver, and measure its answer."""
    mixed = _apart(case)
    problem = cp.Problem(mixed.problem.objective, mixed.problem.constraints)
    with held([variable for variable, _ in mixed.twins], problem.constraints):
        with solvers_silent():
            attempt = _attempted(problem, solver, own)
        known: dict[str, Any] = {
            "seconds": attempt.seconds,
            "iterations": attempt.iterations,
            "error": attempt.message,
            "bound_reason": "none: branches of the relaxation give none",
        }
        if attempt.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
            names = case.declare().variables
            by_twin = {twin.id: variable.value for variable, twin in mixed.twins}
            values = {name: by_twin[twin.id] for name, twin in names.items()}
            if all(value is not None for value in values.values()):
                known |= measured(case, values, None)
    return Answer(solver, attempt.status, _accuracy(own), **known)


def _attempted(problem: cp.Problem, solver: str, own: Mapping[str, Any]) -> Attempt:
    """One attempt of a solver within its limit; its message says where the limit ended it."""
    asked = integer_options(solver, own)
    attempt = try_solver(problem, solver, deepcopy(asked), symbolic=False)
    if solver == "ECOS_BB" and attempt.status in _OPEN and "mi_max_iters" not in own:
        nodes = int(np.clip(FIRST * LIMIT / max(attempt.seconds, 1e-6), FIRST, 10_000))
        attempt = try_solver(problem, solver, {**asked, "mi_max_iters": nodes}, symbolic=False)
    if solver == "ECOS_BB" and attempt.status in _OPEN[2:]:  # cvxpy's names for "no point found up to the limit"
        attempt = replace(attempt, status=cp.USER_LIMIT)
    if attempt.status in _OPEN and not attempt.message:
        return replace(
            attempt, message=f"{solver} stopped at its limit, after {attempt.seconds:.3g} s: options give more"
        )
    return attempt


def with_bounds(answers: Sequence[Answer], case: Case, place: Place) -> tuple[list[Answer], IntegerProofs]:
    """Return answers with the bound that branches certify, and what these prove."""
    maximise = isinstance(_apart(case).problem.objective, cp.Maximize)
    values = [one.objective for one in answers if np.isfinite(one.quality) and one.infeasibility <= ASKED]
    incumbent = (max if maximise else min)(values, default=NAN)
    ending = place.call(branched, _apart(case), incumbent, case.yardstick.unit)
    proof = ending.value if isinstance(ending.value, Branched) else Branched(NAN, False, 0)
    reason = f"from {proof.nodes} branches of the relaxation, each bounded by its dual or proven empty"
    reason += f"; no others in the {SECONDS:g} s that they have" if proof.late else ""
    proofs = IntegerProofs(case, place, proof=proof)
    if not np.isfinite(proof.bound):
        return list(answers), proofs
    return [
        one if one.values is None else replace(one, bound=proof.bound, bound_reason=reason) for one in answers
    ], proofs


def _integral(mixed: MixedInteger, case: Case, direction: Values) -> Values | None:
    """A direction scaled so that it leads from whole numbers to whole numbers; None where that is not found."""
    for name, twin in case.declare().variables.items():
        twin.save_value(np.asarray(direction[name], dtype=float).reshape(twin.shape))
    if any(one.allowed is not None for one in mixed.restrictions):
        return None
    entries = np.concatenate([one.value for one in mixed.restrictions])
    moving = np.abs(entries) > INTEGRAL * np.abs(entries).max(initial=0.0)
    if not moving.any():
        return None
    steps = entries[moving] / np.abs(entries[moving]).min()
    if np.abs(steps - np.round(steps)).max() > INTEGRAL:
        return None
    scale = 1.0 / float(np.abs(entries[moving]).min())
    return {name: scale * np.asarray(value, dtype=float) for name, value in direction.items()}


@dataclass(eq=False, kw_only=True)
class IntegerProofs(Proofs):
    """Proofs about a mixed-integer case: it is empty, by its branches, or endless with integers fixed.

    Points of the relaxation, and its rays, say nothing.
    """

    proof: Branched

    @cached_property
    def infeasible(self) -> Certificate | None:
        """An exact certificate of infeasibility, or what stands for one: every branch has its own."""
        return Certificate("infeasible", 0.0, 0.0, np.inf, True, True) if self.proof.infeasible else None

    def endless(self, direction: Values, starts: Sequence[Values]) -> bool:
        """Not by a solver's direction, which may leave the whole numbers."""
        return False

    def ray(self, starts: Sequence[Values]) -> bool:
        """Whether the problem improves for ever from a point: with its integers fixed, or along whole numbers."""
        allowed = self._allowed(starts)
        for values, left in allowed:
            if left.ray([values]):
                return True
        direction = self.direction if allowed else None
        scaled = None if direction is None else _integral(_apart(self.case), self.case, direction)
        return scaled is not None and super().endless(scaled, [values for values, _ in allowed])

    def inhabited(self, starts: Sequence[Values]) -> bool:
        """Whether a feasible point with whole numbers is known."""
        return any(left.inhabited([values]) for values, left in self._allowed(starts))

    def _allowed(self, starts: Sequence[Values]) -> list[tuple[Values, Proofs]]:
        """The feasible ones, and zero, with whole numbers where they must, and proofs of what is left."""
        found, mixed, variables = [], _apart(self.case), self.case.declare().variables
        for values in [*starts, {name: np.zeros(twin.shape) for name, twin in variables.items()}]:
            for name, twin in variables.items():
                twin.save_value(values[name])
            yardstick = self.case.yardstick
            if mixed.off()[0] <= INTEGRAL and feasible(yardstick.written, yardstick.point(values)):
                found.append((values, Proofs(case_of_problem(self.case.name, mixed.fixed()), self.place)))
        return found

    def growth(self, size: float) -> Growth:
        """Nothing: it would be the relaxation's."""
        return Growth((), ())


def unproven(verdict: Verdict, answer: Answer) -> Verdict:
    """Return the verdict on an answer whose integers no bound proves best: no small residual says so."""
    if verdict.verdict != "agrees" or verdict.known_by == CERTIFIED:
        return verdict
    near = f"the branches of the relaxation that were looked at prove a bound of {answer.bound:.6g} alone"
    why = near if np.isfinite(answer.bound) else "no bound of the relaxation is certified"
    why += f"; {answer.error}" if answer.error else ""
    return Verdict(
        "loose", f"feasible, and best for its integers; that no others are better is not proven: {why}", SMALL
    )


def _apart(case: Case) -> MixedInteger:
    if case.mixed is None:
        raise ModelError(f"{case.name} has no integer variables: it is judged as a convex problem")
    return case.mixed
