"""The HTML page of a sharing fit."""

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
from cvxpriv.reports.facts import Facts, Section

from .fit_data import SharingFit

__all__ = ["page"]


def page(fit: SharingFit) -> Facts:
    """Return the page; that of a private fit shows nothing that was not released, but scores on other people's rows.

    Those are of coefficients that the guarantee does not cover: they tell of the rows of the fit too.

    Raises
    ------
    ModelError
        matplotlib is missing.
    """
    parts = (
        promise_section,
        scores_section,
        _parties,
        privacy_section,
        _coefficients,
        encoding_section,
        _crosscheck,
        history_section,
        _settings,
    )
    many = f"{len(fit.parties)} parties" if len(fit.parties) > 1 else "one party"
    return Facts(
        title=f"Learning over split columns: {fit.rows.title}",
        summary=summary(fit, f"A linear model of {many}, each with its own columns of the same rows,"),
        facts=headlines(fit),
        sections=[section for part in parts if (section := part(fit)) is not None],
    )


def _parties(fit: SharingFit) -> Section:
    notes = [f"Party {m + 1}: {', '.join(names)}." for m, names in enumerate(fit.parties)]
    sent = f"In each pass a party sends one value for each row, {'with noise, ' if fit.private else ''}and no column."
    if fit.private and fit.options.labels == "held":
        labels = (
            "The labels are with one party, which flips each at random, once, and uses the flipped ones ever after."
        )
    else:
        labels = "All parties know the labels."
    return Section("The parties", f"{sent} {labels}", notes=notes)


def _coefficients(fit: SharingFit) -> Section | None:
    if fit.private:
        return None
    return coefficients_section(fit, "Each party holds its own, of its encoded columns.")


def _crosscheck(fit: SharingFit) -> Section | None:
    which = (
        "The step that would follow the last release, which reads released values alone,"
        if fit.private
        else ("Each convex block of the method, at the answer,")
    )
    return crosscheck_section(
        fit,
        f"{which} was solved again by each solver and by its exact update; of the block over all rows, a sample. A "
        "verdict rests on residuals computed from the problem itself, not on what a solver says of its answer.",
    )


def _settings(fit: SharingFit) -> Section:
    options = fit.options
    facts = {"loss": options.loss, "penalty": options.penalty, "lam": options.weight}
    return settings_section(fit, {**facts, "intercept": options.intercept})
