"""Sparse private learning: iterative shrinkage with the MCP penalty (ISTDP).

Yuan, Peng: "Iterative Shrink Threshold Differential Privacy Algorithm Based on Gradient Perturbation and BB Step Size"
(in Chinese).
"""

from .model import ISTDP
from .problem import Problem
from .run import PrivateSparseRun, SparseRun

__all__ = ["ISTDP", "PrivateSparseRun", "Problem", "SparseRun"]
