"""Every mechanism releases on a public grid: the attack on doubles, and on the grid, tells neighbours apart by luck.

The attacker knows everything but which of two neighbours was used: both queries, the scale and the grid. With
epsilon = .1 a right guess is allowed in 53 of 100 runs. On plain doubles it is right in nearly all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest
from cvxpriv_models.istdp.centring import release_centre
from scipy.stats import binom

from cvxpriv.models import ISTDP, ADMMSharing, RecycledADMM
from cvxpriv.numerics.arrays import Array
from cvxpriv.privacy import BallNoise, GaussianNoise, Noise, gaussian_mu, noise_source
from tests.toolkit.reachability import reachable

pytestmark = pytest.mark.filterwarnings("ignore:privacy is likely to drown")

EPSILON, DELTA, RUNS = 0.1, 1e-6, 30
BUDGET = {"epsilon": EPSILON, "delta": DELTA}
#: More right guesses than these, of those that epsilon allows, happen by chance in one of a million tests.
LUCKY = int(binom.ppf(1.0 - 1e-6, 2 * RUNS, np.exp(EPSILON) / (1.0 + np.exp(EPSILON)) + DELTA))

RNG = np.random.default_rng(0)
ROWS = RNG.uniform(-0.2, 0.2, size=(40, 24))
LABELS = np.where(ROWS @ RNG.normal(size=24) > 0.0, 1.0, -1.0)
OTHER = ROWS.copy()
OTHER[3] = -ROWS[3]
NEIGHBOURS = (ROWS, LABELS), (OTHER, LABELS)

Data = tuple[Array, Array]
Mechanism = Callable[[Data], Array]


def one_gradient(data: Data) -> Array:
    run = ISTDP(*data, penalty="l2:0").solve_private(**BUDGET, max_iter=1)
    return run.coefficients / run.settings.step_limit  # one step from 0 along the noisy gradient


def centre(data: Data) -> Array:
    """The released mean of rows of norm at most 1, as it is: the first entries of the release of all moments."""
    problem = ISTDP(*data, intercept=True).problem
    return release_centre(problem, 1.0, 40, gaussian_mu(EPSILON, DELTA), "replace-one", noise_source()).mean


def output_of_istdp(data: Data) -> Array:
    return ISTDP(*data, penalty="l2:0.5").solve_private(**BUDGET, method="output-perturbation").coefficients


def objective_of_istdp(data: Data) -> Array:
    return ISTDP(*data, penalty="l2:0.5").solve_private(**BUDGET, method="objective-perturbation").coefficients


def share(data: Data) -> Array:
    rows, labels = data
    run = ADMMSharing([rows[:, :12], rows[:, 12:]], labels, lam=5.0).solve_private(
        **BUDGET, max_iter=1, row_bound=1.0, shrink=False
    )
    return run.released["v/0"]


def consensus(**options: Any) -> Mechanism:
    def fit(data: Data) -> Array:
        rows, labels = data
        shards = [(rows[:20], labels[:20]), (rows[20:], labels[20:])]
        model = RecycledADMM(nx.path_graph(2), shards, reg=4.0, C=1.0)
        return model.solve_private(epsilon=EPSILON, max_iter=1, eta=1.0, row_bound=1.0, **options).released[0, 0]

    return fit


MECHANISMS: dict[str, Mechanism] = {
    "ISTDP, one gradient": one_gradient,
    "ISTDP, centre": centre,
    "ISTDP, output": output_of_istdp,
    "ISTDP, objective": objective_of_istdp,
    "SHARING, share": share,
    "RADMM, Gaussian output": consensus(perturbation="output", delta=DELTA),
    "RADMM, pure output": consensus(perturbation="output"),
    "RADMM, objective": consensus(perturbation="objective"),
}
#: Whose query is the same at each run: the others release a minimiser that moves with the noise in its objective.
ADDITIVE = [name for name in MECHANISMS if "objective" not in name]


class Watched:
    """The queries that a mechanism releases, and the noise that they get."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, doubles: bool) -> None:
        self.generator = np.random.default_rng(0)
        self.queries: list[Array] = []
        self.noises: list[GaussianNoise | BallNoise] = []
        for kind in (GaussianNoise, BallNoise):
            monkeypatch.setattr(kind, "release", self._release(kind.release, doubles))

    def _release(self, own: Any, doubles: bool) -> Any:
        def release(kind: GaussianNoise | BallNoise, query: Array, noise: Noise) -> Array:
            self.queries.append(query)
            self.noises.append(kind)
            if not doubles:
                return np.asarray(own(kind, query, noise))
            return query + spread(kind) * self.generator.standard_normal(query.size)

        return release

    def first_of(self, mechanism: Mechanism, data: Data) -> tuple[Array, GaussianNoise | BallNoise]:
        self.queries.clear()
        self.noises.clear()
        mechanism(data)
        return self.queries[0], self.noises[0]


def spread(noise: GaussianNoise | BallNoise) -> float:
    return noise.scale if isinstance(noise, GaussianNoise) else 1.0 / noise.rate


def right_guesses(name: str, monkeypatch: pytest.MonkeyPatch, doubles: bool) -> int:
    """Of 2 RUNS releases, those of which the attacker names the data; a draw is half of one."""
    mechanism, seen = MECHANISMS[name], Watched(monkeypatch, doubles)
    pair = [seen.first_of(mechanism, data) for data in NEIGHBOURS]
    assert not np.array_equal(pair[0][0], pair[1][0])
    right = 0.0
    for which, data in enumerate(NEIGHBOURS):
        for _ in range(RUNS):
            released = mechanism(data)
            could = [reachable(released, query[: released.size], spread(noise)).all() for query, noise in pair]
            right += 0.5 if could[0] == could[1] else float(could[which])
    return int(right)


@pytest.mark.grid(every=3)
@pytest.mark.parametrize("name", ADDITIVE)
def test_which_doubles_are_reachable_tells_neighbours_apart_no_more_often_than_epsilon_allows(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert right_guesses(name, monkeypatch, doubles=False) <= LUCKY


@pytest.mark.parametrize(
    "name",
    [
        "ISTDP, centre",
        "SHARING, share",
        pytest.param("ISTDP, output", marks=pytest.mark.slow),
        pytest.param("RADMM, Gaussian output", marks=pytest.mark.slow),
    ],
)
def test_the_same_attack_names_the_data_where_doubles_are_released(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert right_guesses(name, monkeypatch, doubles=True) > LUCKY


@pytest.mark.grid(every=3)
@pytest.mark.parametrize("name", list(MECHANISMS))
def test_the_grid_is_public_and_each_part_of_it_is_reached_from_either_neighbour(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an attacker who knows the grid can look at: its step, whether values are on it, and their last digits."""
    mechanism, seen = MECHANISMS[name], Watched(monkeypatch, doubles=False)
    steps = {seen.first_of(mechanism, data)[1].step for data in NEIGHBOURS}
    assert len(steps) == 1
    (step,) = steps
    odd = []
    for data in NEIGHBOURS:
        whole = np.array([mechanism(data) for _ in range(RUNS)]) / step
        assert np.array_equal(whole, np.rint(whole))
        odd.append(np.mean(whole % 2.0))
    size = RUNS * len(ROWS[0])
    assert np.abs(np.array(odd) - 0.5).max() < 5.0 * np.sqrt(0.25 / size)  # five standard errors
