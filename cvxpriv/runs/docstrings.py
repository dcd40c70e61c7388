"""Docstrings in numpydoc's form: a section of parameters, completed by parameters that are described elsewhere."""

import inspect
import textwrap
from collections.abc import Mapping

#: Longest line of an entry, including its four leading blanks.
WIDTH = 100
HEADING = ("Parameters", "----------")


def with_parameters(doc: str, entries: Mapping[str, tuple[str, str]]) -> str:
    """Return a docstring whose section of parameters also has the given entries.

    >>> print(with_parameters("Solve.", {"tol": ("float", "Residual at which it stops.")}))
    Solve.
    <BLANKLINE>
    Parameters
    ----------
    tol : float
        Residual at which it stops.
    """
    lines = inspect.cleandoc(doc).splitlines()
    starts = [row for row in range(1, len(lines)) if len(lines[row]) > 2 and set(lines[row]) == {"-"}]
    own = next((row for row in starts if lines[row - 1] == HEADING[0]), None)
    following = [row - 1 for row in starts if own is None or row > own]
    end = following[0] if following else len(lines)
    described = set() if own is None else _names(lines[own + 1 : end])
    added = [line for name, entry in entries.items() if name not in described for line in _entry(name, *entry)]
    if not added:
        return "\n".join(lines)
    before, after = "\n".join(lines[:end]).rstrip("\n").splitlines(), lines[end:]
    head = [] if own is not None else [*([""] if before else []), *HEADING]
    return "\n".join([*before, *head, *added, *(["", *after] if after else [])])


def _names(lines: list[str]) -> set[str]:
    """Return the parameters that a section describes: `rho, tol : float` are two."""
    entries = [line.partition(" : ")[0] for line in lines if line and not line.startswith(" ")]
    return {name.strip().lstrip("*") for entry in entries for name in entry.split(",")}


def _entry(name: str, kind: str, text: str) -> list[str]:
    return [f"{name} : {kind}", *textwrap.wrap(text, WIDTH, initial_indent="    ", subsequent_indent="    ")]
