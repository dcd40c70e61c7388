"""The bounds of SHARING's shares, made once more from suprema that are found numerically and from explicit matrices."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from itertools import product

import numpy as np
import pytest
from cvxpriv_models.admm_sharing import sensitivity
from cvxpriv_models.admm_sharing.mechanism import ShareRelease

from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.rounding import sum_rounding

from .sharing_cases import operator_bound, printed_lemma_1

#: kappa, public bound, clip: each part of each bound is the least or the largest somewhere.
GRID = list(product((0.01, 0.4, 3.0, 500.0), (0.03, 1.0, 12.0), (0.2, 1.5, np.inf)))
#: Targets with one large entry, with none, a single one, and a long one, where one cell says little of a column.
TARGETS = [np.array([3.0, -0.1, 0.2, 0.1]), np.ones(9), np.array([-0.7]), np.full(900, 0.8)]
#: h of one row.
LEVERAGES = np.geomspace(1e-4, 1e4, 40_001)


def shrunk(norm: float, kappa: float) -> float:
    """||H|| of columns of one norm: H itself, of a matrix of two singular values, the smaller one a third."""
    part = np.diag([norm, norm / 3.0])
    return float(np.linalg.norm(part @ np.linalg.solve(part.T @ part + kappa * np.eye(2), part.T), 2))


@lru_cache
def steepest(kappa: float) -> float:
    """The largest ||M^-1 D|| over all D: the largest s/(s^2 + kappa), by looking."""
    s = np.geomspace(1e-2, 1e2, 40_001)
    return float((s / (s**2 + kappa)).max())


def row_again(target: Array, kappa: float, bound: float, clip: float) -> float:
    """As the docstring of `row` argues, its suprema over D found by looking: the fit, the pull of a row, H."""
    size, largest = np.sqrt(np.sum(target**2)), max(abs(target))
    prediction = bound * size * steepest(kappa)
    own = 2.0 * min(clip, max(largest, prediction))
    pull = min(bound * steepest(kappa), float((np.sqrt(LEVERAGES) / (1.0 + LEVERAGES)).max()))
    others = 2.0 * (largest + prediction) * pull  # the row goes, another comes
    return float(min(np.sqrt(own**2 + others**2), size * shrunk(bound * np.sqrt(target.size), kappa)))


@pytest.mark.parametrize("target", TARGETS)
def test_the_bound_of_a_row_is_its_three_suprema_together(target: Array) -> None:
    for kappa, bound, clip in GRID:
        again = row_again(target, kappa, bound, clip)
        assert sensitivity.row(target, kappa, bound, clip) == pytest.approx(again, rel=1e-6)  # the step of the search


def test_the_bound_of_a_cell_is_the_least_of_its_own_its_rows_and_its_columns() -> None:
    least = set()
    for target, (kappa, bound, clip), columns in product(TARGETS, GRID, (1, 4)):
        size = np.sqrt(np.sum(target**2))
        width = bound * np.sqrt(columns)
        # |eta| (||M'^-1 e_i|| kappa |x_j| + ||M'^-1 D'|| |a_i - v_i|), with |v_i| at most as far as `row` says.
        missed = min(size, max(abs(target)) + width * size * steepest(kappa))
        parts = {
            "alone": 2.0 * bound * (size * steepest(kappa) + steepest(kappa) * missed),
            "row": row_again(target, kappa, width, clip),
            "column": size * shrunk(bound * np.sqrt(target.size), kappa),
        }
        least.add(min(parts, key=lambda name: parts[name]))
        found = sensitivity.cell(target, kappa, bound, columns, clip)
        assert found == pytest.approx(min(parts.values()), rel=1e-6)
    assert least == {"alone", "row", "column"}


def test_a_shares_norm_and_a_columns_bound_are_those_of_the_explicit_matrix() -> None:
    for kappa, bound, _ in GRID:
        assert sensitivity.shrinkage(bound, kappa) == pytest.approx(shrunk(bound, kappa), rel=1e-12)
        for target in TARGETS:
            # A column out of nothing moves a target that is parallel to it by all of H.
            column = bound * target / np.linalg.norm(target)
            moved = np.linalg.norm(column * (column @ target) / (bound**2 + kappa))
            assert sensitivity.column(target, kappa, bound) == pytest.approx(moved, rel=1e-12)


def test_a_change_of_all_columns_is_bounded_by_its_norm_and_by_that_of_a_share() -> None:
    target = np.array([0.6, -0.8, 2.0])
    for kappa, norm, change in product((0.01, 2.0, 300.0), (0.1, 1.0, 20.0), (1e-3, 0.3, 40.0)):
        # kappa ||M'^-1|| ||E|| (||D' M^-1|| + ||D' M'^-1||), each factor at its largest; the first two give 1.
        either = min(shrunk(norm, kappa), 2.0 * change * steepest(kappa))
        assert operator_bound(target, kappa, norm, change) == pytest.approx(np.sqrt(5.0) * either, rel=1e-6)


def test_the_printed_constant_is_the_papers_in_exact_fractions() -> None:
    columns, parties, rho, lam, size, curvature = 7, 3, Fraction(5, 2), Fraction(1, 3), Fraction(3, 5), Fraction(11, 4)
    exact = Fraction(3) / (columns * rho) * (lam * curvature + (1 + parties * rho) * size)
    found = printed_lemma_1(columns, parties, float(rho), float(lam), float(size), float(curvature))
    assert found == pytest.approx(float(exact), rel=1e-14)


@pytest.mark.parametrize(("clip", "entries"), [(0.7, np.inf), (np.inf, 0.3), (0.7, 0.3), (1e-160, 1e160)])
def test_no_two_clipped_shares_are_further_apart_than_the_clips_alone_say(clip: float, entries: float) -> None:
    rng, release = np.random.default_rng(0), ShareRelease(1.0, "replace-one", (np.inf,), (0.0,), clip, entries)
    moved = []
    for _ in range(200):
        size = 10.0 ** rng.uniform(-3.0, 3.0) * min(clip, entries)
        pair = size * rng.normal(size=(2, 5)) if rng.random() < 0.5 else size * rng.choice([-1.0, 1.0], (2, 5))
        pair[1] = -pair[0] if rng.random() < 0.5 else pair[1]
        clipped = np.array([release.clipped(share) for share in pair])
        far, near = (np.linalg.norm((x[0] - x[1]).astype(np.longdouble)) for x in (pair, clipped))
        assert near <= far * (1.0 + 1e-15)  # a share within the clips stays as it is
        assert max(np.abs(clipped).max(), np.linalg.norm(clipped[0])) <= max(clip, entries)
        moved.append(float(near))
    assert max(moved) <= release.of_clips(5) == pytest.approx(max(moved), rel=1e-9)
    long = release_of_clip(10**6) / 2.0 - 1.0
    assert sum_rounding(10**6) <= long <= 1.001 * sum_rounding(10**6)


@pytest.mark.parametrize(
    ("adjacency", "bound"), [("replace-one", "row"), ("party-row", "row"), ("column", "column"), ("cell", "cell")]
)
def test_the_noise_of_a_share_covers_its_bound_and_twice_its_inexactness(adjacency: str, bound: str) -> None:
    target, entries = np.array([3.0, 0.0, -4.0]), np.inf if bound == "column" else 0.75
    release = ShareRelease(0.5, adjacency, (9.0, 0.25), (7.0, 2.0), clip=1e9, clip_entries=entries)
    more = {"row": (entries,), "column": (), "cell": (4, entries)}[bound]
    exact = getattr(sensitivity, bound)(target, 2.0, 0.25, *more)
    found = release.of_the_step(target, 1, 4)
    assert found - exact == pytest.approx(10.0 * sensitivity.INEXACT, rel=1e-6)
    assert release.sensitivity(target, 1, 4) == min(found, release.of_clips(3)) > exact
    assert ShareRelease(0.5, adjacency, (np.inf,), (0.0,), 1.0).sensitivity(target, 0, 4) == release_of_clip(3)


def release_of_clip(samples: int) -> float:
    return ShareRelease(0.5, "column", (np.inf,), (0.0,), 1.0).of_clips(samples)
