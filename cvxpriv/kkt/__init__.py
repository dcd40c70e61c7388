"""Optimality conditions of any convex cvxpy problem, measured without a solver."""

from cvxpriv.kkt.conditions import Residuals, residuals

__all__ = ["Residuals", "residuals"]
