"""Objects that installed packages add to the toolkit: entry points name them, and use imports them.

A package declares, in its `pyproject.toml`,

    [project.entry-points."cvxpriv.penalties"]
    log-sum = "its_module:LogSum"

The groups are `cvxpriv.models`, `cvxpriv.divergences`, `cvxpriv.constraints`, `cvxpriv.penalties`, `cvxpriv.solvers`
and `cvxpriv.commands`.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from cvxpriv.errors import ModelError


def extensions(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name, in the order of their names, without importing any.

    >>> "PrivacyFunnel" in extensions("cvxpriv.models")
    True
    """
    return {point.name: point for point in sorted(entry_points(group=group), key=lambda point: point.name)}


def extension(group: str, name: str) -> Any:
    """Return the object that a package registered under a name.

    Raises KeyError: No package registered it. ModelError: Its module cannot be imported, or lacks the object; the
    message names the module, and any error that it raises.
    """
    point = extensions(group)[name]
    try:
        return point.load()
    except Exception as error:
        package = point.dist.name if point.dist is not None else point.value
        raise ModelError(
            f"{name!r} of {package} cannot be loaded ({type(error).__name__}: {error}): reinstall {package}"
        ) from error
