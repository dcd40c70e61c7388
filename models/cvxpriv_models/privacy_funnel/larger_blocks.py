"""Larger blocks than the paper's: u and r in one problem, q, u and r in one problem, and a first phase.

None of them has a closed form.
"""

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Declaration, Known
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.solvers.chain import Solution

from . import closed_form
from .cells import RESOLUTION, ROWS, Cells, joint_declaration, multiplier, rate_parameters, softmax
from .problem import Problem


def mechanism_and_marginal(problem: Problem, whole: bool = False) -> Block:
    """(u, r) block: minimise sum_ij u_ij (log u_ij - phi_ij - log r_j) over u and r together.

    At its solution r is the column sum of u. There is no closed form: the block has only its DCP form.
    """

    def kernel(view: Values) -> tuple[Array, Cells]:
        exponent = view["phi"] - view["phi"].max(axis=1, keepdims=True)
        return np.exp(exponent), Cells((softmax(view["phi"] + view["log_r"]) >= RESOLUTION) | whole)

    def declare(alive: Cells) -> Declaration:
        scale = cp.Parameter(alive.count, nonneg=True, name="exp(phi)")
        u = cp.Variable(alive.count, name="u")
        r = cp.Variable(alive.columns.size, name="r")
        return joint_declaration(
            problem,
            alive,
            u,
            objective=cp.sum(cp.rel_entr(u, cp.multiply(scale, alive.column_sums.T @ r))),
            parameters={"exp(phi)": scale},
            constraints={"sum_j r_j = 1": cp.sum(r) == 1},
            variables={"r": r},
        )

    def parameters(view: Values) -> Values:
        scale, alive = kernel(view)
        return {"exp(phi)": np.maximum(scale[alive.mask], RESOLUTION**2), **rate_parameters(problem, view, alive)}

    def with_marginal(u: Array, alive: Cells) -> Values:
        return {"u": u, "r": alive.column_sums @ u}

    def repair(values: Values, view: Values) -> Values:
        alive = kernel(view)[1]
        return with_marginal(alive.normalised(values["u"], axis=1, to=problem.p_x), alive)

    def write(solution: Solution, view: Values) -> Values:
        log_u = kernel(view)[1].log_spread(solution.values["u"])
        return {"log_u": log_u, "log_r": closed_form.marginal(log_u[None])[0], "lam": multiplier(solution)}

    def embed(point: Values, at: Values) -> Values:
        alive = kernel(at)[1]
        return with_marginal(np.exp(point["log_u"])[alive.mask], alive)

    return Block(
        name="(u, r)",
        reads=frozenset({"phi", "log_r", "log_w", "lam"}),
        writes=frozenset({"log_u", "log_r", "lam"}),
        declare=declare,
        parameters=parameters,
        embed=embed,
        repair=repair,
        write=write,
        structure=lambda view: kernel(view)[1],
    )


def convex_concave(problem: Problem, whole: bool = False) -> Block:
    """(q, u, r) block: minimise sum_jk T_kj log(T_kj / r_j), T = s u, over q, u and r together: the objective itself.

    Only the rate constraint is replaced, by sum u log w >= R^ at the last w: this is the convex-concave procedure.
    Columns of less than `RESOLUTION` stay empty, but for a row's only one. There is no closed form.
    """
    s = problem.p_s_given_x

    def cells(view: Values) -> Cells:
        u = np.exp(view["log_u"])
        kept = (u >= RESOLUTION**2) & (u.sum(axis=0) >= RESOLUTION) | whole
        # A symbol of X that hardly occurs may be alone in its column: a row needs a cell.
        return Cells(kept | ~kept.any(axis=1, keepdims=True) & (u == u.max(axis=1, keepdims=True)))

    def declare(alive: Cells) -> Declaration:
        u = cp.Variable(alive.count, name="u")
        r = alive.column_sums @ u
        joint = cp.vstack([alive.weighted_column_sums(row) @ u for row in s if row.any()])
        ones = np.ones((joint.shape[0], 1))
        return joint_declaration(
            problem,
            alive,
            u,
            objective=cp.sum(cp.rel_entr(joint, ones @ cp.reshape(r, (1, alive.columns.size), order="C"))),
            constraints={"u_ij >= 0": u >= 0},  # the objective's domain is s u >= 0, which is more
        )

    def write(solution: Solution, view: Values) -> Values:
        log_u = cells(view).log_spread(solution.values["u"])
        return {
            "log_u": log_u,
            "phi": closed_form.expectation(log_u[None], s)[0],
            "log_r": closed_form.marginal(log_u[None])[0],
            "lam": multiplier(solution),
        }

    return Block(
        name="(q, u, r)",
        reads=frozenset({"log_u", "log_w", "lam"}),
        writes=frozenset({"log_u", "phi", "log_r", "lam"}),
        declare=declare,
        parameters=lambda view: rate_parameters(problem, view, cells(view)),
        embed=lambda point, at: {"u": np.exp(point["log_u"])[cells(at).mask]},
        repair=lambda values, at: {"u": cells(at).normalised(values["u"], axis=1, to=problem.p_x)},
        write=write,
        structure=cells,
    )


def most_telling(problem: Problem) -> Block:
    """Phase one of a constrained funnel: maximise sum u log w, the tangent of I(X;Y) at the last w, over u.

    I(X;Y) is convex in u, so that no step lowers it: alternated with the w block it climbs towards the rate.
    """

    def declare(alive: Cells) -> Declaration:
        log_w = cp.Parameter(alive.count, name="log w")
        u = cp.Variable(alive.count, name="u")
        return Declaration(
            objective=cp.Maximize(log_w @ u),
            constraints={ROWS: alive.row_sums @ u == problem.p_x, "u_ij >= 0": u >= 0},
            variables={"u": u},
            parameters={"log w": log_w},
            mechanism=alive.expression(u, scale=1.0 / problem.p_x),
            known=Known.of_table(problem.table),
        )

    def cells(view: Values) -> Cells:
        return Cells(np.ones(view["log_w"].shape, dtype=bool))

    def write(solution: Solution, view: Values) -> Values:
        log_u = cells(view).log_spread(solution.values["u"])
        return {"log_u": log_u, "log_r": closed_form.marginal(log_u[None])[0]}

    return Block(
        name="phase one",
        reads=frozenset({"log_w"}),
        writes=frozenset({"log_u", "log_r"}),
        declare=declare,
        parameters=lambda view: {"log w": rate_parameters(problem, view, cells(view))["log w"]},
        embed=lambda point, at: {"u": np.exp(point["log_u"])[cells(at).mask]},
        repair=lambda values, at: {"u": cells(at).normalised(values["u"], axis=1, to=problem.p_x)},
        write=write,
        structure=cells,
    )
