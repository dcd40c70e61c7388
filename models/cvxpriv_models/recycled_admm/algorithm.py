"""RADMM as schedules: conventional ADMM, and Algorithms 1 and 2.

A pass is one use of the data: the odd step, the dual step, and where there is one the even step.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.blocks.block import Block
from cvxpriv.errors import ModelError, NotConverged
from cvxpriv.numerics.anderson import Anderson
from cvxpriv.numerics.arguments import real_numbers
from cvxpriv.numerics.arrays import Array, Values, measured_each
from cvxpriv.schedules.history import Below
from cvxpriv.schedules.steps import Accelerator, AnyStep, Loop, Measure, Sweep

from . import kkt
from .blocks import carry, dual_update, even_update, odd_block, odd_sweep, penalty_step
from .graph import edge_weights, reach
from .options import RECYCLING
from .problem import Problem

#: The name under which the loop stands in a run's history.
LOOP = "pass"


def one_pass(problem: Problem, method: str, variant: str, table: Array, gamma: float) -> list[AnyStep]:
    """Return the steps of a pass, in order: the penalties, the odd step, the dual step, the even step.

    Conventional ADMM carries the odd iterate over in place of the even step.

    `method`: One of `METHODS`.
    `variant`: {"edge", "printed"}.
    `table`, (passes, N): eta_i(2k-1).
    """
    last = even_update(problem, variant, gamma) if method in RECYCLING else carry()
    return [penalty_step(table), odd_sweep(problem, variant), dual_update(problem, variant), last]


def schedule(
    problem: Problem,
    method: str,
    variant: str,
    table: Array,
    gamma: float,
    tol: float,
    accelerate: bool = False,
    joint: bool = False,
) -> Loop:
    """Return the whole algorithm: passes until the KKT residual of (1) is at most `tol`; see `one_pass`.

    `joint`: Whether Newton's method on all rows may end accelerated passes that are slow (`Joining`).
    """
    combined = Anderson(PublishedAndDual(problem, table[0], variant), MEMORY) if accelerate else None
    return Loop(
        Sweep(one_pass(problem, method, variant, table, gamma)),
        stop=Below("kkt", tol),
        limit=len(table),
        measure=measure(problem),
        accelerate=Joining(problem, combined, tol) if combined is not None and joint else combined,
        name=LOOP,
    )


def blocks(problem: Problem, variant: str) -> dict[str, Block]:
    """Return the model's blocks by name, one a node."""
    several = [odd_block(problem, node, variant) for node in range(problem.nodes)]
    return {block.name: block for block in several}


def initial_state(problem: Problem, init: ArrayLike | None = None) -> dict[str, Array]:
    """Return the start: f(0), and lambda = 0.

    `init`, (d,) or (N, d): None is 0.
    """
    shape = (problem.nodes, problem.features)
    given = np.zeros(shape) if init is None else real_numbers(init, "init", ModelError)
    if given.shape not in (shape, shape[1:]) or not np.isfinite(given).all():
        raise ModelError(f"init has shape {given.shape}, expected {shape[1:]} or {shape}, of finite numbers")
    start, per_node = np.broadcast_to(given, shape)[None].copy(), np.zeros((1, problem.nodes))
    every = dict.fromkeys(("dual", "noise", "gradient"), np.zeros_like(start))
    return {"f": start, "odd": start, **every, "loss": per_node, "eta": per_node, "pass": np.zeros(1)}


def measure(problem: Problem) -> Measure:
    """Return the figures of a state, per start; see `figures_of`."""
    return measured_each(partial(figures_of, problem))


def figures_of(problem: Problem, view: Values) -> dict[str, float]:
    """Return the figures of one start, all of the odd iterate.

    objective, sum_i O_i(f_i); loss, the paper's L(t); distance, the largest ||f_i - f_c||, only for a square R and
    reg > 0, where f_c is unique; stationarity, consensus, dual_sum and kkt (`kkt.ConsensusResiduals`); the least and
    the largest eta.
    """
    f = view["odd"]
    figures = figures_of_parts(problem, view, kkt.residuals(problem, f, view["dual"], view["gradient"]))
    if problem.ridge:
        figures["distance"] = float(np.linalg.norm(f - problem.optimum, axis=1).max())
    return figures


def figures_of_parts(problem: Problem, view: Values, found: kkt.ConsensusResiduals) -> dict[str, float]:
    """Return the figures of `figures_of` but the distance, where each node has told its loss: no row is read."""
    penalty = problem.reg / problem.nodes * sum(problem.penalty.value(own) for own in view["odd"])
    return {
        "objective": problem.C * float(view["loss"].sum()) + penalty,
        "loss": float(view["loss"].mean()),
        "stationarity": max(found.stationarity),
        "consensus": found.consensus,
        "dual_sum": found.dual_sum,
        "kkt": found.largest,
        "eta_least": float(view["eta"].min()),
        "eta_largest": float(view["eta"].max()),
    }


#: Passes remembered.
MEMORY = 20
#: Pass after which a run that has not ended is slow: badly scaled columns, or nodes that hardly see one another.
AFTER = 100
#: Name of the entry of a state that says that it is Newton's.
JOINT = "joint"


class Joining:
    """The accelerator of a run whose slow passes Newton's method ends. It needs all rows in one place.

    It stands at the centralised optimum with lambda_i = -(g_i - mean g)/2, where g_i is the gradient of O_i without R:
    what is left of each g_i + 2 lambda_i is the mean, which R's subgradient takes.
    """

    def __init__(self, problem: Problem, inner: Accelerator, tol: float) -> None:
        self.problem, self.inner, self.tol = problem, inner, tol

    def __call__(self, body: Callable[[Values], dict[str, Array]], state: dict[str, Array], iteration: int) -> Values:
        image = self.inner(body, state, iteration)
        return image if iteration != AFTER else self._ended(image) or image

    def _ended(self, image: Values) -> Values | None:
        """Return the state at the optimum, or None where it is not unique, or its residual is no smaller than asked."""
        problem, last = self.problem, [image[name][0] for name in ("odd", "dual", "gradient")]
        if kkt.residuals(problem, *last).largest <= self.tol:
            return None
        try:
            f = np.broadcast_to(problem.optimum, (problem.nodes, problem.features)).copy()
        except NotConverged:
            return None
        of_rows = problem.loss_gradients(f)
        dual, gradient = 0.5 * (of_rows.mean(axis=0) - of_rows), of_rows + (problem.ridge or 0.0) * f
        if kkt.residuals(problem, f, dual, gradient).largest > self.tol:
            return None
        found = {"f": f, "odd": f, "dual": dual, "gradient": gradient, "loss": problem.node_losses(f)}
        return {**image, **{name: value[None] for name, value in found.items()}, JOINT: np.ones(1)}


class PublishedAndDual:
    """The packing of f and lambda at fixed penalties.

    `eta`: (N,).
    """

    def __init__(self, problem: Problem, eta: Array, variant: str) -> None:
        self.shape = (problem.nodes, problem.features)
        roots = np.sqrt(reach(edge_weights(eta, problem.network.adjacency, variant)))[:, None]
        each = np.ones(self.shape)
        self.weights = np.concatenate([(roots * each).ravel(), (2.0 / roots * each).ravel()])

    def pack(self, state: Values) -> Array:
        return np.concatenate([state["f"].ravel(), state["dual"].ravel()])

    def unpack(self, packed: Array, state: Values) -> Values:
        f, dual = packed.reshape(2, 1, *self.shape)
        return {**state, "f": f, "dual": dual}

    def step(self, moved: Array, image: Values) -> Array:
        return np.asarray(self.weights * moved)
