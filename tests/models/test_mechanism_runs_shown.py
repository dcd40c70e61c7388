"""What a mechanism's run shows of itself: five lines, a table, and axes."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import cvxpy as cp
import matplotlib.figure
import numpy as np
import pandas as pd
import pytest

import cvxpriv as cpv
from cvxpriv import constraints
from cvxpriv.models import InferenceAsService, PrivacyFunnel
from cvxpriv.runs.constraint_facts import violations
from cvxpriv.runs.mechanism_facts import starts_section

TABLE = cpv.JointTable.from_counts([[14, 10, 6], [4, 9, 17]])


@pytest.mark.parametrize(
    "model",
    [PrivacyFunnel(TABLE, rate=0.5), InferenceAsService(TABLE, divergence="kl", beta=1.0)],
    ids=["funnel", "inference"],
)
def test_a_run_shows_itself_in_five_lines_a_table_and_axes(model: Any) -> None:
    run = model.solve(starts=1)
    lines = repr(run).splitlines()
    assert 2 <= len(lines) <= 5
    assert max(map(len, lines)) <= 100
    assert run._repr_html_().startswith("<table>")
    axes = matplotlib.figure.Figure().subplots()
    assert run.plot(axes) is axes
    assert run.plot() is not axes


@pytest.mark.parametrize(
    "model",
    [
        PrivacyFunnel(TABLE, rate=0.5),
        PrivacyFunnel(TABLE, rate=0.9),
        InferenceAsService(TABLE, divergence="kl", beta=1e3),
    ],
    ids=["nearly silent", "telling", "silent"],
)
def test_a_leakage_without_an_interval_is_that_of_the_table(model: Any) -> None:
    assert model.solve(seed=0).facts["leakage"].title.endswith("in the table")


def _own(mechanism: cp.Expression) -> list[cp.Constraint]:
    return [mechanism[0, 0] <= 0.6]


PAPER = {"starts": 1, "max_iter": 1}
SHORT = {"time_limit": 0.05, "max_iter": 1}


@pytest.mark.slow
@pytest.mark.parametrize("symbols", [2, 5])
@pytest.mark.parametrize("kind", [PrivacyFunnel, InferenceAsService])
def test_a_run_without_a_gap_says_why_and_one_that_is_loaded_says_the_same(
    kind: Any, symbols: int, tmp_path: Path
) -> None:
    table = np.random.default_rng(symbols).dirichlet(np.ones(3 * symbols)).reshape(symbols, 3)
    funnel = kind is PrivacyFunnel
    model = PrivacyFunnel(table, rate=0.4) if funnel else InferenceAsService(table, 0.1)
    near = constraints.expected_distortion(1.0 - np.eye(3, 4), 0.6)
    own = model.constrain("own", _own)
    every = [(model, {"method": "aem" if funnel else "admm", **PAPER}), (own, {"engine": "dcp", **PAPER})]
    every += [(model, SHORT), (own, SHORT), (model.constrain("near", near), SHORT)]
    for asked, options in every:
        run = asked.solve(**options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cpv.errors.NoGuaranteeWarning)  # the file has no function of the user's
            again = cpv.load(run.save(tmp_path / "run.json"))
        for one in (run, again):
            assert (one.gap is None) == bool(one.no_gap)
            assert one.gap is not None or one.no_gap in one.facts["gap"].detail
            assert one.bound is None or one.bound.reason == run.bound.reason


def test_a_single_pass_has_no_picture() -> None:
    run = PrivacyFunnel(TABLE, rate=0.5).solve(seed=0)
    passes = pd.DataFrame({"iteration": [1, 2], "objective": [0.5, 0.25], "kkt": [1e-2, 1e-9], "start": 0})
    drawn = [len(starts_section(run, {"leakage": True}, passes.head(count), "").pictures) for count in (1, 2)]
    assert drawn == [0, 1]


def test_a_page_says_what_a_constraint_with_variables_of_its_own_is_missed_by_and_costs(tmp_path: Path) -> None:
    def near(mechanism: cp.Expression) -> list[cp.Constraint]:
        rows = cp.Variable(3)
        return [cp.norm(mechanism - 1.0 / mechanism.shape[1], axis=1) <= rows, cp.sum(rows) <= 1.0]

    run = InferenceAsService(TABLE, divergence="js", beta=0.1).constrain("near", near).solve(method="joint", starts=1)
    assert violations(run)["near"] < 1e-7  # a solver's answer
    assert "near[1]" in run.report(tmp_path / "page.html").read_text(encoding="utf-8")
