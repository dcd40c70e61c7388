"""The learning models' one contract: the same names, order and defaults; and type checkers see it."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cvxpriv_models import admm_sharing, istdp, recycled_admm

from cvxpriv.models import InferenceAsService, PrivacyFunnel
from cvxpriv.runs.alternating_model import AlternatingModel
from cvxpriv.runs.options import options_of
from cvxpriv.runs.problem_model import ProblemModel
from cvxpriv.runs.shared_options import SolveOptions

MODELS: list[type[Any]] = [admm_sharing.ADMMSharing, istdp.ISTDP, recycled_admm.RecycledADMM]
PRIVATE = ["epsilon", "delta", "adjacency", "noise_seed", "method", "max_iter", "progress", "callback"]
PRIVATE += ["budget", "oversize"]

SNIPPET = """
import numpy as np
from cvxpriv_models.admm_sharing import ADMMSharing
from cvxpriv_models.istdp import ISTDP
from cvxpriv_models.recycled_admm import RecycledADMM

x, y = np.ones((4, 2)), np.ones(4)
ADMMSharing([x], y).solve_private(epsilon=1.0, delt=1e-6)
ISTDP(x, y).solve_private(epsilon=1.0, delt=1e-6)
RecycledADMM(np.ones((2, 2)), [(x, y)]).solve_private(epsilon=1.0, delt=1e-6)
ADMMSharing([x], y).solve(stats=3)
ISTDP(x, y).solve(stats=3)
RecycledADMM(np.ones((2, 2)), [(x, y)]).solve(stats=3)
ISTDP(x, y).path(20, max_iters=3)
ISTDP(x, y, penalti="l1:0.1")
ADMMSharing([x], y).solve_private(epsilon="1", delta=1e-6)
"""


def signature(function: Any) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())[1:]


@pytest.mark.parametrize("model", MODELS)
def test_shared_options_come_first_by_keyword_in_one_order(model: type[Any]) -> None:
    for method, names in ((model.solve, list(SolveOptions.__annotations__)), (model.solve_private, PRIVATE)):
        found = signature(method)
        assert [one.name for one in found][: len(names)] == names
        assert {one.kind for one in found} == {inspect.Parameter.KEYWORD_ONLY}


def test_shared_options_have_one_default() -> None:
    for name in ("solve", "solve_private"):
        defaults = [{one.name: one.default for one in signature(getattr(model, name))} for model in MODELS]
        shared = set(SolveOptions.__annotations__) if name == "solve" else set(PRIVATE)
        assert all({key: one[key] for key in shared} == {key: defaults[0][key] for key in shared} for one in defaults)


@pytest.mark.parametrize("model", [PrivacyFunnel, InferenceAsService, AlternatingModel, ProblemModel])
def test_every_other_model_takes_the_shared_options_by_keyword(model: type[Any]) -> None:
    found = signature(model.solve)
    assert set(SolveOptions.__annotations__) <= {one.name for one in found}
    assert {one.kind for one in found} == {inspect.Parameter.KEYWORD_ONLY}


@pytest.mark.parametrize("model", MODELS)
def test_every_option_is_declared_and_documented(model: type[Any]) -> None:
    for method in (model.solve, model.solve_private):
        declared = {one.name for one in options_of(method)}
        assert declared == {one.name for one in signature(method)}
        doc = inspect.getdoc(method) or ""
        assert all(f"\n{name} : " in doc for name in declared)


@pytest.mark.parametrize("model", MODELS)
def test_only_the_data_are_positional(model: type[Any]) -> None:
    positional = [one for one in signature(model.__init__) if one.kind is not inspect.Parameter.KEYWORD_ONLY]
    assert len(positional) == 2


@pytest.mark.slow
def test_a_type_checker_refuses_a_misspelled_option(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "snippet.py").write_text(SNIPPET)
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(root / "pyproject.toml")]
    found = subprocess.run(
        [*command, str(tmp_path / "snippet.py")], capture_output=True, text=True, cwd=root, check=False
    )
    lines = {int(line.split(":")[1]) for line in found.stdout.splitlines() if "snippet.py" in line and "error:" in line}
    assert lines == set(range(8, 17)), found.stdout
