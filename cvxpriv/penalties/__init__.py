"""Losses and penalties of learning problems, each with its proximal step."""

from cvxpriv.penalties.losses import LOSSES, Loss, loss_named
from cvxpriv.penalties.regularizers import Regularizer, regularizer_named

__all__ = ["LOSSES", "Loss", "Regularizer", "loss_named", "regularizer_named"]
