"""ADMM sharing across parties that are apart: the label holder's side, `SharingApart`.

The schedule and its steps are those of `algorithm` and `mechanism`; the step of the parties is one message to each and
one answer, wherever a carrier brings it. A pass takes one round trip: with the target of the next pass goes the dual of
this one, by which the parties judge where they are, so that when the fit has converged they are one pass further, and
are told to go back.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.blocks.engines import ClosedForm
from cvxpriv.distributed.alignment import aligned
from cvxpriv.distributed.carriers import Carrier
from cvxpriv.distributed.messages import Vocabulary
from cvxpriv.distributed.orchestrator import numbers
from cvxpriv.errors import ModelError
from cvxpriv.learning.labels import require_public_classes, signed_labels
from cvxpriv.learning.learning_model import finite_run
from cvxpriv.numerics.arrays import Array, Values, single
from cvxpriv.numerics.doors import door
from cvxpriv.penalties import convex_penalty, loss_named
from cvxpriv.privacy import Noise, noise_source
from cvxpriv.reports.files import PathLike
from cvxpriv.reports.progress import with_bar
from cvxpriv.runs import shared_options as shared
from cvxpriv.runs.options import Option, declared
from cvxpriv.schedules.history import Context, History, Never
from cvxpriv.schedules.running import run as run_schedule
from cvxpriv.schedules.steps import AnyStep, Draw, Loop, Sweep

from . import algorithm, blocks, kkt, mechanism, options
from .accelerated import Following, default_rho, may_follow
from .algorithm import LOOP
from .apart_messages import SPOKEN
from .apart_party import Allowance, SharingParty
from .apart_pass import Asked, Together
from .assumptions import require_guarantee
from .bounds import ADJACENCIES
from .labels import LABELS
from .private import PrivateSharingRun, finished, release_of, with_flipped
from .private_settings import PASSES, PrivateSettings, planned, settings_of
from .problem import TALL, Problem, checked_lam
from .run import Settings, SharingApartRun, has_converged
from .schemes import SCHEMES, USUAL, Scheme, scheme_named

ALIGNED = (
    "Rows were aligned by keyed hashes of identifiers: the label holder knows which of its people each party has, and "
    "no guarantee covers that."
)
#: Largest number of passes, unless told otherwise.
MAX_ITER = 2000


@door
class SharingApart(Asked):
    """A fit whose columns are with parties in processes of their own, and whose labels are here.

    Parameters
    ----------
    carrier : Carrier
        The way to the parties.
    y : array, (N,)
        Labels; a margin loss takes two classes.
    digests : ndarray of uint64, optional
        Keyed hashes of the identifiers of these rows; the fit is of the rows that every party has. None: all parties
        have the same rows in this order.
    loss : str
    penalty : str
    lam : float
    intercept : bool
        See `intercept`.

    Raises
    ------
    DataError
        The parties' rows do not match.
    ModelError
        An unknown loss or penalty, or an intercept beside a penalty that is no square.
    PartyError
        A party does not come.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxpriv.distributed.carriers import InProcess
    >>> from cvxpriv_models.admm_sharing.apart_messages import SPOKEN
    >>> from cvxpriv_models.admm_sharing.apart_party import Allowance, SharingParty
    >>> columns = np.random.default_rng(0).normal(size=(60, 4))
    >>> labels = np.where(columns @ [1.0, -1.0, 0.5, 0.0] > 0, "yes", "no")
    >>> parts = {"a": columns[:, :2], "b": columns[:, 2:]}
    >>> parties = {name: SharingParty(part, Allowance(exact=True)) for name, part in parts.items()}
    >>> run = SharingApart(InProcess(parties, SPOKEN), labels).solve()
    >>> run.converged, [party.coefficients.shape for party in parties.values()]
    (True, [(2,), (2,)])
    """

    #: The parties' side of it, the limits that a party sets, and the messages.
    party: ClassVar[type[SharingParty]] = SharingParty
    allowance: ClassVar[type[Allowance]] = Allowance
    spoken: ClassVar[Vocabulary] = SPOKEN
    #: Whether the parties have labels: they hold rows, not columns.
    labelled: ClassVar[bool] = False

    def __init__(
        self,
        carrier: Carrier,
        y: ArrayLike,
        *,
        digests: np.ndarray[Any, Any] | None = None,
        loss: str = "logistic",
        penalty: str = "l2",
        lam: float = 1.0,
        intercept: bool = False,
        classes: np.ndarray[Any, Any] | None = None,
    ) -> None:
        super().__init__(carrier, loss, penalty)
        self.penalty, self.intercept, self.hashed = penalty, intercept, digests is not None
        hellos = carrier.join()
        self.columns = tuple(int(hellos[name].number("columns")) for name in carrier.names)
        given = np.asarray(y)
        labels = given[aligned(carrier, hellos, int(given.size), digests)]
        chosen = loss_named(loss)
        signs, found = signed_labels(labels, labels.size, chosen, one_class=True)
        one = convex_penalty(penalty)
        if intercept and one.ridge is None:
            raise ModelError(f"penalty={penalty!r} is no square: an intercept across parties goes with 'l2' alone")
        count, rows = len(carrier.names), int(labels.size)
        unknown = tuple(np.zeros((rows, 0)) for _ in range(count))
        known = found if classes is None else classes
        self.problem = Problem(unknown, signs, chosen, (one,) * count, checked_lam(lam), np.ones(rows), known)

    @declared
    def solve(
        self,
        *,
        method: Annotated[shared.Method, Option(choices=tuple(SCHEMES), usual=USUAL)] = None,
        tol: Annotated[shared.Tol, Option("Relative KKT residual at which the fit has converged.")] = 1e-7,
        max_iter: Annotated[shared.MaxIter, Option("Most passes.", usual=str(MAX_ITER))] = None,
        rho: options.Rho = None,
        gap: options.Gap = None,
        progress: shared.Progress = False,
        callback: shared.Callback = None,
        save: PathLike | None = None,
    ) -> SharingApartRun:
        """Fit without privacy: `ADMMSharing.solve` with accelerate='none', to the last bit.

        Parameters
        ----------
        save : path, optional
            The file of the last state, written if a party ends the run.

        Raises
        ------
        PartyError
            A party is lost, late, or refuses.
        """
        begun = time.perf_counter()
        scheme, problem = _at_once(method, direct=True), self.problem
        weight = default_rho(problem.loss, scheme, problem.parties) if rho is None else float(rho)
        require_guarantee(problem, scheme, weight)
        follow = rho is None and may_follow(problem, scheme)
        asked = kkt.gap_asked(problem, gap, tol)
        limit = max_iter or MAX_ITER
        settings = Settings(scheme.name, "closed_form", weight, False, limit, tol, follow, gap=asked)
        context = Context(ClosedForm(), History(), with_bar(callback, settings.max_iter, progress))
        with self.saved_if_lost(save):
            self.start("begin", scheme, weight, TALL)
            together = Together(self, scheme, asked)
            steps: list[AnyStep] = [together.update(), blocks.centre(problem, scheme), blocks.dual(problem, scheme)]
            following = Following(problem, scheme, None) if follow else None
            limits = algorithm.stopping(tol, asked), settings.max_iter, together.measure
            loop = Loop(Sweep(steps), *limits, accelerate=following, name=LOOP)
            state = single(run_schedule(loop, algorithm.initial_state(problem, weight), context), 0)
            return finite_run(self._finished(state, together, context, settings, begun))

    @declared
    def solve_private(
        self,
        *,
        epsilon: shared.Epsilon | None = None,
        delta: shared.Delta | None = None,
        adjacency: Annotated[shared.Adjacency, Option(choices=tuple(ADJACENCIES))] = None,
        method: Annotated[shared.Method, Option(choices=tuple(SCHEMES), usual=USUAL)] = None,
        max_iter: Annotated[shared.MaxIter, Option("Number of passes.", usual=str(PASSES))] = None,
        rho: options.PrivateRho = None,
        clip: options.Clip = None,
        clip_entries: options.ClipEntries = None,
        labels: options.Labels = "shared",
        shrink: options.Shrink = True,
        budget: shared.BudgetOption = None,
        noise_seed: shared.NoiseSeed = None,
        progress: shared.Progress = False,
        callback: shared.Callback = None,
        save: PathLike | None = None,
    ) -> PrivateSharingRun:
        """Fit with differential privacy: each party draws its own noise, and keeps its own ledger.

        Parameters are those of `ADMMSharing.solve_private`; the public bounds of the data are the parties' own options.

        Raises
        ------
        PrivacyError
            The budget is not valid, or labels='held' comes without public classes.
        PartyError
            A party is lost, late, or does not allow what is asked.
        """
        given = {name: value for name, value in locals().items() if name != "self"}
        for name in ("budget", "noise_seed", "progress", "callback", "save"):
            del given[name]
        scheme, settings = _at_once(method), settings_of(self.problem, **given)
        if labels == "held":
            require_public_classes(self.problem.classes)
        require_guarantee(self.problem, scheme, settings.rho)
        planned(settings.epsilon, settings.delta, labels, "gaussian", settings.adjacency).spend(budget)
        watch, source = with_bar(callback, settings.max_iter, progress), noise_source(noise_seed)
        context = Context(ClosedForm(), History(), watch, noise=source)
        with self.saved_if_lost(save):
            return self._released(scheme, settings, context)

    def _finished(
        self, state: Values, together: Together, context: Context, settings: Settings, begun: float
    ) -> SharingApartRun:
        problem, passes = self.problem, int(context.reports[LOOP].iterations[0])
        found = together.residuals(state)
        y = kkt.dual_within(problem, state)
        off = numbers(self.ask("finish", turn=passes, y=y), "off")
        objective, gap = together.objective(state), kkt.gap_of_parts(problem, state, y, off)
        return SharingApartRun(
            names=self.carrier.names,
            columns=self.columns,
            settings=settings,
            converged=has_converged(found, gap, objective, settings),
            iterations=passes,
            objective=objective,
            kkt=found,
            gap=gap,
            seconds=time.perf_counter() - begun,
            interrupted=context.interrupted,
            state=state,
            problem=problem,
            log=context.history,
            messages=self.carrier.log,
        )

    def _released(self, scheme: Scheme, settings: PrivateSettings, context: Context) -> PrivateSharingRun:
        given = self.problem
        problem = with_flipped(given, settings, context)
        release = release_of(problem, scheme, settings, constrained=False)
        asked: dict[str, float] = {"mu": release.mu, "releases": settings.max_iter}
        for name, clip in (("clip", settings.clip), ("clip_entries", settings.clip_entries)):
            asked[name] = clip if np.isfinite(clip) else 0.0
        texts = {"adjacency": settings.adjacency}
        answers = self.start("begin-private", scheme, settings.rho, 1.0, texts, **asked)
        settings = replace(settings, bounds=tuple(bound or float("inf") for bound in numbers(answers, "bound")))
        centre, dual = mechanism.public_centre(problem, scheme)
        shrinking = [mechanism.shrinking(problem, m) for m in range(problem.parties)] if release.shrink else []
        steps: list[AnyStep] = [centre, dual, self._drawn(scheme, release), *shrinking, mechanism.count()]
        figures = mechanism.public_figures(problem)
        loop = Loop(Sweep(steps), Never(), settings.max_iter, figures, name=LOOP)
        state = run_schedule(loop, mechanism.initial_state(problem, settings.rho), context)
        if not context.interrupted:
            state = run_schedule(Sweep([centre, dual]), state, context)
            self.aim("last", scheme, state, settings.max_iter + 1)
        last = {**single(state, 0), LABELS: problem.y, "weights": problem.weights}
        run = finished(given, last, context, settings, self.columns, None)
        return replace(run, warnings=(*run.warnings, ALIGNED)) if self.hashed else run

    def _drawn(self, scheme: Scheme, release: mechanism.ShareRelease) -> Draw:
        """Return the step in which every party releases its share."""
        parties = range(self.problem.parties)

        def released(view: Values, noise: Noise) -> Values:
            self.done, self.latest = int(view["passes"][0]), dict(view)
            written: dict[str, Array] = {}
            for m, answer in enumerate(self.aim("release", scheme, view, self.done + 1).values()):
                told = answer.vectors
                written |= {f"v/{m}": told["values"][None], f"kept/{m}": np.ones(1)}
                written |= {f"{figure}/{m}": told[figure] for figure in ("noise", "sensitivity")}
            return written

        reads = mechanism.public_entries(self.problem) | {"passes"}
        writes = frozenset(f"{name}/{m}" for name in ("v", "noise", "sensitivity", "kept") for m in parties)
        return Draw("v", released, reads, writes, [release.entry(m) for m in parties])


def _at_once(method: str | None, *, direct: bool = False) -> Scheme:
    scheme = scheme_named(method or USUAL, direct=direct)
    if scheme.in_turn:
        raise ModelError(f"method={scheme.name!r} has parties step in turn: across processes take 'averaged'")
    return scheme
