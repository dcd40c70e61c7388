"""Losses and penalties of learning problems, each with its exact proximal step."""

from cvxpriv.penalties.concave import MCP, SCAD, CappedL1
from cvxpriv.penalties.contract import Penalty, Separable, require_penalty
from cvxpriv.penalties.convex import L1, L2, Box, ElasticNet, GroupLasso, Within
from cvxpriv.penalties.losses import LOSSES, Loss, loss_named
from cvxpriv.penalties.named import convex_penalty, penalty_named

__all__ = [
    "L1",
    "L2",
    "LOSSES",
    "MCP",
    "SCAD",
    "Box",
    "CappedL1",
    "ElasticNet",
    "GroupLasso",
    "Loss",
    "Penalty",
    "Separable",
    "Within",
    "convex_penalty",
    "loss_named",
    "penalty_named",
    "require_penalty",
]
