"""Ready constraints from text, for the command line: `ldp=1.0`, `floor=0.01`, `distortion=costs.csv:0.5`."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cvxpriv.constraints.cells import fixed, floor, forbidden
from cvxpriv.constraints.documents import GROUP, maker
from cvxpriv.constraints.inference import (
    bayes_vulnerability,
    f_information,
    group_fairness,
    local_information_privacy,
    pointwise_leakage,
)
from cvxpriv.constraints.order import metric_differential_privacy, monotone, renyi_differential_privacy, symmetric
from cvxpriv.constraints.privacy import local_differential_privacy, maximal_leakage, total_variation_to_prior
from cvxpriv.constraints.ready import ReadyConstraint
from cvxpriv.constraints.utility import expected_distortion, output_marginal
from cvxpriv.errors import DataError, ModelError, shown, suggest
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import extensions
from cvxpriv.tables.matrix_files import read_matrix


@door
def parse(text: str) -> ReadyConstraint:
    """Return the constraint that a text describes; `FORMS` lists the forms.

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
    >>> parse("forbidden=0:1,2:0"), parse("forbidden=smoker|old:2")
    (forbidden([(0, 1), (2, 0)]), forbidden([('smoker|old', 2)]))
    """
    if not isinstance(text, str):
        raise ModelError(f"constraint={shown(text)} is no text: write, for example, 'ldp=1.0'")
    name, _, value = (part.strip() for part in text.partition("="))
    key = name.lower().replace("_", "-")
    outside = {one.replace("_", "-"): one for one in extensions(GROUP)}
    if key not in _MAKERS and key not in outside:
        raise ModelError(f"constraint={text!r}: {name!r} is not a constraint; {suggest(key, [*_MAKERS, *outside])}")
    form, make, read = _MAKERS.get(key) or (f"{key}=NUMBER:...", maker(outside[key]), _numbers)
    try:
        return make(*read(value))
    except _Malformed:
        raise ModelError(f"constraint={text!r} cannot be read: write {form}") from None
    except (ModelError, DataError) as error:
        raise type(error)(f"constraint={text!r}: {error}") from error


class _Malformed(Exception):
    """The text of a value does not have the required form."""


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise _Malformed from None


def _numbers(value: str) -> list[float]:
    return [_number(one) for one in value.split(":")] if value else []


def _one_or_two(value: str) -> list[float]:
    numbers = _numbers(value)
    if len(numbers) not in (1, 2):
        raise _Malformed
    return numbers


def _two(value: str) -> list[float]:
    return [_number(one) for one in _split(value, ":", 2)]


def _split(value: str, separator: str, count: int) -> list[str]:
    parts = value.split(separator)
    if len(parts) != count:
        raise _Malformed
    return parts


def _whole(value: str) -> int:
    if not re.fullmatch(r"\s*[0-9]+\s*", value):
        raise _Malformed
    return int(value)


def _wholes(value: str) -> list[int]:
    return [_whole(one) for one in value.split(",")]


def _input(value: str) -> int | str:
    """Return an input by its number, or its label."""
    text = value.strip()
    if not text:
        raise _Malformed
    return _whole(text) if re.fullmatch("[0-9]+", text) else text


def _floor(value: str) -> list[Any]:
    try:
        return [float(value)]
    except ValueError:
        if not value:
            raise _Malformed from None
        return [read_matrix(value)]


def _file_and_number(value: str) -> list[Any]:
    path, _, number = value.rpartition(":")  # the last colon: a path may hold one
    if not path:
        raise _Malformed
    bound = _number(number)
    return [read_matrix(path), bound]


def _with_of(value: str) -> tuple[str, float, str]:
    """Return what stands before the last number of a value, that number, and `of`: a word for it at the end."""
    rest, colon, of = value.rpartition(":")
    rest, of = (rest, of.strip()) if colon and of.strip() in ("input", "private") else (value, "private")
    before, _, number = rest.rpartition(":")
    return before.strip(), _number(number), of


def _number_of(value: str) -> tuple[float, str]:
    before, number, of = _with_of(value)
    if before:
        raise _Malformed
    return number, of


def _vulnerability(value: str) -> list[Any]:
    path, bound, of = _with_of(value)
    return [bound, read_matrix(path) if path else None, of]


def _information(value: str) -> tuple[str, float, str]:
    if not (found := _with_of(value))[0]:
        raise _Malformed
    return found


def _fairness(value: str) -> list[Any]:
    groups, _, bound = value.rpartition(":")
    return [_number(bound), _wholes(groups) if groups else None]


def _fixed(value: str) -> list[Any]:
    cells = [_split(cell, ":", 3) for cell in value.split(",")]
    values = {(_input(row), _whole(column)): _number(wanted) for row, column, wanted in cells}
    if len(values) < len(cells):
        raise _Malformed
    return [values]


def _forbidden(value: str) -> list[Any]:
    cells = [_split(cell, ":", 2) for cell in value.split(",")]
    return [[(_input(row), _whole(column)) for row, column in cells]]


def _symmetric(value: str) -> list[Any]:
    inputs, colon, outputs = value.partition(":")
    if not colon:
        raise _Malformed
    return [_wholes(inputs), _wholes(outputs)]


def _monotone(value: str) -> list[Any]:
    if value not in ("", "increasing", "decreasing"):
        raise _Malformed
    return [value != "decreasing"]


#: By name the form of a text, the function that makes the constraint, and one that reads its arguments.
_MAKERS: Mapping[str, tuple[str, Callable[..., ReadyConstraint], Callable[[str], Sequence[Any]]]] = {
    "ldp": ("ldp=EPSILON or ldp=EPSILON:DELTA", local_differential_privacy, _one_or_two),
    "metric-dp": ("metric-dp=FILE:EPSILON", metric_differential_privacy, lambda value: _file_and_number(value)[::-1]),
    "renyi": ("renyi=ORDER:EPSILON", renyi_differential_privacy, _two),
    "lip": ("lip=EPSILON or lip=EPSILON:input", local_information_privacy, _number_of),
    "pointwise-leakage": (
        "pointwise-leakage=NATS or pointwise-leakage=NATS:input",
        pointwise_leakage,
        _number_of,
    ),
    "vulnerability": (
        "vulnerability=BOUND, or with a FILE of gains FILE:BOUND; :input at the end",
        bayes_vulnerability,
        _vulnerability,
    ),
    "f-information": ("f-information=DIVERGENCE:BOUND or DIVERGENCE:BOUND:input", f_information, _information),
    "fairness": ("fairness=BOUND or fairness=0,0,1:BOUND (the group of each input)", group_fairness, _fairness),
    "output": ("output=P:P:... (of each output)", output_marginal, lambda value: [_numbers(value)]),
    "tv": ("tv=BOUND", total_variation_to_prior, lambda value: [_number(value)]),
    "mean-tv": ("mean-tv=BOUND", total_variation_to_prior, lambda value: [_number(value), True]),
    "maximal-leakage": ("maximal-leakage=NATS", maximal_leakage, lambda value: [_number(value)]),
    "distortion": ("distortion=FILE:BOUND", expected_distortion, _file_and_number),
    "floor": ("floor=VALUE or floor=FILE", floor, _floor),
    "forbidden": (
        "forbidden=INPUT:OUTPUT,... (an input by number, or by label: smoker|old:2)",
        forbidden,
        _forbidden,
    ),
    "fixed": ("fixed=INPUT:OUTPUT:VALUE,...", fixed, _fixed),
    "symmetric": ("symmetric=1,0,2:1,0 (where each input and each output goes)", symmetric, _symmetric),
    "monotone": ("monotone or monotone=decreasing", monotone, _monotone),
}

#: The names of all constraints with the form of their text, and with the function that each calls.
FORMS: Mapping[str, str] = {name: form for name, (form, *_) in _MAKERS.items()}
FUNCTIONS: Mapping[str, str] = {name: make.__name__ for name, (_, make, _) in _MAKERS.items()}
