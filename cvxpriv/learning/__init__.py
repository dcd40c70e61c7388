"""What the learning models share: losses and regularisers, each with its proximal step."""

from cvxpriv.learning.losses import LOSSES, Loss, loss_named
from cvxpriv.learning.regularizers import Regularizer, regularizer_named

__all__ = ["LOSSES", "Loss", "Regularizer", "loss_named", "regularizer_named"]
