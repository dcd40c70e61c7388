"""Checks of a penalty's proximal step: against a grid, coordinate by coordinate, its residual, and a solver."""

from __future__ import annotations

import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.divergences.verification.findings import NOT_APPLICABLE, Finding, judged
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array

from .blocks import proximal_block, regime
from .penalties import Penalty
from .penalty_setting import PenaltySetting
from .prox_forms import prox_form

__all__ = ["declared", "least", "stationary", "whole_step"]

#: Of heights, relative: the search refines its grid until a cell is worth less.
LEAST = 1e-9
#: What cone solvers agree to (an array of 20 coordinates), relative.
SOLVED = 1e-7


def least(setting: PenaltySetting) -> Finding:
    """Judge whether no point of a refined grid lies below the proximal step."""
    errors, places = [], []
    for step in setting.steps:
        mine = setting.one_by_one(float(step))
        for s, t in zip(setting.centers, mine, strict=True):
            height = 0.5 * (t - s) ** 2 + step * setting.heights(np.array([t]))[0]
            best = setting.lowest(float(s), float(step))
            errors.append((height - best) / (1.0 + abs(best)))
            places.append({"s": float(s), "step": float(step), "prox": float(t)})
    return judged(
        np.maximum(np.array(errors), 0.0),
        LEAST,
        lambda k: places[k],
        "the proximal step is the least, below and above the step where that problem stops being convex",
        "another t is lower: the formula may hold only for short steps",
    )


def whole_step(setting: PenaltySetting) -> Finding:
    """Judge whether the proximal step of an array is that of each coordinate, and odd."""
    errors, places = [], []
    for step in setting.steps:
        whole = np.asarray(setting.penalty.prox(setting.centers, float(step)))
        single = setting.one_by_one(float(step))
        mirrored = np.asarray(setting.penalty.prox(-setting.centers, float(step)))
        errors.append(np.maximum(np.abs(whole - single), np.abs(whole + mirrored)) / (1.0 + np.abs(single)))
        places += [{"s": float(s), "step": float(step)} for s in setting.centers]
    return judged(
        np.concatenate(errors),
        1e-12,
        lambda k: places[k],
        "an array is done coordinate by coordinate",
        "prox of an array differs from prox of its parts, or prox(-s) is not -prox(s)",
    )


def stationary(setting: PenaltySetting) -> Finding:
    """Judge whether the residual at a proximal step is 0."""
    errors, places = [], []
    for step in setting.steps:
        t = np.asarray(setting.penalty.prox(setting.centers, float(step)))
        off = np.asarray(setting.penalty.residual(t, (t - setting.centers) / step))
        errors.append(off * min(step, 1.0) / (1.0 + np.abs(setting.centers)))
        places += [{"s": float(s), "step": float(step)} for s in setting.centers]
    return judged(
        np.concatenate(errors),
        1e-12,
        lambda k: places[k],
        "a proximal step has residual 0",
        "the residual at a proximal step is not 0: residual and prox are of two penalties",
    )


def declared(setting: PenaltySetting) -> Finding:
    """Judge whether the DCP form has the height of the exact step, in both regimes."""
    try:
        prox_form(setting.penalty)
    except ModelError as error:
        return Finding(NOT_APPLICABLE, str(error))
    s = np.clip(setting.centers, -100.0, 100.0)  # larger centres leave solvers fewer digits
    block = proximal_block(setting.penalty, s.size)
    gaps = np.array([_gap(block, setting.penalty, s, float(step)) for step in setting.steps])
    return judged(
        gaps,
        SOLVED,
        lambda k: {"step": float(setting.steps[k]), "form": regime(setting.penalty, float(setting.steps[k]))},
        "a solver finds the exact step",
        "the DCP form has another least than prox: mend weights, convex or pieces of its ProxForm",
    )


def _gap(block: Block, penalty: Penalty, s: Array, step: float) -> float:
    view = {"center": s, "step": np.asarray(step)}
    solved = block.solve(view)[0]["trial"]
    exact = penalty.prox(s, step)
    low, high = (0.5 * float(((t - s) ** 2).sum()) + step * float(penalty.value(t)) for t in (exact, solved))
    return abs(high - low) / max(1.0, abs(low))
