"""The assumptions of SHARING on data and penalty (Assumptions 1 and 2), measured, beside the right conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cvxpriv.errors import ModelError, NoGuaranteeWarning, warn
from cvxpriv.learning.matrices import row_norms
from cvxpriv.numerics.later import pd
from cvxpriv.penalties.convex import bounded

from .factor import Factor
from .lagrangian import descent
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
