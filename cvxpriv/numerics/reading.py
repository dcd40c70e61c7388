"""Reading what a caller passes as numbers: exact doubles, or a typed error that says what is wrong with it."""

from __future__ import annotations

import numbers
import warnings
from decimal import Decimal
from typing import Any

import numpy as np

from cvxpriv.errors import CvxprivError, DataError
from cvxpriv.numerics.arrays import Array

__all__ = ["is_missing", "real_numbers"]

EXACT = 2**53
"""Whole numbers beyond it are not all doubles."""


def real_numbers(values: object, argument: str, error: type[CvxprivError] = DataError) -> Array:
    """Return a copy as an array of doubles that are the numbers given.

    Parameters
    ----------
    values : array-like
    argument : str
        What messages call it.
    error : type of CvxprivError
        What is raised.

    Returns
    -------
    array
        Infinities and not-a-numbers pass: the caller says what range it expects.

    Raises
    ------
    DataError
        Or the error asked for: ragged or endless nesting, masked or missing entries, texts, dates, complex numbers,
        objects, whole numbers that no double holds.

    Examples
    --------
    >>> real_numbers([[1, 2.5]], "table")
    array([[1. , 2.5]])
    >>> real_numbers([1 + 2j], "rates")
    Traceback (most recent call last):
    cvxpriv.errors.DataError: rates holds complex numbers: expected real ones; pass the part that is meant
    """
    array = _as_array(values, argument, error)
    if np.ma.isMaskedArray(values) and np.ma.getmaskarray(values).any():
        raise error(f"{argument} has masked entries: expected a number in each; fill them, or leave them out")
    kind = array.dtype.kind
    if kind == "O":
        return _of_objects(array, argument, error)
    wrong = {"c": "complex numbers", "m": "spans of time", "M": "dates", "U": "texts", "S": "bytes", "V": "records"}
    if kind not in "biuf":
        remedy = "pass the part that is meant" if kind == "c" else "turn them into numbers first"
        raise error(
            f"{argument} holds {wrong.get(kind, f'entries of type {array.dtype}')}: expected real ones; {remedy}"
        )
    if kind in "iu" and array.size and max(int(array.max()), -int(array.min())) > EXACT:
        _require_exact(array, argument, error)
    with np.errstate(over="ignore"):  # a longer float beyond the doubles is inf
        return np.array(array, dtype=np.float64)


def is_missing(value: object) -> bool:
    """Whether a value says that there is none: None, a not-a-number, pandas' NA and NaT.

    >>> [is_missing(value) for value in (None, float("nan"), 0, "")]
    [True, True, False, False]
    """
    if value is None or value is np.ma.masked:
        return True
    if isinstance(value, (numbers.Number, np.generic)):
        return bool(value != value)
    return type(value).__name__ in ("NAType", "NaTType")


def _as_array(values: object, argument: str, error: type[CvxprivError]) -> np.ndarray[Any, Any]:
    if hasattr(values, "toarray"):
        raise error(f"{argument} is sparse: expected a dense array; pass {argument}.toarray()")
    if np.ma.isMaskedArray(values):
        values = np.ma.getdata(values)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numpy speaks of a masked cell, which is refused below
            return np.asarray(values)
    except Exception as cause:  # an array interface may raise anything
        raise error(f"{argument} is no array of numbers ({cause}): expected rows of as many numbers each") from cause


def _of_objects(array: np.ndarray[Any, Any], argument: str, error: type[CvxprivError]) -> Array:
    result = np.empty(array.shape)
    for place, value in np.ndenumerate(array):
        name = f"{argument}[{', '.join(map(str, place))}]" if place else argument
        if is_missing(value):
            raise error(f"{name} is missing ({value!r}): expected a number; fill it, or leave it out")
        if isinstance(value, np.timedelta64) or not isinstance(value, (numbers.Real, Decimal, np.bool_)):
            raise error(f"{name} is of type {type(value).__name__}: expected a number")
        result[place] = _double(value, name, error)
    return result


def _double(value: Any, name: str, error: type[CvxprivError]) -> float:
    try:
        number = float(value)
        exact = not isinstance(value, numbers.Integral) or abs(int(value)) <= EXACT or int(number) == value
    except (OverflowError, ValueError) as cause:
        raise error(f"{name} is beyond the doubles ({cause}): expected a number below 1.8e308") from cause
    if not exact:
        raise error(f"{name} is a whole number above 2^53 that no double holds: expected a smaller one; count in units")
    return number


def _require_exact(array: np.ndarray[Any, Any], argument: str, error: type[CvxprivError]) -> None:
    for place, value in np.ndenumerate(array):
        if abs(int(value)) > EXACT:
            _double(int(value), f"{argument}[{', '.join(map(str, place))}]", error)
