"""Refinement: a block whose declaration is an outer approximation, solved again until its gap is small.

The declaration bounds a convex objective from one side, by cuts in its Parameters. Each solve gives a bound on the
optimum, and the true objective at the repaired solution gives the other one. In between, new cuts are placed at the
solution. The problem is compiled once.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from cvxpriv.errors import SolverFailure
from cvxpriv.numerics.arrays import Values
from cvxpriv.solvers.chain import Solution


@dataclass(frozen=True)
class Refinement:
    """The rule by which a block's cuts are refined.

    `refine`: Maps (the solver's own values, before repair; one start of the state) to state entries for the next round,
    from which the block's `parameters` reads its cuts. They are not part of the model's state: where they are missing,
    `parameters` takes its first cuts.
    `gap`: Gap at which rounds stop: bound and objective differ by at most this, relative to max(1, |objective|).
    `rounds`: Largest number of rounds.

    `repair` must give variables that the cuts bound their true values, so that the declared objective at repaired
    values is the true one.
    """

    refine: Callable[[Values, Values], Values]
    gap: float = 5e-8
    rounds: int = 40

    #: Number of rounds without a smaller gap after which the solver's own accuracy is the limit.
    patience: ClassVar[int] = 6


@dataclass(frozen=True)
class Round:
    """One round: the repaired solution, the solver's own values and value, and the sense."""

    solution: Solution
    raw: Values
    value: float
    maximise: bool


def solve_refined(refinement: Refinement, once: Callable[[Values], Round], view: Values) -> Solution:
    """Solve, refine and solve again; return the best solution with `rounds`, `gap`, `bound` and `refined` filled in.

    `once`: Maps one start of the state to a `Round`.
    `view`: One start of the state; it may hold cuts of an earlier solve.
    """
    cuts: Values = {}
    found = once(view)
    best, sign = found.solution, -1.0 if found.maximise else 1.0
    bound = sign * found.value
    gaps = [sign * best.objective - bound]
    while not _reached(refinement, best, gaps[-1]) and _goes_on(refinement, gaps):
        cuts = refinement.refine(found.raw, {**view, **cuts})
        try:
            found = once({**view, **cuts})
        except SolverFailure:
            break
        bound = max(bound, sign * found.value)
        if sign * found.solution.objective < sign * best.objective:
            best = found.solution
        gaps.append(sign * best.objective - bound)
    reached = _reached(refinement, best, gaps[-1])
    return replace(best, rounds=len(gaps), gap=gaps[-1], bound=sign * bound, refined=cuts, reached=reached)


def _reached(refinement: Refinement, best: Solution, gap: float) -> bool:
    return gap <= refinement.gap * max(1.0, abs(best.objective))


def _goes_on(refinement: Refinement, gaps: list[float]) -> bool:
    """Return whether rounds are left, and the last few of them improved anything."""
    before = gaps[: -refinement.patience]
    return len(gaps) < refinement.rounds and not (before and min(before) <= gaps[-1])
