"""Numbers and cells as texts for readers: four significant digits, and an exponent only where it is needed."""

from __future__ import annotations

import math
import numbers

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
        return ", ".join(format_cell(part, digits) for part in value)
    if isinstance(value, numbers.Real):
        return format_number(float(value) if not isinstance(value, numbers.Integral) else int(value), digits)
    return str(value)
