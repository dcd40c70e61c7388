"""The needs of a command's files, checked before any work."""

from __future__ import annotations

import contextlib
import os
import secrets
from importlib.util import find_spec
from pathlib import Path

from cvxpriv.errors import DataError, ModelError
from cvxpriv.reports.files import PathLike


def require_writable(folder: PathLike, option: str = "--out") -> Path:
    """Check, before any work, that files can be made in a folder, which need not exist yet.

    Raises DataError: The folder, or the nearest one above it that exists, is no folder or takes no file.
    """
    path = Path(folder)
    nearest = next(part for part in (path.absolute(), *path.absolute().parents) if os.path.lexists(part))
    if not nearest.is_dir():
        raise DataError(f"{option}={str(folder)!r} is no folder ({nearest.name!r} is a file): choose another name")
    probe = nearest / f".cvxpriv.{secrets.token_hex(8)}.tmp"
    try:
        # Permissions do not tell all: a mount may be read-only, and root may do anything.
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    except OSError as error:
        raise DataError(
            f"{option}={str(folder)!r} cannot be written ({error.strerror or error}): choose another folder"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)
    return path


def require_report_packages(remedy: str) -> None:
    """Check, before any work, that the packages for pages and pictures are installed."""
    missing = [package for package in ("jinja2", "matplotlib") if find_spec(package) is None]
    if missing:
        raise ModelError(
            f'the page and the pictures need {" and ".join(missing)}: pip install "cvxpriv[report]", or {remedy}'
        )
