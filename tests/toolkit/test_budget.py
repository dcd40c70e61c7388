"""A budget: what it holds by independent sums and integrals, across threads, processes and crashes."""

from __future__ import annotations

import copy
import itertools
import json
import math
import multiprocessing
import pickle
import threading
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import cvxpriv as cpv
from cvxpriv.errors import DataError, PrivacyError
from cvxpriv.models import ISTDP, ADMMSharing, RecycledADMM
from cvxpriv.privacy import Release, budget, gaussian_epsilon, gaussian_mu
from cvxpriv.privacy.accounting import optimal_delta
from cvxpriv.privacy.budget import Budget, covering_mu
from cvxpriv.privacy.gaussian import composed
from cvxpriv.reports import files

ROWS = np.random.default_rng(0).uniform(-0.5, 0.5, size=(60, 4))
LABELS = np.where(ROWS[:, 0] > 0.0, 1, -1)


def spent_until_refused(own: Budget, entry: Release) -> int:
    for count in itertools.count():
        try:
            own.spend([entry])
        except PrivacyError:
            return count
    raise AssertionError


def coins_delta(epsilon: float, each: float, count: int) -> float:
    """Kairouz, Oh and Viswanath, theorem 3.3, in whole numbers of coins: no array, no code of the toolkit."""
    total = 0.0
    for up in range(count + 1):
        loss = (2 * up - count) * each
        if loss > epsilon:
            chance = math.comb(count, up) * math.exp(up * each) / (1.0 + math.exp(each)) ** count
            total += chance * (1.0 - math.exp(epsilon - loss))
    return total


def test_equal_pure_releases_fill_a_budget_as_their_optimal_composition_does() -> None:
    for epsilon, each in ((1.5, 0.05), (1.0, 0.1), (3.0, 0.7)):
        count = spent_until_refused(Budget(epsilon, 1e-6), Release(epsilon=each))
        assert coins_delta(epsilon, each, count) <= 1e-6 < coins_delta(epsilon, each, count + 1)
    assert spent_until_refused(Budget(1.5, 1e-6), Release(epsilon=0.05)) == 50


def test_gaussian_releases_add_their_squares_and_fill_it_exactly() -> None:
    mu = gaussian_mu(1.0, 1e-6)
    assert spent_until_refused(Budget(1.0, 1e-6), Release(mu=mu / 5.0)) == 25
    own = Budget(1.0, 1e-6)
    own.spend([Release(mu=0.6 * mu)])
    assert own.left == pytest.approx(
        gaussian_epsilon(delta=1e-6, mu=0.8 * mu), rel=1e-8
    )  # margins of two roots, 1e-10 each
    own.spend([Release(mu=gaussian_mu(own.left * (1 - 1e-9), 1e-6))])
    assert own.left < 1e-3


def test_a_mixture_holds_as_the_integral_of_both_losses_says() -> None:
    mu, coin, epsilon = 0.2, 0.3, 1.0

    def delta(entries: int) -> float:
        """The positive part of p - e^epsilon q over a Gaussian number and coins."""
        total = 0.0
        for up in range(entries + 1):
            heads = math.comb(entries, up) / (1.0 + math.exp(coin)) ** entries
            p, q = heads * math.exp(up * coin), heads * math.exp((entries - up) * coin)
            low = (epsilon - math.log(p / q)) / mu + mu / 2.0
            found, _ = quad(lambda x, p=p, q=q: p * norm.pdf(x - mu) - math.exp(epsilon) * q * norm.pdf(x), low, 12)
            total += found
        return total

    own = Budget(epsilon, 1e-6)
    own.spend([Release(mu=mu)])
    count = spent_until_refused(own, Release(epsilon=coin))
    assert delta(count) <= 1e-6 < delta(count + 1)


def test_without_a_delta_pure_epsilons_add_up_and_gaussian_ones_are_refused() -> None:
    assert spent_until_refused(Budget(1.0, 0.0), Release(epsilon=0.1)) == 10
    with pytest.raises(PrivacyError, match="does not hold"):
        Budget(100.0, 0.0).spend([Release(mu=0.01)])


def test_costs_that_were_chosen_after_results_count_by_the_gaussian_that_covers_them() -> None:
    own = Budget(1.5, 1e-6, adaptive=True)
    count = spent_until_refused(own, Release(epsilon=0.05))
    squares = math.sqrt(count) * covering_mu(0.05), math.sqrt(count + 1) * covering_mu(0.05)
    assert gaussian_epsilon(delta=1e-6, mu=squares[0]) <= 1.5 < gaussian_epsilon(delta=1e-6, mu=squares[1])
    for epsilon in (0.05, 1.0, 5.0):  # the coin's trade-off is nowhere below the Gaussian one: it touches at its corner
        corner = 1.0 / (1.0 + math.exp(epsilon))
        assert norm.cdf(norm.ppf(1.0 - corner) - covering_mu(epsilon)) == pytest.approx(corner, rel=1e-9)


def test_pure_releases_that_add_up_to_all_of_it_leave_nothing() -> None:
    for epsilons in ([1.0], [0.9, 0.1]):
        own = Budget(1.0, 1e-6)
        own.spend([Release(epsilon=one) for one in epsilons])
        assert own.left < 1e-5  # delta itself still hides a little
        with pytest.raises(PrivacyError, match="does not hold"):
            own.spend([Release(epsilon=0.01)])


def test_what_is_refused_spends_nothing() -> None:
    own = Budget(1.0, 1e-6)
    for entries, named, message in (
        ([Release(epsilon=2.0)], {}, "does not hold this beside what was spent: left is a fit of epsilon=1 at its"),
        ([Release(epsilon=0.1)], {"adjacency": "add-remove"}, "the budget counts 'replace-one'"),
        ([Release(mu=0.1, flaw="reads clean data")], {}, "nothing is guaranteed for this release"),
    ):
        for method in (own.require, own.spend):
            with pytest.raises(PrivacyError, match=message):
                method(entries, **named)
    assert own.ledger == ()


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 1e-6), (math.nan, 1e-6), (True, 1e-6), (1.0, 1.0), (1.0, -1e-9)])
def test_what_is_no_budget_is_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(PrivacyError, match=r"epsilon=|delta="):
        Budget(epsilon, delta)


def test_a_file_is_shared_by_name_and_keeps_what_was_spent(tmp_path: Path) -> None:
    path = tmp_path / "new" / "budget.json"
    Budget(1.0, 1e-6, path).spend([Release(mu=0.1)], what="a fit")
    again, other = cpv.Budget(1.0, 1e-6, path), Budget.open(path)
    other.spend([Release(epsilon=0.1)], what="a count")
    assert [one.step for one in again.ledger] == ["a fit", "a count"]
    assert pickle.loads(pickle.dumps(other)).ledger == again.ledger
    assert path.stat().st_mode & 0o077 == 0
    with pytest.raises(PrivacyError, match="holds another budget, with epsilon=1"):
        Budget(2.0, 1e-6, path)
    for text in ("", "{}", json.dumps({**json.loads(path.read_text()), "version": 9})):
        path.write_text(text)
        with pytest.raises(DataError):
            again.spend([Release(epsilon=0.1)])


def test_a_budget_in_memory_is_one_for_copies_and_none_for_other_processes() -> None:
    own = Budget(1.0, 1e-6)
    assert copy.deepcopy(own) is copy.copy(own) is own
    with pytest.raises(PrivacyError, match="cannot go to another process"):
        pickle.dumps(own)


def spender(path: str, count: int) -> None:
    own = Budget.open(path)
    for _ in range(count):
        own.spend([Release(mu=0.001)])


def test_threads_and_processes_lose_no_entry(tmp_path: Path) -> None:
    path = tmp_path / "budget.json"
    own = Budget(1.0, 1e-6, path)
    others = [multiprocessing.get_context("fork").Process(target=spender, args=(str(path), 20)) for _ in range(2)]
    threads = [threading.Thread(target=spender, args=(str(path), 20)) for _ in range(2)]
    for one in (*others, *threads):
        one.start()
    for one in (*others, *threads):
        one.join()
    assert len(own.ledger) == 80


def test_a_crash_loses_budget_and_never_privacy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "budget.json"
    own = Budget(1.0, 1e-6, path)
    monkeypatch.setattr(files.os, "replace", lambda *names: (_ for _ in ()).throw(OSError("no power")))
    with pytest.raises(DataError):  # nothing was written: nothing may be released
        own.spend([Release(mu=0.1)])
    monkeypatch.undo()
    assert own.ledger == ()
    own.spend([Release(mu=0.1)])  # and this was on the disk before a fit that fails
    assert len(Budget.open(path).ledger) == 1


def sparse(own: Any, **options: Any) -> Any:
    chosen = {"epsilon": 0.5, "delta": 1e-6, **options}
    return ISTDP(ROWS, LABELS, penalty="l2:0.1").solve_private(**chosen, budget=own)


def sharing(own: Any, **options: Any) -> Any:
    chosen = {"epsilon": 0.5, "delta": 1e-6, "row_bound": 1.0, "max_iter": 2, **options}
    return ADMMSharing([ROWS[:, :2], ROWS[:, 2:]], LABELS, lam=5.0).solve_private(**chosen, budget=own)


def consensus(own: Any, **options: Any) -> Any:
    shards = [(ROWS[node::2], LABELS[node::2]) for node in range(2)]
    model = RecycledADMM([[0, 1], [1, 0]], shards, reg=0.3, C=10.0)
    return model.solve_private(**{"epsilon": 0.5, "delta": 1e-6, "max_iter": 2, **options}, budget=own)


@pytest.mark.filterwarnings("ignore:privacy is likely to drown")
def test_fits_of_all_models_spend_from_one_file_until_it_is_empty(tmp_path: Path) -> None:
    own = Budget(1.0, 1e-6, tmp_path / "budget.json")
    runs = [sparse(str(own.path)), sharing(own), consensus(own)]
    assert len(own.ledger) == 3
    together = math.sqrt(sum(run.accounting.mu**2 for run in runs))
    assert gaussian_epsilon(delta=1e-6, mu=together) <= 1.0
    assert own.left < 0.5  # 0.5 at 1e-6 four times is one Gaussian release of 1.0 and a little more
    for fit in (sparse, sharing, consensus):
        with pytest.raises(PrivacyError, match="does not hold"):
            fit(own, epsilon=1.0)
    assert len(own.ledger) == 3


def test_a_fit_beyond_the_budget_reads_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    estimators = pytest.importorskip("cvxpriv_models")
    own = Budget(0.1, 1e-6)

    class Unread:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f"rows were read: {name}")

    for one in (
        estimators.PrivateSparseLogisticRegression(budget=own),
        estimators.VerticalLogisticRegression(epsilon=1.0, clip=1.0, budget=own),
        estimators.DecentralizedLogisticRegression(epsilon=1.0, budget=own),
    ):
        with pytest.raises(PrivacyError, match="does not hold"):
            one.fit(Unread(), Unread())
    monkeypatch.setattr(budget.Budget, "require", lambda *args, **named: None)
    for fit in (sparse, sharing, consensus):
        with pytest.raises(PrivacyError, match="Nothing was spent or released"):
            fit(own)


def test_private_scores_spend_and_are_those_of_the_rows_but_for_their_noise() -> None:
    rng = np.random.default_rng(0)
    margin = rng.normal(size=50_000)
    labels = np.where(margin + rng.logistic(size=margin.size) > 0.0, 1, -1)
    exact, own = cpv.scores_of(labels, margin), Budget(2.0, 1e-6, adjacency="add-remove")
    for adjacency, kept in (("replace-one", Budget(2.0, 1e-6)), ("add-remove", own)):
        found = cpv.private_scores(labels, margin, epsilon=1.0, delta=1e-6, adjacency=adjacency, budget=kept)
        # Twelve deviations; hardly a row's loss is above four nats (1e-3), and each is rounded down by 4e-6.
        assert exact.log_loss is not None
        assert abs(found.accuracy - exact.accuracy) < 6.0 * found.deviation * 2.0
        assert abs(found.log_loss - exact.log_loss) < 24.0 * found.deviation + 4e-6 + 1e-3
        assert found.accounting.epsilon == pytest.approx(1.0, rel=1e-8)
        assert [one.step for one in kept.ledger] == ["scores"]
        with pytest.raises(PrivacyError, match="does not hold scores"):
            cpv.private_scores(None, None, epsilon=2.0, delta=1e-6, adjacency=adjacency, budget=kept)  # type: ignore[arg-type]


def test_what_guarantees_nothing_or_has_no_epsilon_takes_no_budget() -> None:
    own = Budget(10.0, 1e-6)
    for fit, options in (
        (sparse, {"method": "printed"}),
        (sharing, {"noise": "printed"}),
        (sharing, {"adjacency": "party-row"}),
        (consensus, {"epsilon": None, "delta": None, "alpha": 1.0}),
        (sparse, {"adjacency": "add-remove", "public_rows": 60}),
    ):
        with pytest.raises(PrivacyError):
            fit(own, **options)
    assert own.ledger == ()


@pytest.mark.parametrize("adaptive", [False, True])
def test_what_is_left_of_a_pure_budget_is_the_difference(adaptive: bool) -> None:
    own = Budget(1.0, 0.0, adaptive=adaptive)
    own.spend([Release(epsilon=0.25)])
    assert own.left == 0.75
    own.spend([Release(epsilon=0.75)])
    assert own.left == 0.0


def test_a_budget_holds_what_costs_exactly_its_delta() -> None:
    mu, epsilon = 0.3, 1.0
    exact = optimal_delta(epsilon, [], composed([mu]))
    Budget(epsilon, exact).spend([Release(mu=mu)])
    with pytest.raises(PrivacyError, match="does not hold"):
        Budget(epsilon, float(np.nextafter(exact, 0.0))).spend([Release(mu=mu)])


def test_any_delta_below_1_is_one() -> None:
    assert Budget(1.0, 0.75).left > 0.0


@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 1e-3, 0.05, 0.999, 1.0, 8.0, 40.0])
def test_a_covering_mu_is_the_exact_one_and_a_millionth_of_a_millionth(epsilon: float) -> None:
    with mpmath.workdps(60):
        tail = 1 / (1 + mpmath.exp(mpmath.mpf(epsilon)))
        exact = 2 * mpmath.findroot(
            lambda x: mpmath.log(mpmath.ncdf(-x)) - mpmath.log(tail), covering_mu(epsilon) / 2.0
        )
        more = float(covering_mu(epsilon) / exact - 1)
    assert more == pytest.approx(1e-12, rel=0.3, abs=0.0)
