"""Row-stochastic matrices at the door: what a caller gives as P(Y|X), with every digit kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.errors import DataError, ModelError
from cvxpriv.numerics.arguments import real_numbers
from cvxpriv.numerics.arrays import Array, read_only
from cvxpriv.tables.arrays import SUM_TOLERANCE, nonnegative_matrix


def stochastic_matrix(values: ArrayLike, argument: str) -> Array:
    """Return a read-only copy as a row-stochastic matrix, with every digit as given.

    Raises DataError: Not a matrix of finite numbers >= 0, or a row whose sum differs from 1 by more than
    `SUM_TOLERANCE`.
    """
    try:
        matrix = nonnegative_matrix(values, argument)
    except DataError as error:
        raise DataError(f"{argument} is no mechanism P(Y|X), (|X|, |Y|): {error}") from error
    sums = matrix.sum(axis=1)
    wrong = np.abs(sums - 1.0) > SUM_TOLERANCE
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"{argument} is no mechanism: row {row} sums to {sums[row]:.12g} ({int(wrong.sum())} of {len(sums)} rows"
            f" are wrong), expected 1 within {SUM_TOLERANCE:g}: divide each row by its sum"
        )
    return read_only(matrix)


def given_mechanisms(init: ArrayLike, shape: tuple[int, int]) -> Array:
    """Return a user's starts as (starts, *shape), each a mechanism with every digit as given.

    Raises ModelError: They have another shape, or hold no numbers. DataError: One is no mechanism.
    """
    values = real_numbers(init, "init", ModelError)
    several = values[None] if values.ndim == 2 else values
    if several.ndim != 3 or several.shape[1:] != shape or not len(several):
        raise ModelError(f"init has shape {values.shape}, expected {shape} or (starts, {shape[0]}, {shape[1]})")
    for place, mechanism in enumerate(several):
        stochastic_matrix(mechanism, f"init[{place}]")
    return several
