"""The root command: help, version, modes, exit codes, commands that packages bring."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from importlib.metadata import EntryPoint

import click
import pytest
import rich.console
from click.testing import CliRunner
from rich.console import Console

from cvxpriv import __version__
from cvxpriv.cli import terminal as terminals
from cvxpriv.cli.main import BAD_INPUT, DONE, INTERRUPTED, NOT_SOLVED, UNEXPECTED, Toolkit, exit_code, main
from cvxpriv.cli.options import output_options
from cvxpriv.cli.plugins import PluginGroup
from cvxpriv.cli.terminal import Terminal
from cvxpriv.cli.verify import REFUTED
from cvxpriv.errors import (
    CvxprivError,
    DataError,
    Disagreement,
    ModelError,
    NotConverged,
    PrivacyError,
    SolverFailure,
)
from cvxpriv.reports.progress import with_bar

from .conftest import Run, one_error_line


def cvxpriv(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", "from cvxpriv.cli import main; main(prog_name='cvxpriv')", *arguments]
    return subprocess.run(program, capture_output=True, text=True, check=False)


def failing(error: BaseException) -> Toolkit:
    """A command line whose one command raises."""
    root = Toolkit("root", plugins="cvxpriv.no-such-group")

    @root.command()
    @output_options
    def fail() -> None:
        raise error

    return root


def test_help_names_the_toolkits_and_the_models_commands(run: Run) -> None:
    result = run("--help")
    assert result.exit_code == 0
    for command in ("crosscheck", "demo", "funnel", "release"):
        assert f"\n  {command} " in result.stdout
    assert "cannot be loaded" not in result.stdout


def test_help_names_every_exit_code(run: Run) -> None:
    words = " ".join(run("--help").stdout.partition("Exit codes:")[2].split())
    codes = {int(one.split()[0]) for one in words.rstrip(".").split("; ")}
    assert codes == {DONE, UNEXPECTED, REFUTED, BAD_INPUT, NOT_SOLVED, INTERRUPTED}


@pytest.mark.parametrize("command", [["demo"], ["funnel"], ["release"], ["crosscheck"], ["crosscheck", "funnel"]])
def test_every_command_explains_itself_within_80_columns(run: Run, command: list[str]) -> None:
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_version_is_that_of_the_package() -> None:
    done = CliRunner().invoke(main, ["--version"], prog_name="cvxpriv")
    assert (done.exit_code, done.stdout, done.stderr) == (0, f"cvxpriv {__version__}\n", "")


def test_the_toolkits_own_commands_import_no_model_and_no_plotting() -> None:
    program = (
        "import sys; from cvxpriv.cli import main; main(['release', '--help'], standalone_mode=False); "
        "sys.exit(any(module in sys.modules for module in ('cvxpriv_models', 'matplotlib')))"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode == 0


def test_an_error_of_a_real_process_is_one_line_on_standard_error() -> None:
    done = cvxpriv("release", "none.json", "none.csv")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: path='none.json' cannot be read")


def test_no_command_shows_the_help_and_is_bad_input(run: Run) -> None:
    result = run()
    assert result.exit_code == 2
    assert "Usage:" in result.stderr


def test_an_unknown_command_is_one_line(run: Run) -> None:
    assert "funel" in one_error_line(run("funel"))


def test_an_unknown_option_is_one_line_with_the_nearest_name(run: Run) -> None:
    assert "--seed" in one_error_line(run("release", "a", "b", "--sed", "1"))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (DataError("x"), 2),
        (ModelError("x"), 2),
        (PrivacyError("x"), 2),
        (NotConverged("x"), 3),
        (SolverFailure("x"), 3),
        (Disagreement("x"), 3),
        (CvxprivError("x"), 1),
        (click.UsageError("x"), 2),
        (KeyboardInterrupt(), 130),
        (click.Abort(), 130),
        (OSError(28, "No space left on device"), 2),  # under standard output
        (ZeroDivisionError("x"), 1),
    ],
)
def test_each_kind_of_error_has_its_exit_code(error: BaseException, code: int) -> None:
    result = CliRunner().invoke(failing(error), ["fail"])
    assert result.exit_code == code
    assert "Traceback" not in result.stderr
    assert result.stderr.strip().splitlines()[-1].startswith("error: ")
    assert result.stdout == ""


@pytest.mark.parametrize("arguments", [["fail", "--json"], ["--json", "fail"], ["fail", "--nothing", "--json"]])
def test_with_json_an_error_is_a_document_too(arguments: list[str]) -> None:
    result = CliRunner().invoke(failing(NotConverged("500\npasses")), arguments)
    document = json.loads(result.stdout)
    assert document["schema_version"] == 1
    assert document["error"]["exit_code"] == result.exit_code
    assert result.stderr == f"error: {document['error']['message']}\n"


def test_with_json_there_is_one_document_whatever_comes_after_it() -> None:
    root = Toolkit("root", plugins="cvxpriv.no-such-group")

    @root.command()
    @output_options
    @click.pass_obj
    def show(terminal: Terminal) -> None:
        terminal.result({"found": 1.0})
        raise NotConverged("but it did not converge")

    result = CliRunner().invoke(root, ["show", "--json"])
    assert (result.exit_code, json.loads(result.stdout)) == (3, {"schema_version": 1, "found": 1.0})


def test_every_error_of_the_tree_has_an_exit_code() -> None:
    assert {exit_code(kind("x")) for kind in CvxprivError.__subclasses__()} == {2, 3}


def test_a_message_of_several_lines_becomes_one() -> None:
    result = CliRunner().invoke(failing(DataError("first\n  second")), ["fail"])
    assert result.stderr == "error: first second\n"


@pytest.mark.parametrize("arguments", [["--debug", "fail"], ["fail", "--debug"]])
def test_debug_shows_the_traceback(arguments: list[str]) -> None:
    result = CliRunner().invoke(failing(DataError("x")), arguments if arguments[0] == "fail" else ["fail", "--debug"])
    assert "Traceback" in result.stderr


@pytest.mark.parametrize("value", ["1", "yes"])
def test_debug_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("CVXPRIV_DEBUG", value)
    assert "Traceback" in CliRunner().invoke(failing(DataError("x")), ["fail"]).stderr


@pytest.mark.parametrize("option", ["--json", "--quiet", "--debug"])
def test_a_mode_may_stand_before_or_after_the_command(option: str) -> None:
    @click.group(cls=Toolkit, plugins="cvxpriv.no-such-group")
    @output_options
    def root() -> None: ...

    @root.command()
    @output_options
    @click.pass_obj
    def show(terminal: Terminal) -> None:
        click.echo(f"{terminal.json} {terminal.quiet} {terminal.debug}")

    before, after, without = (
        CliRunner().invoke(root, line).stdout for line in ([option, "show"], ["show", option], ["show"])
    )
    assert before == after == " ".join(str(option == name) for name in ("--json", "--quiet", "--debug")) + "\n"
    assert without == "False False False\n"


class Broken(EntryPoint):
    def load(self) -> object:
        raise ImportError("no module named gone")


def test_a_command_that_cannot_be_loaded_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [Broken("gone", "gone:command", "some.group"), EntryPoint("text", "json:dumps", "some.group")]
    monkeypatch.setattr("cvxpriv.cli.plugins.extensions", lambda group: {point.name: point for point in points})
    root = Toolkit("root", plugins="some.group", commands=[click.Command("here", short_help="works")])
    listed = CliRunner().invoke(root, ["--help"])
    assert listed.exit_code == 0
    assert "works" in listed.stdout
    assert "no module named gone" in one_error_line(CliRunner().invoke(root, ["gone", "--any", "thing"]))
    assert "no click command" in one_error_line(CliRunner().invoke(root, ["text"]))


def test_an_own_command_stands_before_one_that_a_package_brings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "cvxpriv.cli.plugins.extensions", lambda group: {"here": Broken("here", "gone:command", "some.group")}
    )
    group = PluginGroup("root", plugins="some.group", commands=[click.Command("here", short_help="works")])
    assert group.list_commands(click.Context(group)) == ["here"]
    assert "works" in CliRunner().invoke(group, ["--help"]).stdout


def test_a_bar_says_that_the_first_pass_goes_on_and_counts_none_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(terminals, "_console", lambda: Console(file=shown, force_terminal=True, width=100))
    with Terminal().iterations("solving", 500, "kkt") as moved:
        assert "solving, first pass" in shown.getvalue()
        assert "/500" not in shown.getvalue()
        moved("loop", 3, {"kkt": [1e-3]})
    assert "3/500" in shown.getvalue()


def test_a_bar_of_passes_stands_before_the_first_and_counts_each(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(rich.console, "Console", lambda **_: Console(file=shown, force_terminal=True, width=100))
    moved = with_bar(None, 2, True)
    assert "passes" in shown.getvalue()
    assert "0/2" in shown.getvalue()
    assert moved is not None
    moved("loop", 1, {})
    moved("loop", 2, {})
    assert "2/2" in shown.getvalue()


def test_no_refusal_names_an_option_as_python_does(run: Run, counts: str) -> None:
    command = main.get_command(click.Context(main), "funnel")
    assert command is not None
    typed = [one for one in command.params if isinstance(one, click.Option) and not one.is_flag]
    names = "|".join(sorted({str(one.name) for one in typed if "_" in str(one.name)}))
    sides = [
        "--private",
        "income",
        "--public",
        "age",
        "--count",
        "count",
        "--no-report",
        "--no-crosscheck",
        "--bootstrap",
        "0",
    ]
    refused = 0
    for option in typed:
        said = run("funnel", counts, *sides, option.opts[0], "-7").stderr
        refused += "error: " in said
        assert not re.search(rf"(?<![\w'\"-])({names})\b", said), said
    assert refused > 15
