"""The peers that benchmarks measure: the sensitivities of their docstrings, by a search over neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit

from benchmarks.learning_peers import (
    direction_sensitivity,
    majoriser,
    minima_perturbation,
    newton,
    slopes_and_bends,
    tilt_deviation,
)
from cvxpriv.numerics.arrays import Array
from cvxpriv.privacy import gaussian_mu

RNG = np.random.default_rng(0)


def unit_rows(count: int, size: int, random: np.random.Generator) -> Array:
    rows = random.normal(size=(count, size))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def test_no_replaced_row_moves_newtons_direction_further_than_its_bound() -> None:
    worst, random = 0.0, np.random.default_rng(1)
    for _ in range(400):
        rows, size = 5, 2
        lam = 10.0 ** random.uniform(-3.0, 0.0)
        x, gradient, theta = unit_rows(rows, size, random), random.normal(size=size), np.zeros(size)
        x[:-1] *= 10.0 ** random.uniform(-4.0, 0.0)  # neighbours that differ in the one long row
        other = x.copy()
        other[-1] = unit_rows(1, size, random)[0]
        found = [
            np.linalg.solve(majoriser(sparse.csr_array(one), theta) + lam * np.eye(size), gradient)
            for one in (x, other)
        ]
        bound = direction_sensitivity(rows, lam) * float(np.linalg.norm(gradient))
        moved = float(np.linalg.norm(found[0] - found[1]))
        assert moved <= bound * (1.0 + 1e-9)  # rounding of a solve
        worst = max(worst, moved / bound)
    assert worst > 0.4  # the triangle inequality leaves a factor below 2


def test_the_log_density_of_a_perturbed_minimum_moves_by_no_more_than_a_corner_allows() -> None:
    """Of random tables, neighbours and minima: log det ratio, and the change of the squared norm of the tilt."""
    random, clip = np.random.default_rng(2), 0.5
    for _ in range(300):
        weight, deviation = 10.0 ** random.uniform(-1.0, 1.0), 10.0 ** random.uniform(0.0, 1.0)
        x, theta = unit_rows(6, 3, random), 3.0 * random.normal(size=3)
        other = x.copy()
        other[0] = unit_rows(1, 3, random)[0]
        tilts, logs = [], []
        for one in (x, other):
            slopes, bends = slopes_and_bends(one @ theta, np.ones(6), clip)
            tilts.append(one.T @ slopes - weight * theta)
            logs.append(np.linalg.slogdet((one * bends[:, None]).T @ one + weight * np.eye(3))[1])
        assert abs(logs[0] - logs[1]) <= np.log1p(0.25 / weight) + 1e-12  # rounding
        loss = (tilts[1] @ tilts[1] - tilts[0] @ tilts[0]) / (2.0 * deviation**2)
        corners = [c * other[0] - d * x[0] for c in (0.0, clip) for d in (0.0, clip)]
        most = max((2.0 * tilts[0] @ v + v @ v) / (2.0 * deviation**2) for v in corners)
        assert loss <= most + 1e-9  # rounding


def test_the_tilt_costs_little_more_than_a_gaussian_release_of_the_rest_of_epsilon() -> None:
    weight, clip = 2.0, 0.5
    mu = 2.0 * clip / tilt_deviation(1.0, 1e-6, weight, clip)
    plain = gaussian_mu(1.0 - np.log1p(0.25 / weight), 1e-6)
    assert mu == pytest.approx(plain, rel=1e-3)  # the corners of half the size hardly count
    assert tilt_deviation(0.1, 1e-6, weight, clip) == np.inf


def test_peers_find_the_minimum_where_there_is_next_to_no_noise() -> None:
    x = unit_rows(3000, 3, RNG)
    y = np.where(RNG.uniform(size=3000) < expit(x @ [3.0, -2.0, 0.0]), 1.0, -1.0)
    rows, random = sparse.csr_array(x), np.random.default_rng(0)
    tilted = minima_perturbation(rows, y, 1e4, 1e-6, 1e-3, 1.0, random)
    stepped = newton(rows, y, 1e4, 1e-6, 30, 1e-2, 1.0, random)
    for theta in (tilted, stepped):
        slope = x.T @ (-y * expit(-y * (x @ theta))) / 3000
        assert np.abs(slope).max() < 2e-3  # noise at epsilon = 10^4
