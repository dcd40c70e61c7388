"""Command, task and purpose of a model, read from its source: a list of commands must not import every model.

>>> point = EntryPoint("PrivacyFunnel", "cvxpriv_models.privacy_funnel:PrivacyFunnel", "cvxpriv.models")
>>> card = read(point)
>>> card.command, card.task
('funnel', 'mechanism')
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import EntryPoint
from importlib.util import find_spec, resolve_name
from typing import Any


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


def card_of(point: EntryPoint) -> Card:
    """Return the card of a model: from its source, or of the loaded class where the source does not say it plainly."""
    try:
        return read(point)
    except (LookupError, SyntaxError, ValueError, ImportError):
        from cvxpriv.cli.declared import purpose_of

        model = point.load()
        return _card({name: getattr(model, name, "") for name in ("command", "task", "on_rows")}, purpose_of(model))


def read(point: EntryPoint) -> Card:
    """Return the card of a model as its source has it.

    Raises LookupError, SyntaxError, ValueError, ImportError: There is no such source, or it does not state command and
    task as texts.
    """
    home, kind = _class(point.module, point.attr)
    stated: dict[str, Any] = {}
    for name, value in _stated(home, kind):
        stated.setdefault(name, value)
    command, task = (ast.literal_eval(stated[name]) for name in ("command", "task"))
    purpose = (ast.get_docstring(kind) or "").partition("\n")[0]
    return _card({**stated, "command": command, "task": task}, purpose)


def _card(stated: dict[str, Any], purpose: str) -> Card:
    """Return a card; a model that learns has a command if it says how it reads rows, `on_rows`."""
    task = "" if stated["task"] == "learning" and not stated.get("on_rows") else stated["task"]
    return Card(stated["command"], task, purpose)


def _stated(module: str, kind: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that a class sets, with their values; then those of its bases."""
    for node in kind.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            yield node.target.id, node.value
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value
    for base in kind.bases:
        named = base.value if isinstance(base, ast.Subscript) else base
        if isinstance(named, ast.Name) and (place := _import(module, named.id)) is not None:
            with suppress(LookupError):  # such as abc, which is frozen
                yield from _stated(*_class(place, named.id))


def _class(module: str, name: str) -> tuple[str, ast.ClassDef]:
    """Return a class of a module, which may import it from another one, and the module that writes it."""
    for node in tree_of(module).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return module, node
    place = _import(module, name)
    if place is None:
        raise LookupError(name)
    return _class(place, name)


def _import(module: str, name: str) -> str | None:
    """Return the module from which a module imports a name."""
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.ImportFrom) and any(alias.name == name for alias in node.names):
            package = module if spec_of(module).submodule_search_locations else module.rpartition(".")[0]
            return resolve_name("." * node.level + (node.module or ""), package)
    return None


@cache
def tree_of(module: str) -> ast.Module:
    """Return the syntax tree of a module's source; LookupError where it has none."""
    source: str | None = getattr(spec_of(module).loader, "get_source", lambda _: None)(module)
    if source is None:
        raise LookupError(module)
    return ast.parse(source)


@cache
def spec_of(module: str) -> ModuleSpec:
    """Return a module's spec; unlike `importlib.util.find_spec`, import no package above it."""
    above = module.rpartition(".")[0]
    found = PathFinder.find_spec(module, spec_of(above).submodule_search_locations) if above else find_spec(module)
    if found is None:
        raise LookupError(module)
    return found
