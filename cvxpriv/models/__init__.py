"""The registry of models: those that the entry-point group `cvxpriv.models` names.

`from cvxpriv.models import PrivacyFunnel` imports the package that brings that model, and only then. Another
distribution brings its own models by declaring entry points in the same group; the command line finds them there too.
"""

from importlib.metadata import EntryPoint
from typing import Any

from cvxpriv.errors import suggest
from cvxpriv.numerics.packages import extensions

GROUP = "cvxpriv.models"


def available() -> dict[str, EntryPoint]:
    """Return the entry points by model name, without importing any of them.

    >>> "PrivacyFunnel" in available()
    True
    """
    return extensions(GROUP)


def __getattr__(name: str) -> Any:
    points = available()
    if name in points:
        return points[name].load()
    raise AttributeError(f"no model is called {name!r}: {suggest(name, points)}")


def __dir__() -> list[str]:
    return ["available", *available()]
