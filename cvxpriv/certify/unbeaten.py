"""Feasible answers that no known point beats once that one is feasible too.

Where no multipliers are finite, violations of 1e-16 buy values of 1e-8, and no distance from stationary says anything
of a point. There one feasible point is compared with another. A solver's point misses constraints by rounding and more,
and is moved: onto the affine constraints, and a little towards a point that all others leave room. Where there is no
such point, it vouches for what is feasible on the way to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import cvxpy as cp
import numpy as np

from cvxpriv.certify.answers import CLAIMED, ROUNDED, Answer
from cvxpriv.certify.cases import Case, values_kept
from cvxpriv.certify.proofs import SOLVED_SIZE, Growth, Proofs
from cvxpriv.certify.references import CLOSED_FORM, USELESS, Reference
from cvxpriv.certify.verdicts import Tolerances
from cvxpriv.kkt.rays import feasible, violations
from cvxpriv.numerics.arrays import Array, Values

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
