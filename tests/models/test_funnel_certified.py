"""The funnel's usual method proves its answer: certified gaps, priced free outputs, certificates that are saved."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cvxpriv_models.privacy_funnel.pricing import FunnelPricing
from cvxpriv_models.privacy_funnel.run import stored_bound

import cvxpriv as cpv
from cvxpriv import datasets
from cvxpriv.blocks.engines import Until
from cvxpriv.bounds.columns import INTERRUPTED, Priced
from cvxpriv.errors import DataError, ModelError
from cvxpriv.models import PrivacyFunnel

from .test_funnel_model import paper

#: Of `bound`'s own tests: both ends of the certified optimum of heart failure at .8 H(X) lie within 1e-8 of this.
HEART_AT_80 = 0.02079279


def test_the_usual_answer_on_the_readme_s_table_is_the_certified_optimum() -> None:
    run = PrivacyFunnel(datasets.heart_failure(), rate=0.8).solve()
    assert run.converged
    assert run.gap is not None
    assert run.gap <= 2e-8
    assert run.leakage == pytest.approx(HEART_AT_80, abs=2e-8)
    assert run.utility >= run.problem.rate - 1e-12


#: Penguins (Horst, Hill and Gorman 2020, CC0): sex and island by species and classes of flipper length and body mass.
PENGUINS = [
    [15, 4, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6, 6, 10, 36],
    [22, 2, 0, 3, 0, 0, 0, 17, 4, 8, 5, 0, 0, 0, 0, 0, 0, 0],
    [16, 5, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    [3, 12, 1, 0, 4, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 59],
    [4, 13, 2, 0, 9, 0, 0, 3, 3, 4, 19, 1, 3, 1, 0, 0, 0, 0],
    [2, 6, 0, 2, 10, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
]


@pytest.mark.parametrize("rate", [pytest.param(0.6, marks=pytest.mark.slow), 0.8])
def test_cells_that_column_generation_left_empty_come_back(rate: float) -> None:
    """By the alternation alone a cell without mass takes thousands of passes to matter again."""
    assert PrivacyFunnel(cpv.JointTable.from_counts(PENGUINS), rate).solve().converged


@pytest.mark.slow
def test_the_usual_method_converges_on_random_tables_of_few_records() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        private, public, records = rng.integers((2, 5, 50), (7, 19, 600))
        law = rng.dirichlet(np.full(public, 0.3), size=private) * rng.dirichlet(np.ones(private))[:, None]
        counts = rng.multinomial(records, (law / law.sum()).ravel()).reshape(private, public)
        counts = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
        if min(counts.shape) > 1:
            for rate in (0.5, 0.8):
                assert PrivacyFunnel(cpv.JointTable.from_counts(counts), rate).solve().converged


@pytest.mark.parametrize("rate", [0.3, 0.7, 0.9, 1.0])
def test_no_start_of_the_paper_s_method_beats_the_bound(rate: float) -> None:
    run, others = paper("skewed", rate).solve(), paper("skewed", rate).solve(method="aem", starts=10)
    assert run.bound is not None
    assert run.leakage <= others.leakage + 1e-8
    assert others.starts["leakage"].min() >= run.bound.lower - 1e-12


def test_an_empty_output_is_priced_at_its_best_posterior() -> None:
    # The best mechanism on 3 outputs, padded by an empty one, passes the ordinary residual and leaks .388548;
    # with a fourth output .383958 can be reached.
    best = PrivacyFunnel(paper(rate=0.9).problem.table, rate=0.9, size_y=3).solve(method="aem", starts=30)
    padded = np.pad(best.mechanism, ((0, 0), (0, 1)))
    stuck = paper(rate=0.9).solve(init=padded, max_iter=20)
    assert max(stuck.kkt.stationarity, stuck.kkt.complementarity) <= 1e-6
    assert stuck.kkt.free > 1e-3
    assert not stuck.converged
    assert stuck.leakage == pytest.approx(0.388548, abs=1e-5)
    assert paper(rate=0.9).solve().leakage == pytest.approx(0.383958, abs=2e-6)


def test_the_polish_ends_with_the_time_of_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    # At 8 x 400 one pass takes a second, and hundreds of them were allowed.
    monkeypatch.setattr(Until, "over", property(lambda _: True))
    run = PrivacyFunnel(datasets.heart_failure(), rate=0.9).solve(gap=1e-2)
    assert (run.iterations, run.overdue, run.converged) == (1, True, False)
    assert run.bound is not None
    assert run.bound.lower <= run.leakage <= run.bound.upper
    assert run.utility >= run.problem.rate


def test_a_saved_run_keeps_its_proof_and_a_false_one_is_refused(tmp_path: Path) -> None:
    run = paper(rate=0.5).solve()
    run.save(tmp_path / "run.json")
    again = cpv.load(tmp_path / "run.json")
    assert again.gap == pytest.approx(run.gap, abs=1e-8)
    document = json.loads((tmp_path / "run.json").read_text())
    document["certificate"]["bound"] += 0.01
    (tmp_path / "run.json").write_text(json.dumps(document))
    with pytest.raises(DataError):
        cpv.load(tmp_path / "run.json")
    assert run.bound is not None
    false = replace(run.bound.certificate, bound=run.bound.upper + 1e-4)
    with pytest.raises(DataError, match="does not prove"):
        stored_bound(false, run.problem)


def test_a_certified_curve_holds_every_rate_between_two_bounds() -> None:
    curve = paper().curve(10, certified=True)
    assert (curve["leakage"] - curve["lower"]).max() <= 1e-6
    assert (curve["utility"] >= curve["rate"] - 1e-12).all()
    with pytest.raises(ModelError, match="leave starts out"):
        paper().curve(3, certified=True, starts=2)


@pytest.mark.parametrize("place", [0, 4])
def test_an_interrupt_ends_a_certified_curve_and_is_named(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    priced, calls = FunnelPricing.local_search, itertools.count()

    def cut(*args: Any) -> Priced:
        if next(calls) == place:
            raise KeyboardInterrupt
        return priced(*args)

    table, fractions = datasets.heart_failure(), [0.8, 0.9, 0.9]
    whole = PrivacyFunnel(table).curve(fractions, certified=True)
    monkeypatch.setattr(FunnelPricing, "local_search", cut)
    curve = PrivacyFunnel(table).curve(fractions, certified=True)
    assert 1 <= len(curve) < len(fractions)
    assert (curve["reason"] != "").sum() == 1
    assert curve.loc[curve["reason"] == INTERRUPTED, "fraction"].item() == curve["fraction"].min()
    for row in curve.itertuples():  # the bounds hold
        best = whole.loc[whole["fraction"] == row.fraction].iloc[0]
        assert row.lower <= best["leakage"]
        assert best["lower"] <= row.leakage


def test_nothing_is_proved_where_nothing_can_be() -> None:
    floored = paper().constrain("floor", lambda mechanism: mechanism >= 0.02)
    run = floored.solve(starts=1)
    assert run.bound is not None
    assert run.bound.ignored == ("floor",)  # the bound is that without the floor
    assert run.gap is not None
    assert paper().solve(method="aem", starts=1).gap is None
    with pytest.raises(ModelError, match="no constraints"):
        floored.solve(method="columns")


def test_a_table_with_many_private_symbols_is_solved_by_columns_and_says_what_is_not_proved() -> None:
    # |S| = 8, with too many faces: no complete search. The paper's method from 4 starts is the independent route, and
    # ends higher.
    rng = np.random.default_rng(2)
    table = rng.dirichlet(np.full(8 * 20, 0.5)).reshape(8, 20)
    run = PrivacyFunnel(table, rate=0.7).solve()
    assert run.converged
    assert run.settings.method == "columns"
    assert run.bound is not None
    assert "faces of up to 8 of the 20 public symbols" in run.bound.reason
    assert run.bound.lower <= run.leakage
    assert run.kkt.largest <= 1e-7
    others = PrivacyFunnel(table, rate=0.7).solve(method="aem", starts=4)
    assert run.leakage <= others.leakage + 1e-6


def test_runs_that_end_without_a_pass_stand_beside_those_that_made_some() -> None:
    # At R = H(X) the optimum of columns is stationary at once; a random start makes passes, and holds more values.
    run = paper(rate=1.0).solve(starts=1)
    assert len(run.starts) == 2
    reverse = paper(rate=0.5).solve(starts=2)
    assert reverse.converged


def test_a_run_is_read_again_whatever_the_rounding_of_its_table_s_sum(tmp_path: Path) -> None:
    rounded = 0
    for seed in (4, 14):
        table = np.round(np.random.default_rng(seed).dirichlet(np.ones(6)), 2).reshape(2, 3) + 0.001
        run = PrivacyFunnel(table / table.sum(), rate=0.4).solve()
        rounded += run.problem.table.probabilities.sum() != 1.0
        run.save(tmp_path / "run.json")
        assert cpv.load(tmp_path / "run.json").gap == pytest.approx(run.gap, abs=1e-8)
    assert rounded  # such tables were divided by their sum once more, and their certificates refused


@pytest.mark.parametrize(("size_y", "limited"), [(None, False), (3, True)])
def test_a_bound_that_needs_more_outputs_than_y_has_is_said_to_be_one_without_that_limit(
    size_y: int | None, limited: bool
) -> None:
    table = np.random.default_rng(1).dirichlet(np.ones(24)).reshape(4, 6)
    run = PrivacyFunnel(table, 0.5, size_y=size_y).solve()
    assert ("however many outputs it has" in repr(run)) == limited
