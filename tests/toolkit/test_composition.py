"""Composition of pure and Gaussian releases: against formulas of their own, a peer, and simulation; the ledger."""

from __future__ import annotations

from math import comb

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from cvxpriv.errors import PrivacyError
from cvxpriv.privacy import (
    Release,
    account_ledger,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    mu_beside,
    optimal_delta,
    optimal_epsilon,
)
from cvxpriv.privacy.accounting import advanced_composition, zcdp_epsilon
from cvxpriv.privacy.gaussian import gaussian_deltas


def kairouz_oh_viswanath(epsilon: float, rounds: int, index: int) -> tuple[float, float]:
    """Theorem 3.3 of the paper as it stands there: the (epsilon, delta) of `rounds` releases, for one index i."""
    total = sum(
        comb(rounds, way) * (np.exp((rounds - way) * epsilon) - np.exp((rounds - 2 * index + way) * epsilon))
        for way in range(index)
    )
    return (rounds - 2 * index) * epsilon, float(total / (1.0 + np.exp(epsilon)) ** rounds)


@pytest.mark.parametrize(("rounds", "epsilon"), [(1, 0.5), (7, 0.3), (50, 0.05), (30, 1.0)])
def test_equal_pure_releases_have_the_delta_of_the_theorem_at_each_of_its_epsilons(rounds: int, epsilon: float) -> None:
    for index in range(rounds // 2 + 1):
        together, delta = kairouz_oh_viswanath(epsilon, rounds, index)
        assert optimal_delta(together, [epsilon] * rounds) == pytest.approx(delta, rel=1e-9, abs=1e-15)
        if 1e-12 < delta < 0.5:  # above, a margin of 1e-10 in delta is more than 1e-9 in epsilon
            assert optimal_epsilon(delta, [epsilon] * rounds) == pytest.approx(together, rel=1e-7, abs=1e-8)


def test_fifty_releases_of_a_twentieth_cost_one_and_a_half_at_a_millionth() -> None:
    assert optimal_epsilon(1e-6, [0.05] * 50) == pytest.approx(1.489, abs=1e-3)
    assert account_ledger([Release(epsilon=0.05)] * 50, 1e-6, neighbours="row").epsilon < 1.5 < 1.66


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0.01, 1.5), min_size=2, max_size=9), st.floats(0.0, 3.0))
def test_unequal_pure_releases_are_bounded_from_above_and_closely(epsilons: list[float], epsilon: float) -> None:
    # Every way that the coins may fall: 2^9 at most.
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * len(epsilons))).reshape(len(epsilons), -1)
    chances = np.prod([1.0 / (1.0 + np.exp(-sign * one)) for sign, one in zip(signs, epsilons, strict=True)], axis=0)
    exact = float(np.sum(chances * np.maximum(-np.expm1(epsilon - np.array(epsilons) @ signs), 0.0)))
    found = optimal_delta(epsilon, epsilons)
    # Each loss is rounded up by at most a part of 2^18 of their sum.
    assert exact * (1.0 - 1e-12) <= found <= exact + sum(epsilons) * len(epsilons) / 2**17


@pytest.mark.parametrize("mu", [0.05, 0.7, 2.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.4, 2.0])
def test_a_coin_and_a_gaussian_number_have_the_delta_that_integrates_their_densities(mu: float, epsilon: float) -> None:
    coin = np.exp(0.5) / (1.0 + np.exp(0.5))

    def above(x: float) -> float:
        true, false = norm.pdf(x, mu), norm.pdf(x)
        first = coin * true - np.exp(epsilon) * (1.0 - coin) * false
        return float(max(first, 0.0) + max((1.0 - coin) * true - np.exp(epsilon) * coin * false, 0.0))

    points = [(epsilon - sign * 0.5) / mu + mu / 2.0 for sign in (-1.0, 1.0)]
    inside = [point for point in points if -12.0 < point < 15.0]
    exact, _ = quad(above, -12.0, 15.0, points=inside, epsabs=1e-13, limit=500)
    assert optimal_delta(epsilon, [0.5], mu) == pytest.approx(exact, abs=1e-10)


@pytest.mark.parametrize(("epsilons", "mu"), [([0.5], 0.3), ([0.2] * 10, 0.5), ([0.4] * 3, 0.05)])
def test_a_peer_bounds_mixed_releases_from_above_and_comes_close(epsilons: list[float], mu: float) -> None:
    dp_accounting = pytest.importorskip("dp_accounting")
    from dp_accounting.pld import privacy_loss_distribution as pld

    step = 1e-4
    together = pld.from_gaussian_mechanism(1.0 / mu, value_discretization_interval=step)
    for epsilon in epsilons:
        coin = pld.from_randomized_response(2.0 / (1.0 + np.exp(epsilon)), 2, value_discretization_interval=step)
        together = together.compose(coin)
    assert dp_accounting is not None
    ours, theirs = optimal_epsilon(1e-6, epsilons, mu), together.get_epsilon_for_delta(1e-6)
    # The peer rounds the losses up to its grid, and so do we for coins that are not alike.
    assert ours - 1e-6 <= theirs <= ours + step * (len(epsilons) + 1)


@given(st.floats(0.05, 3.0), st.floats(0.01, 0.9), st.floats(-30.0, -2.0))
@settings(max_examples=50, deadline=None)
def test_mu_beside_pure_releases_is_the_inverse_on_the_safe_side(epsilon: float, part: float, log_delta: float) -> None:
    delta = float(np.exp(log_delta))
    mu = mu_beside(epsilon, delta, [part * epsilon])
    assert gaussian_mu((1.0 - part) * epsilon, delta) * (1.0 - 1e-9) <= mu <= gaussian_mu(epsilon, delta)
    assert epsilon * (1.0 - 1e-6) < optimal_epsilon(delta, [part * epsilon], mu) <= epsilon


@pytest.mark.parametrize("log_mu", np.linspace(-9.0, 1.0, 21))
def test_a_tiny_mu_has_a_right_delta_and_its_epsilon_is_rounded_outwards(log_mu: float) -> None:
    def exact(epsilon: float, mu: float) -> mpmath.mpf:
        ratio, half = mpmath.mpf(epsilon) / mpmath.mpf(mu), mpmath.mpf(mu) / 2
        return mpmath.ncdf(half - ratio) - mpmath.exp(mpmath.mpf(epsilon)) * mpmath.ncdf(-half - ratio)

    mu = float(10.0**log_mu)
    with mpmath.workdps(60):
        for ratio in (0.0, 0.3, 1.0, 4.0, 8.0, 20.0):
            assert abs(gaussian_delta(ratio * mu, mu) / exact(ratio * mu, mu) - 1) < 1e-11
        for delta in (1e-3, 1e-6, 1e-9, 1e-12):
            epsilon = gaussian_epsilon(delta=delta, mu=mu)
            if epsilon > 0.0:
                assert delta * (1.0 - 3e-9) < exact(epsilon, mu) <= delta
            largest = gaussian_mu(0.3, delta)
            assert delta * (1.0 - 1e-8) < exact(0.3, largest) <= delta


class TestMargins:
    """By how much each root is moved to the safe side: what it is moved by is what is said of it."""

    @pytest.mark.parametrize("mu", [0.1, 0.9, 3.0, 10.0])
    @pytest.mark.parametrize("delta", [1e-4, 1e-10])
    def test_an_epsilon_is_that_of_a_delta_which_is_less_by_its_margin(self, mu: float, delta: float) -> None:
        lowered = np.log(gaussian_delta(gaussian_epsilon(delta=delta, mu=mu), mu) / delta)
        assert lowered == pytest.approx(-1e-10 * (1.0 + mu), rel=0.03)  # the root's own rounding is about 1e-12

    @pytest.mark.parametrize("epsilon", [0.04, 0.5, 9.0])
    def test_a_mu_is_that_of_a_delta_which_is_less_by_its_margin(self, epsilon: float) -> None:
        lowered = np.log(gaussian_delta(epsilon, gaussian_mu(epsilon, 1e-5)) / 1e-5)
        assert lowered == pytest.approx(-1e-10 * (1.0 + np.sqrt(epsilon)), rel=0.03)

    @pytest.mark.parametrize(("epsilons", "mu"), [([0.05] * 50, 0.0), ([0.5, 0.5], 0.3), ([0.4], 1.5)])
    def test_a_composed_epsilon_is_moved_out_twice(self, epsilons: list[float], mu: float) -> None:
        root = optimal_epsilon(1e-6, epsilons, mu) / (1.0 + 1e-10)
        assert np.log(optimal_delta(root, epsilons, mu) / 1e-6) == pytest.approx(-1e-10, rel=0.05)

    def test_what_is_left_beside_pure_releases_allows_for_both(self) -> None:
        for epsilon, part in ((1.0, 0.5), (3.0, 0.1)):
            mu = mu_beside(epsilon, 1e-5, [part * epsilon])
            inside = epsilon * (1.0 - 2e-10)
            lowered = np.log(optimal_delta(inside, [part * epsilon], mu) / 1e-5)
            assert lowered == pytest.approx(-3e-10, rel=0.03)


@pytest.mark.parametrize("delta", [1e-270, 1e-290, 1e-305])
@pytest.mark.parametrize("mu", [1e-4, 0.3, 1.0])
def test_at_the_end_of_the_doubles_an_epsilon_is_still_rounded_outwards(delta: float, mu: float) -> None:
    epsilon = gaussian_epsilon(delta=delta, mu=mu)
    with mpmath.workdps(400):
        ratio, half = mpmath.mpf(epsilon) / mpmath.mpf(mu), mpmath.mpf(mu) / 2
        exact = mpmath.ncdf(half - ratio) - mpmath.exp(mpmath.mpf(epsilon)) * mpmath.ncdf(-half - ratio)
        assert delta * (1.0 - 1e-8) < exact <= delta


def test_without_a_gaussian_release_the_loss_is_nothing_for_sure() -> None:
    found = gaussian_deltas(np.array([-1.0, -0.2, 0.0, 3.0]), 0.0)
    assert found == pytest.approx([1.0 - np.exp(-1.0), 1.0 - np.exp(-0.2), 0.0, 0.0], abs=1e-15)
    assert gaussian_deltas(np.array([np.inf]), 0.5) == [0.0]


def test_no_coins_leave_the_gaussian_release_alone() -> None:
    assert optimal_delta(0.5, [], 1.0) == pytest.approx(gaussian_delta(0.5, 1.0), rel=1e-12)
    assert optimal_epsilon(1e-6, [0.0], 0.5) == pytest.approx(gaussian_epsilon(delta=1e-6, mu=0.5), rel=1e-9)
    assert optimal_epsilon(1e-6, []) == 0.0


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_unequal_coins_beside_a_gaussian_number_are_bounded_from_above_and_closely(epsilon: float) -> None:
    coins, mu = (0.3, 0.52), 0.4
    exact = 0.0
    for first in (-1.0, 1.0):
        for second in (-1.0, 1.0):
            loss = first * coins[0] + second * coins[1]
            chance = 1.0 / ((1.0 + np.exp(-first * coins[0])) * (1.0 + np.exp(-second * coins[1])))
            exact += chance * float(gaussian_deltas(np.array([epsilon - loss]), mu)[0])
    # Rounded up by less than two of 2^14 steps of .82, and a delta has a slope of at most 1.
    assert exact * (1.0 - 1e-12) <= optimal_delta(epsilon, coins, mu) <= exact + 2.0 * 0.82 / 2**14


@pytest.mark.parametrize("rho", [1e-10, 1e-3, 0.5, 40.0, 1e12])
@pytest.mark.parametrize("delta", [1e-2, 1e-9])
def test_zcdp_is_the_least_of_the_renyi_bounds_over_all_orders(rho: float, delta: float) -> None:
    # Canonne, Kamath, Steinke 2020, Proposition 12, on a grid of orders, refined around its least.
    low, high = -20.0, 20.0
    for _ in range(6):
        excess = np.exp(np.linspace(low, high, 2001))
        bounds = rho + rho * excess - np.log1p(1.0 / excess) - np.log(delta * (1.0 + excess)) / excess
        at, step = int(np.argmin(bounds)), (high - low) / 2000.0
        low, high = np.log(excess[at]) - 2.0 * step, np.log(excess[at]) + 2.0 * step
    assert zcdp_epsilon(rho=rho, delta=delta) == pytest.approx(max(float(bounds.min()), 0.0), rel=1e-8, abs=1e-12)


def test_advanced_composition_of_unequal_releases_is_its_formula_by_hand() -> None:
    # sqrt(2 log(1/slack) (.09 + .49)) + .3 (e^.3 - 1) + .7 (e^.7 - 1).
    exact = float(mpmath.sqrt(2 * mpmath.log(1000) * 0.58) + 0.3 * mpmath.expm1(0.3) + 0.7 * mpmath.expm1(0.7))
    assert advanced_composition([0.3, 0.7], 1e-3) == pytest.approx(exact, rel=1e-14)


def test_each_rule_of_a_mixed_ledger_is_its_formula_with_deltas_that_add_up() -> None:
    mus, epsilons, delta = [0.1, 0.2, 0.2], [0.3, 0.05], 1e-5
    ledger = [*(Release(mu=mu) for mu in mus), *(Release(epsilon=epsilon) for epsilon in epsilons)]
    claims = {claim.rule: claim for claim in account_ledger(ledger, delta, neighbours="one record").claims}
    assert {claim.delta for claim in claims.values()} == {delta}
    # rho is half the square of mu, and half that of epsilon (Bun and Steinke 2016).
    rho = (0.01 + 0.04 + 0.04 + 0.09 + 0.0025) / 2.0
    assert claims["zero-concentrated (zCDP)"].epsilon == pytest.approx(zcdp_epsilon(rho=rho, delta=delta), rel=1e-12)
    # A third of delta each; or a sixth of it each, and half of it as slack.
    thirds, sixths = ([gaussian_epsilon(delta=part, mu=mu) for mu in mus] for part in (delta / 3.0, delta / 6.0))
    assert claims["basic composition"].epsilon == pytest.approx(sum(thirds) + sum(epsilons), rel=1e-12)
    advanced = advanced_composition([*sixths, *epsilons], delta / 2.0)
    assert claims["advanced composition"].epsilon == pytest.approx(advanced, rel=1e-12)


def test_each_rule_of_a_pure_ledger_is_its_formula() -> None:
    claims = account_ledger([Release(epsilon=0.3), Release(epsilon=0.7)], 1e-5, neighbours="one record").claims
    found = {claim.rule: (claim.epsilon, claim.delta) for claim in claims}
    assert found["zero-concentrated (zCDP)"] == pytest.approx((zcdp_epsilon(rho=0.29, delta=1e-5), 1e-5), rel=1e-12)
    assert found["advanced composition"] == pytest.approx((advanced_composition([0.3, 0.7], 1e-5), 1e-5), rel=1e-12)
    assert (1.0, 0.0) in [pytest.approx(one, rel=1e-12) for one in found.values()]


class TestLedger:
    """What a ledger may hold, and whom a neighbour's change concerns."""

    def test_the_group_of_most_releases_is_counted_and_all_groups_have_the_same_rules(self) -> None:
        ledger = [*[Release(mu=0.01, touches="a")] * 3, Release(epsilon=1.0, touches="b")]
        found = account_ledger(ledger, 1e-6, neighbours="one record")
        assert found.releases == 3
        rules = ["exact, Gaussian and pure", "zero-concentrated (zCDP)", "advanced composition", "basic composition"]
        assert [claim.rule for claim in found.claims] == rules
        assert found.claims[-1].epsilon == pytest.approx(1.0, abs=1e-12)

    def test_a_release_may_cost_nothing_and_stands_in_no_loop_until_it_runs(self) -> None:
        assert (Release(mu=0.0).mu, Release(epsilon=0.0).iteration) == (0.0, 0)
        assert Release(mu=0.1).at("draw", 3) == Release(mu=0.1, step="draw", iteration=3)

    def test_of_several_groups_each_rule_takes_the_one_that_is_touched_most(self) -> None:
        ledger = [Release(mu=0.2, touches="a"), Release(mu=0.1, touches="b"), Release(mu=0.3)]
        found = account_ledger(ledger, 1e-6, neighbours="one record")
        assert found.mu == pytest.approx(np.hypot(0.2, 0.3))
        assert found.epsilon == pytest.approx(gaussian_epsilon(delta=1e-6, mu=float(np.hypot(0.2, 0.3))), rel=1e-14)
        assert found.releases == 2

    def test_a_group_without_gaussian_releases_counts_beside_one_that_has_them(self) -> None:
        ledger = [Release(mu=0.1, touches="a"), Release(epsilon=3.0, touches="b")]
        assert account_ledger(ledger, 1e-6, neighbours="one record").epsilon == pytest.approx(3.0, rel=1e-5)

    def test_an_empty_ledger_has_spent_nothing(self) -> None:
        for delta in (None, 1e-6):
            found = account_ledger([], delta, neighbours="one record")
            assert (found.epsilon, found.releases, found.mu) == (0.0, 0, 0.0)

    def test_a_flaw_in_one_release_takes_the_guarantee_from_all(self) -> None:
        ledger = [Release(mu=0.1), Release(mu=0.1, flaw="reads clean data")]
        found = account_ledger(ledger, 1e-6, neighbours="one record")
        assert {claim.note for claim in found.claims} == {"reads clean data"}
        with pytest.raises(PrivacyError, match="no rule holds"):
            _ = found.epsilon

    def test_gaussian_releases_need_a_delta(self) -> None:
        with pytest.raises(PrivacyError, match="delta is missing"):
            account_ledger([Release(mu=0.1)], neighbours="one record")

    @pytest.mark.parametrize(
        "cost", [{}, {"mu": 0.1, "epsilon": 0.1}, {"mu": -0.1}, {"epsilon": np.inf}, {"mu": np.nan}]
    )
    def test_an_entry_is_gaussian_or_pure_and_costs_a_finite_number(self, cost: dict[str, float]) -> None:
        with pytest.raises(PrivacyError):
            Release(**cost)  # type: ignore[arg-type]
