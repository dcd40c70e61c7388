"""A certificate as data: a table, multipliers, a mechanism and a claim, which anyone can check without a solver.

The checker is `cvxpriv.bounds.check_certificate`: one file of the standard library, which can be copied out beside a
report. It derives the claim again in exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.bounds.check_certificate import KIND, SCHEMA, SHORT, VERSION, check, table_hash
from cvxpriv.bounds.stored_proof import StoredProof
from cvxpriv.errors import DataError
from cvxpriv.numerics.arrays import Array


@dataclass(frozen=True)
class Checked:
    """The figures that the checker derived, in nats.

    Attributes
    ----------
    bound : float
        Every mechanism with I(X;Y) >= rate leaks at least this.
    leakage : float
        Upper bound of the leakage of the certificate's mechanism.
    utility : float
        Lower bound of its I(X;Y).
    """

    bound: float
    leakage: float
    utility: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Certificate(StoredProof):
    """The claim that every mechanism with I(X;Y) >= rate has I(S;Y) >= bound, with its proof.

    `rate`: Required utility in nats.
    `nu`: (|X|,).
    `lam`: The multipliers of P(X), nu, and of the rate, lam.
    `table`, `sha256`, `bound`, `mechanism`, `groups`: See `StoredProof`; the table is P(S, X), ``(|S|, |X|)``, the
    mechanism P(Y|X), ``(|X|, |Y|)``. Y reveals no more of groups than of S.
    """

    rate: float
    nu: Array
    lam: float

    header: ClassVar[tuple[str, int, str]] = (SCHEMA, VERSION, KIND)
    checker: ClassVar[Callable[..., dict[str, float]]] = staticmethod(check)

    @classmethod
    def of(
        cls,
        table: Array,
        rate: float,
        nu: Array,
        lam: float,
        bound: float,
        mechanism: Array,
        groups: tuple[int, ...] | None = None,
    ) -> Certificate:
        """Return a certificate of a table; the multipliers are rounded as the checker rounds them."""
        return cls(
            table=table,
            sha256=table_hash(table.tolist()),
            bound=bound,
            mechanism=mechanism,
            groups=groups,
            rate=rate,
            nu=np.round(nu * SHORT) / SHORT,
            lam=round(lam * SHORT) / SHORT,
        )

    def own(self) -> dict[str, Any]:
        """See `StoredProof`."""
        return {"rate": float(self.rate), "lam": float(self.lam), "nu": self.nu.tolist()}

    @classmethod
    def own_of(cls, held: Mapping[str, Any]) -> dict[str, Any]:
        """See `StoredProof`."""
        rate, lam = float(held["rate"]), float(held["lam"])
        if rate < 0.0:
            raise DataError(f"the certificate has rate={rate!r}: expected nats >= 0")
        return {"rate": rate, "lam": lam, "nu": np.array(held["nu"], dtype=np.float64)}

    def verify(self, table: ArrayLike | None = None) -> Checked:
        """Derive the claim again, without a solver.

        `table`, (|S|, |X|): P(S, X), where the certificate holds only its hash.
        Raises DataError: The certificate does not prove its claim; the message says why.
        """
        found = self.derived(self.checker, table)
        return Checked(found["bound"], found["leakage"], found["utility"])
