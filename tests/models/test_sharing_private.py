"""Private sharing: sensitivity, accounting, labels, and what is refused before anything runs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cvxpriv_models.admm_sharing import ADMMSharing, bounds, labels, mechanism, sensitivity
from cvxpriv_models.admm_sharing.private import PrivateSharingRun
from cvxpriv_models.admm_sharing.schemes import scheme_named
from scipy import sparse
from sklearn.metrics import log_loss, roc_auc_score

from cvxpriv.blocks.engines import ClosedForm
from cvxpriv.errors import ModelError, PrivacyError
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.penalties import loss_named
from cvxpriv.privacy import EVERYONE, Noise, PrivacyWarning, audit, gaussian_delta, gaussian_mu, mu_beside
from cvxpriv.schedules.history import Context
from cvxpriv.schedules.running import run as run_schedule
from cvxpriv.schedules.steps import Draw
from cvxpriv.tables.datasets import load_a9a
from tests.models.sharing_cases import columns, split

#: Pairs of neighbours for each bound.
PAIRS = 4000


@pytest.fixture(autouse=True)
def _seeds_are_for_tests() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="noise_seed", category=PrivacyWarning)
        yield


def unit_rows(samples: int = 300, parties: int = 2, seed: int = 0) -> tuple[list[Array], Array]:
    """Rows of norm at most 1 over all parties."""
    x, y = columns(samples, 6, seed)
    return split(x / np.linalg.norm(x, axis=1, keepdims=True), parties), y


def model(parties: int = 2, lam: float = 5.0, **options: object) -> ADMMSharing:
    parts, y = unit_rows(parties=parties)
    return ADMMSharing(parts, y, lam=lam, **options)  # type: ignore[arg-type]


def read_off(dual: Array) -> Array:
    """The labels, -1 and 1, that anyone reads off the broadcast dual of a margin loss."""
    return np.where(dual < 0.0, 1.0, -1.0)


def share(part: Array, target: Array, kappa: float) -> Array:
    """H a, from the definition."""
    return part @ np.linalg.solve(part.T @ part + kappa * np.eye(part.shape[1]), part.T @ target)


def pairs(kind: str, seed: int) -> Iterator[tuple[Array, Array, Array, float, float, float]]:
    """(D, D', target, kappa, public bound, clip) of random neighbours, of all sizes, over four decades."""
    rng = np.random.default_rng(seed)
    for _ in range(PAIRS):
        samples, width = int(rng.integers(1, 8)), int(rng.integers(1, 5))
        target = rng.normal(size=samples) * 10 ** rng.uniform(-1, 1, size=samples)
        part = rng.normal(size=(samples, width)) * 10 ** rng.uniform(-1.5, 1.0, size=(samples, 1))
        other = part.copy()
        i, j = int(rng.integers(samples)), int(rng.integers(width))
        if kind == "row":
            bound = float(np.linalg.norm(part, axis=1).max())
            new = rng.normal(size=width)
            other[i] = rng.choice([-1.0, 0.0, 1.0]) * (
                part[i] if rng.random() < 0.3 else bound * new / np.linalg.norm(new)
            )
        elif kind == "column":
            bound = float(np.linalg.norm(part, axis=0).max())
            new = rng.normal(size=samples)
            other[:, j] = bound * rng.random() ** 0.3 * new / np.linalg.norm(new)
        else:
            bound = float(np.abs(part).max())
            other[i, j] = rng.choice([-bound, bound, rng.uniform(-bound, bound)])
        yield part, other, target, 10 ** rng.uniform(-2, 2), bound, 10 ** rng.uniform(-1.5, 1)


def stated(kind: str, target: Array, kappa: float, bound: float, width: int, clip: float = np.inf) -> float:
    if kind == "row":
        return sensitivity.row(target, kappa, bound, clip)
    return (
        sensitivity.column(target, kappa, bound)
        if kind == "column"
        else sensitivity.cell(target, kappa, bound, width, clip)
    )


@pytest.mark.grid(every=2)
@pytest.mark.parametrize("kind", ["row", "column", "cell"])
def test_no_neighbour_moves_a_share_beyond_the_bound_and_some_reach_it(kind: str) -> None:
    ratios = [
        np.linalg.norm(share(part, target, kappa) - share(other, target, kappa))
        / stated(kind, target, kappa, bound, part.shape[1])
        for part, other, target, kappa, bound, _ in pairs(kind, 1)
    ]
    # Reached to 2 %: the bounds are tight. The random pairs come within .1 % on other seeds.
    assert 0.98 < max(ratios) <= 1.0 + 1e-9


@pytest.mark.parametrize("kind", ["row", "cell"])
def test_clipped_entries_move_no_further_than_the_bound_that_knows_the_clip(kind: str) -> None:
    def clipped(part: Array, target: Array, kappa: float, clip: float) -> Array:
        return np.clip(share(part, target, kappa), -clip, clip)

    ratios = [
        np.linalg.norm(clipped(part, target, kappa, clip) - clipped(other, target, kappa, clip))
        / stated(kind, target, kappa, bound, part.shape[1], clip)
        for part, other, target, kappa, bound, clip in pairs(kind, 2)
    ]
    assert 0.9 < max(ratios) <= 1.0 + 1e-9


def test_the_bound_of_a_release_is_that_of_the_target_its_party_really_has() -> None:
    """The share that a party computes in a pass is H a of the very target that its noise was scaled for."""
    given = model()
    kappa = 5.0 / 0.4
    release = mechanism.ShareRelease(0.3, "replace-one", (1.0, 1.0), (kappa, kappa), clip_entries=2.0)
    for name in ("averaged", "gauss_seidel", "printed"):
        scheme = scheme_named(name)
        loop = mechanism.private_passes(given.problem, scheme, given.factors, (), release, 3)
        before = mechanism.initial_state(given.problem, 0.4)
        for step in loop.body.steps[:2]:  # type: ignore[union-attr]
            before = run_schedule(step, before, Context(ClosedForm()))
        after = run_schedule(loop.body, mechanism.initial_state(given.problem, 0.4), Context(ClosedForm()))
        total = before["v/0"][0] + before["v/1"][0]
        aim = scheme.target(before["v/0"][0], total, before["z"][0], 2) - before["y"][0] / 0.4
        assert np.allclose(after["share/0"][0], share(given.problem.parts[0], aim, kappa), atol=1e-10)  # type: ignore[arg-type]
        exact = sensitivity.row(aim, kappa, 1.0, 2.0)
        inexact = exact + 2.0 * mechanism.INEXACT * np.linalg.norm(aim)
        assert after["sensitivity/0"][0] == pytest.approx(inexact, rel=1e-12)
        # The grid costs at most a part of 2^-12 of the sensitivity.
        assert inexact / 0.3 < after["noise/0"][0] <= inexact * (1.0 + 2.0**-12) / 0.3


@pytest.mark.filterwarnings("error")
def test_bounds_of_any_size_give_a_finite_sensitivity() -> None:
    target = np.array([1.0, -2.0])
    largest = 2.0 * np.linalg.norm(target)
    for bound in (1e-200, 1e200):
        for found in (sensitivity.column(target, 1.0, bound), sensitivity.row(target, 1.0, bound, 1.0)):
            assert 0.0 <= found <= largest
    assert sensitivity.shrinkage(0.0, 1.0) == 0.0


def test_clipping_a_share_moves_no_two_shares_apart() -> None:
    rng = np.random.default_rng(3)
    release = mechanism.ShareRelease(1.0, "replace-one", (1.0,), (1.0,), clip=2.0, clip_entries=0.7)
    for _ in range(2000):
        one, other = rng.normal(size=(2, 6)) * 10 ** rng.uniform(-1, 1)
        inside = release.clipped(one), release.clipped(other)
        assert np.linalg.norm(inside[0] - inside[1]) <= np.linalg.norm(one - other) * (1.0 + 1e-12)
        assert max(np.linalg.norm(each) for each in inside) <= 2.0 + 1e-12
    assert release.sensitivity(np.full(6, 100.0), 0, 3) == pytest.approx(2 * 0.7 * np.sqrt(6))


@pytest.mark.parametrize("scheme", ["averaged", "gauss_seidel"])
def test_a_budget_without_end_gives_the_fit_without_privacy(scheme: str) -> None:
    given = model()
    exact = given.solve(tol=1e-10)
    private = given.solve_private(
        epsilon=1e10, delta=1e-5, max_iter=400, method=scheme, row_bound=1.0, clip_entries=100.0, rho=0.5, noise_seed=0
    )
    # The mean over the passes forgets the first ones as 1/passes.
    assert np.allclose(np.concatenate(private.not_private.coefficients), np.concatenate(exact.coefficients), atol=0.02)
    assert private.not_private.predict_proba(unit_rows()[0]) == pytest.approx(
        exact.predict_proba(unit_rows()[0]), abs=0.01
    )


def test_a_run_spends_its_budget_exactly_and_no_more() -> None:
    run = model().solve_private(epsilon=1.0, delta=1e-5, max_iter=5, row_bound=1.0)
    assert run.accounting.delta == 1e-5
    assert 1.0 - 1e-6 < run.accounting.epsilon <= 1.0
    assert len(run.ledger) == run.accounting.releases == 10
    together = float(np.sqrt(sum(entry.mu**2 for entry in run.ledger)))
    assert gaussian_delta(1.0, together) <= 1e-5


@pytest.mark.parametrize("parties", [2, 3, 6])
def test_a_row_over_all_parties_costs_the_root_of_their_number_times_the_mu_of_one(parties: int) -> None:
    over_all, one = (
        model(parties).solve_private(epsilon=1.0, delta=1e-5, max_iter=3, adjacency=adjacency, row_bound=1.0)
        for adjacency in ("replace-one", "party-row")
    )
    assert one.ledger[0].mu == pytest.approx(np.sqrt(parties) * over_all.ledger[0].mu)
    ledger = [replace(entry, touches=EVERYONE) for entry in one.ledger]
    same_noise = sensitivity.spent(ledger, 1e-5, "replace-one", neighbours="")
    assert same_noise.mu == pytest.approx(np.sqrt(parties) * one.accounting.mu)
    assert same_noise.epsilon > 1.0 >= one.accounting.epsilon


@pytest.mark.slow
def test_an_audit_cannot_refute_the_guarantee_but_does_refute_a_fifth_of_it() -> None:
    """A row that moves its release by most of the bound; all else is fixed, and only the release is looked at."""
    release = mechanism.ShareRelease(gaussian_mu(1.0, 1e-3), "replace-one", (1.0,), (0.1,), shrink=False)

    def at_its_release(row: float) -> tuple[Draw, Values]:
        given = ADMMSharing([np.array([[row], [1.0]])], np.array([1.0, -1.0]), lam=0.05)
        loop = mechanism.private_passes(given.problem, scheme_named("averaged"), given.factors, (), release, 1)
        state = mechanism.initial_state(given.problem, 0.5)
        centre, dual, party = loop.body.steps[:3]  # type: ignore[union-attr]
        for step in (centre, dual, party.steps[0].steps[0]):
            state = run_schedule(step, state, Context(ClosedForm()))
        return mechanism.draw(given.problem, scheme_named("averaged"), given.factors[0], 0, release), state

    pair = at_its_release(1.0), at_its_release(-1.0)
    moved = pair[0][1]["share/0"] - pair[1][1]["share/0"]
    bound = run_schedule(*pair[0], Context(ClosedForm()))["sensitivity/0"][0]
    assert 0.5 < np.linalg.norm(moved) / bound <= 1.0
    source = Noise(np.random.default_rng(0))
    found = audit(
        lambda one: run_schedule(*one, Context(ClosedForm(), noise=source))["v/0"],
        *pair,
        delta=1e-3,
        runs=10000,
    )
    assert 0.2 < found.epsilon <= 1.0


def test_public_steps_see_no_share_and_history_holds_only_what_was_released() -> None:
    run = model().solve_private(epsilon=1.0, delta=1e-5, max_iter=3, row_bound=1.0)
    figures = set(run.history.columns) - {"iteration", "block", "seconds", "engine", "solver", "status"}
    assert figures == {"gap", *(f"{name} {m}" for name in ("noise", "sensitivity", "kept") for m in (0, 1))}
    assert not any(name.startswith(("x/", "share/", "mean/")) for name in run.released)


def test_a_seeded_run_repeats_and_says_that_its_guarantee_hangs_on_the_seed() -> None:
    with pytest.warns(PrivacyWarning, match="noise_seed"):
        runs = [
            model().solve_private(epsilon=1.0, delta=1e-5, max_iter=2, row_bound=1.0, noise_seed=7) for _ in range(2)
        ]
    assert np.array_equal(runs[0].not_private.coefficients[0], runs[1].not_private.coefficients[0])
    assert not runs[0].accounting.secure
    assert any("seed" in line for line in runs[0].facts.promises)


def test_shrinking_keeps_a_clear_share_and_forgets_a_drowned_one() -> None:
    rng = np.random.default_rng(0)
    y = np.where(rng.random(4000) < 0.3, 1.0, -1.0)
    true = 0.5 * y + rng.normal(size=4000)
    clear, kept = mechanism.shrunk(true + 0.01 * rng.normal(size=4000), 0.01, y)
    assert kept > 0.999
    assert np.allclose(clear, true, atol=0.06)
    drowned, part = mechanism.shrunk(true + 50.0 * rng.normal(size=4000), 50.0, y)
    assert part < 0.05
    assert np.mean((drowned - true) ** 2) < 10.0  # of 2500 before


# -- labels ----------------------------------------------------------------------------------------------------------


def test_shared_labels_are_read_off_every_broadcast_without_a_miss() -> None:
    given = model()
    release = mechanism.ShareRelease(0.01, "replace-one", (1.0, 1.0), (12.5, 12.5))
    loop = mechanism.private_passes(given.problem, scheme_named("averaged"), given.factors, (), release, 1)
    state = mechanism.initial_state(given.problem, 0.4)
    for step in loop.body.steps[:2]:  # type: ignore[union-attr]
        state = run_schedule(step, state, Context(ClosedForm()))
    assert np.array_equal(read_off(state["y"][0]), given.problem.y)
    run = given.solve_private(epsilon=1.0, delta=1e-6, max_iter=3, row_bound=1.0, noise_seed=0)
    said = np.abs(run.released["y"]) > 1e-9  # below, a confident prediction's y is rounding
    assert said.sum() > 20
    assert np.array_equal(read_off(run.released["y"])[said], given.problem.y[said])
    assert any("labels='shared'" in line for line in run.warnings)


def test_held_labels_are_recovered_no_better_than_their_epsilon_allows() -> None:
    parts, y = unit_rows(4000)
    run = ADMMSharing(parts, y, lam=5.0).solve_private(
        epsilon=1.0, delta=1e-6, max_iter=4, row_bound=1.0, labels="held"
    )
    hits = np.mean(read_off(run.released["y"]) == y)
    expected = 1.0 - labels.flip_probability(0.5)
    assert abs(hits - expected) < 5.0 * np.sqrt(0.25 / 4000)  # five standard errors
    assert not any("labels='shared'" in line for line in run.warnings)


def test_held_labels_cost_half_of_epsilon_once_and_stand_in_the_accounting() -> None:
    run = model().solve_private(epsilon=1.0, delta=1e-5, max_iter=4, row_bound=1.0, labels="held")
    assert run.ledger[0].step == labels.LABELS
    assert sum(entry.step == labels.LABELS for entry in run.ledger) == 1
    assert 1.0 - 1e-6 < run.accounting.epsilon <= 1.0
    shares = float(np.sqrt(sum(entry.mu**2 for entry in run.ledger[1:])))
    assert shares == pytest.approx(mu_beside(1.0, 1e-5, [0.5]), rel=1e-8)
    assert shares > gaussian_mu(0.5, 1e-5)  # what adding up would leave
    assert "one label" in run.accounting.neighbours


def test_the_corrected_loss_is_unbiased_over_flips_and_its_z_step_exact() -> None:
    rng = np.random.default_rng(0)
    plain, flipped = loss_named("logistic"), 0.3
    corrected = labels.unbiased(plain, flipped)
    z, b = 3.0 * rng.normal(size=50), np.where(rng.random(50) < 0.5, 1.0, -1.0)
    mean = (1.0 - flipped) * corrected.value(z, b) + flipped * corrected.value(z, -b)
    assert np.allclose(mean, plain.value(z, b), atol=1e-12)
    steps = 1e-6
    slope = (corrected.value(z + steps, b) - corrected.value(z - steps, b)) / (2 * steps)
    assert np.allclose(corrected.gradient(z, b), slope, atol=1e-7)
    best = corrected.prox(z, b, 1.3, 0.4)
    assert np.allclose(1.3 * corrected.gradient(best, b) + 0.4 * (best - z), 0.0, atol=1e-10)
    hinge = loss_named("hinge")
    assert labels.unbiased(hinge, flipped) is hinge


# -- relations, bounds and what is refused -----------------------------------------------------------------------------


def test_every_relation_runs_and_says_what_a_neighbour_is() -> None:
    given = model()
    for adjacency, options in {
        "replace-one": {"row_bound": 1.0},
        "party-row": {"row_bound": (1.0, 1.0)},
        "column": {"column_bound": 20.0},
        "cell": {"cell_bound": 1.0},
    }.items():
        run = given.solve_private(epsilon=1.0, delta=1e-5, max_iter=2, adjacency=adjacency, **options)
        assert run.accounting.epsilon <= 1.0
        assert ("column" if adjacency == "column" else "entry" if adjacency == "cell" else "row") in (
            run.accounting.neighbours
        )


def test_sparse_columns_are_bounded_as_dense_ones() -> None:
    parts, y = unit_rows()
    given = ADMMSharing([sparse.csr_array(part) for part in parts], y, lam=5.0)
    dense, thin = (
        one.solve_private(epsilon=1.0, delta=1e-5, max_iter=2, row_bound=1.0, noise_seed=1).not_private.coefficients[0]
        for one in (model(), given)
    )
    assert np.allclose(dense, thin, atol=1e-10)
    for adjacency, limit in (("replace-one", 0.3), ("column", 2.0), ("cell", 0.2)):
        both = [bounds.within(one.problem, adjacency, (limit, limit), clip_data=True) for one in (model(), given)]
        for full, part in zip(*both, strict=True):
            assert np.allclose(full, part.toarray(), atol=1e-12)  # type: ignore[union-attr]


def test_data_beyond_the_bound_are_refused_unless_clipping_was_asked_for() -> None:
    with pytest.raises(PrivacyError, match=r"row_bound=0.4 does not hold: parts\[0\]"):
        model().solve_private(epsilon=1.0, delta=1e-5, row_bound=0.4)
    run = model().solve_private(epsilon=1.0, delta=1e-5, row_bound=0.4, clip_data=True)
    assert run.settings.clip_data
    for adjacency, size in (("replace-one", 1), ("column", 0)):
        clipped = bounds.within(model().problem, adjacency, (0.4, 0.4), clip_data=True)
        assert max(np.linalg.norm(part, axis=size).max() for part in clipped) <= 0.4 + 1e-12  # type: ignore[arg-type]


def test_what_rounding_lets_beyond_a_bound_is_within_the_margin_of_the_budget() -> None:
    # Noise for (1 + ROUNDING) times the sensitivity is asked for; gaussian_mu leaves room for more than its square.
    assert gaussian_delta(1.0, (1.0 + bounds.ROUNDING) ** 2 * gaussian_mu(1.0, 1e-5)) <= 1e-5
    with pytest.raises(PrivacyError, match="does not hold"):
        bounds.within(
            ADMMSharing([np.full((2, 1), 1.0 + 1e-11)], np.array([0, 1])).problem, "replace-one", (1.0,), False
        )


def test_an_entry_stored_in_several_parts_is_bounded_as_their_sum() -> None:
    stored = sparse.csr_array((np.full(3, 0.9), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    assert not stored.has_canonical_format
    problem = ADMMSharing([stored], np.array([0, 1])).problem
    with pytest.raises(PrivacyError, match="has a larger cell"):
        bounds.within(problem, "cell", (1.0,), clip_data=False)
    (clipped,) = bounds.within(problem, "cell", (1.0,), clip_data=True)
    np.testing.assert_array_equal(np.asarray(clipped.toarray()), [[1.0, 0.0], [0.0, 0.9]])  # type: ignore[union-attr]
    assert stored.nnz == 3  # the user's own array is as it was


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0.0}, "epsilon=0.0"),
        ({"epsilon": -1.0}, "epsilon=-1.0"),
        ({"epsilon": float("nan")}, "epsilon=nan"),
        ({"epsilon": "1"}, "epsilon='1'"),
        ({"epsilon": True}, "epsilon=True"),
        ({"delta": "1e-5"}, "delta='1e-5'"),
        ({"delta": 0.0}, "delta=0.0"),
        ({"delta": 1.0}, "delta=1.0"),
        ({"row_bound": None}, "without a bound"),
        ({"row_bound": float("inf")}, "no public bound"),
        ({"row_bound": -1.0}, "no public bound"),
        ({"row_bound": (1.0, 1.0, 1.0)}, "one for each party"),
        ({"adjacency": "party"}, "did you mean 'party-row'"),
        ({"adjacency": "column"}, "says nothing for adjacency='column'"),
        ({"cell_bound": 1.0}, "says nothing for adjacency='replace-one'"),
        ({"method": "proximal_jacobi"}, "Pass clip"),
        ({"clip": 0.0}, "clip=0.0"),
        ({"clip_entries": float("inf")}, "clip_entries=inf"),
        ({"labels": "hidden"}, "labels='hidden'"),
        ({"noise": "laplace"}, "noise='laplace'"),
    ],
)
def test_what_nothing_bounds_is_refused_before_anything_runs(options: dict[str, Any], message: str) -> None:
    calls: list[int] = []
    given: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "row_bound": 1.0, **options}
    with pytest.raises(PrivacyError, match=message):
        model().solve_private(**given, callback=lambda *each: calls.append(1))
    assert not calls


def test_a_penalty_without_a_bound_needs_a_clip_and_runs_with_one() -> None:
    ruled = model(lam=1e5).constrain("sum", lambda x: x[0] >= 0.0)  # as a ridge step it would hardly move
    for given in (model(penalty="l1"), model(lam=0.0), ruled):
        with pytest.raises(PrivacyError, match="Pass clip"):
            given.solve_private(epsilon=1.0, delta=1e-5, row_bound=1.0)
        for options in ({}, {"row_bound": 1.0}):  # the bound of the ridge step is not that of these steps
            run = given.solve_private(epsilon=1.0, delta=1e-5, max_iter=2, clip=0.3, **options)
            assert run.released["sensitivity/0"] == pytest.approx(0.6)


def test_labels_that_are_numbers_cannot_be_held() -> None:
    parts, y = unit_rows()
    with pytest.raises(PrivacyError, match="two classes"):
        ADMMSharing(parts, y, loss="squared", lam=5.0).solve_private(
            epsilon=1.0, delta=1e-5, row_bound=1.0, labels="held"
        )


def test_a_loss_that_is_not_convex_keeps_its_own_condition_on_rho() -> None:
    parts, y = unit_rows()
    given = ADMMSharing(parts, y, loss="sigmoid", lam=5.0)
    with pytest.raises(ModelError, match="too small"):
        given.solve_private(epsilon=1.0, delta=1e-5, row_bound=1.0, rho=1e-3)
    assert given.solve_private(epsilon=1.0, delta=1e-5, max_iter=2, row_bound=1.0).accounting.epsilon <= 1.0


def test_a_callback_that_ends_the_run_leaves_the_accounting_of_what_was_released() -> None:
    run = model().solve_private(epsilon=1.0, delta=1e-5, max_iter=5, row_bound=1.0, callback=lambda *each: each[1] == 2)
    assert run.interrupted
    assert run.accounting.releases == 4
    assert run.accounting.epsilon < 0.7


def test_spending_counts_the_releases_of_one_party_for_a_change_within_one() -> None:
    for adjacency, count in (("replace-one", 12), ("party-row", 4), ("column", 4), ("cell", 4)):
        release = mechanism.ShareRelease(0.1, adjacency, (1.0,) * 3, (1.0,) * 3)
        ledger = [release.entry(m) for _ in range(4) for m in range(3)]
        found = sensitivity.spent(ledger, 1e-5, adjacency, neighbours="")
        assert (found.mu, found.releases) == (pytest.approx(0.1 * np.sqrt(count)), count)


# -- what it buys ------------------------------------------------------------------------------------------------------


def a9a_scores(epsilon: float, **options: object) -> tuple[float, float]:
    """Mean test log loss and AUC of five runs on a9a, 66 and 57 columns."""
    data = load_a9a()
    given = ADMMSharing([data.x_train[:, :66], data.x_train[:, 66:]], data.y_train, lam=30.0)
    test = [data.x_test[:, :66], data.x_test[:, 66:]]

    def score(run: PrivateSharingRun) -> tuple[float, float]:
        likely = run.not_private.predict_proba(test)[:, 1]
        return log_loss(data.y_test, likely), roc_auc_score(data.y_test, likely)

    limits = (np.sqrt(8.0), np.sqrt(6.0))  # of adult.names: 7 or 8 and 5 or 6 features stand for one person
    runs = [
        given.solve_private(epsilon=epsilon, delta=1e-6, row_bound=limits, noise_seed=seed, **options)
        for seed in range(5)
    ]
    loss, auc = np.mean([score(run) for run in runs], axis=0)
    return float(loss), float(auc)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_on_a9a_a_private_fit_is_better_than_the_first_party_alone(epsilon: float) -> None:
    loss, auc = a9a_scores(epsilon)
    # First party alone .3494 / .8853, pooled without privacy .3241 / .9022.
    assert 0.3241 < loss < 0.3494
    assert 0.8853 < auc < 0.9022
