"""`--table-epsilon`: noise in the counts before anything else, and what the files say with and without it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cvxpriv.privacy import Budget

from .conftest import Run, one_error_line
from .design_cases import BARE

FUNNEL = ("--private", "income", "--public", "age", "--rate", "0.6", "--rate-unit", "fraction", *BARE)
INFERENCE = ("--infer", "income", "--data", "age", "--beta", "0.5", *BARE)
DOMAIN = ("--domain", "income=low,high", "--domain", "age=young,middle,old,ancient")


def designed(run: Run, *arguments: str) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def test_with_noise_the_file_says_that_it_may_be_published(run: Run, counts: str) -> None:
    document = designed(run, "funnel", counts, "--count", "count", *FUNNEL, "--table-epsilon", "1", *DOMAIN)
    held = json.loads(Path("out/mechanism.json").read_text())
    assert held["origin"]["publish"].startswith("differentially private (epsilon=1, neighbours: replace-one)")
    assert ["ancient"] in held["symbols"]
    assert document["about"]["table_epsilon"] == 1.0
    assert document["about"]["records"] == 60
    assert "may be published" in document["promises"][-1]


def test_without_noise_the_file_says_that_it_is_private(run: Run, counts: str) -> None:
    document = designed(run, "funnel", counts, "--count", "count", *FUNNEL)
    held = json.loads(Path("out/mechanism.json").read_text())
    assert held["origin"]["publish"] == document["about"]["publish"] == "private: do not publish; apply it at home"
    assert "Do not publish" in document["promises"][-1]


def test_inference_takes_the_same_noise(run: Run, counts: str) -> None:
    options = ("--table-epsilon", "2", "--table-delta", "1e-6", "--domain", "table")
    document = designed(run, "inference", counts, "--count", "count", *INFERENCE, *options)
    assert document["about"]["table_noise"].startswith("Gaussian noise of standard deviation")
    assert "may be published" in document["promises"][-1]


def test_noise_spends_from_a_budget_that_fits_share_and_stops_where_it_is_empty(run: Run, counts: str) -> None:
    noise = ("--table-epsilon", "0.6", "--domain", "table", "--adjacency", "add-remove", "--budget", "budget.json")
    own = Budget(1.0, 0.0, "budget.json", adjacency="add-remove")
    designed(run, "funnel", counts, "--count", "count", *FUNNEL, *noise)
    assert [entry.epsilon for entry in own.ledger] == [0.6]
    assert "does not hold" in one_error_line(run("funnel", counts, "--count", "count", *FUNNEL, *noise))
    assert len(own.ledger) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--budget", "budget.json"), "--budget is given without --table-epsilon"),
        (("--table-epsilon", "1"), "give all that it may have, --domain 'income=A,B,...'"),
        (("--domain", "age=young"), "--domain is given without --table-epsilon"),
        (("--table-epsilon", "1", "--domain", "age"), "expected COLUMN=VALUE,VALUE"),
        (("--table-epsilon", "1", "--domain", "table", "--smoothing", "1"), "noise fills the cells; leave it out"),
        (("--table-epsilon", "-1", "--domain", "table"), "epsilon=-1.0 is no budget"),
    ],
)
def test_wrong_options_are_refused(run: Run, counts: str, options: tuple[str, ...], message: str) -> None:
    assert message in one_error_line(run("funnel", counts, "--count", "count", *FUNNEL, *options))
