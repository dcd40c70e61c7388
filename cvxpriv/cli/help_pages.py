"""Help pages as data: commands are listed, and show their help, without what they import, which takes seconds.

A package that brings models or commands may hold ``help_pages.json`` beside its ``__init__.py``: a card of each model,
and a page of each command. Where there is none the model is imported. `cvxpriv.cli.write_help_pages` writes the files.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

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
        """See `click.Command`."""
        return [*self.stored["usage"]]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """See `click.Command`."""
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
    from cvxpriv.cli.declared import purpose_of

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
