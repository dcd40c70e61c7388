"""The free numbers of a problem's variables, and the place of each variable's entries among them.

A symmetric variable has one number for two entries, a diagonal or sparse one has none for its zeros. Every gradient,
multiplier and step here is in these numbers, so that a bound on one entry of a symmetric matrix bounds both.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array

SYMMETRIC = ("symmetric", "PSD", "NSD")


class Coordinates:
    """The places of the variables' free numbers in the flat point, column-major within a variable.

    `slices`: The place of each variable's free numbers, by the variable's id.
    `entries`: For each entry of a variable, column-major, its free number, or -1 where it is always zero.
    `size`: The number of free numbers.
    """

    def __init__(self, variables: Sequence[cp.Variable]) -> None:
        # Two objects may be one variable to cvxpy: those of the same id.
        self.variables = tuple({variable.id: variable for variable in variables}.values())
        self.named = tuple(variables)
        self.entries: dict[int, np.ndarray] = {}
        self.slices: dict[int, slice] = {}
        self.size = 0
        for variable in self.variables:
            free, count = _free_numbers(variable)
            self.entries[variable.id] = np.where(free < 0, -1, free + self.size)
            self.slices[variable.id] = slice(self.size, self.size + count)
            self.size += count

    @cached_property
    def expansion(self) -> sp.csc_array:
        """The map from the flat point to all entries of all variables, one variable after the other."""
        free = np.concatenate([np.zeros(0, dtype=int), *(self.entries[v.id] for v in self.variables)])
        rows = np.flatnonzero(free >= 0)
        ones = np.ones(rows.size)
        return sp.csc_array(sp.coo_array((ones, (rows, free[rows])), shape=(free.size, self.size)))

    @cached_property
    def _counts(self) -> Array:
        """The number of entries that stand for each free number."""
        return np.maximum(np.asarray(self.expansion.sum(axis=0)).ravel(), 1.0)

    def point(self) -> Array:
        """Return the variables' current values, flat; the mean where two entries stand for one number.

        Raises ModelError: A variable has no value.
        """
        for variable in self.variables:
            if variable.value is None:
                raise ModelError(f"variable {variable.name()!r} has no value: assign one or solve first")
        values = [dense(variable.value).ravel(order="F") for variable in self.variables]
        return self.reduced(np.concatenate([np.zeros(0), *values]))

    def reduced(self, entries: Array) -> Array:
        """Return the flat point of all entries of all variables."""
        return np.asarray(self.expansion.T @ entries / self._counts)

    def place(self, x: Array) -> None:
        """Set the variables to the values of a flat point."""
        entries = self.expansion @ x
        first, placed = 0, {}
        for variable in self.variables:
            placed[variable.id] = entries[first : first + variable.size].reshape(variable.shape, order="F")
            first += variable.size
        for variable in self.named:
            variable.save_value(placed[variable.id])

    def name(self, index: int) -> str:
        """Return the variable and position of a free number, such as ``x[0, 2]``."""
        for variable in self.variables:
            entries = self.entries[variable.id]
            if index in entries:
                position = np.unravel_index(int(np.flatnonzero(entries == index)[0]), variable.shape, order="F")
                return f"{variable.name()}[{', '.join(str(int(k)) for k in position)}]" if position else variable.name()
        raise IndexError(index)


def _free_numbers(variable: cp.Variable) -> tuple[np.ndarray, int]:
    """Return for each entry, column-major, the free number that it reads (-1 for none), and their count."""
    attributes, shape = variable.attributes, variable.shape
    entries = np.arange(variable.size).reshape(shape, order="F")
    kept = np.ones(shape, dtype=bool)
    if any(attributes.get(name) for name in SYMMETRIC):
        entries = np.minimum(entries, np.swapaxes(entries, -1, -2))
    if attributes.get("diag"):
        kept = np.eye(shape[0], dtype=bool)
    if attributes.get("sparsity"):
        kept = np.zeros(shape, dtype=bool)
        kept[tuple(variable.sparse_idx)] = True
    flat, free = entries.ravel(order="F"), np.full(variable.size, -1)
    used = kept.ravel(order="F")
    representatives, numbers = np.unique(flat[used], return_inverse=True)
    free[used] = numbers
    return free, int(representatives.size)


@contextmanager
def held(variables: Iterable[cp.Variable], constraints: Iterable[cp.Constraint] = ()) -> Iterator[None]:
    """Restore the values of variables, and the multipliers of constraints, afterwards."""
    leaves = [*variables, *(dual for constraint in constraints for dual in constraint.dual_variables)]
    values = [leaf.value for leaf in leaves]
    try:
        yield
    finally:
        for leaf, value in zip(leaves, values, strict=True):
            leaf.save_value(value)


def dense(value: Any) -> Array:
    """Return a value of cvxpy as an array of floats, also where it is sparse."""
    held: Any = value
    return np.asarray(held.toarray() if sp.issparse(value) else held, dtype=float)
