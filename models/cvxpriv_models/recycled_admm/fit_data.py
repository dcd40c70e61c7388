"""A consensus with the rows it is of."""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd

from cvxpriv.cli.fits.fit import Fit
from cvxpriv.errors import NotConverged
from cvxpriv.learning.linear import LinearFit
from cvxpriv.numerics.arrays import Array

from .fit_options import ConsensusOptions
from .node_rows import Placement
from .private_run import PrivateConsensusRun
from .run import ConsensusRun, Optimality

__all__ = ["ConsensusFit", "linear_of"]


@dataclass
class ConsensusFit(Fit):
    """A consensus over a graph; the coefficients of every node of a private one are released.

    Attributes
    ----------
    placement : Placement
    kind : str
        Of the graph: its spelling, or its file.
    optimality : Optimality, optional
        Without privacy, and where there is a unique optimum.
    C, reg, eta : float
        As they were used.
    options : ConsensusOptions
    """

    run: ConsensusRun | PrivateConsensusRun
    placement: Placement = field(kw_only=True)
    kind: str = field(kw_only=True)
    C: float = field(kw_only=True)
    reg: float = field(kw_only=True)
    eta: float = field(kw_only=True)
    optimality: Optimality | None = None
    options: ConsensusOptions = field(default_factory=ConsensusOptions)

    @property
    def rounds(self) -> int:
        """That ran."""
        return self.run.iterations if isinstance(self.run, ConsensusRun) else len(self.run.released)

    @property
    def drawn(self) -> str:
        """The graph in words."""
        graph = self.placement.graph
        return f"{graph.number_of_nodes()} nodes, {graph.number_of_edges()} edges ({self.kind})"

    @property
    def counts(self) -> dict[str, int]:
        """The rows of each node, which are public."""
        return {str(label): part.size for label, part in zip(self.placement.graph, self.placement.parts, strict=True)}

    def figures(self) -> dict[str, object]:
        """See `Fit`."""
        found: dict[str, object] = {
            "nodes": self.counts,
            "edges": [[str(one), str(other)] for one, other in self.placement.graph.edges],
            "method": self.run.settings.algorithm,
            "C": self.C,
            "reg": self.reg,
            "eta": self.eta,
            "rounds": self.rounds,
            "consensus": self.run.consensus,
        }
        if isinstance(self.run, PrivateConsensusRun):
            return {**found, "privacy_loss": self.run.privacy_loss.reset_index().to_dict("records")}
        best = self.optimality
        return {
            **found,
            "objective": self.run.objective,
            "distance": None if best is None else best.relative,
            "excess": None if best is None else best.excess,
            "kkt": self.run.kkt.largest,
            "converged": self.run.converged,
            "seconds": self.run.seconds,
        }

    @property
    def coefficients(self) -> pd.DataFrame:
        """One row an encoded column, and the intercept last: feature, coefficient (the nodes' mean), each node's."""
        table = super().coefficients
        for label, own in zip(self.run.labels, self.run.parameters, strict=True):
            linear = linear_of(own, self.options.intercept)
            table[f"node {label}"] = [*(linear.coefficients / self.rows.encoding.divisor), linear.intercept]
        return table

    def raise_if_not_converged(self) -> None:
        """See `Fit`."""
        if isinstance(self.run, ConsensusRun) and not self.run.converged:
            raise NotConverged(
                f"the KKT residual is {self.run.kkt.largest:.1e} after {self.run.iterations} passes, above "
                f"tol={self.run.settings.tol:g}: raise --max-iter, try another --eta, or allow a larger --tol"
            )


def linear_of(parameters: Array, intercept: bool) -> LinearFit:
    """Return a node's parameters, (d,), as a linear model; the intercept stands last."""
    return LinearFit(parameters[:-1], float(parameters[-1])) if intercept else LinearFit(parameters)
