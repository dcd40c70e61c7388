"""Commands of the models that design a mechanism, made from their signatures: ``cvxpriv NAME``."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import click
import pandas as pd

from cvxpriv.certify.check import CrossCheck
from cvxpriv.cli.beside import costs_of, curve_of, proved
from cvxpriv.cli.drawn_rows import Drawing, Drawn
from cvxpriv.cli.options import (
    Read,
    click_option,
    crosscheck_option,
    introduction_of,
    made,
    on_the_command_line,
    packed,
    solvers_option,
    taken,
)
from cvxpriv.cli.results import Results, endings, finish
from cvxpriv.cli.table_options import TableNoise, TableOptions, table_options, title_of
from cvxpriv.cli.terminal import Terminal, certified, watched, watching
from cvxpriv.constraints import FORMS, ReadyConstraint, parse
from cvxpriv.mechanisms.disclosure import Disclosure, disclosure
from cvxpriv.mechanisms.mechanism import Mechanism
from cvxpriv.numerics.arguments import require_workers
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.sizes import Size, of_resampling, require_feasible
from cvxpriv.reports.facts import Facts
from cvxpriv.runs.mechanism_model import MechanismModel
from cvxpriv.runs.mechanism_run import Beside, MechanismRun
from cvxpriv.runs.noise_costs import DRAWS
from cvxpriv.runs.options import options_of
from cvxpriv.solvers.registry import DEFAULT_CHAIN, solver_spec
from cvxpriv.tables.joint import JointTable
from cvxpriv.tables.small_counts import judged

CROSSCHECKED = 2_000
"""Number of cells of a mechanism above which it is cross-checked only on demand: SCS needs minutes for 160 x 161."""
REPLICATES = 200

Model: TypeAlias = MechanismModel[MechanismRun[Any, Any]]
Kind: TypeAlias = type[Model]

CONSTRAINT = click.option(
    "--constraint",
    multiple=True,
    metavar="TEXT",
    help=f"On the mechanism; several times for several: {', '.join(FORMS.values())}. NAME:TEXT gives it a name.",
)

_WRITES = (
    "TABLE is a CSV or TSV file of records, or of cells with their --count, or the name of an embedded table: "
    "{tables}.\n\n"
    "Writes mechanism.json, history.csv (every start) and report.html into the folder, and tables as CSV; with --curve "
    "also curve.png. A run that did not converge writes them too, says so, and exits with 3.\n\n"
    "`cvxpriv release mechanism.json rows.csv` then draws {output} for each row. Rows need the columns of {flag} only."
)


def design_command(kind: Kind) -> click.Command:
    """Return ``cvxpriv NAME TABLE``: it designs a mechanism and writes its facts."""
    posed, solved = on_the_command_line(kind.__init__), on_the_command_line(kind.solve)
    points = options_of(kind.curve)[0]
    points = replace(points, default=None, option=replace(points.option, usual="no curve"))

    def command(
        terminal: Terminal,
        source: str,
        columns: TableOptions,
        noise: TableNoise,
        results: Results,
        release: str | None,
        **given: Any,
    ) -> None:
        folder = results.folder
        if release is not None:
            columns.require_records(source, release, folder)
        model = posed_model(kind, noise.load(source, columns), taken(posed, given), given["constraint"])
        curve = given["points"] or None
        if curve is not None:
            model.along(curve)  # refuses a wrong point before the solve
        again = partial(posed_model, kind, options=taken(posed, given), constraints=given["constraint"])
        named = {name: given[name] for name in ("crosscheck", "solvers", "bootstrap", "certify")}
        asked = Asked(taken(solved, given), curve, **named, costs=given["noise_costs"], again=again)

        def released() -> Drawn:
            drawing = Drawing(str(release), unseen="drop")
            with warnings.catch_warnings():  # what there is to say of the file was said at first
                warnings.simplefilter("ignore")
                rows = columns.rows(source, noise.table_epsilon is not None)
            return drawing.of(Mechanism.load(folder / "mechanism.json"), rows)

        facts = design(terminal, model, title_of(source), asked)
        finish(terminal, facts, results, kind.command, None if release is None else released)

    options = [
        click.argument("source", metavar="TABLE"),
        table_options(kind.sides),
        packed("noise", TableNoise, on_the_command_line(TableNoise)),
        *map(click_option, posed),
        CONSTRAINT,
        *map(click_option, solved),
        click_option(points),
        crosscheck_option(f"up to {CROSSCHECKED:,} cells of the mechanism"),
        solvers_option,
        click.option(
            "--bootstrap",
            type=int,
            default=REPLICATES,
            show_default=True,
            callback=_replicates,
            help="Number of replicates for the intervals; 0 for none.",
        ),
        click.option(
            "--certify",
            is_flag=True,
            help="Derive the certificate again in exact arithmetic before it is written, and exit with 3 unless it "
            "proves the mechanism to be within --gap of the best possible one.",
        ),
        click.option(
            "--noise-costs",
            type=Read(_epsilons),
            default=(),
            metavar="EPSILON,EPSILON",
            help=f"Design on noisy counts at each epsilon, and show what the noise costs. It takes as long as "
            f"{DRAWS} solves for each epsilon.",
        ),
        click.option(
            "--release",
            metavar="FILE",
            help="Also draw an output for each record of TABLE, as cvxpriv release does: .zip or a folder for a "
            "bundle, or a table.",
        ),
        *endings(),
    ]
    about = _WRITES.format(
        tables=", ".join(kind.sides.public.embedded), output=kind.sides.output, flag=kind.sides.public.flag
    )
    return made(kind, command, options, f"{introduction_of(kind)}\n\n{about}")


def posed_model(kind: Kind, table: JointTable, options: Mapping[str, Any], constraints: tuple[str, ...]) -> Model:
    """Return a model of a table with its options, and the constraints that texts make."""
    parsed = [_named(text) for text in dict.fromkeys(constraints)]
    model: Model = kind(table, **options)
    for name, constraint in parsed:
        model = model.constrain(name, constraint)
    return model


def _named(text: str) -> tuple[str, ReadyConstraint]:
    """Return the constraint of a text, by the name before a colon, or by the text."""
    head, equals, value = text.partition("=")
    name, _, kind = head.rpartition(":")
    return name.strip() or text, parse(kind + equals + value)


def _epsilons(text: str) -> tuple[float, ...]:
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or not all(0.0 < one < float("inf") for one in found):
        raise click.BadParameter(f"noise_costs={text!r}: expected numbers > 0, such as 0.5,1,4")
    return found


def _replicates(_context: click.Context, _parameter: click.Parameter, value: int) -> int:
    if value < 0 or value == 1:  # before the solve, not after it
        raise click.BadParameter(f"bootstrap={value}: expected a whole number >= 2 (200 serves), or 0 for no intervals")
    return value


@dataclass(frozen=True)
class Asked:
    """The requested results of a model, beside its mechanism.

    `solving`: The options of the model's `solve`.
    `curve`: Number of points, or the points; None for no curve.
    `crosscheck`: Whether to cross-check. None does for up to `CROSSCHECKED` cells of the mechanism.
    `solvers`: Solvers that cross-check.
    `bootstrap`: Number of replicates for intervals; 0 for none.
    `certify`: Whether the bound's certificate is derived again, and a mechanism without a proof is not what was asked
    for.
    `costs`: Epsilons of noise in the table whose cost is computed.
    `again`: Maps a table to the model with the same options; needed for `costs`.
    """

    solving: Mapping[str, Any]
    curve: int | tuple[float, ...] | None = None
    crosscheck: bool | None = None
    solvers: tuple[str, ...] = DEFAULT_CHAIN
    bootstrap: int = REPLICATES
    certify: bool = False
    costs: tuple[float, ...] = ()
    again: Callable[[JointTable], Model] | None = None


def design(terminal: Terminal, model: Model, source: str, asked: Asked) -> Facts:
    """Design the mechanism, then compute the requested extras in this order: curve, cross-check, disclosure.

    A keyboard interrupt ends the work and keeps the results so far.

    Raises ModelError, SolverFailure, Disagreement: The model raised it.
    Raises KeyboardInterrupt: The interrupt came before there was any mechanism.
    """
    solvers = tuple(solver_spec(name).name for name in asked.solvers)
    size = _require_feasible(model, asked)
    curve: pd.DataFrame | None = None
    mechanisms: Sequence[Array] = ()
    check: CrossCheck | None = None
    found: Disclosure | None = None
    costs: pd.DataFrame | None = None
    table = model.problem.table
    _check_options(model, asked.solving)
    if (judgement := judged(table)) is not None:
        terminal.say(f"{judgement.sizes}\n{size.limit}")
        if judgement.warning:
            terminal.warn(judgement.warning)
    with watched() as interrupt:
        with watching(terminal, "solving", asked.solving, interrupt) as watch:
            run = model.solve(**asked.solving, **watch)
        several = run.mechanism.size <= CROSSCHECKED if asked.crosscheck is None else asked.crosscheck
        try:
            if asked.curve is not None and not interrupt.pressed:
                curve, mechanisms = curve_of(terminal, model, asked.curve, asked.solving, interrupt)
            if several and not interrupt.pressed:
                check = certified(terminal, run, solvers)
            if not interrupt.pressed:
                with terminal.phase("resampling the records"):
                    replicates = asked.bootstrap if table.counts is not None else 0
                    seed, oversize = asked.solving["seed"], bool(asked.solving.get("oversize", False))
                    found = disclosure(table, run.mechanism, replicates, seed, oversize=oversize)
            if asked.costs and asked.again is not None and not interrupt.pressed:
                costs = costs_of(terminal, table, asked.again, asked.costs, asked.solving)
        except KeyboardInterrupt:
            pass
        facts = run.described(Beside(source, curve, check, found, interrupt.pressed, mechanisms, costs))
        return proved(terminal, run, facts) if asked.certify and not interrupt.pressed else facts


def _check_options(model: Model, solving: Mapping[str, Any]) -> None:
    """Check the options of a solve by their declarations, before anything is said."""
    parameters = {parameter.name: parameter for parameter in options_of(type(model).solve)}
    for name, value in solving.items():
        if name in parameters:
            parameters[name].check(value)
    solver = solving.get("solver") or ()
    for name in [solver] if isinstance(solver, str) else solver:
        solver_spec(name)
    require_workers(solving.get("n_jobs", 1))


def _require_feasible(model: Model, asked: Asked) -> Size:
    """Return the size of the work. Refuse, before anything is solved, work that cannot finish.

    Raises ModelError.
    """
    oversize = bool(asked.solving.get("oversize", False))
    one, curve = model.size(**asked.solving), asked.curve
    if curve is not None:
        points = curve if isinstance(curve, int) else len(curve)
        one = one.repeated(1 + points, f"{points:,} points of a curve")
    require_feasible(one, oversize)
    table = model.problem.table
    if table.counts is not None:
        private, inputs = table.counts.shape
        require_feasible(of_resampling(private, inputs, inputs, asked.bootstrap), oversize)
    return one
