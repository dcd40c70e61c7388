"""Sharing with differential privacy: `solve_private`."""

import time
from dataclasses import replace

import numpy as np

from cvxpriv.blocks.engines import ClosedForm
from cvxpriv.errors import warn
from cvxpriv.learning.labels import require_public_classes
from cvxpriv.numerics.arrays import Values, single
from cvxpriv.privacy import Budget, PrivacyWarning, gaussian_mu, mu_beside, noise_source
from cvxpriv.reports.files import PathLike
from cvxpriv.reports.progress import with_bar
from cvxpriv.runs.learning_run import history_of_loop
from cvxpriv.runs.shared_options import Watch
from cvxpriv.schedules.history import Context, History
from cvxpriv.schedules.running import run as run_schedule

from . import bounds, labels, mechanism, sensitivity
from .algorithm import LOOP, Constraints
from .assumptions import require_guarantee
from .factor import Factor
from .private_run import AT_HOME, DEGENERATE, LEAK, NotPrivate, PrivateSharingRun
from .private_settings import FOR_LABELS, PrivateSettings, kappas, planned, require_bounded
from .problem import Problem
from .schemes import Scheme, scheme_named


def solve_private(
    given: Problem,
    factors: tuple[Factor, ...],
    constraints: Constraints,
    settings: PrivateSettings,
    *,
    noise_seed: int | None,
    progress: bool,
    callback: Watch | None,
    budget: Budget | PathLike | None,
) -> PrivateSharingRun:
    """Return a private fit; see `ADMMSharing.solve_private`."""
    begun = time.perf_counter()
    require_bounded(given, settings, constrained=bool(constraints))
    require_guarantee(given, scheme_named(settings.method), settings.rho)
    if settings.labels == "held" and given.schema is None:
        require_public_classes(given.classes)
    planned(settings.epsilon, settings.delta, settings.labels, settings.noise, settings.adjacency).spend(budget)
    parts = bounds.within(given, settings.adjacency, settings.bounds, settings.clip_data)
    problem = replace(given, parts=parts)
    kept = tuple(old if part is old.part else Factor(part) for part, old in zip(parts, factors, strict=True))
    source = noise_source(noise_seed)
    if settings.noise == "printed":
        warn(DEGENERATE, PrivacyWarning)
    context = Context(ClosedForm(), History(), with_bar(callback, settings.max_iter, "passes", progress), noise=source)
    state = _passes(problem, kept, constraints, settings, context)
    coefficients = [state[f"mean/{m}"] for m in range(given.parties)]
    hidden = NotPrivate(coefficients, given.loss.name, given.classes, time.perf_counter() - begun)
    return finished(given, state, context, settings, tuple(x.size for x in coefficients), hidden)


def _passes(
    problem: Problem, factors: tuple[Factor, ...], constraints: Constraints, settings: PrivateSettings, context: Context
) -> Values:
    scheme = scheme_named(settings.method)
    problem = with_flipped(problem, settings, context)
    release = release_of(problem, scheme, settings, constrained=bool(constraints))
    loop = mechanism.private_passes(problem, scheme, factors, constraints, release, settings.max_iter)
    state = run_schedule(loop, mechanism.initial_state(problem, settings.rho), context)
    if not context.interrupted:
        state = run_schedule(mechanism.last_step(problem, scheme, factors, constraints), state, context)
    return {**single(state, 0), labels.LABELS: problem.y, "weights": problem.weights}


def with_flipped(problem: Problem, settings: PrivateSettings, context: Context) -> Problem:
    """Return the problem with labels flipped at random, and its loss corrected for that, where labels are held."""
    if settings.labels != "held":
        return problem
    epsilon = FOR_LABELS * settings.epsilon
    flipped = run_schedule(labels.flipping(epsilon), {labels.LABELS: problem.y[None]}, context)[labels.LABELS][0]
    return replace(problem, y=flipped, loss=labels.unbiased(problem.loss, labels.flip_probability(epsilon)))


def release_of(
    problem: Problem, scheme: Scheme, settings: PrivateSettings, constrained: bool
) -> mechanism.ShareRelease:
    """Return the rule of release: every release has the same part of the budget that the labels leave."""
    if settings.labels == "held":
        together = mu_beside(settings.epsilon, settings.delta, [FOR_LABELS * settings.epsilon])
    else:
        together = gaussian_mu(settings.epsilon, settings.delta)
    count = settings.max_iter * sensitivity.parties_touched(settings.adjacency, problem.parties)
    return mechanism.ShareRelease(
        mu=together / float(np.sqrt(count)),
        adjacency=settings.adjacency,
        bounds=settings.bounds,
        kappas=kappas(problem, scheme, settings.rho, constrained),
        clip=settings.clip,
        clip_entries=settings.clip_entries,
        printed=settings.noise == "printed",
        shrink=settings.shrink,
    )


def finished(
    problem: Problem,
    state: Values,
    context: Context,
    settings: PrivateSettings,
    columns: tuple[int, ...],
    hidden: NotPrivate | None,
) -> PrivateSharingRun:
    """Return the run of released values.

    `state`: The last state, without a leading axis.
    `columns`: Number of columns of each party.
    `hidden`: The parties' coefficients, where they are in this process.
    """
    parties, ledger = problem.parties, tuple(context.ledger)
    held = settings.labels == "held"
    said = [*([DEGENERATE] if settings.noise == "printed" else []), *([] if held else [LEAK])]
    names = {"z", "y", "weights", labels.LABELS}
    names |= {f"{name}/{m}" for name in ("v", "noise", "sensitivity", "kept") for m in range(parties)}
    return PrivateSharingRun(
        loss_name=problem.loss.name,
        classes=problem.classes,
        columns=columns,
        settings=settings,
        accounting=sensitivity.spent(
            ledger,
            settings.delta,
            settings.adjacency,
            neighbours=bounds.neighbours(settings.adjacency, settings.bounds, held),
            secure=context.noise.secure,
        ),
        ledger=ledger,
        released={name: value for name, value in state.items() if name in names},
        warnings=(*said, AT_HOME),
        history=history_of_loop(context.history, LOOP),
        hidden=hidden,
        interrupted=context.interrupted,
    )
