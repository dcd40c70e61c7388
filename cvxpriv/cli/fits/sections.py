"""Parts of the page of a command that learns."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from cvxpriv.certify.page import largest_residual, worst_first
from cvxpriv.cli.fits.fit import Fit, settings_of
from cvxpriv.cli.fits.pictures import SHOWN, plot_coefficients, plot_operating_characteristic
from cvxpriv.learning.columns import Category
from cvxpriv.mechanisms.plots import plot_history
from cvxpriv.reports.facts import Fact, Picture, Section, Table
from cvxpriv.reports.formatting import format_number

__all__ = [
    "coefficients_section",
    "crosscheck_section",
    "encoding_section",
    "headlines",
    "history_section",
    "privacy_section",
    "promise_section",
    "scores_section",
    "settings_section",
    "summary",
]

#: Values of a category that the table of columns names.
NAMED_VALUES = 6
#: A history of fewer iterations is no picture.
FEW_ITERATIONS = 10


def summary(fit: Fit, what: str) -> str:
    """Return the paragraph below the title: what was fitted, on how many rows, and whether it converged."""
    rows = fit.rows
    text = f"{what} predicts {rows.label} = {rows.classes[1]} (against {rows.classes[0]}) from {rows.y.size:,} rows."
    if not fit.private and not fit.run.converged:
        text += (
            f"\n\nThis fit did NOT converge: it has a KKT residual of {format_number(fit.run.kkt.largest, 2)}, "
            f"{format_number(fit.run.settings.tol, 1)} was asked for."
        )
    return text


def headlines(fit: Fit) -> list[Fact]:
    """Return the figures to be seen first: scores of the rows held out, and the guarantee or the residual."""
    heads = []
    if fit.model.scores is not None:
        scores = fit.model.scores

        def beside(name: str, form: str) -> str:
            values = {one.name: getattr(one.scores, name) for one in fit.compared if one.scores is not None}
            return "; ".join(f"{value:{form}} {who}" for who, value in list(values.items())[:2] if value is not None)

        heads.append(Fact("Accuracy", f"{scores.accuracy:.1%}", detail=beside("accuracy", ".1%"), main=True))
        if scores.log_loss is not None:
            heads.append(
                Fact("Log loss", f"{scores.log_loss:.4f}", "nats a row", detail=beside("log_loss", ".4f"), main=True)
            )
        if scores.auc is not None:
            heads.append(Fact("Area under the curve", f"{scores.auc:.4f}", detail=beside("auc", ".4f"), main=True))
    if fit.accounting is None:
        state = "converged" if fit.run.converged else "NOT converged"
        shown = format_number(fit.run.kkt.largest, 2)
        detail = f"{state}; {format_number(fit.run.settings.tol, 1)} asked for"
        return [*heads, Fact("KKT residual", shown, detail=detail, main=True)]
    found = fit.accounting
    if any(claim.holds for claim in found.claims):
        epsilon, delta = format_number(found.epsilon), format_number(found.delta, 1)
        return [
            *heads,
            Fact("Privacy: epsilon", epsilon, f"at delta {delta}", detail=f"{found.releases} releases", main=True),
        ]
    return [*heads, Fact("Privacy: epsilon", "none", detail="no rule holds for this mechanism", main=True)]


def promise_section(fit: Fit) -> Section:
    """Return what is guaranteed and what is not."""
    title = "What is guaranteed, and what is not" if fit.private else "Not private"
    return Section(title, "\n\n".join(one[0].upper() + one[1:] + "." for one in fit.statements))


def scores_section(fit: Fit) -> Section | None:
    """Return the scores of the rows held out, as a table and a picture."""
    if fit.model.scores is None:
        return None
    rows = [(one.name, one.scores) for one in fit.models if one.scores is not None]
    frame = pd.DataFrame(
        {
            "model": [name for name, _ in rows],
            "accuracy": [f"{one.accuracy:.1%}" for _, one in rows],
            "log loss": [one.log_loss for _, one in rows],
            "AUC": [one.auc for _, one in rows],
        }
    ).dropna(axis="columns", how="all")
    figures = []
    if fit.model.scores.auc is not None:
        picture = plot_operating_characteristic(fit.models, fit.rows.test_y)
        figures.append(Picture(picture, "Receiver operating characteristic of each model on the rows held out."))
    notes = ["These are scores on other people's rows, which had no part in the fit."]
    if fit.private:
        notes.append("They tell of those rows, and no guarantee covers that: do not publish them with the model.")
    text = f"{fit.rows.test_y.size:,} rows were held out, {fit.rows.share_held_out:.0%} of all, drawn by seed."
    return Section("On the rows held out", text, pictures=figures, tables=[Table(frame)], notes=notes)


def privacy_section(fit: Fit) -> Section | None:
    """Return the accounting."""
    found = fit.accounting
    if found is None:
        return None
    frame = pd.DataFrame(
        {
            "rule": [claim.rule for claim in found.claims],
            "epsilon": [claim.epsilon for claim in found.claims],
            "is a bound": [claim.holds for claim in found.claims],
            "note": [claim.note for claim in found.claims],
        }
    )
    if not any(frame["note"]):
        frame = frame.drop(columns="note")
    return Section(
        "Privacy accounting",
        f"{found.releases} releases with Gaussian noise, at delta = {found.claims[0].delta:g}. Neighbours: "
        f"{found.neighbours}.",
        tables=[Table(frame, "What each rule says of all releases together; the least that is a bound is guaranteed.")],
    )


def coefficients_section(fit: Fit, text: str) -> Section:
    """Return the largest coefficients."""
    frame = fit.coefficients
    inner = frame[frame["feature"] != "(intercept)"]
    nonzero = inner[inner["coefficient"] != 0.0]
    if nonzero.empty:
        return Section("Coefficients", f"{text} Every coefficient is 0: a smaller weight of the penalty keeps some.")
    shown = min(len(nonzero), SHOWN)
    picture = Picture(
        plot_coefficients(nonzero),
        f"The {shown} largest coefficients as bars.",
        f"The {shown} largest of {len(nonzero)} coefficients that are not 0; all are in coefficients.csv.",
        wide=True,
    )
    notes = [f"Intercept: {format_number(fit.model.linear.intercept)}."] if fit.model.linear.intercept else []
    return Section("Coefficients", text, pictures=[picture], notes=notes)


def encoding_section(fit: Fit) -> Section:
    """Return how the columns became numbers, and which bounds were read off the data."""
    columns = fit.rows.encoding.columns
    kinds, bounds = [], []
    for column in columns:
        if isinstance(column, Category):
            more = f" and {len(column.values) - NAMED_VALUES} more" if len(column.values) > NAMED_VALUES else ""
            kinds.append(f"{len(column.values)} values")
            bounds.append(", ".join(column.values[:NAMED_VALUES]) + more)
        else:
            kinds.append("number")
            bounds.append(f"{column.low:,.6g} to {column.high:,.6g}")
    frame = pd.DataFrame(
        {
            "column": [column.name for column in columns],
            "kind": kinds,
            "bounds": bounds,
            "known": ["given" if column.given else "read off" for column in columns],
        }
    )
    bound = format_number(fit.rows.encoding.row_bound())
    text = (
        "Numbers are scaled from their range to [0, 1]; a category has one column of 0 and 1 for each of its values. "
        f"By construction the norm of a row is at most {bound}."
    )
    if fit.rows.encoding.scaled:
        text += f" Rows are divided by the square root of {len(columns)} for that."
    if fit.rows.encoding.read_off:
        text += (
            " Bounds that were not given were read off the rows to learn from; rows held out may go beyond them, and "
        )
        text += "are moved to their end."
    return Section("How columns became numbers", text, tables=[Table(frame)])


def crosscheck_section(fit: Fit, text: str) -> Section | None:
    """Return the cross-check of every block, worst verdicts first."""
    if fit.check is None:
        return None
    rows = worst_first(fit.check.table)
    frame = pd.DataFrame(
        {
            "verdict": rows["verdict"],
            "block": rows["case"],
            "solver": rows["solver"],
            "gap": rows["gap"],
            "residual": [largest_residual(row) for row in rows.to_dict("records")],
            "why it does not agree": rows["reason"].where(rows["verdict"] != "agrees", ""),
        }
    )
    if not any(frame["why it does not agree"]):
        frame = frame.drop(columns="why it does not agree")
    note = "A verdict on a solver is none on the fit: the method took the exact updates."
    return Section("Cross-check by every solver", text, tables=[Table(frame, "gap, residual: relative.")], notes=[note])


def history_section(fit: Fit) -> Section | None:
    """Return objective and residual by iteration; nothing for few of them, or for a private fit, which has neither."""
    if fit.private or fit.run.history["objective"].notna().sum() < FEW_ITERATIONS:
        return None
    alt = "Objective and KKT residual by iteration."
    return Section("How it was found", pictures=[Picture(plot_history(fit.run.history), alt)])


def settings_section(fit: Fit, facts: Mapping[str, object]) -> Section:
    """Return what went into a fit; a private one says no time, which would tell of the data."""
    every: dict[str, object] = {
        "predicted": f"{fit.rows.label} = {fit.rows.classes[1]}",
        "rows": fit.rows.y.size,
        "rows held out": fit.rows.test_y.size,
        "rows left out": fit.rows.dropped,
        "encoded columns": len(fit.rows.encoding.features),
        "seed of the split": fit.rows.seed,
        **facts,
        **settings_of(fit.run),
    }
    if not fit.private:
        every["seconds"] = fit.run.seconds
    frame = pd.DataFrame({"setting": list(every), "value": pd.Series(list(every.values()), dtype=object)})
    return Section("Settings", tables=[Table(frame)])
