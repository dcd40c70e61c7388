"""Statistics of X from released rows, for a recipient who has the bundle and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from cvxpriv.errors import DataError, suggest
from cvxpriv.mechanisms.bundle_file import Bundle, read_bundle
from cvxpriv.mechanisms.codebook import statistics_of
from cvxpriv.mechanisms.frequencies import estimates
from cvxpriv.reports.files import PathLike

__all__ = ["Decoded", "decode"]

ROUNDED = (
    "P(Y|X) is not in the bundle, so there are neither intervals nor unbiased estimates: ask its owner for a bundle "
    "with P(Y|X) (`cvxpriv release --with-matrix`). These estimates average the codebook over the rows. The codebook's "
    "prior is the most likely distribution of X, so they are the most likely estimates, off by at most {most:.3g} for "
    "each symbol of X because the codebook is rounded. A codebook of other rows would pull them towards those rows."
)
UNKNOWN = (
    "Rows with identifiable=False are not determined by any number of outputs: their interval holds every value that "
    "fits, and their estimate is one of many that are equally likely."
)
SAMPLE = "Intervals are for the population that the rows come from."


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

    @property
    def notes(self) -> tuple[str, ...]:
        """Cautions that a reader needs to read the estimates right."""
        if self.bundle.matrix is None:
            return (ROUNDED.format(most=self.bundle.step / 2),)
        return (SAMPLE, UNKNOWN)

    def frequencies(self, *columns: str) -> pd.DataFrame:
        """Estimate how often the values of some columns of X occur together; without columns, the symbols of X.

        Returns
        -------
        DataFrame
            One row for each combination of values that is a symbol of X. With P(Y|X): ``estimate`` by maximum
            likelihood; ``low`` and ``high``, its interval; ``unbiased``, which may lie outside [0, 1] and is NaN where
            ``identifiable`` is False. Without it, ``estimate`` alone: `notes` says why.

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
        if self.bundle.matrix is None:
            shares = self.bundle.counts / self.bundle.counts.sum()
            spread = shares @ self.bundle.posterior
            return pd.DataFrame({"estimate": sums @ (spread / spread.sum())}, index=index)
        found = estimates(self.bundle.matrix, self.bundle.counts, sums, self.level)
        return pd.DataFrame(
            {
                "estimate": found.likely,
                "low": found.low,
                "high": found.high,
                "unbiased": found.unbiased,
                "identifiable": found.known,
            },
            index=index,
        )


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
        No bundle, a damaged or changed one, one without rows, or a level that is not between 0 and 1.

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
    if isinstance(level, bool) or not isinstance(level, (int, float, np.number)) or not 0 < level < 1:
        raise DataError(f"level={level!r}: expected a number between 0 and 1, such as 0.95")
    held = read_bundle(bundle)
    if not held.counts.any():
        raise DataError(f"bundle={str(bundle)!r} holds no rows: there is nothing to estimate from")
    return Decoded(held, float(level))
