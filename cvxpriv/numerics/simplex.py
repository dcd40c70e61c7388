"""Simplices: the nearest point of the simplex of distributions, a grid over it, and cells that are split further.

Cells stand on the last axis, so that every operation on them is one pass over long vectors: ``vertices[a, i, n]`` is
coordinate i of vertex a of cell n. Vertices of the unit simplex have dyadic coordinates for ever: their middles are
exact in doubles down to edges of length 1e-15, and the two halves of a cell cover it without a gap.
"""

from functools import cache, lru_cache
from itertools import combinations

import numpy as np

from cvxpriv.numerics.arrays import Array, IntArray

SMALLEST = 1e-12
"""A coordinate that is everywhere below this counts as this."""


def projected_rows(rows: Array, floor: float = 0.0) -> Array:
    """Return the nearest rows, (..., n), that are at least `floor`, which is at most 1/n, and sum to 1.

    >>> projected_rows(np.array([0.9, 0.5, -2.0])).round(12).tolist()
    [0.7, 0.3, 0.0]
    """
    size = rows.shape[-1]
    # Constants do not move a row's projection, and entries more than 1 below the largest end at the floor: with both
    # taken out, the cumulative sums stay exact for rows of any size.
    shifted = np.maximum(rows - rows.max(axis=-1, keepdims=True), -2.0)
    falling = -np.sort(-shifted, axis=-1)
    excess = np.cumsum(falling, axis=-1) - (1.0 - size * floor)
    kept = (falling * np.arange(1, size + 1) > excess).sum(axis=-1, keepdims=True)
    kept = np.maximum(kept, 1)  # floor n = 1 keeps nothing by rounding
    level = np.take_along_axis(excess, kept - 1, axis=-1) / kept
    return np.asarray(np.maximum(shifted - level, 0.0) + floor)


def simplex_grid(size: int, parts: int) -> Array:
    """Return the distributions on `size` symbols whose entries are multiples of 1/parts, (size, n).

    >>> simplex_grid(2, 2).tolist()
    [[0.0, 0.5, 1.0], [1.0, 0.5, 0.0]]
    """
    bars = np.array(list(combinations(range(parts + size - 1), size - 1)), dtype=int)
    ends = np.hstack([np.full((len(bars), 1), -1), bars, np.full((len(bars), 1), parts + size - 1)])
    return np.asarray((np.diff(ends, axis=1) - 1).T / parts)


@lru_cache(maxsize=8)
def edge_pairs(size: int) -> tuple[IntArray, IntArray]:
    """Return the first and second vertex of every edge of a simplex with `size` vertices, read-only.

    >>> edge_pairs(3)[1]
    array([1, 2, 2])
    """
    first, second = np.triu_indices(size, 1)
    first.flags.writeable = second.flags.writeable = False
    return first, second


@cache
def parts_of_unit(size: int, count: int) -> Array:
    """Return the unit simplex with `size` vertices in `count` parts, a power of two, (size, size, count).

    >>> parts_of_unit(2, 2)[0]
    array([[1. , 0.5],
           [0. , 0.5]])
    """
    parts = np.eye(size)[:, :, None]
    while parts.shape[2] < count:
        parts, _ = bisect(parts)
    return parts


def longest_edges(vertices: Array) -> tuple[IntArray, IntArray]:
    """Return the two vertices of each cell's longest edge, (n,) each; of ties the first.

    A square counts divided by the largest value of its coordinate in the cell. That is the geometry of entropies: where
    a function bends like 1/x at the boundary, cells flat along it are enough.

    `vertices`: (vertices, coordinates, n).
    """
    first, second = edge_pairs(len(vertices))
    scale = np.maximum(vertices.max(axis=0), SMALLEST)
    squares = np.stack(
        [np.sum((vertices[a] - vertices[b]) ** 2 / scale, axis=0) for a, b in zip(first, second, strict=True)]
    )
    longest = squares.argmax(axis=0)
    return first[longest], second[longest]


def bisect(vertices: Array) -> tuple[Array, Array]:
    """Split every cell at the middle of its longest edge, as `longest_edges` measures it.

    `vertices`: ``(vertices, coordinates, n)``.
    Returns `halves`, ``(vertices, coordinates, 2 n)``: The first halves of all cells, then the second halves: the
    halves of cell n of k are n and n + k. `middle`, ``(coordinates, n)``: The only new vertex of each cell.

    >>> halves, middle = bisect(parts_of_unit(2, 1))
    >>> middle[:, 0]
    array([0.5, 0.5])
    """
    first, second = longest_edges(vertices)
    here = np.arange(vertices.shape[2])
    middle: Array = 0.5 * (vertices[first, :, here] + vertices[second, :, here]).T
    halves = np.concatenate([vertices, vertices], axis=2)
    halves[second, :, here] = middle.T
    halves[first, :, here + len(here)] = middle.T
    return halves, middle
