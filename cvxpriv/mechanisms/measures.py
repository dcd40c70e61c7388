"""The measures of a release, as pure functions of joint tables and a mechanism: information, and the best guess."""

from __future__ import annotations

import numpy as np

from cvxpriv.numerics.arrays import Array
from cvxpriv.tables.information import entropy, mutual_information

MEASURES = {
    "leakage": ("I(S;Y)", "nats"),
    "utility": ("I(X;Y)", "nats"),
    "information": ("I(S;X)", "nats"),
    "accuracy_nothing": ("best accuracy for S from nothing", "probability"),
    "accuracy_y": ("best accuracy for S from Y", "probability"),
    "accuracy_x": ("best accuracy for S from X", "probability"),
}
"""The measures by name: a description for readers, and the unit."""
OF_Y = ("leakage", "utility", "accuracy_y")
ACCURACIES = ("accuracy_nothing", "accuracy_y", "accuracy_x")


def bayes_accuracy(joint: Array) -> Array:
    """Return the best chance to guess A from B: ``sum_b max_a p(a, b)``.

    `joint`: ``(..., |A|, |B|)``.
    Returns ``(...)``.

    Examples
    --------
    >>> float(bayes_accuracy(np.array([[0.5, 0.1], [0.0, 0.4]])))
    0.9
    """
    return np.asarray(joint.max(axis=-2).sum(axis=-1))


def measure(joint: Array, mechanism: Array) -> Array:
    """Return all measures of tables under one mechanism, in the order of `MEASURES`.

    Parameters
    ----------
    joint : array, ``(tables, |S|, |X|)``
    mechanism : array, ``(|X|, |Y|)``

    Returns
    -------
    array, ``(tables, 6)``
    """
    released = joint @ mechanism
    p_x = joint.sum(axis=-2)
    utility = entropy(p_x @ mechanism, axis=-1) - p_x @ entropy(mechanism, axis=-1)
    return np.stack(
        [
            mutual_information(released, axis=(-2, -1)),
            np.maximum(utility, 0.0),  # rounding can leave -1e-17 when Y does not depend on X
            mutual_information(joint, axis=(-2, -1)),
            joint.sum(axis=-1).max(axis=-1),
            bayes_accuracy(released),
            bayes_accuracy(joint),
        ],
        axis=-1,
    )


def ranges(private: int, public: int) -> Array:
    """Return the least and the largest possible value of each measure, ``(2, 6)``."""
    log_s, log_x = np.log(private), np.log(public)
    guess = 1 / private
    return np.array([[0, 0, 0, guess, guess, guess], [min(log_s, log_x), log_x, min(log_s, log_x), 1, 1, 1]])
