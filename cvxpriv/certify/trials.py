"""One answer, its verdict, and the truth, on which a bug report rests."""

from __future__ import annotations

from dataclasses import dataclass

from cvxpriv.numerics.arrays import Values


@dataclass(frozen=True)
class Trial:
    """The judgement of one answer to one problem.

    `status`: The status that the solver claims.
    `objective`: Objective at its point, in the sense of the problem; NaN without one.
    `values`: The variables' values.
    `expected`: The reference's objective; NaN without one.
    `expected_values`: The reference's.
    `expected_status`: ``"optimal"``, or what is proven of the problem.
    `version`: Version of the solver.
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
