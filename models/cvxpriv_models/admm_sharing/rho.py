"""The initial penalty rho of a run whose user names none."""

from __future__ import annotations

import numpy as np

from cvxpriv.penalties import Loss

from .schemes import Scheme

#: Mean curvature of a loss, as a part of the largest: that of a logistic loss where predictions are of some use.
MEAN = 0.3
#: The largest curvature of a loss with a kink.
KINKED = 0.25
#: Factor by which the penalty exceeds the curvature of a loss that is not convex.
ABOVE = 1.1


def default_rho(loss: Loss, scheme: Scheme, parties: int) -> float:
    """Return a rho whose penalty of S = z is about the mean curvature of the loss."""
    bend = loss.smoothness if np.isfinite(loss.smoothness) else KINKED
    return scheme.rho((MEAN if loss.convex else ABOVE) * bend, parties)
