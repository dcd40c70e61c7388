"""One solve of a problem by one solver, through cvxpy's own chain, with the raw solution kept."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.kkt.conic.bounds import LowerBound, lower_bound
from cvxpriv.kkt.conic.certificates import Certificate, infeasibility, unboundedness
from cvxpriv.kkt.conic.data import Compilations, ConeData, extract, finite
from cvxpriv.kkt.conic.generic import bound_multipliers, generic_answer
from cvxpriv.kkt.conic.program import ConeProgram, ConeResiduals, cone_residuals
from cvxpriv.numerics.arrays import Array
from cvxpriv.solvers.place import quiet, solvers_silent
from cvxpriv.solvers.registry import solver_spec


@dataclass(frozen=True, eq=False)
class ConicSolution:
    """The unaltered answer of a solver, in the terms of ``program``.

    `x`, `z`: Point and dual; a certificate where the status is infeasible or unbounded. None for a part that is
    missing.
    `status`: cvxpy's status, or ``"failed"`` if the solver raised.
    `solver_seconds`: The solver's own clock; None if it keeps none.
    `error`: The reason why it gave up or the error that was raised, with the remedy, or ``""``.
    `raw`: The solver's own answer.
    `direction`: The entries of the user's variables in ``x``, by id, where the status is unbounded.
    `altered_by_cvxpy`: Whether it may say something else than the problem: see `cvxpriv.kkt.conic.data.ConeData`.
    """

    program: ConeProgram
    x: Array | None
    z: Array | None
    status: str
    iterations: int | None
    solver_seconds: float | None
    error: str = ""
    raw: object = field(default=None, repr=False)
    direction: Mapping[int, Array] | None = field(default=None, repr=False)
    altered_by_cvxpy: bool = False

    @cached_property
    def residuals(self) -> ConeResiduals | None:
        """Return the residuals of the point, or None if the solver returned no primal-dual point."""
        if self.x is None or self.z is None:
            return None
        return cone_residuals(self.program, self.x, self.z)

    @property
    def lower_bound(self) -> LowerBound:
        """Return a certified lower bound of the minimisation from the returned dual."""
        if self.z is None:
            return LowerBound(None, "no certificate: the solver returned no dual")
        if self.altered_by_cvxpy:  # version 1.9.3 bounds 0 * inf by 0, and the hinge loss by 1 from both sides
            return LowerBound(None, "no certificate: it would rest on bounds or an approximation of cvxpy's own")
        x = np.zeros(self.program.c.size) if self.x is None else self.x
        return lower_bound(self.program, x, self.z)

    @property
    def certificate(self) -> Certificate | None:
        """Return the solver's proof of infeasibility or unboundedness, checked.

        It is None where the solver claims neither, or either, and where it would rest on what cvxpy altered.
        """
        if self.status == cp.settings.INFEASIBLE_OR_UNBOUNDED or self.altered_by_cvxpy:
            return None
        if self.status.startswith("infeasible") and self.z is not None:
            return infeasibility(self.program, self.z)
        if self.status.startswith("unbounded") and self.x is not None:
            return unboundedness(self.program, self.x)
        return None


def solve_conic(
    problem: cp.Problem,
    solver: str,
    options: Mapping[str, object] | None = None,
    *,
    warm_start: bool = False,
    shared: Compilations | None = None,
) -> ConicSolution:
    """Solve through cvxpy's own chain and keep the raw solution.

    The problem's variables and constraints receive their values and duals as with ``problem.solve``. Any error of the
    solver or of cvxpy is stored as ``error`` and loses nothing that the solver returned before.

    `solver`: ``"CLARABEL"``, ``"SCS"``, ``"ECOS"``, ``"OSQP"`` or ``"HIGHS"``.
    `options`: Options that are passed on to the solver unchanged.
    `warm_start`: Start from this solver's last answer to this problem, if it can (SCS and OSQP do); otherwise from a
    cold start.
    `shared`: Earlier compilations of the same expressions, whose steps are used again.
    Raises ModelError: If the solver is not one that this module reads, or the problem is mixed-integer.
    """
    compiled = extract(problem, solver, options or {}, shared)
    solution = asked(problem, compiled, options or {}, warm_start)
    if solution.status == "failed":
        return solution
    unbounded = solution.x is not None and solution.status.startswith("unbounded")
    return replace(
        solution,
        error=_unpacked(problem, compiled, solution),
        direction=compiled.variables(solution.x) if unbounded and solution.x is not None else None,
    )


def asked(
    problem: cp.Problem, compiled: ConeData, options: Mapping[str, object], warm_start: bool = False
) -> ConicSolution:
    """Return a solver's answer to the data that it is given; the problem keeps its values."""
    program, raw = ConeProgram(**compiled.fields), None
    try:
        with solvers_silent(), quiet():  # "may be inaccurate", and whatever else: the status says so
            raw = compiled.chain.solve_via_data(problem, compiled.data, warm_start, False, dict(options))
        x, z = map(finite, _READERS.get(compiled.solver, _read_other)(compiled, raw), (program.c.size, program.b.size))
        told = compiled.chain.solver.invert(raw, compiled.inverse[-1])
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a solver may raise anything, and a panic of one written in Rust is no Exception
        return ConicSolution(program, None, None, "failed", None, None, _describe(error), raw)
    own = str(told.status), told.attr.get("num_iters"), told.attr.get("solve_time")
    return ConicSolution(program, x, z, *own, raw=raw, altered_by_cvxpy=compiled.altered_by_cvxpy)


def attempts(
    problem: cp.Problem, ways: Iterable[tuple[str, float | None]], seconds: float = 60.0
) -> Iterator[ConicSolution]:
    """Yield a problem's answers by one solver and tolerance after the other; a solver that cannot take it has none."""
    for solver, tolerance in ways:
        try:
            solution = solve_conic(problem, solver, solver_spec(solver).timed_options(tolerance, seconds))
        except cp.error.SolverError:
            continue
        yield solution


def _unpacked(problem: cp.Problem, compiled: ConeData, solution: ConicSolution) -> str:
    """Give the problem its values, as `problem.solve` does; return the error, or ``""``."""
    refusal = ""
    if solution.status in (cp.SOLVER_ERROR, cp.USER_LIMIT):
        own = _own_status(compiled, solution.raw)
        refusal = _gave_up(compiled.solver, own, solution.status, solution.iterations)
    try:
        with quiet():
            problem.unpack_results(solution.raw, compiled.chain, compiled.inverse)
    except Exception as error:  # cvxpy raises where the solver's status is a failure; status and point are kept
        return refusal or _describe(error)
    return refusal


def _gave_up(solver: str, own: str, status: str, iterations: int | None) -> str:
    after = "" if iterations is None else f" after {iterations} iterations"
    remedy = "raise its limit, or loosen its tolerance" if status == cp.USER_LIMIT else "loosen its tolerance"
    return f"{solver} ended with {own!r}{after}: {remedy}, rescale the data, or take another solver"


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _own_status(compiled: ConeData, raw: Any) -> str:
    """Return the solver's own status."""
    if compiled.solver not in _STATUSES:
        return str(compiled.chain.solver.invert(raw, compiled.inverse[-1]).status)
    return str(_STATUSES[compiled.solver](raw))


def _read_ecos(compiled: ConeData, raw: Any) -> tuple[Any, Any]:
    empty = np.zeros(0)
    z = np.concatenate([empty if raw["y"] is None else raw["y"], empty if raw["z"] is None else raw["z"]])
    return raw["x"], z[compiled.order]


def _read_osqp(compiled: ConeData, raw: Any) -> tuple[Any, Any]:
    status = str(raw.info.status)
    if "dual infeasible" in status:
        return raw.dual_inf_cert, None
    if "primal infeasible" in status:
        return None, raw.prim_inf_cert
    return raw.x, raw.y


def _read_highs(compiled: ConeData, raw: Any) -> tuple[Any, Any]:
    if raw["model_status"] == "kUnbounded":  # HIGHS gives a point, but no ray that would prove it
        return None, None
    columns, signs = compiled.bounded
    rows = compiled.order.size
    if raw.get("dual_ray") is not None:
        _, found, ray = raw["dual_ray"]
        if not found or len(ray) != rows:
            return None, None
        z = -np.asarray(ray, dtype=float)
        pull = compiled.fields["A"][:rows].T @ z
    else:
        z = -np.asarray(raw["solution"].row_dual, dtype=float)
        pull = np.asarray(raw["solution"].col_dual, dtype=float)
    x = np.asarray(raw["solution"].col_value, dtype=float)
    if x.size != compiled.fields["c"].size or z.size != rows or pull.size != x.size:
        return None, None
    return x, np.concatenate([z, bound_multipliers(pull, columns, signs)])


def _read_other(compiled: ConeData, raw: Any) -> tuple[Any, Any]:
    x, z = generic_answer(compiled.chain.solver, raw, compiled.inverse[-1])
    columns, signs = compiled.bounded
    if x is None or z is None or not columns.size:
        return x, z
    fields = compiled.fields
    pull = fields["P"] @ x + fields["c"] + fields["A"][: z.size].T @ z
    return x, np.concatenate([z, bound_multipliers(pull, columns, signs)])


_STATUSES: dict[str, Callable[[Any], Any]] = {
    "CLARABEL": lambda raw: raw.status,
    "ECOS": lambda raw: raw["info"]["infostring"],
    "HIGHS": lambda raw: str(raw["model_status"]).removeprefix("k"),
    "OSQP": lambda raw: raw.info.status,
    "SCS": lambda raw: raw["info"]["status"],
}
_READERS: dict[str, Callable[[ConeData, Any], tuple[Any, Any]]] = {
    "CLARABEL": lambda _, raw: (raw.x, raw.z),
    "ECOS": _read_ecos,
    "HIGHS": _read_highs,
    "OSQP": _read_osqp,
    "SCS": lambda _, raw: (raw["x"], raw["y"]),
}
