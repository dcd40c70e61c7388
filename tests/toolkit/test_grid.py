"""Releases on a grid: the law of the noise, what rounding costs, and that no value tells what it was made from."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.special import erfinv, ndtr, ndtri
from scipy.stats import chisquare, kstest

from cvxpriv.errors import PrivacyError
from cvxpriv.numerics.arrays import Array
from cvxpriv.privacy import (
    BallNoise,
    GaussianNoise,
    Noise,
    PrivacyWarning,
    gaussian_delta,
    grid,
    noise_source,
    sampling,
)
from tests.toolkit.reachability import reachable

#: The chance that a right sampler fails one of these tests.
RARE = 1e-6


def seeded(seed: int = 0) -> Noise:
    return Noise(np.random.default_rng(seed))


class TestSampling:
    """Whole numbers, drawn exactly."""

    @pytest.mark.parametrize("source", [Noise(), seeded()], ids=["secure", "seeded"])
    @pytest.mark.parametrize("sigma", [0.4, 1.0, 3.7])
    def test_a_rounded_gaussian_number_has_the_law_of_rounding(self, sigma: float, source: Noise) -> None:
        drawn = source.rounded_normals(sigma, 200_000)
        edge = int(np.ceil(3.0 * sigma))
        inside = np.arange(-edge, edge + 1)
        law = ndtr((inside + 0.5) / sigma) - ndtr((inside - 0.5) / sigma)
        counts = np.array([np.sum(drawn == value) for value in inside])
        rest = drawn.size - counts.sum()
        assert chisquare([*counts, rest], drawn.size * np.array([*law, 1.0 - law.sum()])).pvalue > RARE

    def test_on_a_fine_grid_it_is_gaussian_and_as_wide_as_asked(self) -> None:
        drawn = seeded(1).rounded_normals(2.0**24, 100_000)
        assert kstest(drawn / 2.0**24, "norm").pvalue > RARE

    def test_a_million_draws_take_a_second_or_two(self) -> None:
        assert Noise().rounded_normals(2.0**26, 1_000_000).dtype == np.int64

    @pytest.mark.parametrize("dimension", [1, 2, 5])
    def test_a_rounded_ball_has_gamma_norms_and_no_preferred_direction(self, dimension: int) -> None:
        drawn = sampling.rounded_balls(seeded(2).words, 2.0**20, 20_000, dimension)
        norms = np.linalg.norm(drawn, axis=1)
        assert kstest(norms / 2.0**20, "gamma", args=(dimension,)).pvalue > RARE
        directions = drawn / norms[:, None]
        # Six standard errors of a mean of unit vectors' entries.
        assert np.abs(directions.mean(axis=0)).max() < 6.0 / np.sqrt(dimension * 20_000)
        assert np.allclose(
            directions.T @ directions / 20_000, np.eye(dimension) / dimension, atol=6.0 / np.sqrt(20_000)
        )

    @pytest.mark.parametrize("epsilon", [0.01, 1.0, 6.0])
    def test_a_coin_falls_as_often_as_randomised_response_asks(self, epsilon: float) -> None:
        chance = 1.0 / (1.0 + np.exp(epsilon))
        hits = Noise().coins(epsilon, 200_000).mean()
        assert abs(hits - chance) < 5.0 * np.sqrt(chance * (1.0 - chance) / 200_000)

    def test_what_doubles_decide_is_what_many_digits_decide(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def all_of_them(seed: int) -> tuple[Array, ...]:
            noise = seeded(seed)
            words = noise.words
            first = words(400)
            rest = lambda count: first[:count] if count <= 400 else words(count)  # noqa: E731
            return (
                sampling.rounded_normals(rest, 2.0**20, 400),
                sampling.rounded_balls(rest, 2.0**18, 40, 5),
                sampling.balls(rest, 1.0, 40, 5),
                sampling.exact_coins(rest, 0.7, 400),
            )

        fast = all_of_them(3)
        monkeypatch.setattr(sampling, "NORMAL_ERROR", 1.0)  # nothing a double says is believed
        monkeypatch.setattr(sampling, "BALL_ERROR", 1.0)
        coins = all_of_them(3)[3]
        monkeypatch.setattr(sampling, "NORMAL_ERROR", 2.0**-44)
        monkeypatch.setattr(sampling, "LEAST", 2**63)  # every word is too short
        _, whole, real, _ = all_of_them(3)
        assert np.array_equal(coins, fast[3])
        assert np.array_equal(whole, fast[1])
        assert np.abs(real - fast[2]).max() <= 2.0**-42 * np.linalg.norm(fast[2], axis=1).max()

    def test_a_normal_that_doubles_leave_open_is_settled_by_its_bits(self, monkeypatch: pytest.MonkeyPatch) -> None:
        noise = seeded(4)
        drawn = noise.words(300)
        fast = sampling.rounded_normals(lambda count: drawn, 2.0**20, 300)
        monkeypatch.setattr(sampling, "NORMAL_ERROR", 2.0**-22)  # a doubt of four whole numbers
        slow = sampling.rounded_normals(lambda count: drawn if count == 300 else noise.words(count), 2.0**20, 300)
        assert np.array_equal(fast, slow)

    def test_scipy_is_as_exact_as_the_sampler_takes_for_granted(self) -> None:
        chances = 2.0 ** -np.random.default_rng(0).uniform(1.0, 60.0, 200)
        with mpmath.workprec(300):
            for chance in chances:
                exact = mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mpmath.mpf(chance))
                assert abs(-ndtri(chance) - exact) <= 2.0**-46 * (1 + exact)
                centre = mpmath.sqrt(2) * mpmath.erfinv(mpmath.mpf(chance))
                assert abs(np.sqrt(2.0) * erfinv(chance) - centre) <= 2.0**-46 * centre

    def test_a_chance_in_the_far_tail_reads_more_bits(self) -> None:
        noise = seeded(5)
        far = np.array([1], dtype=np.uint64)  # a tail of 2^-64 at most
        (drawn,) = sampling.rounded_normals(
            lambda count: far if count == 1 and far.size else noise.words(count), 1.0, 1
        )
        assert drawn >= 9 or drawn <= -9


class TestGrid:
    """Rounding a query, and what it costs."""

    @given(st.integers(0, 10_000), st.integers(1, 40), st.floats(-8.0, 3.0))
    @settings(max_examples=100, deadline=None)
    def test_rounding_moves_two_queries_apart_by_at_most_a_step_an_entry(
        self, seed: int, size: int, log: float
    ) -> None:
        rng, step = np.random.default_rng(seed), 2.0**-10
        query = rng.normal(size=size)
        other = query + 10.0**log * rng.normal(size=size)
        moved = step * np.linalg.norm(grid.on_grid(query, step) - grid.on_grid(other, step))
        assert moved <= np.linalg.norm(query - other) + step * np.sqrt(size)

    @given(st.floats(-3.0, 6.0), st.floats(-5.0, 5.0), st.integers(1, 1_000_000))
    @settings(max_examples=200, deadline=None)
    def test_the_grid_is_paid_for_and_costs_little(self, log: float, log_mu: float, size: int) -> None:
        sensitivity, mu = 10.0**log, 10.0**log_mu
        noise = GaussianNoise(sensitivity, mu, size)
        assert (sensitivity + noise.step * np.sqrt(size)) / noise.scale == pytest.approx(mu, rel=1e-12)
        assert 1.0 <= noise.scale * mu / sensitivity <= 1.0 + max(2.0**-12, mu * 2.0**-40)
        assert noise.step * np.sqrt(size) <= noise.scale * 2.0**-20
        assert np.log2(noise.step) == np.rint(np.log2(noise.step))
        ball = BallNoise.within(sensitivity, mu, size)
        assert ball.epsilon == pytest.approx(mu, rel=1e-12)
        assert ball.rate * (sensitivity + ball.step * np.sqrt(size)) == pytest.approx(mu, rel=1e-12)
        assert 1.0 - 2.0**-11 <= ball.rate * sensitivity / mu <= 1.0 + 1e-12

    @pytest.mark.parametrize("noise", [GaussianNoise(1.0, 0.5, 4), BallNoise.within(1.0, 0.5, 4)])
    def test_what_is_released_is_on_the_grid_whatever_the_query(self, noise: Any) -> None:
        for query in (np.zeros(4), np.array([np.pi, -1e9, 1e-300, 1e300])):
            whole = noise.release(query, seeded()) / noise.step
            assert np.array_equal(whole, np.rint(whole))

    @pytest.mark.parametrize("mu", [0.3, 1.0, 2.0])
    def test_the_exact_law_of_a_release_has_the_delta_that_is_accounted(
        self, mu: float, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(grid, "OF_NOISE", 0.5)  # so coarse that its law is a short sum, and matters
        monkeypatch.setattr(grid, "OF_SENSITIVITY", 0.5)
        noise = GaussianNoise(1.0, mu, 1)
        whole, sigma = np.arange(-400, 401), noise.scale / noise.step
        largest = 0.0
        for start in np.linspace(0.0, 1.0, 23):
            laws = []
            for query in (start, start + 1.0):
                (at,) = grid.on_grid(np.array([query]), noise.step)
                laws.append(ndtr((whole - at + 0.5) / sigma) - ndtr((whole - at - 0.5) / sigma))
            for epsilon in (0.0, 0.1, 1.0):
                delta = float(np.maximum(laws[0] - np.exp(epsilon) * laws[1], 0.0).sum())
                assert delta <= gaussian_delta(epsilon, mu) + 1e-14
                largest = max(largest, delta / gaussian_delta(epsilon, mu))
        assert largest > 0.5  # the sensitivity is no idle one

    def test_a_query_that_holds_nan_is_refused_and_one_far_out_is_cut_off(self) -> None:
        with pytest.raises(PrivacyError, match="holds NaN"):
            grid.on_grid(np.array([1.0, np.nan]), 1.0)
        assert grid.on_grid(np.array([np.inf, -1e300]), 1.0).tolist() == [2**61, -(2**61)]

    @pytest.mark.parametrize(
        ("deviation", "sensitivity", "size", "step"),
        [
            (1.0, 1.0, 1, -20),
            (1.0, 2.0**-9, 1, -21),
            (1.0, 2.0**-60, 1, -40),  # no finer than doubles hold the noise
            (2.0**7, 2.0**9, 64, -16),
            (3.0, 2.0, 1, -19),  # the power of two below 1.5 times 2^-19
            (2.0**-880, 1.0, 1, -900),
        ],
    )
    def test_a_step_is_a_power_of_two_far_below_noise_and_sensitivity(
        self, deviation: float, sensitivity: float, size: int, step: int
    ) -> None:
        assert grid.grid_step(deviation, sensitivity, size) == 2.0**step

    def test_a_step_at_the_end_of_the_doubles_is_refused(self) -> None:
        with pytest.raises(PrivacyError, match="beyond the doubles"):
            grid.grid_step(2.0**-881, 1.0, 1)

    @pytest.mark.parametrize("size", [1, 6])
    def test_a_release_is_the_query_on_the_grid_plus_the_noise_of_its_source(self, size: int) -> None:
        query = np.linspace(-2.0, 3.0, size)
        gaussian, ball = GaussianNoise(0.8, 0.25, size), BallNoise.of_rate(0.8, 0.25, size)
        # Standard deviation (0.8 + what the grid moves)/mu, and scale 1/rate; both in steps.
        scale = (0.8 + gaussian.step * np.sqrt(size)) / 0.25 / gaussian.step
        normals, balls = seeded(7).rounded_normals(scale, size), seeded(7).rounded_ball(4.0 / ball.step, size)
        for noise, drawn in ((gaussian, normals), (ball, balls)):
            exact = (np.rint(query / noise.step) + drawn) * noise.step
            np.testing.assert_array_equal(noise.release(query, seeded(7)), exact)

    @pytest.mark.parametrize("size", [1, 9])
    def test_a_ball_pays_for_its_grid_and_the_grid_follows_from_its_deviation(self, size: int) -> None:
        noise = BallNoise.of_rate(0.5, 4.0, size)
        assert noise.epsilon == pytest.approx(4.0 * (0.5 + noise.step * np.sqrt(size)), rel=1e-15)
        # The norm is Gamma(d, 1/rate), of mean square d (d + 1)/rate^2: an entry's deviation is sqrt(d + 1)/rate.
        # At these rates that is a whole power of two times sqrt(d), but for a billionth.
        even = 16.0 * np.sqrt((size + 1.0) / size)
        assert BallNoise.of_rate(0.5, even * (1.0 - 1e-9), size).step == 2.0**-24
        assert BallNoise.of_rate(0.5, even * (1.0 + 1e-9), size).step == 2.0**-25
        whole = BallNoise.within(0.5, 2.0, size)
        assert whole.step == BallNoise.of_rate(0.5, 4.0, size).step
        assert whole.rate == pytest.approx(2.0 / (0.5 + whole.step * np.sqrt(size)), rel=1e-15)

    @pytest.mark.parametrize("sensitivity", [0.0, -1.0, np.inf, np.nan])
    def test_a_sensitivity_that_is_no_bound_is_refused(self, sensitivity: float) -> None:
        with pytest.raises(PrivacyError, match="is not a bound"):
            GaussianNoise(sensitivity, 1.0, 3)
        with pytest.raises(PrivacyError, match="is not a bound"):
            BallNoise.within(sensitivity, 1.0, 3)

    @pytest.mark.parametrize("cost", [0.0, -1.0, np.nan])
    def test_a_cost_that_leaves_no_noise_is_refused(self, cost: float) -> None:
        with pytest.raises(PrivacyError):
            GaussianNoise(1.0, cost, 3)
        with pytest.raises(PrivacyError):
            BallNoise.of_rate(1.0, cost, 3)

    def test_data_of_a_size_at_the_end_of_the_doubles_are_refused(self) -> None:
        with pytest.raises(PrivacyError, match="beyond the doubles"):
            _ = GaussianNoise(1e-280, 1.0, 3).step


def test_doubles_tell_two_queries_apart_and_the_grid_does_not() -> None:
    rng, runs, size = np.random.default_rng(6), 100, 60
    queries = rng.uniform(size=(2, size))
    noise = GaussianNoise(float(np.linalg.norm(queries[0] - queries[1])), 0.1, size)

    def told(released: Array) -> float:
        """Of a release of the first query: 1 where only that one reaches it, 0 for the other, 1/2 for both or none."""
        own, other = (reachable(released, query, noise.scale).all() for query in queries)
        return 0.5 + 0.5 * (float(own) - float(other))

    doubles = [told(queries[0] + noise.scale * rng.standard_normal(size)) for _ in range(runs)]
    assert np.mean(doubles) > 0.95  # with epsilon .1 at delta = 1e-6, .53 is allowed
    on_a_grid = [told(noise.release(queries[0], Noise())) for _ in range(runs)]
    assert np.mean(on_a_grid) < 0.6


def test_noise_of_no_width_is_none_a_rate_of_0_is_refused_and_0_is_a_seed() -> None:
    assert Noise().normal(0.0, 3).tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(PrivacyError, match=r"rate=0.0 is no noise rate"):
        Noise().gamma_ball(2, 0.0, 1)
    with pytest.warns(PrivacyWarning, match="repeatable"):
        assert not noise_source(0).secure
