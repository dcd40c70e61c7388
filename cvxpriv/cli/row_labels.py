"""The column to predict: its two classes, and each row's label of -1 or 1."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from cvxpriv.errors import DataError, PrivacyError, suggest
from cvxpriv.learning.schema import PublicSchema
from cvxpriv.numerics.arrays import Array, Flags
from cvxpriv.tables.frames import in_order, symbol

#: Labels of -1 and 1, what these are called, and which rows have one.
Labels: TypeAlias = tuple[Array, tuple[str, str], Flags]


def labels_found(column: pd.Series[Any], chosen: str | None, usual: str | None) -> Labels:
    """Return the labels of rows whose classes are read off them."""
    texts = texts_of(column)
    found = in_order({str(text) for text in texts} - {""})
    positive = symbol(chosen) if chosen is not None else (usual if usual in found else None)
    if positive is None:
        if len(found) != 2:
            shown = ", ".join(found[:5]) + (", ..." if len(found) > 5 else "")
            raise DataError(
                f"column {column.name!r} has {len(found)} values ({shown}), and a label has two: name one of them, "
                "--positive VALUE, to tell it from all others"
            )
        positive = found[1]
    if positive not in found:
        raise DataError(f"--positive={positive!r} is no value of column {column.name!r}: {suggest(positive, found)}")
    others = [value for value in found if value != positive]
    if not others:
        raise DataError(f"column {column.name!r} holds {positive!r} alone: there is nothing to tell it from")
    negative = others[0] if len(others) == 1 else f"not {positive}"
    return np.where(texts == positive, 1.0, -1.0), (negative, positive), np.asarray(texts != "", dtype=bool)


def blind_labels(column: pd.Series[Any], chosen: str | None, usual: tuple[str, str] | None) -> Labels:
    """Return the labels of private rows: which value is class 1 is said, and every other value is the other class."""
    if chosen is not None:
        positive = symbol(chosen)
        usual = usual if usual is not None and positive == usual[1] else (f"not {positive}", positive)
    if usual is None:
        raise PrivacyError(
            f"the two classes of column {column.name!r} would be read off the private rows, and no guarantee covers "
            "that: name one, --positive VALUE, or give --schema; or let them be read off with --bounds-from-data"
        )
    texts = texts_of(column)
    return np.where(texts == usual[1], 1.0, -1.0), usual, np.asarray(texts != "", dtype=bool)


def labels_by_schema(column: pd.Series[Any], schema: PublicSchema) -> Labels:
    """Return the labels of rows with a schema: each row has one."""
    signs = schema.signs(texts_of(column))
    first, second = (symbol(one) for one in schema.class_names().tolist())
    return signs, (first, second), np.ones(len(column), dtype=bool)


def texts_of(column: pd.Series[Any]) -> np.ndarray[Any, np.dtype[np.object_]]:
    """Return the cells as texts; a missing one is empty."""
    return column.map(symbol, na_action="ignore").fillna("").to_numpy(dtype=object)
