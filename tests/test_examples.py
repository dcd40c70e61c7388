"""Every script in examples/ that needs no download runs, and tells what it promises."""

from __future__ import annotations

import runpy
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


def test_a_divergence_of_your_own_is_verified_designed_for_and_certified(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_script("bring_your_own_divergence.py", monkeypatch)
    told = capsys.readouterr().out
    assert "f is convex: fails at t = " in told  # the wrong one is caught
    assert "0 fail" in told
    assert "WRONG" not in told
    assert "adaptive tangents" in told


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
@pytest.mark.parametrize(
    ("script", "files"),
    [
        ("papers/ias_convergence.py", ["ias_fig2.png", "ias_fig3.png", "ias_fig4_5.png"]),
        ("papers/ias_tradeoff.py", ["ias_fig6.png", "ias_fig7.png", "ias_fig8.png"]),
        ("papers/ias_table1.py", ["ias_table1.md"]),
    ],
)
def test_the_figures_of_the_inference_paper_are_drawn(
    script: str, files: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    run_script(script, monkeypatch, "--fast", "--out", str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(files)
