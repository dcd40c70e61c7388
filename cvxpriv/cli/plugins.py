"""Commands that installed packages bring, found by their entry points and loaded when they are asked for."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

import click

from cvxpriv.errors import ModelError

__all__ = ["COMMANDS", "CROSSCHECKS", "PluginGroup"]

COMMANDS = "cvxpriv.commands"
"""Entry points to click commands: ``cvxpriv NAME``."""
CROSSCHECKS = "cvxpriv.crosschecks"
"""Entry points to click commands: ``cvxpriv crosscheck NAME``."""


class PluginGroup(click.Group):
    """A group of commands, some of its own and some from an entry-point group."""

    def __init__(self, *args: Any, plugins: str = COMMANDS, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.plugins = plugins

    def list_commands(self, ctx: click.Context) -> list[str]:
        """See `click.Group`."""
        return sorted({*super().list_commands(ctx), *self._points()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """See `click.Group`; a command that cannot be loaded says so when it is run, and hides no other."""
        own = super().get_command(ctx, cmd_name)
        point = self._points().get(cmd_name)
        if own is not None or point is None:
            return own
        try:
            loaded = point.load()
        except Exception as error:  # somebody else's package: whatever it raises, the other commands work
            return _broken(point, f"{type(error).__name__}: {error}")
        return loaded if isinstance(loaded, click.Command) else _broken(point, "it is no click command")

    def _points(self) -> dict[str, EntryPoint]:
        return {point.name: point for point in entry_points(group=self.plugins)}


def _broken(point: EntryPoint, reason: str) -> click.Command:
    package = point.dist.name if point.dist is not None else point.value

    def refuse(**_: object) -> None:
        raise ModelError(f"command {point.name!r} of {package} cannot be loaded ({reason}): reinstall {package}")

    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(point.name, callback=refuse, short_help="(cannot be loaded)", context_settings=settings)
