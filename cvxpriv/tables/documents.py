"""A joint table as plain data, and back: the part of a saved run that holds the table."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from cvxpriv.tables.alphabets import Alphabet
from cvxpriv.tables.joint import JointTable
from cvxpriv.tables.protection import Protection
from cvxpriv.tables.recipe import Recipe

SIDES = ("private", "public")


def table_document(table: JointTable) -> dict[str, Any]:
    """Return the table as lists, strings and numbers, which JSON can hold.

    >>> table = JointTable.from_array([[0.5, 0.0], [0.25, 0.25]])
    >>> table_of(table_document(table)).probabilities.tolist()
    [[0.5, 0.0], [0.25, 0.25]]
    """
    sides = {side: {"columns": getattr(table, side).columns, "symbols": getattr(table, side).symbols} for side in SIDES}
    return {
        "probabilities": table.probabilities.tolist(),
        "counts": None if table.counts is None else table.counts.tolist(),
        "smoothing": table.smoothing,
        "recipe": None if table.recipe is None else table.recipe.document(),
        **({} if table.protection is None else {"protection": asdict(table.protection)}),
        **sides,
    }


def table_of(document: Mapping[str, Any]) -> JointTable:
    """Return the table that `table_document` described."""
    private, public = (
        Alphabet(tuple(document[side]["columns"]), tuple(map(tuple, document[side]["symbols"]))) for side in SIDES
    )
    recipe = None if document.get("recipe") is None else Recipe.of(document["recipe"])
    counts = None if document["counts"] is None else np.array(document["counts"])
    held = document.get("protection")
    protection = None if held is None else Protection(**held)
    probabilities, smoothing = np.array(document["probabilities"]), document["smoothing"]
    return JointTable(probabilities, private, public, counts, smoothing, recipe, protection)
