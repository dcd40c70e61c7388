"""A command made from a model: its options, from declared parameters, and its end.

Each help text is written once, beside the parameter. The end of any command that found something is the check of its
proof, its files, its text or JSON, and its exit.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import click

from cvxpriv.cli.drawn_rows import Drawn
from cvxpriv.cli.options import Read, applied
from cvxpriv.cli.terminal import Terminal
from cvxpriv.errors import NotConverged
from cvxpriv.reports.document import document_of
from cvxpriv.reports.facts import Facts
from cvxpriv.reports.formatting import paragraph
from cvxpriv.reports.page import for_page, render
from cvxpriv.reports.readers import SHAREABLE
from cvxpriv.reports.sets import Content, write_set
from cvxpriv.reports.text import csv_text, text_of
from cvxpriv.runs.mechanism_run import MechanismRun
from cvxpriv.runs.options import REQUIRED, Parameter, options_of

Command = TypeVar("Command", bound=Callable[..., Any])
Release: TypeAlias = Callable[[], Drawn]


def on_the_command_line(*functions: Callable[..., Any]) -> list[Parameter]:
    """Return the declared parameters of functions that can be given on a command line."""
    return [one for function in functions for one in options_of(function) if not one.option.hidden]


def taken(parameters: Iterable[Parameter], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of parameters among those that a command received."""
    return {parameter.name: values[parameter.name] for parameter in parameters}


def made(
    name: str,
    command: Callable[..., None],
    options: Sequence[Any],
    short: str,
    text: str,
    kind: type[click.Command] = click.Command,
) -> click.Command:
    """Return a function as a command with options, in their order."""
    return click.command(name, cls=kind, short_help=short, help=text)(applied(command, options))


def purpose_of(kind: type[Any]) -> str:
    """Return the first line of a model's docstring."""
    return introduction_of(kind).partition("\n")[0]


def introduction_of(kind: type[Any]) -> str:
    """Return a model's docstring up to its parameters."""
    return inspect.cleandoc(kind.__doc__ or "").partition("\nParameters\n")[0].strip()


def click_option(parameter: Parameter) -> Callable[[Command], Command]:
    """Return the option of a parameter.

    >>> from cvxpriv.runs.options import Option
    >>> rate = Parameter("rate", Option("Utility asked for.", unit="nats"), (float,), 0.8)
    >>> command = click.Command("design", params=[click_option(rate)(lambda: None).__click_params__[0]])
    >>> [(option.opts, option.help, option.default) for option in command.params]
    [(['--rate'], 'Utility asked for, in nats.', 0.8)]
    """
    option = parameter.option
    settings: dict[str, Any] = {
        "help": _help(parameter),
        "show_default": parameter.default not in (None, REQUIRED, ()),
        "required": parameter.default is REQUIRED,
    }
    if parameter.scalar is bool:
        if parameter.default is False:
            return click.option(parameter.flag, parameter.name, is_flag=True, help=_help(parameter))
        flag = f"{parameter.flag}/--no-{parameter.flag.removeprefix('--')}"
        return click.option(flag, parameter.name, default=parameter.default, **settings)
    if parameter.default is not REQUIRED:
        settings["default"] = parameter.default
    if option.many:
        settings["multiple"] = True
    if option.choices:
        settings["metavar"] = f"[{'|'.join(option.choices)}]"
    elif option.metavar:
        settings["metavar"] = option.metavar
    kind = Read(option.read) if option.read is not None else parameter.scalar or str
    return click.option(parameter.flag, parameter.name, type=kind, **settings)


def _help(parameter: Parameter) -> str:
    """Return the help of an option: its sentence, its unit, and the meaning of a default that is None."""
    option = parameter.option
    unit = f", in {option.unit}" if option.unit else ""
    usual = f"  [default: {option.usual}]" if option.usual else ""
    return f"{option.help.rstrip('.')}{unit}.{usual}"


def finish(
    terminal: Terminal, facts: Facts, folder: Path, command: str, page: str | None, release: Release | None = None
) -> None:
    """Write the files of facts, show them, and end as their work ended."""
    undone = facts.interrupted or bool(facts.unmet)
    write(terminal, facts, folder, command, page, None if undone else release)
    if undone and release is not None:
        terminal.warn("no row was released, for the mechanism is not finished")
    if facts.interrupted:
        terminal.warn(f"interrupted: {folder}/ holds what was ready")
        raise click.Abort
    if facts.unmet:
        raise NotConverged(facts.unmet)


def write(
    terminal: Terminal,
    facts: Facts,
    folder: Path | None,
    command: str,
    page: str | None = None,
    release: Release | None = None,
) -> None:
    """Write the files of facts into a folder, if there is one, and show the facts.

    All contents are prepared before the first file is written, and all is said before rows are released.
    """
    files = [] if folder is None else write_set(folder, _contents(facts, page))
    terminal.say(text_of(facts))
    if files:
        names = f"Written to {folder}/: {', '.join(file.name for file in files)}"
        terminal.say("\n" + paragraph(names, indent="", hanging="  "))
        if page == SHAREABLE and facts.published is False:
            terminal.say(paragraph("Hand on report.html alone: the other files tell of the private data.", indent=""))
    drawn = None if release is None else release()
    if terminal.json:
        more = {} if drawn is None else {"release": drawn.document}
        terminal.result(document_of(facts, command, files) | more)
    if drawn is not None:
        terminal.say("\n" + drawn.text)


def _contents(facts: Facts, page: str | None) -> dict[str, Content]:
    """Return the files of facts by name; saved runs and certificates write themselves, for their owner alone."""
    contents: dict[str, Content] = {}
    if page is not None:
        contents["report.html"] = render(for_page(facts, page))
        contents |= {one.file: one.image("png") for one in facts.pictures if one.file}
    contents |= {f"{name}.csv": csv_text(frame) for name, frame in facts.tables.items()}
    return {**contents, **facts.files}


def certify_option(command: Any) -> Any:
    """Give a command ``--certify``."""
    text = (
        "Derive the certificate again in exact arithmetic before it is written, and exit with 3 unless it proves the "
        "mechanism to be within --gap of the best possible one."
    )
    return click.option("--certify", is_flag=True, help=text)(command)


def proved(terminal: Terminal, run: MechanismRun[Any, Any], facts: Facts) -> Facts:
    """Return the facts of a run with what the check of its certificate found.

    Raises DataError: The certificate does not prove what it claims.
    """
    bound: Any = getattr(run, "bound", None)
    certificate = getattr(bound, "certificate", None)
    if certificate is None:
        missing = "nothing is proved of this mechanism: leave method, engine and starts as they are, or --certify out"
        if bound is not None:
            missing = f"no certificate of the bound can be made ({bound.no_certificate})"
    else:
        with terminal.phase("deriving the certificate again in exact arithmetic"):
            certificate.verify()
        missing = f"the gap is not proved: {bound.reason}; raise --time-limit or --gap" if bound.reason else ""
        if bound.ignored:
            missing = f"the certificate leaves out {', '.join(bound.ignored)}: no proof with that is known"
    if missing:
        return replace(facts, unmet=facts.unmet or missing, messages=[*facts.messages, f"Not certified: {missing}."])
    return replace(facts, messages=[*facts.messages, "The certificate was derived again in exact arithmetic."])
