"""Checks of f as a curve: finite, zero at one, convex, and assumptions (a) and (b) of IAS."""

import numpy as np
import numpy.typing as npt

from cvxpriv.divergences.verification.findings import FAILS, HOLDS, NOT_APPLICABLE, Finding, judged
from cvxpriv.divergences.verification.setting import ROUNDING, DivergenceSetting
from cvxpriv.numerics.arrays import Array

UNDECLARED = "f' jumps where no kink is declared: pass kinks=(...)"
PIECES = 100
"""Number of pieces of the interval on which strict convexity is tested: each must bend by more than rounding."""
PAIRS = 4000
HALVINGS = 10
JUMP = 0.015
"""Share of a cell's change of f' on 2^-10 of the cell: 1e-3 for a Lipschitz f', and still 0.016 for one like |t -
1|^0.6."""
WIDTHS, STEADY = (2, 7), 0.8
"""Two widths, and the share of a jump that must remain between them: 1 of a jump, 0.5 of |t - 1|^0.2."""
SUSPECT, SUSPECTS, PARTS, STAYS, BESIDE = 1e-4, 40, 30, 0.15, 1e-2
"""A small kink is suspected where f' changes by 1e-4 more or less than beside it. On a 30th of the cell the
unevenness of a smooth f' falls by 27,000, that of a corner of f' by 30; a jump stays, or halves where differences smear
it."""


def finite(setting: DivergenceSetting) -> Finding:
    """f has a finite value at every point of the interval."""
    t = np.union1d(setting.grid, setting.fine_grid)
    values = setting.values(t)
    wrong = ~np.isfinite(values)
    if wrong.any():
        first = int(np.argmax(wrong))
        where = f"{int(wrong.sum())} of {t.size} points of the interval"
        meaning = f"f is {values[first]:g} at {where}: mend f, or narrow the interval"
        return Finding(FAILS, meaning, float(values[first]), {"t": float(t[first])})
    largest = int(np.argmax(np.abs(values)))
    return Finding(HOLDS, "f has a value wherever a model asks", float(values[largest]), {"t": float(t[largest])})


def zero_at_one(setting: DivergenceSetting) -> Finding:
    """f(1) = 0, so that the divergence of a distribution from itself is 0."""
    return judged(
        np.abs(setting.values(np.array([1.0]))),
        1e-12,
        lambda _: {"t": 1.0},
        "equal distributions have divergence 0",
        "equal distributions must have divergence 0: subtract f(1)",
    )


def convex(setting: DivergenceSetting) -> Finding:
    """f lies below its chords, from short ones to the whole interval."""
    a, b, weight = _chords(setting)
    middle = weight * a + (1.0 - weight) * b
    low, high, at = setting.values(a), setting.values(b), setting.values(middle)
    rise = np.maximum(at - weight * low - (1.0 - weight) * high, 0.0)
    noise = ROUNDING * (setting.scale + np.abs(low) + np.abs(high) + np.abs(at))
    return judged(
        np.where(np.isfinite(at), rise, np.nan),
        noise,
        lambda k: {"t": float(middle[k])},
        "every block is a convex problem",
        "f lies above a chord: it is not convex, p f(q/p) has no DCP form, and the result is no divergence",
    )


def _chords(setting: DivergenceSetting) -> tuple[Array, Array, Array]:
    t, random = setting.grid, setting.random(1)
    pairs = [(t[:-step], t[step:]) for step in (1, 10, 100, 1000)]
    low, high = np.log(setting.interval)
    ends = np.sort(np.exp(random.uniform(low, high, (2, PAIRS))), axis=0)
    pairs.append((setting.fine_grid[:-1], setting.fine_grid[1:]))
    a = np.concatenate([*(pair[0] for pair in pairs), ends[0]])
    b = np.concatenate([*(pair[1] for pair in pairs), ends[1]])
    weight = np.concatenate([np.full(a.size - PAIRS, 0.5), random.uniform(0.02, 0.98, PAIRS)])
    return a, b, weight


def strictly_convex(setting: DivergenceSetting) -> Finding:
    """Assumption (a) of IAS: f bends on every piece of the interval."""
    if not setting.f.strictly_convex:
        return Finding(
            NOT_APPLICABLE,
            "f is declared not strictly convex: minimisers need not be unique, and the convergence proof of IAS, which "
            "assumes (a), does not cover it; every block is still convex, and its value is certified",
        )
    if setting.f.convexity != "declared":
        return Finding(HOLDS, "minimisers are unique: by its formula, f is straight on no interval")
    t = np.geomspace(*setting.interval, PIECES + 1)
    a, b = t[:-1], t[1:]
    middle = (a + b) / 2.0
    ends, at = setting.values(a) + setting.values(b), setting.values(middle)
    depth = ends / 2.0 - at
    flat = ~(depth > 0.25 * ROUNDING * (np.abs(setting.values(a)) + np.abs(setting.values(b)) + np.abs(at)))
    if setting.f.fsecond is not None:  # it tells a curvature that is below rounding from none
        with np.errstate(all="ignore"):
            curvature = np.min(
                [np.broadcast_to(setting.f.second_derivative(x), x.shape) for x in (a, middle, b)], axis=0
            )
        flat &= ~(curvature > 0.0)
    if flat.any():
        worst = int(np.argmax(np.where(flat, -depth, -np.inf)))
        meaning = (
            f"f does not bend on {int(flat.sum())} of {PIECES} pieces of the interval: declare strictly_convex=False; "
            "minimisers need not be unique then"
        )
        return Finding(FAILS, meaning, float(depth[worst]), {"t": float(middle[worst])})
    least = int(np.argmin(depth))
    return Finding(HOLDS, "minimisers are unique", float(depth[least]), {"t": float(middle[least])})


def lipschitz(setting: DivergenceSetting) -> Finding:
    """Assumption (b) of IAS: f' has a finite Lipschitz constant on the interval, which is measured."""
    low, high, changes = _steepest_parts(setting)
    before, change = changes[0], changes[-1]
    if not np.isfinite(change).all():
        first = int(np.argmax(~np.isfinite(change)))
        return Finding(FAILS, "f' has no finite value there: mend fprime", float("nan"), {"t": float(low[first])})
    typed = setting.f.convexity != "declared"  # every kink of a formula is known
    steep = np.flatnonzero((change > JUMP * before) & (change > _slope_noise(setting, low)))
    if small := [] if typed else _small_jumps(setting, high[steep]):
        place, size = small[0]
        return Finding(FAILS, UNDECLARED, size, {"t": place})
    if not steep.size:
        quotient = change / (high - low)
        worst = int(np.argmax(quotient))
        constant = float(quotient[worst])
        meaning = f"f' is Lipschitz with constant {constant:.4g} on the interval (the worst value)"
        return Finding(HOLDS, meaning, constant, {"t": float(low[worst])})
    known = np.array([_is_kink(setting, low[k], high[k]) for k in steep])
    jumps = known if typed else known | (_step(changes, steep) > STEADY)
    hidden = steep[jumps & ~known]
    worst = int((hidden if hidden.size else steep)[np.argmax(change[hidden if hidden.size else steep])])
    value, point = float(change[worst]), {"t": float(high[worst])}
    if hidden.size:
        return Finding(FAILS, UNDECLARED, value, point)
    what = "f has a kink" if known.any() else "f' is continuous, but steeper there than any Lipschitz constant"
    return Finding(
        NOT_APPLICABLE,
        f"{what}: the gradient methods and Bregman moduli of IAS, which assume (b), lose their guarantees; the joint "
        "block is exact as before",
        value,
        point,
    )


def _step(changes: list[Array], steep: npt.NDArray[np.intp]) -> Array:
    """Return the share of a jump at one width that remains at a much smaller one: 1, but less for any |t|^a."""
    wide, narrow = (2.0 * changes[k + 1][steep] - changes[k][steep] for k in WIDTHS)
    return np.asarray(narrow / np.maximum(wide, np.finfo(float).tiny))


def _small_jumps(setting: DivergenceSetting, steep: Array) -> list[tuple[float, float]]:
    """Return the places, and the sizes, of jumps of f' that the change on a cell of the grid hides."""
    t, found = setting.fine_grid, []
    off, around = _unevenness(setting, t)
    relative = np.where(np.isfinite(off), off, 0.0) / np.maximum(np.abs(around), np.finfo(float).tiny)
    for k in np.argsort(relative)[-SUSPECTS:][::-1].tolist():
        beside = (np.abs(steep / t[k] - 1.0) < BESIDE).any()
        if relative[k] > SUSPECT and not beside and not _is_kink(setting, t[k], t[k + 3]):
            inside = np.linspace(t[k], t[k + 3], 3 * PARTS + 1)
            finer, _ = _unevenness(setting, inside)
            if finer.max() > STAYS * off[max(k - 2, 0) : k + 3].max():
                found.append((float(inside[int(finer.argmax()) + 1]), float(finer.max())))
    return found


def _unevenness(setting: DivergenceSetting, t: Array) -> tuple[Array, Array]:
    """Return how far the change of f' on each inner step is from the mean of its neighbours, and that mean."""
    change = np.diff(setting.slopes(t))
    around = (change[:-2] + change[2:]) / 2.0
    off = np.abs(change[1:-1] - around)
    return np.where(off > 4.0 * _slope_noise(setting, t[1:-2]), off, 0.0), around


def _steepest_parts(setting: DivergenceSetting) -> tuple[Array, Array, list[Array]]:
    """Halve each cell of the grid, keeping the half on which f' changes more; return the parts and all changes."""
    low, high = setting.grid[:-1].copy(), setting.grid[1:].copy()
    at_low, at_high = setting.slopes(low), setting.slopes(high)
    changes = [np.abs(at_high - at_low)]
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        at = setting.slopes(middle)
        left = np.abs(at - at_low) >= np.abs(at_high - at)
        low, at_low = np.where(left, low, middle), np.where(left, at_low, at)
        high, at_high = np.where(left, middle, high), np.where(left, at, at_high)
        changes.append(np.abs(at_high - at_low))
    return low, high, changes


def _slope_noise(setting: DivergenceSetting, t: Array) -> Array:
    """Return the error of f': rounding, or the error of differences where f' is not given."""
    given = setting.f.fprime is not None or setting.f.partials is not None
    size = 1.0 + np.abs(setting.slopes(t))
    measured = setting.roughness * (size + np.abs(setting.values(t)) / t + 1.0 / t)
    return ROUNDING * size if given else 1e-9 * measured


def _is_kink(setting: DivergenceSetting, low: float, high: float) -> bool:
    # Differences smear a kink over a relative 1e-5.
    return any(low * (1.0 - 2e-5) <= kink <= high * (1.0 + 2e-5) for kink in setting.f.kinks)
