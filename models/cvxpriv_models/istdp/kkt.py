"""First-order residuals of ISTDP (2): the distance of -gradient to the limiting subgradients of P, by coordinate.

For MCP (MATH ISTDP): |g_i + sign(theta_i) (lam - |theta_i|/alpha)_+| where theta_i is not 0, (|g_i| - lam)_+ where it
is. The intercept is not penalised: |g_i|. Nothing here uses a solver, nor how a point was found.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cvxpriv.numerics.arrays import Array, worst
from cvxpriv.penalties import Penalty


@dataclass(frozen=True, eq=False)
class SparseResiduals:
    """Distances of a point from stationarity.

    `stationarity`, (d,): One distance per coefficient.
    `intercept`: The size |dL/dintercept|; 0 without one.
    """

    stationarity: Array
    intercept: float

    @cached_property
    def largest(self) -> float:
        """The largest of all these distances."""
        return worst((float(self.stationarity.max()), self.intercept))


def residuals(penalty: Penalty, theta: Array, gradient: Array, features: int) -> SparseResiduals:
    """Return the residuals at theta, where the average loss has this gradient.

    `theta`, `gradient`, (d,) or (d + 1,): The coefficients and their gradient, with an intercept last.
    `features`: Number of features, d.
    """
    free = gradient[features:]
    penalised = np.abs(penalty.residual(theta[:features], gradient[:features]))
    return SparseResiduals(penalised, float(np.abs(free).max()) if free.size else 0.0)
