"""Sparse learning: GIST against skglm. Private fits of a9a: `private_learning`. `python -m benchmarks sparse`"""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pandas as pd
from cvxpriv_models.istdp import ISTDP
from cvxpriv_models.istdp.kkt import residuals

from benchmarks.funnel import least_seconds
from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties import MCP

ROWS, COLUMNS, SHARE, TOLERANCE = 500, 1000, 0.3, 1e-9
EPSILONS, DELTA, RUNS, TRIALS = (0.5, 1.0, 2.0, 4.0, 8.0), 1e-6, 10, 2
#: A row of a9a has at most 14 ones.
LARGEST = 14.0
GRIDS = {
    "gradient-descent": [("l2:0", clip, bound) for clip in (0.25, 0.35, 0.5, 1.0) for bound in (0.35, 0.5, 1.0)],
    "objective-perturbation": [(f"l2:{lam:g}", 1.0, 1.0) for lam in (1e-5, 1e-4, 3e-4, 1e-3, 3e-3)],
    "output-perturbation": [(f"l2:{lam:g}", 1.0, 1.0) for lam in (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)],
}

Score = dict[str, float]


def correlated(kind: str) -> tuple[Array, Array]:
    """500 x 1000 standardised columns of correlation .6^|i - j|, ten that matter, labels or numbers with noise."""
    random = np.random.default_rng(0)
    x = random.normal(size=(ROWS, COLUMNS))
    for column in range(1, COLUMNS):
        x[:, column] = 0.6 * x[:, column - 1] + 0.8 * x[:, column]
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    truth = np.zeros(COLUMNS)
    truth[random.choice(COLUMNS, size=10, replace=False)] = random.choice([-1.0, 1.0], size=10)
    signal = x @ truth
    y = signal + 0.2 * signal.std() * random.normal(size=ROWS)
    if kind == "logistic":
        return x, np.sign(y) * np.where(random.uniform(size=ROWS) < 0.1, -1.0, 1.0)
    return x, (y - y.mean()) / y.std()


def against_skglm() -> None:
    """MCP at .3 lambda_max, alpha = 3, from 0 to a stationarity of 1e-9 on 500 x 1000: GIST with Newton, and skglm."""
    try:
        from skglm.datafits import Logistic, Quadratic
        from skglm.penalties import MCPenalty
        from skglm.solvers import AndersonCD
    except ImportError:
        print('skglm is missing: pip install "cvxpriv[dev]"')
        return
    rows = []
    for kind, datafit in (("squared", Quadratic()), ("logistic", Logistic())):
        model = ISTDP(*correlated(kind), loss=kind, penalty=MCP(1.0))
        penalty = MCP(SHARE * model.lambda_max)
        model = model.with_penalty(penalty)
        problem = model.problem
        solver = AndersonCD(tol=TOLERANCE, fit_intercept=False, max_iter=1000, max_epochs=100_000)
        theirs = partial(solver.solve, problem.design, problem.y, datafit, MCPenalty(penalty.lam, penalty.alpha))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found, run = np.asarray(theirs()[0]), model.solve(tol=TOLERANCE)
            ours_seconds, their_seconds = least_seconds(partial(model.solve, tol=TOLERANCE), theirs, repeats=30)
        gradient = problem.gradient(problem.predictions(found))
        off = residuals(penalty, found, gradient, problem.features).largest
        gap = float(np.abs(run.theta - found).max())
        rows.append([kind, ours_seconds / their_seconds, run.kkt.largest, off, gap, run.objective])
        rows[-1].append(problem.objective(found))
    columns = ["loss", "time / skglm's", "our KKT", "skglm's KKT", "distance", "our F", "skglm's F"]
    shown = dict.fromkeys(columns[2:5], "{:.1e}".format)
    print(pd.DataFrame(rows, columns=columns).to_string(index=False, formatters=shown, float_format="{:.6g}".format))
    print("asked: at most 3 times, at 1e-9. skglm is compiled; what limits GIST is numpy's call for each product")


def main() -> None:
    """Print the measurement."""
    print(f"\n## {against_skglm.__doc__}")
    against_skglm()


if __name__ == "__main__":
    main()
