"""The exact solution of the joint block, IAS (10), where f is made of straight pieces: a linear program.

With kinks t_k, at which f' jumps by j_k, and the first piece a + b t,

    p f(q/p) = a p + b q + sum_k j_k (q - t_k p)_+.

F is then a maximum over finitely many vertices, and joint steps end after finitely many. Each comes with a certified
gap, from a tangent of the leakage that the multipliers choose.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.optimize import OptimizeResult, linprog
from scipy.sparse import csr_array, eye_array, hstack, kron, vstack

from cvxpriv.bounds.linear_pieces import Pieces
from cvxpriv.numerics.arrays import Array

from . import closed_form, measures
from .blocks import PRICE_LIMIT
from .problem import Problem, floored_rows

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
