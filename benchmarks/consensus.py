"""Consensus over a graph: a pass against its own products, cone solvers on sampled nodes, and privacy beside a centre.

python -m benchmarks consensus
python -m benchmarks.consensus --diffprivlib-python /path/to/another/environment/bin/python
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import networkx as nx
import numpy as np
import pandas as pd
from cvxpriv_models.recycled_admm.algorithm import initial_state, one_pass
from cvxpriv_models.recycled_admm.rows import Rows
from scipy.special import expit

from benchmarks.diffprivlib_peer import fits
from benchmarks.funnel import least_seconds
from cvxpriv.blocks.engines import ClosedForm
from cvxpriv.errors import DataError
from cvxpriv.models import RecycledADMM
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.schedules.running import run
from cvxpriv.schedules.steps import Context, Sweep
from cvxpriv.tables.datasets import AdultNodes, load_adult_nodes

C, REG, RUNS, DELTA = 1750.0, 0.22, 10, 1e-6
EPSILONS = (1.0, 2.0, 5.0, 10.0)
PRODUCTS = ("predictions", "back", "grams")


def adult(nodes: int) -> tuple[RecycledADMM, AdultNodes]:
    """The paper's case on a random connected graph."""
    data = load_adult_nodes(nodes)
    graphs = (nx.gnp_random_graph(nodes, 0.5, seed=seed) for seed in range(100))
    graph = next(one for one in graphs if nx.is_connected(one))
    return RecycledADMM(graph, data.shards, reg=REG, C=C), data


def a_pass() -> None:
    """A pass of R-ADMM at N = 20 on 40,000 x 105, against the products with the rows that it makes, each alone."""
    problem = adult(20)[0].problem
    body = Sweep(one_pass(problem, "r-admm", "edge", np.ones((100, 20)), 0.5))
    context = Context(ClosedForm())
    state: Values = initial_state(problem)
    values, parameters = np.ones(problem.y.size), np.zeros((problem.nodes, problem.features))
    alone = {"predictions": parameters, "back": values, "grams": values}
    rows = []
    for number in range(1, 11):
        made = counted(lambda state=state: run(body, state, context))
        works = [lambda name=name: getattr(problem.rows, name)(alone[name]) for name in PRODUCTS]
        whole, *each = least_seconds(lambda state=state: run(body, state, context), *works, repeats=3)
        floor = sum(made[name] * seconds for name, seconds in zip(PRODUCTS, each, strict=True))
        rows.append([number, *(made[name] for name in PRODUCTS), 1e3 * whole, 1e3 * floor, whole / floor])
        state = run(body, state, context)
    table = pd.DataFrame(rows, columns=["pass", *PRODUCTS, "ms", "its products, ms", "ratio"])
    print(table.to_string(index=False, float_format="{:.3g}".format))


def counted(work: Callable[[], object]) -> Counter[str]:
    """How often a piece of work makes each product."""
    made: Counter[str] = Counter()

    def counting(name: str) -> Callable[..., Any]:
        whole = getattr(Rows, name)

        def product(rows: Rows, *arguments: Any) -> Any:
            made[name] += 1
            return whole(rows, *arguments)

        return product

    with patch.multiple(Rows, **{name: counting(name) for name in PRODUCTS}):
        work()
    return made


def cone_solvers() -> None:
    """The odd step of two of 20 nodes, 2,000 x 105 each, by every solver that takes it."""
    found = adult(20)[0].solve(method="r-admm", max_iter=5)
    check = found.certify(("CLARABEL", "ECOS", "SCS"), nodes=2)
    columns = ["case", "solver", "verdict", "gap", "distance", "seconds"]
    print(check.table[columns].to_string(index=False, float_format="{:.2e}".format))


def private(python: Path | None) -> None:
    """Adult, N = 5, 25 passes of MR-ADMM at growth 1.04: means of ten runs on the 5,222 test rows, and a centre beside.

    Noise in the objective is pure; on the output it is Gaussian, delta = 1e-6. diffprivlib has all rows in one place,
    spends the same pure epsilon once, and is tuned on the test rows, which flatters it.
    """
    model, data = adult(5)
    rows = [["no privacy", np.nan, *scores(data, [model.optimum]), ""]]
    for epsilon in EPSILONS:
        for name, options in (
            ("MR-ADMM", {}),
            ("MR-ADMM, output", {"perturbation": "output", "delta": DELTA}),
        ):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = [several(model, epsilon, options) for _ in range(RUNS)]
            rows.append([name, epsilon, *scores(data, found), ""])
        if python is not None:
            rows.append(["diffprivlib", epsilon, *centre(python, data, epsilon)])
    table = pd.DataFrame(rows, columns=["method", "epsilon", "error, %", "+-", "log loss", "tuned"])
    print(table.to_string(index=False, float_format="{:.4g}".format))


def several(model: RecycledADMM, epsilon: float, options: dict[str, Any]) -> Array:
    """One private run's mean parameters; fewer passes where the curvature alone would spend the budget."""
    passes = 25 if options or epsilon >= 2.0 else 10
    return model.solve_private(
        method="mr-admm", epsilon=epsilon, eta=1.0, growth=1.04, max_iter=passes, node_tol=1e-8, **options
    ).mean


def scores(data: AdultNodes, classifiers: Sequence[Array]) -> list[float]:
    """Error in per cent with its deviation over runs, and log loss."""
    odds = np.array([data.x_test @ one for one in classifiers])
    errors = 100.0 * np.mean(np.where(odds > 0.0, 1.0, -1.0) != data.y_test, axis=1)
    losses = -np.mean(np.log(np.maximum(expit(data.y_test * odds), 1e-300)), axis=1)
    return [float(errors.mean()), float(errors.std()), float(losses.mean())]


def centre(python: Path, data: AdultNodes, epsilon: float) -> list[object]:
    """diffprivlib at the C of least log loss."""
    x = np.vstack([rows for rows, _ in data.shards])
    y = np.concatenate([labels for _, labels in data.shards])
    tried = fits(python, x, y, epsilon, (0.01, 0.03, 0.1, 0.3, 1.0), 2)
    chosen = min(tried, key=lambda weight: scores(data, tried[weight])[2])
    return [*scores(data, fits(python, x, y, epsilon, (chosen,), RUNS)[chosen]), f"C = {chosen:g}"]


def main(arguments: Sequence[str] = ()) -> None:
    """Print every measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--diffprivlib-python", type=Path, help="a Python that has diffprivlib and scikit-learn < 1.7")
    python = parser.parse_args(arguments).diffprivlib_python
    try:
        for measure in (a_pass, cone_solvers):
            print(f"\n## {measure.__doc__}")
            measure()
        print(f"\n## {private.__doc__}")
        private(python)
    except DataError as error:
        print(error)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
