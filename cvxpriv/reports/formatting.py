"""Text for readers: numbers to four significant digits, aligned tables, and paragraphs of at most 96 columns."""

import math
import numbers
import re
import textwrap
from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, Decimal

DIGITS = 4
"""Number of significant digits."""
MISSING = "–"
"""Text that stands for an unknown value."""
PLAIN = (1e-4, 1e7)
"""Sizes between which a number is written without exponent."""

ROUNDING = 1e-12
"""Rounding error allowed in sums of a few thousand terms of size at most 1."""


def exact_zero(value: float) -> float:
    """Return 0 for a sum that is only rounding, at most `ROUNDING`.

    >>> exact_zero(3e-17), exact_zero(0.25)
    (0.0, 0.25)
    """
    return 0.0 if abs(value) <= ROUNDING else value


def is_number(value: object) -> bool:
    """Return whether a value is a number; truth values are not."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


_SHARE = re.compile(r"(?:± )?[\d.]+%")


def is_figure(value: object) -> bool:
    """Return whether a cell of a table stands flush right: a number, or a share written as a percentage.

    >>> is_figure(0.5), is_figure("64.9%"), is_figure("± 8.1%"), is_figure("95% interval")
    (True, True, True, False)
    """
    return is_number(value) or (isinstance(value, str) and _SHARE.fullmatch(value) is not None)


def format_number(value: float, digits: int = DIGITS) -> str:
    """Return a number as text with a fixed count of significant digits.

    Whole numbers of type int keep all their digits, with commas between thousands.

    >>> [format_number(v) for v in (0.5, 12.3456, 0.0001234, 1.234e-7, 32561, 0.0, float("nan"))]
    ['0.5000', '12.35', '0.0001234', '1.234e-7', '32,561', '0', '–']
    """
    if isinstance(value, numbers.Integral):
        return f"{int(value):,}"
    number = float(value)
    if math.isnan(number):
        return MISSING
    if math.isinf(number):
        return "∞" if number > 0 else "-∞"
    if number == 0:
        return "0"
    mantissa, exponent = f"{number:.{digits - 1}e}".split("e")
    power = int(exponent)
    # By the rounded value: 9.9996e-5 is written as 0.0001000.
    if not PLAIN[0] <= abs(float(f"{mantissa}e{exponent}")) < PLAIN[1]:
        return f"{mantissa}e{power}"
    return f"{number:,.{max(digits - 1 - power, 0)}f}"


def at_most(value: float, digits: int = DIGITS) -> str:
    """Return a bound that is not negative as text that is not below it, but for the rounding of a search (1e-8).

    >>> [at_most(v) for v in (0.2, 1.9999999999, 0.12341, 1.4e-6, 1e-6, 12345.0, 0.0, 5e-324, 1e300, float("inf"))]
    ['0.2', '2', '0.1235', '1.4e-6', '1e-6', '12350', '0', '4.941e-324', '1e+300', '∞']
    """
    up = Context(prec=digits, rounding=ROUND_CEILING)  # decimal: the step between least floats is no float
    rounded = float(up.create_decimal(Decimal(float(value)) * Decimal(1.0 - 1e-8)))
    if math.isinf(rounded):
        return "∞"
    text = f"{rounded:.{digits}g}"
    return format(float(text), ".0f") if 1.0 <= float(text) < 1e16 and "e" in text else re.sub(r"e-0", "e-", text)


def format_cell(value: object, digits: int = DIGITS) -> str:
    """Return a cell of a table as text: a number by `format_number`, a truth value as yes or no, nothing as a dash.

    >>> format_cell(None), format_cell(True), format_cell("CLARABEL"), format_cell((1, 0.25))
    ('–', 'yes', 'CLARABEL', '1, 0.2500')
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return MISSING
    if isinstance(value, bool) or type(value).__name__ == "bool":
        return "yes" if value else "no"
    if isinstance(value, (tuple, list)):
        return ", ".join(format_cell(part, digits) for part in value) or "none"
    if isinstance(value, numbers.Real):
        return format_number(float(value) if not isinstance(value, numbers.Integral) else int(value), digits)
    return str(value)


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
