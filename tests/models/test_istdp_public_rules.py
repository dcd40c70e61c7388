"""What a private run chooses by itself: from public numbers alone, and well."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from cvxpriv_models.istdp import ISTDP, clipping
from cvxpriv_models.istdp.private_options import MOST_ITERATIONS, drowned, noise_level_penalty, public_iterations
from cvxpriv_models.istdp.problem import DEFAULT
from scipy.special import expit

from cvxpriv.errors import ModelError, PrivacyError
from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties import MCP
from cvxpriv.privacy import GaussianNoise, PrivacyWarning, gaussian_mu

pytestmark = pytest.mark.filterwarnings("ignore:noise_seed makes")

EPSILON, DELTA = 1.0, 1e-5


def data(rows: int = 1000, columns: int = 20, seed: int = 0) -> tuple[Array, Array]:
    """Rows of norm 1; four coefficients matter."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, columns))
    x /= np.linalg.norm(x, axis=1)[:, None]
    truth = np.concatenate([[6.0, -6.0, 4.0, -4.0], np.zeros(columns - 4)])
    return x, np.where(random.uniform(size=rows) < expit(x @ truth), 1.0, -1.0)


def test_other_data_of_the_same_shape_get_the_same_choices() -> None:
    first, other = (
        ISTDP(*data(seed=seed)).solve_private(epsilon=EPSILON, delta=DELTA, noise_seed=seed) for seed in (0, 1)
    )
    assert first.settings == other.settings
    assert first.penalty == other.penalty
    assert first.accounting.releases == first.settings.max_iter


@pytest.mark.parametrize("clip", [0.1, 1.0, 30.0])
def test_the_number_of_iterations_is_n_mu_over_the_root_of_e_d_whatever_the_clip(clip: float) -> None:
    run = ISTDP(*data()).solve_private(epsilon=EPSILON, delta=DELTA, clip=clip, noise_seed=0)
    assert run.settings.max_iter == round(1000 * gaussian_mu(EPSILON, DELTA) / np.sqrt(np.e * 20))


def test_the_number_of_iterations_balances_what_is_left_against_the_noise() -> None:
    clip, lipschitz, size, sensitivity, mu = 1.0, 0.25, 20, 2.0 / 5000, 0.3
    noise, far = sensitivity / mu, 2.0 * clip / lipschitz

    def excess(count: float) -> float:
        return lipschitz * far**2 / (4.0 * np.e * count) + size * noise**2 * count / (4.0 * lipschitz)

    best = public_iterations(clip, sensitivity, mu, size)
    counts = np.arange(1, 2000)
    assert counts[np.argmin([excess(float(count)) for count in counts])] == best


def test_it_is_at_least_one_and_never_without_end() -> None:
    assert public_iterations(1.0, 2.0 / 10, 1e-3, 1000) == 1
    assert public_iterations(1.0, 2.0 / 1e9, 5.0, 2) == MOST_ITERATIONS


def test_what_is_left_after_the_rules_number_of_steps_is_less_than_after_far_fewer_or_far_more() -> None:
    model = ISTDP(*data(), penalty=MCP(0.01))

    def mean(iterations: int | None) -> float:
        runs = [model.solve_private(epsilon=EPSILON, delta=DELTA, max_iter=iterations) for _ in range(5)]
        return float(np.mean([model.problem.objective(run.theta) for run in runs]))

    at_rule = mean(None)
    assert at_rule < mean(4)
    assert at_rule < mean(400)


def test_the_penalty_presses_half_the_largest_of_d_moves_by_noise_alone() -> None:
    sensitivity, mu, travel = 2e-3, 0.25, 160.0
    penalty = noise_level_penalty(sensitivity, mu, travel, features=20)
    # A run of T steps s with noise sensitivity sqrt(T) / mu in each gradient: s sqrt(T) of that is travel c.
    largest = travel * sensitivity / mu * np.sqrt(2.0 * np.log(2 * 20))
    assert penalty.alpha * penalty.lam == pytest.approx(largest / 2.0)
    assert noise_level_penalty(sensitivity, mu, 1e-3, features=1).alpha > 1.0


def test_a_penalty_left_out_is_chosen_by_the_noise_and_one_that_is_given_is_kept() -> None:
    x, y = data()
    left, given = ISTDP(x, y), ISTDP(x, y, penalty=DEFAULT)
    assert left.solve().penalty == given.solve().penalty == MCP(0.05, 3.0)
    chosen = left.solve_private(epsilon=EPSILON, delta=DELTA, noise_seed=0)
    public = noise_level_penalty(2.0 / 1000, gaussian_mu(EPSILON, DELTA), chosen.settings.max_iter * 4.0, 20)
    assert isinstance(chosen.penalty, MCP)
    # The sensitivity has what rounding may do to a sum of 1000 rows in it.
    assert (chosen.penalty.lam, chosen.penalty.alpha) == (pytest.approx(public.lam, rel=1e-8), public.alpha)
    assert given.solve_private(epsilon=EPSILON, delta=DELTA, noise_seed=0).penalty == DEFAULT
    assert left.with_penalty(DEFAULT).solve_private(epsilon=EPSILON, delta=DELTA, noise_seed=0).penalty == DEFAULT


@pytest.mark.parametrize("penalty", ["mcp:0.02:1.5", "scad:0.02:2.5", "capped-l1:0.02:0.5", "l1:0.02"])
def test_without_noise_no_step_of_length_1_over_l_raises_f_even_beyond_alpha(
    penalty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GaussianNoise, "release", lambda self, query, noise: query)
    model = ISTDP(*data(), penalty=penalty)
    heights = [model.problem.objective(np.zeros(20))]
    for iterations in range(1, 12):
        run = model.solve_private(epsilon=EPSILON, delta=DELTA, max_iter=iterations)
        assert run.settings.step_limit == 4.0
        heights.append(model.problem.objective(run.theta))
    assert (np.diff(heights) <= 1e-14).all()
    assert heights[-1] < heights[0] - 0.01


@pytest.mark.parametrize(("options", "clip", "step"), [({"clip": None, "row_bound": 2.0}, 2.0, 1.0), ({}, 1.0, 4.0)])
def test_the_clip_and_the_row_bound_follow_from_each_other(options: dict[str, Any], clip: float, step: float) -> None:
    settings = ISTDP(*data()).solve_private(epsilon=EPSILON, delta=DELTA, noise_seed=0, **options).settings
    assert (settings.clip, settings.step_limit) == (clip, step)


def test_without_either_there_is_no_bound() -> None:
    with pytest.raises(PrivacyError, match="clip is missing.*or row_bound"):
        ISTDP(*data()).solve_private(epsilon=EPSILON, delta=DELTA, clip=None)
    with pytest.raises(PrivacyError, match="clip is missing, and no noise hides an unbounded row"):
        ISTDP(*data(), loss="squared").solve_private(epsilon=EPSILON, delta=DELTA, clip=None, row_bound=1.0)


@pytest.mark.parametrize("iterations", ["many", 0, 2.0, True])
def test_passes_are_a_whole_number(iterations: Any) -> None:
    with pytest.raises(ModelError, match="is not a whole number"):
        ISTDP(*data()).solve_private(epsilon=EPSILON, delta=DELTA, max_iter=iterations)


def test_the_choices_are_made_before_any_row_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[MCP] = []

    def stop(self: clipping.ClippedGradient, theta: Array) -> Array:
        assert isinstance(self.problem.penalty, MCP)
        seen.append(self.problem.penalty)
        raise KeyboardInterrupt

    monkeypatch.setattr(clipping.ClippedGradient, "at", stop)
    run = ISTDP(*data()).solve_private(epsilon=EPSILON, delta=DELTA, noise_seed=0)
    assert run.interrupted
    assert seen == [run.penalty]


@pytest.mark.parametrize("bound", [1e-200, 1e200])
def test_a_bound_without_a_step_is_refused(bound: float) -> None:
    with pytest.raises(PrivacyError, match="gives a step of.*scale the columns"):
        ISTDP(*data()).solve_private(epsilon=EPSILON, delta=DELTA, row_bound=bound)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_fit_that_noise_drowns_says_so_by_public_numbers_alone(adjacency: str) -> None:
    options: dict[str, Any] = {"epsilon": EPSILON, "delta": DELTA, "noise_seed": 0, "adjacency": adjacency}
    options |= {"max_iter": 1, "public_rows": 100} if adjacency == "add-remove" else {"max_iter": 1}
    said = []
    for seed in (0, 1):
        with pytest.warns(PrivacyWarning, match="drown the signal") as found:
            ISTDP(*data(100, seed=seed)).solve_private(**options)
        said.append([str(one.message) for one in found])
    assert said[0] == said[1]
    moved = 2.0 if adjacency == "replace-one" else 1.0
    assert f"{moved * np.sqrt(20) / (100 * gaussian_mu(EPSILON, DELTA)):.2f} of the clip" in said[0][-1]


def test_a_fit_of_many_rows_says_nothing() -> None:
    assert drowned(1000, 20, gaussian_mu(EPSILON, DELTA), 2.0) == ""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ISTDP(*data()).solve_private(epsilon=EPSILON, delta=DELTA, max_iter=1)
