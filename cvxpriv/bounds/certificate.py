"""A certificate is data: a table, multipliers, a mechanism and a claim, which anybody can check without a solver.

The checker is `cvxpriv.bounds.check_certificate`: one file of the standard library, which can be copied out beside a
report. It derives the claim again in exact arithmetic.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.bounds.check_certificate import KIND, SCHEMA, SHORT, VERSION, check, table_hash
from cvxpriv.errors import DataError
from cvxpriv.numerics.arrays import Array
from cvxpriv.reports.files import PathLike, read_text, write_text

__all__ = ["Certificate", "Checked"]


@dataclass(frozen=True)
class Checked:
    """What the checker found, in nats.

    Attributes
    ----------
    bound : float
        Every mechanism with I(X;Y) >= rate leaks at least this.
    leakage : float
        An upper end of what the certificate's mechanism leaks.
    utility : float
        A lower end of its I(X;Y).
    """

    bound: float
    leakage: float
    utility: float


@dataclass(frozen=True, eq=False)
class Certificate:
    """The claim that every mechanism with I(X;Y) >= rate has I(S;Y) >= bound, with its proof.

    Attributes
    ----------
    table : array, ``(|S|, |X|)``, or None
        P(S, X). None: the file holds only its hash, and whoever checks brings the table.
    sha256 : str
        The table's hash.
    rate : float
        Nats.
    nu : array, ``(|X|,)``
    lam : float
        The multipliers of P(X) and of the rate.
    bound : float
        Nats.
    mechanism : array, ``(|X|, |Y|)``
        One that comes close.
    groups : tuple of int, optional
        Which private symbols are merged in the proof: Y tells no more of groups than of S.
    """

    table: Array | None
    sha256: str
    rate: float
    nu: Array
    lam: float
    bound: float
    mechanism: Array
    groups: tuple[int, ...] | None = None

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
        """A certificate of a table; the multipliers are rounded as the checker rounds them."""
        short_nu, short_lam = np.round(nu * SHORT) / SHORT, round(lam * SHORT) / SHORT
        return cls(table, table_hash(table.tolist()), rate, short_nu, short_lam, bound, mechanism, groups)

    def without_table(self) -> Certificate:
        """The same certificate with the table's hash alone."""
        return replace(self, table=None)

    def document(self) -> dict[str, Any]:
        """The certificate as JSON's types."""
        document: dict[str, Any] = {
            "schema": SCHEMA,
            "version": VERSION,
            "kind": KIND,
            "rate": float(self.rate),
            "bound": float(self.bound),
            "lam": float(self.lam),
            "nu": self.nu.tolist(),
            "table_sha256": self.sha256,
            "mechanism": self.mechanism.tolist(),
        }
        if self.table is not None:
            document["table"] = self.table.tolist()
        if self.groups is not None:
            document["groups"] = list(self.groups)
        return document

    def save(self, path: PathLike) -> Path:
        """Write the certificate as JSON, whole or not at all; for its owner alone if it holds the table."""
        return write_text(path, json.dumps(self.document(), indent=1) + "\n", private=self.table is not None)

    @classmethod
    def load(cls, path: PathLike) -> Certificate:
        """Read a certificate; it is not checked yet.

        Raises
        ------
        DataError
            The file is no certificate of this version.
        """
        try:
            return cls.of_document(json.loads(read_text(path)), str(path))
        except ValueError as problem:
            if isinstance(problem, DataError):
                raise
            raise DataError(f"{path} is no certificate ({problem}): pass a file that Certificate.save wrote") from None

    @classmethod
    def of_document(cls, held: Any, path: str = "the document") -> Certificate:
        """Read what `document` wrote; it is not checked yet.

        Raises
        ------
        DataError
            It is no certificate of this version.
        """
        try:
            if (held["schema"], held["version"], held["kind"]) != (SCHEMA, VERSION, KIND):
                raise DataError(
                    f"{path} has schema {held['schema']!r}, version {held['version']!r}: expected {VERSION}"
                )
            table = np.array(held["table"], dtype=np.float64) if "table" in held else None
            groups = tuple(held["groups"]) if held.get("groups") is not None else None
            nu, mechanism = (np.array(held[key], dtype=np.float64) for key in ("nu", "mechanism"))
            rate, lam, bound = (float(held[key]) for key in ("rate", "lam", "bound"))
            if not all(np.isfinite(part).all() for part in (nu, mechanism, rate, lam, bound)) or rate < 0.0:
                raise DataError(f"{path} is no certificate: its numbers have to be finite, and its rate >= 0")
            return cls(table, str(held["table_sha256"]), rate, nu, lam, bound, mechanism, groups)
        except (KeyError, TypeError, ValueError) as problem:
            if isinstance(problem, DataError):
                raise
            raise DataError(f"{path} is no certificate ({problem}): pass a file that Certificate.save wrote") from None

    def verify(self, table: ArrayLike | None = None) -> Checked:
        """Derive the claim again, without a solver.

        Parameters
        ----------
        table : array, ``(|S|, |X|)``, optional
            P(S, X), where the certificate holds only its hash.

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
        return Checked(found["bound"], found["leakage"], found["utility"])
