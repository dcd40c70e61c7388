"""Private ISTDP: what is clipped, what is released, what it costs, and that nothing else is read."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from cvxpriv_models.istdp import ISTDP, PrivateSparseRun, noisy_descent, printed
from cvxpriv_models.istdp.clipping import ADJACENCIES, ClippedGradient, clipped_slopes, row_blocks, summed
from cvxpriv_models.istdp.noisy_descent import PUBLIC, private_loop
from cvxpriv_models.istdp.private_options import public_step_limit
from cvxpriv_models.istdp.run import PrivateSettings

from cvxpriv.errors import ModelError, PrivacyError
from cvxpriv.learning.matrices import row_norms
from cvxpriv.learning.schema import PublicSchema
from cvxpriv.numerics.arrays import Array
from cvxpriv.privacy import GaussianNoise, PrivacyWarning, audit
from cvxpriv.schedules.steps import Draw, Public, Sweep, Update

pytestmark = pytest.mark.filterwarnings("ignore:noise_seed makes", "ignore:privacy is likely to drown")

EPSILON, DELTA = 1.0, 1e-5


def data(rows: int, columns: int, seed: int) -> tuple[Array, Array]:
    """Heavy-tailed rows, so that some are clipped and some are not, and labels."""
    random = np.random.default_rng(seed)
    return random.standard_t(2, size=(rows, columns)), random.choice([-1.0, 1.0], size=rows)


def model(rows: int = 200, columns: int = 8, seed: int = 0, **options: Any) -> ISTDP:
    return ISTDP(*data(rows, columns, seed), **{"penalty": "mcp:0.02:3", **options})


def settings(**changed: Any) -> PrivateSettings:
    return PrivateSettings(
        **{
            "method": "istdp",
            "max_iter": 4,
            "clip": 1.0,
            "step": "lipschitz",
            "adjacency": "replace-one",
            "output": "last",
            "noise_scale": 0.1,
            "step_limit": 1.0,
            **changed,
        }
    )


@pytest.mark.parametrize("loss", ["logistic", "smoothed-hinge", "sigmoid", "squared", "huber"])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_clipped_average_is_that_of_rows_clipped_one_by_one(loss: str, sparse: bool) -> None:
    x, y = data(60, 5, seed=1)
    problem = ISTDP(sp.csr_array(x) if sparse else x, y, loss=loss, intercept=True).problem
    theta = np.random.default_rng(2).normal(size=6)
    rows = np.column_stack([x, np.ones(60)])
    total = np.zeros(6)
    clipped = 0
    for row, label in zip(rows, y, strict=True):
        own = problem.loss.gradient(np.array([row @ theta]), np.array([label]))[0] * row
        size = float(np.linalg.norm(own))
        clipped += int(size > 0.7)
        total += own * min(1.0, 0.7 / max(size, 1e-300))
    assert clipped > 5 or loss == "sigmoid"
    # Rounding of sixty sums.
    np.testing.assert_allclose(ClippedGradient(problem, 0.7, 60).at(theta), total / 60, atol=1e-14)


def test_without_a_row_to_clip_the_average_is_the_gradient() -> None:
    problem = model().problem
    theta = np.full(8, 0.1)
    np.testing.assert_allclose(
        ClippedGradient(problem, 1e6, problem.rows).at(theta), problem.gradient(problem.predictions(theta)), atol=1e-14
    )


def test_a_row_of_zeros_has_no_limit_and_no_gradient() -> None:
    assert clipped_slopes(np.array([-3.0]), row_norms(np.zeros((1, 4))), 1.0)[0] == -3.0


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("row", "label"), [(1e-200, 1e300), (1e200, 1.0), (1e308, -1e308), (5e-324, 1e308), (0.0, 1.0)]
)
def test_a_row_at_the_ends_of_the_doubles_counts_no_more_than_the_clip(row: float, label: float, sparse: bool) -> None:
    x = np.array([[row, -row, row], [0.0, 0.0, 0.0]])
    problem = ISTDP(sp.csr_array(x) if sparse else x, [label, 0.0], loss="squared", allow_constant=True).problem
    for theta in (np.zeros(3), np.array([1e5, 1e5, -1e5])):
        average = ClippedGradient(problem, 1.0, 1).at(theta)
        assert np.isfinite(average).all()
        assert np.linalg.norm(average) <= 1.0 + 1e-12


def test_thousands_of_rows_and_none_are_summed_in_blocks() -> None:
    random = np.random.default_rng(0)
    rows, weights = random.normal(size=(2500, 3)), random.normal(size=2500)
    np.testing.assert_allclose(summed(row_blocks(rows), weights), weights @ rows, atol=1e-11)
    assert summed(row_blocks(rows[:0]), weights[:0]).tolist() == [0.0, 0.0, 0.0]


def test_a_row_s_weighted_gradient_is_clipped() -> None:
    x, y = data(40, 3, seed=5)
    problem, theta, weights = ISTDP(x, y).problem, np.array([0.3, -0.2, 0.1]), np.linspace(0.0, 4.0, 40)
    own = weights[:, None] * problem.loss.gradient(x @ theta, y)[:, None] * x
    clipped = own * np.minimum(1.0, 0.7 / np.maximum(np.linalg.norm(own, axis=1), 1e-300))[:, None]
    found = ClippedGradient(problem, 0.7, 40, weights).at(theta)
    np.testing.assert_allclose(found, clipped.sum(axis=0) / 40, atol=1e-14)


@pytest.mark.parametrize(("adjacency", "most"), [("replace-one", 1), ("add-remove", 4)])
@pytest.mark.parametrize(("divisor", "columns"), [(40, 3), (5000, 3), (40, 200)])
def test_a_sensitivity_allows_for_the_rounding_of_two_sums_and_little_more(
    adjacency: str, most: int, divisor: int, columns: int
) -> None:
    problem = ISTDP(np.ones((2, columns)), [-1.0, 1.0], allow_constant=True).problem
    clip, rows = 2.0**-4, most * divisor
    found = ClippedGradient(problem, clip, divisor).sensitivity(adjacency)
    # A term goes through the sum of its block, the sum of the blocks, its norm and at least eight more operations.
    operations = min(rows, 1024) + rows // 1024 + columns + 8
    least = 2.0 * operations * 2.0**-53 * rows / divisor * clip
    left = found - ADJACENCIES[adjacency] * clip / divisor
    # The difference loses digits: the unit of the whole is the last one of its size.
    assert least - np.spacing(found) <= left <= 1.2 * least + np.spacing(found)


@pytest.mark.grid(every=3)
@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_no_random_neighbour_moves_the_average_further_than_the_sensitivity(loss: str, adjacency: str) -> None:
    random = np.random.default_rng(3)
    x, y = data(6, 3, seed=4)
    x *= 10.0
    largest, ours = 0.0, ClippedGradient(ISTDP(x, y, loss=loss, allow_constant=True).problem, 0.5, 6)
    bound = ours.sensitivity(adjacency)
    for _ in range(1500):
        theta = random.normal(size=3) * random.choice([0.0, 1.0, 30.0])
        which, row = random.integers(6), random.standard_t(1, size=3)
        other, labels = x.copy(), y.copy()
        other[which], labels[which] = row, random.choice([-1.0, 1.0])
        if adjacency == "add-remove":
            other, labels = np.delete(x, which, axis=0), np.delete(y, which)
        theirs = ClippedGradient(ISTDP(other, labels, loss=loss, allow_constant=True).problem, 0.5, 6)
        moved = float(np.linalg.norm(ours.at(theta) - theirs.at(theta)))
        assert moved <= bound * (1.0 + 1e-12)
        largest = max(largest, moved / bound)
    # The bound is no idle one.
    assert largest > 0.95


@pytest.mark.parametrize("step", ["lipschitz", "noisy-bb"])
@pytest.mark.parametrize(("adjacency", "size"), [("replace-one", 2.0), ("add-remove", 1.0)])
def test_the_accounting_is_the_budget_asked_for(step: str, adjacency: str, size: float) -> None:
    public = {"public_rows": 200} if adjacency == "add-remove" else {}
    options = {"max_iter": 12, "clip": 0.5, "step": step, "adjacency": adjacency, **public}
    run = model().solve_private(epsilon=EPSILON, delta=DELTA, noise_seed=0, **options)
    # Inverting the formula and back loses 1e-8 at most, and never on the wrong side.
    assert EPSILON * (1 - 1e-8) <= run.accounting.epsilon <= EPSILON
    assert (run.accounting.delta, run.accounting.releases) == (DELTA, 12)
    # The grid, and what rounding may do to a sum of 200 rows, cost less than a part of 2^-12.
    exact = np.sqrt(12) * size * 0.5 / 200 / run.settings.noise_scale
    assert exact < run.accounting.mu < exact * (1.0 + 2.0**-11)
    assert ("replaced" if adjacency == "replace-one" else "added or removed") in run.accounting.neighbours


def test_a_public_divisor_takes_the_place_of_n() -> None:
    run = model().solve_private(
        epsilon=EPSILON, delta=DELTA, max_iter=20, adjacency="add-remove", public_rows=1000, noise_seed=0
    )
    own = model().solve_private(epsilon=EPSILON, delta=DELTA, max_iter=20, noise_seed=0)
    # n = 200, and one row added or removed moves the sum half as much as one replaced.
    assert run.settings.noise_scale == pytest.approx(own.settings.noise_scale / 10.0, rel=1e-3)
    assert "divisor 1000 public" in run.accounting.neighbours


@pytest.mark.filterwarnings("default:noise_seed makes")
def test_a_seed_repeats_the_run_and_warns() -> None:
    with pytest.warns(PrivacyWarning, match="noise_seed makes the privacy noise repeatable"):
        first, again, other = (
            model().solve_private(epsilon=EPSILON, delta=DELTA, noise_seed=seed) for seed in (1, 1, 2)
        )
    np.testing.assert_array_equal(first.theta, again.theta)
    assert not np.array_equal(first.theta, other.theta)
    assert not first.accounting.secure


def test_without_a_seed_the_noise_is_secure_fresh_and_silent() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, other = (model().solve_private(epsilon=2.0 * EPSILON, delta=DELTA) for _ in range(2))
    assert first.accounting.secure
    assert not np.array_equal(first.theta, other.theta)


@pytest.mark.parametrize("algorithm", ["istdp", "gradient-descent"])
@pytest.mark.parametrize("step", ["lipschitz", "noisy-bb"])
def test_one_step_draws_and_all_others_are_public(step: str, algorithm: str) -> None:
    problem = model(penalty="l2:0.1").problem
    average, noise = ClippedGradient(problem, 1.0, problem.rows), GaussianNoise(0.01, 0.1, problem.size)
    loop = private_loop(average, settings(step=step, method=algorithm), noise)
    assert isinstance(loop.body, Sweep)
    draw, *others = loop.body.steps
    assert isinstance(draw, Draw)
    assert draw.writes == {"noisy"}
    assert [type(part) for part in others] == [Public] * 3


@pytest.mark.parametrize("algorithm", ["istdp", "gradient-descent"])
@pytest.mark.parametrize("step", ["lipschitz", "noisy-bb"])
@pytest.mark.parametrize("output", ["last", "average"])
def test_from_the_same_releases_other_data_give_the_same_run(
    step: str, output: str, algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ClippedGradient, "at", lambda self, theta: 0.3 * theta - 0.1)
    options = {"method": algorithm, "step": step, "output": output}
    runs = [
        model(seed=seed, penalty="l2:0.1").solve_private(epsilon=EPSILON, delta=DELTA, noise_seed=5, **options)
        for seed in (0, 1)
    ]
    np.testing.assert_array_equal(runs[0].theta, runs[1].theta)
    assert runs[0].history.equals(runs[1].history)


@pytest.mark.parametrize("step", ["lipschitz", "noisy-bb"])
def test_no_step_is_longer_than_the_public_limit(step: str) -> None:
    run = model(penalty="l1:0.01").solve_private(epsilon=EPSILON, delta=DELTA, step=step, noise_seed=0)
    assert run.settings.step_limit == 4.0  # 1 / (1/4 * 1)
    assert (run.history["step"] <= 4.0).all()
    assert (run.history["step"] >= 0.4).all()
    assert run.history["step"].nunique() == 1 or step == "noisy-bb"


def test_the_greatest_step_is_no_fact_about_the_data() -> None:
    assert public_step_limit(model(seed=0).problem, 1.0) == public_step_limit(model(seed=1).problem, 1.0) == 4.0
    assert public_step_limit(model().problem, row_bound=2.0) == 1.0


def test_the_average_is_that_of_the_second_half(monkeypatch: pytest.MonkeyPatch) -> None:
    # Noise off: iterate k of theta+ = theta + 1, prox of no penalty, is k.
    monkeypatch.setattr(GaussianNoise, "release", lambda self, query, noise: query)
    monkeypatch.setattr(ClippedGradient, "at", lambda self, theta: -np.ones_like(theta))
    options: dict[str, Any] = {"max_iter": 5, "row_bound": 2.0, "noise_seed": 0}
    one = model(penalty="l1:0")
    np.testing.assert_allclose(one.solve_private(epsilon=EPSILON, delta=DELTA, **options).theta, 5.0)
    np.testing.assert_allclose(
        one.solve_private(epsilon=EPSILON, delta=DELTA, output="average", **options).theta, 4.0
    )  # 3, 4, 5


def test_with_a_large_budget_the_private_point_is_the_stationary_one() -> None:
    x, y = data(300, 4, seed=6)
    x /= np.maximum(1.0, np.linalg.norm(x, axis=1))[:, None]
    problem = ISTDP(x, y, penalty="l1:0.01")
    run = problem.solve_private(epsilon=1e5, delta=0.1, max_iter=400, noise_seed=0)
    # Noise of 3e-4 a step of 4, against a curvature of some .05.
    np.testing.assert_allclose(run.coefficients, problem.solve().coefficients, atol=0.02)


def test_a_run_predicts_with_names_intercept_and_classes() -> None:
    x, y = data(80, 3, seed=7)
    run = ISTDP(
        sp.csr_array(x), (y + 1) / 2, penalty="l1:0.01", intercept=True, schema=PublicSchema(classes=(0.0, 1.0))
    ).solve_private(epsilon=5.0, delta=DELTA, noise_seed=0)
    assert isinstance(run, PrivateSparseRun)
    assert (run.coefficients.size, run.intercept) == (3, run.theta[-1])
    assert set(run.predict(x)) <= {0.0, 1.0}
    np.testing.assert_allclose(run.predict_proba(x).sum(axis=1), 1.0)
    assert list(run.history.columns) == ["iteration", "step", "noisy_gradient", "support"]
    assert run.support.size == run.history["support"].iloc[-1]


class TestPrinted:
    """Algorithm 1 as printed: it warns, claims nothing, and cannot be built of public steps."""

    def test_it_warns_and_no_claim_holds(self) -> None:
        with pytest.warns(PrivacyWarning, match="reads the clean gradient and its line search the clean"):
            run = model().solve_private(epsilon=EPSILON, delta=DELTA, method="printed", max_iter=5, noise_seed=0)
        assert not any(claim.holds for claim in run.accounting.claims)
        with pytest.raises(PrivacyError, match="no rule holds"):
            _ = run.accounting.epsilon
        assert len(run.history) == 5
        assert np.isfinite(run.theta).all()

    def test_its_step_length_is_caught_by_the_public_check(self) -> None:
        with pytest.raises(PrivacyError, match="'step 1.2' reads clean, last_clean, which was not released"):
            Public(printed.clean_step(), PUBLIC)

    @pytest.mark.parametrize("algorithm", ["istdp", "gradient-descent"])
    @pytest.mark.parametrize("replaced", ["_step", "_move"])
    def test_a_step_that_says_it_reads_clean_data_cannot_be_built(
        self, replaced: str, algorithm: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(noisy_descent, replaced, lambda chosen: printed.clean_step())
        with pytest.raises(PrivacyError, match="reads clean, last_clean, which was not released"):
            model(penalty="l2:0.1").solve_private(epsilon=EPSILON, delta=DELTA, method=algorithm, noise_seed=0)

    @pytest.mark.parametrize("algorithm", ["istdp", "gradient-descent"])
    def test_a_step_that_hides_what_it_reads_is_caught_when_it_runs(
        self, algorithm: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def peek(chosen: PrivateSettings) -> Update:
            return Update("step", printed.clean_step().fn, frozenset({"theta", "last_theta"}), frozenset({"step"}))

        monkeypatch.setattr(noisy_descent, "_step", peek)
        with pytest.raises(PrivacyError, match="'step' reads clean, which it does not declare"):
            model(penalty="l2:0.1").solve_private(epsilon=EPSILON, delta=DELTA, method=algorithm, noise_seed=0)


class TestAudit:
    """Two rows of one column, one of them replaced by its opposite."""

    RUNS = (100, pytest.param(300, marks=pytest.mark.slow))

    @staticmethod
    def found(runs: int) -> float:
        def mechanism(labels: Array) -> Array:
            one = ISTDP(np.ones((2, 1)), labels, penalty="l2:0", allow_constant=True)
            return one.solve_private(epsilon=EPSILON, delta=DELTA, max_iter=2, clip=0.25, row_bound=1.0).coefficients

        neighbours = np.array([1.0, 1.0]), np.array([1.0, -1.0])
        return audit(mechanism, *neighbours, delta=DELTA, runs=runs, confidence=0.9999).epsilon

    @pytest.mark.parametrize("runs", RUNS)
    def test_the_private_algorithm_stays_below_its_epsilon(self, runs: int) -> None:
        assert self.found(runs) <= EPSILON

    @pytest.mark.parametrize("runs", RUNS)
    def test_the_same_audit_refutes_noise_that_is_too_small(self, monkeypatch: pytest.MonkeyPatch, runs: int) -> None:
        monkeypatch.setattr(GaussianNoise, "scale", property(lambda self: self.sensitivity / self.mu / 16.0))
        assert self.found(runs) > EPSILON


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"clip": None}, PrivacyError, "clip is missing"),
        ({"clip": 0.0}, PrivacyError, "clip=0.0 is not a finite number > 0"),
        ({"clip": np.inf}, PrivacyError, "clip=inf is not a finite number > 0"),
        ({"epsilon": 0.0}, PrivacyError, "epsilon=0.0 is not a finite number > 0"),
        ({"epsilon": np.nan}, PrivacyError, "epsilon=nan is not a finite number > 0"),
        ({"delta": 1.0}, PrivacyError, "delta=1.0 is not a finite number > 0 and < 1"),
        ({"delta": 0.0}, PrivacyError, "delta=0.0 is not a finite number > 0 and < 1"),
        ({"epsilon": None}, PrivacyError, "needs both"),
        ({"delta": None}, PrivacyError, "needs both"),
        ({"max_iter": 0}, ModelError, "max_iter=0 is not a whole number >= 1"),
        ({"max_iter": 2.5}, ModelError, "max_iter=2.5 is not a whole number >= 1"),
        ({"row_bound": -1.0}, PrivacyError, "row_bound=-1.0 is not a finite number > 0"),
        ({"public_rows": 100}, PrivacyError, "public_rows=100 is for adjacency='add-remove'"),
        ({"public_rows": 1, "adjacency": "add-remove"}, PrivacyError, "public_rows=1 is not a whole number >= 2"),
        ({"noise_seed": -1}, PrivacyError, "noise_seed=-1 is not a whole number >= 0"),
        ({"step": "bb1"}, ModelError, "step='bb1' is not known"),
        ({"adjacency": "replace"}, PrivacyError, "did you mean 'replace-one'"),
        ({"method": "gist"}, ModelError, "method='gist' is not known"),
        ({"output": "best"}, ModelError, "output='best' is not known"),
    ],
)
def test_bad_options_are_refused_before_anything_is_read(
    options: dict[str, Any], error: type[Exception], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(self: ClippedGradient, theta: Array) -> Array:
        raise AssertionError("the data were read")

    one = model()
    monkeypatch.setattr(ClippedGradient, "at", read)
    with pytest.raises(error, match=message):
        one.solve_private(**{"epsilon": EPSILON, "delta": DELTA, **options})


def test_a_loss_of_unbounded_slope_needs_a_public_row_bound() -> None:
    one = model(loss="squared", penalty="l1:0.01")
    with pytest.raises(PrivacyError, match="row_bound is missing.*slope of loss='squared'"):
        one.solve_private(epsilon=EPSILON, delta=DELTA)
    assert one.solve_private(epsilon=EPSILON, delta=DELTA, row_bound=2.0, noise_seed=0).settings.step_limit == 0.25


def test_penalised_constants_are_kept_where_asked_and_the_intercept_is_not_penalised() -> None:
    x, y = data(200, 2, seed=8)
    x[:, 0] = 1.0
    run = ISTDP(x, y, penalty="l1:50", intercept=True, allow_constant=True).solve_private(
        epsilon=EPSILON, delta=DELTA, noise_seed=0
    )
    assert run.support.size == 0
    assert run.intercept != 0.0
