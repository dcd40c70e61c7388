"""Commands that installed packages bring: made from their models, or click commands found by their entry points.

Commands are listed, and show their help, without what they import, which takes seconds: a package that brings models or
commands may hold ``help_pages.json`` beside its ``__init__.py``, with a card of each model and a page of each command.
Where there is none the model is imported. `cvxpriv.cli.write_help_pages` writes the files.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import click
from click.shell_completion import CompletionItem

from cvxpriv.errors import ModelError
from cvxpriv.numerics.packages import extensions

FILE = "help_pages.json"


@dataclass(frozen=True)
class Card:
    """The entry of a model in a list of commands.

    `command`: Name of its command; empty where it has none.
    `task`: "mechanism", "learning" or "problem"; empty for a model that learns, but not from a file of rows.
    `purpose`: The first line of its docstring.
    """

    command: str
    task: str
    purpose: str


class Page(click.Command):
    """A command that shows a stored help page, and is never run."""

    def __init__(self, name: str, stored: dict[str, Any]) -> None:
        super().__init__(name, help=stored["help"], epilog=stored["epilog"])
        self.stored = stored

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*self.stored["usage"]]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Options"):
            formatter.write_dl([(option, text) for option, text in self.stored["options"]])


def stored_page(home: str, words: str) -> Page | None:
    """Return the page of a command, such as "crosscheck funnel", that a package holds; None where it holds none."""
    pages = _stored(home)["pages"]
    return Page(words, pages[words]) if words in pages else None


def card_of(point: EntryPoint) -> Card:
    """Return the card of a model: the stored one, or that of the imported class."""
    stored = _stored(point.module)["cards"].get(point.attr)
    return Card(**stored) if stored else card_of_class(point.load())


def card_of_class(model: Any) -> Card:
    """Return the card of a class; a model that learns has a command if it says how it reads rows, `on_rows`."""
    from cvxpriv.cli.options import purpose_of

    learns_elsewhere = model.task == "learning" and not getattr(model, "on_rows", None)
    return Card(getattr(model, "command", ""), "" if learns_elsewhere else model.task, purpose_of(model))


def file_of(home: str) -> Path | None:
    """Return the file of a package's pages; None where it is no package of the file system."""
    spec = find_spec(home)
    if spec is None or not spec.origin or not spec.submodule_search_locations:
        return None
    return Path(spec.origin).with_name(FILE)


@cache
def _stored(home: str) -> dict[str, Any]:
    path = file_of(home)
    if path is None or not path.is_file():
        return {"cards": {}, "pages": {}}
    return json.loads(path.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


COMMANDS = "cvxpriv.commands"
"""Entry points to click commands: ``cvxpriv NAME``."""
CROSSCHECKS = "cvxpriv.crosschecks"
"""Entry points to click commands: ``cvxpriv crosscheck NAME``."""
MODELS = "cvxpriv.models"
"""Entry points to models."""


class PluginGroup(click.Group):
    """A group of commands: some of its own, some from an entry-point group, some made from models.

    A model has a command if it has a name for one, `command`, and a `task`. Lists of commands (help, completion) import
    no command of its own and no model: what a command needs is imported when it is run.

    `own`: Its own commands, ``cvxpriv.cli.NAME:NAME``, and the short help of each.
    `plugins`: The entry-point group of click commands.
    `making`: The place of the function that makes a model's command, by the model's task.
    """

    def __init__(
        self,
        *args: Any,
        own: Mapping[str, str] | None = None,
        plugins: str = COMMANDS,
        making: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.own = own or {}
        self.plugins = plugins
        self.making = making or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self.own, *extensions(self.plugins), *self._models()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """See `click.Group`. A command that cannot be loaded reports this when it is run, and hides no other."""
        known = super().get_command(ctx, cmd_name)
        if known is not None:
            return known
        if cmd_name in self.own:
            command: click.Command = resolve_name(f"cvxpriv.cli.{cmd_name}:{cmd_name}")
            return command
        if point := extensions(self.plugins).get(cmd_name):
            return _loaded(cmd_name, point)
        if cmd_name in (cards := self._models()):
            point, card = cards[cmd_name]
            return _loaded(cmd_name, point, self.making[card.task])
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """See `click.Group`. A command whose help alone is asked for is its stored page, where there is one."""
        if args[1:] == ["--help"] and (home := self.home_of(args[0])):
            words = [*_words(ctx), args[0]]
            if (page := stored_page(home, " ".join(words))) is not None:
                return args[0], page, args[1:]
        return super().resolve_command(ctx, args)

    def home_of(self, name: str) -> str:
        """Return the package that brings a command, "" where none is known: it may hold the command's help page."""
        if name in self.own:
            return "cvxpriv.cli"
        cards = self._models()
        return cards[name][0].module if name in cards else ""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self._listed(ctx).format_commands(ctx, formatter)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        return [
            *(
                CompletionItem(name, help=command.get_short_help_str())
                for name, command in self._listed(ctx).commands.items()
                if name.startswith(incomplete) and not command.hidden
            ),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]

    def _listed(self, ctx: click.Context) -> click.Group:
        """Return the commands as they are listed: those that would be slow to import have name and short help only."""
        purposes = {**{name: card.purpose for name, (_, card) in self._models().items()}, **self.own}
        listed = click.Group()
        for name in self.list_commands(ctx):
            slow = name in purposes and name not in self.commands
            command = click.Command(name, short_help=purposes[name]) if slow else self.get_command(ctx, name)
            listed.add_command(command or click.Command(name), name)
        return listed

    def _models(self) -> dict[str, tuple[EntryPoint, Card]]:
        """Return the models that have a command in this group by the command's name, importing none if it can be."""
        found = {}
        for point in extensions(MODELS).values() if self.making else ():
            try:
                card = card_of(point)
            except Exception:  # somebody else's package: whatever it raises, the other commands work
                continue
            if card.command and card.task in self.making:
                found[card.command] = point, card
        return found


def _words(context: click.Context | None) -> list[str]:
    if context is None or context.parent is None:
        return []
    return [*_words(context.parent), context.info_name or ""]


def _loaded(name: str, point: EntryPoint, maker: str = "") -> click.Command:
    """Return the command of an entry point, or the one that is made of its model."""
    try:
        loaded = resolve_name(maker)(point.load()) if maker else point.load()
    except Exception as error:  # somebody else's package: whatever it raises, the other commands work
        return _broken(name, point, f"{type(error).__name__}: {error}")
    return loaded if isinstance(loaded, click.Command) else _broken(name, point, "it is no click command")


def _broken(name: str, point: EntryPoint, reason: str) -> click.Command:
    package = point.dist.name if point.dist is not None else point.value

    def refuse(**_: object) -> None:
        raise ModelError(f"command {name!r} of {package} cannot be loaded ({reason}): reinstall {package}")

    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(name, callback=refuse, short_help="(cannot be loaded)", context_settings=settings)
