"""The vector that decides the next pass, x, shares and p = S + y/r, for Anderson acceleration.

A pass that begins with z is a map of (x, p): z and y follow from p. Parties combine their own x by the centre's few
weights: to find them a party adds one number for each pair of passes remembered, and no column leaves it. The result is
always the image of a pass: it lies in X_m, and y in weight dl(z).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cvxpriv.numerics.arrays import Array, Values

from .blocks import total_share
from .factor import Factor
from .problem import Problem
from .schemes import Scheme

__all__ = ["MEMORY", "CoefficientsAndArgument"]

#: Number of passes remembered.
MEMORY = 15


class CoefficientsAndArgument:
    """The packing of x_1..x_M, their shares, and p.

    Parameters
    ----------
    problem : Problem
    scheme : Scheme
    factors : sequence of Factor
    """

    def __init__(self, problem: Problem, scheme: Scheme, factors: Sequence[Factor]) -> None:
        self.problem, self.scheme, self.factors = problem, scheme, factors
        self.names = [f"{kind}/{m}" for m in range(problem.parties) for kind in "xv"]  # in the order of `step`

    def step(self, moved: Array, image: Values) -> Array:
        """Return the move of a pass, in the norm lam ||x||^2 + rho ||D x||^2 + r ||p||^2 in which ADMM contracts."""
        rho, parts, first = float(image["rho"][0]), [], 0
        for factor in self.factors:
            samples, columns = factor.part.shape
            x, share = moved[first : first + columns], moved[first + columns : first + columns + samples]
            parts += [np.sqrt(self.problem.lam) * x, np.sqrt(rho) * _bent(factor, x, share)]
            first += columns + samples
        return np.concatenate([*parts, np.sqrt(self._weight(image)) * moved[first:]])

    def pack(self, state: Values) -> Array:
        """Return x and share of each party, and p = S + y/r, of which z is the proximal step."""
        argument = total_share(state, self.problem.parties)[0] + state["y"][0] / self._weight(state)
        return np.concatenate([*(state[name][0] for name in self.names), argument])

    def unpack(self, packed: Array, state: Values) -> Values:
        """Return the state with the packed x, shares and p, by y = r (p - S)."""
        mixed, first = dict(state), 0
        for name in self.names:
            last = first + state[name].shape[1]
            mixed[name], first = packed[None, first:last], last
        gap = packed[first:] - total_share(mixed, self.problem.parties)[0]
        mixed["y"] = (self._weight(state) * gap)[None]
        return mixed

    def _weight(self, state: Values) -> float:
        return float(self.scheme.weight(state["rho"], self.problem.parties)[0])


def _bent(factor: Factor, x: Array, share: Array) -> Array:
    """Return a vector as long as D x, or as short as the party's columns, if they are few."""
    return np.asarray(factor.root @ x if x.size**2 <= share.size else share)
