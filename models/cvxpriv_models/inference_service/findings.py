"""What a command says of a service's study: on the terminal, and in words that the page has too."""

from __future__ import annotations

import numpy as np

from cvxpriv.cli.studies import exact_zero
from cvxpriv.cli.studies.text import crosscheck_part, curve_part, effort_rows, heading, interval_text, share
from cvxpriv.reports.layout import number, paragraph, residual, table

from .study import ROUNDING, SHARE, ServiceStudy

__all__ = ["findings", "formula_of", "promise", "remarks"]

STATEMENT = (
    "Accuracy and leakage are averages over the population that the table describes, for one draw of U for each "
    "record, and for somebody who knows that table. They promise nothing about a single person, about other "
    "attributes, about two releases of the same rows, or about columns released beside U. The mechanism and its "
    "figures are computed from the table's records and are not themselves differentially private."
)
LOCAL = (
    "With {text} each draw of U is {epsilon}-locally differentially private for the data Y, of each person and "
    "whatever the population is{delta}."
)
CURVE = {
    "beta": ("beta", number),
    "accuracy I(S;U) nats": ("accuracy", lambda accuracy: number(exact_zero(accuracy))),
    "leakage E[d]": ("leakage", lambda leakage: number(exact_zero(leakage))),
    "objective": ("objective", lambda objective: number(exact_zero(objective))),
}


def findings(found: ServiceStudy) -> str:
    """Return the whole text: table, figures, constraints, notes, curve, cross-check, promise."""
    parts = [
        heading(found),
        _figures(found),
        *_constraints(found),
        *(paragraph(note, indent="") for note in remarks(found)),
        *curve_part(found, "Accuracy-privacy curve", CURVE),
        *crosscheck_part(found),
        paragraph(promise(found), indent=""),
    ]
    return "\n\n".join(parts)


def formula_of(found: ServiceStudy) -> str:
    """Return the divergence's name with its formula."""
    f = found.run.problem.divergence
    return f"{f.name}: f(t) = {f.formula}" if f.formula and f.formula != f.name else f.name


def promise(found: ServiceStudy) -> str:
    """Return what the figures mean, and, under local differential privacy, what holds for each person."""
    local = [text for text in found.constraints if text.partition("=")[0].strip().lower() == "ldp"]
    if not local:
        return STATEMENT
    strictest = min(local, key=lambda text: float(text.partition("=")[2]))
    missed = found.violations[strictest]
    delta = f", to within delta = {residual(missed)}" if missed else ""
    return f"{STATEMENT} " + LOCAL.format(text=strictest, epsilon=strictest.partition("=")[2].strip(), delta=delta)


def remarks(found: ServiceStudy) -> list[str]:
    """Return what a reader must know of the answer, and the remedy where the trivial mechanism is optimal."""
    threshold = found.critical.searched
    notes = [found.run.note] if found.run.note else []
    if found.run.trivial and found.trivial_is_optimal and threshold > ROUNDING:
        notes.append(f"Give a smaller --beta, for example {number(SHARE * threshold, 2)}.")
    return notes


def _figures(found: ServiceStudy) -> str:
    run, data = found.run, found.table
    accuracy, leakage = exact_zero(run.accuracy), exact_zero(run.leakage)
    rows = [
        [
            "accuracy",
            "I(S;U)",
            f"{number(accuracy)} nats",
            "; ".join([share(accuracy, data.information, "I(S;Y)"), *interval_text(found, "leakage")]),
        ],
        ["leakage", "E[d]", number(leakage), _leaked(found, leakage)],
        [
            "objective",
            "",
            number(exact_zero(run.objective)),
            f"accuracy - beta leakage, beta = {number(run.problem.beta)}",
        ],
    ]
    if found.found is not None:
        nothing, u, y = (f"{found.found.value(f'accuracy_{what}'):.1%}" for what in ("nothing", "y", "x"))
        rows.append(["S guessed", "", u, f"from U; {nothing} from nothing, {y} from Y"])
    critical = found.critical
    verdict = "at or above it" if found.trivial_is_optimal else "below it"
    rows.append(
        [
            "threshold",
            "beta",
            number(critical.searched),
            f"beta is {verdict}; near the trivial mechanism {number(critical.local)}",
        ]
    )
    kkt, effort = effort_rows(found)
    gap = ["gap", "", f"{residual(run.gap)} nats", "at most, while the server reads U as it does now"]
    if found.constraints:  # a solver's point has an accurate value and inaccurate derivatives
        gap[-1] += f"; {kkt[-1]}"
        kkt[-1] = "at the solver's point; the gap decides"
    rows += [kkt, gap, effort]
    head = f"Mechanism: {run.mechanism.shape[1]} outputs U, divergence {formula_of(found)}"
    return f"{paragraph(head, indent='', hanging='  ')}\n{table([], rows, 'llrl')}"


def _leaked(found: ServiceStudy, leakage: float) -> str:
    whole = found.whole_leakage
    return share(leakage, whole, "that of Y itself") if np.isfinite(whole) else "that of Y itself is infinite"


def _constraints(found: ServiceStudy) -> list[str]:
    if not found.constraints:
        return []
    rows = [[text, f"missed by {residual(found.violations[text])}"] for text in found.constraints]
    return ["Constraints\n" + table([], rows)]
