"""Text in columns: numbers to four significant digits, tables that stay readable in 80 to 100 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from cvxpriv.reports.formatting import DIGITS, format_number

WIDTH = 96
"""Length of the longest line of a paragraph."""
_ASCII = str.maketrans({"−": "-", "–": "-", "∞": "inf"})


def ascii_text(text: str) -> str:
    """Return a text without the signs that some terminals lack.

    >>> ascii_text("from −1 to ∞")
    'from -1 to inf'
    """
    return text.translate(_ASCII)


def number(value: float, digits: int = DIGITS) -> str:
    """Return a number as `cvxpriv.reports.formatting` writes it, in plain ASCII.

    >>> [number(x) for x in (0.6, 1.23456, 1.234e-5, -2.0, float("nan"))]
    ['0.6000', '1.235', '1.234e-5', '-2.000', '-']
    """
    return ascii_text(format_number(value, digits))


def residual(value: float) -> str:
    """Return a residual as text, by its size alone.

    >>> [residual(x) for x in (3.2e-9, 0.0, float("nan"))]
    ['3e-9', '0', '-']
    """
    return number(value, 1)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], right: str = "", indent: str = "  ") -> str:
    """Lay out texts in aligned columns, two blanks apart.

    `head`: Names of the columns; empty for a table without a head.
    `right`: One letter a column: ``r`` puts it flush right, anything else flush left. Columns without a letter are
    left.

    >>> print(table(["block", "gap"], [["u", "3e-09"], ["q", "0"]], "lr", indent=""))
    block    gap
    u      3e-09
    q          0
    """
    lines = [list(head), *map(list, rows)] if head else [list(row) for row in rows]
    if not lines:
        return ""
    widths = [max(_width(line[column]) for line in lines) for column in range(len(lines[0]))]
    sides = right.ljust(len(widths))
    return "\n".join(
        indent
        + "  ".join(
            text.rjust(width) if side == "r" else text.ljust(width)
            for text, width, side in zip(line, widths, sides, strict=False)
        ).rstrip()
        for line in lines
    )


def paragraph(text: str, indent: str = "  ", hanging: str | None = None) -> str:
    """Break a text into lines of at most `WIDTH` columns.

    >>> print(paragraph("one sentence", indent="> "))
    > one sentence
    """
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent if hanging is None else hanging,
        break_on_hyphens=False,
        break_long_words=False,
    )


def _width(text: str) -> int:
    """Return the width of a text's first line; those below it bring their own indent."""
    return len(text.partition("\n")[0])
