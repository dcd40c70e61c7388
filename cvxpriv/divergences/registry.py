"""Divergences as users and the command line write them: by name, by formula, or by the place of an object."""

import os
import re
from collections.abc import Callable

from cvxpriv.certify.builders import load_module
from cvxpriv.divergences.builtin import BUILT_IN, FAMILIES
from cvxpriv.divergences.definition import FDivergence
from cvxpriv.errors import DataError, ModelError, shown, suggest
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import extension, extensions


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


#: The entry points by which another package brings divergences: an FDivergence, a function that returns one, or a line
#: of text in t.
GROUP = "cvxpriv.divergences"

#: Other common names of a divergence.
ALIASES = {
    "mi": "mutual-information",
    "kl": "mutual-information",
    "js": "jensen-shannon",
    "lc": "le-cam",
    "h2": "hellinger",
    "squared-hellinger": "hellinger",
    "pearson": "chi-square",
    "chi2": "chi-square",
    "neyman-chi-square": "neyman",
    "tv": "total-variation",
}

#: Signs of a formula, which no name has: a digit in front, other characters than names have, or t alone.
FORMULA = re.compile(r"^\s*\d|[^a-zA-Z0-9\s_:.-]|\bt\b")


def names() -> tuple[str, ...]:
    """Return every name that `divergence` knows; those that take a number end in `:<number>`.

    Those of other packages come last.
    """
    return (*BUILT_IN, *(f"{family}:<number>" for family in FAMILIES), *extensions(GROUP))


def _loaded(name: str) -> FDivergence:
    """Return the divergence at another package's entry point."""
    found = extension(GROUP, name)
    try:
        found = found() if callable(found) else found
    except Exception as error:  # another package's code may raise anything
        raise ModelError(f"divergence {name!r} raised {type(error).__name__}: {error}; mend its package") from error
    if isinstance(found, str):
        return FDivergence.parse(found, name)
    if not isinstance(found, FDivergence):
        raise ModelError(
            f"divergence {name!r} is a {type(found).__name__}: its package must name an FDivergence, a function that "
            "returns one, or a line of text in t"
        )
    return found


@door
def divergence(name: str | FDivergence) -> FDivergence:
    """Return the divergence of a name, an alias, or a line of text in t; an `FDivergence` passes through.

    Raises
    ------
    ModelError
        There is no such name (the nearest one is suggested), the number behind the colon is out of range, the text
        makes no divergence (`FDivergence.parse`), or another package's entry point returns something else.

    Examples
    --------
    >>> divergence("js")
    FDivergence('jensen-shannon', f(t) = t*log(2*t/(t+1)) + log(2/(t+1)))
    >>> divergence("alpha:0.5").name
    'alpha:0.5'
    >>> divergence("(t - 1)**4").limit_at_zero
    1.0
    """
    if isinstance(name, FDivergence):
        return name
    if not isinstance(name, str):
        lacking = [part for part in ("name", "f", "derivative", "terms", "gradients") if not hasattr(name, part)]
        raise ModelError(
            f"divergence={shown(name)} is no FDivergence, it lacks {', '.join(lacking) or 'the class'}: "
            "pass a name, or cpv.FDivergence(name, f=...)"
        )
    key = name.strip().lower().replace("_", "-").replace(" ", "-")
    key = ALIASES.get(key, key)
    if key in BUILT_IN:
        return BUILT_IN[key]
    family, colon, number = key.partition(":")
    if family in FAMILIES:
        try:
            value = float(number)
        except ValueError:
            given = f"{number!r} is not one" if colon else "none was given"
            raise ModelError(
                f"divergence={name!r} takes a number, and {given}: write, for example, {family}:2"
            ) from None
        return FAMILIES[family](value)
    if key in extensions(GROUP):
        return _loaded(key)
    if FORMULA.search(name):
        return FDivergence.parse(name)
    raise ModelError(f"divergence={name!r} is not known: {suggest(key, {*ALIASES, *names()})}")
