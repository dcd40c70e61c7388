"""Pictures of a linear classifier: its operating characteristic, and its largest coefficients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.later import pd
from cvxpriv.reports.pictures import COLOURS, GREY, blank, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Number of coefficients that the picture shows.
SHOWN = 25
#: Number of points of a curve that are drawn; more of them cannot be told apart.
POINTS = 400


@styled
def plot_operating_characteristic(margins: Mapping[str, Array], labels: Array) -> Figure:
    """Draw the share of class 1 found against the share of class -1 mistaken for it, one line per model.

    `margins`, (n,): The predictions of each model, by its name and the area under its curve.
    `labels`, (n,): Labels of -1 and 1.
    """
    figure = blank(5.6, 4.6)
    axes = figure.add_subplot()
    for index, (name, margin) in enumerate(margins.items()):
        false, true = _curve(labels, margin)
        axes.plot(false, true, color=COLOURS[index % len(COLOURS)], label=name, zorder=3 + (index == 0))
    axes.plot([0, 1], [0, 1], linestyle=":", color=GREY, linewidth=1.2, label="a guess, 0.500")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.005)
    axes.set_xlabel("share of the other class taken for it")
    axes.set_ylabel("share of the predicted class found")
    axes.legend(loc="lower right", title="area under the curve", fontsize=9, title_fontsize=9)
    return figure


@styled
def plot_coefficients(coefficients: pd.DataFrame) -> Figure:
    """Draw the largest coefficients as bars, those of one party in one colour.

    `coefficients`: Columns feature, coefficient, and party, a text, if there are several parties.
    """
    from matplotlib.patches import Patch

    order = np.argsort(-np.abs(coefficients["coefficient"].to_numpy()))[:SHOWN]
    shown = coefficients.iloc[order]
    parties = list(dict.fromkeys(coefficients["party"])) if "party" in coefficients else [""]
    colours = {party: COLOURS[index % len(COLOURS)] for index, party in enumerate(parties)}
    figure = blank(7.2, 1.0 + 0.24 * len(shown))
    axes = figure.add_subplot()
    places = np.arange(len(shown))
    owners = shown["party"] if "party" in shown else [""] * len(shown)
    axes.barh(places, shown["coefficient"], color=[colours[owner] for owner in owners], height=0.7)
    axes.axvline(0.0, color=GREY, linewidth=0.8)
    axes.set_yticks(places, [text if len(text) <= 40 else text[:39] + "…" for text in shown["feature"]], fontsize=9)
    axes.invert_yaxis()
    axes.set_xlabel("coefficient, in log odds")
    if len(parties) > 1:
        axes.legend(handles=[Patch(color=colours[party], label=party) for party in parties], loc="best", fontsize=9)
    return figure


def _curve(labels: Array, margin: Array) -> tuple[Array, Array]:
    """Return false and true positive rates from the strictest threshold to the laxest; ties are one step."""
    order = np.argsort(-margin, kind="stable")
    positive = labels[order] > 0.0
    last = np.append(np.diff(margin[order]) != 0.0, True)
    true, false = (np.append(0.0, np.cumsum(which)[last]) for which in (positive, ~positive))
    keep = np.unique(np.linspace(0, true.size - 1, min(true.size, POINTS)).round().astype(int))
    return false[keep] / max(false[-1], 1.0), true[keep] / max(true[-1], 1.0)
