"""What the learning models share: losses with their proximal steps."""

from cvxpriv.learning.losses import LOSSES, Loss, loss_named

__all__ = ["LOSSES", "Loss", "loss_named"]
