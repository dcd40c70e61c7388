"""A party's table and its own files, for `cvxpriv party serve`."""

from __future__ import annotations

import json
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pandas as pd

from cvxpriv import models
from cvxpriv.cli.preparation import read_rows
from cvxpriv.cli.private_rows import require_given
from cvxpriv.cli.row_labels import texts_of
from cvxpriv.cli.rows import category_in, range_in
from cvxpriv.distributed.alignment import digests
from cvxpriv.distributed.log import MessageLog
from cvxpriv.errors import DataError, ModelError
from cvxpriv.learning.encoding import Encoding
from cvxpriv.privacy import ledger_document
from cvxpriv.reports.files import write_text
from cvxpriv.reports.spreadsheets import csv_text
from cvxpriv.tables.frames import require_columns

__all__ = ["apart_of", "hashed", "party_of", "write_own"]


def apart_of(name: str) -> Any:
    """Return the class by which a model is fitted across parties.

    Raises
    ------
    ModelError
        The model has none.
    """
    kind = getattr(models, name)
    place: str | None = getattr(kind, "apart", None)
    if place is None:
        raise ModelError(f"model {name!r} is not fitted across parties: ADMMSharing is")
    return resolve_name(place)


def hashed(frame: pd.DataFrame, identifier: str | None, secret: bytes) -> np.ndarray[Any, Any] | None:
    """Return the keyed hashes of an identifier column; None where none is named."""
    if identifier is None:
        return None
    require_columns(frame, [identifier], "identifier")
    return digests([str(text) for text in texts_of(frame[identifier])], secret)


def party_of(source: str, home: Path, secret: bytes, **given: Any) -> tuple[Any, tuple[str, ...]]:
    """Return the party that the options of `cvxpriv party serve` describe, and the names of its encoded columns.

    Raises
    ------
    DataError
        The table is malformed.
    PrivacyError
        Bounds would be read off private rows.
    """
    frame = read_rows(source, None, None, None)
    identifier = given["identifier"]
    columns = list(given["columns"] or [str(name) for name in frame.columns if name != identifier])
    if identifier in columns:
        raise DataError(f"column {identifier!r} is the identifier: learn from other columns")
    ranges, categories = dict(map(range_in, given["ranges"])), dict(map(category_in, given["categories"]))
    private = given["epsilon"] is not None
    if private and not given["bounds_from_data"]:
        require_given(columns, ranges, categories)
    encoding = Encoding.of(frame, columns, ranges=ranges, categories=categories)
    encoded = encoding.encode(frame, given["beyond"])
    bounds = {"row_bound": encoding.row_bound(), "column_bound": float(np.sqrt(len(frame))), "cell_bound": 1.0}
    apart = apart_of(given["model_name"])
    allowance = apart.allowance(
        exact=given["exact"], epsilon=given["epsilon"], delta=given["delta"], bounds=bounds, budget=given["budget"]
    )
    role = apart.party(encoded, allowance, digests=hashed(frame, identifier, secret), folder=home)
    return role, tuple(encoding.features)


def write_own(role: Any, features: tuple[str, ...], log: MessageLog, home: Path) -> list[Path]:
    """Write a party's coefficients, ledger and message log, for their owner alone."""
    files = [write_text(home / "messages.csv", csv_text(log.frame()), private=True)]
    if role.fitted:
        values = role.coefficients
        names = [*features, *(["(intercept)"] if values.size > len(features) else [])]
        values = np.array([*values[: len(features)], *(values[len(features) :] * role.height)])
        table = pd.DataFrame({"feature": names, "coefficient": values})
        files.append(write_text(home / "coefficients.csv", csv_text(table), private=True))
    if role.ledger:
        text = json.dumps(ledger_document(role.ledger), indent=1) + "\n"
        files.append(write_text(home / "ledger.json", text, private=True))
    return files
