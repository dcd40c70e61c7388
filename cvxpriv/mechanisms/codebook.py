"""The meaning of each output: the distribution of X given the output, in numbers and in words.

They need a distribution of X, for P(Y|X) seldom determines one: among equally likely distributions some give an output
the meaning of a symbol that hardly occurs. Each bundle brings the distribution that it was made with.

The exact numbers give P(Y|X) away: it follows from them up to a factor. Where it must stay at home they are rounded to
whole steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.later import pd
from cvxpriv.tables.alphabets import Alphabet

MOST_NAMED = 3
"""Number of values of a column that a description names."""
LEAST_NAMED = 0.1
"""Chance from which a value is named beside the likeliest one."""


@dataclass(frozen=True, eq=False)
class Codebook:
    """The meaning of the outputs.

    `posterior`, (|Y|, |X|): P(X|Y); rows sum to 1 up to `step`. The row of an output that was never drawn is 0.
    `step`: The numbers are rounded to whole multiples of it; 0 for exact ones.
    `counts`: (|Y|,).
    `labels`: Readable names of the outputs.
    `meanings`: The likely values of each column, with their chances.
    `prior`, (|X|,): The distribution of X that they were made with.
    """

    posterior: Array
    step: float
    counts: Array
    outputs: tuple[str, ...]
    labels: tuple[str, ...]
    meanings: tuple[str, ...]
    inputs: Alphabet
    prior: Array

    @property
    def frame(self) -> pd.DataFrame:
        """One row for each output: its label, its meaning, its rows, and the chance of each symbol of X."""
        about = {"output": self.outputs, "label": self.labels, "meaning": self.meanings}
        frame = pd.DataFrame({**about, "rows": self.counts.astype(np.int64)})
        chances = pd.DataFrame(self.posterior, columns=[f"P({label})" for label in self.inputs.labels])
        return pd.concat([frame, chances], axis=1)


def codebook(
    matrix: Array, inputs: Alphabet, outputs: Sequence[str], counts: Array, prior: Array, step: float = 0.0
) -> Codebook:
    """Return the codebook of a release.

    `matrix`: ``(|X|, |Y|)``.
    `counts`, ``(|Y|,)``: Number of released rows of each output.
    `prior`, ``(|X|,)``: Distribution of X.
    `step`: Step to which chances are rounded; 0 leaves them exact.

    >>> ill, half = Alphabet.numbered("ill", 2), np.array([0.5, 0.5])
    >>> book = codebook(np.array([[0.9, 0.1], [0.1, 0.9]]), ill, ["y0", "y1"], np.array([5, 5]), half)
    >>> book.labels, book.meanings[0]
    (('ill 0', 'ill 1'), 'ill: 0 (90 %), 1 (10 %)')
    """
    joint = (prior[:, None] * matrix).T
    whole = joint.sum(axis=1, keepdims=True)
    posterior = np.divide(joint, whole, out=np.zeros_like(joint), where=whole > 0)
    if step:
        posterior = np.round(np.rint(posterior / step) * step, 10)
    tables = [statistics_of(inputs, [column]) for column in inputs.columns]
    described = [[_likely(row @ weights.T, labels) for labels, weights in tables] for row in posterior]
    never = posterior.sum(axis=1) <= 0
    labels = ["never drawn" if no else _label(inputs, one) for one, no in zip(described, never, strict=True)]
    meanings = ["" if no else _meaning(inputs, one) for one, no in zip(described, never, strict=True)]
    return Codebook(posterior, step, np.asarray(counts), tuple(outputs), tuple(labels), tuple(meanings), inputs, prior)


def statistics_of(inputs: Alphabet, columns: Sequence[str]) -> tuple[list[tuple[str, ...]], Array]:
    """Return the values of some columns together, and the sums over X that give their frequencies.

    Returns `sums`: ``(values, |X|)``.

    >>> statistics_of(Alphabet(("a", "b"), (("0", "0"), ("0", "1"), ("1", "0"))), ["a"])[1]
    array([[1., 1., 0.],
           [0., 0., 1.]])
    """
    places = [inputs.columns.index(column) for column in columns]
    rows = [tuple(symbol[place] for place in places) for symbol in inputs.symbols]
    values = list(dict.fromkeys(rows))
    order = {value: number for number, value in enumerate(values)}
    sums = np.zeros((len(values), len(rows)))
    sums[[order[row] for row in rows], np.arange(len(rows))] = 1.0
    return values, sums


def _likely(chances: Array, values: Sequence[tuple[str, ...]]) -> list[tuple[str, float]]:
    """Return the likeliest values of a column with their chances, the likeliest first."""
    order = np.argsort(-chances, kind="stable")[:MOST_NAMED]
    return [
        (values[place][0], float(chances[place]))
        for place in order
        if chances[place] >= LEAST_NAMED or place == order[0]
    ]


def _label(inputs: Alphabet, described: Sequence[Sequence[tuple[str, float]]]) -> str:
    """Return a name of an output: the values of columns that are likelier than not."""
    parts = [
        f"{column} {found[0][0]}" for column, found in zip(inputs.columns, described, strict=True) if found[0][1] > 0.5
    ]
    return ", ".join(parts) or "mixed"


def _meaning(inputs: Alphabet, described: Sequence[Sequence[tuple[str, float]]]) -> str:
    return "; ".join(
        f"{column}: " + ", ".join(f"{value} ({chance:.0%})".replace("%", " %") for value, chance in found)
        for column, found in zip(inputs.columns, described, strict=True)
    )
