"""The map from a solver's raw ``(x, z)`` to variables and multipliers by name, as cvxpy would give them.

cvxpy's way back (slices, order of entries, signs, the permuted exponential cone, the scaled triangle of a semidefinite
cone) takes each number of the answer from one number of the solver's, times a constant. It is read off cvxpy itself,
once, by sending known numbers through it; a way back of another kind is noticed, and refused.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

from cvxpriv.errors import ModelError
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


class NotFast(ModelError):
    """The fast path does not take this problem with this solver: use `Problem.solve`."""


@dataclass(frozen=True, eq=False)
class Gather:
    """The map ``flat = scale * source[index]``, cut into named arrays (several for a cone with several multipliers)."""

    index: NDArray[np.int64]
    scale: Array | None
    pieces: Mapping[str, tuple[tuple[int, int, tuple[int, ...]], ...]]

    def __call__(self, source: Array) -> dict[str, Any]:
        """Return the arrays by name: one array, or a list where there are several."""
        flat = source[self.index]
        if self.scale is not None:
            flat *= self.scale
        result: dict[str, Any] = {}
        for name, pieces in self.pieces.items():
            arrays = [flat[start:stop].reshape(shape) for start, stop, shape in pieces]
            result[name] = arrays[0] if len(arrays) == 1 else arrays
        return result


@dataclass(frozen=True, eq=False)
class AnswerMap:
    """The places of the variables' values in ``x``, and of the constraints' multipliers in ``z``."""

    values: Gather
    duals: Gather


#: Maps x and z of a fake raw answer to cvxpy's solution.
Invert = Callable[[Array, Array], Any]


def answer_map(
    invert: Invert,
    size: int,
    rows: int,
    variables: Mapping[str, cp.Variable],
    constraints: Mapping[str, cp.Constraint],
) -> AnswerMap:
    """Read the map off cvxpy's own inversion; the constraints' multipliers are left as they were."""
    generator = np.random.default_rng(0)
    probes = [
        (np.ones(size), np.ones(rows)),
        (np.arange(1.0, size + 1), np.arange(1.0, rows + 1)),
        (generator.normal(size=size), generator.normal(size=rows)),
    ]
    seen = [_named(invert(x, z), variables, constraints) for x, z in probes]
    return AnswerMap(
        _gather([values for values, _ in seen], probes[2][0], "variable"),
        _gather([duals for _, duals in seen], probes[2][1], "constraint"),
    )


Arrays = dict[str, list[Array]]


def _named(
    solution: Any, variables: Mapping[str, cp.Variable], constraints: Mapping[str, cp.Constraint]
) -> tuple[Arrays, Arrays]:
    values = {name: [np.asarray(solution.primal_vars[one.id], dtype=float)] for name, one in variables.items()}
    duals: Arrays = {}
    for name, constraint in constraints.items():
        if constraint.id not in solution.dual_vars:
            raise NotFast(f"constraint {name!r} has no multiplier in cvxpy's solution")
        before = [dual.value for dual in constraint.dual_variables]
        constraint.save_dual_value(solution.dual_vars[constraint.id])
        duals[name] = [np.array(dual.value, dtype=float) for dual in constraint.dual_variables]
        for dual, value in zip(constraint.dual_variables, before, strict=True):
            dual.save_value(value)
    return values, duals


def _gather(seen: list[Arrays], random: Array, what: str) -> Gather:
    """Return the gather behind three probes: all ones, 1 2 3 ..., and random numbers to check it with."""
    ones, counted, checked = (
        np.concatenate([np.zeros(0), *(array.ravel() for arrays in one.values() for array in arrays)]) for one in seen
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        place = np.where(ones == 0, 1.0, counted / ones)
    index = np.clip(np.rint(place).astype(np.int64) - 1, 0, max(random.size - 1, 0))
    # One rounding of the constant, one of the product.
    if not np.allclose(ones * random[index], checked, rtol=1e-14, atol=0.0):
        raise NotFast(f"cvxpy does not read each {what}'s numbers off the solver's one by one")
    pieces: dict[str, tuple[tuple[int, int, tuple[int, ...]], ...]] = {}
    start = 0
    for name, arrays in seen[0].items():
        spans = []
        for array in arrays:
            spans.append((start, start + array.size, array.shape))
            start += array.size
        pieces[name] = tuple(spans)
    return Gather(index, None if (ones == 1.0).all() else ones, pieces)
