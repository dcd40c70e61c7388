"""Consensus with differential privacy: `solve_private`. RADMM Algorithm 3, and its relatives.

In each round every node releases one vector; the rest of the round is `Public`::

    Loop(Sweep([penalty, release, dual, even]))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from cvxpriv.blocks.engines import ClosedForm
from cvxpriv.numerics.arguments import require_counts
from cvxpriv.numerics.arrays import Array, Values, single
from cvxpriv.privacy import Noise, Release, noise_source
from cvxpriv.reports.progress import track
from cvxpriv.runs.private_records import history_of_loop
from cvxpriv.schedules.history import History
from cvxpriv.schedules.running import run as run_schedule
from cvxpriv.schedules.steps import Context, Draw, Loop, Public, Sweep
from cvxpriv.schedules.stopping import Never

from .algorithm import LOOP, RECYCLING, initial_state
from .blocks import carry, dual_update, even_update, penalty_step
from .eta import checked_gamma
from .exactness import gradient_left, require_solved
from .newton import odd_step
from .private_run import PrivateConsensusRun
from .private_settings import Budget, PrivateSettings, Releases, releases_of, require_private
from .problem import Problem
from .spending import accounted, node_costs
from .updates import edge_weights, pull

if TYPE_CHECKING:
    from .model import RecycledADMM

__all__ = ["RELEASED", "private_rounds", "solve_private"]

#: What everyone may know: published vectors, and what follows from them and the public options.
RELEASED = frozenset({"f", "odd", "dual", "eta", "round"})

Callback = Callable[[str, int, Mapping[str, Array]], "bool | None"]


def solve_private(
    model: RecycledADMM,
    algorithm: str = "mr-admm",
    *,
    alpha: ArrayLike | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    perturbation: str = "objective",
    eta: ArrayLike = 1.0,
    growth: ArrayLike = 1.0,
    eta_cap: ArrayLike | None = None,
    gamma: float = 0.5,
    rounds: int = 50,
    variant: str = "edge",
    row_bound: float = 1.0,
    clip_rows: bool = False,
    tol: float = 1e-9,
    init: ArrayLike | None = None,
    noise_seed: int | None = None,
    progress: bool = False,
    callback: Callback | None = None,
) -> PrivateConsensusRun:
    """Find a consensus with differential privacy for every record of every node.

    Parameters
    ----------
    model : RecycledADMM
    algorithm : {"mr-admm", "r-admm", "admm", "dvp", "m-admm"}
        A round of the first two has a second iteration that is free: it follows from what was published. "admm" is
        the conventional one, with noise in the objective; "dvp" has it on the dual variable, which counts twice;
        "m-admm" has it inside the penalty, where it grows with eta.
    alpha : float or array, (N,), optional
        The noise has density proportional to exp(-alpha_i ||b||): a smaller alpha is more private.
    epsilon, delta : float, optional
        In place of alpha: the total over all rounds, which every node spends. For perturbation="objective", and without
        a delta, it is pure: a sum over the rounds; a delta then only states other rules beside it.
    perturbation : {"objective", "output"}
        "output" releases the minimiser plus noise, which is Gaussian where a delta is given (section VII-B).
    eta, growth, eta_cap, gamma, rounds, variant, init
        As in `RecycledADMM.solve`; public, as are C, reg, the graph and every node's number of records.
    row_bound : float
        Public bound of the rows' norms.
    clip_rows : bool
        Shorten rows beyond it, in place of refusing them.
    tol : float
        How exactly a node minimises, in the norm of the gradient; at most 1e-8.
    noise_seed : int, optional
        None, the only right choice for real data: secure randomness.
    progress : bool
    callback : callable, optional
        `callback(loop, round, figures)`, public figures; returning True ends the run.

    Raises
    ------
    PrivacyError
        There is no budget or two, it is out of range, or the curvature alone exceeds it; the loss has no bounded slope
        and curvature; a row is beyond its bound; a node could not minimise to within `tol`.
    ModelError
        Another option is out of range.

    Notes
    -----
    A node's records are protected against everyone who sees what is published, the other nodes included. One record is
    replaced; a person with records at several nodes costs the sum over them.

    Examples
    --------
    >>> import networkx as nx, numpy as np
    >>> from cvxpriv.models import RecycledADMM
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.uniform(-0.5, 0.5, size=(600, 3))
    >>> labels = np.where(rows @ [2.0, -1.0, 0.5] > 0.0, 1, -1)
    >>> shards = [(rows[i::3], labels[i::3]) for i in range(3)]
    >>> model = RecycledADMM(nx.complete_graph(3), shards, reg=0.3, C=100)
    >>> run = model.solve_private(algorithm="r-admm", epsilon=2.0, rounds=10)
    >>> round(run.accounting.epsilon, 9), run.accounting.releases
    (2.0, 10)
    """
    require_counts(rounds=rounds)
    settings = PrivateSettings(
        algorithm, perturbation, variant, checked_gamma(gamma), rounds, float(row_bound), float(tol)
    )
    problem = require_private(model.problem, settings, clip_rows)
    table = model.eta_table("admm" if algorithm == "dvp" else algorithm, eta, growth, eta_cap, rounds, variant)
    releases = releases_of(problem, settings, table, Budget(alpha, epsilon, delta))
    noise = noise_source(noise_seed)
    bar = iter(track(range(rounds), total=rounds, description="rounds", shown=progress))

    def each(name: str, iteration: int, figures: Mapping[str, Array]) -> bool | None:
        next(bar, None)
        return None if callback is None else callback(name, iteration, figures)

    context = Context(ClosedForm(), History(), each, starts=np.arange(1), noise=noise)
    loop = private_rounds(problem, settings, table, releases)
    state = single(run_schedule(loop, initial_state(problem, init), context), 0)
    done, labels = len(context.published), problem.network.labels
    printed = releases.printed[:done].sum(axis=0) if np.isfinite(releases.printed).all() else None
    return PrivateConsensusRun(
        parameters=state["odd"],
        loss_name=problem.loss.name,
        classes=problem.classes,
        labels=labels,
        settings=settings,
        accounting=accounted(context.ledger, delta, printed, secure=noise.secure),
        ledger=tuple(context.ledger),
        privacy_loss=_privacy_loss(problem, settings, releases, context.ledger, printed),
        released=np.array([written["odd"][0] for written in context.published]).reshape(done, *state["odd"].shape),
        history=history_of_loop(context.history, LOOP),
        interrupted=context.interrupted,
    )


def private_rounds(problem: Problem, settings: PrivateSettings, table: Array, releases: Releases) -> Loop:
    """Return the schedule: one release of every node a round, and every other step `Public`."""
    recycles = settings.algorithm in RECYCLING
    last = even_update(problem, settings.variant, settings.gamma) if recycles else Public(carry(), RELEASED)
    penalty, dual = (Public(step, RELEASED) for step in (penalty_step(table), dual_update(problem, settings.variant)))
    return Loop(
        Sweep([penalty, _release(problem, settings, releases), dual, last]),
        stop=Never(),
        limit=settings.rounds,
        measure=_figures(problem),
        name=LOOP,
    )


def _privacy_loss(
    problem: Problem, settings: PrivateSettings, releases: Releases, ledger: Sequence[Release], printed: Array | None
) -> pd.DataFrame:
    """What the ledger's releases cost each node: see `PrivateConsensusRun.privacy_loss`."""
    costs, rows = node_costs(ledger, problem.network.labels), problem.rows.counts.astype(float)
    if releases.mu:
        return pd.DataFrame({"rows": rows, "mu": costs["mu"]})
    times = 2.0 if settings.algorithm in RECYCLING else 1.0
    unknown = np.full(rows.size, np.nan)
    return pd.DataFrame(
        {
            "rows": rows,
            "alpha": releases.alpha,
            "tight": costs["epsilon"],
            "printed": unknown if printed is None else printed,
            "conventional": times * costs["epsilon"],
        }
    )


def _release(problem: Problem, settings: PrivateSettings, releases: Releases) -> Draw:
    """(18), or (14) and noise on its answer: every node publishes one vector, on a grid.

    Either is solved to within a public bound, and the noise on what is published covers that: see `exactness`.
    """
    adjacency, shape = problem.network.adjacency, (problem.nodes, problem.features)

    def turn(state: Values) -> int:
        return int(state["round"][0]) - 1

    def fn(state: Values, noise: Noise) -> Values:
        scale, previous, dual = releases.scale[turn(state)], state["f"][0], state["dual"][0]
        linear = np.zeros(shape)
        if settings.perturbation == "objective":
            linear = scale[:, None] * noise.gamma_ball(shape[1], 1.0, shape[0])
        links = edge_weights(state["eta"][0], adjacency, settings.variant)
        pulled = pull(links, previous)
        left = gradient_left(problem, settings.tol, settings.row_bound, shape[1] * scale, dual, pulled)
        found = odd_step(problem, previous, dual, linear, links, start=state["odd"][0])
        bend = releases.convexity[turn(state)]
        require_solved(problem, found, left, settings.row_bound, linear, dual, pulled, bend)
        several = [releases.noise(turn(state), node, float(left[node]), shape[1]) for node in range(shape[0])]
        return {"odd": np.array([one.release(f, noise) for one, f in zip(several, found.f, strict=True)])[None]}

    def cost(state: Values) -> list[Release]:
        return releases.entries(turn(state), problem.network.labels)

    return Draw("release", fn, frozenset({"f", "odd", "dual", "eta", "round"}), frozenset({"odd"}), cost)


def _figures(problem: Problem) -> Callable[[Values], Mapping[str, Array]]:
    """Of published entries alone: how far the nodes are from one another, and the sum of the duals."""

    def figures(state: Values) -> Mapping[str, Array]:
        odd, dual = state["odd"], state["dual"]
        spread = np.linalg.norm(odd - odd.mean(axis=1, keepdims=True), axis=(1, 2))
        return {"spread": spread, "dual_sum": np.linalg.norm(dual.sum(axis=1), axis=1)}

    return figures
