"""Problems by the place where they stand: files and modules."""

from __future__ import annotations

from pathlib import Path

import pytest

from cvxpriv.certify.builders import builder_named
from cvxpriv.certify.check import crosscheck
from cvxpriv.errors import DataError, ModelError

FILE = """
import cvxpy as cp
from neighbour import TOTAL

def build():
    x = cp.Variable(2, name="x")
    return cp.Problem(cp.Minimize(cp.sum_squares(x)), [cp.sum(x) == TOTAL])
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "neighbour.py").write_text("TOTAL = 2\n")
    path = tmp_path / "my problem.py"
    path.write_text(FILE)
    return path


def test_a_function_of_a_file_is_checked_here_and_in_another_process(file: Path) -> None:
    builder = builder_named(f"{file}:build")
    for isolate in (False, True):
        table = crosscheck(builder, ["CLARABEL"], isolate=isolate).table
        assert table["case"].tolist() == ["build"]
        assert table["verdict"].tolist() == ["agrees"]
        assert table["objective"][0] == pytest.approx(2.0, abs=1e-8)


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("my_problem.py", DataError, "my_problem.py' cannot be read: check the path"),
        ("my_problem", DataError, "write my_problem.py:build"),
        ("my_problem.py:", DataError, "names no function"),
        (":build", DataError, "names no function"),
        ("nowhere.py:build", DataError, "cannot be read: check the path"),
        ("no_such_module:build", DataError, "cannot be loaded"),
        ("cvxpriv.solvers.registry:instaled", ModelError, "did you mean 'installed'"),
    ],
)
def test_a_place_without_a_function_is_refused(text: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        builder_named(text)


def test_a_file_that_raises_is_told_with_its_error(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("1 / 0")
    with pytest.raises(DataError, match="ZeroDivisionError: division by zero"):
        builder_named(f"{tmp_path / 'bad.py'}:build")


def test_a_function_that_returns_no_problem_is_refused() -> None:
    with pytest.raises(ModelError, match="installed is a tuple: expected a cvxpy Problem"):
        crosscheck(builder_named("cvxpriv.solvers.registry:installed"))


def test_a_function_that_raises_is_the_users_error(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def build():\n    raise RuntimeError('no data')\n\ndef ends():\n    exit(5)\n")
    with pytest.raises(DataError, match=r"build of .*mine.py raised RuntimeError: no data"):
        builder_named(f"{tmp_path}/mine.py:build")()
    with pytest.raises(DataError, match="ends of .*mine.py raised SystemExit: 5"):
        builder_named(f"{tmp_path}/mine.py:ends")()


def test_a_file_alone_means_its_function_build(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("def build(): ...\n\ndef other(): ...")
    assert builder_named(str(path)).name == "build"
    path.write_text("from math import cos\ndef bild(): ...\n\ndef other(): ...")
    with pytest.raises(
        ModelError, match=r"'build': did you mean 'bild'\? Known: bild, other\. A file alone means .*:NAME$"
    ):
        builder_named(str(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def build():\n    while True: pass\n", r"build of .*mine.py did not return within 0.05 s"),
        ("while True: pass\n", r"mine.py was not loaded within 0.05 s"),
    ],
)
def test_a_loop_without_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str) -> None:
    (tmp_path / "mine.py").write_text(text)
    monkeypatch.setattr("cvxpriv.certify.builders.TIME_LIMIT", 0.05)
    with pytest.raises(DataError, match=message):
        builder_named(f"{tmp_path}/mine.py")()
