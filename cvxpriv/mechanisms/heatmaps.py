"""A mechanism as a shaded table: inputs down, the outputs that are given across, in the order of the inputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cvxpriv.numerics.arrays import Array, IntArray
from cvxpriv.reports.heatmaps import Heatmap
from cvxpriv.tables.alphabets import Alphabet

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
    inputs: Alphabet,
    outputs: Sequence[str] = (),
    symbols: tuple[str, str] = ("X", "Y"),
    caption: str = "",
) -> Heatmap:
    """Return a mechanism P(Y|X) as a shaded table, in per cent.

    `matrix`: ``(|X|, |Y|)``.
    `outputs`: Labels of the outputs. By default ``y0, y1, ...``.
    `symbols`: Names of an input and of an output.

    >>> heatmap_of(np.eye(2), Alphabet.numbered("smokes", 2)).columns
    ['y0', 'y1']
    """
    given, output = symbols
    labels = list(outputs) or [f"{output.lower()}{j}" for j in range(matrix.shape[1])]
    shown = given_outputs(matrix)
    hidden = matrix.shape[1] - len(shown)
    some = "1 output" if hidden == 1 else f"{hidden} outputs"
    left_out = f" Without {some} of P({output}|{given}) < {USED:g}." if hidden else ""
    said = f"P({output}|{given}) in per cent.{left_out}"
    rows = [inputs.label(place) for place in range(len(inputs))]
    return Heatmap(
        matrix[:, shown], rows, [labels[j] for j in shown], ", ".join(inputs.columns), f"{said} {caption}".strip()
    )
