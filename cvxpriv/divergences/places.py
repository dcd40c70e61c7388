"""Divergences by their names on a command line: by name, by formula, or by the place of an object."""

import os
from collections.abc import Callable

from cvxpriv.certify.builders import load_module
from cvxpriv.divergences.builtin import FAMILIES
from cvxpriv.divergences.definition import FDivergence
from cvxpriv.errors import DataError, ModelError


def divergence_or_text(text: str) -> FDivergence | str:
    """Return the divergence at ``file.py:name`` or ``module:name``; a name or a formula stays a text."""
    source, colon, name = text.rpartition(":")
    if not colon or source.lower() in FAMILIES:
        return text
    if not (source and name.isidentifier()):
        raise DataError(f"divergence={text!r} names no place: write my_divergence.py:name, or package.module:name")
    place = os.path.abspath(source) if source.endswith(".py") else source
    found = getattr(load_module(place), name, None)
    if found is not None and not isinstance(found, FDivergence) and callable(found):
        found = _called(found, text)
    if not isinstance(found, FDivergence):
        what = "nothing of that name" if found is None else f"a {type(found).__name__}"
        raise ModelError(f"divergence={text!r} is {what}: it must be a cpv.FDivergence, or a function that returns one")
    return found


def _called(function: Callable[[], object], text: str) -> object:
    try:
        return function()
    except Exception as error:  # the user's own code may raise anything
        raise DataError(
            f"divergence={text!r} raised {type(error).__name__}: {error}; it must take no argument and return an "
            "FDivergence"
        ) from error
