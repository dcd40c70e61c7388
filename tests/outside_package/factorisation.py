"""A nonnegative matrix as a product of two narrow ones (Lee and Seung, 1999): a model without anything private."""

from typing import Annotated

import cvxpy as cp

from cvxpriv.runs.options import Option, declared
from cvxpriv.runs.problem_model import ProblemModel

Rank = Annotated[int, Option("Number of columns of W, and of rows of H.", low=1)]


@declared
class Factorisation(ProblemModel):
    """Write a matrix as a product W H of two nonnegative ones.

    Minimise the sum of squares of data - W H.

    Parameters
    ----------
    data : array, (n, m)
    """

    command = "factorise"

    @declared
    def __init__(self, data, rank: Rank = 2):
        super().__init__(data, rank=rank)

    def posed(self):
        (n, m), rank = self.data.shape, self.options["rank"]
        W, H = cp.Variable((n, rank), nonneg=True, name="W"), cp.Variable((rank, m), nonneg=True, name="H")
        return cp.Problem(cp.Minimize(cp.sum_squares(self.data - W @ H))), [[W], [H]]
