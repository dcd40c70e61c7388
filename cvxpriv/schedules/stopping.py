"""Stopping rules: objects that a loop asks after each iteration, one answer per start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.numerics.doors import door


class Stop(Protocol):
    """A rule for which starts are done."""

    def __call__(
        self, iteration: int, before: Values, after: Values, measured: Mapping[str, Array]
    ) -> npt.NDArray[np.bool_]:
        """Return a mask of the starts that may stop."""
        ...


@door
@dataclass(frozen=True)
class Below:
    """Stop a start when a measured figure is at most a bound: `Below("kkt", 1e-7)`."""

    figure: str
    bound: float

    def __call__(
        self, iteration: int, before: Values, after: Values, measured: Mapping[str, Array]
    ) -> npt.NDArray[np.bool_]:
        """See `Stop`."""
        return np.asarray(measured[self.figure] <= self.bound)


@dataclass(frozen=True)
class Moved:
    """Stop a start when an entry of the state, or with None each, moved by at most a bound in the largest component."""

    entry: str | None
    bound: float

    def __call__(
        self, iteration: int, before: Values, after: Values, measured: Mapping[str, Array]
    ) -> npt.NDArray[np.bool_]:
        """See `Stop`."""
        names = after if self.entry is None else [self.entry]
        steps = [np.abs(after[name] - before[name]) for name in names]
        still = [step.reshape(step.shape[0], -1).max(axis=1) <= self.bound for step in steps]
        return np.asarray(np.all(still, axis=0))


@dataclass(frozen=True)
class Never:
    """Run to the loop's limit."""

    def __call__(
        self, iteration: int, before: Values, after: Values, measured: Mapping[str, Array]
    ) -> npt.NDArray[np.bool_]:
        """See `Stop`."""
        return np.zeros(next(iter(after.values())).shape[0], dtype=bool)


@dataclass(frozen=True)
class AnyOf:
    """Stop a start when one of several rules holds."""

    rules: tuple[Stop, ...]

    def __call__(
        self, iteration: int, before: Values, after: Values, measured: Mapping[str, Array]
    ) -> npt.NDArray[np.bool_]:
        """See `Stop`."""
        return np.asarray(np.any([rule(iteration, before, after, measured) for rule in self.rules], axis=0))
