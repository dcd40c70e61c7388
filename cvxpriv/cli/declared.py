"""Command-line options made from the declared parameters of a model, so that each help text is written once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import click

from cvxpriv.cli.options import Read, applied
from cvxpriv.runs.options import REQUIRED, Parameter, options_of

Command = TypeVar("Command", bound=Callable[..., Any])


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
