"""Commands of the models that learn from rows, made from their signatures: ``cvxpriv NAME ROWS``."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeAlias

import click
from click.core import ParameterSource

from cvxpriv.cli.options import (
    click_option,
    crosscheck_option,
    introduction_of,
    made,
    on_the_command_line,
    solvers_option,
    taken,
)
from cvxpriv.cli.results import Results, endings, finish
from cvxpriv.cli.rows import RowOptions
from cvxpriv.cli.terminal import Terminal, certified, watched, watching
from cvxpriv.errors import ModelError
from cvxpriv.learning.fit import Fit
from cvxpriv.learning.fit_facts import fit_facts
from cvxpriv.learning.learning_model import LearningModel
from cvxpriv.learning.schema import relation_of
from cvxpriv.runs.options import Parameter
from cvxpriv.solvers.registry import solver_spec

Kind: TypeAlias = type[LearningModel]
Options: TypeAlias = dict[str, Parameter]

_ABOUT = (
    "ROWS is a CSV or TSV file with one person a row, or adult, compas, german. With {budget} {covered} "
    "differentially private; ranges and values of the columns must then be public: see --range. {scaled}\n\n"
    "Writes model.json, history.csv and report.html into the folder, and tables as CSV. A fit that did not converge "
    "writes them too, says so, and exits with 3."
)


def learning_command(kind: Kind) -> click.Command:
    """Return ``cvxpriv NAME ROWS``: it fits a model and writes the facts of the fit."""
    fit = kind.on_rows
    reading, layout = _by_name(RowOptions), _by_name(fit)
    posing = {name: _usual(fit, one) for name, one in _by_name(kind.__init__).items() if name not in layout}
    clear, private = _by_name(kind.solve), _by_name(kind.solve_private)
    solving = {
        name: _merged(fit, clear.get(name), private.get(name))
        for name in [*(name for name in clear if name not in reading), *(name for name in private if name not in clear)]
        if name not in fit.decided
    }
    budget = " or ".join(f"--{name}" for name in fit.budgets)

    def command(terminal: Terminal, source: str, results: Results, crosscheck: bool | None, **given: Any) -> None:
        solvers = tuple(solver_spec(name).name for name in given["solvers"])
        asked = _asked(given)
        wanted = any(name in asked for name in fit.budgets)
        own = private if wanted else clear
        for name in (name for name in asked if name in posing or name in solving):
            {**posing, **solving, **own}[name].check(asked[name])
        if strays := [one.flag for name, one in solving.items() if name in asked and name not in own]:
            need = (
                f"goes without {budget}: leave one of them out" if wanted else f"goes with {budget}: give both, or none"
            )
            raise ModelError(f"{strays[0]} {need}")
        relation = relation_of(given["schema"], asked.get("adjacency"))
        chosen = {name: asked[name] for name in own if name in asked}
        if "budget" in chosen:
            fit.plan(chosen, relation).require(chosen["budget"])
        rows = RowOptions(**taken(reading.values(), given)).load(
            source,
            **fit.reads(given),
            scaled=fit.scaled,
            private=wanted,
            counted=not wanted or relation != "add-remove",
        )
        fitted = fit(rows=rows, private=wanted, **taken(layout.values(), given))
        options = {name: asked[name] for name in posing if name in asked}
        fitted.pose(kind, options)
        fitted.solving = chosen
        _work(terminal, fitted, kind, options, () if crosscheck is False else solvers)
        finish(terminal, fit_facts(fitted), results, kind.command)

    parameters = [*layout.values(), *reading.values(), *posing.values(), *solving.values()]
    parameters.sort(key=lambda one: one.name == "intercept")
    options = [
        click.argument("source", metavar="ROWS"),
        *map(click_option, parameters),
        crosscheck_option("yes"),
        solvers_option,
        *endings(),
    ]
    scaled = "Rows are scaled to a norm of at most 1." if fit.scaled else ""
    about = _ABOUT.format(
        budget=budget, covered=kind.runs[1].covered[0].lower() + kind.runs[1].covered[1:], scaled=scaled
    )
    text = f"{introduction_of(kind)}\n\n{about}"
    if not hasattr(kind, "apart"):
        return made(kind, command, options, text)
    flag = kind.apart_flag  # type: ignore[attr-defined]
    text += f"\n\nData that are with other processes: `cvxpriv {kind.command} {flag} FILE.toml --help`."
    return made(kind, command, options, text, form=_or_apart(kind, flag))


def _or_apart(kind: Kind, flag: str) -> type[click.Command]:
    """Return the class of a command that is another one where its parties' file is given."""

    class OrApart(click.Command):
        def make_context(
            self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
        ) -> click.Context:
            after = [following for one, following in pairwise([*args, ""]) if one == flag]
            named = [*after, *(one.partition("=")[2] for one in args if one.startswith(f"{flag}="))]
            if not named or (flag == "--nodes" and not named[-1].endswith(".toml")):  # a number of nodes
                return super().make_context(info_name, args, parent, **extra)
            from cvxpriv.cli.consensus_nodes import NODES
            from cvxpriv.cli.sharing_parties import PARTIES

            apart = NODES if flag == "--nodes" else PARTIES
            return apart.command(kind).make_context(info_name, args, parent, **extra)

    return OrApart


def _by_name(function: Any) -> Options:
    return {one.name: one for one in on_the_command_line(function)}


def _merged(fit: type[Fit], clear: Parameter | None, private: Parameter | None) -> Parameter:
    """Return one option for both kinds of solve: a given value is passed on, and the help states both defaults."""
    if clear is None or private is None:
        one = clear or private
        assert one is not None
        kind = "" if clear is not None or one.name in fit.budgets else "Private: "
        return _usual(fit, replace(one, option=replace(one.option, help=kind + one.option.help)))
    choices = tuple(dict.fromkeys((*clear.option.choices, *private.option.choices)))
    usual, own = (one.option.usual or ("" if one.default is None else str(one.default)) for one in (clear, private))
    default = clear.default if clear.default == private.default else None
    both = usual if usual == own else f"{usual}; private: {own}"
    shown = replace(clear.option, choices=choices, usual="" if default is not None else both)
    return _usual(fit, replace(clear, option=shown, default=default))


def _usual(fit: type[Fit], one: Parameter) -> Parameter:
    usual = {**dict.fromkeys(fit.budgets, "not private"), **fit.usual}
    if one.name not in usual:
        return one
    return replace(one, option=replace(one.option, usual=usual[one.name]), default=None)


def _asked(given: Mapping[str, Any]) -> dict[str, Any]:
    context = click.get_current_context()
    usual = (ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP)
    return {name: value for name, value in given.items() if context.get_parameter_source(name) not in usual}


def _work(
    terminal: Terminal,
    fit: Fit,
    kind: Kind,
    options: Mapping[str, Any],
    solvers: tuple[str, ...],
) -> None:
    with watched() as interrupt:
        chosen = fit.solving
        with watching(terminal, "fitting", chosen, interrupt) as watch:
            if fit.private:
                fit.found(fit.model.solve_private(**{**fit.public_numbers(), **chosen}, **watch))
            else:
                fit.found(fit.model.solve(**chosen, **watch))
        with suppress(KeyboardInterrupt):
            if not fit.private and not interrupt.pressed:
                with terminal.phase("fitting what it is compared with"):
                    fit.scored += fit.compared(kind, options)
            fit.scored += fit.constant()
            if solvers and fit.run.posable and not interrupt.pressed:
                fit.check = certified(terminal, fit.run, solvers)
        fit.interrupted = interrupt.pressed
