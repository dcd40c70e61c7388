"""The group lasso, which drops whole groups of coefficients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.doors import door
from cvxpriv.penalties.contract import Form, Penalty, require_weight


@door
@dataclass(frozen=True)
class GroupLasso(Penalty):
    """lam times the sum over groups of sqrt(size) ||x_group|| (Yuan and Lin 2006), convex.

    Parameters
    ----------
    groups : sequence of sequences of int
        Indices of coefficients, each in at most one group.
    lam : float
        Weight, >= 0.
    """

    groups: Sequence[Sequence[int]]
    lam: float = 1.0

    def __post_init__(self) -> None:
        require_weight(self.lam, "the group lasso")
        flat = [index for one in self.groups for index in one]
        if not all(self.groups) or len(set(flat)) != len(flat):
            raise ModelError(f"groups={self.groups!r} overlap or hold an empty one: give every index to at most one")
        object.__setattr__(self, "groups", tuple(tuple(int(index) for index in one) for one in self.groups))

    @property
    def name(self) -> str:
        """Name of the penalty; `penalty_named` does not read it."""
        return "group"

    def _weighted(self) -> Iterator[tuple[float, npt.NDArray[np.intp]]]:
        for one in self.groups:
            yield self.lam * float(np.sqrt(len(one))), np.asarray(one, dtype=np.intp)

    def value(self, x: Array) -> float:
        return float(sum(weight * np.linalg.norm(x[one]) for weight, one in self._weighted()))

    def prox(self, s: Array, step: float) -> Array:
        t = s.copy()
        for weight, one in self._weighted():
            t[one] = _beyond(s[one], step * weight)
        return t

    def residual(self, x: Array, gradient: Array) -> Array:
        """See `Penalty.residual`. At 0 the subgradients of a group are a ball."""
        off = gradient.copy()
        for weight, one in self._weighted():
            size = float(np.linalg.norm(x[one]))
            off[one] = gradient[one] + weight * x[one] / size if size > 0.0 else _beyond(gradient[one], weight)
        return off

    def expression(self, x: cp.Expression) -> Form:
        return sum(weight * cp.norm2(x[one]) for weight, one in self._weighted()), []


def _beyond(v: Array, radius: float) -> Array:
    """Return the part of v outside the ball."""
    size = float(np.linalg.norm(v))
    return v * (max(0.0, size - radius) / size) if size > 0.0 else v
