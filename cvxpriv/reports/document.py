"""Facts as one JSON document for programs; an error as one too."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cvxpriv.numerics.packages import pd
from cvxpriv.reports.facts import Fact, Facts

SCHEMA_VERSION = 1
"""Version of the schema, raised by one whenever a key of a document changes its name or its meaning."""


def document_of(facts: Facts, command: str = "", files: Sequence[Path] = ()) -> dict[str, Any]:
    """Return facts as JSON holds them.

    `command`: The command that made them. `files`: Files that were written.

    >>> document = document_of(Facts("Funnel", facts=[Fact("leakage", 0.25, "nats", "What is told of S.")]))
    >>> document["schema_version"], document["facts"]["leakage"]["value"]
    (1, 0.25)
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "command": command,
        "title": facts.title,
        "summary": facts.summary,
        "converged": facts.converged,
        "interrupted": facts.interrupted,
        "about": {fact.name: plain_data(fact.value) for fact in facts.about},
        "facts": {fact.name: _described(fact) for fact in facts.facts},
        "settings": {fact.name: plain_data(fact.value) for fact in facts.settings},
        "tables": {name: records(frame) for name, frame in facts.tables.items()},
        "messages": list(facts.messages),
        "promises": list(facts.promises),
        "files": plain_data(list(files)),
    }


def error_document(error: Exception, exit_code: int, message: str = "") -> dict[str, Any]:
    """Return an error as JSON holds it.

    >>> error_document(ValueError("no such file"), 2)["error"]
    {'type': 'ValueError', 'message': 'no such file', 'exit_code': 2}
    """
    said = " ".join((message or str(error)).split())
    return {
        "schema_version": SCHEMA_VERSION,
        "error": {"type": type(error).__name__, "message": said, "exit_code": exit_code},
    }


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a table's rows by their columns' names, as JSON holds them."""
    rows = frame.astype(object).to_dict(orient="records")
    return [{str(name): plain_data(value) for name, value in row.items()} for row in rows]


def plain_data(value: Any) -> Any:
    """Return a value as JSON holds it: numpy numbers become plain ones, a number that is not finite becomes None.

    >>> plain_data({"leakage": np.float64(0.5), "bound": float("nan"), "shape": (2, np.int64(3))})
    {'leakage': 0.5, 'bound': None, 'shape': [2, 3]}
    """
    if isinstance(value, Mapping):
        return {str(name): plain_data(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_data(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain_data(value.tolist())
    if isinstance(value, np.generic):
        return plain_data(value.item())
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _described(fact: Fact) -> dict[str, Any]:
    described = {
        "value": fact.value,
        "unit": fact.unit,
        "label": fact.title,
        "sentence": fact.sentence,
        "detail": fact.detail,
    }
    interval = {} if fact.interval is None else {"interval": fact.interval, "level": fact.level}
    return {name: plain_data(value) for name, value in (described | interval).items()}
