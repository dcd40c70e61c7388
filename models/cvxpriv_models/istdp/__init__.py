"""Sparse private learning: iterative shrinkage with the MCP penalty (ISTDP)."""

from .penalties import MCP, SCAD, CappedL1, ElasticNet, Penalty, penalty_named

__all__ = ["MCP", "SCAD", "CappedL1", "ElasticNet", "Penalty", "penalty_named"]
