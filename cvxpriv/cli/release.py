"""`cvxpriv release`: apply a mechanism to rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from cvxpriv.cli.drawn_rows import Drawing, require_target
from cvxpriv.cli.options import NAMES, output_options, reading_options
from cvxpriv.cli.preparation import missing_option, missing_text_option, read_rows
from cvxpriv.cli.terminal import Terminal
from cvxpriv.errors import DataError
from cvxpriv.mechanisms.bundle import is_bundle
from cvxpriv.mechanisms.mechanism import Mechanism
from cvxpriv.mechanisms.release import MOST_GAINED, RELEASED
from cvxpriv.tables.recipe import Recipe


@click.command()
@click.argument("mechanism", metavar="MECHANISM.json")
@click.argument("rows", metavar="ROWS.csv")
@click.option(
    "--out",
    default="released.csv",
    show_default=True,
    help="File to write: .csv, .tsv, .xlsx or .parquet; or a folder or .zip, for a bundle with codebook and promise.",
)
@click.option(
    "--with-matrix/--without-matrix",
    default=None,
    help="Put P(Y|X) into the bundle.  [default: only where the mechanism may be published]",
)
@click.option("--seed", type=int, help="Make the same draw again; keep it secret.  [default: the system's randomness]")
@click.option(
    "--unseen",
    metavar="[error|drop]",
    default="error",
    show_default=True,
    help="Treatment of rows whose cell the mechanism does not know.",
)
@click.option(
    "--keep", type=NAMES, default=(), help="Columns to pass on beside the output; the figures do not cover them."
)
@click.option(
    "--yes",
    is_flag=True,
    help=f"Release although kept columns help to guess private ones by {MOST_GAINED:.0%} or more.",
)
@click.option("--name", default=RELEASED, show_default=True, help="Name of the new column.")
@reading_options
@missing_option("as the mechanism was designed")
@missing_text_option
@output_options
@click.pass_obj
def release(
    terminal: Terminal,
    mechanism: str,
    rows: str,
    out: str,
    with_matrix: bool | None,
    seed: int | None,
    unseen: str,
    keep: tuple[str, ...],
    yes: bool,
    name: str,
    separator: str | None,
    encoding: str | None,
    decimal: str | None,
    missing: str | None,
    missing_text: tuple[str, ...] | None,
) -> None:
    """Draw an output for each row of ROWS.csv by the mechanism in MECHANISM.json.

    The columns that the mechanism reads, and private ones, never come out; any other only if --keep names it. Rows need
    only the columns that it reads. Each call draws anew: release the same rows once.
    """
    if with_matrix is not None and not is_bundle(out):
        raise DataError(f"--out={out!r} is one table, which holds no matrix: give a folder or a .zip, or leave it out")
    require_target(out, mechanism, rows)
    loaded = Mechanism.load(mechanism)
    asked: dict[str, Any] = {"missing": missing, "missing_text": missing_text, "decimal": decimal}
    recipe = replace(loaded.recipe or Recipe(), **{key: value for key, value in asked.items() if value is not None})
    frame = read_rows(rows, separator, recipe.missing_text, encoding, recipe.decimal)
    loaded = replace(loaded, recipe=None if recipe.empty else recipe)
    drawing = Drawing(out, with_matrix, seed, keep, unseen, name, yes)  # type: ignore[arg-type]
    drawn = drawing.of(loaded, frame)
    terminal.result({"command": "release", **drawn.document})
    terminal.say(drawn.text)
