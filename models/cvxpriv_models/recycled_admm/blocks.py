"""The blocks of RADMM: each node's odd step (18), the dual step (15), and the even step (19).

The state: `f` (N, d), what was published last, f(2k-2); `odd` (N, d), f(2k-1), published too; `dual` (N, d), lambda;
`eta` (N,), the penalties of the pass, and `pass` its number; `noise` (N, d), eps, zeros where nothing is private;
`gradient` (N, d) and `loss` (N,), of the data at `odd`: private.
"""

from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Declaration
from cvxpriv.numerics.arrays import Array, Values, each_start
from cvxpriv.schedules.steps import Public, Sweep, Update

from .graph import dual_step, edge_weights, even_step, pull, reach
from .kinked import Kinked
from .newton import least
from .problem import Problem

#: Entries of a pass that neighbours know: its even step reads nothing else.
PUBLISHED = frozenset({"f", "odd", "eta"})


@dataclass(frozen=True, eq=False)
class OddStep:
    """The result of the exact odd step.

    `f`, (N, d): f_i(2k-1).
    `gradient`, (N, d): Gradient of O_i at f_i, without noise.
    `loss`, (N,): (1/B_i) sum_n l at f_i.
    `residual`, (N,): The norm of the gradient of (18) at f_i.
    """

    f: Array
    gradient: Array
    loss: Array
    residual: Array
    iterations: int


def odd_step(
    problem: Problem, previous: Array, dual: Array, noise: Array, links: Array, start: Array | None = None
) -> OddStep:
    """Return f_i(2k-1) of RADMM (18) for every node; with noise 0 it is (12), (14), and (8).

    The least of O_i(f) + (2 lambda_i + eps_i)'f + sum_j eta_ij ||(f_i' + f_j')/2 - f||^2, f' = f(2k-2).

    `problem`: The problem, whose penalty is a square.
    `previous`, `dual`, `noise`: (N, d).
    `links`, (N, N): eta_ij.
    `start`, (N, d): First point of Newton's method.
    """
    assert problem.ridge is not None
    bend = problem.ridge + 2.0 * reach(links)
    return minimised(problem, 2.0 * dual + noise - pull(links, previous), bend, start)


def minimised(
    problem: Problem, slope: Array, bend: Array, start: Array | None = None, enough: Array | None = None
) -> OddStep:
    """Return the least of each node's C/B_i sum_n l(x_n'f, y_n) + (bend_i/2)||f||^2 + slope_i'f.

    `slope`, `start`, (N, d). `bend`, (N,): rho/N and twice the penalties.
    `enough`, (N,): A residual that will do where a step no longer halves it.
    Raises NotConverged: The residual is neither 0 to working precision nor that small.
    """
    enough = np.zeros(len(bend)) if enough is None else enough
    several = []
    for nodes, places, rows in problem.rows.pieces:
        data = rows, problem.y[places], problem.loss, problem.row_weights[places], bend[nodes], slope[nodes]
        several.append(least(*data, None if start is None else start[nodes], enough[nodes]))
    f, values, of_rows, residual = (
        np.concatenate([getattr(one, name) for one in several]) for name in ("f", "values", "of_rows", "residual")
    )
    losses = problem.node_sums(values) / problem.rows.counts
    return OddStep(f, of_rows + (problem.ridge or 0.0) * f, losses, residual, max(one.iterations for one in several))


def odd_block(problem: Problem, node: int, variant: str) -> Block:
    """f_i(2k-1), RADMM (18): minimise O_i(f) + (2 lambda_i + eps_i)'f + sum_j eta_ij ||(f_i' + f_j')/2 - f||^2.

    Without noise it is (12), (14), and (8). The objective is without the constant of the squares; it writes row i of
    `odd`, and what the data say there. Where R is no square a solver's values are moved by one proximal step: a solver
    leaves 1e-10 where R has a kink at 0.
    """
    own = problem.of_node(node)
    design, y = own.rows.parts[0], own.y

    def links(view: Values) -> Array:
        return edge_weights(view["eta"], problem.network.adjacency, variant)

    def parameters(view: Values) -> Values:
        eta = links(view)
        slope = 2.0 * view["dual"][node] + view["noise"][node] - pull(eta, view["f"])[node]
        return {"slope": slope, "reach": np.asarray(reach(eta)[node])}

    def declare(structure: object) -> Declaration:
        f = cp.Variable(problem.features, name="f")
        slope, span = cp.Parameter(problem.features, name="slope"), cp.Parameter(nonneg=True, name="reach")
        cost, inside = problem.penalty.expression(f)
        data = problem.C / y.size * cp.sum(problem.loss.of_rows(design, f, y)) + problem.reg / problem.nodes * cost
        return Declaration(
            objective=cp.Minimize(data + slope @ f + span * cp.sum_squares(f)),
            constraints={f"X[{index}]": one for index, one in enumerate(inside)},
            variables={"f": f},
            parameters={"slope": slope, "reach": span},
            mechanism=f,
        )

    def rows(view: Values, f: Array, gradient: Array, loss: Array) -> Values:
        changed = {name: view[name].copy() for name in ("odd", "gradient", "loss")}
        changed["odd"][node], changed["gradient"][node], changed["loss"][node] = f, gradient, loss
        return changed

    def written(f: Array, view: Values) -> Values:
        slopes, losses = own.loss_gradients(f[None])[0], own.node_losses(f[None])[0]
        return rows(view, f, slopes + (problem.ridge or 0.0) * f, losses)

    def exact(view: Values) -> Values:
        given, start = parameters(view), view["odd"][node]
        if problem.ridge is None:
            return written(kinked(own, given["slope"], float(given["reach"])).least(start), view)
        nothing = np.zeros((1, problem.features))  # neighbours and multipliers are in the slope
        found = odd_step(own, nothing, nothing, given["slope"][None], given["reach"][None, None], start[None])
        return rows(view, found.f[0], found.gradient[0], found.loss[0])

    def repair(values: Values, view: Values) -> Values:
        if problem.ridge is not None:
            return values
        given = parameters(view)
        return {"f": kinked(own, given["slope"], float(given["reach"])).move(values["f"])}

    return Block(
        name=f"f/{node}",
        reads=frozenset({"f", "dual", "eta", "noise", "odd", "gradient", "loss"}),
        writes=frozenset({"odd", "gradient", "loss"}),
        declare=declare,
        parameters=parameters,
        embed=lambda point, at: {"f": point["odd"][node]},
        repair=repair,
        write=lambda solution, view: written(solution.values["f"], view),
        direct=each_start(exact),
    )


def odd_sweep(problem: Problem, variant: str) -> Sweep:
    """The odd step of all nodes; no node reads what another one writes, so that their order is of no matter."""

    def together(view: Values) -> Values:
        links = edge_weights(view["eta"], problem.network.adjacency, variant)
        found = odd_step(problem, view["f"], view["dual"], view["noise"], links, view["odd"])
        return {"odd": found.f, "gradient": found.gradient, "loss": found.loss}

    several = [odd_block(problem, node, variant) for node in range(problem.nodes)]
    return Sweep(several, fused=each_start(together) if problem.ridge is not None else None, name="odd")


def penalty_step(table: Array) -> Update:
    """Begin the next pass with its eta_i(2k-1), from a table (passes, N)."""

    def step(state: Values) -> Values:
        upcoming = state["pass"] + 1.0
        return {"pass": upcoming, "eta": table[upcoming.astype(int) - 1]}

    return Update("eta", step, frozenset({"pass"}), frozenset({"pass", "eta"}))


def dual_update(problem: Problem, variant: str) -> Update:
    """lambda_i, RADMM (9), (13), (15)."""

    def step(view: Values) -> Values:
        links = edge_weights(view["eta"], problem.network.adjacency, variant)
        return {"dual": dual_step(view["dual"], view["odd"], links)}

    return Update("dual", each_start(step), frozenset({"dual", "odd", "eta"}), frozenset({"dual"}))


def even_update(problem: Problem, variant: str, gamma: float) -> Public:
    """f(2k), RADMM (10), (16), (19): it costs no privacy, since it reads what neighbours know already."""

    def step(view: Values) -> Values:
        links = edge_weights(view["eta"], problem.network.adjacency, variant)
        return {"f": even_step(view["odd"], view["f"], links, gamma)}

    return Public(Update("even", each_start(step), PUBLISHED, frozenset({"f"})), PUBLISHED)


def carry() -> Update:
    """Begin the next pass at the odd iterate: conventional ADMM has no even step."""
    return Update("carry", lambda state: {"f": state["odd"]}, frozenset({"odd"}), frozenset({"f"}))


def kinked(own: Problem, slope: Array, span: float) -> Kinked:
    """Return O(f) + slope'f + span ||f||^2 of one node, `slope` (d,), whose R is no square."""
    data = own.rows, own.y, own.loss, own.row_weights, own.penalty, own.reg
    return Kinked(*data, slope, 2.0 * span, own.steepest[0] + 2.0 * span)
