"""Every script in examples/ that needs no download runs, and tells what it promises; `test_papers` has the papers'."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run_script(script: str, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    """Run a script as a person would, in this process."""
    path = EXAMPLES / script
    monkeypatch.setattr(sys, "argv", [str(path), *arguments])
    monkeypatch.syspath_prepend(str(path.parent))
    runpy.run_path(str(path), run_name="__main__")


# Its steps have fast tests of their own: test_verification, test_inference_model, test_divergence_formulations.
@pytest.mark.slow
def test_a_divergence_of_your_own_is_verified_designed_for_and_certified(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_script("bring_your_own_divergence.py", monkeypatch)
    told = capsys.readouterr().out
    assert "f is convex: fails at t = " in told  # the wrong one is caught
    assert "0 fail" in told
    assert "WRONG" not in told
    assert "adaptive tangents" in told


# What it starts has fast tests of its own: test_sharing_apart and test_parties.
@pytest.mark.slow
def test_five_hospitals_as_processes_fit_one_model(tmp_path: Path) -> None:
    script = [sys.executable, str(EXAMPLES / "hospitals" / "start.py"), "--out", str(tmp_path)]
    told = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    assert "converged" in told
    assert len(list(tmp_path.glob("*/coefficients.csv"))) == 5
    messages = (tmp_path / "registry" / "messages.csv").read_text().splitlines()
    assert sum(",hello," in line for line in messages) == 5


@pytest.mark.slow
def test_a_prototyped_constraint_holds_and_the_one_too_many_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_script("prototype_a_constraint.py", monkeypatch)
    told = capsys.readouterr().out
    rows = [line.split() for line in told.splitlines() if line.startswith(("none", "no stigma"))]
    rises = [float(row[-1]) for row in rows]
    assert rises[0] > 2.0
    assert max(rises[1:]) <= 1.5 + 1e-3  # as printed, three digits
    values = [float(row[-2]) for row in rows]
    assert values == sorted(values, reverse=True)  # a rule cannot raise F
    assert "'local privacy' and 'symbol 0 means score 0' cannot hold together" in told


@pytest.mark.slow
def test_blocks_of_three_problems_are_found_and_alternated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_script("alternate_convex_blocks.py", monkeypatch)
    told = [line for line in capsys.readouterr().out.splitlines() if "objective" in line]
    assert [" ".join(line.split("blocks ")[1].split("objective")[0].split()) for line in told] == [
        "W | H",
        "signal | filter",
        "share | centre",
    ]
    objectives = [float(line.split("objective ")[1].split()[0]) for line in told]
    assert max(objectives[:2]) < 1e-4  # a matrix that has such factors, a signal without noise
    assert "WRONG" not in " ".join(told)


@pytest.mark.parametrize(
    ("script", "points"),
    [("rate_distortion.py", 4), pytest.param("information_bottleneck.py", 3, marks=pytest.mark.slow)],
)
def test_two_papers_outside_of_the_models_meet_their_known_curves(
    script: str, points: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_script(script, monkeypatch)
    told = capsys.readouterr().out
    assert told.count(", converged") == points
    assert max(float(off) for off in re.findall(r"off by (\S+)", told)) < 1e-5
    assert len((EXAMPLES / script).read_text(encoding="utf-8").splitlines()) < 100


def test_two_offices_together_beat_each_alone_and_privacy_has_its_price(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sklearn")
    run_script("vertical_learning.py", monkeypatch, "--noise-seed", "0")
    told = capsys.readouterr().out
    scores = [line.split() for line in told.splitlines() if "log loss" in line]
    registry, board, together, eased, _ = ((float(row[-3]), float(row[-1])) for row in scores)
    assert together[0] < min(registry[0], board[0])
    assert together[0] < eased[0]
    assert max(registry[1], board[1]) < eased[1] < together[1]
    assert "<- the guarantee" in told
    assert "stay with it" in told


def test_a_private_model_keeps_the_questions_that_matter(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sklearn")
    run_script("sparse_private_learning.py", monkeypatch, "--noise-seed", "0")
    told = capsys.readouterr().out.splitlines()
    rows = [line.split() for line in told if line.startswith(("none ", "8 ", "2 ", "0.5 "))]
    assert [int(row[-2]) for row in rows] == [4, 4, 4, 4]
    assert max(float(row[-1]) for row in rows) - min(float(row[-1]) for row in rows) < 0.01


def test_offices_in_a_ring_agree_and_privacy_has_its_price(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sklearn")
    run_script("consensus_over_a_graph.py", monkeypatch, "--noise-seed", "0")
    told = capsys.readouterr().out
    scores = [line.split() for line in told.splitlines() if "log loss" in line]
    plain, *private = ((float(row[-6]), float(row[-4]), float(row[-1])) for row in scores)
    assert plain[0] < min(loss for loss, _, _ in private)
    assert plain[1] > max(auc for _, auc, _ in private) > 0.8
    assert plain[2] < 0.1 < min(apart for _, _, apart in private)
    assert told.count("<- the guarantee") == 2
    assert "would spend 2 in place of 1" in told
