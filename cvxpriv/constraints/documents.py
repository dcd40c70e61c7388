"""Constraints as a file keeps them: the name of the function that made them, and its arguments."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import wraps
from typing import Any, ParamSpec

import numpy as np

from cvxpriv.constraints.ready import ReadyConstraint
from cvxpriv.errors import DataError, ModelError, shown, suggest
from cvxpriv.numerics.arguments import as_array
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import extension, extensions

#: The entry points by which another package brings constraints: functions that return a `ReadyConstraint`.
GROUP = "cvxpriv.constraints"

Arguments = ParamSpec("Arguments")
_MAKERS: dict[str, Callable[..., ReadyConstraint]] = {}


def kept(make: Callable[Arguments, ReadyConstraint]) -> Callable[Arguments, ReadyConstraint]:
    """Return a function whose constraints remember how they were made; files hold its name."""
    signature, kind = inspect.signature(make), getattr(make, "__name__", "")

    @wraps(make)
    def made(*arguments: Arguments.args, **named: Arguments.kwargs) -> ReadyConstraint:
        bound = signature.bind(*arguments, **named)
        for name, value in bound.arguments.items():
            if isinstance(value, Iterator):  # it is read twice: by the function, and for the file
                bound.arguments[name] = list(value)
        return _remembering(make(*bound.args, **bound.kwargs), kind, bound)

    _MAKERS[kind] = made
    return made


def to_document(constraint: object) -> dict[str, Any]:
    """Return a constraint as plain data for a file; a function of the user's own leaves only its name.

    Examples
    --------
    >>> from cvxpriv.constraints import local_differential_privacy
    >>> to_document(local_differential_privacy(1.0))
    {'constraint': 'local_differential_privacy', 'parameters': {'epsilon': 1.0, 'delta': 0.0}}
    """
    if isinstance(constraint, ReadyConstraint) and constraint.kind:
        return {"constraint": constraint.kind, "parameters": dict(constraint.parameters)}
    return {"constraint": None, "parameters": {}}


@door
def from_document(document: Mapping[str, Any]) -> ReadyConstraint | None:
    """Return the constraint that `to_document` wrote; None for a function of the user's own.

    Raises
    ------
    DataError
        The document is of another form, or its parameters make no constraint.
    ModelError
        No such constraint is known: the package that brings it may be missing.

    Examples
    --------
    >>> from cvxpriv.constraints import fixed
    >>> from_document(to_document(fixed({(0, 1): 0.5})))
    fixed({(0, 1): 0.5})
    """
    if not isinstance(document, Mapping) or not {"constraint", "parameters"} <= set(document):
        raise DataError(f"document={shown(document)} is no constraint: expected 'constraint' and 'parameters'")
    kind, parameters = document["constraint"], document["parameters"]
    if kind is None:
        return None
    if not isinstance(kind, str) or not isinstance(parameters, Mapping):
        raise DataError(f"document={shown(document)} is no constraint: expected a name, and parameters by name")
    make = maker(kind)
    try:
        inspect.signature(make).bind(**parameters)
    except TypeError as error:
        raise DataError(f"constraint {kind!r} with parameters {', '.join(parameters)}: {error}") from error
    return make(**parameters)


def maker(kind: str) -> Callable[..., ReadyConstraint]:
    """Return the function that makes constraints of a kind, of this package or of another one."""
    if kind in _MAKERS:
        return _MAKERS[kind]
    if kind not in extensions(GROUP):
        raise ModelError(f"constraint {kind!r} is not known: {suggest(kind, [*_MAKERS, *extensions(GROUP)])}")
    make = extension(GROUP, kind)
    if not callable(make):
        raise ModelError(f"constraint {kind!r} is a {type(make).__name__}: its package must name a function")
    return _checked(kind, make)


def _checked(kind: str, make: Callable[..., object]) -> Callable[..., ReadyConstraint]:
    @wraps(make)
    def made(*arguments: object, **named: object) -> ReadyConstraint:
        constraint = make(*arguments, **named)
        if not isinstance(constraint, ReadyConstraint):
            raise ModelError(
                f"constraint {kind!r} made a {type(constraint).__name__}: it must return a ReadyConstraint"
            )
        return _remembering(constraint, kind, inspect.signature(make).bind(*arguments, **named))

    return made


def _remembering(constraint: ReadyConstraint, kind: str, bound: inspect.BoundArguments) -> ReadyConstraint:
    """Return a constraint that knows the function that made it, and the arguments."""
    bound.apply_defaults()
    return replace(constraint, kind=kind, parameters={name: _plain(one) for name, one in bound.arguments.items()})


def _plain(value: Any) -> Any:
    """Return a value as JSON holds it: arrays as lists, a mask as its cells, cells with values as triples."""
    if hasattr(value, "__array__") or isinstance(value, memoryview):  # frames and tables iterate over other things
        array = as_array(value, "a constraint's array")
        if array.dtype == object:
            return _plain(array.tolist())
        return (np.argwhere(array) if array.ndim and array.dtype == bool else array).tolist()
    if isinstance(value, Decimal | Fraction):
        return float(value)
    if isinstance(value, Mapping):
        return [[*_plain(cell), float(one)] for cell, one in value.items()]
    if isinstance(value, str | bool | int | float) or value is None:
        return value
    if hasattr(value, "formula") and hasattr(value, "name"):  # a divergence: by its name, or its line of text
        return value.formula if value.convexity != "declared" else value.name
    return [_plain(one) for one in value]
