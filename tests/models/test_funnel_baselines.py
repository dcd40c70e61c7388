"""The baselines of the privacy funnel: feasible, never better than the optimum, and what their papers say they are."""

from __future__ import annotations

from itertools import combinations, pairwise

import cvxpy as cp
import numpy as np
import pytest
from cvxpriv_models.privacy_funnel.baselines import (
    Baseline,
    agglomerative,
    agglomerative_curve,
    clustering,
    drs,
    drs_curve,
    greedy,
)
from cvxpriv_models.privacy_funnel.baselines.clustering import (
    Clusters,
    by_sorting,
    concave_subset,
    improve_subset,
    merge_changes,
    pair_drops,
)
from cvxpriv_models.privacy_funnel.baselines.outcome import indicator, least_leaking
from cvxpriv_models.privacy_funnel.baselines.splitting import (
    FLOOR,
    private_step,
    public_gradient,
    public_step,
    public_value,
    split,
    stationarity,
)
from hypothesis import given, settings, strategies as st

from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.simplex import projected_rows
from cvxpriv.tables.information import entropy, mutual_information

from .minimum_norm import by_minimum_norm, minimum_norm_subset

# PF V-A: the synthetic example.
P_S_GIVEN_X = np.array([[0.9, 0.08, 0.4], [0.025, 0.82, 0.05], [0.075, 0.1, 0.55]])
PRIORS = {"uniform": np.full(3, 1 / 3), "skewed": np.array([0.1, 0.3, 0.6])}
FRACTIONS = np.arange(1, 11) / 10
# Certified by simplex subdivision: lower bound and achievable value lie within 1e-6 of each other.
OPTIMUM = {
    "uniform": (0.019582, 0.039838, 0.060181, 0.080609, 0.121083, 0.175318, 0.243661, 0.313809, 0.383957, 0.454106),
    "skewed": (0.008006, 0.022057, 0.038726, 0.074165, 0.118697, 0.164488, 0.210617, 0.256902, 0.310461, 0.367797),
}
CASES = [(prior, k) for prior in PRIORS for k in range(10)]
ROUNDING = 1e-12  # sums of a few hundred terms of size at most 1


def paper_table(prior: str) -> Array:
    return P_S_GIVEN_X * PRIORS[prior]


def random_table(seed: int, size_s: int, size_x: int, concentration: float = 0.5) -> Array:
    return np.random.default_rng(seed).dirichlet(np.full(size_s * size_x, concentration)).reshape(size_s, size_x)


def subsets(size: int, least: int = 0) -> list[np.ndarray]:
    return [np.array(w, dtype=int) for k in range(least, size + 1) for w in combinations(range(size), k)]


def assert_consistent(found: Baseline, p_sx: Array) -> None:
    """Row-stochastic, and its figures are those of its mechanism."""
    assert found.mechanism.shape[0] == p_sx.shape[1]
    assert np.isfinite(found.mechanism).all()
    assert found.mechanism.min() >= 0
    assert np.abs(found.mechanism.sum(axis=1) - 1).max() <= ROUNDING
    assert found.leakage == mutual_information(p_sx @ found.mechanism)
    assert found.utility == mutual_information(p_sx.sum(axis=0)[:, None] * found.mechanism)


@pytest.fixture(scope="module", params=list(PRIORS))
def paper_curve(request: pytest.FixtureRequest) -> tuple[str, list[Baseline]]:
    return request.param, drs_curve(paper_table(request.param), starts=6, max_iter=200)


# --- all three -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("prior", "k"), CASES)
@pytest.mark.parametrize("method", [greedy, agglomerative])
def test_a_merging_baseline_is_feasible_and_not_below_the_certified_optimum(method, prior, k):
    p_sx = paper_table(prior)
    rate = FRACTIONS[k] * entropy(PRIORS[prior])
    found = method(p_sx, rate)
    assert_consistent(found, p_sx)
    assert found.utility >= rate - 1e-9
    assert found.leakage >= OPTIMUM[prior][k] - 2e-6  # the certificate's own width


def test_no_mechanism_of_the_splitting_lies_below_the_certified_curve(paper_curve):
    prior, curve = paper_curve
    p_sx, highest = paper_table(prior), entropy(PRIORS[prior])
    for found in curve:
        assert_consistent(found, p_sx)
        # Leakage rises with the rate: the certified value at the next lower tenth of H(X) bounds it from below.
        tenth = int(np.floor(found.utility / highest * 10 + 1e-9))
        assert found.leakage >= (OPTIMUM[prior][tenth - 1] if tenth else 0.0) - 2e-6


@pytest.mark.grid(every=3)
@pytest.mark.parametrize("prior", list(PRIORS))
@pytest.mark.parametrize("fraction", [0.3, 0.8])
def test_the_splitting_reaches_the_rate_and_stays_above_the_certified_optimum(prior, fraction):
    p_sx, rate = paper_table(prior), fraction * entropy(PRIORS[prior])
    found = drs(p_sx, rate, starts=4, max_iter=150)
    assert_consistent(found, p_sx)
    assert found.utility >= rate - 1e-9
    assert found.leakage >= OPTIMUM[prior][round(fraction * 10) - 1] - 2e-6


@pytest.mark.parametrize("method", [greedy, agglomerative])
def test_rate_zero_lets_merging_hide_everything(method):
    found = method(random_table(1, 3, 6), 0.0)
    assert found.mechanism.shape == (6, 1)
    assert found.leakage == pytest.approx(0.0, abs=ROUNDING)
    assert found.utility == pytest.approx(0.0, abs=ROUNDING)


def test_rate_zero_lets_the_splitting_hide_nearly_everything():
    found = drs(paper_table("uniform"), 0.0, starts=4, max_iter=150)
    # At the least multiplier, 0.001, the optimum has I(S;Y) <= 0.001 log 3.
    assert found.leakage <= 1.1e-3


@pytest.mark.parametrize("method", [greedy, agglomerative, drs])
@pytest.mark.parametrize("prior", list(PRIORS))
def test_rate_h_of_x_leaves_full_disclosure(method, prior):
    p_sx = paper_table(prior)
    options = {"starts": 2, "max_iter": 20} if method is drs else {}
    found = method(p_sx, entropy(PRIORS[prior]), **options)
    assert found.leakage == pytest.approx(mutual_information(p_sx), abs=ROUNDING)
    assert np.linalg.matrix_rank(found.mechanism) == 3


@pytest.mark.parametrize("method", [greedy, agglomerative, drs])
@pytest.mark.parametrize("rate", [1.2, np.nan])
def test_a_rate_above_h_of_x_is_refused(method, rate):
    with pytest.raises(ModelError, match=r"rate=.* is not at most H\(X\)=1\.098"):
        method(paper_table("uniform"), rate)


def test_least_leaking_takes_the_more_useful_of_equals():
    def of(leakage: float, utility: float) -> Baseline:
        return Baseline("any", np.eye(2), leakage, utility, 0)

    assert least_leaking([of(0.2, 0.5), of(0.2, 0.6), of(0.1, 0.3)], 0.4).utility == 0.6


# --- greedy merging --------------------------------------------------------------------------------------------------


def greedy_rule(p_sx: Array, rate: float) -> Array:
    """The rule word for word, every information computed from the merged mechanism."""
    p_x, mechanism = p_sx.sum(axis=0)[:, None], np.eye(p_sx.shape[1])
    while mechanism.shape[1] > 1:
        merged = []
        for i, j in combinations(range(mechanism.shape[1]), 2):
            trial = np.delete(mechanism, j, axis=1)
            trial[:, i] += mechanism[:, j]
            if mutual_information(p_x * trial) >= rate:
                merged.append(trial)
        if not merged:
            return mechanism
        mechanism = min(merged, key=lambda trial: mutual_information(p_sx @ trial))
    return mechanism


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("fraction", [0.0, 0.3, 0.55, 0.8])
def test_greedy_follows_the_greedy_rule(seed, fraction):
    p_sx = random_table(seed, 2 + seed % 3, 4 + seed % 5)
    rate = fraction * entropy(p_sx.sum(axis=0))
    assert np.array_equal(greedy(p_sx, rate).mechanism, greedy_rule(p_sx, rate))


def test_greedy_stops_only_where_every_further_merge_would_miss_the_rate():
    p_sx = random_table(3, 4, 40)
    rate = 0.6 * entropy(p_sx.sum(axis=0))
    released = greedy(p_sx, rate).mechanism
    mass = p_sx.sum(axis=0) @ released
    utilities = [
        entropy(np.append(np.delete(mass, [i, j]), mass[i] + mass[j])) for i, j in combinations(range(mass.size), 2)
    ]
    assert max(utilities) < rate


def test_a_merged_column_loses_what_the_two_mutual_informations_lose():
    p_sx = random_table(5, 3, 6)
    leakage_drop, utility_drop = pair_drops(p_sx, p_sx[:, [2]])
    for other in (0, 1, 3, 4, 5):
        labels = np.arange(6)
        labels[other] = 2
        mechanism = indicator(labels)
        lost = mutual_information(p_sx) - mutual_information(p_sx @ mechanism)
        assert leakage_drop[other] == pytest.approx(lost, abs=ROUNDING)
        lost = entropy(p_sx.sum(axis=0)) - mutual_information(p_sx.sum(axis=0)[:, None] * mechanism)
        assert utility_drop[other] == pytest.approx(lost, abs=ROUNDING)


def test_prices_kept_through_merges_equal_prices_computed_anew():
    clusters = Clusters(random_table(6, 3, 8))
    for members in ([1, 4], [0, 1, 7], [3, 5]):
        clusters.merge(np.array(members))
    living = np.flatnonzero(clusters.alive)
    fresh = Clusters(clusters.columns[:, living])
    pairs = np.ix_(living, living)
    upper = np.triu_indices(living.size, 1)
    assert living.tolist() == [0, 2, 3, 6]
    assert np.allclose(clusters.leakage_drop[pairs][upper], fresh.leakage_drop[upper], rtol=0, atol=ROUNDING)
    assert np.allclose(clusters.utility_drop[pairs][upper], fresh.utility_drop[upper], rtol=0, atol=ROUNDING)
    assert np.isfinite(clusters.leakage_drop).sum() == upper[0].size


@pytest.mark.parametrize("method", [greedy, agglomerative])
def test_symbols_of_probability_zero_do_no_harm(method):
    p_sx = np.array([[0.2, 0.0, 0.3, 0.0], [0.1, 0.0, 0.2, 0.2], [0.0, 0.0, 0.0, 0.0]])
    found = method(p_sx, 0.5 * entropy(p_sx.sum(axis=0)))
    assert_consistent(found, p_sx)
    assert found.utility >= 0.5 * entropy(p_sx.sum(axis=0)) - 1e-9


# --- submodular minimisation and clustering --------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 10), st.sampled_from([0.05, 0.5, 5.0]), st.sampled_from([1e-6, 0.1]))
def test_both_minimisers_equal_brute_force_over_all_subsets(seed, size, concentration, spread):
    rng = np.random.default_rng(seed)
    masses, weight, modular = rng.dirichlet(np.full(size, concentration)), rng.uniform(), rng.normal(0, spread, size)
    lowest = min(weight * entropy(masses[w].sum()) + modular[w].sum() for w in subsets(size))
    for minimiser in (by_sorting, by_minimum_norm):
        subset, value = minimiser(weight, masses, modular)
        assert value == pytest.approx(lowest, abs=ROUNDING)
        assert weight * entropy(masses[subset].sum()) + modular[subset].sum() == pytest.approx(value, abs=ROUNDING)


@pytest.mark.parametrize("seed", range(10))
def test_the_minimum_norm_point_minimises_a_cut_function(seed):
    rng = np.random.default_rng(seed)
    size = 9
    weights = np.triu(rng.exponential(size=(size, size)) * (rng.random((size, size)) < 0.4), 1)
    pull = rng.normal(0, 2, size)

    def value(inside: Array) -> Array:
        cut = inside @ (weights + weights.T) * (1 - inside)
        return np.asarray((cut + inside * pull).sum(axis=-1))

    def prefixes(order: np.ndarray) -> Array:
        return value(np.tri(size)[:, np.argsort(order)])

    lowest = min(value(np.isin(np.arange(size), w).astype(float)) for w in subsets(size))
    assert minimum_norm_subset(prefixes, size)[1] == pytest.approx(lowest, abs=1e-10)


def test_the_minimum_norm_search_refuses_a_function_seen_not_to_be_submodular():
    values = np.random.default_rng(0).normal(size=16)
    with pytest.raises(ModelError, match="every submodular function"):
        minimum_norm_subset(lambda order: values[np.cumsum(2**order) - 1], 4)


def test_nothing_is_taken_where_nothing_pays():
    subset, value = concave_subset(np.sqrt, np.array([0.5, 0.0]), np.array([0.1, 0.2]))
    assert (subset.size, value) == (0, 0.0)


def test_elements_without_mass_are_taken_for_their_modular_value():
    assert concave_subset(np.sqrt, np.array([0.5, 0.0, 0.0]), np.array([0.1, -0.2, 0.2]))[0].tolist() == [1]


def lagrangian_change(columns: Array, subset: np.ndarray, multiplier: float) -> float:
    if subset.size < 2:
        return 0.0
    leakage_drop, utility_drop = merge_changes(columns, subset)
    return float(multiplier * utility_drop[-1] - leakage_drop[-1])


@pytest.mark.parametrize("seed", range(12))
def test_the_subset_search_never_ends_above_its_start_and_mostly_at_the_global_minimum(seed):
    multiplier, columns = 0.05 * seed, random_table(seed, 3, 8)
    pairs = subsets(8, 2)[:28]
    found = [lagrangian_change(columns, improve_subset(columns, w, multiplier), multiplier) for w in pairs]
    assert all(f <= lagrangian_change(columns, w, multiplier) for f, w in zip(found, pairs, strict=True))
    exact = min(lagrangian_change(columns, w, multiplier) for w in subsets(8))
    assert min(found) == pytest.approx(exact, abs=ROUNDING)  # holds for these seeds; not guaranteed


def test_merging_a_subset_loses_what_the_two_mutual_informations_lose():
    p_sx = random_table(8, 3, 6)
    leakage_drop, utility_drop = merge_changes(p_sx, np.array([4, 1, 5]))
    mechanism = indicator(np.array([0, 1, 2, 3, 1, 1]))
    assert leakage_drop[0] == utility_drop[0] == 0.0
    assert leakage_drop[-1] == pytest.approx(
        mutual_information(p_sx) - mutual_information(p_sx @ mechanism), abs=ROUNDING
    )
    assert utility_drop[-1] == pytest.approx(
        entropy(p_sx.sum(axis=0)) - entropy(p_sx.sum(axis=0) @ mechanism), abs=ROUNDING
    )


def test_both_minimisers_lead_to_the_same_clustering(monkeypatch):
    p_sx = random_table(9, 4, 12)
    rate = 0.5 * entropy(p_sx.sum(axis=0))
    multipliers = [0.0, 0.1, 0.3]
    sorting = agglomerative_curve(p_sx, multipliers, rate)
    monkeypatch.setattr(clustering, "by_sorting", by_minimum_norm)
    norm = agglomerative_curve(p_sx, multipliers, rate)
    assert [a.leakage for a in sorting] == pytest.approx([b.leakage for b in norm], abs=ROUNDING)


def test_a_larger_price_of_utility_keeps_more_of_it():
    p_sx = random_table(10, 3, 14)
    curve = agglomerative_curve(p_sx, [0.0, 0.2, 0.5, 1.0])
    assert curve[0].mechanism.shape[1] == 1
    assert all(a.utility <= b.utility + ROUNDING for a, b in pairwise(curve))
    assert curve[-1].utility == pytest.approx(entropy(p_sx.sum(axis=0)), abs=ROUNDING)


def test_subset_merging_can_leak_far_less_than_pair_merging():
    p_sx = random_table(29, 3, 8)  # a seed at which the two part: they agree at three seeds of four
    rate = 0.6 * entropy(p_sx.sum(axis=0))
    assert agglomerative(p_sx, rate).leakage < greedy(p_sx, rate).leakage - 0.04


@pytest.mark.parametrize(
    ("options", "message"), [({"multipliers": [0.5, 1.5]}, "above 1"), ({"starts": 0}, "starts=0")]
)
def test_the_clustering_refuses_options_outside_their_range(options, message):
    with pytest.raises(ModelError, match=message):
        agglomerative_curve(paper_table("uniform"), **options)


# --- splitting -------------------------------------------------------------------------------------------------------


def splitting_state(seed: int, size_s: int = 3, size_x: int = 4, size_y: int = 5, runs: int = 2):
    rng = np.random.default_rng(seed)
    splitting = split(random_table(seed, size_s, size_x), 7.0, 1.0, 4)
    q = rng.dirichlet(np.ones(size_y), size=(runs, size_x))
    p = rng.dirichlet(np.ones(size_y), size=(runs, size_s))
    return splitting, q, p, rng.normal(size=p.shape), rng.uniform(0.1, 0.9, size=runs)


def test_the_exact_step_over_p_equals_the_cone_program():
    splitting, q, _, dual, _ = splitting_state(0, runs=1)
    target, dual = (splitting.backward @ q)[0], dual[0] / 10
    p = cp.Variable(target.shape)
    objective = -cp.sum(cp.multiply(splitting.p_s[:, None], cp.entr(p))) + cp.sum(cp.multiply(dual, p))
    problem = cp.Problem(cp.Minimize(objective + 3.5 * cp.sum_squares(p - target)), [cp.sum(p, axis=1) == 1])
    problem.solve(solver=cp.CLARABEL)
    # A cone solver's minimiser is good to about the square root of its gap of 1e-8.
    assert np.allclose(private_step(splitting.p_s, target, dual, 7.0), p.value, rtol=0, atol=1e-4)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-6, 1.0, 30.0, 1e6]), st.sampled_from([0.0, 1.0, 1e4]))
def test_the_exact_step_over_p_is_stationary_at_any_scale(seed, penalty, spread):
    rng = np.random.default_rng(seed)
    p_s = rng.dirichlet(np.full(4, 0.3)) + 1e-9
    target, dual = rng.dirichlet(np.ones(5), size=4), spread * rng.normal(size=(4, 5))
    p = private_step(p_s, target, dual, penalty)
    assert np.isfinite(p).all()
    assert np.abs(p.sum(axis=1) - 1).max() <= ROUNDING
    seen = np.where(p > 1e-200, p, np.nan)  # below, the logarithm of a rounded number says nothing
    slope = p_s[:, None] * np.log(seen) + dual + penalty * (p - target)
    scale = np.abs(dual).max() + penalty + 500 * p_s[:, None]
    assert np.nanmax((np.nanmax(slope, axis=1, keepdims=True) - slope) / scale) <= 1e-9  # equal within a row


def test_the_gradient_over_q_equals_finite_differences():
    splitting, q, p, dual, beta = splitting_state(1)
    gradient = public_gradient(splitting, q, p, dual, beta) * splitting.p_x[:, None]
    direction = np.random.default_rng(2).normal(size=q.shape)
    direction -= direction.mean(axis=-1, keepdims=True)  # rows keep their sums; the gradient omits a constant a row
    h = 1e-6
    ahead, behind = (public_value(splitting, q + s * h * direction, p, dual, beta) for s in (1, -1))
    # Central differences: truncation about h^2, rounding about 1e-16 / h.
    assert np.allclose((gradient * direction).sum(axis=(1, 2)), (ahead - behind) / (2 * h), rtol=0, atol=1e-8)


def test_both_parts_of_the_lagrangian_add_up_to_the_funnels_own():
    splitting, q, _, _, beta = splitting_state(3)
    p = splitting.backward @ q
    own = -(splitting.p_s @ np.array([entropy(p[0], axis=1), entropy(p[1], axis=1)]).T)
    total = own + public_value(splitting, q, p, np.zeros_like(p), beta)
    leakage = mutual_information(splitting.p_s[:, None] * p, axis=(-2, -1))
    utility = mutual_information(splitting.p_x[:, None] * q, axis=(-2, -1))
    assert np.allclose(total, leakage - beta * utility, rtol=0, atol=ROUNDING)


def test_the_step_over_q_never_raises_its_value():
    splitting, q, p, dual, beta = splitting_state(4, runs=6)
    step = np.full(6, 10.0)
    for _ in range(30):
        before = public_value(splitting, q, p, dual, beta)
        q, step = public_step(splitting, q, p, dual, beta, step)
        assert (public_value(splitting, q, p, dual, beta) <= before + ROUNDING).all()
    assert q.min() >= FLOOR


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 7), st.sampled_from([0.0, 1e-3]))
def test_the_projection_satisfies_its_variational_inequality(seed, size, floor):
    point = np.random.default_rng(seed).normal(0, 2, size)
    nearest = projected_rows(point, floor)
    assert nearest.sum() == pytest.approx(1, abs=ROUNDING)
    assert nearest.min() >= floor
    vertices = floor + (1 - size * floor) * np.eye(size)
    assert ((vertices - nearest) @ (point - nearest)).max() <= 1e-11


def test_the_q_step_of_the_splitting_is_not_convex_where_s_has_fewer_symbols_whatever_the_penalty():
    # PF Appendix B claims convexity for a large c; along a direction that P(X|S) does not see, c plays no part.
    p_sx = random_table(5, 2, 4)
    hidden = np.linalg.svd(p_sx / p_sx.sum(axis=1, keepdims=True))[2][-1]
    q, h = np.full((1, 4, 3), 1 / 3), 1e-3
    move = h * np.outer(hidden, [1.0, -1.0, 0.0])
    for penalty in (1.0, 1e10):
        splitting = split(p_sx, penalty, 1.0, 1)
        p, beta = splitting.backward @ q, np.array([0.5])
        low, middle, high = (
            public_value(splitting, q + s * move, p, np.zeros_like(p), beta)[0] for s in (-1.0, 0.0, 1.0)
        )
        assert low + high - 2 * middle < -1e-8


def test_converged_runs_are_stationary_for_the_lagrangian(paper_curve):
    prior, curve = paper_curve
    settled = [found for found in curve if found.converged]
    assert settled
    for found in settled:
        assert found.gap <= 1e-5
        q, price = found.mechanism, found.multiplier
        joint, mass = paper_table(prior) @ q, PRIORS[prior] @ q
        log_joint, log_mass, log_q = (np.log(np.maximum(table, 1e-300)) for table in (joint, mass, q))
        slope = P_S_GIVEN_X.T @ log_joint - (1 - price) * log_mass - price * log_q
        inside = np.where(q > 1e-4, slope, np.nan)
        # max |q - projection(q - slope)| <= 1e-5 bounds the spread of the slopes where q > 1e-4 by twice that; entries
        # of 1e-10 that are cut off at the end move the slopes by less.
        assert (np.nanmax(inside, axis=1) - np.nanmin(inside, axis=1)).max() <= 1e-4


def test_the_splitting_reaches_the_certified_lagrangian_at_most_multipliers(paper_curve):
    prior, curve = paper_curve
    rates = np.concatenate([[0.0], FRACTIONS]) * entropy(PRIORS[prior])
    optimum = np.concatenate([[0.0], OPTIMUM[prior]])
    # The tabulated points bound the optimal Lagrangian from above, so the excess may be negative.
    excess = [f.leakage - f.multiplier * f.utility - (optimum - f.multiplier * rates).min() for f in curve]
    best_start = np.array(excess).reshape(24, -1).min(axis=1)
    assert np.quantile(best_start, 0.75) <= 1e-4  # runs of 200 iterations have mostly not settled


@pytest.mark.parametrize("seed", range(5))
def test_stationarity_is_zero_where_nothing_is_released_and_large_at_random(seed):
    splitting, q, _, _, beta = splitting_state(seed)
    constant = np.broadcast_to(q[:, :1], q.shape)
    assert stationarity(splitting, constant, beta).max() <= ROUNDING
    assert stationarity(splitting, q, beta).min() >= 1e-2


def test_a_run_cut_short_says_so_and_is_still_a_mechanism():
    p_sx = random_table(7, 3, 6)
    for found in drs_curve(p_sx, [0.05, 0.5], starts=2, max_iter=1, penalty=1e6):
        assert not found.converged
        assert found.iterations == 1
        assert_consistent(found, p_sx)


@pytest.mark.parametrize("penalty", [1e-6, 1e8])
@pytest.mark.parametrize("relaxation", [0.2, 1.9])
def test_the_splitting_never_returns_nan(penalty, relaxation):
    p_sx = np.array([[0.3, 0.0, 1e-12, 0.2], [0.0, 0.0, 0.3, 0.2 - 1e-12], [0.0, 0.0, 0.0, 0.0]])
    for found in drs_curve(p_sx, [1e-6, 0.3, 50.0], 2, penalty=penalty, relaxation=relaxation, max_iter=30):
        assert_consistent(found, p_sx)
        assert np.isfinite([found.leakage, found.utility, found.gap]).all()


def test_runs_do_not_depend_on_what_shares_their_batch(monkeypatch):
    p_sx = paper_table("uniform")
    together = drs_curve(p_sx, [0.2, 0.4], starts=3, max_iter=40)
    monkeypatch.setattr("cvxpriv_models.privacy_funnel.baselines.splitting.BATCH_ENTRIES", 12)
    alone = drs_curve(p_sx, [0.2, 0.4], starts=3, max_iter=40)
    # Batched matrix products may round differently.
    assert [f.leakage for f in together] == pytest.approx([f.leakage for f in alone], abs=1e-9)


def test_the_same_seed_gives_the_same_curve():
    first, second = (drs_curve(paper_table("skewed"), [0.3], 2, seed=4, max_iter=20) for _ in range(2))
    assert all(np.array_equal(a.mechanism, b.mechanism) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"betas": [0.1, -1.0]}, "betas="),
        ({"betas": [np.nan]}, "betas="),
        ({"penalty": 0.0}, "penalty=0.0"),
        ({"relaxation": 2.0}, "relaxation=2.0"),
        ({"starts": 0}, "starts=0"),
        ({"size_y": 0}, "size_y=0"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"inner": 0}, "inner=0"),
    ],
)
def test_the_splitting_refuses_options_outside_their_range(options, message):
    with pytest.raises(ModelError, match=message):
        drs_curve(paper_table("uniform"), **options)
