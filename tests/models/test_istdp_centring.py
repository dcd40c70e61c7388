"""Private centring and the private choice of columns: sensitivity, accounting, and the coefficients that come back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from cvxpriv_models.istdp import ISTDP, centring
from cvxpriv_models.istdp.centring import Centre, moments, moments_sensitivity, resolves
from cvxpriv_models.istdp.clipping import ClippedGradient
from cvxpriv_models.istdp.private_descent import require_support, select
from scipy.optimize import minimize

import cvxpriv as cpv
from cvxpriv.errors import ModelError, PrivacyError
from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties import LOSSES
from cvxpriv.privacy import GaussianNoise, Noise, Release, account_ledger, gaussian_mu

pytestmark = pytest.mark.filterwarnings("ignore:noise_seed makes", "ignore:privacy is likely to drown")

BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "noise_seed": 0}


def data(rows: int = 4000, seed: int = 0) -> tuple[Array, Array]:
    """Rows with a large mean, of norm at most 1; three columns matter."""
    random, columns = np.random.default_rng(seed), 12
    x = random.uniform(0.3, 1.0, size=(rows, columns)) / np.sqrt(columns)
    truth = np.zeros(columns)
    truth[[1, 4, 9]] = 30.0, -30.0, 20.0
    z = (x - x.mean(axis=0)) @ truth
    return x, np.where(random.uniform(size=rows) < 1.0 / (1.0 + np.exp(-z)), 1.0, -1.0)


@pytest.mark.parametrize("size", [2, 3, 7])
def test_no_replaced_row_moves_the_moments_further_than_the_root_of_four_and_a_half(size: int) -> None:
    random, rows = np.random.default_rng(size), 5
    rest = random.normal(size=(rows - 1, size))
    rest /= np.linalg.norm(rest, axis=1)[:, None] * random.uniform(1.0, 3.0, size=(rows - 1, 1))

    def closeness(pair: Any) -> float:
        sides = pair.reshape(2, size)
        sides = sides / np.maximum(np.linalg.norm(sides, axis=1), 1.0)[:, None]
        one, other = (moments(np.vstack([rest, side]), rows) for side in sides)
        return -float(np.linalg.norm(one - other))

    bound = moments_sensitivity(rows, size, "replace-one")
    starts: list[Any] = [random.normal(size=2 * size) for _ in range(3)]
    found = [-float(minimize(closeness, start, method="Powell").fun) for start in starts]
    assert max(found) <= bound
    assert max(found) == pytest.approx(np.sqrt(4.5) / rows, rel=1e-4) == pytest.approx(bound, rel=1e-4)


def test_no_added_row_moves_them_further_than_the_root_of_two() -> None:
    random, rows = np.random.default_rng(0), 6
    rest = random.uniform(-0.4, 0.4, size=(rows, 4))
    bound = moments_sensitivity(rows, 4, "add-remove")
    found = []
    for length in (0.2, 0.7, 1.0):
        row = random.normal(size=4)
        row *= length / np.linalg.norm(row)
        found.append(float(np.linalg.norm(moments(np.vstack([rest, row]), rows) - moments(rest, rows))))
    assert max(found) <= bound
    assert found[-1] == pytest.approx(np.sqrt(2.0) / rows, rel=1e-9) == pytest.approx(bound, rel=1e-9)
    assert found[1] < found[-1]


def test_the_norm_of_the_packed_moments_is_that_of_mean_and_matrix_and_sparse_rows_have_the_same() -> None:
    rows = data(50)[0][:, :5]
    packed = moments(rows, 50)
    mean, second = rows.mean(axis=0), rows.T @ rows / 50
    assert np.linalg.norm(packed) == pytest.approx(np.hypot(np.linalg.norm(mean), np.linalg.norm(second)))
    np.testing.assert_allclose(moments(sp.csr_array(rows), 50), packed, rtol=1e-13)
    back, spread = centring._unpacked(packed, 5)
    np.testing.assert_allclose(back, mean)
    np.testing.assert_allclose(spread, np.cov(rows.T, bias=True), atol=1e-15)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("support", [None, 3])
def test_moments_columns_and_gradients_together_cost_what_was_asked(adjacency: str, support: int | None) -> None:
    run = ISTDP(*data(), intercept=True).solve_private(
        **BUDGET, adjacency=adjacency, centre="private", support=support, max_iter=20
    )
    steps = [entry.step for entry in run.ledger]
    before = ["number of rows"] if adjacency == "add-remove" else []
    before += ["mean and second moment"] + (["scores of columns"] if support else [])
    assert steps == before + ["noisy gradient"] * 20
    assert sum((entry.mu or 0.0) ** 2 for entry in run.ledger) == pytest.approx(gaussian_mu(1.0, 1e-6) ** 2, rel=1e-12)
    assert account_ledger(run.ledger, 1e-6, neighbours="").epsilon == pytest.approx(1.0, rel=1e-9)
    assert run.accounting.epsilon <= 1.0 + 1e-9
    assert run.support.size <= (support or 12)


def centre_of(spread: Array, bound: float, deviation: float = 0.0) -> Centre:
    return Centre(np.zeros(len(spread)), spread, bound, deviation, Release(mu=0.1), 0.2)


def test_the_radius_lies_between_a_twentieth_of_the_bound_and_the_bound() -> None:
    radii = [centre_of(np.diag([trace, 0.0]), 4.0).radius for trace in (9.0, 1e-6, -1.0, 100.0)]
    assert radii == pytest.approx([3.0, 0.2, 0.2, 4.0])
    assert centre_of(np.diag([9.0, 0.0]), 4.0).column == pytest.approx(0.75)


def test_the_greatest_second_moment_is_a_root_within_public_bounds() -> None:
    found = centre_of(np.diag([1.0, 0.0]), 4.0, 0.4).largest  # noise alone has eigenvalues up to .8
    assert found + 0.8**2 / (4.0 * found) == pytest.approx(1.0)
    assert found > 0.4
    assert centre_of(np.diag([-1.0, -1.0]), 4.0, 0.2).largest == pytest.approx(0.2)
    assert centre_of(np.diag([100.0, 0.0]), 4.0).largest == pytest.approx(16.0)
    # Without any spread the radius is .2: spread evenly, or the intercept's column alone.
    assert centre_of(np.zeros((2, 2)), 4.0).largest == pytest.approx(0.02)
    assert centre_of(np.zeros((100, 100)), 4.0).largest == pytest.approx(0.05**2)


@pytest.mark.parametrize(("adjacency", "most", "square"), [("replace-one", 1, 4.5), ("add-remove", 4, 2.0)])
@pytest.mark.parametrize(("divisor", "columns"), [(40, 3), (5000, 3), (40, 200)])
def test_the_sensitivity_of_moments_allows_for_rounding_and_little_more(
    adjacency: str, most: int, square: float, divisor: int, columns: int
) -> None:
    found, rows = moments_sensitivity(divisor, columns, adjacency), most * divisor
    # Two neighbours, each with rows whose computed entries have size at most 2 together.
    least = 4.0 * (rows + columns + 4) * 2.0**-53 * rows / divisor
    assert least - np.spacing(found) <= found - np.sqrt(square) / divisor <= 1.3 * least + np.spacing(found)


def test_the_default_centres_up_to_the_noise_and_the_size_that_are_named() -> None:
    wide = [ISTDP(np.eye(2, columns), [-1, 1], intercept=True).problem for columns in (1000, 1001)]
    centring.require_centring(wide[0])
    with pytest.raises(ModelError, match="second moment of 1001 x 1001 entries, and at most 1000"):
        centring.require_centring(wide[1])
    assert [centring.resolves(one, 90_000, 100.0, "replace-one") for one in wide] == [True, False]
    assert [centring.resolves(wide[0], rows, 100.0, "replace-one") for rows in (100_000, 100_001)] == [True, False]
    problem = ISTDP(data(40)[0][:, :8], data(40)[1], intercept=True).problem
    for adjacency, square in (("replace-one", 4.5), ("add-remove", 2.0)):
        edge = np.sqrt(square) / 1000 * np.sqrt(2.0 * 8) / (np.sqrt(0.1) * 0.4)
        assert [centring.resolves(problem, 1000, mu * edge, adjacency) for mu in (0.999, 1.001)] == [False, True]


def test_a_centre_is_in_the_units_of_the_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GaussianNoise, "release", lambda self, query, noise: query)
    x = np.random.default_rng(0).normal(size=(50, 4)) * 2.0
    short = x * np.minimum(1.0, 3.0 / np.linalg.norm(x, axis=1))[:, None]
    assert not np.allclose(short, x)
    for rows in (x, sp.csr_array(x)):
        problem = ISTDP(rows, np.tile([-1, 1], 25), intercept=True).problem
        found = centring.release_centre(problem, 3.0, 50, 0.5, "replace-one", Noise())
        np.testing.assert_allclose(found.mean, short.mean(axis=0))
        np.testing.assert_allclose(found.spread, np.cov(short.T, bias=True), atol=1e-12)
        assert found.bound == 3.0
        assert found.deviation == pytest.approx(9.0 * np.sqrt(4.5) / 50 / (0.5 * np.sqrt(0.1)), rel=1e-4)
        assert found.left == pytest.approx(0.5 * np.sqrt(0.9))


def test_centred_coefficients_are_those_of_the_rows_as_they_were() -> None:
    x, y = data(40)
    x = x[:, :3]
    problem = ISTDP(x, y, intercept=True).problem
    centre = Centre(x.mean(axis=0), np.cov(x.T, bias=True), 1.0, 0.0, Release(mu=0.1), 0.2)
    theta = np.array([3.0, -1.0, 2.0, 0.7])
    within = centre.centred(problem)
    np.testing.assert_allclose(within.predictions(theta), problem.predictions(centre.original(theta)), rtol=1e-12)
    assert np.abs(within.design[:, :3].mean(axis=0)).max() < 1e-12
    assert centre.step_limit(problem.loss) == pytest.approx(4.0 / np.linalg.eigvalsh(centre.spread)[-1])
    assert centre.clip(problem.loss) == pytest.approx(0.7 * np.sqrt(np.trace(centre.spread)))
    assert centre.clip(LOSSES["sigmoid"]) == pytest.approx(0.25 * centre.clip(problem.loss))


def test_what_noise_adds_to_the_greatest_eigenvalue_is_taken_back() -> None:
    size, truth, deviation, random = 200, 1.0, 0.05, np.random.default_rng(0)
    noise = np.triu(random.normal(size=(size, size)) * deviation / np.sqrt(2.0), 1)
    spread = np.diag([truth, *np.zeros(size - 1)]) + noise + noise.T + np.diag(random.normal(size=size) * deviation)
    centre = Centre(np.zeros(size), spread, 10.0, deviation, Release(mu=0.1), 0.2)
    assert np.linalg.eigvalsh(spread)[-1] > 1.15
    assert centre.largest == pytest.approx(truth, rel=0.1)


def test_a_released_centre_lies_on_its_grid_and_neighbours_reach_the_same_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caught: list[tuple[GaussianNoise, Array, Array]] = []
    own = GaussianNoise.release

    def release(self: GaussianNoise, query: Array, noise: Noise) -> Array:
        caught.append((self, query, own(self, query, noise)))
        return caught[-1][-1]

    monkeypatch.setattr(GaussianNoise, "release", release)
    x, y = data(60)
    other = x.copy()
    other[7] = -0.5 * x[7]
    for rows in (x, other):
        caught_before = len(caught)
        ISTDP(rows, y, intercept=True).solve_private(
            epsilon=0.1, delta=1e-6, centre="private", support=2, max_iter=1, clip=1.0
        )
        assert len(caught) == caught_before + 3
    for (noise, query, released), (_, moved, _) in zip(caught[:2], caught[3:5], strict=True):
        whole = released / noise.step
        assert (whole == np.rint(whole)).all()
        # On the grid whichever rows: what is left of the query plays no part in which doubles can come out.
        for one in (query, moved):
            assert ((released - noise.step * np.rint(one / noise.step)) / noise.step % 1.0 == 0.0).all()
    noise, first, second = caught[0][0], caught[0][1], caught[3][1]
    assert np.linalg.norm(first - second) <= noise.sensitivity


def test_the_same_seed_gives_the_same_run_and_a_file_holds_it(tmp_path: Any) -> None:
    model = ISTDP(*data(), intercept=True)
    first, again = (model.solve_private(**BUDGET, support=4, max_iter=10) for _ in range(2))
    np.testing.assert_array_equal(first.theta, again.theta)
    assert first.settings == again.settings
    assert (first.settings.centre, first.settings.support, first.settings.output) == ("private", 4, "average")
    first.save(tmp_path / "model.json")
    loaded = cpv.load(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.predict_proba(data()[0][:5]), first.predict_proba(data()[0][:5]))
    assert loaded.settings == first.settings
    assert account_ledger(loaded.ledger, 1e-6, neighbours="").epsilon == first.accounting.epsilon
    assert first.center is not None
    assert first.center.shape == (13,)
    assert len(first.cases()) == 1


def test_centring_is_the_default_where_public_numbers_say_that_its_noise_is_small() -> None:
    mu = gaussian_mu(1.0, 1e-6)
    large, small = ISTDP(*data(), intercept=True), ISTDP(*data(300), intercept=True)
    assert resolves(large.problem, 4000, mu, "replace-one")
    assert not resolves(small.problem, 300, mu, "replace-one")
    assert not resolves(ISTDP(*data()).problem, 4000, mu, "replace-one")
    choices: list[dict[str, Any]] = [{}, {"centre": "none"}, {"method": "gradient-descent"}]
    chosen = [
        ISTDP(*data(), intercept=True, penalty="l2:0").solve_private(**BUDGET, max_iter=2, **options).settings.centre
        for options in choices
    ]
    assert chosen == ["private", "none", "none"]


def test_a_centred_fit_is_better_than_one_of_the_rows_as_they_are() -> None:
    x, y = data()
    model = ISTDP(x, y, intercept=True)

    def loss(**options: Any) -> float:
        runs = [model.solve_private(epsilon=1.0, delta=1e-6, noise_seed=seed, **options) for seed in range(3)]
        return float(np.mean([model.problem.average_loss(model.problem.predictions(run.theta)) for run in runs]))

    assert loss() < loss(centre="none") - 0.05


def test_the_columns_that_matter_are_chosen() -> None:
    run = ISTDP(*data(20_000), intercept=True).solve_private(**BUDGET, support=3, max_iter=5)
    assert run.support.tolist() == [1, 4, 9]
    assert run.theta.shape == (13,)


def test_without_noise_the_columns_of_the_largest_gradient_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GaussianNoise, "release", lambda self, query, noise: query)
    x, y = data()
    average = ClippedGradient(ISTDP(x, y).problem, 1.0, 4000)
    found = select(average, 5, 0.3, "replace-one", Noise())
    exact = np.abs(x.T @ (-y / 2.0)) / 4000
    assert found.chosen.tolist() == sorted(np.argsort(-exact)[:5].tolist())
    assert found.release.mu is not None
    assert found.left**2 + found.release.mu**2 == pytest.approx(0.09)
    with pytest.raises(PrivacyError, match="support=0: pass a whole number of columns to keep, from 1 to 5"):
        require_support(0, 5)


def test_moments_have_a_tenth_of_the_budget_and_one_column_a_quarter_of_what_is_left() -> None:
    run = ISTDP(*data(200), intercept=True).solve_private(**BUDGET, centre="private", support=1, max_iter=1)
    whole = gaussian_mu(1.0, 1e-6) ** 2
    squares = [(entry.mu or 0.0) ** 2 / whole for entry in run.ledger]
    assert squares == pytest.approx([0.1, 0.9 * 0.25, 0.9 * 0.75], rel=1e-9)
    assert run.support.size <= 1


@pytest.mark.parametrize(
    ("model", "options", "error", "message"),
    [
        ({}, {"centre": "private"}, ModelError, "needs intercept=True"),
        ({"intercept": True}, {"centre": "mean"}, PrivacyError, "centre='mean'"),
        ({"intercept": True, "loss": "squared"}, {"centre": "private", "row_bound": 1.0}, ModelError, "no bound"),
        ({}, {"support": 13}, PrivacyError, "from 1 to 12"),
        ({"penalty": "l2:1"}, {"support": 2, "method": "output-perturbation"}, ModelError, "chooses no columns"),
    ],
)
def test_what_cannot_be_centred_or_chosen_is_refused_before_anything_is_spent(
    model: dict[str, Any], options: dict[str, Any], error: type[Exception], message: str
) -> None:
    budget = cpv.Budget(1.0, 1e-6)
    with pytest.raises(error, match=message):
        ISTDP(*data(100), **model).solve_private(**BUDGET, **options, budget=budget)
    assert budget.ledger == ()
