"""The built-in divergences: f, its derivatives and limits, and the DCP form of each. Source: IAS, section II."""

import numpy as np

from cvxpriv.divergences import forms
from cvxpriv.divergences.definition import FDivergence
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array

INFINITY = float("inf")


def _log_ratio(over: Array, under: Array) -> Array:
    """Return log(over/under) without a warning at zeros: -inf where over is 0, inf where under is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(over) - np.log(under))


def _ratio(over: Array, under: Array) -> Array:
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(over / under)


def _log_in_p(p: Array, q: Array) -> tuple[Array, Array]:
    return np.log(p / q) + 1.0, 1.0 / p


def _log_in_q(p: Array, q: Array) -> tuple[Array, Array]:
    t = p / q
    return -t, t / q


def _jensen_shannon_in_p(p: Array, q: Array) -> tuple[Array, Array]:
    share = p / (p + q)
    return np.log(2.0 * share), (1.0 - share) / p


def _le_cam_in_p(p: Array, q: Array) -> tuple[Array, Array]:
    total = p + q
    share = q / total
    square = share * share
    return 0.5 - 2.0 * square, 4.0 * square / total


def _hellinger_in_p(p: Array, q: Array) -> tuple[Array, Array]:
    root = np.sqrt(q / p)
    return 1.0 - root, 0.5 * root / p


MUTUAL_INFORMATION = FDivergence(
    "mutual-information",
    f=lambda t: -np.log(t),
    fprime=lambda t: -1.0 / t,
    fsecond=lambda t: 1.0 / t**2,
    expression=forms.relative_entropy,
    formula="-log(t)",
    at_zero=INFINITY,
    slope_at_infinity=0.0,
    partials=lambda p, q: (_log_ratio(p, q) + 1.0, -_ratio(p, q)),
    in_p=_log_in_p,
    in_q=_log_in_q,
)

REVERSE_KL = FDivergence(
    "reverse-kl",
    f=lambda t: t * np.log(t),
    fprime=lambda t: np.log(t) + 1.0,
    fsecond=lambda t: 1.0 / t,
    expression=forms.reverse_relative_entropy,
    formula="t*log(t)",
    at_zero=0.0,
    slope_at_infinity=INFINITY,
    partials=lambda p, q: (-_ratio(q, p), _log_ratio(q, p) + 1.0),
)

JENSEN_SHANNON = FDivergence(
    "jensen-shannon",
    f=lambda t: t * np.log(2.0 * t / (t + 1.0)) + np.log(2.0 / (t + 1.0)),
    fprime=lambda t: np.log(2.0 * t / (t + 1.0)),
    fsecond=lambda t: 1.0 / (t * (t + 1.0)),
    expression=forms.jensen_shannon,
    formula="t*log(2*t/(t+1)) + log(2/(t+1))",
    at_zero=float(np.log(2.0)),
    slope_at_infinity=float(np.log(2.0)),
    partials=lambda p, q: (_log_ratio(2.0 * p, p + q), _log_ratio(2.0 * q, p + q)),
    in_p=_jensen_shannon_in_p,
    in_q=lambda p, q: _jensen_shannon_in_p(q, p),
)

LE_CAM = FDivergence(
    "le-cam",
    f=lambda t: (1.0 - t) * ((1.0 - t) / (2.0 * t + 2.0)),  # a square would overflow far out
    fprime=lambda t: 0.5 - 2.0 / (t + 1.0) ** 2,
    fsecond=lambda t: 4.0 / (t + 1.0) ** 3,
    expression=forms.squares_over(2.0, 2.0),
    formula="(1-t)**2/(2*t+2)",
    at_zero=0.5,
    slope_at_infinity=0.5,
    partials=lambda p, q: (0.5 - 2.0 * (q / (p + q)) ** 2, 0.5 - 2.0 * (p / (p + q)) ** 2),
    in_p=_le_cam_in_p,
    in_q=lambda p, q: _le_cam_in_p(q, p),
    auxiliary=lambda p, q: (forms.square_over(p - q, 2.0 * (p + q)),),
)

HELLINGER = FDivergence(
    "hellinger",
    f=lambda t: (1.0 - np.sqrt(t)) ** 2,
    fprime=lambda t: 1.0 - 1.0 / np.sqrt(t),
    fsecond=lambda t: 0.5 * t**-1.5,
    expression=forms.squared_hellinger,
    formula="(1-sqrt(t))**2",
    at_zero=1.0,
    slope_at_infinity=1.0,
    partials=lambda p, q: (1.0 - np.sqrt(_ratio(q, p)), 1.0 - np.sqrt(_ratio(p, q))),
    in_p=_hellinger_in_p,
    in_q=lambda p, q: _hellinger_in_p(q, p),
    auxiliary=lambda p, q: (np.sqrt(p * q),),
)

CHI_SQUARE = FDivergence(
    "chi-square",
    f=lambda t: (1.0 - t) * ((1.0 - t) / t),
    fprime=lambda t: 1.0 - 1.0 / t**2,
    fsecond=lambda t: 2.0 / t**3,
    expression=forms.squares_over(0.0, 1.0),
    formula="(1-t)**2/t",
    at_zero=INFINITY,
    slope_at_infinity=1.0,
    partials=lambda p, q: (2.0 * _ratio(p, q) - 2.0, 1.0 - _ratio(p, q) ** 2),
    auxiliary=lambda p, q: (forms.square_over(p - q, q),),
)

NEYMAN = FDivergence(
    "neyman",
    f=lambda t: (1.0 - t) ** 2,
    fprime=lambda t: 2.0 * (t - 1.0),
    fsecond=lambda t: np.full_like(t, 2.0),
    expression=forms.squares_over(1.0, 0.0),
    formula="(1-t)**2",
    at_zero=1.0,
    slope_at_infinity=INFINITY,
    partials=lambda p, q: (1.0 - _ratio(q, p) ** 2, 2.0 * _ratio(q, p) - 2.0),
    auxiliary=lambda p, q: (forms.square_over(p - q, p),),
)

TOTAL_VARIATION = FDivergence(
    "total-variation",
    f=lambda t: np.abs(1.0 - t) / 2.0,
    fprime=lambda t: np.where(t >= 1.0, 0.5, -0.5),
    fsecond=np.zeros_like,
    expression=forms.absolute_difference,
    formula="|1-t|/2",
    at_zero=0.5,
    slope_at_infinity=0.5,
    partials=lambda p, q: (np.where(q >= p, -0.5, 0.5), np.where(q >= p, 0.5, -0.5)),
    kinks=(1.0,),
    strictly_convex=False,
)


def alpha(a: float) -> FDivergence:
    """Return the alpha-divergence f = (t^(1-a) - 1) / (a (a - 1))."""
    if not np.isfinite(a) or a in (0.0, 1.0):
        remedy = "pass mutual-information for a = 1, reverse-kl for a = 0"
        raise ModelError(
            f"a={a!r} has no alpha-divergence of this form: choose a finite a other than 0 and 1, or {remedy}"
        )
    scale = 1.0 / (a * (a - 1.0))
    return FDivergence(
        f"alpha:{a:g}",
        f=lambda t: scale * (t ** (1.0 - a) - 1.0),
        fprime=lambda t: -(t**-a) / a,
        fsecond=lambda t: t ** (-a - 1.0),
        expression=forms.power(a),
        formula=f"(t**{1.0 - a:g} - 1)/({a * (a - 1.0):g})",
        at_zero=-scale if a < 1.0 else INFINITY,
        slope_at_infinity=0.0 if a > 0.0 else INFINITY,
        partials=lambda p, q: (_ratio(p, q) ** (a - 1.0) / (a - 1.0) - scale, -(_ratio(p, q) ** a) / a),
        auxiliary=lambda p, q: (forms.weighted_mean(p, q, a),),
    )


def hockey_stick(gamma: float) -> FDivergence:
    """Return the hockey-stick divergence f = (1 - gamma t)_+, E_gamma of p against q; f(1) = 0 needs gamma >= 1."""
    if not np.isfinite(gamma) or gamma < 1.0:
        raise ModelError(
            f"gamma={gamma!r} makes no hockey-stick divergence: choose a finite gamma >= 1, as exp(epsilon)"
        )
    return FDivergence(
        f"hockey-stick:{gamma:g}",
        f=lambda t: np.maximum(1.0 - gamma * t, 0.0),
        fprime=lambda t: np.where(gamma * t >= 1.0, 0.0, -gamma),
        fsecond=np.zeros_like,
        expression=forms.hinge(gamma),
        formula=f"max(1 - {gamma:g}*t, 0)",
        at_zero=1.0,
        slope_at_infinity=0.0,
        partials=lambda p, q: (np.where(gamma * q >= p, 0.0, 1.0), np.where(gamma * q >= p, 0.0, -gamma)),
        kinks=(1.0 / gamma,),
        strictly_convex=False,
    )


BUILT_IN = {
    one.name: one
    for one in (MUTUAL_INFORMATION, REVERSE_KL, JENSEN_SHANNON, LE_CAM, HELLINGER, CHI_SQUARE, NEYMAN, TOTAL_VARIATION)
}

#: Families with one number, written `name:number`.
FAMILIES = {"alpha": alpha, "hockey-stick": hockey_stick}
