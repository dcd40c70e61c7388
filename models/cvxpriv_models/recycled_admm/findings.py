"""What a command says of a consensus on the terminal."""

from __future__ import annotations

import textwrap

import numpy as np
import pandas as pd

from cvxpriv.cli.fits.text import WIDTH, crosscheck_part, heading, privacy_part, scores_part, statements_part
from cvxpriv.privacy import gaussian_epsilon
from cvxpriv.reports.layout import number, residual, table

from .fit_data import ConsensusFit
from .methods import RECYCLING
from .private_run import PrivateConsensusRun
from .run import ConsensusRun

__all__ = ["findings", "noisy", "statements", "worst_nodes"]

#: Nodes whose accounting is told, the worst first.
SHOWN = 6
SEEDED = "the noise can be drawn again by whoever knows --noise-seed: the guarantee holds only while it is secret"


def findings(fit: ConsensusFit) -> str:
    """Return the whole text: rows, graph, scores, solution or accounting, cross-check, promise."""
    encoding = fit.rows.encoding
    lines = [
        ["columns", f"{len(encoding.columns)}, encoded as {len(encoding.features)}"],
        ["graph", fit.drawn],
        ["rows a node", _counts(fit)],
        ["method", f"{fit.run.settings.algorithm}, eta {number(fit.eta)}, C {number(fit.C)}, reg {number(fit.reg)}"],
    ]
    parts = [
        heading(fit, lines),
        *scores_part(fit),
        *_solution(fit),
        *_released(fit),
        *privacy_part(fit),
        *_nodes(fit),
        *crosscheck_part(fit),
        statements_part(fit),
    ]
    return "\n\n".join(parts)


def statements(fit: ConsensusFit) -> tuple[str, ...]:
    """Return what is guaranteed and what is not."""
    if isinstance(fit.run, ConsensusRun):
        return (
            "what the nodes send each other in each pass, and every coefficient, tell of their rows; --epsilon gives "
            "a guarantee",
        )
    found = fit.run.accounting
    pure = f"{found.epsilon:.4g}" if found.delta == 0.0 else f"({found.epsilon:.4g}, {found.delta:.1g})"
    return (
        f"what the nodes publish in all passes, and all that follows from it, each node's coefficients too, is {pure}-"
        f"differentially private: {found.neighbours}",
        "a node sees its own rows; against all others, the other nodes together, its records are protected",
        "a person with records at several nodes is protected by the sum of what these nodes guarantee",
        "the options count as public: to choose them by scores of these rows, or to fit again, costs more",
        *(() if found.secure else (SEEDED,)),
        *fit.about_bounds,
    )


def worst_nodes(run: PrivateConsensusRun) -> tuple[pd.DataFrame, str]:
    """Return what each node spent, the worst first, in words that people read; and what the columns are."""
    losses, recycles = run.privacy_loss, run.settings.algorithm in RECYCLING
    if gaussian := "mu" in losses:
        delta = run.accounting.delta
        spent = [gaussian_epsilon(delta, mu) for mu in losses["mu"]]
        usual = [gaussian_epsilon(delta, float(np.sqrt(2.0)) * mu) for mu in losses["mu"]]
        losses = losses.assign(tight=spent, conventional=usual, printed=np.nan)
    order = losses.sort_values("tight", ascending=False, kind="stable")
    frame = pd.DataFrame({"node": order.index.map(str), "rows": order["rows"].astype(int), "epsilon": order["tight"]})
    words = "epsilon: of all passes, " + (f"at delta = {delta:g}." if gaussian else "the tight bound; delta is 0.")
    if order["printed"].notna().all():
        frame["paper's (32)"] = order["printed"]
    if recycles:
        frame["ADMM"] = order["conventional"]
        words += " ADMM: what the conventional one spends in as many iterations with the same noise."
    return frame.reset_index(drop=True), words


def _counts(fit: ConsensusFit) -> str:
    counts = sorted(fit.counts.values())
    return f"{counts[0]:,}" if counts[0] == counts[-1] else f"{counts[0]:,} to {counts[-1]:,}"


def _solution(fit: ConsensusFit) -> list[str]:
    run = fit.run
    if not isinstance(run, ConsensusRun):
        return []
    verdict = "" if run.converged else "  NOT CONVERGED"
    effort = f"asked for {residual(run.settings.tol)}; {run.iterations} passes, {number(run.seconds, 3)} s{verdict}"
    rows = [
        ["KKT residual", residual(run.kkt.largest), effort],
        ["consensus", residual(run.consensus), "largest distance of a node from the mean"],
    ]
    best = fit.optimality
    if best is not None:
        rows += [
            ["optimality", residual(best.relative), "largest relative distance of a node from the optimum"],
            ["objective", number(run.objective), f"of the mean: above the optimum by {residual(best.excess)}"],
        ]
    return [f"Solution\n{table([], rows, 'lrl')}"]


def _released(fit: ConsensusFit) -> list[str]:
    if isinstance(fit.run, ConsensusRun):
        return []
    rows = [
        ["passes", str(fit.rounds), f"noise in the {noisy(fit.run)} of each node"],
        ["consensus", residual(fit.run.consensus), "largest distance of a node from the mean, as published"],
    ]
    return [f"Released\n{table([], rows, 'lrl')}"]


def noisy(run: PrivateConsensusRun) -> str:
    """Return where the noise of a run is."""
    return "objective" if run.settings.perturbation == "objective" else "minimiser"


def _nodes(fit: ConsensusFit) -> list[str]:
    if isinstance(fit.run, ConsensusRun):
        return []
    frame, words = worst_nodes(fit.run)
    body = [
        [str(row.pop("node")), f"{row.pop('rows'):,}", *(number(value) for value in row.values())]
        for row in frame.head(SHOWN).to_dict("records")
    ]
    title = "Privacy of each node" if len(frame) <= SHOWN else f"Privacy of the {SHOWN} worst of {len(frame)} nodes"
    head = [str(column) for column in frame.columns]
    lines = textwrap.indent(textwrap.fill(words, WIDTH - 2), "  ")
    return [f"{title}\n{table(head, body, 'l' + 'r' * (len(head) - 1))}\n{lines}"]
