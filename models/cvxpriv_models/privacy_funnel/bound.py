"""The best mechanism, proved: the least leakage at a rate, with a bound that every mechanism obeys.

    lower <= min { I(S;Y) : I(X;Y) >= R } <= upper,

where `upper` is reached by the mechanism that comes with it, and `lower` follows by weak duality from multipliers that
any reader can check.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.bounds.certificate import Certificate
from cvxpriv.bounds.columns import INTERRUPTED, OUT_OF_TIME, VERIFIED_SHARE, Generated, Generation
from cvxpriv.bounds.merged_symbols import merge, merged_table
from cvxpriv.errors import ModelError, SolverFailure
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.sizes import now
from cvxpriv.tables.information import entropy, mutual_information
from cvxpriv.tables.joint import JointTable

from .baselines import quickly_merged
from .columns import first_columns, mechanism_of, mixed_to_rate, posteriors_of, utility
from .perfect_privacy import silent_columns
from .pricing import LARGEST_S, FunnelPricing
from .problem import Problem

#: Distances above the rate, in nats, at which the master is solved until the mechanism's own I(X;Y) reaches it; the
#: first is that of the search.
NUDGES = (4e-15, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9)
#: Least distance of I(X;Y) above the rate, in nats: it then holds in whatever order a user adds it up.
ROOM = 2e-15
#: A column of less weight is left out of the mechanism: it is there by the linear program's tolerance.
LIGHT = 1e-11
#: A rate within this of H(X) is H(X): the identity is the only mechanism left.
FULL = 1e-12
#: Number of symbols of X from which the first program is solved with single symbols before other columns come: with all
#: at once it takes minutes at 1000 symbols.
STAGED = 320
#: Share of the time for column generation where merged private symbols may be left to prove the bound.
SEARCH_SHARE = 0.8
#: Share of the time for posteriors that tell nothing of S: where they reach the rate nothing else is needed.
SILENT_SHARE = 0.25
#: Such a search ends when a pass gains less than this, nats, several times in a row: the polish is faster then.
SEARCHED = 1e-6
#: Share of the time that is left for each table with merged private symbols.
MERGED_SHARE = 0.5
#: Largest number of groups of private symbols.
LARGEST_MERGED = 4
#: Share of the gap that a certificate leaves, so that its checker need not follow phi down to zero.
CLAIM_SHARE = 0.5
#: The same in nats, at least.
LEAST_CLAIM_ROOM = 1e-9


@dataclass(frozen=True)
class FunnelBound:
    """The least leakage at a rate, between two numbers.

    Attributes
    ----------
    lower : float
        Nats. No mechanism with I(X;Y) >= R leaks less.
    upper : float
        Nats: what `mechanism` leaks; where `reason` says that it misses constraints, I(S;X), which none exceeds.
    mechanism : array, ``(|X|, |Y|)``
        P(Y|X), with I(X;Y) >= R.
    certificate : Certificate
        The multipliers behind `lower`, to be checked without a solver.
    rate : float
        R in nats.
    seconds : float
    reason : str
        "" if the wanted gap was proved, else why not.
    counted : tuple of str
        The user's constraints that `lower` takes into account; the certificate states them, but for `uncertified`.
    ignored : tuple of str
        Those that it leaves out: it holds with them too, but the best mechanism that satisfies them may leak more.
    uncertified : mapping of str to str
        Those counted in `lower` but not in all of the certificate's claim, and why: the claim is then below `lower`.
    """

    lower: float
    upper: float
    mechanism: Array
    certificate: Certificate
    rate: float
    seconds: float
    reason: str
    counted: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    uncertified: Mapping[str, str] = field(default_factory=dict)

    @property
    def gap(self) -> float:
        """upper - lower, nats."""
        return self.upper - self.lower


def bound(
    joint: JointTable | ArrayLike,
    rate: float,
    gap: float = 1e-6,
    time_limit: float = 60.0,
) -> FunnelBound:
    """Bound the least leakage at a rate from both sides.

    `joint`: P(S, X).
    `rate`: R in nats, 0 <= R <= H(X).
    `gap`: Stop when upper - lower is at most this, in nats.
    `time_limit`: Seconds; after them the bound that is proved so far is returned, with the reason. A keyboard interrupt
    does the same.
    Raises DataError: The table is no joint distribution.
    Raises ModelError: The rate, the gap or the time limit is out of range.

    Examples
    --------
    >>> found = bound([[0.3, 0.1, 0.1], [0.05, 0.15, 0.3]], rate=0.5, gap=1e-8)
    >>> found.gap <= 1e-8, round(found.upper, 6)
    (True, 0.002477)
    """
    problem = Problem.of(joint, rate, "nats", None)
    return Prover(problem.table.probabilities).at(problem.rate, gap, time_limit)


def unsearched(problem: Problem, failure: SolverFailure) -> FunnelBound:
    """Return a bound, and a mechanism, that need no solver, where a search for better ones failed."""
    prover = Prover(problem.table.probabilities)
    found = prover._result(*prover._at_a_glance(problem.rate), problem.rate, 0.0, Clock(np.inf))
    return replace(found, reason=f"no better one was found: {failure}")


class Prover:
    """Bounds of one table; columns found at one rate serve at the next.

    `joint`: P(S, X), every column with mass.
    `columns`: Posteriors to begin with.
    `seed`: Seed of local pricing's random starts.

    `interrupted` tells whether the keyboard ended the last search.
    """

    def __init__(self, joint: Array, columns: Array | None = None, seed: int = 0) -> None:
        self.joint, self.seed, self.interrupted = joint, seed, False
        self.pricing = FunnelPricing(joint, 0.0, seed)
        self._given = columns

    @cached_property
    def generation(self) -> Generation:
        """The column generation of all rates below H(X), where the identity is the only mechanism."""
        columns = first_columns(self.pricing.p_x, self.pricing.p_s_given_x)  # in parts: all are several times u
        found = Generation(self.pricing, self.pricing.master(), next(columns))
        if len(self.pricing.p_x) >= STAGED:
            found.master.solve()
        for part in columns:
            found.add(part)
        if self._given is not None:
            found.add(self._given)
        return found

    def at(self, rate: float, gap: float = 1e-6, time_limit: float = 60.0) -> FunnelBound:
        """Bound the least leakage at `rate` nats; parameters as for `bound`.

        Raises ModelError: `gap` or `time_limit` is not positive.
        """
        if not gap > 0.0 or not time_limit > 0.0:
            raise ModelError(f"gap={gap!r} and time_limit={time_limit!r} have to be > 0: pass gap=1e-6, time_limit=60")
        clock = Clock(time_limit)
        self.pricing.rate = rate
        if rate == 0.0 or rate >= self.pricing.entropy_x - FULL:  # nothing need be told, or everything
            identity = np.eye(len(self.pricing.p_x))
            mechanism = identity if rate > 0.0 else identity.sum(axis=1, keepdims=True)
            return self._result(self._plain(), mechanism, rate, gap, clock)
        found, self.interrupted = None, False
        try:
            for one in self._found(rate, gap, clock):
                found = one
        except KeyboardInterrupt:
            self.__dict__.pop("generation", None)  # it may be half changed
            proof, mechanism = found or self._at_a_glance(rate)
            found = replace(proof, reason=INTERRUPTED), mechanism
        assert found is not None  # there is always one
        self.interrupted = found[0].reason == INTERRUPTED
        return self._result(*found, rate, gap, clock)

    def _found(self, rate: float, gap: float, clock: Clock) -> Iterator[tuple[_Proof, Array]]:
        """Proofs and mechanisms, each pair at least as good as those before."""
        if (found := self._at_once(rate, gap, clock)) is not None:
            yield found
            return
        proof, mechanism = self._generated(rate, gap, clock)
        yield proof, mechanism
        many = len(self.pricing.joint) > LARGEST_S or not self.pricing.certifiable
        if many and proof.reason != INTERRUPTED and self.leakage(mechanism) - proof.lower > gap:
            for other in self._merged(rate, gap, mechanism, proof.lower, clock):
                reason = other.reason or proof.reason
                proof = replace(max(proof, other, key=lambda one: one.lower), reason=reason)
                yield proof, mechanism
                if other.reason == INTERRUPTED:
                    return

    def _at_a_glance(self, rate: float) -> tuple[_Proof, Array]:
        """A proof and a mechanism without any search."""
        merged = quickly_merged(self.pricing.joint, rate)
        return self._plain(), mixed_to_rate(merged, self.pricing.p_x, rate + ROOM)

    def leakage(self, mechanism: Array) -> float:
        """I(S;Y) in nats of P(Y|X), (|X|, |Y|)."""
        return mutual_information(self.pricing.p_s_given_x @ (self.pricing.p_x[:, None] * mechanism))

    def _result(self, proof: _Proof, mechanism: Array, rate: float, gap: float, clock: Clock) -> FunnelBound:
        upper = self.leakage(mechanism)
        lower = min(max(proof.lower, 0.0), upper)  # both are exact but for rounding, and may meet
        claim = min(lower, proof.without_phi - max(CLAIM_SHARE * gap, LEAST_CLAIM_ROOM))
        certificate = Certificate.of(self.joint, rate, proof.nu, proof.lam, max(claim, 0.0), mechanism, proof.groups)
        ended, late = self.pricing.limits, proof.reason == OUT_OF_TIME
        ended = f"{ended}; {OUT_OF_TIME}, and other posteriors may still help" if ended and late else ended
        ended = proof.reason if proof.reason == INTERRUPTED or not ended else ended
        reason = "" if upper - lower <= gap else ended
        return FunnelBound(lower, upper, mechanism, certificate, rate, clock.seconds, reason)

    def _plain(self) -> _Proof:
        """I(S;Y) >= R - H(X|S): the dual point lam = 1, nu_i = -H(S|x_i), at which phi is H(X|S) given y."""
        pricing = self.pricing
        nu = -entropy(pricing.p_s_given_x, axis=0)
        lower = pricing.bound(np.append(nu, -1.0), 0.0)
        return _Proof(lower, nu, 1.0, lower, "")

    def _at_once(self, rate: float, gap: float, clock: Clock) -> tuple[_Proof, Array] | None:
        """Newton's method from the first columns, proved without column generation; None where that does not do."""
        if (solved := self.pricing.solved_at_once()) is None:
            return None
        joint = solved.columns * solved.weights
        mechanism = np.asarray(joint / joint.sum(axis=1, keepdims=True))
        if utility(self.pricing.p_x, mechanism) < rate + ROOM:
            return None
        shown = self.pricing.verify(solved.duals, -VERIFIED_SHARE * gap, clock.over, solved.columns)
        (lam, nu), lower = self.pricing.split(solved.duals), self.pricing.bound(solved.duals, shown.least)
        proof = _Proof(lower, nu, lam, self.pricing.bound(solved.duals, 0.0), shown.reason)
        return (proof, mechanism) if self.leakage(mechanism) - proof.lower <= gap else None

    def _generated(self, rate: float, gap: float, clock: Clock) -> tuple[_Proof, Array]:
        """Column generation at one rate: the better of its proof and the plain one, and its mechanism."""
        idle = None if self.pricing.certifiable else SEARCHED
        share = 1.0 if self.pricing.certifiable and len(self.pricing.joint) <= LARGEST_S else SEARCH_SHARE
        plain = self._plain()
        known = max(plain.lower, 0.0)
        if not self.pricing.certifiable and plain.lower <= 0.0:  # else even the best silent columns tell too little
            silent, weights = silent_columns(self.pricing.joint, rate, SILENT_SHARE * clock.limit, self.seed)
            mechanism = mechanism_of(silent, weights, self.pricing.p_x)
            if utility(self.pricing.p_x, mechanism) >= rate + ROOM and self.leakage(mechanism) - known <= gap:
                return plain, mechanism
        else:
            silent = np.zeros((len(self.pricing.p_x), 0))
        try:
            if not self.pricing.certifiable:
                self.generation.add(silent)
                self.generation.add(posteriors_of(quickly_merged(self.pricing.joint, rate), self.pricing.p_x))
            self._move(rate)
            generated = self.generation.run(gap, lambda: clock.over(share), known, self.pricing.entropy_s, idle)
            mechanism = self._mechanism(generated, rate)
        except SolverFailure as failure:  # a large program on a slow machine: what needs no program holds
            proof, mechanism = self._at_a_glance(rate)
            return replace(proof, reason=str(failure)), mechanism
        self._move(rate)
        lam, nu = self.pricing.split(generated.duals)
        proof = _Proof(generated.bound, nu, lam, self.pricing.bound(generated.duals, 0.0), generated.reason)
        return (proof if proof.lower > plain.lower else replace(plain, reason=generated.reason)), mechanism

    def _move(self, rate: float) -> None:
        self.pricing.rate = rate
        row = len(self.pricing.p_x)
        self.generation.master.set_row(row, -np.inf, max(self.pricing.entropy_x - rate - NUDGES[0], 0.0))

    def _mechanism(self, generated: Generated, rate: float) -> Array:
        """The columns in use as a mechanism with I(X;Y) >= R; what rounding takes from the rate is added again."""
        p_x, columns, weights = self.pricing.p_x, generated.columns, generated.weights
        tried = list[Array]()
        for nudge in NUDGES:
            if nudge > NUDGES[0]:
                self._move(rate + nudge)
                point = self.generation.master.solve()
                used = point.weights > LIGHT
                columns, weights = self.generation.pool.taken(used), point.weights[used]
            mechanism = mechanism_of(columns, weights, p_x)
            if utility(p_x, mechanism) >= rate + ROOM:
                return mechanism
            tried.append(mechanism)
        return mixed_to_rate(max(tried, key=lambda one: utility(p_x, one)), p_x, rate + ROOM)

    def _merged(self, rate: float, gap: float, mechanism: Array, known: float, clock: Clock) -> Iterator[_Proof]:
        """Proofs for the table with private symbols merged: Y tells no more of groups of them than of them.

        Groups of which the mechanism tells no more than the bound that is `known` cannot raise it.
        """
        joint_sy = self.joint @ mechanism
        for count in range(2, min(LARGEST_MERGED, len(self.joint) - 1) + 1):
            groups = merge(joint_sy, count)
            merged = merged_table(self.joint, groups)
            if mutual_information(merged @ mechanism) <= known:
                continue
            prover = Prover(merged, posteriors_of(mechanism, self.pricing.p_x), self.seed)
            left = clock.limit - clock.seconds
            if not prover.pricing.certifiable or left <= 0.0:
                return
            prover.pricing.rate = rate
            proof, _ = prover._generated(rate, gap, Clock(MERGED_SHARE * left))
            yield replace(proof, groups=tuple(int(group) for group in groups))


class Clock:
    """Seconds since it was made, as `now` counts them, and whether a limit is over."""

    def __init__(self, limit: float) -> None:
        self.limit, self._began = limit, now()

    @property
    def seconds(self) -> float:
        return now() - self._began

    def over(self, share: float = 1.0) -> bool:
        return self.seconds > share * self.limit


@dataclass(frozen=True)
class _Proof:
    """Multipliers, the bound that they prove, and what they would if phi were nowhere negative."""

    lower: float
    nu: Array
    lam: float
    without_phi: float
    reason: str
    groups: tuple[int, ...] | None = None
