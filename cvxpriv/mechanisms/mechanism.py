"""A mechanism P(Y|X) with its alphabets, its figures, and its provenance, to save and apply.

It never holds the private table, nor counts, nor a marginal of a table without noise. The matrix and its figures were
still computed from private data, and tell of it. Only where noise was put into the counts first
(`cvxpriv.private_table`) may it be published; its line of provenance ``publish`` says which.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from cvxpriv.constraints.documents import from_document
from cvxpriv.constraints.gate import excess
from cvxpriv.errors import DataError, ModelError
from cvxpriv.mechanisms.bundle import contents_of, write_bundle
from cvxpriv.mechanisms.file import dump, parse
from cvxpriv.mechanisms.noisy_frequencies import NoisyCounts, counts_in
from cvxpriv.mechanisms.release import RELEASED, Unseen, release
from cvxpriv.mechanisms.revealing import Reveals, reveals
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import pd
from cvxpriv.reports.files import PathLike, read_text, write_text
from cvxpriv.tables.alphabets import Alphabet
from cvxpriv.tables.arrays import stochastic_matrix
from cvxpriv.tables.recipe import Recipe

Fact: TypeAlias = "str | int | float | bool | None"
"""The type of a line of provenance."""


@door
@dataclass(frozen=True, eq=False, repr=False)
class Mechanism:
    """A row-stochastic matrix P(Y|X) with named symbols.

    Parameters
    ----------
    matrix : array, ``(|X|, |Y|)``
        Rows sum to 1 within 1e-9. Kept to the last digit; read-only afterwards.
    inputs : Alphabet
        The public columns and the symbols of X, one per row.
    outputs : sequence of str
        The labels of Y, one per column. By default ``y0, y1, ...``.
    model : str
        The name of the model that designed it.
    figures : mapping of str to float
        The model's figures for it: leakage and utility in nats, rate, residuals.
    private_columns : sequence of str
        Names of the columns that `release` must never keep.
    origin : mapping of str to str, number, bool or None
        Versions, engine, seed and starts: where it comes from.
    constraints : sequence of mapping
        The constraints that it promises: ready ones, as `cvxpriv.constraints.documents.to_document` writes them.
    recipe : Recipe, optional
        Recipe from raw rows to its symbols; `release` applies it.
    noisy : NoisyCounts, optional
        Public counts of X. Only where noise was put into the table first: a bundle states frequencies from them.

    Raises
    ------
    DataError
        Not a row-stochastic matrix, a wrong shape, labels that are empty or double, a figure that is not finite; or the
        matrix, as it stands in doubles, misses one of its constraints. Those that speak of the table cannot be judged
        without it.

    Examples
    --------
    >>> coin = Mechanism([[0.9, 0.1], [0.2, 0.8]], Alphabet.numbered("smokes", 2), private_columns=["ill"])
    >>> coin.outputs, coin.shape
    (('y0', 'y1'), (2, 2))
    """

    matrix: Array | Sequence[Sequence[float]]
    inputs: Alphabet
    outputs: Sequence[str] = ()
    model: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)
    private_columns: Sequence[str] = ()
    origin: Mapping[str, Fact] = field(default_factory=dict)
    constraints: Sequence[Mapping[str, Any]] = ()
    recipe: Recipe | None = None
    noisy: NoisyCounts | None = None

    def __post_init__(self) -> None:
        matrix = stochastic_matrix(self.matrix, "matrix")
        outputs = _names(self.outputs, "outputs") or tuple(f"y{j}" for j in range(matrix.shape[1]))
        if matrix.shape != (len(self.inputs), len(outputs)):
            raise DataError(
                f"matrix has shape {matrix.shape}, expected {(len(self.inputs), len(outputs))}:"
                f" one row per symbol of {', '.join(self.inputs.columns)}, one column per output label"
            )
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "outputs", outputs)
        object.__setattr__(self, "private_columns", _names(self.private_columns, "private_columns"))
        figures = {str(name): float(value) for name, value in self.figures.items()}
        if wrong := [name for name, value in figures.items() if not math.isfinite(value)]:
            name = wrong[0]
            raise DataError(f"figures[{name!r}]={figures[name]}: expected a finite number; leave out what is not known")
        object.__setattr__(self, "figures", MappingProxyType(figures))
        object.__setattr__(self, "origin", MappingProxyType(dict(self.origin)))
        object.__setattr__(self, "constraints", tuple(dict(one) for one in self.constraints))
        _require_kept(matrix, self.constraints)

    @property
    def array(self) -> Array:
        """The matrix, ``(|X|, |Y|)``."""
        return np.asarray(self.matrix)

    @property
    def shape(self) -> tuple[int, int]:
        """``(|X|, |Y|)``."""
        return len(self.inputs), len(self.outputs)

    @property
    def publishable(self) -> bool:
        """Whether it may be published, by its provenance: the counts of its table have secure noise."""
        return str(self.origin.get("publish", "")).endswith("may be published")

    def to_frame(self) -> pd.DataFrame:
        """The matrix as a data frame: public symbols down, output labels across."""
        return pd.DataFrame(self.array, index=self.inputs.to_pandas(), columns=pd.Index(self.outputs, name="Y"))

    def release(
        self,
        frame: pd.DataFrame,
        seed: int | None = None,
        keep: Sequence[str] = (),
        unseen: Unseen = "error",
        name: str = RELEASED,
    ) -> pd.DataFrame:
        """Apply the mechanism to raw rows; `cvxpriv.mechanisms.release` describes arguments, result and errors.

        The recipe comes first, where there is one: rows that it drops are not released.

        Examples
        --------
        >>> import pandas as pd
        >>> keep = Mechanism([[1, 0], [0, 1]], Alphabet.numbered("smokes", 2))
        >>> list(keep.release(pd.DataFrame({"smokes": [1, 0], "age": [40, 50]}))["released"])
        ['y1', 'y0']
        """
        if self.recipe is not None:
            frame = self.recipe.apply(frame, self.inputs.columns)
        return release(self, frame, seed=seed, keep=keep, unseen=unseen, name=name)

    def bundle(
        self,
        frame: pd.DataFrame,
        path: PathLike,
        matrix: bool | None = None,
        seed: int | None = None,
        keep: Sequence[str] = (),
        unseen: Unseen = "error",
        name: str = RELEASED,
    ) -> list[Path]:
        """Apply the mechanism to rows, and write them with all that a recipient needs: `cvxpriv.decode` reads it.

        Parameters
        ----------
        frame, seed, keep, unseen, name
            As for `release`.
        path : path
            Folder, or a zip file where it ends in ``.zip``.
        matrix : bool, optional
            Whether P(Y|X) goes with it. None: where it may be published, because noise was put into the table first
            (`cvxpriv.private_table`). Elsewhere the bundle states how often values of X occur among the rows, rounded;
            there it states the noisy counts.

        Returns
        -------
        list of Path
            Paths of the files.

        Raises
        ------
        DataError, PrivacyError, ModelError
            As for `release`, or the bundle cannot be written.
        """
        released = self.release(frame, seed=seed, keep=keep, unseen=unseen, name=name)
        return write_bundle(path, contents_of(self, released, self.counted(frame), matrix, name, len(frame)))

    def counted(self, frame: pd.DataFrame) -> Array:
        """Return the number of rows of each symbol of X, ``(|X|,)``, among those that `release` would not drop.

        Raises
        ------
        DataError
            As for `release`.
        """
        if self.recipe is not None:
            frame = self.recipe.apply(frame, self.inputs.columns)
        codes = self.inputs.codes(frame)
        return np.bincount(codes[codes >= 0], minlength=len(self.inputs)).astype(np.float64)

    def reveals(self) -> Reveals:
        """Return the facts about its private table that the mechanism gives away: see `cvxpriv.mechanisms.revealing`.

        Examples
        --------
        >>> coin = Mechanism([[0.9, 0.1], [0.2, 0.8]], Alphabet.numbered("X", 2), figures={"leakage": 0.0})
        >>> coin.reveals().sentences()[0].endswith("They do not differ: S and X are independent.")
        True
        """
        of_information = self.origin.get("divergence") is None
        ready = [one for one in map(from_document, self.constraints) if one is not None]
        return reveals(self.array, self.figures if of_information else {}, self.publishable, ready)

    def save(self, path: PathLike) -> Path:
        """Write the mechanism to a JSON file, whole or not at all, with every digit of its numbers.

        Raises
        ------
        DataError
            The file cannot be written, or ``origin`` holds what JSON cannot.
        """
        content = {
            "model": self.model,
            "columns": self.inputs.columns,
            "symbols": self.inputs.symbols,
            "outputs": self.outputs,
            "private_columns": self.private_columns,
            "matrix": self.array.tolist(),
            "figures": dict(self.figures),
            "origin": dict(self.origin),
            "constraints": self.constraints,
            "recipe": None if self.recipe is None else self.recipe.document(),
            "noisy": None if self.noisy is None else self.noisy.document(),
        }
        return write_text(path, dump(content))

    @classmethod
    def load(cls, path: PathLike) -> Mechanism:
        """Read a mechanism that `save` wrote.

        Raises
        ------
        DataError
            No such file, not JSON, another format or version, a key that is missing or unknown, a value of the wrong
            kind, not a row-stochastic matrix, a wrong shape, a symbol or label named twice.
        """
        text = read_text(path)
        try:
            held = parse(text)
            inputs = Alphabet(held.pop("columns"), held.pop("symbols"))
            recipe, noisy = (held.pop(name, None) for name in ("recipe", "noisy"))
            return cls(
                np.array(held.pop("matrix"), dtype=np.float64),
                inputs,
                recipe=None if recipe is None else Recipe.of(recipe),
                noisy=None if noisy is None else counts_in(noisy, inputs),
                **held,
            )
        except (DataError, ModelError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"path={str(path)!r} holds no usable mechanism: {error}") from error

    def __repr__(self) -> str:
        what = f"{self.shape[0]} symbols of {', '.join(self.inputs.columns)} to {self.shape[1]} outputs"
        return f"<Mechanism: {what}{f', by {self.model}' if self.model else ''}>"


def _require_kept(matrix: Array, constraints: Sequence[Mapping[str, Any]]) -> None:
    for document in constraints:
        constraint = from_document(document)
        if constraint is None:
            continue
        try:
            missed = excess(constraint, matrix, None)
        except ModelError:  # it speaks of the table, which no mechanism's file holds
            continue
        if missed != 0.0:
            raise DataError(f"the mechanism misses {constraint.name} by {missed:.1e}: design it again")


def _names(names: Sequence[str], argument: str) -> tuple[str, ...]:
    if isinstance(names, str):
        raise DataError(f"{argument}={names!r} is one text: give a list, [{names!r}]")
    texts = tuple(str(name) for name in names)
    if "" in texts or len(set(texts)) < len(texts):
        twice = next(text for text in texts if text == "" or texts.count(text) > 1)
        raise DataError(f"{argument} holds {twice!r} {texts.count(twice)} times: expected names, each once, none empty")
    return texts
