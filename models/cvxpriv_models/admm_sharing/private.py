"""Sharing with differential privacy: `solve_private`, and what it returns."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cvxpriv.engines import ClosedForm
from cvxpriv.errors import PrivacyError, suggest
from cvxpriv.history import History
from cvxpriv.options import require_counts, require_positive
from cvxpriv.privacy import Accounting, PrivacyWarning, gaussian_mu, noise_source
from cvxpriv.privacy.gaussian import require_budget
from cvxpriv.progress import track
from cvxpriv.running import run as run_schedule
from cvxpriv.schedule import Context
from cvxpriv.schedule import Release as LedgerEntry
from cvxpriv.state import Array, Values, single

from . import bounds, labels, mechanism, spending
from .factor import Factor
from .problem import Problem
from .run import Fitted
from .schemes import Scheme, scheme_named

if TYPE_CHECKING:
    from .model import ADMMSharing

__all__ = ["PrivateSettings", "PrivateSharingRun", "solve_private"]

Callback = Callable[[str, int, Mapping[str, Array]], "bool | None"]
Bound = float | Sequence[float] | None

#: Default penalty of S = z in units of the loss's curvature: small, so that noise in S moves y little.
PENALTY = 0.2
#: That curvature for a loss with a kink.
CURVATURE = 0.25
#: Which part of epsilon goes to the labels when they are held back.
FOR_LABELS = 0.5
#: Bound of what one party adds to one prediction of a margin loss, unless told otherwise.
CLIP_ENTRIES = 2.0

AT_HOME = (
    "the guarantee is about what parties send each other while they fit; each party's coefficients are exact and stay "
    "with it: to publish them, or predictions, is a release of its own"
)
LEAK = (
    "labels='shared': every party knows every label, and the broadcast dual shows them to whoever sees it; "
    "labels='held' protects them"
)
DEGENERATE = (
    "noise='printed' gives no differential privacy at any delta < 1: D_m xi lies in the range of D_m, which moves with "
    "the data, so that one release tells two candidates for D_m apart with certainty; use noise='gaussian'"
)


@dataclass(frozen=True)
class PrivateSettings:
    """The options of `solve_private` that decide its result, with their defaults filled in."""

    epsilon: float
    delta: float
    epochs: int
    scheme: str
    adjacency: str
    bounds: tuple[float, ...]
    clip: float
    clip_entries: float
    clip_data: bool
    labels: str
    noise: str
    rho: float
    shrink: bool


@dataclass(frozen=True, eq=False)
class PrivateSharingRun(Fitted):
    """What a private fit came to.

    `coefficients`, `predict_proba`, `predict` and `decision_function` are those of any fit. Coefficients are the mean
    over the passes since the first release; each party computes its own, and they are not covered by the guarantee
    (see `warnings`).

    Attributes
    ----------
    settings : PrivateSettings
    accounting : Accounting
        Exact Gaussian composition, the looser rules beside it, and Corollary 1 as printed.
    ledger : tuple of Release
        Every release: step, pass, mu.
    released : mapping of str to ndarray
        What everyone knows at the end: `v/m` (N,), `z`, `y`, `noise/m`, `sensitivity/m`, `kept/m`.
    warnings : tuple of str
        What the guarantee does not cover.
    seconds : float
    log : History
    interrupted : bool
        Whether the keyboard or a callback ended the run; the accounting is then of what was released.
    """

    settings: PrivateSettings
    accounting: Accounting
    ledger: tuple[LedgerEntry, ...]
    released: Values
    warnings: tuple[str, ...]
    seconds: float
    log: History = field(default_factory=History, repr=False)
    interrupted: bool = False

    @property
    def history(self) -> pd.DataFrame:
        """Pass by pass, public figures only: ||S - z||, and of each party noise, sensitivity and the part kept."""
        return self.log.frame(0)


def solve_private(
    model: ADMMSharing,
    epsilon: float,
    delta: float,
    epochs: int = 4,
    scheme: str = "averaged",
    *,
    adjacency: str = "row",
    row_bound: Bound = None,
    column_bound: Bound = None,
    cell_bound: Bound = None,
    clip: float | None = None,
    clip_entries: float | None = None,
    clip_data: bool = False,
    labels: str = "shared",
    noise: str = "gaussian",
    rho: float | None = None,
    shrink: bool = True,
    noise_seed: int | None = None,
    progress: bool = False,
    callback: Callback | None = None,
) -> PrivateSharingRun:
    """Fit with differential privacy: Gaussian noise on every share, scaled to the budget before anything runs.

    A released share has N values, and their noise is of the size of what one person may move: single values are
    drowned, and sums over thousands of rows are not. Few passes, a large `lam` (tens, where the loss is summed over
    tens of thousands of rows) and a small `rho` serve best.

    Parameters
    ----------
    model : ADMMSharing
    epsilon, delta : float
        The budget, for all passes together.
    epochs : int
        Releases of each party.
    scheme : {"averaged", "gauss_seidel", "printed", "proximal_jacobi"}
        The last one reads private coefficients, and needs `clip`.
    adjacency : {"row", "party-row", "column", "cell"}
        What one neighbour changes. "row" is a person's whole row, over all M parties: it is touched by M times as many
        releases as one party makes, and costs sqrt(M) times the mu of "party-row".
    row_bound, column_bound, cell_bound : float or one a party
        The public bound that goes with it: the norm of a party's part of any row, of any column, or the absolute value
        of any entry. Replacing moves by up to twice the bound. Data beyond it are refused.
    clip : float, optional
        Clip each share to this norm: sensitivity 2 clip, whatever the regulariser. Needed for one that is no square,
        with `constrain`, and with lam = 0.
    clip_entries : float, optional
        Clip each value of a share to +- this: what one party may add to one person's prediction. 2 for a margin loss
        (log odds), else none.
    clip_data : bool
        Scale rows (or columns, or cells) down to their bound, in place of refusing them.
    labels : {"shared", "held"}
        "shared": the labels are public (sample weights always are). "held": they are flipped at random once, for half of epsilon, and never used
        again; see `labels`. It needs a margin loss.
    noise : {"gaussian", "printed"}
        "printed" is the paper's D_m xi, at the same scale: no guarantee.
    rho : float, optional
        The penalty. None: a fifth of the curvature of the loss, as the penalty of S = z.
    shrink : bool
        Take the noise off the released shares that can be told from them (`mechanism.shrunk`).
    noise_seed : int, optional
        None, the only right choice for real data: secure randomness.
    progress : bool
    callback : callable, optional
        `callback(loop, pass, figures)`, public figures; returning True ends the run.

    Returns
    -------
    PrivateSharingRun

    Raises
    ------
    PrivacyError
        The budget is none; the relation has no public bound and nothing is clipped, so that the sensitivity is
        unbounded; the data exceed the bound; labels='held' without two classes.
    ModelError
        Another option is out of range.

    Warns
    -----
    PrivacyWarning
        With noise_seed, and with noise='printed', which says why it has no guarantee.

    Notes
    -----
    What it buys, on a9a split into 66 and 57 columns (lam = 30, row_bound = (sqrt(8), sqrt(6)), delta = 1e-6, test log
    loss / AUC): .341 / .895 at epsilon = 1, .339 / .895 at epsilon = 4, against .349 / .885 of the first party alone
    and .324 / .902 without privacy. With public labels each party can also fit alone: half the sum of the two fits,
    which releases nothing, has .351 / .898. The releases pay in log loss and not in ranking; with labels held,
    epsilon = 1 pays in neither log loss (.43 to .56) nor much in ranking (.886). lam was chosen on these data.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxpriv.models import ADMMSharing
    >>> rows = np.random.default_rng(0).uniform(-0.5, 0.5, size=(400, 4))
    >>> model = ADMMSharing([rows[:, :2], rows[:, 2:]], rows @ [2.0, -1.0, 1.0, 0.5] > 0.0, lam=10.0)
    >>> run = model.solve_private(epsilon=1.0, delta=1e-5, epochs=4, adjacency="row", row_bound=1.0)
    >>> print(f"{run.accounting.epsilon:.4f} of {run.accounting.releases} releases")
    1.0000 of 8 releases
    """
    begun = time.perf_counter()
    require_budget(epsilon, delta)
    require_counts(epochs=epochs)
    chosen = scheme_named(scheme)
    _require_choice("labels", labels, ("shared", "held"))
    _require_choice("noise", noise, ("gaussian", "printed"))
    given: dict[str, Bound] = {"row_bound": row_bound, "column_bound": column_bound, "cell_bound": cell_bound}
    limits = bounds.public_bounds(adjacency, model.problem.parties, given)
    settings = PrivateSettings(
        epsilon,
        delta,
        epochs,
        chosen.name,
        adjacency,
        limits,
        _clip("clip", clip),
        _clip("clip_entries", CLIP_ENTRIES if clip_entries is None and model.problem.loss.margin else clip_entries),
        clip_data,
        labels,
        noise,
        _penalty(model.problem, chosen) if rho is None else rho,
        shrink,
    )
    require_positive(rho=settings.rho)
    model.require_guarantee(chosen, settings.rho)
    _require_bounded(model, chosen, settings)
    parts = bounds.within(model.problem, adjacency, limits, clip_data)
    problem = replace(model.problem, parts=parts)
    factors = tuple(old if part is old.part else Factor(part) for part, old in zip(parts, model.factors, strict=True))
    source = noise_source(noise_seed)
    if noise == "printed":
        warnings.warn(DEGENERATE, PrivacyWarning, stacklevel=3)

    bar = iter(track(range(epochs), total=epochs, description="passes", shown=progress))

    def each(name: str, iteration: int, figures: Mapping[str, Array]) -> bool | None:
        next(bar, None)
        return None if callback is None else callback(name, iteration, figures)

    context = Context(ClosedForm(), History(), each, noise=source)
    state = _passes(model, problem, factors, settings, context)
    return _finished(model, state, context, settings, time.perf_counter() - begun)


def _passes(
    model: ADMMSharing, problem: Problem, factors: tuple[Factor, ...], settings: PrivateSettings, context: Context
) -> Values:
    scheme = scheme_named(settings.scheme)
    if settings.labels == "held":
        epsilon = FOR_LABELS * settings.epsilon
        flipped = run_schedule(labels.flipping(epsilon), {labels.LABELS: problem.y[None]}, context)[labels.LABELS][0]
        loss = labels.unbiased(problem.loss, labels.flip_probability(epsilon))
        problem = replace(problem, y=flipped, loss=loss)
    release = _release(problem, scheme, settings)
    loop = mechanism.private_passes(problem, scheme, factors, model.rules, release, settings.epochs)
    state = run_schedule(loop, mechanism.initial_state(problem, settings.rho), context)
    if not context.interrupted:
        state = run_schedule(mechanism.last_step(problem, scheme, factors, model.rules), state, context)
    return single(state, 0)


def _release(problem: Problem, scheme: Scheme, settings: PrivateSettings) -> mechanism.Release:
    """How shares are released: every release has the same part of the budget."""
    share = 1.0 - FOR_LABELS if settings.labels == "held" else 1.0
    together = gaussian_mu(share * settings.epsilon, settings.delta)
    count = settings.epochs * spending.parties_touched(settings.adjacency, problem.parties)
    return mechanism.Release(
        mu=together / float(np.sqrt(count)),
        adjacency=settings.adjacency,
        bounds=settings.bounds,
        kappas=_kappas(problem, scheme, settings.rho),
        clip=settings.clip,
        clip_entries=settings.clip_entries,
        printed=settings.noise == "printed",
        shrink=settings.shrink,
    )


def _kappas(problem: Problem, scheme: Scheme, rho: float) -> tuple[float, ...]:
    """lam c / rho of each party whose step is the ridge step of a public target; 0 for the others."""
    if scheme.proximal:  # it holds on to the party's own, private, coefficients
        return (0.0,) * problem.parties
    return tuple(problem.lam * (one.ridge or 0.0) / rho for one in problem.regularizers)


def _finished(
    model: ADMMSharing, state: Values, context: Context, settings: PrivateSettings, seconds: float
) -> PrivateSharingRun:
    parties, ledger = model.problem.parties, tuple(context.ledger)
    held = settings.labels == "held"
    said = [] if context.noise.secure else ["noise from a seed: the guarantee holds only while the seed is secret"]
    said += [DEGENERATE] if settings.noise == "printed" else []
    said += [] if held else [LEAK]
    names = {"z", "y"} | {f"{name}/{m}" for name in ("v", "noise", "sensitivity", "kept") for m in range(parties)}
    return PrivateSharingRun(
        [state[f"mean/{m}"] for m in range(parties)],
        model.problem.loss.name,
        model.problem.classes,
        settings=settings,
        accounting=spending.spent(
            ledger,
            settings.delta,
            settings.adjacency,
            neighbours=bounds.neighbours(settings.adjacency, settings.bounds, held),
            labels_epsilon=FOR_LABELS * settings.epsilon if held else 0.0,
            degenerate=settings.noise == "printed",
            secure=context.noise.secure,
        ),
        ledger=ledger,
        released={name: value for name, value in state.items() if name in names},
        warnings=(*said, AT_HOME),
        seconds=seconds,
        log=context.history,
        interrupted=context.interrupted,
    )


def _require_bounded(model: ADMMSharing, scheme: Scheme, settings: PrivateSettings) -> None:
    """Refuse a run whose sensitivity nothing bounds, and labels that cannot be flipped."""
    problem = model.problem
    if settings.labels == "held" and not problem.loss.margin:
        raise PrivacyError(f"labels='held' flips labels of two classes; loss {problem.loss.name!r} has numbers")
    if np.isfinite(settings.clip):
        return
    name = bounds.ADJACENCIES[settings.adjacency][0]
    if not np.isfinite(settings.bounds).all():
        raise PrivacyError(
            f"adjacency={settings.adjacency!r} without a bound: one neighbour could move a share without limit, and no "
            f"noise hides that. Pass {name}, a public bound of the data, or clip, the norm to which shares are clipped"
        )
    if model.rules or not all(_kappas(problem, scheme, settings.rho)):
        raise PrivacyError(
            "the sensitivity of a step is bounded only for regularizer='l2' with lam > 0, without constrain, and for a "
            f"scheme other than 'proximal_jacobi': here {problem!r}, scheme={scheme.name!r}. Pass clip, the norm to "
            "which shares are clipped"
        )


def _penalty(problem: Problem, scheme: Scheme) -> float:
    bend = problem.loss.smoothness if np.isfinite(problem.loss.smoothness) else CURVATURE
    part = PENALTY if problem.loss.convex else 1.1  # a loss that is not convex needs more than its curvature
    return scheme.rho(part * bend * float(problem.weights.max()), problem.parties)


def _clip(name: str, value: float | None) -> float:
    if value is None:
        return float("inf")
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0.0 < value < np.inf:
        raise PrivacyError(f"{name}={value!r} bounds nothing: pass a finite number > 0")
    return float(value)


def _require_choice(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise PrivacyError(f"{name}={value!r} is not known: {suggest(str(value), known)}")
