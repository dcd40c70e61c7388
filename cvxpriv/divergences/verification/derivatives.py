"""Checks of f', f'' and the partial derivatives of p f(q/p), against values of f alone."""

import warnings
from collections.abc import Callable

import numpy as np

from cvxpriv.divergences.verification.findings import FAILS, NOT_APPLICABLE, Finding, judged
from cvxpriv.divergences.verification.setting import ROUNDING, DivergenceSetting
from cvxpriv.numerics.arrays import Array

POINTS = 400
COMPLEX_STEP = 1e-20
#: Relative steps of the extrapolated differences: their error is about the fourth power of a step.
STEPS = (1e-3, 1e-4, 1e-5)
#: Allowed relative errors of a derivative: against the complex step, which has no truncation, and against differences.
EXACT, FIRST, SECOND = 1e-10, 1e-7, 1e-5


def first(setting: DivergenceSetting) -> Finding:
    """f' as given is the derivative of f."""
    if setting.f.fprime is None:
        return Finding(NOT_APPLICABLE, "no fprime is given: differences or partials are used")
    t = setting.smooth_points(POINTS)
    given = setting.slopes(t)
    true, tolerance = numerical_slope(setting.values, t, setting.f.f)
    return judged(
        np.abs(given - true),
        tolerance,
        lambda k: {"t": float(t[k])},
        "gradients and closed forms use the derivative of f itself",
        lambda k: (
            f"fprime gives {given[k]:.6g} where f rises by {true[k]:.6g}: closed forms would solve another problem"
        ),
    )


def second(setting: DivergenceSetting) -> Finding:
    """f'' as given is the second derivative of f."""
    if setting.f.fsecond is None:
        return Finding(NOT_APPLICABLE, "no fsecond is given: differences are used")
    t = setting.smooth_points(POINTS)
    with np.errstate(all="ignore"):
        given = np.broadcast_to(setting.f.second_derivative(t), t.shape)
    true, tolerance = _curvature(setting, t)
    return judged(
        np.abs(given - true),
        tolerance,
        lambda k: {"t": float(t[k])},
        "Newton steps and moduli use the second derivative of f itself",
        lambda k: f"fsecond gives {given[k]:.6g} where it is {true[k]:.6g}: Newton steps and moduli would be wrong",
    )


def partials(setting: DivergenceSetting) -> Finding:
    """The partial derivatives as given are f(t) - t f'(t) and f'(t), the second ones t^2 f''(t)/p and f''(t)/p."""
    f = setting.f
    if f.partials is None and f.in_p is None and f.in_q is None:
        return Finding(NOT_APPLICABLE, "no partials are given: f(t) - t f'(t) and f'(t) are used")
    t = setting.smooth_points(POINTS)
    p = np.exp(setting.random(2).uniform(np.log(1e-6), 0.0, t.size))
    first = _first_partials(setting, t, p)
    return first if first.verdict == FAILS else _second_partials(setting, t, p, first)


def _first_partials(setting: DivergenceSetting, t: Array, p: Array) -> Finding:
    with np.errstate(all="ignore"):
        in_p, in_q = setting.f.gradients(p, p * t)
    slope, tolerance = numerical_slope(setting.values, t, setting.f.f)
    values = setting.values(t)
    noise = t * tolerance + ROUNDING * (1.0 + np.abs(values))
    errors = np.concatenate([np.abs(in_p - (values - t * slope)), np.abs(in_q - slope)])
    return judged(
        errors,
        np.concatenate([noise, tolerance]),
        lambda k: {"p": float(p[k % t.size]), "q": float((p * t)[k % t.size])},
        "the gradients of p f(q/p) are right, whatever p is",
        lambda k: f"the one in {'pq'[k // t.size]} is wrong: they must be f(t) - t f'(t) and f'(t) at t = q/p",
    )


def _second_partials(setting: DivergenceSetting, t: Array, p: Array, otherwise: Finding) -> Finding:
    """Return the second derivatives of `in_p` and `in_q`, times p / t^2 and p; `otherwise` where none is given."""
    curvature, tolerance = _curvature(setting, t)
    for name, side, scale in (("p", setting.f.in_p, p / t**2), ("q", setting.f.in_q, p)):
        if side is None:
            continue
        with np.errstate(all="ignore"):
            given = side(p, p * t)[1] * scale
        found = judged(
            np.abs(given - curvature),
            tolerance,
            lambda k: {"p": float(p[k]), "q": float((p * t)[k])},
            otherwise.meaning,
            f"the second one of in_{name} is wrong: it must be {'t^2 ' if name == 'p' else ''}f''(t)/p at t = q/p",
        )
        if found.verdict == FAILS:
            return found
    return otherwise


def numerical_slope(values: Callable[[Array], Array], t: Array, f: Callable[[Array], Array]) -> tuple[Array, Array]:
    """Return f'(t) from values of f alone, and a bound of its error."""
    differences, off = _extrapolated(values, t)
    size = FIRST * (np.abs(differences) + (1.0 + np.abs(values(t))) / t) + off
    exact = _complex_step(f, t)
    agrees = np.abs(exact - differences) <= size
    return np.where(agrees, exact, differences), np.where(agrees, EXACT * (1.0 + np.abs(exact)), size)


def _curvature(setting: DivergenceSetting, t: Array) -> tuple[Array, Array]:
    """Return f''(t) from values of f alone, and a bound of its error."""
    curvature, off = _extrapolated(lambda at: numerical_slope(setting.values, at, setting.f.f)[0], t)
    return curvature, SECOND * (np.abs(curvature) + (1.0 + np.abs(setting.values(t))) / t**2) + off


def _extrapolated(values: Callable[[Array], Array], t: Array) -> tuple[Array, Array]:
    """Return differences, extrapolated once, and their error bounds; of several steps the one with the least error.

    A step that is right for a power is too long for an exponential.
    """

    def central(step: float) -> Array:
        return np.asarray((values(t * (1.0 + step)) - values(t * (1.0 - step))) / (2.0 * step * t))

    best, least = np.full(t.shape, np.nan), np.full(t.shape, np.inf)
    noise = ROUNDING * np.abs(values(t)) / t
    for step in STEPS:
        half, whole = central(step / 2.0), central(step)
        # The error of the extrapolation is about the square of the relative correction that it makes.
        correction = np.abs(half - whole)
        off = correction * np.minimum(1.0, correction / np.maximum(np.abs(half), np.finfo(float).tiny)) + noise / step
        better = off < least
        best, least = np.where(better, (4.0 * half - whole) / 3.0, best), np.where(better, off, least)
    return best, least


def _complex_step(f: Callable[[Array], Array], t: Array) -> Array:
    """Return Im f(t + i h) / h, or NaN where f does not take complex numbers."""
    nothing = np.full(t.shape, np.nan)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            found = np.asarray(f(t + 1j * COMPLEX_STEP * t))
        except Exception:  # a function of real numbers may raise anything at complex ones
            return nothing
    if not np.iscomplexobj(found) or found.shape != t.shape:
        return nothing
    return np.asarray(found.imag / (COMPLEX_STEP * t))
