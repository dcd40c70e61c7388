"""Modules that are imported when they are first used: pandas takes as long to import as a model does.

A module that only names pandas' types, or makes tables when it is asked for them, takes `pd` from here.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import mpmath
    import pandas as pd
else:
    from importlib import import_module

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

__all__ = ["mpmath", "pd"]
