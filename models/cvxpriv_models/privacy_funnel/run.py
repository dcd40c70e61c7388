"""The result of the funnel: `FunnelRun`.

The bound of its stored certificate is checked in floating point, where that is a fraction of the exact check's work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Constraint
from cvxpriv.bounds.certificate import Certificate, ConstrainedCertificate, CostedCertificate, certificate_of
from cvxpriv.bounds.check_certificate import table_hash
from cvxpriv.bounds.columns import Pricing
from cvxpriv.bounds.master import master_block
from cvxpriv.bounds.merged_symbols import merged_table
from cvxpriv.errors import DataError
from cvxpriv.kkt import Residuals
from cvxpriv.mechanisms.mechanism import Mechanism
from cvxpriv.numerics.arrays import Array
from cvxpriv.reports.facts import Facts
from cvxpriv.runs.mechanism_run import Beside, MechanismRun, restored
from cvxpriv.runs.saved import decoded
from cvxpriv.tables.arrays import stochastic_matrix
from cvxpriv.tables.documents import table_of

from . import closed_form, optimum
from .blocks import blocks
from .bound import Clock, FunnelBound
from .column_constraints import ColumnConstraints
from .constrained_pricing import ConstrainedPricing
from .costed_certificates import stated_by
from .costed_pricing import Costs
from .facts import funnel_facts
from .kkt import PointResiduals, final_residuals
from .pricing import FunnelPricing
from .problem import Problem


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
        """Certified distance in nats from the least leakage that any mechanism reaches at the rate; None where
        `no_gap` says why.

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
        usual = final_residuals(self.problem, log_u, lam, self.settings.tol).of(0)
        lower = None if self.bound is None else self.bound.lower
        return replace(usual, free=optimum.free_symbol(self.problem, self.mechanism, lower))

    def blocks(self) -> dict[str, Block]:
        found = blocks(self.problem, self.constraints)
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
        proof: dict[str, Any] = {}
        if self.bound is not None:
            proof = {"certificate": self.bound.certificate.without_table().document(), "reason": self.bound.reason}
        return {"rate": self.problem.rate, "size_y": self.problem.size_y, **proof}

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> FunnelRun:
        """See `Run`; a state of another table, and a certificate that proves nothing, are refused by a DataError."""
        rate, size_y = decoded(float, document["rate"]), decoded(int, document["size_y"])
        problem, kept = Problem(table_of(document), rate, size_y), restored(document)
        sums = np.exp(kept["state"]["log_u"]).sum(axis=1)
        if sums.shape != problem.p_x.shape or not np.allclose(sums, problem.p_x, rtol=SAME_MASSES, atol=0.0):
            raise DataError(
                "log_u of the saved run is no P(X,Y) of its table: its rows do not sum to P(X); solve again"
            )
        bound, held = None, document.get("certificate")
        if held is not None:
            bound = stored_bound(certificate_of(held), problem, kept["constraints"])
            bound = replace(bound, reason=decoded(str, document.get("reason", "")))
        return cls(
            problem=problem,
            bound=bound,
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


#: Largest difference of a certificate's rate from the problem's, in nats, and of a state's P(X), relative.
SAME_RATE, SAME_MASSES = 1e-12, 1e-9
#: Seconds for the check of a stored certificate.
CHECK_TIME = 60.0


def stored_bound(
    certificate: Certificate, problem: Problem, constraints: Sequence[tuple[str, Constraint]] = ()
) -> FunnelBound:
    """Return what a stored certificate says of a problem under constraints.

    Raises DataError: The certificate is of another table, rate or constraints, or does not prove its claim.
    """
    if abs(certificate.rate - problem.rate) > SAME_RATE:
        raise DataError(f"the certificate is of rate={certificate.rate!r}, the run of {problem.rate!r}: solve again")
    table, clock, names = problem.table.probabilities, Clock(CHECK_TIME), tuple(name for name, _ in constraints)
    if len(stochastic_matrix(certificate.mechanism, "the certificate's mechanism")) != len(problem.p_x):
        raise DataError("the certificate's mechanism has other inputs than the table: solve again")
    if certificate.table_sha256 != table_hash(table.tolist()):
        raise DataError("the certificate does not prove a bound of this table: its SHA-256 differs")
    if isinstance(certificate, CostedCertificate):
        return _costed(certificate, problem, constraints)
    counted: tuple[str, ...] = ()
    ignored, upper = names, 0.0
    if isinstance(certificate, ConstrainedCertificate):
        asked = ColumnConstraints.of(problem, constraints)
        pricing: FunnelPricing | ConstrainedPricing = ConstrainedPricing(FunnelPricing(table, certificate.rate), asked)
        if certificate.constraints != asked.stated:
            raise DataError("the certificate does not prove a bound under these constraints: it states others")
        counted, ignored = asked.counted, asked.ignored
        duals = np.concatenate([certificate.nu, [-certificate.lam], -certificate.mu])
        size = len(problem.p_x) + 1 + len(asked.upper)
    else:
        pricing = FunnelPricing(_grouped(table, certificate.groups), certificate.rate)
        duals, size = np.append(certificate.nu, -certificate.lam), len(pricing.p_x) + 1
    if len(duals) != size or max(duals[len(problem.p_x) :]) > 0.0:
        raise DataError("the certificate does not prove its bound: its multipliers do not fit the table")
    if certificate.bound > 0.0 and not (pricing.certifiable and _proves(pricing, duals, certificate.bound, clock)):
        upper = certificate.verify(table).leakage  # multipliers that need corners alone, and what rounding leaves open
    upper = max(problem.leakage(certificate.mechanism), certificate.bound, upper)
    ends = certificate.bound, upper, certificate.mechanism
    return FunnelBound(*ends, certificate, certificate.rate, clock.seconds, "", counted, ignored)


def _costed(
    certificate: CostedCertificate, problem: Problem, constraints: Sequence[tuple[str, Constraint]]
) -> FunnelBound:
    """The bound of a certificate under convex costs, after the exact check, which its cells make short."""
    known, clock = stated_by(problem, Costs.of(problem, constraints)), Clock(CHECK_TIME)
    if not all(one in known.values() for one in certificate.constraints):
        raise DataError("the certificate does not prove a bound under these constraints: it states others")
    certificate.verify(problem.table.probabilities)
    counted = tuple(name for name, said in known.items() if said in certificate.constraints)
    ends = certificate.bound, max(problem.leakage(certificate.mechanism), certificate.bound), certificate.mechanism
    ignored = tuple(name for name, _ in constraints if name not in counted)
    return FunnelBound(*ends, certificate, certificate.rate, clock.seconds, "", counted, ignored)


def _proves(pricing: Pricing, duals: Array, claim: float, clock: Clock) -> bool:
    """Whether multipliers prove a claim in floating point; the exact check takes seconds."""
    room = pricing.bound(duals, 0.0) - claim
    return room >= 0.0 and pricing.bound(duals, min(pricing.verify(duals, -room, clock.over).least, 0.0)) >= claim


def _grouped(table: Array, groups: tuple[int, ...] | None) -> Array:
    """The table with private symbols merged."""
    if groups is None:
        return table
    if len(groups) != len(table):
        raise DataError(f"the certificate does not prove its bound: {len(groups)} groups for {len(table)} symbols of S")
    return merged_table(table, np.unique(groups, return_inverse=True)[1])
