"""Bregman ADMM, IAS (29), with the kernel (c/2) |.|^2: the row block becomes a projection on the floored simplex.

The leakage is replaced by its tangent at the last row, and -(c/2) |x - last x|^2 is added; the P_U block gains
-(c/2) |q - last q|^2. In the sign convention of :mod:`cvxpriv_models.inference_service.closed_form`, lam is the
negative of the Lambda that (29) prints. Convergence needs c above l_g = 2 beta l_f / floor^2, which is huge
(docs/errata.md).
"""

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Declaration
from cvxpriv.divergences.sides import TINY, slopes_of
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.numerics.simplex import projected_rows
from cvxpriv.solvers.chain import Solution

from . import closed_form, kkt
from .blocks import PRICE_LIMIT, ROW_FLOOR, ROWS_SUM, marginal_block
from .closed_form import solve_marginal
from .problem import Problem, floored_rows


def bregman_mechanism(problem: Problem, index: int, rho: float, c: float) -> Block:
    """Row block i of IAS (29): maximise target . x - |x|^2 / 2 over x = P(U|y_i), which projects `target`.

    target = (c x_last + p(y_i) (-D_i - beta f_x(x_last, q) - lam + rho (q - m without row i))) / (c + rho p(y_i)^2).
    """
    share, size = float(problem.p_y[index]), problem.size_u

    def target(state: Values) -> Array:
        mechanism, q = state["mechanism"], state["q"]
        last = mechanism[..., index, :]
        others = problem.p_y @ mechanism - share * last
        price = closed_form.cost(state["posterior"], problem.p_s_given_y[:, index : index + 1])[..., 0, :]
        with np.errstate(all="ignore"):
            slope, _ = slopes_of(problem.divergence).in_x(np.maximum(last, TINY), np.maximum(q, TINY))
        rise = rho * (q - others) - state["lam"] - np.minimum(price, PRICE_LIMIT)
        rise -= np.clip(problem.beta * slope, -PRICE_LIMIT, PRICE_LIMIT)
        return np.asarray((c * last + share * rise) / (c + rho * share**2))

    def declare(_: object) -> Declaration:
        x, goal = cp.Variable(size, name="x"), cp.Parameter(size, name="target")
        return Declaration(
            objective=cp.Maximize(goal @ x - 0.5 * cp.sum_squares(x)),
            constraints={ROWS_SUM: cp.sum(x) == 1, ROW_FLOOR: x >= problem.floor},
            variables={"x": x},
            parameters={"target": goal},
        )

    def write(solution: Solution, view: Values) -> Values:
        mechanism = view["mechanism"].copy()
        mechanism[index] = solution.values["x"]
        return {"mechanism": mechanism}

    def direct(state: Values) -> Values:
        mechanism = state["mechanism"].copy()
        mechanism[:, index] = projected_rows(target(state), problem.floor)
        return {"mechanism": mechanism}

    return Block(
        name=f"Bregman P(U|y{index})",
        reads=frozenset({"mechanism", "q", "lam", "posterior"}),
        writes=frozenset({"mechanism"}),
        declare=declare,
        parameters=lambda view: {"target": target(view)},
        embed=lambda point, at: {"x": point["mechanism"][index]},
        repair=lambda values, view: {"x": floored_rows(values["x"], problem.floor)},
        write=write,
        direct=direct,
    )


def bregman_marginal(problem: Problem, rho: float, c: float) -> Block:
    """P_U block of IAS (29): the P_U block of (21) with rho + c in the place of rho, drawn towards the last q."""

    def level(state: Values) -> Array:
        return np.asarray(state["lam"] + rho * (problem.p_y @ state["mechanism"]) + c * state["q"])

    def direct(state: Values) -> Values:
        q = solve_marginal(
            problem.divergence, state["q"], state["mechanism"], level(state), problem.p_y, problem.beta, rho + c
        )
        return {"q": q}

    return marginal_block(problem, "Bregman P_U", level, rho + c, direct)


#: Value of an infinite gradient, at a cell of 0 for some f.
STEEPEST = 1e6
#: The first trial of a line search, and how often it is halved.
FIRST, HALVINGS = 4.0, 40
#: Armijo's constant: how much of the promised rise a step must deliver.
SUFFICIENT = 1e-4


def gradient(problem: Problem, mechanism: Array) -> Array:
    """Return dF/dp(u|y), (starts, |Y|, |U|); 0 at symbols that are never sent."""
    posterior = closed_form.posterior(mechanism, problem.p_y, problem.p_s_given_y)
    rise = kkt.slopes(problem, mechanism, posterior)
    return np.asarray(problem.p_y[:, None] * np.nan_to_num(rise, nan=0.0, posinf=STEEPEST, neginf=-STEEPEST))


def ascent(problem: Problem, state: Values, step: float | None) -> Values:
    """Return the next mechanism: the projection of mechanism + step * gradient on the floored simplices.

    `step`: None halves each start's own step until F rises enough (Armijo), and stays where none does.
    """
    mechanism = state["mechanism"]
    slope = gradient(problem, mechanism)
    if step is not None:
        return {"mechanism": projected_rows(mechanism + step * slope, problem.floor)}
    current = problem.objective(mechanism)
    best = mechanism.copy()
    open_starts = np.arange(len(mechanism))
    length = FIRST
    for _ in range(HALVINGS):
        here = mechanism[open_starts]
        trial = projected_rows(here + length * slope[open_starts], problem.floor)
        promised = np.sum(slope[open_starts] * (trial - here), axis=(-2, -1))
        good = problem.objective(trial) > current[open_starts] + SUFFICIENT * promised
        best[open_starts[good]] = trial[good]
        open_starts, length = open_starts[~good], 0.5 * length
        if not open_starts.size:
            break
    return {"mechanism": best}
