"""Statistics of X from released rows, for a recipient who has the bundle and nothing else."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from cvxpriv.errors import DataError, shown, suggest
from cvxpriv.mechanisms.bundle import DOCUMENT, FILES, FORMAT, ROWS, VERSION
from cvxpriv.mechanisms.codebook import Stated, stated_in, statistics_of
from cvxpriv.mechanisms.frequencies import estimates, half_widths
from cvxpriv.mechanisms.noisy_frequencies import NoisyCounts, counts_in
from cvxpriv.numerics.arguments import is_number
from cvxpriv.numerics.arrays import Array, Flags
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import pd
from cvxpriv.reports.files import MANIFEST, PathLike, plain_file
from cvxpriv.tables.alphabets import Alphabet
from cvxpriv.tables.arrays import stochastic_matrix

STATED = (
    "The owner states how often values occur among these rows, rounded to {step:.0%}: low and high hold every "
    "frequency in the population that fits the rounding and the number of rows."
)
COUNTED = (
    "Estimates and intervals come from the noisy counts of the table that the mechanism was designed on, and allow for "
    "their noise; from the outputs of these rows where those are expected to tell more."
)
UNKNOWN = (
    "Rows with identifiable=False are not determined by any number of outputs: their estimate is made with the "
    "codebook, and their interval holds every value that fits the rows."
)
INVERTED = (
    "unbiased is from the outputs alone; where identifiable is False, no number of them determines the frequency."
)
SAMPLE = "Intervals are for the population that the rows come from."
ONCE = (
    "Each interval holds by itself. Bundles of the same rows are one sample: do not put their rows together. Of two, "
    "each opened at level 0.975, what lies in both intervals holds at 95 %."
)


@door
@dataclass(frozen=True, eq=False)
class Decoded:
    """The statistics that released rows allow.

    Attributes
    ----------
    bundle : Bundle
    level : float
        Coverage of each interval by itself.
    """

    bundle: Bundle
    level: float = 0.95

    def __repr__(self) -> str:
        rows, matrix = int(self.bundle.counts.sum()), "without" if self.bundle.matrix is None else "with"
        return f"Decoded: {rows:,} rows in place of {', '.join(self.columns)}, {matrix} P(Y|X); frequencies(), notes"

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of X: those that the outputs stand for."""
        return self.bundle.inputs.columns

    @property
    def notes(self) -> tuple[str, ...]:
        """Cautions that a reader needs to read the estimates right."""
        told = self.bundle.stated
        if told is None:
            return (SAMPLE, UNKNOWN, ONCE)
        if isinstance(told, NoisyCounts):
            return (SAMPLE, COUNTED, INVERTED, ONCE)
        rounded = STATED.format(step=min(told.step, 1.0))
        return (SAMPLE, rounded, *([] if self.bundle.matrix is None else [INVERTED]), ONCE)

    def frequencies(self, *columns: str) -> pd.DataFrame:
        """Estimate how often the values of some columns of X occur together; without columns, the symbols of X.

        Returns
        -------
        DataFrame
            One row for each combination of values that is a symbol of X: ``estimate``, and ``low`` and ``high``, the
            ends of its interval. They follow from the frequencies or noisy counts that the bundle states; where it
            states none, or the outputs tell more than noisy counts, from these by maximum likelihood. With P(Y|X) also
            ``unbiased``, which may lie outside [0, 1] and is NaN where ``identifiable`` is False.

        Raises
        ------
        DataError
            An unknown column, or rows that belong to another mechanism.
        NotConverged
            The likelihood was not maximised.
        """
        inputs = self.bundle.inputs
        for column in columns:
            if column not in inputs.columns:
                raise DataError(f"column {column!r} is none of X: {suggest(str(column), inputs.columns)}")
        if len(set(columns)) < len(columns):
            raise DataError(f"columns={columns!r}: name each once")
        names = list(columns) or list(inputs.columns)
        values, sums = statistics_of(inputs, names)
        index = (
            pd.MultiIndex.from_tuples(values, names=names)
            if len(names) > 1
            else pd.Index([value[0] for value in values], name=names[0])
        )
        found: dict[str, Array | Flags] = {}
        if (stated := self.bundle.stated) is not None:
            low, high = stated.intervals(sums, self.level)
            middle = sums @ stated.likely
            found = {"estimate": middle, "low": np.minimum(low, middle), "high": np.maximum(high, middle)}
        if self.bundle.matrix is not None:
            outputs = estimates(self.bundle.matrix, self.bundle.counts, sums, self.level)
            ends = {"estimate": outputs.likely, "low": outputs.low, "high": outputs.high}
            if stated is None:
                spread = self.bundle.counts @ self.bundle.posterior
                middle = np.where(outputs.known, outputs.likely, sums @ (spread / spread.sum()))
                found = {**ends, "estimate": middle, "low": np.minimum(outputs.low, middle)}
                found["high"] = np.maximum(outputs.high, middle)
            elif isinstance(stated, NoisyCounts):
                rows = float(self.bundle.counts.sum())
                expected = half_widths(self.bundle.matrix, stated.prior, sums, rows, self.level)
                nearer = expected < stated.half_widths(sums, self.level)  # known before the outputs are looked at
                found = {name: np.where(nearer, ends[name], one) for name, one in found.items()}
            found |= {"unbiased": outputs.unbiased, "identifiable": outputs.known}
        return pd.DataFrame(found, index=index)


@door
def decode(bundle: PathLike, level: float = 0.95) -> Decoded:
    """Open a bundle for estimates of statistics of X.

    Parameters
    ----------
    bundle : path
        Folder or zip file that `cvxpriv release` or `Mechanism.bundle` wrote.
    level : float
        Coverage of each interval.

    Raises
    ------
    DataError
        No bundle or several, a damaged or changed one, one without rows, or a level that is not between 0 and 1.

    Examples
    --------
    >>> import tempfile, cvxpriv as cpv
    >>> coin = cpv.Mechanism([[0.9, 0.1], [0.2, 0.8]], cpv.Alphabet.numbered("smokes", 2))
    >>> people = pd.DataFrame({"smokes": [0, 1] * 5000})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = coin.bundle(people, f"{folder}/bundle", matrix=True)
    ...     found = cpv.decode(f"{folder}/bundle").frequencies("smokes")
    >>> bool(abs(found.loc["1", "estimate"] - 0.5) < 0.05), list(found["identifiable"])
    (True, [True, True])
    """
    if not is_number(level) or not 0 < level < 1:
        raise DataError(f"level={level!r}: expected a number between 0 and 1, such as 0.95")
    if not isinstance(bundle, (str, os.PathLike)):
        raise DataError(
            f"bundle={shown(bundle)}: give one folder or zip file. Bundles of the same rows are one sample, and their "
            "rows do not go together: open each, as `notes` says"
        )
    held = read_bundle(bundle)
    if not held.counts.any():
        raise DataError(f"bundle={str(bundle)!r} holds no rows: there is nothing to estimate from")
    return Decoded(held, float(level))


MOST_BYTES = 2**30
"""Largest size of a file of a bundle."""


class Bundle:
    """The contents of a bundle, and the number of its rows by output.

    Attributes
    ----------
    inputs : Alphabet
    outputs : tuple of str
    counts : array, ``(|Y|,)``
        Number of rows of each output.
    matrix : array or None, ``(|X|, |Y|)``
    posterior : array, ``(|Y|, |X|)``
    step : float
        Step to which the posterior is rounded.
    withheld : str
        The reason why there is no matrix.
    stated : Stated, NoisyCounts or None
        The frequencies that the owner states, or noisy counts where P(Y|X) may be published.
    """

    def __init__(self, document: Mapping[str, Any], rows: bytes) -> None:
        if document.get("format") != FORMAT or document.get("version") != VERSION:
            raise DataError(f"format={shown(document.get('format'))}, version={shown(document.get('version'))}")
        self.inputs = Alphabet(tuple(document["columns"]), tuple(map(tuple, document["symbols"])))
        self.outputs = tuple(map(str, document["outputs"]))
        sizes = len(self.inputs), len(self.outputs)
        self.matrix = None if document["matrix"] is None else stochastic_matrix(document["matrix"], "matrix")
        self.posterior: Array = np.asarray(document["posterior"], dtype=np.float64)
        if self.posterior.shape != sizes[::-1] or (self.matrix is not None and self.matrix.shape != sizes):
            raise DataError(f"its matrices do not have {sizes[0]} inputs and {sizes[1]} outputs")
        self.step, self.withheld = float(document["posterior_step"]), str(document["withheld"])
        if not ((self.posterior >= 0) & (self.posterior <= 1)).all() or not 0 <= self.step < 1:
            raise DataError("its codebook holds numbers that are no chances")
        self.counts = self._counted(str(document["column"]), rows)
        told = document["frequencies"]
        self.stated: Stated | NoisyCounts | None = None
        if told is not None and "noisy_counts" in told:
            self.stated = counts_in(told, self.inputs)
        elif told is not None:
            self.stated = stated_in(told, self.inputs, int(self.counts.sum()))
        if self.stated is None and self.matrix is None:
            raise DataError("it has neither P(Y|X) nor stated frequencies")

    def _counted(self, column: str, rows: bytes) -> Array:
        frame = pd.read_csv(io.BytesIO(rows), dtype=str, keep_default_na=False)
        if column not in frame.columns:
            raise DataError(f"{ROWS} has no column {column!r}")
        drawn = frame[column].str.removeprefix("'") if column in frame else frame[column]
        known = {output.removeprefix("'"): place for place, output in enumerate(self.outputs)}
        if len(strays := set(drawn.unique()) - set(known)):
            raise DataError(f"{ROWS} holds the output {min(strays)!r}, which the codebook does not know")
        places = drawn.map(known).to_numpy(dtype=np.int64)
        return np.bincount(places, minlength=len(self.outputs)).astype(np.float64)


def read_bundle(path: PathLike) -> Bundle:
    """Read a bundle.

    Raises DataError: No bundle, a file that is missing, damaged or changed, or contents that contradict each other.
    """
    try:
        files = _files(Path(path))
        listed = json.loads(files[MANIFEST])["sha256"]
        for name in FILES:
            if hashlib.sha256(files[name]).hexdigest() != listed[name]:
                _wrong(path, f"{name} is not the file that the manifest names")
        return Bundle(json.loads(files[DOCUMENT]), files[ROWS])
    except DataError as error:
        if str(error).startswith("bundle="):
            raise
        _wrong(path, str(error))
    except (
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        RecursionError,
        pd.errors.ParserError,
    ) as error:
        _wrong(path, f"{type(error).__name__}: {error}")
    except (OSError, EOFError, RuntimeError, NotImplementedError, zlib.error, zipfile.BadZipFile) as error:
        _wrong(path, str(getattr(error, "strerror", None) or error))


def _wrong(path: PathLike, reason: str) -> NoReturn:
    raise DataError(
        f"bundle={str(path)!r} cannot be used ({reason}): give a folder or zip file that `cvxpriv release` wrote"
    )


def _files(path: Path) -> dict[str, bytes]:
    """Return the files of a bundle that are read, each up to `MOST_BYTES`."""
    found = {}
    archive = zipfile.ZipFile(path) if path.is_file() else None
    with archive or nullcontext():
        for name in (MANIFEST, *FILES):
            with plain_file(path / name) if archive is None else archive.open(name) as file:
                found[name] = file.read(MOST_BYTES + 1)
            if len(found[name]) > MOST_BYTES:
                raise DataError(f"{name} is larger than {MOST_BYTES / 2**30:g} GiB")
    return found
