"""Scores of predictions of two classes on rows that they were not fitted to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from cvxpriv.errors import DataError
from cvxpriv.numerics.arguments import real_numbers
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.doors import door

__all__ = ["Scores", "accuracy", "area_under_curve", "log_loss", "scores_of"]


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
