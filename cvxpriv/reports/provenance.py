"""Versions of the software behind a result, without names of hosts, users or folders: results are for sharing."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from importlib import metadata

PACKAGES = ("numpy", "scipy", "cvxpy", "clarabel", "ecos", "scs", "osqp", "highspy")
"""The packages on which numbers depend."""


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
