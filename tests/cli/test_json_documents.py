"""The ``--json`` of a command is one document that carries the version of its schema, errors included."""

from __future__ import annotations

import json
from pathlib import Path

import click
import numpy as np
import pandas as pd
import pytest

from cvxpriv.cli import main

from .conftest import Run

COLUMNS = ("--private", "income", "--public", "age")
BARE = ("--no-report", "--no-crosscheck", "--bootstrap", "0")
FUNNEL = ("funnel", "people.csv", *COLUMNS, "--rate", "0.5", *BARE)
FIT = ("rows.csv", "--label", "y", "--no-report", "--no-crosscheck")
#: A line of each command, and the lines before it that it needs.
COMMANDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "funnel": (FUNNEL,),
    "certify": (FUNNEL, ("certify", "out/certificate.json")),
    "inference": (("inference", "people.csv", "--infer", "income", "--data", "age", "--starts", "1", *BARE),),
    "release": (("release", "mechanism.json", "people.csv"),),
    "verify": (("verify", "kl"),),
    "doctor": (("doctor",),),
    "constraints": (("constraints",),),
    "corpus run": (("corpus", "run", "--sources", "adversarial", "--count", "1", "--solvers", "CLARABEL"),),
    "crosscheck funnel": (
        ("crosscheck", "funnel", "--table", "people.csv", *COLUMNS, "--rate", "0.5", "--solvers", "CLARABEL"),
    ),
    "crosscheck inference": (
        ("crosscheck", "inference", "--table", "people.csv", "--infer", "income", "--data", "age", "--starts", "1"),
    ),
    "formulations": (("formulations", "kl"),),
    "keys init": (("keys", "init", "team"),),
    "keys add": (("keys", "init", "team"), ("keys", "add", "team", "a")),
    "sweep": (("sweep", "plan.toml", "--no-report"),),
    "sparse": (("sparse", *FIT),),
    "consensus": (("consensus", *FIT, "--nodes", "2"),),
    "sharing": (("sharing", *FIT, "--party", "a", "--party", "b"),),
}
EFFORT = {"formulations", "crosscheck funnel", "crosscheck inference", "sweep", "corpus run"}
PLAN = """model = "PrivacyFunnel"
[data]
source = "heart-failure"
[grid]
rate = [0.5]
[solve]
method = "aem"
starts = 1
"""
TYPED = {"DataError", "ModelError", "PrivacyError", "BadParameter", "NoSuchOption", "UsageError"}


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(lines, id=name, marks=pytest.mark.slow if name in EFFORT else ())
        for name, lines in COMMANDS.items()
    ],
)
@pytest.mark.usefixtures("people", "mechanism")
def test_a_success_carries_the_schema_s_version(run: Run, lines: tuple[tuple[str, ...], ...]) -> None:
    draw = np.random.default_rng(0).uniform(-1, 1, (80, 2)).round(3)
    pd.DataFrame(draw, columns=["a", "b"]).assign(y=(draw.sum(axis=1) > 0).astype(int)).to_csv("rows.csv", index=False)
    Path("plan.toml").write_text(PLAN, encoding="utf-8")
    for line in lines:
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


def test_every_registered_command_is_among_them() -> None:
    # test_parties.py runs a party, which ends when its label holder does; test_demo.py runs a short demo.
    assert {" ".join(path) for path, _ in REGISTERED} == {*COMMANDS, "party serve", "demo"}


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
