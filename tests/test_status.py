"""The table of what is there: each row names a test that exists, and nothing that the code registers lacks a row."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path
from typing import Any

import pytest

from cvxpriv.cli.main import main
from cvxpriv.models import available
from cvxpriv.runs.options import options_of

TESTS = Path(__file__).parent
STATUS: dict[str, dict[str, Any]] = tomllib.loads((TESTS.parent / "docs/status.toml").read_text(encoding="utf-8"))
ROWS = [(section["title"], what, test) for section in STATUS.values() for what, test in section["rows"]]
#: Where the methods of each model have their rows.
SECTIONS = {
    "PrivacyFunnel": "PF",
    "InferenceAsService": "IAS",
    "ADMMSharing": "SHARING",
    "RecycledADMM": "RADMM",
    "ISTDP": "ISTDP",
}


@pytest.mark.parametrize(("what", "test"), [row[1:] for row in ROWS])
def test_a_row_names_a_test_that_exists(what: str, test: str) -> None:
    path, _, name = test.partition("::")
    found = ast.walk(ast.parse((TESTS / path).read_text(encoding="utf-8")))
    assert name in {node.name for node in found if isinstance(node, ast.FunctionDef)}, what


@pytest.mark.parametrize("model", sorted(set(available()) & set(SECTIONS)))
def test_every_method_of_a_model_has_a_row(model: str) -> None:
    method = next(option for option in options_of(available()[model].load().solve) if option.name == "method")
    rows = " ".join(what for what, _ in STATUS[SECTIONS[model]]["rows"])
    assert method.option.choices
    assert [choice for choice in method.option.choices if f"`{choice}`" not in rows] == []


def test_every_command_has_a_row() -> None:
    import click

    told = {what.strip("`") for what, _ in STATUS["commands"]["rows"]}
    assert set(main.list_commands(click.Context(main))) <= told
