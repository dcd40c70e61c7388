"""An adversary's best guess of the private columns from Y and kept columns, on the rows that are to be released.

The figures of a mechanism speak of Y alone. A column that is passed on beside Y may tell more than Y does: the guess is
computed from the rows themselves, with the chances of Y and not one draw of it. It is that of somebody who knows the
rows' joint table of S, X and the kept columns. With few rows for each value of a kept column it is too high: such a
column names the row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cvxpriv.mechanisms.release import Channel
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.later import pd

MOST_GAINED = 0.02
"""Gain in the chance of a right guess from which a release has to be confirmed."""


def guesses(mechanism: Channel, frame: pd.DataFrame, keep: Sequence[str]) -> pd.DataFrame | None:
    """Return the best chance to guess the private columns from nothing, from Y, and from Y with kept columns.

    `frame`: The rows, prepared as the mechanism wants them. `keep`: The kept columns.
    Returns: One row each for nothing, Y, Y with each kept column, and Y with all: what is seen, accuracy, and gained,
    the difference to Y alone. None where the rows lack a private column, or the mechanism names none.

    >>> from cvxpriv.mechanisms.mechanism import Mechanism
    >>> from cvxpriv.tables.alphabets import Alphabet
    >>> rows = pd.DataFrame({"x": [0, 0, 1, 1], "ill": [0, 1, 0, 1], "ward": ["a", "b", "a", "b"]})
    >>> mute = Mechanism([[1.0], [1.0]], Alphabet.numbered("x", 2), private_columns=["ill"])
    >>> guesses(mute, rows, ["ward"])["accuracy"].tolist()
    [0.5, 0.5, 1.0]
    """
    private = list(mechanism.private_columns)
    if not private or any(column not in frame.columns for column in private):
        return None
    codes = mechanism.inputs.codes(frame)
    frame, codes = frame.loc[codes >= 0], codes[codes >= 0]
    if not len(frame):
        return None
    secret = _numbered(frame, private)
    alone = np.zeros(len(frame), dtype=np.int64)
    silent = np.ones((len(mechanism.inputs), 1))
    rows = [
        ("nothing", _accuracy(silent, codes, secret, alone)),
        ("Y", _accuracy(mechanism.array, codes, secret, alone)),
    ]
    sets = [[column] for column in keep] + ([list(keep)] if len(keep) > 1 else [])
    for columns in sets:
        seen = _numbered(frame, columns)
        rows.append((f"Y with {', '.join(columns)}", _accuracy(mechanism.array, codes, secret, seen)))
    found = pd.DataFrame(rows, columns=["seen", "accuracy"])
    found["gained"] = found["accuracy"] - found["accuracy"].iloc[1]
    return found


def _numbered(frame: pd.DataFrame, columns: Sequence[str]) -> NDArray[np.int64]:
    groups = frame.groupby(list(columns), sort=False, dropna=False, observed=True)
    return np.asarray(groups.ngroup(), dtype=np.int64)


def _accuracy(matrix: Array, codes: NDArray[np.int64], secret: NDArray[np.int64], seen: NDArray[np.int64]) -> float:
    """Return ``sum over y and seen of max over s of p(s, y, seen)``."""
    cells, counts = np.unique(np.stack([seen, secret, codes]), axis=1, return_counts=True)
    pairs, place = np.unique(cells[:2], axis=1, return_inverse=True)
    chances = np.zeros((pairs.shape[1], matrix.shape[1]))
    np.add.at(chances, place.ravel(), counts[:, None] * matrix[cells[2]])
    best = np.zeros((int(seen.max()) + 1, matrix.shape[1]))
    np.maximum.at(best, pairs[0], chances)
    return float(best.sum() / len(codes))
