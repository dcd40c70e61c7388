"""The bound's program over columns in DCP form, so that every solver can check it.

Over given columns x_u = P(Y|u), the best mixture; its value is that of a mechanism, never above the optimum:

    maximise    sum_u q_u g(x_u)   subject to   sum_u q_u x_u = P_Y,   q >= 0.
"""

from __future__ import annotations

from cvxpriv.blocks.block import Block
from cvxpriv.bounds.master_block import master_block
from cvxpriv.numerics.arrays import Array

from .problem import Problem
from .starts import symbol_values

__all__ = ["columns_block"]

#: The multipliers of this constraint are alpha.
AVERAGE = "columns average to P(Y)"


def columns_block(problem: Problem, columns: Array) -> Block:
    """The mixture of given posteriors P(Y|u), (|Y|, k), that is worth most; a minimisation of its negative worth."""
    worth = symbol_values(problem, columns.T)
    return master_block(-worth, {AVERAGE: (columns, problem.p_y, True)})
