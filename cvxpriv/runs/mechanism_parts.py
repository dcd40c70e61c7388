"""Parts of the facts of a mechanism that a model chooses from: figures, sections, files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cvxpriv.mechanisms.disclosure import Disclosure
from cvxpriv.mechanisms.plots import plot_mechanism
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.later import pd
from cvxpriv.reports.facts import Fact, Picture, Section, Table
from cvxpriv.reports.files import write_text
from cvxpriv.reports.formatting import exact_zero, format_number
from cvxpriv.reports.heatmaps import heatmap_of
from cvxpriv.reports.pictures import plot_history
from cvxpriv.runs.mechanism_run import MechanismRun
from cvxpriv.runs.sides import Sides
from cvxpriv.tables.joint import JointTable

MOST_CELLS = 10_000
"""Number of cells of a mechanism above which a page shows it as a picture."""
SHOWN_POINTS = 10
"""Number of points of a longer curve that a terminal shows."""
Run = MechanismRun[Any, Any]


def share(value: float, whole: float, name: str, more: str = "") -> str:
    """Return a value as a percentage of a whole that has a name.

    >>> share(0.5, 2.0, "H(X)", ", all there is")
    '25% of H(X) = 2.000 nats, all there is'
    """
    return f"{100 * value / whole:.3g}% of {name} = {format_number(whole)} nats{more}" if whole > 0 else f"{name} = 0"


def interval(disclosure: Disclosure | None, measure: str) -> dict[str, Any]:
    """Return the interval of a measure as a fact has it; nothing where there is none."""
    ends = None if disclosure is None else disclosure.interval(measure)
    if disclosure is None or ends is None:
        return {}
    low, high = map(exact_zero, ends)
    return {"interval": (low, high), "level": disclosure.level}


def residual(run: Run) -> Fact:
    """Return the KKT residual, which should be small, and whether it is."""
    state = "converged" if run.converged else "NOT converged"
    detail = f"{state}; {format_number(run.tol, 1)} asked for"
    sentence = "Distance of the mechanism from the optimality conditions, which hold at a residual of 0."
    return Fact("kkt", run.residual, "nats", sentence, "KKT residual", detail, digits=2, main=True)


def effort(run: Run) -> list[Fact]:
    """Return the number of the best start, and the effort of all starts."""
    count = len(run.starts)
    origin = str(run.starts["origin"].iloc[run.start])
    return [
        Fact(
            "start", run.start, "", "The start that led to the best mechanism.", "best start", f"of {count}: {origin}"
        ),
        Fact("iterations", run.iterations, "", "Passes of the best start.", "passes"),
        Fact("seconds", run.seconds, "s", "Wall time of all starts together."),
    ]


def guess(disclosure: Disclosure | None, sides: Sides) -> list[Fact]:
    """Return an adversary's chance of guessing S; None where no disclosure was computed."""
    if disclosure is None:
        return []
    nothing, y, x = (disclosure.value(f"accuracy_{name}") for name in ("nothing", "y", "x"))
    s, public, output = sides.private.symbol, sides.public.symbol, sides.output
    return [
        Fact(
            "accuracy_of_guess",
            y,
            "right",
            f"Chance that somebody who knows the table and sees {output} names {s} right.",
            f"Best guess of {s} from {output}",
            f"{nothing:.1%} from nothing, {x:.1%} from {public}",
            percent=True,
            main=True,
            **interval(disclosure, "accuracy_y"),
        )
    ]


def best_of(run: Run) -> str:
    """Return the number of starts in words."""
    count = len(run.starts)
    return f"the best of {count} starts" if count > 1 else "the only start"


def starts_section(
    run: Run, by: Mapping[str, bool], history: pd.DataFrame, caption: str, hidden: Sequence[str] = ()
) -> Section:
    """Return the best starts, sorted by columns of their table (ascending or not), and the history as a picture."""
    starts = (
        run.starts.drop(columns=list(hidden))
        .reset_index()
        .sort_values(list(by), ascending=list(by.values()), ignore_index=True)
    )
    best = starts.head(10).rename(columns={"kkt": "KKT residual", "iterations": "passes"})
    shown = f"The best {len(best)} of {len(starts)} starts." if len(best) < len(starts) else "All starts."
    pictures = []
    measured = {name for name in history.columns if history[name].notna().any()}
    figure = next((name for name in ("kkt", "gap") if name in measured), None)
    if "objective" in measured and figure is not None:
        alt = f"Objective and {'KKT residual' if figure == 'kkt' else figure} by pass, one line for each start."
        pictures.append(Picture(partial(plot_history, history, residual=figure, best=run.start), alt))
    return Section("How it was found", pictures=pictures, tables=[Table(best, f"{shown} {caption}")])


def heatmap(
    mechanism: Array, table: JointTable, sides: Sides, caption: str, outputs: Sequence[str] = ()
) -> dict[str, Any]:
    """Return a mechanism as the part of a section: a shaded table, or a picture where that would be too long."""
    symbols = (sides.public.symbol, sides.output)
    shaded = heatmap_of(mechanism, table.public.labels, ", ".join(table.public.columns), outputs, symbols, caption)
    if shaded.values.size <= MOST_CELLS:
        return {"heatmaps": [shaded]}
    alt = f"Heatmap of P({symbols[1]}|{symbols[0]}): {len(mechanism)} symbols of {symbols[0]} down, outputs across."
    draw = partial(plot_mechanism, mechanism, table.public, tuple(outputs), symbols=symbols)
    return {"pictures": [Picture(draw, alt, f"{caption} mechanism.json holds the numbers.", wide=True)]}


def brief_curve(title: str, curve: pd.DataFrame, columns: Mapping[str, str]) -> Section:
    """Return a curve as a terminal shows it: at most `SHOWN_POINTS` rows, evenly spaced, including its ends."""
    count = len(curve)
    rows = curve.iloc[np.unique(np.linspace(0, count - 1, min(count, SHOWN_POINTS)).round().astype(int))]
    frame = pd.DataFrame({heading: rows[name].map(exact_zero) for name, heading in columns.items()})
    frame["KKT"] = rows["kkt"]
    if unconverged(rows):
        frame["converged"] = rows["converged"].astype(bool).map({True: "", False: "no"})
    left = f" ({len(rows)} of {count} points; all in curve.csv)" if len(rows) < count else ""
    return Section(f"{title}{left}", tables=[Table(frame, digits={"KKT": 1})])


def unconverged(curve: pd.DataFrame) -> int:
    """Return the number of points of a curve whose residual is above the tolerance."""
    return int((~curve["converged"].astype(bool)).sum())


def proof_files(save: Callable[[Path], Path], programs: Mapping[str, Path]) -> dict[str, Callable[[Path], Path]]:
    """Return the certificate, and copies of the programs that check it, by the names of their files."""

    def copied(program: Path, path: Path) -> Path:
        return write_text(path, program.read_text(encoding="utf-8"))

    return {"certificate.json": save, **{name: partial(copied, program) for name, program in programs.items()}}
