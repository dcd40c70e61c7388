"""Text for readers: numbers to four significant digits, aligned and shaded tables, paragraphs of at most 96 columns."""

import math
import numbers
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal

import numpy as np

from cvxpriv.numerics.arrays import Array, IntArray
from cvxpriv.numerics.sizes import counted

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
    # Lines below a text's first one bring their own indent.
    widths = [max(len(line[column].partition("\n")[0]) for line in lines) for column in range(len(lines[0]))]
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


@dataclass(frozen=True, eq=False)
class Heatmap:
    """Chances by row and column, shown in per cent.

    `values`, (rows, columns): Chances, from 0 to 1.
    `rows`, `columns`: Names of rows and columns.
    `corner`: Heading of the names of rows, such as "age, sex".

    >>> shown = Heatmap(np.array([[0.996, 0.004], [0.25, 0.75]]), ["young", "old"], ["y0", "y1"], "age")
    >>> shown.cells
    [[('99', 99), ('<1', 0)], [('25', 25), ('75', 75)]]
    """

    values: Array
    rows: Sequence[str]
    columns: Sequence[str]
    corner: str
    caption: str = ""

    @property
    def cells(self) -> list[list[tuple[str, int]]]:
        """The text of each cell, and its shade from 0 to 100."""
        shades = np.clip(np.rint(100.0 * self.values), 0, 100).astype(int)
        shades = np.where((shades == 100) & (self.values < 1.0 - 1e-9), 99, shades)
        rows = zip(self.values.tolist(), shades.tolist(), strict=True)
        return [[(per_cent(value), shade) for value, shade in zip(*row, strict=True)] for row in rows]


def per_cent(chance: float) -> str:
    """Return a chance as a whole number of per cent: 0 and 100 are said of these alone, and 0 as nothing.

    >>> [per_cent(chance) for chance in (0.0, 0.002, 0.254, 0.998, 1.0)]
    ['', '<1', '25', '99', '100']
    """
    if chance <= 1e-9:
        return ""
    if chance < 0.005:
        return "<1"
    return "100" if chance >= 1.0 - 1e-9 else str(min(round(100.0 * chance), 99))


USED = 5e-3
"""Probability below which an output, for every input, is left out of a picture."""


def given_outputs(matrix: Array) -> IntArray:
    """Return the outputs that are given, in the order of the inputs they come from: what is merged is seen as a column.

    >>> given_outputs(np.array([[0.0, 0.999, 0.001], [1.0, 0.0, 0.0]])).tolist()
    [1, 0]
    """
    used = np.flatnonzero(matrix.max(axis=0) >= USED)
    centre = (np.arange(len(matrix)) @ matrix[:, used]) / matrix[:, used].sum(axis=0)
    return np.asarray(used[np.argsort(centre, kind="stable")], dtype=np.int64)


def heatmap_of(
    matrix: Array,
    rows: Sequence[str],
    corner: str,
    outputs: Sequence[str] = (),
    symbols: tuple[str, str] = ("X", "Y"),
    caption: str = "",
) -> Heatmap:
    """Return a mechanism P(Y|X) as a shaded table, in per cent.

    `matrix`: ``(|X|, |Y|)``.
    `rows`, `corner`: Labels of the inputs, and the heading of these.
    `outputs`: Labels of the outputs. By default ``y0, y1, ...``.
    `symbols`: Names of an input and of an output.

    >>> heatmap_of(np.eye(2), ["no", "yes"], "smokes").columns
    ['y0', 'y1']
    """
    given, output = symbols
    labels = list(outputs) or [f"{output.lower()}{j}" for j in range(matrix.shape[1])]
    shown = given_outputs(matrix)
    hidden = matrix.shape[1] - len(shown)
    left_out = f" Without {counted(hidden, 'output')} of P({output}|{given}) < {USED:g}." if hidden else ""
    said = f"P({output}|{given}) in per cent.{left_out}"
    return Heatmap(matrix[:, shown], rows, [labels[j] for j in shown], corner, f"{said} {caption}".strip())
