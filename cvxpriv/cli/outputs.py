"""A command's files: made ready first, then written whole, one rename each."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

from cvxpriv.errors import DataError, ModelError
from cvxpriv.reports.files import PathLike, write_bytes, write_text

__all__ = ["Outputs", "require_report_packages", "require_writable"]

Content: TypeAlias = "str | bytes | Callable[[Path], Path]"


@dataclass
class Outputs:
    """The files that a command will write into one folder.

    Attributes
    ----------
    folder : Path
    contents : dict of str to content
        By file name: a text, bytes, or what writes itself whole to a path.
    """

    folder: Path
    contents: dict[str, Content] = field(default_factory=dict)

    def write(self) -> list[Path]:
        """Write all files, and return their paths.

        Raises
        ------
        DataError
            One cannot be written.
        """
        return [_write(self.folder / name, content) for name, content in self.contents.items()]


def _write(path: Path, content: Content) -> Path:
    if isinstance(content, str):
        return write_text(path, content)
    return write_bytes(path, content) if isinstance(content, bytes) else content(path)


def require_writable(folder: PathLike, option: str = "--out") -> Path:
    """Check, before any work, that files can be made in a folder which need not exist yet.

    Raises
    ------
    DataError
        The folder, or the nearest one above it that exists, is no folder or takes no file.
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
    """Check, before any work, that what pages and pictures need is installed.

    Raises
    ------
    ModelError
        Naming what is missing.
    """
    missing = [package for package in ("jinja2", "matplotlib") if find_spec(package) is None]
    if missing:
        raise ModelError(
            f'the page and the pictures need {" and ".join(missing)}: pip install "cvxpriv[report]", or {remedy}'
        )
