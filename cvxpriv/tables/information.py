"""Information measures of arrays, in nats, and the measures of a release of a joint table.

Pure functions: they do not validate. Each is exact at zeros (``0 log 0 = 0``). A `JointTable` is the validated door.
"""

from typing import TypeAlias, overload

import numpy as np
from scipy.special import entr, rel_entr

from cvxpriv.numerics.arrays import Array

Axis: TypeAlias = int | tuple[int, ...]


@overload
def entropy(p: Array, axis: None = None) -> float: ...
@overload
def entropy(p: Array, axis: Axis) -> Array: ...
def entropy(p: Array, axis: Axis | None = None) -> float | Array:
    """Return the entropy ``-sum p log p`` in nats.

    Parameters
    ----------
    p : array
        Probabilities.
    axis : int or tuple of int, optional
        The axes over which each distribution runs. By default the whole array is one distribution.

    Returns
    -------
    float or array
        Nats; a float without ``axis``, otherwise an array over the other axes.

    Examples
    --------
    >>> import numpy as np
    >>> round(entropy(np.array([0.5, 0.5, 0.0])), 6)
    0.693147
    """
    terms: Array = entr(p)
    return float(terms.sum()) if axis is None else np.asarray(terms.sum(axis=axis))


@overload
def kl_divergence(p: Array, q: Array, axis: None = None) -> float: ...
@overload
def kl_divergence(p: Array, q: Array, axis: Axis) -> Array: ...
def kl_divergence(p: Array, q: Array, axis: Axis | None = None) -> float | Array:
    """Return the Kullback-Leibler divergence ``sum p log(p/q)`` in nats, infinite where ``p > 0 = q``.

    `p`, `q`: Probabilities; their shapes broadcast.
    `axis`: The axes over which each distribution runs. By default the whole array is one distribution.
    Returns: Nats; a float without ``axis``, otherwise an array over the other axes.

    >>> import numpy as np
    >>> round(kl_divergence(np.array([1.0, 0.0]), np.array([0.5, 0.5])), 6)
    0.693147
    """
    terms: Array = rel_entr(p, q)
    return float(terms.sum()) if axis is None else np.asarray(terms.sum(axis=axis))


@overload
def mutual_information(joint: Array, axis: None = None) -> float: ...
@overload
def mutual_information(joint: Array, axis: tuple[int, int]) -> Array: ...
def mutual_information(joint: Array, axis: tuple[int, int] | None = None) -> float | Array:
    """Return the mutual information ``I(A;B)`` of a joint table in nats, never negative.

    It is the mean over ``b`` of ``KL(P_{A|b} || P_A)``. The product of the marginals is not formed: it underflows to
    zero where both marginals are tiny, and the divergence would come out infinite.

    `joint`, (|A|, |B|): Joint probabilities. With ``axis`` there may be further axes: a batch of tables.
    `axis`: The axes of A and of B in a batch, for example ``(-2, -1)``.
    Returns: Nats; a float without ``axis``, otherwise an array over the batch.

    >>> import numpy as np
    >>> round(mutual_information(np.diag([0.5, 0.5])), 6)
    0.693147
    >>> mutual_information(np.full((2, 2), 0.25))
    0.0
    """
    first, second = (0, 1) if axis is None else axis
    p_first = joint.sum(axis=second, keepdims=True)
    p_second = joint.sum(axis=first, keepdims=True)
    conditional = np.divide(joint, p_second, out=np.zeros_like(joint, dtype=np.float64), where=p_second > 0)
    terms: Array = rel_entr(conditional, p_first, out=conditional)
    terms *= p_second
    # Rounding can leave -1e-17 for independent variables; the exact value is never negative.
    information = np.maximum(terms.sum(axis=(first, second)), 0.0)
    return float(information) if axis is None else np.asarray(information)


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
