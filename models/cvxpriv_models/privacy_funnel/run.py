"""The result of the funnel: `FunnelRun`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.bounds.certificate import certificate_of
from cvxpriv.bounds.master import master_block
from cvxpriv.kkt import Residuals
from cvxpriv.mechanisms.mechanism import Mechanism
from cvxpriv.numerics.arrays import Array
from cvxpriv.reports.facts import Facts
from cvxpriv.runs.codec import decoded
from cvxpriv.runs.mechanism_run import Beside, MechanismRun, restored
from cvxpriv.tables.documents import table_of

from . import algorithm, closed_form, optimum
from .bound import FunnelBound
from .facts import funnel_facts
from .kkt import PointResiduals
from .pricing import FunnelPricing
from .problem import Problem
from .stored_bound import stored_bound


@dataclass(frozen=True)
class Settings:
    """The options of `PrivacyFunnel.solve` that decide its result."""

    engine: str
    method: str
    accelerate: str
    starts: int
    seed: int
    max_iter: int
    tol: float


@dataclass(frozen=True, eq=False, repr=False)
class FunnelRun(MechanismRun[Problem, Settings]):
    """The best of a funnel's starts: see `MechanismRun`; leakage and utility among the columns of `starts`."""

    model: ClassVar[str] = "PrivacyFunnel"
    whole: ClassVar[str] = "(q, u, r)"

    bound: FunnelBound | None = None

    @cached_property
    def mechanism(self) -> Array:
        """P(Y|X), (|X|, |Y|), rows sum to 1."""
        return closed_form.rows_of(self.state["log_u"])

    @cached_property
    def leakage(self) -> float:
        """I(S;Y) in nats."""
        return self.problem.leakage(self.mechanism)

    @cached_property
    def utility(self) -> float:
        """I(X;Y) in nats; at least the rate."""
        return self.problem.utility(self.mechanism)

    @property
    def gap(self) -> float | None:
        """Certified distance in nats from the least leakage that any mechanism reaches at the rate; None without one.

        With constraints, from the least under those that `bound.counted` names; with the others, which `bound.ignored`
        names, the best mechanism may leak more.
        """
        return None if self.bound is None else max(self.leakage - self.bound.lower, 0.0)

    @cached_property
    def kkt(self) -> PointResiduals | Residuals:
        """The whole problem's residuals at the final point; `largest` is the figure that the run was stopped by.

        With user constraints: those of the convex-concave block at its own point, which stays there iff the point is
        stationary.
        """
        if self.constraints:
            return self.blocks()[self.whole].residual(self.state, self.state)
        log_u, lam = self.state["log_u"][None], self.state["lam"][None]
        usual = algorithm.final_residuals(self.problem, log_u, lam, self.settings.tol).of(0)
        lower = None if self.bound is None else self.bound.lower
        return replace(usual, free=optimum.free_symbol(self.problem, self.mechanism, lower))

    def blocks(self) -> dict[str, Block]:
        found = algorithm.blocks(self.problem, self.constraints)
        if self.bound is None:
            return found
        joint = self.problem.p_x[:, None] * self.bound.mechanism
        used = joint.sum(axis=0) > 0.0
        columns = joint[:, used] / joint[:, used].sum(axis=0)
        return {**found, "columns": columns_block(self.problem.table.probabilities, self.problem.rate, columns)}

    def _described(self, beside: Beside) -> Facts:
        return funnel_facts(self, beside, self.bound)

    def as_mechanism(self) -> Mechanism:
        figures = {"leakage": self.leakage, "utility": self.utility, "rate": self.problem.rate, "kkt": self.kkt.largest}
        return self._designed(figures, asdict(self.settings), self.problem.table.private.columns)

    def saved(self) -> dict[str, Any]:
        proof = {} if self.bound is None else {"certificate": self.bound.certificate.without_table().document()}
        return {"rate": self.problem.rate, "size_y": self.problem.size_y, **proof}

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> FunnelRun:
        """See `Run`; a certificate that proves nothing, or of another rate, is refused by a DataError."""
        problem, kept = Problem(table_of(document), document["rate"], document["size_y"]), restored(document)
        held = document.get("certificate")
        return cls(
            problem=problem,
            bound=None if held is None else stored_bound(certificate_of(held), problem, kept["constraints"]),
            settings=decoded(Settings, document["settings"]),
            **kept,
        )


def columns_block(joint: Array, rate: float, columns: Array) -> Block:
    """Build the funnel over given posteriors: a linear program that any solver can check.

        minimise    H(S) - sum_k r_k H(A pi_k)
        subject to  sum_k r_k pi_k = P_X,   sum_k r_k H(pi_k) <= H(X) - R,   r >= 0.

    Its value is the leakage of the best mechanism with these posteriors, so it is never below the best of all.

    `joint`, ``(|S|, |X|)``: P(S, X), every column with mass.
    `rate`: R in nats.
    `columns`, ``(|X|, k)``: Posteriors P(X|y).
    Returns: Its constraints are "posteriors average to P(X)", "rate" and "weights"; the dual of "rate" is lam, and the
    negative dual of the first is nu.

    Examples
    --------
    >>> block = columns_block(np.diag([0.5, 0.5]), np.log(2.0), np.eye(2))
    >>> round(float(block.declaration().problem.solve(solver="CLARABEL")), 6)
    0.693147
    """
    pricing = FunnelPricing(joint, rate)
    costs, rows = pricing.rows(columns)
    named = {
        "posteriors average to P(X)": (rows[:-1], pricing.p_x, True),
        "rate": (rows[-1:], np.array([pricing.entropy_x - rate]), False),
    }
    return master_block(costs, named, pricing.entropy_s)
