"""What a command says of a sparse fit on the terminal."""

from __future__ import annotations

import numpy as np

from cvxpriv.cli.fits.text import crosscheck_part, heading, privacy_part, scores_part, solved_row, statements_part
from cvxpriv.reports.layout import number, table

from .fit_data import SparseFitted
from .run import SparseRun

__all__ = ["findings", "statements"]

#: How many of the largest coefficients are told.
SHOWN = 10


def findings(fit: SparseFitted) -> str:
    """Return the whole text: rows, scores, coefficients, solution or accounting, cross-check, promise."""
    encoding = fit.rows.encoding
    lines = [
        ["columns", f"{len(encoding.columns)}, encoded as {len(encoding.features)}"],
        ["penalty", fit.named_penalty],
    ]
    parts = [
        heading(fit, lines),
        *scores_part(fit),
        _coefficients(fit),
        *_solution(fit),
        *privacy_part(fit),
        *crosscheck_part(fit),
        statements_part(fit),
    ]
    return "\n\n".join(parts)


def statements(fit: SparseFitted) -> tuple[str, ...]:
    """Return what is guaranteed and what is not."""
    if isinstance(fit.run, SparseRun):
        return ("coefficients, and which of them are 0, tell of the rows; --epsilon gives a guarantee",)
    found = fit.run.accounting
    if any(claim.holds for claim in found.claims):
        promise = (
            f"the coefficients, and all that follows from them, are ({found.epsilon:.4g}, {found.delta:.1g})-"
            f"differentially private: {found.neighbours}"
        )
    else:
        promise = "the algorithm as printed reads clean data in its step and its line search: it guarantees nothing"
    public = (
        "the penalty and the other options count as public: to choose them by scores of these rows, or to fit again, "
        "costs more"
    )
    return (promise, public, *(() if found.secure else (SEEDED,)), *fit.about_bounds)


SEEDED = "the noise can be drawn again by whoever knows --noise-seed: the guarantee holds only while it is secret"


def _coefficients(fit: SparseFitted) -> str:
    frame, support = fit.coefficients, fit.run.support
    values, features = frame["coefficient"].to_numpy(), fit.rows.encoding.features
    largest = support[np.argsort(-np.abs(values[support]))][:SHOWN]
    body = [[features[place], number(float(values[place]))] for place in largest]
    left = len(support) - len(body)
    more = f"; the {SHOWN} largest" if left else ""
    title = f"Coefficients: {len(support)} of {len(features)} are not 0{more}"
    return f"{title}\n{table([], body, 'lr')}" if body else f"{title}: a smaller weight of the penalty keeps some"


def _solution(fit: SparseFitted) -> list[str]:
    if not isinstance(fit.run, SparseRun):
        return []
    rows = [
        solved_row(fit),
        ["objective", f"{fit.run.objective:.6f}", "mean loss and penalty; another start may end elsewhere"],
    ]
    return [f"Solution\n{table([], rows, 'lrl')}"]
