"""Ready constraints from text, for the command line: `ldp=1.0`, `floor=0.01`, `distortion=costs.csv:0.5`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from cvxpriv.constraints.cells import fixed, floor, forbidden
from cvxpriv.constraints.order import monotone, symmetric
from cvxpriv.constraints.privacy import local_differential_privacy, maximal_leakage, total_variation_to_prior
from cvxpriv.constraints.ready import ReadyConstraint
from cvxpriv.constraints.utility import expected_distortion
from cvxpriv.errors import DataError, ModelError, suggest
from cvxpriv.reports.files import read_text

__all__ = ["FORMS", "parse"]


def parse(text: str) -> ReadyConstraint:
    """Return the constraint that a text names; `FORMS` lists the forms.

    Raises
    ------
    ModelError
        There is no such constraint (the nearest name is suggested), or its value is none.
    DataError
        A file cannot be read, or does not hold a matrix.

    Examples
    --------
    >>> parse("ldp=1.0")
    local_differential_privacy(epsilon=1)
    >>> parse("forbidden=0:1,2:0")
    forbidden([(0, 1), (2, 0)])
    """
    if not isinstance(text, str):
        raise ModelError(f"constraint={text!r} is no text: write, for example, 'ldp=1.0'")
    name, _, value = (part.strip() for part in text.partition("="))
    key = name.lower().replace("_", "-")
    if key not in _MAKERS:
        raise ModelError(f"constraint={text!r}: {name!r} is not a constraint; {suggest(key, _MAKERS)}")
    form, make = _MAKERS[key]
    try:
        return make(value)
    except _Malformed:
        raise ModelError(f"constraint={text!r} cannot be read: write {form}") from None
    except (ModelError, DataError) as error:
        raise type(error)(f"constraint={text!r}: {error}") from error


class _Malformed(Exception):
    """A value that does not have the form asked for."""


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise _Malformed from None


def _whole(value: str) -> int:
    if not re.fullmatch(r"\s*[0-9]+\s*", value):
        raise _Malformed
    return int(value)


def _matrix(path: str) -> list[list[float]]:
    """Return a matrix from a file: a row a line, numbers apart by commas, semicolons, tabs or blanks."""
    lines = [(number, line) for number, line in enumerate(read_text(path).splitlines(), start=1) if line.strip()]
    matrix: list[list[float]] = []
    for number, line in lines:
        try:
            row = [float(entry) for entry in re.split(r"\s*[,;]\s*|\s+", line.strip())]
        except ValueError:
            raise DataError(
                f"path={path!r}, line {number}: {line.strip()!r} is no row of numbers; write one row of the "
                "matrix a line, without headings"
            ) from None
        if matrix and len(row) != len(matrix[0]):
            raise DataError(f"path={path!r}, line {number}: {len(row)} numbers, {len(matrix[0])} in the first row")
        matrix.append(row)
    return matrix


def _floor(value: str) -> ReadyConstraint:
    try:
        least: float | list[list[float]] = float(value)
    except ValueError:
        if not value:
            raise _Malformed from None
        least = _matrix(value)
    return floor(least)


def _distortion(value: str) -> ReadyConstraint:
    path, _, bound = value.rpartition(":")  # the last colon: a path may hold one
    if not path:
        raise _Malformed
    limit = _number(bound)
    return expected_distortion(_matrix(path), limit)


def _parts(value: str, count: int) -> list[list[str]]:
    parts = [cell.split(":") for cell in value.split(",")]
    if any(len(part) != count for part in parts):
        raise _Malformed
    return parts


def _forbidden(value: str) -> ReadyConstraint:
    return forbidden([(_whole(row), _whole(column)) for row, column in _parts(value, 2)])


def _fixed(value: str) -> ReadyConstraint:
    cells = [((_whole(row), _whole(column)), _number(wanted)) for row, column, wanted in _parts(value, 3)]
    if len(dict(cells)) < len(cells):
        raise _Malformed
    return fixed(dict(cells))


def _symmetric(value: str) -> ReadyConstraint:
    inputs, colon, outputs = value.partition(":")
    if not colon:
        raise _Malformed
    return symmetric(*([_whole(one) for one in part.split(",")] for part in (inputs, outputs)))


def _monotone(value: str) -> ReadyConstraint:
    if value not in ("", "increasing", "decreasing"):
        raise _Malformed
    return monotone(value != "decreasing")


_MAKERS: Mapping[str, tuple[str, Callable[[str], ReadyConstraint]]] = {
    "ldp": ("ldp=EPSILON", lambda value: local_differential_privacy(_number(value))),
    "tv": ("tv=BOUND", lambda value: total_variation_to_prior(_number(value))),
    "mean-tv": ("mean-tv=BOUND", lambda value: total_variation_to_prior(_number(value), average=True)),
    "maximal-leakage": ("maximal-leakage=NATS", lambda value: maximal_leakage(_number(value))),
    "distortion": ("distortion=FILE:BOUND", _distortion),
    "floor": ("floor=VALUE or floor=FILE", _floor),
    "forbidden": ("forbidden=INPUT:OUTPUT,...", _forbidden),
    "fixed": ("fixed=INPUT:OUTPUT:VALUE,...", _fixed),
    "symmetric": ("symmetric=1,0,2:1,0 (where each input and each output goes)", _symmetric),
    "monotone": ("monotone or monotone=decreasing", _monotone),
}

#: Every name with the form of its text.
FORMS: Mapping[str, str] = {name: form for name, (form, _) in _MAKERS.items()}
