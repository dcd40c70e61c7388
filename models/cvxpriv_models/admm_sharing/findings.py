"""What a command says of a sharing fit on the terminal."""

from __future__ import annotations

from cvxpriv.cli.fits.text import (
    crosscheck_part,
    heading,
    privacy_part,
    scores_part,
    solved_row,
    statements_part,
)
from cvxpriv.learning.columns import Category
from cvxpriv.reports.layout import residual, table

from .fit_data import SharingFit
from .run import SharingRun

__all__ = ["findings", "statements"]


def findings(fit: SharingFit) -> str:
    """Return the whole text: rows, parties, scores, solution or accounting, cross-check, promise."""
    widths = [fit.rows.encoding.positions(names).size for names in fit.parties]
    parties = [
        [f"party {m + 1}", f"{', '.join(names)} ({width} encoded column{'s' * (width > 1)})"]
        for m, (names, width) in enumerate(zip(fit.parties, widths, strict=True))
    ]
    parts = [
        heading(fit, parties),
        *scores_part(fit),
        *_solution(fit),
        *privacy_part(fit),
        *crosscheck_part(fit),
        statements_part(fit),
    ]
    return "\n\n".join(parts)


def statements(fit: SharingFit) -> tuple[str, ...]:
    """Return what is guaranteed and what is not."""
    if isinstance(fit.run, SharingRun):
        return (
            "what the parties share in each pass, and every coefficient, tell of their rows; --epsilon gives a "
            "guarantee",
        )
    found = fit.run.accounting
    holds = any(claim.holds for claim in found.claims)
    promise = (
        f"what the parties send each other is ({found.epsilon:.4g}, {found.delta:.1g})-differentially private: "
        f"{found.neighbours}"
    )
    files = (
        "the files coefficients.csv and model.json hold the coefficients of all parties, and scores are theirs, as in "
        "a simulation: give each party its own, and publish none"
        if fit.shows_coefficients
        else "scores are theirs, as in a simulation: publish none; the files hold no coefficients, which --not-private "
        "writes"
    )
    said = [*([promise] if holds else []), *_about_categories(fit), *map(_as_typed, fit.run.warnings), files]
    return (*said, *fit.about_bounds)


def _about_categories(fit: SharingFit) -> list[str]:
    """Return what a column or a cell is where a category of the table has several encoded columns."""
    if fit.options.adjacency not in ("column", "cell") or not any(
        isinstance(column, Category) for column in fit.rows.encoding.columns
    ):
        return []
    return [
        "columns and entries are those of the encoded rows: a category has a column for each value, and another value "
        "changes two entries, which is two neighbours' change"
    ]


def _solution(fit: SharingFit) -> list[str]:
    if not isinstance(fit.run, SharingRun):
        return []
    rows = [solved_row(fit)]
    if fit.run.gap < float("inf"):
        rows.append(["objective", f"{fit.run.objective:.4f}", f"the optimum is below it by at most {_gap(fit)}"])
    return [f"Solution\n{table([], rows, 'lrl')}"]


def _gap(fit: SharingFit) -> str:
    assert isinstance(fit.run, SharingRun)
    return residual(max(fit.run.gap, 0.0))


def _as_typed(message: str) -> str:
    """Return a warning of the model in the command line's words."""
    return message.replace("labels='shared'", "--labels shared").replace("labels='held'", "--labels held")
