"""Consensus with differential privacy, as `RecycledADMM.solve_private` runs it. RADMM Algorithm 3, and its relatives.

In each pass every node releases one vector; the rest of the pass is `Public`::

    Loop(Sweep([penalty, release, dual, even]))

**Exactness.** The analysis of objective perturbation is about exact minimisers, that of output perturbation about
their distance. A computer finds f + e, and e may tell of the data. The objective is strongly convex with modulus mu_i,
so that ||e|| <= left/mu_i, where `left` is a public bound of the gradient at what was found; that it holds is checked,
with what rounding may do to the gradient at worst. Given f, a record moves f + e by at most 2 left/mu_i. So f + e is
released on a grid with noise of that sensitivity more (`cvxpriv.privacy.grid`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.errors import NotConverged, PrivacyError
from cvxpriv.learning.labels import require_public_classes
from cvxpriv.learning.schema import relation_of
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.numerics.packages import pd
from cvxpriv.numerics.rounding import UNIT, sum_rounding
from cvxpriv.privacy import Noise, Plan, Release, gaussian_mu
from cvxpriv.privacy.gaussian import require_budget
from cvxpriv.privacy.sampling import BALL_ERROR
from cvxpriv.runs.learning_run import history_of_loop
from cvxpriv.schedules.history import Context, Never
from cvxpriv.schedules.steps import AnyStep, Draw, Loop, Public, Sweep, Update

from .algorithm import LOOP
from .blocks import OddStep, carry, dual_update, even_update, minimised, penalty_step
from .graph import edge_weights, pull, reach
from .options import RECYCLING, checked_gamma, penalty_table
from .private_settings import Privacy, PrivateSettings, Releases, releases_of, require_suitable, usual_eta
from .problem import Problem
from .run import PrivateConsensusRun
from .spending import accounted, node_costs

#: Rounding of a gradient, as a part of the sizes of its terms; more where a node has very many rows.
PART = 2.0**-34
UNSOLVED = (
    "a node could not solve its step exactly enough, and nothing of this pass was released; what was released in "
    "passes before it counts. Raise tol or reg, or scale the columns to norms near 1"
)


def gradient_left(
    problem: Problem, tol: float, row_bound: float, spread: Array, dual: Array, pulled: Array, bend: Array
) -> Array:
    """Return the public bound of each node's gradient, (N,).

    `tol`: Exactness with which a node minimises, as requested of `solve_private`.
    `spread`, (N,): The size that noise in the objective usually has; 0 for none.
    `dual`, `pulled`, (N, d): lambda, and `graph.pull` of what was published.
    `bend`, (N,): rho/N and twice the penalties. A minimiser is no longer than the sizes of the other terms over it, and
    the rows' gradients are rounded by the more the longer it is.
    """
    loss = problem.loss
    sizes = problem.C * loss.slope * row_bound + spread + _lengths(2.0 * dual) + _lengths(pulled)
    sizes = sizes * (1.0 + problem.C * loss.smoothness * row_bound * row_bound / bend)
    return np.asarray(tol + np.maximum(PART, 8.0 * _sums(problem)) * sizes)


def private_odd_step(
    problem: Problem, slope: Array, bend: Array, start: Array, left: Array, row_bound: float
) -> OddStep:
    """Return `blocks.minimised` to within a quarter of `left`, (N,), from `start` or, if that is too far out, from 0.

    A minimiser is no longer than the other terms over `bend`. Numbers beyond what its predictions reach have the
    largest slope there, and are brought to where they begin to: else a loss of 1e49 would hide all others.

    Raises PrivacyError: Newton's method found no minimiser.
    """
    far = 2.0 + row_bound * (problem.C * problem.loss.slope * row_bound + _lengths(slope)) / bend
    most = np.repeat(far, problem.rows.counts)
    problem = replace(problem, y=np.clip(problem.y, -most, most))
    for first in (start, np.zeros_like(start)):
        with contextlib.suppress(NotConverged):  # which tells a number
            return minimised(problem, slope, bend, first, 0.25 * left)
    raise PrivacyError(UNSOLVED)


def require_solved(
    problem: Problem,
    found: OddStep,
    left: Array,
    row_bound: float,
    linear: Array,
    dual: Array,
    pulled: Array,
    bend: Array,
) -> None:
    """Refuse a step whose gradient is not known to be within its public bound.

    `left`: (N,).
    `linear`, (N, d): The noise in the objective, each row within `BALL_ERROR` of its norm.
    `dual`, `pulled`: (N, d).
    `bend`, (N,): rho/N and twice the penalties.
    """
    lengths, loss = _lengths(found.f), problem.loss
    of_rows = problem.C * (loss.slope * row_bound + loss.smoothness * row_bound * row_bound * lengths)
    of_terms = bend * lengths + _lengths(2.0 * dual) + _lengths(pulled)
    rounding = 2.0 * _sums(problem) * of_rows + 8.0 * UNIT * of_terms + (BALL_ERROR + 8.0 * UNIT) * _lengths(linear)
    if not (found.residual + rounding <= left).all():
        raise PrivacyError(UNSOLVED)


def _sums(problem: Problem) -> Array:
    """Return the rounding of sums over each node's rows, and over the features, as a part of their terms."""
    return np.array([sum_rounding(int(count) + problem.features + 16) for count in problem.rows.counts])


def _lengths(rows: Array) -> Array:
    return np.asarray(np.linalg.norm(rows, axis=1))


#: The public entries: published vectors, and those that follow from them and the public options.
RELEASED = frozenset({"f", "odd", "dual", "eta", "pass"})

#: The work of the two steps of nodes in processes of their own.
Far: TypeAlias = tuple[Callable[[Values], Values], Callable[[Values], Values]]
Posed: TypeAlias = tuple[Problem, PrivateSettings, Array, Releases]


def planned(epsilon: float | None, delta: float | None, perturbation: str | None) -> Plan:
    """Return what a fit is going to spend on the records of each node, from its options alone."""
    if epsilon is None:
        raise PrivacyError("a budget counts epsilon, and alpha is a rate of noise: pass epsilon in its place")
    require_budget(epsilon, delta, pure=True)
    gaussian = delta is not None and Privacy(epsilon, delta, None, perturbation).where == "output"
    entry = Release(mu=gaussian_mu(epsilon, delta)) if gaussian and delta is not None else Release(epsilon=epsilon)
    return Plan((entry,), "RecycledADMM", "replace-one")


def require_replaced(given: Problem, adjacency: str | None) -> None:
    """Refuse a neighbour relation that no rule covers, and classes that were read off private rows."""
    if given.schema is None:
        require_public_classes(given.classes)
    if relation_of(given.schema, adjacency) != "replace-one":
        raise PrivacyError("adjacency='add-remove': every node's number of rows is public, and weighs them")


def posed(
    given: Problem,
    asked: Privacy,
    method: str,
    max_iter: int | None,
    eta: ArrayLike | None,
    growth: ArrayLike,
    eta_cap: ArrayLike | None,
    gamma: float,
    variant: str,
    row_bound: float,
    node_tol: float,
) -> Posed:
    """Return the problem with its reg, the settings, the table of penalties and the releases, from public numbers."""
    usual = asked.usual
    if given.automatic:
        given = replace(given, reg=usual.reg * given.C * given.nodes)
    first = usual_eta(given, usual) if eta is None else eta
    table = penalty_table(method, variant, first, growth, eta_cap, max_iter, given.nodes, usual.passes)
    settings = PrivateSettings(
        method,
        asked.where,
        variant,
        checked_gamma(gamma),
        len(table),
        float(row_bound),
        float(node_tol),
        given.C,
        given.reg,
        tuple(table[0].tolist()),
    )
    require_suitable(given, settings)
    weights = [edge_weights(one, given.network.adjacency, variant) for one in table]
    reaches = np.array([reach(one) for one in weights])
    return given, settings, table, releases_of(given, settings, reaches, asked)


def finished(
    problem: Problem,
    settings: PrivateSettings,
    releases: Releases,
    state: Values,
    context: Context,
    delta: float | None,
    secure: bool,
) -> PrivateConsensusRun:
    """Return the run of what was published."""
    done, labels = len(context.published), problem.network.labels
    printed = releases.printed[:done].sum(axis=0) if np.isfinite(releases.printed).all() else None
    return PrivateConsensusRun(
        parameters=state["odd"],
        loss_name=problem.loss.name,
        classes=problem.classes,
        labels=labels,
        settings=settings,
        accounting=accounted(context.ledger, delta, printed, secure=secure),
        ledger=tuple(context.ledger),
        privacy_loss=_privacy_loss(problem, settings, releases, context.ledger, printed),
        released=np.array([written["odd"][0] for written in context.published]).reshape(done, *state["odd"].shape),
        history=history_of_loop(context.history, LOOP),
        interrupted=context.interrupted,
    )


def private_passes(
    problem: Problem, settings: PrivateSettings, table: Array, releases: Releases, far: Far | None = None
) -> Loop:
    """Return the schedule: one release of every node a pass, and every other step `Public`.

    `far`: The release and the even step, where nodes in processes of their own take them.
    """
    recycles = settings.method in RECYCLING
    last: AnyStep = even_update(problem, settings.variant, settings.gamma) if recycles else Public(carry(), RELEASED)
    if far is not None:
        last = Public(Update("even", far[1], frozenset({"odd", "pass"}), frozenset({"f"})), RELEASED)
    penalty, dual = (Public(step, RELEASED) for step in (penalty_step(table), dual_update(problem, settings.variant)))
    drawn = _release(problem, settings, releases, far)
    return Loop(Sweep([penalty, drawn, dual, last]), Never(), settings.max_iter, figures_of(problem), name=LOOP)


def _privacy_loss(
    problem: Problem, settings: PrivateSettings, releases: Releases, ledger: Sequence[Release], printed: Array | None
) -> pd.DataFrame:
    """Return the cost of the ledger's releases for each node: see `PrivateConsensusRun.privacy_loss`."""
    costs, rows = node_costs(ledger, problem.network.labels), problem.rows.counts.astype(float)
    if releases.mu:
        return pd.DataFrame({"rows": rows, "mu": costs["mu"]})
    times = 2.0 if settings.method in RECYCLING else 1.0
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


def _release(problem: Problem, settings: PrivateSettings, releases: Releases, far: Far | None) -> Draw:
    """(18), or (14) and noise on its answer: every node publishes one vector, on a grid.

    Either is solved to within a public bound, and the noise on what is published covers that.
    """
    adjacency = problem.network.adjacency

    def turn(state: Values) -> int:
        return int(state["pass"][0]) - 1

    def fn(state: Values, noise: Noise) -> Values:
        if far is not None:
            return far[0](state)
        links = edge_weights(state["eta"][0], adjacency, settings.variant)
        pulled, dual, odd = pull(links, state["f"][0]), state["dual"][0], state["odd"][0]
        return {"odd": released(problem, settings, releases, turn(state), pulled, dual, odd, noise)[None]}

    def cost(state: Values) -> list[Release]:
        return releases.entries(turn(state), problem.network.labels)

    return Draw("release", fn, frozenset({"f", "odd", "dual", "eta", "pass"}), frozenset({"odd"}), cost)


def released(
    problem: Problem,
    settings: PrivateSettings,
    releases: Releases,
    turn: int,
    pulled: Array,
    dual: Array,
    start: Array,
    noise: Noise,
) -> Array:
    """Return what the problem's nodes release in a pass, (N, d), on a grid.

    `turn`: The pass, from 0.
    `pulled`, `dual`, (N, d): `graph.pull` of what was published, and lambda.
    `start`, (N, d): First point of Newton's method.
    """
    scale, bend, size, linear = releases.scale[turn], releases.convexity[turn], problem.features, np.zeros(dual.shape)
    if settings.perturbation == "objective":
        linear = scale[:, None] * noise.gamma_ball(size, 1.0, problem.nodes)
    left = gradient_left(problem, settings.node_tol, settings.row_bound, size * scale, dual, pulled, bend)
    found = private_odd_step(problem, 2.0 * dual + linear - pulled, bend, start, left, settings.row_bound)
    require_solved(problem, found, left, settings.row_bound, linear, dual, pulled, bend)
    several = [releases.noise(turn, node, float(left[node]), size) for node in range(problem.nodes)]
    return np.array([one.release(f, noise) for one, f in zip(several, found.f, strict=True)])


def figures_of(problem: Problem) -> Callable[[Values], Mapping[str, Array]]:
    """Return figures of published entries alone: the spread of the nodes, and the sum of the duals."""

    def figures(state: Values) -> Mapping[str, Array]:
        odd, dual = state["odd"], state["dual"]
        spread = np.linalg.norm(odd - odd.mean(axis=1, keepdims=True), axis=(1, 2))
        return {"spread": spread, "dual_sum": np.linalg.norm(dual.sum(axis=1), axis=1)}

    return figures
