"""Two binary or scaled forms of Adult for learning: a9a, as LIBSVM distributes it, and rows over nodes.

a9a has 123 binary features in the order of adult.names: a category is one feature per value, and an unknown value sets
none. Age, fnlwgt, education-num and hours are cut into five bins, capital gain and loss into zero and more.

Over nodes the 105 columns are the 99 values that adult.names lists for the eight categories, then the six numbers, each
divided by its largest value, so that every entry lies in [0, 1]. A row longer than 1 is shortened to 1, by itself: no
row depends on another.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy import sparse

from cvxpriv.errors import DataError
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import pd
from cvxpriv.reports.files import PathLike
from cvxpriv.tables.datasets.raw_rows import CATEGORIES, COLUMNS, load_adult

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


#: Largest value of each number in the 48,842 rows: constants here, so that scaling reads no data.
LARGEST: dict[str, int] = {
    "age": 90,
    "fnlwgt": 1_490_400,
    "education-num": 16,
    "capital-gain": 99_999,
    "capital-loss": 4_356,
    "hours-per-week": 99,
}


@dataclass(frozen=True, eq=False)
class AdultNodes:
    """Adult split over nodes.

    Attributes
    ----------
    shards : list of (ndarray, (B_i, 105), ndarray, (B_i,))
        Rows and labels of each node; labels are 1 for an income above 50K, else -1. The B_i differ by at most 1.
    x_test, y_test : ndarray
    names : tuple of str
        Names of the columns.
    """

    shards: list[tuple[Array, Array]]
    x_test: Array
    y_test: Array
    names: tuple[str, ...]


@door
def load_adult_nodes(nodes: int = 5, train: int = 40_000, seed: int = 0, folder: PathLike | None = None) -> AdultNodes:
    """Return the 45,222 complete rows of Adult: `train` of them dealt to nodes at random, the others for a test.

    Parameters
    ----------
    nodes : int
    train : int
    seed : int
        Seed of the split.
    folder : path, optional
        See `load_adult`.

    Raises
    ------
    DataError
        Adult's rows are not available, or there are not so many.
    """
    rows = load_adult(folder).dropna()
    if not 1 <= nodes <= train < len(rows):
        raise DataError(f"nodes={nodes}, train={train}: expected 1 <= nodes <= train < {len(rows)}, the complete rows")
    listed = [(name, value) for name in COLUMNS[:-1] if name in CATEGORIES for value in CATEGORIES[name]]
    x = np.column_stack(
        [rows[name].to_numpy() == value for name, value in listed]
        + [rows[name].to_numpy() / most for name, most in LARGEST.items()]
    ).astype(float)
    x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1.0)
    y = np.where(rows["income"] == ">50K", 1.0, -1.0)
    order = np.random.default_rng(seed).permutation(len(rows))
    dealt = np.array_split(order[:train], nodes)
    names = (*(f"{name}={value}" for name, value in listed), *LARGEST)
    return AdultNodes([(x[part], y[part]) for part in dealt], x[order[train:]], y[order[train:]], names)
