"""Pricing of columns under constraints that are convex costs of a column, for a small X.

Group fairness, Bayes vulnerability, (epsilon, delta)- and metric privacy, f-information and Renyi divergences have no
generators as those of `column_constraints` have. Each is a sum over outputs of costs of P(X|y), and `costed_cells`
proves the least phi with them, and with all other constraints that a bound can count, together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cvxpriv.blocks.declaration import Constraint, Known
from cvxpriv.bounds.bent_columns import LAST_WITH_LINES, BentColumns
from cvxpriv.bounds.column_costs import Bent, costs_of
from cvxpriv.bounds.columns import Clock, Priced, Verified
from cvxpriv.bounds.lines import Lines
from cvxpriv.bounds.master import Master
from cvxpriv.bounds.output_names import alike, forbidden_cells
from cvxpriv.constraints import ReadyConstraint
from cvxpriv.numerics.arrays import Array, Flags, IntArray
from cvxpriv.tables.information import entropy

from .costed_cells import DEAR, LEAST, Phi, least_phi
from .pricing import FunnelPricing
from .problem import Problem

#: Largest |X|: the cells have |X| - 1 dimensions. Most costs of one constraint.
LARGEST_X, MOST_COSTS = 6, 300
#: Random starts of a climb in each class, its most steps, and the mass of a symbol that is none.
STARTS, CLIMB, NO_MASS = 60, 40, 1e-8
#: Shares of the prior in the first columns; how near two columns are one.
SHARES, NEAR = (0.0, 0.02, 0.1, 0.2, 0.4, 0.7), 1e-7
#: Rounding by which a column may break what each has to obey, and the share of a sum that the master leaves for it.
ROUNDING, INSIDE = 1e-12, 1e-9
#: The cost of a row that no column fills yet, nats.
FILL = 100.0


@dataclass(frozen=True, eq=False)
class Costs:
    """The constraints as costs of columns.

    `costs`: Those that are the same for all outputs.
    `distortions`: (|X|, |Y|) each, with the upper ends of their averages.
    `forbidden`: (|X|, |Y|).
    `counted`, `ignored`: The names of the constraints that are among them, and of the others.
    `ready`: Those that are among them.
    """

    costs: tuple[Lines | Bent, ...]
    distortions: tuple[tuple[Array, float], ...]
    forbidden: Flags
    counted: tuple[str, ...]
    ignored: tuple[str, ...]
    ready: tuple[ReadyConstraint, ...]

    @classmethod
    def of(cls, problem: Problem, constraints: Sequence[tuple[str, Constraint]]) -> Costs:
        """Read constraints."""
        known, shape = Known.of_table(problem.table), (len(problem.p_x), problem.size_y)
        forbidden = np.zeros(shape, dtype=bool)
        costs, distortions, counted, ignored = list[Lines | Bent](), [], list[str](), list[str]()
        ready = list[ReadyConstraint]()
        for name, one in constraints:
            if not isinstance(one, ReadyConstraint):
                ignored.append(name)
                continue
            if one.kind == "expected_distortion":
                given = one.parameters
                distortions.append((np.asarray(given["distortion"], dtype=np.float64), float(given["bound"])))
            elif one.kind == "forbidden":
                forbidden |= forbidden_cells(one, known, shape)
            elif (found := _priced(one, known)) is not None:
                costs += found
            else:
                ignored.append(name)
                continue
            counted.append(name)
            ready.append(one)
        return cls(tuple(costs), tuple(distortions), forbidden, tuple(counted), tuple(ignored), tuple(ready))


def _priced(one: ReadyConstraint, known: Known) -> list[Lines | Bent] | None:
    """A constraint as costs; None where it is none, or asks nothing, or too much."""
    found = costs_of(one, known)
    every: list[Lines | Bent] = [found] if isinstance(found, Bent) else [*(found or ())]
    finite = all(np.isfinite(c.ends).all() and (isinstance(c, Bent) or np.isfinite(c.lines).all()) for c in every)
    sizes = [len(c.ends) if isinstance(c, Bent) else c.size for c in every]
    return every if every and finite and sum(sizes) <= MOST_COSTS else None


@dataclass
class CostedPricing:
    """Satisfies `cvxpriv.bounds.columns.Pricing`; a column is (1 + |X|,): its class of outputs and P(X|y).

    A class below 0 is no column: it fills one row at a cost that no mechanism pays.

    `plain`: The pricing of the table and the rate.
    `fill`: That cost, in nats.
    """

    plain: FunnelPricing
    asked: Costs
    fill: float = FILL
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0), repr=False)
    first: IntArray = field(init=False)

    def __post_init__(self) -> None:
        named = [matrix.T for matrix, _ in self.asked.distortions]
        self.first, self.classes = alike(np.hstack([*named, self.asked.forbidden.T.astype(float)]))
        ends = [end for one in self.asked.costs for end in one.ends]
        self.upper = np.array([*(bound for _, bound in self.asked.distortions), *ends])
        a = self.plain.p_s_given_x

        def slopes(x: Array) -> Array:
            return np.asarray((np.log(np.maximum(x @ a.T, LEAST)) @ a).T[None])

        def bends(x: Array, prices: Array) -> Array:
            return np.asarray(prices[0] * (a.T / np.maximum(x @ a.T, LEAST)[:, None, :]) @ a)

        self._leaked = Bent(lambda x: -entropy(x @ a.T, axis=1)[:, None], slopes, bends, [0.0])

    @property
    def named(self) -> bool:
        """Whether outputs have names."""
        return bool(self.asked.distortions) or bool(self.asked.forbidden.any())

    def allowed(self, c: int) -> Flags:
        """Return the symbols that may have mass in a class."""
        return np.asarray(~self.asked.forbidden[:, self.first[c]])

    # --- the rows -----------------------------------------------------------------------------------------------------

    def master(self) -> Master:
        """The master program without columns: the rows of P(X), of the rate, and of the sums."""
        p = self.plain.p_x
        inside = self.upper - INSIDE * np.abs(self.upper)
        ends = np.concatenate([p, [self.plain.entropy_x - self.plain.rate], inside])
        return Master(np.concatenate([p, np.full(1 + len(self.upper), -np.inf)]), ends)

    def first_columns(self) -> Array:
        """Return fills of the rows, and in every class the prior and columns between it and single symbols."""
        p, count = self.plain.p_x, len(self.plain.p_x) + 1 + len(self.upper)
        found = [np.vstack([-1.0 - np.arange(count), np.zeros((len(p), count))])]
        for c in range(len(self.first)):
            allowed = self.allowed(c)
            if not allowed.any():
                continue
            prior = np.where(allowed, p, 0.0) / p[allowed].sum()
            x = np.vstack([prior, *((1.0 - s) * np.eye(len(p))[allowed] + s * prior for s in SHARES)])
            found.append(self._columns(c, self._obeying(x)))
        return np.concatenate(found, axis=1)

    def _columns(self, c: int, x: Array) -> Array:
        return np.vstack([np.full(len(x), float(c)), x.T])

    def _obeying(self, x: Array) -> Array:
        """Columns moved to the prior as little as each has to, without those that cost everything or still disobey."""
        allowed = (x > 0.0).any(axis=0)
        lines = [one for one in self.asked.costs if isinstance(one, Lines) and one.sort == "never"]
        for one in lines if allowed.all() else []:
            x = one.kept(x, self.plain.p_x)
        good = (self._sums(x) < DEAR).all(axis=1)
        for one in lines:
            good &= (x @ one.lines <= ROUNDING).all(axis=1)
        return x[good]

    def _sums(self, x: Array) -> Array:
        """The costs of columns that are the same for all outputs, (n, k)."""
        every = [
            one.costs(x) if isinstance(one, Lines) else np.minimum(one.values(x), DEAR) for one in self.asked.costs
        ]
        return np.hstack([np.zeros((len(x), 0)), *every])

    def posteriors(self, columns: Array) -> Array:
        """P(X|y) of columns, (|X|, n)."""
        return columns[1:]

    def rows(self, columns: Array) -> tuple[Array, Array]:
        """Costs -H(A pi), (n,), and rows (pi, H(pi), sums), (|X| + 1 + k, n)."""
        real, size = columns[0] >= 0.0, len(self.plain.p_x)
        rows, costs = np.zeros((size + 1 + len(self.upper), columns.shape[1])), np.full(columns.shape[1], self.fill)
        pi, c = columns[1:, real], self.first[columns[0, real].astype(int)]
        named = [(matrix[:, c] * pi).sum(axis=0)[None] for matrix, _ in self.asked.distortions]
        rows[:, real] = np.vstack([pi, entropy(pi, axis=0), *named, self._sums(pi.T).T])
        costs[real] = -entropy(self.plain.p_s_given_x @ pi, axis=0)
        filled = -1 - columns[0, ~real].astype(int)
        rows[filled, np.flatnonzero(~real)] = np.where(filled < size, 1.0, -1.0)
        return costs, rows

    # --- the price ----------------------------------------------------------------------------------------------------

    def phi(self, c: int, duals: Array) -> Phi:
        """Return phi of a class."""
        lam, nu, mu = self.plain.split_all(duals)
        linear = -nu
        for (matrix, _), price in zip(self.asked.distortions, mu, strict=False):
            linear = linear + price * matrix[:, self.first[c]]
        at, lines, bent = len(self.asked.distortions), list[tuple[Lines, Array]](), list[tuple[Bent, Array]]()
        for one in self.asked.costs:
            own = mu[at : at + len(one.ends)]
            at += len(one.ends)
            if isinstance(one, Lines):
                lines.append((one, own))
            elif own.any():
                bent.append((one, own))
        return Phi(self.plain.p_s_given_x, lam, linear, lines, bent, self.allowed(c))

    def search(self, duals: Array, active: Array, level: float) -> Priced:
        """Columns below `level`, class by class."""
        columns, values = [np.zeros((len(active), 0))], [np.zeros(0)]
        for c in range(len(self.first)):
            phi = self.phi(c, duals)
            if phi.allowed.any():
                x = self._obeying(self._climbed(phi, active[1:, active[0] == c].T))
                value = phi.at(x)
                below = np.argsort(value, kind="stable")[: int((value < level).sum())]
                below = _apart(x, below)
                columns.append(self._columns(c, x[below]))
                values.append(value[below])
        return Priced(np.concatenate(columns, axis=1), np.concatenate(values))

    def _climbed(self, phi: Phi, active: Array) -> Array:
        """Local minima of phi: H is replaced by its tangent at each step."""
        size, p = len(phi.linear), self.plain.p_x
        if phi.allowed.sum() == 1:
            return np.eye(size)[phi.allowed]
        starts = np.zeros((STARTS, size))
        starts[:, phi.allowed] = self.rng.dirichlet(np.full(phi.allowed.sum(), 0.5), STARTS)
        bent = BentColumns([(self._leaked, np.ones(1)), *phi.bent], phi.every_line(), phi.allowed, p, _linear)

        def paid(x: Array, rows: IntArray) -> Array:
            return np.asarray(phi.lam * np.log(np.maximum(x, LEAST)) - phi.linear)

        begin = 0.8 * np.vstack([active, starts]) + 0.2 * bent.middle(np.vstack([active, starts]))
        if not all(np.isfinite(one.smooth(begin)).all() for one, _ in phi.bent):  # its cells of 0 cost without bound
            return np.zeros((0, size))
        x, _ = bent.best(bent.weights(), paid, begin, LAST_WITH_LINES, 1.0, CLIMB)
        x = np.where(x < NO_MASS, 0.0, x)
        return np.asarray(x / x.sum(axis=1, keepdims=True))

    def verify(self, duals: Array, level: float, out_of_time: Clock) -> Verified:
        """Prove min phi >= `level` in every class, or find columns below it."""
        least, found, reason = level, [np.zeros((1 + len(self.plain.p_x), 0))], ""
        for c in range(len(self.first)):
            if not self.allowed(c).any():
                continue
            shown = least_phi(self.phi(c, duals), level, out_of_time)
            least, reason = min(least, shown.least), reason or shown.reason
            found.append(self._columns(c, shown.columns.T))
        return Verified(least, np.concatenate(found, axis=1), reason)

    def bound(self, duals: Array, least: float) -> float:
        """H(S) + nu.P_X - lam (H(X) - R) - mu.upper + least, rounding included."""
        lam, nu, mu = self.plain.split_all(duals)
        sums = float(mu @ self.upper)
        return self.plain.bound(np.append(nu, -lam), least) - sums - 1e-14 * float(mu @ np.abs(self.upper))


def _linear(c: Array, x: Array) -> tuple[Array, Array, Array]:
    return (c * x).sum(axis=1), c, np.zeros_like(x)


def _apart(x: Array, order: IntArray) -> IntArray:
    """Those of some columns, in their order, that are apart from all before."""
    kept: list[int] = []
    for one in order.tolist():
        if not kept or np.abs(x[kept] - x[one]).sum(axis=1).min() > NEAR:
            kept.append(one)
    return np.array(kept, dtype=np.intp)
