"""Options of `funnel` and `inference` that save time, and what holds of the files and texts of both."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from click.testing import Result

from cvxpriv.cli.terminal import Terminal
from cvxpriv.reports.sets import require_whole

FEW = ("--starts", "2", "--seed", "0")
#: Everything that takes time left out.
BARE = (*FEW, "--no-crosscheck", "--no-report", "--bootstrap", "0")


def value_of(document: dict[str, Any], name: str) -> Any:
    """The value of a fact in a JSON document."""
    return document["facts"][name]["value"]


def require_every_file(result: Result, folder: Path | str, *more: str) -> None:
    """A run with a curve wrote its files and nothing else, named them in its last line, and warned of nothing."""
    assert result.exit_code == 0, result.stderr
    names = {"report.html", "curve.png", "history.csv", "mechanism.json", *more}
    names |= {f"{name}.csv" for name in ("columns", "curve", "crosscheck", "disclosure")}
    assert set(require_whole(folder)) == names
    assert names == set(re.findall(r"[a-z_]+\.[a-z]+", result.stdout.partition("Written to")[2]))
    assert Path(folder, "curve.png").read_bytes().startswith(b"\x89PNG")
    assert Path(folder, "report.html").read_text().rstrip().endswith("</html>")
    assert result.stderr == ""


def require_no_count_and_no_income(mechanism: str) -> None:
    """The mechanism file holds no count and no symbol of the column income."""
    text = Path(mechanism).read_text()
    for word in ("low", "high", "counts"):
        assert word not in text


def require_silent(result: Result) -> None:
    """A quiet run says nothing and writes its mechanism."""
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert Path("out/mechanism.json").exists()


def require_not_converged(result: Result) -> None:
    """The run says in three places that it did not converge, exits with 3, and wrote its files."""
    assert result.exit_code == 3
    assert re.match(r"error: the best of \d starts has a KKT residual of", result.stderr)
    assert result.stderr.count("\n") == 1
    assert "did NOT converge" in result.stdout
    assert Path("out/mechanism.json").exists()
    assert "did NOT converge" in Path("out/report.html").read_text()


def require_interrupted(result: Result) -> None:
    """The run was interrupted before its curve, and kept what it had."""
    assert result.exit_code == 130
    assert "interrupted" in result.stderr
    assert "Traceback" not in result.stderr
    assert set(require_whole("out")) == {"columns.csv", "history.csv", "mechanism.json"}


@contextmanager
def pressed_at_the_second_iteration(
    self: Terminal, description: str, limit: int, figure: str
) -> Iterator[Callable[..., None]]:
    """Stands for `Terminal.iterations`: Ctrl-C at the second iteration."""

    def press(loop: str, iteration: int, measured: object) -> None:
        if iteration == 2:
            signal.raise_signal(signal.SIGINT)

    yield press
