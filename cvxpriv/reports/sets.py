"""Sets of files that belong together: a reader sees the old set or the new one, never a mixture.

The set is made in a hidden folder beside the one asked for, with a manifest of hashes, and then the two folders change
places: in one step where the system can exchange them (Linux), in two renames elsewhere. A folder that cannot change
its place (the current one, a mount, a link, or one that holds folders of somebody else's) gets its files one by one;
the manifest is taken away first and comes back last, so that a mixture never has one.
"""

import contextlib
import ctypes
import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from cvxpriv.errors import DataError
from cvxpriv.reports.files import (
    MANIFEST,
    SET,
    PathLike,
    changed,
    free,
    hidden,
    listed,
    litter,
    plain_file,
    take,
    write_bytes,
    write_text,
)

Content: TypeAlias = "str | bytes | Callable[[Path], Path]"

_EXCHANGE, _HERE = 2, -100  # RENAME_EXCHANGE, AT_FDCWD


def write_set(folder: PathLike, contents: Mapping[str, Content]) -> list[Path]:
    """Write a set of files into a folder in the place of the set that stands there.

    Files of the old set that the new one lacks go with it; other files of the folder stay.

    `folder`: Path of the folder, which need not exist yet.
    `contents`: Contents by file name; a function writes itself whole to the path it gets.
    Returns: Paths of the files in the folder, in the order given, without the manifest.
    Raises DataError: A file cannot be written; the old set then stays as it was.
    """
    target = Path(folder)
    try:
        _tidy(target)
        if _may_move(target):
            _exchange(target, contents)
        else:
            _one_by_one(target, contents)
    except OSError as error:
        raise DataError(
            f"folder={str(folder)!r} cannot be written ({error.strerror or error}): choose one that may be written and "
            "has room"
        ) from error
    return [target / name for name in contents]


def require_whole(folder: PathLike) -> tuple[str, ...]:
    """Compare a folder with its manifest, and return the names of the set's files.

    Raises DataError: There is no manifest, or a file of the set is missing, unreadable or not the one that was written.
    """
    hashes = listed(Path(folder))
    if not hashes:
        raise DataError(
            f"{str(Path(folder) / MANIFEST)!r} is missing or no manifest: give a folder that a command wrote"
        )
    for name, known in hashes.items():
        found = ""
        with contextlib.suppress(OSError):
            found = _hash(Path(folder) / name)
        if found != known:
            raise changed(Path(folder) / name)
    return tuple(hashes)


def _exchange(target: Path, contents: Mapping[str, Content]) -> None:
    stage = target.parent / hidden(target.name, "tmp")
    stage.mkdir(parents=True, mode=0o700)
    try:
        if target.exists():
            _keep_others(target, stage)
        _fill(stage, contents)
        os.umask(mask := os.umask(0o077))
        stage.chmod(target.stat().st_mode & 0o7777 if target.exists() else 0o777 & ~mask)
        _swap(stage, target)
    finally:
        shutil.rmtree(stage, ignore_errors=True)  # the old set by now, or what was not finished


def _one_by_one(target: Path, contents: Mapping[str, Content]) -> None:
    target.mkdir(parents=True, exist_ok=True)
    stage = target / hidden("set", "tmp")
    stage.mkdir(mode=0o700)
    with contextlib.ExitStack() as ending:
        ending.callback(shutil.rmtree, stage, ignore_errors=True)
        _fill(stage, contents)
        with contextlib.suppress(OSError):  # a system without locks of folders
            handle = os.open(target, os.O_RDONLY)
            ending.callback(free, handle)
            take(handle, wait=True)
        before = set(listed(target))
        (target / MANIFEST).unlink(missing_ok=True)
        for name in before - set(contents):
            (target / name).unlink(missing_ok=True)
        for name in (*contents, MANIFEST):
            os.replace(stage / name, target / name)


def _fill(stage: Path, contents: Mapping[str, Content]) -> None:
    for name, content in contents.items():
        path = stage / name
        if isinstance(content, str):
            write_text(path, content)
        elif isinstance(content, bytes):
            write_bytes(path, content)
        else:
            content(path)
    hashes = {name: _hash(stage / name) for name in contents}
    write_text(stage / MANIFEST, manifest(hashes))


def manifest(hashes: Mapping[str, str]) -> str:
    """Return the text of a manifest, from the SHA-256 of each file by name."""
    return json.dumps({"format": SET, "version": 1, "sha256": hashes}, indent=1) + "\n"


def _keep_others(target: Path, stage: Path) -> None:
    """Bring the folder's other files along, as the same files where the system has hard links."""
    ours, entries = None, []
    while ours != (ours := listed(target)):  # another writer's set may come between its list and its files
        entries = list(os.scandir(target))
    for entry in entries:
        if entry.name not in {*ours, MANIFEST}:
            try:
                os.link(entry.path, stage / entry.name, follow_symlinks=False)
            except OSError:
                with contextlib.suppress(FileNotFoundError):  # another writer was first
                    shutil.copy2(entry.path, stage / entry.name, follow_symlinks=False)


def _may_move(target: Path) -> bool:
    """Return whether a folder can be exchanged for another without anybody losing their place in it."""
    if not os.path.lexists(target):
        return bool(target.name) and target.name != ".."
    if target.is_symlink() or os.path.ismount(target) or not os.access(target.absolute().parent, os.W_OK):
        return False
    here, real = Path.cwd(), target.resolve()
    return real not in (here, *here.parents) and not any(
        entry.is_dir(follow_symlinks=False) for entry in os.scandir(real)
    )


def _swap(stage: Path, target: Path) -> None:
    if not target.exists() and _moved(stage, target):
        return
    if not _exchanged(stage, target):
        old = target.parent / hidden(target.name, "old")
        os.rename(target, old)
        os.rename(stage, target)
        shutil.rmtree(old, ignore_errors=True)


def _moved(stage: Path, target: Path) -> bool:
    """Rename a folder; return False where another writer was first."""
    try:
        os.rename(stage, target)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    return True


def _exchanged(stage: Path, target: Path) -> bool:
    """Exchange two folders in one step; return False where the system cannot."""
    try:
        call: Any = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    return bool(call(_HERE, os.fsencode(stage), _HERE, os.fsencode(target), _EXCHANGE) == 0)


def _tidy(target: Path) -> None:
    """Remove files that killed processes left behind; a set that was moved away comes back if nothing is there."""
    for folder, name in ((target.absolute().parent, target.name), (target, None)):
        for entry in litter(folder, name):
            if entry.name.endswith(".old") and not target.exists():
                os.rename(entry.path, target)
            elif entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)


def _hash(path: Path) -> str:
    with plain_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
