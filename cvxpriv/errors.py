"""The tree of errors that cvxpriv raises.

Every message names the argument, the value that came, what was expected, and the remedy.
"""

import difflib
import json
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

LONGEST_QUOTE = 200
"""Largest number of characters of an input that a message quotes."""
LONGEST_MESSAGE = 2000
"""Largest number of characters of a message."""
MOST_NAMES = 40
"""Largest number of known names that a message lists."""
_QUOTES = re.compile(rf"[^\s]{{{LONGEST_QUOTE + 1},}}|'[^']{{{LONGEST_QUOTE + 1},}}'|\"[^\"]{{{LONGEST_QUOTE + 1},}}\"")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class CvxprivError(Exception):
    """The base of every error that cvxpriv raises on purpose; `printable` makes its message safe to show."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(printable(arg) if isinstance(arg, str) else arg for arg in args))


class DataError(CvxprivError, ValueError):
    """A table, a file or an array is malformed or out of range."""


class ModelError(CvxprivError, ValueError):
    """A model, a block or an option is malformed or does not fit."""


class NoSolverTakes(ModelError):
    """None of the solvers that were asked accepts the problem's cones."""


class SolverFailure(CvxprivError, RuntimeError):
    """No solver of the chain returned a usable answer.

    Attributes
    ----------
    statuses : tuple of str
        The status of each solver, in the order of the chain.
    """

    statuses: tuple[str, ...] = ()

    @property
    def infeasible(self) -> bool:
        """True where a solver found the problem infeasible and no other solver found anything else."""
        said = {status.removesuffix("_inaccurate") for status in self.statuses} - {"solver_error"}
        return said == {"infeasible"}


class Disagreement(CvxprivError, RuntimeError):
    """Two routes to the same answer differ by more than their tolerance allows."""


class NotConverged(CvxprivError, RuntimeError):
    """A loop ended before its stopping rule held, and the caller asked for an error in that case."""


class PrivacyError(CvxprivError, RuntimeError):
    """The privacy analysis does not cover a release or a claim."""


class PartyError(CvxprivError, RuntimeError):
    """A party of a run across processes is lost, late, not admitted, or refuses what it is asked."""


class MessageRefused(PartyError):
    """A message between parties is malformed, too large, replayed, or not of the vocabulary."""


class NoGuaranteeWarning(UserWarning):
    """An algorithm runs outside the conditions of its convergence proof."""


def warn(text: str, category: type[Warning]) -> None:
    """Warn of something at the line that called cvxpriv or a model, however many calls lie between."""
    level, frame = 1, sys._getframe()
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] in ("cvxpriv", "cvxpriv_models"):
        level, frame = level + 1, frame.f_back
    warnings.warn(printable(text), category, stacklevel=level)


def inert(text: str) -> str:
    """Return a text with its control characters replaced by their codes; line ends and tabs stay.

    >>> inert("\\x1b[2Jdone")
    '\\\\x1b[2Jdone'
    """
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def json_text(value: object, **options: Any) -> str:
    """Return a value as JSON that people read: letters as they are, control characters as JSON's own escapes.

    >>> json_text("\x9b2J é")
    '"\\\\u009b2J é"'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, **options)
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def printable(text: str) -> str:
    """Return a text that is safe to print on a terminal, with long quotations shortened in the middle.

    Control characters (escape sequences of a terminal, changes of the writing direction) become their codes. A word or
    a quotation of more than `LONGEST_QUOTE` characters, and a text of more than `LONGEST_MESSAGE`, lose their middle.

    >>> printable("column '\\x1b[2J' is unknown"), len(printable("9" * 10**6)) <= LONGEST_QUOTE
    ("column '\\\\x1b[2J' is unknown", True)
    """
    shown = _QUOTES.sub(lambda found: _cut(found[0], LONGEST_QUOTE), inert(text))
    return shown if len(shown) <= LONGEST_MESSAGE else _cut(shown, LONGEST_MESSAGE)


def _cut(text: str, most: int) -> str:
    half = (most - 5) // 2
    return f"{text[:half]} ... {text[-half:]}"


def shown(value: object) -> str:
    """Return a value as a message quotes it: by its `repr`, and in words where it has none that can be had.

    >>> shown("x"), shown(10**5000), shown([10**5000])
    ("'x'", 'a whole number of about 5000 digits', 'an object of type list')
    """
    try:
        return repr(value)
    except Exception:  # of any class, which may raise anything; whole numbers of thousands of digits have none
        if isinstance(value, int):
            return f"a whole number of about {round(value.bit_length() * 0.30103)} digits"
        return f"an object of type {type(value).__name__}"


def suggest(name: str, known: Iterable[str]) -> str:
    """Name the nearest known spelling and the whole list, for the end of an error message.

    >>> suggest("incme", ["income", "age"])
    "did you mean 'income'? Known: age, income"
    """
    names = sorted(map(str, islice(known, 10 * MOST_NAMES**2)))
    near = difflib.get_close_matches(
        (name if isinstance(name, str) else shown(name))[:LONGEST_QUOTE], names, n=1, cutoff=0.5
    )
    hint = f"did you mean {near[0]!r}? " if near else ""
    listed = ", ".join(names[:MOST_NAMES]) + (", and more" if len(names) > MOST_NAMES else "")
    return f"{hint}Known: {listed or '(none)'}"


@contextmanager
def told_nothing(private: bool, remedy: str) -> Iterator[None]:
    """Say of a private row that is refused that one is, and neither which nor by how much.

    Raises DataError: What was raised within, where `private` in words that are the same for all rows.
    """
    try:
        yield
    except (DataError, TypeError):  # the latter of cells that cannot be told apart, such as lists
        if not private:
            raise
        raise DataError(
            "some row lacks a value, or holds one that its column cannot have. Which one is not said: the rows are "
            f"private. Do this: {remedy}"
        ) from None
