"""From which beta on the trivial mechanism is optimal, and the constants of the convergence proofs."""

from __future__ import annotations

import numpy as np
import pytest
from cvxpriv_models.inference_service import algorithm, thresholds
from cvxpriv_models.inference_service.problem import Problem

from cvxpriv.divergences import FDivergence, divergence
from cvxpriv.models import InferenceAsService

from .inference_cases import PAPER, g10

#: Suprema over every P(Y|S) for S uniform on 3: a grid of the simplex with 20301 points gives these four digits.
CEILINGS = {"mutual-information": 1.0, "jensen-shannon": 2.0533, "le-cam": 2 * np.log(3), "hellinger": 2.0453}


@pytest.mark.parametrize("name", PAPER)
def test_the_ceiling_for_three_uniform_s_is_the_known_one(name: str) -> None:
    assert thresholds.critical_beta(g10(name)).ceiling == pytest.approx(CEILINGS[name], abs=1e-4)


@pytest.mark.grid(every=3)
@pytest.mark.parametrize("name", [*PAPER, "chi-square", "neyman", "reverse-kl", "total-variation"])
def test_the_thresholds_are_ordered_and_the_search_is_reached_at_its_posterior(name: str) -> None:
    problem = g10(name)
    found = thresholds.critical_beta(problem)
    assert found.local <= found.searched <= found.ceiling
    if found.searched > found.local:
        at = thresholds.ratio(found.posterior[None], problem.p_s_given_y, problem.p_y, problem.divergence)[0]
        assert at == pytest.approx(found.searched, rel=1e-9)


@pytest.mark.parametrize("name", PAPER)
def test_no_random_posterior_beats_the_searched_threshold(name: str) -> None:
    problem = g10(name)
    rng = np.random.default_rng(1)
    b = np.vstack([rng.dirichlet(np.full(10, alpha), size=4000) for alpha in (0.1, 0.5, 2.0)])
    values = thresholds.ratio(b, problem.p_s_given_y, problem.p_y, problem.divergence)
    assert values.max() <= thresholds.critical_beta(problem).searched + 1e-9


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=pytest.mark.slow if one != "le-cam" else ()) for one in PAPER]
)
def test_a_mechanism_is_worth_more_than_nothing_just_below_the_threshold_and_none_above(name: str) -> None:
    searched = thresholds.critical_beta(g10(name)).searched
    below = InferenceAsService(g10(name).table, 0.97 * searched, divergence=name).solve(starts=2, max_iter=20)
    above = InferenceAsService(g10(name).table, 1.03 * searched, divergence=name).solve(starts=2, max_iter=20)
    assert below.objective > 1e-6
    assert not below.note
    assert above.objective <= 1e-9
    assert "the trivial mechanism, which says nothing, is optimal" in above.note


def test_the_maximal_correlation_of_a_binary_symmetric_channel_is_known() -> None:
    flip = 0.2
    joint = np.array([[1 - flip, flip], [flip, 1 - flip]]) / 2
    assert thresholds.maximal_correlation(joint) == pytest.approx(1 - 2 * flip, abs=1e-14)
    assert thresholds.maximal_correlation(np.outer([0.3, 0.7], [0.2, 0.8])) == pytest.approx(0.0, abs=1e-14)


def test_a_kink_at_one_leaves_no_local_threshold_and_a_flat_f_an_infinite_one() -> None:
    assert thresholds.local_threshold(0.8, divergence("total-variation")) == 0.0
    assert thresholds.local_threshold(0.8, divergence("hockey-stick:1.5")) == np.inf
    assert not thresholds.critical_beta(g10("total-variation")).sharp
    assert thresholds.critical_beta(g10("hockey-stick:1.5")).searched == np.inf


def test_a_symbol_of_s_without_mass_changes_no_threshold() -> None:
    table = np.array([[0.3, 0.2], [0.1, 0.4]])
    both = (table, np.pad(table, ((0, 1), (0, 0))))
    plain, padded = (thresholds.critical_beta(Problem.of(one, 1.0, "le-cam")) for one in both)
    assert (padded.searched, padded.ceiling) == pytest.approx((plain.searched, plain.ceiling), rel=1e-9)


def test_nothing_pays_when_the_data_say_nothing_of_s() -> None:
    independent = Problem.of(np.outer([0.4, 0.6], [0.2, 0.5, 0.3]), 0.1, "jensen-shannon", 3)
    assert thresholds.critical_beta(independent).searched == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "expected"),  # the largest f'' on [e, 1/e], by hand
    [("mutual-information", 1e6), ("jensen-shannon", 1 / (1e-3 * 1.001)), ("le-cam", 4 / 1.001**3), ("neyman", 2.0)],
)
def test_the_lipschitz_constant_of_the_slope_is_the_largest_second_derivative(name: str, expected: float) -> None:
    assert algorithm.lipschitz_of_slope(divergence(name), 1e-3) == pytest.approx(expected, rel=1e-9)


def test_there_is_no_lipschitz_constant_without_a_floor_or_with_a_kink() -> None:
    assert algorithm.lipschitz_of_slope(divergence("le-cam"), 0.0) == np.inf
    assert algorithm.lipschitz_of_slope(divergence("total-variation"), 1e-3) == np.inf


def test_the_moduli_need_a_penalty_above_the_printed_assumption() -> None:
    problem = g10("le-cam", beta=0.5, floor=0.05, size_u=4)
    constants = algorithm.moduli(problem, c=2 * 4 / 1.05**3 / 0.05**2, rho=1.0)  # twice l_g
    assert constants.l_g == pytest.approx(constants.l_f / 0.05**2)
    assert constants.printed_assumption
    assert constants.rho < constants.rho_needed < np.inf
    assert algorithm.moduli(problem, 0.5 * constants.l_g, 1e12).rho_needed == np.inf


SQUARES = ("(t-1)**2", "pos(t-1)**2 + pos(1-t)**2", "max(t-1, 1-t)**2", "abs(t-1)**2", "t**2 - 2*t + 1")


def test_every_spelling_of_one_function_has_one_threshold() -> None:
    table = [[0.3, 0.1, 0.1], [0.05, 0.15, 0.3]]
    known = thresholds.critical_beta(Problem.of(table, 0.5, "neyman"))
    for text in SQUARES:
        found = thresholds.critical_beta(Problem.of(table, 0.5, FDivergence.parse(text)))
        assert (found.local, found.searched) == pytest.approx((known.local, known.searched), rel=1e-12)


@pytest.mark.parametrize(
    "text", ["abs(t-1)**1.5", pytest.param("min(abs(t-1), 0.5)**2 + pos(abs(t-1)-0.5)", marks=pytest.mark.slow)]
)
def test_what_bends_at_1_without_a_second_derivative_around_it_has_a_finite_threshold(text: str) -> None:
    f = FDivergence.parse(text)
    found = thresholds.critical_beta(g10(f))
    assert 0.0 <= found.local <= found.searched < 1.0
    assert found.sharp
    above = InferenceAsService(g10(f).table, 1.05 * found.searched, divergence=f).solve(starts=1, max_iter=10)
    assert above.objective <= 1e-9


def test_where_the_second_derivative_at_1_is_infinite_small_departures_never_pay() -> None:
    assert thresholds.local_threshold(1.0, FDivergence.parse("abs(t-1)**1.5")) == 0.0
