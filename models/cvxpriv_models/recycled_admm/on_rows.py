"""A consensus on the rows of a table, dealt to the nodes of a graph, as `cvxpriv consensus` fits it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import networkx as nx
import numpy as np

from cvxpriv.errors import DataError, NotConverged, PrivacyError
from cvxpriv.learning.fit import Columns, Fit, Scored
from cvxpriv.learning.labels import LinearFit
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.packages import pd
from cvxpriv.numerics.sizes import counted
from cvxpriv.privacy import Plan
from cvxpriv.reports.facts import Fact, Picture, Section, Table
from cvxpriv.reports.formatting import format_number
from cvxpriv.reports.pictures import COLOURS, GREY, PAGE, blank, styled
from cvxpriv.runs.options import Option

from .graph import Network
from .node_rows import Placement, Spelling, graph_named, place
from .options import RECYCLING
from .private import planned
from .run import Optimality
from .spending import worst_nodes

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
    figure = blank(PAGE, 4.2)
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
    figure = blank(PAGE, 3.0)
    axes = figure.add_subplot()
    axes.plot(history["iteration"], history["spread"], marker="o", color=COLOURS[0])
    axes.set_ylim(0.0, 1.08 * max(float(history["spread"].max()), 1e-12))
    axes.set_xlabel("pass")
    axes.set_ylabel("all nodes' distance from the mean")
    axes.locator_params(axis="x", integer=True)
    return figure


def _short(text: str) -> str:
    return text if len(text) <= 18 else text[:17] + "…"


#: Nodes whose accounting a terminal shows, the worst first.
SHOWN = 6


@dataclass(kw_only=True, eq=False)
class ConsensusOnRows(Fit):
    """A consensus over a graph; the coefficients of every node of a private one are released.

    `optimality`: The distance from the optimum, without privacy and where there is a unique one.
    """

    budgets: ClassVar[tuple[str, ...]] = ("epsilon", "alpha")
    usual: ClassVar[Mapping[str, str]] = {"delta": "none, a pure epsilon"}
    title: ClassVar[str] = "Consensus over a graph"
    coefficients_text: ClassVar[str] = (
        f"The mean over nodes. {Fit.coefficients_text} Each node's own are in coefficients.csv."
    )

    columns: Columns = None
    nodes: Annotated[int | None, Option("Number of nodes.", usual="what --graph or --node-column say, or 5")] = None
    graph: Annotated[
        str,
        Option(
            "complete, ring, path, star, each with :N or without; random[:N]:CHANCE of an edge; or a CSV file with one "
            "edge a line.",
            metavar="GRAPH",
        ),
    ] = "complete"
    node_column: Annotated[
        str | None,
        Option(
            "Rows with the same value belong to the node of that name.",
            usual="dealt at random, by --seed",
            metavar="COLUMN",
        ),
    ] = None
    placement: Placement = field(init=False)
    optimality: Optimality | None = field(default=None, init=False)

    @classmethod
    def reads(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """See `Fit`: a graph or a budget that is none is refused before any row is read."""
        if given["epsilon"] is not None and given["alpha"] is not None:
            raise PrivacyError("--epsilon and --alpha are two budgets: give the total, or the rate of the noise")
        if given["delta"] is not None and given["epsilon"] is None:
            raise PrivacyError(f"--delta={given['delta']:g} goes with --epsilon: give both, or neither")
        network = graph_named(given["graph"])
        if isinstance(network, nx.Graph):
            Network.of(network)
        return {"columns": given["columns"], "beside": given["node_column"]}

    @classmethod
    def plan(cls, options: Mapping[str, Any], adjacency: str) -> Plan:
        return planned(options.get("epsilon"), options.get("delta"), options.get("perturbation"))

    def pose(self, kind: Any, options: Mapping[str, Any]) -> None:
        rows = self.rows
        self.placement = place(graph_named(self.graph), rows.y.size, self.nodes, self._owners(), rows.seed)
        shards = self.placement.shards(rows.x, rows.y, self.intercept)
        self.model = kind(self.placement.graph, shards, **options, schema=rows.known)

    def public_numbers(self) -> dict[str, Any]:
        return {"row_bound": float(np.hypot(self.rows.encoding.row_bound(), float(self.intercept)))}

    def linear(self, run: Any) -> LinearFit:
        """See `Fit`: the mean over nodes."""
        return self._linear(run.mean)

    @property
    def name(self) -> str:
        return f"consensus of {counted(len(self.run.labels), 'node')}"

    def compared(self, kind: Any, options: Mapping[str, Any]) -> list[Scored]:
        """See `Fit`: all rows in one place, and each node's rows alone, by the same model."""
        problem = self.model.problem
        try:
            self.optimality = self.run.optimality
            together = self.score("all rows in one place", self._linear(problem.optimum))
            alone = [self._linear(problem.of_node(node).optimum) for node in range(problem.nodes)]
        except NotConverged:  # reg = 0 and rows that a plane parts: there is no optimum
            return []
        if together.scores is None:
            return [together]
        scored = [
            self.score(f"node {self.run.labels[node]} alone (the median one)", one) for node, one in enumerate(alone)
        ]
        order = np.argsort([one.scores.accuracy for one in scored if one.scores is not None])
        return [together, scored[int(order[len(order) // 2])]]

    @property
    def summary(self) -> str:
        return f"A linear model of {counted(len(self.run.labels), 'node')}, each with its own rows,"

    @property
    def layout(self) -> list[Fact]:
        problem, settings = self.model.problem, self.run.settings
        counts = sorted(self._counts.values())
        few, many = counts[0], counts[-1]
        reg = settings.reg if self.private else problem.reg
        return [
            Fact("graph", self._drawn),
            Fact("rows_a_node", f"{few:,}" if few == many else f"{few:,} to {many:,}"),
            Fact("method", settings.method),
            Fact("eta_at_first", settings.eta[0], label="eta, at first"),
            Fact("growth", self.solving.get("growth", 1.0), "", "Of eta in each pass.", aside=True),
            Fact("C", problem.C, "", "The weight of a node's mean loss."),
            Fact("reg", reg, "", "The weight of the penalty."),
            Fact("loss", problem.loss.name, aside=True),
            Fact("penalty", problem.penalty.name, aside=True),
        ]

    def layout_sections(self) -> list[Section]:
        noise = " with noise" if self.private else ""
        text = f"{self._drawn}. In each pass a node sends its neighbours one coefficient a column{noise}, and no row."
        if self.run.settings.method in RECYCLING:
            text += " Half of a pass follows from what was sent before, and uses no row."
        text += (
            " Rows were dealt to the nodes at random."
            if self.node_column is None
            else f" Rows belong to the node that their column {self.node_column} names."
        )
        draw = partial(plot_graph, self.placement.graph, self._counts)
        picture = Picture(draw, f"The graph: {self._drawn}.", "Edges join neighbours.")
        return [Section("The graph", text, pictures=[picture])]

    @property
    def released(self) -> str:
        passes = self.run.accounting.releases
        return f"In each of {passes} passes every node publishes one vector, with noise in its {self.run.noisy}."

    def own_facts(self) -> list[Fact]:
        """See `Fit`: how far a consensus is from the optimum of all rows in one place."""
        best = self.optimality
        if best is None:
            return []
        far, above = "largest relative distance of a node from the optimum", "of the mean, above the optimum"
        row = format_number(best.excess / self.rows.y.size, 2)
        by_newton = "The optimum is that of the same objective with all rows in one place, by Newton's method."
        return [
            Fact("distance", best.relative, "", by_newton, "optimality", far, digits=2),
            Fact("excess", best.excess, "", by_newton, "excess", f"{above}; {row} a row", digits=2),
        ]

    def own_sections(self) -> list[Section]:
        """See `Fit`: the spending of each node of a private consensus, and the nodes' distance from one another."""
        if not self.private:
            return []
        run = self.run
        frame, words = worst_nodes(run.privacy_loss, run.accounting.delta, run.settings.method in RECYCLING)
        title = "Privacy of each node" if len(frame) <= SHOWN else f"Privacy of the {SHOWN} worst of {len(frame)} nodes"
        brief = Section(title, tables=[Table(frame.head(SHOWN))], notes=[words])
        picture = Picture(partial(plot_spread, run.history), "Distance of the nodes from their mean by pass.")
        return [
            Section("Privacy of each node", tables=[Table(frame, f"The worst first. {words}")], brief=brief),
            Section("Pass by pass", "How far the nodes are from their mean, as published.", pictures=[picture]),
        ]

    def own_tables(self) -> dict[str, pd.DataFrame]:
        edges = [(str(one), str(other)) for one, other in self.placement.graph.edges]
        found = {
            "nodes": pd.DataFrame({"node": list(self._counts), "rows": list(self._counts.values())}),
            "edges": pd.DataFrame(edges, columns=["from", "to"]),
        }
        return {**found, "privacy_loss": self.run.privacy_loss.reset_index()} if self.private else found

    @property
    def crosschecked(self) -> str:
        return "The step of some nodes, drawn at random, at the answer,"

    @property
    def coefficients(self) -> pd.DataFrame:
        """One row an encoded column, and the intercept last: feature, coefficient (the nodes' mean), each node's."""
        table = super().coefficients
        for label, own in zip(self.run.labels, self.run.parameters, strict=True):
            linear = self._linear(own)
            table[f"node {label}"] = [*(linear.coefficients / self.rows.encoding.divisor), linear.intercept]
        return table

    @property
    def _drawn(self) -> str:
        graph, network = self.placement.graph, graph_named(self.graph)
        kind = str(network) if isinstance(network, Spelling) else Path(self.graph).name
        return f"{counted(graph.number_of_nodes(), 'node')}, {counted(graph.number_of_edges(), 'edge')} ({kind})"

    @property
    def _counts(self) -> dict[str, int]:
        """The rows of each node, which are public."""
        return {str(label): part.size for label, part in zip(self.placement.graph, self.placement.parts, strict=True)}

    def _linear(self, parameters: Array) -> LinearFit:
        """Return a node's parameters, (d,), as a linear model; an intercept stands last."""
        return LinearFit(parameters[:-1], float(parameters[-1])) if self.intercept else LinearFit(parameters)

    def _owners(self) -> tuple[str, ...] | None:
        if self.node_column is None:
            return None
        if "" in self.rows.beside:
            raise DataError(
                f"--node-column: some rows have no value in {self.node_column!r}, and belong to no node: fill them, or "
                "drop these rows from the file"
            )
        return self.rows.beside
