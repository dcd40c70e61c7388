"""What a penalty is: value, proximal step, stationarity distance and weak convexity; and what is refused."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array

__all__ = ["Penalty", "require_penalty", "require_weight"]

CONTRACT = ("value", "prox", "residual", "weak_convexity")


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


def require_weight(lam: float, name: str) -> None:
    """Refuse a weight that is not finite, or negative.

    Raises
    ------
    ModelError
        It is one of these.
    """
    if not (np.isfinite(lam) and lam >= 0.0):
        raise ModelError(f"lam={lam!r} of {name} is no weight: choose a finite number >= 0")
