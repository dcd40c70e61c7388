"""A certificate as data: a table, multipliers, a mechanism and a claim, which anyone can check without a solver.

The checker is `cvxpriv.bounds.check_certificate`: one file of the standard library, which can be copied out beside a
report. It derives the claim again in exact arithmetic.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.bounds import check_constrained_certificate as constrained, check_costed_certificate as costed
from cvxpriv.bounds.check_certificate import KIND, SCHEMA, SHORT, VERSION, check, table_hash
from cvxpriv.errors import DataError
from cvxpriv.numerics.arrays import Array
from cvxpriv.reports.files import PathLike, read_document, write_text

Readers: TypeAlias = Mapping[str, Callable[[Any], Any]]


@dataclass(frozen=True, eq=False, kw_only=True)
class StoredProof:
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
    #: The fields of this sort alone, and how each is read from a file.
    own: ClassVar[Readers]
    #: The standard-library check of a document.
    checker: ClassVar[Callable[..., dict[str, Any]]]

    @classmethod
    def under(cls, certificate: StoredProof, **own: Any) -> Self:
        """Return a certificate with the constraints that its claim holds under."""
        return cls(**{one.name: getattr(certificate, one.name) for one in fields(certificate)}, **own)

    @property
    def table_sha256(self) -> str:
        """The table's hash."""
        return self.sha256 if self.sha256 or self.table is None else table_hash(self.table.tolist())

    def without_table(self) -> Self:
        """Return the same certificate with only the table's hash."""
        return replace(self, table=None, sha256=self.table_sha256)

    def document(self) -> dict[str, Any]:
        """Return the certificate as JSON's types."""
        held = {name: getattr(self, name) for name in (*self.own, "bound", "mechanism", "table", "groups")}
        named = dict(zip(("schema", "version", "kind"), self.header, strict=True))
        plain = {name: _plain(value) for name, value in held.items() if value is not None}
        return {**named, **plain, "table_sha256": self.table_sha256}

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
            read = {
                "table": unless_missing(numbers)(held.get("table")),
                "sha256": str(held["table_sha256"]),
                "bound": float(held["bound"]),
                "mechanism": numbers(held["mechanism"]),
                "groups": unless_missing(tuple)(held.get("groups")),
                **{name: of(held.get(name)) for name, of in cls.own.items()},
            }
            values = [value for value in read.values() if isinstance(value, (float, np.ndarray))]
            if not all(np.isfinite(value).all() for value in values):
                raise DataError(f"{path} is no certificate: its numbers have to be finite")
            return cls(**read)
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as problem:
            if isinstance(problem, DataError):
                raise
            raise DataError(f"{path} is no certificate ({problem}): pass a file that save wrote") from None

    def derived(self, table: ArrayLike | None) -> dict[str, Any]:
        """Return the figures that the checker derives for the claim.

        Raises DataError: The certificate does not prove its claim; the message says why.
        """
        given = None if table is None else np.asarray(table, dtype=np.float64).tolist()
        try:
            return self.checker(self.document(), given)
        except ValueError as problem:
            raise DataError(f"the certificate does not prove its bound of {self.bound:.9g}: {problem}") from None


def _plain(value: Any) -> Any:
    """A field as JSON's types."""
    if isinstance(value, (str, tuple)):
        return value if isinstance(value, str) else list(value)
    return np.asarray(value, dtype=np.float64).tolist()


def numbers(held: Any) -> Array:
    """Read an array of numbers."""
    return np.array(held, dtype=np.float64)


def text(held: Any) -> str:
    """Read a text."""
    if not isinstance(held, str):
        raise TypeError(f"{held!r} is no text")
    return held


def unless_missing(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Read what may be missing from a file."""
    return lambda held: None if held is None else read(held)


def each(form: type) -> Callable[[Any], tuple[Any, ...]]:
    """Read a list of objects or of lists."""

    def read(held: Any) -> tuple[Any, ...]:
        if not all(isinstance(one, form) for one in held):
            raise TypeError(f"a list of {form.__name__} has other entries")
        return tuple(held)

    return read


@dataclass(frozen=True)
class Checked:
    """The figures that the checker derived, in nats.

    `bound`: Every mechanism with I(X;Y) >= rate leaks at least this.
    `leakage`, `utility`: Upper bound of the leakage of the certificate's mechanism, lower bound of its I(X;Y).
    """

    bound: float
    leakage: float
    utility: float


def _rate(held: Any) -> float:
    if not float(held) >= 0.0:
        raise ValueError(f"rate={held!r}: expected nats >= 0")
    return float(held)


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

    header = (SCHEMA, VERSION, KIND)
    own: ClassVar[Readers] = {"rate": _rate, "lam": float, "nu": numbers}
    checker: ClassVar[Callable[..., dict[str, Any]]] = staticmethod(check)

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

    def verify(self, table: ArrayLike | None = None) -> Checked:
        """Derive the claim again, without a solver.

        `table`, (|S|, |X|): P(S, X), where the certificate holds only its hash.
        Raises DataError: The certificate does not prove its claim; the message says why.
        """
        found = self.derived(table)
        return Checked(found["bound"], found["leakage"], found["utility"])


@dataclass(frozen=True, eq=False, kw_only=True)
class ConstrainedCertificate(Certificate):
    """The claim that every mechanism with I(X;Y) >= rate that satisfies constraints has I(S;Y) >= bound.

    Its checker is `cvxpriv.bounds.check_constrained_certificate`, which needs `check_certificate.py` beside it.

    `mu`, (k,): The multipliers of the constraints' sums over outputs, >= 0.
    `constraints`: Each with its kind and its numbers, as the checker reads them.
    `others`: See `Certificate`.
    """

    mu: Array
    constraints: tuple[dict[str, Any], ...]

    header = (SCHEMA, VERSION, constrained.KIND)
    own: ClassVar[Readers] = {**Certificate.own, "mu": numbers, "constraints": each(dict)}
    checker = staticmethod(constrained.check)


@dataclass(frozen=True, eq=False, kw_only=True)
class CostedCertificate(Certificate):
    """The claim of `ConstrainedCertificate` under constraints that are convex costs of a column.

    Its checker is `cvxpriv.bounds.check_costed_certificate`, which names the files that it needs beside it.

    `constraints`: Each with its kind and its numbers, as the checker reads them.
    `mu`: The multipliers of each one's sums over outputs, >= 0.
    `cells`: For each sort of outputs a tree in order, its root first: a cut [i, j, share] between two corners, or a
    distribution of S and each constraint's numbers.
    `others`: See `Certificate`.
    """

    mu: tuple[list[float], ...]
    constraints: tuple[dict[str, Any], ...]
    cells: tuple[list[Any], ...]

    header = (SCHEMA, VERSION, costed.KIND)
    own: ClassVar[Readers] = {**Certificate.own, "mu": each(list), "constraints": each(dict), "cells": each(list)}
    checker = staticmethod(costed.check)


def certificate_of(document: Any, path: str = "the document") -> Certificate:
    """Read a certificate of the funnel, with constraints or without; see `StoredProof.of_document`."""
    kind = document.get("kind") if isinstance(document, dict) else None
    sorts: dict[Any, type[Certificate]] = {constrained.KIND: ConstrainedCertificate, costed.KIND: CostedCertificate}
    return sorts.get(kind, Certificate).of_document(document, path)
