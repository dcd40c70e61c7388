"""A problem at a point: gradients, bounds, and the least-squares systems for multipliers and residuals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from cvxpriv.kkt.conic.cones._types import Array, Mask
from cvxpriv.kkt.constraints import Condition, conditions
from cvxpriv.kkt.derivatives import Coordinates, derivative, domain_violation
from cvxpriv.kkt.fit import Columns, MultiplierFit
from cvxpriv.kkt.multipliers import bounded_least_squares
from cvxpriv.kkt.natural import Parts, Settings, decompose, proximal_steps, slopes

STEEP = 1e100  # larger slopes (a square root at zero) would drown a least squares and are left out of the fit
LEAST_WEIGHT = 1e-12  # an entry that does not move at all still has this much say


class Point:
    """A problem at its variables' current values.

    Parameters
    ----------
    problem : cvxpy.Problem
    names : mapping of str to constraint
    settings : Settings
    active : float
        Slack up to which an inequality may carry a multiplier.
    """

    def __init__(
        self, problem: cp.Problem, names: Mapping[str, cp.Constraint], settings: Settings, active: float
    ) -> None:
        self.coordinates = Coordinates(problem.variables())
        self.x = self.coordinates.point()
        self.settings, self.active = settings, active
        self.sign = -1.0 if isinstance(problem.objective, cp.Maximize) else 1.0
        self.expression = problem.objective.args[0]
        self.objective = derivative(
            self.expression,
            self.coordinates,
            kink_tolerance=settings.kink,
            domain_tolerance=settings.domain,
            floor=settings.floor,
        )
        self.conditions = conditions(problem, names, self.coordinates, settings)
        own = len(problem.constraints)
        self.implied = {condition.name for condition in self.conditions[own:]}
        self.singles = {condition.name: condition.single_rows() for condition in self.conditions}

    def domain_violations(self) -> list[float]:
        """How far arguments lie outside their atoms' domains, in the objective and in each constraint."""
        constraints = [condition.expression for condition in self.conditions if condition.expression is not None]
        return [domain_violation(expression) for expression in (self.expression, *constraints)]

    @cached_property
    def tangent(self) -> sp.csc_array:
        """Projection of gradients onto the directions that symmetric and diagonal variables can move in."""
        blocks = [sp.csc_array((0, 0))]
        for variable in self.coordinates.variables:
            eye = sp.eye_array(variable.size, format="csc")
            attributes = variable.attributes
            if any(attributes.get(name) for name in ("symmetric", "PSD", "NSD")):
                swap = np.arange(variable.size).reshape(variable.shape, order="F").T.ravel(order="F")
                eye = sp.csc_array(0.5 * (eye + eye[:, swap]))
            elif attributes.get("diag"):
                eye = sp.csc_array(sp.diags_array(np.eye(variable.shape[0]).ravel()))
            blocks.append(sp.csc_array(eye))
        return sp.csc_array(sp.block_diag(blocks))

    @cached_property
    def gradient(self) -> Array:
        """Gradient of the minimised objective, kinks apart."""
        return np.asarray(self.sign * self.objective.base.toarray()[0]) if self.x.size else np.zeros(0)

    @property
    def steepness(self) -> float:
        """One plus the largest finite entry of the objective's gradient."""
        slopes_ = np.abs(self.gradient)
        return 1.0 + float(slopes_[slopes_ < STEEP].max(initial=0.0))

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """Tightest bounds of each variable that rows with a single entry state."""
        low, high = np.full(self.x.size, -np.inf), np.full(self.x.size, np.inf)
        for condition in self.conditions:
            rows, columns, slopes_ = self.singles[condition.name]
            limit = self.x[columns] - condition.values[rows] / slopes_
            up = slopes_ > 0
            np.minimum.at(high, columns[up], limit[up])
            np.maximum.at(low, columns[~up], limit[~up])
        return low, high

    def sides(self, among: Sequence[Condition]) -> tuple[Mask, Mask]:
        """Which variables stand at a lower and an upper bound that one of these conditions states."""
        at_low, at_high = np.zeros(self.x.size, dtype=bool), np.zeros(self.x.size, dtype=bool)
        for condition in among:
            rows, columns, slopes_ = self.singles[condition.name]
            tight = condition.values[rows] >= -self.active
            at_high[columns[tight & (slopes_ > 0)]] = True
            at_low[columns[tight & (slopes_ < 0)]] = True
        return at_low, at_high

    def _objective_kinks(self, columns: Columns) -> None:
        weight = self.sign * self.objective.outer.toarray()[0]
        block = (
            self.tangent @ self.objective.inner.T @ sp.diags_array(weight)
            if weight.size
            else sp.csc_array((self.x.size, 0))
        )
        columns.add(block, self.objective.low, self.objective.high)

    def fit(self, g: Array, columns: Columns, weights: Array, among: Sequence[Condition]) -> dict[str, Array]:
        """Multipliers of these conditions, bounds on single variables apart, with any further ``columns``."""
        return MultiplierFit(self.tangent, self.active, columns, among).solve(g, weights, self.sides(among))

    def complete(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """All multipliers: the given ones, and for the other conditions those that make the gradient smallest.

        Smallest in the Euclidean norm; entries with a vertical slope have no say.
        """
        missing = [condition for condition in self.conditions if condition.name not in given]
        g = self._pull(given)
        columns = Columns(self.x.size)
        self._objective_kinks(columns)
        weights = (np.abs(g) < STEEP).astype(float)
        chosen = {**given, **self.fit(np.where(weights > 0, g, 0.0), columns, weights, missing)}
        left = self._lagrangian(chosen)
        done = np.zeros((2, self.x.size), dtype=bool)
        for condition in missing:
            # Bounds on single variables get the part of the gradient that they absorb.
            rows, columns_, slopes_ = self.singles[condition.name]
            sides = (slopes_ > 0).astype(int)
            tight = (condition.values[rows] >= -self.active) & ~done[sides, columns_]
            done[sides[tight], columns_[tight]] = True
            chosen[condition.name][rows[tight]] = np.maximum(0.0, -left[columns_[tight]] / slopes_[tight])
        return chosen

    def _pull(self, chosen: Mapping[str, Array]) -> Array:
        """Gradient of the Lagrangian with these multipliers, kinks apart."""
        r = self.gradient.copy()
        for condition in self.conditions:
            if condition.name in chosen:
                sign = -1.0 if condition.kind == "cone" else 1.0
                r += sign * (condition.jacobian.base.T @ chosen[condition.name])
        return np.asarray(self.tangent @ r)

    def _lagrangian(self, chosen: Mapping[str, Array]) -> Array:
        """The smallest gradient of the Lagrangian over all kinks; bounds with multiplier zero absorb nothing."""
        r = self._pull(chosen)
        columns = Columns(self.x.size)
        self._objective_kinks(columns)
        for condition in self.conditions:
            if condition.jacobian.low.size:
                weight = condition.jacobian.outer.T @ chosen[condition.name]
                block = self.tangent @ condition.jacobian.inner.T @ sp.diags_array(weight)
                columns.add(block, condition.jacobian.low, condition.jacobian.high)
        free = np.zeros(self.x.size, dtype=bool)
        weights = (np.abs(r) < STEEP).astype(float)
        M, low, high = columns.system()
        y = bounded_least_squares(np.where(weights > 0, r, 0.0), M, low, high, free, free, weights)
        return np.asarray(r + M @ y)

    def stationarity(self, chosen: Mapping[str, Array]) -> float:
        """Largest entry of the Lagrangian's gradient."""
        return float(np.abs(self._lagrangian(chosen)).max(initial=0.0))

    def natural_steps(self, given: Mapping[str, Array] | None) -> Array:
        """Each variable's step to its own proximal optimum; see `cvxpriv.kkt.natural`.

        Without given multipliers the best ones are fitted in the metric of these steps: an entry that hardly moves
        whatever its slope has no say.
        """
        parts = decompose(self.expression, np.array([self.sign]), self.coordinates, self.settings)
        floor = self.settings.floor
        free = np.full(self.x.size, np.inf)
        answers = [proximal_steps([parts], parts.gradient, -free, free, floor, push) for push in (1.0, -1.0)]
        weights = np.maximum(0.5 * np.abs(answers[0] - answers[1]), LEAST_WEIGHT)
        chosen = given
        if chosen is None:
            g, columns = self._enclosed([parts], parts.gradient)
            chosen = self.fit(g, columns, weights, self.conditions)
        pieces, frozen = [parts], parts.gradient.copy()
        for condition in self.conditions:
            dual = chosen[condition.name]
            if condition.kind == "cone":
                frozen -= condition.jacobian.base.T @ dual
                continue
            weight = dual.copy()
            weight[self.singles[condition.name][0]] = 0.0
            piece = decompose(condition.expression, weight, self.coordinates, self.settings)
            frozen += piece.gradient
            pieces.append(piece)
        frozen = self.tangent @ frozen
        if any(piece.kinks for piece in pieces):
            frozen = frozen + self._frozen_kinks(pieces, frozen, weights)
        low, high = (bound - self.x for bound in self.bounds)
        steps = proximal_steps(pieces, frozen, np.minimum(low, 0.0), np.maximum(high, 0.0), floor)
        return np.clip(steps, low, high)

    def _enclosed(self, pieces: list[Parts], frozen: Array) -> tuple[Array, Columns]:
        """A gradient and the columns that span all the others: separable kinks entry by entry, frozen ones as such."""
        low, high = slopes(pieces, frozen, np.zeros(self.x.size), self.settings.floor)
        base = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0))
        wide = np.flatnonzero(high > low)
        columns = Columns(self.x.size)
        for piece in pieces:
            for directions, least, most in piece.kinks:
                columns.add(directions.T, least, most)
        columns.add(sp.eye_array(self.x.size, format="csc")[:, wide], (low - base)[wide], (high - base)[wide])
        return base, columns

    def _frozen_kinks(self, pieces: list[Parts], frozen: Array, weights: Array) -> Array:
        """The gradient of the linearised kinks at their best weights."""
        g, columns = self._enclosed(pieces, frozen)
        M, low, high = columns.system()
        y = bounded_least_squares(g, M, low, high, *self.sides(self.conditions), weights)
        count = sum(least.size for piece in pieces for _, least, _ in piece.kinks)
        return np.asarray(M[:, :count] @ y[:count])
