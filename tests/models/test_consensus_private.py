"""Private consensus: what a release costs, by brute force; what is public; refusals."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from cvxpriv_models.recycled_admm import private
from cvxpriv_models.recycled_admm.blocks import odd_step
from cvxpriv_models.recycled_admm.graph import edge_weights, even_step
from cvxpriv_models.recycled_admm.private_settings import Privacy, PrivateSettings, Releases, releases_of
from cvxpriv_models.recycled_admm.run import PrivateConsensusRun
from cvxpriv_models.recycled_admm.spending import accounted, objective_epsilon, output_move, printed_epsilon
from hypothesis import given, settings, strategies as st

import cvxpriv as cpv
from cvxpriv.errors import DataError, ModelError, PrivacyError
from cvxpriv.models import RecycledADMM
from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties import loss_named
from cvxpriv.privacy import PrivacyWarning, Release, account_ledger, audit, noise_source
from cvxpriv.schedules.steps import Draw, Public, Sweep, Update

SHAPE = (3, 3)
ALGORITHMS = ("admm", "r-admm", "mr-admm", "m-admm", "dvp")


def consensus(rows_each: int = 60, seed: int = 0, **options: Any) -> RecycledADMM:
    """Three nodes in a row, three features, rows in the unit ball."""
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-0.5, 0.5, size=(3 * rows_each, 3))
    labels = np.where(rows @ [2.0, -1.0, 0.5] > 0.0, 1, -1)
    shards = [(rows[node::3], labels[node::3]) for node in range(3)]
    return RecycledADMM(nx.path_graph(3), shards, **{"reg": 0.3, "C": 30.0, **options})


def private_run(algorithm: str = "r-admm", seed: int = 1, **options: Any) -> PrivateConsensusRun:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return consensus().solve_private(
            method=algorithm, **{"alpha": 1.0, "eta": 1.0, "max_iter": 5, "noise_seed": seed, **options}
        )


def log_density_ratios(loss: str, weight: float, rows: int, bend: float, alpha: float) -> Array:
    """ln p(f | D) - ln p(f | D') of the perturbed minimiser in one dimension, on a grid of f, over extreme pairs.

    The density is that of the noise which makes f the minimiser, -gradient(f), times the derivative of that map.
    """
    chosen, f = loss_named(loss), np.linspace(-8.0, 8.0, 801)

    def log_density(x: Array, y: Array) -> Array:
        z = np.multiply.outer(f, x)
        slope = weight / rows * np.sum(chosen.gradient(z, y) * x, axis=1) + bend * f
        curvature = weight / rows * np.sum(chosen.curvature(z, y) * x**2, axis=1) + bend
        return np.asarray(-alpha * np.abs(slope) + np.log(curvature))

    rng = np.random.default_rng(0)
    ratios = []
    for _ in range(60):
        x, y = rng.uniform(-1.0, 1.0, rows), rng.choice([-1.0, 1.0], rows)
        other, label = x.copy(), y.copy()
        x[0], other[0] = rng.choice([-1.0, 0.0, 1.0], 2)
        label[0] = rng.choice([-1.0, 1.0])
        ratios.append(log_density(x, y) - log_density(other, label))
    return np.array(ratios)


# In one dimension the logistic loss's slopes of two records differ by little more than 1, not 2: half of the bound.
@pytest.mark.parametrize(("loss", "reached"), [("logistic", 0.35), ("huber", 0.8)])
@pytest.mark.parametrize(("weight", "rows", "bend"), [(1.0, 1, 0.3), (4.0, 4, 1.0), (2.0, 5, 3.0)])
def test_the_cost_of_a_perturbed_minimiser_bounds_the_exact_density_ratio_and_is_nearly_reached(
    loss: str, reached: float, weight: float, rows: int, bend: float
) -> None:
    chosen, alpha = loss_named(loss), 0.7
    one = np.ones(1)
    bound = objective_epsilon(alpha * one, rows * one, weight, bend * one, chosen.smoothness, chosen.slope)[0]
    worst = np.abs(log_density_ratios(loss, weight, rows, bend, alpha)).max()
    assert worst <= bound
    assert worst >= reached * bound


@given(
    alpha=st.floats(0.01, 10.0),
    rows=st.integers(1, 10_000),
    share=st.floats(0.01, 1.0),
    convexity=st.floats(1e-3, 100.0),
)
def test_the_tight_bound_is_never_above_the_printed_one(
    alpha: float, rows: int, share: float, convexity: float
) -> None:
    one = np.ones(1)
    arguments = (alpha * one, rows * one, share * rows, convexity * one, 0.25)
    assert objective_epsilon(*arguments)[0] <= printed_epsilon(*arguments)[0] * (1.0 + 1e-12)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_one_record_moves_a_minimiser_by_no_more_than_is_accounted(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, bend, weight = 6, 0.4, 5.0
    x = rng.normal(size=(rows, 2))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = np.array([1, -1, *rng.choice([-1, 1], rows - 2)])
    other, label = x.copy(), y.copy()
    other[-1], label[-1] = -x[-1], -y[-1] if rng.uniform() < 0.5 else y[-1]
    found = []
    for rows_here, labels_here in ((x, y), (other, label)):
        model = RecycledADMM(nx.path_graph(2), [(rows_here, labels_here), (x, y)], reg=2.0 * bend, C=weight)
        zero = np.zeros((2, 2))
        found.append(odd_step(model.problem, zero, zero, zero, np.zeros((2, 2))).f[0])
    limit = output_move(np.array([float(rows)]), weight, np.array([bend]))[0]
    assert np.linalg.norm(found[0] - found[1]) <= limit * (1.0 + 1e-9)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(
    "budget",
    [
        {"epsilon": 2.0},
        {"epsilon": 2.0, "perturbation": "output"},
        {"epsilon": 2.0, "delta": 1e-6, "perturbation": "output"},
    ],
)
def test_a_budget_is_spent_to_the_last_and_by_every_node(algorithm: str, budget: dict[str, Any]) -> None:
    run = private_run(algorithm, **{"alpha": None, **budget})
    assert run.accounting.epsilon == pytest.approx(2.0, rel=1e-9)
    assert run.accounting.releases == 5
    if "delta" not in budget:
        assert run.privacy_loss["tight"].to_numpy() == pytest.approx(np.full(3, 2.0), rel=1e-12)


def test_every_rule_covers_the_node_that_spends_most_by_that_rule() -> None:
    # By the sum the first node spends more, 8 against 7.6; at a delta its many small releases are worth 1.8.
    epsilon = np.full((400, 2), 0.02)
    epsilon[:, 1] = np.repeat([1.9, 0.0], [4, 396])
    plan = Releases(np.ones(2), *[np.ones((400, 2))] * 3, epsilon, epsilon, np.full((400, 2), np.nan))
    ledger = [entry for turn in range(400) for entry in plan.entries(turn, (0, 1))]
    together = accounted(ledger, 1e-6)
    found = {claim.rule: claim.epsilon for claim in together.claims}
    for node in range(2):
        alone = account_ledger([Release(epsilon=float(cost)) for cost in epsilon[:, node]], 1e-6, neighbours="")
        assert together.epsilon >= alone.epsilon
        assert all(found[claim.rule] >= claim.epsilon for claim in alone.claims)
    first = account_ledger([Release(epsilon=float(cost)) for cost in epsilon[:, 0]], 1e-6, neighbours="")
    assert first.epsilon < 2.0  # what the sum alone would have chosen


@pytest.mark.parametrize("alpha", [0.3, 0.01, 0.0003])
@pytest.mark.parametrize("eta", [0.01, 1.0])
def test_strong_noise_and_long_iterates_are_no_reason_to_refuse(alpha: float, eta: float) -> None:
    """The minimisers are as long as the noise makes them: the public bound of what is left grows with them."""
    for seed in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            run = consensus(rows_each=400, C=300.0, reg=0.01).solve_private(
                method="r-admm", alpha=alpha, eta=eta, max_iter=8, noise_seed=seed
            )
        assert run.accounting.releases == 8


def test_recycling_halves_the_cost_of_as_many_iterations() -> None:
    # RADMM section V, and ERRATA: conventional ADMM with the same noise costs the same per iteration, twice in all.
    recycled = private_run("r-admm", max_iter=5)  # ten iterations
    conventional = private_run("admm", max_iter=10)
    assert conventional.accounting.epsilon == pytest.approx(2.0 * recycled.accounting.epsilon, rel=1e-12)
    assert recycled.privacy_loss["conventional"].max() == pytest.approx(conventional.accounting.epsilon, rel=1e-12)


def test_noise_on_the_dual_counts_twice_in_the_objective() -> None:
    dual, objective = private_run("dvp", alpha=1.0), private_run("admm", alpha=0.5)
    assert np.array_equal(dual.parameters, objective.parameters)
    assert dual.accounting == objective.accounting


def test_noise_inside_the_penalty_is_noise_in_the_objective_times_twice_the_penalties() -> None:
    run = private_run("m-admm", alpha=1.0, eta=0.5, max_iter=1)
    degrees = np.array([1.0, 2.0, 1.0])
    same = private_run("admm", alpha=1.0 / (2.0 * 0.5 * degrees), eta=0.5, max_iter=1)
    assert run.parameters == pytest.approx(same.parameters, abs=1e-12)
    assert run.privacy_loss["tight"].tolist() == pytest.approx(same.privacy_loss["tight"].tolist(), rel=1e-12)


def test_the_even_step_from_public_values_is_the_papers_from_private_ones() -> None:
    # RADMM (19), with the gradient and the noise that (18) leaves behind: Lemma V.1 rests on it.
    problem, rng, gamma = consensus().problem, np.random.default_rng(0), 0.7
    links = edge_weights(np.array([0.5, 1.0, 2.0]), problem.network.adjacency)
    previous, dual, noise = (rng.normal(size=SHAPE) for _ in range(3))
    odd = odd_step(problem, previous, dual, noise, links)
    spread = links.sum(axis=1)[:, None] * odd.f - links @ odd.f
    after = dual + 0.5 * spread
    step = 1.0 / (2.0 * links.sum(axis=1) + gamma)[:, None]
    private_values = odd.f - step * (2.0 * after + noise + odd.gradient + spread)
    assert even_step(odd.f, previous, links, gamma) == pytest.approx(private_values, abs=1e-12)


class TestPublicSteps:
    """Every step but the release reads published values alone."""

    @pytest.mark.parametrize("algorithm", ALGORITHMS)
    def test_one_step_of_a_round_draws_and_all_others_are_public(self, algorithm: str) -> None:
        problem = consensus().problem
        chosen = PrivateSettings(
            algorithm, "objective", "edge", 0.5, 3, 1.0, 1e-9, problem.C, problem.reg, (1.0, 1.0, 1.0)
        )
        table = np.ones((3, 3))
        releases = releases_of(problem, chosen, table, Privacy(alpha=1.0))
        body = private.private_passes(problem, chosen, table, releases).body
        assert isinstance(body, Sweep)
        assert [type(step) for step in body.steps] == [Public, Draw, Public, Public]
        assert not (set().union(*(step.reads for step in body.steps)) - private.RELEASED)

    @pytest.mark.parametrize("secret", ["gradient", "noise", "loss"])
    def test_a_step_that_reads_what_was_not_published_is_refused(self, secret: str) -> None:
        leaking = Update("even", lambda view: {"f": view[secret]}, frozenset({secret}), frozenset({"f"}))
        with pytest.raises(PrivacyError, match=secret):
            Public(leaking, private.RELEASED)


@pytest.mark.slow
def test_an_audit_of_one_round_stays_below_its_epsilon_and_catches_noise_ten_times_too_small() -> None:
    x = np.array([[1.0], [1.0]])
    network = nx.path_graph(2)

    def with_labels(*labels: int) -> RecycledADMM:
        return RecycledADMM(network, [(x, np.array(labels)), (x, np.array([1, -1]))], reg=1.0, C=2.0)

    def released(alpha: float) -> Any:
        return lambda model: float(model.solve_private(method="admm", alpha=alpha, max_iter=1).parameters[0, 0])

    # Labels (1, -1) give the minimiser a symmetric law; with (1, 1) it is negative with probability exp(-alpha) / 2.
    claimed = consensus_epsilon(alpha=1.0)
    options: dict[str, Any] = {"delta": 0.0, "runs": 150, "event": lambda value: value < 0.0}
    data, neighbour = with_labels(1, -1), with_labels(1, 1)
    assert 0.0 < audit(released(1.0), data, neighbour, **options).epsilon <= claimed
    assert audit(released(10.0), data, neighbour, **options).epsilon > claimed


def consensus_epsilon(alpha: float) -> float:
    """Of the audit's release: two rows a node, C = 2, one neighbour with eta = 1, rho / N = 1/2."""
    one = np.ones(1)
    return float(objective_epsilon(alpha * one, 2.0 * one, 2.0, 2.5 * one, 0.25)[0])


class TestResult:
    """What a private run holds."""

    def test_it_survives_saving_and_loading_and_holds_no_row(self, tmp_path: Path) -> None:
        run = private_run("mr-admm", growth=1.04)
        again = cpv.load(run.save(tmp_path / "run.json"))
        assert isinstance(again, PrivateConsensusRun)
        assert np.array_equal(again.released, run.released)
        assert again.accounting == run.accounting
        assert again.privacy_loss.equals(run.privacy_loss)
        assert again.predict([[1.0, 0.0, 0.0]]).tolist() == run.predict([[1.0, 0.0, 0.0]]).tolist()

    def test_what_was_published_last_are_the_parameters(self) -> None:
        run = private_run()
        assert run.released.shape == (5, *SHAPE)
        assert np.array_equal(run.released[-1], run.parameters)
        assert list(run.history.columns) == ["iteration", "spread", "dual_sum"]

    def test_secure_noise_is_the_default_and_never_repeats(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            runs = [consensus().solve_private(alpha=1.0, eta=1.0, max_iter=2) for _ in range(2)]
        assert not np.array_equal(runs[0].parameters, runs[1].parameters)
        assert runs[0].accounting.secure

    def test_a_seed_repeats_the_run_and_warns(self) -> None:
        with pytest.warns(PrivacyWarning, match="secret"):
            first = consensus().solve_private(alpha=1.0, eta=1.0, max_iter=2, noise_seed=7)
        assert np.array_equal(first.parameters, private_run("mr-admm", alpha=1.0, max_iter=2, seed=7).parameters)
        assert not first.accounting.secure

    def test_a_callback_ends_it_and_only_what_was_published_counts(self) -> None:
        run = private_run(max_iter=5, callback=lambda loop, iteration, figures: iteration == 2)
        assert run.interrupted
        assert run.accounting.releases == 2
        assert run.accounting.epsilon == pytest.approx(private_run(max_iter=2).accounting.epsilon, rel=1e-12)


class TestRefusals:
    """Bad input, before any noise is drawn."""

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"alpha": None}, "pass one of them"),
            ({"epsilon": 1.0}, "pass one of them"),
            ({"alpha": -1.0}, "alpha=-1.0 holds no rate"),
            ({"alpha": [1.0, 2.0]}, "no rate a node"),
            ({"alpha": None, "epsilon": -1.0}, "epsilon=-1.0"),
            ({"alpha": None, "epsilon": 1.0, "delta": 2.0}, "delta"),
            ({"alpha": None, "epsilon": 1e-3}, "by their curvature alone"),
            ({"delta": 1e-6}, "delta without epsilon"),
            ({"node_tol": 1e-6}, "node_tol=1e-06"),
            ({"row_bound": 0.1}, "row_bound=0.1"),
            ({"perturbation": "input"}, "perturbation='input'"),
            ({"row_bound": -1.0}, "row_bound=-1.0 is not"),
        ],
    )
    def test_what_would_not_be_private_is_refused(self, options: dict[str, Any], message: str) -> None:
        with pytest.raises(PrivacyError, match=message):
            private_run(**options)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"algorithm": "sgd"}, "method='sgd'"),
            ({"max_iter": 0}, "max_iter=0"),
            ({"eta": -1.0}, "eta=-1.0"),
            ({"gamma": -1.0}, "gamma=-1.0"),
            ({"algorithm": "mr-admm", "growth": 0.9}, "growth=0.9"),
        ],
    )
    def test_options_out_of_range_are_refused(self, options: dict[str, Any], message: str) -> None:
        with pytest.raises(ModelError, match=message):
            private_run(**options)

    def test_losses_and_penalties_without_the_constants_are_refused(self) -> None:
        with pytest.raises(PrivacyError, match="no bounded slope"):
            consensus(loss="squared").solve_private(alpha=1.0)
        with pytest.raises(PrivacyError, match="is no square"):
            consensus(penalty="l1").solve_private(alpha=1.0)

    def test_rows_beyond_their_bound_are_shortened_only_when_asked(self) -> None:
        run = private_run(row_bound=0.3, clip_rows=True)
        assert run.settings.row_bound == 0.3
        assert run.accounting.epsilon < private_run().accounting.epsilon

    def test_a_run_that_is_not_private_is_not_read_as_one(self, tmp_path: Path) -> None:
        path = consensus().solve(max_iter=5).save(tmp_path / "run.json")
        with pytest.raises(DataError):
            PrivateConsensusRun.load(path)


def test_noise_is_drawn_node_by_node_with_the_norm_of_the_paper() -> None:
    # ||eps|| is Gamma(d, 1/alpha): its mean is d / alpha.
    drawn = noise_source().gamma_ball(3, 2.0, 4000)
    assert np.linalg.norm(drawn, axis=1).mean() == pytest.approx(1.5, abs=5.0 * np.sqrt(3.0) / 2.0 / np.sqrt(4000.0))
