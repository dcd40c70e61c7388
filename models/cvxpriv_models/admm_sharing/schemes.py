"""The schemes of ADMM sharing: the shares that a party's step sees, its target, and its proximal term.

=================  ========  =======================================================  ====================
scheme             parties   step x_m aims at                                          held by
=================  ========  =======================================================  ====================
averaged           at once   D_m x_m - (S - z)/M                                       nothing
gauss_seidel       in turn   D_m x_m - (S - z), S with the shares of this pass         nothing
proximal_jacobi    at once   D_m x_m - (S - z)                                         (tau/2)||x - x_m||^2
printed            at once   D_m x_m - (S - z)                                         nothing: may diverge
=================  ========  =======================================================  ====================

`averaged` is Boyd et al. (2011), 7.3: the default, convergent for every rho > 0. Its penalty on S = z is rho/M, and it
equals the proximal Jacobi scheme with rho' = rho/M held by (1/2)||x - x_m||^2 in rho'(M-1) D_m'D_m. `printed` is
Algorithm 1 of SHARING, whose convergence proof has a wrong sign (docs/errata.md).

A penalty that is no square leaves no linear system. A direct step then replaces the square (rho/2)||D_m x - target||^2
by its tangent at x_m, held by (tau/2)||x - x_m||^2: one proximal step of the penalty. For `averaged` it is the direct
step of `proximal_jacobi` with rho' = rho/M, and converges as that does. For `gauss_seidel` each step still lowers the
augmented Lagrangian, as the exact one does: tau I - rho D_m'D_m is at least 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from cvxpriv.errors import ModelError, suggest
from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties import Penalty

from .factor import LEAST, Factor

#: A penalty of S = z: one number, or one for each sample.
Penalising = TypeVar("Penalising", float, Array)


@dataclass(frozen=True)
class Scheme:
    """One row of the table above.

    `averages`: Whether each party takes over its M-th part of the gap S - z rather than all of it.
    `in_turn`: Gauss-Seidel; otherwise Jacobi.
    `direct`: Whether a step with a penalty that is no square is one proximal step. Private releases, which are few,
    have the exact step of a solver instead; `proximal_jacobi` is always direct.
    """

    name: str
    averages: bool = False
    in_turn: bool = False
    proximal: bool = False
    direct: bool = False

    def weight(self, rho: Array, parties: int) -> Array:
        """Return r, the penalty of the constraint S = z and the step of the dual."""
        return rho / parties if self.averages else rho

    def rho(self, penalty: Penalising, parties: int) -> Penalising:
        """Return the rho of a penalty r."""
        return penalty * parties if self.averages else penalty

    def target(self, share: Array, total: Array, z: Array, parties: int) -> Array:
        """Return the target of D_m x_m in the view of party m."""
        return share - (total - z) / (parties if self.averages else 1)

    def linearises(self, penalty: Penalty) -> bool:
        """Return whether the step of a party is one proximal step: with a penalty that is no square, where direct."""
        return (self.proximal or self.direct) and penalty.ridge is None

    def tau(self, factor: Factor, penalty: Penalty, rho: Array | float, parties: int) -> float:
        """Return the weight of (1/2)||x - x_m||^2, just large enough for convergence.

        The proximal terms P_m must be at least rho (M-1) D_m'D_m. P_m is tau I, so tau = rho (M-1)||D_m||^2; where
        the step is linearised P_m is tau I - rho D_m'D_m, so tau = rho M ||D_m||^2. Averaging has rho/M in the place of
        rho there, and parties in turn need P_m >= 0 alone.
        """
        linear = self.linearises(penalty)
        if not (self.proximal or linear):
            return 0.0
        if isinstance(rho, np.ndarray) and rho.ndim:
            return self.tau(factor.scaled(rho), penalty, 1.0, parties)
        rho = float(rho)
        if linear:
            times = parties if self.proximal else 1
            return max(times * rho * (factor.largest or 1.0), LEAST)  # columns of zeros need no hold
        return (parties - 1) * rho * factor.largest


SCHEMES: Mapping[str, Scheme] = {
    one.name: one
    for one in (
        Scheme("averaged", averages=True),
        Scheme("gauss_seidel", in_turn=True),
        Scheme("proximal_jacobi", proximal=True),
        Scheme("printed"),
    )
}

#: Name of the default scheme.
USUAL = "averaged"


def scheme_named(scheme: str, *, direct: bool = False) -> Scheme:
    """Return the scheme of a name; `printed` has no direct steps."""
    if scheme not in SCHEMES:
        raise ModelError(f"method={scheme!r} is not a scheme of ADMM sharing: {suggest(str(scheme), SCHEMES)}")
    return replace(SCHEMES[scheme], direct=direct and scheme != "printed")
