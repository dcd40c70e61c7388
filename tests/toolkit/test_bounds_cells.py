"""Halves of a cell cover it exactly and nothing else."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cvxpriv.numerics.simplex import bisect, edge_pairs, longest_edges, parts_of_unit


def volumes(vertices: np.ndarray) -> np.ndarray:
    """Volumes relative to the unit simplex."""
    return np.abs(np.linalg.det(vertices.transpose(2, 0, 1)))


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_halves_have_half_the_volume_after_many_bisections(size: int) -> None:
    cells = parts_of_unit(size, 1)
    for depth in range(1, 9):
        cells, _ = bisect(cells)
        assert cells.shape == (size, size, 2**depth)
        # Volumes are products of dyadic numbers: exact but for the determinant's own rounding.
        np.testing.assert_allclose(volumes(cells), 0.5**depth, rtol=1e-12)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_every_point_is_in_one_of_the_cells(size: int) -> None:
    cells = parts_of_unit(size, 1)
    for _ in range(7):
        cells, _ = bisect(cells)
    points = np.random.default_rng(0).dirichlet(np.ones(size), 200)
    inverses = np.linalg.inv(cells.transpose(2, 1, 0))
    weights = np.einsum("nij,pj->pni", inverses, points)
    assert np.all((weights.min(axis=2) >= -1e-12).any(axis=1))


def test_middles_are_exact_down_to_edges_of_1e_15() -> None:
    cells = parts_of_unit(2, 1)
    for depth in range(50):
        cells, middle = bisect(cells[:, :, -1:])
        assert middle.sum() == 1.0, depth
    first, second = cells[:, 0, 0]
    assert abs(first - second) == 0.5**50


def test_the_longest_edge_is_found_by_brute_force_too() -> None:
    cells = np.random.default_rng(1).dirichlet(np.ones(4), (4, 30)).transpose(0, 2, 1)
    first, second = longest_edges(cells)
    for n in range(30):
        scaled = cells[:, :, n] / np.sqrt(cells[:, :, n].max(axis=0))
        lengths = [math.dist(scaled[a], scaled[b]) for a, b in zip(*edge_pairs(4), strict=True)]
        assert math.dist(scaled[first[n]], scaled[second[n]]) == pytest.approx(max(lengths), rel=1e-14)
