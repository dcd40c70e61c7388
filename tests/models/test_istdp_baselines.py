"""The private baselines: gradient descent, output perturbation, objective perturbation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from cvxpriv_models.istdp import ISTDP, objective_perturbation, output_perturbation
from cvxpriv_models.istdp.objective_perturbation import spend
from cvxpriv_models.istdp.output_perturbation import minimiser_sensitivity
from cvxpriv_models.istdp.problem import Problem
from scipy.special import expit

from cvxpriv.errors import ModelError, PrivacyError
from cvxpriv.learning.matrices import row_norms, shortened
from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties import ElasticNet
from cvxpriv.privacy import BallNoise, GaussianNoise, Noise, audit, gaussian_mu

pytestmark = pytest.mark.filterwarnings("ignore:noise_seed makes", "ignore:privacy is likely to drown")

EPSILON, DELTA = 1.0, 1e-5
PERTURBATIONS = ("output-perturbation", "objective-perturbation")


def data(rows: int = 200, columns: int = 4, seed: int = 0) -> tuple[Array, Array]:
    """Rows of norm up to 1, and labels that follow the first two columns."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, columns))
    x /= np.maximum(1.0, np.linalg.norm(x, axis=1))[:, None]
    return x, np.where(random.uniform(size=rows) < expit(4.0 * (x[:, 0] - x[:, 1])), 1.0, -1.0)


def model(penalty: str = "l2:0.05", **options: Any) -> ISTDP:
    return ISTDP(*data(), penalty=penalty, allow_constant=True, **options)


def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the noise away, so that what it is added to can be seen."""
    for kind in (GaussianNoise, BallNoise):
        monkeypatch.setattr(kind, "release", lambda self, query, noise: query)
    monkeypatch.setattr(Noise, "gamma_ball", lambda self, dimension, rate, count: np.zeros((count, dimension)))


@pytest.mark.parametrize("sparse", [False, True])
def test_long_rows_are_shortened_to_the_bound_and_short_ones_are_left(sparse: bool) -> None:
    x = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    short = shortened(sp.csr_array(x) if sparse else x, 1.0)
    dense = short if isinstance(short, np.ndarray) else short.toarray()
    np.testing.assert_allclose(dense, [[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]], rtol=1e-15)


@pytest.mark.parametrize("algorithm", PERTURBATIONS)
def test_without_noise_a_perturbation_is_the_minimiser(algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    silent(monkeypatch)
    found = model().solve_private(epsilon=EPSILON, delta=DELTA, method=algorithm).coefficients
    # Two algorithms of their own, to 1e-10 and to 1e-12; the curvature is at least .05.
    np.testing.assert_allclose(found, model().solve(tol=1e-12).coefficients, atol=1e-8)


def test_without_noise_gradient_descent_is_the_minimiser(monkeypatch: pytest.MonkeyPatch) -> None:
    silent(monkeypatch)
    run = model().solve_private(epsilon=EPSILON, delta=DELTA, method="gradient-descent", max_iter=300)
    np.testing.assert_allclose(run.coefficients, model().solve(tol=1e-12).coefficients, atol=1e-8)  # .8^300
    assert run.settings.step_limit == pytest.approx(1.0 / (0.25 + 0.05))


def test_a_dense_and_a_sparse_design_have_the_same_objective_perturbation(monkeypatch: pytest.MonkeyPatch) -> None:
    silent(monkeypatch)
    x, y = data()
    both = [ISTDP(one, y, penalty="l2:0.05") for one in (x, sp.csr_array(x))]
    found = [one.solve_private(epsilon=EPSILON, delta=DELTA, method="objective-perturbation").theta for one in both]
    np.testing.assert_allclose(found[0], found[1], atol=1e-11)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("penalty", ["l2:0.05", "elastic-net:0.06:0.2"])
def test_no_random_neighbour_moves_the_minimiser_further_than_the_sensitivity(adjacency: str, penalty: str) -> None:
    random = np.random.default_rng(1)
    x, y = data(8, 2)
    largest = 0.0
    for _ in range(25):
        row = random.normal(size=2)
        x[0] = -row * 3.0  # longer than the bound
        other, labels = x.copy(), y.copy()
        other[0], labels[0] = row / np.linalg.norm(row), -y[0]
        if adjacency == "add-remove":
            other, labels = x[1:], y[1:]
        problems = [ISTDP(a, b, penalty=penalty, allow_constant=True).problem for a, b in ((x, y), (other, labels))]
        points = [output_perturbation._minimiser(problem, 1.0, 8) for problem in problems]
        moved = float(np.linalg.norm(points[0] - points[1]))
        bound = minimiser_sensitivity(problems[0], 1.0, adjacency, 8)
        assert moved <= bound
        largest = max(largest, moved / bound)
    assert largest > 0.05  # the bound takes rows of slope 1, and these have about a half


def test_one_row_far_on_the_wrong_side_reaches_the_sensitivity() -> None:
    # lam = 10 keeps theta at 0, where the slope of the smoothed hinge is 1: both sides move it by 1/(n lam).
    both = [
        ISTDP(np.ones((2, 1)), labels, loss="smoothed-hinge", penalty="l2:10", allow_constant=True).problem
        for labels in ([1.0, 1.0], [1.0, -1.0])
    ]
    points = [output_perturbation._minimiser(problem, 1.0, 2)[0] for problem in both]
    assert abs(points[0] - points[1]) == pytest.approx(minimiser_sensitivity(both[0], 1.0, "replace-one", 2))


def test_output_perturbation_has_the_exact_gaussian_accounting() -> None:
    one = model()
    run = one.solve_private(epsilon=EPSILON, delta=DELTA, method="output-perturbation", noise_seed=0)
    sensitivity = minimiser_sensitivity(one.problem, 1.0, "replace-one", 200)
    assert sensitivity == pytest.approx(2.0 / (200 * 0.05), rel=1e-6)  # 2 L / (n Lambda)
    exact = sensitivity / gaussian_mu(EPSILON, DELTA)
    assert exact < run.settings.noise_scale < exact * (1.0 + 2.0**-12)  # the grid
    assert run.accounting.epsilon == pytest.approx(EPSILON, rel=1e-8)
    assert run.accounting.releases == 1


def test_objective_perturbation_is_pure() -> None:
    run = model().solve_private(epsilon=EPSILON, delta=DELTA, method="objective-perturbation", noise_seed=0)
    assert (run.accounting.epsilon, run.accounting.delta) == (EPSILON, 0.0)


@pytest.mark.parametrize("epsilon", [1e-9, 0.01, 0.5, 3.0, 1e5])
@pytest.mark.parametrize("lam", [0.0, 1e-4, 0.1])
def test_epsilon_is_spent_whole_and_half_of_it_at_least_on_b(epsilon: float, lam: float) -> None:
    bend, moved = 0.25 / 100, 2.0
    spent = spend(epsilon, lam, bend, moved)
    if epsilon < 100.0:  # beyond, e^epsilon is no double
        assert spent.determinant == pytest.approx(np.log1p(bend / (lam + spent.more)), rel=1e-6)
    assert spent.rate * moved + spent.determinant == pytest.approx(epsilon, rel=1e-12)
    assert spent.rate * moved >= 0.5 * epsilon * (1.0 - 1e-12)
    assert spent.more >= 0.0


def log_density(x: Array, y: Array, lam: float, rate: float, grid: Array) -> Array:
    """Of the minimiser of (1/n) sum l + lam/2 theta^2 + b theta/n in one dimension, by change of variables."""
    margins = grid[:, None] * (x * y)
    b = (expit(-margins) * (x * y)).sum(axis=1) - x.size * lam * grid
    bend = (expit(margins) * expit(-margins) * x**2).sum(axis=1) + x.size * lam
    return np.asarray(-rate * np.abs(b) + np.log(bend) + np.log(rate / 2.0))


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_the_density_of_objective_perturbation_moves_by_at_most_epsilon(epsilon: float) -> None:
    random = np.random.default_rng(0)
    grid = np.linspace(-60.0, 60.0, 4001)
    largest = 0.0
    for _ in range(200):
        rows = int(random.integers(2, 6))
        lam = float(random.choice([1e-4, 0.01, 0.3]))
        x, y = random.uniform(-1.0, 1.0, rows), random.choice([-1.0, 1.0], rows)
        other, labels = x.copy(), y.copy()
        x[0], other[0], labels[0] = random.choice([-1.0, 0.0, 1.0]), random.choice([-1.0, 1.0]), -y[0]
        spent = spend(epsilon, lam, 0.25 / rows, 2.0)
        densities = [log_density(a, b, lam + spent.more, spent.rate, grid) for a, b in ((x, y), (other, labels))]
        ratio = float(np.abs(densities[0] - densities[1]).max())
        assert ratio <= epsilon * (1.0 + 1e-9)
        largest = max(largest, ratio / epsilon)
    # The bound is no idle one.
    assert largest > 0.4


class TestAudit:
    """Two rows of one column, one of them replaced by its opposite."""

    NEIGHBOURS = np.array([1.0, 1.0]), np.array([1.0, -1.0])

    @classmethod
    def found(cls, algorithm: str, runs: int) -> float:
        def mechanism(labels: Array) -> Array:
            one = ISTDP(np.ones((2, 1)), labels, penalty="l2:0.5", allow_constant=True)
            options = {"max_iter": 2} if algorithm == "gradient-descent" else {}
            return one.solve_private(epsilon=EPSILON, delta=DELTA, method=algorithm, clip=1.0, **options).coefficients

        return audit(mechanism, *cls.NEIGHBOURS, delta=DELTA, runs=runs, confidence=0.999).epsilon

    @pytest.mark.parametrize("runs", [80, pytest.param(160, marks=pytest.mark.slow)])
    @pytest.mark.parametrize("algorithm", ["gradient-descent", *PERTURBATIONS])
    def test_every_baseline_stays_below_its_epsilon(self, algorithm: str, runs: int) -> None:
        assert self.found(algorithm, runs) <= EPSILON

    @pytest.mark.slow
    def test_the_same_audit_refutes_noise_that_is_too_small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(GaussianNoise, "scale", property(lambda self: self.sensitivity / self.mu / 100.0))
        small = Noise.gamma_ball
        monkeypatch.setattr(Noise, "gamma_ball", lambda self, d, rate, count: small(self, d, 100.0 * rate, count))
        for algorithm in ("gradient-descent", *PERTURBATIONS):
            assert self.found(algorithm, 160) > EPSILON


@pytest.mark.parametrize(
    ("algorithm", "options", "error", "message"),
    [
        ("objective-perturbation", {"penalty": "mcp:0.1:3"}, ModelError, "has no gradient at 0.*'l2:<lam>'"),
        ("objective-perturbation", {"penalty": "elastic-net:0.1:0.5"}, ModelError, "has no gradient at 0"),
        ("objective-perturbation", {"loss": "smoothed-hinge"}, ModelError, "convex and twice differentiable"),
        ("objective-perturbation", {"loss": "sigmoid"}, ModelError, "convex and twice differentiable"),
        ("objective-perturbation", {"intercept": True}, ModelError, "append a column of ones"),
        ("output-perturbation", {"penalty": "mcp:0.1:3"}, ModelError, "is not strongly convex"),
        ("output-perturbation", {"penalty": "l1:0.1"}, ModelError, "is not strongly convex"),
        ("output-perturbation", {"penalty": "l2:0"}, ModelError, "is not strongly convex"),
        ("output-perturbation", {"penalty": "auto"}, ModelError, "is not strongly convex"),
        ("output-perturbation", {"loss": "sigmoid"}, ModelError, "not convex with a bounded slope"),
        ("output-perturbation", {"intercept": True}, ModelError, "append a column of ones"),
        ("gradient-descent", {"penalty": "l1:0.1"}, ModelError, "has no gradient at 0"),
    ],
)
def test_what_the_analysis_does_not_cover_is_refused(
    algorithm: str, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        model(**options).solve_private(epsilon=EPSILON, delta=DELTA, method=algorithm)


@pytest.mark.slow
def test_an_inexact_solve_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objective_perturbation, "STEPS", 1)
    with pytest.raises(PrivacyError, match="J was not solved exactly enough"):
        model().solve_private(epsilon=EPSILON, delta=DELTA, method="objective-perturbation")
    monkeypatch.setattr(output_perturbation, "TOLERANCE", 1e-30)
    with pytest.raises(PrivacyError, match="the minimiser was not found to"):
        model().solve_private(epsilon=EPSILON, delta=DELTA, method="output-perturbation")


@pytest.mark.parametrize("algorithm", PERTURBATIONS)
def test_a_single_release_takes_no_iterations(algorithm: str) -> None:
    with pytest.raises(PrivacyError, match="max_iter=50.*releases once"):
        model().solve_private(epsilon=EPSILON, delta=DELTA, method=algorithm, max_iter=50)


@pytest.mark.parametrize("algorithm", [*PERTURBATIONS, "gradient-descent"])
def test_a_saved_baseline_reads_back(algorithm: str, tmp_path: Any) -> None:
    run = model().solve_private(epsilon=EPSILON, delta=DELTA, method=algorithm, noise_seed=0)
    again = type(run).load(run.save(tmp_path / "run.json"))
    np.testing.assert_array_equal(again.theta, run.theta)
    assert again.accounting == run.accounting
    with pytest.raises(ModelError, match="releases no proximal problem"):
        run.certify()


def test_the_rows_that_count_are_the_shortened_ones() -> None:
    x, y = data()
    problem: Problem = ISTDP(100.0 * x, y, penalty="l2:0.05").problem
    assert row_norms(shortened(problem.design, 1.0)).max() <= 1.0 + 1e-12
    assert isinstance(problem.penalty, ElasticNet)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("algorithm", PERTURBATIONS)
def test_rows_at_the_end_of_the_doubles_are_shortened_or_left_out_in_silence(algorithm: str) -> None:
    x, y = data()
    run = ISTDP(x * 1e308, y, penalty="l2:1", allow_constant=True).solve_private(
        epsilon=EPSILON, delta=DELTA, method=algorithm
    )
    assert np.isfinite(run.theta).all()
