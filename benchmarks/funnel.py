"""The privacy funnel: speed against its own floor, accuracy against certified values, solvers against closed forms.

python -m benchmarks funnel
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from unittest import mock

import numpy as np
import pandas as pd
from cvxpriv_models.privacy_funnel import closed_form, multiplier
from cvxpriv_models.privacy_funnel.baselines import agglomerative, drs, greedy
from cvxpriv_models.privacy_funnel.blocks import blocks
from cvxpriv_models.privacy_funnel.problem import Problem
from cvxpriv_models.privacy_funnel.starts import feasible_starts

from cvxpriv import constraints, datasets
from cvxpriv.certify.check import case_of_block, crosscheck
from cvxpriv.models import PrivacyFunnel
from cvxpriv.numerics.arrays import Array, single

S_GIVEN_X = np.array([[0.9, 0.08, 0.4], [0.025, 0.82, 0.05], [0.075, 0.1, 0.55]])  # PF section V-A
PRIORS = {"uniform": np.full(3, 1 / 3), "(.1, .3, .6)": np.array([0.1, 0.3, 0.6])}
CERTIFIED = {  # I(S;Y) in nats at R = .1 ... 1 H(X), within 1e-6 of the optimum
    "uniform": [0.019582, 0.039838, 0.060181, 0.080609, 0.121083, 0.175318, 0.243661, 0.313809, 0.383957, 0.454106],
    "(.1, .3, .6)": [
        0.008006, 0.022057, 0.038726, 0.074165, 0.118697, 0.164488, 0.210617, 0.256902, 0.310461, 0.367797,
    ],
}  # fmt: skip


def least_seconds(*works: Callable[[], object], repeats: int) -> list[float]:
    """Return the least processor seconds of one call of each, taken in turns."""
    taken: list[list[float]] = [[] for _ in works]
    for _ in range(repeats):
        for work, times in zip(works, taken, strict=True):
            begun = time.process_time()
            work()
            times.append(time.process_time() - begun)
    return [min(times) for times in taken]


def one_iteration() -> None:
    """One pass at 10 x 160 x 161 against two matrix products, the logs, and an exp for each evaluation of G."""
    problem = Problem.of(datasets.adult(), 0.6, "fraction", 161)
    p, s, target = problem.p_x, problem.p_s_given_x, problem.target
    state = closed_form.complete(feasible_starts(p, problem.rate, 161, 1, 0), problem.p_s_given_x)
    for passes in (1, 20):  # from the start, where every cell is alive, and where nine in ten have died
        for _ in range(passes):
            state = closed_form.iteration(state, p, s, target)
        _report_iteration(passes, state, p, s, target)


def _report_iteration(passes: int, state: closed_form.State, p: Array, s: Array, target: float) -> None:
    evaluate = multiplier.TiltedRows._evaluate
    with mock.patch.object(multiplier.TiltedRows, "_evaluate", autospec=True, side_effect=evaluate) as counted:
        closed_form.iteration(state, p, s, target)
    u, joint = np.exp(state["log_u"]), s @ np.exp(state["log_u"])
    out = np.empty_like(u)

    def floor() -> None:
        np.log(s @ u)
        s.T @ joint
        np.log(u, out=out)  # log w
        for _ in range(counted.call_count):
            np.exp(state["log_u"], out=out)

    whole, least = least_seconds(lambda: closed_form.iteration(state, p, s, target), floor, repeats=500)
    print(
        f"one pass at 10 x 160 x 161, after {passes}: {whole * 1e3:.2f} ms; its floor ({counted.call_count} "
        f"evaluations of G) {least * 1e3:.2f} ms; ratio {whole / least:.2f} (asked: at most 3)"
    )


def batched() -> None:
    """Thirty starts on 3 x 4 as one state against a loop over them, on several tables."""
    for accelerate, repeats in (("none", 1), ("auto", 3)):
        figures = [_batched(seed, rate, accelerate, repeats) for seed in range(2) for rate in (0.4, 0.6, 0.8)]
        ratios, converged = zip(*figures, strict=True)
        print(
            f"30 starts on 3 x 4, accelerate={accelerate!r}: {len(ratios)} tables, a loop over one state: median "
            f"{np.median(ratios):.1f} (asked: at least 10), {min(ratios):.1f} to {max(ratios):.1f}; "
            f"{sum(converged)} of {30 * len(ratios)} converged"
        )


def _batched(seed: int, rate: float, accelerate: str, repeats: int) -> tuple[float, int]:
    p_sx = np.random.default_rng(seed).dirichlet(np.ones(12)).reshape(3, 4)
    funnel = PrivacyFunnel(p_sx, rate=rate)
    mechanisms = np.exp(feasible_starts(funnel.problem.p_x, funnel.problem.rate, 5, 30, 0))
    mechanisms /= mechanisms.sum(axis=2, keepdims=True)
    solve = partial(funnel.solve, accelerate=accelerate, max_iter=300)

    def loop() -> None:
        for one in mechanisms:
            solve(init=one)

    together, apart = least_seconds(partial(solve, init=mechanisms), loop, repeats=repeats)
    return apart / together, int(solve(init=mechanisms).starts["converged"].sum())


def certified() -> None:
    """The best of thirty starts on the paper's example against certified optima."""
    rows = []
    for name, p in PRIORS.items():
        curve = PrivacyFunnel(S_GIVEN_X * p, rate=1.0, size_y=4).curve(10, starts=30)
        excess = curve["leakage"] - CERTIFIED[name]
        rows.append([name, excess.max(), excess.min(), curve["kkt"].max(), curve["seconds"].sum()])
    columns = ["prior", "largest excess", "least excess", "worst KKT", "seconds"]
    print(pd.DataFrame(rows, columns=columns).to_string(index=False, float_format="{:.1e}".format))


def solvers() -> None:
    """Every block at a random state of heart failure by every solver."""
    problem = Problem.of(datasets.heart_failure(), 0.6, "fraction", None)
    log_u = feasible_starts(problem.p_x, problem.rate, problem.size_y, 1, 0)
    state = closed_form.complete(log_u, problem.p_s_given_x)
    for _ in range(20):
        state = closed_form.iteration(state, problem.p_x, problem.p_s_given_x, problem.target)
    cases = [case_of_block(block, single(state, 0)) for block in blocks(problem).values()]
    table = crosscheck(cases, ["CLARABEL", "ECOS", "SCS"]).table
    grouped = table.groupby(["case", "solver"], sort=False)
    summary = grouped.agg(gap=("gap", "max"), natural=("natural", "max"), seconds=("seconds", "median"))
    summary["verdicts"] = grouped["verdict"].agg(lambda found: ", ".join(found))
    print(summary.to_string(float_format="{:.1e}".format))
    best = table[table["solver"] != "closed form"].groupby("case")["gap"].min()
    print(f"gap of the best solver, worst block: {best.max():.1e} (asked: at most 1e-7)")


def constrained() -> None:
    """Heart failure under constraints of a user's: Newton's method on those that bind, and passes alone."""
    table = datasets.heart_failure()
    cases = [
        (0.8, constraints.floor(0.001)),
        (0.8, constraints.forbidden([(0, 1), (2, 3), (5, 5)])),
        (0.8, constraints.maximal_leakage(2.4)),
        (0.8, constraints.expected_distortion(1.0 - np.eye(16, 17), 0.5)),
        (0.5, constraints.maximal_leakage(1.5)),
    ]
    rows: list[list[object]] = []
    for rate, constraint in cases:
        funnel = PrivacyFunnel(table, rate=rate).constrain("mine", constraint)
        for accelerate, limit in (("auto", 20), ("none", 20)):
            begun = time.process_time()
            solved = funnel.solve(starts=1, accelerate=accelerate, max_iter=limit)
            figures = [solved.leakage, float(solved.kkt.largest), solved.iterations, solved.converged]
            rows.append([constraint.name.split("(")[0], rate, accelerate, *figures, time.process_time() - begun])
    columns = ["constraint", "R/H(X)", "accelerate", "leakage", "KKT", "iterations", "converged", "CPU seconds"]
    print(pd.DataFrame(rows, columns=columns).to_string(index=False, float_format="{:.3g}".format))


def real_tables() -> None:
    """Leakage of AEM and the baselines on the two real tables, in nats."""
    rows = []
    for name in ("heart-failure", "adult"):
        table = datasets.joint_table(name, smoothing=1e-3)
        starts = 30 if name == "heart-failure" else 1
        for fraction in (0.4, 0.8):
            solved = PrivacyFunnel(table, rate=fraction).solve(starts=starts)
            rate = solved.problem.rate
            others = [method(table.probabilities, rate).leakage for method in (greedy, agglomerative)]
            splitting = drs(table.probabilities, rate, starts=1, max_iter=50).leakage
            figures = [solved.leakage, *others, splitting, float(solved.kkt.largest), solved.seconds]
            rows.append([name, fraction, *figures])
    columns = ["table", "R/H(X)", "AEM", "greedy", "clustering", "DRS", "KKT", "seconds"]
    print(pd.DataFrame(rows, columns=columns).to_string(index=False, float_format="{:.3g}".format))


def main() -> None:
    """Print every measurement."""
    for measurement in (one_iteration, batched, certified, solvers, constrained, real_tables):
        print(f"\n## {measurement.__doc__}")
        measurement()


if __name__ == "__main__":
    main()
