"""A false answer as a report for its solver's authors: the least problem that still shows it, as a script.

Delta debugging: whatever can be dropped while the verdict stays is dropped. First constraints of the problem as
written; then, in the cone program that the solver is given, blocks of rows, columns, and digits.

A cone program stands here as a cvxpy problem.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from cvxpriv.certify.bug_scripts import Trial, script_of
from cvxpriv.certify.written_out import Written
from cvxpriv.errors import CvxprivError, ModelError
from cvxpriv.kkt.conic.cones import ConeLayout, triangle_indices
from cvxpriv.kkt.conic.cones.layout import KINDS
from cvxpriv.kkt.conic.program import ConeProgram
from cvxpriv.numerics.arrays import Array
from cvxpriv.reports.files import PathLike, write_text


def problem_of_program(program: ConeProgram, integers: Sequence[int] = ()) -> cp.Problem:
    """Return a cone program as a cvxpy problem of one variable ``x``, whose constraints are its blocks.

    `integers`: Columns that are whole numbers.
    Raises ModelError: It has a power cone of more than three entries.
    """
    x = cp.Variable(program.c.size, name="x", integer=[tuple(integers)] if integers else False)
    value = program.c @ x + program.d
    if program.P.nnz:
        value = value + cp.quad_form(x, cp.psd_wrap(program.P)) / 2
    constraints: list[Any] = []
    for name, piece in program.layout.slices.items():
        rows = program.b[piece] - sp.csr_array(program.A)[piece.start : piece.stop] @ x
        constraints.append(_constraint(program.layout, name, rows))
    sense = cp.Maximize(-value) if program.maximise else cp.Minimize(value)
    return cp.Problem(sense, constraints)


def _constraint(layout: ConeLayout, name: str, rows: Any) -> Any:
    """One block's constraint."""
    kind, number = name.rstrip("]").split("[")
    if kind == "zero":
        return rows == 0
    if kind == "nonneg":
        return rows >= 0
    if kind == "soc":
        return cp.SOC(rows[0], rows[1:]) if rows.size > 1 else rows >= 0
    if kind == "exp":
        return cp.ExpCone(rows[0], rows[1], rows[2])
    if kind == "psd":
        return _matrix(rows, layout.psd[int(number)], layout.triangle) >> 0
    alpha = layout.power[int(number)]
    if len(alpha) != 2:
        raise ModelError(f"{name} has {len(alpha) + 1} entries: only power cones of three are written out")
    return cp.PowCone3D(rows[0], rows[1], rows[2], alpha[0])


def _matrix(rows: Any, order: int, triangle: Any) -> Any:
    """The symmetric matrix of a scaled triangle."""
    i, j = triangle_indices(order, triangle)
    weights = np.where(i == j, 1.0, 1.0 / np.sqrt(2.0))
    places = np.arange(i.size)
    pairs = np.concatenate([i + order * j, j + order * i]), np.concatenate([places, places])
    halves = np.where(np.concatenate([i == j, i == j]), 0.5, 1.0) * np.concatenate([weights, weights])
    spread = sp.csr_array(sp.coo_array((halves, pairs), shape=(order * order, i.size)))
    return cp.reshape(spread @ rows, (order, order), order="F")


def with_blocks(program: ConeProgram, names: Sequence[str]) -> ConeProgram:
    """Return a program with some of its blocks only."""
    kept = set(names)
    layout, slices = program.layout, program.layout.slices
    rows = [np.arange(piece.start, piece.stop) for name, piece in slices.items() if name in kept]
    chosen = np.concatenate([np.zeros(0, dtype=int), *rows])

    def of(kind: str) -> Any:
        own, numbers = (
            getattr(layout, kind),
            [int(one.split("[")[1][:-1]) for one in slices if one in kept and one.startswith(f"{kind}[")],
        )
        return len(numbers) if isinstance(own, int) else tuple(own[k] for k in numbers)

    fewer = replace(layout, **{kind: of(kind) for kind in KINDS})
    return replace(program, A=sp.csc_array(sp.csr_array(program.A)[chosen]), b=program.b[chosen], layout=fewer)


def with_columns(program: ConeProgram, columns: Sequence[int]) -> ConeProgram:
    """Return a program with some of its columns only: the others are zero."""
    kept = np.array(sorted(columns), dtype=int)
    P = sp.csc_array(sp.csc_array(program.P[:, kept])[kept])
    return replace(program, P=P, c=program.c[kept], A=sp.csc_array(program.A[:, kept]), columns=(("x", kept.size),))


def rounded(program: ConeProgram, digits: int) -> ConeProgram:
    """Return a program whose numbers have so many significant digits.

    >>> x = cp.Variable()
    >>> rounded(ConeProgram.from_problem(cp.Problem(cp.Minimize(1.25 * x), [x >= 0]), "SCS"), 1).c.tolist()
    [1.0]
    """

    def short(values: Array) -> Array:
        return np.array([float(f"{value:.{digits - 1}e}") for value in np.ravel(values)])

    P, A = sp.csc_array(program.P, copy=True), sp.csc_array(program.A, copy=True)
    P.data, A.data = short(P.data), short(A.data)
    return replace(program, P=P, A=A, c=short(program.c), b=short(program.b), d=float(short(np.array([program.d]))[0]))


DIGITS = (1, 2, 3, 4, 6, 8, 10, 12)
Item = TypeVar("Item")
Judge = Callable[[cp.Problem], Trial]


@dataclass(frozen=True)
class BugReport:
    """A false answer and the least problem that shows it.

    `problem`: The least one found.
    `trial`: The solver's answer to it, and the truth.
    `script`: Stand-alone Python: the data, the solver's own interface where it is known, the given and the expected
    answer.
    `trials`: Number of problems that were judged on the way.
    `late`: Whether time ended the search: a smaller one may show it as well. The script says so.
    """

    solver: str
    problem: cp.Problem = field(repr=False)
    trial: Trial = field(repr=False)
    script: str = field(repr=False)
    trials: int = 0
    late: bool = False

    def write(self, path: PathLike) -> Path:
        """Write the script to a file, for its owner alone: it holds numbers of the problem, which may be private."""
        return write_text(path, self.script, private=True)

    def __str__(self) -> str:
        return self.script


def bug_report(
    problem: cp.Problem, solver: str, judge: Judge, options: Mapping[str, Any] | None, seconds: float
) -> BugReport:
    """Shrink a problem while the verdict on a solver stays WRONG, and write the script.

    `judge`: Returns what is said of the solver's answer to a problem.
    `options`: The solver's, all of them; None where the answer is a stored one. That is an answer to the whole problem
    alone, and nothing can be dropped.
    `seconds`: After so long the least problem so far is taken, and the script says so.
    Raises ModelError: The verdict is not WRONG; or it is so only since cvxpy gave the solver another problem.
    """
    search = _Search(judge, time.perf_counter() + seconds)
    first = judge(problem)
    if first.verdict != "WRONG":
        raise ModelError(
            f"solver={solver!r} is called {first.verdict}, not WRONG: there is no bug to report ({first.reason})"
        )
    search.found, search.kind = (problem, first), first.kind
    if options is not None:
        constraints = search.least(problem.constraints, lambda kept: cp.Problem(problem.objective, list(kept)))
        shown = _shrink_program(search, cp.Problem(problem.objective, list(constraints)), solver)
        if not shown and search.kind in ("infeasible", "unbounded"):
            raise ModelError(
                f"solver={solver!r} is not wrong about the cone program that cvxpy gives it, which is another problem: "
                f"report the problem to cvxpy ({first.reason})"
            )
    least, trial = search.found
    late = f"Time ended the search for a smaller problem after {seconds:g} s." if search.late else ""
    return BugReport(solver, least, trial, script_of(least, solver, options, trial, late), search.count, search.late)


def _shrink_program(search: _Search, problem: cp.Problem, solver: str) -> bool:
    """Go on with the cone program, if it shows the bug as well; return False if it was tried and does not."""
    try:
        written = Written.of(problem, solver, {})
        program, whole = ConeProgram(**written.compiled.fields), written.integers
        if not search.holds(partial(problem_of_program, program, whole)):
            return search.late
    except CvxprivError:
        return True
    names = search.least(program.layout.names, lambda kept: problem_of_program(with_blocks(program, kept), whole))
    fewer = with_blocks(program, names)

    def of_columns(kept: Sequence[int]) -> cp.Problem:
        return problem_of_program(with_columns(fewer, kept), _places_of(whole, kept))

    columns = search.least(range(fewer.c.size), of_columns)
    fewer, whole = with_columns(fewer, columns), _places_of(whole, columns)
    names = search.least(fewer.layout.names, lambda kept: problem_of_program(with_blocks(fewer, kept), whole))
    fewer = with_blocks(fewer, names)
    for digits in DIGITS:
        if search.holds(partial(problem_of_program, rounded(fewer, digits), whole)):
            break
    return True


def _places_of(whole: Sequence[int], kept: Sequence[int]) -> tuple[int, ...]:
    """The places of columns of whole numbers among those that are kept."""
    return tuple(place for place, column in enumerate(sorted(kept)) if column in whole)


class _Search:
    """Trials on the way to the least problem."""

    found: tuple[cp.Problem, Trial]
    kind: str

    def __init__(self, judge: Judge, deadline: float) -> None:
        self.judge, self.deadline, self.count, self.late = judge, deadline, 1, False

    def holds(self, problem_of: Callable[[], cp.Problem]) -> bool:
        """Whether a problem still shows the bug; it is then the least one so far."""
        self.late = time.perf_counter() > self.deadline
        if self.late:
            return False
        self.count += 1
        try:
            problem = problem_of()
            trial = self.judge(problem)
        except Exception:  # cvxpy and its solvers raise what they like of half a problem
            return False
        if trial.verdict != "WRONG" or trial.kind != self.kind:
            return False
        self.found = (problem, trial)
        return True

    def least(self, items: Sequence[Item], problem_of: Callable[[Sequence[Item]], cp.Problem]) -> list[Item]:
        """The items that have to stay, found by leaving out ever smaller pieces."""
        kept = list(items)
        size = max(1, len(kept) // 2)
        while kept:
            before, start = len(kept), 0
            while start < len(kept):
                fewer = kept[:start] + kept[start + size :]
                if len(fewer) < len(kept) and self.holds(partial(problem_of, fewer)):
                    kept = fewer
                else:
                    start += size
            if size == 1 and len(kept) == before:
                break
            size = max(1, size // 2)
        return kept
