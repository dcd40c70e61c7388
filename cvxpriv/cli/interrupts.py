"""Ctrl-C: a solve ends early with its best so far, and the interrupt is remembered here."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn


@dataclass
class Interrupt:
    """Record of whether the keyboard interrupted."""

    pressed: bool = False


@contextmanager
def watched() -> Iterator[Interrupt]:
    """Note each keyboard interrupt while the body runs, and raise it as usual.

    >>> with watched() as interrupt:
    ...     interrupt.pressed
    False
    """
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():  # signals only reach the main thread
        yield interrupt
        return

    def note(number: int, frame: FrameType | None) -> NoReturn:
        interrupt.pressed = True
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
