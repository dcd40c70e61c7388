"""Cells on which the priced function bends down along some direction: they hold no local minimum.

phi(pi) = -H(A pi) + lam H(pi) - nu.pi. With A pi >= low and pi <= high on a cell, its second derivative along d,
sum d = 0, is at most sum_s (A d)_s^2 / low_s - lam sum_i d_i^2 / high_i.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cvxpriv.numerics.arrays import Array

Mask: TypeAlias = NDArray[np.bool_]

FLOOR = 1e-300
"""Stands for zero under a division or a logarithm whose numerator is zero too."""

RELATIVE = 1e-13
"""Relative rounding error of a quadratic form of at most five symbols, with two digits to spare."""

SHARES, PAIRS = 32, 4096
"""Points of the grid on which two symbols are looked at, and pairs looked at together."""


def bends_down(t: Array, posteriors: Array, a: Array, spread: Array | None, lam: float) -> Mask:
    """Test each cell by a direction that the LDL' factorisation of the form on e_i - e_F proposes, checked by itself.

    `t`: P(S) at each cell's corners.
    `posteriors`: P(X|y) at the corners; with `spread` over all symbols.
    `a`: P(S) given each of the face's symbols, or posteriors.
    `spread`: The posteriors of which the faces are mixtures, if not of symbols.

    Returns: True where phi has no local minimum inside the cell.
    """
    low, high = t.min(axis=0), posteriors.max(axis=0)
    done = np.zeros(t.shape[2], dtype=bool)
    d = a[:, :-1] - a[:, -1:]
    form = np.einsum("sin,sjn->ijn", d / np.maximum(low, FLOOR)[:, None], d)
    if spread is None:
        form -= lam / high[-1]
        for i in range(len(form)):
            form[i, i] -= lam / high[i]
    else:
        e = spread[:, :-1] - spread[:, -1:]
        form -= lam * np.einsum("xin,xjn->ijn", e / np.maximum(high, FLOOR)[:, None], e)
    for pivot in range(len(form)):
        falling = np.flatnonzero((form[pivot, pivot] < 0.0) & ~done)
        if len(falling):
            direction = _direction(form[:, :, falling], pivot)
            own = None if spread is None else spread[:, :, falling]
            done[falling] = _falls(a[:, :, falling], low[:, falling], high[:, falling], lam, direction, own)
        _eliminate(form, pivot)
    return done


def may_be_together(a: Array, lam: float) -> Mask:
    """Return which two symbols a local minimum may hold together, (|X|, |X|).

    `a`: P(S|X), (|S|, |X|). With r the first one's share of the two, phi bends down along e_i - e_j wherever

        G(r) = sum_s (a_si - a_sj)^2 r (1 - r) / (a_si r + a_sj (1 - r)) < lam,

    whatever else the posterior holds. Each term is one over a/(1 - r) + b/r, so G is concave, and values and slopes on
    a grid bound it. Where G < lam + c, phi + c h(r) bends down (h the binary entropy): one of the two symbols can
    take the place of both at a loss of c log 2 at most.
    """
    first, second = np.triu_indices(a.shape[1], 1)
    most = np.full(len(first), -np.inf)
    r = (np.arange(SHARES) + 0.5) / SHARES
    rest = 1.0 - r
    for start in range(0, len(first), PAIRS):
        some = slice(start, start + PAIRS)
        one, other = a[:, first[some], None], a[:, second[some], None]
        under = one * r + other * rest
        part = (one - other) ** 2 / np.maximum(under, FLOOR)
        value = (part * r * rest).sum(axis=0)
        slope = (part * (other * rest**2 - one * r**2) / np.maximum(under, FLOOR)).sum(axis=0)
        most[some] = (value + np.abs(slope) / SHARES).max(axis=1)
    found = np.zeros((a.shape[1], a.shape[1]), dtype=bool)
    found[first, second] = found[second, first] = most >= lam * (1.0 - RELATIVE)
    return found


def _falls(a: Array, low: Array, high: Array, lam: float, d: Array, spread: Array | None) -> Mask:
    """Whether sum_s (A d)_s^2 / low_s < lam sum_i d_i^2 / high_i, with every rounding error against it.

    d is (F, n); its sum is zero but for rounding. With other posteriors than symbols, d_i on the right is theirs.
    """
    length = np.abs(d).sum(axis=0)
    error = 1e-14 * a.max(axis=1) * length
    rise = (np.abs(np.einsum("sin,in->sn", a, d)) + error) ** 2 / np.maximum(low, FLOOR)
    moved = d if spread is None else np.einsum("xin,in->xn", spread, d)
    fall = np.maximum(np.abs(moved) - 1e-14 * length, 0.0) ** 2 / np.maximum(high, FLOOR)
    return np.asarray(rise.sum(axis=0) * (1.0 + RELATIVE) < lam * fall.sum(axis=0) * (1.0 - RELATIVE))


def _eliminate(form: Array, pivot: int) -> None:
    """One step of LDL': below the pivot stand the multipliers, to the right what is left of the matrix."""
    for i in range(pivot + 1, len(form)):
        form[i, pivot] = form[i, pivot] / form[pivot, pivot]
    for i in range(pivot + 1, len(form)):
        for j in range(pivot + 1, i + 1):
            form[i, j] -= form[i, pivot] * form[j, pivot] * form[pivot, pivot]


def _direction(form: Array, pivot: int) -> Array:
    """Solve L' d = e_pivot and close the sum: the form along d is the pivot; (F, n)."""
    size = len(form)
    d = np.zeros((size + 1, form.shape[2]))
    d[pivot] = 1.0
    for i in range(pivot - 1, -1, -1):
        for j in range(i + 1, pivot + 1):
            d[i] -= form[j, i] * d[j]
    d[size] = -d[:size].sum(axis=0)
    return np.where(np.isfinite(d), d, 0.0)
