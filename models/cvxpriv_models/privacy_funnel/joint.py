"""Shared by every block that solves for u = P(X,Y): its rows sum to p, it carries the rate, constraints see P(Y|X)."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.declaration import Declaration, Known
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.solvers.chain import Solution

from .cells import RESOLUTION, Cells
from .problem import Problem

RATE = "I(X;Y) >= R"
ROWS = "sum_j u_ij = p_i"


def joint_declaration(
    problem: Problem,
    alive: Cells,
    u: cp.Variable,
    *,
    objective: cp.Expression,
    parameters: dict[str, cp.Parameter] | None = None,
    constraints: dict[str, cp.Constraint] | None = None,
    variables: dict[str, cp.Variable] | None = None,
) -> Declaration:
    """Declare a problem in u: its rows sum to p, (5b), it carries the rate, (5d), and its constraints see P(Y|X)."""
    log_w = cp.Parameter(alive.count, name="log w")
    needed = cp.Parameter(name="R^")
    return Declaration(
        objective=cp.Minimize(objective),
        constraints={ROWS: alive.row_sums @ u == problem.p_x, RATE: log_w @ u >= needed, **(constraints or {})},
        variables={"u": u, **(variables or {})},
        parameters={"log w": log_w, "R^": needed, **(parameters or {})},
        mechanism=alive.expression(u, scale=1.0 / problem.p_x),
        known=Known.of_table(problem.table),
    )


def rate_parameters(problem: Problem, view: Values, alive: Cells) -> Values:
    """Return the Parameters of the rate constraint (5d) at one start of the state."""
    # Raising a w that no mass follows to 1e-18 leaves sum u log w a lower bound of I(X;Y) - H(X).
    log_w = np.maximum(view["log_w"][alive.mask], 2.0 * np.log(RESOLUTION))
    return {"log w": log_w, "R^": np.asarray(problem.target)}


def multiplier(solution: Solution) -> Array:
    """Return lambda, the multiplier of the rate constraint."""
    return np.asarray(np.maximum(np.asarray(solution.duals[RATE], dtype=float), 0.0))


def softmax(exponent: Array) -> Array:
    """Return exp(exponent) with rows scaled to sum to 1, (|X|, |Y|)."""
    weights = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
