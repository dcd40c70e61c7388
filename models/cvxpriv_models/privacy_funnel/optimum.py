"""The best mechanism by column generation, as a run's start: what is left to do is Newton's polish.

Column generation (`bound`) returns a mechanism within the wanted gap of the global optimum. As a start of the method
of alternating blocks it is polished until its KKT residual is small; where it is small already, no pass is made.
"""

from __future__ import annotations

import numpy as np

from cvxpriv.blocks.engines import Engine
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.schedules.history import History
from cvxpriv.schedules.steps import Context, LoopReport

from . import algorithm, closed_form
from .bound import FunnelBound
from .price import price
from .pricing import FunnelPricing
from .problem import Problem

__all__ = ["already_stationary", "certifiable", "free_symbol", "start_of"]

#: An output of less mass is free: it may become any other.
EMPTY = 1e-12


def certifiable(problem: Problem) -> bool:
    """Whether pricing is complete for a table, so that a gap can be proved: it has few enough private symbols."""
    return FunnelPricing(problem.table.probabilities, problem.rate).certifiable


def start_of(problem: Problem, found: FunnelBound) -> Array | None:
    """Return log P(X, Y) of the mechanism of a bound, (1, |X|, |Y|); None where it has more than |Y| symbols."""
    spare = problem.size_y - found.mechanism.shape[1]
    if spare < 0:
        return None
    return algorithm.log_joint(problem, np.pad(found.mechanism, ((0, 0), (0, spare)))[None])


def already_stationary(problem: Problem, log_u: Array, tol: float, engine: Engine) -> tuple[Values, Context] | None:
    """Return one start as the end of a run without a pass, if its residual is at most `tol`."""
    residuals = algorithm.residuals_of(problem, log_u)
    if residuals.largest[0] > tol:
        return None
    context = Context(engine, History(), starts=np.arange(1))
    context.reports[algorithm.LOOP] = LoopReport(np.zeros(1, dtype=np.intp), np.ones(1, dtype=bool))
    return closed_form.complete(log_u, problem.p_s_given_x, residuals.lam), context


def free_symbol(problem: Problem, mechanism: Array) -> float:
    """Return what the best use of a free output would gain, in nats: 0 where no output is free.

    An empty output is priced by the ordinary residual at the one posterior that is stored for it, which says nothing.
    """
    mass = problem.p_x @ mechanism
    if (mass > EMPTY).all():
        return 0.0
    return price(problem.table.probabilities, mechanism[:, mass > EMPTY], problem.rate).free
