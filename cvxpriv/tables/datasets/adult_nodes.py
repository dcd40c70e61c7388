"""Adult for learning over nodes: complete rows, one-hot, in the unit ball, split at random.

The 105 columns are the 99 values that adult.names lists for the eight categories, then the six numbers, each divided by
its largest value, so that every entry lies in [0, 1]. A row longer than 1 is shortened to 1, by itself: no row depends
on another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvxpriv.errors import DataError
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.doors import door
from cvxpriv.reports.files import PathLike
from cvxpriv.tables.datasets.adult_rows import CATEGORIES, COLUMNS, load_adult

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
