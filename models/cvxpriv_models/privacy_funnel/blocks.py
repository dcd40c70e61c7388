"""The blocks of PF Algorithm 1 as DCP problems.

Every block is one convex subproblem of PF (5): one variable is solved for, the others are fixed. Symbols are the
paper's: s = P(S|X), u = P(X,Y), w = P(X|Y), r = P(Y), q = P(X|S,Y), p = P(X).

A solver resolves about nine digits and an AEM point spans three hundred: cells below `RESOLUTION` leave the problem
that a solver sees. The printed form, with every cell in it, breaks real solvers. Only a mechanism that a user
constrains keeps every cell (`whole`): a floor must be able to raise a cell that was empty.
"""

from collections.abc import Callable

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Constraint, Declaration, Known
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.solvers.chain import Solution

from . import closed_form
from .problem import RESOLUTION, Cells, Problem

Constraints = tuple[tuple[str, Constraint], ...]
RATE = "I(X;Y) >= R"
ROWS = "sum_j u_ij = p_i"


def expectation(problem: Problem) -> Block:
    """q block: minimise -sum_ijk s_ki u_ij log q_ijk subject to sum_i q_ijk = 1.

    The state keeps phi_ij = sum_k s_ki (log q_ijk - log s_ki), which is all that the u block needs of q.
    """
    s = problem.p_s_given_x
    log_s = np.log(s.T, out=np.zeros_like(s.T), where=s.T > 0.0)

    def weights(view: Values) -> Array:
        return (s.T[:, None, :] * np.exp(view["log_u"])[:, :, None]).reshape(s.shape[1], -1)

    def write(log_q: Array) -> Values:
        log_q = log_q.reshape(s.shape[1], -1, s.shape[0])
        return {"phi": np.einsum("ik,ijk->ij", s.T, log_q - log_s[:, None, :])}

    return _log_likelihood(
        *("q", {"log_u"}, {"phi"}),
        weights,
        write,
        direct=lambda state: {"phi": closed_form.expectation(state["log_u"], s)},
    )


def marginal(problem: Problem) -> Block:
    """r block: minimise -sum_ij u_ij log r_j subject to sum_j r_j = 1."""
    return _log_likelihood(
        *("r", {"log_u"}, {"log_r"}),
        weights=lambda view: np.asarray(np.exp(view["log_u"]).sum(axis=0)[:, None]),
        write=lambda log_r: {"log_r": log_r[:, 0]},
        direct=lambda state: {"log_r": closed_form.marginal(state["log_u"])},
    )


def posterior(problem: Problem) -> Block:
    """w block: maximise sum_ij u_ij log w_ij subject to sum_i w_ij = 1.

    w is not in the objective of PF (5): the block maximises the slack of the rate constraint (5d), in which w is.
    """
    return _log_likelihood(
        *("w", {"log_u", "log_r"}, {"log_w"}),
        weights=lambda view: np.exp(view["log_u"]),
        write=lambda log_w: {"log_w": log_w},
        direct=lambda state: {"log_w": closed_form.posterior(state["log_u"], state["log_r"])},
    )


def _log_likelihood(
    name: str,
    reads: set[str],
    writes: set[str],
    weights: Callable[[Values], Array],
    write: Callable[[Array], Values],
    direct: Callable[[Values], Values],
) -> Block:
    """Return the block that maximises sum_c sum_i weight_ic log v_ic over columns v_c of the simplex.

    The columns are separate problems. Each is divided by its weight: a solver would leave the light ones unsolved.
    A column without weight is uniform.
    """

    def shares(view: Values) -> tuple[Array, Cells]:
        weight = weights(view)
        total = weight.sum(axis=0, keepdims=True)
        share = np.divide(weight, total, out=np.full_like(weight, 1.0 / weight.shape[0]), where=total > 0.0)
        return share, Cells(share >= RESOLUTION)

    def declare(alive: Cells) -> Declaration:
        weight = cp.Parameter(alive.count, nonneg=True, name="weight")
        v = cp.Variable(alive.count, name=name)
        return Declaration(
            objective=cp.Minimize(-cp.sum(cp.multiply(weight, cp.log(v)))),
            constraints={f"columns of {name} sum to 1": alive.sums(0) @ v == 1},
            variables={name: v},
            parameters={"weight": weight},
        )

    def parameters(view: Values) -> Values:
        share, alive = shares(view)
        return {"weight": alive.normalised(share[alive.mask], axis=0)}

    def embed(point: Values, at: Values) -> Values:
        return {name: parameters(at)["weight"]}  # the maximiser in closed form: PF (4a), (4b), (4c)

    def repair(values: Values, view: Values) -> Values:
        return {name: shares(view)[1].normalised(values[name], axis=0)}

    def to_state(solution: Solution, view: Values) -> Values:
        share, alive = shares(view)
        share[alive.mask] = solution.values[name]
        return write(np.log(np.maximum(share, np.exp(closed_form.FLOOR))))

    return Block(
        name=name,
        reads=frozenset(reads),
        writes=frozenset(writes),
        declare=declare,
        parameters=parameters,
        embed=embed,
        repair=repair,
        write=to_state,
        structure=lambda view: shares(view)[1],
        direct=direct,
    )


def mechanism(problem: Problem, whole: bool = False) -> Block:
    """u block: minimise sum_ij u_ij (log u_ij - phi_ij - log r_j) subject to (5b), (5d).

    Written as sum rel_entr(u, A), A_ij = p_i softmax_j(phi_ij + log r_j): it differs by a constant, and A is of the
    size of u.
    """

    def prior(view: Values) -> tuple[Array, Cells]:
        share = softmax(view["phi"] + view["log_r"])
        return problem.p_x[:, None] * share, Cells((share >= RESOLUTION) | whole)

    def declare(alive: Cells) -> Declaration:
        prior_u = cp.Parameter(alive.count, nonneg=True, name="A")
        u = cp.Variable(alive.count, name="u")
        return joint_declaration(
            problem, alive, u, objective=cp.sum(cp.rel_entr(u, prior_u)), parameters={"A": prior_u}
        )

    def parameters(view: Values) -> Values:
        share, alive = prior(view)
        return {
            "A": alive.normalised(share[alive.mask], axis=1, to=problem.p_x),
            **rate_parameters(problem, view, alive),
        }

    def write(solution: Solution, view: Values) -> Values:
        log_u = prior(view)[1].log_spread(solution.values["u"])
        return {"log_u": log_u, "lam": multiplier(solution)}

    def direct(state: Values) -> Values:
        log_u, lam = closed_form.mechanism(
            state["phi"], state["log_r"], state["log_w"], problem.p_x, problem.target, state["lam"]
        )
        return {"log_u": log_u, "lam": lam}

    return Block(
        name="u",
        reads=frozenset({"phi", "log_r", "log_w", "lam"}),
        writes=frozenset({"log_u", "lam"}),
        declare=declare,
        parameters=parameters,
        embed=lambda point, at: {"u": np.exp(point["log_u"])[prior(at)[1].mask]},
        repair=lambda values, at: {"u": prior(at)[1].normalised(values["u"], axis=1, to=problem.p_x)},
        write=write,
        structure=lambda view: prior(view)[1],
        direct=direct,
    )


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
            objective=cp.sum(cp.rel_entr(u, cp.multiply(scale, alive.sums(0).T @ r))),
            parameters={"exp(phi)": scale},
            constraints={"sum_j r_j = 1": cp.sum(r) == 1},
            variables={"r": r},
        )

    def parameters(view: Values) -> Values:
        scale, alive = kernel(view)
        return {"exp(phi)": np.maximum(scale[alive.mask], RESOLUTION**2), **rate_parameters(problem, view, alive)}

    def with_marginal(u: Array, alive: Cells) -> Values:
        return {"u": u, "r": alive.sums(0) @ u}

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
        r = alive.sums(0) @ u
        joint = cp.vstack([alive.sums(0, row[alive.index[0]]) @ u for row in s if row.any()])
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


def blocks(problem: Problem, constraints: Constraints = ()) -> dict[str, Block]:
    """Return the model's blocks by name; those that design the mechanism carry the constraints."""
    u, u_r, q_u_r = (
        constrained(make, problem, constraints) for make in (mechanism, mechanism_and_marginal, convex_concave)
    )
    every = (expectation(problem), u, marginal(problem), posterior(problem), u_r, q_u_r)
    return {block.name: block for block in every}


def constrained(make: Callable[[Problem, bool], Block], problem: Problem, constraints: Constraints) -> Block:
    """Return a block under constraints, which keep all cells; without any, the block of the cells that weigh."""
    block = make(problem, bool(constraints))
    return block.constrained(constraints) if constraints else block


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
        constraints={ROWS: alive.sums(1) @ u == problem.p_x, RATE: log_w @ u >= needed, **(constraints or {})},
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
