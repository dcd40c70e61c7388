"""Write the stored help pages: ``python -m cvxpriv.cli.write_help_pages``, which a change of an option needs.

With the name of another package it writes those of that package's models and commands.
"""

import inspect
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from cvxpriv import models
from cvxpriv.cli.main import main
from cvxpriv.cli.plugins import card_of_class, file_of


def pages_of(group: Any, context: click.Context, above: str = "") -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the package, the words and the page of every command of a group that some package brings."""
    for name in group.list_commands(context):
        home, command, words = group.home_of(name), group.get_command(context, name), f"{above} {name}".strip()
        inner = click.Context(command, info_name=name, parent=context)
        if hasattr(command, "home_of"):
            yield from pages_of(command, inner, words)
        elif home and not isinstance(command, click.Group):
            shown = [one for one in command.get_params(inner) if isinstance(one, click.Option)]
            options = [record for one in shown if (record := one.get_help_record(inner))]
            # cleaned here: from Python 3.13 on a docstring has lost its indentation already
            texts = {"help": inspect.cleandoc(command.help or ""), "epilog": inspect.cleandoc(command.epilog or "")}
            yield home, words, {**texts, "usage": command.collect_usage_pieces(inner), "options": options}


def written(package: str = "cvxpriv") -> dict[Path, str]:
    """Return the files of a package's models and commands, as they should be."""
    found: dict[Path, dict[str, dict[str, Any]]] = {}

    def put(home: str, kind: str, name: str, content: dict[str, Any]) -> None:
        if home.startswith(package) and (path := file_of(home)) is not None:
            found.setdefault(path, {"cards": {}, "pages": {}})[kind][name] = content

    for point in models.available().values():
        put(point.module, "cards", point.attr, asdict(card_of_class(point.load())))
    for home, words, page in pages_of(main, click.Context(main, info_name="cvxpriv", **main.context_settings)):
        put(home, "pages", words, page)
    return {path: json.dumps(content, indent=1, ensure_ascii=False) + "\n" for path, content in found.items()}


if __name__ == "__main__":
    for path, text in written(*sys.argv[1:2]).items():
        path.write_text(text, encoding="utf-8")
