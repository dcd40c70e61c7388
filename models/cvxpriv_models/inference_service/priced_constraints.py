"""Which of a user's constraints the bound takes into account: those that speak of one column x = P(Y|u) at a time.

Local differential privacy and limits of the ratios p(u|y)/p(u) do, whatever the outputs are called. A bound that leaves
other constraints out still holds with them: they only lower the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cvxpriv.numerics.arrays import Array

from .any_conjugate import conjugate_of
from .conjugates import within
from .local_dp_pricing import local_dp_pricing
from .measured import Constraints
from .pricing import Pricing
from .problem import Problem
from .straight_pricing import straight_pricing

__all__ = ["PricedConstraints", "pricing_of"]


@dataclass(frozen=True)
class PricedConstraints:
    """What is asked of every column.

    Attributes
    ----------
    epsilon : float, optional
        Local differential privacy, p(u|y) <= exp(epsilon) p(u|y').
    low, high : float
        low p(u) <= p(u|y) <= high p(u).
    ignored : tuple of str
        The names of the constraints that the bound leaves out.
    """

    epsilon: float | None = None
    low: float = 0.0
    high: float = np.inf
    ignored: tuple[str, ...] = ()

    @property
    def none(self) -> bool:
        """Whether nothing is asked."""
        return self.epsilon is None and self.low == 0.0 and self.high == np.inf

    @classmethod
    def of(cls, constraints: Constraints, local_dp: float | None = None) -> PricedConstraints:
        """Read constraints, and a local differential privacy asked for besides."""
        epsilons, lows, highs, ignored = [] if local_dp is None else [local_dp], [0.0], [np.inf], []
        boxes = []
        for name, constraint in constraints:
            kind, given = getattr(constraint, "kind", ""), getattr(constraint, "parameters", {})
            if kind == "local_differential_privacy" and not given.get("delta", 0.0):
                epsilons.append(float(given["epsilon"]))
            elif kind in _BOXES and given.get("of") == "input":
                boxes.append(name)
                highs.append(float(np.exp(given["epsilon"])))
                lows.append(1.0 / highs[-1] if _BOXES[kind] else 0.0)
            else:
                ignored.append(name)
        if epsilons:  # its cone holds ratios within exp(+-epsilon); tighter boxes are left out
            return cls(min(epsilons), ignored=(*ignored, *boxes))
        return cls(None, max(lows), min(highs), tuple(ignored))


#: Constraints on the ratios p(u|y)/p(u), and whether they bound them from below too.
_BOXES = {"pointwise_leakage": False, "local_information_privacy": True}


def pricing_of(problem: Problem, joint: Array, asked: PricedConstraints) -> Pricing:
    """Price the columns that obey the constraints, for a joint table (|S|, |Y|) whose rows may be merged."""
    p_y = joint.sum(axis=0)
    channel, conjugate = joint / p_y, conjugate_of(problem.divergence, 1.0 / float(p_y.min()))
    if asked.epsilon is not None:
        return local_dp_pricing(channel, p_y, problem.beta, conjugate, asked.epsilon)
    if not asked.none:
        low, high = max(asked.low, _LEAST_RATIO), min(asked.high, 1.0 / float(p_y.min()))
        boxed = Pricing.of(channel, p_y, problem.beta, within(conjugate, low, high))
        return replace(boxed, smooth=False)  # cells at their limits stand still: Newton's method on alpha would not end
    straight = straight_pricing(channel, p_y, problem.beta, problem.divergence)
    return straight or Pricing.of(channel, p_y, problem.beta, conjugate)


#: A ratio below this counts as 0.
_LEAST_RATIO = 1e-100
