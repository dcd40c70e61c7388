"""The user's constraints that the bound takes into account: on single columns x = P(Y|u), and on sums of them.

Local differential privacy and limits of the ratios r_y = p(u|y)/p(u) speak of one column, whatever the outputs are
called. Maximal leakage is sum_u p(u) max_y r_y, total variation sum_u p(u) |r_y - 1|, expected distortion
sum_u p(u) d_u.x_u, with a d_u for each output, as forbidden cells have; the costs of `column_costs` are others. A bound
that leaves constraints out still holds with them: they only lower the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cvxpriv.blocks.declaration import Known
from cvxpriv.bounds.any_conjugate import conjugate_of
from cvxpriv.bounds.column_costs import NOT_COUNTED, Bent, costs_of
from cvxpriv.bounds.conjugates import within
from cvxpriv.bounds.lines import Lines
from cvxpriv.bounds.output_names import forbidden_cells
from cvxpriv.constraints import ReadyConstraint
from cvxpriv.constraints.ready import LARGEST_LOSS, ratio
from cvxpriv.numerics.arrays import Array

from .local_dp_pricing import local_dp_pricing
from .measured import Constraints
from .pricing import Pricing
from .problem import Problem
from .straight_pricing import straight_pricing

#: Largest number of sums over columns: a search with more takes minutes.
MOST_SUMS = 300
#: Why other constraints are left out.
OWN = "it is a function of yours, which the bound cannot read"
MANY_SUMS = f"it is a sum for each of more than {MOST_SUMS} pairs of symbols of Y"
NOT_FINITE = "its bound or its epsilon is so large that it asks nothing"


@dataclass(frozen=True, eq=False)
class PricedConstraints:
    """The conditions on columns.

    `epsilon`: Local differential privacy, p(u|y) <= exp(epsilon) p(u|y').
    `low`, `high`: low p(u) <= p(u|y) <= high p(u).
    `peak`: sum_u max_y p(u|y) is at most this.
    `moved`, `moved_on_average`: The largest and the average total variation from P(U|y) to P(U).
    `lines`, `bent`: Other costs of columns.
    `distortions`: The average of each matrix is at most its number.
    `forbidden`, (|Y|, |U|): Cells that are 0.
    `counted`: The constraints that the bound takes into account.
    `ignored`: The names of the constraints that the bound leaves out, and why.
    """

    epsilon: float | None = None
    low: float = 0.0
    high: float = np.inf
    peak: float = np.inf
    moved: float = np.inf
    moved_on_average: float = np.inf
    lines: tuple[Lines, ...] = ()
    bent: tuple[Bent, ...] = ()
    distortions: tuple[tuple[Array, float], ...] = ()
    forbidden: NDArray[np.bool_] | None = None
    counted: tuple[tuple[str, ReadyConstraint], ...] = ()
    ignored: tuple[tuple[str, str], ...] = ()

    @property
    def none(self) -> bool:
        """Whether nothing is asked."""
        return self.epsilon is None and self.low == 0.0 and self.high == np.inf and not self.summed

    @property
    def costs(self) -> tuple[Lines | Bent, ...]:
        """Costs of columns, those from lines first."""
        return (*self.lines, *self.bent)

    @property
    def named(self) -> bool:
        """Whether outputs have names."""
        return bool(self.distortions) or self.forbidden is not None

    @property
    def summed(self) -> bool:
        """Whether more is asked than of single columns that are all alike."""
        return self.named or bool(self.costs) or min(self.peak, self.moved, self.moved_on_average) < np.inf

    def without_sums(self, problem: Problem, why: str = "") -> PricedConstraints:
        """Return the conditions on each column alone that have a pricing of their own; all others are left out."""
        apart = tuple((name, one) for name, one in self.counted if _alone(one))
        cones = any(_is_cone(one) for _, one in apart)  # a cone and limits of ratios have no pricing together
        apart = tuple((name, one) for name, one in apart if not cones or _is_cone(one))
        left = tuple((name, why) for name, _ in self.counted if name not in dict(apart))
        alone = PricedConstraints.of(problem, apart)
        return replace(alone, ignored=(*self.ignored, *left))

    @classmethod
    def of(cls, problem: Problem, constraints: Constraints) -> PricedConstraints:
        """Read constraints.

        A cone of local differential privacy has a pricing of its own where only distortions stand beside it; else it
        is a condition on ratios.
        """
        apart = any(_is_cone(one) for _, one in constraints) and all(
            _is_cone(one) or getattr(one, "kind", "") in (*NOT_COUNTED, _DISTORTION) for _, one in constraints
        )
        found, counted, ignored = cls(), [], []
        for name, constraint in constraints:
            if not (isinstance(constraint, ReadyConstraint) and constraint.kind):
                ignored.append((name, OWN))
            elif isinstance(after := _read(found, constraint, problem, apart), str):
                ignored.append((name, after))
            else:
                found = after
                counted.append((name, constraint))
        return replace(found, counted=tuple(counted), ignored=tuple(ignored))


#: A constraint on the ratios p(u|y)/p(u|y'); constraints on p(u|y)/p(u), and whether they bound it from below too.
_CONE, _DISTORTION, _DISTANCE = "local_differential_privacy", "expected_distortion", "total-variation"
BOXES = {"pointwise_leakage": False, "local_information_privacy": True}


def _is_cone(constraint: object) -> bool:
    kind = getattr(constraint, "kind", "")
    return kind == _CONE and not getattr(constraint, "parameters", {}).get("delta", 0.0)


def _alone(constraint: object) -> bool:
    """Whether a constraint asks something of each column, and has a pricing of its own."""
    of = getattr(constraint, "parameters", {}).get("of")
    return _is_cone(constraint) or (getattr(constraint, "kind", "") in BOXES and of == "input")


def _read(found: PricedConstraints, one: ReadyConstraint, problem: Problem, apart: bool) -> PricedConstraints | str:
    """Return the conditions with one constraint more, or why it is left out.

    `apart`: Whether local differential privacy has a pricing of its own.
    """
    kind, given = one.kind, one.parameters
    if apart and _is_cone(one):
        least = min(float(given["epsilon"]), LARGEST_LOSS)
        return replace(found, epsilon=least if found.epsilon is None else min(found.epsilon, least))
    if kind in BOXES and given.get("of") == "input":
        high = float(ratio(given["epsilon"]))
        low = 1.0 / high if BOXES[kind] else 0.0
        return replace(found, low=max(found.low, low), high=min(found.high, high))
    if kind == "maximal_leakage":
        return replace(found, peak=min(found.peak, float(np.exp(min(given["bound"], np.log(len(problem.p_y)))))))
    if kind == "total_variation_to_prior":
        what = "moved_on_average" if given.get("average", False) else "moved"
        return replace(found, **{what: min(getattr(found, what), float(given["bound"]))})
    if kind == "f_information" and given["of"] == "input" and given["f"] == _DISTANCE:  # it is that distance
        return replace(found, moved_on_average=min(found.moved_on_average, float(given["bound"])))
    if kind == _DISTORTION:
        matrix = np.asarray(given["distortion"], dtype=np.float64)
        return replace(found, distortions=(*found.distortions, (matrix, float(given["bound"]))))
    if kind == "forbidden":
        cells = forbidden_cells(one, Known.of_table(problem.table), (len(problem.p_y), problem.size_u))
        return replace(found, forbidden=cells if found.forbidden is None else found.forbidden | cells)
    costs = costs_of(one, Known.of_table(problem.table))
    if costs is None:
        return NOT_COUNTED.get(kind, f"the bound knows no constraint of the kind {kind}")
    every: tuple[Bent | Lines, ...] = (costs,) if isinstance(costs, Bent) else costs
    if sum(len(one.ends) for one in every) > MOST_SUMS:
        return MANY_SUMS
    if not all(
        np.isfinite(one.ends).all() and (isinstance(one, Bent) or np.isfinite(one.lines).all()) for one in every
    ):
        return NOT_FINITE
    if isinstance(costs, Bent):
        return replace(found, bent=(*found.bent, costs))
    return replace(found, lines=(*found.lines, *costs))


def pricing_of(problem: Problem, joint: Array, asked: PricedConstraints) -> Pricing:
    """Price the columns that obey the conditions, for a joint table (|S|, |Y|) whose rows may be merged."""
    p_y = joint.sum(axis=0)
    channel, conjugate = joint / p_y, conjugate_of(problem.divergence, 1.0 / float(p_y.min()))
    straight = straight_pricing(channel, p_y, problem.beta, problem.divergence, (asked.low, asked.high), asked.epsilon)
    if straight is not None:
        return straight
    if asked.epsilon is not None:
        return local_dp_pricing(channel, p_y, problem.beta, conjugate, asked.epsilon)
    if asked.low > 0.0 or asked.high < np.inf:
        boxed = Pricing.of(channel, p_y, problem.beta, within(conjugate, *ratios_within(asked, p_y)))
        return replace(boxed, smooth=False)  # cells at their limits stand still: Newton's method on alpha would not end
    return Pricing.of(channel, p_y, problem.beta, conjugate)


def ratios_within(asked: PricedConstraints, p_y: Array) -> tuple[float, float]:
    """The limits of the ratios p(u|y)/p(u)."""
    return max(asked.low, _LEAST_RATIO), min(asked.high, 1.0 / float(p_y.min()))


#: A ratio below this counts as 0.
_LEAST_RATIO = 1e-100
