"""What IAS prints and what is right: for each line the printed form fails and the corrected one holds."""

from __future__ import annotations

from itertools import pairwise

import cvxpy as cp
import numpy as np
import pytest
from cvxpriv_models.inference_service import closed_form, kkt, measures
from cvxpriv_models.inference_service.algorithm import bregman, moduli
from cvxpriv_models.inference_service.interior import maximise
from cvxpriv_models.inference_service.joint import joint
from cvxpriv_models.inference_service.measured import Options
from cvxpriv_models.inference_service.problem import Problem
from cvxpriv_models.inference_service.starts import initial_state
from cvxpriv_models.inference_service.thresholds import critical_beta, largest_ratio
from numpy.typing import NDArray

from cvxpriv.blocks.engines import ClosedForm
from cvxpriv.divergences import divergence
from cvxpriv.errors import NoGuaranteeWarning
from cvxpriv.models import InferenceAsService
from cvxpriv.schedules.history import Context
from cvxpriv.schedules.running import run
from tests.models.inference_cases import augmented as augmented_of

Array = NDArray[np.float64]
PAPER = ("mutual-information", "jensen-shannon", "le-cam", "hellinger")


def g10(name: str = "jensen-shannon", beta: float = 2.0, floor: float = 1e-3) -> Problem:
    """IAS IV-B: P_S uniform on 3, |Y| = 10, |U| = 11, with three bell-shaped rows of P_{Y|S} (its Fig. 1 is lost)."""
    y = np.arange(10.0)
    rows = np.exp(-((y - np.array([[2.0], [4.5], [7.0]])) ** 2) / (2 * 1.5**2))
    return Problem.of(rows / rows.sum(axis=1, keepdims=True) / 3, beta, name, 11, floor)


def random_state(problem: Problem, seed: int = 0) -> dict[str, Array]:
    rows = np.random.default_rng(seed).uniform(size=(1, problem.p_y.size, problem.size_u))
    rows /= rows.sum(axis=2, keepdims=True)
    return initial_state(problem, problem.floor + (1 - problem.size_u * problem.floor) * rows)


def admm(problem: Problem, passes: int, sign: float, rho: float = 1.0) -> dict[str, Array]:
    """Sweeps of (17), (18), (19) at a fixed P(S|U); sign +1 is the printed (19)."""
    state = random_state(problem)
    for _ in range(passes):
        after = {**state, **closed_form.one_pass(problem, state, rho)}
        delta = after["q"] - problem.p_y @ after["mechanism"]
        state = {**after, "lam": state["lam"] + sign * rho * delta}
    return state


def augmented(problem: Problem, state: dict[str, Array], lam: Array, rho: float = 1.0) -> float:
    given = (problem.p_y, problem.p_s_given_y, problem.beta, problem.divergence)
    return float(augmented_of(state["mechanism"], state["q"], lam, state["posterior"], rho, *given)[0])


def surrogate(problem: Problem, mechanism: Array, posterior: Array) -> float:
    given = (problem.p_y, problem.p_s_given_y, problem.beta, problem.divergence)
    return float(measures.surrogate(mechanism, posterior, *given)[0])


class TestMultiplier:
    """(16), (19): the multiplier's sign."""

    @pytest.mark.slow
    def test_the_printed_sign_climbs_without_end_and_the_other_one_meets_the_constraint(self) -> None:
        problem = g10()
        delta = {}
        for name, sign in (("printed", 1.0), ("right", -1.0)):
            state = admm(problem, 2000, sign)
            delta[name] = np.abs(state["q"] - problem.p_y @ state["mechanism"]).sum()
            if sign > 0:
                assert np.abs(state["lam"]).max() > 100
        assert delta["printed"] > 0.1
        assert delta["right"] < 1e-5

    def test_the_printed_variant_warns_and_ends_lower(self) -> None:
        inference = InferenceAsService(g10().table, 0.3, size_u=11, floor=1e-3)
        with pytest.warns(NoGuaranteeWarning, match="sign of .19. as printed: it diverges"):
            printed = inference.solve(method="printed", starts=2, max_iter=200, inner=1)
        right = inference.solve(method="admm", starts=2, max_iter=200, inner=1)
        assert right.objective > printed.objective + 1e-3
        assert printed.history["multiplier"].iloc[-1] > 10 * right.history["multiplier"].iloc[-1]

    def test_the_multiplier_step_lowers_the_augmented_lagrangian_which_lemma_6_denies(self) -> None:
        problem = g10()
        state = admm(problem, 1, -1.0)
        for _ in range(50):
            after = {**state, **closed_form.one_pass(problem, state, 1.0)}
            assert augmented(problem, after, after["lam"]) <= augmented(problem, after, state["lam"])
            state = after


class TestConvergenceProofs:
    """Sections III-B and III-C."""

    def test_lemma_10_lacks_the_multiplier_s_term(self) -> None:
        # A floor for which l_g is small and c far above it: every printed assumption holds.
        problem = Problem.of(np.array([[0.3, 0.1], [0.1, 0.5]]), 0.05, "le-cam", 3, 0.3)
        c, rho = 100.0, 1.0
        constants = moduli(problem, c, rho)
        assert constants.printed_assumption
        assert constants.rho < constants.rho_needed
        loop = bregman(problem, Options(rho=rho, c=c, inner=1, max_iter=1))
        mechanism = np.array([[[0.4, 0.3, 0.3], [0.3, 0.3, 0.4]]])
        state = {**initial_state(problem, mechanism), "lam": np.array([[1.0, -1.0, 0.5]])}
        fixed = state["posterior"]
        missed, explained = [], []
        for _ in range(30):
            after = {**run(loop, state, Context(ClosedForm())), "posterior": fixed}
            rise = augmented(problem, after, after["lam"], rho) - augmented(problem, state, state["lam"], rho)
            rows = np.sum((after["mechanism"] - state["mechanism"]) ** 2)
            columns = np.sum((after["q"] - state["q"]) ** 2)
            printed = 0.5 * (c - constants.l_g) * rows + 0.5 * c * columns
            missed.append(printed - rise)
            explained.append(np.sum((after["lam"] - state["lam"]) ** 2) / rho)
            state = after
        assert max(missed) > 1e-4
        assert (np.array(missed) <= np.array(explained) + 1e-12).all()

    def test_bregman_s_modulus_has_to_be_in_the_billions_and_nothing_moves_then(self) -> None:
        problem = g10()
        assert moduli(problem, 10.0, 1.0).l_g == pytest.approx(4e9, rel=1e-2)
        inference = InferenceAsService(problem.table, problem.beta, size_u=11, floor=1e-3)
        init = random_state(problem)["mechanism"]
        still = inference.solve(method="bregman", init=init, inner=1, c=5e9, max_iter=300)
        assert still.moduli.printed_assumption
        assert still.objective - problem.objective(init[0]) < 1e-5
        assert inference.solve(starts=2, max_iter=10).objective - still.objective > 0.05

    def test_bregman_with_a_modulus_that_moves_warns(self) -> None:
        inference = InferenceAsService(g10().table, 0.3, size_u=11, floor=1e-3)
        with pytest.warns(NoGuaranteeWarning, match="needs c > l_g=5.99e"):
            solved = inference.solve(method="bregman", starts=1, inner=1, c=10.0, max_iter=100)
        assert not solved.converged


class TestJointProblem:
    """(10): "a non-convex problem jointly"."""

    @pytest.mark.parametrize("name", PAPER)
    def test_the_joint_problem_is_one_dcp_problem(self, name: str) -> None:
        declaration = joint(g10(name)).declaration()
        assert isinstance(declaration.problem, cp.Problem)
        assert declaration.problem.is_dcp()

    @pytest.mark.parametrize("name", PAPER)
    def test_its_objective_is_concave_along_every_segment(self, name: str) -> None:
        problem = g10(name)
        posterior = random_state(problem)["posterior"]
        for seed in range(20):
            one, two = (random_state(problem, seed + shift)["mechanism"] for shift in (1, 100))
            ends = surrogate(problem, one, posterior) + surrogate(problem, two, posterior)
            assert surrogate(problem, 0.5 * (one + two), posterior) >= 0.5 * ends - 1e-12

    @pytest.mark.slow
    def test_twenty_iterations_leave_an_error_that_thousands_remove(self) -> None:
        problem = g10("jensen-shannon", 0.3)
        state = random_state(problem)
        best = surrogate(problem, maximise(problem, state["posterior"])[0], state["posterior"])
        short, long = (admm(problem, passes, -1.0) for passes in (20, 4000))
        assert best - surrogate(problem, short["mechanism"], short["posterior"]) > 1e-5
        assert best - surrogate(problem, long["mechanism"], long["posterior"]) < 1e-6

    def test_the_outer_loop_is_monotone_when_the_joint_problem_is_solved(self) -> None:
        problem = g10("le-cam", 0.3, 0.0)
        mechanism = random_state(problem)["mechanism"]
        values = []
        for _ in range(15):
            posterior = closed_form.posterior(mechanism, problem.p_y, problem.p_s_given_y)
            mechanism, _ = maximise(problem, posterior)
            values.append(problem.objective(mechanism[0]))
        assert all(after >= before - 1e-11 for before, after in pairwise(values))

    @pytest.mark.slow
    def test_one_pass_a_step_often_ends_higher_than_exact_steps(self) -> None:
        inference = InferenceAsService(g10().table, 0.3, divergence="le-cam", size_u=11, floor=1e-3)
        init = np.concatenate([random_state(inference.problem, seed)["mechanism"] for seed in range(8)])
        passes = inference.solve(method="admm", init=init, inner=1, max_iter=400).starts["objective"]
        exact = inference.solve(method="joint", init=init, accelerate="none", max_iter=40).starts["objective"]
        assert passes.median() > exact.median() + 1e-3


class TestExperiments:
    """Section IV-B."""

    @pytest.mark.parametrize(("name", "beta"), [("jensen-shannon", 8.0), ("le-cam", 8.0)])
    def test_figure_7_shows_the_trivial_mechanism(self, name: str, beta: float) -> None:
        # Whatever P(Y|S) the lost Fig. 1 showed: with S uniform on 3 nothing pays above the ceiling.
        assert beta > critical_beta(g10(name)).ceiling
        assert InferenceAsService(g10(name).table, beta, divergence=name, size_u=11).solve(starts=2).objective < 1e-12

    @pytest.mark.parametrize(
        ("name", "ceiling"),
        [("mutual-information", 1.0), ("jensen-shannon", 2.053), ("le-cam", 2 * np.log(3)), ("hellinger", 2.045)],
    )
    def test_no_data_make_a_mechanism_pay_above_these_betas(self, name: str, ceiling: float) -> None:
        f = divergence(name)
        rng = np.random.default_rng(0)
        for _ in range(3):
            rows = rng.dirichlet(np.full(6, 0.3), size=3) + 1e-9
            p_sy = rows / rows.sum() / 1.0
            p_sy = p_sy / p_sy.sum(axis=1, keepdims=True) / 3
            p_y = p_sy.sum(axis=0)
            assert largest_ratio(p_sy / p_y, p_y, f)[0] <= ceiling + 1e-3

    def test_beta_2_of_figures_2_to_5_is_above_what_smooth_rows_allow(self) -> None:
        assert critical_beta(g10()).searched < 2.0
        assert InferenceAsService(g10().table, 2.0, size_u=11).solve(starts=2).objective < 1e-12

    def test_projected_gradient_ascent_reaches_the_optimum_that_table_1_denies_it(self) -> None:
        inference = InferenceAsService(g10().table, 2.0, divergence="le-cam", size_u=11, floor=1e-3)
        solved = inference.solve(method="gradient", starts=2, step=0.5, max_iter=1500, tol=1e-5)
        assert solved.objective > -1e-6  # Table I: -0.235 to -0.317


class TestFloorAndUpdates:
    """(2), (9), (21)."""

    def test_the_floor_is_needless_and_costs(self) -> None:
        with_floor, without = (
            InferenceAsService(g10().table, 0.3, size_u=11, floor=floor).solve(starts=1, max_iter=10).objective
            for floor in (1e-3, 0.0)
        )
        assert without > with_floor + 2e-3  # .25765 against .25488

    def test_the_posterior_is_normalised_by_the_mechanism_s_own_marginal(self) -> None:
        problem = g10("le-cam", 0.3)
        state = admm(problem, 1, -1.0)
        own = closed_form.posterior(state["mechanism"], problem.p_y, problem.p_s_given_y)
        by_q = (problem.table.probabilities @ state["mechanism"]) / state["q"][:, None, :]  # (9) as printed
        assert own.sum(axis=1) == pytest.approx(np.ones((1, 11)))
        assert np.abs(by_q.sum(axis=1) - 1.0).max() > 1e-3

    def test_ignoring_the_sign_of_p_u_in_21_fails_for_le_cam(self) -> None:
        # One symbol that hardly any row sends, with a falling multiplier: the unconstrained root of (21) is negative.
        problem = Problem.of(np.array([[0.3, 0.1], [0.2, 0.4]]), 0.5, "le-cam", 2, 0.0)
        rho, lam = 1.0, -2.0
        p = np.array([0.01, 0.01])

        def slope(q: float) -> float:
            in_q = 0.5 - 2.0 * p**2 / (p + q) ** 2
            return float(-problem.beta * problem.p_y @ in_q + lam - rho * (q - problem.p_y @ p))

        assert slope(0.0) < 0.0  # L falls from q = 0 on: its maximiser over q >= 0 is 0, that over all q below 0
        state = {
            "mechanism": np.array([[p, 1 - p]]).transpose(0, 2, 1),
            "q": np.array([[0.01, 0.99]]),
            "lam": np.array([[lam, 0.0]]),
        }
        assert closed_form.marginal(problem, state, rho)[0, 0] == pytest.approx(0.0, abs=1e-12)

    def test_jensen_shannon_as_printed_is_twice_the_divergence(self) -> None:
        p, q = np.array([0.2, 0.8]), np.array([0.6, 0.4])
        middle = 0.5 * (p + q)
        standard = 0.5 * np.sum(p * np.log(p / middle)) + 0.5 * np.sum(q * np.log(q / middle))
        assert divergence("jensen-shannon").between(p, q) == pytest.approx(2.0 * standard, abs=1e-14)

    def test_p_u_that_stands_still_is_no_sign_of_feasibility(self) -> None:
        problem = g10("jensen-shannon", 0.3)
        state = admm(problem, 30, -1.0, rho=0.01)
        after = {**state, **closed_form.one_pass(problem, state, 0.01)}
        moved = np.abs(after["q"] - state["q"]).sum()
        delta = np.abs(after["q"] - problem.p_y @ after["mechanism"]).sum()
        assert delta > 5 * moved
        assert kkt.residuals(problem, after["mechanism"]).largest[0] > 1e-4
