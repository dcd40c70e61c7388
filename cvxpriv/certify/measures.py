"""What is measured of a point: the residuals of the problem as written, and its distance from stationary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cvxpriv.blocks.declaration import Declaration
from cvxpriv.kkt.conditions import Residuals, residuals
from cvxpriv.kkt.constraints import violations
from cvxpriv.kkt.proximal import Proximal, proximal_step
from cvxpriv.kkt.ties import kinked

__all__ = ["NEAR", "TIE", "Measures", "measures"]

NEAR = 1e-6
"""A natural residual that needs no better multipliers than the solver's, and no proximal step."""
TIE = 1e-6
"""Arguments this near to a kink count as on it: what a solver leaves between two that tie."""


@dataclass(frozen=True)
class Measures:
    """What is measured of a point of the problem as written.

    Attributes
    ----------
    residuals : Residuals, optional
        None where the problem's functions have no derivative.
    missed : tuple of (float, str)
        The worst violation of a constraint, relative to its sides, and the constraint.
    proximal : Proximal, optional
        Taken where derivatives do not decide: they are missing, only enclosed, or say that the point is off and may say
        so for a kink that it stands beside.
    """

    residuals: Residuals | None
    missed: tuple[float, str]
    proximal: Proximal | None


def measures(declaration: Declaration, duals: Literal["solver"] | None) -> Measures:
    """Measure the point where a declaration's variables stand.

    Parameters
    ----------
    duals : {"solver"} or None
        The solver's multipliers, or the best ones where those make the point look worse; None is always the best.
    """
    found = _best(declaration) if duals == "solver" else _as_written(declaration, None)
    problem, proximal = declaration.problem, None
    if found is None or not found.exact or (found.natural > NEAR and kinked(problem)):
        proximal = proximal_step(problem, 1.0 if found is None else found.steepness)
    violation: Mapping[str, float] = {}
    if found is not None:
        violation = {name: figures[0] for name, figures in found.by_constraint.items()}
    elif duals is None:  # nobody's cone program tells how far the point is from feasible
        violation = violations(problem, declaration.constraints)
    return Measures(found, _missed(declaration, violation), proximal)


def _best(declaration: Declaration) -> Residuals | None:
    """Residuals with the solver's multipliers, or with the best ones where those make the point look worse."""
    own = _as_written(declaration, "solver")
    if own is not None and own.natural <= NEAR:
        return own
    best = _as_written(declaration, None)
    return min((found for found in (own, best) if found is not None), key=lambda found: found.natural, default=None)


def _as_written(declaration: Declaration, duals: Literal["solver"] | None) -> Residuals | None:
    """Residuals of the problem as written; None where its functions have no derivative, such as log of -1e-5."""
    try:
        with np.errstate(all="ignore"):
            return residuals(declaration.problem, duals=duals, names=declaration.constraints, kink_tolerance=TIE)
    except Exception:  # atoms of cvxpy raise what they like; without these residuals the cone program's still judge
        return None


def _missed(declaration: Declaration, violation: Mapping[str, float]) -> tuple[float, str]:
    """The worst violation of a constraint, relative to the size of its sides."""
    worst = (0.0, "")
    for name, constraint in declaration.constraints.items():
        sides = [np.abs(np.asarray(arg.value, dtype=float)) for arg in constraint.args if arg.value is not None]
        size = 1.0 + max((float(side.max(initial=0.0)) for side in sides), default=0.0)
        worst = max(worst, (violation.get(name, 0.0) / size, name))
    return worst
