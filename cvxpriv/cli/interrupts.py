"""The watch over a solve: a bar shows how far it is, and Ctrl-C ends it early with its best so far."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from cvxpriv.cli.terminal import Terminal
from cvxpriv.solvers.silence import solvers_silent

if TYPE_CHECKING:
    from cvxpriv.certify.check import CrossCheck


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


@contextmanager
def watching(
    terminal: Terminal, doing: str, options: Mapping[str, Any], interrupt: Interrupt
) -> Iterator[dict[str, Any]]:
    """Yield the options by which a solve with some options is watched, while solvers are silent.

    In one process these are a callback, which moves a bar and ends the solve after an interrupt; else the solve's bar.
    """
    with solvers_silent():
        if options.get("n_jobs", 1) != 1:
            yield {"progress": terminal.progress}
            return
        with terminal.iterations(doing, options.get("max_iter"), "kkt") as moved:

            def watch(loop: str, iteration: int, measured: Mapping[str, Any]) -> bool:
                moved(loop, iteration, measured)
                return interrupt.pressed

            yield {"callback": watch}


def certified(terminal: Terminal, run: Any, solvers: tuple[str, ...]) -> CrossCheck:
    """Return the cross-check of a run, which is shown while it lasts."""
    with terminal.phase(f"cross-checking by {', '.join(solvers)}"), solvers_silent():
        check: CrossCheck = run.certify(solvers)
        return check
