"""The constants that the paper's convergence proofs ask for, and whether a run meets them (IAS III-B, III-C)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvxpriv.divergences import FDivergence

from .problem import Problem

__all__ = ["Moduli", "lipschitz_of_slope", "moduli"]

#: f'' is sampled this finely on [floor, 1/floor], both ends included.
POINTS = 2001


@dataclass(frozen=True)
class Moduli:
    """The moduli of Bregman ADMM, IAS (29), with the kernel (c/2)||.||^2: those needed, and those present.

    Attributes
    ----------
    l_f : float
        Lipschitz constant of f' on [floor, 1/floor]; inf at floor 0, and for an f with a kink.
    l_g : float
        2 beta l_f / floor^2, Lemma 8.
    c, rho : float
        The modulus of the kernels, and the penalty.
    rho_needed : float
        The least rho with which the step of Lemma 10, corrected by the multiplier's -||dLambda||^2 / rho, provably
        rises: max(6 l_g^2 / (c - l_g), 6 (l_g^2 + 2 c^2) / c); inf for c <= l_g.
    """

    l_f: float
    l_g: float
    c: float
    rho: float
    rho_needed: float

    @property
    def printed_assumption(self) -> bool:
        """Assumption 3 of IAS III-C: c > l_g."""
        return self.c > self.l_g


def moduli(problem: Problem, c: float, rho: float) -> Moduli:
    """Return the constants of a problem for Bregman ADMM with kernel modulus `c` and penalty `rho`."""
    l_f = lipschitz_of_slope(problem.divergence, problem.floor)
    l_g = 2.0 * problem.beta * l_f / problem.floor**2 if problem.floor > 0.0 else np.inf
    needed = max(6.0 * l_g**2 / (c - l_g), 6.0 * (l_g**2 + 2.0 * c**2) / c) if c > l_g else np.inf
    return Moduli(l_f, l_g, c, rho, needed)


def lipschitz_of_slope(divergence: FDivergence, floor: float) -> float:
    """Return l_f, the largest f'' on [floor, 1/floor] (sampled); inf at floor 0 and where f' jumps."""
    if floor <= 0.0 or any(floor < kink < 1.0 / floor for kink in divergence.kinks):
        return np.inf
    t = np.geomspace(floor, 1.0 / floor, POINTS)
    return float(np.abs(divergence.second_derivative(t)).max())
