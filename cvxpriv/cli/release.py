"""`cvxpriv release`: apply a mechanism to rows."""

from dataclasses import replace
from typing import Any

import click

from cvxpriv.cli.drawn_rows import Drawing, require_target
from cvxpriv.cli.options import Reading, click_option, on_the_command_line, output_options, packed
from cvxpriv.cli.preparation import Preparation
from cvxpriv.cli.terminal import Terminal
from cvxpriv.errors import DataError
from cvxpriv.mechanisms.bundle import is_bundle
from cvxpriv.mechanisms.mechanism import Mechanism
from cvxpriv.tables.recipe import Recipe

_MISSING = next(one for one in on_the_command_line(Preparation) if one.name == "missing")


@click.command()
@click.argument("mechanism", metavar="MECHANISM.json")
@click.argument("rows", metavar="ROWS.csv")
@packed("drawing", Drawing, on_the_command_line(Drawing))
@packed("reading", Reading, on_the_command_line(Reading))
@click_option(replace(_MISSING, option=replace(_MISSING.option, usual="as the mechanism was designed")))
@output_options
@click.pass_obj
def release(
    terminal: Terminal, mechanism: str, rows: str, drawing: Drawing, reading: Reading, missing: str | None
) -> None:
    """Draw an output for each row of ROWS.csv by the mechanism in MECHANISM.json.

    The columns that the mechanism reads, and private ones, never come out; any other only if --keep names it. Rows need
    only the columns that it reads. Each call draws anew: release the same rows once.
    """
    if drawing.matrix is not None and not is_bundle(drawing.out):
        raise DataError(
            f"--out={drawing.out!r} is one table, which holds no matrix: give a folder or a .zip, or leave it out"
        )
    require_target(drawing.out, mechanism, rows)
    loaded = Mechanism.load(mechanism)
    asked: dict[str, Any] = {"missing": missing, "missing_text": reading.missing_text, "decimal": reading.decimal}
    recipe = replace(loaded.recipe or Recipe(), **{key: value for key, value in asked.items() if value is not None})
    frame = replace(reading, missing_text=recipe.missing_text, decimal=recipe.decimal).rows(rows)
    drawn = drawing.of(replace(loaded, recipe=None if recipe.empty else recipe), frame)
    terminal.result({"command": "release", **drawn.document})
    terminal.say(drawn.text)
