"""The private release of a share, and the passes of ADMM built on it: SHARING (10), corrected.

A party computes its share v_m = D_m x_m, and releases v~_m = v_m + s N(0, I_N): independent noise on each of the N
values, on a public grid (`cvxpriv.privacy.grid`). Nothing else of its columns leaves it. All that any other step reads,
the centre's z and y, the totals, and the target of the party's own next step, is computed from released values. Each
release has sensitivity Delta_t given what was released before, Delta_t is public (`sensitivity`), and s_t = Delta_t/mu:
the releases compose exactly, to mu sqrt(number of releases that a neighbour touches).

The paper's noise, D_m xi (noise="printed"), lies in the range of D_m, which moves with the data: whoever knows two
candidates for D_m tells them apart with certainty, however large the noise is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.engines import ClosedForm
from cvxpriv.errors import PrivacyError, SolverFailure
from cvxpriv.learning.matrices import length
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.numerics.rounding import sum_rounding
from cvxpriv.privacy import EVERYONE, GaussianNoise, Noise, Release
from cvxpriv.schedules.history import Never
from cvxpriv.schedules.steps import AnyStep, Draw, Loop, Measure, Parallel, Public, Sweep, Update
from cvxpriv.solvers.chain import Solution

from . import blocks, sensitivity
from .algorithm import LOOP, Constraints, constrained
from .factor import Factor
from .problem import Problem
from .schemes import Scheme
from .sensitivity import INEXACT

#: Refinements of a step, each of which leaves a small part of its error.
REFINED = 8
DEGENERATE = "the noise lies in the range of the data, which differs between neighbours"


@dataclass(frozen=True)
class ShareRelease:
    """The rule by which a party releases its share.

    `mu`: Ratio of sensitivity to standard deviation of each release.
    `adjacency`: "replace-one" or "party-row", "column", "cell".
    `bounds`: Public bounds of the data, one per party; inf where there is none.
    `kappas`: The number lam c / rho of each party; 0 where its step has no bounded sensitivity except by `clip`.
    `clip`: Bound of the norm of a share; inf for none.
    `clip_entries`: Bound of each value of a share; inf for none.
    `printed`: Whether the noise is the paper's, in the range of D_m.
    `shrink`: Whether released shares are shrunk: see `shrunk`.
    """

    mu: float
    adjacency: str
    bounds: tuple[float, ...]
    kappas: tuple[float, ...]
    clip: float = np.inf
    clip_entries: float = np.inf
    printed: bool = False
    shrink: bool = True

    def entry(self, m: int) -> Release:
        """Return the cost of a release of party m, and whom it touches: a row is in all parties, else in one."""
        name = f"party {m}"
        touches = EVERYONE if self.adjacency == "replace-one" else name
        return Release(mu=self.mu, source=name, touches=touches, flaw=DEGENERATE if self.printed else "")

    def clipped(self, share: Array) -> Array:
        """Return a share within its bounds, entries first, then the norm; neither moves two shares apart."""
        inside = np.clip(np.nan_to_num(share), -self.clip_entries, self.clip_entries)
        size = length(inside)
        return inside * (self.clip / size) if size > self.clip else inside

    def sensitivity(self, target: Array, m: int, columns: int) -> float:
        """Return the largest Euclidean norm by which a neighbour moves the clipped share of party m."""
        return min(self.of_clips(target.size), self.of_the_step(target, m, columns))

    def of_clips(self, samples: int) -> float:
        """Return the sensitivity that follows from the clips alone, whatever the step, and the clip's own rounding."""
        return float(2.0 * min(self.clip, self.clip_entries * np.sqrt(samples)) * (1.0 + sum_rounding(samples + 16)))

    def of_the_step(self, target: Array, m: int, columns: int) -> float:
        """Return the sensitivity of the ridge step, solved to within `INEXACT`; inf where it has none."""
        kappa, bound = self.kappas[m], self.bounds[m]
        if not sensitivity.resolved(self.adjacency, bound, kappa, target.size, columns):
            return float("inf")
        match self.adjacency:
            case "column":
                exact = sensitivity.column(target, kappa, bound)
            case "cell":
                exact = sensitivity.cell(target, kappa, bound, columns, self.clip_entries)
            case _:
                exact = sensitivity.row(target, kappa, bound, self.clip_entries)
        return exact + 2.0 * INEXACT * length(target)


def shrunk(released: Array, scale: float, labels: Array) -> tuple[Array, float]:
    """Return a released share without the noise that can be told from it, and the share of it that was kept.

    Its regression on the labels stays; of the rest, of mean square v, the part max(0, 1 - scale^2/v) is kept (James and
    Stein). It is computed from released values and costs no privacy. Without it a loss that saturates sees noise of
    several units in every prediction, and little else.

    `released`: (N,).
    `scale`: Standard deviation of its noise.
    `labels`, (N,): Labels as all parties know them.
    """
    known = np.column_stack([np.ones_like(labels), labels])
    explained = known @ np.linalg.lstsq(known, released, rcond=None)[0]
    rest = released - explained
    spread = float(rest @ rest) / rest.size
    kept = max(0.0, 1.0 - scale**2 / spread) if spread > 0.0 else 1.0
    return explained + kept * rest, kept


def initial_state(problem: Problem, rho: float) -> dict[str, Array]:
    """Return x = z = y = 0 and the other entries that the passes keep."""
    zeros = np.zeros((1, problem.samples))
    state = {"z": zeros, "y": zeros, "rho": np.array([rho]), "passes": np.zeros(1)}
    for m, part in enumerate(problem.parts):
        x = np.zeros((1, part.shape[1]))
        state |= {f"x/{m}": x, f"mean/{m}": x, f"share/{m}": zeros, f"v/{m}": zeros}
        state |= {f"{figure}/{m}": np.zeros(1) for figure in ("noise", "sensitivity", "kept")}
    return state


def private_passes(
    problem: Problem,
    scheme: Scheme,
    factors: Sequence[Factor],
    constraints: Constraints,
    release: ShareRelease,
    passes: int,
) -> Loop:
    """Return the passes, each z, y, then every party's step and release.

    The first x already knows the labels (z and y of S = 0 do), so that no release goes to waste.
    """
    centre, dual = public_centre(problem, scheme)
    parties = [
        Sweep(
            [
                *kept_at_home(_own(problem, scheme, factors, m, constraints), m, bool(constraints)),
                draw(problem, scheme, factors[m], m, release),
                *([shrinking(problem, m)] if release.shrink else []),
            ],
            name=f"party {m}",
        )
        for m in range(problem.parties)
    ]
    together: AnyStep = Sweep(parties, name="parties") if scheme.in_turn else Parallel(parties, name="parties")
    return Loop(Sweep([centre, dual, together, count()]), Never(), passes, public_figures(problem), name=LOOP)


def last_step(problem: Problem, scheme: Scheme, factors: Sequence[Factor], constraints: Constraints) -> Sweep:
    """Return the step after the last release: every party fits once more, and releases nothing."""
    several = range(problem.parties)
    own = [_own(problem, scheme, factors, m, constraints) for m in several]
    parties = [Sweep(kept_at_home(own[m], m, bool(constraints))) for m in several]
    return Sweep([*public_centre(problem, scheme), Parallel(parties, name="parties")])


def draw(problem: Problem, scheme: Scheme, factor: Factor, m: int, release: ShareRelease) -> Draw:
    """Return the step that releases v~_m, with as much noise as the target of this pass needs."""

    def target(view: Values) -> Array:
        total = blocks.total_share(view, problem.parties)[0]
        return scheme.target(view[f"v/{m}"][0], total, view["z"][0], problem.parties)

    return draw_towards(target, public_entries(problem), factor, m, release)


def draw_towards(
    aim: Callable[[Values], Array], public: frozenset[str], factor: Factor, m: int, release: ShareRelease
) -> Draw:
    """Return the step of `draw`, whatever its target is read from.

    `aim`: Maps the entries read to the target of D_m x_m, (N,).
    `public`: The entries that it reads, all of them public.
    """
    columns = factor.part.shape[1]

    def released(view: Values, noise: Noise) -> Values:
        target = aim(view) - view["y"][0] / view["rho"][0]
        bound = release.sensitivity(target, m, columns)
        share = view[f"share/{m}"][0]
        if bound < release.of_clips(target.size):
            share = _solved(factor, view[f"x/{m}"][0], target, release.kappas[m])
        gaussian = GaussianNoise(bound, release.mu, target.size)
        share = release.clipped(share)
        shown = share + _in_range(factor, gaussian.scale, noise) if release.printed else gaussian.release(share, noise)
        return {
            f"v/{m}": shown[None],
            f"noise/{m}": np.array([gaussian.scale]),
            f"sensitivity/{m}": np.array([bound]),
            f"kept/{m}": np.ones(1),
        }

    writes = frozenset(f"{name}/{m}" for name in ("v", "noise", "sensitivity", "kept"))
    return Draw(f"v/{m}", released, public | {f"x/{m}", f"share/{m}", "y", "rho"}, writes, [release.entry(m)])


def _solved(factor: Factor, x: Array, target: Array, kappa: float) -> Array:
    """Return the share of x, refined until it is known to be within `INEXACT` of H a.

    A residual r of (D'D + kappa I) x = D'a moves D x by at most ||r||/(2 sqrt(kappa)). The rounding of r and of D x is
    bounded in the worst case.
    """
    size, width = factor.part.shape
    steep, aim = factor.frobenius, float(np.linalg.norm(target))
    for _ in range(REFINED):
        share = factor.share(x)
        residual = factor.pull(target - share) - kappa * x
        long, coefficients = aim + float(np.linalg.norm(share)), float(np.linalg.norm(x))
        rounding = sum_rounding(size + 4) * (steep * long + kappa * coefficients)
        off = (float(np.linalg.norm(residual)) + rounding) / (2.0 * np.sqrt(kappa))
        if off + 2.0 * sum_rounding(width + 2) * steep * coefficients <= INEXACT * aim:
            return share
        x = x + factor.inverse(residual, kappa)
    raise PrivacyError(
        "a party could not solve its step exactly enough for its sensitivity to hold, and nothing of this pass was "
        "released: raise lam, lower rho, or scale the columns"
    )


def public_entries(problem: Problem) -> frozenset[str]:
    """Return the entries of a state that are public."""
    return frozenset({"z", "y", "rho", *(f"v/{m}" for m in range(problem.parties))})


def public_centre(problem: Problem, scheme: Scheme) -> tuple[Public, Public]:
    """Return the steps of z and y, which read released values alone."""
    known = public_entries(problem)
    return Public(blocks.centre(problem, scheme), known), Public(blocks.dual(problem, scheme), known)


def kept_at_home(block: Block, m: int, constrained: bool = False) -> tuple[Update, Update]:
    """Return a party's step whose share stays with it, and its mean coefficients since the first release.

    Each pass has its own noise, so that the mean is steadier than the last. It never leaves the party. Where no solver
    answers, the coefficients stay, and clips cover the share: that would tell of the data. A user's constraint that
    nothing meets is `constrained` and public.
    """
    mean, x, own = f"mean/{m}", f"x/{m}", _private(block, m)

    def fitted(view: Values) -> Values:
        try:
            return ClosedForm().solve(own, view).values
        except SolverFailure as failure:
            if constrained and failure.infeasible:
                raise
            return {name: view[name] for name in own.writes}

    def averaged(view: Values) -> Values:
        count = np.maximum(view["passes"], 1.0)[:, None]
        return {mean: view[mean] + (view[x] - view[mean]) / count}

    mine = Update(block.name, fitted, own.reads | own.writes, own.writes)
    return mine, Update(mean, averaged, frozenset({x, mean, "passes"}), frozenset({mean}))


def _own(problem: Problem, scheme: Scheme, factors: Sequence[Factor], m: int, constraints: Constraints) -> Block:
    return constrained(blocks.party(problem, scheme, factors, m), m, constraints)


def _private(block: Block, m: int) -> Block:
    """Return a party's block that writes its share where nothing public reads it."""
    own, kept, write, direct = f"v/{m}", f"share/{m}", block.write, block.direct

    def renamed(values: Values) -> Values:
        return {kept if name == own else name: value for name, value in values.items()}

    def written(solution: Solution, view: Values) -> Values:
        return renamed(write(solution, view))

    return replace(
        block,
        writes=(block.writes - {own}) | {kept},
        write=written,
        direct=None if direct is None else lambda view: renamed(direct(view)),
    )


def shrinking(problem: Problem, m: int) -> Public:
    """Return the step that replaces a released share by what `shrunk` leaves of it."""
    share, kept = f"v/{m}", f"kept/{m}"

    def step(view: Values) -> Values:
        values, part = shrunk(view[share][0], float(view[f"noise/{m}"][0]), problem.y)
        return {share: values[None], kept: np.array([part])}

    reads = frozenset({share, f"noise/{m}"})
    return Public(Update(f"shrink/{m}", step, reads, frozenset({share, kept})), reads)


def count() -> Update:
    """Return the step that counts passes."""
    only = frozenset({"passes"})
    return Update("passes", lambda view: {"passes": view["passes"] + 1.0}, only, only)


def public_figures(problem: Problem) -> Measure:
    """Return the figures of a run's history, which holds only released numbers."""
    parties = range(problem.parties)

    def figures(state: Values) -> dict[str, Array]:
        gap = blocks.total_share(state, problem.parties) - state["z"]
        columns = {f"{name} {m}": state[f"{name}/{m}"] for name in ("noise", "sensitivity", "kept") for m in parties}
        return {"gap": np.linalg.norm(gap, axis=1), **columns}

    return figures


def _in_range(factor: Factor, scale: float, noise: Noise) -> Array:
    """Return D xi with xi ~ N(0, scale^2 (D'D)^+): the paper's noise, of rank rank(D)."""
    values, vectors = linalg.eigh(factor.gram)
    large = values > len(values) * np.finfo(float).eps * values[-1]
    basis = vectors[:, large]
    if factor.tall:
        basis = np.asarray(factor.part @ (basis / np.sqrt(values[large])))
    return np.asarray(basis @ noise.normal(scale, (basis.shape[1],)))
