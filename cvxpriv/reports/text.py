"""Facts as a text for a terminal, and tables as files that a spreadsheet shows and does not run.

The text is plain, aligned, readable in 80 to 100 columns. A cell of a file that begins with ``=``, ``+``, ``-``, ``@``,
a tab or a carriage return is a formula to a spreadsheet, which may fetch and send what it likes. Such a cell gets an
apostrophe before it, unless it is a number. Control characters, which command a terminal, become their codes.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Sequence
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cvxpriv.errors import DataError, inert
from cvxpriv.numerics.packages import pd
from cvxpriv.reports.facts import Fact, Facts, Section, Table
from cvxpriv.reports.files import PathLike, write_bytes
from cvxpriv.reports.formatting import DIGITS, WIDTH, ascii_text, format_cell, is_figure, paragraph, table

#: Least length of lines into which a last column is broken.
NARROWEST = 24


def text_of(facts: Facts) -> str:
    """Return the whole text: the subject, the facts, the messages, sections in brief, the promises.

    Examples
    --------
    >>> print(text_of(Facts("Funnel", facts=[Fact("leakage", 0.25, "nats", detail="half of it")])))
    Funnel
      leakage  0.2500 nats  half of it
    """
    known = [fact for fact in facts.about if not fact.aside]
    remarks = [f" ({ascii_text(fact.remark)})" if fact.remark else "" for fact in known]
    pairs = [[fact.title, _value(fact) + remark] for fact, remark in zip(known, remarks, strict=True)]
    about = table([], _broken(pairs, "  "))
    shown = [fact for fact in facts.facts if not fact.aside]
    first = table([], _broken([[fact.title, _value(fact), ascii_text(fact.remark)] for fact in shown], "  "), "lrl")
    head = "\n".join([facts.title, about or first])
    parts = [
        head,
        first if about else "",
        *(paragraph(message, indent="") for message in facts.messages),
        *(section_text(section.brief) for section in facts.sections if section.brief is not None),
        section_text(Section(facts.promised, notes=facts.promises)) if facts.promises else "",
    ]
    return "\n\n".join(part for part in parts if part)


def facts_lines(facts: Sequence[Fact]) -> str:
    """Return each fact as one line; a remark that does not fit ends early.

    >>> print(facts_lines([Fact("leakage", 0.25, "nats", detail="word " * 40)]))
      leakage  0.2500 nats  word word word word word word word word word word word word word ...
    """
    rows = [[fact.title, _value(fact), ascii_text(fact.remark)] for fact in facts]
    before = sum(max((len(row[column]) for row in rows), default=0) + 2 for column in (0, 1)) + 2
    width = max(WIDTH - before, NARROWEST)
    return table([], [[*row[:2], textwrap.shorten(row[2], width, placeholder=" ...")] for row in rows], "lrl")


def facts_html(kind: str, of: str, facts: Sequence[Fact]) -> str:
    """Return facts as a small HTML table for a notebook; all texts are escaped.

    >>> facts_html("FunnelRun", "a < b", [Fact("leakage", 0.25, "nats")])
    '<table><caption>FunnelRun of a &lt; b</caption><tr><th>leakage</th><td>0.2500 nats</td><td></td></tr></table>'
    """
    rows = "".join(
        f"<tr><th>{escape(fact.title)}</th><td>{escape(_value(fact))}</td><td>{escape(fact.remark)}</td></tr>"
        for fact in facts
    )
    return f"<table><caption>{escape(kind)} of {escape(of)}</caption>{rows}</table>"


def section_text(section: Section) -> str:
    """Return a section as a terminal shows it: no picture."""
    parts = [section.title]
    parts += [paragraph(text, indent="  ") for text in section.text.split("\n\n") if text]
    parts += [_table_text(one) for one in section.tables]
    parts += [paragraph(ascii_text(note), indent="  - ", hanging="    ") for note in section.notes]
    return "\n".join(parts)


def _table_text(shown: Table) -> str:
    frame = shown.frame
    head = [str(name) for name in frame.columns]
    columns = [_column(frame[name], shown.digits.get(str(name), DIGITS)) for name in frame.columns]
    sides = "".join("r" if right else "l" for _, right in columns)
    rows = [list(row) for row in zip(*(texts for texts, _ in columns), strict=True)]
    caption = [paragraph(shown.caption)] if shown.caption else []
    return "\n".join([*caption, table(head if any(head) else [], _broken(rows, "  ", head), sides)])


def _column(values: pd.Series[Any], digits: int) -> tuple[list[str], bool]:
    """Return a column's texts, and whether they stand on the right."""
    cells = values.tolist()
    right = any(map(is_figure, cells)) and all(is_figure(cell) or cell in (None, "") for cell in cells)
    return [ascii_text(format_cell(cell, digits)) for cell in cells], right


def _value(fact: Fact) -> str:
    return ascii_text(" ".join(filter(None, [fact.headline, fact.unit])))


def _broken(rows: list[list[str]], indent: str, head: Sequence[str] = ()) -> list[list[str]]:
    """Return rows whose last column is broken into lines that fit the page."""
    if not rows:
        return rows
    every = [*rows, *([list(head)] if head else [])]
    before = len(indent) + sum(max(len(row[column]) for row in every) + 2 for column in range(len(rows[0]) - 1))
    width = max(WIDTH - before, NARROWEST)
    joint = "\n" + " " * before
    wrapped = [textwrap.wrap(row[-1], width, break_on_hyphens=False, break_long_words=False) or [""] for row in rows]
    return [[*row[:-1], joint.join(lines)] for row, lines in zip(rows, wrapped, strict=True)]


TEXTS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
"""Separators of text files by their suffix."""
BINARY = {".xlsx": "openpyxl", ".parquet": "pyarrow"}
"""Packages that read and write other files, by their suffix."""

_FORMULA = re.compile(r"\s*[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def csv_text(frame: pd.DataFrame, separator: str = ",") -> str:
    """Return a frame as CSV without its index, formulas made inert.

    >>> print(csv_text(pd.DataFrame({"change": ["-1", "=1+1"], "note": ["kept", "@all"]})), end="")
    change,note
    -1,kept
    '=1+1,'@all
    """
    return inert_cells(frame).to_csv(index=False, sep=separator, lineterminator="\n")


def require_table_file(path: PathLike) -> None:
    """Check, before any work, that a table can be written to a file of that name.

    Raises DataError: An unknown suffix, or one whose package is not installed.
    """
    if Path(path).suffix.lower() not in {**TEXTS, **BINARY}:
        raise DataError(f"{str(path)!r} ends in neither of {', '.join([*TEXTS, *BINARY])}: choose one of these")
    require_package(path)


def require_package(path: PathLike) -> None:
    """Check that the package that a file needs is installed.

    Raises DataError: The message names the package.
    """
    package = BINARY.get(Path(path).suffix.lower())
    if package is not None and find_spec(package) is None:
        raise DataError(f'{str(path)!r} needs {package}: pip install "cvxpriv[tables]", or use a CSV file')


def write_table(path: PathLike, frame: pd.DataFrame) -> Path:
    """Write a frame without its index to a file whose suffix names the form, whole or not at all.

    Raises DataError: As for `require_table_file`; the file cannot be written.
    """
    require_table_file(path)
    suffix, file = Path(path).suffix.lower(), io.BytesIO()
    if suffix == ".xlsx":
        inert_cells(frame).to_excel(file, index=False, engine="openpyxl")
    elif suffix == ".parquet":
        frame.to_parquet(file, index=False, engine="pyarrow")
    else:
        file.write(csv_text(frame, TEXTS[suffix]).encode("utf-8"))
    return write_bytes(path, file.getvalue())


def inert_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame whose texts, names of columns included, command neither a spreadsheet nor a terminal."""
    safe = frame.copy(deep=False)
    for place, dtype in enumerate(frame.dtypes):
        if not pd.api.types.is_numeric_dtype(dtype):
            column = frame.iloc[:, place]
            safe.isetitem(place, column.astype(object).map(_inert, na_action="ignore").to_numpy())
    safe.columns = pd.Index([_inert(name) for name in frame.columns])
    return safe


def _inert(cell: object) -> object:
    if not isinstance(cell, str):
        return cell
    formula = _FORMULA.match(cell) and not _NUMBER.fullmatch(cell.strip())
    return "'" * bool(formula) + inert(cell)
