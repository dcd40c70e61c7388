"""The facts of a run of inference as a service: numbers with unit and sentence, tables, pictures, and promises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cvxpriv.bounds import check_constrained_service_certificate, check_costs, check_service_certificate
from cvxpriv.bounds.service_certificate import ConstrainedServiceCertificate, ServiceCertificate
from cvxpriv.mechanisms.disclosure import statement_of
from cvxpriv.mechanisms.plots import Axis
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.packages import pd
from cvxpriv.numerics.sizes import counted
from cvxpriv.reports.facts import Fact, Facts, Picture, Section, Table
from cvxpriv.reports.formatting import USED, exact_zero, format_number
from cvxpriv.reports.sliders import Slider
from cvxpriv.runs import mechanism_facts as common
from cvxpriv.runs.constraint_facts import violations
from cvxpriv.runs.mechanism_facts import share
from cvxpriv.runs.mechanism_run import Beside, MechanismRun
from cvxpriv.runs.sides import Side, Sides, guess, interval
from cvxpriv.runs.sliding import guesses_along, shared_curve, slider_of

from .bound import ServiceBound
from .pictures import SAME, curve_figure, distinct_outputs
from .problem import Problem
from .promises import OF_RELEASES, STATEMENT, local_privacy, optimality, remedy
from .thresholds import CriticalBeta, critical_beta

Run = MechanismRun[Problem, Any]

#: A mechanism that tells less than this about S is the trivial one.
NOTHING = 1e-9

SIDES = Sides(
    Side(
        "S",
        "inferred S",
        "--infer",
        "Columns of S, what the server is to infer: disease.",
        {"heart-failure": ("death",), "adult": ("income",)},
    ),
    Side(
        "Y",
        "data Y",
        "--data",
        "Columns of Y, the data that U stands for.",
        {"heart-failure": ("anaemia", "high_blood_pressure", "diabetes", "smoking"), "adult": ("sex", "education_num")},
    ),
    "U",
)


def by_solver(run: Run) -> bool:
    """Return whether a solver made the point: under constraints, and with the engine "dcp"."""
    return bool(run.constraints) or run.settings.engine == "dcp"


def inference_facts(
    run: Run, beside: Beside, local_gap: float, gap: float | None, proof: ServiceBound | None, note: str
) -> Facts:
    """Return the facts of a run, and of the results beside it.

    `local_gap`, `gap`: Largest improvement by another mechanism while the server reads U as it does now; and however it
    reads U.
    `proof`: The proof of `gap`.
    `note`: Note of the run.
    """
    problem = run.problem
    critical, certificate = critical_beta(problem, run.settings.seed), None if proof is None else proof.certificate
    accuracy = problem.accuracy(run.mechanism)
    trivial_is_optimal = problem.beta >= critical.searched
    advice = remedy(critical) if accuracy <= NOTHING and trivial_is_optimal else ""
    missed = None
    if by_solver(run):
        missed = (
            f"a KKT residual of {format_number(run.residual, 2)} nats and a local gap of {format_number(local_gap, 2)} "
            "nats"
        )
    said, private = statement_of(problem.table.protection, OF_RELEASES, STATEMENT), problem.table.protection is None
    program = next(iter(_checkers(certificate)), "")
    return common.mechanism_facts(
        run,
        beside,
        SIDES,
        title="Inference as a service",
        summary=_summary(run),
        outline=_outline(run),
        facts=[
            *_worth(run, beside),
            *_threshold(problem.beta, critical, trivial_is_optimal),
            *_certified(gap, () if proof is None else proof.ignored),
            *_accuracy_of_answer(run, local_gap),
            *common.effort(run),
        ],
        curve=_curve(run, beside.curve, beside.mechanisms),
        mechanism=_mechanism(run),
        disclosed=(
            "What a release tells",
            "The best accuracy is the chance to name S right, knowing the table and nothing else, U, or Y.",
        ),
        starts=_starts(run),
        promises=[
            *optimality(common.best_of(run), local_gap, gap, program, critical, private),
            " ".join([said, *local_privacy(run.constraints, violations(run))]),
        ],
        about=[Fact("divergence", _formula(problem), sentence="f of the leakage E[f(p(u)/p(u|y))].")],
        posed=[
            Fact("beta", problem.beta),
            Fact("size_u", problem.size_u, label="outputs |U|"),
            Fact("floor", problem.floor),
            Fact("constraints", ", ".join(name for name, _ in run.constraints) or None),
        ],
        messages=list(filter(None, [note, advice])),
        missed=missed,
        proof=_proof(certificate),
    )


def _summary(run: Run) -> str:
    problem, table = run.problem, run.problem.table
    inferred, data = ", ".join(table.private.columns), ", ".join(table.public.columns)
    counted = "" if table.records is None else f" It was designed on a table of {table.records:,} records."
    return (
        f"A mechanism that sends U in place of the data Y = {data}, so that a server can infer S = {inferred} from U "
        f"while U tells little of Y: I(S;U) - beta E[d] is as large as could be found, for beta = "
        f"{format_number(problem.beta)}.{counted}"
    )


def _outline(run: Run) -> str:
    """Return the summary without a number of the table."""
    table = run.problem.table
    inferred, data = ", ".join(table.private.columns), ", ".join(table.public.columns)
    return f"A mechanism that sends U in place of Y = {data}, so that a server infers S = {inferred} and little else."


def _worth(run: Run, beside: Beside) -> list[Fact]:
    """Return accuracy, leakage, objective, and the best guess."""
    problem, name = run.problem, run.problem.divergence.name
    accuracy = exact_zero(problem.accuracy(run.mechanism))
    leakage = exact_zero(problem.leakage(run.mechanism))
    with np.errstate(all="ignore"):
        whole = problem.leakage(np.eye(len(problem.table.public)))
    compared = f"{100 * leakage / whole:.3g}% of {format_number(whole)}, that of Y itself" if whole > 0.0 else ""
    return [
        Fact(
            "accuracy",
            accuracy,
            "nats",
            "What one draw of U tells the server of S, on average.",
            "Accuracy I(S;U)",
            share(accuracy, problem.table.information, "I(S;Y)", ", all that Y tells of S"),
            main=True,
            **interval(beside.disclosure, "leakage"),
        ),
        Fact(
            "leakage",
            leakage,
            "",
            "What one draw of U tells of the data Y, on average, measured by the divergence.",
            "Leakage E[d]" if problem.table.records is None else "Leakage E[d] in the table",
            "; ".join([name, compared if np.isfinite(whole) else "that of Y itself is infinite"]),
            main=True,
        ),
        *guess(beside.disclosure, SIDES),
        Fact(
            "objective",
            exact_zero(accuracy - problem.beta * leakage),
            "",
            "What was maximised: accuracy - beta leakage.",
            detail=f"accuracy - beta leakage, beta = {format_number(problem.beta)}",
        ),
    ]


def _threshold(beta: float, critical: CriticalBeta, trivial_is_optimal: bool) -> list[Fact]:
    side = "at or above it" if trivial_is_optimal else "below it"
    return [
        Fact(
            "beta_critical",
            critical.searched,
            "",
            "The weight of privacy from which on the trivial mechanism, which says nothing, is optimal.",
            "threshold of beta",
            f"beta = {format_number(beta)} is {side}; near the trivial mechanism {format_number(critical.local)}",
        ),
        Fact(
            "beta_critical_local",
            critical.local,
            "",
            "The same where only mechanisms near the trivial one are looked at.",
            "local threshold",
            aside=True,
        ),
        Fact(
            "beta_critical_sharp",
            critical.sharp,
            "",
            "Whether some mechanism is worth more than 0 below the threshold.",
            "threshold is sharp",
            aside=True,
        ),
        Fact(
            "trivial_is_optimal",
            trivial_is_optimal,
            "",
            "Whether beta is at or above the threshold.",
            "trivial is optimal",
            aside=True,
        ),
    ]


def _certified(gap: float | None, ignored: tuple[str, ...]) -> list[Fact]:
    """Return the distance from the global optimum, where it is proved."""
    if gap is None:
        return []
    sentence = "Certified: no mechanism is better by more, whatever the server's reading of U."
    detail = "at most"
    if ignored:
        detail = f"at most; the bound is that without {', '.join(ignored)}, which only lower the optimum"
    return [Fact("gap", gap, "nats", sentence, "Gap to the optimum", detail, digits=2, main=True)]


def _proof(certificate: ServiceCertificate | None) -> dict[str, Callable[[Path], Path]]:
    """Return the proof of the bound, and the programs that check it."""
    return {} if certificate is None else common.proof_files(certificate.save, _checkers(certificate))


def _checkers(certificate: ServiceCertificate | None) -> dict[str, Path]:
    """Return the program that checks a certificate, and those that it needs, by the names of their files."""
    if certificate is None:
        return {}
    plain, constrained, costs = (
        Path(str(one.__file__))
        for one in (check_service_certificate, check_constrained_service_certificate, check_costs)
    )
    if isinstance(certificate, ConstrainedServiceCertificate):
        return {"check_constrained_certificate.py": constrained, plain.name: plain, costs.name: costs}
    return {"check_certificate.py": plain}


def _accuracy_of_answer(run: Run, local_gap: float) -> list[Fact]:
    """Return the residual and the local gap; where a solver made the point the gap decides, and a reader sees it first.

    A solver's point has an accurate value and inaccurate derivatives.
    """
    gap = Fact(
        "local_gap",
        max(local_gap, 0.0),
        "nats",
        "Certified: no mechanism is better by more while the server reads U as it does now.",
        "Local gap",
        "at most, while the server reads U as it does now",
        digits=2,
    )
    residual = common.residual(run)
    if not by_solver(run):
        if run.converged and run.residual > run.tol:
            decides = f"above the {format_number(run.tol, 1)} asked for; a gap says that the run converged"
            residual = replace(residual, detail=decides)
        return [residual, gap]
    return [
        replace(residual, detail="at the solver's point; the local gap decides", main=False),
        replace(gap, detail=residual.detail, main=True),
    ]


def _curve(run: Run, curve: pd.DataFrame | None, mechanisms: Sequence[Array]) -> list[Section]:
    if curve is None:
        return []
    slider = _slider(run, curve, mechanisms)
    picture = Picture(
        partial(curve_figure, run.problem, run.mechanism, curve),
        "Accuracy I(S;U) against leakage E[d] at several weights of privacy, with the designed mechanism marked.",
        "Each point is the best mechanism found at that weight; the ring is the mechanism of this page.",
        file="curve.png",
        beside=slider is not None,
    )
    figures = ["accuracy", "leakage", "objective"]
    table = curve.assign(**{name: curve[name].map(exact_zero) for name in figures})
    table = table.drop(columns=["seconds"]).rename(columns={"kkt": "KKT residual", "iterations": "passes"})
    if len(mechanisms) == len(curve):
        table["best guess of S"] = [f"{guess:.1%}" for guess in guesses_along(run.problem.table, mechanisms)]
    notes = ["Trivial: U says nothing of S."]
    if run.constraints:
        notes.append("With constraints the certified local gap says whether a point has converged.")
    if count := common.unconverged(curve):
        notes.append(f"{count} points did not converge: better mechanisms may exist at their weights.")
    headings = {"beta": "beta", "accuracy": "accuracy I(S;U) nats", "leakage": "leakage E[d]", "objective": "objective"}
    return [
        Section(
            "The accuracy-privacy curve",
            pictures=[picture],
            slider=slider,
            tables=[Table(table)],
            notes=notes,
            shared=shared_curve("The accuracy-privacy curve", slider),
            brief=common.brief_curve("Accuracy-privacy curve", curve, headings),
        )
    ]


def _slider(run: Run, curve: pd.DataFrame, mechanisms: Sequence[Array]) -> Slider | None:
    """Return the curve to walk along, a weight of privacy at a time."""
    problem, chosen = run.problem, run.mechanism
    return slider_of(
        curve,
        [_merged(one, problem) for one in mechanisms],
        problem.table,
        SIDES,
        label="Weight of privacy",
        named=lambda row: f"beta = {row['beta']:.4g}",
        axes=(Axis("leakage", f"leakage E[d], {problem.divergence.name}"), Axis("accuracy", "accuracy I(S;U) in nats")),
        chosen=(exact_zero(problem.leakage(chosen)), exact_zero(problem.accuracy(chosen))),
        level=("I(S;Y)", problem.table.information),
    )


def _mechanism(run: Run) -> Section:
    rows, columns = run.mechanism.shape
    outputs = distinct_outputs(run.mechanism, run.problem.p_y)
    merged = _merged(run.mechanism, run.problem)
    caption = (
        "Each row is a symbol of the data and says with which probability it is sent as which output. Symbols with "
        "equal rows cannot be told apart by U."
    )
    text = f"{counted(rows, 'symbol')} of the data, {counted(columns, 'output')}."
    if len(outputs) < columns:
        different = int((merged.max(axis=0) >= USED).sum())
        text += (
            f" Of those that are sent, {different} say different things: outputs that say the same of Y, within "
            f"{SAME:.1%}, stand below as one, under the name of the first. Accuracy and leakage stay the same."
        )
    shown = common.heatmap(merged, run.problem.table, SIDES, caption, tuple(outputs))
    return Section("The mechanism P(U|Y)", text, **shown)


def _merged(mechanism: Array, problem: Problem) -> Array:
    """Return a mechanism whose outputs that say the same are one."""
    outputs = distinct_outputs(mechanism, problem.p_y)
    return np.column_stack([mechanism[:, same].sum(axis=1) for same in outputs.values()])


def _starts(run: Run) -> Section:
    history = run.log.frame()
    if "objective" in history:  # the loops that a start goes through one after the other, as one
        history = history.dropna(subset=["objective"])
        history = history.assign(iteration=history.groupby("start").cumcount() + 1)
    hidden = ["converged"] if by_solver(run) else []  # there the gap decides
    caption = "Objective, accuracy and residual in nats."
    return common.starts_section(run, {"objective": False, "kkt": True}, history, caption, hidden)


def _formula(problem: Problem) -> str:
    """Return the divergence's name with its formula."""
    f = problem.divergence
    return f"{f.name}: f(t) = {f.formula}" if f.formula and f.formula != f.name else f.name
