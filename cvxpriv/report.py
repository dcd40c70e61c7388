"""A report: one HTML page that holds everything it shows, for any model.

The page loads nothing, neither scripts nor fonts nor pictures, and its content policy forbids it to: it can be mailed,
kept and read without a network. A page with sortable tables holds one script, and its policy allows that one by its
hash; without it the tables are read as they are. It needs Jinja2, which comes with
``pip install "cvxpriv[report]"``; importing this module does not.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from cvxpriv.crosschecks.verdicts import VERDICTS
from cvxpriv.errors import DataError, ModelError
from cvxpriv.files import PathLike, write_text
from cvxpriv.formatting import DIGITS, MISSING, format_cell, is_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Headline", "Picture", "Report", "Section", "Table", "render", "write"]

SHORT = 16
"""A column whose texts are no longer than this is not broken into lines."""
_WORST_FIRST = tuple(name.lower() for name in reversed(VERDICTS))
"""The verdicts that have a colour in the template."""
HEATED_DIGITS = 2
"""Significant digits in a heatmap, where the size is the message."""
_COLDEST, _HOTTEST = -12, -2
"""Decades of the coldest and the hottest shade of a heatmap."""
_SIGNATURES = {b"\x89PNG\r\n\x1a\n": "image/png", b"<?xml": "image/svg+xml", b"<svg": "image/svg+xml"}


@dataclass(frozen=True)
class Headline:
    """One figure to be seen first.

    Parameters
    ----------
    label : str
    value : float or str
        A number is formatted to four significant digits.
    unit : str
    detail : str
        A line below, for example the interval or what to compare with.
    """

    label: str
    value: float | str
    unit: str = ""
    detail: str = ""


@dataclass(frozen=True)
class Picture:
    """A picture, embedded.

    Parameters
    ----------
    data : bytes
        A PNG or SVG file.
    alt : str
        What it shows, for readers who do not see it.
    caption : str
    wide : bool
        On a narrow screen keep it large enough to read, and let it scroll.

    Raises
    ------
    DataError
        Neither PNG nor SVG, or no ``alt``.
    """

    data: bytes
    alt: str
    caption: str = ""
    wide: bool = False

    def __post_init__(self) -> None:
        if not self.alt:
            raise DataError("alt='' of a picture: say in a sentence what it shows")
        if self.kind is None:
            raise DataError(f"data of a picture begins with {self.data[:8]!r}: expected a PNG or SVG file")

    @classmethod
    def of(cls, figure: Figure, alt: str, caption: str = "", wide: bool = False) -> Picture:
        """A picture of a matplotlib figure, as SVG.

        Raises
        ------
        DataError
            No ``alt``.
        ModelError
            matplotlib is missing.
        """
        from cvxpriv.plots import image

        return cls(image(figure, "svg"), alt, caption, wide)

    @property
    def kind(self) -> str | None:
        """The media type."""
        return next((kind for start, kind in _SIGNATURES.items() if self.data.startswith(start)), None)

    @property
    def uri(self) -> str:
        """The picture as a ``data:`` address."""
        return f"data:{self.kind};base64,{base64.b64encode(self.data).decode('ascii')}"


@dataclass(frozen=True)
class Table:
    """A table.

    Parameters
    ----------
    frame : DataFrame
        Column names are the headings. Numbers come out right-aligned, with four significant digits.
    caption : str
    index : bool
        Show the index as the first columns.
    verdict : str
        The column with verdicts, if the frame has one of that name: shown first, with badges, counted above the table.
    sortable : bool
        A click on a heading sorts by it, a second one the other way, a third one gives back the first order.
    heat : sequence of str
        Columns whose cells are shaded by the logarithm of their size, from 1e-12 to 1e-2, and cut to two digits.
    """

    frame: pd.DataFrame
    caption: str = ""
    index: bool = False
    verdict: str = "verdict"
    sortable: bool = False
    heat: Sequence[str] = ()


@dataclass(frozen=True)
class Section:
    """A part of a report. A blank line in ``text`` begins a paragraph; ``notes`` are listed at the end."""

    title: str
    text: str = ""
    figures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Report:
    """What a report holds.

    Parameters
    ----------
    title : str
    summary : str
        A blank line begins a paragraph.
    headlines : sequence of Headline
    sections : sequence of Section
    made_with : mapping of str to str
        Versions and machine, for the foot of the page: see `cvxpriv.provenance`.
    """

    title: str
    summary: str = ""
    headlines: Sequence[Headline] = ()
    sections: Sequence[Section] = ()
    made_with: Mapping[str, str] = field(default_factory=dict)


class _Cell(NamedTuple):
    text: str
    kind: str
    """``number``, ``text``, ``short`` (a text that is not broken into lines) or ``verdict``."""
    badge: str = ""
    heat: int | None = None
    """The shade, from 0 to 10."""
    sort: str = ""
    """What a sortable table sorts by."""


class _Grid(NamedTuple):
    """A table ready for the template."""

    caption: str
    headings: list[_Cell]
    rows: list[list[_Cell]]
    counts: list[tuple[str, str, int]]
    """Verdict, badge and number of rows, worst first."""
    sortable: bool
    heated: bool


def render(report: Report) -> str:
    """The page as a text. All texts are escaped.

    Raises
    ------
    ModelError
        Jinja2 is missing.

    Examples
    --------
    >>> page = render(Report("Funnel", "2 < 3", [Headline("leakage", 0.0123456, "nats")]))
    >>> "0.01235" in page, "2 &lt; 3" in page
    (True, True)
    """
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError as error:
        raise ModelError('reports need Jinja2, which is missing: pip install "cvxpriv[report]"') from error
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(cell=format_cell, grid=_grid, paragraphs=_paragraphs)
    script = _template("sort.js") if any(table.sortable for part in report.sections for table in part.tables) else ""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    page: str = environment.from_string(_template("report.html")).render(report=report, script=script, digest=digest)
    return page


def write(report: Report, path: PathLike) -> Path:
    """Write the page to a file, whole or not at all.

    Raises
    ------
    DataError
        The file cannot be written.
    ModelError
        Jinja2 is missing.
    """
    return write_text(path, render(report))


def _template(name: str) -> str:
    return (resources.files("cvxpriv") / "templates" / name).read_text(encoding="utf-8")


def _paragraphs(text: str) -> list[str]:
    parts = (" ".join(part.split()) for part in text.replace("\r\n", "\n").split("\n\n"))
    return [part for part in parts if part]


def _grid(table: Table) -> _Grid:
    frame = table.frame.reset_index(allow_duplicates=True) if table.index else table.frame
    names = list(frame.columns)
    order = sorted(range(len(names)), key=lambda j: names[j] != table.verdict)  # stable: the verdict first
    columns = [_column(frame.iloc[:, j].tolist(), names[j] == table.verdict, names[j] in table.heat) for j in order]
    kinds = [next((cell.kind for cell in column if cell.text != MISSING), "text") for column in columns]
    headings = [_Cell(format_cell(names[j]), kind) for j, kind in zip(order, kinds, strict=True)]
    rows = [list(row) for row in zip(*columns, strict=True)]
    counts = _counts(columns[0]) if table.verdict in names else []
    return _Grid(table.caption, headings, rows, counts, table.sortable, bool(set(table.heat) & set(names)))


def _column(values: list[object], verdicts: bool, heated: bool) -> list[_Cell]:
    texts = [format_cell(value, HEATED_DIGITS if heated else DIGITS) for value in values]
    if verdicts:
        return [_Cell(text, "verdict", _badge(text), sort=str(_rank(_badge(text)))) for text in texts]
    known = [value for value, text in zip(values, texts, strict=True) if text != MISSING]
    words = "short" if max(map(len, texts), default=0) <= SHORT else "text"
    if not known or not all(map(is_number, known)):
        return [_Cell(text, words) for text in texts]
    sizes = [math.nan if text == MISSING else float(str(value)) for value, text in zip(values, texts, strict=True)]
    return [
        _Cell(text, "number", heat=_shade(size) if heated else None, sort="" if math.isnan(size) else repr(size))
        for text, size in zip(texts, sizes, strict=True)
    ]


def _shade(size: float) -> int | None:
    """A size by decades: 0 up to the coldest one, 10 from the hottest one on."""
    if math.isnan(size):
        return None
    if math.isinf(size):
        return _HOTTEST - _COLDEST
    decade = math.ceil(math.log10(abs(size))) if size else _COLDEST
    return min(max(decade, _COLDEST), _HOTTEST) - _COLDEST


def _badge(verdict: str) -> str:
    return verdict.lower() if verdict.lower() in _WORST_FIRST else "other"


def _rank(badge: str) -> int:
    """0 for the worst verdict; unknown ones last."""
    return _WORST_FIRST.index(badge) if badge in _WORST_FIRST else len(_WORST_FIRST)


def _counts(column: list[_Cell]) -> list[tuple[str, str, int]]:
    found = Counter((cell.text, cell.badge) for cell in column)
    ordered = sorted(found, key=lambda verdict: (_rank(verdict[1]), verdict[0]))
    return [(text, badge, found[text, badge]) for text, badge in ordered]
