"""`cvxpriv crosscheck`: solve any problem, or every block of a model, by every solver, and show the verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cvxpriv import models
from cvxpriv.cli.options import NAMES, output_options, require_writable
from cvxpriv.cli.plugins import CROSSCHECKS, PluginGroup
from cvxpriv.cli.terminal import Terminal
from cvxpriv.errors import Disagreement, ModelError, suggest

if TYPE_CHECKING:
    from cvxpriv.certify.cases import Case, Target
    from cvxpriv.certify.check import CrossCheck

Command = TypeVar("Command", bound=Callable[..., Any])


class Crosschecks(PluginGroup):
    """Cross-checks by name, and of any problem by the place of the function that builds it."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """See `click.Group`; other names are ``file.py``, ``file.py:function`` or ``module:function``."""
        known = super().get_command(ctx, cmd_name)
        if known is not None or not (":" in cmd_name or cmd_name.endswith(".py")):
            return known
        return problem_command(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """See `click.Group`. An unknown name gets a message that lists the possible ones."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            name = Path(args[0])
            file = f", {name}.py" if name.with_suffix(".py").is_file() else ""
            hint = f"{suggest(args[0], self.list_commands(ctx))}; or a problem of yours: my_problem.py:build{file}"
            raise click.UsageError(f"{args[0]!r} is no model that is installed: {hint}", ctx=ctx) from error


def check_options(command: Command) -> Command:
    """Give a command the options of a cross-check of a user's own problem."""
    for option in (
        click.option("--out", metavar="FOLDER", help="Folder for crosscheck.csv, crosscheck.html and bug reports."),
        click.option(
            "--bug",
            metavar="SOLVER",
            help="Write a script that shows this solver's WRONG answer, to --out: bug_SOLVER.py.",
        ),
        click.option("--rescale", is_flag=True, help="Where no answer agrees, solve again in other units."),
        click.option(
            "--proof",
            type=click.Choice(["doubles", "interval"]),
            help="Arithmetic of bounds; interval proves them for small problems.  [default: doubles]",
        ),
        click.option("--time-limit", type=float, metavar="SECONDS", help="Seconds for each solve, with --isolate."),
        click.option(
            "--isolate", is_flag=True, help="Run each solve in a process of its own: a crash loses no other row."
        ),
        click.option(
            "--tolerance", type=float, help="Tolerance requested of every solver.  [default: each solver's own]"
        ),
        click.option("--solvers", type=NAMES, help="Solvers that cross-check.  [default: every installed solver]"),
    ):
        command = option(command)
    return command


@click.group(
    cls=Crosschecks,
    plugins=CROSSCHECKS,
    making={
        "mechanism": "cvxpriv.cli.mechanism_crosscheck:crosscheck_command",
        "problem": "cvxpriv.cli.problem_command:crosscheck_command",
    },
    invoke_without_command=True,
    subcommand_metavar="[MODEL | FILE.py[:FUNCTION]] [ARGS]...",
    epilog="Exit code 3 when a verdict is WRONG or failed; agrees and loose are fine.",
)
@click.option("everything", "--all", is_flag=True, help="Check every block of every installed model.")
@check_options
@output_options
@click.pass_context
def crosscheck(context: click.Context, /, everything: bool, **options: Any) -> None:
    """Solve by every solver, and judge each answer by exact residuals.

    \b
    crosscheck --all                  every block of every installed model
    crosscheck funnel --table ...     every block of one model, at its answer
    crosscheck my_problem.py:build    a function that returns a cvxpy problem
    crosscheck my_problem.py          its function build

    \b
    agrees  right, and every exact residual is small
    loose   right to fewer digits, or claims no accuracy
    failed  returned no solution
    WRONG   claims a solution that it has not

    A cross-check is there to be relied on, so one WRONG or failed verdict makes it exit with 3.
    """
    if context.invoked_subcommand is not None:
        given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value]
        if everything or given:
            raise click.UsageError(f"{', '.join([*(['--all'] * everything), *given])}: give it after what is checked")
        return
    if not everything:
        raise click.UsageError("nothing to check: give --all, the name of a model, or my_problem.py:build")
    checked(context.obj, "crosscheck --all", _cases_of_models(), **options)


def problem_command(place: str) -> click.Command:
    """Return the command that cross-checks the problem that a function at `place` builds."""

    @click.command(place, short_help="A function of yours that returns a cvxpy problem.")
    @check_options
    @output_options
    @click.pass_obj
    def check_problem(terminal: Terminal, /, **options: Any) -> None:
        """Solve the problem by every solver, and judge each answer."""
        from cvxpriv.certify.builders import builder_named

        builder = builder_named(place)
        named = place if ":" in place else f"{place}:{builder.name}"
        note = [] if named == place else [f"Checked {named}, as no function was named"]
        checked(terminal, f"crosscheck {named}", builder, note, **options)

    return check_problem


def _cases_of_models() -> list[Case]:
    cases = [case for point in models.available().values() for case in point.load().example_cases()]
    if not cases:
        raise ModelError("--all: no model is installed that brings cases; install one, or check a problem of your own")
    return cases


def checked(
    terminal: Terminal,
    command: str,
    target: Target,
    note: Sequence[str] = (),
    *,
    solvers: tuple[str, ...] | None,
    tolerance: float | None,
    isolate: bool,
    time_limit: float | None,
    out: str | None,
    bug: str | None,
    rescale: bool,
    proof: str | None,
) -> None:
    """Cross-check, show, write, and raise where a verdict is WRONG or failed."""
    from cvxpriv.certify import crosscheck as cross_check
    from cvxpriv.certify.sections import crosscheck_facts, refused
    from cvxpriv.cli.results import write
    from cvxpriv.solvers.place import solvers_silent

    if bug is not None and out is None:
        raise click.UsageError("--bug writes a script: give --out, the folder for it")
    folder = None if out is None else require_writable(out)
    said = list(note)
    asked: dict[str, Any] = {"tolerance": tolerance, "isolate": isolate, "time_limit": time_limit}
    with terminal.phase("cross-checking"), solvers_silent():
        check = cross_check(target, solvers, proof=proof or "doubles", **asked)
        if rescale and check.all_off:
            said.append(f"No answer to {', '.join(check.all_off)} agreed: solved again in other units")
            check = check.rescaled()
    files: dict[str, Callable[[Path], Path]] = {"crosscheck.html": check.to_html}
    if bug is not None:
        files |= _bug(terminal, check, bug, said)
    facts = crosscheck_facts(check, f"Cross-check: {command.removeprefix('crosscheck ')}", messages=said, files=files)
    write(terminal, facts, folder, command)
    if bad := refused(check):
        raise Disagreement(f"{len(bad)} of {len(check.table)} answers are refused: {'; '.join(bad)}")


def _bug(terminal: Terminal, check: CrossCheck, solver: str, said: list[str]) -> dict[str, Callable[[Path], Path]]:
    """Return the file of a bug report; a note where the solver's answers give no reason for one."""
    from cvxpriv.solvers.place import solvers_silent

    spelled = next((name for name in check.verdicts if name.upper() == solver.upper()), solver)
    if spelled in check.verdicts and check.verdicts[spelled].verdict != "WRONG":
        said.append(f"No bug report: no answer of {spelled} is WRONG")
        return {}
    try:
        with terminal.phase("shrinking the problem"), solvers_silent():
            report = check.bug(spelled)
    except ModelError as error:
        said.append(f"No bug report: {error}")
        return {}
    return {f"bug_{spelled}.py": report.write}
