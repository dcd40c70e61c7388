"""`cvxpriv demo`: the whole way on an embedded table, with less effort than a user's."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import Result

from cvxpriv.cli import demo
from cvxpriv.mechanisms.mechanism import Mechanism
from cvxpriv.reports.sets import require_whole

from .conftest import Run, one_error_line, run_in


@pytest.fixture(autouse=True, scope="module")
def _little_effort() -> Iterator[None]:
    small = {name: demo.Effort(None, 3, ("ECOS",), effort.note) for name, effort in demo.EFFORTS.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "EFFORTS", small)
        yield


@pytest.fixture(scope="module")
def shown(_little_effort: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    """One demo for all tests of its files, and the folder that it wrote."""
    folder = tmp_path_factory.mktemp("demo")
    return run_in(folder, "demo", "--out", "o"), folder / "o"


def test_the_demo_writes_curve_mechanism_history_and_report(shown: tuple[Result, Path]) -> None:
    result, folder = shown
    assert result.exit_code == 0, result.stderr
    names = {"report.html", "curve.png", "mechanism.json", "history.csv", "certificate.json", "check_certificate.py"}
    names |= {f"{name}.csv" for name in ("columns", "columns_along_curve", "curve", "crosscheck", "disclosure")}
    assert set(require_whole(folder)) == names
    assert Mechanism.load(folder / "mechanism.json").shape == (16, 17)
    assert list(pd.read_csv(folder / "curve.csv")["fraction"]) == pytest.approx([1 / 3, 2 / 3, 1.0])
    assert "Written to o/" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100


class Page(HTMLParser):
    """The headings of a page and whatever it would load from elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.headings: list[str] = []
        self.outside: list[str] = []
        self._in_heading = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_heading = tag == "h2"
        self.outside += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        if self._in_heading:
            self.headings.append(data)
            self._in_heading = False


def test_the_report_has_every_part_and_loads_nothing(shown: tuple[Result, Path]) -> None:
    text = (shown[1] / "report.html").read_text()
    page = Page(text)
    for part in ("promises", "curve", "mechanism", "Cross-check", "discloses", "found", "Settings"):
        assert any(part in heading for heading in page.headings), part
    assert all(address.startswith(("#", "data:")) for address in page.outside)
    assert "not themselves differentially private" in text
    assert "95% low" in text


@pytest.mark.slow
def test_the_demo_speaks_json(run: Run) -> None:
    result = run("demo", "--json")
    assert Path("out/report.html").exists()
    document = json.loads(result.stdout)
    assert (document["schema_version"], document["command"]) == (1, "demo")
    assert document["converged"] is True
    assert document["settings"]["rate"] == pytest.approx(0.6 * document["about"]["entropy"])
    assert {row["solver"] for row in document["tables"]["crosscheck"]} == {"closed form", "ECOS"}


def test_an_unknown_table_is_refused(run: Run) -> None:
    line = one_error_line(run("demo", "--table", "adlt"))
    assert re.search(r"heart-failure.*adult", line)


def test_a_folder_that_cannot_be_made_is_refused(run: Run) -> None:
    Path("file").touch()
    assert "is no folder" in one_error_line(run("demo", "--out", "file"))


@pytest.mark.slow
def test_a_killed_demo_leaves_the_old_set_or_the_new_one(shown: tuple[Result, Path], tmp_path: Path) -> None:
    out, rng, caught = tmp_path / "o", np.random.default_rng(0), 0
    shutil.copytree(shown[1], out)
    for _ in range(12):
        process, ended = os.fork(), (0, 0)
        if process == 0:
            try:
                run_in(tmp_path, "demo", "--out", "o", "--quiet")
            finally:
                os._exit(0)
        while ended[0] == 0 and not list(tmp_path.glob(".*")):  # its stage stands beside the folder
            time.sleep(0.001)
            ended = os.waitpid(process, os.WNOHANG)
        if ended[0] == 0:
            time.sleep(float(rng.uniform(0.0, 0.03)))
            os.kill(process, signal.SIGKILL)
            caught += os.WIFSIGNALED(os.waitpid(process, 0)[1])
        assert len(require_whole(out)) == len(require_whole(shown[1]))
    assert caught >= 6
    assert run_in(tmp_path, "demo", "--out", "o", "--quiet").exit_code == 0
    assert not list(tmp_path.glob(".*"))
