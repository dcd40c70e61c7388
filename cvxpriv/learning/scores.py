"""Scores of predictions of two classes on rows that they were not fitted to, exact or released with noise."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from cvxpriv.errors import DataError, PrivacyError
from cvxpriv.learning.schema import RELATIONS
from cvxpriv.learning.schema_parts import numbers_in
from cvxpriv.numerics.arguments import real_numbers
from cvxpriv.numerics.arrays import Array
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


@dataclass(frozen=True)
class Scores:
    """Scores of predictions on some rows.

    Attributes
    ----------
    accuracy : float
        Share of rows whose class is predicted correctly.
    log_loss : float, optional
        Mean log loss in nats; None where the predictions are not log odds.
    auc : float, optional
        Area under the receiver operating characteristic; None where the rows have one class only.
    rows : int
    """

    accuracy: float
    log_loss: float | None
    auc: float | None
    rows: int


@door
def scores_of(labels: ArrayLike, margin: ArrayLike, *, log_odds: bool = True) -> Scores:
    """Return all scores of predictions.

    Parameters
    ----------
    labels : array, (n,)
        Labels of -1 and 1.
    margin : array, (n,)
        Predictions: above 0 for class 1.
    log_odds : bool
        Whether the predictions are log odds, as those of a logistic model.

    Raises
    ------
    DataError
        No row, unequal lengths, labels other than -1 and 1, or predictions that are not finite.

    Examples
    --------
    >>> scores_of([-1, -1, 1, 1], [-2.0, 0.5, 0.5, 3.0])
    Scores(accuracy=0.75, log_loss=0.4059..., auc=0.875, rows=4)
    """
    b, z = _checked(labels, margin)
    one_class = bool((b == b[0]).all())
    return Scores(
        accuracy(b, z), log_loss(b, z) if log_odds else None, None if one_class else area_under_curve(b, z), b.size
    )


def accuracy(labels: Array, margin: Array) -> float:
    """Return the share of labels, -1 and 1, that the sign of the margin names; 0 is -1."""
    return float(np.mean(np.where(margin > 0.0, 1.0, -1.0) == labels))


def log_loss(labels: Array, margin: Array) -> float:
    """Return the mean of log(1 + exp(-b z)), in nats: the log loss of predicted log odds z."""
    return float(np.mean(np.logaddexp(0.0, -labels * margin)))


def area_under_curve(labels: Array, margin: Array) -> float:
    """Return the chance that a row of class 1 has a larger margin than one of class -1; ties count one half.

    It is the statistic of Mann and Whitney, by ranks: (sum of ranks of class 1 - p (p + 1)/2) / (p q).

    Raises
    ------
    DataError
        The labels are of one class only.
    """
    positive = labels > 0.0
    p = float(positive.sum())
    q = labels.size - p
    if p == 0.0 or q == 0.0:
        raise DataError("the rows have one class only, and no area under the curve: score rows of both classes")
    ranks = rankdata(margin)
    return float((ranks[positive].sum() - p * (p + 1.0) / 2.0) / (p * q))


def _checked(labels: ArrayLike, margin: ArrayLike) -> tuple[Array, Array]:
    b, z = real_numbers(labels, "labels"), real_numbers(margin, "margin")
    if b.ndim != 1 or b.shape != z.shape or b.size == 0:
        raise DataError(f"labels has shape {b.shape} and margin {z.shape}: pass one of each for at least one row")
    if not np.isin(b, (-1.0, 1.0)).all():
        raise DataError("labels holds other values than -1 and 1: pass the class of each row as its sign")
    if not np.isfinite(z).all():
        raise DataError("margin holds NaN or infinite predictions: check the coefficients")
    return b, z


#: A row's log loss counts up to this, in nats: that of a class that was given a chance of one in fifty.
LONGEST = 4.0
#: To which parts of `LONGEST` a row's log loss is rounded down.
UNIT = 2.0**-20
#: Largest Euclidean norm by which a neighbour moves the sums, without and with their number; the next double up. The
#: sums are exact. Each moves by at most 1, and a row that is named right has a loss of at most log 2.
SENSITIVITIES = (math.nextafter(2.0**0.5, 2.0), math.nextafter((2.0 + (math.log(2.0) / LONGEST) ** 2) ** 0.5, 2.0))
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
        1 for the second class; anything else is the first one. Each cell is read by itself, and none is refused.
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
    b, z = numbers_in(labels, 1), numbers_in(margin, 1)
    if b.shape != z.shape:
        raise DataError("labels and margin have different shapes: pass one of each for each row")
    counted = adjacency == "add-remove"
    size = 3 if counted else 2
    gaussian = GaussianNoise(SENSITIVITIES[counted], mu, size)
    noise = noise_source(noise_seed)
    released = gaussian.release(_sums(b == 1, np.nan_to_num(z), counted), noise)
    rows = max(float(released[2]), 2.0) if counted else float(max(z.size, 1))
    accounting = account_ledger((entry,), delta, neighbours=NEIGHBOURS[adjacency], secure=noise.secure)
    accuracy, loss = np.clip(released[:2] / rows, 0.0, 1.0)
    return PrivateScores(float(accuracy), LONGEST * float(loss), gaussian.scale / rows, accounting)


def _sums(second: np.ndarray, margin: np.ndarray, counted: bool) -> np.ndarray:
    """Return the number of rows named right, the sum of their log losses in units of `LONGEST`, and their number."""
    right = float(np.count_nonzero(second == (margin > 0.0)))
    losses = np.minimum(np.logaddexp(0.0, np.where(second, -margin, margin)), LONGEST) / LONGEST
    sums = [right, float(np.floor(losses / UNIT).astype(np.int64).sum()) * UNIT]
    return np.array([*sums, float(margin.size)] if counted else sums)
