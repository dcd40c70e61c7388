"""Saved runs that were edited or damaged: refused, or read as what their own mechanism gives."""

from __future__ import annotations

import copy
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest

import cvxpriv as cpv
from cvxpriv.errors import DataError, NoGuaranteeWarning
from cvxpriv.models import InferenceAsService, PrivacyFunnel, RecycledADMM

TABLE = cpv.JointTable.from_counts([[12, 3, 5], [1, 8, 6], [2, 2, 9]])
MODELS = ("funnel", "inference", "consensus")


@cache
def text(model: str) -> str:
    """Return the file of a solved run."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return solved(model).save(f"{folder}/run.json").read_text()


def solved(model: str) -> Any:
    if model == "funnel":
        return PrivacyFunnel(TABLE, 0.8).solve()
    if model == "inference":
        return InferenceAsService(TABLE, 0.5).solve()
    rng = np.random.default_rng(0)
    shards = [(rng.normal(size=(20, 3)), rng.choice([-1.0, 1.0], 20)) for _ in range(3)]
    return RecycledADMM(nx.path_graph(3), shards).solve()


def places(document: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths to all values of a document."""
    inner = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    return [(*above, key) for key, _ in inner] + [path for key, value in inner for path in places(value, (*above, key))]


def changed(document: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Return a document with one value deleted, or replaced by another that JSON can hold."""
    result = copy.deepcopy(document)
    path = (found := places(result))[rng.integers(len(found))]
    holder: Any = result
    for key in path[:-1]:
        holder = holder[key]
    value = holder[path[-1]]
    news: list[Any] = [float("nan"), float("inf"), None, "x", -1, 0, [], {}, [[1.0]], 1e308, True, 10**400]
    if isinstance(value, float):
        news += [value * 1.01, -value, value + 1e-3]
    choice = rng.integers(len(news) + 1)
    if choice == len(news):
        del holder[path[-1]]
    else:
        holder[path[-1]] = news[choice]
    return result


def resealed(document: dict[str, Any]) -> str:
    """Return the file of a document with the hash that belongs to it, as somebody would forge it."""
    values = {name: value for name, value in document.items() if name != "sha256"}
    digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
    return json.dumps({**values, "sha256": digest})


@pytest.mark.parametrize("model", MODELS)
def test_an_edited_file_is_refused(model: str, tmp_path: Path) -> None:
    rng, document = np.random.default_rng(1), json.loads(text(model))
    for _ in range(100):
        edited = changed(document, rng)
        if edited == document:
            continue
        (tmp_path / "run.json").write_text(json.dumps(edited))
        with pytest.raises(DataError, match=r"run\.json"):
            cpv.load(tmp_path / "run.json")


def test_a_run_whose_own_constraint_is_not_in_the_file_says_so(tmp_path: Path) -> None:
    def first_output_is_rare(mechanism: cp.Expression, known: Any) -> cp.Constraint:
        return mechanism[:, 0] <= 0.2

    run = PrivacyFunnel(TABLE, 0.5).constrain("rare", first_output_is_rare).solve(starts=2)
    run.save(tmp_path / "run.json")
    with pytest.warns(NoGuaranteeWarning, match="constraint rare was a function of the user's own"):
        again = cpv.load(tmp_path / "run.json")
    assert not again.converged


def test_a_whole_file_comes_back_as_it_was(tmp_path: Path) -> None:
    for model in MODELS:
        (tmp_path / "run.json").write_text(text(model))
        assert cpv.load(tmp_path / "run.json").converged


def test_a_forged_figure_is_refused_by_whichever_way_the_run_is_read(tmp_path: Path) -> None:
    document = json.loads(text("funnel"))
    document["starts"]["columns"]["leakage"][0] += 1e-3
    (tmp_path / "run.json").write_text(resealed(document))
    for read in (cpv.load, type(solved("funnel")).load):
        with pytest.raises(DataError, match="the run claims leakage="):
            read(tmp_path / "run.json")


def test_a_forged_state_is_refused(tmp_path: Path) -> None:
    document = json.loads(text("funnel"))
    holder = document["state"]["log_u"]
    cells = holder["values"] if isinstance(holder, dict) and "values" in holder else holder
    row = next(row for row in cells if isinstance(row, list))
    row[:] = [value + 0.01 for value in row]  # a row of one per cent more
    (tmp_path / "run.json").write_text(resealed(document))
    with pytest.raises(DataError, match=r"rows do not sum to P\(X\)"):
        cpv.load(tmp_path / "run.json")


def test_a_size_that_is_no_number_is_refused(tmp_path: Path) -> None:
    document = json.loads(text("funnel"))
    document["size_y"] = [4]
    (tmp_path / "run.json").write_text(resealed(document))
    with pytest.raises(DataError):
        cpv.load(tmp_path / "run.json")
