"""The assumptions of SHARING on data and penalty (Assumptions 1 and 2), measured, beside the right conditions.

Beside them the augmented Lagrangian (5), the paper's stationarity measure V^t, and the bound of its complexity theorem:
with T(eps) the first t at which V^t <= eps, T(eps) eps <= C (L^1 - f), f a lower bound of the objective. Its
C = C_1/C_2 takes C_2 from Lemma 4, whose Lemma 3 has a wrong sign: here C_2 is derived with the right one, and for the
scheme that runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cvxpriv.errors import ModelError, NoGuaranteeWarning, warn
from cvxpriv.learning.matrices import row_norms
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.numerics.packages import pd
from cvxpriv.penalties.convex import bounded

from .blocks import total_share
from .factor import Factor
from .problem import Problem
from .schemes import Scheme

#: Distance of a row's norm from 1 that is rounding.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Row:
    """One assumption: as printed, measured, whether it holds, and the right condition."""

    assumption: str
    printed: str
    measured: str
    holds: bool
    right: str
    right_holds: bool


@dataclass(frozen=True)
class Assumptions:
    """The assumptions of SHARING for one problem and one penalty.

    `scheme`: The scheme whose right conditions are given.
    """

    rows: tuple[Row, ...]
    scheme: str
    rho: float

    @property
    def table(self) -> pd.DataFrame:
        """One row per assumption: assumption, printed, measured, holds, right, right_holds."""
        return pd.DataFrame([vars(row) for row in self.rows]).set_index("assumption")

    def __str__(self) -> str:
        title = f"SHARING's assumptions at rho={self.rho:g}; the right ones for scheme {self.scheme!r}"
        return f"{title}\n{self.table.to_string()}"


def check(problem: Problem, scheme: Scheme, factors: Sequence[Factor], rho: float) -> Assumptions:
    """Return the table of assumptions."""
    rows = (*_smoothness(problem, factors), *_penalty(problem, scheme, factors, rho), *_regularity(problem))
    return Assumptions(rows, scheme.name, rho)


#: The least rho, and the inverse of the largest.
LEAST_RHO = 1e-100


def require_guarantee(problem: Problem, scheme: Scheme, rho: float) -> None:
    """Refuse a penalty with which the z step has several minima; warn where a scheme may diverge."""
    if not LEAST_RHO <= rho <= 1.0 / LEAST_RHO:
        raise ModelError(f"rho={rho:g} is beyond {LEAST_RHO:g} to {1.0 / LEAST_RHO:g}: choose one near 1")
    r = float(scheme.weight(np.asarray(rho), problem.parties))
    bend = _smoothness_of(problem)
    if not problem.loss.convex and r <= bend:
        least = scheme.rho(bend, problem.parties)
        raise ModelError(
            f"rho={rho:g} is too small for loss {problem.loss.name!r}, whose z step then has several minima: "
            f"choose rho > {least:.4g}"
        )
    if scheme.name == "printed" and not r >= 1.5 * problem.parties * bend:
        bound = 1.5 * problem.parties * bend
        need = f"rho >= 1.5 M L = {bound:.4g}" if bend < float("inf") else "a smooth loss"
        warn(
            f"method='printed' with rho={rho:g} may diverge: it needs {need}; method='averaged' converges for "
            "every rho",
            NoGuaranteeWarning,
        )


def _smoothness(problem: Problem, factors: Sequence[Factor]) -> list[Row]:
    smoothness = _smoothness_of(problem)
    ranks = [factor.rank for factor in factors]
    widths = [factor.part.shape[1] for factor in factors]
    full = ranks == widths
    return [
        Row(
            "1.1 smooth loss",
            "L < inf",
            f"L = {smoothness:.4g}",
            np.isfinite(smoothness),
            "not needed for a convex loss, except by 'printed'",
            problem.loss.convex or np.isfinite(smoothness),
        ),
        Row(
            "1.1 full column rank",
            "rank D_m = d_m",
            ", ".join(f"{rank} of {width}" for rank, width in zip(ranks, widths, strict=True)),
            full,
            "not needed: D_m x_m is unique, and x_m is that of least norm or of lam R_m",
            True,
        ),
    ]


def _penalty(problem: Problem, scheme: Scheme, factors: Sequence[Factor], rho: float) -> list[Row]:
    smoothness, parties = _smoothness_of(problem), problem.parties
    moduli = [
        problem.lam * (one.ridge or 0.0) + rho * factor.smallest
        for one, factor in zip(problem.penalties, factors, strict=True)
    ]
    gamma = rho - (0.0 if problem.loss.convex else smoothness)
    tops = [factor.largest for factor in factors]
    falls = descent(problem, scheme, factors, rho)
    safe = 1.5 * parties * smoothness
    return [
        Row(
            "1.2a strongly convex steps",
            "gamma_m > 0, gamma > 0",
            f"gamma_m = {_few(moduli)}; gamma = {gamma:.4g}",
            min(moduli) > 0.0 and gamma > 0.0,
            "gamma > 0",
            gamma > 0.0,
        ),
        Row(
            "1.2b the x steps descend",
            "gamma_m >= 2 sigma_max(D_m'D_m)",
            f"gamma_m = {_few(moduli)}; sigma_max = {_few(tops)}",
            all(modulus >= 2.0 * top for modulus, top in zip(moduli, tops, strict=True)),
            "lam c_m/2 + P_m > (r/2)(M - 2) D_m'D_m: the least is " + _few(list(falls.x)),
            min(falls.x) > 0.0,
        ),
        Row(
            "1.2c the z and y steps descend",
            "rho gamma > 2 L^2, rho >= L",
            f"rho gamma = {rho * gamma:.4g}; 2 L^2 = {2.0 * smoothness**2:.4g}",
            rho * gamma > 2.0 * smoothness**2 and rho >= smoothness,
            "the same with r for rho; a convex loss does without, except by 'printed', which needs rho >= 1.5 M L"
            f" = {safe:.4g}",
            rho >= safe if scheme.name == "printed" else problem.loss.convex or falls.z > 0.0,
        ),
    ]


def _regularity(problem: Problem) -> list[Row]:
    convex = all(one.ridge is not None for one in problem.penalties)
    compact = all(bounded(one) for one in problem.penalties)
    norms = [row_norms(part) for part in problem.parts]
    low, high = min(float(n.min()) for n in norms), max(float(n.max()) for n in norms)
    return [
        Row("1.4 R_m convex or smooth", "one of them", "convex", True, "the same", True),
        Row(
            "2.1 bounded iterates",
            "||x||, ||z||, ||y|| <= b_1",
            "X_m bounded" if compact else "X_m unbounded",
            compact,
            "a public bound or clipping (solve_private)",
            True,
        ),
        Row(
            "2.2 R twice differentiable",
            "|R''| <= c_1",
            "c_1 = 1" if convex else "not differentiable",
            convex,
            "not needed when the shared vector is clipped",
            True,
        ),
        Row(
            "2.3 rows of norm 1",
            "||D_m^i|| = 1",
            f"{low:.4g} to {high:.4g}",
            abs(low - 1.0) <= ROUNDING and abs(high - 1.0) <= ROUNDING,
            "not needed: a bound of the chosen neighbouring relation is",
            True,
        ),
    ]


def _smoothness_of(problem: Problem) -> float:
    return float(problem.weights.max()) * problem.loss.smoothness


def _few(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.4g}" for value in values)


def augmented_lagrangian(problem: Problem, state: Values, r: float) -> float:
    """Return (5) at one start of a state, with the penalty r of S = z."""
    parties, z = problem.parties, state["z"]
    gap = total_share(state, parties) - z
    loss = float(problem.weights @ problem.loss.value(z, problem.y))
    return (
        loss
        + problem.penalty_value([state[f"x/{m}"] for m in range(parties)])
        + float((state["y"] + 0.5 * r * gap) @ gap)
    )


def stationarity(problem: Problem, factors: Sequence[Factor], state: Values, r: float) -> float:
    """Return V^t at one start of a state: squared gradients of (5) in x_m and z, and ||S - z||^2.

    In x_m it is the proximal gradient x - prox(x - grad) of the paper; for a square the plain gradient.
    """
    z, y = state["z"], state["y"]
    gap = total_share(state, problem.parties) - z
    pushed = y + r * gap
    total = float(np.sum((problem.weights * problem.loss.gradient(z, problem.y) - pushed) ** 2) + gap @ gap)
    for m, (factor, penalty) in enumerate(zip(factors, problem.penalties, strict=True)):
        x, slope = state[f"x/{m}"], factor.pull(pushed)
        if penalty.ridge is not None:
            moved: Array = problem.lam * penalty.ridge * x + slope
        else:
            moved = x - penalty.prox(x - slope, problem.lam)
        total += float(moved @ moved)
    return total


@dataclass(frozen=True)
class Descent:
    """The guaranteed fall of (5) from pass to pass, and the bound of V^t that follows.

    `x`: Coefficients of the fall x_m ||x_m^{t+1} - x_m^t||^2, one per party.
    `z`: Coefficient of the fall z ||z^{t+1} - z^t||^2.
    `constant`: Constant C with V^2 + ... + V^T <= C (L^1 - f) for every T, hence (T - 1) min V^t <= C (L^1 - f); inf
    where (5) need not fall.
    """

    x: tuple[float, ...]
    z: float
    constant: float


def descent(problem: Problem, scheme: Scheme, factors: Sequence[Factor], rho: float) -> Descent:
    """Return the constants of descent of a scheme whose parties step at once, from y = weight dl(z) on.

    With delta_m = D_m (x_m^{t+1} - x_m^t) the Jacobi step costs (r/2) (M-1) sum ||delta_m||^2 at most: Lemma 3 with
    the right sign. The proximal term P_m pays for it.

    `rho`: The rho passed to `solve`; r below is the scheme's penalty.
    """
    parties, r = problem.parties, float(scheme.weight(np.asarray(rho), problem.parties))
    smoothness = float(problem.weights.max()) * problem.loss.smoothness
    falls, grows = [], []
    for factor, penalty in zip(factors, problem.penalties, strict=True):
        kappa = problem.lam * (penalty.ridge or 0.0)
        low, high = factor.smallest, factor.largest
        held = r * (parties - 1) * high if scheme.averages else scheme.tau(factor, penalty, rho, parties)
        least_held = r * (parties - 1) * low if scheme.averages else held
        # kappa/2 + P - (r/2)(M - 2) D'D at the worst eigenvalue; P is a multiple of D'D when averaging.
        at_ends = [
            0.5 * kappa + pull - 0.5 * r * (parties - 2) * value for pull, value in ((least_held, low), (held, high))
        ]
        falls.append(min(at_ends))
        own = kappa if penalty.ridge is not None else 2.0
        grows.append((own + r * high + held) ** 2)
    bend = 0.0 if problem.loss.convex else smoothness
    z = 0.5 * (r - bend) - smoothness**2 / r
    gap = (1.0 + r**2) * (smoothness / r) ** 2
    sound = z > 0.0 and min(falls) > 0.0 and not scheme.in_turn
    ratios = [grow / fall for grow, fall in zip(grows, falls, strict=True)] if sound else [np.inf]
    return Descent(tuple(falls), z, max(*ratios, gap / z if sound else np.inf))
