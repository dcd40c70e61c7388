"""Another package brings a divergence by an entry point: it has a name in Python, in models and on the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import cvxpriv as cpv
from cvxpriv.cli.main import main
from cvxpriv.divergences import FDivergence, divergence, names
from cvxpriv.errors import ModelError

MODULE = """
import cvxpy as cp
import numpy as np
import cvxpriv as cpv

def form(P, Q):
    return cp.sum(cp.rel_entr(P, Q) + cp.rel_entr(Q, P)), []

JEFFREYS = cpv.FDivergence(
    "jeffreys",
    f=lambda t: (t - 1.0) * np.log(t),
    fprime=lambda t: np.log(t) + 1.0 - 1.0 / t,
    fsecond=lambda t: 1.0 / t + 1.0 / t**2,
    expression=form,
    formula="(t-1)*log(t)",
    at_zero=float("inf"),
    slope_at_infinity=float("inf"),
)

def topsoe():
    return cpv.FDivergence.parse("t*log(2*t/(t+1)) + log(2/(t+1))", "topsoe")

LINE = "(t-1)**2/(t+1)"
NUMBER = 3
"""
POINTS = """[cvxpriv.divergences]
jeffreys = outside_divergences:JEFFREYS
topsoe = outside_divergences:topsoe
triangular = outside_divergences:LINE
number = outside_divergences:NUMBER
missing = outside_divergences:NOTHING
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a package as pip would install it."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / "outside_divergences.py").write_text(MODULE, encoding="utf-8")
    meta = folder / "outside_divergences-1.0.dist-info"
    meta.mkdir()
    (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: outside-divergences\nVersion: 1.0\n", encoding="utf-8")
    (meta / "entry_points.txt").write_text(POINTS, encoding="utf-8")
    return folder


@pytest.fixture
def installed(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(place))
    return place


@pytest.mark.usefixtures("installed")
def test_each_kind_of_entry_point_is_a_divergence_by_name() -> None:
    assert {"jeffreys", "topsoe", "triangular"} <= set(names())
    p, q = np.array([0.3, 0.7]), np.array([0.6, 0.4])
    jeffreys = divergence("Jeffreys")
    assert jeffreys.between(p, q) == pytest.approx(((p - q) * np.log(p / q)).sum(), abs=1e-15)
    assert divergence("topsoe").between(p, q) == pytest.approx(divergence("js").between(p, q), abs=1e-15)
    assert divergence("triangular").between(p, q) == pytest.approx(((p - q) ** 2 / (p + q)).sum(), abs=1e-15)


@pytest.mark.usefixtures("installed")
def test_one_that_is_none_is_refused_with_the_place() -> None:
    with pytest.raises(ModelError, match=r"'number' is a int: its package must name an FDivergence"):
        divergence("number")
    with pytest.raises(ModelError, match=r"'missing' of outside-divergences cannot be loaded \(AttributeError"):
        divergence("missing")


@pytest.mark.usefixtures("installed")
def test_a_model_solves_with_it() -> None:
    table = cpv.JointTable.from_array(np.array([[0.3, 0.1, 0.1], [0.1, 0.2, 0.2]]))
    by_name, by_text = (
        cpv.models.InferenceAsService(table, 0.05, divergence=one).solve(starts=1, seed=0)
        for one in ("jeffreys", FDivergence.parse("(t-1)*log(t)"))
    )
    assert by_name.objective == pytest.approx(by_text.objective, abs=1e-8)


@pytest.mark.usefixtures("installed")
def test_the_command_line_knows_and_verifies_it() -> None:
    done = CliRunner().invoke(main, ["verify", "jeffreys", "--solvers", "CLARABEL"])
    assert done.exit_code == 0, done.stderr
    assert "jeffreys: f(t) = (t-1)*log(t)" in done.stdout


def test_the_names_and_the_class_are_what_they_were_without_it() -> None:
    assert "jeffreys" not in names()
    assert isinstance(divergence("js"), FDivergence)
