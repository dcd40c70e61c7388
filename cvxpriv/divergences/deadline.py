"""A deadline for work in pure Python that has no timeout of its own, such as sympy's."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["DeadlinePassed", "deadline"]


class DeadlinePassed(BaseException):
    """The time is over. Not an `Exception`: the code that is stopped might catch that."""


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise `DeadlinePassed` at the first call of a function after so many seconds, in this thread.

    It hooks into `sys.setprofile`, which works in every thread and on every system, and hands it back as it was. One
    long operation inside C is not interrupted.
    """
    end = time.monotonic() + seconds
    before = sys.getprofile()

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and time.monotonic() > end:
            sys.setprofile(before)
            raise DeadlinePassed

    sys.setprofile(watch)
    try:
        yield
    finally:
        sys.setprofile(before)
