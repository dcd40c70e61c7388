"""The meaning of each output, and what a bundle states of the frequencies of X.

The meaning is the distribution of X given the output, in numbers and in words. It needs a distribution of X, for P(Y|X)
seldom determines one: among equally likely distributions some give an output the meaning of a symbol that hardly
occurs. Each bundle brings the distribution that it was made with. The exact numbers give P(Y|X) away: it follows from
them up to a factor. Where it must stay at home they are rounded to whole steps.

The outputs of a mechanism seldom determine how often the values of X occur: it hides some of them behind others. So the
owner states how often each symbol, and each value of a column, occurs among the released rows, in whole steps. One step
is worth at least `LEAST` records; several numbers together can tell more. Whatever else a bundle without P(Y|X) says of
the symbols of the rows is computed from these numbers.

A frequency among the rows lies within half a step of what is stated; of other statistics a linear program finds the
range. Clopper-Pearson intervals of both ends then hold the frequency in the population at least at their level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import nnls
from scipy.special import betaincinv

from cvxpriv.mechanisms.likelihood import extreme
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.packages import pd
from cvxpriv.tables.alphabets import Alphabet
from cvxpriv.tables.frames import by_number

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
    values = sorted(dict.fromkeys(rows), key=lambda row: [by_number(value) for value in row])
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


STEPS = (0.05, 0.1, 0.25, 0.5)
"""Steps to which frequencies are rounded. An even number of them is 1, so shares that add up to 1 do it rounded too."""
LEAST = 10
"""Number of records that a step is worth at least."""
NOTHING = 2.0
"""Step of fewer rows than two steps are worth: every frequency is rounded to 0, and lies between 0 and 1."""
ROUNDING = 1e-9
"""Rounding error allowed in a frequency."""


@dataclass(frozen=True, eq=False)
class Stated:
    """Rounded frequencies among released rows.

    `shares`, (parts,): Of each symbol of X, then of each value of each column: see `parts`.
    `rows`: Number of released rows.
    """

    inputs: Alphabet
    shares: Array
    step: float
    rows: int

    @classmethod
    def of(cls, inputs: Alphabet, counts: Array) -> Stated:
        """Return the frequencies of rows, rounded.

        `counts`: ``(|X|,)``.

        >>> Stated.of(Alphabet.numbered("ill", 2), np.array([391, 9])).shares
        array([1., 0., 1., 0.])
        """
        rows = int(counts.sum())
        step = next((one for one in STEPS if one * rows >= LEAST), NOTHING)
        steps = np.round(parts(inputs) @ counts / (max(rows, 1) * step), 9)  # a tie is one in doubles too
        return cls(inputs, np.round(np.rint(steps) * step, 10), step, rows)

    @cached_property
    def likely(self) -> Array:
        """Distribution of X that is near to all stated frequencies, ``(|X|,)``; every symbol has some chance."""
        whole = 100.0  # the weight of a sum of 1 beside the rounded numbers
        rows = np.vstack([parts(self.inputs), whole * np.ones(len(self.inputs))])
        found = nnls(rows, np.append(self.shares, whole))[0] + 1.0 / max(self.rows, 1)
        return np.asarray(found / found.sum())

    def ranges(self, statistics: Array) -> Array:
        """Return the least and the largest frequency among the rows, ``(2, statistics)``.

        `statistics`: entries 0 or 1, ``(statistics, |X|)``.
        Raises SolverFailure: A linear program was not solved.
        """
        known, reach = parts(self.inputs), self.step / 2 + ROUNDING
        box = np.clip(np.stack([self.shares - reach, self.shares + reach]), 0.0, 1.0)
        places = {row.tobytes(): place for place, row in enumerate(known)}
        found = []
        for one in np.asarray(statistics, dtype=np.float64):
            place = places.get(one.tobytes())
            ends = [extreme(known.T, one, box, sign) for sign in (1.0, -1.0)] if place is None else box[:, place]
            found.append(ends)
        return np.array(found).T

    def intervals(self, statistics: Array, level: float = 0.95) -> Array:
        """Return intervals of frequencies in the population that the rows come from, ``(2, statistics)``.

        Each covers at least at the level, by itself. Raises SolverFailure: As for `ranges`.

        >>> stated = Stated.of(Alphabet.numbered("ill", 2), np.array([350, 650]))
        >>> stated.intervals(np.array([[1.0, 0.0]])).round(2).ravel()
        array([0.3 , 0.41])
        """
        low, high = self.ranges(statistics) * self.rows
        least, most = np.ceil(low - ROUNDING * self.rows), np.floor(high + ROUNDING * self.rows)
        miss = (1.0 - level) / 2
        return np.stack([clopper_pearson(least, self.rows, miss)[0], clopper_pearson(most, self.rows, miss)[1]])

    def document(self) -> dict[str, object]:
        """Return the frequencies as a bundle holds them."""
        symbols, given = len(self.inputs), iter(self.shares[len(self.inputs) :].tolist())
        told = {column: {value: next(given) for value in one} for column, one in by_column(self.inputs).items()}
        return {"step": self.step, "symbols": self.shares[:symbols].tolist(), "columns": told}


def by_column(inputs: Alphabet, prior: Array | None = None) -> dict[str, dict[str, float]]:
    """Return the chance of each value of each column, to four digits; 0 without a distribution of X.

    >>> by_column(Alphabet(("a", "b"), (("0", "0"), ("0", "1"))), np.array([0.25, 0.75]))
    {'a': {'0': 1.0}, 'b': {'0': 0.25, '1': 0.75}}
    """
    found, given = {}, np.zeros(len(inputs)) if prior is None else prior
    for column in inputs.columns:
        values, sums = statistics_of(inputs, [column])
        found[column] = {value[0]: round(float(one @ given), 4) for value, one in zip(values, sums, strict=True)}
    return found


def parts(inputs: Alphabet) -> Array:
    """Return the sums over X whose frequencies are stated: each symbol, then each value of each column.

    >>> parts(Alphabet(("a", "b"), (("0", "0"), ("0", "1"))))
    array([[1., 0.],
           [0., 1.],
           [1., 1.],
           [1., 0.],
           [0., 1.]])
    """
    return np.vstack([np.eye(len(inputs)), *(statistics_of(inputs, [column])[1] for column in inputs.columns)])


def stated_in(document: dict[str, object], inputs: Alphabet, rows: int) -> Stated:
    """Return the frequencies that a bundle holds.

    Raises KeyError, TypeError, ValueError: It holds other ones.
    """
    columns: dict[str, dict[str, float]] = document["columns"]  # type: ignore[assignment]
    symbols: list[float] = document["symbols"]  # type: ignore[assignment]
    values = [columns[column][value[0]] for column in inputs.columns for value in statistics_of(inputs, [column])[0]]
    shares, step = np.array([*symbols, *values], dtype=np.float64), float(document["step"])  # type: ignore[arg-type]
    if len(symbols) != len(inputs) or not ((shares >= 0) & (shares <= 1)).all() or not 0 < step <= NOTHING:
        raise ValueError("its stated frequencies are no shares of its symbols")
    return Stated(inputs, shares, step, rows)


def clopper_pearson(counts: Array, rows: float, miss: float) -> Array:
    """Return the ends of intervals of chances, ``(2, len(counts))``; each end misses with chance `miss` at most."""
    low = np.where(counts > 0, betaincinv(np.maximum(counts, 1), rows - counts + 1, miss), 0.0)
    high = np.where(counts < rows, betaincinv(counts + 1, np.maximum(rows - counts, 1), 1 - miss), 1.0)
    return np.stack([low, high])
