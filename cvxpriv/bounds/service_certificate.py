"""The certificate of a bound of inference as a service: a table, multipliers, a mechanism and a claim.

The checker is `cvxpriv.bounds.check_service_certificate`: one file of the standard library, which can be copied out
beside a report. It derives the claim again in exact arithmetic. Under constraints
`cvxpriv.bounds.check_constrained_service_certificate` does, which needs the other and `check_costs.py` beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.bounds import check_constrained_service_certificate as constrained
from cvxpriv.bounds.certificate import Readers, StoredProof, each, numbers, text, unless_missing
from cvxpriv.bounds.check_service_certificate import FORMS, KIND, SCHEMA, SHORT, VERSION, check
from cvxpriv.numerics.arrays import Array

#: The divergences whose f the checker knows; for others a certificate brings points of the conjugate.
KNOWN = tuple(FORMS)


@dataclass(frozen=True)
class ServiceChecked:
    """The figures that the checker derived.

    `bound`: Upper bound of the value of every mechanism, in nats.
    `value`: Lower bound of the value of the certificate's mechanism, in nats. NaN where only points of f are known.
    """

    bound: float
    value: float


@dataclass(frozen=True, eq=False, kw_only=True)
class ServiceCertificate(StoredProof):
    """The claim that every P(U|Y) has I(S;U) - beta E[f(p(u)/p(u|y))] <= bound, with its proof.

    `divergence`: Name of the divergence: one of `KNOWN`, or a user's own.
    `formula`: The formula of f, for readers.
    `alpha`, (|Y|,): The multipliers of P(Y).
    `conjugate`, (k, 2): For an f that the checker does not know: points t, h with max over 0 <= r <= 1/min p(y) of t r
    - r f(1/r) <= h, up to a multiple of r - 1 under f's sum. The proof holds for every f that these points bound.
    `table`, `sha256`, `bound`, `mechanism`, `groups`: See `StoredProof`; the table is P(S, Y), (|S|, |Y|), the
    mechanism P(U|Y), (|Y|, |U|). The loss from merging groups is added.
    """

    beta: float
    divergence: str
    formula: str
    alpha: Array
    conjugate: Array | None = None

    header = (SCHEMA, VERSION, KIND)
    own: ClassVar[Readers] = {
        **{"beta": float, "divergence": text, "formula": lambda held: str(held or ""), "alpha": numbers},
        "conjugate": unless_missing(numbers),
    }
    checker: ClassVar[Callable[..., dict[str, Any]]] = staticmethod(check)

    @classmethod
    def of(
        cls,
        table: Array,
        beta: float,
        divergence: tuple[str, str],
        alpha: Array,
        bound: float,
        mechanism: Array,
        groups: tuple[int, ...] | None = None,
        conjugate: Array | None = None,
    ) -> ServiceCertificate:
        """Return a certificate of a table; the multipliers are rounded as the checker rounds them."""
        name, formula = divergence
        return cls(
            table=table,
            bound=bound,
            mechanism=mechanism,
            groups=groups,
            beta=beta,
            divergence=name,
            formula=formula,
            alpha=np.round(alpha * SHORT) / SHORT,
            conjugate=conjugate,
        )

    def verify(self, table: ArrayLike | None = None) -> ServiceChecked:
        """Derive the claim again, without a solver.

        `table`, (|S|, |Y|): P(S, Y), where the certificate holds only its hash.
        Raises DataError: The certificate does not prove its claim; the message says why.
        """
        found = self.derived(table)
        return ServiceChecked(found["bound"], found["value"])


@dataclass(frozen=True, eq=False, kw_only=True)
class ConstrainedServiceCertificate(ServiceCertificate):
    """The claim of `ServiceCertificate` for every P(U|Y) that satisfies constraints.

    `constraints`: Each with its kind and its numbers, as the checker reads them.
    `mu`: The multipliers of each one's sums over outputs, >= 0.
    `cells`: For each sort of outputs a tree in order, its root first: the number of the pair of corners to cut
    between, or n and each constraint's numbers.
    """

    constraints: tuple[dict[str, Any], ...]
    mu: tuple[list[float], ...]
    cells: tuple[list[Any], ...]

    header = (SCHEMA, VERSION, constrained.KIND)
    own: ClassVar[Readers] = {
        **ServiceCertificate.own,
        "constraints": each(dict),
        "mu": each(list),
        "cells": each(list),
    }
    checker = staticmethod(constrained.check)


def service_certificate_of(document: Any, path: str = "the document") -> ServiceCertificate:
    """Read a certificate, with constraints or without; see `StoredProof.of_document`."""
    under = isinstance(document, dict) and document.get("kind") == constrained.KIND
    return (ConstrainedServiceCertificate if under else ServiceCertificate).of_document(document, path)
