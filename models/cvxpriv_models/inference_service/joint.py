"""The joint block, IAS (10), as one DCP problem: p f(q/p) is jointly convex and the rest is linear.

The paper calls (10) jointly non-convex and alternates over its rows; it is not (docs/errata.md).
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Declaration, Known
from cvxpriv.bounds.linear_pieces import pieces_of
from cvxpriv.divergences.term import DivergenceTerm
from cvxpriv.numerics.arrays import Array, Values, single
from cvxpriv.solvers.chain import Solution

from . import interior, measures, vertices
from .blocks import ROW_FLOOR, ROWS_SUM, bounded_cost
from .problem import Problem, floored_rows, lifted_rows

#: Posteriors, (B, |S|, |U|), to mechanisms, (B, |Y|, |U|), and how far each can be below the optimum, (B,).
Maximiser = Callable[[Array], tuple[Array, Array]]

#: The largest gap, in nats, with which the exact update counts as exact.
CERTIFIED = 1e-8


def joint(problem: Problem) -> Block:
    """Joint block, IAS (10): maximise F over P(U|Y) and q = P_Y' P(U|Y) together, at a given P(S|U).

    The exact update, certified to `CERTIFIED` nats, is an interior-point method of its own where f is smooth, and a
    linear program where f is made of straight pieces.

    F = I(S;Y) - beta sum_yu p(y) p(u|y) f(q/p(u|y)) - sum_yu p(y) D_yu p(u|y). Writes the mechanism and its q.
    """
    shape = (problem.p_y.size, problem.size_u)
    weight = np.broadcast_to(problem.p_y[:, None], shape)
    information = measures.information(problem.p_y, problem.p_s_given_y)
    term = DivergenceTerm(problem.divergence, shape)

    def pair(mechanism: Array, q: Array) -> tuple[Array, Array]:
        return weight * mechanism, weight * q[None, :]

    def declare(_: object) -> Declaration:
        mechanism, q = cp.Variable(shape, name="P(U|Y)"), cp.Variable(shape[1], name="q")
        price = cp.Parameter(shape, nonneg=True, name="p(y) D")
        each = problem.p_y[:, None] @ cp.reshape(q, (1, shape[1]), order="C")
        form = term.declare(cp.multiply(weight, mechanism), each)
        linear = information - cp.sum(cp.multiply(price, mechanism))
        return Declaration(
            objective=cp.Maximize(linear - problem.beta * form.expression),
            constraints={
                ROWS_SUM: cp.sum(mechanism, axis=1) == 1,
                ROW_FLOOR: mechanism >= problem.floor,
                "q = sum_y p(y) p(u|y)": q == problem.p_y @ mechanism,
                **form.constraints,
            },
            variables={"P(U|Y)": mechanism, "q": q, **form.variables},
            parameters={"p(y) D": price, **form.parameters},
            mechanism=mechanism,
            known=Known.of_table(problem.table),
        )

    def parameters(view: Values) -> Values:
        return {"p(y) D": np.maximum(weight * bounded_cost(view, problem.p_s_given_y), 0.0), **term.parameters(view)}

    def whole(mechanism: Array) -> Values:
        q = problem.p_y @ mechanism
        return {"P(U|Y)": mechanism, "q": q, **term.values(*pair(mechanism, q))}

    def repair(values: Values, view: Values) -> Values:
        mechanism = floored_rows(values["P(U|Y)"], problem.floor)
        if np.isinf(problem.divergence.limit_slope):
            mechanism = lifted_rows(mechanism, problem.p_y @ mechanism, problem.floor)
        return whole(mechanism)

    def write(solution: Solution, view: Values) -> Values:
        return {"mechanism": solution.values["P(U|Y)"], "q": solution.values["q"]}

    block = Block(
        name="joint",
        reads=frozenset({"mechanism", "posterior"}),
        writes=frozenset({"mechanism", "q"}),
        declare=declare,
        parameters=parameters,
        embed=lambda point, at: whole(point["mechanism"]),
        repair=repair,
        write=write,
        refinement=term.refinement(lambda values, view: pair(values["P(U|Y)"], values["q"])),
    )
    maximise = exact_maximiser(problem)
    return block if maximise is None else replace(block, direct=_direct(problem, block, maximise))


def exact_maximiser(problem: Problem) -> Maximiser | None:
    """Return what maximises F of (10) at posteriors without a DCP form, or None for a kinked f that curves."""
    if problem.divergence.smooth:
        return partial(interior.maximise, problem)
    pieces = pieces_of(problem.divergence)
    return None if pieces is None else partial(vertices.maximise, problem, pieces)


def _direct(problem: Problem, block: Block, maximise: Maximiser) -> Callable[[Values], Values]:
    """Return the exact update; a start that it cannot certify goes to a solver."""

    def direct(state: Values) -> Values:
        mechanism, gap = maximise(state["posterior"])
        for start in np.flatnonzero(~(gap <= CERTIFIED)).tolist():
            solved, _ = block.solve(single(state, start))
            mechanism[start] = solved["mechanism"]
        return {"mechanism": mechanism, "q": problem.p_y @ mechanism}

    return direct
