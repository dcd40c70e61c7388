"""Pictures of a consensus: the graph, and how far its nodes are from one another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import networkx as nx

from cvxpriv.numerics.later import pd
from cvxpriv.reports.pictures import COLOURS, GREY, blank, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Largest number of nodes that carry their number of rows; more cannot be read.
LABELLED = 30
#: White below a label, so that no edge runs through it.
BEHIND = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}


@styled
def plot_graph(graph: nx.Graph, rows: Mapping[str, int]) -> Figure:
    """The nodes and who is whose neighbour; each node with its name and its number of rows.

    `rows`: Number of rows by the nodes' labels as texts.
    """
    figure = blank(5.6, 4.2)
    axes = figure.add_subplot()
    places = nx.kamada_kawai_layout(graph)
    few = graph.number_of_nodes() <= LABELLED
    nx.draw_networkx_edges(graph, places, ax=axes, edge_color="#BBBBBB", width=1.6)
    nx.draw_networkx_nodes(graph, places, ax=axes, node_color=COLOURS[0], node_size=700 if few else 60)
    if few:
        names: dict[Any, str] = {label: _short(str(label)) for label in graph}
        inside = all(len(name) <= 3 for name in names.values())
        text: dict[str, Any] = {"ha": "center", "zorder": 5}
        for label, (x, y) in places.items():
            if inside:
                axes.text(x, y, names[label], va="center", color="white", fontsize=11, **text)
            below = f"{rows[str(label)]:,} rows" if inside else f"{names[label]}\n{rows[str(label)]:,} rows"
            axes.annotate(
                below,
                (x, y),
                xytext=(0, -17),
                textcoords="offset points",
                va="top",
                color=GREY,
                fontsize=8.5,
                bbox=BEHIND,
                **text,
            )
    axes.margins(0.2)
    axes.set_axis_off()
    return figure


@styled
def plot_spread(history: pd.DataFrame) -> Figure:
    """Draw the distance of the nodes' published coefficients from their mean, pass by pass."""
    figure = blank(7.2, 3.0)
    axes = figure.add_subplot()
    axes.plot(history["iteration"], history["spread"], marker="o", color=COLOURS[0])
    axes.set_ylim(0.0, 1.08 * max(float(history["spread"].max()), 1e-12))
    axes.set_xlabel("pass")
    axes.set_ylabel("all nodes' distance from the mean")
    axes.locator_params(axis="x", integer=True)
    return figure


def _short(text: str) -> str:
    return text if len(text) <= 18 else text[:17] + "…"
