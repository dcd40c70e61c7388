"""The funnel's bounds: below everything that a mechanism reaches, and met by the mechanism that comes with them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from cvxpriv_models.privacy_funnel.bound import Prover, bound
from cvxpriv_models.privacy_funnel.columns import mechanism_of, mixed_to_rate, utility
from cvxpriv_models.privacy_funnel.curve import band
from cvxpriv_models.privacy_funnel.optimum import price
from cvxpriv_models.privacy_funnel.perfect_privacy import listed_silent, perfect_privacy, silent_columns
from cvxpriv_models.privacy_funnel.pricing import FunnelPricing
from cvxpriv_models.privacy_funnel.pricing_convex import above_tangents, may_be_together
from cvxpriv_models.privacy_funnel.pricing_faces import face_minimum
from cvxpriv_models.privacy_funnel.pricing_search import edge_minima
from cvxpriv_models.privacy_funnel.run import columns_block
from scipy.optimize import linprog, minimize
from scipy.special import xlogy

from cvxpriv import datasets
from cvxpriv.bounds import columns
from cvxpriv.bounds.columns import Generation
from cvxpriv.certify import crosscheck
from cvxpriv.errors import DataError, ModelError
from cvxpriv.numerics import arrays
from cvxpriv.numerics.simplex import parts_of_unit
from cvxpriv.numerics.sizes import processor_time
from cvxpriv.tables.information import entropy, mutual_information

ROUNDING = 1e-12  # sums of some hundred terms of size 1
P_S_X = np.array([[0.9, 0.08, 0.4], [0.025, 0.82, 0.05], [0.075, 0.1, 0.55]])  # PF, section V-A
MARGINALS = {"uniform": np.full(3, 1 / 3), "uneven": np.array([0.1, 0.3, 0.6])}
# Certified before by subdivision with linear programs, lower and upper within 1e-6 (docs/errata.md).
CERTIFIED = {
    "uniform": [0.019582, 0.039838, 0.060181, 0.080609, 0.121083, 0.175318, 0.243661, 0.313809, 0.383957, 0.454106],
    "uneven": [0.008006, 0.022057, 0.038726, 0.074165, 0.118697, 0.164488, 0.210617, 0.256902, 0.310461, 0.367797],
}


def table(private: int, public: int, seed: int, zeros: float = 0.0) -> np.ndarray:
    """A random P(S, X), some of whose P(s|x) are exactly zero."""
    rng = np.random.default_rng(seed)
    a = rng.dirichlet(np.ones(private), public).T * (rng.random((private, public)) >= zeros)
    a[rng.integers(private, size=public), np.arange(public)] += 0.05
    return a / a.sum(axis=0) * rng.dirichlet(np.ones(public))


def rate_of(joint: np.ndarray, fraction: float) -> float:
    return fraction * entropy(joint.sum(axis=0))


def leakage(joint: np.ndarray, mechanism: np.ndarray) -> float:
    return mutual_information(joint @ mechanism)


def phi(a: np.ndarray, lam: float, nu: np.ndarray, pi: np.ndarray) -> np.ndarray:
    """phi of columns pi, (|X|, n)."""
    t = a @ pi
    return xlogy(t, t).sum(axis=0) - lam * xlogy(pi, pi).sum(axis=0) - nu @ pi


def by_slsqp(joint: np.ndarray, rate: float, symbols: int, seed: int) -> float:
    """The least leakage that one run of SLSQP finds, from a random start, by a softmax of logits."""
    rng, size = np.random.default_rng(seed), joint.shape[1]
    p_x = joint.sum(axis=0)

    def mechanism(z: np.ndarray) -> np.ndarray:
        e = np.exp(z.reshape(size, symbols) - z.reshape(size, symbols).max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    def told(z: np.ndarray) -> float:
        return mutual_information(p_x[:, None] * mechanism(z)) - rate

    start = 3.0 * rng.normal(size=size * symbols)
    rule = {"type": "ineq", "fun": told}
    found = minimize(lambda z: leakage(joint, mechanism(z)), start, constraints=[rule], method="SLSQP")
    return leakage(joint, mixed_to_rate(mechanism(found.x), p_x, rate))


@pytest.mark.parametrize("marginal", MARGINALS)
def test_the_paper_s_example_is_certified_to_1e_9_and_agrees_with_the_errata(marginal: str) -> None:
    joint = P_S_X * MARGINALS[marginal]
    found = band(joint, rate_of(joint, 1.0) * np.arange(1, 11) / 10, gap=1e-9).values()
    assert max(one.gap for one in found) <= 1e-9
    np.testing.assert_allclose(
        [one.lower for one in found], CERTIFIED[marginal], atol=1.5e-6
    )  # theirs are known to 1e-6


def test_readme_s_example_and_its_certificate() -> None:
    heart = datasets.heart_failure()
    found = bound(heart, 0.8 * heart.entropy_x, gap=1e-6)
    assert found.gap <= 1e-6
    assert found.upper == pytest.approx(0.0207928, abs=1e-6)
    assert found.reason == ""
    assert heart.p_x.size == len(found.mechanism)
    assert mutual_information(heart.p_x[:, None] * found.mechanism) >= found.rate
    assert leakage(heart.probabilities, found.mechanism) == pytest.approx(found.upper, abs=ROUNDING)


@pytest.mark.grid(every=3)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("zeros", [0.0, 0.4])
def test_a_grid_of_posteriors_agrees_for_three_public_symbols(seed: int, zeros: float) -> None:
    """The linear program over all posteriors with coordinates k / n is above the bound, by what the grid costs."""
    joint = table(2 + seed, 3, seed, zeros)
    n = 120
    grid = np.array([(i, j, n - i - j) for i in range(n + 1) for j in range(n + 1 - i)], dtype=np.float64).T / n
    a, p_x = joint / joint.sum(axis=0), joint.sum(axis=0)
    rows = -xlogy(grid, grid).sum(axis=0)
    costs = xlogy(a @ grid, a @ grid).sum(axis=0)
    for fraction in (0.3, 0.7):
        rate = rate_of(joint, fraction)
        right = [entropy(p_x) - rate]
        program = linprog(costs, A_eq=grid, b_eq=p_x, A_ub=rows[None], b_ub=right, method="highs-ds")
        on_grid = entropy(joint.sum(axis=1)) + program.fun
        found = bound(joint, rate, gap=1e-8)
        assert found.lower <= on_grid + 1e-7  # the grid's solver is right to 1e-7
        assert (
            found.upper >= on_grid - 2e-3
        )  # a posterior moves by 1/120 at most, its entropy by less than 2e-3 on average


@pytest.mark.grid(every=3)
@pytest.mark.parametrize("seed", range(6))
def test_slsqp_never_goes_below_the_bound(seed: int) -> None:
    private, public = [(2, 4), (2, 5), (3, 4), (3, 5), (4, 4), (4, 5)][seed]
    joint = table(private, public, seed, zeros=0.3 * (seed % 2))
    rate = rate_of(joint, 0.65)
    found = bound(joint, rate, gap=1e-7)
    assert found.gap <= 1e-7
    reached = [by_slsqp(joint, rate, public + 1, start) for start in range(3)]
    assert min(reached) >= found.lower - ROUNDING


@pytest.mark.slow
def test_two_hundred_tables_are_certified_and_never_beaten() -> None:
    rng = np.random.default_rng(0)
    for seed in range(200):
        private, public = int(rng.integers(2, 5)), int(rng.integers(2, 13))
        joint = table(private, public, seed, zeros=float(rng.choice([0.0, 0.3])))
        rate = rate_of(joint, float(rng.uniform(0.05, 1.0)))
        found = bound(joint, rate, gap=1e-6)
        assert found.gap <= 1e-6, seed
        p_x = joint.sum(axis=0)
        assert mutual_information(p_x[:, None] * found.mechanism) >= rate
        for start in range(20):
            draw = np.random.default_rng(start).dirichlet(np.full(public + 1, 0.1), public)
            assert leakage(joint, mixed_to_rate(draw, p_x, rate)) >= found.lower - ROUNDING
        if public <= 5:
            assert by_slsqp(joint, rate, public + 1, seed) >= found.lower - ROUNDING


@pytest.mark.parametrize(("private", "public"), [(1, 3), (2, 1), (2, 6), (3, 5), (6, 4), (4, 2)])
def test_both_ends_are_exact(private: int, public: int) -> None:
    joint = table(private, public, 1)
    full = bound(joint, rate_of(joint, 1.0))
    np.testing.assert_array_equal(full.mechanism, np.eye(public))
    assert full.upper == pytest.approx(mutual_information(joint), abs=ROUNDING)
    assert full.gap <= ROUNDING
    nothing = bound(joint, 0.0)
    assert nothing.lower == 0.0
    assert nothing.upper <= ROUNDING
    assert full.certificate.verify().bound >= full.upper - 1e-6


def test_more_private_symbols_than_columns_can_tell_apart() -> None:
    joint = np.repeat(table(2, 5, 3), 2, axis=0) / 2.0  # each private symbol twice: the same leakage as without
    rate = rate_of(joint, 0.6)
    assert bound(joint, rate, gap=1e-8).upper == pytest.approx(bound(table(2, 5, 3), rate, gap=1e-8).upper, abs=2e-8)


def test_public_symbols_that_look_alike_are_merged_or_not_at_no_cost() -> None:
    joint = table(2, 3, 5)
    doubled = np.repeat(joint, 2, axis=1) / 2.0  # X' = (X, a fair coin): the coin is free
    rate = rate_of(joint, 0.5)
    assert bound(doubled, rate + np.log(2.0), gap=1e-8).upper == pytest.approx(
        bound(joint, rate, gap=1e-8).upper, abs=2e-8
    )


def test_many_private_symbols_get_a_valid_bound_and_a_plain_sentence() -> None:
    joint = table(9, 10, 2)
    rate = rate_of(joint, 0.7)
    found = bound(joint, rate, time_limit=4.0)
    assert "not certified" in found.reason
    assert "|S| = 9" in found.reason
    assert found.lower >= max(0.0, rate - (entropy(joint) - entropy(joint.sum(axis=1))))
    assert found.lower > 0.3 * found.upper  # merging to two to four groups loses less than that here
    assert found.upper <= min(by_slsqp(joint, rate, 7, start) for start in range(1)) + 1e-6
    assert found.certificate.verify().bound == pytest.approx(found.lower, abs=1e-6)


@pytest.mark.parametrize(("private", "public"), [(6, 10), (7, 9), (20, 6)])
def test_six_to_eight_private_symbols_or_any_number_beside_few_public_ones_are_proved(
    private: int, public: int
) -> None:
    joint = table(private, public, 2)
    rate = rate_of(joint, 0.8)
    found = bound(joint, rate)
    assert found.gap <= 1e-6
    assert by_slsqp(joint, rate, public + 1, 0) >= found.lower
    pricing = FunnelPricing(joint, rate)
    points = np.random.default_rng(0).dirichlet(np.full(public, 0.3), 20_000).T
    assert phi(pricing.p_s_given_x, found.certificate.lam, found.certificate.nu, points).min() >= -1e-6


def test_more_than_two_million_faces_are_named() -> None:
    joint = table(5, 80, 0)
    found = bound(joint, rate_of(joint, 0.9), gap=1e-4, time_limit=1.0)
    assert "faces of up to 5 of the 80 public symbols" in found.reason
    assert 0.0 <= found.lower <= found.upper


def test_a_time_limit_gives_a_valid_looser_bound() -> None:
    heart = datasets.heart_failure()
    rate = 0.65 * heart.entropy_x
    best = bound(heart, rate).upper
    for limit in (1e-6, 0.1):
        found = bound(heart, rate, gap=1e-9, time_limit=limit)
        assert found.lower <= best
        assert found.upper >= found.lower
        assert mutual_information(heart.p_x[:, None] * found.mechanism) >= rate
    assert "time limit" in bound(heart, rate, time_limit=1e-6).reason


def test_known_columns_are_used() -> None:
    joint = table(3, 6, 4)
    rate = rate_of(joint, 0.6)
    first = bound(joint, rate, gap=1e-8)
    posteriors = first.mechanism * joint.sum(axis=0)[:, None]
    posteriors /= posteriors.sum(axis=0)
    again = Prover(joint, posteriors).at(rate, gap=1e-8)
    assert again.upper <= first.upper + ROUNDING


@pytest.mark.parametrize("option", [{"gap": 0.0}, {"gap": -1.0}, {"time_limit": 0.0}])
def test_impossible_options_are_refused(option: dict[str, float]) -> None:
    with pytest.raises(ModelError, match="have to be > 0"):
        bound(table(2, 3, 0), 0.1, **option)


def test_a_rate_above_the_entropy_and_an_empty_column_are_refused() -> None:
    with pytest.raises(ModelError, match="exceeds"):
        bound(table(2, 3, 0), 5.0)
    with pytest.raises(DataError, match="no mass|mass in every column"):
        FunnelPricing(np.array([[0.5, 0.0], [0.5, 0.0]]), 0.1)
    with pytest.raises(ModelError, match="rates is empty"):
        band(table(2, 3, 0), [])


@pytest.mark.parametrize("seed", range(20))
def test_edges_have_no_value_below_their_least(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a = rng.random(8)
    a[rng.random(8) < 0.3] = rng.integers(0, 2)
    lam, nu = float(rng.choice([0.0, 1e-6, 0.05, 0.3, 0.9, 1.2])), rng.normal(size=8)
    nu = 0.3 * nu
    first, second = np.triu_indices(8, 1)
    *_, of_edges = edge_minima(a, lam, nu, first, second)
    x = np.concatenate(
        [[0.0, 1.0], np.linspace(0.0, 1.0, 2001), np.logspace(-12, -3, 200), 1 - np.logspace(-12, -3, 200)]
    )
    least = np.inf
    for i, j in zip(first, second, strict=True):
        pi = np.zeros((8, len(x)))
        pi[i], pi[j] = 1.0 - x, x
        least = min(least, float(phi(np.vstack([a, 1.0 - a]), lam, nu, pi).min()))
    corners = xlogy(a, a) + xlogy(1 - a, 1 - a) - nu
    assert min(of_edges, corners.min()) <= least + ROUNDING
    assert min(of_edges, corners.min()) >= least - 1e-5  # the grid's step of 5e-4, squared, times a curvature


@pytest.mark.parametrize("seed", range(12))
def test_faces_shown_above_a_level_hold_nothing_below_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    private, public = int(rng.integers(3, 6)), int(rng.integers(3, 7))
    joint = table(private, public, seed, zeros=0.4 * (seed % 2))
    pricing = FunnelPricing(joint, 0.0)
    lam = float(rng.choice([0.0, 1e-3, 0.1, 0.5, 0.9]))
    nu = -entropy(pricing.p_s_given_x, axis=0) - rng.uniform(0.0, 0.3, public)  # corners are at 0 to 0.3
    found = face_minimum(pricing.p_s_given_x, lam, nu, -1e-4, lambda: False)
    points = np.concatenate([rng.dirichlet(np.full(public, c), 20_000) for c in (0.1, 0.5, 1.0)]).T
    least = float(phi(pricing.p_s_given_x, lam, nu, points).min())
    assert not found.reason or found.columns.size
    assert found.least <= least + ROUNDING
    assert (phi(pricing.p_s_given_x, lam, nu, found.columns) < -1e-4 + ROUNDING).all()
    if not found.columns.size:
        assert found.least == pytest.approx(-1e-4, rel=1e-12)
        assert least >= -1e-4


@pytest.mark.parametrize("size", [2, 3, 4])
def test_a_tangent_bounds_phi_on_every_cell_that_is_shown_to_be_convex(size: int) -> None:
    rng = np.random.default_rng(size)
    a, nu, lam = rng.dirichlet(np.full(5, 0.3), size).T, 0.1 * rng.normal(size=size), 0.02
    corners = parts_of_unit(size, 2048)
    t = np.einsum("si,ain->asn", a, corners)
    faces = np.repeat(a[:, :, None], 2048, axis=2), np.repeat(nu[:, None], 2048, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        cells, least, points = above_tangents(corners, t, faces[0], lam, faces[1])
    assert len(cells) > 20
    assert points.min() > 0.0
    inside = np.einsum("ain,ak->ikn", corners[:, :, cells], rng.dirichlet(np.full(size, 0.5), 200).T)
    values = phi(a, lam, nu, inside.reshape(size, -1)).reshape(200, -1)
    assert (least <= values.min(axis=0) + ROUNDING).all()
    # A tangent touches: some cell holds the minimum, and is bounded by it to the third step of Newton's method.
    assert least.max() >= values.min() - 1e-3


@pytest.mark.parametrize(("size", "points"), [(3, 592), (4, 556), (5, 490), (6, 456)])
def test_the_first_columns_of_a_small_table_are_a_grid_of_posteriors(size: int, points: int) -> None:
    pricing = FunnelPricing(table(3, size, 1), 0.0)
    grid = pricing.first[:, -points:]
    assert np.unique(grid, axis=1).shape == (size, points)
    assert grid.sum(axis=0) == pytest.approx(np.ones(points), abs=1e-15)
    assert 0.0 <= grid.min() <= grid.max() < 1.0


def test_a_search_that_is_stopped_keeps_a_valid_bound() -> None:
    joint = table(4, 8, 3)
    pricing = FunnelPricing(joint, 0.0)
    nu = -entropy(pricing.p_s_given_x, axis=0) - 0.05
    ticks = itertools.count()
    found = face_minimum(pricing.p_s_given_x, 0.2, nu, -1e-6, lambda: next(ticks) >= 2)
    assert found.reason
    points = np.random.default_rng(0).dirichlet(np.full(8, 0.3), 50_000).T
    assert found.least <= phi(pricing.p_s_given_x, 0.2, nu, points).min() + ROUNDING


def test_the_band_equals_single_bounds_and_is_convex() -> None:
    joint = table(3, 4, 8)
    rates = rate_of(joint, 1.0) * np.linspace(0.0, 1.0, 6)
    found = band(joint, rates, gap=1e-8).values()
    assert max(one.gap for one in found) <= 1e-8
    for rate, one in zip(rates, found, strict=True):
        single = bound(joint, rate, gap=1e-8)
        assert single.lower <= one.upper + ROUNDING
        assert one.lower <= single.upper + ROUNDING
    uppers = [one.upper for one in found]
    assert np.all(np.diff(uppers, 2) >= -4e-8)  # the optimal curve is convex; three bounds of 1e-8
    assert all(one.certificate.verify().bound <= one.upper for one in found)


def test_every_solver_agrees_with_the_master_over_the_same_columns() -> None:
    joint = table(3, 5, 9)
    rate = rate_of(joint, 0.6)
    prover = Prover(joint)
    found = prover.at(rate, 1e-9)
    held = joint.sum(axis=0)[:, None] * found.mechanism
    block = columns_block(joint, rate, np.hstack([prover.pricing.first, held / held.sum(axis=0)]))
    assert set(block.declaration().constraints) == {"posteriors average to P(X)", "rate", "weights"}
    crosscheck(block, ["CLARABEL", "ECOS", "HIGHS"], at={}).raise_if_failed()
    for solver in ("CLARABEL", "ECOS", "HIGHS"):
        declaration = block.declaration((), solver)
        assert declaration.problem.solve(solver=solver) == pytest.approx(found.upper, abs=1e-6), solver
        lam = float(np.ravel(declaration.constraints["rate"].dual_value)[0])
        # The columns leave an interval of multipliers to the linear program; the certificate has that of all columns.
        assert lam == pytest.approx(found.certificate.lam, abs=5e-3), solver


def test_no_leakage_at_the_largest_private_rate_and_some_above_it() -> None:
    for joint in (table(2, 6, 1), table(3, 7, 2), table(2, 5, 3, zeros=0.3)):
        found = perfect_privacy(joint)
        assert found.certified
        assert found.upper - found.rate <= 1e-9
        assert found.leakage <= ROUNDING
        assert bound(joint, found.rate, gap=1e-9).upper <= 1e-8
        assert bound(joint, found.rate + 0.02, gap=1e-7).lower > 0.0


def test_an_invertible_channel_has_no_private_rate() -> None:
    assert perfect_privacy(P_S_X / 3).rate == pytest.approx(0.0, abs=ROUNDING)


def test_many_private_symbols_have_a_private_rate_below_what_s_leaves_of_x() -> None:
    joint = np.kron(table(7, 8, 0), [[0.5, 0.5]])  # X = (Z, a fair coin): the coin is free
    found = perfect_privacy(joint, time_limit=2.0)
    assert found.certified
    assert found.rate >= np.log(2.0) - ROUNDING
    assert found.leakage <= ROUNDING
    assert found.rate <= entropy(joint) - entropy(joint.sum(axis=1)) + ROUNDING


def test_too_many_supports_are_searched_not_listed() -> None:
    joint = table(6, 40, 1)
    found = perfect_privacy(joint, time_limit=1.0)
    assert not found.certified
    assert 0.0 < found.rate <= found.upper
    assert found.leakage <= ROUNDING


def test_the_best_mechanism_has_no_price_and_a_padded_one_has() -> None:
    """Three symbols and an empty one pass the residual of the columns in use; a new posterior gains .0046 at least."""
    joint = P_S_X / 3
    rate = 0.9 * np.log(3.0)
    best = bound(joint, rate, gap=1e-10)
    assert price(joint, best.mechanism, rate).residual <= 1e-6
    prover = Prover(joint)
    three = min(three_symbol_mechanisms(joint, rate), key=lambda mechanism: leakage(joint, mechanism))
    assert leakage(joint, three) == pytest.approx(0.388548, abs=1e-6)
    padded = np.concatenate([three, np.zeros((3, 1))], axis=1)
    priced = price(joint, padded, rate)
    assert priced.columns + priced.complementarity <= 1e-7
    assert priced.residual >= 0.388548 - prover.at(rate, 1e-8).upper - 1e-6
    assert phi(P_S_X, priced.lam, priced.nu, priced.posterior[:, None])[0] == pytest.approx(-priced.free, abs=ROUNDING)


def three_symbol_mechanisms(joint: np.ndarray, rate: float) -> list[np.ndarray]:
    """Two rows told apart, the third released as itself or as one of them: the best with three symbols is of these."""
    found = []
    for kept in itertools.permutations(range(3)):
        mechanism = np.eye(3)[list(kept)]
        split, other = np.argmax(mechanism[1]), np.argmax(mechanism[0])
        low, high = 0.0, 0.5
        for _ in range(100):
            middle = 0.5 * (low + high)
            trial = mechanism.copy()
            trial[1] = 0.0
            trial[1, split], trial[1, other] = 1.0 - middle, middle
            enough = mutual_information(joint.sum(axis=0)[:, None] * trial) >= rate
            low, high = (middle, high) if enough else (low, middle)
        mechanism[1, split], mechanism[1, other] = 1.0 - low, low
        found.append(mechanism)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_the_price_bounds_what_a_better_mechanism_gains(seed: int) -> None:
    """The residual is the distance to a lower bound of the optimum, so it is at least the distance to the optimum."""
    joint = table(2, 4, seed)
    rate = rate_of(joint, 0.5)
    p_x = joint.sum(axis=0)
    mechanism = mixed_to_rate(np.random.default_rng(seed).dirichlet(np.ones(4), 4), p_x, rate)
    assert (
        price(joint, mechanism, rate).residual >= leakage(joint, mechanism) - bound(joint, rate, gap=1e-9).upper - 1e-9
    )


def test_a_lost_symbol_is_released_as_it_is() -> None:
    p_x = np.array([0.5, 0.3, 0.2])
    mechanism = mechanism_of(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), np.array([0.5, 0.3]), p_x)
    np.testing.assert_allclose(mechanism.sum(axis=1), 1.0)
    assert mechanism[2].max() == 1.0


@pytest.mark.parametrize("missing", [1e-15, 1e-13, 1e-11, 5e-10])
def test_a_rounding_that_is_missing_from_the_rate_adds_no_output(missing: float) -> None:
    """Sixteen outputs of mass 1e-11 made a proved mechanism too wide for Y, and the solve went on without it."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        size = int(rng.integers(6, 17))
        p_x, mechanism = rng.dirichlet(np.ones(size)), rng.dirichlet(np.full(size + 1, 0.5), size)
        mechanism[rng.random(mechanism.shape) < 0.3] = 0.0
        mechanism[:, 0] += mechanism.sum(axis=1) == 0.0
        mechanism /= mechanism.sum(axis=1, keepdims=True)
        rate = utility(p_x, mechanism) + missing
        found = mixed_to_rate(mechanism, p_x, rate)
        assert found.shape == mechanism.shape
        assert rate <= utility(p_x, found) <= rate + 1e-11
        assert np.abs(found - mechanism).max() < 1e-6


def test_the_optimum_at_a_fraction_that_rounds_is_kept() -> None:
    found = bound(datasets.heart_failure(), 0.6 * entropy(datasets.heart_failure().p_x), 1e-8, 60.0)
    assert found.mechanism.shape[1] <= 17


def test_mixing_reaches_the_rate_and_not_much_more() -> None:
    p_x = np.array([0.5, 0.3, 0.2])
    rate = 0.7 * entropy(p_x)
    mixed = mixed_to_rate(np.ones((3, 1)), p_x, rate)
    reached = mutual_information(p_x[:, None] * mixed)
    assert rate <= reached <= rate + 1e-12


def test_posteriors_that_tell_nothing_prove_the_optimum_of_many_private_symbols_at_a_low_rate() -> None:
    joint = table(6, 12, 2)  # six private symbols: no complete search
    rate = rate_of(joint, 0.2)
    columns, _ = silent_columns(joint, rate, 5.0)
    assert np.abs(joint / joint.sum(axis=0) @ columns - joint.sum(axis=1)[:, None]).max() <= 1e-9
    with processor_time(True):  # on a machine that does other work too
        found = bound(joint, rate, gap=1e-8, time_limit=10.0)
    assert found.lower == 0.0
    assert found.upper <= 1e-8
    assert found.reason == ""


def test_the_vertices_that_are_listed_tell_nothing_of_s_and_are_all_of_them() -> None:
    joint = table(3, 8, 1)
    a, p_s = joint / joint.sum(axis=0), joint.sum(axis=1)
    supports, weights = listed_silent(joint, 56)
    assert np.abs(np.einsum("snf,nf->sn", a[:, supports], weights) - p_s[:, None]).max() <= 1e-14
    for cost in np.random.default_rng(0).normal(size=(20, 8)):
        assert (cost[supports] * weights).sum(axis=1).min() == pytest.approx(linprog(cost, A_eq=a, b_eq=p_s).fun)
    assert not len(listed_silent(joint, 55)[0])


def test_bases_whose_determinant_underflows_are_left_out_without_a_warning() -> None:
    rng = np.random.default_rng(5)
    a = np.where(rng.random((3, 9)) < 0.4, 1e-300, rng.random((3, 9)))
    a[:, :4] = a[:, 4:8]  # equal columns make bases singular
    joint = a / a.sum(axis=0) / 9.0
    with np.errstate(divide="raise"):
        supports, weights = listed_silent(joint, 1000)
    told = np.einsum("snf,nf->ns", (joint / joint.sum(axis=0))[:, supports], weights)
    np.testing.assert_allclose(told, np.broadcast_to(joint.sum(axis=1), told.shape), atol=1e-9)


def test_the_search_for_silent_posteriors_ends_with_its_time() -> None:
    joint = table(6, 60, 3)
    assert silent_columns(joint, rate_of(joint, 0.8), 1e-9)[0].shape[1] <= 6  # P_X, and a vertex of each mixture


@pytest.mark.parametrize("seed", range(6))
def test_symbols_that_never_help_together_bend_down_between_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a = rng.dirichlet(np.ones(3), 6).T * (rng.random((3, 6)) > 0.3 * (seed % 2))
    a[0] += 0.01
    a /= a.sum(axis=0)
    lam = float(rng.uniform(0.1, 0.9))
    together = may_be_together(a, lam)
    r = np.linspace(1e-3, 1.0 - 1e-3, 999)
    for i, j in itertools.combinations(range(6), 2):
        bend = sum((row[i] - row[j]) ** 2 * r * (1.0 - r) / (row[i] * r + row[j] * (1.0 - r) + 1e-300) for row in a)
        if not together[i, j]:
            assert bend.max() < lam
        elif bend.max() < 0.9 * lam:
            raise AssertionError("the grid is too coarse")


def test_a_private_symbol_that_x_determines_is_proved_at_once() -> None:
    joint = np.zeros((3, 5))  # lam = 1: phi is linear between symbols of different S, and no cell would ever be done
    joint[[2, 2, 2, 0, 1], np.arange(5)] = 0.0577, 0.2453, 0.0244, 0.0677, 0.6049
    found = bound(joint, rate_of(joint, 0.84), gap=1e-8, time_limit=10.0)
    assert found.gap <= 1e-8
    assert found.certificate.verify().bound <= found.upper


def test_a_table_whose_private_symbol_x_nearly_tells_is_proved_in_few_cells() -> None:
    rng = np.random.default_rng(4)
    joint = rng.gamma(0.1, size=(5, 20)) + 1e-9
    joint /= joint.sum()
    ticks = itertools.count()
    pricing = FunnelPricing(joint, 0.0)
    found = Prover(joint).at(rate_of(joint, 0.95), gap=1e-6)
    assert found.gap <= 1e-6
    lam, nu = found.certificate.lam, found.certificate.nu
    assert face_minimum(pricing.p_s_given_x, lam, nu, -1e-6, lambda: next(ticks) > 100).reason == ""
    points = np.random.default_rng(0).dirichlet(np.full(20, 0.1), 20_000).T
    assert phi(pricing.p_s_given_x, lam, nu, points).min() >= -1e-6


def test_a_symbol_of_tiny_weight_in_the_best_posterior_is_proved_in_time() -> None:
    joint = np.array(
        [
            [0.3259, 0.0, 0.0, 0.0597, 0.0164, 0.0, 0.0],
            [0.0, 0.0, 0.0486, 0.0, 0.0024, 0.0, 0.0],
            [0.0485, 0.0392, 0.0, 0.0188, 0.0599, 0.1085, 0.0075],
            [0.0, 0.1433, 0.0059, 0.0379, 0.0582, 0.0, 0.0193],
        ]
    )
    found = bound(joint / joint.sum(), rate_of(joint / joint.sum(), 0.8579), gap=1e-8, time_limit=20.0)
    assert found.gap <= 1e-8


KINDS = ("twins", "tiny masses", "tiny cells", "nearly independent", "deterministic")


def unusual(rng: np.random.Generator, kind: str) -> np.ndarray:
    """A table that is nearly degenerate."""
    size = int(rng.integers(2, 5)), int(rng.integers(2, 7))
    a, p = rng.dirichlet(np.ones(size[0]), size[1]).T, rng.dirichlet(np.ones(size[1]))
    if kind == "twins":
        a[:, 1:] = np.where(rng.random(size[1] - 1) < 0.6, a[:, :1], a[:, 1:])
    elif kind == "tiny masses":
        p *= np.where(rng.random(size[1]) < 0.5, 10.0 ** rng.uniform(-14, -9, size[1]), 1.0)
    elif kind == "tiny cells":
        a *= np.where(rng.random(size) < 0.4, 10.0 ** rng.uniform(-16, -8, size), 1.0)
    elif kind == "nearly independent":
        a = a[:, :1] + 10.0 ** rng.uniform(-12, -2) * (a - a[:, :1])
    else:
        a = np.eye(size[0])[:, rng.integers(0, size[0], size[1])]
    joint = np.asarray(a / a.sum(axis=0) * p)
    return joint / joint.sum()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_unusual_tables_and_rates_are_solved_and_proved(kind: str, count: int) -> None:
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(count):
        joint = unusual(rng, kind)
        top, private = rate_of(joint, 1.0), perfect_privacy(joint).rate
        for rate in (0.0, 1e-12, private, private - 1e-12, private + 1e-12, 0.9 * top, top - 1e-12, top):
            rate = min(max(rate, 0.0), top)
            found = bound(joint, rate, gap=1e-7, time_limit=20.0)
            assert found.gap <= 1e-7, (joint, rate)
            assert utility(joint.sum(axis=0), found.mechanism) >= rate - 1e-12
            assert found.certificate.verify().bound <= found.upper + 1e-12


def test_a_large_pool_is_priced_in_parts_and_only_columns_that_cost_most_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    joint = table(4, 12, seed=3)
    pricing = FunnelPricing(joint, rate_of(joint, 0.8))
    generation = Generation(pricing, pricing.master(), pricing.first[:, :12])
    generation.add(pricing.first[:, 12:])
    costs, rows = pricing.rows(pricing.first)
    point = generation.master.solve()
    reduced, sizes, whole = costs - point.duals @ rows, list[int](), pricing.rows
    monkeypatch.setattr(arrays, "CELLS_AT_ONCE", 7 * 12)
    monkeypatch.setattr(columns, "MOST_COLUMNS", 0)
    monkeypatch.setattr(columns, "PER_ROW", 0)
    monkeypatch.setattr(pricing, "rows", lambda part: (sizes.append(part.shape[1]), whole(part))[1])
    generation._tidy(point)
    assert max(sizes) == 7
    assert sum(sizes) == len(reduced)
    kept = (reduced <= np.median(reduced)) | (point.weights > columns.IN_USE)
    kept[:12] = True  # the first columns keep the program feasible
    np.testing.assert_array_equal(generation.pool.taken(slice(None)), pricing.first[:, kept])
    assert generation.master.solve().value == pytest.approx(point.value, abs=ROUNDING)


def test_the_first_merged_pairs_of_a_large_table_are_those_that_save_most_leakage_for_what_they_lose() -> None:
    """Alike symbols, once the first ones, save none: the first program was worth a third more."""
    joint = table(10, 40, seed=1)
    pricing = FunnelPricing(joint, rate_of(joint, 0.9))
    i, j = np.triu_indices(40, 1)
    every = np.zeros((40, len(i)))
    for at, (one, other) in enumerate(zip(i, j, strict=True)):
        every[[one, other], at] = pricing.p_x[[one, other]] / pricing.p_x[[one, other]].sum()
    values = []
    for pairs in (pricing.first[:, 41:], every):
        master = pricing.master()
        master.add(*pricing.rows(np.concatenate([pricing.first[:, :41], pairs], axis=1)))
        values.append(master.solve().value)
    assert pricing.first.shape[1] <= 41 + 3 * 40
    assert values[0] - values[1] <= 0.05 * (pricing.entropy_s + values[1])


def test_a_large_search_that_proves_nothing_does_not_hold_its_first_columns_twice() -> None:
    joint = table(10, 320, seed=1)
    prover = Prover(joint)
    assert 320 + 1 + 3 * 160 <= prover.generation.pool.size <= 320 + 1 + 3 * 320
    assert "first" not in vars(prover.pricing)
