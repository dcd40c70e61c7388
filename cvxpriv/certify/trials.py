"""One answer, its verdict, and the truth, on which a bug report rests."""

from __future__ import annotations

from dataclasses import dataclass

from cvxpriv.numerics.arrays import Values

__all__ = ["Trial"]


@dataclass(frozen=True)
class Trial:
    """The judgement of one answer to one problem.

    Attributes
    ----------
    verdict, reason : str
    status : str
        The status that the solver claims.
    objective : float
        Objective at its point, in the sense of the problem; NaN without one.
    values : mapping of str to ndarray, optional
        The variables' values.
    expected : float
        The reference's objective; NaN without one.
    expected_values : mapping of str to ndarray
        The reference's.
    expected_status : str
        ``"optimal"``, or what is proven of the problem.
    version : str
        Version of the solver.
    """

    verdict: str
    reason: str
    status: str
    objective: float
    values: Values | None
    expected: float
    expected_values: Values
    expected_status: str = "optimal"
    version: str = ""

    @property
    def kind(self) -> str:
        """The kind of lie: the status without a word on accuracy, and, of a solution, the first finding's kind."""
        return self.status.removesuffix("_inaccurate")
