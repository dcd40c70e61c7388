"""What ISTDP prints and what is right: for each line the printed form fails and the corrected one holds.

The formulas as printed stand here and nowhere in the product.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from cvxpriv_models.istdp import ISTDP
from cvxpriv_models.istdp.closed_form import allowed_height, barzilai_borwein
from cvxpriv_models.istdp.gist import STEPS, gist, initial_state
from cvxpriv_models.istdp.printed import printed_noise
from scipy.special import expit

from cvxpriv.blocks.engines import ClosedForm
from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties import MCP, loss_named
from cvxpriv.penalties.proximal import CONVEX, proximal, proximal_block
from cvxpriv.privacy import GaussianNoise, PrivacyWarning, gaussian_mu
from cvxpriv.schedules.history import Context, History
from cvxpriv.schedules.running import run as run_schedule
from tests.models.istdp_cases import correlated


class TestStep:
    """ISTDP Algorithm 1, step 1.2: dtheta'dtheta / dg'dg, where section 2 has dtheta'dtheta / dtheta'dg."""

    def test_the_printed_length_is_the_square_of_one(self) -> None:
        moved = np.array([1.0, -2.0])
        for curvature in (0.1, 10.0):
            turned = curvature * moved
            printed = (moved @ moved) / (turned @ turned)
            assert printed == pytest.approx(1.0 / curvature**2)
            assert barzilai_borwein(moved, turned)[0] == pytest.approx(1.0 / curvature)

    def test_the_printed_length_needs_several_times_the_proximal_steps(self, monkeypatch: pytest.MonkeyPatch) -> None:
        # BB1 BB2 = dtheta'dtheta / dg'dg.
        monkeypatch.setitem(STEPS, "printed", lambda first, second, passes: first * second)
        x, y, _ = correlated(200, 50, 0.6, seed=0)
        problem = ISTDP(3.0 * x, y, loss="squared", penalty=MCP(0.1)).problem
        count = {}
        for step in ("bb1", "printed"):
            context = Context(ClosedForm(), History())
            start = initial_state(problem, np.zeros(problem.size))
            run_schedule(gist(problem, step, tol=1e-8, limit=3000), start, context)
            count[step] = int((context.history.frame(0)["block"] == "prox").sum())
        assert count["printed"] > 4 * count["bb1"]


def printed_prox(s: float, lam: float, alpha: float, gamma: float) -> float:
    """ISTDP, t(s) below (4)."""
    size, end = abs(s), alpha * lam

    def near(t: float) -> float:
        return 0.5 * (t - size) ** 2 + lam * gamma * t - t**2 / (2.0 * alpha)

    def far(t: float) -> float:
        return 0.5 * (t - size) ** 2 + alpha * (lam * gamma) ** 2 / 2.0

    inner = min(end, max(0.0, alpha * (size - gamma * lam) / (alpha - 1.0)))
    first, second = min((0.0, end, inner), key=near), max(end, size)
    return float(np.sign(s) * (first if near(first) <= far(second) else second))


def height(t: float, s: float, penalty: MCP, gamma: float) -> float:
    return 0.5 * (t - s) ** 2 + gamma * penalty.value(np.array([t]))


class TestProx:
    """ISTDP, t_1, t_2 and the set C below (4): gamma is missing from h_1 and C, and squared in h_2."""

    def test_the_printed_step_misses_the_case_of_the_list(self) -> None:
        assert printed_prox(0.5, lam=1.0, alpha=3.0, gamma=0.1) == pytest.approx(0.6)
        right = MCP(1.0, 3.0).prox(np.array([0.5]), 0.1)[0]
        assert right == pytest.approx(0.4138, abs=1e-4)
        grid = np.linspace(0.0, 1.0, 100_001)
        lowest = grid[np.argmin([height(t, 0.5, MCP(1.0, 3.0), 0.1) for t in grid])]
        assert right == pytest.approx(lowest, abs=1e-5)  # the grid's cell

    @pytest.mark.parametrize("gamma", [0.2, 0.7, 1.5, 4.0])
    def test_the_printed_step_is_higher_in_many_cases(self, gamma: float) -> None:
        random = np.random.default_rng(0)
        missed = 0
        for s in 3.0 * random.normal(size=400):
            penalty = MCP(random.uniform(0.2, 2.0), random.uniform(1.1, 5.0))
            printed = printed_prox(s, penalty.lam, penalty.alpha, gamma)
            right = penalty.prox(np.array([s]), gamma)[0]
            gap = height(printed, s, penalty, gamma) - height(right, s, penalty, gamma)
            assert gap > -1e-12
            missed += gap > 1e-9
        assert missed > 40

    def test_the_printed_step_is_right_for_gamma_1(self) -> None:
        for s in np.linspace(-5.0, 5.0, 201):
            printed, right = printed_prox(s, 1.0, 3.0, 1.0), MCP(1.0, 3.0).prox(np.array([s]), 1.0)[0]
            assert height(printed, s, MCP(1.0, 3.0), 1.0) == pytest.approx(
                height(right, s, MCP(1.0, 3.0), 1.0), abs=1e-14
            )


class TestConvexity:
    """The paper calls the subproblem non-convex; up to gamma = alpha it is convex, and DCP once rewritten."""

    LAM, ALPHA = 0.7, 2.5

    def test_as_it_stands_the_convex_subproblem_is_not_dcp(self) -> None:
        t = cp.Variable()
        gamma = 0.5
        near = 0.5 * cp.square(t - 1.0) + gamma * (self.LAM * cp.abs(t) - cp.square(t) / (2 * self.ALPHA))
        assert not near.is_dcp()

    @pytest.mark.parametrize("gamma", [0.1, 1.0, 2.5])
    def test_the_rewritten_objective_is_the_same_function_and_dpp(self, gamma: float) -> None:
        penalty = MCP(self.LAM, self.ALPHA)
        block = proximal_block(penalty, 1)
        declared = block.declaration(CONVEX)
        assert declared.problem.is_dcp(dpp=True)
        for name, value in block.parameters({"center": np.zeros(1), "step": np.asarray(gamma)}).items():
            declared.parameters[name].value = value
        t, expression = declared.variables["t"], declared.problem.objective
        for point in np.linspace(-4.0, 4.0, 81):
            t.value = np.array([point])
            # ERRATA: identity to 3e-14.
            assert expression.value == pytest.approx(0.5 * point**2 + gamma * penalty.value(t.value), abs=3e-14)

    def test_the_curvature_is_not_negative_up_to_gamma_equal_to_alpha_and_negative_beyond(self) -> None:
        t = np.linspace(-3.0, 3.0, 1201)
        penalty = MCP(self.LAM, self.ALPHA)

        def bend(gamma: float) -> float:
            return float(np.diff(0.5 * t**2 + gamma * penalty.terms(t), 2).min())

        assert bend(self.ALPHA) > -1e-12
        assert bend(1.1 * self.ALPHA) < -1e-6


class TestLineSearchUnits:
    """ISTDP (5): beta alpha_k / 2 ||.||^2, a step where its inverse belongs."""

    @staticmethod
    def descent(curvature: float) -> tuple[Array, float, float]:
        """The move, fall and length of the exact minimising step on (curvature/2) theta^2 from 1."""
        return np.array([-1.0]), 0.5 * curvature, 1.0 / curvature

    def test_the_printed_test_refuses_the_best_step_of_a_flat_loss(self) -> None:
        beta = 0.1
        moved, fall, step = self.descent(curvature=0.01)
        assert fall < beta * step / 2.0 * float(moved @ moved)
        assert -fall <= allowed_height(np.zeros(1), beta, step, moved)

    def test_the_corrected_test_takes_the_best_step_at_any_curvature(self) -> None:
        for curvature in (1e-6, 1.0, 1e6):
            moved, fall, step = self.descent(curvature)
            assert -fall <= allowed_height(np.zeros(1), 0.9, step, moved)


class Noisy:
    """MCP of small weight on logistic data, its stationary point, and proximal steps along gradients with noise."""

    SIGMA, COLUMNS = 0.5, 20

    def __init__(self) -> None:
        x, y, _ = correlated(300, self.COLUMNS, 0.3, seed=0, kind="logistic")
        self.model = ISTDP(x, y, penalty=MCP(0.01, 30.0))
        self.problem = self.model.problem
        self.best = self.model.solve(tol=1e-12)
        self.random = np.random.default_rng(1)

    def after(self, theta: Array, step: float) -> tuple[Array, Array]:
        """The point after one step, and its noise."""
        noise = self.SIGMA * self.random.normal(size=self.COLUMNS)
        gradient = self.problem.gradient(self.problem.predictions(theta))
        return proximal(self.problem.penalty, theta - step * (gradient + noise), step, self.COLUMNS), noise


class TestLineSearchUnderNoise:
    """ISTDP (5), Lemma 3.2 and (11): noise turns the step its own way, and no step passes near a solution."""

    @pytest.mark.parametrize("step", [0.1, 1e-3])
    def test_noise_and_the_step_it_causes_point_apart(self, step: float) -> None:
        noisy = Noisy()
        theta = noisy.best.theta
        products = []
        for _ in range(4000):
            trial, noise = noisy.after(theta, step)
            products.append(noise @ (trial - theta))
        # The proof of Lemma 3.2 takes E<b, theta+ - theta> >= 0; it is -step sigma^2 for each coordinate that moves.
        # Noise of .5 moves all of them against a weight of .01.
        expected = -step * noisy.SIGMA**2 * noisy.COLUMNS
        assert np.mean(products) == pytest.approx(expected, rel=0.05)  # 4000 draws, and the weight

    def test_at_a_solution_the_test_fails_at_every_step(self) -> None:
        noisy = Noisy()
        theta, height = noisy.best.theta, noisy.best.objective
        for step in np.logspace(-1, -7, 7):
            rises, moves = [], []
            for _ in range(200):
                trial, _ = noisy.after(theta, float(step))
                rises.append(noisy.problem.objective(trial) - height)
                moves.append(float((trial - theta) @ (trial - theta)))
            # Printed: beta step / 2 E||move||^2 of decrease; beta / (2 step) asks for more.
            assert np.mean(rises) > -1e-4 * step / 2.0 * np.mean(moves)


class TestFloor:
    """ISTDP Theorem 3.4: the excess of F would fall like 1/T for ever; noise of d sigma^2 a step does not."""

    STEP, ITERATIONS = 0.34, 20_000

    def test_the_excess_stays_above_the_printed_bound_and_at_the_size_that_the_noise_has(self) -> None:
        noisy = Noisy()
        theta, heights = np.eye(1, noisy.COLUMNS)[0], []
        away = theta - noisy.best.theta
        for iteration in range(self.ITERATIONS):
            theta, _ = noisy.after(theta, self.STEP)
            if iteration % 20 == 0 and iteration > 500:
                heights.append(noisy.problem.objective(theta))
        excess = np.mean(heights) - noisy.best.objective
        printed = away @ away / (2.0 * self.ITERATIONS * self.STEP)
        assert printed < 0.002
        # For a quadratic loss each coordinate has step sigma^2 / 4; this one is flatter far out, and the penalty adds.
        floor = noisy.COLUMNS * self.STEP * noisy.SIGMA**2 / 4.0
        assert excess > 100.0 * printed
        assert floor < excess < 2.0 * floor

    def test_half_the_noise_has_a_quarter_of_the_floor(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Noisy, "SIGMA", 0.25)
        noisy = Noisy()
        theta, heights = noisy.best.theta, []
        for iteration in range(3000):
            theta, _ = noisy.after(theta, self.STEP)
            heights.append(noisy.problem.objective(theta) if iteration > 500 else noisy.best.objective)
        excess = np.mean(heights[501:]) - noisy.best.objective
        assert excess == pytest.approx(noisy.COLUMNS * self.STEP * 0.25**2 / 4.0, rel=0.4)


class TestLeak:
    """ISTDP Theorem 3.3 counts the noisy gradient alone; steps 1.2 and 1.3.2 read the clean data."""

    @staticmethod
    def step(changed: bool) -> float:
        x = np.column_stack([np.zeros(200), np.linspace(-1.0, 1.0, 200)])
        if changed:
            x[0] = [1.0, 0.0]
        model = ISTDP(x, np.ones(200), penalty="l1:0.01", allow_constant=True)
        with pytest.warns(PrivacyWarning):
            run = model.solve_private(epsilon=1.0, delta=1e-5, method="printed", max_iter=1)
        return float(run.history["step"].iloc[0])

    def test_one_record_tells_itself_by_the_printed_step_whatever_the_noise(self) -> None:
        # ERRATA: 1e6 against 866; the second is n over the fall of the logistic slope from 0 to 1.
        assert {self.step(changed=False) for _ in range(3)} == {1e6}
        assert {round(self.step(changed=True), 6) for _ in range(3)} == {round(200 / (expit(1.0) - 0.5), 6)}
        assert self.step(changed=True) == pytest.approx(866.0, abs=1.0)

    def test_the_private_step_is_the_same_for_both(self) -> None:
        steps = []
        for first in (0.0, 1.0):
            x = np.column_stack([np.zeros(200), np.linspace(-1.0, 1.0, 200)])
            x[0] = [first, 0.0]
            model = ISTDP(x, np.ones(200), penalty="l1:0.01", allow_constant=True)
            steps.append(model.solve_private(epsilon=1.0, delta=1e-5, max_iter=1).history["step"].iloc[0])
        assert steps[0] == steps[1]


class TestSensitivity:
    """ISTDP Theorem 3.3: 2U for an average, which is n times too much; n = 1000, epsilon = 1, delta = 1e-5, T = 50."""

    ROWS, EPSILON, DELTA, ITERATIONS = 1000, 1.0, 1e-5, 50

    def test_the_noise_as_printed_and_right(self) -> None:
        as_printed = printed_noise(self.EPSILON, self.DELTA, self.ITERATIONS, 1.0)
        assert as_printed == pytest.approx(799.0, abs=0.5)
        exact = 2.0 / self.ROWS * np.sqrt(self.ITERATIONS) / gaussian_mu(self.EPSILON, self.DELTA)
        assert exact == pytest.approx(0.0528, abs=5e-5)
        # zCDP, rho + 2 sqrt(rho log(1/delta)) = epsilon.
        log = np.log(1.0 / self.DELTA)
        rho = (np.sqrt(log + self.EPSILON) - np.sqrt(log)) ** 2
        zcdp = 2.0 / self.ROWS * np.sqrt(self.ITERATIONS / (2.0 * rho))
        assert zcdp == pytest.approx(0.069, abs=5e-4)
        assert exact < zcdp < as_printed / self.ROWS

    def test_the_excess_objective_is_small_with_the_right_noise_only(self, monkeypatch: pytest.MonkeyPatch) -> None:
        random = np.random.default_rng(0)
        x = random.normal(size=(self.ROWS, 20))
        x /= np.linalg.norm(x, axis=1)[:, None]
        truth = np.concatenate([[6.0, -6.0, 4.0, -4.0], np.zeros(16)])
        model = ISTDP(x, np.where(random.uniform(size=self.ROWS) < expit(x @ truth), 1.0, -1.0), penalty=MCP(0.01))
        best = model.solve().objective

        def excess() -> float:
            runs = [
                model.solve_private(epsilon=self.EPSILON, delta=self.DELTA, max_iter=self.ITERATIONS) for _ in range(6)
            ]
            return float(np.mean([model.problem.objective(run.theta) for run in runs])) - best

        # ERRATA: .066 to .071 on its own data; seen here .066, with a spread of some .01 over runs.
        assert 0.03 < excess() < 0.12
        # Theorem 3.3 over n has 4.5 there, and as printed 8298.
        for scale, least in ((0.799, 0.5), (799.0, 500.0)):
            monkeypatch.setattr(GaussianNoise, "scale", scale)
            assert excess() > least


class TestSmallerOnes:
    """Theorem 3.1 and the labels."""

    def test_the_constant_of_theorem_3_1_is_compared_with_its_root(self) -> None:
        # Printed: sqrt(2/pi) e^(8/9) < 1.25. What the proof needs: (2/pi) e^(8/9) < 1.25^2.
        assert np.sqrt(2.0 / np.pi) * np.exp(8.0 / 9.0) > 1.25
        assert 2.0 / np.pi * np.exp(8.0 / 9.0) == pytest.approx(1.549, abs=5e-4)
        assert 2.0 / np.pi * np.exp(8.0 / 9.0) < 1.25**2

    def test_labels_of_0_and_1_put_into_a_loss_of_the_margin_lose_half_the_data(self) -> None:
        logistic = loss_named("logistic")
        z = np.array([-2.0, 0.5])
        np.testing.assert_array_equal(logistic.gradient(z, np.zeros(2)), 0.0)
        x, y, _ = correlated(40, 3, 0.2, seed=0, kind="logistic")
        np.testing.assert_array_equal(ISTDP(x, (y + 1) / 2).problem.y, y)

    def test_replacing_one_record_changes_two_elements_of_the_symmetric_difference_of_definition_3_1(self) -> None:
        # Definition 3.1 asks for one, which fixed n does not allow.
        before, after = {(0, 1.0), (1, 2.0)}, {(0, 1.0), (1, 3.0)}
        assert len(before) == len(after)
        assert len(before ^ after) == 2
