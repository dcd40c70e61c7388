"""Pricing of the columns that a user's constraints allow.

A column is a class of outputs and weights w over that class's generators V (`column_constraints`): pi = V w. With
multipliers mu >= 0 of the sums over columns,

    phi(w) = -H(A V w) + lam H(V w) - (V' nu - mu.rows).w,

and at fixed A V w it is concave in w: its least value lies on a face of at most |S| generators.

The largest I(X;Y) = H(X) - sum_y P(y) H(P(X|y)) is a linear program over the generators: H is concave, so that where
posteriors are kept in a polytope, its corners do best (`most_told`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from cvxpriv.blocks.declaration import Constraint
from cvxpriv.bounds.columns import Clock, Priced, Verified
from cvxpriv.bounds.master import Master
from cvxpriv.constraints.ready import ReadyConstraint
from cvxpriv.divergences import divergence
from cvxpriv.errors import SolverFailure
from cvxpriv.numerics.arrays import Array
from cvxpriv.solvers.chain import FARTHEST
from cvxpriv.tables.information import entropy

from .column_constraints import ColumnConstraints
from .columns import mechanism_of
from .pricing import LARGEST_S, MOST_ADDED, MOST_FACES, FunnelPricing, distinct
from .pricing_faces import face_minimum
from .pricing_search import descend, slopes
from .problem import Problem

#: Multiplier of a generator that a class may not use: each bit of it costs a hundred nats.
FORBIDDEN = -100.0
#: Random points of the local search, and steps from each.
STARTS, STEPS = 200, 40
LEAST_WEIGHT = 1e-10


@dataclass
class ConstrainedPricing:
    """Satisfies `cvxpriv.bounds.columns.Pricing`; a column is (1 + G,): its class and its weights.

    `plain`: The pricing of the table and the rate.
    """

    plain: FunnelPricing
    asked: ColumnConstraints
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0), repr=False)

    def __post_init__(self) -> None:
        self.spread = self.asked.generators
        self.a = np.asarray(self.plain.p_s_given_x @ self.spread)

    @property
    def certifiable(self) -> bool:
        """Whether the least phi can be proved."""
        size_s, count = self.a.shape
        if self.asked.plain:
            return self.plain.certifiable
        faces = sum(math.comb(count, size) for size in range(2, min(size_s, count) + 1))
        return size_s <= LARGEST_S and faces <= MOST_FACES

    def master(self) -> Master:
        """The master program without columns: the rows of P(X), of the rate, and of the sums."""
        p, upper = self.plain.p_x, self.asked.upper
        ends = np.concatenate([p, [self.plain.entropy_x - self.plain.rate], upper])
        return Master(np.concatenate([p, np.full(1 + len(upper), -np.inf)]), ends)

    def first_columns(self) -> Array:
        """Every generator of every class, (1 + G, n)."""
        count = self.spread.shape[1]
        each = [
            np.vstack([np.full(allowed.sum(), float(c)), np.eye(count)[:, allowed]])
            for c, allowed in enumerate(self.asked.allowed)
        ]
        return np.concatenate(each, axis=1)

    def posteriors(self, columns: Array) -> Array:
        """P(X|y) of columns, (|X|, n)."""
        return np.asarray(self.spread @ columns[1:])

    def rows(self, columns: Array) -> tuple[Array, Array]:
        """Costs -H(A pi), (n,), and rows (pi, H(pi), sums), (|X| + 1 + k, n)."""
        pi = self.posteriors(columns)
        sums = np.einsum("nkg,gn->kn", self.asked.rows[columns[0].astype(int)], columns[1:])
        return -entropy(self.plain.p_s_given_x @ pi, axis=0), np.vstack([pi, entropy(pi, axis=0), sums])

    def costs(self, c: int, nu: Array, mu: Array) -> Array:
        """V' nu - mu.rows of a class, (G,)."""
        return np.where(self.asked.allowed[c], nu @ self.spread - mu @ self.asked.rows[c], FORBIDDEN)

    def search(self, duals: Array, active: Array, level: float) -> Priced:
        """Columns below `level`, class by class."""
        lam, nu, mu = self.plain.split_all(duals)
        columns, values = [np.zeros((len(active), 0))], [np.zeros(0)]
        for c in range(len(self.asked.rows)):
            found = self._search(self.costs(c, nu, mu), lam, active[1:, active[0] == c], level)
            columns.append(np.vstack([np.full(len(found.values), float(c)), found.columns]))
            values.append(found.values)
        together, price = np.concatenate(columns, axis=1), np.concatenate(values)
        order = np.argsort(price)[:MOST_ADDED]
        return Priced(together[:, order], price[order])

    def _search(self, costs: Array, lam: float, active: Array, level: float) -> Priced:
        if self.asked.plain:
            some = active if active.shape[1] else np.eye(len(costs))[:, :1]
            return self.plain.local_search(np.append(costs, -lam), some, level)
        found = self._descend(costs, lam, active)
        return distinct(Priced(found, self._phi(found, lam, costs)), level, MOST_ADDED)

    def _phi(self, w: Array, lam: float, costs: Array) -> Array:
        return np.asarray(-entropy(self.a @ w, axis=0) + lam * entropy(self.spread @ w, axis=0) - costs @ w)

    def _descend(self, costs: Array, lam: float, active: Array) -> Array:
        """Exponentiated gradient from the active columns and from random faces, (G, n)."""
        size_s, count = self.a.shape
        random = np.zeros((count, STARTS))
        for n in range(STARTS):
            face = self.rng.choice(count, min(size_s, count), replace=False)
            random[face, n] = self.rng.dirichlet(np.ones(len(face)))
        starts = np.concatenate([active, random], axis=1).T
        w = descend(partial(slopes, self.a, lam, costs, spread=self.spread), starts, STEPS).T
        w = np.where(w < LEAST_WEIGHT, 0.0, w)
        return np.asarray(w / w.sum(axis=0))

    def verify(self, duals: Array, level: float, out_of_time: Clock) -> Verified:
        """Prove min phi >= `level` in every class, or find columns below it."""
        lam, nu, mu = self.plain.split_all(duals)
        least, found, reason = math.inf, [np.zeros((1 + self.spread.shape[1], 0))], ""
        for c in range(len(self.asked.rows)):
            shown = self._verify(self.costs(c, nu, mu), lam, level, out_of_time)
            least, reason = min(least, shown.least), reason or shown.reason
            found.append(np.vstack([np.full(shown.columns.shape[1], float(c)), shown.columns]))
        return Verified(least, np.concatenate(found, axis=1), reason)

    def _verify(self, costs: Array, lam: float, level: float, out_of_time: Clock) -> Verified:
        if self.asked.plain:
            return self.plain.verify(np.append(costs, -lam), level, out_of_time)
        return face_minimum(self.a, lam, costs, level, out_of_time, spread=self.spread)

    def bound(self, duals: Array, least: float) -> float:
        """H(S) + nu.P_X - lam (H(X) - R) - mu.upper + least, rounding included."""
        lam, nu, mu = self.plain.split_all(duals)
        sums = float(mu @ self.asked.upper)
        return self.plain.bound(np.append(nu, -lam), least) - sums - 1e-14 * abs(sums)


#: Constraints with a limit on log p(y|x) / p(y), or on its average: I(X;Y) is not above it.
LIMITED = ("local_differential_privacy", "local_information_privacy", "pointwise_leakage", "maximal_leakage")


def most_told(problem: Problem, constraints: Sequence[tuple[str, Constraint]]) -> tuple[float, Array | None]:
    """Return a bound of I(X;Y) under constraints, in nats, and the mechanism that tells most under those it counts.

    The mechanism may have more than |Y| outputs, and other constraints may not hold. None where none is counted, or
    where outputs have names.
    """
    ready = [one for _, one in constraints if isinstance(one, ReadyConstraint)]
    most = min([problem.table.entropy_x, float(np.log(problem.size_y)), *map(_limit, ready)])
    asked = ColumnConstraints.of(problem, constraints)
    found = most_telling(ConstrainedPricing(FunnelPricing(problem.table.probabilities, problem.rate), asked))
    if found is None or not asked.counted:
        return most, None
    return min(most, found[0]), None if asked.outputs else found[1]


def most_telling(pricing: ConstrainedPricing) -> tuple[float, Array] | None:
    """Return the most that can be told of X, in nats, and its mechanism; None where no columns make P(X).

    The number follows from the duals of the linear program by weak duality: no answer of HiGHS makes it too small.
    """
    columns, size = pricing.first_columns(), len(pricing.plain.p_x)
    master = pricing.master()
    _, rows = pricing.rows(columns)
    master.set_row(size, -np.inf, np.inf)
    master.add(rows[size], rows)
    try:
        best = master.solve()
    except SolverFailure:
        return None
    others, p_x, upper = np.delete(rows, size, axis=0), pricing.plain.p_x, pricing.asked.upper
    if not abs(rows[:size] @ best.weights - p_x).max() <= FARTHEST:
        return None
    duals = np.concatenate([best.duals[:size], np.minimum(best.duals[size + 1 :], 0.0)])  # of rows with an upper end
    least = duals @ np.append(p_x, upper) + min(float((rows[size] - duals @ others).min()), 0.0)  # all weights make 1
    used = best.weights > 0.0
    mechanism = mechanism_of(pricing.posteriors(columns[:, used]), best.weights[used], pricing.plain.p_x)
    return float(pricing.plain.entropy_x - least), mechanism


def _limit(one: ReadyConstraint) -> float:
    """Return the bound that a constraint alone puts on I(X;Y), in nats; inf where it is none of the known ones."""
    given = one.parameters
    of_input = one.kind in ("local_differential_privacy", "maximal_leakage") or given.get("of") == "input"
    if one.kind in LIMITED and of_input and not given.get("delta", 0.0):
        return float(given.get("epsilon", given.get("bound", np.inf)))
    if one.kind == "renyi_differential_privacy" and given["order"] >= 1.0:  # the average is a divergence between rows
        return float(given["epsilon"])
    told = one.kind == "f_information" and of_input and divergence(given["f"]).name == "mutual-information"
    return float(given["bound"]) if told else np.inf
