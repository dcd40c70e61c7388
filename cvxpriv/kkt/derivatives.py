"""Exact derivatives of cvxpy expressions at a point, also where cvxpy's own ``.grad`` is None.

The expressions are taken apart once (`cvxpriv.kkt.flat`); one level of atoms after the other, sets of Jacobians are
multiplied (`cvxpriv.kkt.jacobian_sets`). The atoms with rules of their own are right at kinks and boundaries too;
others fall back to cvxpy's subgradient, or to an error that names the atom.

Atoms of sorted values are smooth where no eigenvalue, singular value or entry inside the sum ties one outside it. There
cvxpy's single subgradient is the derivative. At a tie it is one element of a set of matrices, and says little;
`cvxpriv.kkt.proximal` measures a point there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from cvxpriv.kkt.coordinates import dense
from cvxpriv.kkt.derivative_rules import domain_shortfall, elementwise_rule
from cvxpriv.kkt.flat import Atom, Flat, Group, State
from cvxpriv.kkt.jacobian_sets import Derivative, DerivativeError, Local, add, assembled, clean, compose, intervals
from cvxpriv.kkt.vector_rules import extreme_of_stacked, vector_rule
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


OPPOSITE = "opposite infinite derivatives meet; move the point off the boundary"


@dataclass(frozen=True)
class Slopes:
    """The options of derivatives.

    `kink`: Distance from a kink within which arguments count as on it.
    `domain`: Largest distance of an argument outside its domain; it is then taken as on the boundary.
    `floor`: Lower bound to which the arguments of logarithms and roots are lifted, which makes all derivatives finite.
    """

    kink: float = 0.0
    domain: float = 0.0
    floor: float = 0.0


def slopes_at(flat: Flat, state: State, how: Slopes) -> Derivative:
    """Return the set of Jacobians (t, n) of all nonlinear atoms' values.

    Raises DerivativeError: An atom has no derivative there that is known here.
    """
    n, count = flat.size, flat.M.shape[1] - flat.size
    total = Derivative.smooth(sp.csr_array((count, n)))
    for groups, others in flat.grouped:
        pieces = [piece for group in groups for piece in _of_group(group, state, how)]
        pieces += [piece for atom in others for piece in _of_atom(atom, state, how)]
        read = np.unique(np.concatenate([np.zeros(0, dtype=int), *(columns for _, _, columns in pieces)]))
        placed = [(piece, rows, np.searchsorted(read, columns)) for piece, rows, columns in pieces]
        found = compose(assembled(placed, count, read.size), stacked(flat.M[read], total))
        if (wrong := np.isnan(found.base.data)).any():
            row = int(np.repeat(np.arange(count), np.diff(found.base.indptr))[wrong][0])
            atom = next(atom for atom in flat.atoms if atom.place.start <= row < atom.place.stop)
            raise DerivativeError(f"{label(atom.node)}: {OPPOSITE}")
        total = add(total, found)
    return total


def stacked(rows: Any, atoms: Derivative) -> Derivative:
    """Return the set of Jacobians of rows of ``[x; t]``, given that of ``t``.

    Raises DerivativeError: Infinite slopes of opposite signs meet.
    """
    if not atoms.base.shape[0]:
        return Derivative.smooth(rows, atoms.exact)
    (m, n), own = atoms.base.shape, atoms.base
    indices, ends = np.concatenate([np.arange(n), own.indices]), np.concatenate([np.arange(n), n + own.indptr])
    beside = sp.csr_array((np.concatenate([np.ones(n), own.data]), indices, ends), shape=(n + m, n))  # of [x; t]
    base = clean(clean(rows) @ beside)
    if np.isnan(base.data).any():
        raise DerivativeError(f"a sum of atoms: {OPPOSITE}")
    if not atoms.low.size:
        return Derivative.smooth(base, atoms.exact)
    outer = clean(sp.csc_array(rows)[:, atoms.base.shape[1] :] @ atoms.outer)
    used = np.flatnonzero(np.diff(sp.csc_array(outer).indptr) > 0)
    kinks = sp.csr_array(outer[:, used]), sp.csr_array(atoms.inner[used])
    return Derivative(base, *kinks, atoms.low[used], atoms.high[used], atoms.exact)


def _of_group(group: Group, state: State, how: Slopes) -> list[tuple[Local, np.ndarray, np.ndarray]]:
    """Return the Jacobians of elementwise atoms, one per argument, with their rows and the columns that they read."""
    node = group.node
    values = [state.u[rows] for rows in group.rows]
    if domain_shortfall(node, values) > how.domain:
        worst = max(group.atoms, key=lambda atom: domain_shortfall(atom.node, atom.arguments(state.u)))
        _require_inside(worst.node, worst.arguments(state.u), how.domain)
    read = [np.where(np.abs(x) <= how.kink, 0.0, x) for x in values] if isinstance(node, cp.abs) else values
    rule = elementwise_rule(node)
    assert rule is not None  # a group has one
    if isinstance(node, cp.maximum | cp.minimum):
        stacked_rows = np.concatenate(group.rows)
        return [(extreme_of_stacked(node, values, how.kink), group.places, stacked_rows)]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        slopes = rule(node, read, how.floor)
    count = np.arange(group.places.size)
    pieces = []
    for rows, (low, high) in zip(group.rows, slopes, strict=True):
        if np.isnan(low).any() or np.isnan(high).any():
            raise DerivativeError(f"{label(node)}: no derivative at its arguments' values; repair the point first")
        pieces.append((intervals(count, count, low, high), group.places, rows))
    return pieces


def _require_inside(node: Any, values: Sequence[Array], domain: float) -> None:
    shortfall = domain_shortfall(node, values)
    if shortfall > domain:
        raise DerivativeError(
            f"{label(node)}: an argument lies {shortfall:.3g} outside the domain; repair the point first"
        )


def _of_atom(atom: Atom, state: State, how: Slopes) -> list[tuple[Local, np.ndarray, np.ndarray]]:
    """Return the Jacobians of another atom, one for each argument."""
    node, values = atom.node, atom.arguments(state.u)
    _require_inside(node, values, how.domain)
    found = vector_rule(node, values, how.kink, how.floor)
    if found is None:
        found = _own(node, values, exact=smooth_atom(node) or untied(node, values, how.kink))
    rows = np.arange(atom.place.start, atom.place.stop)
    return [
        (local, rows, np.arange(piece.start, piece.stop))
        for local, piece, arg in zip(found, atom.rows, node.args, strict=True)
        if not arg.is_constant()
    ]


def label(node: Any) -> str:
    """Return the name of an atom in messages."""
    return f"atom {type(node).__name__!r} of shape {node.shape}"


def _own(node: Any, values: Sequence[Array], exact: bool) -> list[Local]:
    """Return cvxpy's own derivative of one atom: one subgradient, which is the derivative where there is one."""
    if isinstance(node, cp.log_sum_exp):  # a shift leaves its slope, and spares cvxpy the exponentials of 1000
        values = [value - np.max(value, axis=node.axis, keepdims=True) for value in values]
    try:
        parts = node._grad([np.asarray(value) for value in values])
    except Exception as error:  # atoms of cvxpy raise what they like
        raise DerivativeError(f"{label(node)}: no derivative known here ({error})") from error
    local = []
    parts = [*parts, *[0.0] * (len(node.args) - len(parts))]  # dotsort leaves out its constant weights
    for part, arg in zip(parts, node.args, strict=True):
        if part is None:
            raise DerivativeError(f"{label(node)}: no derivative at its arguments' values; move the point inside")
        matrix = np.full((arg.size, node.size), part) if np.isscalar(part) else dense(part)
        if not np.isfinite(matrix).all():
            raise DerivativeError(f"{label(node)}: the derivative is not finite; move the point inside its domain")
        local.append(Local.smooth(matrix.T, exact))
    return local
