"""The options of a private run: checked before anything runs, with their defaults filled in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cvxpriv.errors import PrivacyError, suggest
from cvxpriv.numerics.arguments import require_counts, require_positive
from cvxpriv.privacy.gaussian import require_budget

from . import bounds
from .problem import Problem
from .schemes import Scheme, scheme_named

__all__ = ["FOR_LABELS", "Bound", "PrivateSettings", "kappas", "require_bounded", "settings_of"]

Bound = float | Sequence[float] | None

#: Default penalty of S = z in units of the loss's curvature: small, so that noise in S moves y little.
PENALTY = 0.2
#: That curvature for a loss with a kink.
CURVATURE = 0.25
#: Which part of epsilon goes to the labels when they are held back.
FOR_LABELS = 0.5
#: Bound of what one party adds to one prediction of a margin loss, unless told otherwise.
CLIP_ENTRIES = 2.0


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


def settings_of(
    problem: Problem,
    epsilon: float,
    delta: float,
    epochs: int,
    scheme: str,
    *,
    adjacency: str,
    given: dict[str, Bound],
    clip: float | None,
    clip_entries: float | None,
    clip_data: bool,
    labels: str,
    noise: str,
    rho: float | None,
    shrink: bool,
) -> PrivateSettings:
    """Return the settings; the arguments and errors are those of `solve_private`, `given` its three bounds by name."""
    require_budget(epsilon, delta)
    require_counts(epochs=epochs)
    chosen = scheme_named(scheme)
    _require_choice("labels", labels, ("shared", "held"))
    _require_choice("noise", noise, ("gaussian", "printed"))
    penalty = _penalty(problem, chosen) if rho is None else rho
    require_positive(rho=penalty)
    return PrivateSettings(
        epsilon,
        delta,
        epochs,
        chosen.name,
        adjacency,
        bounds.public_bounds(adjacency, problem.parties, given),
        _clip("clip", clip),
        _clip("clip_entries", CLIP_ENTRIES if clip_entries is None and problem.loss.margin else clip_entries),
        clip_data,
        labels,
        noise,
        penalty,
        shrink,
    )


def kappas(problem: Problem, scheme: Scheme, rho: float, constrained: bool) -> tuple[float, ...]:
    """Return lam c / rho of each party whose step is the ridge step of a public target; 0 for the others.

    A user's constraint makes it another step, and the proximal scheme holds on to the party's own, private,
    coefficients.
    """
    if scheme.proximal or constrained:
        return (0.0,) * problem.parties
    return tuple(problem.lam * (one.ridge or 0.0) / rho for one in problem.penalties)


def require_bounded(problem: Problem, settings: PrivateSettings, constrained: bool) -> None:
    """Refuse a run whose sensitivity nothing bounds, and labels that cannot be flipped.

    Parameters
    ----------
    problem : Problem
    settings : PrivateSettings
    constrained : bool
        Whether a user's constraint is on some party's coefficients.

    Raises
    ------
    PrivacyError
        Either.
    """
    scheme = scheme_named(settings.scheme)
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
    if not all(kappas(problem, scheme, settings.rho, constrained)):
        raise PrivacyError(
            "the sensitivity of a step is bounded only for penalty='l2' with lam > 0, without constrain, and for a "
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
