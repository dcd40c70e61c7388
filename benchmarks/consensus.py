"""Consensus over a graph: a pass against its own products, and cone solvers on sampled nodes.

python -m benchmarks consensus

Private fits: `private_parties`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import networkx as nx
import numpy as np
import pandas as pd
from cvxpriv_models.recycled_admm.algorithm import initial_state, one_pass
from cvxpriv_models.recycled_admm.problem import Problem
from cvxpriv_models.recycled_admm.rows import Rows
from scipy.linalg import lapack

from benchmarks.funnel import least_seconds
from benchmarks.speed import dealt
from cvxpriv.blocks.engines import ClosedForm
from cvxpriv.errors import DataError
from cvxpriv.models import RecycledADMM
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.schedules.history import Context
from cvxpriv.schedules.running import run
from cvxpriv.schedules.steps import Sweep
from cvxpriv.tables.datasets import AdultNodes, load_adult_nodes

C, REG = 1750.0, 0.22
PRODUCTS = ("predictions", "back", "grams")


def adult(nodes: int) -> tuple[RecycledADMM, AdultNodes]:
    """The paper's case on a random connected graph."""
    data = load_adult_nodes(nodes)
    graphs = (nx.gnp_random_graph(nodes, 0.5, seed=seed) for seed in range(100))
    graph = next(one for one in graphs if nx.is_connected(one))
    return RecycledADMM(graph, data.shards, reg=REG, C=C), data


def a_pass() -> None:
    """A pass of R-ADMM, against the products with the rows that it makes, each alone: 20 nodes on 40,000 x 105, and 100
    nodes of 200 rows, degree 4, whose systems of 105 unknowns cost a third of their products."""
    _passes(adult(20)[0].problem)
    _passes(RecycledADMM(nx.random_regular_graph(4, 100, seed=0), dealt(100, 200, 105)).problem)


def _passes(problem: Problem) -> None:
    nodes = problem.nodes
    body = Sweep(one_pass(problem, "r-admm", "edge", np.ones((100, nodes)), 0.5))
    context = Context(ClosedForm())
    state: Values = initial_state(problem)
    values, parameters = np.ones(problem.y.size), np.zeros((problem.nodes, problem.features))
    square = problem.features * np.eye(problem.features) + 1.0
    root, _ = lapack.dpotrf(square, lower=1)
    factored, solved = least_seconds(
        lambda: lapack.dpotrf(square, lower=1), lambda: lapack.dpotrs(root, square[0], lower=1), repeats=100
    )
    alone = {"predictions": parameters, "back": values, "grams": values}
    rows = []
    for number in range(1, 11):
        made = counted(lambda state=state: run(body, state, context), nodes)
        works = [lambda name=name: getattr(problem.rows, name)(alone[name]) for name in PRODUCTS]
        whole, *each = least_seconds(lambda state=state: run(body, state, context), *works, repeats=9)
        floor = sum(made[name] * seconds for name, seconds in zip(PRODUCTS, each, strict=True))
        systems = nodes * (made["grams"] * factored + (made["predictions"] - 1.0) * solved)
        times = [1e3 * whole, 1e3 * floor, 1e3 * systems, whole / floor]
        rows.append([number, *(made[name] for name in PRODUCTS), *times])
        state = run(body, state, context)
    table = pd.DataFrame(rows, columns=["pass", *PRODUCTS, "ms", "its products, ms", "its systems, ms", "ratio"])
    print(table.to_string(index=False, float_format="{:.3g}".format))
    whole, floor, systems = table[["ms", "its products, ms", "its systems, ms"]].sum()
    both = whole / (floor + systems)
    print(f"{nodes} nodes, all ten passes: ratio {whole / floor:.2f} (asked: 1.3), with its systems {both:.2f}")


def counted(work: Callable[[], object], nodes: int) -> dict[str, float]:
    """How often a piece of work makes each product, of all nodes' rows."""
    made: dict[str, float] = dict.fromkeys(PRODUCTS, 0.0)

    def counting(name: str) -> Callable[..., Any]:
        whole = getattr(Rows, name)

        def product(rows: Rows, given: Array, which: Any = None) -> Any:
            several = len(rows.parts) if which is None else int(which.sum())
            made[name] += several / nodes
            return whole(rows, given) if which is None else whole(rows, given, which)

        return product

    with patch.multiple(Rows, **{name: counting(name) for name in PRODUCTS}):
        work()
    return made


def kinks() -> None:
    """A pass at 100 nodes of 200 rows by the penalty, of twenty: processor time beside that of a square."""
    shards, square = dealt(100, 200, 105), 0.0
    for penalty in ("l2", "l1", "elastic-net:1:0.5"):
        model = RecycledADMM(nx.random_regular_graph(4, 100, seed=0), shards, penalty=penalty)
        begun = time.process_time()
        model.solve(max_iter=20)
        seconds = (time.process_time() - begun) / 20.0
        square = square or seconds
        print(f"{penalty}: {1e3 * seconds:.0f} ms, {seconds / square:.1f} times a square's")


def cone_solvers() -> None:
    """The odd step of two of 20 nodes, 2,000 x 105 each, by every solver that takes it."""
    found = adult(20)[0].solve(method="r-admm", max_iter=5)
    check = found.certify(("CLARABEL", "ECOS", "SCS"), nodes=2)
    columns = ["case", "solver", "verdict", "gap", "distance", "seconds"]
    print(check.table[columns].to_string(index=False, float_format="{:.2e}".format))


def main() -> None:
    """Print every measurement."""
    try:
        for measure in (a_pass, kinks, cone_solvers):
            print(f"\n## {measure.__doc__}")
            measure()
    except DataError as error:
        print(error)


if __name__ == "__main__":
    main()
