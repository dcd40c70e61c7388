"""Answers: what a solver, a closed form or anybody else says the solution of a case is, and what is measured of it.

An answer holds figures and arrays only, nothing of the solver, so that it can come from another process.
"""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from cvxpriv.certify.evidence import Evidence
from cvxpriv.kkt.conditions import Residuals
from cvxpriv.kkt.conic.residuals import Certificate, ConeResiduals
from cvxpriv.kkt.proximal import Proximal
from cvxpriv.numerics.arrays import Values

__all__ = ["CLAIMED", "SOLVED", "Answer"]

CLAIMED = "claimed"
"""The status of an answer that no solver gave."""
SOLVED = (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)
"""The statuses of an answer that is a solution."""
NAN = float("nan")
TELLING = 0.1
"""A proximal move this much shorter than the natural residual shows a kink that the point stands beside."""


@dataclass(frozen=True)
class Answer:
    """One answer to one case.

    Attributes
    ----------
    solver : str
        Or the name under which a claimed answer stands.
    status : str
        The solver's own, ``"claimed"``, or what became of its process.
    asked : float
        The tolerance it was asked for.
    values : mapping of str to ndarray, optional
        The variables' values, in the domain.
    objective : float
        There, in the sense of the problem; NaN without values.
    moved : float
        The largest move of a value into the domain.
    residuals : Residuals, optional
        Of the problem as written, at the solver's own point; None where its functions have no derivative there.
    missed : tuple of (float, str)
        The worst violation of a constraint as written, relative to its sides, and the constraint.
    proximal : Proximal, optional
        How far the point is from optimal, where derivatives do not decide (`cvxpriv.certify.measures`).
    cone : ConeResiduals, optional
        Of the cone program.
    bounded : bool
        The solver was given bounds that cvxpy found for variables of its own.
    certificate : Certificate, optional
        Of a claim of infeasibility or unboundedness, checked.
    bound : float
        Certified bound on the optimum from the dual, in the sense of the problem: lower for a minimisation, upper for
        a maximisation. NaN where there is none.
    bound_reason : str
        Where it comes from, or why there is none.
    steepness : float
        One plus the largest term of the cone program's gradient.
    unit : float
        The largest coefficient of the cone program's objective, or 1 where that is smaller.
    reach : float
        The largest entry of the cone program's point.
    seconds, solver_seconds : float
        Wall time with compilation, and the solver's own clock.
    iterations : int or None
    error : str
        What was raised, or what could not be measured.
    """

    solver: str
    status: str
    asked: float
    values: Values | None = None
    objective: float = NAN
    moved: float = 0.0
    residuals: Residuals | None = None
    missed: tuple[float, str] = (0.0, "")
    proximal: Proximal | None = None
    cone: ConeResiduals | None = None
    bounded: bool = False
    certificate: Certificate | None = None
    bound: float = NAN
    bound_reason: str = "no certificate: there is no dual"
    steepness: float = 1.0
    unit: float = 1.0
    reach: float = NAN
    seconds: float = NAN
    solver_seconds: float = NAN
    iterations: int | None = None
    error: str = ""

    @property
    def size(self) -> float:
        """One plus the largest entry of the point."""
        entries = (float(np.abs(value).max(initial=0.0)) for value in (self.values or {}).values())
        return 1.0 + max(entries, default=0.0)

    @property
    def displacement(self) -> float:
        """How far the point is from stationary, relative; NaN where nothing says it.

        The natural residual in the units of the variables, or the stationarity in those of the gradient, whichever is
        less: a flat problem has a large step and a tiny gradient, a steep one a large gradient and a tiny step. The
        proximal step, where it was taken, if that is less still, or if derivatives do not decide.
        """
        classical, step = NAN, NAN
        if self.residuals is not None and self.residuals.exact:
            classical = min(self.residuals.natural / self.size, self.residuals.stationarity / self.steepness)
        if self.proximal is not None:
            step = self.proximal.step
        elif self.residuals is None:
            return 0.0  # there is no point, or nothing was asked of it
        return float(np.fmin(classical, step))

    @property
    def natural(self) -> float:
        """How far a variable moves to its own optimum; NaN where it is not known.

        At a tie or kink, where the derivatives overstate it or do not decide, how far it moves to the proximal point.
        """
        if self._tie is not None:
            return self._tie.move
        return self.residuals.natural if self.residuals is not None and self.residuals.exact else NAN

    @property
    def stationarity(self) -> float:
        """The largest entry of the Lagrangian's gradient; NaN where it is not known.

        At a tie or kink that of the proximal point.
        """
        if self._tie is not None:
            return self._tie.slope
        return self.residuals.stationarity if self.residuals is not None and self.residuals.exact else NAN

    @property
    def _tie(self) -> Proximal | None:
        """The proximal step, where it shows that derivatives mislead."""
        if self.residuals is None or self.proximal is None or not self.proximal.measured:
            return None
        misled = not self.residuals.exact or self.proximal.move < TELLING * self.residuals.natural
        return self.proximal if misled else None

    @property
    def quality(self) -> float:
        """The largest exact residual of all, relative: the smaller, the better the answer."""
        if self.status not in (*SOLVED, CLAIMED) or not np.isfinite(self.objective):
            return float("inf")
        cone = 0.0 if self.cone is None else self.cone.largest
        primal = self.residuals.primal if self.cone is None and self.residuals is not None else 0.0
        return max(cone, primal, float(np.nan_to_num(self.displacement)))

    def evidence(self, reference: float, tightest: float = NAN, unit: float = 1.0) -> Evidence:
        """What a verdict rests on, beside what all answers tell.

        Parameters
        ----------
        reference : float
            The reference's objective.
        tightest : float
            The tightest bound that any answer certifies.
        unit : float
            The size of the objective's coefficients, at most 1.
        """
        return Evidence(
            status=self.status,
            asked=self.asked,
            objective=self.objective,
            reference=reference,
            residuals=self.cone,
            displacement=self.displacement,
            missed=self.missed,
            moved=self.moved / self.size,
            certificate=self.certificate,
            error=self.error,
            bound=self.bound,
            tightest=tightest,
            unit=unit,
            bounded=self.bounded,
            unmeasured=self.proximal.why if self.proximal is not None and np.isnan(self.displacement) else "",
        )
