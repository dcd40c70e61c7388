"""Data and settings by their contents: two values have one digest exactly if they hold the same numbers and names."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Set
from dataclasses import fields, is_dataclass
from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse as sp

from cvxpriv.errors import ModelError
from cvxpriv.numerics.later import pd


def digest(value: Any) -> str:
    """Return the SHA-256 of a value's content, as 64 hexadecimal digits.

    >>> digest([0.5, 0.5]) == digest([0.5, 0.5]), digest([0.5, 0.5]) == digest([0.5, 0.25])
    (True, False)
    """
    return hashlib.sha256(json.dumps(content(value)).encode()).hexdigest()


def content(value: Any) -> Any:
    """Return the content of a value as plain data, which JSON can hold; large arrays are represented by their hash.

    Raises ModelError: The value holds code, or an object without a known content.

    >>> content({"rate": (0.5, None)})
    {'mapping': [['rate', {'list': [0.5, None]}]]}
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return content(value.item())
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, (pd.DataFrame, pd.Series, pd.Index)):
        return _frame(value)
    if sp.issparse(value):
        return _sparse(value)
    if isinstance(value, nx.Graph):
        edges = [list(edge) for edge in value.edges(data=True)]
        return {"graph": type(value).__name__, "nodes": content(list(value.nodes(data=True))), "edges": content(edges)}
    if is_dataclass(value) and not isinstance(value, type):
        parts = {one.name: content(getattr(value, one.name)) for one in fields(value)}
        return {"object": f"{type(value).__module__}.{type(value).__qualname__}", **parts}
    if isinstance(value, Mapping):
        return {"mapping": [[content(name), content(one)] for name, one in value.items()]}
    if isinstance(value, Set):
        return {"set": sorted((content(one) for one in value), key=json.dumps)}
    if isinstance(value, (list, tuple)):
        return {"list": [content(one) for one in value]}
    raise ModelError(
        f"an object of type {type(value).__name__} cannot be told from another by its content: pass numbers, names, "
        "arrays or tables, such as the name or the formula of a divergence"
    )


def _array(value: np.ndarray[Any, Any]) -> Any:
    if value.dtype.hasobject:
        return content(value.tolist())
    held = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
    return {"array": value.dtype.str, "shape": list(value.shape), "sha256": held}


def _frame(value: pd.DataFrame | pd.Series[Any] | pd.Index[Any]) -> Any:
    if isinstance(value, pd.DataFrame):
        columns = [[content(name), content(column.to_numpy())] for name, column in value.items()]
        return {"frame": columns, "index": content(value.index)}
    if isinstance(value, pd.Series):
        return {"series": content(value.name), "values": content(value.to_numpy()), "index": content(value.index)}
    return {"index": content(value.to_numpy())}


def _sparse(value: Any) -> Any:
    rows = sp.csr_array(value, copy=True)
    rows.sum_duplicates()
    parts = (rows.data, np.asarray(rows.indices, dtype=np.int64), np.asarray(rows.indptr, dtype=np.int64))
    return {"sparse": list(rows.shape), "parts": [content(part) for part in parts]}
