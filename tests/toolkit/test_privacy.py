"""Gaussian accounting against integrals, known values and simulation; noise; audits."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import binom, kstest, norm

from cvxpriv.errors import PrivacyError
from cvxpriv.privacy import (
    Claim,
    GaussianNoise,
    Noise,
    PrivacyWarning,
    Release,
    account_ledger,
    audit,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    noise_source,
)
from cvxpriv.privacy.accounting import Accounting, advanced_composition, zcdp_epsilon
from cvxpriv.privacy.audit import _best_cut, _direction
from cvxpriv.privacy.gaussian import composed


def integrated_delta(epsilon: float, mu: float) -> float:
    """The integral of (p - exp(epsilon) q)_+ over the line, p = N(mu, 1), q = N(0, 1): the definition of delta."""
    crossing = epsilon / mu + mu / 2.0
    value, _ = quad(lambda x: norm.pdf(x, mu) - np.exp(epsilon) * norm.pdf(x), crossing, crossing + 40.0, epsabs=1e-14)
    return value


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
def test_delta_is_the_integral_that_defines_it(epsilon: float, mu: float) -> None:
    assert gaussian_delta(epsilon, mu) == pytest.approx(integrated_delta(epsilon, mu), abs=1e-12)


def test_delta_stays_exact_where_the_plain_formula_overflows() -> None:
    # exp(800) is infinite in a double; the two tails together are about 1e-23.
    assert 0.0 < gaussian_delta(800.0, 35.0) < 1e-2
    assert np.isfinite(gaussian_epsilon(delta=1e-200, mu=30.0))


@given(st.floats(0.01, 50.0), st.floats(-200.0, -1.0))
def test_epsilon_is_the_inverse_of_delta_on_the_safe_side(mu: float, log_delta: float) -> None:
    delta = float(np.exp(log_delta))
    epsilon = gaussian_epsilon(delta=delta, mu=mu)
    reached = gaussian_delta(epsilon, mu)
    assert reached <= delta * (1 + 1e-12)
    if epsilon > 1e-6:
        assert reached >= delta * (1 - 1e-5)


@given(st.floats(0.01, 50.0), st.floats(-60.0, -1.0))
def test_mu_is_the_inverse_of_the_budget_on_the_safe_side(epsilon: float, log_delta: float) -> None:
    delta = float(np.exp(log_delta))
    mu = gaussian_mu(epsilon, delta)
    assert gaussian_delta(epsilon, mu) <= delta * (1 + 1e-12)
    assert gaussian_delta(epsilon, mu * (1 + 1e-6)) > delta


def test_the_classical_gaussian_mechanism_breaks_its_promise_above_epsilon_one() -> None:
    # ERRATA: at epsilon = 10, delta = 1e-5 the classical scale has an exact delta of 2.27e-5.
    classical = np.sqrt(2.0 * np.log(1.25 / 1e-5)) / 10.0
    assert gaussian_delta(10.0, 1.0 / classical) == pytest.approx(2.27e-5, abs=5e-8)


def test_noise_for_fifty_steps_on_a_thousand_rows_is_the_known_value() -> None:
    # ISTDP, sensitivity 2/n, epsilon = 1, delta = 1e-5, T = 50, n = 1000: .0528.
    assert 2.0 / 1000 * np.sqrt(50) / gaussian_mu(1.0, 1e-5) == pytest.approx(0.0528, abs=1e-4)


def test_composition_adds_squares_and_splitting_a_release_costs_nothing() -> None:
    assert composed([0.3, 0.4]) == pytest.approx(0.5)
    scale = 3.0 / gaussian_mu(2.0, 1e-6)
    assert account_ledger([Release(mu=1.0 / scale)] * 9, 1e-6, neighbours="one row").epsilon == pytest.approx(
        2.0, abs=1e-8
    )


@settings(deadline=None)
@given(st.lists(st.floats(0.001, 2.0), min_size=1, max_size=30), st.sampled_from([1e-3, 1e-6, 1e-9]))
def test_no_looser_rule_is_below_the_exact_composition(mus: list[float], delta: float) -> None:
    accounting = account_ledger([Release(mu=mu) for mu in mus], delta, neighbours="one row")
    exact, *others = accounting.claims
    assert all(claim.epsilon >= exact.epsilon - 1e-9 for claim in others)
    assert accounting.guarantee is exact or accounting.guarantee.epsilon == pytest.approx(exact.epsilon)


def test_zcdp_conversion_is_below_the_textbook_one_and_above_the_truth() -> None:
    for mu in (0.1, 0.5, 2.0):
        rho = mu**2 / 2.0
        textbook = rho + 2.0 * np.sqrt(rho * np.log(1e6))
        assert gaussian_epsilon(delta=1e-6, mu=mu) <= zcdp_epsilon(rho=rho, delta=1e-6) <= textbook
    assert zcdp_epsilon(rho=0.0, delta=1e-6) == 0.0


def test_advanced_composition_of_the_paper_is_looser_than_adding_up() -> None:
    # ERRATA SHARING 8: epsilon = 1, T = 20, delta' = 1e-5 gives 55.8 where basic composition gives 20.
    assert advanced_composition([1.0] * 20, 1e-5) == pytest.approx(55.8, abs=0.1)


def test_what_a_paper_prints_stands_beside_and_is_never_the_guarantee() -> None:
    printed = Claim("as printed", 0.1, 1e-6, holds=False, note="the noise is degenerate")
    accounting = account_ledger([Release(mu=1.0)], 1e-6, neighbours="one row", printed=[printed])
    assert accounting.guarantee.rule == "exact Gaussian composition"
    assert "no bound: the noise is degenerate" in str(accounting)
    assert list(accounting.table["holds"]) == [True, True, True, True, False]


def test_pure_releases_add_up_and_many_small_ones_cost_less_at_a_delta() -> None:
    few = account_ledger([Release(epsilon=1.0), Release(epsilon=0.5)], 1e-6, neighbours="row")
    assert (few.epsilon, few.delta) == (1.5, 0.0)
    many = account_ledger([Release(epsilon=0.05)] * 50, 1e-6, neighbours="row")
    assert many.claims[0].epsilon == pytest.approx(2.5, abs=1e-12)
    assert many.guarantee.delta == 1e-6
    assert many.epsilon < 2.0
    assert account_ledger([Release(epsilon=0.25)] * 4, neighbours="row").claims == (
        Claim("adding up pure epsilons", 1.0, 0.0),
    )


@pytest.mark.parametrize(("rounds", "epsilon"), [(50, 0.05), (200, 0.1), (400, 0.02)])
def test_no_rule_for_pure_releases_is_below_binary_randomised_response(rounds: int, epsilon: float) -> None:
    # Its exact composition is a binomial sum, and the worst of any pure release (Kairouz, Oh, Viswanath 2015).
    heads = np.arange(rounds + 1)
    truth = binom(rounds, 1.0 / (1.0 + np.exp(-epsilon)))
    loss = epsilon * (2 * heads - rounds)
    for claim in account_ledger([Release(epsilon=epsilon)] * rounds, 1e-6, neighbours="bit").claims:
        exact = np.sum(truth.pmf(heads) * np.maximum(-np.expm1(claim.epsilon - loss), 0.0))
        assert exact <= claim.delta + 1e-15


@pytest.mark.parametrize("kind", ["mu", "epsilon"])
@pytest.mark.parametrize("cost", [-0.1, np.nan, np.inf])
def test_a_release_without_a_finite_cost_is_refused(kind: str, cost: float) -> None:
    with pytest.raises(PrivacyError, match="no privacy loss"):
        Release(**{kind: cost})


def test_a_mechanism_without_any_valid_rule_has_no_guarantee() -> None:
    only = Accounting((Claim("as printed", 1.0, 1e-6, holds=False),), 0.0, 1, "one column")
    with pytest.raises(PrivacyError, match="no differential privacy"):
        _ = only.guarantee


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.0, 0.0, 1e-6), "epsilon=0.0"),
        ((1.0, -1.0, 1e-6), "epsilon=-1.0"),
        ((1.0, float("nan"), 1e-6), "epsilon=nan"),
        ((1.0, 1.0, 0.0), "delta=0.0"),
        ((1.0, 1.0, 1.0), "delta=1.0"),
        ((float("inf"), 1.0, 1e-6), "clip what is released"),
        ((0.0, 1.0, 1e-6), "clip what is released"),
    ],
)
def test_a_budget_or_a_sensitivity_that_is_none_is_refused(arguments: tuple[float, ...], message: str) -> None:
    with pytest.raises(PrivacyError, match=message):
        GaussianNoise(arguments[0], gaussian_mu(*arguments[1:]), 1)


@pytest.mark.parametrize("delta", [0.0, 1.0, 1.5])
def test_a_delta_outside_of_0_and_1_is_refused_and_any_inside_is_taken(delta: float) -> None:
    with pytest.raises(PrivacyError, match="is not in"):
        account_ledger([Release(mu=1.0)], delta, neighbours="one row")
    assert account_ledger([Release(mu=1.0)], 0.7, neighbours="one row").epsilon == 0.0
    assert gaussian_delta(1.0, gaussian_mu(1.0, 0.7)) == pytest.approx(0.7, rel=1e-9)


def test_secure_noise_is_normal_and_never_repeats() -> None:
    first, second = Noise().normal(2.0, 20_000), Noise().normal(2.0, 20_000)
    # The chance that a right generator fails this is 1e-6.
    assert kstest(first / 2.0, "norm").pvalue > 1e-6
    assert not np.intersect1d(first, second).size
    assert Noise().secure


@pytest.mark.parametrize("source", [Noise(), Noise(np.random.default_rng(1))], ids=["secure", "seeded"])
def test_ball_noise_has_gamma_norms_and_no_preferred_direction(source: Noise) -> None:
    draws = source.gamma_ball(5, 2.0, 20_000)
    norms = np.linalg.norm(draws, axis=1)
    assert kstest(norms, "gamma", args=(5, 0, 0.5)).pvalue > 1e-6
    # Six standard errors of a mean of unit vectors' entries, each of variance 1/5.
    assert np.abs((draws / norms[:, None]).mean(axis=0)).max() < 6.0 * np.sqrt(0.2 / 20_000)


def test_a_noise_seed_repeats_the_noise_and_warns_that_it_must_be_secret() -> None:
    with pytest.warns(PrivacyWarning, match="secret"):
        first = noise_source(3)
    with pytest.warns(PrivacyWarning):
        second = noise_source(3)
    np.testing.assert_array_equal(first.normal(1.0, 5), second.normal(1.0, 5))
    assert not first.secure
    assert noise_source().secure


@pytest.mark.parametrize("seed", [-1, 1.5, True, "7"])
def test_a_noise_seed_that_is_none_is_refused(seed: object) -> None:
    with pytest.raises(PrivacyError, match="noise_seed"):
        noise_source(seed)  # type: ignore[arg-type]


def test_audit_of_a_gaussian_release_stays_below_its_exact_epsilon() -> None:
    rng = np.random.default_rng(0)
    exact = gaussian_epsilon(delta=1e-3, mu=1.0)
    found = audit(lambda x: x + rng.normal(size=3), np.zeros(3), np.array([1.0, 0.0, 0.0]), delta=1e-3, runs=4000)
    assert 0.5 < found.epsilon < exact
    assert not found.refutes(exact)


def test_the_bound_of_an_audit_holds_as_often_as_its_confidence_says() -> None:
    # Randomised response at epsilon 1 reaches its epsilon on the event "the answer is 1".
    rng, truth, studies = np.random.default_rng(4), 1 / (1 + np.exp(-1.0)), 200
    above = 0
    for _ in range(studies):
        found = audit(
            lambda bit: float(bit if rng.random() < truth else 1 - bit),
            1,
            0,
            delta=0.0,
            runs=200,
            confidence=0.8,
            event=lambda answer: answer > 0.5,
        )
        above += found.epsilon > 1.0
    assert above / studies <= 0.2  # limits of binomial chances are careful, and four share the risk


def test_audit_catches_noise_that_is_ten_times_too_small() -> None:
    rng = np.random.default_rng(1)
    found = audit(lambda x: x + 0.1 * rng.normal(), 0.0, 1.0, delta=1e-5, runs=2000)
    # 1000 judging runs cannot show more than log(0.994 / 0.0055); the claim of a mu = 1 release is 4.4.
    assert found.refutes(gaussian_epsilon(delta=1e-5, mu=1.0))


def test_audit_of_equal_data_shows_nothing() -> None:
    rng = np.random.default_rng(2)
    assert audit(lambda x: x + rng.normal(), 0.0, 0.0, delta=0.0, runs=2000).epsilon < 0.2


def test_audit_takes_the_event_that_an_adversary_looks_for() -> None:
    rng = np.random.default_rng(3)
    # The noise lives on a line that moves with the data: its support gives the data away with certainty.
    found = audit(
        lambda slope: np.array([1.0, slope]) * rng.normal(scale=100.0),
        1.0,
        -1.0,
        delta=1e-6,
        runs=500,
        event=lambda released: abs(released[0] - released[1]) < 1e-9,
    )
    assert (found.hits, found.hits_neighbour) == (500, 0)
    assert found.epsilon > 4.0
    assert "500 of 500" in str(found)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"runs": 5}, "runs=5"), ({"confidence": 1.0}, "confidence=1.0"), ({"delta": 1.0}, "delta=1.0")],
)
def test_an_audit_that_cannot_say_anything_is_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(PrivacyError, match=message):
        audit(lambda x: x, 0.0, 1.0, **{"delta": 1e-6, **options})  # type: ignore[arg-type]


def test_an_audit_is_sized_by_the_quickest_of_three_runs_and_what_one_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    audits, sizes, released = import_module("cvxpriv.privacy.audit"), [], []
    monkeypatch.setattr(audits, "require_feasible", sizes.append)
    for runs, value in ((50, np.zeros(4)), (50, 0.0), (10**40, 0.0)):
        clock = partial(next, iter([0.0, 5.0, 10.0, 12.0, 20.0, 23.0]))
        monkeypatch.setattr(audits, "time", SimpleNamespace(perf_counter=clock))
        released.append(len(audits._first_runs(lambda data, value=value: value, None, runs)))
    assert released == [3, 3, 3]
    # Two data sets; a release is held twice, with 32 bytes beside its numbers; counts are taken for 10^30 at most.
    assert [size.seconds for size in sizes] == [2 * 100, 2 * 100, 2 * 2e30]
    assert [size.held for size in sizes] == [2 * 100 * (32 + 32), 2 * 100 * 32, 2 * 2e30 * 32]


def limits_of(hits: int, runs: int, risk: float) -> tuple[float, float]:
    """The probabilities at which so many hits, or more, and so many, or fewer, have a chance of `risk`."""
    low = brentq(lambda p: binom.sf(hits - 1, runs, p) - risk, 0.0, 1.0, xtol=1e-15) if hits else 0.0
    return low, brentq(lambda p: binom.cdf(hits, runs, p) - risk, 0.0, 1.0, xtol=1e-15) if hits < runs else 1.0


@pytest.mark.parametrize("delta", [0.0, 0.02])
@pytest.mark.parametrize(
    ("hits", "other"),
    [(90, 5), (5, 90), (95, 10), (10, 95), (60, 40), (98, 60), (60, 98), (100, 98), (0, 2), (100, 5), (5, 100)],
)
def test_an_audit_finds_the_best_of_four_ratios_of_exact_limits(hits: int, other: int, delta: float) -> None:
    runs, risk = 100, (1.0 - 0.9) / 4.0
    answers = iter([k < hits for k in range(runs)] + [k < other for k in range(runs)])
    found = audit(lambda data: next(answers), 0, 1, delta=delta, runs=runs, confidence=0.9, event=bool)
    (low, high), (its_low, its_high) = limits_of(hits, runs, risk), limits_of(other, runs, risk)
    # P(E) - delta over P'(E), and the same of the event that does not happen, each either way round.
    pairs = [(low, its_high), (its_low, high), (1.0 - high, 1.0 - its_low), (1.0 - its_high, 1.0 - low)]
    expected = max([0.0, *(np.log((p - delta) / q) for p, q in pairs if p > delta)])
    assert found.epsilon == pytest.approx(expected, rel=1e-9)
    assert (found.hits, found.hits_neighbour, found.runs) == (hits, other, runs)


def test_an_audit_judges_on_half_of_its_runs_a_thousand_unless_told_otherwise() -> None:
    rng, asked = np.random.default_rng(0), []
    assert audit(lambda x: asked.append(x) or x + rng.normal(), 0.0, 1.0, delta=0.0).runs == 500
    assert (asked.count(0.0), asked.count(1.0)) == (1000, 1000)
    assert audit(lambda x: x + rng.normal(), 0.0, 1.0, delta=0.0, runs=20).runs == 10
    assert audit(lambda x: x, 0.0, 1.0, delta=0.99, runs=200).epsilon == 0.0  # 100 runs show no 0.99
    with pytest.raises(PrivacyError, match="runs=19"):
        audit(lambda x: x, 0.0, 1.0, delta=0.0, runs=19)


def test_an_audit_looks_along_the_likelihood_ratio_of_gaussians() -> None:
    # Coordinates +-1 in every combination: means and variances are exact. log p/q is linear in shift/variance.
    corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    shift, spread, its_spread = np.array([1.0, -2.0, 0.5]), np.array([1.0, 3.0, 0.1]), np.array([2.0, 1.0, 0.3])
    middle = np.array([5.0, 0.0, -7.0])
    along = _direction(corners * spread + shift + middle, corners * its_spread + middle)
    np.testing.assert_allclose(along, shift / ((spread**2 + its_spread**2) / 2.0), rtol=1e-12)
    told = _direction(
        np.column_stack([corners[:, 0], np.full(8, 3.0)]), np.column_stack([corners[:, 0] - 9.0, np.ones(8)])
    )
    assert told[1] > 1e9 * abs(told[0])  # a coordinate that is constant, and differs, gives the data away


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("middle", [0.0, 40.0, -40.0])
def test_an_audit_finds_the_tail_that_tells_two_data_sets_apart(sign: float, swapped: bool, middle: float) -> None:
    # Half of one side's releases lie at 1, where the other side has none but in a hundredth; all others lie at 0.
    often, seldom = np.repeat([0.0, 1.0], 200) * sign + middle, np.repeat([0.0, 1.0], [396, 4]) * sign + middle
    first, second = (seldom, often) if swapped else (often, seldom)
    assert middle + min(sign, 0.0) < _best_cut(first, second, 0.0, 0.95) < middle + max(sign, 0.0)
    turn = iter([*first, *first[::-1], *second, *second[::-1]])
    found = audit(lambda data: next(turn), 0, 1, delta=0.0, runs=800)
    (low, _), (_, high) = limits_of(200, 400, 0.0125), limits_of(4, 400, 0.0125)
    assert found.epsilon == pytest.approx(np.log(low / high), rel=1e-9)


def test_an_audit_prefers_the_cut_of_the_largest_ratio_that_enough_runs_show() -> None:
    # Beyond 1 a side has 200 and 40 of 400, beyond 2 it has 60 and 4: a ratio of 15 against 5, both well shown.
    first = np.repeat([0.5, 1.5, 2.5], [200, 140, 60])
    second = np.repeat([0.5, 1.5, 2.5], [360, 36, 4])
    assert 1.5 < _best_cut(first, second, 0.0, 0.95) < 2.5
    # At a risk of a millionth 4 of 400 may well be 20: the limits that judge show more further in.
    assert 0.5 < _best_cut(first, second, 0.0, 1.0 - 1e-6) < 1.5
    # With 1 against 0 of 400 beyond 2 nothing is shown there, whatever the ratio.
    first, second = np.repeat([0.5, 1.5, 2.5], [200, 199, 1]), np.repeat([0.5, 1.5], [360, 40])
    assert 0.5 < _best_cut(first, second, 0.0, 0.95) < 1.5
    # A delta of a tenth leaves nothing of the outer tail's 60 of 400 but a twentieth: the inner one shows more.
    first, second = np.repeat([0.5, 1.5, 2.5], [200, 140, 60]), np.repeat([0.5, 1.5, 2.5], [380, 12, 8])
    assert 0.5 < _best_cut(first, second, 0.1, 0.95) < 1.5
