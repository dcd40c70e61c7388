"""The centralised optimum of RADMM (1) by cone solvers, for an R that is no square."""

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Declaration
from cvxpriv.numerics.arrays import Array

from .newton import Posed


def centralised_by_solver(problem: Posed) -> Array:
    """Return the optimum of RADMM (1), (d,), by cone solvers: for an R that is no square."""

    def declare(structure: object) -> Declaration:
        f = cp.Variable(problem.features, name="f")
        cost, inside = problem.penalty.expression(f)
        objective = problem.reg * cost
        for node, design in enumerate(problem.rows.parts):
            y = problem.rows.of_node(problem.y, node)
            objective += problem.C / y.size * cp.sum(problem.loss.of_rows(design, f, y))
        return Declaration(
            cp.Minimize(objective), {f"X[{index}]": one for index, one in enumerate(inside)}, variables={"f": f}
        )

    everything = Block(
        name="centralised",
        reads=frozenset(),
        writes=frozenset({"f"}),
        declare=declare,
        parameters=lambda view: {},
        embed=lambda point, at: {"f": point["f"]},
        repair=lambda values, view: {"f": problem.penalty.prox(values["f"], 0.0)},
        write=lambda solution, view: {"f": solution.values["f"]},
    )
    return np.asarray(everything.solve({})[0]["f"])
