"""The ``--json`` of a command is one document that carries the version of its schema, errors included."""

from __future__ import annotations

import json

import click
import pytest

from cvxpriv.cli import main

from .conftest import Run

COLUMNS = ("--private", "income", "--public", "age")
BARE = ("--no-report", "--no-crosscheck", "--bootstrap", "0")
COMMANDS = {
    "funnel": ("funnel", "people.csv", *COLUMNS, "--rate", "0.5", *BARE),
    "inference": ("inference", "people.csv", "--infer", "income", "--data", "age", "--starts", "1", *BARE),
    "release": ("release", "mechanism.json", "people.csv"),
    "verify": ("verify", "kl"),
    "doctor": ("doctor",),
}
TYPED = {"DataError", "ModelError", "PrivacyError", "BadParameter", "NoSuchOption", "UsageError"}
SLOW = pytest.param(("formulations", "kl"), id="formulations", marks=pytest.mark.slow)


@pytest.mark.parametrize("line", [*(pytest.param(line, id=name) for name, line in COMMANDS.items()), SLOW])
@pytest.mark.usefixtures("people", "mechanism")
def test_a_success_carries_the_schema_s_version(run: Run, line: tuple[str, ...]) -> None:
    result = run(*line, "--json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["schema_version"] == 1
    assert "error" not in document


def _leaves(command: click.Command, path: tuple[str, ...]) -> list[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group):
        return [(path, command)]
    context = click.Context(command)
    named = [(name, command.get_command(context, name)) for name in command.list_commands(context)]
    return [leaf for name, inner in named if inner is not None for leaf in _leaves(inner, (*path, name))]


REGISTERED = _leaves(main, ())


def _hostile(command: click.Command) -> list[str]:
    """Return half a surrogate pair as every argument and required option, else as the first option with a text."""
    needed = [one for one in command.params if isinstance(one, click.Argument) or one.required]
    texts = [one for one in command.params if isinstance(one, click.Option) and not one.is_flag and one.name != "out"]
    return [
        text
        for one in needed or texts[:1]
        for text in (["\udcff"] if isinstance(one, click.Argument) else [one.opts[0], "\udcff"])
    ]


@pytest.mark.parametrize(("path", "command"), [pytest.param(*leaf, id=" ".join(leaf[0])) for leaf in REGISTERED])
def test_every_error_carries_the_schema_s_version_and_is_typed_also_for_half_a_surrogate_pair(
    run: Run, path: tuple[str, ...], command: click.Command
) -> None:
    wrong = [["--no-such-option"], *([_hostile(command)] if _hostile(command) else [])]
    for given in wrong:
        result = run(*path, *given, "--json")
        document = json.loads(result.stdout)
        assert document["schema_version"] == 1
        if path != ("keys", "init") or given == wrong[0]:  # a folder may have such a name
            assert document["error"]["exit_code"] == result.exit_code == 2
            assert document["error"]["type"] in TYPED
