"""What a command says of a funnel's study on the terminal."""

from __future__ import annotations

from cvxpriv.cli.studies import exact_zero
from cvxpriv.cli.studies.text import crosscheck_part, curve_part, effort_rows, heading, interval_text, padded, share
from cvxpriv.mechanisms.disclosure import STATEMENT
from cvxpriv.reports.layout import number, paragraph, table

from .study import FunnelStudy

__all__ = ["findings"]

CURVE = {
    "rate/H(X)": ("fraction", "{:.3f}".format),
    "I(X;Y) nats": ("utility", number),
    "I(S;Y) nats": ("leakage", lambda leakage: number(exact_zero(leakage))),
}


def findings(found: FunnelStudy) -> str:
    """Return the whole text: table, figures, curve, cross-check, promise."""
    parts = [
        heading(found),
        _figures(found),
        *curve_part(found, "Privacy-utility curve", CURVE),
        *crosscheck_part(found),
        paragraph(STATEMENT, indent=""),
    ]
    return "\n\n".join(parts)


def _figures(found: FunnelStudy) -> str:
    run, data = found.run, found.table
    leakage = exact_zero(run.leakage)
    told, leaked = share(run.utility, data.entropy_x, "H(X)"), share(leakage, data.information, "I(S;X)")
    rows = [
        ["utility", "I(X;Y)", f"{number(run.utility)} nats", told, *interval_text(found, "utility")],
        ["leakage", "I(S;Y)", f"{number(leakage)} nats", leaked, *interval_text(found, "leakage")],
    ]
    if found.found is not None:
        nothing, y, x = (f"{found.found.value(f'accuracy_{what}'):.1%}" for what in ("nothing", "y", "x"))
        rows.append(["S guessed", "", y, f"from Y; {nothing} from nothing, {x} from X"])
    return "Mechanism\n" + table([], padded([*rows, *effort_rows(found)]), "llrll")
