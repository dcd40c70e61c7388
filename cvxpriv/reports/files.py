"""Files written whole: a reader sees the old file or the new one, never half of one.

The text goes to a temporary file in the same folder, to the disk, and then to its name in one rename. Any failure
before the rename leaves the old file as it was and no temporary one behind.
"""

import contextlib
import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, TypeAlias

from cvxpriv.errors import DataError, shown

if sys.platform == "win32":  # here, as a lock is also given up while Python ends, when nothing can be imported
    import msvcrt
else:
    import fcntl

PathLike: TypeAlias = str | os.PathLike[str]
MOST_BYTES = 2**28
"""Largest number of bytes of a document that is read (256 MiB)."""
MANIFEST, SET = "manifest.json", "cvxpriv set"
"""Name and format of the file that holds the SHA-256 of every file of a set."""
_LITTER = re.compile(r"\.(.+)\.(\d+)-[0-9a-f]{16}\.(?:tmp|old)")


def write_bytes(path: PathLike, data: bytes, private: bool = False) -> Path:
    """Write a file whole.

    Missing parent folders are made. A file that stands there is replaced and keeps its permissions; a symbolic link
    stays a link, and what it points to is replaced.

    `private`: Only the owner may read it: mode 0600 from its first byte.
    Returns: The path as given.
    Raises DataError: The path is a folder or a device, or cannot be written.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise DataError(f"path={shown(path)} is no path: pass a text or a pathlib.Path")
    try:
        _replace(Path(os.path.realpath(path)), data, str(path), private)
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        if isinstance(error, DataError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise DataError(
            f"path={str(path)!r} cannot be written ({reason}): choose a folder that exists or can be made, that"
            " may be written, and that has room"
        ) from error
    return Path(path)


def write_text(path: PathLike, text: str, private: bool = False) -> Path:
    """Write a text file whole, in UTF-8, with the line ends as they are.

    `private`: As for `write_bytes`.
    Returns: The path as given.
    Raises DataError: As for `write_bytes`, or a text that UTF-8 cannot hold (half a surrogate pair).

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_text(f"{folder}/out/note.txt", "done").read_text()
    'done'
    """
    return write_bytes(path, encoded(text, path), private)


def encoded(text: str, path: PathLike) -> bytes:
    """Return the bytes of a text for a file; raises DataError for one that UTF-8 cannot hold."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError(f"the text for path={str(path)!r} is not valid Unicode ({error}): correct the text") from error


def plain_file(path: PathLike) -> BufferedReader:
    """Open a plain file for reading. A pipe could keep its reader waiting, and a device need not end.

    Raises OSError: The file cannot be opened, or is a folder, a device or a pipe: these are not waited for.
    """
    return open(path, "rb", opener=_plain)


def _plain(path: str, flags: int) -> int:
    # Asking what stands there before it is opened would leave time to put a pipe in its place.
    handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is a folder, a device or a pipe, not a plain file")
    return handle


def read_text(path: PathLike) -> str:
    """Read a UTF-8 text file.

    Raises DataError: The file cannot be read, is larger than `MOST_BYTES`, is not UTF-8 text, or is not the file that
    the manifest beside it names.
    """
    try:
        data = _as_listed(Path(path))
        text = data.decode("utf-8") if len(data) <= MOST_BYTES else ""
    except (TypeError, ValueError) as error:  # ValueError: a null character in the name
        if isinstance(error, UnicodeDecodeError):
            raise DataError(
                f"path={str(path)!r} is no UTF-8 text ({error}): check that it is the right file"
            ) from error
        raise DataError(f"path={shown(path)} is no path ({error}): pass a text or a pathlib.Path") from error
    except OSError as error:
        raise DataError(f"path={str(path)!r} cannot be read ({error.strerror or error}): check the path") from error
    if len(data) > MOST_BYTES:
        raise DataError(f"path={str(path)!r} holds more than {MOST_BYTES / 2**20:g} MiB: check that it is a document")
    return text


def _as_listed(path: Path) -> bytes:
    """Read a file, and again where a set that is written meanwhile has changed it; refuse one that is not the set's."""
    before = None
    while True:
        with plain_file(path) as file:
            data = file.read(MOST_BYTES + 1)
        known = None if path.name == MANIFEST else listed(path.parent).get(path.name)
        if known is None or len(data) > MOST_BYTES or hashlib.sha256(data).hexdigest() == known:
            return data
        if data == before:
            raise changed(path)
        before = data


def changed(path: Path) -> DataError:
    """Return the error for a file that is missing from its set or is not the one that was written."""
    how = "is not the file that" if os.path.lexists(path) else "is missing: it is a file that"
    return DataError(
        f"path={str(path)!r} {how} {MANIFEST} beside it names: write the set again or, where the change is meant, take "
        f"{MANIFEST} away"
    )


def listed(folder: Path) -> dict[str, str]:
    """Return the files of the set in a folder by name, with their hashes; empty without a manifest of ours."""
    try:
        document = json.loads(read_text(folder / MANIFEST))
        hashes = document["sha256"] if document["format"] == SET else {}
        return {str(name): str(known) for name, known in hashes.items() if os.path.basename(name) == name}
    except (DataError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def read_document(path: PathLike, expected: str) -> dict[str, Any]:
    """Read the object of a JSON file, or of a TOML file by its ending.

    `expected`: The right file, for messages: "a file that a run's save wrote".
    Raises DataError: The file cannot be read, is no JSON or TOML, or holds no object.
    """
    return parsed(read_text(path), path, expected, toml=Path(path).suffix == ".toml")


def parsed(text: str, path: PathLike, expected: str, *, toml: bool) -> dict[str, Any]:
    """Return the object that the text of a file holds; see `read_document`."""
    try:
        document = tomllib.loads(text) if toml else json.loads(text, object_pairs_hook=each_once)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is no {'TOML' if toml else 'JSON'}: {error}: pass {expected}") from error
    if not isinstance(document, dict):
        raise DataError(f"{path} holds a {type(document).__name__} and no object: pass {expected}")
    return document


def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of JSON's pairs; raises DataError where a key stands twice, of which readers take either."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"key {twice!r} stands twice: keep one of the two")
    return found


def hidden(name: str, ending: str) -> str:
    """Return the name, unused and with the process in it, under which a file or folder is made or moved away."""
    return f".{name[:100]}.{os.getpid()}-{secrets.token_hex(8)}.{ending}"


def litter(folder: Path, name: str | None = None) -> list[os.DirEntry[str]]:
    """Return what killed processes left behind in a folder: of all files or, with a name, of one."""
    entries: list[os.DirEntry[str]] = []
    with contextlib.suppress(OSError):  # no folder, or one that may not be listed
        entries = [] if folder.is_symlink() else list(os.scandir(folder))
    found = [(entry, _LITTER.fullmatch(entry.name)) for entry in entries]
    mine = [(entry, left) for entry, left in found if left and (name is None or left[1] == name[:100])]
    return [entry for entry, left in mine if not _alive(int(left[2]))]


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it belongs to somebody else, or the system cannot say
        return True
    return True


def _replace(target: Path, data: bytes, path: str, private: bool) -> None:
    # A rename would put a plain file in the place of a device such as /dev/null.
    if target.exists() and not target.is_file():
        raise DataError(f"path={path!r} is a folder or a device, expected the name of a file: add a file name")
    target.parent.mkdir(parents=True, exist_ok=True)
    for left in litter(target.parent, target.name):
        with contextlib.suppress(OSError):
            os.unlink(left.path)
    temporary = target.parent / hidden(target.name, "tmp")
    try:
        _write_new(temporary, data, 0o600 if private else 0o666)
        if target.exists() and not private:
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:  # also a keyboard interrupt leaves nothing half-written
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def _write_new(path: Path, data: bytes, mode: int) -> None:
    """Make a file that did not exist, with a mode limited by the user's mask, and flush it to the disk."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold the lock of a file, which is that of ``NAME.lock`` beside it.

    `path`: The file to be written. It need not exist; its folder must. `wait`: Whether to wait for another holder.
    Raises BlockingIOError: Another holder has it, and `wait` is False. OSError: The lock file cannot be opened.
    """
    handle = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        take(handle, wait)
        yield
    finally:
        free(handle)


def take(handle: int, wait: bool) -> None:
    """Take the lock of an open file or, but for Windows, folder; see `locked`."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(handle, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if wait:
            raise
        raise BlockingIOError(*error.args) from error


def free(handle: int) -> None:
    """Give the lock up, which a process that was forked meanwhile holds too, and close the file."""
    try:
        if sys.platform != "win32":
            fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """See a new or renamed file of a folder to the disk: its name is there when the folder is."""
    if sys.platform != "win32":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
