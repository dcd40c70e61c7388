"""The largest rate at zero leakage, R_0, with its mechanism.

I(S;Y) = 0 says that every posterior pi has A pi = P_S, A = P(S|X). Entropy is concave, so the best posteriors are
vertices of the polytope {pi >= 0, A pi = P_S}, each with at most rank(A) symbols, and

    R_0 = H(X) - min { sum_y r_y H(pi_y) : sum_y r_y pi_y = P_X, pi_y vertices, r >= 0 }

is a linear program. Vertices are listed where they are few; else they are found one by one, by linearising.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import qr

from cvxpriv.bounds.master import Master
from cvxpriv.errors import SolverFailure
from cvxpriv.numerics.arrays import Array, IntArray
from cvxpriv.numerics.sizes import now
from cvxpriv.tables.information import entropy, mutual_information
from cvxpriv.tables.joint import JointTable

from .columns import mechanism_of, utility

#: Largest number of supports that are tried one by one: some seconds.
MOST_BASES = 1_000_000
#: Vertices sought in each pass where they are not listed.
STARTS = 60
#: Random mixtures of vertices to begin with; number of symbols from which there are none: each takes seconds.
DECOMPOSITIONS, LARGE = 4, 320
#: Cost of a symbol that is used up; others cost at most 1.
FORBIDDEN = 100.0
#: A search for a rate ends when a pass gains less than this share of what is missing.
HOPELESS = 1e-3
#: Nats of leakage up to which a mechanism tells nothing but for rounding.
SILENT = 1e-12
#: Rounding of a sum, relative.
ULPS = 4.0 * float(np.finfo(np.float64).eps)
#: A reduced cost above minus this is none, in nats.
SETTLED = 1e-10


#: Posteriors in use that tell nothing of S, (|X|, n), their weights, (n,), and their mean entropy, nats.
Silent: TypeAlias = tuple[Array, Array, float]


@dataclass(frozen=True)
class PerfectPrivacy:
    """The largest rate at zero leakage.

    Attributes
    ----------
    rate : float
        I(X;Y) of `mechanism`, nats.
    upper : float
        No mechanism without leakage tells more, nats; `rate` itself but for rounding where all vertices were listed,
        else H(X|S), since I(X;Y) <= I(S;Y) + H(X|S).
    mechanism : array, ``(|X|, |Y|)``
        P(Y|X), whose I(S;Y) is zero but for rounding.
    leakage : float
        I(S;Y) of `mechanism` as computed, nats.
    certified : bool
        Whether all vertices were listed.
    """

    rate: float
    upper: float
    mechanism: Array
    leakage: float
    certified: bool


def perfect_privacy(joint: JointTable | ArrayLike, time_limit: float = 30.0) -> PerfectPrivacy:
    """Find the largest rate at which nothing leaks.

    `joint`: P(S, X).
    `time_limit`: Seconds for the search for vertices, where they are too many to list.
    Raises DataError: The table is no joint distribution.

    Examples
    --------
    S is a noisy first bit of X, so the second bit may be released.

    >>> found = perfect_privacy([[0.2, 0.2, 0.05, 0.05], [0.05, 0.05, 0.2, 0.2]])
    >>> found.certified, round(float(found.rate / np.log(2.0)), 9)
    (True, 1.0)
    """
    table = joint if isinstance(joint, JointTable) else JointTable.from_array(joint)
    kept = table.p_s > 0.0
    a, p_x = table.p_s_given_x[kept], table.p_x
    polytope = SilentPolytope.of(a, table.p_s[kept])
    certified = math.comb(len(p_x), polytope.rank) <= MOST_BASES
    columns, weights, value = _listed(polytope, p_x) if certified else _generated(polytope, p_x, 0, time_limit)
    own = np.linalg.lstsq(columns, p_x)[0]  # the weights of a basis, which a solver knows to its tolerance
    mechanism = mechanism_of(columns, np.maximum(own, 0.0) if own.min() >= -ZERO else weights, p_x)
    leakage = mutual_information(a @ (p_x[:, None] * mechanism))
    if leakage > SILENT:
        mechanism, leakage = np.ones((len(p_x), 1)), 0.0
    rate = utility(p_x, mechanism)
    upper = max(rate, table.entropy_x - value) if certified else table.entropy_x - table.information
    return PerfectPrivacy(rate, upper, mechanism, leakage, certified)


def silent_columns(joint: Array, rate: float, time_limit: float, seed: int = 0) -> tuple[Array, Array]:
    """Return posteriors that tell nothing of S and suit the rate, (|X|, n), as far as they are found in time.

    Beside them their weights, (n,).

    `joint`: P(S, X), every row and column with mass.
    `rate`: R in nats; the search ends where they reach it.
    `time_limit`: Seconds.
    `seed`: Seed of the search.
    """
    p_x = joint.sum(axis=0)
    try:
        return _generated(SilentPolytope.of(joint / p_x, joint.sum(axis=1)), p_x, seed, time_limit, rate)[:2]
    except SolverFailure:  # a large program on a slow machine; P(X) itself tells nothing
        return p_x[:, None], np.ones(1)


def _listed(polytope: SilentPolytope, p_x: Array) -> Silent:
    """All vertices, and the linear program over them: columns are added where their reduced cost asks for it."""
    supports, weights = polytope.every_vertex()
    vertices = np.zeros((len(p_x), len(supports)))
    vertices[supports.T, np.arange(len(supports))] = weights.T
    heights = entropy(vertices, axis=0)
    master = Master(p_x, p_x)
    columns, costs = p_x[:, None], np.array([entropy(p_x)])  # P_X itself: feasible, though no vertex
    master.add(costs, columns)
    while True:
        point = master.solve()
        reduced = heights - point.duals @ vertices
        paying = np.argsort(reduced)[:500]
        paying = paying[reduced[paying] < -1e-13]
        if not len(paying) or columns.shape[1] > 50 * vertices.shape[1]:
            # No weights, whose sum is 1, cost less, whatever the solver's duals are.
            least = float(point.duals @ p_x) + min(float(reduced.min()), 0.0) - ULPS * float(np.abs(point.duals) @ p_x)
            return _used(columns, point.weights, least)
        master.add(heights[paying], vertices[:, paying])
        columns = np.concatenate([columns, vertices[:, paying]], axis=1)


def _generated(polytope: SilentPolytope, p_x: Array, seed: int, time_limit: float, enough: float = np.inf) -> Silent:
    """Vertices by linearising H(pi) - nu.pi at random points, until none pays, the rate is enough, or time is up.

    A rate that is out of reach, as its passes gain too little, ends it too.
    """
    end, rng, program = now() + time_limit, np.random.default_rng(seed), polytope.program()
    others = DECOMPOSITIONS if len(p_x) < LARGE else 0
    parts = [_decomposition(program, p_x, each, end) for each in (None, *[rng] * others)]
    columns = np.concatenate([p_x[:, None], *parts], axis=1)
    master, single = Master(p_x, p_x), len(p_x) if len(p_x) >= LARGE else 0
    if single:  # a program begins quickly from single symbols, and leaves them for columns that are silent
        master.add(np.full(single, FORBIDDEN), np.eye(single))
        master.solve()
    master.add(entropy(columns, axis=0), columns)
    missing = np.inf
    while now() < end:
        point = master.solve()
        before, missing = missing, enough - (entropy(p_x) - point.value)
        if missing <= 0.0 or before - missing < HOPELESS * missing < np.inf:
            break
        starts = rng.dirichlet(np.full(len(p_x), 0.3), STARTS)
        found = np.stack(list(_until(end, (_descend(program, point.duals, start) for start in starts))), axis=1)
        found = np.unique(found, axis=1)
        reduced = entropy(found, axis=0) - point.duals @ found
        if reduced.min() > -SETTLED:
            break
        found = found[:, reduced < -SETTLED]
        master.add(entropy(found, axis=0), found)
        columns = np.concatenate([columns, found], axis=1)
    point = master.solve()
    return _used(columns, point.weights[single:], point.value)


def _used(columns: Array, weights: Array, value: float) -> Silent:
    return columns[:, weights > 0.0], weights[weights > 0.0], value


def _until(end: float, found: Iterator[Array]) -> Iterator[Array]:
    """Pass on what is found until the clock shows `end`, and one at least."""
    for one in found:
        yield one
        if now() >= end:
            return


def _decomposition(program: Master, p_x: Array, rng: np.random.Generator | None, end: float) -> Array:
    """Vertices of which P_X is a mixture, (|X|, k): each takes as much of what is left of P_X as it can.

    They are chosen at random, or with as much as possible of the heaviest symbol, which keeps their entropy low. Fewer
    come where the clock shows `end`.
    """
    left = p_x.copy()
    vertices: list[Array] = []
    while len(vertices) < len(p_x) and left.max() > 0.0 and not (vertices and now() >= end):
        costs = -np.eye(1, len(p_x), int(left.argmax()))[0] if rng is None else rng.random(len(p_x))
        program.set_costs(np.where(left > 0.0, costs, FORBIDDEN))
        pi = program.solve().weights
        held = pi > 0.0
        share = float((left[held] / pi[held]).min())
        left = np.where(left - share * pi > ZERO * p_x, left - share * pi, 0.0)
        vertices.append(pi / pi.sum())
    return np.stack(vertices, axis=1)


def _descend(program: Master, nu: Array, pi: Array) -> Array:
    """Descend from pi to a vertex at which linearising H(pi) - nu.pi leads nowhere lower."""
    value = np.inf
    while True:
        program.set_costs(-np.log(np.maximum(pi, 1e-9)) - nu)
        trial = program.solve().weights
        trial = trial / trial.sum()
        new = entropy(trial) - float(nu @ trial)
        if not new < value - 1e-12:
            return pi
        pi, value = trial, new


CHUNK = 100_000
#: A probability above minus this is none: rounding of a system of at most ten equations.
ZERO = 1e-12
#: A diagonal entry of R in A' = Q R, relative to the first, below which rows of A are dependent.
DEPENDENT = 1e-12


def listed_silent(joint: Array, most: int) -> tuple[IntArray, Array]:
    """Return the vertices among posteriors that tell nothing of S: supports and probabilities, (n, rank of A) each.

    `joint`: P(S, X), every row and column with mass. `most`: Largest number of supports; there are none for more.
    """
    polytope = SilentPolytope.of(joint / joint.sum(axis=0), joint.sum(axis=1))
    if math.comb(joint.shape[1], polytope.rank) > most:
        return np.zeros((0, 1), dtype=np.intp), np.zeros((0, 1))
    return polytope.every_vertex()


@dataclass(frozen=True)
class SilentPolytope:
    """{pi >= 0 : a pi = s} with independent rows only; sum pi = 1 follows, as A's columns sum to 1."""

    a: Array  # (rank, |X|)
    s: Array

    @classmethod
    def of(cls, a: Array, s: Array) -> SilentPolytope:
        _, r, order = qr(a.T, mode="economic", pivoting=True)
        diagonal = np.abs(np.diag(r))
        rows = np.sort(order[: int(np.sum(diagonal > DEPENDENT * diagonal[0]))])
        return cls(a[rows], s[rows])

    @property
    def rank(self) -> int:
        return len(self.s)

    def vertices(self, supports: IntArray) -> tuple[IntArray, Array]:
        """The vertices on those supports (n, rank) that have one: their supports and probabilities, (k, rank) each."""
        bases = self.a[:, supports].transpose(1, 0, 2)
        with np.errstate(divide="ignore"):  # a pivot of a base with cells of 1e-300 may underflow
            sizes = np.abs(np.linalg.det(bases))
        regular = sizes > np.finfo(np.float64).tiny
        weights = np.linalg.solve(bases[regular], np.broadcast_to(self.s[:, None], (regular.sum(), self.rank, 1)))[
            ..., 0
        ]
        good = (weights.min(axis=1) >= -ZERO) & (np.abs(weights.sum(axis=1) - 1.0) <= 1e-9)
        kept = np.maximum(weights[good], 0.0)
        return supports[regular][good], kept / kept.sum(axis=1, keepdims=True)

    def every_vertex(self) -> tuple[IntArray, Array]:
        """All of them, as `vertices` gives them."""
        supports, parts = itertools.combinations(range(self.a.shape[1]), self.rank), []
        while chunk := list(itertools.islice(supports, CHUNK)):
            parts.append(self.vertices(np.array(chunk, dtype=np.intp)))
        return np.concatenate([one for one, _ in parts]), np.concatenate([weights for _, weights in parts])

    def program(self) -> Master:
        """The linear program over the polytope, to be solved for many costs."""
        program = Master(self.s, self.s)
        program.add(np.zeros(self.a.shape[1]), self.a)
        return program
