"""What a command says of a study on the terminal: plain, aligned, readable in 80 columns."""

from __future__ import annotations

import numpy as np

from cvxpriv.cli.crosscheck import crosscheck_text
from cvxpriv.cli.layout import number, paragraph, residual, table
from cvxpriv.disclosure import STATEMENT

from .run import FunnelRun
from .study import Study, exact_zero

__all__ = ["findings", "reported"]

SHOWN_RATES = 10
"""How many rates of a longer curve the terminal shows."""


def findings(found: Study) -> str:
    """Return the whole text: table, figures, curve, cross-check, promise."""
    parts = [_heading(found), _figures(found)]
    if found.curve is not None:
        parts.append(_curve(found))
    if found.check is not None:
        parts.append(f"Every block solved again at this answer\n{crosscheck_text(found.check)}")
    parts.append(paragraph(STATEMENT, indent=""))
    return "\n\n".join(parts)


def reported(run: FunnelRun) -> str:
    """Return in words which start was best, and after how many iterations."""
    many = f"{run.settings.starts} starts" if run.settings.starts > 1 else "1 start"
    return f"{many} (start {run.start}, {run.iterations} iterations)"


def _heading(found: Study) -> str:
    data = found.table
    records = "given as probabilities" if data.records is None else f"{data.records:,} records"
    rows = [
        ["private S", f"{', '.join(data.private.columns)} ({len(data.private)} symbols)"],
        ["public X", f"{', '.join(data.public.columns)} ({len(data.public)} symbols)"],
        ["counted from", f"{records}, smoothing: {data.smoothing}"],
    ]
    return f"{found.source}\n{table([], rows)}"


def _figures(found: Study) -> str:
    run, data = found.run, found.table
    leakage = exact_zero(run.leakage)
    rows = [
        ["utility", "I(X;Y)", f"{number(run.utility)} nats", _share(run.utility, data.entropy_x, "H(X)")],
        ["leakage", "I(S;Y)", f"{number(leakage)} nats", _share(leakage, data.information, "I(S;X)")],
    ]
    if found.found is not None:
        for row in (0, 1):
            name = ("utility", "leakage")[row]
            if (interval := found.found.interval(name)) is not None:
                rows[row].append(f"{found.found.level:.0%}: {number(interval[0])} to {number(interval[1])}")
        guesses = [f"{found.found.value(f'accuracy_{what}'):.1%}" for what in ("nothing", "y", "x")]
        rows.append(["S guessed", "", guesses[1], f"from Y; {guesses[0]} from nothing, {guesses[2]} from X"])
    verdict = "" if run.converged else "  NOT CONVERGED"
    rows.append(["KKT", "", f"{residual(run.kkt.largest)} nats", f"asked for {residual(found.options.tol)}{verdict}"])
    rows.append(["solved", "", f"{number(run.seconds)} s", f"best of {reported(run)}"])
    wide = max(len(row) for row in rows)
    return "Mechanism\n" + table([], [row + [""] * (wide - len(row)) for row in rows], "llrll")


def _share(value: float, whole: float, name: str) -> str:
    return f"{100 * value / whole:.3g}% of {name} = {number(whole)}" if whole > 0 else f"{name} = 0"


def _curve(found: Study) -> str:
    assert found.curve is not None
    count = len(found.curve)
    shown = np.unique(np.linspace(0, count - 1, min(count, SHOWN_RATES)).round().astype(int))
    figures = found.curve.iloc[shown]
    columns = [
        figures["fraction"].map("{:.3f}".format),
        figures["utility"].map(number),
        figures["leakage"].map(exact_zero).map(number),
        figures["kkt"].map(residual),
        figures["converged"].map({True: "", False: "no"}),
    ]
    rows = [list(row) for row in zip(*columns, strict=True)]
    head = ["rate/H(X)", "I(X;Y) nats", "I(S;Y) nats", "KKT", "converged" if any(row[-1] for row in rows) else ""]
    left = f" ({len(shown)} of {count} rates; all in curve.csv)" if len(shown) < count else ""
    return f"Privacy-utility curve{left}\n{table(head, rows, 'rrrrl')}"
