"""A two-class set of digits with as many probes as features, after the recipe that Gisette's authors describe.

Gisette (Guyon et al. 2004) is MNIST's 4 against 9 with products of pixels and with probes. This set is not it: same
task, same size, our own draw of pixels, products and probes.
"""

import gzip
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.doors import door
from cvxpriv.reports.files import PathLike
from cvxpriv.tables.datasets.fetching import RawFile, cache_folder, fetch

MIRROR = "https://ossci-datasets.s3.amazonaws.com/mnist/"
#: Images and labels of the training part, then of the test part, as their authors distribute them.
FILES = tuple(
    RawFile(name, MIRROR + name, sha256)
    for name, sha256 in (
        ("train-images-idx3-ubyte.gz", "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
        ("train-labels-idx1-ubyte.gz", "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
        ("t10k-images-idx3-ubyte.gz", "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
        ("t10k-labels-idx1-ubyte.gz", "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
    )
)
#: The rows of 4 and 9 alone: arrays x, y and test; the test part first, and 4 before 9.
PACKED = RawFile("mnist49.npz", "", "482fc231c77a12ca0d047e798d79a795c732e00406b4bd97db730fa8b04d9ce7")
SIDE = 28
#: Rows and columns of the image from which pixels are drawn, where the upper loops of a 4 and of a 9 differ.
MIDDLE_TOP = (slice(4, 16), slice(6, 22))
ROWS, FEATURES, PROBES = 6000, 2500, 2500


@dataclass(frozen=True, eq=False)
class DigitPairs:
    """The set of digits.

    Attributes
    ----------
    x_train, x_test : ndarray, (6000, 5000) and (rest, 5000)
        Features in [0, 1]. Columns are shuffled: features and probes stand mixed.
    y_train, y_test : ndarray
        Labels: 1 for a 4, -1 for a 9.
    probe : ndarray of bool, (5000,)
        Mask of the columns that are probes: they carry no information about the digit.
    """

    x_train: Array
    y_train: Array
    x_test: Array
    y_test: Array
    probe: npt.NDArray[np.bool_]


@door
def load_gisette_like(folder: PathLike | None = None, seed: int = 0) -> DigitPairs:
    """Return a set like Gisette, built from MNIST's 4 and 9.

    The recipe, each draw from the stated seed: all 192 pixels of the middle top; products of random pairs of them up to
    2,500 features; 2,500 probes, each a feature whose rows are shuffled; columns shuffled; 6,000 training rows drawn
    from MNIST's training part.

    Parameters
    ----------
    folder : path, optional
        Folder with MNIST's four files, packed as their authors distribute them (train-images-idx3-ubyte.gz ...), or
        with mnist49.npz, their 4 and 9 alone. None: the user's cache, then a mirror.
    seed : int

    Raises
    ------
    DataError
        The files are not available, or are another version.
    """
    images, labels, test = _digits(folder)
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


def _digits(folder: PathLike | None) -> tuple[Array, npt.NDArray[np.int_], npt.NDArray[np.bool_]]:
    """Return MNIST's 4 and 9: images (rows, 784), labels, and whether each belongs to the test part."""
    packed = cache_folder() if folder is None else Path(folder)
    if (packed / PACKED.name).exists():
        with np.load(io.BytesIO(fetch((PACKED,), packed)[PACKED.name]), allow_pickle=False) as held:
            return held["x"], held["y"].astype(int), held["test"]
    files = fetch(FILES, folder)
    images, labels = (np.concatenate([_idx(files[file.name]) for file in FILES[kind::2]]) for kind in (0, 1))
    test = np.arange(labels.size) >= _idx(files[FILES[1].name]).size
    order = np.lexsort((labels, ~test))
    chosen = order[np.isin(labels[order], (4, 9))]
    return images[chosen].reshape(-1, SIDE**2), labels[chosen].astype(int), test[chosen]


def _idx(data: bytes) -> npt.NDArray[np.uint8]:
    """Return the array of an IDX file: its fourth byte counts the 4-byte sizes that follow, then come the bytes."""
    unpacked = gzip.decompress(data)
    sizes = np.frombuffer(unpacked, dtype=">i4", count=unpacked[3], offset=4)
    return np.frombuffer(unpacked, dtype=np.uint8, offset=4 + 4 * unpacked[3]).reshape(sizes)
