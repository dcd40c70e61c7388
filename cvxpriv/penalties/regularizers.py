"""Convex regularisers R(x): value, DCP form, proximal step, and how far a point is from stationary.

A set of allowed coefficients is a regulariser too: `nonneg` and `box` are 0 inside and have their constraint in the DCP
form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from cvxpriv.errors import ModelError, suggest
from cvxpriv.numerics.arrays import Array

__all__ = ["Regularizer", "box", "elastic_net", "group", "nonnegative", "regularizer_named", "restricted"]

Form = tuple[cp.Expression | float, list[cp.Constraint]]


@dataclass(frozen=True)
class Regularizer:
    """A convex R(x).

    Attributes
    ----------
    name : str
    value : callable
        x to R(x); inf outside its set.
    expression : callable
        A cvxpy expression to (R of it, constraints).
    prox : callable
        (s, step) to the least of R(t) + ||t - s||^2 / (2 step).
    distance : callable
        (x, g) to the Euclidean distance of -g to the subgradients of R at x: 0 exactly where x minimises R + g'x.
    ridge : float, optional
        c when R(x) = (c/2) ||x||^2, so that a quadratic step has a linear system; None otherwise.
    separable : bool
        Whether R is a sum of functions of one coordinate each.
    """

    name: str
    value: Callable[[Array], float]
    expression: Callable[[cp.Expression], Form]
    prox: Callable[[Array, float], Array]
    distance: Callable[[Array, Array], float]
    ridge: float | None = None
    separable: bool = False

    def __repr__(self) -> str:
        return f"Regularizer({self.name!r})"


def _shrunk(s: Array, by: float) -> Array:
    return np.asarray(np.sign(s) * np.maximum(np.abs(s) - by, 0.0))


def _lasso_distance(x: Array, g: Array, weight: float) -> float:
    """Of -g to weight times the subgradients of the l1 norm."""
    off = np.where(x != 0.0, np.abs(g + weight * np.sign(x)), np.maximum(np.abs(g) - weight, 0.0))
    return float(np.linalg.norm(off))


NONE = Regularizer(
    "none",
    value=lambda x: 0.0,
    expression=lambda x: (0.0, []),
    prox=lambda s, step: s,
    distance=lambda x, g: float(np.linalg.norm(g)),
    ridge=0.0,
    separable=True,
)
RIDGE = Regularizer(
    "l2",
    value=lambda x: float(0.5 * x @ x),
    expression=lambda x: (0.5 * cp.sum_squares(x), []),
    prox=lambda s, step: s / (1.0 + step),
    distance=lambda x, g: float(np.linalg.norm(x + g)),
    ridge=1.0,
    separable=True,
)
LASSO = Regularizer(
    "l1",
    value=lambda x: float(np.abs(x).sum()),
    expression=lambda x: (cp.norm1(x), []),
    prox=_shrunk,
    distance=lambda x, g: _lasso_distance(x, g, 1.0),
    separable=True,
)


def elastic_net(ratio: float) -> Regularizer:
    """Return ratio ||x||_1 + (1 - ratio)/2 ||x||^2.

    Raises
    ------
    ModelError
        The ratio is not in [0, 1].
    """
    if not 0.0 <= ratio <= 1.0:
        raise ModelError(f"ratio={ratio!r} of the elastic net is not in [0, 1]: 1 is l1, 0 is l2")
    rest = 1.0 - ratio
    return Regularizer(
        f"elastic-net:{ratio:g}",
        value=lambda x: float(ratio * np.abs(x).sum() + 0.5 * rest * x @ x),
        expression=lambda x: (ratio * cp.norm1(x) + 0.5 * rest * cp.sum_squares(x), []),
        prox=lambda s, step: _shrunk(s, step * ratio) / (1.0 + step * rest),
        distance=lambda x, g: _lasso_distance(x, g + rest * x, ratio),
        ridge=1.0 if ratio == 0.0 else None,
        separable=True,
    )


def group(groups: list[list[int]]) -> Regularizer:
    """Return the sum over groups of sqrt(size) ||x_group||, which drops whole groups (Yuan and Lin 2006).

    Raises
    ------
    ModelError
        A group is empty, or an index stands in two groups.
    """
    indices = [np.asarray(one, dtype=np.intp) for one in groups]
    flat = np.concatenate([*indices, np.zeros(0, dtype=np.intp)])
    if any(one.size == 0 for one in indices) or np.unique(flat).size != flat.size:
        raise ModelError(f"groups={groups!r} overlap or hold an empty one: give every index to at most one group")
    weights = [float(np.sqrt(one.size)) for one in indices]

    def value(x: Array) -> float:
        return float(sum(w * np.linalg.norm(x[one]) for w, one in zip(weights, indices, strict=True)))

    def expression(x: cp.Expression) -> Form:
        return sum(w * cp.norm2(x[one]) for w, one in zip(weights, indices, strict=True)), []

    def prox(s: Array, step: float) -> Array:
        t = s.copy()
        for w, one in zip(weights, indices, strict=True):
            size = float(np.linalg.norm(s[one]))
            t[one] *= max(0.0, 1.0 - step * w / size) if size > 0.0 else 0.0
        return t

    def distance(x: Array, g: Array) -> float:
        off = g.copy()
        for w, one in zip(weights, indices, strict=True):
            size = float(np.linalg.norm(x[one]))
            off[one] = g[one] + w * x[one] / size if size > 0.0 else _outside_ball(g[one], w)
        return float(np.linalg.norm(off))

    return Regularizer("group", value, expression, prox, distance)


def box(low: float, high: float) -> Regularizer:
    """Return the set low <= x <= high: 0 inside, inf outside.

    Raises
    ------
    ModelError
        low is not below high.
    """
    if not low < high:
        raise ModelError(f"box={low!r}..{high!r} holds no interval: choose low < high")
    name = "nonneg" if (low, high) == (0.0, np.inf) else f"box:{low:g}:{high:g}"

    def expression(x: cp.Expression) -> Form:
        bounds = [x >= low] if np.isfinite(low) else []
        return 0.0, [*bounds, x <= high] if np.isfinite(high) else bounds

    def distance(x: Array, g: Array) -> float:
        # -g may point out of the box at its walls, and must vanish inside.
        free = np.where(x <= low, np.minimum(g, 0.0), np.where(x >= high, np.maximum(g, 0.0), g))
        return float(np.linalg.norm(free))

    return Regularizer(
        name,
        value=lambda x: 0.0 if bool(((x >= low) & (x <= high)).all()) else float("inf"),
        expression=expression,
        prox=lambda s, step: np.clip(s, low, high),
        distance=distance,
        separable=True,
    )


def nonnegative() -> Regularizer:
    """Return the set x >= 0."""
    return box(0.0, float("inf"))


def restricted(regularizer: Regularizer, bounds: Regularizer) -> Regularizer:
    """Return a regulariser within a box: R(x) where the bounds hold, inf elsewhere.

    Its `distance` is that of x to prox(x - g, 1), which is 0 exactly where x minimises R + g'x in the box.

    Raises
    ------
    ModelError
        `bounds` is no `nonneg` or `box`, or R ties coordinates together: the proximal step is then no clipped one.
    """
    if not bounds.name.startswith(("nonneg", "box:")):
        raise ModelError(f"sets={bounds.name!r} is no ready set: pass 'nonneg' or 'box:<low>:<high>'")
    if not regularizer.separable:
        raise ModelError(
            f"regularizer={regularizer.name!r} ties coordinates together and has no ready step within "
            f"{bounds.name!r}: add the set with constrain(...)"
        )

    def prox(s: Array, step: float) -> Array:
        return bounds.prox(regularizer.prox(s, step), step)

    def expression(x: cp.Expression) -> Form:
        cost, inside = regularizer.expression(x)
        return cost, [*inside, *bounds.expression(x)[1]]

    return Regularizer(
        f"{regularizer.name} within {bounds.name}",
        value=lambda x: regularizer.value(x) + bounds.value(x),
        expression=expression,
        prox=prox,
        distance=lambda x, g: float(np.linalg.norm(x - prox(x - g, 1.0))),
        separable=True,
    )


PLAIN = {one.name: one for one in (NONE, RIDGE, LASSO)} | {"nonneg": nonnegative()}
PARTS = ("name", "value", "expression", "prox", "distance", "ridge")


def regularizer_named(regularizer: str | Regularizer) -> Regularizer:
    """Return the regulariser of a name: `l2`, `l1`, `none`, `nonneg`, `elastic-net:<ratio>`, `box:<low>:<high>`.

    Raises
    ------
    ModelError
        There is no such name, its numbers are out of range, or an object lacks a part of the contract (named).

    Examples
    --------
    >>> regularizer_named("elastic-net:0.5").prox(np.array([2.0, 0.1]), 1.0)
    array([1., 0.])
    """
    if isinstance(regularizer, Regularizer):
        return regularizer
    if not isinstance(regularizer, str):
        lacking = [part for part in PARTS if not hasattr(regularizer, part)]
        raise ModelError(
            f"regularizer={regularizer!r} is no Regularizer, it lacks {', '.join(lacking) or 'the class'}: "
            "pass a name, or cpv.learning.Regularizer(...)"
        )
    if regularizer in PLAIN:
        return PLAIN[regularizer]
    kind, *numbers = regularizer.split(":")
    families: dict[str, tuple[Callable[..., Regularizer], int]] = {"elastic-net": (elastic_net, 1), "box": (box, 2)}
    known = [*PLAIN, "elastic-net:<ratio>", "box:<low>:<high>"]
    if kind not in families:
        raise ModelError(f"regularizer={regularizer!r} is not known: {suggest(regularizer, known)}")
    make, count = families[kind]
    try:
        values = [float(number) for number in numbers]
    except ValueError:
        values = []
    if len(values) != count:
        example = {"elastic-net": "elastic-net:0.5", "box": "box:-1:1"}[kind]
        raise ModelError(f"regularizer={regularizer!r} needs {count} number(s): write, for example, {example}")
    return make(*values)


def _outside_ball(g: Array, radius: float) -> Array:
    """What of g is outside the ball of subgradients at 0."""
    size = float(np.linalg.norm(g))
    return g * (max(0.0, size - radius) / size) if size > 0.0 else g
