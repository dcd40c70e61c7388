"""A recipe: how raw rows become the symbols of a table, written down so that later rows become the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvxpriv.errors import DataError, suggest
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import pd
from cvxpriv.tables.encodings import DECIMALS
from cvxpriv.tables.frames import factorized, in_order, listed, require_columns, require_present, symbol
from cvxpriv.tables.steps import Bins, Step, document_of_step, step_of

MISSING = "missing"
"""The symbol of a missing value under the rule ``symbol``."""
RULES = ("refuse", "drop", "symbol")
"""Treatments of missing values."""


@door
@dataclass(frozen=True)
class Recipe:
    """Steps on columns, and the treatment of missing values.

    It is part of a mechanism's file, so that `Mechanism.release` takes raw rows. Edges and kept symbols that were read
    off the rows are private facts: keep the recipe where the table is kept.

    Parameters
    ----------
    steps : tuple of Step
        Applied in order, each to its own column.
    missing : {"refuse", "drop", "symbol"}
        Refuse missing values, drop their rows, or make `MISSING` a symbol of its own.
    columns : tuple of str
        The columns that the rows are prepared for. Empty: all, and missing values are refused where there is a step.
    missing_text : tuple of str, optional
        The spellings of a missing value, beside the empty cell. None: those that the reader of a file knows.
    decimal : str, optional
        The decimal point by which a file of rows is read (``decimal`` of `JointTable.from_csv`); rows in memory stay.

    Raises
    ------
    DataError
        An unknown rule or decimal point.

    Examples
    --------
    >>> recipe = Recipe((Bins("age", (18, 65)),), missing="symbol")
    >>> recipe.apply(pd.DataFrame({"age": [17, None, 70]}))["age"].to_list()
    ['below 18', 'missing', '65 and above']
    """

    steps: tuple[Step, ...] = ()
    missing: str = "refuse"
    columns: tuple[str, ...] = ()
    missing_text: tuple[str, ...] | None = None
    decimal: str | None = None

    def __post_init__(self) -> None:
        if self.missing not in RULES:
            raise DataError(f"missing={self.missing!r}: {suggest(str(self.missing), RULES)}")
        if self.decimal not in (None, *DECIMALS):
            raise DataError(f"decimal={self.decimal!r} is no decimal point: give '.', ',' or 'none'")
        if self.missing_text is not None:
            texts = [symbol(text) for text in listed(self.missing_text, "missing_text")]
            object.__setattr__(self, "missing_text", tuple(texts))
        object.__setattr__(self, "steps", tuple(self.steps))
        object.__setattr__(self, "columns", tuple(self.columns))

    @property
    def empty(self) -> bool:
        """Whether it does nothing."""
        return not self.steps and self.missing == "refuse" and self.missing_text is None and self.decimal is None

    def apply(self, frame: pd.DataFrame, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Return rows with their columns prepared.

        Parameters
        ----------
        frame : DataFrame
            Raw rows, or rows prepared before, which stay as they are.
        columns : sequence of str, optional
            The columns to prepare; all others pass. By default those of the recipe.

        Returns
        -------
        DataFrame
            The rows that were not dropped keep their index. Columns with a step are categorical, in the order of a
            reader.

        Raises
        ------
        DataError
            A column is not there, a value is missing or fits no step; the message names column, value and remedy.
        """
        named = self.columns if columns is None else tuple(columns)
        stepped = dict.fromkeys(step.column for step in self.steps if step.column in named or not named)
        chosen = list(dict.fromkeys([*(named or frame.columns), *stepped]))
        require_columns(frame, chosen, "columns")
        absent = {column: blank(frame[column], self.missing_text) for column in chosen}
        if self.missing == "refuse":
            for column in named or stepped:
                require_present(column, int(absent[column].sum()), len(frame))
        if self.missing == "drop" and absent:
            whole = ~np.logical_or.reduce(list(absent.values()))
            frame, absent = frame.loc[whole], {column: rows[whole] for column, rows in absent.items()}
        prepared = frame.copy(deep=False)
        for column in chosen:
            steps = [step for step in self.steps if step.column == column]
            if steps or (self.missing == "symbol" and absent[column].any()):
                prepared[column] = self._column(frame[column], steps, absent[column])
        return prepared

    def _column(self, values: pd.Series[Any], steps: Sequence[Step], absent: NDArray[np.bool_]) -> pd.Series[Any]:
        codes, uniques = factorized(values.where(~absent))
        texts = [self._symbol(symbol(value), steps) for value in uniques]
        last = self._symbol(MISSING, steps) if self.missing == "symbol" else None  # code -1 reads the last entry
        cells = np.array([*texts, last], dtype=object)[codes]
        levels = in_order({text for text in cells if text is not None})
        return pd.Series(pd.Categorical(cells, categories=list(levels)), index=values.index)

    def _symbol(self, text: str, steps: Sequence[Step]) -> str:
        for step in steps:
            if not (isinstance(step, Bins) and text == MISSING and self.missing == "symbol"):
                text = step(text)
        return text

    @property
    def description(self) -> tuple[str, ...]:
        """One line a step."""
        rules = {"drop": "rows with a missing value are dropped", "symbol": f"a missing value is {MISSING!r}"}
        spelt = ", ".join(map(repr, self.missing_text or ())) or "the empty cell alone"
        read = {".": "numbers have decimal points", ",": "numbers have decimal commas", "none": "numbers as written"}
        return (
            *([read[self.decimal]] if self.decimal is not None else []),
            *([f"spellings of a missing value: {spelt}"] if self.missing_text is not None else []),
            *([rules[self.missing]] if self.missing in rules else []),
            *(step.description for step in self.steps),
        )

    def document(self) -> dict[str, Any]:
        """Return the recipe as plain data.

        Examples
        --------
        >>> recipe = Recipe((Bins("age", (18, 65)),))
        >>> Recipe.of(recipe.document()) == recipe
        True
        """
        return {
            "missing": self.missing,
            "columns": list(self.columns),
            "steps": [document_of_step(step) for step in self.steps],
            **({} if self.missing_text is None else {"missing_text": list(self.missing_text)}),
            **({} if self.decimal is None else {"decimal": self.decimal}),
        }

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Recipe:
        """Return the recipe that `document` described.

        Raises
        ------
        DataError
            Keys or values are not those of a recipe.
        """
        steps, columns = document.get("steps"), document.get("columns")
        keys, spelt = set(document) - {"missing_text", "decimal"}, document.get("missing_text", [])
        texts = _texts(columns) and _texts(spelt)
        if keys != {"missing", "columns", "steps"} or not (isinstance(steps, list) and texts):
            raise DataError(
                f"the recipe has the keys {', '.join(map(str, document))}: expected missing, columns (a list of texts)"
                " and steps (a list); missing_text is a list of texts, where it is there"
            )
        if not all(isinstance(step, dict) for step in steps):
            raise DataError("the steps of the recipe are no objects: design the mechanism again")
        made = tuple(step_of(step) for step in steps)
        spellings = tuple(spelt) if "missing_text" in document else None
        return cls(made, document["missing"], tuple(columns or ()), spellings, document.get("decimal"))

    def __repr__(self) -> str:
        return f"<Recipe: {'; '.join(self.description) or 'rows as they are'}>"


@door
@dataclass(frozen=True, repr=False)
class Prepared:
    """Rows that were prepared, and the recipe that prepares others in the same way.

    Attributes
    ----------
    frame : DataFrame
    recipe : Recipe
    dropped : int
        Rows that were left out because a value is missing.
    """

    frame: pd.DataFrame
    recipe: Recipe
    dropped: int = 0

    def __repr__(self) -> str:
        return f"<Prepared: {len(self.frame):,} rows, {self.dropped:,} dropped; {self.recipe!r}>"


def _texts(values: object) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def blank(values: pd.Series[Any], spelt: Sequence[str] | None = None) -> NDArray[np.bool_]:
    """Return which cells are missing: those that pandas takes for missing, texts of blanks, and the spelt symbols."""
    missing = values.isna().to_numpy(dtype=bool)
    if values.dtype.kind in "biufmM" and not spelt:
        return missing
    codes, uniques = factorized(values)
    known = [symbol(cell) in ("", *(spelt or ())) for cell in uniques]
    return np.asarray(missing | np.array([*known, True], dtype=bool)[codes])
