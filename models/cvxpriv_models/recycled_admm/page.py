"""The HTML page of a consensus."""

from __future__ import annotations

import pandas as pd

from cvxpriv.cli.fits.sections import (
    coefficients_section,
    crosscheck_section,
    encoding_section,
    headlines,
    history_section,
    promise_section,
    scores_section,
    settings_section,
    summary,
)
from cvxpriv.reports.facts import Fact, Facts, Picture, Section, Table
from cvxpriv.reports.formatting import format_number

from .findings import noisy, worst_nodes
from .fit_data import ConsensusFit
from .methods import RECYCLING
from .pictures import plot_graph, plot_spread
from .run import ConsensusRun

__all__ = ["page"]


def page(fit: ConsensusFit) -> Facts:
    """Return the page; that of a private fit shows nothing that was not released, but scores of other people's rows.

    Raises
    ------
    ModelError
        matplotlib is missing.
    """
    parts = (
        promise_section,
        scores_section,
        _graph,
        _privacy,
        _solution,
        _coefficients,
        encoding_section,
        _crosscheck,
        _history,
        _settings,
    )
    return Facts(
        title=f"{'Private consensus' if fit.private else 'Consensus'} over a graph: {fit.rows.title}",
        summary=summary(fit, f"A linear model of {len(fit.run.labels)} nodes, each with its own rows,"),
        facts=_headlines(fit),
        sections=[section for part in parts if (section := part(fit)) is not None],
    )


def _headlines(fit: ConsensusFit) -> list[Fact]:
    heads = headlines(fit)
    if fit.accounting is None or fit.accounting.delta > 0.0:
        return heads
    epsilon = format_number(fit.accounting.epsilon)
    return [
        *heads[:-1],
        Fact("Privacy: epsilon", epsilon, "pure: delta is 0", detail=f"{fit.rounds} passes", main=True),
    ]


def _graph(fit: ConsensusFit) -> Section:
    graph, noise = fit.placement.graph, " with noise" if fit.private else ""
    picture = Picture(plot_graph(graph, fit.counts), f"The graph: {fit.drawn}.", "Edges join neighbours.")
    text = f"{fit.drawn}. In each pass a node sends its neighbours one coefficient a column{noise}, and no row."
    if fit.run.settings.algorithm in RECYCLING:
        text += " Half of a pass follows from what was sent before, and uses no row."
    if fit.options.node_column is None:
        text += " Rows were dealt to the nodes at random."
    else:
        text += f" Rows belong to the node that their column {fit.options.node_column} names."
    return Section("The graph", text, pictures=[picture])


def _privacy(fit: ConsensusFit) -> Section | None:
    found = fit.accounting
    if found is None or isinstance(fit.run, ConsensusRun):
        return None
    rules = pd.DataFrame(
        {
            "rule": [claim.rule for claim in found.claims],
            "epsilon": [claim.epsilon for claim in found.claims],
            "delta": [claim.delta for claim in found.claims],
            "is a bound": [claim.holds for claim in found.claims],
        }
    )
    nodes, words = worst_nodes(fit.run)
    return Section(
        "Privacy accounting",
        f"In each of {found.releases} passes every node publishes one vector, with noise in its {noisy(fit.run)}. "
        f"Neighbours: {found.neighbours}.",
        tables=[
            Table(rules, "What each rule says of all passes, at the worst node; the least bound is guaranteed."),
            Table(nodes, f"Each node, the worst first. {words}"),
        ],
    )


def _solution(fit: ConsensusFit) -> Section | None:
    run, best = fit.run, fit.optimality
    if not isinstance(run, ConsensusRun):
        return None
    facts = {"largest distance of a node from the mean": run.consensus}
    if best is not None:
        facts |= {
            "largest relative distance of a node from the optimum": best.relative,
            "objective of the mean above the optimum": best.excess,
            "the same, a row": best.excess / fit.rows.y.size,
        }
    frame = pd.DataFrame({"measure": list(facts), "value": list(facts.values())})
    text = "The optimum is that of the same objective with all rows in one place, by Newton's method."
    return Section("Consensus and optimality", text if best is not None else "", tables=[Table(frame)])


def _coefficients(fit: ConsensusFit) -> Section:
    what = "the log odds" if fit.options.loss == "logistic" else "the prediction"
    return coefficients_section(
        fit,
        f"The mean over nodes: what a column adds to {what} where it goes from the lower end of its range to the upper "
        "one. Each node's own are in coefficients.csv.",
    )


def _crosscheck(fit: ConsensusFit) -> Section | None:
    return crosscheck_section(
        fit,
        "The step of some nodes, drawn at random, at the answer, was solved again by each solver and by Newton's "
        "method. A verdict rests on residuals computed from the problem itself, not on what a solver says of its "
        "answer.",
    )


def _history(fit: ConsensusFit) -> Section | None:
    if isinstance(fit.run, ConsensusRun):
        return history_section(fit)
    picture = Picture(plot_spread(fit.run.history), "Distance of the nodes from their mean by pass.")
    return Section("Pass by pass", "How far the nodes are from their mean, as published.", pictures=[picture])


def _settings(fit: ConsensusFit) -> Section:
    options = fit.options
    facts = {"loss": options.loss, "C": fit.C, "reg": fit.reg, "eta, at first": fit.eta, "growth": options.growth}
    return settings_section(fit, {**facts, "intercept": options.intercept, "passes that ran": fit.rounds})
