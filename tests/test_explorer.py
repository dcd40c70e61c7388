"""The notebook application runs without a browser, and shows what a run says."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

EXPLORER = Path(__file__).parents[1] / "examples/explorer.py"


@pytest.mark.slow
def test_the_explorer_shows_mechanism_band_and_adversary() -> None:
    pytest.importorskip("marimo")
    app = runpy.run_path(str(EXPLORER), run_name="explorer")["app"]
    _, defined = app.run()
    assert defined["run"].converged
    assert defined["run"].gap < 1e-6
    mechanism, band = defined["shown"]
    assert band.axes[0].get_xlabel() == "utility I(X;Y) in nats"
    assert mechanism.axes[0].images
    low, high = defined["guesses"].loc["accuracy_y", ["low", "high"]]
    assert 0.0 <= low <= high <= 1.0


@pytest.mark.slow
def test_what_cannot_be_is_said_in_the_page() -> None:
    pytest.importorskip("marimo")
    app = runpy.run_path(str(EXPLORER), run_name="explorer")["app"]
    chosen = {"model": "inference as a service", "divergence": "no such", "rate": 0.8, "beta": 0.1, "epsilon": 0.0}
    _, defined = app.run(defs={name: SimpleNamespace(value=value) for name, value in chosen.items()})
    assert defined["run"] is None
    assert defined["shown"] == []
