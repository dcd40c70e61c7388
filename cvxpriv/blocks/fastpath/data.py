"""The affine map from a problem's Parameters to the numbers a solver is given.

cvxpy keeps, for a DPP problem, one sparse tensor that takes the stacked Parameters to the cone data. Here that tensor
is cut down, once, to the entries that Parameters touch; a re-solve then costs one small product, and writes those
entries into one buffer of which the solver's matrices and vectors are views.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxpriv.errors import DataError
from cvxpriv.numerics.arrays import Array

Indices = NDArray[np.integer[Any]]
Pattern = tuple[Indices, Indices, tuple[int, int]]

#: cvxpy's name for the constant among the columns of its tensors.
CONSTANT = -1


@dataclass(frozen=True, eq=False)
class ConeMap:
    """The map to ``minimise 1/2 x'Px + q'x + d`` over ``A x + s = b``, ``s`` in a cone, from the Parameters.

    `buffer`: All numbers, one section after the other: P (upper triangle), q, d, A, b. `P` and `A` are views of it.
    `touched`: The entries of the buffer that Parameters reach.
    `rows`, (touched, 1 + sum of the Parameters' sizes): ``buffer[touched] = rows @ stacked``.
    `sections`: Place of each section in the buffer.
    `zero`: Number of equality rows; they come first in A and b.
    `P`, `A`, (n, n), (m, n): Entries that are zero for some values of the Parameters are stored as well: the pattern
    never changes.
    """

    buffer: Array
    touched: Indices
    rows: sp.csr_array
    sections: Mapping[str, slice]
    zero: int
    P: sp.csc_array
    A: sp.csc_array

    def __getitem__(self, section: str) -> Array:
        """Return a section of the buffer, as a view."""
        return self.buffer[self.sections[section]]

    def moving(self) -> frozenset[str]:
        """Return the names of the sections that Parameters reach."""
        return frozenset(
            name
            for name, part in self.sections.items()
            if ((part.start <= self.touched) & (self.touched < part.stop)).any()
        )

    def value(self, x: Array) -> float:
        """Return the objective at a point, computed without the solver."""
        value = float(self["q"] @ x + self["d"][0])
        if not self.P.nnz:
            return value
        whole = 2.0 * float(x @ (self.P @ x)) - float(x @ (self.P.diagonal() * x))
        return value + 0.5 * whole

    def apply(self, stacked: Array) -> None:
        """Write the entries that Parameters reach.

        Raises DataError: One of them is not a finite number; the buffer is then left as it was.
        """
        values = self.rows @ stacked
        if not np.isfinite(values).all():
            raise DataError(
                "the Parameters' values make the solver's data overflow: rescale the Parameters or the problem"
            )
        self.buffer[self.touched] = values


def cone_map(program: Any) -> ConeMap:
    """Return the map of a problem that cvxpy has compiled for a solver.

    `program`: ``data["param_prob"]`` of ``Problem.get_problem_data``.
    """
    size, rows, zero = int(program.x.size), int(program.constr_size), int(program.cone_dims.zero)
    width = int(program.total_param_size) + 1
    P, P_pattern = _quadratic(program, size, width)
    q = sp.csr_array(program.q)
    A, A_pattern, b = _constraints(program, size, rows, zero, width)
    parts = {"P": P, "q": _take(q, np.arange(size)), "d": _take(q, np.array([size])), "A": A, "b": b}
    sections, everything = _stack(parts)

    constant = int(program.param_id_to_col[CONSTANT]) if width > 1 else 0
    unit = np.zeros(width)
    unit[constant] = 1.0
    buffer = np.asarray(everything @ unit, dtype=float)
    entries = everything.tocoo()
    touched = np.unique(entries.row[entries.col != constant])
    return ConeMap(
        buffer=buffer,
        touched=touched,
        rows=_take(everything, touched),
        sections=sections,
        zero=zero,
        P=_view(buffer[sections["P"]], P_pattern),
        A=_view(buffer[sections["A"]], A_pattern),
    )


def _quadratic(program: Any, size: int, width: int) -> tuple[sp.csr_array, Pattern]:
    """Return the upper triangle of P; empty where the objective is linear."""
    tensor, index = program.reduced_P.reduced_mat, program.reduced_P.problem_data_index
    if tensor is None or index is None or tensor.shape[0] == 0:
        return sp.csr_array((0, width)), (np.zeros(0, dtype=int), np.zeros(size + 1, dtype=int), (size, size))
    indices, columns = index[0], np.repeat(np.arange(size), np.diff(index[1]))
    upper = np.flatnonzero(indices <= columns)
    return _take(sp.csr_array(tensor), upper), _pattern(indices[upper], columns[upper], (size, size))


def _constraints(
    program: Any, size: int, rows: int, zero: int, width: int
) -> tuple[sp.csr_array, Pattern, sp.csr_array]:
    """Return A and b with the solver's signs; cvxpy keeps both in one tensor, b as the last column."""
    if program.reduced_A.problem_data_index is None:  # no row at all
        nothing = np.zeros(0, dtype=int)
        return sp.csr_array((0, width)), _pattern(nothing, nothing, (rows, size)), sp.csr_array((rows, width))
    tensor = sp.csr_array(program.reduced_A.reduced_mat)
    indices, pointers, _ = program.reduced_A.problem_data_index
    columns = np.repeat(np.arange(size + 1), np.diff(pointers))
    sign = np.ones(rows)
    if not program.formatted:  # quadratic solvers get the equality rows as they are, conic ones negated twice
        sign[:zero] = -1.0
    inside = np.flatnonzero(columns < size)
    A = _scale(_take(tensor, inside), -sign[indices[inside]])
    side = np.flatnonzero(columns == size)
    counts = np.zeros(rows + 1, dtype=np.int64)
    known = _scale(_take(tensor, side), sign[indices[side]])
    counts[indices[side] + 1] = np.diff(known.indptr)
    b = sp.csr_array((known.data, known.indices, np.cumsum(counts)), shape=(rows, width))
    return A, _pattern(indices[inside], columns[inside], (rows, size)), b


def _pattern(indices: Indices, columns: Indices, shape: tuple[int, int]) -> Pattern:
    return indices, np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=shape[1]))]), shape


def _take(tensor: sp.csr_array, rows: Indices) -> sp.csr_array:
    """Return some rows with entries in the stored order: sums then round as cvxpy's do."""
    return sp.csr_array(sp.csr_array(tensor)[rows])


def _scale(tensor: sp.csr_array, signs: Array) -> sp.csr_array:
    data = tensor.data * np.repeat(signs, np.diff(tensor.indptr))
    return sp.csr_array((data, tensor.indices, tensor.indptr), shape=tensor.shape)


def _stack(parts: Mapping[str, sp.csr_array]) -> tuple[dict[str, slice], sp.csr_array]:
    ends: Sequence[int] = np.cumsum([part.shape[0] for part in parts.values()]).tolist()
    sections = {name: slice(end - part.shape[0], end) for (name, part), end in zip(parts.items(), ends, strict=True)}
    return sections, sp.csr_array(sp.vstack(list(parts.values()), format="csr"))


def _view(values: Array, pattern: Pattern) -> sp.csc_array:
    indices, pointers, shape = pattern
    matrix = sp.csc_array((values, indices.astype(np.int32), pointers.astype(np.int32)), shape=shape)
    matrix.data = values  # scipy copies a view that is less than half of its base
    return matrix
