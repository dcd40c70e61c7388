"""ADMM sharing: a pass against its floor, memory, a cone solver, and utility. Whole fits: `speed`."""

from __future__ import annotations

import time
import tracemalloc
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from cvxpriv_models.admm_sharing import algorithm
from cvxpriv_models.admm_sharing.accelerated import MEMORY, Packed
from cvxpriv_models.admm_sharing.baselines import pooled
from cvxpriv_models.admm_sharing.factor import Factor
from cvxpriv_models.admm_sharing.problem import Part, Problem
from cvxpriv_models.admm_sharing.schemes import SCHEMES
from scipy import sparse
from scipy.special import expit
from sklearn.metrics import log_loss, roc_auc_score

from benchmarks.funnel import least_seconds
from benchmarks.speed import sparse_rows
from cvxpriv.blocks.engines import ClosedForm
from cvxpriv.errors import CvxprivError
from cvxpriv.models import ADMMSharing
from cvxpriv.numerics.anderson import Anderson
from cvxpriv.numerics.arrays import Array, Values, single
from cvxpriv.schedules.history import Context
from cvxpriv.schedules.running import run
from cvxpriv.schedules.steps import Sweep
from cvxpriv.tables.datasets import load_a9a

#: The penalty of the averaged scheme: about the mean curvature of the loss.
RHO = 0.15
EXACT = Context(ClosedForm())


def a9a_parts(dense: bool = False) -> list[Part]:
    """The paper's split of a9a's columns, 66 and 57."""
    x = load_a9a().x_train
    return [part.toarray() if dense else part for part in (x[:, :66], x[:, 66:])]


def one_pass() -> None:
    """One pass on a9a against its floor: D x and D'v of both parties, four vectorised Newton steps of z."""
    rows = []
    for dense in (False, True):
        problem = Problem.of(a9a_parts(dense), load_a9a().y_train)
        factors = tuple(Factor(part) for part in problem.parts)
        parties, z, y = algorithm.one_pass(problem, SCHEMES["averaged"], factors)
        packing = Packed(problem, SCHEMES["averaged"], factors, constrained=False)
        body, accelerated = Sweep([z, y, parties], fused=packing.one_pass), Anderson(packing, MEMORY)
        measure = algorithm.measure(problem, SCHEMES["averaged"], factors)
        step = partial(run, body, context=EXACT)
        state: Values = algorithm.initial_state(problem, RHO)
        for iteration in range(10):
            state = accelerated(step, state, iteration)
        plain, fast, figures, floor = least_seconds(
            partial(step, state),
            partial(_next_pass, accelerated, step, [state]),
            partial(measure, state),
            _floor(problem, state),
            repeats=100,
        )
        stored = "dense" if dense else "sparse"
        rows.append([stored, 1e3 * floor, plain / floor, fast / floor, (fast + figures) / floor])
    columns = ["columns", "floor in ms", "plain pass", "with Anderson", "and with its residuals"]
    print(pd.DataFrame(rows, columns=columns).to_string(index=False, float_format="{:.2f}".format))
    print("asked: at most 2, for the pass; the floor of dense columns is that of the same columns by rows")


def _next_pass(accelerated: Anderson, step: Callable[[Values], dict[str, Array]], held: list[Values]) -> None:
    held[0] = accelerated(step, dict(held[0]), 0)


def _floor(problem: Problem, state: Values) -> Callable[[], None]:
    parts = [sparse.csr_array(part) for part in problem.parts]
    transposed = [part.T for part in parts]
    x, y, labels = [state[f"x/{m}"][0] for m in range(2)], state["y"][0], problem.y
    total, r = state["v/0"][0] + state["v/1"][0], 0.5 * RHO

    def work() -> None:
        for part, back, one in zip(parts, transposed, x, strict=True):
            _ = part @ one
            _ = back @ y
        z = total
        for _ in range(4):
            p = expit(-labels * z)
            z = z - (r * (z - total) - labels * p) / (p * (1.0 - p) + r)

    return work


def large_pass() -> None:
    """One pass at 10^6 x 200, 14 ones a row, against what it is made of, each alone, by patterns without values."""
    x, y = sparse_rows(1_000_000, 200)
    problem = Problem.of([x[:, :100], x[:, 100:]], y)
    factors = tuple(Factor(part) for part in problem.parts)
    parties, z, dual = algorithm.one_pass(problem, SCHEMES["averaged"], factors)
    body = Sweep([z, dual, parties], fused=Packed(problem, SCHEMES["averaged"], factors, constrained=False).one_pass)
    state: Values = algorithm.initial_state(problem, RHO)
    for _ in range(3):
        state = run(body, state, context=EXACT)
    weights, rows = np.ones(100), np.ones(len(y))
    whole, forward, back, near = least_seconds(
        lambda: run(body, state, context=EXACT),
        lambda: [factor.share(weights) for factor in factors],
        lambda: [factor.pull(rows) for factor in factors],
        lambda: problem.loss.prox(state["v/0"][0], y, 1.0, RHO),
        repeats=5,
    )
    times = (1e3 * one for one in (whole, forward, back, near))
    print("{:.0f} ms; D x {:.0f}, D'v {:.0f}, the proximal step of every row, in one piece, {:.0f}".format(*times))
    print("asked: 80 ms where D x takes 18: a processor at half that speed, or a shared one, takes more for both")


def memory() -> None:
    """Most memory that a fit of twenty passes on a9a takes beside the data, as a part of the data."""
    for dense in (False, True):
        parts, y = a9a_parts(dense), load_a9a().y_train
        size = sum(_bytes(part) for part in parts)
        tracemalloc.start()
        ADMMSharing(parts, y).solve(rho=RHO, max_iter=20)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        kind = "dense" if dense else "sparse"
        print(f"{kind:6s}: data {size / 1e6:.1f} MB, beside it {peak / 1e6:.1f} MB, {peak / size:.2f} of the data")
    print("asked: at most 2 times the data. A number a sample and state entry is a tenth of the sparse data")


def _bytes(part: Part) -> int:
    return part.data.nbytes + part.indices.nbytes + part.indptr.nbytes if sparse.issparse(part) else part.nbytes


def cone_solver() -> None:
    """The z block of 4,000 rows of a9a, each loss an exponential-cone pair, by every solver."""
    problem = Problem.of([part[:4000] for part in a9a_parts()], load_a9a().y_train[:4000])
    factors = tuple(Factor(part) for part in problem.parts)
    parties, z, y = algorithm.one_pass(problem, SCHEMES["averaged"], factors)
    state: Values = algorithm.initial_state(problem, RHO)
    for _ in range(5):
        state = run(Sweep([z, y, parties]), state, EXACT)
    view, block = single(state, 0), algorithm.blocks(problem, SCHEMES["averaged"], factors)["z"]
    exact = run(block, state, EXACT)["z"][0]
    best = _z_objective(problem, view, exact)
    for solver in ("CLARABEL", "ECOS", "SCS"):
        begun = time.perf_counter()
        try:
            values, solution = block.solve(view, solver=(solver,))
        except CvxprivError as error:
            print(f"{solver}: {error}")
            continue
        seconds, gap = time.perf_counter() - begun, _z_objective(problem, view, values["z"]) - best
        off = np.abs(values["z"] - exact).max()
        print(
            f"{solver}: {solution.status}, {seconds:.1f} s, objective {gap / abs(best):.1e} above, z off by {off:.1e}"
        )


def _z_objective(problem: Problem, view: Values, z: Array) -> float:
    r, total = 0.5 * RHO, view["v/0"] + view["v/1"]
    loss = float(problem.weights @ problem.loss.value(z, problem.y))
    return loss - float(view["y"] @ z) + 0.5 * r * float(np.sum((total - z) ** 2))


def utility() -> None:
    """a9a at epsilon 1 and 4, delta = 1e-6, a person's row: test log loss and AUC, mean and deviation of three runs."""
    data, parts = load_a9a(), a9a_parts()
    test: list[Part] = [data.x_test[:, :66], data.x_test[:, 66:]]
    problem = Problem.of(parts, data.y_train)
    for name, parties in (("pooled", (0, 1)), ("first party alone", (0,))):
        likely = pooled(problem, parties).predict_proba([test[m] for m in parties])[:, 1]
        print(f"{name}: {log_loss(data.y_test, likely):.4f} / {roc_auc_score(data.y_test, likely):.4f}")
    for labels, lam in (("shared", 30.0), ("held", 100.0)):
        model = ADMMSharing(parts, data.y_train, lam=lam)
        for epsilon in (1.0, 4.0):
            found = np.array([_private_scores(model, epsilon, labels, test, data.y_test, seed) for seed in range(3)])
            mean, spread = found.mean(axis=0), found.std(axis=0, ddof=1)
            print(
                f"labels {labels}, lam = {lam:g}, epsilon = {epsilon:g}: {mean[0]:.4f} / {mean[1]:.4f}, deviation "
                f"{spread[0]:.4f} / {spread[1]:.4f}"
            )


def _private_scores(
    model: ADMMSharing, epsilon: float, labels: str, test: list[Part], y: Array, seed: int
) -> tuple[float, float]:
    bound = np.sqrt([8.0, 6.0])  # of adult.names: so many features stand for one person
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the noise has a seed
        found = model.solve_private(epsilon=epsilon, delta=1e-6, row_bound=tuple(bound), labels=labels, noise_seed=seed)
    likely = found.not_private.predict_proba(test)[:, 1]
    return float(log_loss(y, likely)), float(roc_auc_score(y, likely))


def main() -> None:
    """Print every measurement."""
    works: list[Callable[[], None]] = [one_pass, large_pass, memory, cone_solver, utility]
    for work in works:
        print(f"\n## {work.__doc__}")
        work()


if __name__ == "__main__":
    main()
