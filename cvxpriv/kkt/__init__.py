"""Optimality conditions of any convex cvxpy problem: by derivatives, without a solver; at ties by a proximal step."""

from cvxpriv.kkt.conditions import Residuals, residuals
from cvxpriv.kkt.proximal import Proximal, proximal_step

__all__ = ["Proximal", "Residuals", "proximal_step", "residuals"]
