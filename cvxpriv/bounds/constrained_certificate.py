"""The certificate of a bound under constraints: it states those that it counts, and the multipliers of their sums.

Its checker is `cvxpriv.bounds.check_constrained_certificate`, which needs `check_certificate.py` beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from cvxpriv.bounds.certificate import Certificate
from cvxpriv.bounds.check_constrained_certificate import KIND, SCHEMA, SHORT, VERSION, check
from cvxpriv.errors import DataError
from cvxpriv.numerics.arrays import Array


@dataclass(frozen=True, eq=False, kw_only=True)
class ConstrainedCertificate(Certificate):
    """The claim that every mechanism with I(X;Y) >= rate that satisfies constraints has I(S;Y) >= bound.

    `mu`, (k,): The multipliers of the constraints' sums over outputs, >= 0.
    `constraints`: Each with its kind and its numbers, as the checker reads them.
    `others`: See `Certificate`.
    """

    mu: Array
    constraints: tuple[dict[str, Any], ...]

    header: ClassVar[tuple[str, int, str]] = (SCHEMA, VERSION, KIND)
    checker: ClassVar[Callable[..., dict[str, float]]] = staticmethod(check)

    @classmethod
    def under(
        cls, certificate: Certificate, mu: Array, constraints: tuple[dict[str, Any], ...]
    ) -> ConstrainedCertificate:
        """Return a certificate with the constraints that its claim holds under."""
        held = {one.name: getattr(certificate, one.name) for one in fields(certificate)}
        return cls(**held, mu=np.round(mu * SHORT) / SHORT, constraints=constraints)

    def own(self) -> dict[str, Any]:
        return {**super().own(), "mu": self.mu.tolist(), "constraints": list(self.constraints)}

    @classmethod
    def own_of(cls, held: Mapping[str, Any]) -> dict[str, Any]:
        constraints = tuple(held["constraints"])
        if not all(isinstance(one, dict) for one in constraints):
            raise DataError("the certificate's constraints are no objects: pass a file that save wrote")
        return {**super().own_of(held), "mu": np.array(held["mu"], dtype=np.float64), "constraints": constraints}


def certificate_of(document: Any, path: str = "the document") -> Certificate:
    """Read a certificate of the funnel, with constraints or without; see `StoredProof.of_document`."""
    constrained = isinstance(document, dict) and document.get("kind") == KIND
    return (ConstrainedCertificate if constrained else Certificate).of_document(document, path)
