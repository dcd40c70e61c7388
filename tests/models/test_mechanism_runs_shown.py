"""What a mechanism's run shows of itself: five lines, a table, and axes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cvxpy as cp
import matplotlib.figure
import pandas as pd
import pytest

import cvxpriv as cpv
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
