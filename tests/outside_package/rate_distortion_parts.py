"""One divergence, one constraint, one penalty and one solver for cvxpriv, each in a few lines."""

import cvxpy as cp
import numpy as np

import cvxpriv as cpv
from cvxpriv.constraints.ready import ReadyConstraint
from cvxpriv.penalties.contract import Separable
from cvxpriv.solvers.registry import SolverSpec


def symmetric_relative_entropy(P, Q):
    return cp.sum(cp.rel_entr(P, Q) + cp.rel_entr(Q, P)), []


JEFFREYS = cpv.FDivergence(
    "jeffreys",
    f=lambda t: (t - 1.0) * np.log(t),
    fprime=lambda t: np.log(t) + 1.0 - 1.0 / t,
    fsecond=lambda t: 1.0 / t + 1.0 / t**2,
    expression=symmetric_relative_entropy,
    formula="(t-1)*log(t)",
    at_zero=float("inf"),
    slope_at_infinity=float("inf"),
)


def capped(most):
    """No output is more likely than `most`, whatever the input."""
    return ReadyConstraint(
        f"capped(most={most:g})",
        form=lambda mechanism, known: [mechanism <= most],
        excess=lambda mechanism, known: float(np.max(mechanism) - most),
    )


class Huber(Separable):
    """lam (|x| - width/2) beyond the width, and lam x^2/(2 width) within: coefficients shrink, and none is cut to 0."""

    def __init__(self, lam, width=0.1):
        self.lam, self.width = lam, width

    @property
    def name(self):
        return f"huber:{self.lam:g}:{self.width:g}"

    def terms(self, x):
        size = np.minimum(np.abs(x), self.width)
        return self.lam * (np.abs(x) - size + size**2 / (2.0 * self.width))

    def slope(self, x):
        return self.lam * np.minimum(np.abs(x) / self.width, 1.0)

    def bend(self, x):
        return np.where(np.abs(x) < self.width, self.lam / self.width, 0.0)

    def prox(self, s, step):
        weight = step * self.lam
        inside = s * self.width / (self.width + weight)
        return np.where(np.abs(s) <= self.width + weight, inside, s - weight * np.sign(s))

    def expression(self, x):
        return self.lam / (2.0 * self.width) * cp.sum(cp.huber(x, self.width)), []


def tolerances(tolerance):
    """The simplex method of HiGHS, as scipy calls it."""
    return {"scipy_options": {"method": "highs-ds", "primal_feasibility_tolerance": tolerance}}


SCIPY = SolverSpec("SCIPY", frozenset({"zero", "nonneg"}), 1e-9, tolerances, "BSD-3-Clause", "linear programs")
