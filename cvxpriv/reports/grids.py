"""The layout of a report's tables for its page: cells with digits, shades, badges, and sort keys."""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple

from cvxpriv.reports.facts import Table
from cvxpriv.reports.formatting import DIGITS, MISSING, format_cell, is_number

SHORT = 16
"""Length of texts up to which a column is not broken into lines."""
BADGES = ("wrong", "failed", "loose", "agrees")
"""The words, in small letters, that have a colour in the template; the worst first."""
POINT = 0.5
"""Width of a point, in digits."""
HEATED_DIGITS = 2
"""Number of significant digits in a heatmap, where the size is the message."""
_COLDEST, _HOTTEST = -12, -2
"""Decades of the coldest and the hottest shade of a heatmap."""


class Cell(NamedTuple):
    """The content of a cell, and how it is shown."""

    text: str
    kind: str
    """``number``, ``text``, ``short`` (a text that is not broken into lines) or ``verdict``."""
    badge: str = ""
    heat: int | None = None
    """The shade, from 0 to 10."""
    sort: str = ""
    """The key by which a sortable table sorts."""
    pad: float = 0.0
    """Width of the digits that it lacks behind the point, so that the points of a column stand below each other."""


class Grid(NamedTuple):
    """A table ready for the template."""

    caption: str
    headings: list[Cell]
    rows: list[list[Cell]]
    counts: list[tuple[str, str, int]]
    """Verdict, badge and number of rows, worst first."""
    sortable: bool
    heated: bool


def grid(table: Table) -> Grid:
    """Lay out a table: the verdict, if it has one, comes first."""
    frame = table.frame.reset_index(allow_duplicates=True) if table.index else table.frame
    names = list(frame.columns)
    order = sorted(range(len(names)), key=lambda j: names[j] != table.verdict)  # stable: the verdict first
    columns = [_column(frame.iloc[:, j].tolist(), table, names[j]) for j in order]
    kinds = [next((cell.kind for cell in column if cell.text != MISSING), "text") for column in columns]
    headings = [Cell(format_cell(names[j]), kind) for j, kind in zip(order, kinds, strict=True)]
    rows = [list(row) for row in zip(*columns, strict=True)]
    counts = _counts(columns[0]) if table.verdict in names else []
    return Grid(table.caption, headings, rows, counts, table.sortable, bool(set(table.heat) & set(names)))


def _column(values: list[object], table: Table, name: str) -> list[Cell]:
    heated = name in table.heat
    digits = HEATED_DIGITS if heated else table.digits.get(name, DIGITS)
    texts = [format_cell(value, digits) for value in values]
    if name == table.verdict:
        return [Cell(text, "verdict", _badge(text), sort=str(_rank(_badge(text)))) for text in texts]
    known = [value for value, text in zip(values, texts, strict=True) if text != MISSING]
    words = "short" if max(map(len, texts), default=0) <= SHORT else "text"
    if not known or not all(map(is_number, known)):
        return [Cell(text, words) for text in texts]
    pads = _pads(texts)
    sizes = [math.nan if text == MISSING else float(str(value)) for value, text in zip(values, texts, strict=True)]
    return [
        Cell(
            text, "number", heat=_shade(size) if heated else None, sort="" if math.isnan(size) else repr(size), pad=pad
        )
        for text, size, pad in zip(texts, sizes, pads, strict=True)
    ]


def _pads(texts: list[str]) -> list[float]:
    """Return the width that each number lacks behind its point, in digits.

    >>> _pads(["0.5000", "12.35", "3", "1.234e-7"])
    [2.0, 4.0, 6.5, 0.0]
    """
    behind = [len(text) - 1 - text.rfind(".") + POINT if "." in text else 0.0 for text in texts]
    return [round(max(behind) - own, 1) for own in behind]


def _shade(size: float) -> int | None:
    """Return the shade of a size by decades: 0 up to the coldest one, 10 from the hottest one on."""
    if math.isnan(size):
        return None
    if math.isinf(size):
        return _HOTTEST - _COLDEST
    decade = math.ceil(math.log10(abs(size))) if size else _COLDEST
    return min(max(decade, _COLDEST), _HOTTEST) - _COLDEST


def _badge(verdict: str) -> str:
    return verdict.lower() if verdict.lower() in BADGES else "other"


def _rank(badge: str) -> int:
    """Return the rank of a verdict: 0 for the worst one; unknown ones last."""
    return BADGES.index(badge) if badge in BADGES else len(BADGES)


def _counts(column: list[Cell]) -> list[tuple[str, str, int]]:
    found = Counter((cell.text, cell.badge) for cell in column)
    ordered = sorted(found, key=lambda verdict: (_rank(verdict[1]), verdict[0]))
    return [(text, badge, found[text, badge]) for text, badge in ordered]
