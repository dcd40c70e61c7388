"""What start-up imports: version, help and completion need none of the packages that take seconds."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint

import click
import pytest
from click.testing import CliRunner

from cvxpriv.cli.main import OWN, main
from cvxpriv.cli.plugins import Card, PluginGroup, card_of
from cvxpriv.cli.write_help_pages import written

SLOW = ("cvxpy", "scipy", "pandas", "matplotlib", "sklearn", "numpy", "rich", "mpmath", "cvxpriv_models.istdp")
CALL = "from cvxpriv.cli import main; main({arguments}, prog_name='cvxpriv')"
CALLS = "from cvxpriv.cli import main; [main(one, 'cvxpriv', standalone_mode=False) for one in {lines}]"
COMPLETION = {"_CVXPRIV_COMPLETE": "bash_complete", "COMP_WORDS": "cvxpriv fu", "COMP_CWORD": "1"}


def printed_and_slow(call: str, environment: dict[str, str]) -> tuple[str, list[str]]:
    """Return the output of a fresh interpreter, and the slow packages that it imported."""
    program = f"""
import sys
try:
    {call}
finally:
    print([name for name in {SLOW} if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )
    return done.stdout, done.stderr.splitlines()


@pytest.mark.parametrize(
    ("call", "environment", "wanted"),
    [
        ("import cvxpriv", {}, ""),
        (CALL.format(arguments=["--version"]), {}, "cvxpriv "),
        (CALL.format(arguments=["--help"]), {}, "funnel"),
        (CALL.format(arguments=["demo", "--help"]), {}, "--table"),
        (CALL.format(arguments=None), COMPLETION, "plain,funnel"),
    ],
    ids=["import", "version", "help", "help of demo", "completion"],
)
def test_start_up_imports_no_slow_package(call: str, environment: dict[str, str], wanted: str) -> None:
    printed, slow = printed_and_slow(call, environment)
    assert wanted in printed
    assert slow == ["[]"]


def commands_of(group: PluginGroup, above: tuple[str, ...] = ()) -> Iterator[tuple[PluginGroup, tuple[str, ...]]]:
    """Yield every command by its words, with its group."""
    for name in group.list_commands(click.Context(group)):
        yield group, (*above, name)
        inner = group.get_command(click.Context(group), name)
        if isinstance(inner, PluginGroup):
            yield from commands_of(inner, (*above, name))


def test_the_help_of_no_command_imports_a_slow_package() -> None:
    lines = [[*words, "--help"] for _, words in commands_of(main)]
    assert ["funnel", "--help"] in lines
    assert ["crosscheck", "funnel", "--help"] in lines
    printed, slow = printed_and_slow(CALLS.format(lines=lines), {})
    assert printed.count("Usage: cvxpriv") == len(lines)
    assert slow == ["[]"]


def test_stored_help_pages_are_what_the_commands_say() -> None:
    for path, text in written().items():
        assert path.read_text(encoding="utf-8") == text, "python -m cvxpriv.cli.write_help_pages writes it again"


@pytest.mark.parametrize("words", [["funnel"], ["crosscheck", "funnel"], ["verify"]])
def test_a_stored_page_looks_as_the_command_itself_does(words: list[str]) -> None:
    """A second --help is a word that the loaded command alone takes."""
    stored, loaded = (CliRunner().invoke(main, [*words, *asked]).output for asked in (["--help"], ["--help", "--help"]))
    assert stored == loaded


def test_a_command_without_a_stored_page_shows_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cvxpriv.cli.plugins._stored", lambda home: {"cards": {}, "pages": {}})
    context = click.Context(main)
    assert main.resolve_command(context, ["doctor", "--help"])[1] is main.get_command(context, "doctor")


def test_a_model_without_a_stored_card_is_loaded() -> None:
    class Computed(EntryPoint):
        def load(self) -> object:
            return type("Late", (), {"command": "late", "task": "mechanism", "__doc__": "Arrive late."})

    assert card_of(Computed("Late", "json:loads", "cvxpriv.models")) == Card("late", "mechanism", "Arrive late.")


def test_every_own_command_stands_where_its_name_says() -> None:
    assert isinstance(main, click.Group)
    context = click.Context(main)
    for name in OWN:
        command = main.get_command(context, name)
        assert command is not None
        assert command.name == name
