"""Kinks of atoms, and the points where atoms of sorted values have none.

They are smooth where no eigenvalue, singular value or entry inside the sum ties one outside it. There cvxpy's single
subgradient is the derivative. At a tie it is one element of a set of matrices, and says little; `cvxpriv.kkt.proximal`
measures a point there.
"""

from collections.abc import Callable, Sequence

import cvxpy as cp
import numpy as np

from cvxpriv.numerics.arrays import Array

Separation = Callable[[cp.Expression, Array], float]


def _largest(values: Array, count: float) -> float:
    """Return the distance between the last value that a sum of the largest takes and the first that it leaves."""
    if count != int(count) or not 0 < count < values.size:
        return np.inf if count >= values.size else 0.0
    ordered = np.sort(values.ravel())[::-1]
    return float(ordered[int(count) - 1] - ordered[int(count)])


def _sigma_max(atom: cp.Expression, matrix: Array) -> float:
    values = np.linalg.svd(matrix, compute_uv=False).astype(float)
    return min(_largest(values, 1), float(values[0]))  # a norm has a kink at zero


SEPARATION: dict[type, Separation] = {
    cp.lambda_max: lambda atom, matrix: _largest(np.linalg.eigvalsh(matrix).astype(float), 1),
    cp.lambda_sum_largest: lambda atom, matrix: _largest(np.linalg.eigvalsh(matrix).astype(float), atom.k),
    cp.sum_largest: lambda atom, entries: _largest(entries, atom.k),
    cp.sigma_max: _sigma_max,
    cp.normNuc: lambda atom, matrix: float(np.linalg.svd(matrix, compute_uv=False)[-1]),
}


SMOOTH = frozenset({"log_sum_exp", "log_det", "MatrixFrac", "tr_inv", "normcdf", "sinh"})
"""Names of atoms that are smooth inside their domain, though cvxpy does not state so for all."""


def smooth_atom(atom: cp.Expression) -> bool:
    """Return whether an atom is differentiable throughout the inside of its domain."""
    return bool(atom.is_atom_smooth()) or type(atom).__name__ in SMOOTH


def untied(atom: cp.Expression, values: Sequence[Array], tolerance: float) -> bool:
    """Return whether an atom of sorted values is smooth at these arguments, by more than a tolerance.

    `values`: Values of its arguments. `tolerance`: Separations up to this count as ties.
    """
    separation, argument = SEPARATION.get(type(atom)), np.asarray(values[0])
    stacked = getattr(atom, "axis", None) is not None or argument.ndim > 2
    return separation is not None and not stacked and separation(atom, argument) > tolerance
