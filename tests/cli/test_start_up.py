"""What start-up imports: version, help and completion need none of the packages that take seconds."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import EntryPoint

import click
import pytest

from cvxpriv.cli.main import OWN, main
from cvxpriv.cli.sources import Card, card_of, read
from cvxpriv.models import available

SLOW = ("cvxpy", "scipy", "pandas", "matplotlib", "sklearn", "numpy", "rich", "mpmath", "cvxpriv_models.istdp")
CALL = "from cvxpriv.cli import main; main({arguments}, prog_name='cvxpriv')"
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


@pytest.mark.parametrize("name", sorted(available()))
def test_the_source_of_a_model_says_what_the_loaded_model_says(name: str) -> None:
    point = available()[name]
    model = point.load()
    assert read(point) == Card(model.command, model.task, model.__doc__.partition("\n")[0])


def test_a_model_whose_source_says_nothing_is_loaded() -> None:
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
