"""Help pages as data: a command's help is shown without what the command imports, which takes seconds.

A package that brings a command may hold its page in ``help_pages.json``, beside its ``__init__.py``; a command without
one shows itself. `cvxpriv.cli.write_help_pages` writes them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from cvxpriv.cli.sources import spec_of

FILE = "help_pages.json"


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
    path = file_of(home)
    pages = json.loads(path.read_text(encoding="utf-8")) if path is not None and path.is_file() else {}
    return Page(words, pages[words]) if words in pages else None


def file_of(home: str) -> Path | None:
    """Return the file of a package's pages; None where it is no package of the file system."""
    spec = spec_of(home)
    return Path(spec.origin).with_name(FILE) if spec.origin and spec.submodule_search_locations else None
