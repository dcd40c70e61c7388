"""Applying a mechanism to rows: the one place where its noise is drawn.

Each output is drawn with exactly the chance that the stored doubles stand for (`cvxpriv.privacy.sampling`): what holds
of their ratios, as local differential privacy does, holds of the draws.

The noise comes from the operating system's secure random source. A seed replaces it by a generator that anybody who
knows the seed can run again: comparing what it draws with what was released, they learn of each row which symbols of X
are possible, in a mechanism with little noise X itself. A seed must then be kept secret, and be hard to guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cvxpriv.errors import DataError, ModelError, PrivacyError, shown, suggest, warn
from cvxpriv.numerics.arguments import is_whole
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.packages import pd
from cvxpriv.privacy.noise import Noise
from cvxpriv.privacy.sampling import exact_choices
from cvxpriv.tables.alphabets import Alphabet
from cvxpriv.tables.frames import require_columns, symbol

RELEASED = "released"
"""The name of the column that a release makes, unless another one is given."""
Unseen: TypeAlias = Literal["error", "drop"]
SHOWN = 3
"""Number of unseen cells that an error message shows."""


class SeededNoiseWarning(UserWarning):
    """The noise of a release comes from a seed: anyone who knows or guesses the seed can undo the release."""


class Channel(Protocol):
    """The parts of a mechanism that a release needs: P(Y|X), its symbols, and the columns that must never come out."""

    @property
    def array(self) -> Array: ...

    @property
    def inputs(self) -> Alphabet: ...

    @property
    def outputs(self) -> Sequence[str]: ...

    @property
    def private_columns(self) -> Sequence[str]: ...


def release(
    mechanism: Channel,
    frame: pd.DataFrame,
    seed: int | None = None,
    keep: Sequence[str] = (),
    unseen: Unseen = "error",
    name: str = RELEASED,
) -> pd.DataFrame:
    """Draw Y for each row of a frame from the row's X, and leave everything else behind.

    The mechanism's figures speak of one draw of Y per row and of nothing else (the chain S - X - Y). So

    - private and public columns never come out; any other column only if it is named in ``keep``. A kept column may
      itself say something of S: no figure of the mechanism accounts for it.
    - each call draws anew. Two releases of the same rows say more together than the figures of
      one: where each tells nothing of S, both together can.
    - rows keep their order and get a fresh index: who holds the original rows knows which is which.

    `mechanism`: A `Mechanism`, or any object with the same four attributes.
    `frame`: One record per row. Values are matched by `cvxpriv.tables.frames.symbol`: 1, 1.0 and "1" are one symbol.
    `seed`: Seed of the noise. By default the noise comes from the operating system's secure random source. A seed makes
    the same draw again and again, warns (`SeededNoiseWarning`), and must be kept secret.
    `keep`: Columns to pass on unchanged.
    `unseen`, {"error", "drop"}: "error" refuses rows whose X the mechanism does not know; "drop" leaves them out.
    `name`: The name of the new column.
    Returns: The kept columns and the new one, a categorical over the mechanism's output labels.
    Raises DataError: A public or kept column that the frame lacks; missing values; rows whose X the mechanism does not
    know; a name that is taken; a seed below 0.
    Raises PrivacyError: ``keep`` names a private or public column.
    Raises ModelError: Unknown ``unseen``.
    """
    if unseen not in ("error", "drop"):
        raise ModelError(f"unseen={unseen!r}: {suggest(str(unseen), ('error', 'drop'))}")
    kept = _kept(mechanism, frame, keep, name)
    codes = mechanism.inputs.codes(frame)
    seen = codes >= 0
    if not seen.all() and unseen == "error":
        raise DataError(_describe_unseen(mechanism, frame, ~seen))
    drawn = draw(mechanism.array, codes[seen], _noise(seed))
    result = frame.loc[seen, kept].reset_index(drop=True)
    result[name] = pd.Categorical.from_codes(drawn, categories=pd.Index(mechanism.outputs))
    return result


def _noise(seed: int | None) -> Noise:
    """Return the source of a release's noise.

    Raises DataError: A seed that is no whole number >= 0.
    """
    if seed is None:
        return Noise()
    if not is_whole(seed, 0):
        raise DataError(f"seed={shown(seed)}: expected a whole number >= 0, or None for the system's secure randomness")
    warn(
        "the noise of this release comes from a seed: its guarantee holds only while the seed is secret and"
        " too long to guess. Leave the seed out for the operating system's secure randomness",
        SeededNoiseWarning,
    )
    return Noise(np.random.default_rng(int(seed)))


def draw(matrix: Array, codes: NDArray[np.int64], noise: Noise) -> NDArray[np.int64]:
    """Draw an output for each input, with exactly the chances that the doubles of its row stand for.

    `matrix`, ``(|X|, |Y|)``: P(Y|X); a row is divided by its sum.
    `codes`, ``(rows,)``: The symbol of each row.
    Returns ``(rows,)``: An output of probability zero is never drawn.
    """
    order, words = np.argsort(codes, kind="stable"), noise.words(len(codes))
    symbols, begins = np.unique(codes[order], return_index=True)
    drawn = np.empty(len(codes), dtype=np.int64)
    for x, begin, end in zip(symbols, begins, np.append(begins, len(codes))[1:], strict=True):
        rows = order[begin:end]
        drawn[rows] = exact_choices(noise.words, words[rows], matrix[x])
    return drawn


def _kept(mechanism: Channel, frame: pd.DataFrame, keep: Sequence[str], name: str) -> list[str]:
    columns = [keep] if isinstance(keep, str) else list(keep)
    roles = {"public": mechanism.inputs.columns, "private": mechanism.private_columns}
    for role, names in roles.items():
        for column in columns:
            if column in names:
                raise PrivacyError(
                    f"keep={column!r} is a {role} column: the mechanism's figures hold only if it is not released;"
                    " take it out of keep"
                )
        if name in names:
            raise DataError(f"name={name!r} is a {role} column: choose another name for what is released")
    if columns:
        require_columns(frame, columns, "keep")
    if name in columns:
        raise DataError(f"name={name!r} is also a kept column: choose another name for what is released")
    return columns


def _describe_unseen(mechanism: Channel, frame: pd.DataFrame, unseen: NDArray[np.bool_]) -> str:
    columns = list(mechanism.inputs.columns)
    raw = frame.loc[unseen, columns].drop_duplicates().itertuples(index=False)
    cells = list(dict.fromkeys(", ".join(symbol(value) for value in row) for row in raw))
    shown = "; ".join(cells[:SHOWN]) + ("; ..." if len(cells) > SHOWN else "")
    return (
        f"{int(unseen.sum())} of {len(frame)} rows have one of {len(cells)} cells of {', '.join(columns)} that the"
        f" mechanism does not know ({shown}): leave those rows out (unseen='drop'), map them to known cells,"
        " or design the mechanism with these cells (keep_unseen=True and smoothing)"
    )


MOST_GAINED = 0.02
"""Gain in the chance of a right guess from which a release has to be confirmed."""


def guesses(mechanism: Channel, frame: pd.DataFrame, keep: Sequence[str]) -> pd.DataFrame | None:
    """Return the best chance to guess the private columns from nothing, from Y, and from Y with kept columns.

    `frame`: The rows, prepared as the mechanism wants them. `keep`: The kept columns.
    Returns: One row each for nothing, Y, Y with each kept column, and Y with all: what is seen, accuracy, and gained,
    the difference to Y alone. None where the rows lack a private column, or the mechanism names none.

    >>> from cvxpriv.mechanisms.mechanism import Mechanism
    >>> from cvxpriv.tables.alphabets import Alphabet
    >>> rows = pd.DataFrame({"x": [0, 0, 1, 1], "ill": [0, 1, 0, 1], "ward": ["a", "b", "a", "b"]})
    >>> mute = Mechanism([[1.0], [1.0]], Alphabet.numbered("x", 2), private_columns=["ill"])
    >>> guesses(mute, rows, ["ward"])["accuracy"].tolist()
    [0.5, 0.5, 1.0]
    """
    private = list(mechanism.private_columns)
    if not private or any(column not in frame.columns for column in private):
        return None
    codes = mechanism.inputs.codes(frame)
    frame, codes = frame.loc[codes >= 0], codes[codes >= 0]
    if not len(frame):
        return None
    secret = _numbered(frame, private)
    alone = np.zeros(len(frame), dtype=np.int64)
    silent = np.ones((len(mechanism.inputs), 1))
    rows = [
        ("nothing", _accuracy(silent, codes, secret, alone)),
        ("Y", _accuracy(mechanism.array, codes, secret, alone)),
    ]
    sets = [[column] for column in keep] + ([list(keep)] if len(keep) > 1 else [])
    for columns in sets:
        seen = _numbered(frame, columns)
        rows.append((f"Y with {', '.join(columns)}", _accuracy(mechanism.array, codes, secret, seen)))
    found = pd.DataFrame(rows, columns=["seen", "accuracy"])
    found["gained"] = found["accuracy"] - found["accuracy"].iloc[1]
    return found


def _numbered(frame: pd.DataFrame, columns: Sequence[str]) -> NDArray[np.int64]:
    groups = frame.groupby(list(columns), sort=False, dropna=False, observed=True)
    return np.asarray(groups.ngroup(), dtype=np.int64)


def _accuracy(matrix: Array, codes: NDArray[np.int64], secret: NDArray[np.int64], seen: NDArray[np.int64]) -> float:
    """Return ``sum over y and seen of max over s of p(s, y, seen)``."""
    cells, counts = np.unique(np.stack([seen, secret, codes]), axis=1, return_counts=True)
    pairs, place = np.unique(cells[:2], axis=1, return_inverse=True)
    chances = np.zeros((pairs.shape[1], matrix.shape[1]))
    np.add.at(chances, place.ravel(), counts[:, None] * matrix[cells[2]])
    best = np.zeros((int(seen.max()) + 1, matrix.shape[1]))
    np.maximum.at(best, pairs[0], chances)
    return float(best.sum() / len(codes))
