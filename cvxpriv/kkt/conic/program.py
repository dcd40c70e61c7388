"""Cone programs as solvers see them, uniform whatever the solver.

minimise 1/2 x'Px + c'x + d   subject to   A x + s = b,  s in K;        dual: z in K*, Px + A'z + c = 0
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from cvxpriv.kkt.conic.cones import ConeLayout
from cvxpriv.kkt.conic.data import extract
from cvxpriv.numerics.arrays import Array


@dataclass(frozen=True, eq=False)
class ConeProgram:
    """``minimise 1/2 x'Px + c'x + d`` over ``A x + s = b``, ``s`` in the cone of ``layout``.

    `P`, (n, n): The quadratic part, symmetric, with both triangles.
    `c`, `d`, (n,): Linear part and constant of the objective.
    `A`, `b`, (m, n), (m,): Rows in the order of ``layout``.
    `maximise`: Whether the user's problem is a maximisation: its value is then the negative of the program's.
    `columns`: Name and size of the variables behind the columns, for messages.
    """

    P: sp.csc_array
    c: Array
    d: float
    A: sp.csc_array
    b: Array
    layout: ConeLayout
    maximise: bool = False
    columns: tuple[tuple[str, int], ...] = field(default=(), repr=False)

    @classmethod
    def from_problem(cls, problem: cp.Problem, solver: str, options: Mapping[str, object] | None = None) -> ConeProgram:
        """Return the cone program that cvxpy hands to ``solver`` for ``problem``.

        Raises ModelError: If the solver is not one that this module reads, or the problem is mixed-integer.
        """
        return cls(**extract(problem, solver, options or {}).fields)

    def value(self, x: Array) -> float:
        """Return the primal objective of the minimisation."""
        return float(0.5 * x @ (self.P @ x) + self.c @ x + self.d)

    def dual_value(self, x: Array, z: Array) -> float:
        """Return the dual objective; a bound only if ``z`` is dual feasible at ``x``."""
        return float(-0.5 * x @ (self.P @ x) - self.b @ z + self.d)

    def slack(self, x: Array) -> Array:
        """Return the slack ``b - A x``."""
        left: Array = self.b - self.A @ x
        return left

    @cached_property
    def transposed(self) -> sp.csr_array:
        """``A'``."""
        return sp.csr_array(self.A.T)

    @cached_property
    def sizes(self) -> tuple[sp.csc_array, sp.csc_array, sp.csr_array]:
        """Absolute values of ``P``, ``A`` and ``A'``."""
        return abs(self.P), abs(self.A), abs(self.transposed)

    @property
    def unit(self) -> float:
        """The largest coefficient of the objective, or 1 where that is smaller or there is none."""
        largest = max(float(np.abs(part).max(initial=0.0)) for part in (self.c, self.P.data))
        return min(1.0, largest) or 1.0

    def terms(self, x: Array, z: Array | None = None) -> float:
        """Return the size of the objective's terms, which may cancel; with ``z`` also those of the dual's."""
        size = np.abs(x)
        primal = float(np.abs(self.c) @ size + 0.5 * size @ (self.sizes[0] @ size))
        return max(self.unit, primal, 0.0 if z is None else float(np.abs(self.b) @ np.abs(z)))

    def block_sizes(self, x: Array) -> Array:
        """Return the size of the terms of each block's slack, one for each of `ConeLayout.names`."""
        size = self.sizes[1]
        rows = size @ np.abs(x) + np.abs(self.b)
        if size.nnz:
            rows = rows + size.max(axis=1).toarray().ravel()
        blocks: Array = np.maximum.reduceat(rows, self.layout.starts) if rows.size else rows
        return np.where(blocks > 0.0, blocks, 1.0)

    def user_value(self, value: float) -> float:
        """Return a value of the minimisation in the sense of the user's problem."""
        return -value if self.maximise else value

    def column_name(self, index: int) -> str:
        """Return the variable and entry behind a column, such as ``x[2]``."""
        for name, size in self.columns:
            if index < size:
                return f"{name}[{index}]"
            index -= size
        return f"column[{index}]"
