"""What the RADMM scripts have in common: Adult over a random network, and pictures with ranges.

The paper's case: 45,222 complete rows of Adult, 105 columns, norms at most 1; 40,000 rows over N nodes, the others for
the test; the logistic loss, C = 1750, rho = .22. Its networks are random and not given: an Erdos-Renyi graph, each edge
with probability 1/2, the first seed that is connected.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cvxpriv.models import RecycledADMM
from cvxpriv.numerics.arrays import Array
from cvxpriv.reports.pictures import COLOURS, blank
from cvxpriv.tables.datasets import load_adult_nodes

C, RHO, GAMMA = 1750.0, 0.22, 0.5

Line = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class Case:
    """A model on Adult, and rows to test it on."""

    model: RecycledADMM
    x_test: Array
    y_test: Array

    def error(self, classifier: Array) -> float:
        """The paper's E: how many test rows are classified wrongly."""
        return float(np.mean(np.where(self.x_test @ classifier > 0.0, 1.0, -1.0) != self.y_test))

    def excess(self, parameters: Array) -> float:
        """L of the nodes' parameters, (N, d), less that of the centralised optimum."""
        problem = self.model.problem
        best = np.broadcast_to(problem.optimum, parameters.shape)
        return float(problem.node_losses(parameters).mean() - problem.node_losses(best).mean())


def adult(nodes: int = 5, reg: float = RHO, fast: bool = False) -> Case:
    """Return the case with N nodes; the fast one has a tenth of the rows, and C to match."""
    train = 4_000 if fast else 40_000
    data = load_adult_nodes(nodes, train)
    model = RecycledADMM(network(nodes), data.shards, reg=reg, C=C * train / 40_000)
    return Case(model, data.x_test, data.y_test)


def network(nodes: int) -> nx.Graph:
    """Return a connected random graph, each edge with probability 1/2."""
    graphs = (nx.gnp_random_graph(nodes, 0.5, seed=seed) for seed in range(100))
    return next(graph for graph in graphs if nx.is_connected(graph))


def arguments(description: str | None) -> Namespace:
    """Read --fast and --out."""
    parser = ArgumentParser(description=description, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--fast", action="store_true", help="a tenth of the rows, and 2 runs in place of 10")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the pictures")
    return parser.parse_args()


def panels(titles: Sequence[str], width: float = 10.0, height: float = 3.8) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels side by side; call it under `cvxpriv.reports.pictures.styled`."""
    figure = blank(width, height)
    axes = list(np.ravel(figure.subplots(1, len(titles))))
    for panel, title in zip(axes, titles, strict=True):
        panel.set_title(title)
    return figure, axes


def ranged(axes: Axes, x: Array, runs: Mapping[str, Array]) -> None:
    """Draw the mean of several runs, (runs, points), and a band from the least to the largest."""
    for colour, (name, values) in zip(COLOURS, runs.items(), strict=False):
        at = x[-values.shape[1] :] if x.size >= values.shape[1] else np.arange(1, values.shape[1] + 1)
        axes.plot(at, values.mean(axis=0), color=colour, label=name)
        axes.fill_between(at, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.18, linewidth=0)


def legend_below(figure: Figure, axes: Axes, columns: int = 5) -> None:
    """Put the legend of one panel under all of them."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(columns, len(labels)))
