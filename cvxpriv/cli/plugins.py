"""Commands that installed packages bring: made from their models, or click commands found by their entry points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from typing import Any

import click

from cvxpriv import models
from cvxpriv.errors import ModelError
from cvxpriv.numerics.extensions import extensions

__all__ = ["COMMANDS", "CROSSCHECKS", "PluginGroup", "crosscheck_of", "design"]

COMMANDS = "cvxpriv.commands"
"""Entry points to click commands: ``cvxpriv NAME``."""
CROSSCHECKS = "cvxpriv.crosschecks"
"""Entry points to click commands: ``cvxpriv crosscheck NAME``."""


def design(model: type[Any]) -> click.Command | None:
    """Return the command ``cvxpriv NAME`` of a model, by its task; None for a task without one."""
    if model.task == "mechanism":
        from cvxpriv.cli.mechanism_command import design_command

        return design_command(model)
    if model.task == "learning" and hasattr(model, "on_rows"):
        from cvxpriv.cli.learning_command import learning_command

        return learning_command(model)
    return None


def crosscheck_of(model: type[Any]) -> click.Command | None:
    """Return the command ``cvxpriv crosscheck NAME`` of a model, by its task; None for a task without one."""
    if model.task == "mechanism":
        from cvxpriv.cli.mechanism_command import crosscheck_command

        return crosscheck_command(model)
    return None


class PluginGroup(click.Group):
    """A group of commands: some of its own, some from an entry-point group, some made from models.

    A model has a command if it has a name for one, `command`, and a `task`.

    Parameters
    ----------
    plugins : str
        The entry-point group of click commands.
    making : callable, optional
        Makes the command of a model. None: models have none in this group.
    """

    def __init__(
        self,
        *args: Any,
        plugins: str = COMMANDS,
        making: Callable[[type[Any]], click.Command | None] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.plugins = plugins
        self.making = making

    def list_commands(self, ctx: click.Context) -> list[str]:
        """See `click.Group`."""
        return sorted({*super().list_commands(ctx), *extensions(self.plugins), *(name for name, _ in self._made(""))})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """See `click.Group`. A command that cannot be loaded reports this when it is run, and hides no other."""
        own = super().get_command(ctx, cmd_name)
        point = extensions(self.plugins).get(cmd_name)
        if own is not None:
            return own
        if point is None:
            return next((command for name, command in self._made(cmd_name) if name == cmd_name), None)
        try:
            loaded = point.load()
        except Exception as error:  # somebody else's package: whatever it raises, the other commands work
            return _broken(point, f"{type(error).__name__}: {error}")
        return loaded if isinstance(loaded, click.Command) else _broken(point, "it is no click command")

    def _made(self, wanted: str) -> Iterator[tuple[str, click.Command]]:
        """Yield the commands of models by name; each model is loaded when it is reached.

        Those whose place holds the name that is wanted come first: `funnel` is in `cvxpriv_models.privacy_funnel`.
        """
        if self.making is None:
            return
        for point in sorted(models.available().values(), key=lambda point: wanted not in point.value):
            try:
                model = point.load()
            except Exception:  # somebody else's package: whatever it raises, the other commands work
                continue
            name: str | None = getattr(model, "command", None)
            command = None if name is None or wanted not in ("", name) else self.making(model)
            if name is not None and command is not None:
                yield name, command


def _broken(point: EntryPoint, reason: str) -> click.Command:
    package = point.dist.name if point.dist is not None else point.value

    def refuse(**_: object) -> None:
        raise ModelError(f"command {point.name!r} of {package} cannot be loaded ({reason}): reinstall {package}")

    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(point.name, callback=refuse, short_help="(cannot be loaded)", context_settings=settings)
