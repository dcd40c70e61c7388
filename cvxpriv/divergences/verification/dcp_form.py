"""Checks of the DCP form: a convex, homogeneous expression with value sum p f(q/p) wherever p, q >= 0."""

from typing import Literal

import cvxpy as cp
import numpy as np

from cvxpriv.divergences.builtin import BUILT_IN
from cvxpriv.divergences.definition import FDivergence
from cvxpriv.divergences.verification.agreement import FormAt, is_dpp, joint_form, why_not_dcp
from cvxpriv.divergences.verification.findings import FAILS, HOLDS, NOT_APPLICABLE, Finding, judged
from cvxpriv.divergences.verification.setting import SMALLEST, DivergenceSetting
from cvxpriv.numerics.arrays import Array

SHAPES = ((3,), (2, 3))
"""The shapes that the models pass: vectors and matrices."""
TOLERANCE = 1e-6
"""Tolerance relative to the size of the terms: the accuracy of solvers where p or q is 0."""
RANDOM, CELLS = 6, 2

Pair = tuple[Array, Array]


def dcp(setting: DivergenceSetting) -> Finding:
    """The form is jointly convex in variables P and Q by cvxpy's rules."""
    if setting.f.expression is None:
        return Finding(NOT_APPLICABLE, "no expression is given: adaptive tangents do its job")
    for shape in SHAPES:
        if wrong := why_not_dcp(joint_form(setting.f, shape)):
            meaning = f"not DCP: {wrong}; write it with cvxpy's atoms, or leave expression out"
            return Finding(FAILS, meaning, worst_point={"shape": " x ".join(map(str, shape))})
    return Finding(HOLDS, "blocks in which p and q both move are one convex problem")


def dpp(setting: DivergenceSetting) -> Finding:
    """The form stays DPP where P, or Q, is a Parameter."""
    sides: tuple[Literal["p", "q"], ...] = ("p", "q")
    for side in sides:
        if not is_dpp(setting.f, SHAPES[1], side):
            meaning = f"not DPP with a Parameter for {side}: such a block is compiled again at every solve"
            return Finding(FAILS, meaning, worst_point={"Parameter": side})
    return Finding(HOLDS, "blocks with p or q fixed are compiled once")


def value(setting: DivergenceSetting) -> Finding:
    """The form's value with p and q fixed is sum p f(q/p): at zeros, at extreme ratios, and where sums are not 1."""
    points = [*_single_cells(setting), *_random_cells(setting)]
    if not FormAt(setting.f, 1).constraints:
        points += _zeros(setting)  # a cone has no interior there: q^0.1 of a solver's 1e-12 is 0.06
    return _compared(setting, points, "parameter")


def fixed_variables(setting: DivergenceSetting) -> Finding:
    """The same where p and q are variables that equalities fix, as in the joint block."""
    return _compared(setting, _random_cells(setting), "variable")


def unrestricted(setting: DivergenceSetting) -> Finding:
    """The side constraints exclude no p, q >= 0 at which the divergence is finite."""
    form = FormAt(setting.f, 1)
    if not form.constraints:
        return Finding(NOT_APPLICABLE, "the form has no side constraints")
    points = [*_single_cells(setting), *_zeros(setting)]
    excluded = [_cells((p, q)) for p, q in points if np.isposinf(_value(setting, form, p, q))]
    if excluded:
        meaning = (
            f"the side constraints cannot hold at {len(excluded)} of {len(points)} points: mechanisms are excluded"
        )
        return Finding(FAILS, meaning, worst_point=excluded[0])
    return Finding(HOLDS, "no mechanism is excluded by the way in which the divergence is written")


def homogeneous(setting: DivergenceSetting) -> Finding:
    """The form at (c p, c q) is c times that at (p, q), so that weights enter as W*P and W*Q."""
    form, pairs = FormAt(setting.f, CELLS), _random_cells(setting)[:3]
    points = [(factor, p, q) for factor in (0.1, 7.0, 100.0) for p, q in pairs]
    once = np.array([_value(setting, form, p, q) for _, p, q in points])
    scaled = np.array([_value(setting, form, factor * p, factor * q) / factor for factor, p, q in points])
    sizes = [_size(setting, p, q) + _size(setting, factor * p, factor * q) / factor for factor, p, q in points]
    tolerances = TOLERANCE * np.array(sizes)  # each of the two solves may be off
    return judged(
        _distance(scaled, once),
        tolerances,
        lambda k: _cells(points[k][1:]),
        "weights may be passed as W*P and W*Q",
        lambda k: (
            f"{points[k][0]:g} times p and q do not give {points[k][0]:g} times the value: a term lacks its weight"
        ),
    )


def auxiliary(setting: DivergenceSetting) -> Finding:
    """The given values of the form's own variables satisfy its constraints and give its value."""
    if setting.f.auxiliary is None:
        return Finding(
            NOT_APPLICABLE, "no auxiliary is given: where a form has variables of its own, a solve finds them"
        )
    points = _random_cells(setting)
    return judged(
        np.array([_auxiliary_error(setting.f, p, q) for p, q in points]),
        TOLERANCE * np.array([_size(setting, p, q) for p, q in points]),
        lambda k: _cells(points[k]),
        "the form's own variables are set without a solve",
        "auxiliary does not give the variables of the form, in the order in which they are made",
    )


def _value(setting: DivergenceSetting, form: FormAt, p: Array, q: Array) -> float:
    return form.value(p, q, float(setting.f.between(p, q)), TOLERANCE * _size(setting, p, q))


def _compared(setting: DivergenceSetting, points: list[Pair], leaf: Literal["parameter", "variable"]) -> Finding:
    forms = {size: FormAt(setting.f, size, leaf) for size in {p.size for p, _ in points}}
    true = np.array([float(setting.f.between(p, q)) for p, q in points])
    tolerances = TOLERANCE * np.array([_size(setting, p, q) for p, q in points])
    found = np.array([_value(setting, forms[p.size], p, q) for p, q in points])
    errors = _distance(found, true)
    hint = "" if (errors <= tolerances).all() else _hint(setting, points, found, true, tolerances)
    return judged(
        errors,
        tolerances,
        lambda k: _cells(points[k]),
        "cone programs minimise the divergence that f says",
        lambda k: f"the expression is {found[k]:.6g} where sum p f(q/p) is {true[k]:.6g}{hint}",
    )


def _hint(setting: DivergenceSetting, points: list[Pair], found: Array, true: Array, tolerances: Array) -> str:
    """Return a guess at what the expression computes instead; empty if it is none of the usual mistakes."""

    def of(f: FDivergence, *, swapped: bool = False) -> Array:
        with np.errstate(all="ignore"):
            return np.array([float(f.between(q, p) if swapped else f.between(p, q)) for p, q in points])

    shift = np.array([float((q - p).sum()) for p, q in points])
    usual = {
        "it is sum q f(p/q), so swap P and Q": of(setting.f, swapped=True),
        "it is off by sum (q - p), as kl_div is from rel_entr": true + shift,
        "it is off by sum (p - q), as kl_div is from rel_entr": true - shift,
        "it is twice that": 2.0 * true,
        "it is half of that": 0.5 * true,
        "it has the opposite sign": -true,
        **{f"it is that of {name}": of(other) for name, other in BUILT_IN.items()},
    }
    for hint, other in usual.items():
        if (_distance(found, other) <= tolerances).all():
            return f"; {hint}"
    if np.isneginf(found).any():
        return "; it is unbounded below, so a side constraint is missing"
    if (np.isposinf(found) & np.isfinite(true)).any():
        return "; its side constraints exclude the point"
    return ""


def _distance(values: Array, others: Array) -> Array:
    """Return |values - others|, 0 where both are the same infinity."""
    with np.errstate(invalid="ignore"):
        return np.where(values == others, 0.0, np.abs(values - others))


def _auxiliary_error(f: FDivergence, p: Array, q: Array) -> float:
    """Return the worst violation of the form's constraints, and its value's error, at given variables."""
    expression, constraints = f.form(cp.Constant(p), cp.Constant(q))
    own = {variable.id: variable for part in (expression, *constraints) for variable in part.variables()}
    given = f.auxiliary(p, q) if f.auxiliary is not None else ()
    for key, held in zip(sorted(own), given, strict=True):
        own[key].value = held
    violated = max((float(np.max(one.residual)) for one in constraints), default=0.0)
    return max(violated, abs(float(expression.value) - float(f.between(p, q))))


def _single_cells(setting: DivergenceSetting) -> list[Pair]:
    """Return one cell at a time: the ends of the working interval, 1 and kinks, at three scales."""
    low, high = setting.conic_interval
    kinks = [kink for kink in setting.f.kinks if low < kink < high]
    ratios = np.array([low, low**0.5, 1.0, *kinks, high**0.5, high])
    below, above = 1.0 / np.maximum(ratios, 1.0), np.minimum(ratios, 1.0)
    pairs = [
        (p, q, max(least, SMALLEST / min(p, q)))
        for least in (0.01, 1.0, 30.0)
        for p, q in zip(below, above, strict=True)
    ]
    return [(np.array([scale * p]), np.array([scale * q])) for p, q, scale in pairs]


def _zeros(setting: DivergenceSetting) -> list[Pair]:
    """Return cells where p or q is 0 and the divergence is finite."""
    f = setting.f
    pairs = [(0.0, 0.0)]
    pairs += [(0.4, 0.0)] * bool(np.isfinite(f.limit_at_zero)) + [(0.0, 0.4)] * bool(np.isfinite(f.limit_slope))
    return [(np.array([p]), np.array([q])) for p, q in pairs]


def _random_cells(setting: DivergenceSetting) -> list[Pair]:
    return [setting.weights(setting.random(5 + k), CELLS) for k in range(RANDOM)]


def _size(setting: DivergenceSetting, p: Array, q: Array) -> float:
    return 1.0 + float(np.abs(setting.f.terms(p, q)).sum() + (p + q).sum())


def _cells(pair: Pair) -> dict[str, object]:
    p, q = pair
    return {"p": float(p[0]), "q": float(q[0])} if p.size == 1 else {"p": p, "q": q}
