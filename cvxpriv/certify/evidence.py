"""Evidence: what is known of one answer to one problem, and what of it is a proof."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvxpriv.kkt.conic.residuals import Certificate, ConeResiduals

__all__ = ["Evidence"]


@dataclass(frozen=True)
class Evidence:
    """What is known of one answer to one problem.

    Attributes
    ----------
    status : str
        The solver's own.
    asked : float
        The tolerance it was asked for.
    objective : float
        At its point in the domain; NaN if it has none.
    reference : float
        The reference's objective; NaN if there is none.
    residuals : ConeResiduals, optional
        Of the cone program.
    displacement : float
        How far the point is from stationary, relative; NaN if that could not be measured.
    missed : tuple of (float, str)
        The worst violation of a constraint as written, relative, and the constraint.
    moved : float
        By how much its point was moved into the domain, relative: it is judged there.
    certificate : Certificate, optional
        Of a claim of infeasibility or unboundedness.
    error : str
        What it raised, or what could not be measured.
    bound : float
        What its dual certifies of the optimum; NaN if it certifies nothing.
    tightest : float
        The tightest that any answer's dual certifies; NaN is its own.
    unit : float
        The size of the objective's coefficients, at most 1.
    bounded : bool
        The solver was given bounds that cvxpy found for variables of its own.
    unmeasured : str
        Why there is no displacement.
    """

    status: str
    asked: float
    objective: float
    reference: float
    residuals: ConeResiduals | None = None
    displacement: float = 0.0
    missed: tuple[float, str] = (0.0, "")
    moved: float = 0.0
    certificate: Certificate | None = None
    error: str = ""
    bound: float = np.nan
    tightest: float = np.nan
    unit: float = 1.0
    bounded: bool = False
    unmeasured: str = ""

    @property
    def proven_gap(self) -> float:
        """Distance to the tightest certified bound, relative to max(1, |bound|); infinite if there is none."""
        return _distance(self.objective, self.bound if np.isnan(self.tightest) else self.tightest)

    @property
    def infeasibility(self) -> float:
        """How far its point is from feasible, in the cone program and as written, relative."""
        cone = {} if self.residuals is None else self.residuals.relative
        return max(cone.get("primal", 0.0), cone.get("cone", 0.0), self.missed[0])

    def proven(self, tolerance: float) -> bool:
        """Whether the point is feasible and has the value of a certified bound: a proof of optimality to a tolerance.

        It says of the point only that it is as good as the square root of that.
        """
        return max(self.proven_gap, self.infeasibility) <= tolerance

    def proves_itself(self, tolerance: float) -> bool:
        """Whether its own dual, repaired, is that proof: then nothing is wrong with the dual but digits."""
        return max(_distance(self.objective, self.bound), self.infeasibility) <= tolerance

    @property
    def gap(self) -> float:
        """Distance to the reference, relative to max(1, |reference|)."""
        return abs(self.objective - self.reference) / max(1.0, abs(self.reference))

    @property
    def own_gap(self) -> float:
        """Distance to the reference in the objective's own units, where its coefficients are far below 1."""
        return abs(self.objective - self.reference) / max(self.unit, abs(self.reference))

    @property
    def largest(self) -> float:
        """The largest exact residual of the cone program; 0 where there is no cone program."""
        return 0.0 if self.residuals is None else self.residuals.largest


def _distance(objective: float, bound: float) -> float:
    both = np.isfinite([objective, bound]).all()
    return abs(objective - bound) / max(1.0, abs(bound)) if both else float("inf")
