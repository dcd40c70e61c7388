"""Equivalent ways of writing one problem, compared: value, accuracy, cones, size, time, verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.certify.answers import NAN, Answer
from cvxpriv.certify.cases import Case, cases_of, values_kept
from cvxpriv.certify.problem_checks import solver_names
from cvxpriv.certify.proofs import Proofs
from cvxpriv.certify.references import Reference, accurate_answer
from cvxpriv.certify.task import Task, rows_of
from cvxpriv.certify.verdicts import Tolerances
from cvxpriv.errors import ModelError
from cvxpriv.kkt.conic.program import ConeProgram
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.later import pd
from cvxpriv.reports import formatting
from cvxpriv.reports.files import PathLike
from cvxpriv.solvers.isolation import HERE
from cvxpriv.solvers.registry import solver_spec


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

    def best(self) -> pd.Series:
        """The row of the smallest accuracy among those that agree; of those equal to 1e-9, the fastest.

        Raises
        ------
        ModelError
            No row agrees.
        """
        agreeing = self.table[self.table["verdict"] == "agrees"]
        if agreeing.empty:
            raise ModelError("no formulation agrees with the reference: read table for the reasons")
        near = agreeing[agreeing["accuracy"] <= agreeing["accuracy"].min() + 1e-9]
        seconds = near["compile_seconds"] + near["solve_seconds"]
        row: pd.Series = near.loc[seconds.idxmin()]
        return row

    def to_html(self, path: PathLike, title: str = "Formulations compared") -> Path:
        """Write one self-contained page: verdicts, then accuracy, size and time.

        Raises
        ------
        DataError
            The file cannot be written.
        ModelError
            Jinja2 is missing.
        """
        from cvxpriv.reports.facts import Facts, Section, Table
        from cvxpriv.reports.page import write

        def section(title: str, names: Sequence[str], text: str = "", heat: Sequence[str] = ()) -> Section:
            frame = self.table[["formulation", "solver", *names]].rename(columns=lambda name: name.replace("_", " "))
            if "value" in names:
                frame["value"] = [f"{value:.10g}" for value in frame["value"]]
            return Section(title, text, tables=[Table(frame, sortable=True, heat=heat)])

        summary = f"{self.table['formulation'].nunique()} ways of writing one problem. Reference: {self.why}."
        sections = [
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
        return write(Facts(title, summary, sections=sections), path)

    def __str__(self) -> str:
        figures = ["value", "accuracy", "natural", "rows", "nonzeros", "compile", "solve"]
        head = ["verdict", "formulation", "solver", *figures]
        body = [
            [
                *(str(row[name]) for name in ("verdict", "formulation", "solver")),
                f"{row['value']:.9g}",
                *(formatting.format_cell(row[name], 2) for name in ("accuracy", "natural", "rows", "nonzeros")),
                *(f"{1e3 * row[name]:.1f} ms" for name in ("compile_seconds", "solve_seconds")),
            ]
            for row in self.table.to_dict("records")
        ]
        reasons = [
            f"  - {row['formulation']} by {row['solver']}: {row['reason']}"
            for row in self.table.to_dict("records")
            if row["verdict"] != "agrees"
        ]
        return "\n".join([formatting.table(head, body, "lllrrrrrrr", ""), *reasons, f"reference: {self.why}"])


@door
def compare_formulations(
    formulations: Mapping[str, cp.Problem | Case | Callable[[], cp.Problem]],
    solvers: Sequence[str] | None = None,
    *,
    reference: float | None = None,
    tolerances: Tolerances | None = None,
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
    tolerances : Tolerances, optional
        The limits at which verdicts change.
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
    own = {solver_spec(name).name: dict(chosen) for name, chosen in (options or {}).items()}
    task = Task(solver_names(solvers), tolerance, own, HERE, {}, None, tolerances or Tolerances())
    cases = cases_of(dict(formulations))
    answers: dict[str, list[Answer]] = {}
    for case in cases:
        with values_kept(case):
            answers[case.name] = [task.answer(case, solver) for solver in task.capable(case)[0]]
    value, why = _reference(cases, answers) if reference is None else (float(reference), "the caller's own value")
    rows = [row for case in cases for row in _rows(case, answers[case.name], value, task.tolerances)]
    return Formulations(pd.DataFrame(rows), value, why)


def _reference(cases: Sequence[Case], answers: Mapping[str, Sequence[Answer]]) -> tuple[float, str]:
    candidates = [(answer, name) for name, several in answers.items() for answer in several]
    for case in cases:
        with values_kept(case):
            candidates.append((accurate_answer(case)[0], case.name))
    best, name = min(candidates, key=lambda pair: pair[0].quality)
    if not np.isfinite(best.quality):
        return float("nan"), "none: nobody returned a solution"
    exact = f"exact residual {best.quality:.1e}"
    return best.objective, f"{name} by {best.solver} at {best.asked:.0e}, the most accurate of all ({exact})"


def _rows(case: Case, answers: Sequence[Answer], reference: float, tolerances: Tolerances) -> list[dict[str, Any]]:
    """Return the rows of one formulation: where only the value is off, it is to blame and not the solver."""
    proofs = Proofs(case)
    alone = rows_of(case, answers, Reference(float("nan"), {}, ""), tolerances, proofs)
    beside = rows_of(case, answers, Reference(reference, {}, ""), tolerances, proofs)
    found = []
    for answer, blind, row in zip(answers, alone, beside, strict=True):
        verdict, reason = row["verdict"], row["reason"]
        if blind["verdict"] in ("agrees", "loose") and row["gap"] > tolerances.wrong_objective:
            solved = f"solves its own problem (exact residual {answer.quality:.0e})"
            off = f"its value is {row['gap']:.1e} (relative) off the reference"
            verdict, reason = "WRONG", f"{solved}, but {off}: it is not the same problem"
        found.append(
            {
                "formulation": case.name,
                "solver": answer.solver,
                "verdict": verdict,
                "value": answer.objective,
                "accuracy": row["gap"],
                "residual": NAN if answer.cone is None else answer.cone.largest,
                "natural": row["natural"],
                **_size(case, answer.solver),
                "solve_seconds": row["solver_seconds"],
                "iterations": row["iterations"],
                "status": row["status"],
                "reason": reason,
            }
        )
    return found


def _size(case: Case, solver: str) -> dict[str, Any]:
    """Return the cones and the size of the solver's program, and the seconds that cvxpy takes to compile it."""
    problem = case.declare().problem
    begun = time.perf_counter()
    program = ConeProgram.from_problem(problem, solver)
    seconds = time.perf_counter() - begun
    layout = program.layout
    counts = {
        "zero": layout.zero,
        "nonneg": layout.nonneg,
        "soc": len(layout.soc),
        "psd": len(layout.psd),
        "exp": layout.exp,
        "power": len(layout.power),
        "quadratic": program.P.nnz,
    }
    return {
        "cones": ", ".join(f"{name} {count}" for name, count in counts.items() if count),
        "rows": layout.size,
        "columns": int(program.c.size),
        "nonzeros": int(program.A.nnz),
        "compile_seconds": seconds,
    }
