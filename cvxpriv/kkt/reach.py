"""The reach of a problem's variables: the sizes, below 1, that the constants of its rows give them.

In ``x <= 1e-9`` and in ``1e9*x <= 1`` a variable reaches 1e-9: there an error of 1e-9 is one of 100 %. A constant ``b``
beside a coefficient ``a`` reaches ``b/a``, and a row passes on the reach of its largest term to the others. Norms,
absolute values, extrema and squares keep the scale; the arguments of any other atom, as of ``exp``, have 1. So has a
variable of which no constant tells.
"""

from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.atoms.elementwise.power import Power
from cvxpy.atoms.norm1 import norm1
from cvxpy.atoms.norm_inf import norm_inf
from cvxpy.atoms.pnorm import Pnorm

from cvxpriv.kkt.coordinates import dense
from cvxpriv.kkt.flat import Atom, Flat
from cvxpriv.numerics.arrays import Array

LINEAR = (cp.abs, cp.max, cp.min, cp.maximum, cp.minimum, cp.sum_largest, norm1, norm_inf, Pnorm)
PASSES = 50
"""Most passes over the rows: a longer chain of rows ends at 1."""


def reach(flat: Flat) -> Array:
    """Return the reach of each variable's entry and of each atom's value, at most 1; the first row is the objective.

    Returns (n + t,).
    """
    M, m = sp.csr_array(abs(flat.M)), np.abs(flat.m)
    m[flat.places[0]] = 0.0
    M.data[M.indptr[flat.places[0].start] : M.indptr[flat.places[0].stop]] = 0.0
    M.eliminate_zeros()
    growths = [(atom, *_growth(atom.node)) for atom in flat.atoms]
    found = np.zeros(M.shape[1])
    for atom, degree, _ in growths:
        if not degree:
            for piece in atom.rows:
                m[piece] = np.maximum(m[piece], abs(M[piece]).max(axis=1).toarray().ravel()) if M.nnz else m[piece]
            found[flat.size + atom.place.start : flat.size + atom.place.stop] = 1.0
    rows = np.repeat(np.arange(m.size), np.diff(M.indptr))
    for _ in range(PASSES):
        before = found.copy()
        terms = m.copy()  # the size of each row's largest term
        np.maximum.at(terms, rows, M.data * found[M.indices])
        for atom, degree, factor in growths:
            if degree:
                _pass_on(atom, degree, factor, flat.size, terms, found)
        np.maximum.at(found, M.indices, np.minimum(terms[rows] / M.data, 1.0))
        if (found[: flat.size] == 1.0).all() or np.array_equal(before, found):
            found[found == 0.0] = 1.0
            return found
    return np.ones(found.size)


def _pass_on(atom: Atom, degree: int, factor: float, size: int, terms: Array, found: Array) -> None:
    """Pass the reach of an atom's arguments on to its value, and the other way."""
    place = slice(size + atom.place.start, size + atom.place.stop)
    pieces = atom.rows[:1] if degree == 2 else atom.rows
    most = max(float(terms[piece].max(initial=0.0)) for piece in pieces)
    found[place] = np.maximum(found[place], min(factor * most**degree, 1.0))
    back = (float(found[place].max(initial=0.0)) / factor) ** (1.0 / degree)
    for piece in pieces:
        terms[piece] = np.maximum(terms[piece], back)


def _growth(node: Any) -> tuple[int, float]:
    """Return ``d, f`` for an atom with values of about ``f * s**d`` for arguments of size ``s``; zero for any other."""
    if isinstance(node, LINEAR):
        return 1, 1.0
    if isinstance(node, Power):
        return (2, 1.0) if float(node.p.value) == 2.0 else (0, 0.0)
    if isinstance(node, cp.quad_over_lin | cp.QuadForm) and node.args[1].is_constant():
        size = float(np.abs(dense(node.args[1].value)).max())  # a Parameter may hold a bare number
        factor = size if isinstance(node, cp.QuadForm) else 1.0 / size if size > 0.0 else 0.0
        return (2, factor) if 0.0 < factor < np.inf else (0, 0.0)
    return 0, 0.0
