"""Hostile input to tables: whatever comes is a table that is right, or a typed error; never another."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cvxpriv.constraints import local_differential_privacy
from cvxpriv.errors import LONGEST_MESSAGE, CvxprivError, DataError, ModelError
from cvxpriv.learning.encoding import Encoding
from cvxpriv.tables import encodings
from cvxpriv.tables.alphabets import Alphabet
from cvxpriv.tables.frames import read_table
from cvxpriv.tables.joint import JointTable
from cvxpriv.tables.preparing import prepare


class Rude:
    """It raises whatever is asked of it."""

    def __array__(self, *_: object, **__: object) -> np.ndarray[Any, Any]:
        raise ZeroDivisionError("no array")

    def __str__(self) -> str:
        raise KeyError("no text")

    __repr__ = object.__repr__


CELLS: list[Any] = [
    *(0, 1, 2, 3, 7, 0.5, 1.0, 0.1, 1e-300, 1e300, -1, -0.0, 2**53, 2**53 + 1, 2**63, -(2**63), 10**400, 10**5000),
    *(float("nan"), float("inf"), -float("inf"), None, pd.NA, pd.NaT, np.ma.masked, 1j, 2 + 0j, True, False),
    *("", "1", "a", "\x1b[2J", "\ud800", "x" * 10**5, b"1", [1], (1, 2), {1}, {"a": 1}, object(), Rude(), len),
    *(
        np.float32(0.3),
        np.int8(3),
        np.uint64(2**64 - 1),
        np.longdouble("1e4000"),
        Decimal("0.5"),
        Fraction(1, 3),
        Fraction(10**400, 3),
    ),
    *(
        np.datetime64("2020-01-01"),
        pd.Timestamp("2020-01-01"),
        np.timedelta64(3, "D"),
        Decimal("NaN"),
        Decimal("1e999"),
    ),
]
"""What a cell may hold."""
WHOLES: list[Any] = [
    *(None, 5, "text", "12", b"ab", object(), Rude(), {}, set(), iter([1, 2]), range(3), lambda: 1, np.array(3.0)),
    *([], [[]], [[], []], [[1], [1, 2]], [[[1, 2]]], np.zeros((0, 3)), np.zeros((2, 2, 2)), np.array([["a", "b"]])),
    *(np.ma.masked_array([[1, 2], [3, 4]], mask=[[0, 1], [0, 0]]), np.ma.masked_array([[1, 2], [3, 4]])),
    *(np.array([[1 + 1j, 2]]), np.array([["2020-01-01"]], dtype="datetime64[D]"), np.array([(1, 2)], dtype="i4,i4")),
    *(pd.DataFrame({"a": [1, None]}), pd.DataFrame({"a": [1, 2]}, dtype="Int64"), pd.Series([1, 2]), [[1, 2], "ab"]),
    *(np.full((2, 2), 2**62), np.full((3, 3), 2**53), [[2**53] * 2049 + [1]], np.array([[0.5, 0.5]], dtype=">f8")),
]
"""What may stand where a matrix, a frame, labels or columns are expected."""
LOOP: list[Any] = [1]
LOOP.append(LOOP)
WHOLES.append(LOOP)


def drawn(rng: np.random.Generator) -> Any:
    """Return something that may be passed as a matrix, a list or a name."""
    if rng.random() < 0.3:
        return WHOLES[rng.integers(len(WHOLES))]
    cells = CELLS if rng.random() < 0.4 else CELLS[:5]
    rows, columns = rng.integers(1, 4, size=2)
    matrix = [[cells[rng.integers(len(cells))] for _ in range(columns)] for _ in range(rows)]
    if cells is not CELLS and rng.random() < 0.3:
        return (np.array(matrix) / max(1, np.sum(matrix))).tolist()
    return matrix if rng.random() < 0.8 else [row[0] for row in matrix]


def frame(rng: np.random.Generator) -> Any:
    """Return something that may be passed as a frame of records."""
    if rng.random() < 0.1:
        return drawn(rng)
    cells = CELLS if rng.random() < 0.6 else CELLS[:8]
    names: list[Any] = [["s", "x", "n"], ["s", "s", "x"], [0, 1, 2], ["s", None, "x"]][rng.integers(4)]
    size = int(rng.integers(0, 5))
    table = pd.DataFrame(
        {i: pd.Series([cells[rng.integers(len(cells))] for _ in range(size)], dtype=object) for i in range(3)}
    )
    table.columns = pd.Index(names, dtype=object)
    return table


def columns(rng: np.random.Generator) -> Any:
    """Return something that may be passed as the names of columns."""
    usual: list[Any] = [["s"], ["x"], "s", "x", ["s", "x"], [0], [1], ["n"], [None], ["s", "s"], [["s"]], 3]
    return usual[rng.integers(len(usual))] if rng.random() < 0.8 else drawn(rng)


def attempt(rng: np.random.Generator) -> tuple[Any, Callable[[], Any]]:
    """Return what is passed, and a call of one of the doors."""
    given, labels = drawn(rng), None if rng.random() < 0.6 else drawn(rng)
    smoothing = 0.0 if rng.random() < 0.7 else CELLS[rng.integers(len(CELLS))]
    doors: list[tuple[Any, Callable[[], Any]]] = [
        (given, lambda: JointTable.from_array(given, labels, drop_empty=bool(rng.integers(2)))),
        (given, lambda: JointTable.from_counts(given, labels, smoothing=smoothing)),
        (None, lambda: Alphabet(given, labels)),  # type: ignore[arg-type]
        (
            None,
            lambda: JointTable.from_frame(
                frame(rng), columns(rng), columns(rng), *([columns(rng)] * (rng.random() < 0.4))
            ),
        ),
    ]
    return doors[rng.integers(len(doors))]


def exact(given: Any) -> list[list[Fraction]]:
    """Return a matrix of numbers as fractions, by Python's own arithmetic."""
    array = np.asarray(given)
    return [
        [Fraction(float(cell)) if not isinstance(cell, int) else Fraction(cell) for cell in row]
        for row in array.tolist()
    ]


def tried(seed: int) -> str:
    """Make one hostile call and say how it ended."""
    given, call = attempt(np.random.default_rng(seed))
    try:
        found = call()
    except CvxprivError as error:
        message = str(error)
    else:
        require_right(found, given)
        return "answered"
    assert len(message) <= LONGEST_MESSAGE
    assert "\x1b" not in message
    return "refused"


def require_right(found: Any, given: Any) -> None:
    """Compare a table with what was passed, by fractions."""
    if isinstance(found, JointTable):
        p = found.probabilities
        assert np.isfinite(p).all(), given
        assert p.min() >= 0, given
        assert abs(p.sum() - 1) < 1e-12, given
        if given is not None and found.smoothing == "none" and p.shape == np.shape(given):
            cells = exact(given)
            total = sum(map(sum, cells), Fraction(0))
            right = [[float(cell / total) for cell in row] for row in cells]
            assert np.allclose(p, right, rtol=1e-12, atol=0), given


@pytest.mark.parametrize("block", range(4))
def test_every_hostile_table_is_refused_with_a_typed_error_or_answered_right(block: int) -> None:
    ends = [tried(1000 * block + seed) for seed in range(500)]
    assert ends.count("answered") > 15
    assert ends.count("refused") > 200


@pytest.mark.slow
def test_a_hundred_thousand_hostile_tables(capsys: pytest.CaptureFixture[str]) -> None:
    ends = [tried(10**6 + seed) for seed in range(10**5)]
    with capsys.disabled():
        print(f"\n{len(ends)} hostile tables: {ends.count('answered')} answered, {ends.count('refused')} refused")  # noqa: T201


@pytest.mark.parametrize("whole", range(len(WHOLES)))
def test_what_is_no_matrix_is_no_table(whole: int) -> None:
    given = WHOLES[whole]
    for door in (JointTable.from_array, JointTable.from_counts):
        try:
            found = door(given)
        except CvxprivError:
            continue
        assert np.allclose(found.probabilities * np.asarray(given, dtype=float).sum(), np.asarray(given, dtype=float))


def test_counts_that_doubles_do_not_hold_exactly_are_refused() -> None:
    with pytest.raises(DataError, match="sums to"):
        JointTable.from_counts([[2**53] * 2049, [1] * 2049])
    records = pd.DataFrame({"s": ["a"] * 2049 + ["b"], "x": ["u"] * 2050, "n": [2**52] * 2049 + [1]})
    with pytest.raises(DataError, match="sums to"):
        JointTable.from_frame(records, ["s"], ["x"], count="n")


def test_counts_that_contradict_their_probabilities_are_refused() -> None:
    two = Alphabet.numbered("S", 2)
    with pytest.raises(DataError, match="contradict"):
        JointTable(np.array([[0.5, 0.0], [0.0, 0.5]]), two, two, np.array([[1, 0], [0, 3]]))


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zip"])
@pytest.mark.parametrize("damage", ["truncated", "garbage", "empty", "flipped"])
def test_damaged_archives_are_refused(tmp_path: Path, suffix: str, damage: str) -> None:
    whole = packed(b"s,x\n" + b"a,b\nc,d\n" * 500, suffix)
    flipped = bytes([*whole[: len(whole) // 2], whole[len(whole) // 2] ^ 0x55, *whole[len(whole) // 2 + 1 :]])
    file = tmp_path / f"people.csv{suffix}"
    file.write_bytes({"truncated": whole[:-9], "garbage": b"no archive" * 9, "empty": b"", "flipped": flipped}[damage])
    with pytest.raises(DataError, match=r"people\.csv"):
        read_table(file)


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz", ".zip"])
def test_whole_archives_are_read(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"people.csv{suffix}"
    file.write_bytes(packed(b"s,x\na,b\n", suffix))
    assert read_table(file).to_dict("list") == {"s": ["a"], "x": ["b"]}


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz", ".zip"])
def test_what_unpacks_beyond_the_limit_is_refused(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encodings, "MAX_BYTES", 2**21)
    file = tmp_path / f"bomb.csv{suffix}"
    file.write_bytes(packed(b"s,x\n" + b"a,b\n" * 2**20, suffix))
    with pytest.raises(DataError, match="holds more than"):
        read_table(file)


@pytest.mark.parametrize("suffix", ["", ".gz", ".zip"])
@pytest.mark.parametrize("head", [b"", b"s,x\n", b"s,x\ra,b\r"])
def test_a_line_without_end_is_refused_and_the_longest_one_is_not(
    tmp_path: Path, suffix: str, head: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encodings, "MAX_LINE", 3 * 2**20)
    file = tmp_path / f"bomb.csv{suffix}"
    file.write_bytes(packed(head + b"0" * 2**22, suffix))
    with pytest.raises(DataError, match="has a line of more than 3 MiB"):
        read_table(file)
    file.write_bytes(packed(b"s,x\na," + b"b" * (3 * 2**20 - 2) + b"\n" + b"c,d\n" * 2**19, suffix))
    assert len(read_table(file)) == 2**19 + 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"s\0,\0x\0\n\0", "null characters"),
        (b"s,x\n\xfc\x81,b\n", "neither UTF-8 nor cp1252"),
        (b"s,x\n\xfc\x01,b\n", "neither UTF-8 nor cp1252"),
        (b"s," * 20_000 + b"x\n", "columns, more than"),
        (b"", "is no table"),
        (b"s,x\na,b,c,d\n", "is no table"),
        (b's,x\n"a,b\n', "is no table"),
    ],
)
def test_files_that_are_no_tables_say_why(tmp_path: Path, text: bytes, message: str) -> None:
    file = tmp_path / "people.csv"
    file.write_bytes(text)
    with pytest.raises(DataError, match=message):
        read_table(file)


def test_an_encrypted_or_crowded_archive_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "people.csv.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.csv", "s,x\n")
        archive.writestr("b.csv", "s,x\n")
    with pytest.raises(DataError, match="holds 2 files"):
        read_table(file)
    locked = bytearray(packed(b"s,x\na,b\n", ".zip"))
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        locked[locked.index(mark) + flags] |= 1  # the bit that says: encrypted
    file.write_bytes(locked)
    with pytest.raises(DataError, match="password"):
        read_table(file)


def test_messages_quote_little_and_command_no_terminal() -> None:
    error = DataError(f"column {'a' * 5000!r} and \x1b]0;owned\x07 {'b' * 5000}")
    assert not set("\x1b\x07") & set(str(error))
    assert max(map(len, str(error).replace("'", " ").split())) <= 200
    assert len(str(DataError("word " * 10_000))) <= 2000


def packed(text: bytes, suffix: str) -> bytes:
    """Return a text as a file of that suffix holds it."""
    if suffix == ".zip":
        memory = io.BytesIO()
        with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("people.csv", text)
        return memory.getvalue()
    return {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}[suffix](text)


def test_a_parameter_beyond_the_doubles_is_refused_by_name() -> None:
    with pytest.raises(ModelError, match="epsilon="):
        local_differential_privacy(10**400)


ODD: list[Any] = [[1], {}, np.ma.masked, Decimal("sNaN"), np.array([1, 2]), "\ud800", 10**5000]


@pytest.mark.parametrize("place", range(len(ODD)))
def test_frames_of_odd_cells_are_refused_at_every_door(place: int) -> None:
    odd = pd.DataFrame({"a": pd.Series([ODD[place], 1, 2, 2], dtype=object), "b": [1, 2, 3, 4]})
    recipe = prepare(pd.DataFrame({"a": [1, 2], "b": [1, 2]}), rare={"a": 1}).recipe
    for door in (
        lambda: prepare(odd),
        lambda: prepare(odd, rare={"a": 2}),
        lambda: recipe.apply(odd),
        lambda: Encoding.of(odd),
        lambda: JointTable.from_frame(odd, ["a"], ["b"]),
    ):
        with suppress(CvxprivError):
            door()


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        ([1, True, "1", 1.0], ("1", "True")),
        ([np.int8(0), np.bool_(False), 0.0, "0"], ("0", "False")),
        (["caf\u00e9", "cafe\u0301", " caf\u00e9", "b"], ("b", "caf\u00e9")),
    ],
)
def test_what_is_equal_to_python_or_to_the_eye_alone_is_told_apart_or_is_one(
    cells: list[object], labels: tuple[str, ...]
) -> None:
    frame = pd.DataFrame({"s": list("abab"), "x": pd.Series(cells, dtype=object)})
    assert JointTable.from_frame(frame, ["s"], ["x"]).public.labels == labels
