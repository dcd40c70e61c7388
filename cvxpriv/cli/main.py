"""The entry point: `cvxpriv`, its options, its exit codes, and how errors are shown."""

import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import click

from cvxpriv.cli.options import output_options
from cvxpriv.cli.plugins import COMMANDS, PluginGroup
from cvxpriv.cli.terminal import Terminal, by_options
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


class Toolkit(PluginGroup):
    """The root: turns every error into one line and an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """See `click.Command`; in standalone mode it ends the process with an exit code of `cvxpriv.cli.main`."""
        command = partial(super().main, args, prog_name, complete_var, standalone_mode=False, **extra)
        if not standalone_mode:
            return command()
        # A word that the parser refuses may stand before --json.
        words = sys.argv[1:] if args is None else list(args)
        debug = os.environ.get("CVXPRIV_DEBUG", "0") not in ("", "0")
        terminal = Terminal("--json" in words, "--quiet" in words, debug)
        if len(words) > 1 and not {"--help", "-h", "--version"} & set(words):
            terminal.begin(f"{words[0]}: loading what it needs, reading the input ...")
        with warnings.catch_warnings():
            _show_warnings(terminal)
            code = _run(partial(command, obj=terminal), terminal)
        terminal.clear()
        raise SystemExit(code)


def _run(command: Callable[[], Any], terminal: Terminal) -> int:
    try:
        result = command()
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return BAD_INPUT
    except click.exceptions.Abort as error:
        if isinstance(error.__cause__, EOFError):  # click takes any end of a file for the keyboard's
            _trace(terminal)
            return _failed(terminal, error, UNEXPECTED, "unexpected end of a file (a bug: --debug shows where)")
        return _failed(terminal, error, INTERRUPTED, "interrupted by the keyboard")
    except click.ClickException as error:
        return _failed(terminal, error, BAD_INPUT, _usage(error))
    except CvxprivError as error:
        _trace(terminal)
        return _failed(terminal, error, exit_code(error), str(error))
    except OSError as error:  # of files that are read and written `DataError` tells
        _trace(terminal)
        text = f"the system refused ({error}): see that standard output has room and the working folder exists"
        return _failed(terminal, error, BAD_INPUT, text)
    except Exception as error:
        _trace(terminal)
        text = f"unexpected {type(error).__name__}: {error} (a bug: --debug shows where)"
        return _failed(terminal, error, UNEXPECTED, text)
    return result if isinstance(result, int) else DONE


def _failed(terminal: Terminal, error: Exception, code: int, text: str) -> int:
    """Show an error as a line, and as a document where JSON is asked for and none was written yet."""
    text = by_options(text, terminal.parameters)
    terminal.error(text)
    if terminal.json:
        from cvxpriv.reports.document import error_document

        terminal.result(error_document(error, code, text))
    return code


def _usage(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    return error.format_message().strip().removesuffix(".") + hint


def _trace(terminal: Terminal) -> None:
    if terminal.debug:
        traceback.print_exc()


def _show_warnings(terminal: Terminal) -> None:
    """Show cvxpriv's own warnings as one line each; those of other packages only with --debug."""

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if category.__module__.startswith("cvxpriv") or terminal.debug:
            terminal.warn(str(message))

    warnings.simplefilter("default")
    warnings.showwarning = show


OWN = {
    "certify": "Check the certificate of a bound, without a solver.",
    "constraints": "List the ready constraints on a mechanism, or show one.",
    "corpus": "Judge solvers, and the judge, on a corpus of problems.",
    "crosscheck": "Solve a problem, or every block of a model, by every solver, and judge the answers.",
    "demo": "The whole way on an embedded real table, in under a minute.",
    "doctor": "Examine the installation.",
    "formulations": "Compare equivalent ways of writing a divergence.",
    "keys": "Make the keys by which parties that are apart know each other.",
    "party": "Hold columns or rows in a process of its own, and take part in a fit across parties.",
    "release": "Apply a mechanism to rows; private columns stay behind.",
    "sweep": "Solve a model at every point of a grid, and lose no result.",
    "verify": "Check a divergence: convexity, derivatives, limits, DCP form.",
}
"""The toolkit's own commands, and the short help of each."""
MADE = {
    "mechanism": "cvxpriv.cli.mechanism_command:design_command",
    "learning": "cvxpriv.cli.learning_command:learning_command",
    "problem": "cvxpriv.cli.problem_command:problem_command",
}
"""The function that makes a model's command, by the model's task."""


@click.group(
    cls=Toolkit,
    plugins=COMMANDS,
    own=OWN,
    making=MADE,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done; 1 a check of verify or doctor fails, or a bug; 2 bad input; 3 not converged, solver "
    "failure or disagreement; 130 interrupted.",
)
@click.version_option(package_name="cvxpriv", prog_name="cvxpriv", message="%(prog)s %(version)s")
@output_options
def main() -> None:
    """Design what may be released, and prove it: convex privacy methods whose every step is checked.

    Each command has its own --help. --json and --quiet may stand before or after the command.
    """
