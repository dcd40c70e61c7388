"""Rows, nodes, a consensus, and everything that a command shows of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cvxpriv.cli.fits.finish import worked
from cvxpriv.cli.fits.fit import Model, scored
from cvxpriv.cli.interrupts import Interrupt
from cvxpriv.cli.rows import Rows
from cvxpriv.cli.terminal import Terminal
from cvxpriv.errors import DataError, ModelError, NotConverged
from cvxpriv.numerics.arrays import Array
from cvxpriv.reports.facts import Facts

from .findings import findings, statements
from .fit_data import ConsensusFit, linear_of
from .fit_options import ConsensusOptions
from .model import RecycledADMM
from .node_rows import Placement, Spelling, place
from .page import page
from .placed import posed
from .private_run import PrivateConsensusRun
from .run import ConsensusRun

__all__ = ["ConsensusStudy", "study"]


@dataclass
class ConsensusStudy(ConsensusFit):
    """A fit, and all that the command shows of it."""

    @property
    def statements(self) -> tuple[str, ...]:
        """See `Fit`."""
        return statements(self)

    def text(self) -> str:
        """See `Fit`."""
        return findings(self)

    def report(self) -> Facts:
        """See `Fit`."""
        return page(self)


def study(terminal: Terminal, rows: Rows, options: ConsensusOptions, certify: bool) -> ConsensusStudy:
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

    def begin(interrupt: Interrupt) -> ConsensusStudy:
        run = _fitted(terminal, model, rows, options, interrupt)
        name = f"consensus of {len(run.labels)} nodes"
        mean = scored(name, linear_of(run.mean, options.intercept), rows, options.loss == "logistic")
        return ConsensusStudy(
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
