"""The funnel's columns, priced: a mechanism is a set of posteriors pi_y = P(X|y) with weights r_y = P(y).

    I(S;Y) = H(S) - sum_y r_y H(A pi_y)   subject to   sum_y r_y pi_y = P_X,   sum_y r_y H(pi_y) <= H(X) - R,

A = P(S|X). For any nu and lam >= 0, with phi(pi) = -H(A pi) + lam H(pi) - nu.pi,

    I(S;Y) >= H(S) + nu.P_X - lam (H(X) - R) + min over the simplex of phi.

Two private symbols are priced exactly by edges, three to eight are searched locally and verified by cells on faces,
more are searched locally only.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from cvxpriv.bounds.columns import Clock, Priced, Verified
from cvxpriv.bounds.master import Master
from cvxpriv.errors import DataError
from cvxpriv.numerics.arrays import Array, IntArray, parts
from cvxpriv.numerics.simplex import edge_pairs
from cvxpriv.tables.information import entropy

from .columns import PAYS, SMALL_X, Solved, first_columns, joint_newton, on_all_symbols, small_program
from .perfect_privacy import listed_silent
from .pricing_faces import face_minimum, rounding
from .pricing_search import FaceFunction, Found, descend, edge_minima, newton, wide_search

#: Largest number of private symbols of which random faces are searched locally, and all of many faces by cells.
LARGEST_S = 5
#: Largest number of private symbols whose faces are searched by cells, if there are so few of them.
LARGEST_PROVED, FEWER_FACES = 8, 100_000
#: Largest number of faces to start from: about a minute's work and 1 GB.
MOST_FACES = 2_000_000
#: Random starts of local pricing in each pass.
STARTS = 400
#: No more than so many for each of the largest faces.
STARTS_PER_FACE = 40
#: Largest number of points of the grid from which Newton's method starts.
MOST_NEAR = 40
#: Largest number of columns added in one pass; where none can be proved the best, at least so many for each symbol of
#: X: at 1000 symbols the passes are few.
MOST_ADDED, FOR_EACH_X = 200, 2
#: Least gain of a column that is sought where pricing is not complete.
SEARCH_LEVEL = 5e-8
#: Distance below which only the best of several columns is added: near copies make the master ill-conditioned.
APART = 0.02
#: Largest gain of a column, in nats, at which the multipliers are near enough for Newton's method on all at once.
NEAR = 1e-3
#: Multiplier of the rate below which the best posteriors are near those that tell nothing of S.
SMALL_MULTIPLIER = 0.2
#: Largest number of supports of such posteriors that are listed, in half a second.
MOST_SILENT = 300_000
EDGES_AT_ONCE = 200_000
#: Number of small programs after which column generation takes over.
ROUNDS = 4
#: A probability P(s|x) below this counts as zero: it changes every entropy by less than 1e-97.
NEGLIGIBLE = 1e-100
#: A table whose sum is this near to 1 stays as it is: its marginals are then those that a user computes.
NORMALISED = 1e-14


@dataclass
class FunnelPricing:
    """Pricing of the funnel's columns; it satisfies `cvxpriv.bounds.columns.Pricing`.

    `joint`: P(S, X); every column has mass.
    `rate`: R in nats; it may be changed, for a curve.
    `seed`: Seed of local pricing's random starts.
    Raises DataError: A symbol of X has no mass.
    """

    joint: Array
    rate: float
    seed: int = 0
    rng: np.random.Generator = field(init=False, repr=False)
    p_x: Array = field(init=False, repr=False)
    """P(X), (|X|,)."""
    p_s_given_x: Array = field(init=False, repr=False)
    """A = P(S|X), (|S|, |X|)."""
    entropy_x: float = field(init=False, repr=False)
    """H(X) in nats."""
    entropy_s: float = field(init=False, repr=False)
    """H(S) in nats."""

    def __post_init__(self) -> None:
        joint = np.asarray(self.joint, dtype=np.float64)
        if joint.ndim != 2 or not np.all(joint.sum(axis=0) > 0.0) or not np.all(joint >= 0.0):
            raise DataError("joint is no table of probabilities with mass in every column: drop empty symbols of X")
        total = math.fsum(joint.ravel())
        joint = joint if abs(total - 1.0) <= NORMALISED else joint / total
        self.joint = joint[joint.sum(axis=1) > 0.0]
        self.rng = np.random.default_rng(self.seed)
        self.p_x = self.joint.sum(axis=0)
        a = self.joint / self.p_x
        self.p_s_given_x = np.where(a < NEGLIGIBLE, 0.0, a)
        self.entropy_x, self.entropy_s = entropy(self.p_x), entropy(self.joint.sum(axis=1))

    @cached_property
    def limits(self) -> str:
        """The reason why the minimum of phi cannot be proved; "" if it can: |S| <= 2, or bearably many small faces."""
        size_s, size_x = self.joint.shape
        if size_s <= 2:
            return ""
        if min(size_s, size_x) > LARGEST_PROVED:
            return (
                f"the gap is not certified: |S| = {size_s}, and posteriors are searched completely up to "
                f"|S| = {LARGEST_PROVED} only; merge private symbols"
            )
        faces = sum(math.comb(size_x, size) for size in range(2, min(size_s, size_x) + 1))
        most = MOST_FACES if size_s <= LARGEST_S else FEWER_FACES
        if faces <= most:
            return ""
        return (
            f"the gap is not certified: {faces} faces of up to {size_s} of the {size_x} public symbols are more "
            f"than {most}; merge public symbols, or private ones"
        )

    @property
    def certifiable(self) -> bool:
        """Whether the minimum of phi can be proved."""
        return not self.limits

    def master(self) -> Master:
        """The master program without columns: the rows of P(X), and the row of the rate last."""
        upper = np.append(self.p_x, self.entropy_x - self.rate)
        return Master(np.append(self.p_x, -np.inf), upper)

    @cached_property
    def first(self) -> Array:
        """The columns to begin with, (|X|, n)."""
        return np.concatenate(list(first_columns(self.p_x, self.p_s_given_x)), axis=1)

    def rows(self, columns: Array) -> tuple[Array, Array]:
        """Costs -H(A pi), (n,), and rows (pi, H(pi)), (|X| + 1, n)."""
        return -entropy(self.p_s_given_x @ columns, axis=0), np.vstack([columns, entropy(columns, axis=0)])

    def split(self, duals: Array) -> tuple[float, Array]:
        """lam >= 0 and nu of the master's multipliers; a lam below 1e-30 is taken as none."""
        lam = float(max(-duals[-1], 0.0))
        return (lam if lam > 1e-30 else 0.0), np.asarray(duals[:-1], dtype=np.float64)

    def split_all(self, duals: Array) -> tuple[float, Array, Array]:
        """`split`, and mu >= 0 of the constraints' rows behind."""
        rows = len(self.p_x) + 1
        return *self.split(duals[:rows]), np.maximum(-duals[rows:], 0.0)

    def solved_at_once(self) -> Solved | None:
        """Columns and multipliers that solve the optimality conditions, and for which no first column pays.

        Where the posteriors of few symbols fill a grid, the best of them are near the best of all. So a program in a
        few rows and Newton's method usually end the search, and column generation with its solver need not begin.
        None where X or S has too many symbols, or two, or where that is not reached in a few rounds.
        """
        size_s, size_x = self.joint.shape
        if not (2 < size_x <= SMALL_X and 2 < size_s <= LARGEST_S):
            return None
        told = self.entropy_x - self.rate
        columns, (costs, rows) = self.first, self.rows(self.first)
        for _ in range(ROUNDS):
            begun = small_program(costs, rows, np.append(self.p_x, told))
            if begun is None:
                return None
            used, weights, duals = begun
            active = columns[:, used]
            lam, nu = self.split(duals)
            solved = joint_newton(self.p_s_given_x, self.p_x, -told, active, lam, nu, weights)
            if solved is not None:
                if self.value(self.first, solved.duals).min() >= -PAYS:
                    return solved
                active, duals = np.concatenate([active, solved.columns], axis=1), solved.duals
            found = self.local_search(duals, active, -PAYS).columns
            columns = np.concatenate([columns, active, found], axis=1)
            costs, rows = self.rows(columns)
        return None

    def search(self, duals: Array, active: Array, level: float) -> Priced:
        """Columns below `level`, and better multipliers where they are in sight; of a small X those columns alone."""
        lam, nu = self.split(duals)
        small = len(nu) <= SMALL_X and self.certifiable
        if small and (ahead := self._ahead(active, lam, nu, level)) is not None:
            values = self.value(ahead.columns, duals)
            new = np.abs(values) > -level  # one that costs something here is in use at the multipliers ahead
            return Priced(ahead.columns[:, new], values[new], ahead.duals, solved=True)
        found = self.local_search(duals, active, level)
        if small or not self.certifiable or not len(found.values) or found.values[0] <= -NEAR:
            return found
        if (ahead := self._ahead(active, lam, nu, level)) is None:
            return found
        columns = np.concatenate([found.columns, ahead.columns], axis=1)
        return Priced(columns, self.value(columns, duals), ahead.duals)

    def local_search(self, duals: Array, active: Array, level: float) -> Priced:
        """Columns below `level`: by all edges for |S| = 2, else from the active columns and from many faces."""
        lam, nu = self.split(duals)
        if not self.certifiable:
            level = min(level, -SEARCH_LEVEL)
        found = self._edges(lam, nu)[0] if self.joint.shape[0] <= 2 else self._local(lam, nu, active, level)
        most = MOST_ADDED if self.certifiable else max(MOST_ADDED, FOR_EACH_X * len(nu))
        return distinct(found, level, most)

    def verify(self, duals: Array, level: float, out_of_time: Clock, known: Array | None = None) -> Verified:
        """Prove min phi >= `level`, or find posteriors below it.

        `known`, (|X|, k): Posteriors at which `duals` solve the optimality conditions: the search need not find them.
        """
        lam, nu = self.split(duals)
        if not self.certifiable:
            return Verified(-math.inf, np.zeros((len(nu), 0)), self.limits)
        if self.joint.shape[0] > 2:
            return face_minimum(self.p_s_given_x, lam, nu, level, out_of_time, known=known)
        found, inside = self._edges(lam, nu)
        corners = float((-entropy(self.p_s_given_x, axis=0) - nu).min()) - rounding(lam, nu)
        return Verified(min(corners, inside), found.columns[:, found.values < level][:, :MOST_ADDED], "")

    def bound(self, duals: Array, least: float) -> float:
        """H(S) + nu.P_X - lam (H(X) - R) + least, rounding included."""
        lam, nu = self.split(duals)
        terms = [self.entropy_s, least, -lam * (self.entropy_x - self.rate), *(nu * self.p_x)]
        slack = 1e-15 * (8.0 + self.joint.size**0.5) * (1.0 + self.entropy_s + lam * self.entropy_x)
        return float(math.fsum(terms) - slack - 4e-16 * float(np.abs(nu) @ self.p_x))

    def value(self, columns: Array, duals: Array) -> Array:
        """phi of columns (|X|, n), (n,)."""
        lam, nu = self.split(duals)
        return np.asarray(lam * entropy(columns, axis=0) - entropy(self.p_s_given_x @ columns, axis=0) - nu @ columns)

    def _ahead(self, active: Array, lam: float, nu: Array, level: float) -> Solved | None:
        """The posteriors and multipliers where column generation is going, if Newton's method finds them.

        Multipliers at which a first column pays are not where it is going.
        """
        found = joint_newton(self.p_s_given_x, self.p_x, self.rate - self.entropy_x, active, lam, nu)
        return None if found is None or self.value(self.first, found.duals).min() < level else found

    def _edges(self, lam: float, nu: Array) -> tuple[Priced, float]:
        """Minima on all edges, and a number that no edge is below."""
        first, second = edge_pairs(len(self.p_x))
        columns, values, least = [np.zeros((len(nu), 0))], [np.zeros(0)], math.inf
        a = self.p_s_given_x[0]
        for start in range(0, len(first), EDGES_AT_ONCE):
            part = slice(start, start + EDGES_AT_ONCE)
            supports, weights, inner, bound = edge_minima(a, lam, nu, first[part], second[part])
            least = min(least, bound)
            some = np.flatnonzero(inner < 0.0)
            some = some[np.argsort(inner[some])][:MOST_ADDED]
            columns.append(on_all_symbols(len(nu), supports[some], weights[some]))
            values.append(inner[some])
        return Priced(np.concatenate(columns, axis=1), np.concatenate(values)), least

    def _local(self, lam: float, nu: Array, active: Array, level: float) -> Priced:
        """Newton's method from the active columns on their faces, and from the grid or, for a larger X, random points.

        Up to `LARGEST_S` private symbols random points lie on faces, with more all over the simplex.
        """
        size_s, size_x = self.joint.shape
        if size_s > LARGEST_S:
            return self._priced(wide_search(self.p_s_given_x, lam, nu, active, self.rng), lam, nu, level)
        if size_x <= SMALL_X:
            values = self.value(self.first, np.append(nu, -lam))
            lowest = np.argsort(values)[:MOST_NEAR]
            active = np.concatenate([active, self.first[:, lowest[values[lowest] < NEAR]]], axis=1)
        found, held = [], (active > 0.0).sum(axis=0)
        for size in range(2, min(size_s, size_x) + 1):
            some = active[:, held == size]
            if some.shape[1]:
                supports = np.nonzero(some.T)[1].reshape(-1, size)
                w = np.take_along_axis(some.T, supports, axis=1)
                found.append((supports, newton(FaceFunction.on(self.p_s_given_x, lam, nu, supports), w)))
        if size_x > SMALL_X and lam < SMALL_MULTIPLIER:
            supports, w = self._silent(lam, nu)
            found.append((supports, newton(FaceFunction.on(self.p_s_given_x, lam, nu, supports), w)))
        if size_x > SMALL_X or not found:
            supports, w = self._random_faces(min(size_s, size_x))
            found.append((supports, descend(FaceFunction.on(self.p_s_given_x, lam, nu, supports).slopes, w)))
        return self._priced(found, lam, nu, level)

    @cached_property
    def _silent_vertices(self) -> tuple[IntArray, Array, Array]:
        supports, w = listed_silent(self.joint, MOST_SILENT)
        return supports, w, entropy(w, axis=1)

    def _silent(self, lam: float, nu: Array) -> tuple[IntArray, Array]:
        """The vertices at A pi = P_S where phi is least: at a small lam the best posteriors are near them."""
        supports, w, heights = self._silent_vertices
        values = lam * heights - np.sum(nu[supports] * w, axis=1)
        lowest = np.argsort(values)[:MOST_ADDED]
        return supports[lowest], w[lowest]

    def _priced(self, found: Iterable[Found], lam: float, nu: Array, level: float) -> Priced:
        """Columns below `level` from their supports and weights, priced as they are stored."""
        columns, values = [np.zeros((len(nu), 0))], [np.zeros(0)]
        for supports, w in found:
            for part in parts(len(nu), len(w)):
                made = on_all_symbols(len(nu), supports[part], w[part])
                value = self.value(made, np.append(nu, -lam))
                columns.append(made[:, value < level])
                values.append(value[value < level])
        return Priced(np.concatenate(columns, axis=1), np.concatenate(values))

    def _random_faces(self, size: int) -> tuple[IntArray, Array]:
        size_x = len(self.p_x)
        count = min(STARTS, STARTS_PER_FACE * math.comb(size_x, size))
        supports = np.argsort(self.rng.random((count, size_x)), axis=1)[:, :size]
        return supports, self.rng.dirichlet(np.ones(size), count)


def distinct(found: Priced, level: float, most: int) -> Priced:
    """The columns below `level`, the lowest first, of like ones the lowest, and no more than `most` of them."""
    order = np.argsort(found.values)
    order = order[found.values[order] < level]
    places = np.ascontiguousarray(np.rint(found.columns[:, order].T / APART).astype(np.uint8))
    _, first = np.unique(places.view(np.dtype((np.void, len(found.columns)))), return_index=True)
    order = order[np.sort(first)[:most]]
    return Priced(found.columns[:, order], found.values[order])
