"""Exit codes: the information that a script gets on how a command ended."""

from cvxpriv.errors import (
    CvxprivError,
    DataError,
    Disagreement,
    ModelError,
    NotConverged,
    PartyError,
    PrivacyError,
    SolverFailure,
)

DONE = 0
UNEXPECTED = 1
"""An unexpected error, which is a bug and no fault of the input."""
BAD_INPUT = 2
NOT_SOLVED = 3
"""A run did not converge, no solver answered, two answers disagree, or a party was lost."""
INTERRUPTED = 130
"""The keyboard interrupted; the code is 128 + SIGINT, as in shells."""

_CODES: dict[type[CvxprivError], int] = {
    DataError: BAD_INPUT,
    ModelError: BAD_INPUT,
    PrivacyError: BAD_INPUT,
    NotConverged: NOT_SOLVED,
    SolverFailure: NOT_SOLVED,
    Disagreement: NOT_SOLVED,
    PartyError: NOT_SOLVED,
}


def exit_code(error: CvxprivError) -> int:
    """Return the exit code that an error of cvxpriv stands for.

    >>> exit_code(DataError("no such file")), exit_code(NotConverged("500 iterations"))
    (2, 3)
    """
    return next((code for kind, code in _CODES.items() if isinstance(error, kind)), UNEXPECTED)
