"""The help of a command without its imports: of a module, only the statements run whose names are asked for.

A command is made of declarations: options with texts, defaults and choices. What makes them asks for few names of a
module that imports much, and the rest of the module, with its imports, need not run. The commands made so are shown,
and never run: `PluginGroup` asks for them where ``--help`` alone follows a command's name.

>>> module("cvxpriv.solvers.registry").DEFAULT_CHAIN[0]
'CLARABEL'
"""

from __future__ import annotations
import __future__

import ast
import builtins
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import resolve_name
from types import SimpleNamespace
from typing import Any

from cvxpriv.cli.sources import spec_of, tree_of

__all__ = ["module"]

_DEFINES = (ast.FunctionDef, ast.Lambda)


class _Page:
    """A module whose names are asked for one by one."""

    def __init__(self, name: str) -> None:
        self.__dict__ = _Names(name)
        sys.modules[self.__dict__["__name__"]] = self  # type: ignore[assignment]  # where `dataclass` looks for types

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__[name]
        except KeyError as error:
            raise AttributeError(name) from error


class _Names(dict[str, Any]):
    """The globals of a module, filled as they are asked for."""

    def __init__(self, name: str) -> None:
        # The name of the page, not the module's own: what is made here must not pass for what the module makes.
        package = name if spec_of(name).submodule_search_locations else name.rpartition(".")[0]
        builtin = {**vars(builtins), "__import__": _import}
        super().__init__(__name__=f"{name} on demand", __package__=package, __builtins__=builtin)
        self.module, self.running = name, set[str]()
        self.binding: dict[str, list[ast.stmt]] = {}
        for statement in tree_of(name).body:
            for bound, source in dict.fromkeys(_bound(statement)):
                self.binding.setdefault(bound, []).append(source)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a value that is there already, or comes from `typing`: `dataclass` asks for the types of fields so."""
        known = any(isinstance(one, ast.ImportFrom) and one.module == "typing" for one in self.binding.get(name, []))
        return self[name] if known else super().get(name, default)

    def __missing__(self, name: str) -> Any:
        if name not in self.binding:
            raise KeyError(name)
        self.running.add(name)  # a class whose body has the name of another statement's would ask in a circle
        for statement in self.binding[name]:
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                self[name] = self._imported(statement, name)
                continue
            for used in _used(statement):  # the body of a class does not ask for its globals one by one
                if used in self.binding and used not in self and used not in self.running:
                    self[used]
            flags = __future__.annotations.compiler_flag
            tree = ast.Module([statement], [])
            exec(compile(tree, spec_of(self.module).origin or "", "exec", flags, dont_inherit=True), self)
        return dict.__getitem__(self, name)

    def _imported(self, statement: ast.Import | ast.ImportFrom, name: str) -> Any:
        alias = next(one for one in statement.names if (one.asname or one.name.partition(".")[0]) == name)
        if isinstance(statement, ast.Import):
            return module(alias.name if alias.asname else name)
        return _member(resolve_name("." * statement.level + (statement.module or ""), self["__package__"]), alias.name)


class _Unknown(type):
    """A name of a package that is not imported: it serves in annotations, and in nothing that is computed."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Unknown(name, (), {})

    def __getitem__(cls, _: Any) -> Any:
        return cls


@cache
def module(name: str) -> Any:
    """Return a module: of cvxpriv's packages one on demand; itself if it is imported already, or comes with Python."""
    top = name.partition(".")[0]
    if top.startswith("cvxpriv"):
        return _Page(name)
    known = top in sys.modules or top in sys.stdlib_module_names
    return import_module(name) if known else _Unknown(name, (), {})


def _import(name: str, names: Any = None, _: Any = None, wanted: Any = (), level: int = 0) -> Any:
    """Import on demand, for a function that imports what it needs."""
    place = resolve_name("." * level + name, names["__package__"])
    found = {one: _member(place, one) for one in wanted or ()}
    return SimpleNamespace(**found) if found else module(name.partition(".")[0])


def _member(place: str, name: str) -> Any:
    """Return what `from place import name` means."""
    home = module(place)
    names = vars(home)
    elsewhere = isinstance(names, _Names) and name not in names and name not in names.binding
    return module(f"{place}.{name}") if elsewhere else getattr(home, name)


def _bound(statement: ast.stmt) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the names that a statement at the top of a module binds, each with the statement to run for it."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)) and statement.name != "__getattr__":
        yield statement.name, statement
    elif isinstance(statement, (ast.Import, ast.ImportFrom)):
        yield from ((one.asname or one.name.partition(".")[0], statement) for one in statement.names)
    elif isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test):
        for other in statement.orelse:
            yield from _bound(other)
    else:
        for node in ast.walk(statement):
            if isinstance(node, (ast.Import, ast.ImportFrom)):  # of a module's own `__getattr__`, too
                yield from _bound(node)
            elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                named = (one for target in targets for one in ast.walk(target) if isinstance(one, ast.Name))
                yield from ((one.id, statement) for one in named)


def _used(node: ast.AST) -> Iterator[str]:
    """Yield the names that a statement asks for when it runs: not those in functions' bodies, nor in annotations."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns") or (name == "body" and isinstance(node, _DEFINES)):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load):
                yield child.id
            elif isinstance(child, ast.AST):
                yield from _used(child)
