"""The ``--json`` of a command is one document that carries the version of its schema."""

from __future__ import annotations

import json

import pytest

from .conftest import Run

COLUMNS = ("--private", "income", "--public", "age")
BARE = ("--no-report", "--no-crosscheck", "--bootstrap", "0")
COMMANDS = {
    "funnel": ("funnel", "people.csv", *COLUMNS, "--rate", "0.5", *BARE),
    "inference": ("inference", "people.csv", "--infer", "income", "--data", "age", *BARE),
    "release": ("release", "mechanism.json", "people.csv"),
    "verify": ("verify", "kl"),
    "doctor": ("doctor",),
}


SLOW = pytest.param(("formulations", "kl"), id="formulations", marks=pytest.mark.slow)


@pytest.mark.parametrize("line", [*(pytest.param(line, id=name) for name, line in COMMANDS.items()), SLOW])
@pytest.mark.usefixtures("people", "mechanism")
def test_a_success_carries_the_schema_s_version(run: Run, line: tuple[str, ...]) -> None:
    result = run(*line, "--json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["schema_version"] == 1
    assert "error" not in document
