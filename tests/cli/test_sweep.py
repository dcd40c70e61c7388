"""`cvxpriv sweep`: the plan, its mistakes with key and line, the files, and what goes on after a failure."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cvxpriv as cpv
from cvxpriv.models import ISTDP, PrivacyFunnel
from cvxpriv.reports.sets import require_whole

from .conftest import Run, one_error_line

PLAN = """# a plan
model = "PrivacyFunnel"
checkpoint = "runs/funnel.jsonl"

[data]
source = "heart-failure"

[grid]
rate = [0.5, 1.0]

[solve]
method = "aem"
starts = 1
"""


def _plan(text: str = PLAN) -> str:
    Path("plan.toml").write_text(text, encoding="utf-8")
    return "plan.toml"


def test_a_plan_is_swept_to_csv_and_json_and_goes_on_from_its_checkpoint(run: Run, counts: str) -> None:
    people = f'source = "{counts}"\nprivate = ["income"]\npublic = ["age"]\ncount = "count"'
    result = run("sweep", _plan(PLAN.replace('source = "heart-failure"', people)), "--no-report", "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    table = cpv.JointTable.from_csv(counts, ["income"], ["age"], "count")
    frame = cpv.sweep(PrivacyFunnel, table, rate=[0.5, 1.0], method="aem", starts=1)
    assert [row["leakage"] for row in document["tables"]["sweep"]] == frame["leakage"].tolist()
    assert [float(one) for one in pd.read_csv("out/sweep.csv", dtype=str)["leakage"]] == frame["leakage"].tolist()
    assert [row["rate"] for row in json.loads(Path("out/sweep.json").read_text())["rows"]] == [0.5, 1.0]
    assert set(require_whole("out")) == {"sweep.csv", "sweep.json"}
    before = Path("runs/funnel.jsonl").read_bytes()
    again = run("sweep", "plan.toml", "--no-report")
    assert again.exit_code == 0, again.output
    assert Path("runs/funnel.jsonl").read_bytes() == before
    assert "Sweep of PrivacyFunnel: 2 tasks" in again.stdout


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("rate =", "rat =", "plan.toml, line 9, grid.rat: rat is no option of PrivacyFunnel: did you mean 'rate'?"),
        ("starts = 1", "starts = 0", "plan.toml, line 13, solve.starts: starts=0 is not a whole number >= 1"),
        ("PrivacyFunnel", "Funnel", "plan.toml, line 2, model: model='Funnel' is not known"),
        ('source = "heart-failure"', 'sauce = "x"', "plan.toml, line 6, data.sauce: sauce is not known here"),
        ('source = "heart-failure"', "", "plan.toml, [data]: the data have no source"),
        ("heart-failure", "none.csv", "plan.toml, line 6, data.source: private names no column of none.csv"),
        ("checkpoint", "check", "plan.toml, line 3, check: check is not known here: did you mean 'checkpoint'?"),
        ("[0.5, 1.0]", "[0.5,, 1.0]", "plan.toml is no TOML: Invalid value (at line 9, column 13)"),
        ('method = "aem"', "rate = 0.5", "plan.toml, line 12, solve.rate: rate stands in [grid] too"),
        ("PrivacyFunnel", "ADMMSharing", "line 9, grid.rate: rate is no option of ADMMSharing"),
    ],
)
def test_a_mistake_is_told_with_its_key_and_line(run: Run, old: str, new: str, said: str) -> None:
    result = run("sweep", _plan(PLAN.replace(old, new)), "--no-report")
    assert result.exit_code == 2
    assert said in one_error_line(result)
    assert not Path("runs").exists()


def test_tables_by_name_and_failures_exit_with_3(run: Run, counts: str) -> None:
    text = PLAN.replace("[data]\nsource", "[data.heart]\nsource").replace("[0.5, 1.0]", "[0.5, 7.0]")
    people = f'[data.people]\nsource = "{counts}"\nprivate = ["income"]\npublic = ["age"]\ncount = "count"\n'
    result = run("sweep", _plan(text + people), "--no-report")
    assert result.exit_code == 3
    frame = pd.read_csv("out/sweep.csv")
    assert list(zip(frame["table"], frame["status"], strict=True)) == [
        ("heart", "done"),
        ("heart", "failed"),
        ("people", "done"),
        ("people", "failed"),
    ]
    assert "2 of 4 tasks failed" in result.stderr
    assert frame["error_type"][1] == "ModelError"


def test_rows_of_a_file_are_learned_from(run: Run) -> None:
    rows = [(age, "yes" if age % 3 else "no") for age in range(20, 60)]
    Path("rows.csv").write_text("age,ill\n" + "".join(f"{age},{ill}\n" for age, ill in rows))
    plan = 'model = "ISTDP"\n[data]\nsource = "rows.csv"\nlabel = "ill"\nrange = {age = [0, 100]}\n'
    result = run("sweep", _plan(plan + '[grid]\nloss = ["logistic"]\n[solve]\ntol = 1e-6\n'), "--no-report")
    assert result.exit_code == 0, result.output
    assert pd.read_csv("out/sweep.csv")["objective"].notna().all()
    grid = '[grid]\npenalty = ["l1:0.1", "l1:0.01"]\n[solve]\ntol = 1e-12\n'
    written = run("sweep", _plan('warm_along = "penalty"\n' + plan + grid), "--no-report")
    assert written.exit_code == 0, written.output
    x, y = (np.array([age for age, _ in rows]) / 50.0 - 1.0)[:, None], [ill for _, ill in rows]
    called = cpv.sweep(ISTDP, (x, y), penalty=["l1:0.1", "l1:0.01"], tol=1e-12, warm_along="penalty")
    assert pd.read_csv("out/sweep.csv")["task"].tolist() == called["task"].tolist()
    refused = run("sweep", _plan('warm_along = "penalt"\n' + plan + grid))
    assert "warm_along='penalt' is no option of the grid: did you mean 'penalty'?" in refused.stderr
