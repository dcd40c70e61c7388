"""A certified upper bound of the optimum of inference as a service, and a mechanism that comes near it.

The mechanism is a mixture of columns x_u = P(Y|u) with sum_u q_u x_u = P_Y, worth sum_u q_u g(x_u). For any alpha no
mechanism is worth more than alpha.P_Y + the largest price g(x) - alpha.x of a column. A master problem proposes alpha,
verification by cells of s = P(S|Y) x bounds the price. A floor under p(u|y) or a limit on |U| only lowers the optimum:
the bound is that without them, and holds with them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.divergences import FDivergence
from cvxpriv.errors import Disagreement, ModelError
from cvxpriv.numerics.arrays import Array
from cvxpriv.tables.information import mutual_information
from cvxpriv.tables.joint import JointTable

from .any_conjugate import conjugate_of
from .bound_search import FLOOR, Found, search
from .local_dp_pricing import local_dp_pricing
from .merged_symbols import information_lost, merge, merged_table
from .pricing import Pricing
from .problem import Problem
from .straight_pricing import straight_pricing

__all__ = ["ServiceBound", "bound"]

#: A bound, its alpha, and the groups of S that it merges.
Claim = tuple[float, Array, list[int] | None]

#: Up to this |S| all the time is for cells; beyond it a part is kept for a bound by merged symbols.
CERTIFIED = 4
#: A value up to this is rounding: the trivial mechanism is worth exactly 0.
NOTHING = 1e-14
#: An achieved value may be so far above a bound by rounding.
ROUNDING = 1e-11
#: That part.
MERGED_TIME = 0.4


@dataclass(frozen=True, eq=False)
class ServiceBound:
    """How good a mechanism can be.

    Attributes
    ----------
    lower : float
        The value I(S;U) - beta E[f] of `mechanism`, computed from it, nats.
    upper : float
        No mechanism is worth more, nats.
    mechanism : array, (|Y|, |U|)
        P(U|Y), rows sum to 1.
    reason : str
        Empty where the gap asked for is reached, else why it is not. The bounds hold in any case.
    certificate : dict
        The table, alpha and the claim, as JSON's types: the bound can be derived from it again without a solver.
    cells : int
        Cells that the verification looked at.
    """

    lower: float
    upper: float
    mechanism: Array
    reason: str
    certificate: dict[str, Any]
    cells: int

    @property
    def gap(self) -> float:
        """How far `mechanism` can be below the optimum, nats."""
        return self.upper - self.lower

    @property
    def certified(self) -> bool:
        """Whether the gap asked for is reached."""
        return not self.reason

    def __repr__(self) -> str:
        state = "certified" if self.certified else self.reason
        return f"ServiceBound(lower={self.lower:.9g}, upper={self.upper:.9g}, {state})"


def bound(
    table: Problem | JointTable | ArrayLike,
    beta: float | None = None,
    divergence: str | FDivergence = "jensen-shannon",
    *,
    gap: float = 1e-6,
    time_limit: float = 60.0,
    local_dp: float | None = None,
) -> ServiceBound:
    """Bound the optimum of IAS (1), max I(S;U) - beta E[f(p(u)/p(u|y))], from both sides.

    Parameters
    ----------
    table : Problem, JointTable, or array (|S|, |Y|)
        P(S, Y), the product of P(S|Y) and P(Y); or a problem, which brings beta and the divergence.
    beta : float
        The weight of privacy, > 0.
    divergence : str or FDivergence
    gap : float
        Relative: the bound is divided further while upper - lower exceeds gap * max(lower, 1e-3 nats).
    time_limit : float
        Seconds. When they are over, the bound that holds so far is returned.
    local_dp : float, optional
        Among mechanisms with p(u|y) <= exp(local_dp) p(u|y') only; both bounds are then under that constraint.

    Raises
    ------
    DataError
        The table is no joint distribution.
    ModelError
        Another argument is out of range.

    Examples
    --------
    >>> found = bound([[0.3, 0.1, 0.1], [0.05, 0.15, 0.3]], beta=0.2)
    >>> found.certified, round(found.lower, 6), round(found.upper, 6)
    (True, 0.071427, 0.071427)
    """
    problem = _problem(table, beta, divergence)
    for name, number, example in (("gap", gap, 1e-6), ("time_limit", time_limit, 60.0), ("local_dp", local_dp, 1.0)):
        if number is not None and not 0.0 < float(number) < np.inf:
            raise ModelError(f"{name}={number!r} is out of range: pass a number > 0, for example {example:g}")
    start = time.monotonic()
    joint = problem.p_s_given_y * problem.p_y
    joint = joint[joint.sum(axis=1) > 0.0]
    end = start + time_limit
    many = len(joint) > CERTIFIED
    found = _search(problem, joint, gap, end - MERGED_TIME * time_limit if many else end, local_dp)
    claims: list[Claim] = [(found.upper, found.alpha, None), _information(joint)]
    if many and found.upper - found.value > gap * max(found.value, FLOOR):
        groups = merge(joint, CERTIFIED)
        few = _search(problem, merged_table(joint, groups), gap, end, local_dp)
        claims.append((few.upper + information_lost(joint, groups), few.alpha, groups.tolist()))
    upper, alpha, merged = min(claims, key=lambda claim: claim[0])
    return _answer(problem, found, (upper, alpha, merged), gap, local_dp, time.monotonic() - start >= time_limit)


def _information(joint: Array) -> Claim:
    """I(S;Y) bounds everything: the merging of all symbols of S into one loses that, and leaves the optimum 0."""
    return mutual_information(joint), np.zeros(joint.shape[1]), [0] * len(joint)


def _problem(table: Problem | JointTable | ArrayLike, beta: float | None, divergence: str | FDivergence) -> Problem:
    if isinstance(table, Problem):
        return table
    if beta is None:
        raise ModelError("beta is missing: pass the weight of privacy, for example beta=0.5")
    return Problem.of(table, beta, divergence)


def _search(problem: Problem, joint: Array, gap: float, deadline: float, local_dp: float | None) -> Found:
    p_y = joint.sum(axis=0)
    channel = joint / p_y
    conjugate = conjugate_of(problem.divergence, 1.0 / float(p_y.min()))
    if local_dp is not None:
        return search(local_dp_pricing(channel, p_y, problem.beta, conjugate, local_dp), gap, deadline)
    straight = straight_pricing(channel, p_y, problem.beta, problem.divergence)
    return search(straight or Pricing.of(channel, p_y, problem.beta, conjugate), gap, deadline)


def _answer(
    problem: Problem, found: Found, claim: Claim, gap: float, local_dp: float | None, late: bool
) -> ServiceBound:
    upper, alpha, groups = claim
    lower = problem.objective(found.mechanism)
    mechanism = found.mechanism
    if lower <= NOTHING:
        lower, mechanism = 0.0, np.ones((problem.p_y.size, 1))
    if upper < lower - ROUNDING * (1.0 + abs(lower)) - np.finfo(float).eps * problem.beta:
        raise Disagreement(
            f"a mechanism is worth {lower!r} nats, above the bound {upper!r}: f of divergence "
            f"{problem.divergence.name!r} is not convex, or its derivative is not that of f"
        )
    upper = max(upper, lower)
    reason = ""
    if upper - lower > gap * max(lower, FLOOR):
        reason = _reason(len(problem.p_s), late, groups)
    certificate = {
        "schema": "cvxpriv certificate",
        "version": 1,
        "kind": "inference as a service",
        "table": (problem.p_s_given_y * problem.p_y).tolist(),
        "beta": problem.beta,
        "divergence": problem.divergence.name,
        "formula": problem.divergence.formula,
        "local_dp": local_dp,
        "alpha": alpha.tolist(),
        "groups": groups,
        "bound": upper,
        "mechanism": mechanism.tolist(),
    }
    return ServiceBound(lower, upper, mechanism, reason, certificate, found.cells)


def _reason(symbols: int, late: bool, groups: list[int] | None) -> str:
    """Why the gap asked for is not reached."""
    if symbols > CERTIFIED and groups is not None and max(groups) > 0:
        return (
            f"not certified to this gap: S has {symbols} symbols, for which the time was too short; the bound is that "
            f"of {CERTIFIED} merged symbols plus the information that the merging loses"
        )
    if groups is not None:
        return "not certified: in this time nothing better than I(S;Y) was proved; raise time_limit"
    if late:
        return "not certified to this gap: the time is over; the bound holds; raise time_limit or gap"
    return "not certified to this gap: the search for better multipliers ended; the bound holds; raise gap"
