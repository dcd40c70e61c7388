"""Verification for three to five private symbols: no posterior has phi below a level, shown by cells on faces.

phi(pi) = -H(A pi) + lam H(pi) - nu.pi. At fixed A pi it is concave, so its least value over the simplex is at a vertex
or inside a face F of 2 to |S| symbols, at a point where, with t = A pi,

    g_i = (A' log t)_i - lam log pi_i - nu_i   equals phi for every i in F,   and
    A' diag(1/t) A - lam diag(1/pi)            is positive semidefinite on sum d = 0.

Each face is cut into simplicial cells. From a cell's corners come l <= pi <= u and tl <= t <= tu; it is done if

    G  some g_i, with tl and u in it, is above the level: a stationary point in the cell is above it too;
    N  some direction d has d'(A' diag(1/tl) A - lam diag(1/u)) d < 0: the cell holds no local minimum;
    V  at the corners, a tangent of -H(A pi) plus the chord of lam H is above the level: so is phi in the whole cell;
    C  phi is convex on the hull of the cell and a point Y, and its tangent at Y is above the level at the corners.

Every test leaves a margin for rounding, so that "done" is true of the table as it is stored. Corners are exact.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from cvxpriv.bounds.cells import bisect, unit_cells

__all__ = ["FaceSearch", "face_minimum"]

Array: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]
Mask: TypeAlias = NDArray[np.bool_]

CHUNK = 8192
"""Cells worked on at once: their arrays stay in the processor's cache."""

FOUND_ENOUGH = 60
"""Posteriors below the level after which the search ends: the master program is to be solved again."""

FLOOR = 1e-300
"""Stands for zero under a division or a logarithm whose numerator is zero too."""

RELATIVE = 1e-13
"""Relative rounding error of a quadratic form of at most five symbols, with two digits to spare."""


def rounding(lam: float, nu: Array) -> float:
    """Absolute rounding error of phi, of g and of tangents: forty operations of 2.2e-16 on terms that are at most
    745 (1 + lam) + max |nu|, the logarithm of the least double being -745.
    """
    return 1e-14 * (750.0 * (1.0 + lam) + float(np.abs(nu).max(initial=0.0)))


@dataclass(frozen=True)
class FaceSearch:
    """What the cells have shown.

    Attributes
    ----------
    least : float
        No posterior on the faces has a smaller phi, rounding included. At least the level where the search was
        complete and found nothing.
    supports : list of array, ``(F,)``
        Symbols of the posteriors found below the level.
    weights : list of array, ``(F,)``
        Their probabilities.
    cells : int
        How many cells were looked at.
    complete : bool
        Whether every cell was done before the time ran out.
    """

    least: float
    supports: list[IntArray]
    weights: list[Array]
    cells: int
    complete: bool


@dataclass
class _Cells:
    """Cells of faces of one size: symbols (F, n), corners (F corners, F coordinates, n)."""

    symbols: IntArray
    corners: Array

    @property
    def count(self) -> int:
        return self.symbols.shape[1]

    def part(self, some: Mask | slice) -> _Cells:
        return _Cells(self.symbols[:, some], self.corners[:, :, some])

    def halves(self) -> _Cells:
        corners, _ = bisect(self.corners)
        return _Cells(np.concatenate([self.symbols, self.symbols], axis=1), corners)


def face_minimum(
    a: Array,
    lam: float,
    nu: Array,
    level: float,
    out_of_time: Callable[[], bool],
    largest_face: int | None = None,
) -> FaceSearch:
    """Show that phi >= level on all faces of 2 to |S| symbols, or find posteriors below it.

    Parameters
    ----------
    a : array, ``(|S|, |X|)``
        P(S|X); its entries are 0 or at least 1e-100.
    lam : float
    nu : array, ``(|X|,)``
    level : float
        Below zero.
    out_of_time : callable
        Asked once per chunk; True ends the search with the bound that holds until then.
    largest_face : int, optional
        Most symbols of a face; |S| by default.
    """
    search = _Search(a, lam, nu, level)
    sizes = range(2, min(largest_face or a.shape[0], a.shape[1]) + 1)
    waiting = deque(block for size in sizes for block in _roots(a.shape[1], size))
    while waiting:
        if len(search.supports) >= FOUND_ENOUGH or out_of_time():
            for cells in waiting:
                search.leave(cells)
            return search.result(complete=False)
        cells = _next_chunk(waiting)
        rest = search.reduce(cells)
        if rest.count:
            waiting.append(rest.halves())
    return search.result(complete=True)


def _roots(symbols: int, size: int) -> Iterator[_Cells]:
    """All faces of one size, a chunk at a time."""
    faces = itertools.combinations(range(symbols), size)
    while chunk := list(itertools.islice(faces, CHUNK)):
        yield _Cells(np.array(chunk, dtype=np.intp).T.copy(), unit_cells(size, len(chunk)))


def _next_chunk(waiting: deque[_Cells]) -> _Cells:
    """The oldest cells, up to a chunk of them, of one face size: small blocks are joined, large ones split."""
    blocks = [waiting.popleft()]
    count = blocks[0].count
    while waiting and count < CHUNK and len(waiting[0].symbols) == len(blocks[0].symbols):
        blocks.append(waiting.popleft())
        count += blocks[-1].count
    cells = blocks[0]
    if len(blocks) > 1:
        cells = _Cells(
            np.concatenate([block.symbols for block in blocks], axis=1),
            np.concatenate([block.corners for block in blocks], axis=2),
        )
    if cells.count > CHUNK:
        waiting.appendleft(cells.part(slice(CHUNK, None)))
        cells = cells.part(slice(0, CHUNK))
    return cells


@dataclass
class _Batch:
    """Cells with what all tests need of them."""

    cells: _Cells
    a: Array  # (K, F, n)
    nu: Array  # (F, n)
    t: Array  # (corners, K, n)
    low: Array  # (F, n)
    high: Array
    t_low: Array  # (K, n)
    t_high: Array

    @classmethod
    def of(cls, cells: _Cells, a: Array, nu: Array) -> _Batch:
        on_face = a[:, cells.symbols]
        corners = cells.corners
        t = np.einsum("sin,ain->asn", on_face, corners)
        return cls(
            cells, on_face, nu[cells.symbols], t, corners.min(0), corners.max(0), t.min(0), t.max(0)
        )

    def part(self, some: Mask) -> _Batch:
        if some.all():
            return self
        arrays = (self.a, self.nu, self.t, self.low, self.high, self.t_low, self.t_high)
        return _Batch(self.cells.part(some), *(array[..., some] for array in arrays))

    @property
    def differences(self) -> Array:
        """Columns of A less the last one, (K, F - 1, n): A on the basis e_i - e_F of the tangent space."""
        return self.a[:, :-1] - self.a[:, -1:]


@dataclass
class _Search:
    a: Array
    lam: float
    nu: Array
    level: float
    supports: list[IntArray] = field(default_factory=list)
    weights: list[Array] = field(default_factory=list)
    cells: int = 0
    left_least: float = np.inf
    """The least lower bound over cells that were given up."""

    def __post_init__(self) -> None:
        self.margin = rounding(self.lam, self.nu)
        self.goal = self.level + self.margin

    def result(self, complete: bool) -> FaceSearch:
        return FaceSearch(min(self.level, self.left_least), self.supports, self.weights, self.cells, complete)

    def leave(self, cells: _Cells) -> None:
        """Give cells up; what test V says of them still holds."""
        for start in range(0, cells.count, CHUNK):
            batch = _Batch.of(cells.part(slice(start, start + CHUNK)), self.a, self.nu)
            self.left_least = min(self.left_least, float(self._below(batch, self._chord(batch)).min()) - self.margin)

    def reduce(self, cells: _Cells) -> _Cells:
        """Return the cells that no test finishes."""
        self.cells += cells.count
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            batch = _Batch.of(cells, self.a, self.nu)
            for test in (self._stationary_value, self._no_minimum, self._chord_bound, self._convex_bound):
                batch = batch.part(~test(batch))
                if not batch.cells.count:
                    break
        return batch.cells

    def _stationary_value(self, batch: _Batch) -> Mask:
        """Test G."""
        log_t = np.maximum(np.log(batch.t_low), -1e300)  # of zero: times a zero of A it has to be zero
        g = np.einsum("sin,sn->in", batch.a, log_t) - self.lam * np.log(batch.high) - batch.nu
        return np.asarray(g.max(axis=0) >= self.goal)

    def _no_minimum(self, batch: _Batch) -> Mask:
        """Test N: a direction of falling slope, proposed by an LDL' factorisation and checked by itself."""
        done = np.zeros(batch.cells.count, dtype=bool)
        form = _hessian(batch, batch.t_low, batch.high, self.lam)
        for pivot in range(len(form)):
            falling = np.flatnonzero((form[pivot, pivot] < 0.0) & ~done)
            if len(falling):
                direction = _direction(form[:, :, falling], pivot)
                done[falling] = self._falls(batch, falling, direction)
            _eliminate(form, pivot)
        return done

    def _falls(self, batch: _Batch, some: IntArray, d: Array) -> Mask:
        """Whether d' H d < 0 with every rounding error against it; d is (F, n), its sum zero but for rounding."""
        length = np.abs(d).sum(axis=0)
        a, t_low, high = batch.a[:, :, some], batch.t_low[:, some], batch.high[:, some]
        error = 1e-14 * a.max(axis=1) * length
        rise = (np.abs(np.einsum("sin,in->sn", a, d)) + error) ** 2 / np.maximum(t_low, FLOOR)
        fall = np.maximum(np.abs(d) - 1e-14 * length, 0.0) ** 2 / high
        return np.asarray(rise.sum(axis=0) * (1.0 + RELATIVE) < self.lam * fall.sum(axis=0) * (1.0 - RELATIVE))

    def _chord(self, batch: _Batch) -> Array:
        """lam H(pi) - nu.pi at the corners, (corners, n)."""
        corners = batch.cells.corners
        return np.asarray(-self.lam * xlogy(corners, corners).sum(axis=1) - np.einsum("ain,in->an", corners, batch.nu))

    def _below(self, batch: _Batch, chord: Array) -> Array:
        """A lower bound of phi in each cell, (n,): the tangent of -H(t) at the middle, and the chord."""
        log_middle = np.log(np.maximum(batch.t.mean(axis=0), FLOOR))
        return np.asarray((np.einsum("asn,sn->an", batch.t, log_middle) + chord).min(axis=0))

    def _chord_bound(self, batch: _Batch) -> Mask:
        """Test V; corners below the level are found on the way."""
        chord = self._chord(batch)
        below = self._below(batch, chord)
        value = xlogy(batch.t, batch.t).sum(axis=1) + chord
        corner = value.argmin(axis=0)
        here = np.arange(batch.cells.count)
        found = value[corner, here] < self.level
        self._keep(batch, found, batch.cells.corners[corner, :, here].T, below)
        return np.asarray((below >= self.goal) | found)

    def _keep(self, batch: _Batch, found: Mask, points: Array, below: Array) -> None:
        """Note posteriors below the level; their cells are given up."""
        for n in np.flatnonzero(found):
            self.supports.append(batch.cells.symbols[:, n].copy())
            self.weights.append(points[:, n] / points[:, n].sum())
        if found.any():
            self.left_least = min(self.left_least, float(below[found].min()) - self.margin)

    def _convex_bound(self, batch: _Batch) -> Mask:
        """Test C."""
        done = np.zeros(batch.cells.count, dtype=bool)
        convex = np.flatnonzero(_positive_definite(batch, batch.t_high, batch.low, self.lam))
        if not len(convex):
            return done
        some = np.zeros(batch.cells.count, dtype=bool)
        some[convex] = True
        part = batch.part(some)
        point = self._newton_point(part)
        t = np.einsum("sin,in->sn", part.a, point)
        convex_there = _positive_definite(part, np.maximum(part.t_high, t), np.minimum(part.low, point), self.lam)
        g = self._slopes(part, point, t)
        tangent = np.einsum("ain,in->an", part.cells.corners, g).min(axis=0)
        value = np.sum(g * point, axis=0)
        found = value < self.level
        self._keep(part, found, point, self._below(part, self._chord(part)) if found.any() else tangent)
        done[convex] = (convex_there & (tangent >= self.goal)) | found
        return done

    def _slopes(self, batch: _Batch, point: Array, t: Array) -> Array:
        return np.asarray(
            np.einsum("sin,sn->in", batch.a, np.log(np.maximum(t, FLOOR))) - self.lam * np.log(point) - batch.nu
        )

    def _newton_point(self, batch: _Batch, steps: int = 3) -> Array:
        """A few Newton steps from the middle, inside the face, (F, n)."""
        point = batch.cells.corners.mean(axis=0)
        for _ in range(steps):
            t = np.einsum("sin,in->sn", batch.a, point)
            g = self._slopes(batch, point, t)
            step = _solve(_hessian(batch, t, point, self.lam), g[-1] - g[:-1])
            step = np.nan_to_num(np.concatenate([step, -step.sum(axis=0, keepdims=True)]), posinf=0.0, neginf=0.0)
            room = np.where(step < 0.0, -point / step, np.inf).min(axis=0)
            point = point + np.minimum(1.0, 0.9 * room) * step
        point = np.maximum(point, 1e-200)
        return np.asarray(point / point.sum(axis=0))


def _hessian(batch: _Batch, t: Array, pi: Array, lam: float) -> Array:
    """A' diag(1/t) A - lam diag(1/pi) on the basis e_i - e_F, (F - 1, F - 1, n)."""
    d = batch.differences
    form = np.einsum("sin,sjn->ijn", d / np.maximum(t, FLOOR)[:, None], d)
    loss = lam / np.maximum(pi, FLOOR)
    form -= loss[-1]
    for i in range(len(form)):
        form[i, i] -= loss[i]
    return form


def _eliminate(form: Array, pivot: int) -> None:
    """One step of LDL': below the pivot stand the multipliers, to the right what is left of the matrix."""
    for i in range(pivot + 1, len(form)):
        form[i, pivot] = form[i, pivot] / form[pivot, pivot]
    for i in range(pivot + 1, len(form)):
        for j in range(pivot + 1, i + 1):
            form[i, j] -= form[i, pivot] * form[j, pivot] * form[pivot, pivot]


def _direction(form: Array, pivot: int) -> Array:
    """Solve L' d = e_pivot and close the sum: d' H d is the pivot, (F, n)."""
    size = len(form)
    d = np.zeros((size + 1, form.shape[2]))
    d[pivot] = 1.0
    for i in range(pivot - 1, -1, -1):
        for j in range(i + 1, pivot + 1):
            d[i] -= form[j, i] * d[j]
    d[size] = -d[:size].sum(axis=0)
    return np.nan_to_num(d, posinf=0.0, neginf=0.0)


def _positive_definite(batch: _Batch, t: Array, pi: Array, lam: float) -> Mask:
    """Whether the form is positive definite with a margin for rounding: LDL' of it less a share of its trace."""
    form = _hessian(batch, t, pi, lam)
    size = len(form)
    loss = lam / np.maximum(pi, FLOOR)
    trace = sum(np.abs(form[i, i]) + 2.0 * (loss[i] + loss[-1]) for i in range(size))
    for i in range(size):
        form[i, i] -= RELATIVE * trace
    good = np.ones(form.shape[2], dtype=bool)
    for pivot in range(size):
        good &= form[pivot, pivot] > 0.0
        _eliminate(form, pivot)
    return good


def _solve(form: Array, right: Array) -> Array:
    """Solve many small symmetric systems by the same LDL', (F - 1, n)."""
    size, x = len(form), right.copy()
    for pivot in range(size):
        _eliminate(form, pivot)
    for i in range(size):
        for j in range(i):
            x[i] -= form[i, j] * x[j]
    for i in range(size):
        x[i] /= form[i, i]
    for i in range(size - 1, -1, -1):
        for j in range(i + 1, size):
            x[i] -= form[j, i] * x[j]
    return np.asarray(x)
