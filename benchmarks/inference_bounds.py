"""Inference as a service, certified: the default call against SLSQP, sizes, constraints, growth, and the checker.

python -m benchmarks inference_bounds

Peer: SciPy's SLSQP with analytic gradients on IAS (1), from random starts until one is within 1e-4, relative, of the
optimum that the bound proves; it proves nothing itself. CPU seconds.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from cvxpriv_models.inference_service.bregman import gradient
from cvxpriv_models.inference_service.problem import Problem
from cvxpriv_models.inference_service.starts import random_starts
from scipy.optimize import minimize

from benchmarks.bounds import by
from benchmarks.inference import PAPER, g10
from cvxpriv import constraints, datasets
from cvxpriv.models import InferenceAsService
from cvxpriv.numerics.arrays import Array

NEAR, MOST_STARTS = 1e-4, 20
GROWING, MOST_OUTPUTS = (120, 300, 1000), 20


def slsqp(table: Array, beta: float, divergence: str, optimum: float) -> tuple[float, float, int]:
    """Seconds until a start is within `NEAR` of the optimum, the best value, and how many starts that took.

    The constraints are linear, their derivatives constant; |U| = |Y| + 1, as by default.
    """
    problem = Problem.of(table, beta, divergence)
    shape = (len(problem.p_y), problem.size_u)
    rows = np.kron(np.eye(shape[0]), np.ones(shape[1]))
    sums = {"type": "eq", "fun": lambda v: rows @ v - 1.0, "jac": lambda v: rows}
    best, began = -np.inf, time.process_time()
    for start in range(MOST_STARTS):
        first = random_starts(problem, start + 1, 0)[start].ravel()

        def value(v: Array) -> tuple[float, Array]:
            mechanism = np.maximum(v, 1e-12).reshape(shape)
            return -problem.objective(mechanism), -gradient(problem, mechanism[None])[0].ravel()

        found = minimize(
            value, first, jac=True, method="SLSQP", bounds=[(1e-9, 1.0)] * first.size, constraints=[sums],
            options={"maxiter": 300, "ftol": 1e-9},
        )  # fmt: skip
        rounded = np.maximum(found.x, 0.0).reshape(shape)
        best = max(best, problem.objective(rounded / rounded.sum(axis=1, keepdims=True)))
        if best >= optimum - NEAR * max(optimum, 1e-3):
            break
    return time.process_time() - began, best, start + 1


def against_slsqp() -> None:
    """G10: the default call, certified, and SLSQP."""
    print("G10             beta   optimum         rel gap  default  checked   SLSQP to 1e-4 (starts)  ratio")
    for divergence in PAPER:
        for beta in (0.3, 0.6, 1.0):
            began = time.process_time()
            run = InferenceAsService(g10(), beta, divergence=divergence).solve()
            took = time.process_time() - began
            assert run.bound is not None
            began = time.process_time()
            if run.bound.certificate is not None:
                run.bound.certificate.verify()
            checked = time.process_time() - began
            seconds, best, starts = slsqp(g10(), beta, divergence, run.bound.upper)
            relative = (run.gap or 0.0) / max(run.objective, 1e-3)
            off = run.bound.upper - best
            reached = "" if off <= NEAR * max(run.bound.upper, 1e-3) else f" not reached: {off:.0e} off"
            print(
                f"{divergence:15s} {beta:4.1f} {run.objective:13.10f}  {relative:9.1e} {took:6.2f} s {checked:6.2f} s "
                f"{seconds:8.2f} s ({starts}){reached}  {took / seconds:6.2f}"
            )


def sizes() -> None:
    """Other tables: what the default call takes."""
    rng = np.random.default_rng(1)
    death, income = by("heart-failure", "death"), by("adult", "income")
    cases = [
        ("heart failure 2 x 16", death, "jensen-shannon", 0.05, 2.0),
        ("random 2 x 16", rng.dirichlet(np.ones(32)).reshape(2, 16), "jensen-shannon", 0.3, 2.0),
        ("random 3 x 16", rng.dirichlet(np.ones(48)).reshape(3, 16), "le-cam", 0.3, 2.0),
        ("random 3 x 16", rng.dirichlet(np.ones(48)).reshape(3, 16), "hellinger", 0.1, 2.0),
        ("Adult 2 x 158", income, "jensen-shannon", 0.1, 15.0),
        ("Adult 2 x 158", income, "jensen-shannon", 0.02, 15.0),
        ("Adult 2 x 158", income, "le-cam", 0.05, 15.0),
        ("heart failure 4 x 16", datasets.heart_failure(), "jensen-shannon", 0.1, 20.0),
        ("heart failure 4 x 16", datasets.heart_failure(), "jensen-shannon", 0.05, 20.0),
    ]
    for name, table, divergence, beta, asked in cases:
        began = time.process_time()
        run = InferenceAsService(table, beta, divergence=divergence).solve()
        took = time.process_time() - began
        relative = (run.gap or np.nan) / max(run.objective, 1e-3)
        print(f"{name:22s} {divergence:15s} {beta:5.2f} {run.objective:.10f} rel gap {relative:.1e} in {took:6.2f} s "
              f"(asked: {asked:g} s, 1e-6)")  # fmt: skip


def under_local_privacy() -> None:
    """G10 with local differential privacy: asked 1e-4 in 5 s."""
    for epsilon, beta in ((1.0, 0.1), (1.0, 0.3), (2.0, 0.1)):
        asked = constraints.local_differential_privacy(epsilon)
        model = InferenceAsService(g10(), beta).constrain("ldp", asked)
        began = time.process_time()
        run = model.solve()
        took = time.process_time() - began
        relative = (run.gap or np.nan) / run.objective
        print(f"local DP eps {epsilon:g} beta {beta:g}: {run.objective:.10f} rel gap {relative:.1e} in {took:.2f} s")


def growth() -> None:
    """|S| = 3, |U| = 20, |Y| up to 1000: time and memory, each in a process of its own, with growth exponents."""
    before: tuple[int, float, float] | None = None
    for size in GROWING:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            seconds, memory, gap, local, residual, converged = pool.submit(_grown, size).result()
        grown = ""
        if before is not None:
            ratio = np.log(size / before[0])
            exponents = np.log([seconds / before[1], memory / before[2]]) / ratio
            grown = f", growing as n^{exponents[0]:.1f}, n^{exponents[1]:.1f}"
        before = size, seconds, memory
        print(f"|Y| = {size}: {seconds:.1f} s, {memory:.0f} MB{grown}; gap {gap:.1e}, local gap {local:.1e}, residual "
              f"{residual:.1e}, converged {converged}")  # fmt: skip


def _grown(size: int) -> tuple[float, float, float, float, float, bool]:
    y = np.linspace(0.0, 1.0, size)
    rows = np.stack([np.exp(-((y - centre) ** 2) / (2.0 * 0.12**2)) for centre in (0.15, 0.5, 0.85)])
    table = rows / rows.sum(axis=1, keepdims=True) / 3.0
    model = InferenceAsService(table, 0.3, size_u=MOST_OUTPUTS)
    before, began = _largest(), time.process_time()
    run = model.solve()  # its usual limits count processor seconds
    took = time.process_time() - began
    return took, _largest() - before, run.gap or np.nan, run.local_gap, run.residual, run.converged


def _largest() -> float:
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def main() -> None:
    """Every case, one after the other."""
    against_slsqp()
    sizes()
    under_local_privacy()
    growth()


if __name__ == "__main__":
    main()
