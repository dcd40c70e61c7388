"""A cross-check's question, put to cases, or again to a problem: who is asked, how, and what answers are held to."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.certify.answers import CLAIMED, NAN, Answer, Context, Stored, context_of
from cvxpriv.certify.bug_scripts import Trial
from cvxpriv.certify.cases import Case, case_of_problem, values_kept
from cvxpriv.certify.contradictions import SEEN, settle
from cvxpriv.certify.integer_answers import integer_answer, integer_options, unproven, with_bounds
from cvxpriv.certify.interval_proofs import proof_of, with_proof
from cvxpriv.certify.problem_checks import capable
from cvxpriv.certify.proofs import Proofs
from cvxpriv.certify.references import CLOSED_FORM, Reference, ReferenceLike, reference_of, unbeaten
from cvxpriv.certify.solver_answers import claimed_answer, place_for, solver_answer, stored_answer
from cvxpriv.certify.verdicts import Tolerances, Verdict, judge, judge_claim
from cvxpriv.kkt.conic.exact import Interval
from cvxpriv.numerics.arrays import Values
from cvxpriv.solvers.place import Place, quiet
from cvxpriv.solvers.registry import fallback_chain, solver_spec

INTERVAL = "interval"
PROOFS = ("doubles", INTERVAL)
"""The arithmetic of bounds: doubles, with room for their rounding, or fractions as well."""


@dataclass(frozen=True)
class Task:
    """The question to the solvers, and the reference for their answers."""

    solvers: Sequence[str] | None
    tolerance: float | None
    options: Mapping[str, Mapping[str, Any]]
    place: Place
    claims: Mapping[str, Mapping[Any, Any] | Stored]
    reference: ReferenceLike
    tolerances: Tolerances
    proof: str = "doubles"
    rescaled: bool = False
    """Whether solvers are given the problems in other units."""

    def checked(self, cases: Sequence[Case]) -> tuple[list[dict[str, Any]], dict[str, str], dict[str, dict[str, str]]]:
        """Rows of all cases, their references, and the solvers that do not take them."""
        asked = {case.name: capable(case.whole, self.solvers) for case in cases}
        rows: list[dict[str, Any]] = []
        references: dict[str, str] = {}
        for case in cases:
            with values_kept(case):
                found = self.claimed(case) + [self.answer(case, name) for name in asked[case.name][0]]
                found, proofs = self._proofs(case, found)
                taken = reference_of(case, found, self.reference, self.place)
                own = rows_of(case, found, taken, self.tolerances, proofs)
                if self.proof == INTERVAL:
                    proof = self.place.call(proof_of, case).value
                    own = with_proof(own, proof or Interval(why="the proof's process ended"), self.tolerances)
                rows += own
            references[case.name] = taken.why
        skipped = {name: unable for name, (_, unable) in asked.items() if unable and self.solvers is not None}
        return rows, references, skipped

    def judge(self, solver: str, case: Case) -> Callable[[cp.Problem], Trial]:
        """A function that says what the same question brings of one solver, or of its stored answer, for a problem.

        `case`: Where the problem comes from: stored values of its complex variables are split into the parts there.
        """
        task = replace(self, solvers=(solver,), claims={}, reference=None)
        if solver in self.claims:
            said = self.claims[solver]
            if not isinstance(said, Stored):
                said = case.split(said)
            elif said.values is not None:
                said = replace(said, values=case.split(said.values))
            task = replace(task, solvers=None, claims={solver: said})

        def judge(problem: cp.Problem) -> Trial:
            with quiet():
                return task._trial(case_of_problem("problem", problem), solver)

        return judge

    def _proofs(self, case: Case, found: list[Answer]) -> tuple[list[Answer], Proofs]:
        """The answers, with the bound of branches where there are whole numbers, and proofs beside them."""
        return (found, Proofs(case, self.place)) if case.mixed is None else with_bounds(found, case, self.place)

    def options_of(self, solver: str, case: Case) -> dict[str, Any] | None:
        """The whole option set that a solver was given; None for an answer that nobody is asked for."""
        if solver in self.claims:
            return None
        if case.mixed is not None:
            return integer_options(solver, self.options.get(solver, {}))
        return solver_spec(solver).full_options(self.tolerance, self.options.get(solver, {}))

    def _trial(self, case: Case, solver: str) -> Trial:
        with values_kept(case):  # two other solvers, for the expected answer, are judged as well
            others, _ = capable(case.whole, fallback_chain(None) if case.mixed is None else None)
            others = tuple(name for name in others if name != solver)
            witness = replace(self, tolerance=None, options={})  # the caller's options may be what made the lie
            found = self.claimed(case) + [self.answer(case, name) for name in self.solvers or ()]
            found += [witness.answer(case, name) for name in others[:2]]
            found, proofs = self._proofs(case, found)
            taken = reference_of(case, found, None, self.place)
            rows = rows_of(case, found, taken, self.tolerances, proofs)
        own, row = next(pair for pair in zip(found, rows, strict=True) if pair[0].solver == solver)
        right = [
            answer
            for answer, said in zip(found, rows, strict=True)
            if answer is not own and said["verdict"] in ("agrees", "loose")
        ]
        usable = [answer for answer in right if np.isfinite(answer.quality)]
        expected = reference_of(case, usable, None, self.place) if usable else Reference(NAN, {}, "none")
        claimed = self.claims.get(solver)
        return Trial(
            row["verdict"],
            row["reason"],
            "optimal" if own.status == CLAIMED else own.status,
            own.objective,
            own.values,
            expected.objective,
            expected.values,
            "optimal" if usable else right[0].status if right else "not known",
            f"{claimed.solver} {claimed.version}, {claimed.machine}" if isinstance(claimed, Stored) else "",
        )

    def claimed(self, case: Case) -> list[Answer]:
        """Answers that nobody is asked for: a closed form, and those that came with the question."""
        found = []
        if case.exact is not None:
            found.append(claimed_answer(case, CLOSED_FORM, case.exact, case.exact_seconds, place=self.place))
        for name, said in self.claims.items():
            if isinstance(said, Stored):
                found.append(stored_answer(case, name, said, place=self.place))
            else:
                found.append(claimed_answer(case, name, said, place=self.place))
        return found

    def answer(self, case: Case, solver: str) -> Answer:
        """A solver's answer, or what came of asking it."""
        own = self.options.get(solver, {})
        place, limited = place_for(case, solver, self.place, own), case.mixed is not None and not self.rescaled
        ask = partial(solver_answer, tolerance=self.tolerance, rescaled=self.rescaled)
        ending = place.call(partial(integer_answer if limited else ask, own=own), case, solver)
        if isinstance(ending.value, Answer):
            return ending.value
        spec = solver_spec(solver)
        asked = spec.accuracy(self.tolerance, spec.full_options(self.tolerance, own))
        return Answer(solver, ending.status, asked, seconds=ending.seconds, error=ending.error)


def rows_of(
    case: Case, answers: Sequence[Answer], reference: Reference, tolerances: Tolerances, proofs: Proofs
) -> list[dict[str, Any]]:
    """Judge all answers to a case; return a row for each, with the columns of `cvxpriv.certify.check.CrossCheck`.

    What no answer proves is looked for by `proofs`.
    """
    maximise = isinstance(case.declare().objective, cp.Maximize)
    context = context_of(case, answers, reference.objective)
    answers = [context.nearer(answer) for answer in answers]
    alone = _alone(answers, context, tolerances)
    doubtful = any(  # a feasible point is called WRONG, which a bound could put right
        verdict.verdict == "WRONG" and np.isfinite(answer.objective) and answer.infeasibility <= tolerances.agree
        for answer, verdict in zip(answers, alone, strict=True)
    )
    if case.mixed is None and doubtful:
        rough = not context.settled(tolerances.agree)
        witnesses = proofs.witnesses([answer.solver for answer in answers]) if rough else []
        context = context_of(case, [*answers, *witnesses], reference.objective)
        context = replace(context, unbeaten=unbeaten(case, answers, [reference, *witnesses], proofs, tolerances, rough))
        answers = [context.nearer(answer) for answer in answers]
        alone = _alone(answers, context, tolerances)
    if case.mixed is not None:
        alone = [unproven(verdict, answer) for verdict, answer in zip(alone, answers, strict=True)]
    pairs = zip(answers, alone, strict=True)
    # Nothing is to settle where all agree, bounds prove every answer, and one meets every constraint.
    agree = all(one.verdict == "agrees" and context.certified(answer, tolerances.agree) for answer, one in pairs)
    if agree and min((answer.infeasibility for answer in answers), default=0.0) <= SEEN:
        verdicts = alone
    else:
        verdicts = settle(answers, alone, maximise, tolerances, proofs, context)
    return [
        _row(case, answer, context, reference.values, verdict)
        for answer, verdict in zip(answers, verdicts, strict=True)
    ]


def _alone(answers: Sequence[Answer], context: Context, tolerances: Tolerances) -> list[Verdict]:
    return [
        judge_claim(answer, context, tolerances, exact=answer.solver == CLOSED_FORM)
        if answer.status == CLAIMED
        else judge(answer, context, tolerances)
        for answer in answers
    ]


def _row(case: Case, answer: Answer, context: Context, reference: Values, verdict: Verdict) -> dict[str, Any]:
    proof, values = answer.certificate, answer.values
    apart = (
        [] if values is None else [np.max(np.abs(values[name] - one), initial=0.0) for name, one in reference.items()]
    )
    relative = answer.cone.relative if answer.cone is not None else {}
    nan, measures = math.nan, answer.measures
    return {
        "case": case.name,
        "solver": answer.solver,
        "status": "exact" if answer.solver == CLOSED_FORM else answer.status,
        "verdict": verdict.verdict,
        "known_by": verdict.known_by,
        "objective": answer.objective,
        "gap": context.gap(answer),
        "distance": max(map(float, apart), default=nan),
        "moved": nan if values is None else answer.moved,
        "primal": measures.primal,
        "missed": nan if values is None else measures.missed[0],
        **{name: getattr(measures, name) for name in ("stationarity", "natural", "displacement")},
        **{name: relative.get(name, nan) for name in ("cone", "dual", "dual_cone", "complementarity")},
        "duality_gap": relative.get("gap", nan),
        "certificate": proof.off if proof else nan,
        **{
            name: getattr(answer, name) for name in ("bound", "bound_reason", "seconds", "solver_seconds", "iterations")
        },
        "reason": verdict.reason,
    }
