"""The promises of a mechanism of inference as a service, and cautions for its reader, in sentences."""

from collections.abc import Mapping

import numpy as np

from cvxpriv.blocks.declaration import Constraint
from cvxpriv.constraints.ready import ReadyConstraint
from cvxpriv.reports.formatting import at_most, format_number

from .thresholds import SHARE, CriticalBeta

OF_RELEASES = (
    "Accuracy and leakage are averages over the population that the table describes, for one draw of U for each "
    "record, and for somebody who knows that table. They promise nothing about a single person, about other "
    "attributes, about two releases of the same rows, or about columns released beside U."
)
STATEMENT = (
    OF_RELEASES + " The mechanism and its figures are computed from the table's records and are not themselves "
    "differentially private: the mechanism and its exact figures stay at home."
)
LOCAL = (
    "With {name} each draw of U is {epsilon}-locally differentially private for the data Y, of each person and "
    "whatever the population is{delta}."
)


PROVED = (
    "This mechanism is worth at most {gap} nats less than the best possible one, however the server reads U, on "
    "average over the people of the table and over one draw of U for each."
)
PROOF = (
    " The bound is proved by multipliers in certificate.json; `python {program} certificate.json` derives "
    "it again in exact arithmetic, without a solver."
)
AT_HOME = " The certificate holds the private table: it stays at home."


def optimality(
    best_of: str, local_gap: float, gap: float | None, program: str, critical: CriticalBeta, private: bool
) -> list[str]:
    """Return how far the answer is known to be the best, and from which beta on nothing is worth telling.

    `best_of`: Number of starts, in words.
    `local_gap`, `gap`: As in `inference_facts`.
    `program`: The one that checks the proof of `gap`, where it is written beside the page.
    """
    certified = (
        "While the server reads U as it does now, no mechanism is better by more than "
        f"{format_number(max(local_gap, 0.0), 2)} nats, which is certified; with another reading one may be."
        if np.isfinite(local_gap)
        else "Another one may be better."
    )
    whole = f"The problem is not convex in what the server reads out of U: the answer is {best_of}. {certified}"
    if gap is not None:
        whole = PROVED.format(gap=format_number(gap, 2)) + (
            PROOF.format(program=program) + AT_HOME * private if program else ""
        )
    late = "" if critical.sharp else ", if not before"
    return [
        whole,
        f"From beta = {at_most(critical.searched, 2)} on no mechanism is worth more than 0{late}, and the trivial "
        "mechanism, which says nothing, is optimal. This threshold was searched for.",
    ]


def local_privacy(constraints: tuple[tuple[str, Constraint], ...], missed: Mapping[str, float]) -> list[str]:
    """Return what holds for each person under local differential privacy; nothing without such a constraint."""
    found = []
    for name, constraint in constraints:
        if isinstance(constraint, ReadyConstraint) and constraint.kind == "local_differential_privacy":
            epsilon, delta = (float(constraint.parameters.get(key, 0.0)) for key in ("epsilon", "delta"))
            found.append((delta, epsilon, delta + missed[name], name))
    pure = sorted(one for one in found if one[0] == 0.0)[:1]
    return [
        LOCAL.format(
            name=name,
            epsilon=at_most(epsilon),
            delta=f", to within delta = {at_most(within, 2)}" * (within > 0),
        )
        for delta, epsilon, within, name in [*pure, *(one for one in found if one[0] > 0.0)]
    ]


def remedy(critical: CriticalBeta) -> str:
    """Return the advice where the trivial mechanism is optimal; nothing where no weight would help."""
    if not critical.exists:
        return ""
    return f"Give a smaller beta, for example {format_number(SHARE * critical.searched, 2)}."
