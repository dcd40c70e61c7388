"""The command of the side that waits for parties or nodes in processes of their own: its file, its options, its run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import click

from cvxpriv.cli.options import click_option, made, on_the_command_line
from cvxpriv.cli.results import Results, endings, finish
from cvxpriv.cli.terminal import Terminal, watched
from cvxpriv.errors import DataError, ModelError
from cvxpriv.reports.facts import Facts
from cvxpriv.reports.files import read_document, write_text
from cvxpriv.reports.text import csv_text

if TYPE_CHECKING:
    from cvxpriv.distributed.flight_holder import FlightHolder

#: Entries of a file that may be left out.
OPTIONAL = ("identifier", "wait")


@dataclass(frozen=True)
class Side:
    """One such command.

    `members`: The word for them: the flag, and the list in the file.
    `texts`: Further entries of the file.
    `posed`, `solved`, `private`: Options of the model, of any solve, and of a private one. A solve to a tolerance is
    not private.
    `rates`: Those of the private options that make a solve private.
    `usual`: Defaults of a private solve that are other ones here.
    `has_model`: Whether this side has the model of an exact solve, whose parts may be with the members alone.
    `options`: Further options of the command, of which `pose` gets the values.
    `pose`: Maps (the file, whether the solve is private, the further options and those of the model) to a function from
    a carrier to the model. It reads what this side has before any member is waited for.
    `short`, `about`: The help.
    """

    members: str
    texts: tuple[str, ...]
    posed: tuple[str, ...]
    solved: tuple[str, ...]
    private: tuple[str, ...]
    rates: tuple[str, ...]
    options: list[Any]
    pose: Callable[[MembersFile, bool, dict[str, Any]], Callable[[Any, FlightHolder], Any]]
    short: str
    about: str
    usual: Mapping[str, Any] = field(default_factory=dict)
    has_model: bool = False

    def command(self, kind: Any) -> click.Command:
        """Return ``cvxpriv NAME --MEMBERS FILE.toml`` of a model."""
        found = {one.name: one for one in on_the_command_line(kind.solve_private, kind.solve, kind.__init__)}
        declared = (*self.private, *self.posed, *self.solved)

        def command(terminal: Terminal, results: Results, **given: Any) -> None:
            asked = {name: one for name, one in given.items() if one is not None}
            for name in set(asked) & set(declared):
                found[name].check(asked[name])
            path = asked.pop(self.members)
            facts = self._fit(terminal, kind, path, asked, results.folder)
            finish(terminal, facts, results, f"{kind.command} --{self.members}")

        options = [
            click.option(f"--{self.members}", required=True, metavar="FILE.toml", help="The members' names, the keys."),
            *self.options,
            *(click_option(replace(found[name], default=None)) for name in declared),
            *endings(),
        ]
        return made(kind, command, options, self.about, self.short)

    def _fit(self, terminal: Terminal, kind: Any, path: str, asked: dict[str, Any], folder: Path) -> Facts:
        from cvxpriv.distributed.flight_holder import FlightHolder
        from cvxpriv.distributed.keys import keys_in

        private = any(name in asked for name in self.rates)
        if stray := [name for name in (("tol",) if private else self.private) if name in asked]:
            flag, rates = stray[0].replace("_", "-"), " or ".join(f"--{name}" for name in self.rates)
            raise ModelError(f"--{flag} goes {'without' if private else 'with'} {rates}: leave one out")
        file = MembersFile.load(path, self, f"cvxpriv {kind.command} --{self.members} x.toml")
        solving = {name: asked.pop(name) for name in (*self.private, *self.solved) if name in asked}
        apart, posed = resolve_name(kind.apart), self.pose(file, private, asked)
        carrier = FlightHolder(file.said["listen"], keys_in(file.path("keys")), file.names, apart.spoken, file.wait)

        def fit(**watching: Any) -> Any:
            model = posed(apart, carrier)
            if private:
                return model.solve_private(**{**self.usual, **solving}, **watching)
            return model.solve(**solving, **watching)

        run, facts = _fitted(terminal, carrier, folder, fit)
        return replace(facts, files={"model.json": run.save} if private or self.has_model else {})


@dataclass(frozen=True)
class MembersFile:
    """The content of a file that lists the members of a run; its paths are relative to it."""

    home: Path
    names: tuple[str, ...]
    wait: float
    said: Mapping[str, Any]

    @classmethod
    def load(cls, path: str, side: Side, command: str) -> MembersFile:
        """Return the content of a TOML file; raises DataError where it is malformed."""
        members, said = side.members, read_document(path, f"a {side.members} file in TOML")
        kinds: dict[str, Any] = {**dict.fromkeys((*side.texts, "keys", "listen"), str), members: list}
        kinds["wait"] = (int, float)
        if stray := sorted(set(said) - set(kinds)):
            raise DataError(f"{path}: {stray[0]!r} is no entry of a {members} file, which has {', '.join(kinds)}")
        for name, kind in kinds.items():
            if (name in said and not isinstance(said[name], kind)) or (name not in said and name not in OPTIONAL):
                raise DataError(f"{path}: {name} is missing or malformed: `{command} --help` has one")
        names = said[members]
        if not names or len(set(map(str, names))) < len(names) or not all(isinstance(name, str) for name in names):
            raise DataError(f"{path}: {members} must list distinct names, as `cvxpriv keys add` made them")
        return cls(Path(path).parent, tuple(names), said.get("wait", 60.0), said)

    def path(self, entry: str) -> Path:
        """Return the path that an entry names."""
        return self.home / str(self.said[entry])


def _fitted(terminal: Terminal, carrier: FlightHolder, folder: Path, fit: Callable[..., Any]) -> tuple[Any, Facts]:
    """Wait for the members, fit, and end their processes; return the run, and its facts with messages and history.

    `fit`: Takes the file of the last state, and a callback by which an interrupt ends it. Where it fails, the log of
    messages is written all the same.
    """
    place, how = f"at {carrier.address} for {', '.join(carrier.names)}", "failed"
    try:
        with watched() as interrupt, terminal.phase(f"waiting {place}"):
            terminal.say(f"Listening {place}.")
            run = fit(save=folder / "state.npz", callback=lambda *_: interrupt.pressed)
        how = "done"
    finally:
        with suppress(KeyboardInterrupt):  # while a member that died is waited for: the run stands
            carrier.close(how)
        if how == "failed":
            write_text(folder / "messages.csv", csv_text(carrier.log.frame()))
    tables = {"messages": carrier.log.frame(), "history": run.history.drop(columns="seconds", errors="ignore")}
    return run, replace(run.facts, tables=tables)
