"""Sparse private learning: iterative shrinkage with the MCP penalty (ISTDP).

Yuan, Peng: "Iterative Shrink Threshold Differential Privacy Algorithm Based on Gradient Perturbation and BB Step Size"
(in Chinese).
"""

from . import penalty_checks
from .line_search import Search
from .model import ISTDP
from .penalties import MCP, SCAD, CappedL1, ElasticNet, Penalty, penalty_named
from .private_run import PrivateSparseRun
from .problem import Problem
from .run import SparseRun

__all__ = [
    "ISTDP",
    "MCP",
    "SCAD",
    "CappedL1",
    "ElasticNet",
    "Penalty",
    "PrivateSparseRun",
    "Problem",
    "Search",
    "SparseRun",
    "penalty_checks",
    "penalty_named",
]
