"""The certificate of a bound of inference as a service: a table, multipliers, a mechanism and a claim.

The checker is `cvxpriv.bounds.check_service_certificate`: one file of the standard library, which can be copied out
beside a report. It derives the claim again in exact arithmetic.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.bounds.check_service_certificate import FORMS, KIND, SCHEMA, SHORT, VERSION, check, table_hash
from cvxpriv.errors import DataError
from cvxpriv.numerics.arrays import Array
from cvxpriv.reports.files import PathLike, write_text

__all__ = ["KNOWN", "ServiceCertificate", "ServiceChecked"]

#: The divergences whose f the checker knows; of others a certificate brings points of the conjugate.
KNOWN = tuple(FORMS)


@dataclass(frozen=True)
class ServiceChecked:
    """What the checker found.

    Attributes
    ----------
    bound : float
        No mechanism is worth more, nats.
    value : float
        A lower end of what the certificate's mechanism is worth, nats. NaN where f is known by points alone.
    """

    bound: float
    value: float


@dataclass(frozen=True, eq=False)
class ServiceCertificate:
    """The claim that every P(U|Y) has I(S;U) - beta E[f(p(u)/p(u|y))] <= bound, with its proof.

    Attributes
    ----------
    table : array, (|S|, |Y|), or None
        P(S, Y). None: the file holds only its hash, and whoever checks brings the table.
    sha256 : str
        The table's hash.
    beta : float
    divergence : str
        Its name; one of `KNOWN`, or a user's own.
    formula : str
        f, for people.
    alpha : array, (|Y|,)
        The multipliers of P(Y).
    bound : float
        Nats.
    mechanism : array, (|Y|, |U|)
        One that comes close.
    groups : tuple of int, optional
        Which symbols of S are merged in the proof; what the merging loses is added.
    conjugate : array, (k, 2), optional
        Of an f that the checker does not know: points t, h with max over 0 <= r <= 1/min p(y) of t r - r f(1/r) <= h,
        up to a multiple of r - 1 under f's sum. What is proved holds for every f that these points bound.
    """

    table: Array | None
    sha256: str
    beta: float
    divergence: str
    formula: str
    alpha: Array
    bound: float
    mechanism: Array
    groups: tuple[int, ...] | None = None
    conjugate: Array | None = None

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
        """A certificate of a table; the multipliers are rounded as the checker rounds them."""
        name, formula = divergence
        short = np.round(alpha * SHORT) / SHORT
        return cls(table, table_hash(table.tolist()), beta, name, formula, short, bound, mechanism, groups, conjugate)

    def without_table(self) -> ServiceCertificate:
        """The same certificate with the table's hash alone."""
        return replace(self, table=None)

    def document(self) -> dict[str, Any]:
        """The certificate as JSON's types."""
        document: dict[str, Any] = {
            "schema": SCHEMA,
            "version": VERSION,
            "kind": KIND,
            "beta": float(self.beta),
            "divergence": self.divergence,
            "formula": self.formula,
            "bound": float(self.bound),
            "alpha": self.alpha.tolist(),
            "table_sha256": self.sha256,
            "mechanism": self.mechanism.tolist(),
        }
        if self.table is not None:
            document["table"] = self.table.tolist()
        if self.groups is not None:
            document["groups"] = list(self.groups)
        if self.conjugate is not None:
            document["conjugate"] = self.conjugate.tolist()
        return document

    def save(self, path: PathLike) -> Path:
        """Write the certificate as JSON, whole or not at all."""
        return write_text(path, json.dumps(self.document(), indent=1) + "\n")

    @classmethod
    def of_document(cls, held: Any, path: str = "the document") -> ServiceCertificate:
        """Read what `document` wrote; it is not checked yet.

        Raises
        ------
        DataError
            It is no certificate of this version.
        """
        try:
            found = [held[key] for key in ("schema", "version", "kind")]
            if found != [SCHEMA, VERSION, KIND]:
                raise DataError(f"{path} is of {found}: expected {[SCHEMA, VERSION, KIND]}")
            arrays = {key: np.array(held[key], dtype=np.float64) for key in _ARRAYS if held.get(key) is not None}
            groups = None if held.get("groups") is None else tuple(held["groups"])
            return cls(
                arrays.get("table"),
                str(held["table_sha256"]),
                float(held["beta"]),
                str(held["divergence"]),
                str(held.get("formula", "")),
                arrays["alpha"],
                float(held["bound"]),
                arrays["mechanism"],
                groups,
                arrays.get("conjugate"),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            if isinstance(problem, DataError):
                raise
            raise DataError(f"{path} is no certificate ({problem}): pass a file that save wrote") from None

    def verify(self, table: ArrayLike | None = None) -> ServiceChecked:
        """Derive the claim again, without a solver.

        Parameters
        ----------
        table : array, (|S|, |Y|), optional
            P(S, Y), where the certificate holds only its hash.

        Raises
        ------
        DataError
            The certificate does not prove its claim; the message says why.
        """
        given = None if table is None else np.asarray(table, dtype=np.float64).tolist()
        try:
            found = check(self.document(), given)
        except ValueError as problem:
            raise DataError(f"the certificate does not prove its bound of {self.bound:.9g}: {problem}") from None
        return ServiceChecked(found["bound"], found["value"])


_ARRAYS = ("table", "alpha", "mechanism", "conjugate")
