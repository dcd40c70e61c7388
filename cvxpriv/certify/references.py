"""The reference of a cross-check, which the answers are compared with, and the reason for it.

============  =======================================================================================================
best          of the answers that a certified bound proves optimal the nearest to it; else the one with the smallest
              exact residual, or a better one that meets every constraint to rounding
closed form   the case's exact update
accurate      the best of several re-solves at tight tolerances, from the answer before where a solver takes one, and
              in other units if none is accurate
values        the caller's own
============  =======================================================================================================

Where no multipliers are finite, violations of 1e-16 buy values of 1e-8, and no distance from stationary says anything
of a point. There one feasible point is compared with another. A solver's point misses constraints by rounding and more,
and is moved: onto the affine constraints, and a little towards a point that all others leave room.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeAlias

import cvxpy as cp
import numpy as np

from cvxpriv.certify.answers import CLAIMED, ROUNDED, Answer, context_of
from cvxpriv.certify.cases import Case, values_kept
from cvxpriv.certify.problem_checks import capable
from cvxpriv.certify.proofs import PRICED, SOLVED_SIZE, Growth, Proofs
from cvxpriv.certify.solver_answers import claimed_answer, place_for, solver_answer
from cvxpriv.certify.verdicts import Tolerances
from cvxpriv.errors import ModelError, suggest
from cvxpriv.kkt.rays import feasible, violations
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.solvers.place import HERE, Place
from cvxpriv.solvers.registry import solver_spec

CLOSED_FORM = "closed form"
"""Name of an exact update in the table."""
PROVEN = 1e-6
"""Relative distance of a certified bound within which an answer is proven optimal."""
USELESS = 1e-4
"""Exact residual from which on a solver's answer judges nobody that has a smaller one."""
ROUNDING = 1e-15
"""Violation, relative, that nobody sees."""
KINDS = ("best", CLOSED_FORM, "accurate")
TOLERANCES = (1e-10, 1e-12, 1e-14)
"""Tolerances that an accurate reference requests. A solver that cannot reach one wastes iterations, and the best answer
is kept."""
PRECISE = ("CLARABEL", "ECOS", "HIGHS", "OSQP")
"""Solvers of accurate references. SCS, a first-order method, is asked only where these take none of the problem's
cones."""
WARM = ("OSQP", "SCS")
"""First-order methods, which continue from an answer."""

ReferenceLike: TypeAlias = "str | Mapping[Any, Any] | None"


@dataclass(frozen=True)
class Reference:
    """The reference that answers are compared with.

    `objective`: Objective in the sense of the problem; NaN if there is none.
    `values`: Values of the variables; empty if there are none.
    `why`: The choice, and the reason for it.
    `quality`: Largest exact residual of the answer.
    """

    objective: float
    values: Values
    why: str
    quality: float = float("inf")


def reference_of(case: Case, answers: Sequence[Answer], wanted: ReferenceLike, place: Place = HERE) -> Reference:
    """Choose the reference of a case; None is the closed form if there is one, otherwise the best answer.

    Raises ModelError: There is no such kind, no closed form, or the values do not fit the case's variables.
    """
    if isinstance(wanted, Mapping):
        return _of(claimed_answer(case, "reference", wanted, place=place), "the caller's own values")
    if wanted is not None and wanted not in KINDS:
        raise ModelError(f"reference={wanted!r} is not known: {suggest(str(wanted), KINDS)}, or values by variable")
    if wanted == CLOSED_FORM and case.exact is None:
        raise ModelError(f"reference='closed form': {case.name} has none; take 'best' or 'accurate'")
    if wanted == "accurate" and case.mixed is not None:
        raise ModelError(f"reference='accurate': {case.name} is mixed-integer; take 'best', or values by variable")
    if wanted == "accurate":
        best, how = accurate_answer(case, place=place)
        if not np.isfinite(best.quality):
            return Reference(float("nan"), {}, f"none: {how}")
        return _of(best, f"accurate: {best.solver} at {best.asked:.0e}, {how}")
    exact = [answer for answer in answers if answer.solver == CLOSED_FORM]
    if exact and wanted != "best":
        return _of(exact[0], "closed form: exact")
    usable = [answer for answer in answers if np.isfinite(answer.quality)]
    if not usable:
        return Reference(float("nan"), {}, "none: nobody returned a solution")
    # A solution from elsewhere is judged, and judges nobody, while a solver has one that is worth something.
    good = [answer for answer in usable if answer.quality <= USELESS]
    own = [answer for answer in good if answer.status != CLAIMED]
    maximise = isinstance(case.declare().objective, cp.Maximize)
    context = context_of(case, answers)
    # Whoever gave it: neither a bound nor a better point that meets every constraint needs trust.
    proven = [answer for answer in usable if context.proven(answer, PROVEN)]
    if proven:
        best = min(proven, key=lambda one: (max(context.proven_gap(one), one.miss), one.status == CLAIMED))
        return _of(best, f"{best.solver}: {context.proven_gap(best):.0e} from a certified bound")
    sign = -1.0 if maximise else 1.0
    best = min(own or good or usable, key=lambda answer: answer.quality)
    firm = [answer for answer in usable if answer.miss <= ROUNDED] or [best]
    better = min(firm, key=lambda answer: sign * answer.objective + _priced(answer))
    gain = sign * (best.objective - better.objective) - _priced(better)
    if gain > PROVEN * max(context.unit, abs(best.objective)):
        return _of(better, f"{better.solver}: it meets every constraint and is better than {best.solver}")
    return _of(best, f"{best.solver}: smallest exact residual of {len(answers)} answers")


def _priced(answer: Answer) -> float:
    """Return by how much a usable answer may be worse than it seems, at most, where it is no good one.

    Rounding buys roots where curves touch: ``x^2 <= y z`` at z = 0 is missed by 1e-15 with x = 1 at y = 3e7.
    """
    if answer.quality <= USELESS:
        return 0.0
    off = answer.infeasibility + ROUNDING
    bought = max(np.sqrt(off) * answer.size, off * answer.measures.bought)
    return PROVEN * answer.measures.terms + PRICED * float(bought)


def accurate_answer(case: Case, solvers: Sequence[str] = PRECISE, place: Place = HERE) -> tuple[Answer, str]:
    """Solve again at tight tolerances, by several solvers, and in other units if need be; return the best answer.

    SCS and OSQP start each tighter solve from the answer before, which they would pass again in any case. The others
    take no warm start: interior-point methods would only begin near the boundary, where they are slow.
    """
    names, _ = capable(case.declare().problem)
    precise = [name for name in names if name in solvers] or list(names)
    attempts: list[Answer] = []
    for rescaled in (False, True):
        if min((answer.quality for answer in attempts), default=np.inf) > TOLERANCES[0]:
            ended = [place_for(case, name, place, {}).call(_tightened, case, name, rescaled) for name in precise]
            attempts += [answer for ending in ended for answer in ending.value or ()]
    best = min(attempts, key=lambda answer: answer.quality, default=Answer("nobody", "failed", float("nan")))
    if not np.isfinite(best.quality):
        return best, "no re-solve at tight tolerances returned a solution"
    warm = best.solver in WARM and len(attempts) == len(precise) * len(TOLERANCES)
    start = "the first cold and then each from the answer before" if warm else "each from a cold start"
    return best, f"the best of {len(attempts)} re-solves at tight tolerances; by {best.solver} {start}"


def _tightened(case: Case, solver: str, rescaled: bool) -> list[Answer]:
    """Return the answers of one solver at tighter and tighter tolerances."""
    timed = [(tolerance, solver_spec(solver).timed_options(tolerance)) for tolerance in TOLERANCES]
    if rescaled or solver not in WARM:
        return [solver_answer(case, solver, *asked, rescaled=rescaled) for asked in timed]
    declaration = case.declare()
    held = replace(case, declare=lambda: declaration)  # the solver's last answer is kept with the problem
    return [solver_answer(held, solver, *asked, warm_start=k > 0) for k, asked in enumerate(timed)]


def _of(answer: Answer, why: str) -> Reference:
    exact = f"exact residual {answer.quality:.1e}"
    if np.isfinite(answer.measures.natural):
        exact += f", {answer.measures.natural:.1e} from stationary"
    return Reference(answer.objective, answer.values or {}, f"{why} ({exact})", answer.quality)


SHARES = (*10.0 ** np.arange(-9.0, 0.0), 0.5, 0.9, 0.99, 0.999)
"""Shares of the way from a point to a feasible one that are tried in turn."""

LEAST = 0.01 * ROUNDED
"""Violation allowed on the way to a point that cannot be made feasible: its square root must be worth nothing."""


def unbeaten(
    case: Case,
    answers: Sequence[Answer],
    known: Sequence[Answer | Reference],
    proofs: Proofs,
    tolerances: Tolerances,
    rough: bool,
) -> list[str]:
    """Return the feasible answers that are as good as the best point known would be if it met every constraint.

    As good to `agree`, beside an accurate point: a false answer is never accurate, and so vouches for nobody. Where no
    bound settles the best value, or it is near, a usable point will do for an answer without violations.
    `known`: The points that an answer has to stand beside.
    `rough`: Whether no answer's bound settles the best value: a claim that nobody asked a solver for has to be as good
    to `wrong_objective` alone then, beside a usable point.
    """
    agree, wrong = tolerances.agree, tolerances.wrong_objective
    points = [(one.values, one.quality) for one in known if one.values and one.quality <= USELESS]
    with values_kept(case):
        rivals = _Rivals(case, proofs, points)
        found = []
        for one in answers:
            claim = one.status == CLAIMED
            least, near = (wrong, ROUNDED) if claim and rough else (agree, agree)
            settled = not rough and abs(one.objective - known[0].objective) > wrong * max(1.0, abs(known[0].objective))
            usable = USELESS if one.infeasibility <= ROUNDED and not settled else agree
            accurate = (claim or one.status == cp.OPTIMAL) and one.solver != CLOSED_FORM
            if not accurate or one.values is None or one.infeasibility > near:
                continue
            gain, size = rivals.gain(one, usable)
            bought = one.infeasibility > ROUNDED and gain < -wrong * size  # by violations
            if gain <= least * max(size, one.measures.terms if claim and rough else 0.0) and not bought:
                found.append(one.solver)
        return found


class _Rivals:
    """The points that an answer has to stand beside, moved onto the affine constraints."""

    def __init__(self, case: Case, proofs: Proofs, points: Sequence[tuple[Values, float]]) -> None:
        self.yardstick, self.proofs = case.yardstick, proofs
        self.sign = -1.0 if isinstance(case.declare().objective, cp.Maximize) else 1.0
        moved = [(self.yardstick.firm(self.yardstick.point(values)), off) for values, off in points]
        self.points = [(x, self._value(x), off) for x, off in moved]

    def _value(self, x: Array) -> float:
        return self.sign * self.yardstick.value(x)[0]

    def _meets(self, x: Array, room: float = ROUNDED) -> bool:
        return feasible(self.yardstick.written, x, room)

    def gain(self, answer: Answer, usable: float) -> tuple[float, float]:
        """Return how much better than an answer a point of this quality is once feasible, and the size of its value.

        Where there is none, the best points of larger and larger boxes stand for it; without them it is infinite.
        """
        known = [(x, value) for x, value, off in self.points if off <= usable and np.isfinite(value)]
        beside = Growth((), ()) if known or answer.size > SOLVED_SIZE else self.proofs.growth(answer.size)
        boxed = [self.sign * value for value in beside.values]
        own, best = self.sign * answer.objective, min([*boxed, *(value for _, value in known)], default=-np.inf)
        gain = own - best
        if known and gain > 0.0 and answer.infeasibility <= ROUNDED:
            start = self.yardstick.point(answer.values or {})
            gain = max(own - self._value(one) for x, _ in known for one in [start, *self._beside(start, x)])
        return gain, max(1.0, abs(best)) if np.isfinite(best) else 1.0

    def _beside(self, start: Array, x: Array) -> Iterator[Array]:
        """Yield the nearest feasible points to a point: itself, or one towards the inside and one towards the start."""
        if self._meets(x) or violations(self.yardstick.written, x)[self.yardstick.affine].max(initial=0.0) > ROUNDED:
            yield x
            return
        for goal, room in ((self.proofs.inside, ROUNDED), (start, LEAST)):
            mixed = () if goal is None else (x + share * (goal - x) for share in SHARES)
            yield from islice((one for one in mixed if self._meets(one, room)), 1)
