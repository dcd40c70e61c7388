"""Checks of a penalty's proximal step: against a search, coordinate by coordinate, its residual, and a solver."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.divergences.verification.findings import NOT_APPLICABLE, Finding, judged
from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties.contract import Penalty
from cvxpriv.penalties.proximal import CONVEX, pieces_at, proximal_block, regime

POINTS, CENTERS = 400, 20
#: Steps around the one where the proximal problem stops being convex, as multiples of it.
AROUND = (0.05, 0.5, 0.95, 1.05, 2.0, 10.0)


@dataclass(frozen=True)
class PenaltySetting:
    """A penalty, the sizes its coefficients will have, and the seed of random points."""

    penalty: Penalty
    interval: tuple[float, float]
    seed: int

    @cached_property
    def sizes(self) -> Array:
        """Sizes with equal ratios, (POINTS,)."""
        return np.geomspace(*self.interval, POINTS)

    def heights(self, t: Array) -> Array:
        """Return p(t), coordinate by coordinate, for a penalty that is a sum over coordinates."""
        return np.array([float(self.penalty.value(np.array([one]))) for one in t.ravel()]).reshape(t.shape)

    @cached_property
    def steps(self) -> Array:
        """Steps in each regime of the proximal problem."""
        bend = float(self.penalty.weak_convexity)
        at = 1.0 / bend if 0.0 < bend < np.inf else 1.0
        return at * np.array(AROUND)

    @cached_property
    def centers(self) -> Array:
        """Random centres of both signs, with sizes in the interval, (CENTERS,)."""
        random = np.random.default_rng(self.seed)
        low, high = np.log(self.interval)
        return np.asarray(np.exp(random.uniform(low, high, CENTERS)) * random.choice([-1.0, 1.0], CENTERS))

    @cached_property
    def additive(self) -> bool:
        """Whether P is the sum of its coordinates."""
        whole = float(self.penalty.value(self.centers))
        apart = sum(float(self.penalty.value(alone)) for alone in np.diag(self.centers))
        return bool(np.isclose(whole, apart, rtol=1e-12, atol=1e-12))

    def objective(self, t: Array, step: float, centers: Array) -> float:
        """Return the proximal problem's objective at t."""
        return 0.5 * float(((t - centers) ** 2).sum()) + step * float(self.penalty.value(t))

    def one_by_one(self, step: float) -> Array:
        """Return the proximal steps of the centres, computed one at a time."""
        return np.array([float(self.penalty.prox(np.array([s]), step)[0]) for s in self.centers])

    def lowest(self, s: float, step: float) -> float:
        """Return the least height of the proximal problem on a grid over [0, s], refined around its lowest point."""
        t, best = np.linspace(0.0, s, 101), np.inf
        for _ in range(5):
            found = 0.5 * (t - s) ** 2 + step * self.heights(t)
            lowest = int(np.argmin(found))
            best = min(best, float(found[lowest]))
            t = np.linspace(t[max(lowest - 1, 0)], t[min(lowest + 1, t.size - 1)], 21)
        return best

    def bends(self) -> Array:
        """Return second differences of p around each size, on its own side of 0; 0 where P is infinite."""
        t = self.sizes
        h = 1e-2 * t
        with np.errstate(invalid="ignore"):
            bends = (self.heights(t + h) - 2.0 * self.heights(t) + self.heights(t - h)) / h**2
        return np.nan_to_num(bends, nan=0.0)


#: Relative tolerance of heights: the search refines its grid until a cell is worth less.
LEAST = 1e-9
#: Relative agreement of cone solvers (on an array of 20 coordinates).
SOLVED = 1e-7


def least(setting: PenaltySetting) -> Finding:
    """Judge whether no point that a search finds lies below the proximal step."""
    errors, places = [], []
    for step in setting.steps.tolist():
        found = _around(setting, step) if setting.penalty.weak_convexity == 0.0 else _on_grids(setting, step)
        for place, height, best in found:
            errors.append((height - best) / (1.0 + abs(best)) if best < np.inf else 0.0)
            places.append({**place, "step": step})
    return judged(
        np.maximum(np.array(errors), 0.0),
        LEAST,
        lambda k: places[k],
        "the proximal step is the least, below and above the step where that problem stops being convex",
        "another t is lower: the formula may hold only for short steps",
    )


def _on_grids(setting: PenaltySetting, step: float) -> Iterator[tuple[dict[str, float], float, float]]:
    """Return the step, its height, and the minimum on a refined grid, for each centre."""
    for s, t in zip(setting.centers.tolist(), setting.one_by_one(step).tolist(), strict=True):
        height = setting.objective(np.array([t]), step, np.array([s]))
        yield {"s": s, "prox": t}, height, setting.lowest(s, step)


def _around(setting: PenaltySetting, step: float) -> Iterator[tuple[dict[str, float], float, float]]:
    """Return the same for all centres at once, against random points around the step: enough where P is convex."""
    random = np.random.default_rng(setting.seed)
    centers = setting.centers
    t = np.asarray(setting.penalty.prox(centers, step))
    height = setting.objective(t, step, centers)
    for size in np.geomspace(1e-6, 1.0, 60).tolist():
        near = t + size * (1.0 + np.abs(t)) * random.normal(size=t.size) * (random.uniform(size=t.size) < 0.3)
        yield {"moved": size}, height, setting.objective(near, step, centers)


def whole_step(setting: PenaltySetting) -> Finding:
    """Judge whether the proximal step of an array is that of each coordinate, and odd."""

    def error(step: float) -> Array:
        whole, mirrored = (np.asarray(setting.penalty.prox(sign * setting.centers, step)) for sign in (1.0, -1.0))
        single = setting.one_by_one(step)
        return np.maximum(np.abs(whole - single), np.abs(whole + mirrored)) / (1.0 + np.abs(single))

    return _at_each_step(
        setting,
        error,
        "an array is done coordinate by coordinate",
        "prox of an array differs from prox of its parts, or prox(-s) is not -prox(s)",
    )


def stationary(setting: PenaltySetting) -> Finding:
    """Judge whether the residual at a proximal step is 0."""

    def error(step: float) -> Array:
        t = np.asarray(setting.penalty.prox(setting.centers, step))
        off = np.abs(setting.penalty.residual(t, (t - setting.centers) / step))
        return np.asarray(off * min(step, 1.0) / (1.0 + np.abs(setting.centers)))

    return _at_each_step(
        setting,
        error,
        "a proximal step has residual 0",
        "the residual at a proximal step is not 0: residual and prox are of two penalties",
    )


def _at_each_step(setting: PenaltySetting, error: Callable[[float], Array], holds: str, fails: str) -> Finding:
    """Judge the errors at all centres, of every step."""
    steps, centers = setting.steps.tolist(), setting.centers.tolist()
    places = [{"s": s, "step": step} for step in steps for s in centers]
    return judged(np.concatenate([error(step) for step in steps]), 1e-12, lambda k: places[k], holds, fails)


def declared(setting: PenaltySetting) -> Finding:
    """Judge whether the DCP form has the height of the exact step, in both regimes."""
    penalty = setting.penalty
    if not hasattr(penalty, "expression"):
        return Finding(NOT_APPLICABLE, f"penalty={penalty!r} has no DCP form: give it expression(x)")
    steps = [step for step in setting.steps.tolist() if regime(penalty, step) == CONVEX or pieces_at(penalty, step)]
    s = np.clip(setting.centers, -100.0, 100.0)  # larger centres leave solvers fewer digits
    block = proximal_block(penalty, s.size)
    gaps = np.array([_gap(block, setting, s, step) for step in steps])
    return judged(
        gaps,
        SOLVED,
        lambda k: {"step": steps[k], "form": regime(penalty, steps[k])},
        "a solver finds the exact step",
        "the DCP form has another least than prox: mend expression or pieces",
    )


def _gap(block: Block, setting: PenaltySetting, s: Array, step: float) -> float:
    solved = block.solve({"center": s, "step": np.asarray(step)})[0]["trial"]
    low, high = (setting.objective(t, step, s) for t in (setting.penalty.prox(s, step), solved))
    return abs(high - low) / max(1.0, abs(low))
