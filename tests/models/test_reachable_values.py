"""Every mechanism releases on a public grid: the attack on doubles, and on the grid, tells neighbours apart by luck.

The attacker knows everything but which of two neighbours was used: both queries, the scale and the grid. With
epsilon = .1 a right guess is allowed in 53 of 100 runs. On plain doubles it is right in nearly all of them.

No place of the product that draws noise is left out: the last test finds them in its code.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cvxpriv_models
import networkx as nx
import numpy as np
import pytest
from scipy.stats import binom

import cvxpriv as cpv
from cvxpriv.models import ISTDP, ADMMSharing, RecycledADMM
from cvxpriv.numerics.arrays import Array
from cvxpriv.privacy import BallNoise, GaussianNoise, Noise
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


#: What was released since a mechanism began, in order: some releases are read by what follows, and shown by nothing.
RELEASED: list[Array] = []


def first_of_sparse(**options: Any) -> Mechanism:
    def fit(data: Data) -> Array:
        RELEASED.clear()
        ISTDP(*data, penalty="l2:0", intercept=True).solve_private(**BUDGET, max_iter=1, **options)
        return RELEASED[0]

    return fit


def count(**options: Any) -> Mechanism:
    def fit(data: Data) -> Array:
        less = slice(None) if data is NEIGHBOURS[0] else slice(1, None)
        rows, labels = (one[less] for one in data)
        RELEASED.clear()
        schema = cpv.PublicSchema(classes=(-1, 1), ranges=(-0.2, 0.2), adjacency="add-remove")
        ISTDP(rows, labels, penalty="l2:0.5", schema=schema).solve_private(**BUDGET, **options)
        return RELEASED[0]

    return fit


def scores(data: Data) -> Array:
    RELEASED.clear()
    rows, labels = data
    cpv.private_scores(labels, 5.0 * rows[:, 0], **BUDGET)
    return RELEASED[0]


MECHANISMS: dict[str, Mechanism] = {
    "ISTDP, one gradient": one_gradient,
    "ISTDP, mean and moments": first_of_sparse(centre="private"),
    "ISTDP, scores of columns": first_of_sparse(centre="none", support=5),
    "ISTDP, number of rows": count(max_iter=1),
    "ISTDP, pure number of rows": count(method="objective-perturbation"),
    "ISTDP, output": output_of_istdp,
    "ISTDP, objective": objective_of_istdp,
    "SHARING, share": share,
    "RADMM, Gaussian output": consensus(perturbation="output", delta=DELTA),
    "RADMM, pure output": consensus(perturbation="output"),
    "RADMM, objective": consensus(perturbation="objective"),
    "scores on private rows": scores,
}
#: Whose query is the same at each run: the others release a minimiser that moves with the noise in its objective.
ADDITIVE = [name for name in MECHANISMS if "objective" not in name]


class Watched:
    """The queries that a mechanism releases, and the noise that they get."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, doubles: bool) -> None:
        self.generator = np.random.default_rng(0)
        self.queries: list[Array] = []
        self.noises: list[GaussianNoise | BallNoise] = []
        self.places: set[tuple[str, str]] = set()
        for kind in (GaussianNoise, BallNoise):
            monkeypatch.setattr(kind, "release", self._release(kind.release, doubles))

    def _release(self, own: Any, doubles: bool) -> Any:
        def release(kind: GaussianNoise | BallNoise, query: Array, noise: Noise) -> Array:
            self.queries.append(query)
            self.noises.append(kind)
            code = sys._getframe(1).f_code
            self.places.add((named(Path(code.co_filename)), code.co_qualname.split(".")[0]))
            if not doubles:
                found = np.asarray(own(kind, query, noise))
            else:
                found = query + spread(kind) * self.generator.standard_normal(query.size)
            RELEASED.append(found)
            return found

        return release

    def first_of(self, mechanism: Mechanism, data: Data) -> tuple[Array, GaussianNoise | BallNoise]:
        for several in (self.queries, self.noises, RELEASED):
            several.clear()
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
        "ISTDP, mean and moments",
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
    assert np.abs(np.array(odd) - 0.5).max() < 5.0 * np.sqrt(0.25 / whole.size)  # five standard errors


@pytest.mark.parametrize("delta", [0.0, DELTA])
def test_noisy_counts_of_a_table_are_whole_and_each_is_reached_from_either_neighbour(delta: float) -> None:
    right, odd = 0.0, []
    tables = [
        cpv.JointTable.from_counts(one, ["a", "b"], [0, 1, 2])
        for one in ([[9, 0, 3], [2, 5, 1]], [[8, 0, 3], [2, 6, 1]])
    ]
    queries = [np.asarray(one.counts).sum(axis=0) for one in tables]
    for which, table in enumerate(tables):
        for _ in range(RUNS):
            noisy = cpv.private_table(table, EPSILON, delta, domain={"S": ["a", "b"], "X": [0, 1, 2]})
            assert noisy.protection is not None
            released = np.array(noisy.protection.noisy_counts)
            could = [reachable(released, query, noisy.protection.scale).all() for query in queries]
            right += 0.5 if could[0] == could[1] else float(could[which])
            odd += [released % 2.0]
    assert right <= LUCKY
    assert set(np.unique(odd)) == {0.0, 1.0}
    assert abs(np.mean(odd) - 0.5) < 5.0 * np.sqrt(0.25 / np.size(odd))


#: What draws without a `release`: counts, choices and coins, which have tests of their own, and what papers print.
OTHERS = {
    ("cvxpriv/mechanisms/release.py", "draw"),
    ("cvxpriv/privacy/private_tables.py", "_drawn"),
    ("cvxpriv_models/admm_sharing/labels.py", "flipping"),
    ("cvxpriv_models/admm_sharing/mechanism.py", "_in_range"),
    ("cvxpriv_models/istdp/printed.py", "_gradient"),
}
DRAWS = {
    "release",
    "rounded_normals",
    "rounded_ball",
    "rounded_balls",
    "coins",
    "exact_choices",
    "normal",
    "gamma_ball",
}
PACKAGES = [Path(str(one.__file__)).parent for one in (cvxpriv_models, cpv)]


def named(path: Path) -> str:
    package = next(one for one in PACKAGES if path.is_relative_to(one))
    return path.relative_to(package.parent).as_posix()


def drawing() -> Iterator[tuple[str, str]]:
    """Each function of the product that draws from a source of noise: its file, and the outermost one's name."""
    for package in PACKAGES:
        for path in package.rglob("*.py"):
            name, text = named(path), path.read_text()
            if "noise" not in text or name in ("cvxpriv/privacy/grid.py", "cvxpriv/privacy/noise.py"):
                continue
            for top in ast.parse(text).body:
                for call in (one for one in ast.walk(top) if isinstance(one, ast.Call)):
                    called = getattr(call.func, "attr", getattr(call.func, "id", ""))
                    around = {one.id for one in ast.walk(call) if isinstance(one, ast.Name)}
                    if called in DRAWS and around & {"noise", "source"}:
                        yield name, getattr(top, "name", "")


def test_no_function_that_draws_noise_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Watched(monkeypatch, doubles=False)
    for mechanism in MECHANISMS.values():
        mechanism(NEIGHBOURS[0])
    assert set(drawing()) == seen.places | OTHERS
