"""How far inference as a service scales: the joint step and a pass at |Y| = |U| up to 100, |S| = 5.

Each measurement runs in a process of its own: the largest size of a process says what the work needs at most.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pandas as pd
from cvxpriv_models.inference_service import closed_form
from cvxpriv_models.inference_service.joint import joint
from cvxpriv_models.inference_service.problem import Problem
from cvxpriv_models.inference_service.starts import initial_state, random_starts
from cvxpy.error import SolverError

from cvxpriv.errors import SolverFailure
from cvxpriv.numerics.arrays import single
from cvxpriv.solvers.registry import solver_spec

SIZE_S, SIZES, BETA = 5, (25, 50, 100), 0.3
DIVERGENCES = ("jensen-shannon", "hellinger")
REPEATS = 3

Measured = tuple[float, float, float]


def bell_shaped(size: int) -> np.ndarray:
    """P(S, Y), (5, size): five smooth rows of one hump each, as in the small case."""
    y = np.linspace(0.0, 1.0, size)
    rows = np.stack([np.exp(-((y - centre) ** 2) / (2.0 * 0.12**2)) for centre in np.linspace(0.15, 0.85, SIZE_S)])
    return np.asarray(rows / rows.sum(axis=1, keepdims=True) / SIZE_S)


def scaling() -> None:
    """Seconds and memory at |Y| = |U| = n, |S| = 5, beta = .3: the joint step, exact and by CLARABEL, and one pass.

    nan: out of memory, or no answer.
    """
    rows = []
    for divergence in DIVERGENCES:
        for size in SIZES:
            taken = {name: _alone(name, divergence, size) for name in WORKS}
            single = taken["one pass"][0]
            for name, (seconds, memory, value) in taken.items():
                rows.append([divergence, size, name, seconds, seconds / single, memory, value])
    columns = ["f", "n", "work", "seconds", "in passes", "MB more", "F of (10)"]
    table = pd.DataFrame(rows, columns=columns)
    shown = {"seconds": "{:.3g}".format, "in passes": "{:.0f}".format, "MB more": "{:.0f}".format}
    print(table.to_string(index=False, formatters=shown, float_format="{:.6f}".format))
    print("MB more: the process's largest size, less its size before the work; F after one pass is not an optimum")
    for name in WORKS:
        taken = table[table["work"] == name]
        grown = [taken.loc[taken["f"] == divergence, "seconds"] for divergence in DIVERGENCES]
        exponents = [float(np.polyfit(np.log(SIZES), np.log(seconds), 1)[0]) for seconds in grown]
        told = ", ".join(f"n^{one:.1f} ({divergence})" for one, divergence in zip(exponents, DIVERGENCES, strict=True))
        print(f"{name}: seconds grow as {told}")


def _alone(name: str, divergence: str, size: int) -> Measured:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_measured, name, divergence, size).result()


def _measured(name: str, divergence: str, size: int) -> Measured:
    problem = Problem.of(bell_shaped(size), BETA, divergence, size)
    state = initial_state(problem, random_starts(problem, 1, 0))
    state.update(closed_form.one_pass(problem, state, rho=1.0))
    before = _largest()
    try:
        seconds, value = WORKS[name](problem, state)
    except (MemoryError, SolverFailure, SolverError):
        return np.nan, _largest() - before, np.nan
    return seconds, _largest() - before, value


def _exact(problem: Problem, state: dict[str, np.ndarray]) -> tuple[float, float]:
    block = joint(problem)
    assert block.direct is not None
    direct = block.direct
    seconds, written = _least(lambda: dict(direct(state)))
    return seconds, block.objective({**single(state, 0), **single(written, 0)}, single(state, 0))


def _with_parameters(problem: Problem, state: dict[str, np.ndarray]) -> tuple[float, float]:
    """The block as declared, with a Parameter for the prices; the first solve, which compiles."""
    begun = time.perf_counter()
    _, solution = joint(problem).solve(single(state, 0), solver=("CLARABEL",))
    return time.perf_counter() - begun, solution.objective


def _with_constants(problem: Problem, state: dict[str, np.ndarray]) -> tuple[float, float]:
    """The same problem with the prices as constants (`ignore_dpp`), compiled anew at each solve."""
    block, view = joint(problem), single(state, 0)
    declaration = block.place({**view, "q": problem.p_y @ view["mechanism"]}, view)
    begun = time.perf_counter()
    options = solver_spec("CLARABEL").full_options(None, {})
    declaration.problem.solve(solver="CLARABEL", ignore_dpp=True, **options)
    return time.perf_counter() - begun, float(declaration.problem.value)


def _one_pass(problem: Problem, state: dict[str, np.ndarray]) -> tuple[float, float]:
    seconds, written = _least(lambda: closed_form.one_pass(problem, state, rho=1.0))
    mechanism = written["mechanism"]
    values = {"mechanism": mechanism[0], "q": problem.p_y @ mechanism[0]}
    return seconds, joint(problem).objective({**single(state, 0), **values}, single(state, 0))


WORKS: dict[str, Callable[[Problem, dict[str, np.ndarray]], tuple[float, float]]] = {
    "one pass": _one_pass,
    "joint, exact": _exact,
    "joint, CLARABEL, Parameters": _with_parameters,
    "joint, CLARABEL, constants": _with_constants,
}


def _least(work: Callable[[], dict[str, np.ndarray]]) -> tuple[float, dict[str, np.ndarray]]:
    taken = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        written = work()
        taken.append(time.perf_counter() - begun)
    return min(taken), written


def _largest() -> float:
    """Largest resident size of this process so far, in MB."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
