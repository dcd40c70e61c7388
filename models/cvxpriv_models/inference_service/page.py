"""The HTML page of a service's study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
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
from cvxpriv.mechanisms.plots import USED, plot_mechanism
from cvxpriv.numerics.arrays import Array
from cvxpriv.reports.facts import Fact, Facts, Picture, Section, Table
from cvxpriv.reports.formatting import format_number
from cvxpriv.reports.pictures import COLOURS, GREY, blank, styled

from .findings import formula_of, promise, remarks
from .study import ServiceStudy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["curve_figure", "distinct_outputs", "page"]

#: Outputs whose P(Y|u) differ by no more say the same to a reader.
SAME = 1e-3
#: Points of the curve below this share of I(S;Y) lie near the axis.
LOW = 0.08


def page(found: ServiceStudy) -> Facts:
    """Return the page.

    Raises
    ------
    ModelError
        matplotlib is missing.
    """
    parts = (_promise, _curve, _mechanism, _constraints, crosscheck_section, _disclosure, _starts, _settings)
    return Facts(
        title=f"Inference as a service: {found.source}",
        summary=_summary(found),
        facts=_headlines(found),
        sections=[section for part in parts if (section := part(found)) is not None],
    )


@styled
def curve_figure(found: ServiceStudy) -> Figure:
    """Return accuracy I(S;U) against leakage E[d], with the designed mechanism on it and each point's beta beside."""
    assert found.curve is not None
    run, information = found.run, found.table.information
    own = pd.DataFrame({"beta": [run.problem.beta], "leakage": [run.leakage], "accuracy": [run.accuracy]})
    points = pd.concat([found.curve[list(own)], own]).sort_values(["leakage", "accuracy"])
    figure = blank(7.2, 4.6)
    axes = figure.add_subplot()
    axes.plot(points["leakage"], points["accuracy"], "o-", color=COLOURS[0], zorder=3, clip_on=False)
    small: dict[str, Any] = {"textcoords": "offset points", "fontsize": 9, "color": GREY}
    for beta, leakage, accuracy in points.drop_duplicates(["leakage", "accuracy"])[list(own)].to_numpy(float):
        below = accuracy > LOW * information  # else the label would stand on the axis
        axes.annotate(f"β = {beta:.3g}", (leakage, accuracy), xytext=(5, -15 if below else 8), **small)
    ring: dict[str, Any] = {"markersize": 14, "markerfacecolor": "none", "markeredgecolor": "black"}
    ring |= {"label": "chosen mechanism", "linestyle": "none"}
    axes.plot(run.leakage, run.accuracy, "o", zorder=6, clip_on=False, **ring)
    axes.axhline(information, linestyle=":", color=GREY, linewidth=1.2, zorder=1)
    axes.annotate(f"I(S;Y) = {format_number(information)}", (0, information), xytext=(6, 4), **small)
    axes.set_xlim(0, max(axes.get_xlim()[1], points["leakage"].max() * 1.12))
    axes.set_ylim(0, information * 1.12 or 1.0)
    axes.set_xlabel(f"leakage E[d], {run.problem.divergence.name}")
    axes.set_ylabel("accuracy I(S;U) in nats")
    axes.legend(loc="best")
    return figure


def _summary(found: ServiceStudy) -> str:
    run, table = found.run, found.table
    inferred, data = ", ".join(table.private.columns), ", ".join(table.public.columns)
    counted = "" if table.records is None else f" It was designed on a table of {table.records:,} records."
    notes = "".join(f"\n\n{note}" for note in remarks(found))
    return (
        f"A mechanism that sends U in place of the data Y = {data}, so that a server can infer S = {inferred} from U "
        f"while U tells little of Y: I(S;U) - beta E[d] is as large as could be found, for beta = "
        f"{format_number(run.problem.beta)}.{counted}{notes}" + not_converged(found)
    )


def _headlines(found: ServiceStudy) -> list[Fact]:
    run, accuracy, leakage = found.run, exact_zero(found.run.accuracy), exact_zero(found.run.leakage)
    told = percent_of(accuracy, found.table.information, "I(S;Y), all that Y tells of S")
    whole = found.whole_leakage
    leaked = percent_of(leakage, whole, "that of Y itself; ") if np.isfinite(whole) else ""
    heads = [
        Fact("Accuracy I(S;U)", accuracy, "nats", detail=told + interval_detail(found, "leakage"), main=True),
        Fact("Leakage E[d]", leakage, detail=leaked + run.problem.divergence.name, main=True),
    ]
    if found.found is not None:
        nothing, u, y = (found.found.value(f"accuracy_{name}") for name in ("nothing", "y", "x"))
        heads.append(
            Fact(
                "Best guess of S from U",
                f"{u:.1%}",
                "right",
                detail=f"{nothing:.1%} from nothing, {y:.1%} from Y",
                main=True,
            )
        )
    met = (
        residual_headline(found, "Certified gap", max(run.gap, 0.0)) if found.constraints else residual_headline(found)
    )
    return [*heads, met]


def _promise(found: ServiceStudy) -> Section:
    critical = found.critical
    kind = "no mechanism is worth more than 0" if critical.sharp else "no mechanism is worth more than 0, if not before"
    gap = found.run.gap
    certified = (
        "While the server reads U as it does now, no mechanism is better by more than "
        f"{format_number(max(gap, 0.0), 2)} nats, which is certified; with another reading one may be."
        if np.isfinite(gap)
        else "Another one may be better."
    )
    return Section(
        "What this promises, and what it does not",
        "The problem is not convex in what the server reads out of U: the answer is "
        f"{found.best_of}. {certified}\n\n"
        f"From beta = {format_number(critical.searched)} on {kind}, and the trivial mechanism, which says nothing, is "
        "optimal. This threshold was searched for; near the trivial mechanism alone it is "
        f"{format_number(critical.local)}.\n\n" + promise(found),
    )


def _curve(found: ServiceStudy) -> Section | None:
    if found.curve is None:
        return None
    picture = Picture(
        curve_figure(found),
        "Accuracy I(S;U) against leakage E[d] at several weights of privacy, with the designed mechanism marked.",
        "Each point is the best mechanism found at that weight; the ring is the mechanism of this page.",
    )
    figures = ["accuracy", "leakage", "objective"]
    table = found.curve.assign(**{name: found.curve[name].map(exact_zero) for name in figures})
    table = table.drop(columns=["seconds"]).rename(columns={"kkt": "KKT residual"})
    notes = ["Trivial: U says nothing of S."]
    if found.constraints:
        notes.append("With constraints the certified gap says whether a point has converged.")
    if found.unconverged:
        notes.append(f"{found.unconverged} points did not converge: better mechanisms may exist at their weights.")
    return Section("The accuracy-privacy curve", pictures=[picture], tables=[Table(table)], notes=notes)


def _mechanism(found: ServiceStudy) -> Section:
    rows, columns = found.run.mechanism.shape
    outputs = distinct_outputs(found.run.mechanism, found.run.problem.p_y)
    merged = np.column_stack([found.run.mechanism[:, same].sum(axis=1) for same in outputs.values()])
    picture = Picture(
        plot_mechanism(merged, found.table.public, tuple(outputs), symbols=("Y", "U")),
        f"Heatmap of P(U|Y): {rows} symbols of the data down, outputs across.",
        "Each row is a symbol of the data and says with which probability it is sent as which output. Symbols with "
        "equal rows cannot be told apart by U.",
    )
    text = f"{rows} symbols of the data, {columns} outputs."
    if len(outputs) < columns:
        different = int((merged.max(axis=0) >= USED).sum())
        text += (
            f" Of those that are sent, {different} say different things: outputs that say the same of Y, within "
            f"{SAME:.1%}, stand below as one, under the name of the first. Accuracy and leakage are the same so."
        )
    return Section("The mechanism P(U|Y)", text, pictures=[picture])


def distinct_outputs(mechanism: Array, prior: Array) -> dict[str, list[int]]:
    """Return groups of outputs that say the same of Y: their P(Y|u) differ by at most `SAME`; the first names a group.

    Parameters
    ----------
    mechanism : array, (|Y|, |U|)
    prior : array, (|Y|,)

    Examples
    --------
    >>> distinct_outputs(np.array([[0.2, 0.4, 0.4], [0.3, 0.1, 0.6]]), np.array([0.5, 0.5]))
    {'u0': [0, 2], 'u1': [1]}
    """
    joint = prior[:, None] * mechanism
    mass = joint.sum(axis=0)
    beliefs = joint / np.where(mass > 0.0, mass, 1.0)
    groups: list[list[int]] = []
    for u in np.flatnonzero(mass > 0.0).tolist():
        same = [group for group in groups if np.abs(beliefs[:, group[0]] - beliefs[:, u]).max() <= SAME]
        if same:
            same[0].append(u)
        else:
            groups.append([u])
    return {f"u{group[0]}": group for group in groups}


def _constraints(found: ServiceStudy) -> Section | None:
    if not found.constraints:
        return None
    frame = pd.DataFrame(
        {
            "constraint": list(found.constraints),
            "as called": [constraint.name for constraint in found.constraints.values()],
            "missed by": [found.violations[text] for text in found.constraints],
        }
    )
    return Section(
        "Constraints", "Each was looked at in the mechanism itself, without a solver.", tables=[Table(frame)]
    )


def _disclosure(found: ServiceStudy) -> Section | None:
    return disclosure_section(
        found,
        "What a release tells",
        "The best accuracy is the chance to name S right, knowing the table and nothing else, U, or Y.",
    )


def _starts(found: ServiceStudy) -> Section:
    history = found.run.log.frame()
    if "objective" in history:  # the loops that a start goes through one after the other, as one
        history = history.dropna(subset=["objective"])
        history = history.assign(iteration=history.groupby("start").cumcount() + 1)
    caption = "Objective, accuracy and residual in nats."
    starts = found.run.starts.drop(columns=["converged"] if found.constraints else [])  # there the gap decides
    return starts_section(found, starts, {"objective": False, "kkt": True}, history, caption)


def _settings(found: ServiceStudy) -> Section:
    problem = found.run.problem
    facts = {
        "divergence": formula_of(found),
        "beta": problem.beta,
        "outputs |U|": problem.size_u,
        "floor": problem.floor,
        "constraints": ", ".join(found.constraints) or None,
    }
    return settings_section(found, facts)
