"""The facts of a model fitted to rows: those of its run, its scores, accounting, coefficients, and rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cvxpriv.certify.sections import crosscheck_section, crosscheck_tables
from cvxpriv.learning.fit import Fit
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.packages import pd
from cvxpriv.numerics.sizes import counted
from cvxpriv.reports.facts import Fact, Facts, Picture, Section, Table
from cvxpriv.reports.files import write_text
from cvxpriv.reports.formatting import format_number
from cvxpriv.reports.pictures import COLOURS, GREY, PAGE, blank, plot_history, styled
from cvxpriv.reports.text import csv_text
from cvxpriv.runs.saved import write_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Number of coefficients that the picture shows.
SHOWN = 25
#: Number of points of a curve that are drawn; more of them cannot be told apart.
POINTS = 400


@styled
def plot_operating_characteristic(margins: Mapping[str, Array], labels: Array) -> Figure:
    """Draw the share of class 1 found against the share of class -1 mistaken for it, one line per model.

    `margins`, (n,): The predictions of each model, by its name and the area under its curve.
    `labels`, (n,): Labels of -1 and 1.
    """
    figure = blank(PAGE, 4.6)
    axes = figure.add_subplot()
    for index, (name, margin) in enumerate(margins.items()):
        false, true = _curve(labels, margin)
        axes.plot(false, true, color=COLOURS[index % len(COLOURS)], label=name, zorder=3 + (index == 0))
    axes.plot([0, 1], [0, 1], linestyle=":", color=GREY, linewidth=1.2, label="a guess, 0.500")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.005)
    axes.set_xlabel("share of the other class taken for it")
    axes.set_ylabel("share of the predicted class found")
    axes.legend(loc="lower right", title="area under the curve", fontsize=9, title_fontsize=9)
    return figure


@styled
def plot_coefficients(coefficients: pd.DataFrame) -> Figure:
    """Draw the largest coefficients as bars, those of one party in one colour.

    `coefficients`: Columns feature, coefficient, and party, a text, if there are several parties.
    """
    from matplotlib.patches import Patch

    order = np.argsort(-np.abs(coefficients["coefficient"].to_numpy()))[:SHOWN]
    shown = coefficients.iloc[order]
    parties = list(dict.fromkeys(coefficients["party"])) if "party" in coefficients else [""]
    colours = {party: COLOURS[index % len(COLOURS)] for index, party in enumerate(parties)}
    figure = blank(PAGE, 1.0 + 0.24 * len(shown))
    axes = figure.add_subplot()
    places = np.arange(len(shown))
    owners = shown["party"] if "party" in shown else [""] * len(shown)
    axes.barh(places, shown["coefficient"], color=[colours[owner] for owner in owners], height=0.7)
    axes.axvline(0.0, color=GREY, linewidth=0.8)
    axes.set_yticks(places, [text if len(text) <= 32 else text[:31] + "…" for text in shown["feature"]], fontsize=9)
    axes.invert_yaxis()
    axes.set_xlabel("coefficient, in log odds")
    if len(parties) > 1:
        axes.legend(handles=[Patch(color=colours[party], label=party) for party in parties], loc="best", fontsize=9)
    return figure


def _curve(labels: Array, margin: Array) -> tuple[Array, Array]:
    """Return false and true positive rates from the strictest threshold to the laxest; ties are one step."""
    order = np.argsort(-margin, kind="stable")
    positive = labels[order] > 0.0
    last = np.append(np.diff(margin[order]) != 0.0, True)
    true, false = (np.append(0.0, np.cumsum(which)[last]) for which in (positive, ~positive))
    keep = np.unique(np.linspace(0, true.size - 1, min(true.size, POINTS)).round().astype(int))
    return false[keep] / max(false[-1], 1.0), true[keep] / max(true[-1], 1.0)


#: Number of the largest coefficients that a terminal shows.
LARGEST = 10
#: Number of passes below which the history has no picture.
FEW_PASSES = 10

NOISY = (
    "The scores of the rows held out were released with noise. A row is learned from or held out, so that what the fit "
    "spent of the budget covers both."
)


def fit_facts(fit: Fit) -> Facts:
    """Return the facts; those of a private fit hold only released numbers, and scores of held-out rows."""
    rows, said = fit.rows, fit.run.facts
    many = counted(rows.y.size, "row") if rows.counted else "private rows"
    against = f"predicts {rows.label} = {rows.classes[1]} (against {rows.classes[0]}) from {many}."
    return Facts(
        title=f"{fit.title}{', private' if fit.private else ''}: {rows.title}",
        summary=f"{fit.summary} {against}",
        facts=[*_scores(fit), *said.facts, *fit.own_facts()],
        sections=[
            *_scores_section(fit),
            *fit.layout_sections(),
            *_privacy(fit),
            *fit.own_sections(),
            *_coefficients(fit),
            rows.encoding_section(),
            *crosscheck_section(
                fit.check,
                f"{fit.crosschecked} was solved again by each solver and by its exact update. A verdict rests on "
                "residuals computed from the problem itself, not on what a solver says of its answer.",
            ),
            *_history(fit),
        ],
        about=[*rows.facts(), *fit.layout],
        settings=[Fact("private", fit.private), Fact("intercept", fit.intercept), *said.settings],
        messages=said.messages,
        promises=[*said.promises, *fit.more_promises, *_about_rows(fit)],
        promised=said.promised,
        tables=_tables(fit),
        files={"history.csv": partial(_write_history, fit), "model.json": partial(_write_model, fit)},
        converged=said.converged,
        interrupted=fit.interrupted or said.interrupted,
        unmet=said.unmet,
        published=None if fit.private else False,
        outline=fit.summary,
    )


def _scores(fit: Fit) -> list[Fact]:
    """Return the scores of the run; a terminal has them in a table, beside those of other models."""
    own = fit.scored[0].scores
    if own is None:
        return []

    def fact(name: str, unit: str, sentence: str, label: str, form: str) -> list[Fact]:
        value = getattr(own, name)
        others = [(getattr(one.scores, name), one.name) for one in fit.scored[1:3] if one.scores is not None]
        beside = "; ".join(f"{score:{form}} {who}" for score, who in others if score is not None)
        percent = form.endswith("%")
        shown = Fact(name, value, unit, sentence, label, beside, percent=percent, main=True, aside=True)
        return [] if value is None else [shown]

    return [
        *fact("accuracy", "", "Rows held out whose class is named right.", "Accuracy", ".1%"),
        *fact("log_loss", "nats a row", "Mean log loss of the rows held out.", "Log loss", ".4f"),
        *fact(
            "auc", "", "Chance that a row of the class scores above one of the other.", "Area under the curve", ".4f"
        ),
    ]


def _score_frame(fit: Fit) -> pd.DataFrame:
    scored = {one.name: asdict(one.scores) if one.scores is not None else {} for one in fit.scored}
    names = ["accuracy", "log_loss", "auc", "rows"]
    names = names if fit.rows.counted else names[:-1]
    return pd.DataFrame([{"model": who, **{name: one.get(name) for name in names}} for who, one in scored.items()])


def _scores_section(fit: Fit) -> list[Section]:
    rows, frame = fit.rows, _score_frame(fit)
    if not rows.test_y.size:
        return []
    if fit.scored[0].scores is None:
        left_out = "The budget covers no scores of the rows held out: they were left out."
        return [Section("On the rows held out", left_out, brief=Section(left_out))]
    shown = frame.drop(columns="rows", errors="ignore").assign(accuracy=frame["accuracy"].map("{:.1%}".format))
    shown = shown.rename(columns={"log_loss": "log loss", "auc": "AUC"}).dropna(axis="columns", how="all")
    pictures = []
    if frame["auc"].notna().all():
        curves = {
            f"{one.name}, {one.scores.auc:.3f}": one.margin
            for one in fit.scored
            if one.scores is not None and (one is fit.scored[0] or np.ptp(one.margin) > 0.0)
        }
        draw = partial(plot_operating_characteristic, curves, rows.test_y)
        pictures.append(Picture(draw, "Receiver operating characteristic of each model on the rows held out."))
    notes = ["These are scores on other people's rows, which had no part in the fit."]
    if fit.budgeted:
        notes.append(NOISY)
    elif fit.private:
        notes.append("They tell of those rows, and no guarantee covers that: do not publish them with the model.")
    many = counted(rows.test_y.size, "row") if rows.counted else "rows"
    share = f", {rows.share_held_out:.0%} of all" if rows.counted else ""
    were = "was" if rows.counted and rows.test_y.size == 1 else "were"
    text = f"{many if rows.counted else 'Some rows'} {were} held out{share}, drawn by seed."
    brief = Section(f"On the {many} held out", tables=[Table(shown)])
    return [Section("On the rows held out", text, pictures, [Table(shown)], notes, brief)]


def _privacy(fit: Fit) -> list[Section]:
    if not fit.private:
        return []
    found = fit.run.accounting
    guaranteed = found.guarantee if any(claim.holds for claim in found.claims) else None
    frame = pd.DataFrame(
        {
            "rule": [claim.rule for claim in found.claims],
            "epsilon": [claim.epsilon for claim in found.claims],
            "delta": [claim.delta for claim in found.claims],
            "is a bound": [claim.holds for claim in found.claims],
            "note": [claim.note for claim in found.claims],
        }
    )
    brief = frame[["rule", "epsilon", "delta"]].assign(
        **{"": ["the guarantee" if one is guaranteed else "" if one.holds else "no bound" for one in found.claims]}
    )
    caption = "What each rule says of all releases together; the least that is a bound is guaranteed."
    return [
        Section(
            "Privacy accounting",
            f"{fit.released} Neighbours: {found.neighbours}.",
            tables=[Table(frame if any(frame["note"]) else frame.drop(columns="note"), caption)],
            brief=Section(
                f"Privacy of {counted(found.releases, 'release')}", tables=[Table(brief, digits={"delta": 2})]
            ),
        )
    ]


def _coefficients(fit: Fit) -> list[Section]:
    if not fit.shows_coefficients:
        return []
    text, frame, features = fit.coefficients_text, fit.coefficients, len(fit.rows.encoding.features)
    inner = frame[frame["feature"] != "(intercept)"]
    nonzero = inner[inner["coefficient"] != 0.0]
    if nonzero.empty:
        none = "Every coefficient is 0: a smaller weight of the penalty keeps some."
        return [Section("Coefficients", f"{text} {none}", brief=Section(none))]
    shown = min(len(nonzero), SHOWN)
    picture = Picture(
        partial(plot_coefficients, nonzero),
        f"The {counted(shown, 'largest coefficient')} as bars.",
        f"The largest of {counted(len(nonzero), 'coefficient')} other than 0; all are in coefficients.csv.",
        wide=True,
    )
    order = np.argsort(-np.abs(nonzero["coefficient"].to_numpy()), kind="stable")[:LARGEST]
    largest = nonzero.iloc[order][["feature", "coefficient"]]
    left = f"; the {LARGEST} largest" if len(nonzero) > LARGEST else ""
    brief = Section(f"Coefficients: {len(nonzero)} of {features} are not 0{left}", tables=[Table(largest)])
    intercept = fit.scored[0].linear.intercept
    notes = [f"Intercept: {format_number(intercept)}."] if intercept else []
    return [Section("Coefficients", text, [picture], notes=notes, brief=brief)]


def _history(fit: Fit) -> list[Section]:
    """Return objective and residual by pass; none for few passes, or for a private fit, which has neither."""
    if fit.private or fit.run.history["objective"].notna().sum() < FEW_PASSES:
        return []
    draw = partial(plot_history, fit.run.history)
    return [Section("How it was found", pictures=[Picture(draw, "Objective and KKT residual by pass.")])]


def _about_rows(fit: Fit) -> list[str]:
    """Return the remarks of a private fit on bounds that were read off its rows, on rows left out, and on scores."""
    if not fit.private:
        return []
    said, read_off = [], fit.rows.encoding.read_off
    if fit.rows.dropped:
        said.append(
            "Which rows were left out, and so how many there are, counts as public: the guarantee is for rows that "
            "lack nothing."
        )
    if read_off:
        said.append(f"The bounds of {', '.join(read_off)} were read off the rows: the guarantee does not cover them.")
    if fit.budgeted and fit.scored[0].scores is not None:
        said.append(NOISY)
    elif fit.rows.test_y.size and not fit.budgeted:
        said.append("The scores are of other people's rows, held out of the fit: the guarantee does not cover those.")
    return said


def _tables(fit: Fit) -> dict[str, pd.DataFrame]:
    found = {"scores": _score_frame(fit), "columns": fit.rows.columns_table()}
    if fit.shows_coefficients:
        found["coefficients"] = fit.coefficients
    if fit.private:
        found["accounting"] = fit.run.accounting.table
    return {**found, **fit.own_tables(), **crosscheck_tables(fit.check)}


def _write_history(fit: Fit, path: Path) -> Path:
    return write_text(path, csv_text(fit.run.history))


def _write_model(fit: Fit, path: Path) -> Path:
    """Write the run as its model saves it, with the encoding of its rows beside it."""
    return write_run(path, fit.run.model, {**fit.document(), "rows": fit.rows.document()})
