"""Optimality conditions of any convex cvxpy problem at its variables' current values, without any solver.

Four classical conditions (feasibility, sign of the multipliers, complementarity, stationarity) and the `natural`
residual, which is in the units of the variables; see `cvxpriv.kkt.natural` for why both are needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import cvxpy as cp
import numpy as np

from cvxpriv.errors import ModelError, suggest
from cvxpriv.kkt.conic.cones._types import Array
from cvxpriv.kkt.natural import Settings
from cvxpriv.kkt.point import Point

FLOOR = 1e-300  # logarithms are read there rather than at zero: their slope is then about 690, not infinite
Duals = Literal["solver"] | Mapping[str, object] | None


@dataclass(frozen=True)
class Residuals:
    """How far a point is from satisfying each optimality condition; all absolute, largest entry.

    Parameters
    ----------
    primal : float
        Worst constraint violation (for cones the distance), or distance of an argument outside its atom's domain, which
        stands under the name ``domain``.
    dual : float
        Worst wrong sign of a multiplier (for cones the distance to the dual cone).
    complementarity : float
        Worst product of a multiplier and its constraint's slack.
    stationarity : float
        Largest entry of the Lagrangian's gradient that no kink and no bound absorbs.
    natural : float
        Largest move of a variable, in its own units, to its own proximal optimum.
    worst_constraint : str
        The constraint with the largest violation, wrong sign or product.
    worst_variable : str
        The entry with the largest natural residual.
    objective : float
        In the sense of the problem.
    steepness : float
        One plus the largest finite entry of the objective's gradient: what `stationarity` is large or small against.
    multipliers : mapping of str to array
        What was used, by constraint.
    by_constraint : mapping of str to (float, float, float)
        Primal, dual and complementarity of each constraint.
    exact : bool
        False where derivatives do not decide: at ties and kinks where their set is only enclosed, or where one element
        of it was taken. There stationarity and natural are no more than a hint, and may be off to either side:
        `cvxpriv.kkt.proximal_step` measures the point. The printed form says so as well.
    """

    primal: float
    dual: float
    complementarity: float
    stationarity: float
    natural: float
    worst_constraint: str
    worst_variable: str
    objective: float
    steepness: float
    multipliers: Mapping[str, Array] = field(repr=False)
    by_constraint: Mapping[str, tuple[float, float, float]] = field(repr=False)
    exact: bool = True

    def __str__(self) -> str:
        names = ("primal", "dual", "complementarity", "stationarity", "natural")
        text = ", ".join(f"{name} {getattr(self, name):.1e}" for name in names)
        hint = "" if self.exact else " (stationarity and natural are a hint only: a tie or kink, see proximal_step)"
        return text + hint

    @property
    def largest(self) -> float:
        """The worst of feasibility, sign, complementarity and the natural residual; stationarity has other units."""
        return max(self.primal, self.dual, self.complementarity, self.natural)


def residuals(
    problem: cp.Problem,
    duals: Duals = None,
    names: Mapping[str, cp.Constraint] | None = None,
    *,
    active: float = 1e-6,
    kink_tolerance: float = 1e-9,
    domain_tolerance: float = 1e-6,
) -> Residuals:
    """Residuals of ``problem`` at its variables' current values.

    Parameters
    ----------
    duals : None, "solver" or mapping of name to array
        None takes the best multipliers there are: free for equalities, nonnegative for constraints that are nearly
        active, by least squares. ``"solver"`` takes the constraints' own dual values. A mapping gives them by name.
    names : mapping of str to constraint, optional
        Names of the constraints; the others are called ``constraint[k]``.
    active : float
        Inequalities with at most this slack may carry a multiplier.
    kink_tolerance, domain_tolerance : float
        See `cvxpriv.kkt.derivatives.derivative`.

    Returns
    -------
    Residuals
        Look at its `exact` before its `stationarity` and `natural`.

    Raises
    ------
    ModelError
        If a variable has no value, a constraint has no multiplier where one was asked for, or is of a kind that is not
        known.
    DerivativeError
        If an atom has no known derivative at the point.

    Examples
    --------
    >>> x = cp.Variable(2, name="x")
    >>> problem = cp.Problem(cp.Minimize(cp.sum_squares(x)), [cp.sum(x) == 1])
    >>> x.value = [0.5, 0.5]
    >>> residuals(problem).stationarity < 1e-12
    True
    """
    point = Point(problem, names or {}, Settings(kink_tolerance, domain_tolerance, FLOOR), active)
    given = _given(point, duals)
    chosen = point.complete(given or {})
    steps = point.natural_steps(None if given is None else chosen)
    table = _by_constraint(point, chosen)
    columns = list(zip(*table.values(), strict=True)) or [(0.0,)] * 3
    return Residuals(
        primal=max(columns[0]),
        dual=max(columns[1]),
        complementarity=max(columns[2]),
        stationarity=point.stationarity(chosen),
        natural=float(np.abs(steps).max(initial=0.0)),
        worst_constraint=max(table, key=lambda name: max(table[name]), default=""),
        worst_variable=point.coordinates.name(int(np.abs(steps).argmax())) if steps.size else "",
        objective=float(np.squeeze(problem.objective.value)),
        steepness=point.steepness,
        multipliers=chosen,
        by_constraint=table,
        exact=point.objective.exact and all(condition.jacobian.exact for condition in point.conditions),
    )


def _by_constraint(point: Point, multipliers: Mapping[str, Array]) -> dict[str, tuple[float, float, float]]:
    """Violation, wrong sign and product of each constraint, and the distance outside the domain under its own name."""
    table = {
        condition.name: (
            float(condition.violation().max(initial=0.0)),
            float(condition.dual_violation(multipliers[condition.name]).max(initial=0.0)),
            float(condition.products(multipliers[condition.name]).max(initial=0.0)),
        )
        for condition in point.conditions
    }
    outside = max(point.domain_violations())
    return table | {"domain": (outside, 0.0, 0.0)} if outside > 0.0 else table


def _given(point: Point, duals: Duals) -> dict[str, Array] | None:
    """Multipliers by constraint as the caller wants them, or None for the best ones."""
    if duals is None:
        return None
    names = [condition.name for condition in point.conditions]
    if duals == "solver":
        chosen = {condition.name: condition.dual for condition in point.conditions if condition.dual is not None}
    elif isinstance(duals, Mapping):
        for name in duals:
            if name not in names:
                raise ModelError(f"duals has no constraint {name!r}: {suggest(str(name), names)}")
        chosen = {name: np.asarray(value, dtype=float).ravel(order="F") for name, value in duals.items()}
    else:
        raise ModelError(f"duals={duals!r} must be None, 'solver' or a mapping of constraint names to arrays")
    for condition in point.conditions:
        if condition.name in chosen and chosen[condition.name].size != condition.values.size:
            raise ModelError(
                f"duals[{condition.name!r}] has {chosen[condition.name].size} entries, the constraint "
                f"{condition.values.size}: give one for each"
            )
        if condition.name not in chosen and condition.name not in point.implied:
            raise ModelError(f"constraint {condition.name!r} has no multiplier: solve first, or pass duals=None")
    return chosen
