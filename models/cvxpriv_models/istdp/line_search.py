"""The constants of GIST's line search (5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvxpriv.errors import ModelError
from cvxpriv.numerics.arguments import require_counts
from cvxpriv.penalties import Penalty

#: Limit for a loss that is flat far out, whose Barzilai-Borwein lengths are unbounded.
FAR = 1e6


@dataclass(frozen=True)
class Search:
    """The constants of the line search.

    Attributes
    ----------
    beta : float
        Share of the requested decrease, beta / (2 step) ||theta+ - theta||^2, in (0, 1).
    shrink : float
        Factor by which a step shrinks, in (0, 1): the paper's eta.
    memory : int
        Number of points whose highest F counts; 1 is monotone.
    shortest : float
        Least first length, alpha_min in the paper, as a share of the first one.
    longest : float, optional
        Greatest first length, alpha_max in the paper. None is 1 / weak_convexity of the penalty: up to there the
        proximal step is continuous, and beyond it thresholds hard and may throw coefficients far out. For a convex
        penalty and for capped l1 it is `FAR` times the first length.
    halvings : int
        Largest number of trials of a pass.
    """

    beta: float = 1e-4
    shrink: float = 0.5
    memory: int = 5
    shortest: float = 1e-6
    longest: float | None = None
    halvings: int = 100

    def __post_init__(self) -> None:
        for name in ("beta", "shrink"):
            if not 0.0 < getattr(self, name) < 1.0:
                raise ModelError(f"{name}={getattr(self, name)!r} of the line search is not in (0, 1)")
        if not (0.0 < self.shortest <= 1.0 and (self.longest is None or self.longest > 0.0)):
            raise ModelError(
                f"shortest={self.shortest!r} and longest={self.longest!r} bound no step: choose 0 < shortest <= 1 and "
                "longest > 0"
            )
        require_counts(memory=self.memory, halvings=self.halvings)

    def bound(self, penalty: Penalty, first: float) -> float:
        """Return the greatest length that a pass begins with; `first` is that of the first pass."""
        if self.longest is not None:
            return self.longest
        bend = penalty.weak_convexity
        return 1.0 / bend if 0.0 < bend < np.inf else FAR * first
