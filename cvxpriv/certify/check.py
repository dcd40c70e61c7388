"""Cross-checks: one convex problem, every solver, exact residuals, a verdict for each.

A verdict rests on the answer that a solver returned, never on its claims about it. The residuals are those of the cone
program it was given (`cvxpriv.kkt.conic.program`), with exact distances to each cone and its dual, and those of the
problem as the user wrote it (`cvxpriv.kkt`); the objective is compared with a reference that is named
(`cvxpriv.certify.references`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cvxpriv.certify.answers import Stored
from cvxpriv.certify.bugs import BugReport, bug_report
from cvxpriv.certify.cases import Case, Target, case_of_block, case_of_problem, cases_of, values_kept
from cvxpriv.certify.problem_checks import solver_names
from cvxpriv.certify.references import CLOSED_FORM, ReferenceLike
from cvxpriv.certify.sections import every_answer, page
from cvxpriv.certify.task import PROOFS, Task
from cvxpriv.certify.verdicts import Tolerances, Verdict
from cvxpriv.errors import Disagreement, ModelError, suggest
from cvxpriv.numerics.arguments import require_positive
from cvxpriv.numerics.arrays import Values
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import pd
from cvxpriv.reports.files import PathLike
from cvxpriv.reports.text import section_text
from cvxpriv.solvers.place import Place, quiet
from cvxpriv.solvers.registry import installed, solver_spec

__all__ = ["CLOSED_FORM", "Case", "CrossCheck", "case_of_block", "case_of_problem", "crosscheck"]


@door
@dataclass(frozen=True)
class CrossCheck:
    """The evidence of a cross-check, solver by solver and case by case.

    Attributes
    ----------
    table : DataFrame
        One row per case and answer. Columns:

        - case, solver, status, verdict, and known_by: ``"certified"`` by a bound or a proof that holds whatever anybody
          says, ``"small residuals"``, or, where something is found against the answer, ``"residuals"``;
        - objective (at its point in the domain), gap (to the reference's, relative), distance (largest difference of a
          variable from the reference's: for a problem with several minimisers it says nothing), moved (the largest move
          of an entry into the domain);
        - primal, stationarity, natural: of the problem as written, absolute (`cvxpriv.kkt`; at ties and kinks those of
          `cvxpriv.kkt.proximal`, or NaN where they cannot be measured);
        - missed: the worst violation of a constraint, relative to the terms of its row;
        - displacement: how far the point is from stationary, relative: what the verdict rests on;
        - cone, dual, dual_cone, complementarity, duality_gap: of the cone program, relative
          (`cvxpriv.kkt.conic.program`);
        - certificate: how far a claim of infeasibility or unboundedness is from proven;
        - bound: certified lower bound of a minimum or upper bound of a maximum, or NaN; bound_reason: where it comes
          from, or why there is none;
        - seconds (wall time, compilation included), solver_seconds, iterations;
        - reason: the verdict's, in a sentence.
    references : dict of str to str
        The reference of each case, and the reason for it.
    skipped : dict of str to dict of str to str
        The solvers of each case that do not take its cones, and the reason.
    tolerances : Tolerances
        The limits at which verdicts changed.
    """

    table: pd.DataFrame
    references: dict[str, str]
    skipped: dict[str, dict[str, str]] = field(default_factory=dict)
    tolerances: Tolerances = field(default_factory=Tolerances)
    task: Task | None = field(default=None, repr=False)
    cases: tuple[Case, ...] = field(default=(), repr=False)

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """The worst verdict of each solver, with its case."""
        found: dict[str, Verdict] = {}
        for solver, rows in self.table.groupby("solver", sort=False):
            verdicts = [
                Verdict(str(row.verdict), f"{row.case}: {row.reason}", str(row.known_by))
                for row in rows.itertuples(index=False)
            ]
            found[str(solver)] = max(verdicts, key=lambda verdict: verdict.rank)
        return found

    @property
    def worst_offender(self) -> str:
        """The worst answer of all, in one sentence."""
        solver, verdict = max(self.verdicts.items(), key=lambda item: item[1].rank)
        return f"{solver} {verdict.verdict}: {verdict.reason}"

    def raise_if_failed(self, *, allowed: Sequence[str] = ("agrees", "loose")) -> None:
        """Raise unless every verdict is among `allowed`.

        Raises
        ------
        Disagreement
            A verdict is not allowed; the message names each solver and case.
        """
        bad = self.table[~self.table["verdict"].isin(allowed)]
        if len(bad):
            lines = [f"{row.solver} on {row.case}: {row.verdict}, {row.reason}" for row in bad.itertuples(index=False)]
            raise Disagreement("; ".join(lines))

    def bug(self, solver: str, *, seconds: float = 60.0) -> BugReport:
        """Return a report for a solver's authors: the least problem that still shows its false answer, as a script.

        Parameters
        ----------
        solver : str
            One whose answer is WRONG, of which the first is taken; or the name of a `Stored` answer.
        seconds : float
            Time limit in seconds for shrinking the problem.

        Raises
        ------
        ModelError
            None of its answers is WRONG, or there is no such solver.
        """
        rows = self.table[(self.table["solver"] == solver) & (self.table["verdict"] == "WRONG")]
        if self.task is None or not len(rows):
            known = ", ".join(f"{name}: {one.verdict}" for name, one in self.verdicts.items())
            raise ModelError(f"solver={solver!r} has no answer that is WRONG: there is no bug to report ({known})")
        wrong = next(one for one in self.cases if one.name == rows["case"].iloc[0])
        judge, options = self.task.judge(solver, wrong), self.task.options_of(solver, wrong)
        with quiet(), values_kept(wrong):
            return bug_report(wrong.whole, solver, judge, options, seconds)

    @property
    def all_off(self) -> dict[str, str]:
        """The cases of which no answer agrees, and what to do next."""
        right = set(self.table.loc[self.table["verdict"] == "agrees", "case"])
        remedy = "check.rescaled(), or --rescale, solves it again in other units"
        if self.task is not None and self.task.rescaled:
            remedy = "it was solved in other units, in vain: bring its numbers nearer to one another"
        mixed = "its integers leave no other units to try: bring its numbers nearer to one another"
        return {one.name: remedy if one.mixed is None else mixed for one in self.cases if one.name not in right}

    def rescaled(self) -> CrossCheck:
        """Solve again in other units, in which the numbers of each cone program are near one.

        Answers are taken back to the problem's own units, and judged there as any others. That helps where numbers of
        very different size in one problem leave a solver no digits, which shows as `all_off`.

        Raises
        ------
        ModelError
            A case is mixed-integer, or this cross-check was not made by `crosscheck`.

        Examples
        --------
        >>> import cvxpy as cp
        >>> import numpy as np
        >>> x = cp.Variable(2, name="x")
        >>> thin = cp.Problem(cp.Maximize(x[0]), [cp.quad_form(x, np.diag([1e-3, 1e8])) <= 1])
        >>> check = crosscheck(thin, ["CLARABEL"])
        >>> check.verdicts["CLARABEL"].verdict, check.rescaled().verdicts["CLARABEL"].verdict
        ('WRONG', 'agrees')
        """
        if self.task is None:
            raise ModelError("this cross-check does not know its question: make it by crosscheck")
        task = replace(self.task, rescaled=True)
        with quiet():
            rows, references, skipped = task.checked(self.cases)
        return CrossCheck(pd.DataFrame(rows), references, skipped, self.tolerances, task, self.cases)

    def to_html(self, path: PathLike, title: str = "Cross-check") -> Path:
        """Write the report as one self-contained page: verdicts first, then residuals, objectives, times.

        Raises
        ------
        DataError
            The file cannot be written.
        ModelError
            Jinja2 is missing.
        """
        from cvxpriv.reports.page import write

        return write(page(self, title), path)

    def __str__(self) -> str:
        return section_text(every_answer(self, ("known_by", "status", "objective")))


@door
def crosscheck(
    target: Target,
    solvers: Sequence[str] | None = None,
    *,
    reference: ReferenceLike = None,
    tolerances: Tolerances | None = None,
    tolerance: float | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    answers: Mapping[str, Mapping[Any, Any] | Stored] | None = None,
    at: Values | None = None,
    isolate: bool = False,
    time_limit: float | None = None,
    proof: str = "doubles",
) -> CrossCheck:
    """Solve each case by each solver and judge the answers.

    Parameters
    ----------
    target : cvxpy.Problem, function, Block, Case, mapping of names to those, or sequence of cases and blocks
        A function takes nothing and returns a problem. A problem is solved as a copy, and its variables and
        constraints keep the values that they had.
    solvers : sequence of str, optional
        Names of solvers. None is every installed solver of the table. Those that do not take a problem's cones are
        skipped, and listed.
    reference : {"best", "closed form", "accurate"} or mapping of variable to array, optional
        The reference that answers are compared with. None is the closed form where there is one, otherwise the best
        answer. See `cvxpriv.certify.references`.
    tolerances : Tolerances, optional
        The limits at which verdicts change.
    tolerance : float, optional
        Tolerance requested of every solver. None is each solver's own (`cvxpriv.solvers.registry`).
    options : mapping of solver to options, optional
        Options of each solver, which override the tolerance.
    answers : mapping of name to (mapping of variable to array, or Stored), optional
        Solutions from elsewhere, judged beside the solvers'. A `cvxpriv.certify.Stored` one is held to the claims that
        its solver made with it.
    at : mapping of str to ndarray, optional
        The state of one start at which blocks are posed.
    isolate : bool
        Run each solve in a process of its own. A crash or a hang there is a row with the verdict failed. All other work
        of solvers (tight re-solves, proofs, the measuring of claims) is done in such processes as well.
    time_limit : float, optional
        Seconds for each such process; None is `cvxpriv.solvers.isolation.TIME_LIMIT`.

    proof : {"doubles", "interval"}
        ``"interval"`` works the bounds out in fractions as well, up to `cvxpriv.kkt.conic.exact.LARGEST` rows and
        columns: a verdict that they bear out is then known to be ``"proved"``, and the others say what is missing.

    Raises
    ------
    ModelError
        Before any solve: a problem that is not DCP, has Parameters without values, NaN or infinite numbers in its data,
        or whose cones no solver takes; an unknown solver; a time limit without `isolate`; a tolerance that is not
        positive; an answer with the name of a solver that is asked.

    Examples
    --------
    >>> import cvxpy as cp
    >>> x = cp.Variable(2, name="x")
    >>> report = crosscheck(cp.Problem(cp.Minimize(cp.sum_squares(x)), [cp.sum(x) == 1]), ["CLARABEL", "OSQP"])
    >>> [verdict.verdict for verdict in report.verdicts.values()]
    ['agrees', 'agrees']
    """
    if proof not in PROOFS:
        raise ModelError(f"proof={proof!r} is not known: {suggest(str(proof), PROOFS)}")
    if time_limit is not None and not isolate:
        raise ModelError(f"time_limit={time_limit!r} needs isolate=True: a solve here cannot be stopped from outside")
    if tolerance is not None:
        require_positive(tolerance=tolerance)
    if clash := set(answers or {}) & set(solver_names(solvers) or installed()):
        raise ModelError(
            f"answers has {min(clash)!r}, which is the name of a solver that is asked: choose another name"
        )
    own = {solver_spec(name).name: dict(chosen) for name, chosen in (options or {}).items()}
    place = Place(isolate, time_limit)
    limits = tolerances or Tolerances()
    task = Task(solver_names(solvers), tolerance, own, place, answers or {}, reference, limits, proof)
    with quiet():
        cases = cases_of(target, at, place)
        rows, references, skipped = task.checked(cases)
        return CrossCheck(pd.DataFrame(rows), references, skipped, limits, task, tuple(cases))
