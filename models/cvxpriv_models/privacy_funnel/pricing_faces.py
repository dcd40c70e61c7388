"""Verification for three to eight private symbols: no posterior has phi below a level, shown by cells on faces.

phi(pi) = -H(A pi) + lam H(pi) - nu.pi. At fixed A pi it is concave, so its least value over the simplex is at a corner,
or inside a face of 2 to |S| symbols as a local minimum of that face. Each face is cut into simplicial cells. From a
cell's corners v_a come pi <= u and A pi >= l, and the cell is done if

    N  some direction d, sum d = 0, has sum_s (A d)_s^2 / l_s < lam sum_i d_i^2 / u_i: phi bends down along d
       everywhere in the cell, which holds no local minimum;
    V  for some c in the simplex of S, (1 - lam) sum_s (A v_a)_s log c_s + lam (H(v_a) - H(A v_a)) - nu.v_a >= level
       at every corner: phi lies above the sum of a tangent of -(1 - lam) H(A pi) and a chord of the rest, which is
       linear. H(pi) - H(A pi) = H(X|S) - H(S|X) is concave, and small where X and S tell each other;
    C  phi is convex on the cell: it then lies above its tangent at its own minimum nearby.

The best c is A times the mixture of corners that minimises the tangent's function plus the chord, convex: a few steps
of Frank and Wolfe's method find it, and its value shows early that a cell has to be cut. Where the rate's multiplier is
small, V finishes large cells around the minima; where it is large, N finishes the rest. At a minimum itself V alone
would cut cells down to the square root of the accuracy; C ends that as soon as they are convex.

Every test leaves a margin for rounding, so that "done" is true of the table as it is stored. Corners are exact.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from dataclasses import dataclass, field

import numpy as np
from scipy.special import xlogy

from cvxpriv.bounds.columns import OUT_OF_TIME, Clock, Verified
from cvxpriv.numerics.arrays import Array, Flags, IntArray
from cvxpriv.numerics.simplex import bisect, parts_of_unit
from cvxpriv.tables.information import entropy

from .pricing_convex import FLOOR, above_tangents, bends_down, may_be_together

#: Cells worked on at once: their arrays stay in the processor's cache.
CHUNK = 8192
#: Cells up to which they are cut several times before the tests.
FEW = 128
#: Posteriors below the level after which the search ends: the master program is to be solved again.
FOUND_ENOUGH = 60
#: Largest number of faces that are still examined, once each, after the time is up: a second.
MOST_LEFT = 200_000
#: Tangents tried in a cell before it is cut.
TANGENTS = 8
#: Longest step towards one corner: the others keep some weight.
LONGEST = 0.98
#: Share of the level that phi may lose where two symbols together never help by more.
FLAT = 0.1


def rounding(lam: float, nu: Array) -> float:
    """Return the absolute rounding error of phi and of its tangents, of forty operations of 2.2e-16."""
    return 1e-14 * (750.0 * (1.0 + lam) + float(np.abs(nu).max(initial=0.0)))


def share(lam: float) -> float:
    """Return the share of -H(A pi) that lam H(pi) makes concave, with room for columns of A that sum to 1 + 1e-15."""
    return min(lam, 1.0) * (1.0 - 1e-14)


@dataclass
class _Cells:
    """Cells of faces of one size: symbols (F, n), corners (F corners, F coordinates, n)."""

    symbols: IntArray
    corners: Array

    @property
    def count(self) -> int:
        return int(self.symbols.shape[1])

    def part(self, some: Flags | slice) -> _Cells:
        return _Cells(self.symbols[:, some], self.corners[:, :, some])

    def cut(self) -> _Cells:
        """Return the halves, and those of few cells again: a few cost as much time as one."""
        symbols, (corners, _) = self.symbols, bisect(self.corners)
        symbols = np.concatenate([symbols, symbols], axis=1)
        halves = _Cells(symbols, corners)
        return halves if 2 * halves.count > FEW else halves.cut()


def face_minimum(
    a: Array,
    lam: float,
    nu: Array,
    level: float,
    out_of_time: Clock,
    spread: Array | None = None,
    known: Array | None = None,
) -> Verified:
    """Show that phi >= level on the simplex, by its corners and all faces of 2 to |S| symbols, or find what is below.

    `a`: P(S|X); its entries are 0 or at least 1e-100.
    `level`: Below zero. Where the search is complete and finds nothing, it is the least phi, but for corners.
    `out_of_time`: Asked once per chunk; True ends the search with the bound that holds until then.
    `spread`: Posteriors of which these faces are mixtures, in place of the symbols themselves: H is that of ``spread @
    pi``, and `a` is P(S) given each of them.
    `known`, (|X|, k): Posteriors with the least phi on their faces: no others are then looked for.
    """
    search = _Search(a, lam, nu, level, spread, known)
    together, slack = None, 0.0
    if spread is None and lam > 0.0:
        slack = FLAT * -level
        together = may_be_together(a, lam + slack / (a.shape[0] * math.log(2.0)))
        search.level += slack
    sizes = range(2, min(a.shape) + 1)
    for size in sizes:
        queue = _Queue(a.shape[1], size, together)
        while (cells := queue.next()) is not None:
            if len(search.found) >= FOUND_ENOUGH or out_of_time():
                search.leave(cells)
                search.leave_all(queue, [_Queue(a.shape[1], later, together) for later in sizes if later > size])
                return search.result(slack, OUT_OF_TIME)
            rest = search.reduce(cells)
            if rest.count:
                queue.waiting.append(rest.cut())
    return search.result(slack, "")


class _Queue:
    """Cells to work on, of faces of one size: those that were cut, and whole faces to fill up a chunk."""

    def __init__(self, symbols: int, size: int, together: Flags | None) -> None:
        self.size, self.untouched, self._together = size, math.comb(symbols, size), together
        self._faces = itertools.combinations(range(symbols), size)
        self.waiting: deque[_Cells] = deque()

    def next(self) -> _Cells | None:
        """Return up to a chunk of cells, or None if there are no more."""
        blocks: list[_Cells] = []
        missing = CHUNK
        while missing > 0 and self.waiting:
            block = self.waiting.popleft()
            if block.count > missing:
                self.waiting.appendleft(block.part(slice(missing, None)))
                block = block.part(slice(0, missing))
            blocks.append(block)
            missing -= block.count
        while missing > 0 and (listed := list(itertools.islice(self._faces, missing))):
            self.untouched -= len(listed)
            faces = np.array(listed, dtype=np.intp).T
            if self._together is not None:
                pairs = itertools.combinations(range(self.size), 2)
                faces = faces[:, np.logical_and.reduce([self._together[faces[i], faces[j]] for i, j in pairs])]
            if count := faces.shape[1]:
                parts = 1 << max(0, (FEW // count).bit_length() - 1)  # whole faces are cut already where they are few
                corners = np.tile(parts_of_unit(self.size, parts), count)
                blocks.append(_Cells(np.repeat(faces, parts, axis=1), corners))
                break
        if len(blocks) <= 1:
            return blocks[0] if blocks else None
        return _Cells(
            np.concatenate([block.symbols for block in blocks], axis=1),
            np.concatenate([block.corners for block in blocks], axis=2),
        )


@dataclass
class _Batch:
    """Cells with what the tests need of them."""

    cells: _Cells
    a: Array  # (K, F, n)
    nu: Array  # (F, n)
    t: Array  # A v at the corners, (corners, K, n)
    spread: Array | None  # (symbols, F, n), where the face is one of other posteriors than symbols

    @classmethod
    def of(cls, cells: _Cells, a: Array, nu: Array, spread: Array | None) -> _Batch:
        on_face = a[:, cells.symbols]
        t = np.einsum("sin,ain->asn", on_face, cells.corners)
        return cls(cells, on_face, nu[cells.symbols], t, None if spread is None else spread[:, cells.symbols])

    def part(self, some: Flags) -> _Batch:
        if some.all():
            return self
        spread = None if self.spread is None else self.spread[:, :, some]
        return _Batch(self.cells.part(some), self.a[:, :, some], self.nu[:, some], self.t[:, :, some], spread)

    def posteriors(self) -> Array:
        """P(X|y) at the corners, (corners, F or all symbols, n)."""
        if self.spread is None:
            return self.cells.corners
        return np.asarray(np.einsum("xin,ain->axn", self.spread, self.cells.corners))

    def chord(self, lam: float) -> Array:
        """lam H(v) - share(lam) H(A v) - nu.v at the corners, (corners, n)."""
        v, told = self.posteriors(), share(lam) * xlogy(self.t, self.t).sum(axis=1)
        return np.asarray(told - lam * xlogy(v, v).sum(axis=1) - np.einsum("ain,in->an", self.cells.corners, self.nu))


@dataclass
class _Search:
    a: Array
    lam: float
    nu: Array
    level: float
    spread: Array | None = None
    known: Array | None = None
    found: list[Array] = field(default_factory=list)
    left_least: float = np.inf
    """The least lower bound over cells that were given up."""

    def __post_init__(self) -> None:
        self.margin = rounding(self.lam, self.nu)
        self.bent = 1.0 - share(self.lam)

    def result(self, slack: float, reason: str) -> Verified:
        """The least phi, rounding included, and the posteriors found below the level."""
        kept = 0.0 if self.spread is None else self.lam * entropy(self.spread, axis=0)
        corners = float((kept - entropy(self.a, axis=0) - self.nu).min()) - self.margin
        columns = np.array(self.found).reshape(-1, len(self.nu)).T
        return Verified(min(self.level, self.left_least, corners) - slack, columns, reason)

    def leave(self, cells: _Cells) -> None:
        """Give cells up; what test V says of them still holds."""
        for start in range(0, cells.count, CHUNK):
            batch = _Batch.of(cells.part(slice(start, start + CHUNK)), self.a, self.nu, self.spread)
            middle = np.full(batch.t.shape[::2], 1.0 / len(batch.t))
            lowest = _tangent(batch.t, middle, batch.chord(self.lam), self.bent)[1].min()
            self.left_least = min(self.left_least, float(lowest) - self.margin)

    def leave_all(self, queue: _Queue, later: list[_Queue]) -> None:
        """Give up what waits; whole faces are looked at once if they are few, and bound nothing if they are not."""
        queues = [queue, *later]
        if sum(one.untouched for one in queues) > MOST_LEFT:
            self.left_least = -np.inf
            return
        for one in queues:
            while (cells := one.next()) is not None:
                self.leave(cells)

    def reduce(self, cells: _Cells) -> _Cells:
        """Return the cells that no test finishes."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            batch = _Batch.of(cells, self.a, self.nu, self.spread)
            batch = batch.part(~bends_down(batch.t, batch.posteriors(), batch.a, batch.spread, self.lam))
            if batch.spread is None and batch.cells.count:
                batch = batch.part(~self._above_tangent(batch))
            return batch.cells.part(~self._above(batch))

    def _above_tangent(self, batch: _Batch) -> Flags:
        """Test C; Newton points below the level are kept, and their cells given up."""
        points = None
        if self.known is not None:  # the known posterior on the face of each cell, else the cell's middle
            points = batch.cells.corners.mean(axis=0)
            faces = (1 << batch.cells.symbols).sum(axis=0)
            for column in self.known.T:
                support = np.flatnonzero(column)
                if len(support) == len(points):
                    points[:, faces == (1 << support).sum()] = column[support, None]
        cells, least, points = above_tangents(batch.cells.corners, batch.t, batch.a, self.lam, batch.nu, points)
        done = np.zeros(batch.cells.count, dtype=bool)
        done[cells[least >= self.level + self.margin]] = True
        below = np.flatnonzero(~done[cells])
        done[cells[below]] = self._keep(batch, cells[below], points[:, below], least[below])
        return done

    def _above(self, batch: _Batch) -> Flags:
        """Test V; posteriors below the level are found on the way, and their cells given up."""
        count, size = batch.cells.count, len(batch.t)
        done, active = np.zeros(count, dtype=bool), np.arange(count)
        chord, w, t = batch.chord(self.lam), np.full((size, count), 1.0 / size), batch.t
        for _ in range(TANGENTS):
            if not len(active):
                break
            middle, values = _tangent(t, w, chord, self.bent)
            lowest = values.min(axis=0)
            above = lowest >= self.level + self.margin
            done[active[above]] = True
            hopeless = np.sum(w * values, axis=0) < self.level + self.margin
            if hopeless.any():
                lost = active[hopeless]
                mixed = np.einsum("ain,an->in", batch.cells.corners[:, :, lost], w[:, hopeless])
                done[lost] = self._keep(batch, lost, mixed, lowest[hopeless])
            rest = ~above & ~hopeless
            active, w, t, chord = active[rest], w[:, rest], t[:, :, rest], chord[:, rest]
            w = _towards_lowest(t, w, values[:, rest], middle[:, rest], self.bent)
        return done

    def _keep(self, batch: _Batch, cells: IntArray, pi: Array, lowest: Array) -> Flags:
        """Keep posteriors with phi below the level, one for each of these cells, and what bounds phi in the cells."""
        t = np.einsum("sin,in->sn", batch.a[:, :, cells], pi)
        held = pi if batch.spread is None else np.einsum("xin,in->xn", batch.spread[:, :, cells], pi)
        told = xlogy(t, t).sum(axis=0) - self.lam * xlogy(held, held).sum(axis=0)
        value = told - np.sum(batch.nu[:, cells] * pi, axis=0)
        found = value < self.level
        for n in np.flatnonzero(found):
            column = np.zeros(len(self.nu))
            column[batch.cells.symbols[:, cells[n]]] = pi[:, n] / pi[:, n].sum()
            self.found.append(column)
        if found.any():
            self.left_least = min(self.left_least, float(lowest[found].min()) - self.margin)
        return np.asarray(found)


def _tangent(t: Array, w: Array, chord: Array, bent: float) -> tuple[Array, Array]:
    """c = A times the mixture w of the corners, (K, n), and the values of test V at the corners, (corners, n)."""
    middle = np.einsum("asn,an->sn", t, w)
    return middle, bent * np.einsum("asn,sn->an", t, np.log(np.maximum(middle, FLOOR))) + chord


def _towards_lowest(t: Array, w: Array, values: Array, middle: Array, bent: float) -> Array:
    """One step of Frank and Wolfe's method: towards the corner with the lowest value, by Newton's length."""
    lowest = values.argmin(axis=0)
    move = -w
    move[lowest, np.arange(w.shape[1])] += 1.0
    slope = np.sum(values * move, axis=0)
    change = np.einsum("asn,an->sn", t, move)
    bend = bent * np.sum(change**2 / np.maximum(middle, FLOOR), axis=0)
    length = np.minimum(np.maximum(-slope / np.maximum(bend, FLOOR), 0.0), LONGEST)
    return np.asarray(w + length * move)
