"""The bound's programs in DCP form, so that every solver can check them.

Over given columns x_u = P(Y|u), the best mixture; its value is that of a mechanism, never above the optimum:

    maximise    sum_u q_u g(x_u)   subject to   sum_u q_u x_u = P_Y,   q >= 0.

Over cells that cover all s = P(S|Y) x, with one column a cell and KL(s || P_S) on its chords; never below the optimum:

    maximise    sum_ca W_ca KL(v_ca || P_S) - beta sum_cy x_cy f(p_y m_c / x_cy)
    subject to  P(S|Y) x_c = sum_a W_ca v_ca,   m_c = sum_y x_cy,   sum_c x_c = P_Y,   W, x >= 0.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Declaration
from cvxpriv.bounds.master_block import master_block
from cvxpriv.divergences.term import DivergenceTerm
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.solvers.chain import Solution

from .cells_of_s import kl_to_prior
from .problem import Problem
from .starts import symbol_values

__all__ = ["cells_block", "columns_block"]

#: The multipliers of this constraint are alpha.
AVERAGE = "columns average to P(Y)"


def columns_block(problem: Problem, columns: Array) -> Block:
    """The mixture of given posteriors P(Y|u), (|Y|, k), that is worth most; a minimisation of its negative worth."""
    worth = symbol_values(problem, columns.T)
    return master_block(-worth, {AVERAGE: (columns, problem.p_y, True)})


def cells_block(problem: Problem, cells: Array) -> Block:
    """The relaxation over cells, (C, |S|, |S|), each given by its vertices; its state entries are `x` and `W`."""
    count, symbols = len(cells), len(problem.p_s)
    shape = (count, problem.p_y.size)
    top = kl_to_prior(cells, problem.p_s)
    term = DivergenceTerm(problem.divergence, shape)

    def declare(_: object) -> Declaration:
        x, w = cp.Variable(shape, name="x"), cp.Variable((count, symbols), name="W")
        mass = cp.reshape(cp.sum(x, axis=1), (count, 1), order="C") @ problem.p_y[None, :]
        form = term.declare(x, mass)
        inside = {
            f"cell {index}": problem.p_s_given_y @ x[index] == cells[index].T @ w[index] for index in range(count)
        }
        return Declaration(
            objective=cp.Maximize(cp.sum(cp.multiply(top, w)) - problem.beta * form.expression),
            constraints={
                AVERAGE: cp.sum(x, axis=0) == problem.p_y,
                **inside,
                "x": x >= 0,
                "W": w >= 0,
                **form.constraints,
            },
            variables={"x": x, "W": w, **form.variables},
            parameters=dict(form.parameters),
        )

    def whole(x: Array, w: Array) -> Values:
        return {"x": x, "W": w, **term.values(x, x.sum(axis=1, keepdims=True) * problem.p_y)}

    def repair(values: Values, view: Values) -> Values:
        return whole(np.maximum(values["x"], 0.0), np.maximum(values["W"], 0.0))

    def write(solution: Solution, view: Values) -> Values:
        return {"x": solution.values["x"], "W": solution.values["W"]}

    return Block(
        name="cells",
        reads=frozenset(),
        writes=frozenset({"x", "W"}),
        declare=declare,
        parameters=term.parameters,
        embed=lambda point, at: whole(point["x"], point["W"]),
        repair=repair,
        write=write,
        refinement=term.refinement(
            lambda values, view: (values["x"], values["x"].sum(axis=1, keepdims=True) * problem.p_y)
        ),
    )
