"""The contract between the fast path and any solver."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cvxpriv.numerics.arrays import Array

Options = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Raw:
    """A solver's answer: cvxpy's status, point and multipliers in the solver's order."""

    status: str
    x: Any
    z: Any
    iterations: int


class SolverObject(ABC):
    """One solver bound to one map."""

    _solver: Any = None

    @abstractmethod
    def solve(self) -> Raw:
        """Solve with the map's present numbers."""

    def forget(self) -> None:
        """Drop the state that is kept between solves."""
        self._solver = None

    @staticmethod
    @abstractmethod
    def fake(x: Array, z: Array, zero: int) -> Any:
        """Return a raw answer that looks solved, to read cvxpy's way back with; equality rows come first in z."""
