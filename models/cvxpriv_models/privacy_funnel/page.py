"""The HTML page of a funnel's study."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import pandas as pd

from cvxpriv.crosschecks.page import largest_residual, worst_first
from cvxpriv.disclosure import STATEMENT
from cvxpriv.formatting import format_number
from cvxpriv.plots import plot_curve, plot_history, plot_mechanism
from cvxpriv.provenance import machine, versions
from cvxpriv.report import Headline, Picture, Report, Section, Table, render

from .study import Study, exact_zero

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["curve_figure", "page"]

_LEGEND = (
    "agrees: right, and every exact residual is small. loose: right to fewer digits, or claims no accuracy. failed: "
    "returned no solution. WRONG: claims a solution that it has not.",
    "A verdict on a solver is none on the mechanism: the method took the exact updates.",
)


def page(found: Study) -> str:
    """Return the page as a text.

    Raises
    ------
    ModelError
        Jinja2 or matplotlib is missing.
    """
    parts = (_promise, _curve, _mechanism, _crosscheck, _disclosure, _starts, _settings)
    report = Report(
        title=f"Privacy funnel: {found.source}",
        summary=_summary(found),
        headlines=_headlines(found),
        sections=[section for part in parts if (section := part(found)) is not None],
        made_with={**versions(), **machine()},
    )
    return render(report)


def curve_figure(found: Study) -> Figure:
    """Return the privacy-utility curve with the designed mechanism on it."""
    assert found.curve is not None
    own = pd.DataFrame({"utility": [found.run.utility], "leakage": [found.run.leakage]})
    return plot_curve(
        pd.concat([found.curve[["utility", "leakage"]], own]).drop_duplicates(),
        entropy_x=found.table.entropy_x,
        information=found.table.information,
        chosen=(found.run.utility, found.run.leakage),
    )


def _summary(found: Study) -> str:
    run, table = found.run, found.table
    private, public = ", ".join(table.private.columns), ", ".join(table.public.columns)
    counted = "" if table.records is None else f" It was designed on a table of {table.records:,} records."
    ended = "" if run.converged else _not_converged(found)
    return (
        f"A mechanism that releases Y in place of X = {public}, so that Y tells at least "
        f"{format_number(run.problem.rate)} nats about X and as little as possible about S = {private}.{counted}{ended}"
    )


def _not_converged(found: Study) -> str:
    return (
        f"\n\nThis run did NOT converge: its KKT residual is {format_number(found.run.kkt.largest, 2)} nats, "
        f"{format_number(found.options.tol, 1)} was asked for. The figures are those of the best mechanism found."
    )


def _headlines(found: Study) -> list[Headline]:
    run, table = found.run, found.table
    leakage = exact_zero(run.leakage)
    leaked = _of(leakage, table.information, "I(S;X), the leakage of X") + _interval(found, "leakage")
    told = _of(run.utility, table.entropy_x, "H(X), all there is") + _interval(found, "utility")
    heads = [
        Headline("Leakage I(S;Y)", leakage, "nats", leaked),
        Headline("Utility I(X;Y)", run.utility, "nats", told),
    ]
    if found.found is not None:
        nothing, y, x = (found.found.value(f"accuracy_{name}") for name in ("nothing", "y", "x"))
        detail = f"{nothing:.1%} from nothing, {x:.1%} from X"
        heads.append(Headline("Best guess of S from Y", f"{y:.1%}", "right", detail))
    state = "converged" if run.converged else "NOT converged"
    asked = f"{state}; {format_number(found.options.tol, 1)} asked for"
    heads.append(Headline("KKT residual", format_number(run.kkt.largest, 2), "nats", asked))
    return heads


def _interval(found: Study, name: str) -> str:
    interval = None if found.found is None else found.found.interval(name)
    if found.found is None or interval is None:
        return ""
    low, high = map(format_number, interval)
    return f"; {found.found.level:.0%} interval {low} to {high}"


def _of(value: float, whole: float, name: str) -> str:
    return f"{100 * value / whole:.3g}% of {name}" if whole > 0 else ""


def _promise(found: Study) -> Section:
    return Section(
        "What this promises, and what it does not",
        "Of all mechanisms that tell this much of X, one was sought that tells least of S, on average over the people "
        "of the table and over one draw of Y for each. The problem is not convex: the answer is the best of "
        f"{found.run.settings.starts} starts and satisfies the optimality conditions (KKT) to the residual above; a "
        "better one elsewhere is not ruled out.\n\n" + STATEMENT,
    )


def _curve(found: Study) -> Section | None:
    if found.curve is None:
        return None
    picture = Picture.of(
        curve_figure(found),
        "Leakage I(S;Y) against utility I(X;Y), with the designed mechanism marked.",
        "Each point is the least leakage found at that utility; the ring is the mechanism of this page.",
    )
    table = found.curve.assign(leakage=found.curve["leakage"].map(exact_zero))
    table = table.drop(columns=["seconds", "rate"]).rename(
        columns={"fraction": "rate / H(X)", "found_at": "found at", "kkt": "KKT residual"}
    )
    notes = ["A mechanism found at a higher rate serves a lower one: 'found at' names the rate it comes from."]
    if found.unconverged_rates:
        notes.append(f"{found.unconverged_rates} rates did not converge: their leakage may be higher than need be.")
    return Section(
        "The privacy-utility curve",
        figures=[picture],
        tables=[Table(table, "Utility, leakage and residual in nats.")],
        notes=notes,
    )


def _mechanism(found: Study) -> Section:
    rows, columns = found.run.mechanism.shape
    picture = Picture.of(
        plot_mechanism(found.run.mechanism, found.table.public),
        f"Heatmap of P(Y|X): {rows} public symbols down, outputs across.",
        "Each row is a public symbol and says with which probability it is released as which output. Symbols that "
        "share a column cannot be told apart by it.",
    )
    return Section("The mechanism P(Y|X)", f"{rows} public symbols, {columns} outputs.", figures=[picture])


def _crosscheck(found: Study) -> Section | None:
    if found.check is None:
        return None
    rows = worst_first(found.check.table)
    frame = pd.DataFrame(
        {
            "verdict": rows["verdict"],
            "block": rows["case"],
            "solver": rows["solver"],
            "gap": rows["gap"],
            "residual": [largest_residual(row) for row in rows.to_dict("records")],
            "natural": rows["natural"],
            "ms": rows["seconds"] * 1e3,
            "why it does not agree": rows["reason"].where(rows["verdict"] != "agrees", ""),
        }
    )
    return Section(
        "Cross-check: every block, every solver",
        "Each convex block of the method was solved again at the answer, by each solver and by its exact update. A "
        "verdict rests on residuals computed from the problem itself, not on what a solver says of its answer.",
        tables=[Table(frame, "gap, residual: relative; natural: how far from stationary, in units of the variables.")],
        notes=[f"Worst answer: {found.check.worst_offender}.", *_LEGEND],
    )


def _disclosure(found: Study) -> Section | None:
    if found.found is None:
        return None
    frame = found.found.frame
    columns = {"measure": frame["measure"], "unit": frame["unit"], "value": frame["value"]}
    if found.found.bootstrap:
        level = f"{found.found.level:.0%}"
        columns |= {f"{level} low": frame["low"], f"{level} high": frame["high"]}
    caption = "Values of the table" + (
        f"; intervals from {found.found.bootstrap} resamples of the records." if found.found.bootstrap else "."
    )
    return Section(
        "What a release discloses",
        "An adversary's best accuracy is the chance to name S right, knowing the table and nothing else, Y, or X.",
        tables=[Table(pd.DataFrame(columns)[list(columns)], caption)],
        notes=found.found.notes,
    )


def _starts(found: Study) -> Section:
    run = found.run
    best = run.starts.reset_index().sort_values(["leakage", "kkt"], ignore_index=True)
    table = best.head(10).rename(columns={"kkt": "KKT residual"})
    shown = f"The best {len(table)} of {len(best)} starts." if len(best) > len(table) else "All starts."
    history = run.log.frame()
    figures = []
    if "objective" in history and history["objective"].notna().any():
        alt = "Objective and KKT residual by iteration, one line for each start."
        figures.append(Picture.of(plot_history(history, best=run.start), alt))
    return Section(
        "How it was found", figures=figures, tables=[Table(table, f"{shown} Leakage, utility and residual in nats.")]
    )


def _settings(found: Study) -> Section:
    table = found.table
    facts: dict[str, object] = {
        "private S": f"{', '.join(table.private.columns)} ({len(table.private)} symbols)",
        "public X": f"{', '.join(table.public.columns)} ({len(table.public)} symbols)",
        "records": table.records,
        "smoothing": table.smoothing,
        "rate in nats": found.run.problem.rate,
        "outputs |Y|": found.run.problem.size_y,
        **{name.replace("_", " "): value for name, value in asdict(found.run.settings).items()},
        "solver": found.options.solver,
        "seconds": found.run.seconds,
    }
    frame = pd.DataFrame({"setting": list(facts), "value": pd.Series(list(facts.values()), dtype=object)})
    return Section("Settings", tables=[Table(frame)])
