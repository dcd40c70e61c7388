"""a9a, derived exactly from Adult: 123 binary features, as the LIBSVM collection distributes it.

Columns in the order of adult.names. A category is one feature per value, and an unknown value sets none. Age, fnlwgt,
education-num and hours are cut into five bins, capital gain and loss into zero and more.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy import sparse

from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.later import pd
from cvxpriv.reports.files import PathLike
from cvxpriv.tables.datasets.adult_rows import CATEGORIES, COLUMNS, load_adult

#: Lower edges of every bin except the first.
BINS: dict[str, tuple[int, ...]] = {
    "age": (26, 33, 41, 50),
    "fnlwgt": (106648, 158662, 196338, 259873),
    "education-num": (9, 10, 11, 13),
    "capital-gain": (1,),
    "capital-loss": (1,),
    "hours-per-week": (35, 40, 41, 48),
}


@dataclass(frozen=True, eq=False)
class A9A:
    """a9a.

    Attributes
    ----------
    x_train, x_test : scipy.sparse.csr_array, (32561, 123) and (16281, 123)
        Features of 0 or 1; at most 14 ones per row.
    y_train, y_test : ndarray
        Labels: 1 for an income above 50K, else -1.
    names : tuple of str
        Names of the features, such as `column=value`.
    """

    x_train: sparse.csr_array
    y_train: Array
    x_test: sparse.csr_array
    y_test: Array
    names: tuple[str, ...]


@door
def load_a9a(folder: PathLike | None = None) -> A9A:
    """Return a9a, derived from Adult's rows (`load_adult` describes their source).

    Raises
    ------
    DataError
        Adult's rows are not available.
    """
    sides = [load_adult(folder, part) for part in ("train", "test")]
    (x_train, names), (x_test, _) = (features(side) for side in sides)
    y_train, y_test = (np.where(side["income"] == ">50K", 1.0, -1.0) for side in sides)
    return A9A(x_train, y_train, x_test, y_test, names)


def features(rows: pd.DataFrame) -> tuple[sparse.csr_array, tuple[str, ...]]:
    """Return Adult's rows as a9a's binary features, (rows, 123), and the features' names."""
    names: list[str] = []
    columns: list[npt.NDArray[np.intp]] = []
    for name in COLUMNS[:-1]:
        if name in CATEGORIES:
            values = CATEGORIES[name]
            place = pd.Categorical(rows[name], categories=list(values)).codes.astype(np.intp)  # -1: unknown
        else:
            values = _bin_names(BINS[name])
            place = np.searchsorted(BINS[name], rows[name].to_numpy(), side="right")
        columns.append(np.where(place >= 0, place + len(names), -1))
        names.extend(f"{name}={value}" for value in values)
    index = np.stack(columns, axis=1)
    known = index >= 0
    indptr = np.concatenate([[0], np.cumsum(known.sum(axis=1))])
    matrix = sparse.csr_array((np.ones(int(known.sum())), index[known], indptr), shape=(len(rows), len(names)))
    return matrix, tuple(names)


def _bin_names(edges: tuple[int, ...]) -> tuple[str, ...]:
    if edges == (1,):
        return ("0", ">0")
    middle = (f"{low}-{high - 1}" for low, high in pairwise(edges))
    return (f"<{edges[0]}", *middle, f">={edges[-1]}")
