"""Projections onto cones: Moreau's decomposition at random and extreme points, faces, layouts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from cvxpriv.errors import ModelError
from cvxpriv.kkt.conic.cones import ConeLayout, exponential, power
from cvxpriv.kkt.conic.cones.layout import onto_dual

MANY = 10_000
# Moreau's three facts hold to rounding: a few hundred units in the last place at the scale of the point.
TOLERANCE = 1e-12


def extreme_points(seed: int, width: int) -> np.ndarray:
    """Points of ordinary size, of sizes 1e-12..1e12 or 1e-150..1e150 entry by entry, with zeros, ties, all tiny."""
    rng = np.random.default_rng(seed)
    ordinary = rng.standard_normal((MANY, width))
    wild = 10.0 ** rng.uniform(-12, 12, (MANY, width)) * rng.choice([-1, 1], (MANY, width))
    faces = np.where(rng.random((MANY, width)) < 0.4, 0.0, wild)
    tied = rng.choice([-1.0, 0.0, 1.0, 1e-12, 1e12], (MANY, width))
    vast = 10.0 ** rng.uniform(-150, 150, (MANY, width)) * rng.choice([-1, 1], (MANY, width))  # squares still finite
    return np.vstack([ordinary, wild, faces, tied, 1e-300 * ordinary, np.where(faces == 0.0, 0.0, vast)])


def slack(points: np.ndarray) -> np.ndarray:
    return TOLERANCE * np.maximum(1.0, np.linalg.norm(points, axis=1))


def assert_orthogonal(projected: np.ndarray, dual: np.ndarray, points: np.ndarray) -> None:
    scale = np.maximum(1.0, np.linalg.norm(points, axis=1))
    assert (np.abs((projected / scale[:, None] * dual / scale[:, None]).sum(axis=1)) <= TOLERANCE).all()


def near_exponential_boundary(seed: int) -> np.ndarray:
    """Points a relative 1e-16..1e-6 off the curved boundary, inside and outside, primal and polar."""
    rng = np.random.default_rng(seed)
    rho = np.concatenate([rng.uniform(-30, 30, MANY // 2), rng.standard_cauchy(MANY // 2).clip(-300, 300)])
    ray = np.stack([rho, np.ones(MANY), np.exp(rho)], axis=1)
    polar = np.stack([np.ones(MANY), 1 - rho, -np.exp(-rho)], axis=1)
    boundary = np.where(rng.random(MANY)[:, None] < 0.5, ray, polar)
    boundary /= np.linalg.norm(boundary, axis=1)[:, None]
    return np.asarray(boundary + 10.0 ** rng.uniform(-16, -6, (MANY, 1)) * rng.standard_normal((MANY, 3)))


@pytest.mark.parametrize("points", [extreme_points(1, 3), near_exponential_boundary(2)], ids=["extreme", "boundary"])
def test_exponential_projection_is_moreaus_decomposition(points: np.ndarray) -> None:
    projected = exponential.project_exponential(points)
    dual = onto_dual(exponential.project_exponential)(-points)
    room = slack(points)[:, None]
    assert (np.abs(projected - dual - points) <= room).all()
    assert_orthogonal(projected, dual, points)
    # Membership is exact, so the points are first moved by the slack towards the inside.
    assert exponential.in_exponential(projected + room * [-1, 1, 3]).all()
    assert exponential.in_exponential_dual(dual + room * [-1, 1, 1]).all()


@pytest.mark.parametrize("count", [2, 4])
def test_power_projection_is_moreaus_decomposition(count: int) -> None:
    points = extreme_points(3, count + 1)
    alpha = np.random.default_rng(4).dirichlet(np.full(count, 0.5), points.shape[0]) + 1e-3
    alpha /= alpha.sum(axis=1, keepdims=True)
    projected = power.project_power(points, alpha)
    dual = onto_dual(lambda v: power.project_power(v, alpha))(-points)
    room = slack(points)
    assert (np.abs(projected - dual - points) <= room[:, None]).all()
    assert_orthogonal(projected, dual, points)
    for member, point in ((power.in_power, projected), (power.in_power_dual, dual)):
        height = np.maximum(np.abs(point[:, -1]) - room, 0.0)
        assert member(point[:, :-1] + room[:, None], height, alpha).all()


def test_second_order_projection_is_moreaus_decomposition() -> None:
    points = extreme_points(5, 4)
    projected, dual = exponential.project_second_order(points), exponential.project_second_order(-points)
    assert (np.abs(projected - dual - points) <= slack(points)[:, None]).all()
    assert_orthogonal(projected, dual, points)
    for part in (projected, dual):
        assert (np.linalg.norm(part[:, 1:], axis=1) <= part[:, 0] + slack(points)).all()


@pytest.mark.parametrize("triangle", ["lower", "upper"])
def test_semidefinite_projection_is_moreaus_decomposition(triangle: exponential.Triangle) -> None:
    points = extreme_points(6, 6)[::5]
    projected = exponential.project_semidefinite(points, 3, triangle)
    dual = exponential.project_semidefinite(-points, 3, triangle)
    assert (np.abs(projected - dual - points) <= slack(points)[:, None]).all()
    assert_orthogonal(projected, dual, points)
    for part in (projected, dual):
        smallest = np.linalg.eigvalsh(exponential.matrices_from_triangles(part, 3, triangle)).min(axis=1)
        assert (smallest >= -slack(points)).all()


def test_triangles_keep_the_inner_product_and_name_their_entries() -> None:
    rng = np.random.default_rng(7)
    matrices = rng.standard_normal((2, 3, 3))
    matrices = matrices + matrices.transpose(0, 2, 1)
    for triangle in ("lower", "upper"):
        a, b = exponential.triangles_from_matrices(matrices, triangle)
        assert a @ b == pytest.approx(np.sum(matrices[0] * matrices[1]), rel=1e-13)
        back = exponential.matrices_from_triangles(np.array([a, b]), 3, triangle)
        np.testing.assert_allclose(back, matrices, rtol=1e-14)
    # Columns of the lower triangle: (0,0) (1,0) (2,0) (1,1) (2,1) (2,2); of the upper: (0,0) (0,1) (1,1) (0,2) ...
    assert [*zip(*map(list, exponential.triangle_indices(3, "lower")), strict=True)][1:4] == [(1, 0), (2, 0), (1, 1)]
    assert [*zip(*map(list, exponential.triangle_indices(3, "upper")), strict=True)][1:4] == [(0, 1), (1, 1), (0, 2)]


def test_exponential_projection_agrees_with_a_search_along_the_boundary() -> None:
    """An independent route: minimise the distance to the boundary ray of slope rho over rho alone."""
    for point in np.random.default_rng(8).standard_normal((50, 3)):
        if exponential.in_exponential(point[None])[0] or exponential.in_exponential_dual(-point[None])[0]:
            continue
        distance = np.linalg.norm(exponential.project_exponential(point[None])[0] - point)

        def to_ray(rho: float, point: np.ndarray = point) -> float:
            ray = np.array([rho, 1.0, np.exp(rho)])
            return float(np.linalg.norm(max(ray @ point, 0.0) / (ray @ ray) * ray - point))

        grid = np.linspace(-20, 20, 2001)
        best = grid[np.argmin([to_ray(rho) for rho in grid])]
        found = minimize_scalar(to_ray, bounds=(best - 0.03, best + 0.03), method="bounded", options={"xatol": 1e-12})
        face = np.linalg.norm([max(point[0], 0.0), point[1], min(point[2], 0.0)])
        assert distance == pytest.approx(min(found.fun, face), abs=1e-9)  # the search stops at sqrt(eps) in rho


def test_known_projections() -> None:
    face = exponential.project_exponential(np.array([[-2.0, -3.0, 5.0], [-2.0, -3.0, -5.0], [1.0, 1.0, np.e]]))
    np.testing.assert_array_equal(face, [[-2, 0, 5], [-2, 0, 0], [1, 1, np.e]])
    # The apex is nearest to every point of the polar cone, and exactly so.
    np.testing.assert_array_equal(exponential.project_exponential(np.array([[1.0, 0.0, -1.0]])), [[0, 0, 0]])
    # sqrt(x y) >= |z|: by symmetry the nearest point to (0, 0, 3) is a multiple of (1, 1, 1), hence its mean.
    nearest = power.project_power(np.array([[0.0, 0.0, 3.0]]), np.array([[0.5, 0.5]]))
    np.testing.assert_allclose(nearest, [[1, 1, 1]], rtol=1e-14)


def test_layout_projects_every_block_as_its_own_cone() -> None:
    layout = ConeLayout(
        zero=1, nonneg=2, soc=(3, 1, 3), psd=(2, 3, 2), exp=2, power=((0.3, 0.7), (0.2, 0.3, 0.5)), triangle="upper"
    )
    v = np.random.default_rng(9).standard_normal(layout.size)
    projected, dual = layout.project(v), layout.project(v, dual=True)
    assert layout.size == 1 + 2 + 7 + 12 + 6 + 3 + 4
    cut = layout.slices
    assert projected[0] == 0.0
    assert dual[0] == v[0]
    for name in ("soc[0]", "soc[2]"):
        np.testing.assert_array_equal(projected[cut[name]], exponential.project_second_order(v[None, cut[name]])[0])
    np.testing.assert_array_equal(
        projected[cut["psd[1]"]], exponential.project_semidefinite(v[None, cut["psd[1]"]], 3, "upper")[0]
    )
    np.testing.assert_array_equal(
        dual[cut["exp[1]"]], onto_dual(exponential.project_exponential)(v[None, cut["exp[1]"]])[0]
    )
    alpha = np.array([[0.2, 0.3, 0.5]])
    np.testing.assert_array_equal(projected[cut["power[1]"]], power.project_power(v[None, cut["power[1]"]], alpha)[0])
    np.testing.assert_allclose(projected - layout.project(-v, dual=True), v, atol=1e-15)


def test_the_distance_is_that_of_the_block_farthest_outside() -> None:
    layout = ConeLayout(zero=1, nonneg=3, soc=(2,), exp=1)
    inside = np.array([0.0, 1.0, 2.0, 3.0, 1.0, 0.5, 0.0, 1.0, 2.0])
    assert layout.distance(inside) == 0.0
    outside = inside.copy()
    outside[2] = -0.25
    assert layout.names[int(layout.block_distances(outside).argmax())] == "nonneg[1]"
    assert layout.distance(outside) == 0.25
    # (1, 0.5, .) is inside the dual of the zero cone and of the second-order cone; (0, 1, 2) is in the exp dual.
    assert layout.distance_dual(inside) == 0.0


def test_an_empty_layout_has_no_distance() -> None:
    assert ConeLayout().distance(np.zeros(0)) == 0.0


def test_a_wrong_size_or_exponent_is_refused() -> None:
    with pytest.raises(ModelError, match="has 2 entries, the cones 3"):
        ConeLayout(exp=1).project(np.zeros(2))
    with pytest.raises(ModelError, match=r"power\[0\]"):
        ConeLayout(power=((0.5, 0.6),))
