"""Exact Euclidean projections onto the cones that convex solvers know, and onto their duals."""

from __future__ import annotations

from cvxpriv.kkt.conic.cones.exponential import (
    in_exponential,
    in_exponential_dual,
    project_exponential,
    project_exponential_dual,
)
from cvxpriv.kkt.conic.cones.layout import ConeLayout
from cvxpriv.kkt.conic.cones.power import in_power, in_power_dual, project_power, project_power_dual
from cvxpriv.kkt.conic.cones.symmetric import (
    Triangle,
    matrices_from_triangles,
    project_second_order,
    project_semidefinite,
    triangle_indices,
    triangles_from_matrices,
)

__all__ = [
    "ConeLayout",
    "Triangle",
    "in_exponential",
    "in_exponential_dual",
    "in_power",
    "in_power_dual",
    "matrices_from_triangles",
    "project_exponential",
    "project_exponential_dual",
    "project_power",
    "project_power_dual",
    "project_second_order",
    "project_semidefinite",
    "triangle_indices",
    "triangles_from_matrices",
]
