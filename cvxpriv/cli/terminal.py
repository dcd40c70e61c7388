"""The texts of a command and where they go: results to standard output, everything else to standard error.

==========  ==============================  ==================================
            standard output                 standard error
==========  ==============================  ==================================
plain       tables and sentences            warnings, errors, progress
--json      one JSON document               warnings, errors
--quiet     nothing                         errors
==========  ==============================  ==================================

A watch over a solve shows how far it is, and Ctrl-C ends the solve early with its best so far.
"""

from __future__ import annotations

import math
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import click

from cvxpriv.errors import inert, json_text, printable

if TYPE_CHECKING:
    from rich.console import Console
if TYPE_CHECKING:
    from cvxpriv.certify.check import CrossCheck


Callback = Callable[[str, int, Mapping[str, Any]], "bool | None"]


@dataclass
class Terminal:
    """The output of a command; the options ``--json``, ``--quiet`` and ``--debug`` set it.

    `json`: Write one JSON document to standard output and no other text.
    `quiet`: Write only errors.
    `debug`: Write errors with their traceback, and the warnings of other packages.
    `answered`: Whether the document was written.
    `begun`: Whether the line of `begin` stands on the terminal.
    `parameters`: Parameters of the command that runs: messages name them by their options.
    """

    json: bool = False
    quiet: bool = False
    debug: bool = False
    answered: bool = False
    begun: bool = False
    parameters: Sequence[click.Parameter] = ()

    def begin(self, text: str) -> None:
        """Show a line on a terminal until there is other output: packages that a command needs take seconds to load."""
        if sys.stderr is not None and sys.stderr.isatty() and not (self.json or self.quiet):
            self.begun = True
            click.echo(f"{text}\r", err=True, nl=False)

    def clear(self) -> None:
        """Take the line of `begin` off the terminal."""
        if self.begun:
            self.begun = False
            click.echo("\033[K", err=True, nl=False)

    @property
    def progress(self) -> bool:
        """Whether long work shows a bar."""
        self.clear()
        return not (self.json or self.quiet) and _console().is_terminal

    def say(self, text: str = "") -> None:
        """Write text for people to standard output."""
        self.clear()
        if not (self.json or self.quiet):
            click.echo(inert(text))

    def result(self, document: Mapping[str, Any]) -> None:
        """Write the machine-readable result, if it was asked for; only the first one is written."""
        if self.json and not self.quiet and not self.answered:
            from cvxpriv.reports.document import SCHEMA_VERSION, plain_data

            self.answered = True
            whole = {"schema_version": SCHEMA_VERSION, **document}
            click.echo(json_text(plain_data(whole)))

    def warn(self, text: str) -> None:
        """Write one line of warning to standard error."""
        self.clear()
        if not self.quiet:
            click.echo(f"warning: {_one_line(by_options(text, self.parameters))}", err=True)

    def error(self, text: str) -> None:
        """Write one line of error to standard error."""
        self.clear()
        click.echo(f"error: {_one_line(text)}", err=True)

    @contextmanager
    def phase(self, description: str) -> Iterator[None]:
        """Show the current work on a terminal while it lasts."""
        if not self.progress:
            yield
            return
        with _console().status(description):
            yield

    @contextmanager
    def iterations(self, description: str, limit: int | None, figure: str) -> Iterator[Callback]:
        """Yield a callback of a solve that moves a bar, with the largest of a measured figure beside it.

        Without a limit the bar shows only that the work goes on.
        """
        if not self.progress:
            yield lambda loop, iteration, measured: None
            return
        import numpy as np
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=_console(), transient=True) as bar:
            task = bar.add_task(f"{description}, first pass", total=None)  # it may be long in coming

            def moved(loop: str, iteration: int, measured: Mapping[str, Any]) -> None:
                worst = float(np.max(measured[figure])) if figure in measured else math.nan
                left = "" if math.isnan(worst) else f", {figure} {worst:.0e}"
                bar.update(task, total=limit, completed=iteration, description=f"{description}{left}")

            yield moved


SPOKEN = {
    "missing-text": "--missing-text",
    "give another encoding=": "give another --encoding",
    "give its encoding=": "give its --encoding",
    "give encoding=": "give --encoding ",
    "give separator=": "give --separator",
    "keep_unseen=True and smoothing": "--keep-unseen and --smoothing",
    "prepare(frame, missing='drop')": "--missing drop",
    "missing='symbol'": "--missing symbol",
    "bins of ": "--bins of ",
    "merge of ": "--merge of ",
    "rare of ": "--rare of ",
    "top of ": "--top of ",
}
"""Words of messages about reading and preparation, and those of the command line."""


def spoken(message: str, words: dict[str, str] = SPOKEN) -> str:
    """Return a message with some words replaced, in their order."""
    for there, here in words.items():
        message = message.replace(there, here)
    return message


def by_options(message: str, parameters: Sequence[click.Parameter]) -> str:
    """Return a message about arguments of Python with the options that stand for them.

    >>> options = [click.Option(["--size-y", "size_y"]), click.Option(["--part/--whole", "part"])]
    >>> by_options("size_y=0 with part=False or part='a': raise size_y", options)
    "--size-y=0 with --whole or --part='a': raise --size-y"
    """
    for one in parameters:
        if isinstance(one, click.Option) and one.name:
            flag, start = one.opts[0], rf"(?<![\w'\"-]){one.name}"
            message = re.sub(rf"{start}=True\b(?: \({flag}\))?", flag, message)  # some name the flag themselves
            message = re.sub(rf"{start}=False\b", (one.secondary_opts or [f"no {flag}"])[0], message)
            message = re.sub(rf"{start}(?==)" if "_" not in one.name else rf"{start}\b", flag, message)
    return message


def _console() -> Console:
    from rich.console import Console

    return Console(stderr=True)


def _one_line(text: str) -> str:
    return " ".join(printable(text).split())


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
    from cvxpriv.solvers.place import solvers_silent

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
    from cvxpriv.solvers.place import solvers_silent

    with terminal.phase(f"cross-checking by {', '.join(solvers)}"), solvers_silent():
        check: CrossCheck = run.certify(solvers)
        return check
