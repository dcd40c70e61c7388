"""A caller's arguments: exact doubles, counts and seeds, or a typed error that names the problem."""

import csv
import numbers
import warnings
from collections.abc import Iterable
from decimal import Decimal
from itertools import islice
from typing import Any, TypeGuard

import numpy as np

from cvxpriv.errors import CvxprivError, DataError, ModelError, shown
from cvxpriv.numerics.arrays import Array

#: Most worker processes: each is a whole Python.
MOST_WORKERS = 1000
#: Most values that a caller gives one by one.
MOST_GIVEN = 1_000_000


def is_whole(value: object, least: float = -np.inf) -> TypeGuard[int]:
    """Return whether a value is a whole number, of at least so much, and no truth value.

    >>> [is_whole(value, 0) for value in (3, np.int64(0), -1, 2.0, True, None)]
    [True, True, False, False, False, False]
    """
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= least)


def require_seed(seed: object) -> None:
    """Refuse a value that is not a seed."""
    if not is_whole(seed, 0):
        raise ModelError(f"seed={shown(seed)} is no seed: pass a whole number >= 0")


def require_counts(**counts: object) -> None:
    """Refuse a value that is not a count; None passes, as the caller has a default for it.

    >>> require_counts(starts=3, max_iter=None)
    """
    for name, count in counts.items():
        if count is not None and not is_whole(count, 1):
            raise ModelError(f"{name}={shown(count)} is not a whole number >= 1")


def require_at_most(most: int, **counts: int) -> None:
    """Refuse a count above a limit.

    >>> require_at_most(10_000, points=20)
    """
    for name, count in counts.items():
        if count > most:
            raise ModelError(f"{name}={shown(count)} is above {most:,}, the most there may be: take fewer")


def few(name: str, values: Iterable[Any], most: int = MOST_GIVEN) -> list[Any]:
    """Return the items of what may be endless.

    >>> few("points", iter([0.5, 1.0]), most=10_000)
    [0.5, 1.0]
    """
    try:
        found = list(islice(values, most + 1))
    except TypeError as error:  # an array of no dimension says that it can be, and cannot
        raise ModelError(f"{name}={shown(values)} holds no values: pass a list") from error
    if len(found) > most:
        raise ModelError(f"{name} holds more than {most:,} values: take fewer")
    return found


def require_workers(n_jobs: int) -> None:
    """Check a number of worker processes."""
    if not is_whole(n_jobs) or not (n_jobs == -1 or 1 <= n_jobs <= MOST_WORKERS):
        raise ModelError(
            f"n_jobs={shown(n_jobs)} is no number of workers: pass 1 to {MOST_WORKERS:,}, or -1 for one per core"
        )


def require_callback(callback: object, n_jobs: int) -> None:
    """Refuse a callback that cannot be called."""
    require_workers(n_jobs)
    if callback is not None and (not callable(callback) or n_jobs != 1):
        raise ModelError(
            f"callback={shown(callback)} with n_jobs={shown(n_jobs)}: pass a function, and n_jobs=1 to call it here"
        )


def require_positive(**values: object) -> None:
    """Refuse a value that is not a finite number above 0."""
    for name, value in values.items():
        if not finite_double(value) > 0.0:
            raise ModelError(f"{name}={shown(value)} is not a finite number > 0")


EXACT = 2**53
"""Largest whole number up to which all are doubles."""


def real_numbers(values: object, argument: str, error: type[CvxprivError] = DataError, copy: bool = True) -> Array:
    """Return an array of doubles that are the numbers given.

    `argument`: Name of the values in messages.
    `error`: Class of the error to raise.
    `copy`: Whether the result is a copy where the values are doubles already; it lies in memory row by row.
    Returns: Infinities and not-a-numbers pass: the caller checks its own range.

    >>> real_numbers([[1, 2.5]], "table")
    array([[1. , 2.5]])
    >>> real_numbers([1 + 2j], "rates")
    Traceback (most recent call last):
    cvxpriv.errors.DataError: rates holds complex numbers: expected real ones; pass the part that is meant
    """
    array = as_array(values, argument, error)
    if np.ma.isMaskedArray(values) and np.ma.getmaskarray(values).any():
        raise error(f"{argument} has masked entries: expected a number in each; fill them, or leave them out")
    kind = array.dtype.kind
    if isinstance(values, (str, bytes, complex)):
        argument = f"{argument}={values!r}"
    if kind == "O":
        return _of_objects(array, argument, error)
    if kind == "c":
        raise error(f"{argument} holds complex numbers: expected real ones; pass the part that is meant")
    if kind not in "biuf":
        kinds = {"m": "spans of time", "M": "dates", "U": "texts", "S": "bytes", "V": "records"}
        raise error(
            f"{argument} does not hold numbers but {kinds.get(kind, array.dtype)}: turn them into numbers first"
        )
    if kind in "iu" and array.size and max(int(array.max()), -int(array.min())) > EXACT:
        for place, value in np.ndenumerate(array):
            if abs(int(value)) > EXACT:
                _double(int(value), f"{argument}[{', '.join(map(str, place))}]", error)
    with np.errstate(over="ignore"):  # a longer float beyond the doubles is inf
        return np.array(array, dtype=np.float64, order="C") if copy else np.asarray(array, dtype=np.float64)


def real_number(value: object, argument: str, expected: str) -> float:
    """Return one finite number as a double.

    >>> real_number("1", "rate", "a fraction of H(X)")
    Traceback (most recent call last):
    cvxpriv.errors.ModelError: rate='1' is not a finite number: pass a fraction of H(X)
    """
    if not np.isnan(number := finite_double(value)):
        return number
    huge = isinstance(value, int) and not isinstance(value, bool)
    shown = "a whole number beyond the doubles" if huge else repr(value)
    raise ModelError(f"{argument}={shown} is not a finite number: pass {expected}")


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a number of Python's or numpy's, and no truth value.

    >>> [is_number(value) for value in (1, np.float32(0.5), float("nan"), True, "1", None)]
    [True, True, True, False, False, False]
    """
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def finite_double(value: object) -> float:
    """Return a number as a double; NaN where it is none, not real, or beyond the doubles.

    >>> finite_double(2), finite_double(10**400), finite_double(True)
    (2.0, nan, nan)
    """
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if not isinstance(value, (numbers.Real, Decimal)) or isinstance(value, (bool, np.timedelta64)):
        return float("nan")
    try:
        number = float(value)
    except (OverflowError, ValueError):
        return float("nan")
    return number if np.isfinite(number) else float("nan")


def is_missing(value: object) -> bool:
    """Return whether a value stands for a missing one: None, a not-a-number, pandas' NA and NaT.

    >>> [is_missing(value) for value in (None, float("nan"), 0, "")]
    [True, True, False, False]
    """
    if value is None or value is np.ma.masked:
        return True
    if isinstance(value, Decimal):  # a signalling one refuses to be compared
        return value.is_nan()
    if isinstance(value, (numbers.Number, np.generic)):
        return bool(value != value)
    return type(value).__name__ in ("NAType", "NaTType")


def as_array(values: object, argument: str, error: type[CvxprivError] = DataError) -> np.ndarray[Any, Any]:
    """Return an array of whatever the values are."""
    if hasattr(values, "toarray"):
        raise error(f"{argument} is sparse: expected a dense array; pass {argument}.toarray()")
    if np.ma.isMaskedArray(values):
        values = np.ma.getdata(values)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numpy speaks of a masked cell, which is refused below
            return np.asarray(values)
    except Exception as cause:  # an array interface may raise anything
        raise error(f"{argument} does not hold numbers ({cause}): expected rows of as many numbers each") from cause


def _of_objects(array: np.ndarray[Any, Any], argument: str, error: type[CvxprivError]) -> Array:
    result = np.empty(array.shape)
    for place, value in np.ndenumerate(array):
        name = f"{argument}[{', '.join(map(str, place))}]" if place else argument
        if is_missing(value):
            raise error(f"{name} is missing ({shown(value)}): expected a number; fill it, or leave it out")
        if isinstance(value, np.timedelta64) or not isinstance(value, (numbers.Real, Decimal, np.bool_)):
            raise error(f"{name} is no number but of type {type(value).__name__}: expected numbers")
        result[place] = _double(value, name, error)
    return result


def _double(value: Any, name: str, error: type[CvxprivError]) -> float:
    try:
        number = float(value)
        exact = not isinstance(value, numbers.Integral) or abs(int(value)) <= EXACT or int(number) == value
    except (OverflowError, ValueError) as cause:
        raise error(f"{name} is beyond the doubles ({cause}): expected a number below 1.8e308") from cause
    if number == 0.0 and value != 0:
        raise error(f"{name} is too near to 0 for a double: expected 0 or a number of at least 5e-324")
    if not exact:
        raise error(f"{name} is a whole number above 2^53 that no double holds: expected a smaller one; count in units")
    return number


def names_in(text: str) -> tuple[str, ...]:
    """Return the names in a text, separated by commas; quotes hold a name that contains one, as in a CSV file.

    >>> names_in('age, "height, cm"')
    ('age', 'height, cm')
    """
    names = tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True), []))
    if not names or "" in names:
        raise DataError(f"{text!r} holds an empty name: give names parted by commas, such as age,sex")
    return names
