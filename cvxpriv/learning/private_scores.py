"""Accuracy and log loss of private rows, released with noise."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.errors import DataError, PrivacyError
from cvxpriv.learning.schema import RELATIONS
from cvxpriv.numerics.doors import door
from cvxpriv.privacy import (
    Accounting,
    Budget,
    GaussianNoise,
    Plan,
    Release,
    account_ledger,
    gaussian_mu,
    noise_source,
)

__all__ = ["PrivateScores", "private_scores"]

#: A row's log loss counts up to this, in nats: that of a class that was given a chance of one in fifty.
LONGEST = 4.0
#: To which parts of `LONGEST` a row's log loss is rounded down.
UNIT = 2.0**-20
NEIGHBOURS = {"replace-one": "one row replaced, n public", "add-remove": "one row added or removed"}


@dataclass(frozen=True)
class PrivateScores:
    """Scores of predictions on private rows, with noise.

    Attributes
    ----------
    accuracy : float
        Share of rows whose class is named right, in [0, 1].
    log_loss : float
        Mean log loss in nats; a row counts at most `LONGEST`.
    deviation : float
        Standard deviation of the noise in the accuracy; that of the log loss is `LONGEST` times as large.
    accounting : Accounting
    """

    accuracy: float
    log_loss: float
    deviation: float
    accounting: Accounting


@door
def private_scores(
    labels: ArrayLike,
    margin: ArrayLike,
    *,
    epsilon: float,
    delta: float,
    adjacency: str = "replace-one",
    budget: Budget | str | Path | None = None,
    noise_seed: int | None = None,
) -> PrivateScores:
    """Release the accuracy and the log loss of private rows: one Gaussian release of two sums, or of three.

    Parameters
    ----------
    labels : array, (n,)
        1 for the second class; anything else is the first one.
    margin : array, (n,)
        Log odds of the second class; what is no number counts as 0.
    epsilon, delta : float
    adjacency : str
        Neighbour relation. With "add-remove" the number of rows is private, and released with the same noise.
    budget : Budget or path, optional
        Budget that this spends from, before a row is read.
    noise_seed : int, optional
        Seed of the noise, for tests alone.

    Raises
    ------
    PrivacyError
        epsilon and delta are no budget, or more than is left of `budget`.
    DataError
        Not one label for each prediction.

    Examples
    --------
    >>> margin = np.linspace(-3.0, 3.0, 20_000)
    >>> found = private_scores(np.sign(margin), margin, epsilon=1.0, delta=1e-6)
    >>> 0.98 < found.accuracy <= 1.0, 0.2 < found.log_loss < 0.3
    (True, True)
    """
    if adjacency not in RELATIONS:
        raise PrivacyError(f"adjacency={adjacency!r}: pass one of {', '.join(RELATIONS)}")
    mu = gaussian_mu(epsilon, delta)
    entry = Release(mu=mu, step="scores")
    Plan((entry,), "scores", adjacency).spend(budget)
    b, z = np.asarray(labels, dtype=object), _margin(margin)
    if b.ndim != 1 or b.shape != z.shape:
        raise DataError("labels and margin have different shapes: pass one of each for each row")
    counted = adjacency == "add-remove"
    size = 3 if counted else 2
    # Each sum moves by at most 1. They are sums of whole numbers of units, and exact.
    gaussian = GaussianNoise(float(np.nextafter(np.sqrt(size), np.inf)), mu, size)
    noise = noise_source(noise_seed)
    released = gaussian.release(_sums(b == 1, np.nan_to_num(z), counted), noise)
    rows = max(float(released[2]), 2.0) if counted else float(max(z.size, 1))
    accounting = account_ledger((entry,), delta, neighbours=NEIGHBOURS[adjacency], secure=noise.secure)
    accuracy, loss = np.clip(released[:2] / rows, 0.0, 1.0)
    return PrivateScores(float(accuracy), LONGEST * float(loss), gaussian.scale / rows, accounting)


def _margin(margin: ArrayLike) -> np.ndarray:
    try:
        return np.asarray(margin, dtype=float)
    except (TypeError, ValueError, OverflowError):  # the private entry is not quoted
        raise DataError("margin does not hold numbers: pass the model's prediction for each row") from None


def _sums(second: np.ndarray, margin: np.ndarray, counted: bool) -> np.ndarray:
    """Return the number of rows named right, the sum of their log losses in units of `LONGEST`, and their number."""
    right = float(np.count_nonzero(second == (margin > 0.0)))
    losses = np.minimum(np.logaddexp(0.0, np.where(second, -margin, margin)), LONGEST) / LONGEST
    sums = [right, float(np.floor(losses / UNIT).astype(np.int64).sum()) * UNIT]
    return np.array([*sums, float(margin.size)] if counted else sums)
