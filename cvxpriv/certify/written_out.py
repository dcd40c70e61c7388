"""A problem in plain numbers, for the script of a bug report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.errors import ModelError
from cvxpriv.kkt.conic.data import ConeData, extract
from cvxpriv.kkt.coordinates import held
from cvxpriv.kkt.integers import mixed_integer

REFERENCE = "CLARABEL"
"""Solver whose cone program stands in the script of an answer that is stored, or that is mixed-integer."""


@dataclass(frozen=True)
class Written:
    """A problem's numbers: its cone program, which of its columns are whole numbers, and those of each variable.

    `places`: Columns of the variables that have columns of their own, column-major.
    """

    compiled: ConeData
    integers: tuple[int, ...]
    places: Mapping[str, list[int]]

    @classmethod
    def of(cls, problem: cp.Problem, solver: str, options: Mapping[str, Any]) -> Written:
        """Return the numbers that a solver is given; of a mixed-integer problem those of its relaxation.

        Raises ModelError: An entry is restricted to other values than whole numbers.
        """
        mixed = mixed_integer(problem)
        if mixed is None:
            compiled = extract(problem, solver, options)
            return cls(compiled, (), _places(problem, compiled))
        compiled = extract(mixed.relaxed, REFERENCE, {})
        size = compiled.fields["c"].size
        columns, integers = compiled.variables(np.arange(size, dtype=float)) or {}, set[int]()
        with held(mixed.relaxed.variables()):
            for variable in mixed.relaxed.variables():
                variable.save_value(np.reshape(columns.get(variable.id, np.full(variable.shape, -1.0)), variable.shape))
            for one in mixed.restrictions:
                if not (
                    np.isin(one.value, range(size)).all() and (one.allowed is None or list(one.allowed) == [0.0, 1.0])
                ):
                    raise ModelError(f"{one.name} is restricted to a set of values, which no script writes out")
                integers.update(map(int, one.value))
        return cls(compiled, tuple(sorted(integers)), _places(mixed.relaxed, compiled))


def _places(problem: cp.Problem, compiled: ConeData) -> dict[str, list[int]]:
    """The columns of each of the problem's variables, column-major; those that have columns of their own."""
    numbers = np.arange(compiled.fields["c"].size, dtype=float)
    entries = compiled.variables(numbers) or {}
    found = {}
    for variable in problem.variables():
        flat = entries.get(variable.id, np.array([np.nan])).ravel(order="F")
        if flat.size == variable.size and np.isin(flat, numbers).all():
            found[variable.name()] = [int(entry) for entry in flat]
    return found
