"""Sparse penalties P(theta) = sum_i p(|theta_i|): value, proximal step in every regime, stationarity distance.

MCP, SCAD and capped l1 are not convex: they stop punishing a coefficient that is surely not zero, and so leave it
unbiased. Their proximal step is the least of h(t) = (t - s)^2 / 2 + step p(|t|), which has several stationary points
once the step is long; the formula that most libraries use holds only below the penalty's own bend (ERRATA ISTDP 2).
"""

from .capped_l1 import CappedL1
from .contract import Penalty, require_penalty
from .elastic_net import L1, L2, ElasticNet
from .mcp import MCP
from .named import penalty_named
from .scad import SCAD

__all__ = ["L1", "L2", "MCP", "SCAD", "CappedL1", "ElasticNet", "Penalty", "penalty_named", "require_penalty"]
