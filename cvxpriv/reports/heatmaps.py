"""A matrix of chances, such as a mechanism, as a table with shaded cells: legible at any width, and when read out."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cvxpriv.numerics.arrays import Array, IntArray
from cvxpriv.numerics.sizes import counted


@dataclass(frozen=True, eq=False)
class Heatmap:
    """Chances by row and column, shown in per cent.

    `values`, (rows, columns): Chances, from 0 to 1.
    `rows`, `columns`: Names of rows and columns.
    `corner`: Heading of the names of rows, such as "age, sex".

    >>> shown = Heatmap(np.array([[0.996, 0.004], [0.25, 0.75]]), ["young", "old"], ["y0", "y1"], "age")
    >>> shown.cells
    [[('99', 99), ('<1', 0)], [('25', 25), ('75', 75)]]
    """

    values: Array
    rows: Sequence[str]
    columns: Sequence[str]
    corner: str
    caption: str = ""

    @property
    def cells(self) -> list[list[tuple[str, int]]]:
        """The text of each cell, and its shade from 0 to 100."""
        shades = np.clip(np.rint(100.0 * self.values), 0, 100).astype(int)
        shades = np.where((shades == 100) & (self.values < 1.0 - 1e-9), 99, shades)
        rows = zip(self.values.tolist(), shades.tolist(), strict=True)
        return [[(per_cent(value), shade) for value, shade in zip(*row, strict=True)] for row in rows]


def per_cent(chance: float) -> str:
    """Return a chance as a whole number of per cent: 0 and 100 are said of these alone, and 0 as nothing.

    >>> [per_cent(chance) for chance in (0.0, 0.002, 0.254, 0.998, 1.0)]
    ['', '<1', '25', '99', '100']
    """
    if chance <= 1e-9:
        return ""
    if chance < 0.005:
        return "<1"
    return "100" if chance >= 1.0 - 1e-9 else str(min(round(100.0 * chance), 99))


USED = 5e-3
"""Probability below which an output, for every input, is left out of a picture."""


def given_outputs(matrix: Array) -> IntArray:
    """Return the outputs that are given, in the order of the inputs they come from: what is merged is seen as a column.

    >>> given_outputs(np.array([[0.0, 0.999, 0.001], [1.0, 0.0, 0.0]])).tolist()
    [1, 0]
    """
    used = np.flatnonzero(matrix.max(axis=0) >= USED)
    centre = (np.arange(len(matrix)) @ matrix[:, used]) / matrix[:, used].sum(axis=0)
    return np.asarray(used[np.argsort(centre, kind="stable")], dtype=np.int64)


def heatmap_of(
    matrix: Array,
    rows: Sequence[str],
    corner: str,
    outputs: Sequence[str] = (),
    symbols: tuple[str, str] = ("X", "Y"),
    caption: str = "",
) -> Heatmap:
    """Return a mechanism P(Y|X) as a shaded table, in per cent.

    `matrix`: ``(|X|, |Y|)``.
    `rows`, `corner`: Labels of the inputs, and the heading of these.
    `outputs`: Labels of the outputs. By default ``y0, y1, ...``.
    `symbols`: Names of an input and of an output.

    >>> heatmap_of(np.eye(2), ["no", "yes"], "smokes").columns
    ['y0', 'y1']
    """
    given, output = symbols
    labels = list(outputs) or [f"{output.lower()}{j}" for j in range(matrix.shape[1])]
    shown = given_outputs(matrix)
    hidden = matrix.shape[1] - len(shown)
    left_out = f" Without {counted(hidden, 'output')} of P({output}|{given}) < {USED:g}." if hidden else ""
    said = f"P({output}|{given}) in per cent.{left_out}"
    return Heatmap(matrix[:, shown], rows, [labels[j] for j in shown], corner, f"{said} {caption}".strip())
