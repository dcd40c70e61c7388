"""One tree of errors.

Every message names the argument, the value that came, what was expected, and the remedy.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class CvxprivError(Exception):
    """Whatever cvxpriv raises on purpose."""


class DataError(CvxprivError, ValueError):
    """A table, a file or an array is not what it has to be."""


class ModelError(CvxprivError, ValueError):
    """A model, a block or an option is not what it has to be."""


class SolverFailure(CvxprivError, RuntimeError):
    """No solver of the chain returned a usable answer.

    Attributes
    ----------
    statuses : tuple of str
        What each solver said, in the order of the chain.
    """

    statuses: tuple[str, ...] = ()

    @property
    def infeasible(self) -> bool:
        """Whether a solver found the problem infeasible, and the others nothing else."""
        said = {status.removesuffix("_inaccurate") for status in self.statuses} - {"solver_error"}
        return said == {"infeasible"}


class Disagreement(CvxprivError, RuntimeError):
    """Two routes to the same answer differ by more than their tolerance allows."""


class NotConverged(CvxprivError, RuntimeError):
    """A loop ended before its stopping rule held, and the caller asked for that to be an error."""


class PrivacyError(CvxprivError, RuntimeError):
    """Something would be released, or claimed, that the privacy analysis does not cover."""


class NoGuaranteeWarning(UserWarning):
    """An algorithm runs outside of what its convergence proof covers."""


def suggest(name: str, known: Iterable[str]) -> str:
    """Name the nearest known spelling and the whole list, for the end of an error message.

    >>> suggest("incme", ["income", "age"])
    "did you mean 'income'? Known: age, income"
    """
    names = sorted(map(str, known))
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}Known: {', '.join(names) or '(none)'}"
