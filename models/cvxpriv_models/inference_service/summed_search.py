"""The search for the best mechanism under sums over columns, and for a bound of it: column generation."""

from dataclasses import replace

import numpy as np

from cvxpriv.blocks.declaration import Known
from cvxpriv.bounds.columns import IN_USE, INTERRUPTED, OUT_OF_TIME, Generated, Generation
from cvxpriv.bounds.output_names import matched, placed
from cvxpriv.constraints.gate import brought_inside, inside, missed
from cvxpriv.errors import SolverFailure
from cvxpriv.numerics.arrays import Array, single
from cvxpriv.numerics.sizes import now

from .bound_search import FLOOR, Found, value_of
from .joint import joint as joint_block
from .priced_constraints import PricedConstraints, pricing_of
from .problem import Problem
from .starts import initial_state
from .summed_columns import LIGHT
from .summed_pricing import SummedPricing

#: Runs of column generation; the gap of the first, in nats, which learns how large the optimum is.
RUNS, FIRST_GAP = 3, 1e-4
#: Share of the time for them; if it is over, the rest is for a bound at the last multipliers, which may leave more than
#: local search by this factor.
SEARCHED, MARGIN = 0.75, 1.2
#: Weight that fills rows in place of columns, above which a solver looks for a mechanism.
FILLED = 1e-9
#: Share of a distortion that rounding of its sum may take.
ROUNDING = 1e-15
#: Margins by which ends of sums are lowered, in turn, where a mechanism misses one by a linear program's accuracy.
MARGINS = (1e-9, 1e-7, 1e-11)


def search_summed(problem: Problem, joint: Array, asked: PricedConstraints, gap: float, deadline: float) -> Found:
    """Bound the optimum under constraints to a relative gap, or as far as the deadline allows.

    `joint`, (|S|, |Y|): The table, whose rows may be merged.
    `asked`: The conditions, with sums over columns.
    `deadline`: A value of `time.monotonic`.
    """
    pricing = SummedPricing(pricing_of(problem, joint, asked), problem.divergence, asked, deadline)
    generation, found = _generated(problem, pricing, gap)
    mechanism = _mechanism(problem, pricing, found)
    for margin in MARGINS:
        if not missed(mechanism, asked.counted, Known.of_table(problem.table)):
            break
        for row, upper in enumerate(pricing.upper.tolist(), len(problem.p_y)):
            generation.master.set_row(row, -np.inf, upper - margin * max(1.0, abs(upper)))
        try:
            point = generation.master.solve()
        except SolverFailure:
            continue
        used = point.weights > IN_USE
        inner = replace(found, columns=generation.pool.taken(used), weights=point.weights[used])
        mechanism = _mechanism(problem, pricing, inner)
    mechanism = inside(mechanism, asked.counted, Known.of_table(problem.table))
    alpha, mu = pricing.split(found.duals)
    value, interrupted = value_of(mechanism, pricing.plain), found.reason == INTERRUPTED
    upper = -found.bound if asked.named else max(-found.bound, 0.0)  # without names the trivial mechanism is worth 0
    return Found(upper, alpha, mechanism, pricing.cells, value, interrupted, asked, mu)


def _generated(problem: Problem, pricing: SummedPricing, gap: float) -> tuple[Generation, Generated]:
    """Generate columns to a relative gap: the first run learns how large the optimum is."""
    columns = pricing.first_columns()
    generation = Generation(pricing, pricing.master(), columns)
    fills = columns[0] < 0.0
    if generation.master.solve().weights[fills].sum() > FILLED:
        generation.add(_satisfying(problem, pricing))
        fills = np.append(fills, np.zeros(generation.master.size - len(fills), dtype=bool))
    # A row may be worth more than what fills it costs: a narrow problem would be taken for an empty one.
    generation.drop(fills)
    allowed, begun, proved = max(FIRST_GAP, gap * FLOOR), now(), list[tuple[float, Array]]()
    soon = begun + SEARCHED * max(pricing.deadline - begun, 0.0)
    for _ in range(RUNS):
        found = generation.run(allowed, lambda: now() > soon)
        proved.append((found.bound, found.duals))
        before, allowed = allowed, gap * max(-found.value, FLOOR)
        if found.reason or before <= allowed:
            break
    if found.reason == OUT_OF_TIME:
        proved.append(_late(pricing, generation, found))
        found = generation.run(allowed, lambda: now() > pricing.deadline)
        proved.append((found.bound, found.duals))
    bound, duals = max(proved, key=lambda one: one[0])
    return generation, replace(found, bound=bound, duals=duals)


def _late(pricing: SummedPricing, generation: Generation, found: Generated) -> tuple[float, Array]:
    """Return the bound that the last multipliers give, as far as the deadline allows, and them."""
    duals, least = pricing.steadier(generation.master.solve().duals, found.columns)
    shown = pricing.verify(duals, MARGIN * least - FIRST_GAP, lambda: now() > pricing.deadline)
    return pricing.bound(duals, shown.least), duals


def _satisfying(problem: Problem, pricing: SummedPricing) -> Array:
    """Return the columns of a mechanism that satisfies what is asked, by a solver.

    Columns of one output together cost no more than each alone: where none is found, no mixture of columns does either.
    """
    asked, known = pricing.asked, Known.of_table(problem.table)
    even = np.full((1, len(problem.p_y), problem.size_u), 1.0 / problem.size_u)
    block = joint_block(replace(problem, floor=0.0)).constrained(asked.counted)
    found = block.solve(single(initial_state(problem, even), 0))[0]["mechanism"]
    apart = problem.p_y[:, None] * brought_inside(found, asked.counted, known)
    used = np.flatnonzero(apart.sum(axis=0) > 0.0)
    classes = pricing.classes[used] if asked.named else np.zeros(len(used), dtype=np.intp)
    x = (apart[:, used] / apart[:, used].sum(axis=0)).T
    return np.vstack([classes, np.vstack([pricing.kept(c, one[None]) for c, one in zip(classes, x, strict=True)]).T])


def _mechanism(problem: Problem, pricing: SummedPricing, found: Generated) -> Array:
    """Return the best P(U|Y) of the columns in use that satisfies the conditions, or one that misses some."""
    x, weights, asked = found.columns[1:].T, found.weights, pricing.asked
    known = Known.of_table(problem.table)
    if not asked.named:
        found_rows = _rows(x.T * weights)
        light = (
            problem.p_y[:, None] < LIGHT
        )  # the master's rows are loose there: what keeps the others keeps their mean
        return inside(np.where(light, problem.p_y @ found_rows, found_rows), asked.counted, known)
    placed_by_class = _rows(placed(x, weights, found.columns[0].astype(int), pricing.classes))
    price, barred = np.zeros(placed_by_class.shape), asked.forbidden
    for (matrix, _), multiplier in zip(asked.distortions, pricing.split(found.duals)[1], strict=False):
        price = price + multiplier * matrix
    joint = matched(x, weights, price if barred is None else price + barred)
    apart = _rows(np.where(barred, 0.0, joint) if barred is not None else joint, placed_by_class)
    cost = sum((matrix / max(bound, ROUNDING) for matrix, bound in asked.distortions), np.zeros(apart.shape))
    cheapest = np.eye(problem.size_u)[(cost if barred is None else np.where(barred, np.inf, cost)).argmin(axis=1)]
    every = [
        _towards(asked, problem.p_y, first, second)
        for first, second in ((apart, placed_by_class), (apart, cheapest), (placed_by_class, cheapest))
    ]
    good = [
        one
        for one in (brought_inside(each, asked.counted, known) for each in every)
        if not missed(one, asked.counted, known)
    ]
    return max(good, key=lambda one: value_of(one, pricing.plain), default=placed_by_class)


def _towards(asked: PricedConstraints, p_y: Array, first: Array, second: Array) -> Array:
    """The first mechanism, or the mixture with the second, which is nearest to it and has the distortion asked for."""
    share = 0.0
    for matrix, bound in asked.distortions:
        allowed = bound - ROUNDING * abs(bound)
        over, under = (float(p_y @ (matrix * one).sum(axis=1)) - allowed for one in (first, second))
        if over > 0.0:
            share = max(share, min(over / max(over - under, 1e-300), 1.0))
    return np.asarray((1.0 - share) * first + share * second)


def _rows(joint: Array, instead: Array | None = None) -> Array:
    """Rows that sum to 1; where one is empty, that of another mechanism, or what the others draw on average."""
    total = joint.sum(axis=1, keepdims=True)
    instead = joint.sum(axis=0) / joint.sum() if instead is None else instead
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(total > 0.0, joint / total, instead))
