"""What is drawn, beside the picture: `save` writes a figure, and its lines as numbers, to two files of one name.

The numbers say what a reader sees: titles, labels, scales, and at most `KEPT` points of each line, in order, five
digits each. `apart` tells how far two such records lie from each other, in shares of an axis's length, so that noise of
rounding in a residual of 1e-16 counts as little as it shows.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from cvxpriv.reports.files import write_text
from cvxpriv.reports.pictures import save_figure

KEPT = 40
#: The most lines without a name that a panel tells of.
NAMELESS = 12


def save(figure: Figure, path: Path) -> Path:
    """Write the picture, and the numbers behind it under the same name with `.json`."""
    write_text(path.with_suffix(".json"), text_of(panels_of(figure)))
    return save_figure(figure, path)


def text_of(panels: list[dict[str, Any]]) -> str:
    """Return panels as JSON, a series a line."""
    heads = [json.dumps({**panel, "series": []}, ensure_ascii=False).removesuffix("]}") for panel in panels]
    series = [",\n  ".join(json.dumps(one, ensure_ascii=False) for one in panel["series"]) for panel in panels]
    return "[\n" + ",\n".join(f"{head}\n  {lines}\n ]}}" for head, lines in zip(heads, series, strict=True)) + "\n]\n"


def panels_of(figure: Figure) -> list[dict[str, Any]]:
    """Return each panel's title, axes and series."""
    figure.canvas.draw()
    return [panel_of(axes) for axes in figure.axes]


def panel_of(axes: Axes) -> dict[str, Any]:
    """Return one panel; a shaded band is a series of its outline."""
    series = [(str(line.get_label()), np.asarray(line.get_xydata(), dtype=float)) for line in axes.lines]
    for band in axes.collections:
        if isinstance(band, PolyCollection):
            series += [("band", np.asarray(path.vertices, dtype=float)) for path in band.get_paths()]
    return {
        "title": axes.get_title() or axes.get_title("left"),
        "x": {"label": axes.get_xlabel(), "scale": axes.get_xscale(), "limits": digits(axes.get_xlim())},
        "y": {"label": axes.get_ylabel(), "scale": axes.get_yscale(), "limits": digits(axes.get_ylim())},
        "series": [series_of(name, points) for name, points in told(series)],
    }


def told(series: list[tuple[str, np.ndarray]]) -> list[tuple[str, np.ndarray]]:
    """Return the series that have names, and of the others those that move most."""
    nameless = [points for name, points in series if name.startswith("_")]
    moving = sorted(nameless, key=lambda points: -float(np.ptp(points[:, 1])) if len(points) else 0.0)[:NAMELESS]
    return [
        (name, points) for name, points in series if not name.startswith("_") or any(points is one for one in moving)
    ]


def series_of(name: str, points: np.ndarray) -> dict[str, Any]:
    """Return a line's name and a few of its points; matplotlib's own names begin with "_"."""
    points = points[np.isfinite(points).all(axis=1)]
    kept = np.unique(np.geomspace(1, max(len(points), 1), KEPT).round().astype(int)) - 1
    points = points[kept[kept < len(points)]]
    return {"name": "" if name.startswith("_") else name, "x": digits(points[:, 0]), "y": digits(points[:, 1])}


def digits(values: Any) -> list[float]:
    """Round to five digits."""
    return [float(f"{value:.5g}") for value in np.asarray(values, dtype=float)]


def words(panels: list[dict[str, Any]]) -> list[str]:
    """Return all that is text, without numbers: what a full run and a fast one have in common."""
    texts = [
        " | ".join([panel["title"], *(panel[axis][key] for axis in "xy" for key in ("label", "scale")), *_names(panel)])
        for panel in panels
    ]
    return sorted({re.sub(r"\d+(\.\d+)?", "#", text) for text in texts})


def apart(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> float:
    """Return the largest distance of a point between two records, as a share of the old axis; inf if they differ."""
    if words(old) != words(new):
        return float("inf")
    if [len(panel["series"]) for panel in old] != [len(panel["series"]) for panel in new]:
        return float("inf")
    worst = 0.0
    for before, after in zip(old, new, strict=True):
        for one, other in zip(before["series"], after["series"], strict=True):
            for axis in "xy":
                places = [_places(side[axis], **before[axis]) for side in (one, other)]
                if places[0].shape != places[1].shape:
                    return float("inf")
                worst = max(worst, float(np.abs(places[0] - places[1]).max(initial=0.0)))
    return worst


def _names(panel: dict[str, Any]) -> list[str]:
    return sorted({one["name"] for one in panel["series"]})


def _places(values: list[float], limits: list[float], scale: str, label: str) -> np.ndarray:
    """Return where values lie on an axis, from 0 to 1; what lies outside of it lies on its end."""
    low, high = sorted(limits)
    at = np.clip(values, low, high)
    if scale == "log":
        at, low, high = np.log(at), np.log(low), np.log(high)
    return np.asarray((at - low) / (high - low))
