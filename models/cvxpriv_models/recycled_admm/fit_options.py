"""What `cvxpriv consensus` is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import networkx as nx

from cvxpriv.errors import PrivacyError
from cvxpriv.privacy.gaussian import require_budget

from .graph import Network
from .node_rows import Spelling, graph_of_file, spelled
from .public_defaults import Privacy

__all__ = ["ConsensusOptions"]


@dataclass(frozen=True)
class ConsensusOptions:
    """What `RecycledADMM`, its `solve` and its `solve_private` are asked for; `weight` is C, the other names theirs."""

    nodes: int | None = None
    graph: str = "complete"
    node_column: str | None = None
    method: str | None = None
    eta: float | None = None
    growth: float = 1.0
    gamma: float = 0.5
    max_iter: int | None = None
    tol: float = 1e-7
    reg: float | None = None
    weight: float | None = None
    loss: str = "logistic"
    intercept: bool = True
    epsilon: float | None = None
    delta: float | None = None
    alpha: float | None = None
    perturbation: str | None = None
    noise_seed: int | None = None

    @property
    def private(self) -> bool:
        """Whether a guarantee is asked for."""
        return self.privacy.private

    @property
    def privacy(self) -> Privacy:
        """The guarantee that is asked for."""
        return Privacy(self.epsilon, self.delta, self.alpha, self.perturbation)

    def network(self) -> nx.Graph | Spelling:
        """Return the graph: of a file of edges, or as it is spelled.

        Raises
        ------
        DataError, ModelError
            It is neither.
        """
        if Path(self.graph).is_file() or Path(self.graph).suffix in (".csv", ".tsv"):
            return graph_of_file(self.graph)
        return spelled(self.graph)

    def check(self) -> None:
        """Refuse, before any row is read, a graph or a budget that is none.

        Raises
        ------
        PrivacyError
            epsilon, delta or alpha is out of range, there are two budgets, or a delta without an epsilon.
        DataError, ModelError
            There is no such graph, or that of a file is not connected.
        """
        if self.epsilon is not None and self.alpha is not None:
            raise PrivacyError("--epsilon and --alpha are two budgets: give the total, or the rate of the noise")
        if self.delta is not None and self.epsilon is None:
            raise PrivacyError(f"--delta={self.delta:g} goes with --epsilon: give both, or neither")
        if self.epsilon is not None:
            require_budget(self.epsilon, 0.5 if self.delta is None else self.delta)
        network = self.network()
        if isinstance(network, nx.Graph):
            Network.of(network)
