"""Doors of public functions: what fails because of an argument's type fails with a typed error that names it.

A function checks the range of its numbers and the columns of its tables itself. Where it fails with any other error,
the arguments are compared with their annotations, and the first that is of another type is named. A call that
succeeds pays nothing.
"""

from __future__ import annotations

import inspect
import os
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache, wraps
from itertools import islice
from numbers import Integral, Real
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin

import numpy as np

from cvxpriv.errors import CvxprivError, DataError, ModelError, shown
from cvxpriv.numerics.arguments import as_array, real_numbers
from cvxpriv.numerics.arrays import unaliased
from cvxpriv.numerics.packages import pd

Wrapped = TypeVar("Wrapped", bound=Callable[..., Any])

MOST_ITEMS = 10_000
"""Items of a sequence or mapping whose types are looked at."""
LARGEST = 2**63
"""Whole numbers below it are indices and seeds."""
OPTIONS = (bool, int, float, str, type(None), Literal)
"""Annotations of options; a wrong value of any other is an error of data."""


def door(wrapped: Wrapped) -> Wrapped:
    """Name the wrong argument where a function, or a class's constructor or public method, fails because of its type.

    >>> @door
    ... def share(parts: int, names: Sequence[str] = ()) -> float:
    ...     return 1.0 / parts
    >>> share("2")
    Traceback (most recent call last):
    cvxpriv.errors.ModelError: parts='2' is not a whole number of 64 bits: pass one
    """
    if not isinstance(wrapped, type):
        return _checked(wrapped)
    for name, member in list(vars(wrapped).items()):
        if name != "__init__" and (name.startswith("_") or isinstance(member, type)):
            continue
        if isinstance(member, (classmethod, staticmethod)):
            setattr(wrapped, name, type(member)(_checked(member.__func__)))
        elif inspect.isfunction(member) and not hasattr(member, "__wrapped__"):  # others check their arguments first
            setattr(wrapped, name, _checked(member))
    return wrapped


def _require_type(name: str, value: object, annotation: object, cause: Exception) -> None:
    """Refuse a value that is not of a type, or a frame of odd cells, by which a function failed."""
    if not _fits(name, value, annotation):
        kinds = set(_members(annotation))
        error = ModelError if kinds & {*OPTIONS, *map(get_origin, kinds)} & set(OPTIONS) else DataError
        raise error(f"{name}={shown(value)} is not {_described(annotation)}: pass one") from cause
    if isinstance(value, pd.DataFrame):
        _require_cells(name, value, cause)


def _require_cells(name: str, frame: pd.DataFrame, cause: Exception) -> None:
    """Refuse cells that pandas cannot read or tell apart: lists, sets, signalling NaN, whole numbers beyond doubles."""
    for column, cells in frame.items():
        try:
            pd.to_numeric(cells.dropna(), errors="coerce")
            pd.factorize(cells)
            "".join(map(str, cells)).encode()
        except Exception as error:  # of cells of any class
            said = f"column {shown(column)} of {name} has cells that are no symbols ({error})"
            raise DataError(f"{said}: expected texts or numbers; split or drop them") from cause


def _checked(function: Wrapped) -> Wrapped:
    """Return a function that looks at its arguments where it fails."""

    @cache
    def described() -> tuple[inspect.Signature, dict[str, Any]]:
        signature = inspect.signature(function)
        scope = inspect.unwrap(function).__globals__
        return signature, {name: _evaluated(one.annotation, scope) for name, one in signature.parameters.items()}

    def given(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
        signature, annotations = described()
        try:
            values = signature.bind(*args, **kwargs).arguments
        except TypeError:  # the call has arguments that the function has not
            return
        for name, value in values.items():
            kind = signature.parameters[name].kind
            if kind is not inspect.Parameter.VAR_KEYWORD:
                for one in value if kind is inspect.Parameter.VAR_POSITIONAL else (value,):
                    yield name, one, annotations[name]

    @wraps(function)
    def opened(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except CvxprivError:
            raise
        except Exception as error:
            for name, value, annotation in given(args, kwargs):
                _require_type(name, value, annotation, error)
            if isinstance(error, (MemoryError, RecursionError)):
                said = "out of memory" if isinstance(error, MemoryError) else "nested too deeply"
                raise DataError(f"{said}: {error}; pass less data") from error
            raise

    return cast(Wrapped, opened)


def _evaluated(annotation: Any, scope: dict[str, Any]) -> Any:
    """Return an annotation as an object; Any where a name is imported for type checkers alone."""
    if annotation is inspect.Parameter.empty:
        return Any
    if not isinstance(annotation, str):
        return annotation
    try:
        return _evaluated(eval(annotation, scope), scope)  # the module's own text, as `typing` evaluates it
    except (NameError, TypeError):
        return Any


def _members(annotation: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the annotation alone."""
    annotation = unaliased(annotation)
    if get_origin(annotation) is Annotated:
        return _members(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return tuple(member for one in get_args(annotation) for member in _members(one))
    return (type(None) if annotation is None else annotation,)


def _fits(name: str, value: object, annotation: Any) -> bool:
    members = _members(annotation)
    if any(isinstance(one, (str, TypeVar)) or one is Any or one is object for one in members):
        return True
    if any(getattr(get_origin(one) or one, "_is_protocol", False) for one in members):
        if any(get_origin(one) is not None and one.__module__ == "numpy._typing._array_like" for one in members):
            as_array(value, name)
        return True  # array-likes, and other things that are known by what they can do
    if any((get_origin(one) or one) is os.PathLike for one in members):
        if isinstance(value, (str, os.PathLike)):
            return _is_path(value)
        members = tuple(one for one in members if one is not str)
    return any(_is(name, value, one) for one in sorted(members, key=_is_array))


def _is_path(value: str | os.PathLike[str]) -> bool:
    try:
        return b"\0" not in os.fsencode(value)
    except (UnicodeError, TypeError):
        return False


def _is_array(kind: object) -> bool:
    return get_origin(kind) is np.ndarray


def _is(name: str, value: Any, kind: Any) -> bool:
    """Return whether a value is of one kind, which is no union."""
    origin, inner = get_origin(kind) or kind, get_args(kind)
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in inner)
    if origin in (bool, int, float, str):
        return _is_scalar(value, origin)
    if _is_array(kind):
        real_numbers(value, name, copy=False)
        return True
    if origin is Callable:
        return callable(value)
    if not isinstance(origin, type):
        return True
    if origin is tuple or origin in (Sequence, list):
        return _are_items(name, value, inner, fixed=origin is tuple and Ellipsis not in inner)
    if issubclass(origin, Mapping):
        return isinstance(value, Mapping) and (not inner or _is_mapping(name, value, inner))
    return isinstance(value, origin)


def _is_scalar(value: Any, kind: type) -> bool:
    if kind is bool:
        return isinstance(value, (bool, np.bool_))
    if kind is str:
        return isinstance(value, str) and not any("\ud800" <= one <= "\udfff" for one in value)
    if isinstance(value, (bool, np.bool_)):
        return False
    if kind is int:
        return isinstance(value, Integral) and -LARGEST <= int(value) < LARGEST
    if not isinstance(value, Real):
        return False
    try:
        return not np.isnan(float(value))
    except (OverflowError, ValueError, TypeError):
        return False


def _are_items(name: str, value: Any, inner: tuple[Any, ...], fixed: bool) -> bool:
    """Return whether a value is a sequence of items of a type; of a text, of types of each place."""
    if not all(hasattr(value, part) for part in ("__len__", "__getitem__", "__iter__")):
        return False
    if isinstance(value, (Mapping, np.ma.MaskedArray)) or getattr(value, "ndim", 1) != 1:
        return False
    if isinstance(value, (str, bytes)) and inner != (str,):
        return False
    if not inner:
        return True
    if fixed:
        return len(value) == len(inner) and all(_fits(name, *one) for one in zip(value, inner, strict=True))
    return all(_fits(name, one, _or_number(inner[0])) for one in islice(value, MOST_ITEMS))


def _or_number(item: Any) -> Any:
    """Return what an item may be: a name may be a whole number, as pandas has it for columns without names."""
    return str | int if item is str else item


def _is_mapping(name: str, value: Mapping[Any, Any], inner: tuple[Any, ...]) -> bool:
    some = islice(value.items(), MOST_ITEMS)
    return all(_fits(name, key, _or_number(inner[0])) and _fits(name, one, inner[1]) for key, one in some)


_WORDS: dict[Any, str] = {
    bool: "True or False",
    int: "a whole number of 64 bits",
    float: "a number",
    str: "a text",
    type(None): "None",
    np.ndarray: "an array",
    Callable: "a function",
    Iterable: "an iterable",
    Mapping: "a mapping",
    Sequence: "a sequence",
    Set: "a set",
    os.PathLike: "a path that can be a file's",
}


def _described(annotation: Any) -> str:
    """Return a type in words.

    >>> _described(int | None), _described(Mapping[str, float]), _described(Sequence[str])
    ('a whole number of 64 bits or None', 'a mapping of text to number', 'a sequence of text')
    """
    words = dict.fromkeys(_in_words(one) for one in _members(annotation))
    if _WORDS[os.PathLike] in words:
        words.pop("a text", None)
    return " or ".join(words)


def _in_words(kind: Any) -> str:
    origin, inner = get_origin(kind) or kind, [one for one in get_args(kind) if one is not Ellipsis]
    if origin is Literal:
        return " or ".join(map(repr, inner))
    base = "a sequence" if origin in (tuple, list) else _WORDS.get(origin, "")
    if not base:
        return f"of type {getattr(origin, '__name__', origin)}"
    if not inner or origin not in (tuple, list, Sequence, Iterable, Mapping):
        return base
    bare = [_described(one).removeprefix("a ").removeprefix("an ") for one in inner]
    if origin is Mapping:
        return f"{base} of {bare[0]} to {bare[1]}"
    return f"{base} of {bare[0]}" if len(set(bare)) == 1 else base
