"""Answers: the solution of a case according to a solver, a closed form or a user, and the measurements of its point.

An answer holds only figures and arrays, nothing of the solver, so that it can come from another process.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.certify.cases import Case, case_of_problem
from cvxpriv.certify.yardstick import NEAR, Measures
from cvxpriv.kkt.conic.bounds import NEARBY
from cvxpriv.kkt.conic.certificates import Certificate
from cvxpriv.kkt.conic.program import ConeResiduals
from cvxpriv.kkt.conic.solving import ConicSolution
from cvxpriv.kkt.integers import MixedInteger
from cvxpriv.numerics.arguments import require_positive
from cvxpriv.numerics.arrays import Values

CLAIMED = "claimed"
"""The status of an answer that no solver gave."""
SOLVED = (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)
"""The statuses of an answer that is a solution."""
NAN = float("nan")
ROUNDED = 1e-12
"""Size of a violation, relative to its row's terms, that is rounding."""
UNMEASURED = Measures()


@dataclass(frozen=True)
class Answer:
    """One answer to one case.

    `solver`: Name of the solver, or of the claim.
    `status`: Status: the solver's own, ``"claimed"``, or the fate of its process.
    `asked`: Tolerance requested of it.
    `values`: The variables' values, in the domain.
    `objective`: Objective there, in the sense of the problem; NaN without values.
    `moved`: The largest move of a value into the domain.
    `measures`: Measurements of the problem as written, at the solver's own point.
    `cone`: Residuals of the cone program.
    `altered`: Whether the solver was given bounds or an approximation of cvxpy's own.
    `certificate`: Certificate of a claim of infeasibility or unboundedness, checked.
    `ray`: The direction of a claim of unboundedness.
    `bound`: Certified bound on the optimum from the dual, in the sense of the problem: lower for a minimisation, upper
    for a maximisation. NaN where there is none.
    `bound_reason`: Source of the bound, or the reason why there is none.
    `near`: Bound on the points that are `NEARBY` alone, for which a dual need not be exact; NaN where `bound` holds.
    `unit`: The largest coefficient of the cone program's objective, or 1 where that is smaller.
    `seconds`, `solver_seconds`: Wall time with compilation, and the solver's own clock.
    `error`: The error that was raised, or the quantity that could not be measured.
    """

    solver: str
    status: str
    asked: float
    values: Values | None = None
    objective: float = NAN
    moved: float = 0.0
    measures: Measures = UNMEASURED
    cone: ConeResiduals | None = None
    altered: bool = False
    certificate: Certificate | None = None
    ray: Values | None = None
    bound: float = NAN
    bound_reason: str = "no certificate: there is no dual"
    near: float = NAN
    unit: float = 1.0
    seconds: float = NAN
    solver_seconds: float = NAN
    iterations: int | None = None
    error: str = ""

    @property
    def size(self) -> float:
        """One plus the largest entry of the point."""
        entries = (float(np.abs(value).max(initial=0.0)) for value in (self.values or {}).values())
        return 1.0 + max(entries, default=0.0)

    @property
    def residual(self) -> float:
        """The largest exact residual of the cone program, relative; 0 where there is no cone program."""
        return 0.0 if self.cone is None else self.cone.largest

    @property
    def infeasibility(self) -> float:
        """Distance of the point from feasibility, in the cone program and as written, relative."""
        return max(0.0 if self.cone is None else self.cone.relative["cone"], self.measures.missed[0])

    @property
    def miss(self) -> float:
        """The same, also in units of the variables' reach."""
        return max(self.infeasibility, self.measures.own[0])

    @property
    def quality(self) -> float:
        """The largest exact residual of all, relative; a smaller one means a better answer."""
        if self.status not in (*SOLVED, CLAIMED) or not np.isfinite(self.objective):
            return float("inf")
        return max(self.residual, self.measures.missed[0], float(np.nan_to_num(self.measures.displacement)))


@dataclass(frozen=True)
class Stored:
    """An earlier answer of a solver, to be judged again as its own word, on any machine.

    Attributes
    ----------
    values : mapping of variable or its name to array, optional
        None for a claim that there is no solution.
    status : str
        The status that cvxpy gave it.
    asked : float
        The tolerance that the solver was asked for.
    cone : (array or None, array or None), optional
        The solver's own vectors, as `cvxpriv.kkt.conic.solving.ConicSolution` has them: point and dual of the cone
        program that cvxpy makes for `solver`. With them the answer is judged as on the day it was given.
    solver, version, machine : str
        The solver of the answer, its version, and the machine.

    Examples
    --------
    >>> Stored({"x": [1.0]}, asked=1e-9, solver="SCS", version="3.3.1", machine="x86_64").status
    'optimal'
    """

    values: Mapping[Any, Any] | None
    status: str = cp.OPTIMAL
    asked: float = 1e-8
    cone: tuple[ArrayLike | None, ArrayLike | None] | None = None
    solver: str = ""
    version: str = ""
    machine: str = ""

    def __post_init__(self) -> None:
        require_positive(asked=self.asked)


@dataclass(frozen=True)
class Context:
    """The standards that an answer is compared with.

    `reference`: The reference's objective; NaN if there is none.
    `tightest`: The tightest bound that any answer's dual certifies; NaN if none does.
    `unit`: Size of the objective's coefficients, at most 1.
    `witnesses`: The answers whose bounds hold nearby.
    `unbeaten`: The answers, by name, that meet every constraint, and that no point known beats once it does so too.
    """

    reference: float = NAN
    tightest: float = NAN
    unit: float = 1.0
    witnesses: Sequence[Answer] = ()
    unbeaten: Collection[str] = ()

    def gap(self, answer: Answer, unit: float = 1.0) -> float:
        """Return the distance to the reference, relative to max(unit, |reference|)."""
        return abs(answer.objective - self.reference) / max(unit, abs(self.reference))

    def slope(self, answer: Answer) -> float:
        """Return what the value may gain on the way to where the slope ends, relative."""
        return answer.measures.slope / max(self.unit, abs(answer.objective), answer.measures.terms)

    def proven_gap(self, answer: Answer, unit: float | None = None) -> float:
        """Return the distance to the tightest certified bound, by default in the objective's units; infinite if none.

        It is relative, as `gap` is.
        """
        unit = self.unit if unit is None else unit
        bound = answer.bound if np.isnan(self.tightest) else self.tightest
        both = np.isfinite([answer.objective, bound]).all()
        return abs(answer.objective - bound) / max(unit, abs(bound)) if both else float("inf")

    def proven(self, answer: Answer, tolerance: float) -> bool:
        """Return whether the point is feasible with a certified bound as its value: optimality proved to a tolerance.

        The point itself is then only as good as the square root of that tolerance.
        """
        return max(self.proven_gap(answer, 1.0), answer.infeasibility) <= tolerance

    def settled(self, tolerance: float) -> bool:
        """Return whether a certified bound proves the reference's value."""
        return abs(self.reference - self.tightest) <= tolerance * max(1.0, abs(self.reference))

    def right(self, answer: Answer, tolerance: float) -> bool:
        """Return whether the point is proven optimal, or feasible and as good as any known: nothing else is asked."""
        if self.proven(answer, tolerance) or answer.solver in self.unbeaten:
            return True
        if answer.values is None or answer.infeasibility > tolerance:
            return False
        gaps = [abs(answer.objective - one.near) for one in self.witnesses if _nearby(answer.values, one.values)]
        return min(gaps, default=np.inf) <= tolerance * max(1.0, abs(answer.objective))

    def nearer(self, answer: Answer) -> Answer:
        """Return the answer, no further from stationary than its value allows where its point meets every constraint.

        The proximal point ``p`` of a feasible ``x0`` (`cvxpriv.kkt.proximal`) has ``f(p) + |p - x0|^2 / (2 size) <=
        f(x0)``, and ``f(p)`` is nowhere below a certified bound: ``|p - x0|^2 <= 2 size (f(x0) - bound)``. That needs
        no multipliers, and holds where none is finite.
        """
        if answer.values is None or answer.miss > ROUNDED:
            return answer
        off = self.proven_gap(answer) * max(1.0, abs(self.tightest) / self.unit)
        step, measures = float(np.sqrt(2.0 * off / answer.size)), answer.measures
        if not np.isfinite(step):
            return answer
        displacement, drift = (float(np.minimum(one, step)) for one in (measures.displacement, measures.drift))
        return replace(answer, measures=replace(measures, displacement=displacement, drift=drift))

    def certified(self, answer: Answer, tolerance: float) -> bool:
        """Return the same in the units of the objective and of the variables."""
        return max(self.proven_gap(answer), answer.miss) <= tolerance


def context_of(case: Case, answers: Sequence[Answer], reference: float = NAN) -> Context:
    """Return the context of the answers to one case."""
    maximise = isinstance(case.declare().objective, cp.Maximize)
    bounds = [answer.bound for answer in answers if np.isfinite(answer.bound)]
    tightest = (min if maximise else max)(bounds, default=NAN)
    witnesses = [answer for answer in answers if np.isfinite(answer.near)]
    unit = min([case.yardstick.unit, *(answer.unit for answer in answers)])
    return Context(reference, tightest, unit, witnesses)


def _nearby(values: Values, own: Values | None) -> bool:
    """Return whether every entry of a point is nearby another."""
    return own is not None and all((np.abs(values[k]) <= NEARBY * (1.0 + np.abs(own[k]))).all() for k in own)


INTEGRAL = 1e-5
"""Relative distance from a whole number that a solver may leave: most allow 1e-6."""


def measured(
    case: Case, raw: Values, multipliers: Mapping[str, Any] | None, solution: ConicSolution | None = None
) -> dict[str, Any]:
    """Return the measurements of a point, and its place in the domain.

    What a mixed-integer case restricts is fixed at the allowed values nearest to it, and the point is measured as one
    of the convex problem that is left.
    """
    if case.mixed is not None:
        return _of_integers(case, case.mixed, raw)
    yardstick = case.yardstick
    x = yardstick.point(raw)
    measures = yardstick.measures(x, multipliers)
    unknown = ""
    rows = None if solution is None or np.isfinite(measures.missed[0]) else solution.residuals
    if rows is not None and rows.relative["cone"] <= NEAR:
        unknown = f"constraint {measures.missed[1]!r} has no value at its point: the rows of its cone program hold"
        measures = replace(measures, missed=measures.defined)
    if case.repair is not None:
        values = {name: np.asarray(value, dtype=float) for name, value in case.repair(raw).items()}
        moved = max((float(np.abs(values[name] - raw[name]).max(initial=0.0)) for name in values), default=0.0)
        objective, error = yardstick.value(yardstick.point({**raw, **values}))
        return {"values": values, "objective": objective, "moved": moved, "measures": measures}
    inside, moved = yardstick.domain.moved(x)
    objective, error = yardstick.value(inside)
    found: dict[str, Any] = {"values": yardstick.values(inside), "objective": objective, "moved": moved}
    if unknown:  # a support function is infinite 1e-12 beside its domain, which nobody can say
        found["error"] = unknown
    if error and not np.isfinite(objective):
        # Atoms of cvxpy raise what they like: perspective an AssertionError where its scale is near zero.
        found["error"] = f"its objective cannot be evaluated at its point ({error})"
        if solution is not None and solution.x is not None:
            found["objective"] = solution.program.user_value(solution.program.value(solution.x))
            found["error"] += ": the value is the cone program's"
    return {**found, "measures": measures}


def _of_integers(case: Case, mixed: MixedInteger, values: Values) -> dict[str, Any]:
    variables = case.declare().variables
    for name, twin in variables.items():
        twin.save_value(np.asarray(values[name], dtype=float).reshape(twin.shape))
    off, where = mixed.off()
    if off > INTEGRAL:
        objective, _ = case.yardstick.value(case.yardstick.point(values))
        measures = Measures(missed=(off, f"{where} is allowed"), displacement=0.0)
        return {"values": values, "objective": objective, "measures": measures}
    left = case_of_problem(case.name, mixed.fixed())
    return measured(left, {name: np.asarray(twin.value, dtype=float) for name, twin in variables.items()}, None)
