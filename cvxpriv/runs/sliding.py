"""The curve of a run as a reader walks along it: each point with its figures, its guess, and its mechanism."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cvxpriv.mechanisms.plots import Axis
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.packages import pd
from cvxpriv.reports.facts import Section, Table
from cvxpriv.reports.formatting import exact_zero, format_number, heatmap_of
from cvxpriv.reports.page import SHARED_DIGITS, rounded
from cvxpriv.reports.sliders import Slider, Stop
from cvxpriv.runs.sides import Sides
from cvxpriv.tables.information import bayes_accuracy
from cvxpriv.tables.joint import JointTable

MOST_CELLS = 60_000
"""Number of cells of all heatmaps together above which a page shows the mechanism at no point but its own."""


def guesses_along(table: JointTable, mechanisms: Sequence[Array]) -> list[float]:
    """Return the best chance to name S right from the output of each mechanism."""
    return [float(bayes_accuracy(table.probabilities @ mechanism)) for mechanism in mechanisms]


def slider_of(
    curve: pd.DataFrame,
    mechanisms: Sequence[Array],
    table: JointTable,
    sides: Sides,
    *,
    label: str,
    named: Callable[[Any], str],
    axes: tuple[Axis, Axis],
    chosen: tuple[float, float],
    level: tuple[str, float] | None = None,
    lower: str = "",
) -> Slider | None:
    """Return the curve as a slider; None where there are fewer than two points, or one is not finite."""
    across, up = axes
    if len(curve) < 2 or not np.isfinite(curve[[across.column, up.column]].to_numpy(float)).all():
        return None
    known = len(mechanisms) == len(curve)
    guesses = guesses_along(table, mechanisms) if known else []
    drawn = known and sum(matrix.size for matrix in mechanisms) <= MOST_CELLS
    corner = ", ".join(table.public.columns)
    symbols, held = (sides.public.symbol, sides.output), bool(lower) and curve[lower].notna().all()
    stops = []
    for place, (_, row) in enumerate(curve.iterrows()):
        columns = {across.column: across.label, up.column: up.label}
        shown = [(name, format_number(exact_zero(float(row[column])))) for column, name in columns.items()]
        if held:
            shown.append(("certified: nothing below", format_number(exact_zero(float(row[lower])))))
        if known:
            shown.append((f"best guess of {sides.private.symbol} from {sides.output}", f"{guesses[place]:.1%}"))
        heat = heatmap_of(mechanisms[place], table.public.labels, corner, symbols=symbols) if drawn else None
        low = float(row[lower]) if held else None
        stops.append(Stop(named(row), float(row[across.column]), float(row[up.column]), low, shown, heat))
    apart = [abs(stop.across - chosen[0]) + abs(stop.up - chosen[1]) for stop in stops]
    nearest = max(place for place, one in enumerate(apart) if one == min(apart))  # the rate that others are served by
    alt = (
        f"{up.label} against {across.label} at {len(stops)} points; the ring is the mechanism of this page. "
        "All numbers stand in the table below."
    )
    return Slider(label, across.label, up.label, stops, alt, level, chosen, nearest)


def shared_curve(title: str, slider: Slider | None) -> Section | None:
    """Return the curve for others: each number with two digits, and no mechanism."""
    if slider is None:
        return None
    stops = [_shared(stop) for stop in slider.stops]
    names = [name for name, _ in stops[0].shown]
    rows = [[stop.name, *(value for _, value in stop.shown)] for stop in stops]
    level = None if slider.level is None else (slider.level[0], rounded(slider.level[1]))
    chosen = None if slider.chosen is None else (rounded(slider.chosen[0]), rounded(slider.chosen[1]))
    table = Table(pd.DataFrame(rows, columns=[slider.label.lower(), *names]), "Two digits of each number.")
    return Section(title, tables=[table], slider=replace(slider, stops=stops, level=level, chosen=chosen))


def _shared(stop: Stop) -> Stop:
    shown = [(name, _cut(text)) for name, text in stop.shown]
    low = None if stop.low is None else rounded(stop.low)
    name = re.sub(r"\d+\.\d+(e-?\d+)?", lambda found: _cut(found.group()), stop.name)
    return Stop(name, rounded(stop.across), rounded(stop.up), low, shown)


def _cut(text: str) -> str:
    """Return a number, or a percentage, with two digits."""
    if text.endswith("%"):
        return f"{float(text[:-1]):.0f}%"
    return format_number(rounded(float(text.replace(",", ""))), SHARED_DIGITS)
