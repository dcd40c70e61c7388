"""A certificate as data: a table, multipliers, a mechanism and a claim, which anyone can check without a solver.

The checker is `cvxpriv.bounds.check_certificate`: one file of the standard library, which can be copied out beside a
report. It derives the claim again in exact arithmetic.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.bounds.check_certificate import KIND, SCHEMA, SHORT, VERSION, check, table_hash
from cvxpriv.errors import DataError
from cvxpriv.numerics.arrays import Array
from cvxpriv.reports.files import PathLike, read_document, write_text


@dataclass(frozen=True, eq=False, kw_only=True)
class StoredProof(ABC):
    """A bound for one table, and its proof.

    `table`: The joint probabilities. None: the file holds only their hash, and the table is given to the check.
    `sha256`: The table's hash; "" where it is that of the table held, computed when the certificate is written.
    `bound`: The claimed bound in nats.
    `mechanism`: A mechanism that comes close to the bound.
    `groups`: Group of each private symbol, where the proof merges some of them.
    """

    table: Array | None
    sha256: str = ""
    bound: float
    mechanism: Array
    groups: tuple[int, ...] | None = None

    #: Schema, version and kind, which a file of this sort states.
    header: ClassVar[tuple[str, int, str]]

    @abstractmethod
    def own(self) -> dict[str, Any]:
        """Return this kind's own part of a file, as JSON's types."""

    @classmethod
    @abstractmethod
    def own_of(cls, held: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields that `own` wrote."""

    @property
    def table_sha256(self) -> str:
        """The table's hash."""
        return self.sha256 if self.sha256 or self.table is None else table_hash(self.table.tolist())

    def without_table(self) -> Self:
        """Return the same certificate with only the table's hash."""
        return replace(self, table=None, sha256=self.table_sha256)

    def document(self) -> dict[str, Any]:
        """Return the certificate as JSON's types."""
        schema, version, kind = self.header
        return {
            "schema": schema,
            "version": version,
            "kind": kind,
            **self.own(),
            "bound": float(self.bound),
            "table_sha256": self.table_sha256,
            "mechanism": self.mechanism.tolist(),
            **({} if self.table is None else {"table": self.table.tolist()}),
            **({} if self.groups is None else {"groups": list(self.groups)}),
        }

    def save(self, path: PathLike) -> Path:
        """Write the certificate as JSON, whole or not at all; for its owner alone if it holds the table."""
        return write_text(path, json.dumps(self.document(), indent=1) + "\n", private=self.table is not None)

    @classmethod
    def load(cls, path: PathLike) -> Self:
        """Read a certificate without checking its proof.

        Raises DataError: The file is not a certificate of this kind and version.
        """
        return cls.of_document(read_document(path, "a certificate that save wrote"), str(path))

    @classmethod
    def of_document(cls, held: Any, path: str = "the document") -> Self:
        """Return the certificate that `document` wrote, without checking its proof.

        Raises DataError: It is not a certificate of this kind and version, or holds a number that is not finite.
        """
        try:
            found = tuple(held[key] for key in ("schema", "version", "kind"))
            if found != cls.header:
                raise DataError(f"{path} is of {found}: expected {cls.header}")
            fields = {
                "table": np.array(held["table"], dtype=np.float64) if held.get("table") is not None else None,
                "sha256": str(held["table_sha256"]),
                "bound": float(held["bound"]),
                "mechanism": np.array(held["mechanism"], dtype=np.float64),
                "groups": None if held.get("groups") is None else tuple(held["groups"]),
                **cls.own_of(held),
            }
            numbers = [value for value in fields.values() if isinstance(value, (float, np.ndarray))]
            if not all(np.isfinite(value).all() for value in numbers):
                raise DataError(f"{path} is no certificate: its numbers have to be finite")
            return cls(**fields)
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as problem:
            if isinstance(problem, DataError):
                raise
            raise DataError(f"{path} is no certificate ({problem}): pass a file that save wrote") from None

    def derived(self, check: Callable[[Any, Any], dict[str, Any]], table: ArrayLike | None) -> dict[str, Any]:
        """Return the figures that a checker derives for the claim.

        Raises DataError: The certificate does not prove its claim; the message says why.
        """
        given = None if table is None else np.asarray(table, dtype=np.float64).tolist()
        try:
            return check(self.document(), given)
        except ValueError as problem:
            raise DataError(f"the certificate does not prove its bound of {self.bound:.9g}: {problem}") from None


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
            bound=bound,
            mechanism=mechanism,
            groups=groups,
            rate=rate,
            nu=np.round(nu * SHORT) / SHORT,
            lam=round(lam * SHORT) / SHORT,
        )

    def own(self) -> dict[str, Any]:
        return {"rate": float(self.rate), "lam": float(self.lam), "nu": self.nu.tolist()}

    @classmethod
    def own_of(cls, held: Mapping[str, Any]) -> dict[str, Any]:
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
