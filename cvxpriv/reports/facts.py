"""Facts of a run, stated once: a page, a terminal's text, JSON and CSV are made from them.

A `Fact` is a number or a short text with its unit and a sentence. `Facts` holds those of a run, with the tables and
pictures that belong to them, by section. Pictures are drawn when a page needs them, and not before.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from cvxpriv.errors import DataError, suggest
from cvxpriv.numerics.packages import pd
from cvxpriv.reports.formatting import DIGITS, Heatmap, format_cell, format_number, is_number
from cvxpriv.reports.sliders import Slider

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Fact:
    """A number or a short text, with its meaning.

    `name`: Name for programs: a key of the JSON document.
    `value`: A number, a text, a truth value, several of them, or None.
    `sentence`: Its meaning in one sentence.
    `label`: Name for readers; the name with blanks unless given.
    `detail`: The value or standard that it is compared with.
    `interval`, (float, float): Interval for the population's value.
    `level`: Probability that the interval covers it.
    `digits`: Number of significant digits that are shown.
    `percent`: Whether it is shown as a percentage.
    `main`: Whether it is among the few that a reader sees first.
    `aside`: Whether a terminal leaves it out.

    >>> fact = Fact("leakage", 0.0123456, "nats", interval=(0.01, 0.02))
    >>> fact.shown, fact.remark
    ('0.01235', '95% interval 0.01000 to 0.02000')
    """

    name: str
    value: object
    unit: str = ""
    sentence: str = ""
    label: str = ""
    detail: str = ""
    interval: tuple[float, float] | None = None
    level: float = 0.95
    digits: int = DIGITS
    percent: bool = False
    main: bool = False
    aside: bool = False

    @property
    def title(self) -> str:
        """The label, or the name with blanks."""
        return self.label or self.name.replace("_", " ")

    @property
    def shown(self) -> str:
        """The value in a reader's form."""
        if self.percent and is_number(self.value):
            return f"{float(self.value):.{self._places}%}"  # type: ignore[arg-type]
        return format_cell(self.value, self.digits)

    @property
    def _places(self) -> int:
        """Digits behind the point of a percentage."""
        return max(self.digits - 3, 0)

    @property
    def headline(self) -> str:
        """The value in a reader's form; its interval where that reaches beyond twice the value.

        >>> Fact("leakage", 0.0, "nats", interval=(0.0, 0.09)).headline
        '0 to 0.09000'
        """
        return self._ends() if self.understated else self.shown

    @property
    def understated(self) -> bool:
        """Whether the interval reaches beyond twice the value, so that the value alone would say too little."""
        if self.interval is None or not is_number(self.value):
            return False
        return self.interval[1] > 2.0 * float(self.value)  # type: ignore[arg-type]

    @property
    def remark(self) -> str:
        """The value of the table where the headline is an interval, the detail, and the interval."""
        unit = f" {self.unit}" if self.unit else ""
        here = f"{self.shown}{unit} in the table" if self.understated else ""
        ends = "" if self.understated else f" {self._ends()}"
        interval = "" if self.interval is None else f"{self.level:.0%} interval{ends}"
        return "; ".join(filter(None, [here, self.detail, interval]))

    def _ends(self) -> str:
        ends = self.interval or ()
        return " to ".join(
            f"{end:.{self._places}%}" if self.percent else format_number(end, self.digits) for end in ends
        )


@dataclass(frozen=True)
class Picture:
    """A picture.

    `draw`: Draws it, when a page or a file needs it.
    `alt`: Description for readers who do not see it.
    `wide`: Keep it large enough to read on a narrow screen, and let it scroll.
    `file`: Name of a file that the picture is also written to, such as ``curve.png``.
    `beside`: Whether it is for its file alone, since the page shows the same in another form.
    Raises DataError: No ``alt``.
    """

    draw: Callable[[], Figure]
    alt: str
    caption: str = ""
    wide: bool = False
    file: str = ""
    beside: bool = False

    def __post_init__(self) -> None:
        if not self.alt:
            raise DataError("alt='' of a picture: say in a sentence what it shows")

    def image(self, kind: str = "svg") -> bytes:
        """Return the picture as the bytes of a file.

        Raises ModelError: matplotlib is missing.
        """
        from cvxpriv.reports.pictures import image

        return image(self.draw(), kind)

    @property
    def uri(self) -> str:
        """The picture as a ``data:`` address."""
        return f"data:image/svg+xml;base64,{base64.b64encode(self.image()).decode('ascii')}"


@dataclass(frozen=True)
class Table:
    """A table.

    `frame`: The table; column names are the headings. Numbers come out right-aligned, with four significant digits.
    `index`: Show the index as the first columns.
    `verdict`: The column with verdicts, if the frame has one of that name: shown first, with badges, counted above the
    table.
    `sortable`: A click on a heading sorts by it, a second one the other way, a third one gives back the first order.
    `heat`: Columns whose cells are shaded by the logarithm of their size, from 1e-12 to 1e-2, and cut to two digits.
    `digits`: Significant digits of a column, where they are not four.
    """

    frame: pd.DataFrame
    caption: str = ""
    index: bool = False
    verdict: str = "verdict"
    sortable: bool = False
    heat: Sequence[str] = ()
    digits: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    """A part of a report.

    `text`: A blank line begins a paragraph.
    `slider`: A curve that a reader walks along.
    `notes`: Notes that are listed at the end.
    `brief`: The part that a terminal shows in place of the section. None: a terminal does not show it.
    `shared`: The part that a page to be shared shows in its place, where the data are private. None: nothing of it.
    """

    title: str
    text: str = ""
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    brief: Section | None = None
    slider: Slider | None = None
    heatmaps: Sequence[Heatmap] = ()
    shared: Section | None = None


@dataclass(frozen=True)
class Facts:
    """The facts of a run, or of another subject of a report.

    `summary`: Text; a blank line begins a paragraph.
    `about`: Facts about the data.
    `settings`: The options that decided the result.
    `messages`: Messages that a reader needs before anything else.
    `promises`: Sentences on which guarantees hold and which do not.
    `promised`: The title above these.
    `tables`: Whole tables by name, for programs: in the JSON document, and as ``<name>.csv``.
    `files`: Other files by name, each written whole to a path.
    `converged`: Whether the run converged; None where the question makes no sense.
    `unmet`: The parts that missed their tolerance, in a sentence; empty where none did. A command then exits with 3.
    `published`: Whether noise protects the data, so that all may be published; None where nothing is private.
    `outline`: The summary without a number of the data, for a page to be shared.

    >>> facts = Facts("Funnel", facts=[Fact("leakage", 0.25, "nats", main=True)])
    >>> facts["leakage"].value
    0.25
    """

    title: str
    summary: str = ""
    facts: Sequence[Fact] = ()
    sections: Sequence[Section] = ()
    about: Sequence[Fact] = ()
    settings: Sequence[Fact] = ()
    messages: Sequence[str] = ()
    promises: Sequence[str] = ()
    promised: str = "What this promises, and what it does not"
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    files: Mapping[str, Callable[[Path], Path]] = field(default_factory=dict)
    converged: bool | None = None
    interrupted: bool = False
    unmet: str = ""
    published: bool | None = None
    outline: str = ""

    def __getitem__(self, name: str) -> Fact:
        """Return a fact by name.

        Raises DataError: There is none of that name.
        """
        if name not in self._by_name:
            raise DataError(f"name={name!r} is no fact: {suggest(name, self._by_name)}")
        return self._by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    @property
    def main(self) -> list[Fact]:
        """The facts that a reader sees first."""
        return [fact for fact in self.facts if fact.main]

    @property
    def pictures(self) -> list[Picture]:
        """The pictures of all sections."""
        return [picture for section in self.sections for picture in section.pictures]

    @cached_property
    def _by_name(self) -> dict[str, Fact]:
        return {fact.name: fact for fact in (*self.about, *self.settings, *self.facts)}


def without_clock(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table without its columns of times."""
    return frame.drop(columns=[name for name in ("seconds", "solver_seconds", "ms") if name in frame])


def untimed(facts: Facts) -> Facts:
    """Return facts without times, which a machine adds to what it was given: results to be published have none."""

    def bare(section: Section) -> Section:
        tables = [replace(table, frame=without_clock(table.frame)) for table in section.tables]
        return replace(section, tables=tables, brief=section.brief and bare(section.brief))

    return replace(
        facts,
        facts=[fact for fact in facts.facts if fact.name != "seconds"],
        sections=[bare(section) for section in facts.sections],
        tables={name: without_clock(frame) for name, frame in facts.tables.items()},
    )
