"""The options of a private run: checked before anything runs, with their defaults filled in."""

from dataclasses import dataclass

import numpy as np

from cvxpriv.errors import PrivacyError, shown
from cvxpriv.learning.schema import relation_of
from cvxpriv.privacy import Plan, Release, gaussian_mu, mu_beside
from cvxpriv.privacy.gaussian import require_budget

from . import bounds
from .options import Bound
from .problem import Problem
from .schemes import USUAL, Scheme, scheme_named
from .sensitivity import resolved

UNRESOLVED = (
    "rows of these bounds are too large beside lam/rho for doubles to hold a step as exactly as its sensitivity asks: "
    "raise lam, lower rho, scale the columns, or pass clip, the norm to which shares are clipped"
)
#: Number of passes, unless told otherwise.
PASSES = 4
#: Default penalty of S = z in units of the loss's curvature: small, so that noise in S moves y little.
PENALTY = 0.2
#: That curvature for a loss with a kink.
CURVATURE = 0.25
#: Part of epsilon that goes to the labels when they are held back.
FOR_LABELS = 0.5
#: Default bound of one party's contribution to one prediction of a margin loss.
CLIP_ENTRIES = 2.0


@dataclass(frozen=True)
class PrivateSettings:
    """The options of `solve_private` that decide its result, with their defaults filled in."""

    epsilon: float
    delta: float
    max_iter: int
    method: str
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
    *,
    epsilon: float | None,
    delta: float | None,
    adjacency: str | None,
    method: str | None,
    max_iter: int | None,
    clip: float | None,
    clip_entries: float | None,
    labels: str,
    rho: float | None,
    shrink: bool,
    row_bound: Bound = None,
    column_bound: Bound = None,
    cell_bound: Bound = None,
    clip_data: bool = False,
    noise: str = "gaussian",
) -> PrivateSettings:
    """Return the settings, with defaults from public numbers; see `ADMMSharing.solve_private`."""
    relation = relation_of(problem.schema, adjacency)
    planned(epsilon, delta, labels, noise, relation)
    assert epsilon is not None
    assert delta is not None
    row_bound, clip_data = _by_schema(problem, relation, row_bound, clip, clip_data)
    chosen = scheme_named(method or USUAL)
    penalty = _penalty(problem, chosen) if rho is None else float(rho)
    return PrivateSettings(
        epsilon,
        delta,
        max_iter or PASSES,
        chosen.name,
        relation,
        bounds.public_bounds(
            relation, problem.parties, {"row_bound": row_bound, "column_bound": column_bound, "cell_bound": cell_bound}
        ),
        _finite(clip),
        _finite(CLIP_ENTRIES if clip_entries is None and problem.loss.margin else clip_entries),
        clip_data,
        labels,
        noise,
        penalty,
        shrink,
    )


def planned(epsilon: float | None, delta: float | None, labels: str, noise: str, adjacency: str) -> Plan:
    """Return what a fit is going to spend, from its options alone: flipped labels, and all shares together."""
    if epsilon is None or delta is None:
        raise PrivacyError(
            f"epsilon={shown(epsilon)} and delta={shown(delta)}: shares get Gaussian noise, which needs both; pass for "
            "example epsilon=1.0 and delta=1e-6, which should be well below one over the number of rows"
        )
    require_budget(epsilon, delta)
    flips = [FOR_LABELS * epsilon] if labels == "held" else []
    mu = mu_beside(epsilon, delta, flips) if flips else gaussian_mu(epsilon, delta)
    flaw = "the printed noise lies in the range of the data" if noise == "printed" else ""
    shares = Release(mu=mu, flaw=flaw)
    return Plan((*(Release(epsilon=one) for one in flips), shares), "ADMMSharing", adjacency)


def _by_schema(
    problem: Problem, relation: str, row_bound: Bound, clip: float | None, clip_data: bool
) -> tuple[Bound, bool]:
    """The row bound that a schema's ranges give, where none is named, and whether rows are brought within it."""
    schema = problem.schema
    if schema is None:
        return row_bound, clip_data
    if relation == "add-remove":
        raise PrivacyError("adjacency='add-remove': a share has one value a row, which shows how many rows there are")
    if row_bound is None and clip is None and "row_bound" in bounds.ADJACENCIES[relation]:
        ends = np.cumsum([0, *(part.shape[1] for part in problem.parts)])
        found = [schema.row_bound(range(ends[m], ends[m + 1])) for m in range(problem.parties)]
        if None not in found:
            row_bound = [one for one in found if one is not None]
    return row_bound, clip_data or schema.beyond == "clip"


def kappas(problem: Problem, scheme: Scheme, rho: float, constrained: bool) -> tuple[float, ...]:
    """Return lam c / rho of each party whose step is the ridge step of a public target; 0 for the others.

    A user's constraint makes it another step, and the proximal scheme depends on the party's own, private,
    coefficients.
    """
    if scheme.proximal or constrained:
        return (0.0,) * problem.parties
    return tuple(problem.lam * (one.ridge or 0.0) / rho for one in problem.penalties)


def require_bounded(problem: Problem, settings: PrivateSettings, constrained: bool) -> None:
    """Refuse a run of unbounded sensitivity, and labels that cannot be flipped.

    `constrained`: Whether a user's constraint applies to some party's coefficients.
    """
    scheme = scheme_named(settings.method)
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
            f"method other than 'proximal_jacobi': here {problem!r}, method={scheme.name!r}. Pass clip, the norm to "
            "which shares are clipped"
        )
    weights = zip(kappas(problem, scheme, settings.rho, constrained), problem.parts, settings.bounds, strict=True)
    sizes = [(bound, kappa, *part.shape) for kappa, part, bound in weights]
    if np.isinf(settings.clip_entries) and not all(resolved(settings.adjacency, *one) for one in sizes):
        raise PrivacyError(UNRESOLVED)


def _penalty(problem: Problem, scheme: Scheme) -> float:
    bend = problem.loss.smoothness if np.isfinite(problem.loss.smoothness) else CURVATURE
    part = PENALTY if problem.loss.convex else 1.1  # a loss that is not convex needs more than its curvature
    return scheme.rho(part * bend * float(problem.weights.max()), problem.parties)


def _finite(clip: float | None) -> float:
    return float("inf") if clip is None else float(clip)
