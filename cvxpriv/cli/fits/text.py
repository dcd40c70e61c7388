"""Parts of what a command that learns says on the terminal: plain, aligned, readable in 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from cvxpriv.cli.fits.fit import Fit
from cvxpriv.learning.scores import Scores
from cvxpriv.reports.layout import number, residual, table

__all__ = ["crosscheck_part", "heading", "privacy_part", "scores_part", "solved_row", "statements_part"]

WIDTH = 80


def heading(fit: Fit, more: Sequence[Sequence[str]] = ()) -> str:
    """Return the source, its rows, what is predicted, and a model's own lines."""
    rows = fit.rows
    held = f", {rows.test_y.size:,} held out (seed {rows.seed})" if rows.test_y.size else ", none held out"
    dropped = [["left out", f"{rows.dropped:,} rows that lack a number or the label"]] if rows.dropped else []
    lines = [
        ["rows", f"{rows.y.size:,} to learn from{held}"],
        *dropped,
        ["predicted", f"{rows.label}: {rows.classes[1]} against {rows.classes[0]}"],
        *map(list, more),
    ]
    return f"{rows.title}\n{_facts(lines)}"


def scores_part(fit: Fit) -> list[str]:
    """Return the scores of the rows held out, or nothing where there are none."""
    if fit.model.scores is None:
        return []
    body = [[one.name, *_score_cells(one.scores)] for one in fit.models if one.scores is not None]
    title = f"On the {fit.model.scores.rows:,} rows held out"
    return [f"{title}\n{table(['', 'accuracy', 'log loss', 'AUC'], body, 'lrrr')}"]


def solved_row(fit: Fit) -> list[str]:
    """Return how well a fit that is not private solved its problem, as a row of a table."""
    run = fit.run
    verdict = "" if run.converged else "  NOT CONVERGED"
    effort = f"{run.iterations} iterations, {number(run.seconds, 3)} s"
    return ["KKT residual", residual(run.kkt.largest), f"asked for {residual(run.settings.tol)}; {effort}{verdict}"]


def privacy_part(fit: Fit) -> list[str]:
    """Return the accounting, or nothing without privacy."""
    found = fit.accounting
    if found is None:
        return []
    valid = any(claim.holds for claim in found.claims)
    body = [
        [
            claim.rule,
            number(claim.epsilon),
            number(claim.delta, 2),
            "the guarantee" if valid and claim is found.guarantee else ("" if claim.holds else "no bound"),
        ]
        for claim in found.claims
    ]
    return [f"Privacy of {found.releases} releases\n{table(['rule', 'epsilon', 'delta', ''], body, 'lrrl')}"]


def crosscheck_part(fit: Fit) -> list[str]:
    """Return each solver's worst verdict, or nothing where there was no cross-check."""
    if fit.check is None:
        return []
    blocks = fit.check.table["case"].nunique()
    indent = 6 + max(map(len, fit.check.verdicts)) + max(len(one.verdict) for one in fit.check.verdicts.values())
    body = [[solver, one.verdict, _filled(one.reason, indent)] for solver, one in fit.check.verdicts.items()]
    many = f"{blocks} blocks" if blocks > 1 else "The block"
    return [f"{many} of the method, posed to every solver\n{table([], body)}"]


def statements_part(fit: Fit) -> str:
    """Return what is guaranteed and what is not."""
    title = "What is guaranteed, and what is not" if fit.private else "Not private"
    return "\n".join([title, *(f"  - {_filled(one, 4)}" for one in fit.statements)])


def _score_cells(scores: Scores) -> list[str]:
    return [
        f"{scores.accuracy:.1%}",
        "-" if scores.log_loss is None else f"{scores.log_loss:.4f}",
        "-" if scores.auc is None else f"{scores.auc:.4f}",
    ]


def _facts(lines: Sequence[Sequence[str]]) -> str:
    """Return names and texts in two columns, the texts broken into lines."""
    indent = 4 + max(len(name) for name, _ in lines)
    return table([], [[name, _filled(text, indent)] for name, text in lines])


def _filled(text: str, indent: int) -> str:
    """Return a text in lines of at most `WIDTH` columns, where it begins at column `indent`."""
    lines = textwrap.wrap(text, WIDTH - indent, break_on_hyphens=False, break_long_words=False)
    return ("\n" + " " * indent).join(lines)
