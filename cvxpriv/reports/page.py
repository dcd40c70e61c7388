"""Facts as one self-contained HTML page, for any model.

The page loads nothing, neither scripts nor fonts nor pictures, and its content policy forbids it to: it can be mailed,
kept and read without a network. A page with sortable tables or a slider holds one script, and its policy allows that
one by its hash; without it the tables are read as they are, and a curve stands with the numbers of all its points. It
needs Jinja2, which comes with ``pip install "cvxpriv[report]"``; importing this module does not.

A page for others shows of facts what may be shown to people who may not see the data. Where noise protects the data
(`Facts.published`), everything on the page is computed from noisy counts, and the page shows all. Elsewhere a fact or a
section is shown only as far as its author said: the page withholds the rest.

- Numbers are cut to two significant digits: with all digits they are functions of the table that few tables share.
- Of a section only its `shared` part is shown. Matrices, exact counts, histories and options are not.
"""

import base64
import hashlib
import math
import re
from collections import Counter
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from cvxpriv.errors import DataError, ModelError, inert, suggest
from cvxpriv.numerics.packages import machine, pd, versions
from cvxpriv.reports.facts import Fact, Facts, Section, Table
from cvxpriv.reports.files import PathLike, write_text
from cvxpriv.reports.formatting import DIGITS, MISSING, format_cell, is_figure, is_number
from cvxpriv.reports.readers import INTERNAL, PAGES, SHAREABLE


def render(facts: Facts) -> str:
    """Return the page as a text. All texts are escaped.

    Raises ModelError: Jinja2 is missing, or matplotlib where there are pictures.

    >>> from cvxpriv.reports.facts import Fact
    >>> page = render(Facts("Funnel", "2 < 3", [Fact("leakage", 0.0123456, "nats", main=True)]))
    >>> "0.01235" in page, "2 &lt; 3" in page
    (True, True)
    """
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError as error:
        raise ModelError('reports need Jinja2, which is missing: pip install "cvxpriv[report]"') from error
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(grid=grid, paragraphs=_paragraphs, marked=_marked)
    promised = [Section(facts.promised, "\n\n".join(facts.promises))] if facts.promises else []
    sections = [*promised, *facts.sections, *_listed(facts)]
    sorts = any(table.sortable for part in sections for table in part.tables)
    slides = any(part.slider is not None for part in sections)
    parts = [_template(name) for name, needed in (("sort.js", sorts), ("slide.js", slides)) if needed]
    script = "\n".join(['"use strict";', *parts]) if parts else ""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    page: str = environment.from_string(_template("report.html")).render(
        title=facts.title,
        paragraphs=[*_paragraphs(facts.summary), *facts.messages],
        main=facts.main,
        sections=sections,
        made_with={**versions(), **machine()},
        script=script,
        digest=digest,
    )
    return inert(page)


def write(facts: Facts, path: PathLike, page: str = INTERNAL) -> Path:
    """Write the page to a file, whole or not at all.

    `page`, {"internal", "shareable"}: Readers of the page: see `cvxpriv.reports.page`.
    Raises DataError: The file cannot be written, or an unknown page.
    Raises ModelError: Jinja2 is missing.
    """
    return write_text(path, render(for_page(facts, page)))


def _marked(text: str) -> str:
    """Return a text as HTML, in which what stands between backticks is code."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`\n]+)`", r"<code>\1</code>", str(escape(text))))


def _listed(facts: Facts) -> list[Section]:
    """Return every figure with its sentence, if any has one, and the settings."""
    told, every = [fact for fact in facts.facts if fact.sentence], [*facts.about, *facts.settings]
    figures = {
        "fact": [fact.title for fact in facts.facts],
        "value": [_valued(fact) for fact in facts.facts],
        "compared": [fact.remark for fact in facts.facts],
        "what it says": [fact.sentence for fact in facts.facts],
    }
    settings = {
        "setting": [fact.title for fact in every],
        "value": [f"{_valued(fact)} ({fact.detail})" if fact.detail else _valued(fact) for fact in every],
        "what it is": [fact.sentence for fact in every],
    }
    return [*(_tabled("Every figure", figures) if told else []), *_tabled("Settings", settings)]


def _valued(fact: Fact) -> str:
    return " ".join(filter(None, [fact.shown, fact.unit]))


def _tabled(title: str, columns: dict[str, list[str]]) -> list[Section]:
    filled = {name: texts for name, texts in columns.items() if any(texts)}
    return [Section(title, tables=[Table(pd.DataFrame(filled))])] if filled else []


def _template(name: str) -> str:
    return (resources.files("cvxpriv.reports") / "templates" / name).read_text(encoding="utf-8")


def _paragraphs(text: str) -> list[str]:
    parts = (" ".join(part.split()) for part in text.replace("\r\n", "\n").split("\n\n"))
    return [part for part in parts if part]


UNKNOWN = ("", MISSING, "*")
"""Texts of a number that is not known, or withheld."""
SHORT = 16
"""Length of texts up to which a column is not broken into lines."""
BADGES = ("wrong", "failed", "loose", "agrees", "other")
"""The verdicts in small letters, which have a colour in the template; the worst first, all others last."""
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
    kinds = [next((cell.kind for cell in column if cell.text not in UNKNOWN), "text") for column in columns]
    headings = [Cell(format_cell(names[j]), kind) for j, kind in zip(order, kinds, strict=True)]
    rows = [list(row) for row in zip(*columns, strict=True)]
    found = Counter((cell.text, cell.badge) for cell in columns[0]) if table.verdict in names else Counter()
    ordered = sorted(found.items(), key=lambda one: (BADGES.index(one[0][1]), one[0][0]))
    counts = [(text, badge, count) for (text, badge), count in ordered]
    return Grid(table.caption, headings, rows, counts, table.sortable, bool(set(table.heat) & set(names)))


def _column(values: list[object], table: Table, name: str) -> list[Cell]:
    heated = name in table.heat
    digits = HEATED_DIGITS if heated else table.digits.get(name, DIGITS)
    texts = [format_cell(value, digits) for value in values]
    if name == table.verdict:
        return [Cell(text, "verdict", _badge(text), sort=str(BADGES.index(_badge(text)))) for text in texts]
    known = [value for value, text in zip(values, texts, strict=True) if text not in UNKNOWN]
    words = "short" if max(map(len, texts), default=0) <= SHORT else "text"
    if not known or not all(map(is_figure, known)):
        # A number with its exponent would be broken at the minus.
        return [Cell(text, words if " " in text or len(text) > SHORT else "short") for text in texts]
    cells = []
    for value, text, pad in zip(values, texts, _pads(texts), strict=True):
        size = math.nan if text in UNKNOWN else float(str(value).strip("± %"))
        sort = "" if math.isnan(size) else repr(size)
        cells.append(Cell(text, "number", heat=_shade(size) if heated else None, sort=sort, pad=pad))
    return cells


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


SHARED_DIGITS = 2
"""Number of significant digits on a page for others."""
WORDS = frozenset({"private", "public", "divergence"})
"""Facts about the data that are words and no secret; `publish` is about the mechanism, which such a page withholds."""
WARNING = "Private: do not publish. This page is computed from private data without noise."
CAUTION = (
    "This page is made to be handed on, and is not differentially private: it is computed from private data without "
    "noise. It withholds the mechanism, exact counts, and all digits but two; counts of 1 to 5 are neither shown nor "
    "given away by subtraction."
)
OPEN = "Noise was put into the counts first: everything on this page may be published."


def for_page(facts: Facts, page: str) -> Facts:
    """Return the facts as a page for some readers shows them.

    `page`: {"internal", "shareable"}.
    Raises DataError: Unknown page.

    >>> facts = Facts("Funnel", facts=[Fact("leakage", 0.0123456, "nats", main=True)], published=False)
    >>> for_page(facts, "shareable").facts[0].shown, for_page(facts, "internal").messages[0][:23]
    ('0.012', 'Private: do not publish')
    """
    if page not in PAGES:
        raise DataError(f"page={page!r}: {suggest(str(page), PAGES)}")
    if facts.published is None:
        return facts
    if facts.published:
        return replace(facts, messages=[OPEN, *facts.messages]) if page == SHAREABLE else facts
    if page == INTERNAL:
        return replace(facts, messages=[WARNING, *facts.messages])
    return replace(
        facts,
        summary=facts.outline,
        facts=[_rounded(fact) for fact in facts.facts if fact.main and is_number(fact.value)],
        sections=[section.shared for section in facts.sections if section.shared is not None],
        about=[fact for fact in facts.about if fact.name in WORDS],
        settings=[],
        messages=[CAUTION, *facts.messages],
    )


def rounded(value: float) -> float:
    """Return a number with two significant digits.

    >>> rounded(0.0123456), rounded(299), rounded(0.0)
    (0.012, 300.0, 0.0)
    """
    return float(f"{value:.{SHARED_DIGITS - 1}e}") if math.isfinite(value) else value


def _rounded(fact: Fact) -> Fact:
    ends = None if fact.interval is None else (rounded(fact.interval[0]), rounded(fact.interval[1]))
    value = rounded(float(fact.value))  # type: ignore[arg-type]
    if fact.percent:  # a share has one digit behind the point, so two digits are those before it
        value, ends = round(value, 2), None if ends is None else (round(ends[0], 2), round(ends[1], 2))
    return replace(fact, value=value, detail="", interval=ends, digits=SHARED_DIGITS, sentence="")
