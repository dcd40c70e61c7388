"""The one block of ISTDP: the proximal problem (4), which both the paper's step and GIST's are."""

from __future__ import annotations

from collections.abc import Hashable

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Declaration
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array, Values, starts_in
from cvxpriv.solvers.chain import Solution

from .closed_form import proximal
from .penalties import Penalty
from .prox_forms import Pieces, prox_form

__all__ = ["CONVEX", "PIECES", "proximal_block", "regime"]

CONVEX, PIECES = "convex", "two pieces"
"""The structures of the block: one convex problem, or two pieces whose leasts are compared."""

RESOLUTION = 1e-7
"""A solver's coordinate below this is a zero that it did not resolve: the support is the point of the model."""


def regime(penalty: Penalty, step: float) -> str:
    """Return whether the proximal problem at this step is convex: step <= 1 / weak_convexity."""
    return CONVEX if step * penalty.weak_convexity <= 1.0 else PIECES


def proximal_block(penalty: Penalty, features: int) -> Block:
    """ISTDP (4): minimise ||t - center||^2 / 2 + step P(t), at the state's `center` and `step`.

    It writes `trial`, and `far`: at how many coordinates the far one of two pieces was the lower, NaN where the problem
    was convex and nothing was compared. The intercept, the last coordinate, stays at its centre.

    Parameters
    ----------
    penalty : Penalty
    features : int
        d; the centre has d coordinates, or one more.
    """

    def structure(view: Values) -> Hashable:
        return regime(penalty, float(view["step"]))

    def pieces(view: Values) -> Pieces:
        make = prox_form(penalty).pieces
        if make is None:
            raise ModelError(
                f"penalty={penalty!r} declares no pieces, and step={float(view['step']):g} is beyond 1/weak_convexity: "
                "pass line_search=Search(longest=...), or engine='closed_form'"
            )
        return make(float(view["step"]))

    def declare(kind: str) -> Declaration:
        return _convex(penalty, features) if kind == CONVEX else _two_pieces(features)

    def parameters(view: Values) -> Values:
        s = view["center"][:features]
        if structure(view) == CONVEX:
            weights = prox_form(penalty).weights(float(view["step"]))
            return {"s": s, **{name: np.asarray(value) for name, value in weights.items()}}
        both = pieces(view)
        ends = {"bend": both.bend, "slope": both.slope, "end": both.near_end, "start": both.far_start}
        return {"size": np.abs(s), "plateau": np.asarray(both.plateau), **{k: np.asarray(v) for k, v in ends.items()}}

    def embed(point: Values, at: Values) -> Values:
        t = point["trial"][:features]
        if structure(at) == CONVEX:
            return {"t": t}
        both, size = pieces(at), np.abs(t)
        near, far = both.leasts(at["center"][:features])
        taken = size >= both.far_start
        return {"near": np.where(taken, near, np.minimum(size, both.near_end)), "far": np.where(taken, size, far)}

    def repair(values: Values, view: Values) -> Values:
        if structure(view) == CONVEX:
            return {"t": np.where(np.abs(values["t"]) < RESOLUTION, 0.0, values["t"])}
        both = pieces(view)
        return {"near": _resolved(values["near"], both), "far": np.maximum(values["far"], both.far_start)}

    def write(solution: Solution, view: Values) -> Values:
        center = view["center"]
        if structure(view) == CONVEX:
            trial, far = solution.values["t"], np.nan
        else:
            trial, far = _lower(pieces(view), solution.values, center[:features])
        return {"trial": np.concatenate([trial, center[features:]]), "far": np.asarray(far)}

    def direct(state: Values) -> Values:
        starts = range(starts_in(state))
        trial = [proximal(penalty, state["center"][i], float(state["step"][i]), features) for i in starts]
        far = [_far(penalty, trial[i][:features], float(state["step"][i])) for i in starts]
        return {"trial": np.stack(trial), "far": np.array(far)}

    return Block(
        name="prox",
        reads=frozenset({"center", "step"}),
        writes=frozenset({"trial", "far"}),
        declare=declare,
        parameters=parameters,
        embed=embed,
        repair=repair,
        write=write,
        structure=structure,
        direct=direct,
    )


def _resolved(near: Array, both: Pieces) -> Array:
    return np.where(near < RESOLUTION, 0.0, np.minimum(near, both.near_end))


def _convex(penalty: Penalty, features: int) -> Declaration:
    form = prox_form(penalty)
    if form.convex is None:
        raise ModelError(f"penalty={penalty!r} declares no convex form")
    t = cp.Variable(features, name="t")
    s = cp.Parameter(features, name="s")
    weights = {name: cp.Parameter(nonneg=True, name=name) for name in form.weights(1.0)}
    return Declaration(cp.Minimize(form.convex(t, weights) - s @ t), {}, {"t": t}, {"s": s, **weights})


def _two_pieces(features: int) -> Declaration:
    """Both pieces in one problem: they share no variable."""
    near, far = cp.Variable(features, name="near"), cp.Variable(features, name="far")
    size = cp.Parameter(features, nonneg=True, name="size")
    names = ("bend", "slope", "end", "start", "plateau")
    weight = {name: cp.Parameter(nonneg=True, name=name) for name in names}
    low = 0.5 * weight["bend"] * cp.sum_squares(near) + weight["slope"] * cp.sum(near) - size @ near
    high = 0.5 * cp.sum_squares(far) - size @ far + features * weight["plateau"]
    return Declaration(
        cp.Minimize(low + high),
        {"near >= 0": near >= 0, "near <= end": near <= weight["end"], "far >= start": far >= weight["start"]},
        {"near": near, "far": far},
        {"size": size, **weight},
    )


def _lower(both: Pieces, values: Values, s: Array) -> tuple[Array, float]:
    """Return the lower piece's least, with the sign of s, and at how many coordinates that is the far one."""
    near, far = both.heights(values["near"], values["far"], s)
    beyond = far < near
    return np.sign(s) * np.where(beyond, values["far"], values["near"]), float(beyond.sum())


def _far(penalty: Penalty, trial: Array, step: float) -> float:
    """How many coordinates of an exact step lie on the far piece; NaN where none was compared, or none is declared."""
    if regime(penalty, step) == CONVEX:
        return float("nan")
    try:
        make = prox_form(penalty).pieces
    except ModelError:  # a user's own penalty need not have a DCP form
        return float("nan")
    return float("nan") if make is None else float((np.abs(trial) >= make(step).far_start).sum())
