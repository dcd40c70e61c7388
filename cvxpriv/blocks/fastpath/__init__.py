"""Fast re-solves: from Parameters to the solver's own update, without cvxpy's `solve`."""

from cvxpriv.blocks.fastpath.answer import NotFast
from cvxpriv.blocks.fastpath.problem import FastProblem, FastSolution, supported

__all__ = ["FastProblem", "FastSolution", "NotFast", "supported"]
