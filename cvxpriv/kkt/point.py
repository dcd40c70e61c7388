"""A problem at a point: gradients, bounds, and the least-squares systems for multipliers and residuals."""

from functools import cached_property

import numpy as np
import scipy.sparse as sp

from cvxpriv.kkt.derivative_rules import domain_shortfall
from cvxpriv.kkt.derivatives import Slopes, slopes_at, stacked
from cvxpriv.kkt.fit import Columns, fitted_multipliers
from cvxpriv.kkt.flat import State
from cvxpriv.kkt.multipliers import bounded_least_squares
from cvxpriv.kkt.natural import KINKED, Parts, decompose, kinks_of, proximal_steps, slopes
from cvxpriv.kkt.written import Written
from cvxpriv.numerics.arrays import Array, Flags

STEEP = 1e100  # larger slopes (a square root at zero) would drown a least squares and are left out of the fit
SETTLED = 1e-10  # smaller steps are not worth another fit
NEAR = (0.0, 1e-8, 1e-6)  # relative; the first kinks that count are those at the point, then those beside it
LEAST_WEIGHT = 1e-12  # an entry that does not move at all still has this much say


class Point:
    """A problem at one point, with its derivatives.

    `active`: Slack, relative to the size of its terms, up to which an inequality may carry a multiplier.
    """

    def __init__(self, written: Written, state: State, how: Slopes, active: float) -> None:
        self.written, self.state, self.how = written, state, how
        flat = written.flat
        self.x = state.v[: flat.size]
        self.v = written.values(state)
        self.atoms = slopes_at(flat, state, how)
        self.objective = stacked(flat.M[flat.places[0]], self.atoms)
        self.jacobian = stacked(written.C, self.atoms)
        self.exact = self.objective.exact and self.jacobian.exact
        inner = np.asarray(abs(self.atoms.inner).sum(axis=1)).ravel()
        steepness = np.ravel(abs(self.atoms.base).sum(axis=1) + abs(self.atoms.outer) @ inner).astype(float)
        units = np.minimum(np.nan_to_num(steepness, nan=1.0, posinf=1.0), 1.0)
        self.sizes = written.sizes(state, np.concatenate([np.ones(flat.size), units]))
        self.active = active * np.maximum(self.sizes, 1.0)

    def outside(self) -> float:
        """Distance of arguments outside their atoms' domains."""
        return max(
            (domain_shortfall(atom.node, atom.arguments(self.state.u)) for atom in self.written.flat.atoms), default=0.0
        )

    @property
    def kinks(self) -> int:
        """Number of kinks at which it stands, in the objective and the conditions."""
        return int(self.objective.low.size + self.jacobian.low.size)

    @cached_property
    def gradient(self) -> Array:
        """Gradient of the minimised objective, without its kinks."""
        return np.asarray(self.written.sign * self.objective.base.toarray()[0]) if self.x.size else np.zeros(0)

    @property
    def steepness(self) -> float:
        """One plus the largest finite entry of the objective's gradient."""
        slopes_ = np.abs(self.gradient)
        return 1.0 + float(slopes_[slopes_ < STEEP].max(initial=0.0))

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """Tightest bounds of each variable that rows with a single entry state."""
        low, high = np.full(self.x.size, -np.inf), np.full(self.x.size, np.inf)
        rows, columns, slopes_ = self.written.singles
        limit, up = self.x[columns] - self.v[rows] / slopes_, slopes_ > 0
        np.minimum.at(high, columns[up], limit[up])
        np.maximum.at(low, columns[~up], limit[~up])
        return low, high

    def sides(self, among: Flags) -> tuple[Flags, Flags]:
        """Variables that stand at a lower and an upper bound that one of these rows states."""
        at_low, at_high = np.zeros(self.x.size, dtype=bool), np.zeros(self.x.size, dtype=bool)
        rows, columns, slopes_ = self.written.singles
        tight = (self.v[rows] >= -self.active[rows]) & among[rows]
        at_high[columns[tight & (slopes_ > 0)]] = True
        at_low[columns[tight & (slopes_ < 0)]] = True
        return at_low, at_high

    def _objective_kinks(self, columns: Columns) -> None:
        if not self.objective.low.size:
            return
        weight = self.written.sign * self.objective.outer.toarray()[0]
        columns.add(self.objective.inner.T @ sp.diags_array(weight), self.objective.low, self.objective.high)

    def _fit(self, g: Array, columns: Columns, weights: Array, among: Flags) -> Array:
        """Return multipliers of these rows, without bounds on single variables, with any further ``columns``."""
        rows = (self.written, self.v, self.jacobian, self.active)
        return fitted_multipliers(*rows, columns, among, g, weights, self.sides(among))

    def complete(self, given: Array) -> Array:
        """Return all multipliers: the given ones, and for rows with NaN those that make the gradient smallest.

        Smallest means in the Euclidean norm; entries with a vertical slope have no weight.
        """
        missing = np.isnan(given)
        if not missing.any():
            return given
        chosen = np.where(missing, 0.0, given)
        g = self.pull(chosen)
        columns = Columns(self.x.size)
        self._objective_kinks(columns)
        weights = (np.abs(g) < STEEP).astype(float)
        chosen += self._fit(np.where(weights > 0, g, 0.0), columns, weights, missing)
        # Bounds on single variables get the part of the gradient that they absorb.
        left = self._lagrangian(chosen)
        rows, columns_, slopes_ = self.written.singles
        tight = np.flatnonzero((self.v[rows] >= -self.active[rows]) & missing[rows])
        sides = (slopes_[tight] > 0).astype(int)
        _, first = np.unique(2 * columns_[tight] + sides, return_index=True)
        tight = tight[first]
        chosen[rows[tight]] = np.maximum(0.0, -left[columns_[tight]] / slopes_[tight])
        return chosen

    def signed(self, multipliers: Array) -> Array:
        """Return multipliers as weights of the rows in the Lagrangian: those of cones are subtracted."""
        return np.where(self.written.cone, -multipliers, multipliers)

    def pull(self, chosen: Array) -> Array:
        """Return the gradient of the Lagrangian with these multipliers, without its kinks."""
        used = np.flatnonzero(chosen)  # an infinite slope with multiplier zero counts nothing
        return np.asarray(self.gradient + self.jacobian.base[used].T @ self.signed(chosen)[used])

    def _lagrangian(self, chosen: Array) -> Array:
        """Return the smallest gradient of the Lagrangian over all kinks; bounds with multiplier zero absorb nothing."""
        r = self.pull(chosen)
        columns = Columns(self.x.size)
        self._objective_kinks(columns)
        if self.jacobian.low.size:
            weight = self.jacobian.outer.T @ chosen
            kept = np.flatnonzero(weight)
            block = self.jacobian.inner[kept].T @ sp.diags_array(weight[kept])
            columns.add(block, self.jacobian.low[kept], self.jacobian.high[kept])
        free = np.zeros(self.x.size, dtype=bool)
        weights = (np.abs(r) < STEEP).astype(float)
        M, low, high = columns.system()
        y = bounded_least_squares(np.where(weights > 0, r, 0.0), M, low, high, free, free, weights)
        return np.asarray(r + M @ y)

    def stationarity(self, chosen: Array) -> float:
        """Return the largest entry of the Lagrangian's gradient."""
        return float(np.abs(self._lagrangian(chosen)).max(initial=0.0))

    def natural_steps(self, given: Array | None) -> Array:
        """Return each variable's step to its own proximal optimum; see `cvxpriv.kkt.natural`.

        Without given multipliers the best ones are fitted in the metric of these steps: an entry that hardly moves
        whatever its slope has no weight.
        """
        beside = any(one.rule in KINKED for one in self.written.separable[0])  # otherwise each way gives the same
        if beside and given is not None:
            beside = bool(self._parts(given).kinks[1].size)
        found: list[Array] = []
        every = np.ones(self.state.v.size)
        kinks = list(kinks_of(one.term(every, self.state) for one in self.written.separable[0]))
        met = -1
        for reach in NEAR if beside else NEAR[:1]:
            way = reach * (1.0 + np.abs(self.x))
            if met == (met := sum(int((np.abs(distance) <= way[own]).sum()) for own, distance in kinks)):
                continue  # no further kinks, and the same steps
            found.append(self._steps(given, way))
            if np.abs(found[-1]).max(initial=0.0) <= SETTLED:
                break
        return min(found, key=lambda steps: float(np.abs(steps).max(initial=0.0)))

    def _steps(self, given: Array | None, way: Array) -> Array:
        """Return the natural steps where multipliers and frozen kinks are best for the slopes within a way."""
        chosen, every = given, np.ones(self.v.size, dtype=bool)
        if chosen is None:
            parts = self._parts(None)
            g, columns = self._enclosed(parts, parts.gradient, way)
            chosen = self._fit(g, columns, self._mobility, every)
        parts = self._parts(chosen)
        frozen = parts.gradient
        if parts.kinks[1].size:
            frozen = frozen + self._frozen_kinks(parts, frozen, way, every)
        low, high = (bound - self.x for bound in self.bounds)
        steps = proximal_steps(parts, frozen, np.minimum(low, 0.0), np.maximum(high, 0.0), self.how.floor)
        return np.clip(steps, low, high)

    @cached_property
    def _mobility(self) -> Array:
        """Return the movement of each variable for a slope of 1."""
        parts = self._parts(None)
        free = np.full(self.x.size, np.inf)
        answers = [proximal_steps(parts, parts.gradient, -free, free, self.how.floor, push) for push in (1.0, -1.0)]
        return np.maximum(0.5 * np.abs(answers[0] - answers[1]), LEAST_WEIGHT)

    def _parts(self, multipliers: Array | None) -> Parts:
        """Return the parts of the Lagrangian, without the bounds that the projection meets; None: of the objective."""
        written = self.written
        weight = written.sign * written.cost
        if multipliers is not None:
            signed = self.signed(multipliers)
            signed[written.singles[0]] = 0.0
            weight = np.asarray(weight + written.C.T @ signed)
        return decompose(weight, written.flat, self.state, self.atoms, written.separable)

    def _enclosed(self, parts: Parts, frozen: Array, way: Array) -> tuple[Array, Columns]:
        """Return a gradient and the columns that span all others: separable kinks by entry, frozen ones as such.

        `way`: How far each variable may move to either side; the kinks on the way count.
        """
        low = slopes(parts, frozen, -way, self.how.floor, jumps_only=True)[0]
        high = slopes(parts, frozen, way, self.how.floor, jumps_only=True)[1]
        base = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0))
        wide = np.flatnonzero(high > low)
        columns = Columns(self.x.size)
        directions, least, most = parts.kinks
        columns.add(directions.T, least, most)
        columns.add(sp.eye_array(self.x.size, format="csc")[:, wide], (low - base)[wide], (high - base)[wide])
        return base, columns

    def _frozen_kinks(self, parts: Parts, frozen: Array, way: Array, every: Flags) -> Array:
        """Return the gradient of the linearised kinks at their best weights."""
        g, columns = self._enclosed(parts, frozen, way)
        M, low, high = columns.system()
        y = bounded_least_squares(g, M, low, high, *self.sides(every), self._mobility)
        count = parts.kinks[1].size
        return np.asarray(M[:, :count] @ y[:count])
