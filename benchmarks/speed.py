"""Each call with its defaults to its own stop, beside a peer with its defaults to its own; how each model grows.

All times are processor seconds of one core, so that other work on the machine counts little. A ratio compares two
calls of one run. "above" is the distance to the lowest objective that either reached, as a part of it.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from scipy import ndimage, sparse
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from cvxpriv.errors import DataError
from cvxpriv.models import ISTDP, ADMMSharing, InferenceAsService, PrivacyFunnel, RecycledADMM
from cvxpriv.numerics.arrays import Array
from cvxpriv.runs.sweep import sweep
from cvxpriv.tables.datasets import heart_failure, load_a9a, load_gisette_like

Shard = tuple[Array, Array]
#: Commands whose start is timed.
STARTS = (("import cvxpy", ["-c", "import cvxpy"]), ("import cvxpriv", ["-c", "import cvxpriv"]))
COMMANDS = ("--version", "--help", "funnel --help", "release --help", "sharing --help")


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor seconds of a piece of work, and its result."""
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = work()
    return time.process_time() - begun, result


def log_loss(x: Any, y: Array, theta: Array) -> float:
    """Return the logistic losses and half the squares of the coefficients, summed: SHARING at lam = 1."""
    return float(np.logaddexp(0.0, -y * (x @ theta)).sum() + 0.5 * theta @ theta)


def sharing() -> None:
    """SHARING, logistic, lam = 1, two or three parties; the peer is scikit-learn with all columns together."""
    rows = []
    for name, parts, y, solver in sharing_cases():
        dense = isinstance(parts[0], np.ndarray)
        together = np.hstack(parts) if dense else sparse.csr_array(sparse.hstack(parts))
        ours, run = seconds(lambda parts=parts, y=y: ADMMSharing(parts, y).solve())
        peer = LogisticRegression(fit_intercept=False, solver=solver)
        theirs, found = seconds(partial(peer.fit, together, y))
        reached = run.objective, log_loss(together, y, found.coef_.ravel())
        above = [value / min(reached) - 1.0 for value in reached]
        rows.append([name, run.iterations, run.gap, ours, above[0], solver, theirs, above[1], ours / theirs])
    columns = ["data", "passes", "gap", "s", "above", "scikit-learn", "s", "above", "ratio"]
    print(pd.DataFrame(rows, columns=columns).to_string(index=False, float_format="{:.2g}".format))


def sharing_cases() -> list[tuple[str, list[Any], Array, str]]:
    """Return a9a, a million sparse rows, and images with products of pixels where they can be had."""
    cases = []
    try:
        a9a = load_a9a()
        cases.append(("a9a", [a9a.x_train[:, :66], a9a.x_train[:, 66:]], a9a.y_train, "newton-cholesky"))
    except DataError as error:
        print(error)
    x, y = sparse_rows(1_000_000, 200)
    cases.append(("10^6 x 200, 14 a row", [x[:, :100], x[:, 100:]], y, "newton-cholesky"))
    try:
        digits = load_gisette_like()
        name, x, y = "6000 x 5000, digits", digits.x_train, digits.y_train
    except DataError:
        name, (x, y) = "6000 x 5000, small digits", small_digits()
    cases.append((name, [np.ascontiguousarray(part) for part in np.split(x, [2000, 4000], axis=1)], y, "lbfgs"))
    return cases


def small_digits() -> tuple[Array, Array]:
    """Return rows made as those of `load_gisette_like`, of scikit-learn's 4 and 9, each moved a little 17 times."""
    random, given = np.random.default_rng(0), load_digits()
    kept = np.flatnonzero(np.isin(given.target, (4, 9)))
    moved = [ndimage.shift(given.images[row], random.uniform(-1.0, 1.0, 2), order=1) for row in np.repeat(kept, 17)]
    pixels, pairs = np.reshape(moved, (-1, 64)) / 16.0, random.integers(0, 64, size=(2, 2436))
    found = np.hstack([pixels, pixels[:, pairs[0]] * pixels[:, pairs[1]]])
    x = np.hstack([found, random.permuted(found, axis=0)])[:, random.permutation(5000)]
    rows = random.permutation(len(x))[:6000]
    return x[rows], np.where(np.repeat(given.target[kept], 17)[rows] == 4, 1.0, -1.0)


def sparse_rows(count: int, features: int) -> tuple[sparse.csr_array, Array]:
    """Return rows of at most 14 ones, and labels of a logistic model."""
    random = np.random.default_rng(0)
    places = np.repeat(np.arange(count), 14), random.integers(0, features, 14 * count)
    x = sparse.csr_array((np.ones(14 * count), places), shape=(count, features))
    x.sum_duplicates()
    x.data[:] = 1.0
    odds = x @ (0.5 * random.normal(size=features))
    return x, np.where(random.uniform(size=count) < 1.0 / (1.0 + np.exp(-odds)), 1.0, -1.0)


def consensus() -> None:
    """RADMM, logistic, on random graphs of degree 4; the peer has all rows in one place."""
    rows = []
    for nodes, each in ((20, 2000), (100, 200)):
        shards = dealt(nodes, each, 105)
        model = RecycledADMM(nx.random_regular_graph(4, nodes, seed=0), shards)
        ours, run = seconds(model.solve)
        x, y = np.vstack([x for x, _ in shards]), np.concatenate([y for _, y in shards])
        weight = run.problem.C / (each * run.problem.reg)
        peer = LogisticRegression(fit_intercept=False, solver="newton-cholesky", C=weight)
        theirs, found = seconds(partial(peer.fit, x, y))
        apart = float(np.abs(run.mean - found.coef_.ravel()).max())
        rows.append([nodes, each, run.iterations, run.kkt.largest, 1e3 * ours / run.iterations, ours, theirs, apart])
    columns = ["nodes", "rows each", "passes", "residual", "ms a pass", "s", "newton-cholesky, s", "apart"]
    print(pd.DataFrame(rows, columns=columns).to_string(index=False, float_format="{:.3g}".format))


def dealt(nodes: int, each: int, features: int) -> list[Shard]:
    """Return rows of norm 1 and labels of one logistic model, node by node."""
    random = np.random.default_rng(0)
    truth, shards = 3.0 * random.normal(size=features), []
    for _ in range(nodes):
        x = random.normal(size=(each, features))
        x /= np.linalg.norm(x, axis=1)[:, None]
        shards.append((x, np.where(x @ truth + random.logistic(size=each) > 0.0, 1.0, -1.0)))
    return shards


def mcp() -> None:
    """ISTDP without privacy: MCP, logistic, 5,000 x 10^5 with 10^6 entries, at .5 and .3 of the largest weight."""
    random = np.random.default_rng(0)
    shape = (5000, 100_000)
    x = sparse.random_array(shape, density=0.002, rng=random, format="csc", data_sampler=random_normal(random))
    lengths = np.sqrt(np.asarray(x.multiply(x).sum(axis=0)).ravel() / shape[0])
    x = sparse.csr_array(x @ sparse.diags_array(1.0 / np.maximum(lengths, 1e-9)))
    truth = np.zeros(shape[1])
    truth[random.choice(shape[1], 50, replace=False)] = random.choice([-1.0, 1.0], 50)
    y = np.where(random.uniform(size=shape[0]) < 1.0 / (1.0 + np.exp(-(x @ truth))), 1.0, -1.0)
    most = ISTDP(x, y, penalty="mcp:0.1:10").lambda_max
    for share in (0.5, 0.3):
        took, run = seconds(ISTDP(x, y, penalty=f"mcp:{share * most!r}:10").solve)
        size = np.count_nonzero(run.theta)
        print(f"{share}: {took:.1f} s, {run.iterations} passes, residual {run.kkt.largest:.1e}, {size} coefficients")


def along() -> None:
    """Twenty points of a curve, each from the one before, against each anew: seconds, and how far apart the answers."""
    table, rates = heart_failure(), [place / 20 for place in range(1, 21)]
    anew, runs = seconds(lambda: [PrivacyFunnel(table, rate).solve(gap=1e-6) for rate in rates])
    warm, curve = seconds(lambda: PrivacyFunnel(table, 1.0).curve(rates, certified=True, gap=1e-6))
    leakage = curve["leakage"] - [run.leakage for run in runs]
    ((x, y),) = dealt(1, 400, 2000)
    most = ISTDP(x, y, penalty="mcp:0.1:3").lambda_max
    weights = np.geomspace(most, 0.1 * most, 20).tolist()
    fits, each = seconds(lambda: [ISTDP(x, y, penalty=f"mcp:{weight!r}:3").solve() for weight in weights])
    path, steps = seconds(lambda: ISTDP(x, y, penalty="mcp:0.1:3").path(weights))
    objective = steps["objective"].to_numpy() - [run.objective for run in each]
    for name, one, other, apart in (("funnel", anew, warm, leakage), ("sparse, MCP", fits, path, objective)):
        span = f"{apart.min():.1e} to {apart.max():.1e}"
        print(f"{name}: {one:.2f} s anew, {other:.2f} s along; along it is {span} above")
    warm_sweeps(x, y)


def warm_sweeps(x: Array, y: Array) -> None:
    """Print the same of sweeps along an option, of models whose answers are unique."""
    most = ISTDP(x, y, penalty="l1:1").lambda_max
    l1 = [f"l1:{weight!r}" for weight in np.geomspace(most, 0.1 * most, 20).tolist()]
    graph, shards = nx.random_regular_graph(4, 20, seed=0), dealt(20, 200, 30)
    sparse_x, sparse_y = sparse_rows(30_000, 120)
    parts = [sparse_x[:, :60], sparse_x[:, 60:]]
    cases: list[tuple[type[Any], Any, str, list[Any]]] = [
        (ISTDP, (x, y), "penalty", l1),
        (ADMMSharing, (parts, sparse_y), "lam", np.geomspace(100.0, 0.1, 20).tolist()),
        (RecycledADMM, (graph, shards), "reg", np.geomspace(10.0, 0.1, 20).tolist()),
    ]
    for model, data, option, values in cases:
        grid = {option: values}
        anew, cold = seconds(partial(sweep, model, data, **grid))
        along, warm = seconds(partial(sweep, model, data, warm_along=option, **grid))
        apart = float((warm["objective"] / cold["objective"] - 1.0).abs().max())
        passes = f"{cold['iterations'].sum()} passes, {warm['iterations'].sum()} along"
        print(
            f"sweep of {model.__name__}, {option}: {anew:.2f} s anew, {along:.2f} s along; {passes}; {apart:.0e} apart"
        )


def random_normal(random: np.random.Generator) -> Callable[..., Array]:
    """Return a sampler of normal numbers that takes its count by the name of `size`."""
    return lambda size: random.normal(size=size)


def start() -> None:
    """Seconds of processes that only start, the least of three."""
    for name, arguments in (*STARTS, *((command, ["-m", "cvxpriv", *command.split()]) for command in COMMANDS)):
        print(f"{name}: {min(_alone(arguments) for _ in range(3)):.2f} s")


def _alone(arguments: Sequence[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def growth() -> None:
    """Default calls at three sizes: seconds, and peak memory beside the data; the exponents of size that fit both."""
    rows = []
    for name, sizes, case in GROWING:
        taken, held = [], []
        for size in sizes:
            work = case(size)
            taken.append(seconds(work)[0])
            tracemalloc.start()
            seconds(work)
            held.append(tracemalloc.get_traced_memory()[1] / 1e6)
            tracemalloc.stop()
        exponents = [float(np.polyfit(np.log(sizes), np.log(values), 1)[0]) for values in (taken, held)]
        rows.append([name, *(_told(values) for values in (sizes, taken, held)), *exponents])
    columns = ["call", "sizes", "s", "MB", "time's exponent", "memory's"]
    print(pd.DataFrame(rows, columns=columns).to_string(index=False, float_format="{:.1f}".format))


def _told(values: Sequence[float]) -> str:
    return " ".join(f"{value:.3g}" for value in values)


def _funnel(size: int) -> Callable[[], Any]:
    table = np.random.default_rng(0).dirichlet(np.ones(2 * size)).reshape(2, size)
    model = PrivacyFunnel(table, 0.5)
    return model.solve


def _inference(size: int) -> Callable[[], Any]:
    table = np.random.default_rng(0).dirichlet(np.ones(3 * size)).reshape(3, size)
    return InferenceAsService(table, 0.3).solve


def _sharing(size: int) -> Callable[[], Any]:
    x, y = sparse_rows(size, 60)
    return ADMMSharing([x[:, :30], x[:, 30:]], y).solve


def _consensus(size: int) -> Callable[[], Any]:
    return RecycledADMM(nx.cycle_graph(5), dealt(5, size, 20)).solve


def _sparse(size: int) -> Callable[[], Any]:
    ((x, y),) = dealt(1, 400, size)
    most = ISTDP(x, y, penalty="mcp:0.1:3").lambda_max
    return ISTDP(x, y, penalty=f"mcp:{0.4 * most!r}:3").solve


GROWING: tuple[tuple[str, tuple[int, ...], Callable[[int], Callable[[], Any]]], ...] = (
    ("funnel, |S| = 2, |X|", (40, 80, 160), _funnel),
    ("inference, |S| = 3, |Y|", (8, 16, 32), _inference),
    ("sharing, rows of 60 columns", (20_000, 60_000, 180_000), _sharing),
    ("consensus, rows of a node", (500, 2000, 8000), _consensus),
    ("sparse, columns of 400 rows", (500, 2000, 8000), _sparse),
)


def main() -> None:
    """Print every measurement."""
    for work in (sharing, consensus, mcp, along, start, growth):
        print(f"\n# {work.__doc__}")
        work()


if __name__ == "__main__":
    main()
