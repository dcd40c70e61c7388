"""Pictures: the privacy-utility plane, and a mechanism as a heatmap.

They need matplotlib, which comes with ``pip install "cvxpriv[report]"``; importing this module does not. Each line has
its own marker beside its colour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.errors import DataError, ModelError, shown
from cvxpriv.numerics.arguments import finite_double, real_numbers
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import pd
from cvxpriv.reports.formatting import USED, given_outputs
from cvxpriv.reports.pictures import COLOURS, GREY, MARKERS, blank, require_drawn, styled
from cvxpriv.tables.alphabets import Alphabet
from cvxpriv.tables.arrays import stochastic_matrix

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LABELLED = 40
"""Largest number of rows or columns of a heatmap that carry labels."""
ANNOTATED = 320
"""Largest number of cells of a heatmap that carry their value."""


@dataclass(frozen=True)
class Axis:
    """One axis of a privacy-utility plane: the column of a curve's frame, and what stands beside the axis."""

    column: str
    label: str


INFORMATION_PLANE = (Axis("utility", "utility I(X;Y) in nats"), Axis("leakage", "leakage I(S;Y) in nats"))
"""The columns that are drawn of a frame that names no axes."""


def with_axes(frame: pd.DataFrame, across: Axis, up: Axis) -> pd.DataFrame:
    """Note in a curve's frame what `plot_curve` draws across and up; returns the frame.

    >>> axes_of(with_axes(pd.DataFrame(), Axis("leakage", "E[f]"), Axis("accuracy", "I(S;U)")))[1].label
    'I(S;U)'
    """
    frame.attrs["axes"] = [[axis.column, axis.label] for axis in (across, up)]
    return frame


def axes_of(frame: pd.DataFrame) -> tuple[Axis, Axis]:
    """Return what a curve's frame measures: across, and up."""
    noted = frame.attrs.get("axes")
    if noted is None:
        return INFORMATION_PLANE
    across, up = noted
    return Axis(*across), Axis(*up)


@styled
@door
def plot_curve(
    curves: pd.DataFrame | Mapping[str, pd.DataFrame],
    *,
    entropy_x: float | None = None,
    information: float | None = None,
    bound: pd.DataFrame | None = None,
    lower: str | None = None,
    chosen: tuple[float, float] | None = None,
    title: str = "",
) -> Figure:
    """Draw the privacy-utility curves of a model: utility across, leakage up.

    A model's `curve` says which two columns these are, and how they are called (`axes_of`). A frame of your own has the
    columns ``utility`` and ``leakage``, I(X;Y) and I(S;Y) in nats.

    Parameters
    ----------
    curves : DataFrame, or mapping of a name to a DataFrame
        The points of each curve, in any order.
    entropy_x : float, optional
        H(X), drawn as a dotted line, with a second axis that shows the fraction of it.
    information : float, optional
        I(S;X), the leakage when X itself is released, drawn as a dotted line.
    bound : DataFrame, optional
        Points of a lower bound, drawn as a dashed line from the origin.
    lower : str, optional
        The column of a certified lower bound at each ``rate``. The band between it and the leakage is filled.
    chosen : pair of floats, optional
        Utility and leakage of one mechanism to highlight.
    title : str

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    DataError
        No curve, an empty one, one that lacks a column, or curves of different models.
    ModelError
        matplotlib is missing.
    """
    named = dict(curves) if isinstance(curves, Mapping) else {"": curves}
    if not named:
        raise DataError("curves={} holds no curve: give a data frame, or a mapping of names to data frames")
    for name, number in (("entropy_x", entropy_x), ("information", information)):
        if number is not None and np.isnan(finite_double(number)):
            raise DataError(f"{name}={shown(number)} is not a finite number: leave it out where it is not known")
    if chosen is not None:
        place = real_numbers(chosen, "chosen", ModelError)
        if place.shape != (2,) or not np.isfinite(place).all():
            raise DataError(f"chosen={shown(chosen)} is no point: give utility and leakage")
    across, up = _shared_axes(named)
    utility, leakage = across.column, up.column
    figure = blank(7.2, 4.6)
    axes = figure.add_subplot()
    for i, (name, frame) in enumerate(named.items()):
        x, y = _points(frame, utility, leakage, f"curves[{name!r}]" if name else "curves")
        marker, colour = MARKERS[i % len(MARKERS)], COLOURS[i % len(COLOURS)]
        # The first curve is the one in question: on top, where others follow the same line.
        axes.plot(x, y, marker=marker, color=colour, label=name or None, zorder=3 + (i == 0), clip_on=False)
        if lower is not None and {lower, "rate"} <= set(frame.columns):
            held = frame.dropna(subset=[lower, "rate"]).sort_values("rate")
            rate, low = held["rate"], held[lower]
            axes.fill_between(rate, low, held[leakage], color=colour, alpha=0.25, linewidth=0, label="certified band")
            axes.plot(rate, low, color=colour, linestyle="--", linewidth=1.0, label="no mechanism leaks less")
    if bound is not None:
        x, y = _points(bound, utility, leakage, "bound")
        axes.plot([0, *x], [0, *y], linestyle="--", color=GREY, linewidth=1.4, label="lower bound", zorder=2)
    if chosen is not None:
        ring: dict[str, Any] = {"markersize": 14, "markerfacecolor": "none", "markeredgecolor": "black"}
        axes.plot(*chosen, marker="o", linestyle="none", label="chosen mechanism", zorder=6, clip_on=False, **ring)
    axes.set_xlabel(across.label)
    axes.set_ylabel(up.label)
    _references(axes, entropy_x, information)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper left", bbox_to_anchor=(0, 0.9 if information is not None else 1.0))
    if title:
        axes.set_title(title, pad=10)
    return figure


def _shared_axes(named: Mapping[str, pd.DataFrame]) -> tuple[Axis, Axis]:
    pairs = {name: axes_of(frame) for name, frame in named.items()}
    first, *others = dict.fromkeys(pairs.values())
    if others:
        raise DataError(
            f"curves={sorted(named)} measure different things ({first[1].label}; {others[0][1].label}): "
            f"draw each in a picture of its own"
        )
    return first


def _references(axes: Axes, entropy_x: float | None, information: float | None) -> None:
    axes.set_xlim(0, axes.get_xlim()[1] if entropy_x is None else entropy_x * 1.04)
    axes.set_ylim(0, axes.get_ylim()[1] if information is None else max(axes.get_ylim()[1], information * 1.12))
    dotted: dict[str, Any] = {"linestyle": ":", "color": GREY, "linewidth": 1.2, "zorder": 1}
    text: dict[str, Any] = {"color": GREY, "fontsize": 9, "textcoords": "offset points"}
    if information is not None:
        axes.axhline(information, **dotted)
        axes.annotate(f"I(S;X) = {information:.4g}", (0, information), xytext=(6, 4), **text)
    if entropy_x is not None:
        axes.axvline(entropy_x, **dotted)
        axes.annotate(f"H(X) = {entropy_x:.4g}", (entropy_x, 0), xytext=(-5, 6), ha="right", **text)
        scale = entropy_x
        top = axes.secondary_xaxis("top", functions=(lambda x: np.asarray(x) / scale, lambda x: np.asarray(x) * scale))
        top.set_xlabel("fraction of H(X)")
        top.set_xticks(np.linspace(0, 1, 6))


@styled
@door
def plot_mechanism(
    matrix: ArrayLike,
    inputs: Alphabet,
    outputs: Sequence[str] = (),
    title: str = "",
    symbols: tuple[str, str] = ("X", "Y"),
    ax: Axes | None = None,
) -> Figure:
    """Draw a mechanism P(Y|X) as a heatmap: one row per public symbol, one column per output.

    Outputs that are hardly ever given (below `USED` for every input) are left out, and the picture says so. The
    others stand in the order of the inputs they come from, so that what is merged is seen as a column.

    Parameters
    ----------
    matrix : array, ``(|X|, |Y|)``
    inputs : Alphabet
    outputs : sequence of str
        The labels of the columns. By default ``y0, y1, ...``.
    title : str
    symbols : pair of str
        Names of an input and of an output.
    ax : matplotlib Axes, optional
        The axes to draw on. By default a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    DataError
        Not a row-stochastic matrix, or alphabets of another size.
    ModelError
        matplotlib is missing.
    """
    p = stochastic_matrix(matrix, "matrix")
    given, output = symbols
    labels = [str(one) for one in outputs] or [f"{output.lower()}{j}" for j in range(p.shape[1])]
    if p.shape != (len(inputs), len(labels)):
        raise DataError(f"matrix has shape {p.shape}, its alphabets {(len(inputs), len(labels))}: give one label each")
    shown = given_outputs(p)
    values, labels = p[:, shown], [labels[j] for j in shown]
    rows, columns = values.shape
    if ax is not None and not hasattr(ax, "get_figure"):
        raise ModelError(f"ax is a {type(ax).__name__} and no axes: pass those of matplotlib, or leave ax out")
    axes = blank(min(9.0, 3.4 + 0.42 * columns), min(9.0, 1.7 + 0.3 * rows)).add_subplot() if ax is None else ax
    figure = axes.get_figure(root=True)
    assert figure is not None
    picture = axes.imshow(values, cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    _name_axes(axes, inputs, labels)
    if values.size <= ANNOTATED:
        _annotate(axes, values)
    axes.spines[:].set_visible(False)
    hidden = p.shape[1] - columns
    left_out = f" (of {p.shape[1]}, {hidden} with P({output}|{given}) < {USED:g} left out)" if hidden else ""
    axes.set_xlabel(f"output {output}{left_out}")
    axes.set_ylabel(", ".join(inputs.columns), labelpad=8)
    bar = figure.colorbar(picture, ax=axes, fraction=0.05, pad=0.02, aspect=40, label=f"P({output}|{given})")
    bar.outline.set_visible(False)
    if title:
        axes.set_title(title)
    return figure


def _name_axes(axes: Axes, inputs: Alphabet, outputs: Sequence[str]) -> None:
    axes.tick_params(length=0)
    rows, columns = range(len(inputs)), range(len(outputs))
    row_step, column_step = (-(-len(names) // LABELLED) for names in (inputs, outputs))
    axes.set_yticks(rows[::row_step], [_short(inputs.label(i)) for i in rows[::row_step]])
    turn = 90 if max(map(len, outputs)) > 3 or len(outputs) > 24 else 0
    axes.set_xticks(columns[::column_step], [_short(outputs[j]) for j in columns[::column_step]], rotation=turn)
    if max(len(inputs), len(outputs)) <= LABELLED:
        axes.set_yticks(np.arange(1, len(inputs)) - 0.5, minor=True)
        axes.set_xticks(np.arange(1, len(outputs)) - 0.5, minor=True)
        axes.grid(which="minor", color="white", linewidth=1.2)
        axes.tick_params(which="minor", length=0)
    for axis, count in ((axes.yaxis, len(inputs)), (axes.xaxis, len(outputs))):
        axis.set_tick_params(labelsize=9 if count <= 24 else 7)


def _short(text: str) -> str:
    return text if len(text) <= 32 else text[:31] + "…"


def _annotate(axes: Axes, values: np.ndarray[Any, np.dtype[np.float64]]) -> None:
    for (i, j), value in np.ndenumerate(values):
        if value >= 0.005:
            colour = "white" if value > 0.55 else "#222222"
            text = "1" if value >= 0.995 else f"{value:.2f}".lstrip("0")
            axes.text(j, i, text, ha="center", va="center", color=colour, fontsize=8)


def _points(frame: pd.DataFrame, x: str, y: str, argument: str) -> tuple[list[float], list[float]]:
    require_drawn(frame, [x, y], argument)
    points = frame[[x, y]].astype(float).dropna().sort_values([x, y])
    if points.empty:
        raise DataError(f"{argument} has no point with both {x!r} and {y!r}: leave the curve out, or compute it")
    return points[x].tolist(), points[y].tolist()
