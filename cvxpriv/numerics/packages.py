"""Installed packages: those imported when first used, the objects that some add, and the versions behind a result.

`pd` and `mpmath` are imported at their first attribute: pandas takes as long to import as a model does. A module that
only names pandas' types, or makes tables when it is asked for them, takes `pd` from here.

Entry points name the objects, and use imports them. A package declares, in its `pyproject.toml`,

    [project.entry-points."cvxpriv.penalties"]
    log-sum = "its_module:LogSum"

The groups are `cvxpriv.models`, `cvxpriv.divergences`, `cvxpriv.constraints`, `cvxpriv.penalties`, `cvxpriv.solvers`
and `cvxpriv.commands`.
"""

import os
import platform
import sys
from collections.abc import Iterable
from functools import cache
from importlib import import_module, metadata
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

from cvxpriv.errors import ModelError

if TYPE_CHECKING:
    import mpmath
    import pandas as pd
else:

    class _Later:
        """A module that is imported at its first attribute."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> object:
            if name.startswith("__"):  # copies and pickles ask for their methods
                raise AttributeError(name)
            found = getattr(import_module(self._name), name)
            setattr(self, name, found)
            return found

    pd, mpmath = _Later("pandas"), _Later("mpmath")

__all__ = ["extension", "extensions", "machine", "mpmath", "pd", "versions"]

PACKAGES = ("numpy", "scipy", "cvxpy", "clarabel", "ecos", "scs", "osqp", "highspy")
"""The packages on which numbers depend."""


def extensions(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name, in the order of their names, without importing any.

    >>> "PrivacyFunnel" in extensions("cvxpriv.models")
    True
    """
    return dict(_found(group, tuple((folder, _changed(folder)) for folder in sys.path)))


@cache
def _found(group: str, folders: tuple[tuple[str, int], ...]) -> dict[str, EntryPoint]:
    """Entry points are read again once a folder of packages changed: reading those of all packages takes 10 ms."""
    return {point.name: point for point in sorted(entry_points(group=group), key=lambda point: point.name)}


def _changed(folder: str) -> int:
    try:
        return os.stat(folder or ".").st_mtime_ns
    except OSError:
        return 0


def extension(group: str, name: str) -> Any:
    """Return the object that a package registered under a name."""
    point = extensions(group)[name]
    try:
        return point.load()
    except Exception as error:
        package = point.dist.name if point.dist is not None else point.value
        raise ModelError(
            f"{name!r} of {package} cannot be loaded ({type(error).__name__}: {error}): reinstall {package}"
        ) from error


def versions(packages: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Return the versions of cvxpriv, Python and some packages; ``"not installed"`` where one is missing.

    >>> list(versions(["numpy"]))
    ['cvxpriv', 'python', 'numpy']
    """
    return {
        "cvxpriv": _version("cvxpriv"),
        "python": platform.python_version(),
        **{name: _version(name) for name in packages},
    }


def machine() -> dict[str, str]:
    """Return the kind of machine: system, processor architecture, number of cores.

    >>> sorted(machine())
    ['cores', 'processor', 'system']
    """
    return {
        "system": platform.system() or "unknown",
        "processor": platform.machine() or "unknown",
        "cores": str(os.cpu_count() or "unknown"),
    }


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
