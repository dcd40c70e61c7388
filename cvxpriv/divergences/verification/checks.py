"""The checks of an f-divergence, in the order of the table."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.divergences.definition import FDivergence
from cvxpriv.divergences.verification import agreement, curve, dcp_form, derivatives
from cvxpriv.divergences.verification.findings import FAILS, HOLDS, Check, Finding, Verification, judged, run_checks
from cvxpriv.divergences.verification.setting import MODERATE, ROUNDING, DivergenceSetting, moderate
from cvxpriv.numerics.arrays import Array

PAIRS, SIZE = 500, 2
TOLERANCE = 1e-10


def nonnegative(setting: DivergenceSetting) -> Finding:
    """D(p, q) >= 0 for random distributions."""
    p, q = setting.distributions(setting.random(3), PAIRS, SIZE)
    values, size = _values(setting, p, q)
    return judged(
        np.maximum(-values, 0.0) + 0.0 * values,
        TOLERANCE * size,
        lambda k: {"p": p[k], "q": q[k]},
        "no distribution is nearer to p than p itself",
        "D(p, q) is negative: f is not convex, or f(1) is not 0",
    )


def data_processing(setting: DivergenceSetting) -> Finding:
    """D(p K, q K) <= D(p, q) for random channels K, from near the identity to near constant."""
    random = setting.random(4)
    p, q = setting.distributions(random, PAIRS, SIZE)
    sharpness = np.repeat([0.05, 0.3, 1.0, 10.0], PAIRS // 4)
    channels = np.stack([random.dirichlet(np.full(SIZE, alpha), SIZE) for alpha in sharpness])
    before, size = _values(setting, p, q)
    after, _ = _values(setting, np.einsum("ni,nij->nj", p, channels), np.einsum("ni,nij->nj", q, channels))
    return judged(
        np.maximum(after - before, 0.0) + 0.0 * (after - before),
        TOLERANCE * size,
        lambda k: {"p": p[k], "q": q[k]},
        "what is released cannot tell more after any processing",
        "a channel raises the divergence: f is not convex, so it measures no leakage",
    )


def _values(setting: DivergenceSetting, p: Array, q: Array) -> tuple[Array, Array]:
    """Return D(p, q) of each pair, and the size of its terms."""
    with np.errstate(all="ignore"):
        terms = setting.f.terms(p, q)
    return terms.sum(axis=1), 1.0 + np.abs(terms).sum(axis=1)


#: Powers of ten up to where squares still have a value.
DECADES = np.array([1, 2, 3, 6, 9, 12, 25, 50, 75, 100, 125, 150])
#: An f that is larger around 1, or smaller than the inverse, is checked in units of its size there.
LARGE = 100.0
LIMITS = "at_zero", "slope_at_infinity"
#: Allowed error of a limit that was given, and of one that was read off at 1e12.
GIVEN, READ_OFF = 1e-6, 1e-5
#: Values grow without end if the last decades change them by this share of what those before did: 1 of a logarithm,
#: .82 of its logarithm, .56 of t^-0.01. A limit may be so many times farther away than such differences say.
STEADY, BEYOND = 0.7, 4.0


def at_zero(setting: DivergenceSetting) -> Finding:
    """The declared f(0+) is the limit of f."""
    return _limit(setting, 10.0**-DECADES, "at_zero", "f(t)", lambda t: setting.values(t))


def at_infinity(setting: DivergenceSetting) -> Finding:
    """The declared slope at infinity is the limit of f(t)/t."""
    return _limit(setting, 10.0**DECADES, "slope_at_infinity", "f(t)/t", lambda t: setting.values(t) / t)


def _limit(
    setting: DivergenceSetting, t: Array, argument: str, what: str, values_at: Callable[[Array], Array]
) -> Finding:
    f = setting.f
    given = getattr(f, argument) is not None
    with np.errstate(all="ignore"):
        claimed, values = f.limit_at_zero if argument == "at_zero" else f.limit_slope, values_at(t)
    source = f"the limit is {claimed:.6g}, {'as given' if given else 'as read off'}"
    if np.isposinf(claimed) and f.convexity != "declared":
        return Finding(HOLDS, f"{source}: read off the formula in many digits, farther out than doubles reach", 0.0)
    usable = np.flatnonzero(np.isfinite(values))
    if usable.size < 3 and np.isposinf(claimed) and np.isposinf(values).any():
        return Finding(HOLDS, f"the limit is inf: f outgrows doubles before t = {t[2]:g}", 0.0)
    if usable.size < 3:
        return Finding(FAILS, f"f has no value near the limit: give {argument} and mend f", float("nan"))
    found, point = float(values[usable[-1]]), {"t": float(t[usable[-1]])}
    before, last = np.diff(values[usable[-3:]]) / np.diff(DECADES[usable[-3:]])
    noise = ROUNDING * np.abs(values[usable[-3:]]).max()
    grows = abs(found) > 1e12 or abs(last) > max(STEADY * abs(before), noise)
    if np.isinf(claimed):
        right, error = bool(grows and found > -1e12 and last > 0.0 and claimed > 0.0), 0.0
    else:
        error = abs(found - claimed)
        tolerance = (GIVEN if given else READ_OFF) * (setting.scale + abs(claimed)) + noise
        share = last / before if before != 0.0 and 0.0 < last / before < 1.0 else 0.0
        rest = last * share / (1.0 - share) * np.diff(DECADES[usable[-2:]])[0]
        right = bool(error <= tolerance or ((claimed - found) * last > 0.0 and error <= BEYOND * abs(rest)))
    if right:
        return Finding(HOLDS, source, error, point)
    course = f"{'grows' if last > 0.0 else 'falls'} without end" if grows else f"is {found:.6g} there"
    remedy = "correct" if given else "pass"
    return Finding(FAILS, f"{argument}: {source}, but {what} {course}: {remedy} {argument}", error, point)


FINITE, CONVEX, DCP, FREE = "f is finite", "f is convex", "expression is DCP", "constraints exclude nothing"

CHECKS: tuple[Check[DivergenceSetting], ...] = (
    Check(FINITE, curve.finite),
    Check("f(1) = 0", curve.zero_at_one, needs=(FINITE,)),
    Check(CONVEX, curve.convex, needs=(FINITE,)),
    Check("(a) f is strictly convex", curve.strictly_convex, needs=(CONVEX,)),
    Check("(b) f' is Lipschitz", curve.lipschitz, needs=(FINITE,)),
    Check("f' is right", derivatives.first, needs=(FINITE,)),
    Check("f'' is right", derivatives.second, needs=(FINITE,)),
    Check("partials are right", derivatives.partials, needs=(FINITE,)),
    Check("limit of f at 0", at_zero, needs=(CONVEX,)),
    Check("limit of f(t)/t at infinity", at_infinity, needs=(CONVEX,)),
    Check("divergence is not negative", nonnegative, needs=(FINITE,)),
    Check("data processing", data_processing, needs=(FINITE,)),
    Check(DCP, dcp_form.dcp),
    Check("expression is DPP", dcp_form.dpp, needs=(DCP,)),
    Check(FREE, dcp_form.unrestricted, needs=(FINITE, DCP)),
    Check("expression is sum p f(q/p)", dcp_form.value, needs=(FINITE, DCP)),
    Check("the same in variables", dcp_form.fixed_variables, needs=(FINITE, DCP)),
    Check("expression is homogeneous", dcp_form.homogeneous, needs=(FINITE, DCP), barred_by=(FREE,)),
    Check("auxiliary is right", dcp_form.auxiliary, needs=(FINITE, DCP)),
    Check("solvers find the optimum", agreement.solvers_agree, needs=(CONVEX,), barred_by=(DCP,)),
)


def verify_divergence(
    f: FDivergence, interval: tuple[float, float], solvers: tuple[str, ...] | None, seed: int
) -> Verification:
    """Return the verification of a divergence: see `cvxpriv.divergences.verification.verify`."""
    f, unit = _in_units(f)
    low, high = moderate(f, interval)
    setting = DivergenceSetting(f, (low, high), solvers, seed)
    formula = f": f(t) = {f.formula}" if f.formula else ""
    subject = f"{f.name}{formula}, t = q/p in [{low:g}, {high:g}]"
    notes = [
        f"f is larger than {MODERATE:g} {where} t = {new:.6g}: it is checked up to there"
        for new, old, where in ((low, interval[0], "below"), (high, interval[1], "above"))
        if new != old
    ]
    notes += [f"every number is in units of {unit:g}, which is about the size of f around 1"] * (unit != 1.0)
    return Verification(subject, run_checks(CHECKS, setting), (*f.notes, *notes))


def _in_units(f: FDivergence) -> tuple[FDivergence, float]:
    """Return f, divided by a power of ten where it is large or small around 1: solvers are accurate to a size of 1."""
    try:
        with np.errstate(all="ignore"):
            sizes = np.abs(np.asarray([f.f(np.array([1.0 / t, t])) for t in (1.1, 2.0, 4.0)], dtype=float)).max(axis=1)
    except (Exception, SystemExit):  # the user's own function: a check tells
        return f, 1.0
    most, least = sizes.max(), sizes[sizes > 0.0].min(initial=np.inf)
    size = least if least > LARGE else most if 0.0 < most < 1.0 / LARGE else 1.0
    if size == 1.0 or not np.isfinite(size):
        return f, 1.0
    unit = 10.0 ** np.rint(np.log10(size))

    def divided(held: Any) -> Any:
        def new(*at: Any) -> Any:
            found = held(*at)
            return tuple(one / unit for one in found) if isinstance(found, tuple) else found / unit

        return held and new

    functions = {name: divided(getattr(f, name)) for name in ("f", "fprime", "fsecond", "partials", "in_p", "in_q")}
    limits = {name: held and held / unit for name in LIMITS if (held := getattr(f, name)) is not None}

    def form(p: cp.Expression, q: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        value, constraints = f.form(p, q)
        return value / unit, constraints

    return replace(f, **functions, **limits, expression=f.expression and form), float(unit)
