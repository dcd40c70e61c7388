"""A party's table and its own files, for `cvxpriv party serve`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pandas as pd

from cvxpriv import models
from cvxpriv.cli.options import Reading
from cvxpriv.cli.private_rows import REMEDY, require_given
from cvxpriv.cli.row_labels import blind_labels, texts_of
from cvxpriv.cli.rows import category_in, range_in
from cvxpriv.distributed.alignment import digests
from cvxpriv.distributed.carriers import MessageLog
from cvxpriv.errors import DataError, ModelError, told_nothing
from cvxpriv.learning.encoding import Encoding
from cvxpriv.privacy import ledger_document
from cvxpriv.reports.files import write_text
from cvxpriv.reports.text import csv_text
from cvxpriv.tables.frames import require_columns


def apart_of(name: str) -> Any:
    """Return the class by which a model is fitted across parties."""
    kind = getattr(models, name)
    place: str | None = getattr(kind, "apart", None)
    if place is None:
        raise ModelError(f"model {name!r} is not fitted across parties: ADMMSharing and RecycledADMM are")
    return resolve_name(place)


def hashed(frame: pd.DataFrame, identifier: str | None, secret: bytes) -> np.ndarray[Any, Any] | None:
    """Return the keyed hashes of an identifier column; None where none is named."""
    if identifier is None:
        return None
    require_columns(frame, [identifier], "identifier")
    return digests([str(text) for text in texts_of(frame[identifier])], secret)


def party_of(source: str, home: Path, secret: bytes, **given: Any) -> tuple[Any, Mapping[str, float]]:
    """Return the party that the options of `cvxpriv party serve` describe, and its encoded columns.

    Each is named with the factor that brings the run's coefficient to a column from 0 to 1.

    Raises DataError: The table is malformed.
    Raises PrivacyError: Bounds would be read off private rows.
    """
    apart = apart_of(given["model_name"])
    private, reading = given["epsilon"] is not None, ("separator", "encoding", "decimal")
    frame = Reading(**{name: given.get(name) for name in reading}).rows(source, private)
    if (given.get("label") is not None) != apart.labelled:
        need = "needs --label: its parties hold rows" if apart.labelled else "goes without --label: the holder has it"
        raise ModelError(f"--model {given['model_name']} {need}")
    if apart.labelled:
        return _node_of(apart, frame, home, given)
    identifier = given["identifier"]
    columns = list(given["columns"] or [str(name) for name in frame.columns if name != identifier])
    if identifier in columns:
        raise DataError(f"column {identifier!r} is the identifier: learn from other columns")
    ranges, categories = dict(map(range_in, given["ranges"])), dict(map(category_in, given["categories"]))
    if private and not given["bounds_from_data"]:
        require_given(columns, ranges, categories)
    encoding = Encoding.of(frame, columns, ranges=ranges, categories=categories)
    with told_nothing(private, REMEDY):
        encoded = encoding.encode(frame, given["beyond"])
    bounds = {"row_bound": encoding.row_bound(), "column_bound": float(np.sqrt(len(frame))), "cell_bound": 1.0}
    allowance = apart.allowance(
        exact=given["exact"], epsilon=given["epsilon"], delta=given["delta"], bounds=bounds, budget=given["budget"]
    )
    role = apart.party(encoded, allowance, digests=hashed(frame, identifier, secret), folder=home)
    return role, dict.fromkeys(encoding.features, 1.0)


def _node_of(apart: Any, frame: pd.DataFrame, home: Path, given: Mapping[str, Any]) -> tuple[Any, Mapping[str, float]]:
    """Return a party that holds rows and their labels; every one must encode its columns alike."""
    label, positive = given["label"], given["positive"]
    if stray := [f"--{name}" for name in ("identifier",) if given[name] is not None]:
        raise ModelError(f"{stray[0]} is not for a party that holds rows: it aligns nothing")
    if positive is None:
        raise ModelError("a party that holds rows needs --positive VALUE, the same at every node")
    columns = list(given["columns"] or [str(name) for name in frame.columns if name != label])
    require_columns(frame, [label, *columns], "label")
    ranges, categories = dict(map(range_in, given["ranges"])), dict(map(category_in, given["categories"]))
    if unknown := [name for name in columns if name not in ranges and not categories.get(name)]:
        raise DataError(
            f"the ranges or values of {', '.join(map(repr, unknown))} would be read off this node's rows, and every "
            "node must encode alike: give --range age:0:100, --category job:clerk,farmer"
        )
    signs, classes, there = blind_labels(frame[label], positive, None)
    if not there.all():
        raise DataError(f"column {label!r} has missing labels: leave those rows out")
    encoding = Encoding.of(frame, columns, ranges=ranges, categories=categories, scaled=True)
    with told_nothing(given["epsilon"] is not None, REMEDY):
        rows = encoding.encode(frame, given["beyond"])
    factors = dict.fromkeys(encoding.features, 1.0 / encoding.divisor)
    if given["intercept"]:
        rows, factors = np.hstack([rows, np.ones((len(frame), 1))]), {**factors, "(intercept)": 1.0}
    said = json.dumps([encoding.document(), classes, list(factors)], sort_keys=True, default=str)
    layout = int.from_bytes(hashlib.sha256(said.encode()).digest()[:8], "little")
    limits = {name: given[name] for name in ("exact", "epsilon", "delta", "budget")}
    return apart.party(rows, signs, apart.allowance(**limits), layout=layout, folder=home), factors


def write_own(role: Any, features: Mapping[str, float], log: MessageLog, home: Path) -> list[Path]:
    """Write a party's coefficients, ledger and message log, for their owner alone."""
    files = [write_text(home / "messages.csv", csv_text(log.frame()), private=True)]
    if role.fitted:
        values = role.coefficients
        names = [*features, *(["(intercept)"] if values.size > len(features) else [])]
        values = np.array(
            [*(values[: len(features)] * list(features.values())), *(values[len(features) :] * role.height)]
        )
        table = pd.DataFrame({"feature": names, "coefficient": values})
        files.append(write_text(home / "coefficients.csv", csv_text(table), private=True))
    if role.ledger:
        text = json.dumps(ledger_document(role.ledger), indent=1) + "\n"
        files.append(write_text(home / "ledger.json", text, private=True))
    return files
