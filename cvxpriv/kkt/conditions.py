"""Optimality conditions of any convex cvxpy problem at its variables' current values, without any solver.

Four classical conditions (feasibility, sign of the multipliers, complementarity, stationarity) and the `natural`
residual, which is in the units of the variables; see `cvxpriv.kkt.natural` for why both are needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from cvxpriv.errors import ModelError, suggest
from cvxpriv.kkt.coordinates import dense
from cvxpriv.kkt.derivatives import Slopes
from cvxpriv.kkt.plain import real_and_continuous, remedy
from cvxpriv.kkt.point import Point
from cvxpriv.kkt.written import Written
from cvxpriv.numerics.arguments import finite_double, real_numbers
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import pd
from cvxpriv.solvers.place import quiet

FIGURES = ("primal", "dual", "complementarity", "stationarity", "natural", "gap")
FLOOR = 1e-300  # logarithms are read there rather than at zero: their slope is then about 690, not infinite
NEARLY = 1e-6  # up to which a slack counts as none, and an argument outside of its domain as at its edge
Duals = Literal["solver"] | Mapping[str, object] | None
Off = Mapping[str, float]
NONE: Off = MappingProxyType({})


@dataclass(frozen=True)
class Residuals:
    """Distances of a point from each optimality condition; all absolute, largest entry.

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
        Objective in the sense of the problem.
    steepness : float
        One plus the largest finite entry of the objective's gradient, the scale of `stationarity`.
    multipliers : mapping of str to array
        The multipliers that were used, by constraint.
    by_constraint : mapping of str to (float, float, float)
        Primal, dual and complementarity of each constraint.
    gap : float
        Distance of the objective to the Lagrangian, which is the dual's value where the point is stationary.
    bought : float
        Largest product of a multiplier and the size of the terms of its row: the value that a relative violation buys.
        Variables count by their reach (`cvxpriv.kkt.written.Written.reach`).
    relative : mapping of str to float
        Violation of each constraint, relative to the size of the terms of its row.
    terms : float
        Size of the objective's terms, which may cancel; at least that of its slope.
    scaled : mapping of str to float
        The same figures, relative: primal to the terms of the row, dual to the largest multiplier, complementarity and
        gap to the objective's terms, stationarity to its gradient, natural to the point.
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
    gap: float = 0.0
    bought: float = 0.0
    relative: Mapping[str, float] = field(default_factory=dict, repr=False)
    terms: float = 1.0
    scaled: Mapping[str, float] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        text = ", ".join(f"{name} {getattr(self, name):.1e}" for name in FIGURES)
        hint = "" if self.exact else " (stationarity and natural are a hint only: a tie or kink, see proximal_step)"
        return text + hint

    @property
    def table(self) -> pd.DataFrame:
        """One row per constraint: violation, the same relative to its row's terms, wrong sign, complementarity."""
        rows = [
            (name, primal, self.relative.get(name, primal), dual, product)
            for name, (primal, dual, product) in self.by_constraint.items()
        ]
        columns = ["constraint", "violation", "relative", "wrong sign", "complementarity"]
        return pd.DataFrame(rows, columns=columns).set_index("constraint")

    @property
    def largest(self) -> float:
        """The worst of feasibility, sign, complementarity and the natural residual; stationarity has other units."""
        return max(self.primal, self.dual, self.complementarity, self.natural)


@door
def residuals(
    problem: cp.Problem,
    duals: Duals = "solver",
    names: Mapping[str, cp.Constraint] | None = None,
    *,
    kink_tolerance: float = 1e-9,
    beside: float = 0.0,
) -> Residuals:
    """Return the residuals of ``problem`` at its current values, without a solver.

    Integer and boolean variables, and the entries of finite sets, are fixed at the allowed values nearest to them, and
    their distance from those counts as a violation. Complex problems are measured in real and imaginary parts. Both
    take the best multipliers, since there are none of the problem that is measured then.

    Parameters
    ----------
    duals : "solver", None or mapping of name to array
        Multipliers. ``"solver"`` takes the constraints' own dual values, as ``problem.solve()`` leaves them. None takes
        the best multipliers there are: free for equalities, nonnegative for constraints that are nearly active, by
        least squares. A mapping gives them by name, as ``constraint.dual_value`` does: a list for a cone with several.
    names : mapping of str to constraint, optional
        Names of the constraints; the others are called ``constraint[k]``.
    kink_tolerance : float
        Distance from a kink within which arguments count as on it.
    beside : float
        Distance from a kink up to which the point is also measured as standing there; it then counts as a residual.

    Returns
    -------
    Residuals
        The residuals. Check `exact` before `stationarity` and `natural`.

    Raises
    ------
    ModelError
        If a variable has no value, a constraint has no multiplier where one was asked for, or is of a kind that is not
        known; or if a Parameter has no value, or ``problem`` is no problem, or not DCP.
    DerivativeError
        If an atom has no known derivative at the point.

    Examples
    --------
    >>> x = cp.Variable(2, name="x")
    >>> problem = cp.Problem(cp.Minimize(cp.sum_squares(x)), [cp.sum(x) == 1])
    >>> value = problem.solve(solver="CLARABEL")
    >>> residuals(problem).largest < 1e-6
    True
    >>> x.value = [0.6, 0.5]
    >>> round(residuals(problem).primal, 12)
    0.1
    """
    if not isinstance(problem, cp.Problem):
        raise ModelError(f"problem is a {type(problem).__name__}: pass a cvxpy Problem that has values")
    unset = [parameter.name() for parameter in problem.parameters() if parameter.value is None]
    if unset:
        raise ModelError(f"Parameters have no values: set the value of {', '.join(unset)} first")
    for name, size in (("kink_tolerance", kink_tolerance), ("beside", beside)):
        if not finite_double(size) >= 0.0:
            raise ModelError(f"{name}={size!r} is not a finite number >= 0")
    if not problem.is_dcp():
        raise ModelError(f"problem is not DCP: {remedy(problem)}")
    with quiet():  # cvxpy warns where a sparse variable's value is read
        plain = real_and_continuous(problem, names or {})
        chosen = None if plain.changed and duals == "solver" else duals
        return of_written(Written.of(plain.problem, plain.names), chosen, plain.off, beside, kink_tolerance)


def of_written(written: Written, duals: Duals, off: Off = NONE, beside: float = 0.0, kink: float = 1e-9) -> Residuals:
    """Return the residuals of a problem that is taken apart, at its variables' values; see `residuals`.

    `off`: Further conditions, by name, and how far they are violated.
    """
    point = Point(written, written.state(), Slopes(kink, NEARLY, FLOOR), NEARLY)
    found = measured(point, duals, off)
    if found.largest > beside > kink:
        near = Point(written, point.state, Slopes(beside, NEARLY, FLOOR), NEARLY)
        if near.exact and near.kinks > point.kinks:
            other = measured(near, duals, off)
            other = replace(other, natural=max(other.natural, beside))
            return other if other.largest < found.largest else found
    return found


def measured(point: Point, duals: Duals, off: Off = NONE) -> Residuals:
    """Return the residuals at a point; see `of_written`."""
    written, state = point.written, point.state
    given = _given(written, duals)
    chosen = point.complete(np.full(written.c.size, np.nan) if given is None else given)
    steps, slope = point.natural_steps(None if given is None else chosen), point.stationarity(chosen)
    if given is None and np.abs(steps).max(initial=0.0) > slope:
        steps = point.natural_steps(chosen)  # a proximal step is no longer than the slope
    table = _by_constraint(point, chosen) | {name: (value, 0.0, 0.0) for name, value in off.items()}
    columns = list(zip(*table.values(), strict=True)) or [(0.0,)] * 3
    figures = {
        "primal": max(columns[0]),
        "dual": max(columns[1]),
        "complementarity": max(columns[2]),
        "stationarity": slope,
        "natural": float(np.abs(steps).max(initial=0.0)),
        "gap": abs(float(point.signed(chosen) @ np.nan_to_num(point.v, posinf=0.0, neginf=0.0))),
    }
    relative = {**written.by_name(written.violation(point.v) / point.sizes), **off}
    terms, own = written.terms(state, point.gradient), written.sizes(state, written.reach)
    against = {
        "dual": 1.0 + float(np.abs(chosen).max(initial=0.0)),
        "complementarity": terms,
        "stationarity": point.steepness,
        "natural": 1.0 + float(np.abs(point.x).max(initial=0.0)),
        "gap": terms,
    }
    worst_primal = max(relative.values(), default=0.0)
    return Residuals(
        **figures,
        worst_constraint=max(table, key=lambda name: max(table[name]), default=""),
        worst_variable=written.flat.coordinates.name(int(np.abs(steps).argmax())) if steps.size else "",
        objective=written.objective(state),
        steepness=point.steepness,
        multipliers={name: chosen[rows] for name, rows in zip(written.names, written.rows, strict=True)},
        by_constraint=table,
        exact=point.exact,
        bought=float(np.abs(chosen * np.minimum(point.sizes, own)).max(initial=0.0)),
        relative=relative,
        terms=terms,
        scaled={"primal": worst_primal, **{name: figures[name] / size for name, size in against.items()}},
    )


def _by_constraint(point: Point, multipliers: Array) -> dict[str, tuple[float, float, float]]:
    """Return violation, wrong sign and product of each constraint; distance outside the domain has its own name."""
    written = point.written
    figures = (
        written.by_name(written.violation(point.v)),
        written.by_name(written.wrong_sign(multipliers)),
        written.by_name(written.products(point.v, multipliers)),
    )
    table = {name: (figures[0][name], figures[1][name], figures[2][name]) for name in written.names}
    outside = point.outside()
    return table | {"domain": (outside, 0.0, 0.0)} if outside > 0.0 else table


def _given(written: Written, duals: Duals) -> Array | None:
    """Return multipliers as the caller wants them, NaN where the best are to be taken; None for the best of all."""
    if duals is None:
        return None
    if duals == "solver":
        chosen, missing = written.given()
    elif isinstance(duals, Mapping):
        chosen, missing = _named(written, duals)
    else:
        raise ModelError(f"duals={duals!r} must be None, 'solver' or a mapping of constraint names to arrays")
    if missing:
        raise ModelError(f"constraint {missing[0]!r} has no multiplier: solve first, or pass duals=None")
    return chosen


def _named(written: Written, duals: Mapping[str, object]) -> tuple[Array, list[str]]:
    chosen = np.full(written.c.size, np.nan)
    rows = dict(zip(written.names, written.rows, strict=True))
    forms = dict(zip(written.names, written.duals, strict=False))
    for name, value in duals.items():
        if name not in rows:
            raise ModelError(f"duals has no constraint {name!r}: {suggest(str(name), rows)}")
        parts = value if isinstance(value, list | tuple) and name in forms and len(forms[name][0]) > 1 else [value]
        given = [real_numbers(dense(one) if sp.issparse(one) else one, f"duals[{name!r}]") for one in parts]
        flat = np.concatenate([one.ravel(order="F") for one in given])
        if not np.isfinite(flat).all():
            raise ModelError(f"duals[{name!r}] holds a number that is not finite: pass duals=None for the best ones")
        if name in forms and flat.size == sum(leaf.size for leaf in forms[name][0]):
            _, order, scale = forms[name]
            flat = scale * flat[order]
        if flat.size != rows[name].size:
            raise ModelError(
                f"duals[{name!r}] has {flat.size} entries, the constraint {rows[name].size}: give one for each"
            )
        chosen[rows[name]] = flat
    return chosen, [name for name in written.names[: written.own] if name not in duals]
