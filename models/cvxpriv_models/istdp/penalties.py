"""Sparse penalties P(theta) = sum_i p(|theta_i|): value, proximal step in every regime, stationarity distance.

MCP, SCAD and capped l1 are not convex: they stop punishing a coefficient that is surely not zero, and so leave it
unbiased. Their proximal step is the least of h(t) = (t - s)^2 / 2 + step p(|t|), which has several stationary points
once the step is long; the formula that most libraries use holds only below the penalty's own bend (ERRATA ISTDP 2).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cvxpriv.errors import ModelError, suggest
from cvxpriv.state import Array

__all__ = ["L1", "L2", "MCP", "SCAD", "CappedL1", "ElasticNet", "Penalty", "penalty_named", "require_penalty"]


class Penalty(ABC):
    """The contract of a penalty; a user's own need not inherit from it (`require_penalty`)."""

    @property
    @abstractmethod
    def name(self) -> str:
        """As the command line writes it."""

    @abstractmethod
    def terms(self, theta: Array) -> Array:
        """Return p(|theta_i|), coordinate by coordinate."""

    def value(self, theta: Array) -> float:
        """Return P(theta)."""
        return float(self.terms(theta).sum())

    @abstractmethod
    def prox(self, s: Array, step: float) -> Array:
        """Return the least of ||t - s||^2 / 2 + step P(t); the one nearer to 0 where two are equally low."""

    @abstractmethod
    def residual(self, theta: Array, gradient: Array) -> Array:
        """Return, coordinate by coordinate, the distance of -gradient to the limiting subgradients of P at theta."""

    @property
    @abstractmethod
    def weak_convexity(self) -> float:
        """The least c for which P + (c/2) ||.||^2 is convex; inf when there is none, 0 for a convex penalty."""


def _require_weight(lam: float, name: str) -> None:
    if not (np.isfinite(lam) and lam >= 0.0):
        raise ModelError(f"lam={lam!r} of {name} is no weight: choose a finite number >= 0")


def _separable_residual(theta: Array, gradient: Array, slope: Array, at_zero: float) -> Array:
    """Distances for p with p'(|theta|) = `slope` off zero and subgradients [-at_zero, at_zero] at zero."""
    off = np.abs(gradient + np.sign(theta) * slope)
    return np.asarray(np.where(theta != 0.0, off, np.maximum(np.abs(gradient) - at_zero, 0.0)))


def _best(s: Array, step: float, candidates: list[Array], penalty: Penalty) -> Array:
    """The candidate of |t| with the lowest h, coordinate by coordinate; the first of equals. Signs are those of s."""
    size = np.abs(s)
    stacked = np.stack(candidates)
    heights = 0.5 * (stacked - size) ** 2 + step * penalty.terms(stacked)
    chosen = np.take_along_axis(stacked, np.argmin(heights, axis=0)[None], axis=0)[0]
    return np.asarray(np.sign(s) * chosen)


@dataclass(frozen=True)
class MCP(Penalty):
    """The minimax concave penalty (Zhang 2010): p' falls from lam to 0 over alpha lam.

    Parameters
    ----------
    lam : float
        >= 0.
    alpha : float
        > 1; large is near l1.

    Examples
    --------
    >>> MCP(lam=1.0, alpha=3.0).prox(np.array([0.5]), step=0.1).round(4)
    array([0.4138])
    """

    lam: float
    alpha: float = 3.0

    def __post_init__(self) -> None:
        _require_weight(self.lam, "MCP")
        if not (np.isfinite(self.alpha) and self.alpha > 1.0):
            raise ModelError(f"alpha={self.alpha!r}: MCP needs alpha > 1, for example 3")

    @property
    def name(self) -> str:
        """See `Penalty.name`."""
        return f"mcp:{self.lam:g}:{self.alpha:g}"

    @property
    def weak_convexity(self) -> float:
        """1/alpha."""
        return 1.0 / self.alpha

    def terms(self, theta: Array) -> Array:
        """See `Penalty.terms`."""
        size = np.minimum(np.abs(theta), self.alpha * self.lam)
        return np.asarray(self.lam * size - size**2 / (2.0 * self.alpha))

    def slope(self, theta: Array) -> Array:
        """Return p'(|theta|), elementwise."""
        return np.maximum(self.lam - np.abs(theta) / self.alpha, 0.0)

    def bend(self, theta: Array) -> Array:
        """Return p''(|theta|), elementwise."""
        return np.where(np.abs(theta) < self.alpha * self.lam, -1.0 / self.alpha, 0.0)

    def prox(self, s: Array, step: float) -> Array:
        """See `Penalty.prox`; firm thresholding below alpha, hard thresholding from alpha on (MATH ISTDP)."""
        size = np.abs(s)
        if step >= self.alpha:
            return np.where(size > self.lam * np.sqrt(step * self.alpha), s, 0.0)
        firm = np.sign(s) * np.maximum(size - step * self.lam, 0.0) / (1.0 - step / self.alpha)
        return np.where(size <= self.alpha * self.lam, firm, s)

    def residual(self, theta: Array, gradient: Array) -> Array:
        """See `Penalty.residual`."""
        return _separable_residual(theta, gradient, self.slope(theta), self.lam)


@dataclass(frozen=True)
class SCAD(Penalty):
    """The smoothly clipped absolute deviation (Fan and Li 2001): p' is lam up to lam, then falls to 0 at a lam.

    Parameters
    ----------
    lam : float
        >= 0.
    a : float
        > 2; 3.7 is its authors' choice.
    """

    lam: float
    a: float = 3.7

    def __post_init__(self) -> None:
        _require_weight(self.lam, "SCAD")
        if not (np.isfinite(self.a) and self.a > 2.0):
            raise ModelError(f"a={self.a!r}: SCAD needs a > 2, for example 3.7")

    @property
    def name(self) -> str:
        """See `Penalty.name`."""
        return f"scad:{self.lam:g}:{self.a:g}"

    @property
    def weak_convexity(self) -> float:
        """1/(a - 1)."""
        return 1.0 / (self.a - 1.0)

    def terms(self, theta: Array) -> Array:
        """See `Penalty.terms`."""
        size = np.abs(theta)
        bend = (2.0 * self.a * self.lam * size - size**2 - self.lam**2) / (2.0 * (self.a - 1.0))
        flat = self.lam**2 * (self.a + 1.0) / 2.0
        return np.where(size <= self.lam, self.lam * size, np.where(size <= self.a * self.lam, bend, flat))

    def slope(self, theta: Array) -> Array:
        """Return p'(|theta|), elementwise."""
        return np.clip((self.a * self.lam - np.abs(theta)) / (self.a - 1.0), 0.0, self.lam)

    def bend(self, theta: Array) -> Array:
        """Return p''(|theta|), elementwise."""
        size = np.abs(theta)
        return np.where((size > self.lam) & (size < self.a * self.lam), -1.0 / (self.a - 1.0), 0.0)

    def prox(self, s: Array, step: float) -> Array:
        """See `Penalty.prox`: the lowest of each piece's own least."""
        size = np.abs(s)
        soft = np.clip(size - step * self.lam, 0.0, self.lam)
        beyond = np.maximum(size, self.a * self.lam)
        candidates = [np.zeros_like(size), soft, beyond]
        bend = 1.0 - step / (self.a - 1.0)
        if bend > 0.0:
            middle = (size - step * self.a * self.lam / (self.a - 1.0)) / bend
            candidates.insert(2, np.clip(middle, self.lam, self.a * self.lam))
        return _best(s, step, candidates, self)

    def residual(self, theta: Array, gradient: Array) -> Array:
        """See `Penalty.residual`."""
        return _separable_residual(theta, gradient, self.slope(theta), self.lam)


@dataclass(frozen=True)
class CappedL1(Penalty):
    """The capped l1 penalty lam min(|t|, cap) (Zhang 2010): its kink at the cap is concave.

    Parameters
    ----------
    lam : float
        >= 0.
    cap : float
        > 0.
    """

    lam: float
    cap: float = 1.0

    def __post_init__(self) -> None:
        _require_weight(self.lam, "capped l1")
        if not (np.isfinite(self.cap) and self.cap > 0.0):
            raise ModelError(f"cap={self.cap!r}: capped l1 needs a finite cap > 0")

    @property
    def name(self) -> str:
        """See `Penalty.name`."""
        return f"capped-l1:{self.lam:g}:{self.cap:g}"

    @property
    def weak_convexity(self) -> float:
        """Inf: no quadratic mends a concave kink."""
        return float("inf") if self.lam > 0.0 else 0.0

    def terms(self, theta: Array) -> Array:
        """See `Penalty.terms`."""
        return self.lam * np.minimum(np.abs(theta), self.cap)

    def slope(self, theta: Array) -> Array:
        """Return p'(|theta|), elementwise; at the cap the one from below."""
        return np.where(np.abs(theta) <= self.cap, self.lam, 0.0)

    def bend(self, theta: Array) -> Array:
        """Return p''(|theta|), elementwise."""
        return np.zeros_like(theta)

    def prox(self, s: Array, step: float) -> Array:
        """See `Penalty.prox`: the lower of the two pieces' leasts."""
        size = np.abs(s)
        soft = np.clip(size - step * self.lam, 0.0, self.cap)
        return _best(s, step, [np.zeros_like(size), soft, np.maximum(size, self.cap)], self)

    def residual(self, theta: Array, gradient: Array) -> Array:
        """See `Penalty.residual`; at the cap the limiting subgradients are 0 and lam, and nothing between."""
        size = np.abs(theta)
        inside = _separable_residual(theta, gradient, np.full_like(theta, self.lam), self.lam)
        beyond = np.abs(gradient)
        at_cap = np.minimum(inside, beyond)
        return np.where(size < self.cap, inside, np.where(size > self.cap, beyond, at_cap))


@dataclass(frozen=True)
class ElasticNet(Penalty):
    """lam (ratio |t| + (1 - ratio) t^2 / 2), convex.

    Parameters
    ----------
    lam : float
        >= 0.
    ratio : float
        In [0, 1]: 1 is l1, 0 is l2.
    """

    lam: float
    ratio: float = 0.5

    def __post_init__(self) -> None:
        _require_weight(self.lam, "the elastic net")
        if not 0.0 <= self.ratio <= 1.0:
            raise ModelError(f"ratio={self.ratio!r} of the elastic net is not in [0, 1]: 1 is l1, 0 is l2")

    @property
    def name(self) -> str:
        """See `Penalty.name`."""
        whole = {1.0: f"l1:{self.lam:g}", 0.0: f"l2:{self.lam:g}"}
        return whole.get(self.ratio, f"elastic-net:{self.lam:g}:{self.ratio:g}")

    @property
    def weak_convexity(self) -> float:
        """0."""
        return 0.0

    def terms(self, theta: Array) -> Array:
        """See `Penalty.terms`."""
        return np.asarray(self.lam * (self.ratio * np.abs(theta) + 0.5 * (1.0 - self.ratio) * theta**2))

    def slope(self, theta: Array) -> Array:
        """Return p'(|theta|), elementwise."""
        return np.asarray(self.lam * (self.ratio + (1.0 - self.ratio) * np.abs(theta)))

    def bend(self, theta: Array) -> Array:
        """Return p''(|theta|), elementwise."""
        return np.full_like(theta, self.lam * (1.0 - self.ratio))

    def prox(self, s: Array, step: float) -> Array:
        """See `Penalty.prox`."""
        soft = np.sign(s) * np.maximum(np.abs(s) - step * self.lam * self.ratio, 0.0)
        return np.asarray(soft / (1.0 + step * self.lam * (1.0 - self.ratio)))

    def residual(self, theta: Array, gradient: Array) -> Array:
        """See `Penalty.residual`."""
        weight = self.lam * self.ratio
        bent = gradient + self.lam * (1.0 - self.ratio) * theta
        return _separable_residual(theta, bent, np.full_like(theta, weight), weight)


def L1(lam: float) -> ElasticNet:
    """Return lam ||theta||_1."""
    return ElasticNet(lam, 1.0)


def L2(lam: float) -> ElasticNet:
    """Return (lam/2) ||theta||^2."""
    return ElasticNet(lam, 0.0)


#: Name to maker and the names of its numbers, as the command line writes them: `mcp:0.05:3`.
FAMILIES: dict[str, tuple[Callable[..., Penalty], tuple[str, ...]]] = {
    "mcp": (MCP, ("lam", "alpha")),
    "scad": (SCAD, ("lam", "a")),
    "capped-l1": (CappedL1, ("lam", "cap")),
    "elastic-net": (ElasticNet, ("lam", "ratio")),
    "l1": (L1, ("lam",)),
    "l2": (L2, ("lam",)),
}
CONTRACT = ("value", "prox", "residual", "weak_convexity")


def require_penalty(penalty: object) -> None:
    """Refuse an object that lacks a part of the contract, naming what is missing.

    Raises
    ------
    ModelError
        It has not all of `value`, `prox`, `residual` and `weak_convexity`.
    """
    missing = [part for part in CONTRACT if not hasattr(penalty, part)]
    if missing:
        raise ModelError(
            f"penalty={penalty!r} lacks {', '.join(missing)}: a penalty has value(theta), prox(s, step), "
            "residual(theta, gradient) and weak_convexity"
        )


def penalty_named(text: str) -> Penalty:
    """Return the penalty that a text like `mcp:0.05:3` names; numbers left out take their default.

    Raises
    ------
    ModelError
        There is no such penalty, or its numbers are none.

    Examples
    --------
    >>> penalty_named("scad:0.1")
    SCAD(lam=0.1, a=3.7)
    """
    family, *numbers = text.split(":")
    if family not in FAMILIES:
        raise ModelError(f"penalty={text!r} is not known: {suggest(family, FAMILIES)}")
    make, names = FAMILIES[family]
    shown = ":".join((family, *(f"<{name}>" for name in names)))
    if not 1 <= len(numbers) <= len(names):
        raise ModelError(f"penalty={text!r} has {len(numbers)} numbers: write {shown}")
    try:
        values = [float(number) for number in numbers]
    except ValueError:
        raise ModelError(f"penalty={text!r} holds something that is no number: write {shown}") from None
    return make(*values)
