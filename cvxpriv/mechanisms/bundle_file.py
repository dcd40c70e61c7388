"""Reading a bundle: a folder or a zip file, checked against its manifest before anything of it is used."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from cvxpriv.errors import DataError, shown
from cvxpriv.mechanisms.bundle import DOCUMENT, FORMAT, ROWS, VERSION
from cvxpriv.mechanisms.mechanism import stochastic_matrix
from cvxpriv.numerics.arrays import Array
from cvxpriv.reports.files import PathLike
from cvxpriv.reports.sets import MANIFEST
from cvxpriv.tables.alphabets import Alphabet

__all__ = ["Bundle", "read_bundle"]

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
        self.counts = self._counted(str(document["column"]), rows)

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

    Raises
    ------
    DataError
        No bundle, a file that is missing, damaged or changed, or contents that contradict each other.
    """
    try:
        files = _zipped(Path(path)) if Path(path).is_file() else _folder(Path(path))
        listed = json.loads(files[MANIFEST])["sha256"]
        for name in (DOCUMENT, ROWS):
            if hashlib.sha256(files[name]).hexdigest() != listed[name]:
                _wrong(path, f"{name} is not the file that the manifest names")
        return Bundle(json.loads(files[DOCUMENT]), files[ROWS])
    except DataError as error:
        if str(error).startswith("bundle="):
            raise
        _wrong(path, str(error))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, pd.errors.ParserError) as error:
        _wrong(path, f"{type(error).__name__}: {error}")
    except (OSError, EOFError, RuntimeError, NotImplementedError, zlib.error, zipfile.BadZipFile) as error:
        _wrong(path, str(getattr(error, "strerror", None) or error))


def _wrong(path: PathLike, reason: str) -> NoReturn:
    raise DataError(
        f"bundle={str(path)!r} cannot be used ({reason}): give a folder or zip file that `cvxpriv release` wrote"
    )


def _folder(path: Path) -> dict[str, bytes]:
    return {name: _bounded(path / name, (path / name).stat().st_size) for name in (MANIFEST, DOCUMENT, ROWS)}


def _bounded(path: Path, size: int) -> bytes:
    if size > MOST_BYTES:
        raise DataError(f"{path.name} is larger than {MOST_BYTES / 2**30:g} GiB")
    return path.read_bytes()


def _zipped(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: _member(archive, name) for name in (MANIFEST, DOCUMENT, ROWS)}


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    with archive.open(name) as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise DataError(f"{name} is larger than {MOST_BYTES / 2**30:g} GiB")
    return data
