"""Audits of every mechanism: 10,000 releases of worst-case neighbours, the lower bound beside what is claimed.

A fit runs once on either neighbour. Its last release is caught with the query and the noise that it has, or the step
that draws with its arguments, and that is drawn again and again. Noise inside an objective is solved for each draw. A
bound above the claim refutes it, and one far below says that the neighbours, or the accounting, are idle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from cvxpriv_models.admm_sharing import labels
from cvxpriv_models.istdp import noisy_descent, private as istdp_private, private_descent, run
from cvxpriv_models.istdp.private_options import counted_rows
from cvxpriv_models.recycled_admm import private

import cvxpriv as cpv
from cvxpriv.blocks.engines import ClosedForm
from cvxpriv.models import ISTDP, ADMMSharing, RecycledADMM
from cvxpriv.numerics.arrays import Array
from cvxpriv.privacy import Audit, BallNoise, GaussianNoise, Noise, audit, gaussian_epsilon, gaussian_mu
from cvxpriv.schedules.history import Context
from cvxpriv.schedules.running import run as run_schedule

pytestmark = pytest.mark.slow

RUNS, DELTA, EPSILON = 10_000, 1e-3, 2.0
BUDGET: dict[str, Any] = {"epsilon": EPSILON, "delta": DELTA}
#: Noise of tests; that of a fit is the system's.
SOURCE = Noise(np.random.default_rng(0))
ONES = np.ones((2, 1))
NEIGHBOURS = np.array([1.0, 1.0]), np.array([1.0, -1.0])


@pytest.fixture(autouse=True)
def _each_test_has_the_same_noise_whatever_ran_before_it() -> None:
    assert SOURCE.generator is not None
    SOURCE.generator.bit_generator.state = np.random.default_rng(0).bit_generator.state


def found(mechanism: Callable[[Any], Any], pair: Any, delta: float, event: Any = None) -> Audit:
    return audit(mechanism, *pair, delta=delta, runs=RUNS, confidence=0.999, event=event)


def caught(
    fit: Callable[[Array], Any], monkeypatch: pytest.MonkeyPatch, pair: Any = NEIGHBOURS
) -> tuple[Any, list[Array]]:
    """The noise of a fit's first release, and its query for either neighbour."""
    several: list[tuple[Any, Array]] = []
    for kind in (GaussianNoise, BallNoise):
        own = kind.release

        def release(self: Any, query: Array, noise: Noise, own: Any = own) -> Array:
            several.append((self, query))
            return np.asarray(own(self, query, noise))

        monkeypatch.setattr(kind, "release", release)
    queries = []
    for one in pair:
        several.clear()
        fit(one)
        queries.append(several[0][1])
    return several[0][0], queries


def sparse(y: Array, **options: Any) -> Any:
    posed = {"penalty": options.pop("penalty", "l2:0.5"), "loss": options.pop("loss", "logistic")}
    return ISTDP(ONES, y, **posed, allow_constant=True).solve_private(**{**BUDGET, **options})


def consensus(y: Array, **options: Any) -> Any:
    posed = {"reg": options.pop("reg", 1.0), "loss": options.pop("loss", "logistic")}
    model = RecycledADMM(nx.path_graph(2), [(ONES, y), (ONES, NEIGHBOURS[1])], C=2.0, **posed)
    return model.solve_private(**{"method": "admm", "max_iter": 1, "eta": 1.0, "epsilon": EPSILON, **options})


def sharing(y: Array, **options: Any) -> Any:
    # The row that is replaced is turned round; the labels stay.
    part = np.array([[y[1]], [1.0]])
    model = ADMMSharing([part], [1.0, -1.0], lam=0.05)
    return model.solve_private(**{**BUDGET, "row_bound": 1.0, "max_iter": 1, "rho": 0.5, "shrink": False, **options})


#: Its slope is 1 around 0, where a heavy penalty keeps the minimiser: then a row moves that by all of the bound.
STEEP: dict[str, Any] = {"loss": "smoothed-hinge"}
CAUGHT: list[tuple[Callable[..., Any], dict[str, Any], float]] = [
    (sparse, {"max_iter": 1, "clip": 0.25, "row_bound": 1.0}, DELTA),
    (sparse, {"max_iter": 1, "clip": 0.25, "row_bound": 1.0, "method": "gradient-descent"}, DELTA),
    (sparse, {"clip": 1.0, "method": "output-perturbation", "penalty": "l2:10", **STEEP}, DELTA),
    (consensus, {"delta": DELTA, "reg": 40.0, **STEEP}, DELTA),
    (consensus, {"perturbation": "output", "reg": 40.0, **STEEP}, 0.0),
    (sharing, {}, DELTA),
]


@pytest.mark.parametrize(("fit", "options", "delta"), CAUGHT, ids=lambda one: getattr(one, "__name__", None))
def test_noise_on_what_was_computed(
    fit: Callable[..., Any], options: dict[str, Any], delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise, queries = caught(lambda y: fit(y, **dict(options)), monkeypatch)
    assert float(np.linalg.norm(queries[0] - queries[1])) <= noise.sensitivity
    monkeypatch.undo()
    claimed = EPSILON
    bound = found(lambda query: noise.release(query, SOURCE), queries, delta)
    assert 0.15 * claimed < bound.epsilon <= claimed, bound


#: An epsilon of which a tenth of mu^2 can be told from nothing.
LARGE = 20.0
#: Two unit vectors that mean and second moment of whose rows are as far apart as those of any two.
APART = np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[1.0, 0.0], [-0.5, 0.75**0.5]])


def centred(rows: Array) -> Any:
    model = ISTDP(rows, NEIGHBOURS[1], intercept=True, allow_constant=True)
    return model.solve_private(epsilon=LARGE, delta=DELTA, centre="private", max_iter=1)


def chosen(y: Array) -> Any:
    return sparse(y, centre="none", support=1, clip=0.25, max_iter=1)


def scored(margin: Array) -> Any:
    return cpv.private_scores(NEIGHBOURS[0], margin, **BUDGET)


@pytest.mark.parametrize(
    ("fit", "pair", "epsilon", "share"),
    [
        (centred, APART, LARGE, 0.1),
        (chosen, NEIGHBOURS, EPSILON, 0.25),
        (scored, (np.array([5.0, 9.0]), np.array([5.0, -9.0])), EPSILON, 1.0),
    ],
    ids=["moments", "columns", "scores"],
)
def test_what_is_released_beside_the_coefficients(
    fit: Callable[[Array], Any], pair: Any, epsilon: float, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise, queries = caught(fit, monkeypatch, pair)
    monkeypatch.undo()
    moved = float(np.linalg.norm(queries[0] - queries[1]))
    assert 0.99 * noise.sensitivity < moved <= noise.sensitivity  # no idle neighbours
    claimed = gaussian_epsilon(delta=DELTA, mu=float(np.sqrt(share)) * gaussian_mu(epsilon, DELTA))
    bound = found(lambda query: noise.release(query, SOURCE), queries, DELTA)
    assert 0.15 * claimed < bound.epsilon <= claimed, bound


@pytest.mark.parametrize("delta", [0.0, DELTA])
def test_a_table_of_counts(delta: float) -> None:
    def counts(table: cpv.JointTable) -> Array:
        made = cpv.private_table(table, EPSILON, delta, domain="table")
        assert made.protection is not None
        return np.array(made.protection.noisy_counts)

    pair = [cpv.JointTable.from_counts([one]) for one in ([5, 4], [4, 5])]
    bound = found(counts, pair, delta)
    assert 0.15 * EPSILON < bound.epsilon <= EPSILON, bound


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("pure", [True, False])
def test_both_kinds_of_noise_where_a_neighbour_moves_by_all_of_the_sensitivity(pure: bool, size: int) -> None:
    way = np.eye(size)[0]
    noise = BallNoise.within(1.0, EPSILON, size) if pure else GaussianNoise(1.0, 0.8, size)
    claimed = EPSILON if pure else gaussian_epsilon(delta=DELTA, mu=0.8)
    bound = found(lambda query: noise.release(query, SOURCE), (0.0 * way, way), 0.0 if pure else DELTA)
    assert 0.4 * claimed < bound.epsilon <= claimed, bound


@pytest.mark.parametrize("pure", [True, False])
def test_the_number_of_rows(pure: bool) -> None:
    budget = 100.0 if pure else 10.0  # the count gets a fiftieth of the one, a tenth of the other
    claimed = 2.0 if pure else gaussian_epsilon(delta=DELTA, mu=1.0)

    def counted(rows: int) -> float:
        return float(counted_rows(rows, budget, SOURCE, pure=pure).number)

    bound = found(counted, (100, 101), 0.0 if pure else DELTA)
    assert 0.3 * claimed < bound.epsilon <= claimed, bound


def test_held_labels() -> None:
    step = labels.flipping(EPSILON)

    def flipped(label: float) -> float:
        context = Context(ClosedForm(), noise=SOURCE)
        return float(run_schedule(step, {labels.LABELS: np.array([[label, 1.0]])}, context)[labels.LABELS][0, 0])

    bound = found(flipped, (1.0, -1.0), 0.0, event=lambda label: label > 0.0)
    assert 0.8 * EPSILON < bound.epsilon <= EPSILON, bound


def repeated(module: Any, name: str, fit: Callable[[Array], Any], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """For either neighbour: what draws a fit's step again, with fresh noise and without what surrounds it.

    `module`, `name`: The function that takes the noise, among other arguments.
    """
    own, drawn = getattr(module, name), []

    def caught(*args: Any) -> Any:
        drawn.append(lambda: own(*(SOURCE if isinstance(one, Noise) else one for one in args)))
        return own(*args)

    monkeypatch.setattr(module, name, caught)
    for one in NEIGHBOURS:
        fit(one)
    monkeypatch.undo()
    assert len(drawn) == 2  # one call a fit: nothing private is drawn beside it
    return drawn


@pytest.mark.parametrize("fit", ["istdp", "radmm"])
def test_noise_inside_an_objective(fit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if fit == "istdp":
        options: dict[str, Any] = {"method": "objective-perturbation", "delta": None, "clip": 1.0}
        name = "solve_objective_perturbation"
        pair = repeated(istdp_private, name, lambda y: sparse(y, **dict(options)), monkeypatch)
    else:
        pair = repeated(private, "released", lambda y: consensus(y, perturbation="objective"), monkeypatch)

    def released(draw: Callable[[], Any]) -> float:
        found = draw()
        return float(found.coefficients[0] if fit == "istdp" else found[0, 0])

    # Labels (1, -1) give a symmetric law; with (1, 1) the minimiser is rarely negative.
    bound = found(released, pair[::-1], 0.0, event=lambda value: value < 0.0)
    assert 0.1 * EPSILON < bound.epsilon <= EPSILON, bound


def test_two_noisy_steps_of_which_the_second_reads_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def fit(y: Array) -> Any:
        return sparse(y, max_iter=2, clip=0.25, row_bound=1.0)

    pair = repeated(private_descent, "solve_noisy_descent", fit, monkeypatch)
    # The history and the guarantee take as long as the rest.
    monkeypatch.setattr(noisy_descent, "history_of_loop", lambda *args: pd.DataFrame())
    monkeypatch.setattr(run, "account_ledger", lambda *args, **options: None)
    bound = found(lambda draw: np.asarray(draw().coefficients), pair, DELTA)
    assert 0.1 * EPSILON < bound.epsilon <= EPSILON, bound
