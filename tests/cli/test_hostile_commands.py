"""Every command with random options, hostile texts and hostile files: an answer or one line of error, never a bug."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

from cvxpriv.cli import main
from tests.cli.conftest import counts_in

FAST, MANY = 80, 10_000
"""How many invocations `make test` tries, and the slow test."""
TEXTS = (
    *("", " ", "-", "--", "0", "-1", "1", "2", "0.5", "nan", "inf", "-inf", "1e999", "1e-320", "9" * 5000, "1" * 400),
    *("\0", "\x1b[2J", "\udcff", "'", '"', "a,b", ",", "age", "income", "age,age", "income,age", "=1+1", "a" * 10**5),
    *("None", "True", "[1]", "{}", "1;2", "1:2", "ldp=1", "ldp=nan", "floor=2", "l1:nan", "l2:1", "mcp:1:1", "auto"),
    *("hinge", "logistic", "CLARABEL", "closed_form", "dcp", "SCS,SCS", "ring:3", "random:9:0.5", "path:0", "t*log(t)"),
    *("(" * 300, "x**9**9**9", "le-cam", "counts.csv", "missing.csv", ".", "heart-failure"),
)
#: What keeps an invocation short where it is not overridden.
SHORT = {
    "funnel": ["--starts", "1", "--max-iter", "2", "--bootstrap", "0", "--no-crosscheck", "--no-report"],
    "inference": ["--starts", "1", "--max-iter", "2", "--bootstrap", "0", "--no-crosscheck", "--no-report"],
    "sharing": ["--max-iter", "2", "--no-crosscheck", "--no-report"],
    "consensus": ["--max-iter", "2", "--no-crosscheck", "--no-report"],
    "sparse": ["--max-iter", "2", "--no-crosscheck", "--no-report"],
}
ROWS = {"funnel": ["--private", "income", "--public", "age"], "inference": ["--private", "income", "--public", "age"]}
#: Commands that are slow where their input is right: they only get wrong ones.
NEVER_RIGHT = ("verify", "formulations", "corpus", "crosscheck", "demo", "doctor")
#: These write where they say, and start as many processes as they say.
LEFT_ALONE = {"--out", "--jobs", "--help", "--version", "--debug", "--folder", "--all"}


def files_in(folder: Path, rng: np.random.Generator) -> list[str]:
    counts = Path(counts_in(folder)).name
    text = (folder / counts).read_text()
    noise = rng.integers(0, 256, 2000, dtype=np.uint8).tobytes()
    contents: dict[str, bytes] = {
        "noise.csv": noise,
        "empty.csv": b"",
        "header.csv": b"income,age,count\n",
        "ragged.csv": b"income,age\na\nb,c,d\n",
        "quotes.csv": b'income,age\n"a,b\n',
        "nul.csv": b"income,age\n\0,b\n",
        "utf16.csv": text.encode("utf-16"),
        "latin.csv": "income,age\né,ö\n".encode("latin-1"),
        "short.csv.gz": gzip.compress(text.encode())[:-9],
        "noise.json": noise,
        "deep.json": b"[" * 20_000,
        "empty.json": b"{}",
        "number.json": b"1e999",
        "mechanism.json": json.dumps(
            {"format": "cvxpriv mechanism", "version": 1, "matrix": [[float("nan")]]}
        ).encode(),
        "hostile.csv": ("income,age\n" + "\n".join(f"{one[:50]!r},{k}" for k, one in enumerate(TEXTS))).encode(
            "utf-8", "replace"
        ),
        "one.csv": b"income,age\na,b\n",
        "same.csv": b"income,age\n" + b"a,1\n" * 30,
        "rows.csv": b"income,age,size\n" + b"".join(b"%d,%d,%f\n" % (k % 2, k % 7, k / 7) for k in range(40)),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return [*contents, counts, "missing.csv", ".", ""]


def invocation(rng: np.random.Generator, files: list[str]) -> list[str]:
    """Return a command with options; of most arguments what they should be, and a few of any kind."""
    assert isinstance(main, click.Group)
    context = click.Context(main)
    name = str(rng.choice(sorted(main.list_commands(context))))
    command = main.get_command(context, name)
    assert command is not None
    given = [name, *SHORT.get(name, []), *(ROWS.get(name, []) if rng.random() < 0.7 else [])]
    wrong = name in NEVER_RIGHT
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            given.append(str(rng.choice(files)) if rng.random() < 0.8 else pick(rng))
        elif rng.random() < 0.15 and not LEFT_ALONE & {*parameter.opts, *parameter.secondary_opts}:
            given.append(str(rng.choice([*parameter.opts, *parameter.secondary_opts])))
            if not getattr(parameter, "is_flag", False):
                given.append(pick(rng))
    return [*given, "--no-such-option"] if wrong else given


def pick(rng: np.random.Generator) -> str:
    return TEXTS[int(rng.integers(len(TEXTS)))]


def fault(arguments: list[str]) -> str:
    """Return what is wrong with how a command ended; "" where nothing is."""
    result = CliRunner().invoke(main, arguments)
    said = result.stderr
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return f"{type(result.exception).__name__}: {str(result.exception)[:200]}"
    if "(a bug" in said or "Traceback" in said:
        return said[-300:]
    if result.exit_code not in (0, 1, 2, 3) or (result.exit_code == 1 and arguments[0] not in ("verify", "doctor")):
        return f"exit {result.exit_code}: {said[-300:]}"
    if "\x1b[2J" in said + result.stdout:
        return "an escape sequence reached the terminal"
    return "" if result.exit_code == 0 or said.strip() else f"exit {result.exit_code} without a word"


def faults(count: int, seed: int, folder: Path) -> dict[str, str]:
    rng: Any = np.random.default_rng(seed)
    files = files_in(folder, rng)
    found = {}
    for _ in range(count):
        arguments = invocation(rng, files)
        if said := fault(arguments):
            found[" ".join(one[:60] for one in arguments)] = said
    return found


@pytest.mark.filterwarnings("ignore")
def test_hostile_invocations_end_with_an_answer_or_a_line(tmp_path: Path) -> None:
    assert faults(FAST, 0, tmp_path) == {}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_thousands_of_hostile_invocations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = faults(MANY, 1, tmp_path)
    with capsys.disabled():
        sys.stdout.write(f"\n{MANY:,} hostile invocations\n")
    assert found == {}
