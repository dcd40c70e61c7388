"""A report: one HTML page that holds everything it shows, for any model.

The page loads nothing, neither scripts nor fonts nor pictures, and its content policy forbids it to: it can be mailed,
kept and read without a network. A page with sortable tables holds one script, and its policy allows that one by its
hash; without it the tables are read as they are. It needs Jinja2, which comes with
``pip install "cvxpriv[report]"``; importing this module does not.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from cvxpriv.errors import DataError, ModelError
from cvxpriv.reports.files import PathLike, write_text
from cvxpriv.reports.formatting import format_cell
from cvxpriv.reports.grids import grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Headline", "Picture", "Report", "Section", "Table", "render", "write"]

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
        from cvxpriv.reports.pictures import image

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
        Versions and machine, for the foot of the page: see `cvxpriv.reports.provenance`.
    """

    title: str
    summary: str = ""
    headlines: Sequence[Headline] = ()
    sections: Sequence[Section] = ()
    made_with: Mapping[str, str] = field(default_factory=dict)


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
    environment.filters.update(cell=format_cell, grid=grid, paragraphs=_paragraphs)
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
    return (resources.files("cvxpriv.reports") / "templates" / name).read_text(encoding="utf-8")


def _paragraphs(text: str) -> list[str]:
    parts = (" ".join(part.split()) for part in text.replace("\r\n", "\n").split("\n\n"))
    return [part for part in parts if part]
