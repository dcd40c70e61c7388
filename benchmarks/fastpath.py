"""The fast path against `Problem.solve`: seconds a re-solve, agreement, and memory over many solves.

Run with ``OMP_NUM_THREADS=1 python benchmarks/fastpath.py``. Both ways solve the same sequence of Parameters in one
run, turn by turn, so that whatever else the machine does falls on both; what counts is the ratio of the medians.
"""

from __future__ import annotations

import gc
import resource
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.fastpath.problem import FastProblem
from cvxpriv.solvers.registry import solver_spec

SIZE, ROUNDS, LONG = 11, 300, 10_000
Draw = Callable[[np.random.Generator], dict[str, Any]]


def entropy_block() -> cp.Problem:
    """The 11-variable block: relative entropy to a Parameter plus a linear term, on the simplex with a floor."""
    x = cp.Variable(SIZE, name="x")
    A, cost = cp.Parameter(SIZE, name="A", nonneg=True), cp.Parameter(SIZE, name="cost")
    return cp.Problem(cp.Minimize(cp.sum(cp.rel_entr(x, A)) + cost @ x), [cp.sum(x) == 1, x >= 1e-6])


def draw_entropy(generator: np.random.Generator) -> dict[str, Any]:
    return {"A": generator.dirichlet(np.full(SIZE, 2.0)), "cost": generator.normal(size=SIZE)}


def weighted_block() -> cp.Problem:
    """The same with weights on the entropies and a row of Parameters: the matrix A moves as well."""
    x = cp.Variable(SIZE, name="x")
    weight, row = cp.Parameter(SIZE, name="weight", nonneg=True), cp.Parameter(SIZE, name="row")
    return cp.Problem(cp.Minimize(-weight @ cp.entr(x)), [cp.sum(x) == 1, x >= 1e-6, row @ x <= 1])


def draw_weighted(generator: np.random.Generator) -> dict[str, Any]:
    return {"weight": generator.uniform(0.5, 2, SIZE), "row": generator.uniform(0, 1.5, SIZE)}


def projection_block() -> cp.Problem:
    """Euclidean projection on the simplex."""
    x, target = cp.Variable(SIZE, name="x"), cp.Parameter(SIZE, name="target")
    return cp.Problem(cp.Minimize(cp.sum_squares(x - target)), [cp.sum(x) == 1, x >= 0])


def draw_projection(generator: np.random.Generator) -> dict[str, Any]:
    return {"target": generator.normal(size=SIZE)}


BLOCKS: Mapping[str, tuple[Callable[[], cp.Problem], Draw, tuple[str, ...]]] = {
    "entropy": (entropy_block, draw_entropy, ("CLARABEL", "ECOS", "SCS")),
    "weighted entropy": (weighted_block, draw_weighted, ("CLARABEL", "ECOS", "SCS")),
    "projection": (projection_block, draw_projection, ("CLARABEL", "OSQP", "SCS")),
}


def tolerances(solver: str) -> dict[str, dict[str, Any]]:
    """Return the option sets to measure: the solver's defaults in cvxpy, and those of cvxpriv's table."""
    return {"default": {}, "table": solver_spec(solver).options(solver_spec(solver).tolerance)}


def compare(name: str, solver: str, asked: str, reuse: bool) -> str:
    """Return one row: medians, ratio, and the largest differences of objective and point."""
    make, draw, _ = BLOCKS[name]
    problem, options = make(), tolerances(solver)[asked]
    fast, generator = FastProblem(problem, solver, options, reuse=reuse), np.random.default_rng(0)
    slow_seconds, fast_seconds, gap, distance, worse = [], [], 0.0, 0.0, 0
    for _ in range(ROUNDS):
        values = draw(generator)
        begun = time.perf_counter()
        status = solve_as_cvxpy(problem, solver, values, options)
        between = time.perf_counter()
        solution = fast.solve(values)
        fast_seconds.append(time.perf_counter() - between)
        slow_seconds.append(between - begun)
        worse += solution.status != status
        if solution.values and status != cp.SOLVER_ERROR:
            gap = max(gap, abs(solution.objective - problem.value))
            distance = max(distance, float(np.abs(solution.values["x"] - problem.variables()[0].value).max()))
    slow, quick = 1e3 * float(np.median(slow_seconds)), 1e3 * float(np.median(fast_seconds))
    label = f"{solver}{', reuse' if reuse else ''}"
    times = f"{slow:>9.3f}{quick:>9.3f}{slow / quick:>8.1f}"
    return f"{name:<18}{label:<18}{asked:<9}{times}{gap:>11.1e}{distance:>11.1e}{worse:>7}"


def solve_as_cvxpy(problem: cp.Problem, solver: str, values: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    """Set the Parameters, solve from a cold start, return the status."""
    for parameter in problem.parameters():
        parameter.value = values[parameter.name()]
    try:
        problem.solve(solver=solver, warm_start=False, **options)
    except cp.error.SolverError:
        return str(cp.SOLVER_ERROR)
    return str(problem.status)


def memory(solver: str) -> str:
    """Return one row: the process's largest size before and after a long sequence of fast solves."""
    fast, generator = FastProblem(entropy_block(), solver), np.random.default_rng(0)
    draws = [draw_entropy(generator) for _ in range(100)]
    for values in draws:
        fast.solve(values)
    gc.collect()
    before = _largest()
    begun = time.perf_counter()
    for turn in range(LONG):
        fast.solve(draws[turn % len(draws)])
    seconds = time.perf_counter() - begun
    return f"{solver:<10}{LONG:>8}{seconds:>10.1f}{before:>12.1f}{_largest():>12.1f}"


def _largest() -> float:
    """Largest resident size of this process so far, in MB."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def main() -> None:
    """Print both tables."""
    warnings.simplefilter("ignore")  # "may be inaccurate": statuses are compared
    print(f"cvxpy {cp.__version__}, {ROUNDS} re-solves, medians in ms; then the largest differences")
    columns = f"{'cvxpy':>9}{'fast':>9}{'ratio':>8}{'objective':>11}{'point':>11}{'status':>7}"
    print(f"{'block':<18}{'solver':<18}{'asked':<9}{columns}")
    for name, (_, _, solvers) in BLOCKS.items():
        for solver in solvers:
            for asked in tolerances(solver):
                for reuse in (False, True) if solver != "ECOS" else (False,):
                    print(compare(name, solver, asked, reuse))
    print(f"\nmemory, entropy block\n{'solver':<10}{'solves':>8}{'seconds':>10}{'MB before':>12}{'MB after':>12}")
    for solver in ("CLARABEL", "ECOS", "SCS"):
        print(memory(solver))


if __name__ == "__main__":
    main()
