"""A private descent: rows centred and columns chosen with released numbers, then the loop of noisy gradients.

    moments -> columns -> noisy gradients

Each is a part of mu^2. What follows a release reads it as any public number. Several vectors of labels, those of one
class against the rest, share the moments; what is left of mu^2 is divided equally among them, and K Gaussian releases
of mu/sqrt(K) are one of mu.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cvxpriv.numerics.arrays import Array
from cvxpriv.privacy import GaussianNoise, Noise, Release, account_ledger
from cvxpriv.reports.progress import with_bar
from cvxpriv.runs.shared_options import Watch

from .centring import Centre, release_centre, resolves
from .clipping import ClippedGradient, neighbours
from .gradient_descent import smooth_weight
from .noisy_descent import GRADIENT_DESCENT, solve_noisy_descent
from .private_options import public_step_limit
from .private_run import PrivateSettings, PrivateSparseRun
from .problem import Problem
from .public_rules import centred_iterations, noise_level_penalty, public_iterations
from .row_count import Divisor
from .selection import Selection, select


@dataclass(frozen=True)
class Descent:
    """The public options of a private descent.

    `column_bound`: Public bound of the rows' norms without an intercept's column.
    `weights`, (n,): Weights of the rows: no public number, but within the clip.
    """

    method: str
    adjacency: str
    step: str
    output: str
    centre: str
    clip: float
    row_bound: float
    column_bound: float
    max_iter: int | None
    support: int | None
    weights: Array | None = None


def solve_descents(
    problem: Problem,
    labels: Sequence[Array],
    divisor: Divisor,
    delta: float,
    asked: Descent,
    noise: Noise,
    callback: Watch | None,
    progress: bool,
) -> tuple[PrivateSparseRun, ...]:
    """Return one run for each vector of labels, with the ledger of all.

    The coefficients are those of the rows and columns as they were.
    """
    count, mu, ledger = divisor.number, divisor.left, divisor.ledger
    centre: Centre | None = None
    if asked.centre == "private" or (asked.centre == "auto" and _by_default(problem, count, mu, asked)):
        public_step_limit(problem, asked.column_bound)
        centre = release_centre(problem, asked.column_bound, count, mu, asked.adjacency, noise)
        mu, ledger = centre.left, (*ledger, centre.release)
    runs: list[PrivateSparseRun] = []
    for one in labels:
        part = replace(problem, y=one)
        share = mu / float(np.sqrt(len(labels)))
        runs.append(_one(part, centre, count, share, delta, asked, noise, ledger, callback, progress))
        ledger = runs[-1].ledger
    whole = account_ledger(ledger, delta, neighbours=neighbours(asked.adjacency, count), secure=noise.secure)
    return tuple(replace(run, ledger=ledger, accounting=whole) for run in runs)


def _one(
    problem: Problem,
    centre: Centre | None,
    count: int,
    mu: float,
    delta: float,
    asked: Descent,
    noise: Noise,
    ledger: tuple[Release, ...],
    callback: Watch | None,
    progress: bool,
) -> PrivateSparseRun:
    """Return the run of one vector of labels."""
    selection: Selection | None = None
    part = problem
    if asked.support is not None:
        selection = select(_average(problem, centre, count, asked), asked.support, mu, asked.adjacency, noise)
        mu, ledger = selection.left, (*ledger, selection.release)
        part = selection.columns(problem)
        centre = None if centre is None else centre.of_columns(selection.chosen)
    run = _run(_average(part, centre, count, asked), centre, mu, delta, asked, noise, ledger, callback, progress)
    theta, center = run.theta if centre is None else centre.original(run.theta), run.center
    if selection is not None:
        theta = selection.spread_out(theta, problem.size)
        center = None if center is None else selection.spread_out(center, problem.size)
    return replace(run, theta=theta, center=center, names=problem.names)


def _by_default(problem: Problem, count: int, mu: float, asked: Descent) -> bool:
    return asked.method != GRADIENT_DESCENT and resolves(problem, count, mu, asked.adjacency)


def _average(problem: Problem, centre: Centre | None, count: int, asked: Descent) -> ClippedGradient:
    if centre is None:
        return ClippedGradient(problem, asked.clip, count, asked.weights)
    return ClippedGradient(centre.centred(problem), centre.clip(problem.loss), count, asked.weights)


def _run(
    average: ClippedGradient,
    centre: Centre | None,
    mu: float,
    delta: float,
    asked: Descent,
    noise: Noise,
    ledger: tuple[Release, ...],
    callback: Watch | None,
    progress: bool,
) -> PrivateSparseRun:
    problem, sensitivity = average.problem, average.sensitivity(asked.adjacency)
    usual = public_iterations(average.clip, sensitivity, mu, problem.size)
    chosen = asked.max_iter or (usual if centre is None else centred_iterations(usual))
    limit = public_step_limit(problem, asked.row_bound) if centre is None else centre.step_limit(problem.loss)
    if asked.method == GRADIENT_DESCENT:
        limit = 1.0 / (1.0 / limit + smooth_weight(problem.penalty))
    elif problem.automatic:
        penalty = noise_level_penalty(sensitivity, mu, chosen * limit, problem.features)
        average = replace(average, problem=problem.with_penalty(penalty))
    gaussian = GaussianNoise(sensitivity, mu / float(np.sqrt(chosen)), problem.size)
    settings = PrivateSettings(
        method=asked.method,
        max_iter=chosen,
        clip=average.clip,
        step=asked.step,
        adjacency=asked.adjacency,
        output=asked.output if asked.output != "auto" else "last" if centre is None else "average",
        noise_scale=gaussian.scale,
        step_limit=limit,
        centre="none" if centre is None else "private",
        support=asked.support,
    )
    watch = with_bar(callback, chosen, "passes", progress)
    return solve_noisy_descent(average, delta, settings, gaussian, noise, ledger, watch)
