"""The HTML page of a sparse fit."""

from __future__ import annotations

from cvxpriv.cli.fits.sections import (
    coefficients_section,
    crosscheck_section,
    encoding_section,
    headlines,
    history_section,
    privacy_section,
    promise_section,
    scores_section,
    settings_section,
    summary,
)
from cvxpriv.reports.facts import Fact, Facts, Section

from .fit_data import SparseFitted

__all__ = ["page"]


def page(fit: SparseFitted) -> Facts:
    """Return the page; that of a private fit shows nothing that was not released, but scores of other people's rows.

    Raises
    ------
    ModelError
        matplotlib is missing.
    """
    parts = (
        promise_section,
        scores_section,
        _coefficients,
        privacy_section,
        encoding_section,
        _crosscheck,
        history_section,
        _settings,
    )
    size, features = fit.run.support.size, len(fit.rows.encoding.features)
    kept = Fact(
        "Coefficients that are not 0", f"{size} of {features}", detail=f"penalty {fit.named_penalty}", main=True
    )
    return Facts(
        title=f"Sparse {'private ' if fit.private else ''}learning: {fit.rows.title}",
        summary=summary(fit, f"A linear model with {size} of {features} coefficients"),
        facts=[*headlines(fit), kept],
        sections=[section for part in parts if (section := part(fit)) is not None],
    )


def _coefficients(fit: SparseFitted) -> Section:
    what = "the log odds" if fit.options.loss == "logistic" else "the prediction"
    text = f"What a column adds to {what} where it goes from the lower end of its range to the upper one."
    return coefficients_section(fit, text)


def _crosscheck(fit: SparseFitted) -> Section | None:
    which = (
        "The last proximal problem, which reads released values alone,"
        if fit.private
        else ("The proximal problem at the answer")
    )
    return crosscheck_section(
        fit,
        f"{which} was solved again by each solver and by its exact step. A verdict rests on residuals computed from "
        "the problem itself, not on what a solver says of its answer.",
    )


def _settings(fit: SparseFitted) -> Section:
    options = fit.options
    return settings_section(fit, {"loss": options.loss, "penalty": fit.named_penalty, "intercept": options.intercept})
