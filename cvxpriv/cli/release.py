"""`cvxpriv release`: apply a mechanism to rows."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import click
import pandas as pd

from cvxpriv.cli.options import NAMES, output_options
from cvxpriv.cli.outputs import require_writable
from cvxpriv.cli.preparation import in_options, missing_option, missing_text_option, read_rows, reading_options
from cvxpriv.cli.terminal import Terminal
from cvxpriv.errors import DataError, PrivacyError
from cvxpriv.mechanisms.bundle import contents_of, is_bundle, may_show, write_bundle
from cvxpriv.mechanisms.kept_columns import MOST_GAINED, guesses
from cvxpriv.mechanisms.mechanism import Mechanism
from cvxpriv.mechanisms.release import RELEASED
from cvxpriv.reports.formatting import exact_zero
from cvxpriv.reports.layout import number, paragraph, table
from cvxpriv.reports.spreadsheets import require_table_file, write_table
from cvxpriv.tables.recipe import Recipe

__all__ = ["release"]


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
    missing: str | None,
    missing_text: tuple[str, ...] | None,
) -> None:
    """Draw an output for each row of ROWS.csv by the mechanism in MECHANISM.json.

    The columns that the mechanism reads, and private ones, never come out; any other only if --keep names it. Rows need
    only the columns that it reads. Each call draws anew: release the same rows once.
    """
    _require_own_file(out, mechanism, rows)
    if with_matrix is not None and not is_bundle(out):
        raise DataError(f"--out={out!r} is one table, which holds no matrix: give a folder or a .zip, or leave it out")
    if not is_bundle(out):
        require_table_file(out)
    require_writable(Path(out).absolute().parent)
    loaded = Mechanism.load(mechanism)
    frame = read_rows(rows, separator, missing_text, encoding)
    if missing is not None:
        loaded = replace(loaded, recipe=replace(loaded.recipe or Recipe(), missing=missing))
    try:
        released = loaded.release(frame, seed=seed, keep=keep, unseen=unseen, name=name)  # type: ignore[arg-type]
    except DataError as error:
        raise DataError(in_options(str(error))) from error
    found = _guessed(loaded, frame, keep, yes)
    files = _written(out, loaded, released, with_matrix, name)
    dropped = len(frame) - len(released)
    terminal.result(
        {
            "command": "release",
            "rows": len(frame),
            "released": len(released),
            "dropped": dropped,
            "columns": list(released.columns),
            "outputs": released[name].value_counts().to_dict(),
            "seeded": seed is not None,
            "files": files,
            "guesses": [] if found is None else found.to_dict(orient="records"),
            **({"matrix": _with_matrix(loaded, with_matrix)} if is_bundle(out) else {}),
        }
    )
    terminal.say(f"Released {len(released):,} of {len(frame):,} rows to {out}")
    if is_bundle(out):
        terminal.say(paragraph(f"{', '.join(file.name for file in files)}. {_reason(loaded, with_matrix)}"))
    if dropped:
        terminal.say(
            f"  {dropped:,} rows were dropped: the mechanism does not know their {', '.join(loaded.inputs.columns)}"
        )
    terminal.say(_figures(loaded))
    if found is not None:
        pairs = zip(found["seen"], found["accuracy"], strict=True)
        rows_shown = [[f"from {seen}", f"{right:.1%} right"] for seen, right in pairs]
        terminal.say(f"  Best guess of {', '.join(loaded.private_columns)}, on these rows\n" + table([], rows_shown))
    left = [*loaded.inputs.columns, *(["the private columns"] if loaded.private_columns else [])]
    behind = f"{', '.join(left[:-1])} and {left[-1]}" if len(left) > 1 else left[0]
    terminal.say(
        paragraph(
            f"{behind} stayed behind. The figures speak of one draw a row: a second release of the same rows tells "
            "more." + (f" Nor do they speak of {', '.join(keep)} beside it." if keep else "")
        )
    )


def _guessed(mechanism: Mechanism, frame: pd.DataFrame, keep: tuple[str, ...], yes: bool) -> pd.DataFrame | None:
    """Return how well private columns are guessed with kept ones, and refuse a large gain that is not confirmed."""
    if not keep or mechanism.recipe is not None:
        return None
    found = guesses(mechanism, frame, keep)
    if found is None:
        return None
    worst = found.iloc[int(found["gained"].to_numpy().argmax())]
    if worst["gained"] >= MOST_GAINED and not yes:
        raise PrivacyError(
            f"--keep={','.join(keep)}: {worst['seen']} a guess of {', '.join(mechanism.private_columns)} is right for "
            f"{worst['accuracy']:.1%} of these rows, from Y alone for {found['accuracy'].iloc[1]:.1%}; nothing was "
            "written: leave the column out, or confirm with --yes"
        )
    return found


def _written(out: str, mechanism: Mechanism, released: pd.DataFrame, matrix: bool | None, name: str) -> list[Path]:
    if is_bundle(out):
        return write_bundle(out, contents_of(mechanism, released, matrix, name))
    return [write_table(out, released)]


def _with_matrix(mechanism: Mechanism, asked: bool | None) -> bool:
    return may_show(mechanism) if asked is None else asked


def _reason(mechanism: Mechanism, asked: bool | None) -> str:
    """Return whether P(Y|X) is in the bundle, and why."""
    if not _with_matrix(mechanism, asked):
        return (
            "P(Y|X) stays at home: it tells of the private table. --with-matrix gives it away all the same; a "
            "mechanism designed with --table-epsilon brings it along by itself."
        )
    if may_show(mechanism):
        return "P(Y|X) is in it: the mechanism may be published."
    return "P(Y|X) is in it, and tells of the private table: hand it on only where that table may be known."


def _require_own_file(out: str, *inputs: str) -> None:
    for given in inputs:
        if os.path.exists(out) and os.path.exists(given) and os.path.samefile(out, given):
            raise DataError(f"--out={out!r} is the file {given!r} that is read: choose another name")


def _figures(mechanism: Mechanism) -> str:
    """Return the mechanism's figures; a leakage that is a divergence has a name in place of a unit."""
    divergence = mechanism.origin.get("divergence")
    known = {
        "leakage": ("leakage  I(S;Y)", "nats") if divergence is None else ("leakage  E[d]", f"{divergence}"),
        "utility": ("utility  I(X;Y)", "nats"),
        "accuracy": ("accuracy I(S;U)", "nats"),
    }
    rows = [
        [text, number(exact_zero(mechanism.figures[figure])), unit]
        for figure, (text, unit) in known.items()
        if figure in mechanism.figures
    ]
    return table([], rows)
