"""The HTML page of a funnel's study."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from cvxpriv.cli.studies import exact_zero
from cvxpriv.cli.studies.sections import (
    crosscheck_section,
    disclosure_section,
    interval_detail,
    not_converged,
    percent_of,
    residual_headline,
    settings_section,
    starts_section,
)
from cvxpriv.mechanisms.disclosure import STATEMENT
from cvxpriv.mechanisms.plots import plot_curve, plot_mechanism
from cvxpriv.reports.facts import Fact, Facts, Picture, Section, Table
from cvxpriv.reports.formatting import format_number

from .study import FunnelStudy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["curve_figure", "page"]


def page(found: FunnelStudy) -> Facts:
    """Return the page.

    Raises
    ------
    ModelError
        matplotlib is missing.
    """
    parts = (_promise, _curve, _mechanism, crosscheck_section, _disclosure, _starts, _settings)
    return Facts(
        title=f"Privacy funnel: {found.source}",
        summary=_summary(found),
        facts=_headlines(found),
        sections=[section for part in parts if (section := part(found)) is not None],
    )


def curve_figure(found: FunnelStudy) -> Figure:
    """Return the privacy-utility curve with the designed mechanism on it."""
    assert found.curve is not None
    own = pd.DataFrame({"utility": [found.run.utility], "leakage": [found.run.leakage]})
    return plot_curve(
        pd.concat([found.curve[["utility", "leakage"]], own]).drop_duplicates(),
        entropy_x=found.table.entropy_x,
        information=found.table.information,
        chosen=(found.run.utility, found.run.leakage),
    )


def _summary(found: FunnelStudy) -> str:
    run, table = found.run, found.table
    private, public = ", ".join(table.private.columns), ", ".join(table.public.columns)
    counted = "" if table.records is None else f" It was designed on a table of {table.records:,} records."
    return (
        f"A mechanism that releases Y in place of X = {public}, so that Y tells at least "
        f"{format_number(run.problem.rate)} nats about X and as little as possible about S = {private}.{counted}"
        + not_converged(found)
    )


def _headlines(found: FunnelStudy) -> list[Fact]:
    run, table = found.run, found.table
    leakage = exact_zero(run.leakage)
    leaked = percent_of(leakage, table.information, "I(S;X), the leakage of X") + interval_detail(found, "leakage")
    told = percent_of(run.utility, table.entropy_x, "H(X), all there is") + interval_detail(found, "utility")
    heads = [
        Fact("Leakage I(S;Y)", leakage, "nats", detail=leaked, main=True),
        Fact("Utility I(X;Y)", run.utility, "nats", detail=told, main=True),
    ]
    if found.found is not None:
        nothing, y, x = (found.found.value(f"accuracy_{name}") for name in ("nothing", "y", "x"))
        detail = f"{nothing:.1%} from nothing, {x:.1%} from X"
        heads.append(Fact("Best guess of S from Y", f"{y:.1%}", "right", detail=detail, main=True))
    return [*heads, residual_headline(found)]


def _promise(found: FunnelStudy) -> Section:
    return Section(
        "What this promises, and what it does not",
        "Of all mechanisms that tell this much of X, one was sought that tells least of S, on average over the people "
        "of the table and over one draw of Y for each. The problem is not convex: the answer is the best of "
        f"{found.run.settings.starts} starts and satisfies the optimality conditions (KKT) to the residual above; a "
        "better one elsewhere is not constrained out.\n\n" + STATEMENT,
    )


def _curve(found: FunnelStudy) -> Section | None:
    if found.curve is None:
        return None
    picture = Picture(
        curve_figure(found),
        "Leakage I(S;Y) against utility I(X;Y), with the designed mechanism marked.",
        "Each point is the least leakage found at that utility; the ring is the mechanism of this page.",
    )
    table = found.curve.assign(leakage=found.curve["leakage"].map(exact_zero))
    table = table.drop(columns=["seconds", "rate"]).rename(
        columns={"fraction": "rate / H(X)", "found_at": "found at", "kkt": "KKT residual"}
    )
    notes = ["A mechanism found at a higher rate serves a lower one: 'found at' names the rate it comes from."]
    if found.unconverged:
        notes.append(f"{found.unconverged} rates did not converge: their leakage may be higher than need be.")
    return Section(
        "The privacy-utility curve",
        pictures=[picture],
        tables=[Table(table, "Utility, leakage and residual in nats.")],
        notes=notes,
    )


def _mechanism(found: FunnelStudy) -> Section:
    rows, columns = found.run.mechanism.shape
    picture = Picture(
        plot_mechanism(found.run.mechanism, found.table.public),
        f"Heatmap of P(Y|X): {rows} public symbols down, outputs across.",
        "Each row is a public symbol and says with which probability it is released as which output. Symbols that "
        "share a column cannot be told apart by it.",
    )
    return Section("The mechanism P(Y|X)", f"{rows} public symbols, {columns} outputs.", pictures=[picture])


def _disclosure(found: FunnelStudy) -> Section | None:
    return disclosure_section(
        found,
        "What a release discloses",
        "An adversary's best accuracy is the chance to name S right, knowing the table and nothing else, Y, or X.",
    )


def _starts(found: FunnelStudy) -> Section:
    caption = "Leakage, utility and residual in nats."
    return starts_section(found, found.run.starts, {"leakage": True, "kkt": True}, found.run.log.frame(), caption)


def _settings(found: FunnelStudy) -> Section:
    problem = found.run.problem
    return settings_section(found, {"rate in nats": problem.rate, "outputs |Y|": problem.size_y})
