"""The header of a table as people write it: titles above it, names that span columns, units on a second line."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from cvxpriv.errors import warn
from cvxpriv.numerics.packages import pd
from cvxpriv.tables.encodings import LOOKED_AT, SEPARATORS, DetectedWarning, is_number

MISSING_WORDS = frozenset(
    {"na", "n/a", "n.a.", "n.a", "k.a.", "k. a.", "#n/a", "nan", "null", "nil", "none", "missing", "unknown"}
    | {"not available", "?", "."}
)
DASHES = re.compile(r"[-\u2010-\u2015_]+")
"""With `MISSING_WORDS`: texts by which people write that a value is missing."""
_TOTALS = re.compile(
    r"(grand |sub)?totals?|sum|mean|average|(ge|ins)?gesamt|summe|mittelwert|durchschnitt", re.IGNORECASE
)


def header_place(rows: Sequence[Sequence[Any]]) -> int:
    """Return the place of the header among the first rows: below titles, which fill less than half of a table's width.

    A row with a number is no header: then it is the first row.

    >>> header_place([["Patients"], [], ["by ward", "2024", "", "", ""], ["age", "sex", "ill", "ward", "died"]])
    3
    >>> header_place([["age", "sex"], [3, "F"]]), header_place([["income"], ["1", "5"]])
    (0, 0)
    """
    filled = [sum(bool(str(cell).strip()) for cell in row) for row in rows]
    for place, row in enumerate(rows):
        if filled[place] > 1 and 2 * filled[place] >= max(filled[place:]):
            return 0 if any(str(cell).strip().replace(".", "").isdigit() for cell in row) else place
    return 0


def below_title(text: str, separators: Sequence[str] = SEPARATORS) -> str:
    """Return a text whose lines above the header are blank: comments that begin with #, and titles.

    The header gets the separator that stands behind each row and not behind the header.

    >>> below_title("# years\\nPatients,,\\nage,sex\\n3,F"), below_title("income\\n1,5"), below_title("#a,b\\n1,3")
    ('\\n\\nage,sex\\n3,F', 'income\\n1,5', '#a,b\\n1,3')
    >>> below_title("age;sex\\n3;F;\\n4;M;\\n"), below_title("Patients, 2024\\nage;sex\\n3;F")
    ('age;sex;\\n3;F;\\n4;M;\\n', '\\nage;sex\\n3;F')
    """
    lines = text[: 2**16].splitlines(keepends=True)[:LOOKED_AT]
    parted = [[next(csv.reader([line], delimiter=mark), []) for line in lines] for mark in separators]
    rows = max(parted, key=_alike)
    for place, cells in enumerate(rows[:-1]):
        if lines[place].startswith("#") and len(cells) != len(rows[place + 1]):
            rows[place] = []
    place = header_place(rows)
    cells, body = rows[place] if rows else [], rows[place + 1 : LOOKED_AT - 1]
    longer = len(cells) > 1 and body and all(len(row) == len(cells) + 1 and not row[-1].strip() for row in body)
    if not (place or longer):
        return text
    tail = lines[place + 1].rstrip("\r\n ")[-1] if longer else ""
    return "\n" * place + lines[place].rstrip("\r\n") + tail + "\n" + text[len("".join(lines[: place + 1])) :]


def _alike(rows: Sequence[Sequence[str]]) -> tuple[int, int]:
    """Return how many rows have the most frequent number of cells above one, and that number."""
    (width, times), *_ = [*Counter(len(row) for row in rows if len(row) > 1).most_common(1), (0, 0)]
    return times, width


def named(cells: pd.DataFrame, alone: bool = False) -> pd.DataFrame:
    """Return a table from its cells, whose first row is the header.

    A column without a name is "column 1" by its place; one that stands there twice with the same cells is one column.
    `alone`: Let no row decide that: a column without a name is left out.

    >>> named(pd.DataFrame([["a", None, "b", "b"], list("1233")])).to_dict("list")
    {'a': ['1'], 'column 2': ['2'], 'b': ['3']}
    """
    if alone:
        cells = cells.loc[:, cells.iloc[0].notna()]
    names = [f"column {i + 1}" if pd.isna(name) else str(name).strip() for i, name in enumerate(cells.iloc[0])]
    frame = cells.iloc[1:].reset_index(drop=True)
    frame.columns = pd.Index(names)
    first = {name: i for i, name in reversed(list(enumerate(names)))}
    later = [i for i, name in enumerate(names) if first[name] < i]
    twice = {i for i in later if not alone and frame.iloc[:, i].equals(frame.iloc[:, first[names[i]]])}
    return frame.iloc[:, [i for i in range(len(names)) if i not in twice]] if twice else frame


def one_header(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of a table with a header of two lines made one, and warn of a row of totals at the end.

    The second line is one of the header where it has a text above a column of numbers, no number, and nothing that
    occurs again below.

    Warns
    -----
    DetectedWarning
        The header had two lines; the last row looks like one of totals.
    """
    if len(cells) < 4:
        return cells
    last = next((str(cell).strip() for cell in cells.iloc[-1].dropna()), "")
    if _TOTALS.fullmatch(last.rstrip(":")):
        warn(
            f"the last row begins with {last!r} and counts as a record: take it out if it holds totals", DetectedWarning
        )
    top, second, rows = cells.iloc[0], cells.iloc[1], cells.iloc[2:]
    above_numbers = [_above_numbers(text, rows[place]) for place, text in second.dropna().items()]
    if None in above_numbers or True not in above_numbers:
        return cells
    top = top.where(top.notna() | second.isna(), top.ffill())  # a name that spans columns stands above the first
    pairs = [[str(part).strip() for part in pair if not pd.isna(part)] for pair in zip(top, second, strict=True)]
    names = [" ".join(pair) or None for pair in pairs]
    one = next(name for name, pair in zip(names, pairs, strict=True) if len(pair) > 1)
    warn(
        f"the header has two lines, which make one: {one!r}; if the second line is a row, name the decimal point",
        DetectedWarning,
    )
    return pd.concat([pd.DataFrame([names], columns=cells.columns, dtype=object), rows], ignore_index=True)


def _above_numbers(text: object, rows: pd.Series[Any]) -> bool | None:
    """Return whether a text of a second line stands above numbers; None where it is a cell like those below."""
    near = rows.iloc[:LOOKED_AT].dropna()
    numbers = bool(len(near)) and all(map(is_number, near))
    bare = str(text).strip()
    cell = not isinstance(text, str) or bare[:1].isdigit() or (not numbers and any(map(str.isdigit, bare)))
    if cell or bare.casefold() in MISSING_WORDS or DASHES.fullmatch(bare) or (rows == text).any():
        return None
    return numbers
