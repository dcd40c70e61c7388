"""Exact Euclidean projections onto the cones that convex solvers know, and onto their duals."""

from cvxpriv.kkt.conic.cones.exponential import matrices_from_triangles, triangle_indices
from cvxpriv.kkt.conic.cones.layout import ConeLayout

__all__ = ["ConeLayout", "matrices_from_triangles", "triangle_indices"]
