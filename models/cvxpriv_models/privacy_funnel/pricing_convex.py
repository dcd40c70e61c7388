"""Cells on which the second derivative of the priced function is known: bent down, or convex.

phi(pi) = -H(A pi) + lam H(pi) - nu.pi. With A pi >= low and pi <= high on a cell, its second derivative along d,
sum d = 0, is at most sum_s (A d)_s^2 / low_s - lam sum_i d_i^2 / high_i. A cell on which phi bends down along some
direction holds no local minimum.

Around a minimum inside a face, plain subdivision goes on until a cell is as small as the square root of the wanted
accuracy. Convexity ends it far earlier: one Newton point bounds the cell. With pi >= low and A pi <= high on a cell and
at a point Y of the face, phi is convex on their hull if A' diag(1/high) A - lam diag(1/low) is positive definite on
sum d = 0, and then lies above its tangent at Y, whose least value over the cell is at a corner.
"""

import numpy as np

from cvxpriv.numerics.arrays import Array, Flags, IntArray
from cvxpriv.numerics.simplex import edge_pairs

from .pricing_search import TINY

#: Steps of Newton's method: a cell from which they do not arrive is cut.
STEPS = 3
#: Share of the way to the boundary of its face that a step may go.
INSIDE = 0.9
#: Share of a form's terms that its pivots have to exceed: the rounding of the form and of its factors, for up to eight
#: symbols, with a digit to spare.
RELATIVE = 1e-13


def above_tangents(
    corners: Array, t: Array, a: Array, lam: float, nu: Array, points: Array | None = None
) -> tuple[IntArray, Array, Array]:
    """Bound phi below on the cells on which it is convex.

    `corners`: Each cell's corners on its face of F symbols.
    `t`: A times the corners.
    `a`: P(S|X) of each face's symbols.
    `points`: Points of the tangents, where they are known; Newton's method looks for them else.

    Returns the cells on which phi was shown to be convex, (k,); what it is nowhere lower than there, but for rounding,
    (k,); and the points of the tangents, minima of phi on the face as a rule, (F, k).
    """
    low, high = corners.min(axis=0), t.max(axis=0)
    cells = np.flatnonzero(_definite(*_form(1.0 / low, 1.0 / high, a, lam)))
    if not len(cells):
        return cells, np.zeros(0), np.zeros((len(nu), 0))
    low, high, a, nu, corners = low[:, cells], high[:, cells], a[:, :, cells], nu[:, cells], corners[:, :, cells]
    y = _newton(corners.mean(axis=0), a, lam, nu) if points is None else points[:, cells]
    at = np.einsum("sin,in->sn", a, y)
    held = _definite(*_form(1.0 / np.minimum(low, y), 1.0 / np.maximum(high, at), a, lam))
    least = np.einsum("in,ain->an", _slopes(y, at, a, lam, nu), corners).min(axis=0)
    return cells[held], least[held], y[:, held]


def _newton(y: Array, a: Array, lam: float, nu: Array) -> Array:
    """A few steps towards the stationary point of each face, inside it; (F, n)."""
    for _ in range(STEPS):
        at = np.einsum("sin,in->sn", a, y)
        slopes = _slopes(y, at, a, lam, nu)
        form, _ = _form(1.0 / y, 1.0 / at, a, lam)
        move = _solved(form, slopes[-1] - slopes[:-1])
        move = np.where(np.isfinite(move), move, 0.0)
        move = np.concatenate([move, -move.sum(axis=0)[None]])
        room = np.where(move < 0.0, -y / move, np.inf).min(axis=0)
        y = y + np.minimum(1.0, INSIDE * room) * move
    return y


def _slopes(y: Array, at: Array, a: Array, lam: float, nu: Array) -> Array:
    """A' log t - lam log pi - nu, (F, n): the gradient without its constant; its mean under pi is phi."""
    return np.asarray(np.einsum("sin,sn->in", a, np.log(np.maximum(at, TINY))) - lam * np.log(y) - nu)


def _form(weight: Array, curve: Array, a: Array, lam: float) -> tuple[Array, Array]:
    """A' diag(curve) A - lam diag(weight) on the basis e_i - e_F, (F-1, F-1, n), and the size of its terms, (F-1, n).

    A symbol of S that no symbol of the face goes with has an infinite `curve`, and counts for nothing.
    """
    root = a * np.sqrt(np.where(np.isfinite(curve), curve, 0.0))[:, None]
    d, bend = root[:, :-1] - root[:, -1:], lam * weight
    size = np.sum(root**2, axis=0) + bend
    form = np.einsum("sin,sjn->ijn", d, d) - bend[-1]
    for i in range(len(form)):
        form[i, i] -= bend[i]
    return form, size[:-1] + size[-1]


def _definite(form: Array, size: Array) -> Flags:
    """Whether a form is positive definite whatever its rounding, by its pivots; (n,)."""
    for i in range(len(form)):
        form[i, i] -= RELATIVE * size[i]
    positive = np.ones(form.shape[2], dtype=bool)
    for pivot in range(len(form)):
        positive &= form[pivot, pivot] > 0.0
        _eliminate(form, pivot)
    return positive


def _solved(form: Array, right: Array) -> Array:
    """Solve form x = right by elimination without exchanges, (F-1, n): near a minimum the pivots are positive."""
    both = np.concatenate([form, right[:, None]], axis=1)
    for pivot in range(len(form)):
        _eliminate(both, pivot)
    x = both[:, -1]
    for pivot in range(len(form) - 1, -1, -1):
        for later in range(pivot + 1, len(form)):
            x[pivot] -= both[pivot, later] * x[later]
        x[pivot] /= both[pivot, pivot]
    return x


def _eliminate(rows: Array, pivot: int) -> None:
    """Subtract the pivot's row from those below it, so that their entry in its column would vanish."""
    for i in range(pivot + 1, len(rows)):
        rows[i, pivot + 1 :] -= rows[i, pivot] / rows[pivot, pivot] * rows[pivot, pivot + 1 :]


#: Stands for zero under a division or a logarithm whose numerator is zero too.
FLOOR = 1e-300
#: Points of the grid on which two symbols are looked at, and pairs looked at together.
SHARES, PAIRS = 32, 4096


def bends_down(t: Array, posteriors: Array, a: Array, spread: Array | None, lam: float) -> Flags:
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
        for i in range(pivot + 1, len(form)):  # multipliers below the pivot; to the right what is left of the matrix
            form[i, pivot] = form[i, pivot] / form[pivot, pivot]
        for i in range(pivot + 1, len(form)):
            for j in range(pivot + 1, i + 1):
                form[i, j] -= form[i, pivot] * form[j, pivot] * form[pivot, pivot]
    return done


def may_be_together(a: Array, lam: float) -> Flags:
    """Return which two symbols a local minimum may hold together, (|X|, |X|).

    `a`: P(S|X), (|S|, |X|). With r the first one's share of the two, phi bends down along e_i - e_j wherever

        G(r) = sum_s (a_si - a_sj)^2 r (1 - r) / (a_si r + a_sj (1 - r)) < lam,

    whatever else the posterior holds. Each term is one over a/(1 - r) + b/r, so G is concave, and values and slopes on
    a grid bound it. Where G < lam + c, phi + c h(r) bends down (h the binary entropy): one of the two symbols can
    take the place of both at a loss of c log 2 at most.
    """
    first, second = edge_pairs(a.shape[1])
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


def _falls(a: Array, low: Array, high: Array, lam: float, d: Array, spread: Array | None) -> Flags:
    """Whether sum_s (A d)_s^2 / low_s < lam sum_i d_i^2 / high_i, with every rounding error against it.

    d is (F, n); its sum is zero but for rounding. With other posteriors than symbols, d_i on the right is theirs.
    """
    length = np.abs(d).sum(axis=0)
    error = 1e-14 * a.max(axis=1) * length
    rise = (np.abs(np.einsum("sin,in->sn", a, d)) + error) ** 2 / np.maximum(low, FLOOR)
    moved = d if spread is None else np.einsum("xin,in->xn", spread, d)
    fall = np.maximum(np.abs(moved) - 1e-14 * length, 0.0) ** 2 / np.maximum(high, FLOOR)
    return np.asarray(rise.sum(axis=0) * (1.0 + RELATIVE) < lam * fall.sum(axis=0) * (1.0 - RELATIVE))


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
