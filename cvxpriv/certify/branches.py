"""Branches of a mixed-integer problem's relaxation: a certified bound, without belief in a mixed-integer solver.

Each branch is a convex problem, with a bound that is certified by its dual (`cvxpriv.kkt.conic.bounds`), or a
certificate of infeasibility. The least bound of what is left of them bounds the whole.
"""

import heapq
import time
from dataclasses import dataclass
from itertools import count

import cvxpy as cp
import numpy as np

from cvxpriv.certify.answers import NAN
from cvxpriv.kkt.conic.solving import attempts
from cvxpriv.kkt.integers import MixedInteger
from cvxpriv.numerics.arrays import Array
from cvxpriv.solvers.registry import fallback_chain

NODES = 60
"""Branches that are looked at at most."""
WHOLE = 1e-9
"""Distance from an allowed value that need not be cut off: behind a coefficient of 1e6, one of 1e-6 is worth 1."""
SECONDS = 10.0
"""Limit on the clock: no branch is begun after it, and none that is begun may take longer than this."""


@dataclass(frozen=True)
class Branched:
    """The proofs that the branches of a relaxation give.

    `bound`: Certified, in the sense of the problem; NaN where there is none.
    `infeasible`: Every branch is proven empty.
    `nodes`: Branches looked at.
    `late`: Whether it ended at `SECONDS`.
    """

    bound: float
    infeasible: bool
    nodes: int
    late: bool = False


def branched(mixed: MixedInteger, incumbent: float, unit: float = 1.0) -> Branched:
    """Return what branches of the relaxation prove of the optimum.

    `incumbent`: The best value of a feasible point in the sense of the problem, or NaN: branches that cannot be better
    are left.
    `unit`: Size of the objective's coefficients, at most 1.
    """
    sign = -1.0 if isinstance(mixed.problem.objective, cp.Maximize) else 1.0
    best = sign * incumbent if np.isfinite(incumbent) else np.inf
    target = best - 1e-9 * max(unit, abs(best)) if np.isfinite(best) else np.inf
    order, leaves = count(), [best]
    everywhere = [
        (np.full(one.expression.size, -np.inf), np.full(one.expression.size, np.inf)) for one in mixed.restrictions
    ]
    open_nodes: list[tuple[float, int, list[tuple[Array, Array]]]] = [(-np.inf, next(order), everywhere)]
    nodes, end = 0, time.perf_counter() + SECONDS
    while open_nodes and nodes < NODES and time.perf_counter() < end:
        above, _, boxes = heapq.heappop(open_nodes)
        if above >= target:
            leaves.append(above)
            continue
        nodes += 1
        bound, children = _node(mixed, boxes, sign)
        bound = max(bound, above)
        if bound == np.inf:
            continue
        if bound >= target or not children:
            leaves.append(bound)
            continue
        for child in children:
            heapq.heappush(open_nodes, (bound, next(order), child))
    lowest = min([*leaves, *(bound for bound, _, _ in open_nodes)])
    empty = lowest == np.inf
    late = bool(open_nodes) and nodes < NODES
    return Branched(sign * lowest if np.isfinite(lowest) else NAN, empty, nodes, late)


def _node(
    mixed: MixedInteger, boxes: list[tuple[Array, Array]], sign: float
) -> tuple[float, list[list[tuple[Array, Array]]]]:
    """The certified bound of one branch, infinite if it is empty, and its two halves; none where it need not be cut."""
    chain = ((solver, None) for solver in fallback_chain(None))
    solution = next(attempts(mixed.within(boxes), chain, SECONDS), None)
    if solution is None:
        return -np.inf, []
    if (proof := solution.certificate) is not None and solution.status.startswith("infeasible") and proof.exact:
        return np.inf, []
    found = solution.lower_bound.value if solution.status == cp.OPTIMAL else None
    bound = -np.inf if found is None else found
    if solution.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        return bound, []
    worst, place = WHOLE, None
    for k, one in enumerate(mixed.restrictions):
        at = one.value
        off = np.abs(at - one.nearest(at))
        if off.max(initial=0.0) > worst:
            worst, place = float(off.max()), (k, int(off.argmax()))
    if place is None:
        return bound, []
    k, entry = place
    below, above = mixed.restrictions[k].around(float(mixed.restrictions[k].value[entry]))
    halves = []
    for side, limit in ((1, below), (0, above)):
        half = [(low.copy(), high.copy()) for low, high in boxes]
        half[k][side][entry] = limit
        halves.append(half)
    return bound, halves
