"""A linear model, labels in its form, and its predictions in the user's spelling of the labels."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike
from scipy.special import expit

from cvxpriv.errors import DataError, ModelError, PrivacyError, shown
from cvxpriv.numerics.arguments import as_array
from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties.losses import Loss


@dataclass(frozen=True, eq=False)
class LinearFit:
    """A linear model.

    `coefficients`, (d,): One coefficient per feature, in the order of the features.
    """

    coefficients: Array
    intercept: float = 0.0

    def margin(self, rows: Array) -> Array:
        """Return the predictions, one per row of (n, d)."""
        return np.asarray(rows @ self.coefficients + self.intercept)


#: The largest label, and the largest entry of a row, of which sums of fourth powers are doubles.
LARGEST = 1e50
#: Number of labels shown in a message.
SHOWN = 5


def signed_labels(
    y: ArrayLike, rows: int, loss: Loss, *, one_class: bool = False, any_size: bool = False
) -> tuple[Array, npt.NDArray[np.generic] | None]:
    """Return y as -1 and 1 for a margin loss, or as numbers for a residual loss, and the user's names of the classes.

    `y`, (n,): Labels. A margin loss takes two classes of any type, and the smaller one becomes -1. Labels of -1 and 1,
    or of False and True, keep their meaning whichever of them occur.
    `rows`: Number of rows, n.
    `one_class`: Accept labels of one class where the other one is known: 0 and 1, or -1 and 1. Whether both occur is a
    fact about the data, which a private model should not reveal by an error.
    `any_size`: Accept numeric labels above `LARGEST`, where the size of a label is such a fact as well.
    Returns `labels`, (n,).
    Returns `classes`, (2,): The user's labels of -1 and of 1; None for a residual loss.
    Raises DataError: Another shape, NaN, not numbers for a residual loss, or not two classes for a margin loss (the
    message names those found).

    >>> from cvxpriv.penalties import loss_named
    >>> labels, classes = signed_labels(["no", "yes", "no"], 3, loss_named("logistic"))
    >>> labels.tolist(), classes.tolist()
    ([-1.0, 1.0, -1.0], ['no', 'yes'])
    """
    given = as_array(y, "y")
    if given.shape != (rows,):
        raise DataError(f"y has shape {given.shape}, expected ({rows},): one label for each row")
    numeric = _numeric(given)
    if numeric is not None and not np.isfinite(numeric).all():
        raise DataError("y holds NaN or infinite labels: drop these rows first")
    if not loss.margin:
        if numeric is None:
            raise DataError(f"y holds labels that are not numbers, and loss={loss.name!r} predicts numbers")
        if not any_size and np.abs(numeric).max(initial=0.0) > LARGEST:
            raise DataError(f"y holds labels above {LARGEST:g}, whose squares overflow: scale them")
        return numeric, None
    if one_class and (
        given.dtype == bool
        or (given.dtype.kind in "if" and numeric is not None and np.isin(numeric, (-1.0, 1.0)).all())
    ):
        least = False if given.dtype == bool else -1
        return np.where(given == 1, 1.0, -1.0), np.array([least, 1]).astype(given.dtype)
    classes = _classes(given)
    if classes.size == 1 and one_class and numeric is not None and numeric[0] in (0.0, 1.0):
        return np.where(numeric == 1.0, 1.0, -1.0), np.array([0, 1]).astype(given.dtype)
    if classes.size != 2:
        found = ", ".join(map(shown, classes[:SHOWN].tolist())) + (", ..." if classes.size > SHOWN else "")
        raise DataError(
            f"y has {classes.size} {'class' if classes.size == 1 else 'classes'} ({found}); loss={loss.name!r} takes "
            "two: choose a binary label, such as one of 0 and 1"
        )
    return np.where(given == classes[1], 1.0, -1.0), classes


def require_public_classes(classes: npt.NDArray[np.generic] | None) -> None:
    """Refuse classes that were read off private labels: only -1 and 1, or False and True, are known without them.

    Raises PrivacyError: The message is the same for all labels.
    """
    if classes is None or classes.dtype == bool or (classes.dtype.kind in "if" and classes.tolist() == [-1, 1]):
        return
    raise PrivacyError(
        "the two classes would be read off the private labels, and no guarantee covers that: pass labels of -1 and 1, "
        "or of False and True, or schema=PublicSchema(classes=(negative, positive))"
    )


def class_probabilities(margin: Array, loss: str) -> Array:
    """Return the probabilities of the two classes, (n, 2), from the predicted log odds of the second one.

    Raises ModelError: The loss is not the logistic one: no other here is a likelihood of two classes.
    """
    if loss != "logistic":
        raise ModelError(
            f"loss={shown(loss)} gives no probabilities: use decision_function or predict, or fit loss='logistic'"
        )
    return np.column_stack([expit(-margin), expit(margin)])


def predicted(margin: Array, classes: npt.NDArray[np.generic] | None) -> npt.NDArray[np.generic]:
    """Return the predicted class of each row, (n,), as the user spelled it; without classes the predicted number."""
    return margin if classes is None else classes[(margin > 0.0).astype(int)]


def _numeric(given: npt.NDArray[np.generic]) -> Array | None:
    try:
        return given.astype(np.float64)
    except Exception:  # of objects of any class, which may raise anything
        return None


def _classes(given: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    try:
        return np.unique(given)
    except Exception:  # None among texts, say: nothing that has an order; objects may raise anything
        raise DataError("y mixes labels of several types, or has missing ones: drop these rows first") from None
