"""What SHARING prints and what is right: for each line the printed form fails and the corrected one holds.

The formulas as printed stand here and, where the product offers them, under the name `printed`.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from cvxpriv_models.admm_sharing import ADMMSharing, algorithm
from cvxpriv_models.admm_sharing.assumptions import augmented_lagrangian
from cvxpriv_models.admm_sharing.factor import Factor
from cvxpriv_models.admm_sharing.problem import Problem
from cvxpriv_models.admm_sharing.schemes import SCHEMES

from cvxpriv.blocks.engines import ClosedForm
from cvxpriv.numerics.arrays import Array, single
from cvxpriv.penalties import LOSSES
from cvxpriv.schedules.history import Context
from cvxpriv.schedules.running import run
from cvxpriv.schedules.steps import Sweep


def iterates(problem: Problem, scheme: str, rho: float, passes: int) -> list[dict[str, Array]]:
    """Plain passes from x = z = y = 0."""
    factors = tuple(Factor(part) for part in problem.parts)
    steps = Sweep(algorithm.one_pass(problem, SCHEMES[scheme], factors))
    states = [algorithm.initial_state(problem, rho)]
    for _ in range(passes):
        states.append(run(steps, states[-1], Context(ClosedForm())))
    return [single(state, 0) for state in states]


class TestParallelUpdate:
    """Algorithm 1, Assumption 1.2 and Lemmas 3 and 4."""

    @staticmethod
    def smallest() -> Problem:
        """N = d_m = 1, D_m = 1, M = 3, l = (z - 1)^2/2, lambda = 0.1."""
        return Problem.of([np.ones((1, 1))] * 3, np.ones(1), "squared", "l2", 0.1)

    def test_every_printed_assumption_holds_at_the_counterexample(self) -> None:
        table = ADMMSharing([np.ones((1, 1))] * 3, np.ones(1), loss="squared", lam=0.1).check_assumptions(rho=2.0).table
        for assumption in table.index[table.index.str.startswith("1.")]:
            assert table.at[assumption, "holds"], assumption
        assert not table.at["1.2b the x steps descend", "right_holds"]

    def test_algorithm_1_diverges_there_with_a_spectral_radius_of_1_164(self) -> None:
        states = iterates(self.smallest(), "printed", 2.0, 60)
        first = [float(state["x/0"][0]) for state in states]
        assert first[57:61] == pytest.approx([-1433.0, 1669.0, -1943.0, 2263.0], abs=1.0)
        assert -first[60] / first[59] == pytest.approx(1.164, abs=1e-3)

    @pytest.mark.parametrize("scheme", ["averaged", "gauss_seidel", "proximal_jacobi"])
    def test_the_other_schemes_converge_there(self, scheme: str) -> None:
        model = ADMMSharing([np.ones((1, 1))] * 3, np.ones(1), loss="squared", lam=0.1)
        found = model.solve(rho=2.0, method=scheme, accelerate="none", gap=0.0)
        assert found.converged
        # x = 1/(3 + lambda), all three alike; the residual of 1e-8 is relative to numbers of size one.
        assert [float(x[0]) for x in found.coefficients] == pytest.approx([1.0 / 3.1] * 3, abs=1e-6)

    def test_the_printed_scheme_converges_there_from_one_and_a_half_m_l_on(self) -> None:
        model = ADMMSharing([np.ones((1, 1))] * 3, np.ones(1), loss="squared", lam=0.1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # 1.5 M L = 4.5: no warning
            assert model.solve(rho=4.5, method="printed").converged

    def test_the_exact_threshold_is_three_halves_of_the_largest_eigenvalue_less_two(self) -> None:
        # lambda -> 0, squared loss with L = 1: converges iff rho > 1.5 lambda_max(sum P_m) - 2 = 2.5 for M = 3.
        problem = Problem.of([np.ones((1, 1))] * 3, np.ones(1), "squared", "l2", 1e-9)
        for rho, converges in ((2.45, False), (2.55, True)):
            last = iterates(problem, "printed", rho, 3000)[-1]
            assert (abs(float(last["v/0"][0] + last["v/1"][0] + last["v/2"][0]) - 1.0) < 1e-3) is converges

    def test_with_the_logistic_loss_it_ends_in_a_two_cycle(self) -> None:
        problem = Problem.of([np.ones((2, 1))] * 3, [1.0, -1.0], lam=0.1, weights=[10.0, 10.0])
        start = algorithm.initial_state(problem, 4.0)
        start["x/0"] = start["x/0"] + 0.1  # the labels balance: from zero nothing moves
        start["v/0"] = start["v/0"] + 0.1
        factors = tuple(Factor(part) for part in problem.parts)
        steps = Sweep(algorithm.one_pass(problem, SCHEMES["printed"], factors))
        state: dict[str, Array] = start
        seen = []
        for _ in range(2000):
            state = run(steps, state, Context(ClosedForm()))
            seen.append(float(state["x/0"][0, 0]))
        assert abs(seen[-1]) > 1.0
        assert seen[-1] == pytest.approx(-seen[-2], abs=1e-6)
        assert seen[-1] == pytest.approx(seen[-3], abs=1e-6)

    def test_lemma_3_has_the_wrong_factor(self) -> None:
        # ||sum a_m||^2 - sum ||a_m||^2 for equal a_m: M (M - 1) ||a||^2, above the printed M ||a||^2 from M = 3 on.
        for parties in (2, 3, 6):
            moves = np.ones((parties, 4))
            left = float(np.sum(moves.sum(axis=0) ** 2) - np.sum(moves**2))
            printed, right = float(np.sum(moves**2)), (parties - 1) * float(np.sum(moves**2))
            assert left == pytest.approx(right)
            assert (left > printed) is (parties > 2)

    def test_lemma_4_claims_a_descent_that_does_not_happen(self) -> None:
        problem, rho = self.smallest(), 2.0
        states = iterates(problem, "printed", rho, 30)
        values = [augmented_lagrangian(problem, state, rho) for state in states[1:]]
        assert values[-1] > values[-2] > values[0]
        averaged = iterates(problem, "averaged", 3.0 * rho, 30)  # the same penalty of S = z
        values = [augmented_lagrangian(problem, state, rho) for state in averaged[1:]]
        assert (np.diff(values) <= 1e-14).all()  # values of size one, rounding


def test_the_loss_is_summed_so_that_an_average_needs_n_times_the_lambda() -> None:
    # (1) drops the 1/N of the average in the line above it.
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 4))
    y = np.where(x[:, 0] + rng.normal(size=50) > 0.0, 1.0, -1.0)
    lam = 0.02
    found = ADMMSharing([x[:, :2], x[:, 2:]], y, lam=50 * lam).solve(tol=1e-10, max_iter=2000)
    w = np.concatenate(found.coefficients)
    averaged = x.T @ LOSSES["logistic"].gradient(x @ w, y) / 50 + lam * w
    # The residual of 1e-10 is relative to gradients of a few.
    assert np.abs(averaged).max() < 1e-9


def test_the_hinge_does_not_satisfy_assumption_1_1_although_svm_is_claimed() -> None:
    rng = np.random.default_rng(1)
    model = ADMMSharing([rng.normal(size=(20, 2)), rng.normal(size=(20, 2))], rng.integers(0, 2, 20), loss="hinge")
    table = model.check_assumptions(rho=1.0, method="averaged").table
    assert not table.at["1.1 smooth loss", "holds"]
    assert table.at["1.1 smooth loss", "right_holds"]  # a convex loss does without


def test_the_gap_of_a_pass_is_that_of_the_dual_step_before_it_not_after() -> None:
    # (37) reads ||S^t - z^t|| = ||y^{t+1} - y^t||/rho; by (8) it is the step from y^{t-1} to y^t.
    rng = np.random.default_rng(2)
    x = rng.normal(size=(30, 4))
    problem = Problem.of([x[:, :2], x[:, 2:]], np.where(x[:, 0] > 0.2, 1.0, -1.0))
    states, rho = iterates(problem, "printed", 1.0, 6), 1.0
    before, now, after = states[3:6]
    gap = np.linalg.norm(now["v/0"] + now["v/1"] - now["z"])
    assert gap == pytest.approx(np.linalg.norm(now["y"] - before["y"]) / rho, rel=1e-10)
    assert abs(gap - np.linalg.norm(after["y"] - now["y"]) / rho) > 1e-2 * gap


def test_the_dual_step_is_bounded_by_the_smoothness_and_not_equal_to_it() -> None:
    # (17) prints ||y^{t+1} - y^t||^2 = L^2 ||z^{t+1} - z^t||^2.
    rng = np.random.default_rng(3)
    x = rng.normal(size=(30, 4))
    problem = Problem.of([x[:, :2], x[:, 2:]], np.where(x[:, 0] > 0.2, 1.0, -1.0))
    before, after = iterates(problem, "averaged", 1.0, 6)[-2:]
    bound = problem.loss.smoothness * np.linalg.norm(after["z"] - before["z"])
    step = np.linalg.norm(after["y"] - before["y"])
    assert step < 0.95 * bound
