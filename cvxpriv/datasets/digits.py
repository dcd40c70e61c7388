"""A two-class set of digits with as many probes as features, after the recipe that Gisette's authors describe.

Gisette (Guyon et al. 2004) is MNIST's 4 against 9 with products of pixels and with probes. It cannot be fetched here
and this set is not it: same task, same size, our own draw of pixels, products and probes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cvxpriv.errors import DataError
from cvxpriv.numerics.arrays import Array
from cvxpriv.reports.files import PathLike

__all__ = ["DigitPairs", "load_gisette_like"]

FILE = "mnist49.npz"
SIDE = 28
#: Rows and columns of the image from which pixels are drawn: where the upper loop of a 4 and of a 9 differ.
MIDDLE_TOP = (slice(4, 16), slice(6, 22))
ROWS, FEATURES, PROBES = 6000, 2500, 2500


@dataclass(frozen=True, eq=False)
class DigitPairs:
    """The set.

    Attributes
    ----------
    x_train, x_test : ndarray, (6000, 5000) and (rest, 5000)
        In [0, 1]. Columns are shuffled: features and probes stand mixed.
    y_train, y_test : ndarray
        1 for a 4, -1 for a 9.
    probe : ndarray of bool, (5000,)
        Which columns are probes: they carry nothing about the digit.
    """

    x_train: Array
    y_train: Array
    x_test: Array
    y_test: Array
    probe: npt.NDArray[np.bool_]


def load_gisette_like(folder: PathLike | None = None, seed: int = 0) -> DigitPairs:
    """Return a set like Gisette, built from MNIST's 4 and 9.

    The recipe, each draw from the stated seed: all 192 pixels of the middle top; products of random pairs of them up to
    2,500 features; 2,500 probes, each a feature whose rows are shuffled; columns shuffled; 6,000 training rows drawn
    from MNIST's training part.

    Parameters
    ----------
    folder : path, optional
        Where mnist49.npz lies: arrays x (images of 784 bytes), y (4 or 9), test (bool). None: OpenML's mnist_784,
        through scikit-learn.
    seed : int

    Raises
    ------
    DataError
        The digits cannot be had, or are not what they have to be.
    """
    images, labels, test = _from_openml() if folder is None else _from_folder(Path(folder))
    rng = np.random.default_rng(seed)
    pixels = images.reshape(-1, SIDE, SIDE)[:, *MIDDLE_TOP].reshape(images.shape[0], -1) / 255.0
    pairs = rng.integers(0, pixels.shape[1], size=(FEATURES - pixels.shape[1], 2))
    found = np.hstack([pixels, pixels[:, pairs[:, 0]] * pixels[:, pairs[:, 1]]])
    source = rng.integers(0, FEATURES, size=PROBES)
    probes = np.stack([rng.permutation(found[:, column]) for column in source], axis=1)
    order = rng.permutation(FEATURES + PROBES)
    x = np.hstack([found, probes])[:, order]
    y = np.where(labels == 4, 1.0, -1.0)
    train = rng.permutation(np.flatnonzero(~test))[:ROWS]
    return DigitPairs(x[train], y[train], x[test], y[test], order >= FEATURES)


Digits = tuple[Array, npt.NDArray[np.int_], npt.NDArray[np.bool_]]


def _from_folder(folder: Path) -> Digits:
    path = folder / FILE
    try:
        with np.load(path, allow_pickle=False) as held:
            images, labels, test = (held[name] for name in ("x", "y", "test"))
    except (OSError, ValueError, KeyError) as error:
        raise DataError(
            f"folder={str(folder)!r} has no readable {FILE} with arrays x, y and test ({error}): put it there, or "
            "leave folder out to fetch MNIST from OpenML"
        ) from error
    return _checked(images, labels, test.astype(bool))


def _from_openml() -> Digits:
    remedy = f"pass folder= with a file {FILE} (arrays x, y, test)"
    try:
        from sklearn.datasets import fetch_openml
    except ImportError as error:
        raise DataError(f"MNIST is fetched through scikit-learn: install that, or {remedy}") from error
    try:
        images, labels = fetch_openml("mnist_784", version=1, as_frame=False, return_X_y=True, parser="auto")
    except Exception as error:
        raise DataError(f"MNIST could not be fetched from OpenML ({error}): connect, or {remedy}") from error
    labels = labels.astype(int)
    chosen = np.isin(labels, (4, 9))
    return _checked(images[chosen], labels[chosen], (np.arange(labels.size) >= 60_000)[chosen])


def _checked(images: Array, labels: npt.NDArray[np.int_], test: npt.NDArray[np.bool_]) -> Digits:
    if images.ndim != 2 or images.shape[1] != SIDE * SIDE or set(np.unique(labels)) != {4, 9}:
        raise DataError(f"the digits are {images.shape}, labels {np.unique(labels)}: expected rows of 784, labels 4, 9")
    if (~test).sum() < ROWS:
        raise DataError(f"the digits have {(~test).sum()} training rows, not {ROWS}: pass all of MNIST's 4 and 9")
    return images, labels, test
