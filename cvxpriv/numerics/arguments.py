"""Checks of the options that every model's `solve` takes."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy as np

from cvxpriv.errors import ModelError, shown
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.reading import finite_double, real_numbers


def numbers(name: str, values: object) -> Array:
    """Return an array of floats.

    Raises ModelError: It does not hold numbers.
    """
    return real_numbers(values, name, ModelError)


def require_seed(seed: object) -> None:
    """Refuse a value that is not a seed.

    Raises ModelError: Not a whole number >= 0.
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ModelError(f"seed={shown(seed)} is no seed: pass a whole number >= 0")


def require_counts(**counts: object) -> None:
    """Refuse a value that is not a count; None passes, as the caller has a default for it.

    Raises ModelError: Not a whole number >= 1.

    >>> require_counts(starts=3, max_iter=None)
    """
    for name, count in counts.items():
        whole = int(count) if isinstance(count, (int, np.integer)) and not isinstance(count, bool) else 0
        if count is not None and whole < 1:
            raise ModelError(f"{name}={shown(count)} is not a whole number >= 1")


def require_at_most(most: int, **counts: int) -> None:
    """Refuse a count above a limit.

    Raises ModelError: The message says the limit.

    >>> require_at_most(10_000, points=20)
    """
    for name, count in counts.items():
        if count > most:
            raise ModelError(f"{name}={shown(count)} is above {most:,}, the most there may be: take fewer")


def few(name: str, values: Iterable[Any], most: int) -> list[Any]:
    """Return the items of what may be endless.

    Raises ModelError: There are more than a limit, or the values cannot be gone through.

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


def require_positive(**values: object) -> None:
    """Refuse a value that is not a finite number above 0.

    Raises ModelError: Not a number, not finite, or not positive.
    """
    for name, value in values.items():
        if not finite_double(value) > 0.0:
            raise ModelError(f"{name}={shown(value)} is not a finite number > 0")
