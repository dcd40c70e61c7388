"""The yardstick of the answers to a case: the problem as written, taken apart once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxpriv.blocks.declaration import Declaration
from cvxpriv.certify.domains import Domain
from cvxpriv.errors import ModelError
from cvxpriv.kkt.conditions import Residuals, measured
from cvxpriv.kkt.conic.data import Compilations
from cvxpriv.kkt.coordinates import dense
from cvxpriv.kkt.derivatives import Slopes
from cvxpriv.kkt.point import Point
from cvxpriv.kkt.proximal import Nearby, Proximal
from cvxpriv.kkt.written import Written
from cvxpriv.numerics.arrays import Array, Flags, Values

NEAR = 1e-6
"""Natural residual up to which neither better multipliers than the solver's nor a proximal step are needed."""
TIE = 1e-6
"""Distance to a kink within which arguments count as on it: solvers leave as much between two that tie."""
TELLING = 0.1
"""Ratio to the natural residual below which a proximal move shows a kink beside the point."""
HOW, ACTIVE = Slopes(kink=TIE, domain=1e-6, floor=1e-300), 1e-6
NAN = float("nan")
SHRUNK = 2.0**-10
"""Share of the point that is taken off to see the curvature: exact for quadratics, whose gradient may cancel."""


@dataclass(frozen=True)
class Measures:
    """Measurements of a point of the problem as written.

    `primal`: Worst violation of a condition, absolute; NaN where a function has no value.
    `missed`: The worst violation, relative to the terms of its row, and the condition; infinite where it has no value.
    `defined`: The same among the conditions that have a value.
    `own`: The worst violation relative to the terms of its row where variables count by their reach
    (`cvxpriv.kkt.written.Written.reach`), and the condition.
    `natural`, `stationarity`: Distance of a variable to its own optimum, and the largest entry of the Lagrangian's
    gradient. At a tie or kink, where derivatives mislead, those of the proximal point. NaN where neither is known.
    `displacement`: Distance of the point from stationary, relative; NaN where it cannot be measured.
    `drift`: The same, if known, relative also to the terms of the Lagrangian's gradient that the curvature makes,
    where these cancel: as a solver claims it.
    `unmeasured`: The reason why there is no displacement.
    `terms`: Size of the objective's terms, which may cancel.
    `gap`: Distance of the objective to the Lagrangian, relative to its terms: how far off it is, to first order.
    `slope`: What the objective changes to first order on the way to where curvature ends its slope, or over the size
    of the point: far out, ``log x`` has hardly a slope, and no end.
    `bought`: The largest product of a multiplier and the terms of its row: so much value a relative violation buys.
    """

    primal: float = NAN
    missed: tuple[float, str] = (0.0, "")
    defined: tuple[float, str] = (0.0, "")
    own: tuple[float, str] = (0.0, "")
    natural: float = NAN
    stationarity: float = NAN
    displacement: float = NAN
    drift: float = NAN
    unmeasured: str = ""
    terms: float = 1.0
    gap: float = 0.0
    slope: float = 0.0
    bought: float = 0.0


class Yardstick:
    """A declaration's problem, ready to measure any point of it.

    `declaration`: The declaration; its variables are moved to the measured points.
    `shared`: Earlier compilations of its problem.
    """

    def __init__(self, declaration: Declaration, shared: Compilations | None = None) -> None:
        self.declaration, self._shared = declaration, shared

    @cached_property
    def written(self) -> Written:
        """The problem, taken apart."""
        return Written.of(self.declaration.problem, self.declaration.constraints)

    @cached_property
    def nearby(self) -> Nearby:
        """Its proximal programs."""
        return Nearby(self.declaration.problem, self._shared)

    @cached_property
    def domain(self) -> Domain:
        """The domain of the objective and of the constraints' sides."""
        return Domain.of(self.declaration.problem, self.written)

    def point(self, values: Mapping[str, Any]) -> Array:
        """Return the flat point of variables' values by name."""
        order = {variable.id: name for name, variable in self.declaration.variables.items()}
        coordinates = self.written.flat.coordinates
        entries = [dense(values[order[variable.id]]).ravel(order="F") for variable in coordinates.variables]
        return coordinates.reduced(np.concatenate([np.zeros(0), *entries]))

    def values(self, x: Array) -> Values:
        """Return the variables' values by name."""
        self.written.flat.coordinates.place(x)
        return self.declaration.values()

    def value(self, x: Array) -> tuple[float, str]:
        """Return the objective at a point, and the reason why it cannot be evaluated, if so."""
        state = self.written.state(x)
        return self.written.objective(state), state.error

    def firm(self, x: Array) -> Array:
        """Return the point moved onto every affine constraint, however little it missed."""
        equalities = np.flatnonzero(self.affine & self.written.zero)
        return Domain.of(self.declaration.problem, self.written, whole=True).firm(x, equalities)

    @property
    def unit(self) -> float:
        """The largest coefficient of the objective, times its variable's reach; at most 1, and 1 without any."""
        return min(1.0, float(np.abs(self.written.cost * self.written.reach).max(initial=0.0))) or 1.0

    @property
    def affine(self) -> Flags:
        """The rows of affine equalities and inequalities."""
        written = self.written
        alone = np.diff(sp.csr_array(written.C[:, written.flat.size :]).indptr) == 0
        return np.asarray(alone & ~written.cone)

    @np.errstate(all="ignore")
    def measures(self, x: Array, multipliers: Mapping[str, Any] | None) -> Measures:
        """Measure a point.

        `multipliers`: A solver's multipliers, by constraint; the best ones replace them where they make the point look
        worse. None always takes the best.
        """
        written = self.written
        state = written.state(x)
        violation = written.violation(written.values(state))
        if not np.isfinite(violation).all():  # x^3.3 has no value at -1e-12: measure beside it
            x, _ = self.domain.moved(x)
            state = written.state(x)
            violation = written.violation(written.values(state))
        point = None
        with suppress(ModelError, ArithmeticError):  # functions without derivatives there, as log at -1e-5
            point = Point(written, state, HOW, ACTIVE)
        found = None if point is None else self._best(point, multipliers)
        bend = cache(lambda: 0.0 if point is None or found is None else _curvature(point, found))
        relative: Mapping[str, float]
        if found is None:
            relative, terms = written.by_name(violation / written.sizes(state)), written.terms(state)
        else:
            relative, terms = found.relative, found.terms
        # What is large in units of its variables is held against a claim if it is large as it stands as well.
        own = written.by_name(violation / written.sizes(state, written.reach))
        absolute = written.by_name(violation)
        relative = {name: max(relative[name], min(own[name], absolute[name])) for name in relative}
        worst = max(relative, key=lambda name: relative[name], default="")
        defined = max((name for name in relative if np.isfinite(relative[name])), key=relative.__getitem__, default="")
        proximal = None
        if found is None or not found.exact or found.natural > NEAR:
            written.flat.coordinates.place(x)
            proximal = self.nearby.step(1.0 if found is None else found.steepness)
        natural, stationarity, displacement = _distances(1.0 + float(np.abs(x).max(initial=0.0)), found, proximal)
        primal = float(violation.max(initial=0.0))
        drift = displacement
        if found is not None and found.exact and displacement > NEAR:
            drift = min(drift, found.stationarity / max(found.steepness, bend()))
        return Measures(
            primal=primal if np.isfinite(primal) else NAN,
            missed=(relative.get(worst, 0.0), worst),
            defined=(relative.get(defined, 0.0), defined),
            own=max(((size, name) for name, size in own.items()), default=(0.0, "")),
            natural=natural,
            stationarity=stationarity,
            displacement=displacement,
            drift=drift,
            unmeasured=proximal.why if proximal is not None and np.isnan(displacement) else "",
            terms=terms,
            slope=self._slope(x, found, stationarity, bend),
            gap=found.gap / max(1.0, abs(found.objective), terms) if found is not None and found.exact else 0.0,
            bought=found.bought if found is not None and found.exact else 0.0,
        )

    def _slope(self, x: Array, found: Residuals | None, stationarity: float, bend: Callable[[], float]) -> float:
        """Return `Measures.slope`; zero where derivatives do not decide."""
        if found is None or not found.exact or stationarity != found.stationarity:
            return 0.0
        slope = stationarity * float((self.written.reach[: x.size] + np.abs(x)).max(initial=0.0))
        if slope <= NEAR * max(self.unit, abs(found.objective), found.terms):
            return slope
        return slope * min(1.0, stationarity / max(bend(), 1e-300))

    def _best(self, point: Point, multipliers: Mapping[str, Any] | None) -> Residuals | None:
        """Return residuals with a solver's multipliers, or with the best ones where those make the point look worse."""
        several: list[Residuals] = []
        for chosen in (None,) if multipliers is None else (multipliers, None):
            with suppress(ModelError, ArithmeticError, np.linalg.LinAlgError, RuntimeError):
                several.append(measured(point, chosen))
                if _worst(several[-1]) <= NEAR:
                    break
        return min(several, key=_worst, default=None)


def _worst(found: Residuals) -> float:
    """Return the figure by which multipliers are compared: the largest that depends on them, relative."""
    names = ("dual", "complementarity", "stationarity", "natural")
    return max(min(found.scaled["stationarity"], found.scaled["natural"]), *(found.scaled[name] for name in names[:2]))


def _distances(size: float, found: Residuals | None, proximal: Proximal | None) -> tuple[float, float, float]:
    """Return natural residual, stationarity, and distance from stationary, relative; NaN where they are not known.

    The distance is the natural residual in the units of the variables, or the stationarity in those of the gradient,
    whichever is less: a flat problem has a large step and a tiny gradient, a steep one a large gradient and a tiny
    step. The proximal step, where it was taken, if that is less still, or if derivatives do not decide.
    """
    exact = found is not None and found.exact
    classical = min(found.natural / size, found.stationarity / found.steepness) if found is not None and exact else NAN
    displacement = float(np.fmin(classical, NAN if proximal is None else proximal.step))
    if proximal is not None and proximal.measured:
        misled = found is None or not exact or proximal.move < TELLING * found.natural
        if misled:
            return proximal.move, proximal.slope, displacement
    if found is None or not exact:
        return NAN, NAN, displacement
    return found.natural, found.stationarity, displacement


def _curvature(point: Point, found: Residuals) -> float:
    """Return the largest change of the Lagrangian's gradient per relative change of the point; 0 if it is not known.

    In a quadratic ``x'Px/2 + q'x`` it is the largest entry of ``P x``, however much of it ``q`` cancels.
    """
    written = point.written
    chosen = np.zeros(written.c.size)
    for name, rows in zip(written.names, written.rows, strict=True):
        chosen[rows] = found.multipliers[name]
    try:
        there = Point(written, written.state(point.x * (1.0 - SHRUNK)), point.how, 0.0)
    except (ModelError, ArithmeticError):
        return 0.0
    change = np.abs(point.pull(chosen) - there.pull(chosen)) / SHRUNK
    return float(change[np.isfinite(change)].max(initial=0.0))
