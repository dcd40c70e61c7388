"""The proximal problem of a penalty as a block: one convex problem, or two convex pieces to compare.

Up to the step 1 / weak_convexity, ||t - s||^2 / 2 + step P(t) is convex, but not as it stands by the rules of DCP: it
is a difference. Written as step (P + weak_convexity ||.||^2 / 2) and the rest of the square it is DCP, and DPP with
`step` in the weights alone (ERRATA ISTDP 3). Beyond that step it is not convex. By coordinate its least then lies on
one of two pieces of |t|, on each of which it is convex, or concave and replaced by its chord, which has the same least.
"""

from collections.abc import Hashable

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Declaration
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array, Values, starts_in
from cvxpriv.penalties.contract import Penalty, Pieces
from cvxpriv.solvers.chain import Solution

CONVEX, PIECES = "convex", "two pieces"
"""The structures of the block: one convex problem, or two pieces whose minima are compared."""

RESOLUTION = 1e-7
"""Size below which a solver's coordinate is a zero that it did not resolve: a sparse model rests on its support."""


def proximal(penalty: Penalty, center: Array, step: float, features: int) -> Array:
    """Return the minimiser of ||t - center||^2 / 2 + step P(t); coordinates after `features` stay at their centre."""
    return np.concatenate([penalty.prox(center[:features], step), center[features:]])


def regime(penalty: Penalty, step: float) -> str:
    """Return whether the proximal problem at this step is convex: step <= 1 / weak_convexity."""
    return CONVEX if step * penalty.weak_convexity <= 1.0 else PIECES


def proximal_block(penalty: Penalty, features: int) -> Block:
    """Minimise ||t - center||^2 / 2 + step P(t), at the state's `center` and `step`.

    It writes `trial`, and `far`: the number of coordinates at which the far one of two pieces was the lower, NaN where
    the problem was convex and nothing was compared. Coordinates after `features`, such as an intercept, stay at their
    centre.

    `features`: Number of features d; the centre has d coordinates, or more.
    """

    def structure(view: Values) -> Hashable:
        return regime(penalty, float(view["step"]))

    def pieces(view: Values) -> Pieces:
        step = float(view["step"])
        both = pieces_at(penalty, step)
        if both is None:
            raise ModelError(
                f"penalty={penalty!r} declares no pieces, and step={step:g} is beyond 1/weak_convexity: pass "
                "engine='closed_form'"
            )
        return both

    def declare(kind: str) -> Declaration:
        return _convex(penalty, features) if kind == CONVEX else _two_pieces(features)

    def parameters(view: Values) -> Values:
        s = view["center"][:features]
        if structure(view) == CONVEX:
            step = float(view["step"])
            rest = max(1.0 - step * penalty.weak_convexity, 0.0)
            return {"s": s, "step": np.asarray(step), "rest": np.asarray(rest)}
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
            return {"t": penalty.prox(_resolved(values["t"]), 0.0)}  # the projection onto the set of a penalty
        both = pieces(view)
        near = np.minimum(_resolved(values["near"]), both.near_end)
        return {"near": np.maximum(near, 0.0), "far": np.maximum(values["far"], both.far_start)}

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


def _resolved(values: Array) -> Array:
    return np.where(np.abs(values) < RESOLUTION, 0.0, values)


def pieces_at(penalty: Penalty, step: float) -> Pieces | None:
    """Return the pieces that a penalty declares at a step beyond 1 / weak_convexity; None where it declares none."""
    make = getattr(penalty, "pieces", None)  # a user's own penalty need not have them
    return None if make is None else make(step)


def _convex(penalty: Penalty, features: int) -> Declaration:
    if not hasattr(penalty, "expression"):
        raise ModelError(
            f"penalty={penalty!r} has no DCP form: solve with engine='closed_form', or give it expression(x), see "
            "cvxpriv.penalties.Penalty"
        )
    t = cp.Variable(features, name="t")
    s, step, rest = cp.Parameter(features, name="s"), cp.Parameter(nonneg=True, name="step"), cp.Parameter(nonneg=True)
    cost, inside = penalty.expression(t)
    return Declaration(
        cp.Minimize(step * cost + 0.5 * rest * cp.sum_squares(t) - s @ t),
        {f"set[{index}]": one for index, one in enumerate(inside)},
        {"t": t},
        {"s": s, "step": step, "rest": rest},
    )


def _two_pieces(features: int) -> Declaration:
    """Return both pieces in one problem: they share no variable."""
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
    """Return the lower piece's minimiser, with the sign of s, and the number of coordinates on the far one."""
    near, far = both.heights(values["near"], values["far"], s)
    beyond = far < near
    return np.sign(s) * np.where(beyond, values["far"], values["near"]), float(beyond.sum())


def _far(penalty: Penalty, trial: Array, step: float) -> float:
    """Return the number of coordinates of an exact step on the far piece; NaN where none was compared or declared."""
    both = None if regime(penalty, step) == CONVEX else pieces_at(penalty, step)
    return float("nan") if both is None else float((np.abs(trial) >= both.far_start).sum())
