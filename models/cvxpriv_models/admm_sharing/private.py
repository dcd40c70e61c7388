"""Sharing with differential privacy: `solve_private`, and its result, `PrivateSharingRun`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from cvxpriv.blocks.engines import ClosedForm
from cvxpriv.certify.cases import Case
from cvxpriv.errors import PrivacyError, warn
from cvxpriv.learning.labels import require_public_classes
from cvxpriv.numerics.arrays import Values, single
from cvxpriv.penalties import L2, loss_named
from cvxpriv.privacy import Budget, PrivacyWarning, gaussian_mu, mu_beside, noise_source
from cvxpriv.reports.files import PathLike
from cvxpriv.reports.progress import with_bar
from cvxpriv.runs.learning_run import PrivateLearningRun, history_of_loop
from cvxpriv.runs.saved import UNSAVED, decoded, fields_of, write_run
from cvxpriv.runs.shared_options import Watch
from cvxpriv.schedules.history import Context, History
from cvxpriv.schedules.running import run as run_schedule

from . import bounds, labels, mechanism, sensitivity
from .algorithm import LOOP, Constraints
from .assumptions import require_guarantee
from .factor import Factor
from .labels import LABELS, flip_probability, unbiased
from .private_settings import FOR_LABELS, PrivateSettings, kappas, planned, require_bounded
from .problem import Problem
from .run import ROWS, Fitted, centre_cases
from .schemes import Scheme, scheme_named

AT_HOME = (
    "The guarantee is about what parties send each other while they fit; each party's coefficients are exact and stay "
    "with it: to publish them, or predictions, is a release of its own."
)
LEAK = (
    "With labels='shared' every party knows every label, and the broadcast dual shows them to whoever sees it; "
    "labels='held' protects them."
)
DEGENERATE = (
    "The noise 'printed' gives no differential privacy at any delta < 1: D_m xi lies in the range of D_m, which moves "
    "with the data, so that one release tells two candidates for D_m apart with certainty; use noise='gaussian'."
)


@dataclass(frozen=True, eq=False)
class NotPrivate(Fitted):
    """The results of a private fit that no guarantee covers: coefficients, predictions, times.

    Coefficients are the mean over the passes since the first release. Each party computes its own, and keeps them.

    `seconds`: Wall time; not in a file.
    """

    seconds: float = field(default=float("nan"), metadata=UNSAVED)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PrivateSharingRun(PrivateLearningRun):
    """The result of a private fit: its releases, and behind `not_private` the rest.

    `classes`, (2,): The user's labels for -1 and 1; None for a residual loss.
    `columns`: Number of columns of each party.
    `accounting`: Accounting of the ledger: exact composition, the looser rules beside it, and Corollary 1 as printed.
    `released`: The public values at the end: `v/m` (N,), `z`, `y`, `noise/m`, `sensitivity/m`, `kept/m`, the `weights`,
    and the `labels` that the centre used: public ones, or flipped ones, which its dual shows.
    `warnings`: Quantities that the guarantee does not cover.
    `history`: One row per pass, public figures only: iteration, gap (||S - z||), and for each party noise, sensitivity
    and the part kept.
    `hidden`: See `not_private`.
    """

    model: ClassVar[str] = "ADMMSharing"
    covered: ClassVar[str] = "What the parties send each other is"
    drawn: ClassVar[tuple[str, str]] = ("gap", "||S - z||")

    loss_name: str
    classes: np.ndarray | None
    columns: tuple[int, ...]
    settings: PrivateSettings
    released: Values
    warnings: tuple[str, ...]
    hidden: NotPrivate | None = field(default=None, metadata=UNSAVED)

    def own_promises(self) -> tuple[str, ...]:
        return self.warnings

    @property
    def not_private(self) -> NotPrivate:
        """Coefficients and predictions, **which the guarantee does not cover** (see `warnings`).

        It is for a user who may see all parties' coefficients, as in a simulation.

        Raises
        ------
        PrivacyError
            The run was read from a file that was written without them.
        """
        if self.hidden is None:
            raise PrivacyError(
                "the file of this run holds what was released, and no coefficients: each party keeps its own; "
                "save(path, not_private=True) writes them"
            )
        return self.hidden

    def cases(self, rows: int | None = ROWS, seed: int = 0) -> list[Case]:
        """Return the step after the last release, which the centre takes from released values alone.

        Parameters
        ----------
        rows, seed
            See `SharingRun.cases`.

        Raises
        ------
        ModelError
            The loss is a user's own, and only its name is known.
        """
        view: Values = {**self.released, "rho": np.asarray(self.settings.rho)}
        return centre_cases(self._problem(), view, self.settings.method, rows, seed)

    def save(self, path: PathLike, *, not_private: bool = False) -> Path:
        """Write the released values of the run to a JSON file, whole or not at all.

        Parameters
        ----------
        path : path
        not_private : bool
            Write every party's coefficients too, **which the guarantee does not cover**.
        """
        return write_run(path, self.model, self.document_with_hidden() if not_private else self.document())

    def document_with_hidden(self) -> dict[str, Any]:
        """Return the content of the run's file, and all coefficients, **which the guarantee does not cover**."""
        return {**self.document(), "not_private": fields_of(self.not_private)}

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> PrivateSharingRun:
        return replace(super().of_document(document), hidden=decoded(NotPrivate | None, document.get("not_private")))

    def _problem(self) -> Problem:
        """Return the problem as the centre knows it: everything but the parties' columns."""
        labels, loss = self.released[LABELS], loss_named(self.loss_name)
        if self.settings.labels == "held":
            loss = unbiased(loss, flip_probability(FOR_LABELS * self.settings.epsilon))
        unknown = tuple(np.zeros((labels.size, 0)) for _ in self.columns)
        none = (L2(0.0),) * len(unknown)
        return Problem(unknown, labels, loss, none, 0.0, self.released["weights"])


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
    context = Context(ClosedForm(), History(), with_bar(callback, settings.max_iter, progress), noise=source)
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
