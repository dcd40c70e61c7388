"""Graphs, and the rows of each node, from a user's spelling."""

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt

from cvxpriv.errors import DataError, ModelError, suggest
from cvxpriv.learning.matrices import with_column
from cvxpriv.numerics.arguments import require_counts
from cvxpriv.numerics.arrays import Array
from cvxpriv.tables.frames import in_order, read_table, symbol

from .graph import Network

_NAMED: Mapping[str, Callable[[int], nx.Graph]] = {
    "complete": nx.complete_graph,
    "ring": nx.cycle_graph,
    "path": nx.path_graph,
    "star": lambda nodes: nx.star_graph(nodes - 1),
}
RANDOM = "random"
#: Number of nodes where nothing says it.
NODES = 5
#: Seeds that are tried for a random graph that is connected.
TRIES = 1000
_COUNT, _CHANCE = re.compile(r"[0-9]+"), re.compile(r"0?\.[0-9]+|1\.0*")


@dataclass(frozen=True)
class Spelling:
    """A graph by name: `ring`, `star:8`, `random:5:0.5`.

    `nodes`: None: it follows from something else. `chance`: Chance of an edge between two nodes of a random graph.
    """

    kind: str
    nodes: int | None = None
    chance: float = 1.0

    def __str__(self) -> str:
        return f"{self.kind}, an edge with chance {self.chance:g}" if self.kind == RANDOM else self.kind

    def graph(self, nodes: int, seed: int = 0) -> nx.Graph:
        """Return the graph on nodes 0, 1, ...; a random one by the first seed from `seed` on that connects it."""
        if nodes < 2:
            raise ModelError(f"nodes={nodes}: a consensus needs two or more")
        if self.kind != RANDOM:
            return _NAMED[self.kind](nodes)
        for tried in range(seed, seed + TRIES):
            graph = nx.gnp_random_graph(nodes, self.chance, seed=tried)
            if nx.is_connected(graph):
                return graph
        raise ModelError(
            f"none of {TRIES} random graphs of {nodes} nodes with an edge at chance {self.chance:g} is connected: "
            "raise the chance"
        )


@dataclass(frozen=True, eq=False)
class Placement:
    """A graph, and the rows of each of its nodes.

    `parts`: The positions of each node's rows, in the order of the nodes.
    """

    graph: nx.Graph
    parts: tuple[npt.NDArray[np.intp], ...]

    def shards(self, rows: Any, labels: Array, intercept: bool) -> list[tuple[Any, Array]]:
        """Return each node's rows and labels, with a last column of ones where an intercept is wanted.

        `rows`: (n, d). `labels`: (n,). `intercept`: R takes its coefficient for one like any other.
        """
        design = with_column(rows) if intercept else rows
        return [(design[part], labels[part]) for part in self.parts]


def spelled(text: str) -> Spelling:
    """Return what a spelling of a graph says.

    >>> spelled("ring"), spelled("random:5:0.5"), spelled("random:0.5").nodes
    (Spelling(kind='ring', nodes=None, chance=1.0), Spelling(kind='random', nodes=5, chance=0.5), None)
    """
    kind, *rest = text.split(":")
    if kind not in (*_NAMED, RANDOM):
        raise ModelError(f"graph={text!r} is no graph: {suggest(kind, (*_NAMED, RANDOM))}; or a file of edges")
    example = "random:5:0.5 or random:0.5" if kind == RANDOM else f"{kind}:5 or {kind}"
    wrong = ModelError(f"graph={text!r} is no spelling of a {kind} graph: give {example}")
    chance = 1.0
    if kind == RANDOM:
        if not rest or not _CHANCE.fullmatch(rest[-1]) or not float(rest[-1]) > 0.0:
            raise wrong
        chance = float(rest.pop())
    if len(rest) > 1 or not all(_COUNT.fullmatch(part) for part in rest):
        raise wrong
    return Spelling(kind, int(rest[0]) if rest else None, chance)


def graph_named(graph: str) -> nx.Graph | Spelling:
    """Return a graph: of a file of edges, or as it is spelled."""
    if Path(graph).is_file() or Path(graph).suffix in (".csv", ".tsv"):
        return graph_of_file(graph)
    return spelled(graph)


def graph_of_file(path: str) -> nx.Graph:
    """Return the graph of a CSV or TSV file with one edge a line, below a header line of two names."""
    table = read_table(path, missing=("",), decimal="none")
    name = Path(path).name
    if len(table.columns) != 2:
        raise DataError(f"{name} has {len(table.columns)} columns: a file of edges has two, one end of an edge in each")
    lacks = table.isna().any(axis=1)
    if lacks.any():
        raise DataError(
            f"{name} lacks an end of the edge in line {int(np.argmax(lacks)) + 2}: fill it, or drop the line"
        )
    ends = [[symbol(value) for value in table[column]] for column in table.columns]
    first = [symbol(column) for column in table.columns]
    if not ends[0]:
        raise DataError(f"{name} holds no edge below its header: one edge a line")
    if {*ends[0], *ends[1]} & set(first) or all(_COUNT.fullmatch(cell) for cell in first):
        raise DataError(
            f"{name} begins with the edge {first[0]},{first[1]}: put a header line above it, such as from,to"
        )
    return nx.Graph(zip(*ends, strict=True))


def place(
    graph: nx.Graph | Spelling,
    rows: int,
    nodes: int | None = None,
    owners: Sequence[Hashable] | None = None,
    seed: int = 0,
) -> Placement:
    """Give every node its rows.

    `nodes`: Number of nodes. It has to agree with a graph, or a spelling, that says so itself; None is `NODES` where
    nothing does.
    `owners`, (rows,): The node of each row, by label; a spelled graph gets these labels, in order. None: rows are dealt
    at random, in parts that differ by one row at most.
    `seed`: Seed of the dealing, and of a random graph.
    """
    require_counts(nodes=nodes)
    labels = None if owners is None else _in_order(owners)
    own = graph.nodes if isinstance(graph, Spelling) else graph.number_of_nodes()
    held = len(labels) if labels is not None and isinstance(graph, Spelling) else None
    said = {"graph": own, "nodes": nodes, "the nodes that rows name": held}
    counts = {name: count for name, count in said.items() if count is not None}
    if len(set(counts.values())) > 1:
        differ = ", ".join(f"{name}: {count}" for name, count in counts.items())
        raise DataError(f"how many nodes there are differs ({differ}): give it once, or the same number")
    number = next(iter(counts.values()), NODES)
    if number > rows:
        raise DataError(f"{number} nodes share {rows} rows: take fewer nodes, every one needs a row")
    if isinstance(graph, Spelling):
        graph = graph.graph(number, seed)
        if labels is not None:
            graph = nx.relabel_nodes(graph, dict(enumerate(labels)))
    if owners is None or labels is None:
        order = np.random.default_rng(seed).permutation(rows)
        return Placement(graph, tuple(np.sort(part) for part in np.array_split(order, number)))
    return Placement(graph, _owned(graph, owners, labels))


def _owned(graph: nx.Graph, owners: Sequence[Hashable], labels: Sequence[Hashable]) -> tuple[npt.NDArray[np.intp], ...]:
    known = list(graph.nodes)
    if strange := [label for label in labels if label not in graph]:
        raise DataError(
            f"a row belongs to {strange[0]!r}, which is no node of the graph: {suggest(str(strange[0]), known)}"
        )
    held: dict[Any, list[int]] = {label: [] for label in known}
    for row, owner in enumerate(owners):
        held[owner].append(row)
    if bare := [label for label, own in held.items() if not own]:
        raise DataError(f"node {bare[0]!r} has no rows: take it out of the graph, or give it rows to learn from")
    return tuple(np.array(own, dtype=np.intp) for own in held.values())


def _in_order(owners: Sequence[Hashable]) -> list[Hashable]:
    """The distinct owners: texts as a reader would sort them, anything else by value or else by text."""
    distinct = set(owners)
    if all(isinstance(owner, str) for owner in distinct):
        return list(in_order(map(str, distinct)))
    try:
        return sorted(distinct)  # type: ignore[type-var]
    except TypeError:
        return sorted(distinct, key=str)


def network_of(graph: Any, names: tuple[str, ...]) -> Network:
    """Return the network in the order of the carrier's names."""
    known = graph_named(graph) if isinstance(graph, str) else graph
    if isinstance(known, Spelling):
        if known.nodes not in (None, len(names)):
            raise ModelError(f"graph={graph!r} has {known.nodes} nodes, and {len(names)} are named")
        known = known.graph(len(names))
    network = Network.of(known)
    labels = tuple(map(str, network.labels))
    if labels == tuple(map(str, range(len(names)))):  # a matrix, or numbered nodes
        return Network(names, network.adjacency)
    if set(labels) != set(names) or len(labels) != len(names):
        stray = [one for one in (*labels, *names) if (one in labels) != (one in names)]
        raise DataError(
            f"the nodes and the graph differ in {', '.join(stray[:5]) or 'their number'}: name the same ones"
        )
    order = [labels.index(name) for name in names]
    return Network(names, network.adjacency[np.ix_(order, order)])
