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
    aside = "label" if apart.labelled else "identifier"
    columns = list(given["columns"] or [str(name) for name in frame.columns if name != given[aside]])
    if given[aside] in columns:
        raise DataError(f"column {given[aside]!r} is the {aside}: learn from other columns")
    ranges, categories = dict(map(range_in, given["ranges"])), dict(map(category_in, given["categories"]))
    if apart.labelled:
        require_columns(frame, [given["label"], *columns], "label")
        _require_alike(given, [name for name in columns if name not in ranges and not categories.get(name)])
    elif private and not given["bounds_from_data"]:
        require_given(columns, ranges, categories)
    encoding = Encoding.of(frame, columns, ranges=ranges, categories=categories, scaled=apart.labelled)
    with told_nothing(private, REMEDY):
        encoded = encoding.encode(frame, given["beyond"])
    limits = {name: given[name] for name in ("exact", "epsilon", "delta", "budget")}
    if apart.labelled:
        signs, classes, there = blind_labels(frame[given["label"]], given["positive"], None)
        if not there.all():
            raise DataError(f"column {given['label']!r} has missing labels: leave those rows out")
        factors = dict.fromkeys(encoding.features, 1.0 / encoding.divisor)
        if given["intercept"]:
            encoded, factors = np.hstack([encoded, np.ones((len(frame), 1))]), {**factors, "(intercept)": 1.0}
        said = json.dumps([encoding.document(), classes, list(factors)], sort_keys=True, default=str)
        layout = int.from_bytes(hashlib.sha256(said.encode()).digest()[:8], "little")
        return apart.party(encoded, signs, apart.allowance(**limits), layout=layout, folder=home), factors
    bounds = {"row_bound": encoding.row_bound(), "column_bound": float(np.sqrt(len(frame))), "cell_bound": 1.0}
    allowance = apart.allowance(**limits, bounds=bounds)
    role = apart.party(encoded, allowance, digests=hashed(frame, given["identifier"], secret), folder=home)
    return role, dict.fromkeys(encoding.features, 1.0)


def _require_alike(given: Mapping[str, Any], unknown: list[str]) -> None:
    """Refuse options of a node by which nodes would encode their rows in other ways."""
    if given["identifier"] is not None:
        raise ModelError("--identifier is not for a party that holds rows: it aligns nothing")
    if given["positive"] is None:
        raise ModelError("a party that holds rows needs --positive VALUE, the same at every node")
    if unknown:
        raise DataError(
            f"the ranges or values of {', '.join(map(repr, unknown))} would be read off this node's rows, and every "
            "node must encode alike: give --range age:0:100, --category job:clerk,farmer"
        )


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
