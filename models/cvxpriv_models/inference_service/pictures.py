"""Pictures of inference as a service: the accuracy-privacy curve, and the mechanism's outputs that differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.packages import pd
from cvxpriv.reports.formatting import format_number
from cvxpriv.reports.pictures import COLOURS, GREY, blank, styled

from .problem import Problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Outputs whose P(Y|u) differ by no more say the same to a reader.
SAME = 1e-3
#: Points of the curve below this share of I(S;Y) lie near the axis.
LOW = 0.08


@styled
def curve_figure(problem: Problem, mechanism: Array, curve: pd.DataFrame) -> Figure:
    """Return accuracy I(S;U) against leakage E[d], with the designed mechanism on it and each point's beta beside."""
    information = problem.table.information
    accuracy, leakage = problem.accuracy(mechanism), problem.leakage(mechanism)
    own = pd.DataFrame({"beta": [problem.beta], "leakage": [leakage], "accuracy": [accuracy]})
    points = pd.concat([curve[list(own)], own]).sort_values(["leakage", "accuracy"])
    figure = blank(7.2, 4.6)
    axes = figure.add_subplot()
    axes.plot(points["leakage"], points["accuracy"], "o-", color=COLOURS[0], zorder=3, clip_on=False)
    small: dict[str, Any] = {"textcoords": "offset points", "fontsize": 9, "color": GREY}
    for beta, across, up in points.drop_duplicates(["leakage", "accuracy"])[list(own)].to_numpy(float):
        below = up > LOW * information  # else the label would stand on the axis
        axes.annotate(f"β = {beta:.3g}", (across, up), xytext=(5, -15 if below else 8), **small)
    ring: dict[str, Any] = {"markersize": 14, "markerfacecolor": "none", "markeredgecolor": "black"}
    ring |= {"label": "chosen mechanism", "linestyle": "none"}
    axes.plot(leakage, accuracy, "o", zorder=6, clip_on=False, **ring)
    axes.axhline(information, linestyle=":", color=GREY, linewidth=1.2, zorder=1)
    axes.annotate(f"I(S;Y) = {format_number(information)}", (0, information), xytext=(6, 4), **small)
    axes.set_xlim(0, max(axes.get_xlim()[1], points["leakage"].max() * 1.12))
    axes.set_ylim(0, information * 1.12 or 1.0)
    axes.set_xlabel(f"leakage E[d], {problem.divergence.name}")
    axes.set_ylabel("accuracy I(S;U) in nats")
    axes.legend(loc="best")
    return figure


def distinct_outputs(mechanism: Array, prior: Array) -> dict[str, list[int]]:
    """Return groups of outputs that say the same of Y: their P(Y|u) differ by at most `SAME`; the first names a group.

    `mechanism`: (|Y|, |U|). `prior`: (|Y|,).

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
