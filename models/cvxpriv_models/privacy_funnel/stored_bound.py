"""The bound of a stored certificate, checked in floating point where that is a fraction of the exact check's work."""

from collections.abc import Sequence

import numpy as np

from cvxpriv.blocks.declaration import Constraint
from cvxpriv.bounds.certificate import Certificate, ConstrainedCertificate, CostedCertificate
from cvxpriv.bounds.check_certificate import table_hash
from cvxpriv.bounds.merged_symbols import merged_table
from cvxpriv.bounds.pricing import Pricing
from cvxpriv.errors import DataError
from cvxpriv.numerics.arrays import Array

from .bound import Clock, FunnelBound
from .column_constraints import ColumnConstraints
from .constrained_pricing import ConstrainedPricing
from .costed_certificates import stated_by
from .costed_pricing import Costs
from .pricing import FunnelPricing
from .problem import Problem

#: Largest difference of a certificate's rate from the problem's, in nats.
SAME_RATE = 1e-12
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
    if certificate.bound > 0.0 and pricing.certifiable:
        _require_proved(pricing, duals, certificate.bound, clock)
    elif certificate.bound > 0.0:  # multipliers that need corners alone
        upper = certificate.verify(table).leakage
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


def _require_proved(pricing: Pricing, duals: Array, claim: float, clock: Clock) -> None:
    room = pricing.bound(duals, 0.0) - claim
    shown = room
    if room >= 0.0:
        shown = pricing.bound(duals, min(pricing.verify(duals, -room, clock.over).least, 0.0)) - claim
    if shown < 0.0:
        raise DataError(
            f"the certificate does not prove its bound of {claim:.9g}: its multipliers give at most {claim + shown:.9g}"
        )


def _grouped(table: Array, groups: tuple[int, ...] | None) -> Array:
    """The table with private symbols merged."""
    if groups is None:
        return table
    if len(groups) != len(table):
        raise DataError(f"the certificate does not prove its bound: {len(groups)} groups for {len(table)} symbols of S")
    return merged_table(table, np.unique(groups, return_inverse=True)[1])
