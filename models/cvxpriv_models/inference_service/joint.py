"""The joint block, IAS (10), as one DCP problem: p f(q/p) is jointly convex and the rest is linear.

The paper calls (10) jointly non-convex and alternates over its rows; it is not (docs/errata.md).

Where f is made of straight pieces it is a linear program. With kinks t_k, at which f' jumps by j_k, and the first piece
a + b t,

    p f(q/p) = a p + b q + sum_k j_k (q - t_k p)_+.

F is then a maximum over finitely many vertices, and joint steps end after finitely many. Each comes with a certified
gap, from a tangent of the leakage that the multipliers choose.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import cvxpy as cp
import numpy as np
import numpy.typing as npt
from scipy.optimize import OptimizeResult, linprog
from scipy.sparse import csr_array, eye_array, hstack, kron, vstack

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Declaration, Known
from cvxpriv.bounds.linear_pieces import Pieces, pieces_of
from cvxpriv.divergences.term import DivergenceTerm
from cvxpriv.numerics.arrays import Array, Values, single
from cvxpriv.numerics.sizes import late
from cvxpriv.solvers.chain import Solution

from . import closed_form, interior, measures
from .blocks import PRICE_LIMIT, ROW_FLOOR, ROWS_SUM, bounded_cost
from .problem import LARGEST_BETA, Problem, floored_rows, lifted_rows

#: The least that HiGHS takes for either feasibility.
TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def maximise(problem: Problem, pieces: Pieces, posterior: Array) -> tuple[Array, Array]:
    """Maximise F of (10) at posteriors, (B, |S|, |U|).

    `pieces`: The pieces of its f. `posterior`: (B, |S|, |U|).
    Returns: Mechanisms (B, |Y|, |U|), and how far the F of each can be below the optimum (B,): inf where there is no
    answer.
    """
    mechanisms = np.full((len(posterior), problem.p_y.size, problem.size_u), 1.0 / problem.size_u)
    gap = np.full(len(posterior), np.inf)
    for start, own in enumerate(posterior):
        price = np.minimum(closed_form.cost(own, problem.p_s_given_y), PRICE_LIMIT)
        # Symbols of one price are one symbol: the first of them gets all but the others' floors.
        price, first, count = np.unique(price, axis=1, return_index=True, return_counts=True)
        found = _program(problem, pieces, price, count)
        if found.x is None:
            continue
        mechanism = np.full(mechanisms.shape[1:], problem.floor)
        mechanism[:, first] = found.x[: price.size].reshape(price.shape) - problem.floor * (count - 1)
        mechanisms[start] = floored_rows(mechanism, problem.floor)
        bound = _bound(problem, pieces, price, count, -found.ineqlin.marginals.reshape(-1, *price.shape))
        information = measures.information(problem.p_y, problem.p_s_given_y)
        gap[start] = bound + information - _value(problem, mechanisms[start], own)
    return mechanisms, gap


def joint_gap(problem: Problem, pieces: Pieces, mechanism: Array, posterior: Array) -> Array:
    """Return a bound of how far F of (10) at mechanisms is below its optimum at posteriors, (B,)."""
    best, gap = maximise(problem, pieces, posterior)
    given = (posterior, problem.p_y, problem.p_s_given_y, problem.beta, problem.divergence)
    return np.asarray(gap + measures.surrogate(best, *given) - measures.surrogate(mechanism, *given))


def _value(problem: Problem, mechanism: Array, posterior: Array) -> float:
    """F of (10) at one mechanism and a posterior."""
    given = (problem.p_y, problem.p_s_given_y, problem.beta, problem.divergence)
    return float(measures.surrogate(mechanism, posterior, *given))


def _program(problem: Problem, pieces: Pieces, price: Array, count: npt.NDArray[np.intp]) -> OptimizeResult:
    """Solve for p (|Y| n), q (n) and the (q - t_k p)_+ of each kink (|Y| n each); n prices, each of `count` symbols."""
    (n_y, n_u), cells = price.shape, price.size
    weight, jumps = np.repeat(problem.p_y, n_u), np.diff(pieces.slopes)
    cost = [weight * (price.ravel() + problem.beta * pieces.intercepts[0])]
    cost += [np.full(n_u, problem.beta * pieces.slopes[0])]
    cost += [problem.beta * jump * weight for jump in jumps]
    kinks, each = np.ones((len(jumps), 1)), eye_array(n_u)
    over = hstack(
        [
            kron(-pieces.kinks[:, None], eye_array(cells)),
            kron(kinks, kron(np.ones((n_y, 1)), each)),
            -eye_array(cells * len(jumps)),
        ]
    )
    rows = hstack([kron(eye_array(n_y), np.ones((1, n_u))), csr_array((n_y, over.shape[1] - cells))])
    symbols = hstack([kron(problem.p_y[None, :], each), -each, csr_array((n_u, cells * len(jumps)))])
    lowest = np.concatenate([np.tile(problem.floor * count, n_y), np.zeros(over.shape[1] - cells)])
    return linprog(  # type: ignore[call-overload,no-any-return]
        np.concatenate(cost),
        csr_array(over),
        np.zeros(over.shape[0]),
        csr_array(vstack([rows, symbols])),
        np.concatenate([np.ones(n_y), np.zeros(n_u)]),
        bounds=np.column_stack([lowest, np.full_like(lowest, np.inf)]),
        method="highs-ds",
        options=TIGHT,
    )


def _bound(problem: Problem, pieces: Pieces, price: Array, count: npt.NDArray[np.intp], multipliers: Array) -> float:
    """The most that F can be, less I(S;Y), by the tangent of the leakage that multipliers, (K, |Y|, n), choose.

    They are beta p(y) j_k times the share of the jump at kink k that lies below the tangent's f'. Any shares in [0, 1]
    give a bound, so that nothing hangs on the solver's accuracy.
    """
    weight, jumps = problem.beta * problem.p_y[:, None], np.diff(pieces.slopes)[:, None, None]
    steps = jumps * np.clip(multipliers / (weight * jumps), 0.0, 1.0)
    in_x = pieces.intercepts[0] - np.tensordot(pieces.kinks, steps, axes=1)
    in_q = pieces.slopes[0] + steps.sum(axis=0)
    s = -problem.beta * (in_x + (problem.p_y @ in_q)[None, :]) - price
    room = 1.0 - problem.size_u * problem.floor
    return float((room * s.max(axis=-1) + problem.floor * (s @ count)) @ problem.p_y)


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
    return None if pieces is None else partial(maximise, problem, pieces)


def _direct(problem: Problem, block: Block, maximise: Maximiser) -> Callable[[Values], Values]:
    """Return the exact update; a start that it cannot certify goes to a solver.

    Above `LARGEST_BETA` a solver only adds rounding: there one message to everybody, which leaks exactly nothing, takes
    the place of a mechanism that is worth less.
    """

    def direct(state: Values) -> Values:
        mechanism, gap = maximise(state["posterior"])
        for start in np.flatnonzero(~(gap <= CERTIFIED)).tolist():
            if problem.beta > LARGEST_BETA:
                own = state["posterior"][start]
                mechanism[start] = max(
                    mechanism[start], _silent(problem, own), key=lambda one: _value(problem, one, own)
                )
            elif not late():
                mechanism[start] = block.solve(single(state, start))[0]["mechanism"]
        return {"mechanism": mechanism, "q": problem.p_y @ mechanism}

    return direct


def _silent(problem: Problem, posterior: Array) -> Array:
    """The best mechanism whose rows are all one: the cheapest symbol for everybody, but for the floor."""
    price = problem.p_y @ np.minimum(closed_form.cost(posterior, problem.p_s_given_y), PRICE_LIMIT)
    row = np.full(problem.size_u, problem.floor)
    row[int(np.argmin(price))] += 1.0 - problem.size_u * problem.floor
    return np.tile(row, (problem.p_y.size, 1))
