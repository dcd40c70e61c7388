"""The last state of a run across parties, kept where a party ends it."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from cvxpriv.errors import PartyError
from cvxpriv.numerics.arrays import Values
from cvxpriv.reports.files import PathLike, write_bytes

__all__ = ["saved_if_lost"]


@contextmanager
def saved_if_lost(save: PathLike | None, last: Callable[[], tuple[int, Values]]) -> Iterator[None]:
    """Write the last state to a file where a party ends the run; the error names the file.

    Parameters
    ----------
    save : path, optional
        None writes nothing.
    last : callable
        Returns how many passes are done, and the state after them; an empty one is not written.
    """
    try:
        yield
    except PartyError as error:
        done, state = last()
        if save is None or not state:
            raise
        file = io.BytesIO()
        np.savez(file, **{**state, "passes": np.array([float(done)])})  # type: ignore[arg-type]
        path = write_bytes(save, file.getvalue(), private=True)
        raise type(error)(f"{error}; the state after {done} passes is in {path}") from error
