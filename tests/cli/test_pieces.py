"""The parts of the command line: where text goes, how it is laid out, files, interrupts, options."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

import click
import numpy as np
import pandas as pd
import pytest

from cvxpriv.certify.check import CrossCheck
from cvxpriv.certify.sections import crosscheck_facts, refused
from cvxpriv.cli.options import NAMES, require_report_packages, require_writable
from cvxpriv.cli.terminal import Terminal, watched
from cvxpriv.errors import DataError, ModelError
from cvxpriv.reports.document import document_of, plain_data
from cvxpriv.reports.formatting import WIDTH, number, paragraph, residual, table
from cvxpriv.reports.text import text_of


def test_columns_stay_aligned_whatever_their_texts() -> None:
    lines = table(["a", "long head"], [["x", "1"], ["longer", "22"]], "lr").splitlines()
    assert {len(line) for line in lines} == {len(lines[0])}
    assert [line[-1] for line in lines] == ["d", "1", "2"]


def test_numbers_are_plain_ascii_with_four_digits() -> None:
    texts = [number(value) for value in (0.25, -1e-9, 12345.678, float("nan"), float("inf"))]
    assert all(text.isascii() for text in texts)
    assert texts[0] == "0.2500"
    assert residual(0.000123) == "0.0001"


def test_a_paragraph_keeps_to_the_width() -> None:
    assert max(map(len, paragraph("word " * 60).splitlines())) <= WIDTH


def test_json_goes_to_standard_output_alone(capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal(json=True)
    terminal.say("for people")
    terminal.result({"leakage": np.float64(0.5), "file": Path("out/x"), "bound": np.nan, "flags": np.array([True])})
    document = json.loads(capsys.readouterr().out)
    assert document.pop("schema_version") == 1
    assert document == {"leakage": 0.5, "file": "out/x", "bound": None, "flags": [True]}


def test_quiet_leaves_only_errors(capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal(quiet=True)
    terminal.say("text")
    terminal.warn("warning")
    terminal.result({})
    terminal.error("wrong")
    assert tuple(capsys.readouterr()) == ("", "error: wrong\n")


def test_plain_data_is_what_json_holds() -> None:
    given = {1: (np.int64(3), None, "text"), "nested": {"x": [np.float32(0.5), float("inf")]}}
    assert plain_data(given) == {"1": [3, None, "text"], "nested": {"x": [0.5, None]}}


def test_no_bar_is_shown_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal()
    with terminal.phase("working"), terminal.iterations("solving", 5, "kkt") as moved:
        assert moved("pass", 1, {"kkt": np.ones(3)}) is None
    assert tuple(capsys.readouterr()) == ("", "")


def test_names_are_parted_by_commas_and_may_be_quoted() -> None:
    assert NAMES.convert('age, "height, cm" ,sex', None, None) == ("age", "height, cm", "sex")


@pytest.mark.parametrize("text", ["", "age,,sex", "age,"])
def test_an_empty_name_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="empty name"):
        NAMES.convert(text, None, None)


def test_a_folder_that_need_not_exist_is_writable_and_left_alone(tmp_path: Path) -> None:
    assert require_writable(tmp_path / "a" / "b") == tmp_path / "a" / "b"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_a_file_is_no_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="is no folder"):
        require_writable(tmp_path / name)


def test_a_folder_that_takes_no_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(DataError, match="Permission denied"):
        require_writable(tmp_path)


def test_missing_report_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cvxpriv.cli.options.find_spec", lambda package: None)
    with pytest.raises(ModelError, match=r"jinja2 and matplotlib.*cvxpriv\[report\].*--no-report"):
        require_report_packages("give --no-report")


def test_a_keyboard_interrupt_is_remembered_and_still_raised() -> None:
    with watched() as interrupt:
        assert not interrupt.pressed
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert interrupt.pressed


def test_the_handler_of_before_is_put_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with watched():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


def test_outside_the_main_thread_nothing_is_watched_and_nothing_breaks() -> None:
    seen: list[bool] = []

    def body() -> None:
        with watched() as interrupt:
            seen.append(interrupt.pressed)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert seen == [False]


def answers() -> CrossCheck:
    """Three answers as `cvxpriv.certify.check` gives them, one of each kind."""
    nan = float("nan")
    figures = dict.fromkeys(
        ("stationarity", "natural", "dual", "dual_cone", "complementarity", "duality_gap", "bound", "certificate"), nan
    )
    rows = [
        {"solver": "closed form", "status": "exact", "verdict": "agrees", "gap": 0.0, "reason": "exact"},
        {"solver": "CLARABEL", "status": "optimal", "verdict": "loose", "gap": 2e-5, "reason": "its value is off"},
        {"solver": "SCS", "status": "optimal", "verdict": "WRONG", "gap": 0.1, "reason": "a false optimum " * 9},
    ]
    more = {"case": "u", "objective": 1.0, "primal": 1e-12, "cone": 0.0, "seconds": 0.01, **figures}
    return CrossCheck(
        pd.DataFrame([{"known_by": "small residuals", **more, **row} for row in rows]), {"u": "closed form"}
    )


def test_the_worst_verdict_stands_first_with_its_reason_below() -> None:
    text = text_of(crosscheck_facts(answers(), "Mine"))
    lines = text.splitlines()
    first = next(row for row, line in enumerate(lines) if line.split()[:2] == ["verdict", "block"])
    assert [line.split()[0] for line in lines[first + 1 : first + 4]] == ["WRONG", "loose", "agrees"]
    assert "  - SCS on u: a false optimum" in text
    assert "closed form on u" not in text
    assert max(map(len, text.splitlines())) <= WIDTH


def test_only_wrong_and_failed_verdicts_are_refused() -> None:
    assert [sentence[:15] for sentence in refused(answers())] == ["SCS on u: WRONG"]


def test_a_crosscheck_is_json_with_verdicts_first() -> None:
    document = json.loads(json.dumps(document_of(crosscheck_facts(answers(), "Mine"))))
    verdicts = {name: document["facts"][name]["value"] for name in ("closed form", "CLARABEL", "SCS")}
    assert verdicts == {"closed form": "agrees", "CLARABEL": "loose", "SCS": "WRONG"}
    assert document["tables"]["crosscheck"][0]["bound"] is None
