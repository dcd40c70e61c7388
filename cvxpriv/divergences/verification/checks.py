"""The checks of an f-divergence, in the order of the table."""

from __future__ import annotations

import numpy as np

from cvxpriv.divergences.definition import FDivergence
from cvxpriv.divergences.verification import agreement, curve, dcp_form, derivatives
from cvxpriv.divergences.verification.findings import FAILS, HOLDS, Check, Finding, Verification, judged, run_checks
from cvxpriv.divergences.verification.setting import MODERATE, DivergenceSetting, moderate
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
#: Allowed error of a limit that was given, and of one that was read off at 1e12.
GIVEN, READ_OFF = 1e-6, 1e-5


def at_zero(setting: DivergenceSetting) -> Finding:
    """The declared f(0+) is the limit of f."""
    f = setting.f
    with np.errstate(all="ignore"):
        return _limit(setting.values(10.0**-DECADES), f.limit_at_zero, "at_zero", f.at_zero is not None)


def at_infinity(setting: DivergenceSetting) -> Finding:
    """The declared slope at infinity is the limit of f(t)/t."""
    f, t = setting.f, 10.0**DECADES
    with np.errstate(all="ignore"):
        return _limit(setting.values(t) / t, f.limit_slope, "slope_at_infinity", f.slope_at_infinity is not None)


def _limit(values: Array, claimed: float, argument: str, given: bool) -> Finding:
    sign = -1 if argument == "at_zero" else 1
    usable = np.flatnonzero(np.isfinite(values))
    if usable.size < 2 and np.isposinf(claimed) and np.isposinf(values).any():
        return Finding(HOLDS, f"the limit is inf: f outgrows doubles before t = {10.0 ** (sign * DECADES[1]):g}", 0.0)
    if usable.size < 2:
        return Finding(FAILS, f"f has no value near the limit: give {argument} and mend f", float("nan"))
    last, earlier = usable[-1], usable[usable.size // 2]
    found = float(values[last])
    point = {"t": float(10.0 ** (sign * DECADES[last]))}
    source = "as given" if given else "as read off"
    grows = abs(found) > 1e12 or abs(found - values[earlier]) > 1e-3 * max(1.0, abs(found))
    tolerance = GIVEN if given else READ_OFF
    if np.isinf(claimed):
        right, error = bool(grows and found > 0.0 and claimed > 0.0), 0.0
    else:
        error = abs(found - claimed)
        right = bool(error <= tolerance * (1.0 + abs(claimed)))
    if right:
        return Finding(HOLDS, f"the limit is {claimed:.6g}, {source}", error, point)
    what = "f(t)" if argument == "at_zero" else "f(t)/t"
    course = (
        ("grows" if found > 0.0 else "falls") + " without end"
        if grows and abs(found) > 1.0
        else f"is {found:.6g} there"
    )
    remedy = "correct" if given else "pass"
    return Finding(
        FAILS, f"{argument} is {claimed:.6g} {source}, but {what} {course}: {remedy} {argument}", error, point
    )


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
    low, high = moderate(f, interval)
    setting = DivergenceSetting(f, (low, high), solvers, seed)
    formula = f": f(t) = {f.formula}" if f.formula else ""
    subject = f"{f.name}{formula}, t = q/p in [{low:g}, {high:g}]"
    notes = [
        f"f is larger than {MODERATE:g} {where} t = {new:.6g}: it is checked up to there"
        for new, old, where in ((low, interval[0], "below"), (high, interval[1], "above"))
        if new != old
    ]
    return Verification(subject, run_checks(CHECKS, setting), (*f.notes, *notes))
