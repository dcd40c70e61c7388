"""A small table, a mechanism, and the command line run in this process."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cvxpriv.cli import main
from cvxpriv.mechanisms.mechanism import Mechanism
from cvxpriv.tables.alphabets import Alphabet

Run = Callable[..., Result]

#: income (2) x age (3): 60 people, every cell occurs, income and age depend on each other.
COUNTS = {
    ("low", "young"): 14,
    ("low", "middle"): 10,
    ("low", "old"): 6,
    ("high", "young"): 4,
    ("high", "middle"): 9,
    ("high", "old"): 17,
}


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CVXPRIV_DEBUG", raising=False)


@pytest.fixture
def run() -> Run:
    def invoke(*arguments: str) -> Result:
        return CliRunner().invoke(main, list(arguments))

    return invoke


def run_in(folder: Path, *arguments: str) -> Result:
    """The command line in a folder with the table: for runs that several tests read."""
    counts_in(folder)
    with chdir(folder):
        return CliRunner().invoke(main, list(arguments))


def counts_in(folder: Path) -> str:
    lines = ["income,age,count", *(f"{income},{age},{count}" for (income, age), count in COUNTS.items())]
    (folder / "counts.csv").write_text("\n".join(lines) + "\n")
    return "counts.csv"


@pytest.fixture
def counts(tmp_path: Path) -> str:
    return counts_in(tmp_path)


@pytest.fixture
def people(tmp_path: Path) -> str:
    rows = [f"{income},{age}" for (income, age), count in COUNTS.items() for _ in range(count)]
    lines = ["id,income,age", *(f"{number},{row}" for number, row in enumerate(rows))]
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    return "people.csv"


@pytest.fixture
def mechanism(tmp_path: Path) -> str:
    ages = Alphabet(("age",), (("middle",), ("old",), ("young",)))
    Mechanism(
        [[0.5, 0.5, 0.0], [0.0, 0.25, 0.75], [1.0, 0.0, 0.0]],
        ages,
        private_columns=["income"],
        model="PrivacyFunnel",
        figures={"leakage": 0.02, "utility": 0.6},
    ).save(tmp_path / "mechanism.json")
    return "mechanism.json"


def one_error_line(result: Result) -> str:
    """The message of a result that is bad input and nothing else: one line, no traceback, no standard output."""
    assert result.exit_code == 2, (result.exit_code, result.stdout, result.stderr)
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")
    return lines[0]


def scores_of(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The scores of each model in the JSON document of a command that learns, by name."""
    return {row["model"]: row for row in document["tables"]["scores"]}
