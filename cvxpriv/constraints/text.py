"""Ready constraints from text, for the command line: `ldp=1.0`, `floor=0.01`, `distortion=costs.csv:0.5`."""

import re
from collections.abc import Callable, Mapping
from typing import Literal

from numpy.typing import ArrayLike

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
    form, make = _MAKERS.get(key) or (f"{key}=NUMBER:...", lambda value: maker(outside[key])(*_numbers(value)))
    try:
        return make(value)
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


def _with_of(value: str) -> tuple[list[str], Literal["input", "private"]]:
    """Return the parts of a value, and its `of`: the last part, where that is a word for it."""
    parts = [part.strip() for part in value.split(":")]
    if parts[-1] in ("input", "private"):
        return parts[:-1], "input" if parts[-1] == "input" else "private"
    return parts, "private"


def _whole(value: str) -> int:
    if not re.fullmatch(r"\s*[0-9]+\s*", value):
        raise _Malformed
    return int(value)


def _floor(value: str) -> ReadyConstraint:
    try:
        least: float | list[list[float]] = float(value)
    except ValueError:
        if not value:
            raise _Malformed from None
        least = read_matrix(value)
    return floor(least)


def _file_and_number(make: Callable[[ArrayLike, float], ReadyConstraint]) -> Callable[[str], ReadyConstraint]:
    def made(value: str) -> ReadyConstraint:
        path, _, number = value.rpartition(":")  # the last colon: a path may hold one
        if not path:
            raise _Malformed
        bound = _number(number)
        return make(read_matrix(path), bound)

    return made


def _counted(make: Callable[..., ReadyConstraint], *counts: int) -> Callable[[str], ReadyConstraint]:
    """Return the maker of a constraint from so many numbers."""

    def made(value: str) -> ReadyConstraint:
        numbers = _numbers(value)
        if len(numbers) not in counts:
            raise _Malformed
        return make(*numbers)

    return made


def _parts(value: str, count: int) -> list[list[str]]:
    parts = [cell.split(":") for cell in value.split(",")]
    if any(len(part) != count for part in parts):
        raise _Malformed
    return parts


def _input(value: str) -> int | str:
    """Return an input by its number, or its label."""
    text = value.strip()
    if not text:
        raise _Malformed
    return _whole(text) if re.fullmatch("[0-9]+", text) else text


def _forbidden(value: str) -> ReadyConstraint:
    return forbidden([(_input(row), _whole(column)) for row, column in _parts(value, 2)])


def _fixed(value: str) -> ReadyConstraint:
    cells = [((_input(row), _whole(column)), _number(wanted)) for row, column, wanted in _parts(value, 3)]
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


def _one_number(make: Callable[..., ReadyConstraint]) -> Callable[[str], ReadyConstraint]:
    def made(value: str) -> ReadyConstraint:
        parts, of = _with_of(value)
        if len(parts) != 1:
            raise _Malformed
        return make(_number(parts[0]), of=of)

    return made


def _vulnerability(value: str) -> ReadyConstraint:
    parts, of = _with_of(value)
    if len(parts) == 1:
        return bayes_vulnerability(_number(parts[0]), of=of)
    return bayes_vulnerability(_number(parts[-1]), read_matrix(":".join(parts[:-1])), of=of)


def _information(value: str) -> ReadyConstraint:
    parts, of = _with_of(value)
    if len(parts) < 2:
        raise _Malformed
    return f_information(":".join(parts[:-1]), _number(parts[-1]), of=of)


def _fairness(value: str) -> ReadyConstraint:
    groups, _, bound = value.rpartition(":")
    return group_fairness(_number(bound), [_whole(one) for one in groups.split(",")] if groups else None)


_MAKERS: Mapping[str, tuple[str, Callable[[str], ReadyConstraint]]] = {
    "ldp": ("ldp=EPSILON or ldp=EPSILON:DELTA", _counted(local_differential_privacy, 1, 2)),
    "metric-dp": (
        "metric-dp=FILE:EPSILON",
        _file_and_number(lambda far, epsilon: metric_differential_privacy(epsilon, far)),
    ),
    "renyi": ("renyi=ORDER:EPSILON", _counted(renyi_differential_privacy, 2)),
    "lip": ("lip=EPSILON or lip=EPSILON:input", _one_number(local_information_privacy)),
    "pointwise-leakage": ("pointwise-leakage=NATS or pointwise-leakage=NATS:input", _one_number(pointwise_leakage)),
    "vulnerability": ("vulnerability=BOUND, or with a FILE of gains FILE:BOUND; :input at the end", _vulnerability),
    "f-information": ("f-information=DIVERGENCE:BOUND or DIVERGENCE:BOUND:input", _information),
    "fairness": ("fairness=BOUND or fairness=0,0,1:BOUND (the group of each input)", _fairness),
    "output": ("output=P:P:... (of each output)", lambda value: output_marginal(_numbers(value))),
    "tv": ("tv=BOUND", lambda value: total_variation_to_prior(_number(value))),
    "mean-tv": ("mean-tv=BOUND", lambda value: total_variation_to_prior(_number(value), average=True)),
    "maximal-leakage": ("maximal-leakage=NATS", lambda value: maximal_leakage(_number(value))),
    "distortion": ("distortion=FILE:BOUND", _file_and_number(expected_distortion)),
    "floor": ("floor=VALUE or floor=FILE", _floor),
    "forbidden": ("forbidden=INPUT:OUTPUT,... (an input by number, or by label: smoker|old:2)", _forbidden),
    "fixed": ("fixed=INPUT:OUTPUT:VALUE,...", _fixed),
    "symmetric": ("symmetric=1,0,2:1,0 (where each input and each output goes)", _symmetric),
    "monotone": ("monotone or monotone=decreasing", _monotone),
}

#: The names of all constraints with the form of their text.
FORMS: Mapping[str, str] = {name: form for name, (form, _) in _MAKERS.items()}

#: The functions of `cvxpriv.constraints` that they call, where the name is another.
FUNCTIONS: Mapping[str, str] = {
    "ldp": "local_differential_privacy",
    "metric-dp": "metric_differential_privacy",
    "renyi": "renyi_differential_privacy",
    "lip": "local_information_privacy",
    "pointwise-leakage": "pointwise_leakage",
    "vulnerability": "bayes_vulnerability",
    "f-information": "f_information",
    "fairness": "group_fairness",
    "output": "output_marginal",
    "tv": "total_variation_to_prior",
    "mean-tv": "total_variation_to_prior",
    "maximal-leakage": "maximal_leakage",
    "distortion": "expected_distortion",
}
