"""The blocks of IAS Algorithm 1 as DCP problems, each with its exact update.

L = F + lam . delta - (rho/2) |delta|^2, delta = q - P_Y' P(U|Y), in the one sign convention of
:mod:`cvxpriv_models.inference_service.closed_form`. A declared objective leaves out what does not depend on the block's
own variables.
"""

from collections.abc import Callable

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Declaration, Known
from cvxpriv.divergences.term import DivergenceTerm
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.solvers.chain import Solution

from . import closed_form
from .problem import Problem, floored_rows, lifted_rows

ROWS_SUM, ROW_FLOOR = "sum_u p(u|y) = 1", "p(u|y) >= floor"
#: A price no solver can tell from infinity; it stands for one.
PRICE_LIMIT = 1e4
#: Largest q/p where p f(q/p) is infinite at p = 0: no optimum comes near it, but the rounding of a solver's q may.
STEEPEST = 1e30


def bounded_cost(view: Values, p_s_given_y: Array) -> Array:
    """D_yu of one start, (|Y|, |U|), with the infinite entries at `PRICE_LIMIT`."""
    return np.minimum(closed_form.cost(view["posterior"], p_s_given_y), PRICE_LIMIT)


def accuracy_block(problem: Problem) -> Block:
    """P(S|U) block, IAS (9): maximise sum_yu p(y) p(u|y) sum_s p(s|y) log p(s|u) over distributions p(.|u).

    The columns are separate problems, and each is divided by its own p(u): a solver would leave the light ones
    unsolved. What is left is -KL(P*_S|u || P_S|u) for each u, P* from the mechanism.
    """
    shape = (problem.p_s.size, problem.size_u)

    def exact(state: Values) -> Values:
        return {"posterior": closed_form.posterior(state["mechanism"], problem.p_y, problem.p_s_given_y)}

    def declare(_: object) -> Declaration:
        weight = cp.Parameter(shape, nonneg=True, name="P*(S|U)")
        posterior = cp.Variable(shape, name="P(S|U)")
        return Declaration(
            objective=cp.Maximize(-cp.sum(cp.rel_entr(weight, posterior))),
            constraints={"sum_s p(s|u) = 1": cp.sum(posterior, axis=0) == 1, "p(s|u) >= 0": posterior >= 0},
            variables={"P(S|U)": posterior},
            parameters={"P*(S|U)": weight},
        )

    def repair(values: Values, view: Values) -> Values:
        return {"P(S|U)": floored_rows(values["P(S|U)"].T, 0.0).T}

    return Block(
        name="P(S|U)",
        reads=frozenset({"mechanism"}),
        writes=frozenset({"posterior"}),
        declare=declare,
        parameters=lambda view: {"P*(S|U)": exact(view)["posterior"]},
        embed=lambda point, at: {"P(S|U)": point["posterior"]},
        repair=repair,
        write=lambda solution, view: {"posterior": solution.values["P(S|U)"]},
        direct=exact,
    )


def row(problem: Problem, index: int, rho: float, whole: bool = False) -> Block:
    """Row block i, IAS (20): maximise -beta sum_u x f(q/x) + kappa . x - (rho p(y_i)/2) |x|^2 over x = P(U|y_i).

    kappa = -D_i - lam + rho c, c = q less the other rows' share of p(u); L is divided by p(y_i).

    `index`: i.
    `whole`: Declare the whole mechanism, of which the objective sees row i only. A user's constraints can then be
    added: where no constraint couples rows, what row i may be does not depend on the others.
    """
    n_y, n_u = problem.p_y.size, problem.size_u
    share = float(problem.p_y[index])
    term = DivergenceTerm(problem.divergence, (n_u,), fixed="q")

    def kappa(view: Values) -> Array:
        others = problem.p_y @ view["mechanism"] - share * view["mechanism"][index]
        price = bounded_cost(view, problem.p_s_given_y[:, index : index + 1])[0]
        return np.asarray(rho * (view["q"] - others) - view["lam"] - price)

    def declare(_: object) -> Declaration:
        variable = cp.Variable((n_y, n_u) if whole else n_u, name="P(U|Y)" if whole else "x")
        x = variable[index] if whole else variable
        q, reward = cp.Parameter(n_u, nonneg=True, name="q"), cp.Parameter(n_u, name="kappa")
        form = term.declare(x, q)
        smooth = reward @ x - 0.5 * rho * share * cp.sum_squares(x)
        return Declaration(
            objective=cp.Maximize(smooth - problem.beta * form.expression),
            constraints={
                ROWS_SUM: cp.sum(variable, axis=1 if whole else None) == 1,
                ROW_FLOOR: variable >= problem.floor,
                **form.constraints,
            },
            variables={"x": variable, **form.variables},
            parameters={"kappa": reward, **({"q": q} if term.exact else {}), **form.parameters},
            mechanism=variable if whole else None,
            known=Known.of_table(problem.table) if whole else None,
        )

    def parameters(view: Values) -> Values:
        own = {"q": view["q"]} if term.exact else {}
        return {"kappa": kappa(view), **own, **term.parameters(view, q=view["q"])}

    def own_row(value: Array) -> Array:
        return np.asarray(value[index] if whole else value)

    def with_term(value: Array, view: Values) -> Values:
        return {"x": value, **term.values(own_row(value), view["q"])}

    def repair(values: Values, view: Values) -> Values:
        x = floored_rows(values["x"], problem.floor)
        if np.isinf(problem.divergence.limit_slope):
            x = lifted_rows(x, view["q"], problem.floor)
        return with_term(x, view)

    def write(solution: Solution, view: Values) -> Values:
        mechanism = view["mechanism"].copy()
        mechanism[index] = own_row(solution.values["x"])
        return {"mechanism": mechanism}

    def direct(state: Values) -> Values:
        mechanism = state["mechanism"].copy()
        mechanism[:, index] = closed_form.row(problem, index, state, rho)
        return {"mechanism": mechanism}

    return Block(
        name=f"P(U|y{index})",
        reads=frozenset({"mechanism", "q", "lam", "posterior"}),
        writes=frozenset({"mechanism"}),
        declare=declare,
        parameters=parameters,
        embed=lambda point, at: with_term(point["mechanism"] if whole else point["mechanism"][index], at),
        repair=repair,
        write=write,
        direct=direct,
        refinement=term.refinement(lambda values, view: (own_row(values["x"]), view["q"])),
    )


def marginal(problem: Problem, rho: float) -> Block:
    """P_U block, IAS (21): maximise -beta sum_yu p(y) p f(q/p) + (lam + rho m) . q - (rho/2) |q|^2 over q >= 0."""

    def level(state: Values) -> Array:
        return np.asarray(state["lam"] + rho * (problem.p_y @ state["mechanism"]))

    def direct(state: Values) -> Values:
        return {"q": closed_form.marginal(problem, state, rho)}

    return marginal_block(problem, "P_U", level, rho, direct)


def marginal_block(
    problem: Problem, name: str, level: Callable[[Values], Array], curvature: float, direct: Callable[[Values], Values]
) -> Block:
    """Return the block that maximises -beta sum_yu p(y) p f(q/p) + level . q - (curvature/2) |q|^2 over q >= 0."""
    shape = (problem.p_y.size, problem.size_u)
    weight = np.broadcast_to(problem.p_y[:, None], shape)
    term = DivergenceTerm(problem.divergence, shape, fixed="p")

    def spread(q: Array) -> Array:
        return np.asarray(weight * q[None, :])

    def declare(_: object) -> Declaration:
        q, reward = cp.Variable(shape[1], name="q"), cp.Parameter(shape[1], name="level")
        weighted = cp.Parameter(shape, nonneg=True, name="p(y) p(u|y)")
        each = problem.p_y[:, None] @ cp.reshape(q, (1, shape[1]), order="C")
        form = term.declare(weighted, each)
        smooth = reward @ q - 0.5 * curvature * cp.sum_squares(q)
        own = {"p(y) p(u|y)": weighted} if term.exact else {}
        return Declaration(
            objective=cp.Maximize(smooth - problem.beta * form.expression),
            constraints={"q >= 0": q >= 0, **form.constraints},
            variables={"q": q, **form.variables},
            parameters={"level": reward, **own, **form.parameters},
        )

    def parameters(view: Values) -> Values:
        weighted = weight * view["mechanism"]
        own = {"p(y) p(u|y)": weighted} if term.exact else {}
        return {"level": level(view), **own, **term.parameters(view, p=weighted)}

    def with_term(q: Array, view: Values) -> Values:
        return {"q": q, **term.values(weight * view["mechanism"], spread(q))}

    def repair(values: Values, view: Values) -> Values:
        q = np.maximum(values["q"], 0.0)
        if np.isinf(problem.divergence.limit_slope):
            q = np.minimum(q, STEEPEST * view["mechanism"].min(axis=0))
        return with_term(q, view)

    return Block(
        name=name,
        reads=frozenset({"mechanism", "lam", "q"}),
        writes=frozenset({"q"}),
        declare=declare,
        parameters=parameters,
        embed=lambda point, at: with_term(point["q"], at),
        repair=repair,
        write=lambda solution, view: {"q": solution.values["q"]},
        direct=direct,
        refinement=term.refinement(lambda values, view: (weight * view["mechanism"], spread(values["q"]))),
    )
