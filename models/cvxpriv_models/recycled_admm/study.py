"""Rows, nodes, a consensus, and everything that a command shows of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cvxpriv.cli.fits.finish import worked
from cvxpriv.cli.fits.fit import Fit, Model, scored
from cvxpriv.cli.interrupts import Interrupt
from cvxpriv.cli.rows import Rows
from cvxpriv.cli.terminal import Terminal
from cvxpriv.errors import DataError, ModelError, NotConverged
from cvxpriv.learning.linear import LinearFit
from cvxpriv.numerics.arrays import Array

from .fit_options import ConsensusOptions
from .model import RecycledADMM
from .node_rows import Placement, Spelling, place
from .placed import posed
from .private_run import PrivateConsensusRun
from .run import ConsensusRun, Optimality

if TYPE_CHECKING:
    from cvxpriv.reports.facts import Facts

__all__ = ["ConsensusFit", "study"]


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

    @property
    def statements(self) -> tuple[str, ...]:
        """See `Fit`."""
        from .findings import statements

        return statements(self)

    def text(self) -> str:
        """See `Fit`."""
        from .findings import findings

        return findings(self)

    def report(self) -> Facts:
        """See `Fit`."""
        from .page import page

        return page(self)

    def raise_if_not_converged(self) -> None:
        """See `Fit`."""
        if isinstance(self.run, ConsensusRun) and not self.run.converged:
            raise NotConverged(
                f"the KKT residual is {self.run.kkt.largest:.1e} after {self.run.iterations} passes, above "
                f"tol={self.run.settings.tol:g}: raise --max-iter, try another --eta, or allow a larger --tol"
            )


def study(terminal: Terminal, rows: Rows, options: ConsensusOptions, certify: bool) -> ConsensusFit:
    """Fit, then, where it is not private, nodes alone and all rows in one place; and cross-check.

    Raises
    ------
    ModelError, PrivacyError, DataError
        From the model.
    KeyboardInterrupt
        Before there was any fit.
    """
    network = options.network()
    kind = str(network) if isinstance(network, Spelling) else Path(options.graph).name
    placement = place(network, rows.y.size, options.nodes, _owners(rows, options), rows.seed)
    model = _posed(placement, rows, options)

    def begin(interrupt: Interrupt) -> ConsensusFit:
        run = _fitted(terminal, model, rows, options, interrupt)
        name = f"consensus of {len(run.labels)} nodes"
        mean = scored(name, linear_of(run.mean, options.intercept), rows, options.loss == "logistic")
        return ConsensusFit(
            rows,
            run,
            mean,
            options.private,
            placement=placement,
            kind=kind,
            C=model.problem.C,
            reg=run.settings.reg if isinstance(run, PrivateConsensusRun) else model.problem.reg,
            eta=run.settings.eta[0],
            options=options,
        )

    # A private run has no block that released values alone pose: its convex step reads the rows.
    return worked(terminal, begin, None if options.private else _compare, certify and not options.private)


def linear_of(parameters: Array, intercept: bool) -> LinearFit:
    """Return a node's parameters, (d,), as a linear model; the intercept stands last."""
    return LinearFit(parameters[:-1], float(parameters[-1])) if intercept else LinearFit(parameters)


def _owners(rows: Rows, options: ConsensusOptions) -> tuple[str, ...] | None:
    if options.node_column is None:
        return None
    missing = sum(owner == "" for owner in rows.beside)
    if missing:
        raise DataError(
            f"--node-column: {missing:,} rows have no value in {options.node_column!r}, and belong to no node: fill "
            "them, or drop these rows from the file"
        )
    return rows.beside


def _posed(placement: Placement, rows: Rows, options: ConsensusOptions) -> RecycledADMM:
    try:
        return posed(
            placement,
            rows.x,
            rows.y,
            loss=options.loss,
            reg=options.reg,
            C=options.weight,
            intercept=options.intercept,
        )
    except ModelError as error:
        message = str(error)
        raise ModelError(f"--weight {message}" if message.startswith("C=") else message) from error


def _fitted(
    terminal: Terminal,
    model: RecycledADMM,
    rows: Rows,
    options: ConsensusOptions,
    interrupt: Interrupt,
) -> ConsensusRun | PrivateConsensusRun:
    named: dict[str, Any] = {name: getattr(options, name) for name in ("method", "max_iter", "eta", "growth", "gamma")}
    with terminal.iterations("fitting", options.max_iter, "kkt") as moved:

        def watch(loop: str, iteration: int, figures: Mapping[str, Array]) -> bool:
            moved(loop, iteration, figures)
            return interrupt.pressed

        if not options.private:
            return model.solve(**named, tol=options.tol, callback=watch)
        return model.solve_private(
            **named,
            alpha=options.alpha,
            epsilon=options.epsilon,
            delta=options.delta,
            perturbation=options.perturbation,
            row_bound=float(np.hypot(rows.encoding.row_bound(), float(options.intercept))),
            noise_seed=options.noise_seed,
            callback=watch,
        )


def _compare(fit: ConsensusFit) -> None:
    """Measure against the optimum over all rows in one place, and fit each node's rows alone, by the same model."""
    assert isinstance(fit.run, ConsensusRun)
    assert fit.run.problem is not None
    problem, log_odds = fit.run.problem, fit.options.loss == "logistic"

    def model(name: str, parameters: Array) -> Model:
        return scored(name, linear_of(parameters, fit.options.intercept), fit.rows, log_odds)

    try:
        fit.optimality = fit.run.optimality
        together = model("all rows in one place", problem.optimum)
        alone = [model("", problem.of_node(node).optimum) for node in range(problem.nodes)]
    except NotConverged:  # reg = 0 and rows that a plane parts: there is no optimum
        return
    fit.compared.append(together)
    scores = [one.scores.accuracy for one in alone if one.scores is not None]
    if scores:
        middle = int(np.argsort(scores)[len(scores) // 2])
        name = f"node {fit.run.labels[middle]} alone (the median one)"
        fit.compared.append(Model(name, alone[middle].linear, alone[middle].margin, alone[middle].scores))
