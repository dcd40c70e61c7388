"""Equivalent ways of writing one problem, compared: value, accuracy, cones, size, time, verdict."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.certify.cases import Case, values_kept
from cvxpriv.certify.check import crosscheck
from cvxpriv.certify.references import CLOSED_FORM, accurate_answer
from cvxpriv.certify.sections import largest_residual
from cvxpriv.certify.verdicts import Tolerances
from cvxpriv.kkt.conic.program import ConeProgram
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import pd
from cvxpriv.reports.facts import Facts, Section, Table
from cvxpriv.reports.files import PathLike
from cvxpriv.reports.text import text_of


@door
@dataclass(frozen=True)
class Formulations:
    """The result of `compare_formulations`.

    Attributes
    ----------
    table : DataFrame
        One row per formulation and solver. Columns: formulation, solver, verdict, value (NaN if there is none),
        accuracy (distance of the value to the reference, relative to max(1, |reference|)), residual (largest exact one
        of the cone program, relative), natural (how far a variable moves to its own optimum), cones, rows, columns,
        nonzeros (of the cone program that the solver gets), compile_seconds, solve_seconds (the solver's own clock),
        iterations, status, reason.
    reference : float
        The value that all others are compared with.
    why : str
        The source of the reference.
    """

    table: pd.DataFrame
    reference: float
    why: str

    def to_html(self, path: PathLike, title: str = "Formulations compared") -> Path:
        """Write one self-contained page: verdicts, then accuracy, size and time.

        Raises
        ------
        DataError
            The file cannot be written.
        ModelError
            Jinja2 is missing.
        """
        from cvxpriv.reports.page import write

        summary = f"{self.table['formulation'].nunique()} ways of writing one problem. Reference: {self.why}."
        return write(Facts(title, summary, sections=self._sections()), path)

    def _sections(self) -> list[Section]:
        def section(title: str, names: Sequence[str], text: str = "", heat: Sequence[str] = ()) -> Section:
            frame = self.table[["formulation", "solver", *names]].rename(columns=lambda name: name.replace("_", " "))
            shown = Section(title, text, tables=[Table(frame, sortable=True, heat=heat, digits={"value": 10})])
            return replace(shown, brief=shown)

        return [
            section("Verdicts", ["verdict", "status", "reason"]),
            section(
                "Accuracy",
                ["value", "accuracy", "residual", "natural"],
                "accuracy: relative distance of the value to the reference. residual: the largest exact one of the "
                "cone program. natural: how far a variable moves to its own optimum.",
                ["accuracy", "residual", "natural"],
            ),
            section("Size", ["cones", "rows", "columns", "nonzeros"], "Of the cone program that the solver gets."),
            section("Time", ["compile_seconds", "solve_seconds", "iterations"], "Each once, from a cold start."),
        ]

    def __str__(self) -> str:
        why = f"Reference: {self.why}."
        return text_of(Facts("Formulations compared", messages=[why], sections=self._sections()))


@door
def compare_formulations(
    formulations: Mapping[str, cp.Problem | Case | Callable[[], cp.Problem]],
    solvers: Sequence[str] | None = None,
    *,
    reference: float | None = None,
    tolerance: float | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> Formulations:
    """Solve each formulation by each solver, and compare all of them with one reference value.

    Parameters
    ----------
    formulations : mapping of str to cvxpy.Problem, Case or function that returns a problem
        Formulations that all have the same optimal value.
    solvers : sequence of str, optional
        Names of solvers. None is every installed one. Those that do not take a formulation's cones have no row.
    reference : float, optional
        The optimal value, if it is known. None takes the most accurate of all: each formulation is solved again at
        tight tolerances, and the answer with the smallest exact residual wins.
    tolerance : float, optional
        Tolerance requested of every solver. None is each solver's own.
    options : mapping of solver to options, optional
        Options of each solver, which override the tolerance.

    Raises
    ------
    ModelError
        A problem that cannot be checked, or an unknown solver.

    Examples
    --------
    >>> x, t = cp.Variable(2), cp.Variable()
    >>> direct = cp.Problem(cp.Minimize(cp.norm(x - 1)), [cp.sum(x) == 0])
    >>> lifted = cp.Problem(cp.Minimize(t), [cp.SOC(t, x - 1), cp.sum(x) == 0])
    >>> found = compare_formulations({"norm": direct, "cone": lifted}, ["CLARABEL"])
    >>> found.table["verdict"].tolist(), round(found.reference, 6)
    (['agrees', 'agrees'], 1.414214)
    """
    check = crosscheck(dict(formulations), solvers, tolerance=tolerance, options=options)
    value, why = _reference(check.cases) if reference is None else (float(reference), "the caller's own value")
    cases = {case.name: case for case in check.cases}
    rows = [
        _row(cases[str(row["case"])], row, value, check.tolerances)
        for row in check.table.to_dict("records")
        if row["solver"] != CLOSED_FORM
    ]
    return Formulations(pd.DataFrame(rows), value, why)


def _reference(cases: Sequence[Case]) -> tuple[float, str]:
    candidates = []
    for case in cases:
        with values_kept(case):
            candidates.append((accurate_answer(case)[0], case.name))
    best, name = min(candidates, key=lambda pair: pair[0].quality)
    if not np.isfinite(best.quality):
        return float("nan"), "none: nobody returned a solution"
    exact = f"exact residual {best.quality:.1e}"
    return best.objective, f"{name} by {best.solver} at {best.asked:.0e}, the most accurate of all ({exact})"


def _row(case: Case, row: Mapping[Any, Any], reference: float, tolerances: Tolerances) -> dict[str, Any]:
    """Return the row of one answer: where only its value is off, the formulation is to blame and not the solver."""
    verdict, reason, residual = row["verdict"], row["reason"], largest_residual(row)
    accuracy = abs(row["objective"] - reference) / max(1.0, abs(reference))
    off = f"its value is {accuracy:.1e} (relative) off the reference"
    if verdict in ("agrees", "loose") and accuracy > tolerances.wrong_objective:
        solved = f"solves its own problem (exact residual {residual:.0e})"
        verdict, reason = "WRONG", f"{solved}, but {off}: it is not the same problem"
    elif verdict == "agrees" and accuracy > tolerances.agree:
        verdict, reason = "loose", off
    return {
        "formulation": case.name,
        "solver": row["solver"],
        "verdict": verdict,
        "value": row["objective"],
        "accuracy": accuracy,
        "residual": residual,
        "natural": row["natural"],
        **_size(case, row["solver"]),
        "solve_seconds": row["solver_seconds"],
        "iterations": row["iterations"],
        "status": row["status"],
        "reason": reason,
    }


def _size(case: Case, solver: str) -> dict[str, Any]:
    """Return the cones and the size of the solver's program, and the seconds that cvxpy takes to compile it."""
    problem = case.declare().problem
    begun = time.perf_counter()
    program = ConeProgram.from_problem(problem, solver)
    seconds = time.perf_counter() - begun
    layout = program.layout
    counts = Counter(name.split("[")[0] for name in layout.names) + Counter(quadratic=program.P.nnz)
    return {
        "cones": ", ".join(f"{name} {count}" for name, count in counts.items()),
        "rows": layout.size,
        "columns": int(program.c.size),
        "nonzeros": int(program.A.nnz),
        "compile_seconds": seconds,
    }
