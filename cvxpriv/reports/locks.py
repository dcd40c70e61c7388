"""Locks between processes: a file beside the one to be written, which the system frees when a process ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold the lock of a file, which is that of ``NAME.lock`` beside it.

    `path`: The file to be written. It need not exist; its folder must. `wait`: Whether to wait for another holder.
    Raises BlockingIOError: Another holder has it, and `wait` is False. OSError: The lock file cannot be opened.
    """
    handle = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _take(handle, wait)
        yield
    finally:
        os.close(handle)


def _take(handle: int, wait: bool) -> None:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if wait:
            raise
        raise BlockingIOError(*error.args) from error


def sync_folder(folder: Path) -> None:
    """See a new or renamed file of a folder to the disk: its name is there when the folder is."""
    if sys.platform != "win32":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
