"""The search for the alpha and the mechanism whose values meet: master, crossover, verification, and again."""

from typing import NamedTuple

import numpy as np

from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.sizes import now

from .cells_of_s import Verified, verify
from .crossover import ARRIVED, cross_over, extended
from .linear_master import generate_columns
from .priced_constraints import PricedConstraints
from .pricing import ULPS, Pricing, sharpened
from .smoothed_master import (
    FEW_INPUTS,
    LAST_TAU,
    QUICK,
    SURE,
    Columns,
    Master,
    Pace,
    fewer,
    lifted,
    minima,
    mixture,
    settle,
    starting_shares,
)

#: Nats: values below this count as this where a relative gap is asked for.
FLOOR = 1e-3
#: Rounds of master and verification: at the quick pace, which takes five at most or never arrives, and at the sure one.
FEW, ROUNDS = 8, 25
#: By what tau falls where a round is not exact enough, and how far.
FINER, LEAST_TAU = 0.3, 1e-9
#: Steps of climbing where J has edges.
EDGED_CLIMB = 20
#: The price, in nats, below which the linear master ignores columns at first.
FIRST_PRICE = 1e-8
#: Share of the time after which the master hands over what it has.
MASTER_TIME = 0.8
#: After an interrupt: the relative gap that is tried for, and for how many seconds.
LAST_SHARE, LAST_SECONDS = 0.1, 1.0
#: J up to this is 0; an alpha that moves less has not moved.
NOTHING, STILL = 1e-13, 1e-10
#: Share of the tolerance for the cells, at least; a threshold below prices that were seen proves nothing.
LEAST_SHARE, MARGIN = 0.25, 1.05


class Found(NamedTuple):
    """The result of a search.

    `upper`: A bound of the optimum, nats.
    `alpha`, (|Y|,): The multipliers that it comes from.
    `mechanism`, (|Y|, |U|): P(U|Y).
    `value`: Value of the mechanism, in nats.
    `interrupted`: Whether the keyboard ended it.
    `asked`, `mu`: The conditions that `upper` is under, and the multipliers of their sums over columns; those that
    ended with None are the ones it was asked for, without sums.
    """

    upper: float
    alpha: Array
    mechanism: Array
    cells: int
    value: float = 0.0
    interrupted: bool = False
    asked: PricedConstraints | None = None
    mu: Array = np.zeros(0)


class _Smooth:
    """Proposals of the smoothed master and the crossover."""

    def __init__(self, pricing: Pricing, grid: Array, pace: Pace, deadline: float) -> None:
        self.pricing, self.grid, self.tau = pricing, grid, LAST_TAU
        self.master, self.crosses = Master(np.zeros(pricing.p_y.size), grid), True
        try:
            if pricing.p_y.size > 2 * FEW_INPUTS:
                few = _Smooth(fewer(pricing), grid, pace, deadline)
                self.interrupted, self.crosses = few.interrupted, few.columns.residual <= ARRIVED
                self.master = lifted(pricing, few.pricing, few.master, deadline)
                self.master = settle(pricing, self.master, self.tau, grid, deadline)
            else:
                for master in minima(pricing, grid, pace, deadline):
                    self.master = master
        except KeyboardInterrupt:
            self.interrupted = True
        self.columns = self._crossed(deadline)

    interrupted = False
    columns: Columns

    def _crossed(self, deadline: float) -> Columns:
        """The crossover's columns; where Newton's method does not arrive, those that the master mixes."""
        if self.crosses and now() <= deadline:
            found = cross_over(self.pricing, self.master, deadline)
            if found.residual <= ARRIVED:
                return found
        return mixture(self.pricing, self.master, self.tau, deadline)

    def learn(self, share: Array, deadline: float) -> None:
        """Add columns to an exact solution; where that leads nowhere, smooth less."""
        before = self.columns
        if before.residual <= ARRIVED:
            self.columns = extended(self.pricing, before, share, deadline)
            if self.columns.residual <= ARRIVED and np.abs(self.columns.alpha - before.alpha).max() > STILL:
                return
        self.master = self.master._replace(share=np.vstack([share, self.master.share]))
        self.refine(deadline)

    def refine(self, deadline: float) -> None:
        """Smooth less."""
        self.tau = max(FINER * self.tau, LEAST_TAU)
        self.master = settle(self.pricing, self.master, self.tau, self.grid, deadline)
        self.columns = self._crossed(deadline)


class _Linear:
    """Proposals of the linear master."""

    def __init__(self, pricing: Pricing, grid: Array, pace: Pace, deadline: float) -> None:
        self.pricing, self.grid, self.tolerance = pricing, grid, FIRST_PRICE
        self.columns = generate_columns(pricing, grid, self.tolerance, deadline)

    interrupted = False

    def learn(self, share: Array, deadline: float) -> None:
        """Start local search from more points."""
        self.grid = np.vstack([share, self.grid])
        self.columns = generate_columns(self.pricing, self.grid, self.tolerance, deadline)

    def refine(self, deadline: float) -> None:
        """Ask for columns of a smaller price too."""
        self.tolerance = max(FINER * self.tolerance, LEAST_TAU)
        self.columns = generate_columns(self.pricing, self.grid, self.tolerance, deadline)


def search(pricing: Pricing, gap: float, deadline: float) -> Found:
    """Bound the optimum to a relative gap, or as far as the deadline, a value of `time.monotonic`, allows.

    A keyboard interrupt ends it with what there is: a mechanism, and a bound that one more second of verification
    makes, or none (`upper` is then infinite).
    """
    nothing = np.zeros(pricing.p_y.size)
    best = Found(np.inf, nothing, np.ones((pricing.p_y.size, 1)), 0)
    begun = now()
    halfway = begun + MASTER_TIME * max(deadline - begun, 0.0)
    more = np.zeros((0, pricing.p_s.size))
    for pace, rounds in ((QUICK, FEW), (SURE, ROUNDS)) if pricing.smooth else ((SURE, ROUNDS),):
        grid = np.vstack([more, starting_shares(pricing.channel, pace.points)])
        try:
            if best.value <= 0.0 and _worthless(pricing, grid):
                shown = verify(pricing, nothing, gap * FLOOR, deadline)
                best = best._replace(upper=above(pricing, nothing, shown), cells=best.cells + shown.cells)
                if not len(shown.above):
                    return best
                more = shown.above
                grid = np.vstack([more, grid])
            propose = (_Smooth if pricing.smooth else _Linear)(pricing, grid, pace, halfway)
        except KeyboardInterrupt:
            return best._replace(interrupted=True)
        refinement = _Refinement(pricing, gap, grid, best, propose)
        try:
            if propose.interrupted:
                return refinement.ended()
            done = refinement.run(rounds, pace is SURE, halfway, deadline)
        except KeyboardInterrupt:
            return refinement.ended()
        best = refinement.best
        if done:
            break
    return best


def _worthless(pricing: Pricing, grid: Array) -> bool:
    """Whether local search finds no column that is worth anything: then nothing may be the best mechanism."""
    nothing = np.zeros(pricing.p_y.size)

    def worth(share: Array) -> float:
        return float(pricing.surface(pricing.mu_of(share), nothing).value.max())

    return worth(grid) <= NOTHING and worth(_risen(pricing, grid, nothing)) <= NOTHING


class _Refinement:
    """Proposals and verifications in turn."""

    def __init__(self, pricing: Pricing, gap: float, grid: Array, best: Found, propose: _Smooth | _Linear) -> None:
        self.pricing, self.gap, self.grid, self.best, self.propose = pricing, gap, grid, best, propose

    def run(self, rounds: int, final: bool, halfway: float, deadline: float) -> bool:
        """Go on until the gap is reached or the time is over, or say that a surer pace is needed.

        `halfway`: When verification begins at the latest. `final`: Whether the last round verifies what there is.
        """
        for turn in range(rounds):
            columns = self.propose.columns
            self._keep(columns)
            if now() > deadline:
                return True
            value, tolerance = self.best.value, self.gap * max(self.best.value, FLOOR)
            points = _risen(self.pricing, np.vstack([self.grid, columns.x @ self.pricing.channel.T]), columns.alpha)
            prices = self.pricing.surface(self.pricing.mu_of(points), columns.alpha).value
            lacking = float(columns.alpha @ self.pricing.p_y) - value
            last = (final and turn == rounds - 1) or now() > halfway
            threshold = max(tolerance - lacking, LEAST_SHARE * tolerance)
            if prices.max() > threshold and not last:
                self.propose.learn(points[prices > threshold], halfway)
                continue
            if lacking > (1.0 - LEAST_SHARE) * tolerance and not last:
                self.propose.refine(halfway)
                continue
            shown = self._verified(columns.alpha, max(threshold, MARGIN * float(prices.max())), deadline)
            if last or self.best.upper - value <= tolerance:
                return True
            if len(shown.above):
                self.propose.learn(shown.above, halfway)
            else:
                self.propose.refine(halfway)
        return final

    def ended(self) -> Found:
        """Return the results so far after an interrupt; a second of verification is added if there was none."""
        self._keep(self.propose.columns)
        if self.best.upper == np.inf:
            tolerance = LAST_SHARE * max(self.best.value, FLOOR)
            self._verified(self.propose.columns.alpha, tolerance, now() + LAST_SECONDS)
        return self.best._replace(interrupted=True)

    def _keep(self, columns: Columns) -> None:
        """Keep the columns' mechanism if it is the best so far."""
        mechanism = mechanism_of(columns, self.pricing.p_y)
        if (worth := value_of(mechanism, self.pricing)) > self.best.value:
            self.best = self.best._replace(mechanism=mechanism, value=worth)

    def _verified(self, alpha: Array, threshold: float, deadline: float) -> Verified:
        shown = verify(self.pricing, alpha, threshold, deadline)
        self.best = self.best._replace(cells=self.best.cells + shown.cells)
        if (upper := above(self.pricing, alpha, shown)) < self.best.upper:
            self.best = self.best._replace(upper=upper, alpha=alpha)
        return shown


def _risen(pricing: Pricing, share: Array, alpha: Array) -> Array:
    """Local maxima of J, or points near them where J has edges."""
    return sharpened(pricing, share, alpha) if pricing.smooth else pricing.climb(share, alpha, EDGED_CLIMB)


def above(pricing: Pricing, alpha: Array, shown: Verified) -> float:
    """alpha.P_Y + the largest price, rounded up."""
    rounding = ULPS * (float(np.abs(alpha) @ pricing.p_y) * np.log2(len(alpha) + 2) + abs(shown.bound))
    return float(max(float(alpha @ pricing.p_y) + shown.bound + rounding, 0.0))


def mechanism_of(columns: Columns, p_y: Array) -> Array:
    """P(U|Y), (|Y|, |U|), of columns; rows that they leave short are filled up as the others are."""
    joint = np.maximum(columns.weight, 0.0) * columns.x.T
    reached = joint.sum(axis=1, keepdims=True)
    if not (reached > 0.0).all():
        joint = joint + LEAST_SHARE * 1e-9 * np.outer(p_y, columns.weight)
        reached = joint.sum(axis=1, keepdims=True)
    return np.asarray(joint / reached)


def value_of(mechanism: Array, pricing: Pricing) -> float:
    """I(S;U) - beta E[f] of P(U|Y), nats."""
    joint = pricing.p_y[:, None] * mechanism
    weight = joint.sum(axis=0)
    used = weight > 0.0
    return float(pricing.gain((joint[:, used] / weight[used]).T) @ weight[used])
