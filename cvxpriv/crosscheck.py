"""Cross-checks: one convex problem, every solver, exact residuals, a verdict for each.

A verdict rests on what a solver returned, never on what it says of it. The residuals are those of the cone program it
was given (`cvxpriv.cone_program`), with exact distances to each cone and its dual, and those of the problem as the
user wrote it (`cvxpriv.kkt`); the objective is compared with a reference that is named.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import cvxpy as cp
import numpy as np
import pandas as pd

from cvxpriv.block import Block, Declaration
from cvxpriv.cone_program import ConicSolution, solve_conic
from cvxpriv.errors import Disagreement, ModelError
from cvxpriv.jacobian_sets import DerivativeError
from cvxpriv.kkt import Residuals, residuals
from cvxpriv.solvers import installed, solver_spec
from cvxpriv.state import Values
from cvxpriv.verdicts import Evidence, Tolerances, Verdict, judge, worst_of

__all__ = ["CLOSED_FORM", "Case", "CrossCheck", "case_of_block", "crosscheck"]

#: The name under which an exact update stands in the table.
CLOSED_FORM = "closed form"


@dataclass(frozen=True)
class Case:
    """One problem to cross-check.

    Attributes
    ----------
    name : str
    declare : callable
        Returns the declaration, Parameters set. Called once a solver: alternating solvers on one problem recompiles.
    repair : callable
        Variables' values to values in the domain; the objective is evaluated there.
    exact : mapping of str to ndarray, optional
        Variables' values from a closed form.
    exact_seconds : float
        What the closed form took.
    """

    name: str
    declare: Callable[[], Declaration]
    repair: Callable[[Values], Values] = lambda values: values
    exact: Values | None = None
    exact_seconds: float = float("nan")


def case_of_block(block: Block, view: Values) -> Case:
    """Return the case that a block poses at one start of the state, with its exact update if it has one."""
    exact, seconds = None, float("nan")
    if block.direct is not None:
        begun = time.perf_counter()
        written = block.direct({name: np.asarray(value)[None] for name, value in view.items()})
        seconds = time.perf_counter() - begun
        exact = block.embed({**view, **{name: value[0] for name, value in written.items()}}, view)

    def declare() -> Declaration:
        declaration = replace(block).declaration(block.structure(view))  # a copy compiles its own
        for name, value in block.parameters(view).items():
            declaration.parameters[name].value = value
        return declaration

    return Case(block.name, declare, lambda values: block.repair(values, view), exact, seconds)


def case_of_problem(name: str, problem: cp.Problem) -> Case:
    """Return the case of a user's own problem.

    Raises
    ------
    ModelError
        The problem is not DCP, is mixed-integer, or has Parameters without values.
    """
    _require_checkable(name, problem)
    declaration = Declaration(
        problem.objective,
        {_label(constraint, index): constraint for index, constraint in enumerate(problem.constraints)},
        {variable.name(): variable for variable in problem.variables()},
        {parameter.name(): parameter for parameter in problem.parameters()},
    )
    return Case(name, lambda: declaration)


@dataclass(frozen=True)
class CrossCheck:
    """The evidence, solver by solver and case by case.

    Attributes
    ----------
    table : DataFrame
        One row per case and solver. Columns: case, solver, status, verdict, objective (at the repaired point), gap (to
        the reference, relative), distance (largest difference of a variable from the reference's), primal,
        stationarity, natural (of the problem as written), cone, dual_cone, complementarity, duality_gap (relative, of
        the cone program), bound (certified lower bound of the minimised objective, or NaN), seconds, solver_seconds,
        iterations, reason.
    references : dict of str to str
        For each case what the reference is, and why.
    """

    table: pd.DataFrame
    references: dict[str, str]

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """The worst verdict of each solver, with the case it comes from."""
        found: dict[str, Verdict] = {}
        for solver, rows in self.table.groupby("solver", sort=False):
            verdicts = [
                Verdict(str(row.verdict), f"{row.case}: {row.reason}") for row in rows.itertuples(index=False)
            ]
            found[str(solver)] = worst_of(verdicts)
        return found

    @property
    def worst_offender(self) -> str:
        """The worst answer of all, in one sentence."""
        solver, verdict = max(self.verdicts.items(), key=lambda item: item[1].rank)
        return f"{solver} {verdict.verdict}: {verdict.reason}"

    def best_gap(self) -> pd.Series:
        """Return, per case, the smallest gap to the reference among the solvers."""
        solvers = self.table[self.table["solver"] != CLOSED_FORM]
        return solvers.groupby("case", sort=False)["gap"].min()

    def raise_if_failed(self, *, allowed: Sequence[str] = ("agrees", "loose")) -> None:
        """Raise unless every verdict is among `allowed`.

        Raises
        ------
        Disagreement
            Naming each solver and case that is not.
        """
        bad = self.table[~self.table["verdict"].isin(allowed)]
        if len(bad):
            lines = [f"{row.solver} on {row.case}: {row.verdict}, {row.reason}" for row in bad.itertuples(index=False)]
            raise Disagreement("; ".join(lines))


def crosscheck(
    target: cp.Problem | Case | Mapping[str, cp.Problem] | Sequence[Case],
    solvers: Sequence[str] | None = None,
    *,
    tolerances: Tolerances | None = None,
    tolerance: float | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> CrossCheck:
    """Solve each case by each solver and judge the answers.

    Parameters
    ----------
    target : cvxpy.Problem, Case, mapping of names to problems, or sequence of Case
    solvers : sequence of str, optional
        None is every installed solver of the table that takes the problem's cones.
    tolerances : Tolerances, optional
        Where verdicts change.
    tolerance : float, optional
        What every solver is asked for; None is each solver's own (`cvxpriv.solvers`).
    options : mapping of solver to options, optional
        On top of the tolerance set.

    Returns
    -------
    CrossCheck

    Raises
    ------
    ModelError
        A problem is not DCP, is mixed-integer, or has Parameters without values; or a solver is unknown.

    Examples
    --------
    >>> x = cp.Variable(2, name="x")
    >>> report = crosscheck(cp.Problem(cp.Minimize(cp.sum_squares(x)), [cp.sum(x) == 1]), ["CLARABEL", "OSQP"])
    >>> [verdict.verdict for verdict in report.verdicts.values()]
    ['agrees', 'agrees']
    """
    names = tuple(solver_spec(solver).name for solver in solvers) if solvers is not None else None
    rows: list[dict[str, Any]] = []
    references: dict[str, str] = {}
    for case in _cases(target):
        trials = _trials(case, names, tolerance, options or {})
        reference = _reference(case, trials)
        references[case.name] = reference.why
        rows += [_row(case, trial, reference, tolerances or Tolerances()) for trial in trials]
    return CrossCheck(pd.DataFrame(rows), references)


@dataclass(frozen=True)
class _Trial:
    """One solver's answer to one case, or the closed form's."""

    solver: str
    asked: float
    solution: ConicSolution | None
    values: Values | None
    objective: float
    residuals: Residuals | None
    seconds: float


@dataclass(frozen=True)
class _Reference:
    objective: float
    values: Values
    why: str


def _cases(target: cp.Problem | Case | Mapping[str, cp.Problem] | Sequence[Case]) -> list[Case]:
    if isinstance(target, cp.Problem):
        return [case_of_problem("problem", target)]
    if isinstance(target, Case):
        return [target]
    if isinstance(target, Mapping):
        return [case_of_problem(name, problem) for name, problem in target.items()]
    return list(target)


def _trials(
    case: Case, solvers: Sequence[str] | None, tolerance: float | None, options: Mapping[str, Mapping[str, Any]]
) -> list[_Trial]:
    trials = [_exact_trial(case)] if case.exact is not None else []
    for name in solvers if solvers is not None else _capable(case.declare().problem):
        trials.append(_trial(case, name, tolerance, options.get(name, {})))
    return trials


def _capable(problem: cp.Problem) -> tuple[str, ...]:
    """The installed solvers that take this problem's cones."""
    capable = []
    for name in installed():
        try:
            problem.get_problem_data(name)
        except cp.error.SolverError:
            continue
        capable.append(name)
    return tuple(capable)


def _exact_trial(case: Case) -> _Trial:
    declaration = case.declare()
    _place(declaration, case.exact or {})
    measured = residuals(declaration.problem, duals=None, names=declaration.constraints)
    return _Trial(
        CLOSED_FORM, 0.0, None, case.exact, float(declaration.objective.value), measured, case.exact_seconds
    )


def _trial(case: Case, name: str, tolerance: float | None, own: Mapping[str, Any]) -> _Trial:
    declaration = case.declare()
    spec = solver_spec(name)
    full = spec.full_options(tolerance, own)
    asked = float(full[spec.main_option])
    begun = time.perf_counter()
    solution = solve_conic(declaration.problem, name, full)
    seconds = time.perf_counter() - begun
    if solution.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        return _Trial(name, asked, solution, None, float("nan"), None, seconds)
    measured = _as_written(declaration)
    values = case.repair(declaration.values())
    _place(declaration, values)
    return _Trial(name, asked, solution, values, float(declaration.objective.value), measured, seconds)


def _as_written(declaration: Declaration) -> Residuals | None:
    """Residuals of the problem as written; None where its functions have no derivative, such as log of -1e-5."""
    try:
        return residuals(declaration.problem, duals="solver", names=declaration.constraints)
    except DerivativeError:
        return None


def _place(declaration: Declaration, values: Values) -> None:
    for name, value in values.items():
        declaration.variables[name].value = value


def _reference(case: Case, trials: Sequence[_Trial]) -> _Reference:
    """The closed form if there is one, else the solver with the smallest exact residual."""
    if case.exact is not None:
        return _Reference(trials[0].objective, case.exact, "closed form: exact, its residuals are in the table")
    judged = [
        (trial.solution.residuals.largest, trial)
        for trial in trials
        if trial.values is not None
        and trial.solution is not None
        and trial.solution.residuals is not None
        and np.isfinite(trial.objective)
    ]
    if not judged:
        return _Reference(float("nan"), {}, "none: no solver returned a solution")
    residual, best = min(judged, key=lambda pair: pair[0])
    return _Reference(best.objective, best.values or {}, f"{best.solver}: smallest exact residual, {residual:.1e}")


def _row(case: Case, trial: _Trial, reference: _Reference, tolerances: Tolerances) -> dict[str, Any]:
    solution = trial.solution
    cone = solution.residuals if solution is not None else None
    evidence = Evidence(
        status=solution.status if solution is not None else "exact",
        asked=trial.asked,
        objective=trial.objective,
        reference=reference.objective,
        residuals=cone,
        natural=trial.residuals.natural if trial.residuals is not None else 0.0,
        certificate=solution.certificate if solution is not None else None,
        error=solution.error if solution is not None else "",
    )
    verdict = judge(evidence, tolerances) if solution is not None else _judge_exact(trial, tolerances)
    at_user, relative = trial.residuals, cone.relative if cone is not None else {}
    nan = float("nan")
    return {
        "case": case.name,
        "solver": trial.solver,
        "status": evidence.status,
        "verdict": verdict.verdict,
        "objective": trial.objective,
        "gap": evidence.gap,
        "distance": _distance(trial.values, reference.values),
        "primal": at_user.primal if at_user else nan,
        "stationarity": at_user.stationarity if at_user else nan,
        "natural": at_user.natural if at_user else nan,
        "cone": relative.get("cone", nan),
        "dual_cone": relative.get("dual_cone", nan),
        "complementarity": relative.get("complementarity", nan),
        "duality_gap": relative.get("gap", nan),
        "bound": _bound(solution),
        "seconds": trial.seconds,
        "solver_seconds": solution.solver_seconds if solution is not None else nan,
        "iterations": solution.iterations if solution is not None else None,
        "reason": verdict.reason,
    }


def _judge_exact(trial: _Trial, tolerances: Tolerances) -> Verdict:
    """A closed form is judged by its own residuals, in the units of the variables."""
    largest = trial.residuals.largest if trial.residuals is not None else float("inf")
    if largest <= tolerances.agree:
        return Verdict("agrees", f"every exact residual is at most {max(largest, 1e-16):.0e}")
    where = trial.residuals.worst_variable if trial.residuals is not None else "its point"
    return Verdict("WRONG", f"claims to be exact, but its residual is {largest:.1e} at {where}")


def _distance(values: Values | None, reference: Values) -> float:
    if values is None or not reference:
        return float("nan")
    return max(float(np.max(np.abs(values[name] - reference[name]), initial=0.0)) for name in reference)


def _bound(solution: ConicSolution | None) -> float:
    bound = solution.lower_bound.value if solution is not None else None
    return float("nan") if bound is None else float(bound)


def _label(constraint: cp.Constraint, index: int) -> str:
    return f"[{index}] {constraint}"


def _require_checkable(name: str, problem: cp.Problem) -> None:
    if not problem.is_dcp():
        parts = [problem.objective, *problem.constraints]
        shown = "; ".join(str(part) for part in parts if not part.is_dcp())
        raise ModelError(f"{name} is not DCP in {shown}: rewrite it with cvxpy's atoms (https://dcp.stanford.edu)")
    if problem.is_mixed_integer():
        raise ModelError(f"{name} is mixed-integer: cross-checks need duals, which such problems have not")
    unset = [parameter.name() for parameter in problem.parameters() if parameter.value is None]
    if unset:
        raise ModelError(f"{name} has Parameters without values: set {', '.join(unset)} first")
