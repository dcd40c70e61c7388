"""The table of what is there: each row names a test that exists, and nothing that the code registers lacks a row."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import cvxpriv
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


def test_the_recipe_and_the_citation_say_what_the_package_says() -> None:
    package = tomllib.loads((TESTS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    recipe = (TESTS.parent / "conda/meta.yaml").read_text(encoding="utf-8")
    asked = re.findall(r"^    - (\S+) ?(.*)$", recipe.partition("  run:\n")[2].partition("\ntest:")[0], re.MULTILINE)
    assert {name + limits for name, limits in asked if name != "python"} == set(package["dependencies"])
    assert ("python", package["requires-python"]) in asked
    assert f'version = "{cvxpriv.__version__}"' in recipe
    assert f"version: {cvxpriv.__version__}\n" in (TESTS.parent / "CITATION.cff").read_text(encoding="utf-8")
    paper, books = ((TESTS.parent / name).read_text(encoding="utf-8") for name in ("paper.md", "paper.bib"))
    assert set(re.findall(r"@([a-z]+)", paper)) == set(re.findall(r"^@\w+\{(\w+),", books, re.MULTILINE))
