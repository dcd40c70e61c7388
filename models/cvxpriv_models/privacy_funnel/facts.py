"""The facts of a funnel's run: each number with its unit and sentence, tables, pictures, and promises."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxpriv.bounds import (
    check_certificate,
    check_constrained_certificate,
    check_costed_certificate,
    check_costs,
    check_service_certificate,
)
from cvxpriv.bounds.certificate import ConstrainedCertificate, CostedCertificate
from cvxpriv.bounds.columns import OUT_OF_TIME
from cvxpriv.mechanisms.disclosure import Disclosure, statement_of
from cvxpriv.mechanisms.plots import INFORMATION_PLANE, plot_curve
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.packages import pd
from cvxpriv.numerics.sizes import counted
from cvxpriv.reports.facts import Fact, Facts, Picture, Section, Table
from cvxpriv.reports.formatting import exact_zero, format_number
from cvxpriv.reports.sliders import Slider
from cvxpriv.runs import mechanism_facts as common
from cvxpriv.runs.mechanism_facts import share
from cvxpriv.runs.mechanism_run import Beside, MechanismRun
from cvxpriv.runs.sides import PRIVATE_AND_PUBLIC, guess, interval
from cvxpriv.runs.sliding import guesses_along, shared_curve, slider_of

from .bound import FunnelBound
from .population import population_interval
from .problem import Problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Run = MechanismRun[Problem, Any]

SIDES = PRIVATE_AND_PUBLIC


def funnel_facts(run: Run, beside: Beside, bound: FunnelBound | None) -> Facts:
    """Return the facts of a run, of the results beside it, and of the bound that was proved."""
    summary, outline = _summaries(run)
    rows, columns = run.mechanism.shape
    caption = (
        "Each row is a public symbol and says with which probability it is released as which output. Symbols that "
        "share a column cannot be told apart by it."
    )
    shown = common.heatmap(run.mechanism, run.problem.table, SIDES, caption)
    return common.mechanism_facts(
        run,
        beside,
        SIDES,
        title="Privacy funnel",
        summary=summary,
        outline=outline,
        facts=[*_facts(run, beside), *_gap(run, bound), common.residual(run), *common.effort(run)],
        curve=_curve(run, beside.curve, beside.mechanisms),
        mechanism=Section(
            "The mechanism P(Y|X)", f"{counted(rows, 'public symbol')}, {counted(columns, 'output')}.", **shown
        ),
        disclosed=(
            "What a release discloses",
            "An adversary's best accuracy is the chance to name S right, knowing the table and nothing else, Y, or X.",
        ),
        own=population_section(run.problem, beside.disclosure),
        starts=common.starts_section(
            run, {"leakage": True, "kkt": True}, run.log.frame(), "Leakage, utility and residual in nats."
        ),
        promises=[_promise(run, bound), statement_of(run.problem.table.protection)],
        posed=[Fact("rate", run.problem.rate, "nats"), Fact("size_y", run.problem.size_y, label="outputs |Y|")],
        proof=None if bound is None else common.proof_files(bound.certificate.save, _checkers(bound)),
    )


def _summaries(run: Run) -> tuple[str, str]:
    """Return the summary, and the same without a number of the table."""
    table = run.problem.table
    private, public = ", ".join(table.private.columns), ", ".join(table.public.columns)
    counted = "" if table.records is None else f" It was designed on a table of {table.records:,} records."
    what = f"A mechanism that releases Y in place of X = {public}, so that Y tells "
    rate = f"at least {format_number(run.problem.rate)} nats about X and as little as possible about S = {private}."
    return f"{what}{rate}{counted}", f"{what}little of S = {private}."


def _facts(run: Run, beside: Beside) -> list[Fact]:
    table, disclosure = run.problem.table, beside.disclosure
    leakage, utility = exact_zero(run.problem.leakage(run.mechanism)), run.problem.utility(run.mechanism)
    known = table.records is None or bool(interval(disclosure, "leakage"))
    return [
        Fact(
            "leakage",
            leakage,
            "nats",
            "What one release tells of S, on average.",
            "Leakage I(S;Y)" if known else "Leakage I(S;Y) in the table",
            share(leakage, table.information, "I(S;X)", ", the leakage of X"),
            main=True,
            **interval(disclosure, "leakage"),
        ),
        Fact(
            "utility",
            utility,
            "nats",
            "What one release tells of X, on average.",
            "Utility I(X;Y)",
            share(utility, table.entropy_x, "H(X)", ", all there is"),
            main=True,
            **interval(disclosure, "utility"),
        ),
        *guess(disclosure, SIDES),
    ]


def _gap(run: Run, bound: FunnelBound | None) -> list[Fact]:
    if bound is None:
        return []
    gap = max(run.problem.leakage(run.mechanism) - bound.lower, 0.0)
    limited = run.problem.size_y < min(bound.mechanism.shape[1], len(run.problem.p_x) + 1)
    who = "no mechanism at this rate" + ", however many outputs it has," * limited
    detail = f"{who} leaks less than {format_number(exact_zero(bound.lower))} nats"
    sentence = "The mechanism leaks at most this much more than the best possible one: a certified bound."
    if bound.reason:
        ended = OUT_OF_TIME in bound.reason and gap > run.settings.tol
        detail += f"; {OUT_OF_TIME}: raise --time-limit to prove more" * ended
        sentence += f" That bound may be loose: {bound.reason}."
    if limited:
        sentence += f" The bound is that without size_y={run.problem.size_y}: it may be loose by what that costs."
    if bound.ignored:
        sentence += f" It is the best without {', '.join(bound.ignored)}, which the bound leaves out."
    return [Fact("gap", gap, "nats", sentence, "Gap to the optimum", detail, digits=2, main=True)]


def _checkers(bound: FunnelBound) -> dict[str, Path]:
    """The program that checks a bound's certificate, and those that it needs beside it, by the names of their files."""
    programs = [check_certificate]
    if isinstance(bound.certificate, ConstrainedCertificate):
        programs = [check_constrained_certificate, check_certificate]
    if isinstance(bound.certificate, CostedCertificate):
        programs = [check_costed_certificate, check_certificate, check_costs, check_service_certificate]
    first, *others = (Path(str(program.__file__)) for program in programs)
    name = first.name if first.name == "check_certificate.py" else "check_constrained_certificate.py"
    return {name: first, **{other.name: other for other in others}}


def _promise(run: Run, bound: FunnelBound | None) -> str:
    if bound is not None:
        gap = format_number(max(run.problem.leakage(run.mechanism) - bound.lower, 0.0), 2)
        private = run.problem.table.protection is None
        at_home = " The certificate holds the private table: it stays at home." if private else ""
        return (
            f"Of all mechanisms that tell this much of X, this one leaks at most {gap} nats more than the best "
            "possible, on average over the people of the table and over one draw of Y for each. The bound is proved by "
            f"multipliers in certificate.json; `python {next(iter(_checkers(bound)))} certificate.json` derives it "
            f"again in exact arithmetic, without a solver.{at_home}" + _constraints_of(bound)
        )
    return (
        "Of all mechanisms that tell this much of X, one was sought that tells least of S, on average over the people "
        "of the table and over one draw of Y for each. The problem is not convex: the answer is "
        f"{common.best_of(run)} and satisfies the optimality conditions (KKT) to the residual above; a better one "
        "elsewhere is not ruled out."
    )


def _constraints_of(bound: FunnelBound) -> str:
    """Return the relation of the bound to the user's constraints."""
    said = ""
    if bound.ignored:
        said += f" The bound leaves out the constraints {', '.join(bound.ignored)}: with them the best may leak more."
    stated = [name for name in bound.counted if name not in bound.uncertified]
    if stated:
        said += f" It counts {', '.join(stated)}, which the certificate states."
    if bound.uncertified:
        said += (
            f" It counts {', '.join(bound.uncertified)} too, in floating point with room for rounding: the certificate "
            f"proves {format_number(exact_zero(bound.certificate.bound))} nats: "
            + "; ".join(f"{name}, {why}" for name, why in bound.uncertified.items())
            + "."
        )
    return said


def _curve(run: Run, curve: pd.DataFrame | None, mechanisms: Sequence[Array]) -> list[Section]:
    if curve is None:
        return []
    slider = _slider(run, curve, mechanisms)
    picture = Picture(
        partial(_curve_figure, run, curve),
        "Leakage I(S;Y) against utility I(X;Y), with the designed mechanism marked.",
        "Each point is the least leakage found at that utility; the ring is the mechanism of this page.",
        file="curve.png",
        beside=slider is not None,
    )
    named = {"fraction": "rate / H(X)", "found_at": "found at", "kkt": "KKT residual"}
    table = curve.assign(leakage=curve["leakage"].map(exact_zero)).drop(columns=["seconds", "rate"])
    if len(mechanisms) == len(curve):
        table["best guess of S"] = [f"{guess:.1%}" for guess in guesses_along(run.problem.table, mechanisms)]
    notes = ["A mechanism found at a higher rate serves a lower one: 'found at' names the rate it comes from."]
    if count := common.unconverged(curve):
        notes.append(f"{count} rates did not converge: their leakage may be higher than need be.")
    return [
        Section(
            "The privacy-utility curve",
            pictures=[picture],
            slider=slider,
            tables=[Table(table.rename(columns=named), "Utility, leakage and residual in nats.")],
            notes=notes,
            shared=shared_curve("The privacy-utility curve", slider),
            brief=common.brief_curve(
                "Privacy-utility curve",
                curve,
                {"fraction": "rate / H(X)", "utility": "I(X;Y) nats", "leakage": "I(S;Y) nats"},
            ),
        )
    ]


def _slider(run: Run, curve: pd.DataFrame, mechanisms: Sequence[Array]) -> Slider | None:
    """Return the curve to walk along, a rate at a time."""
    problem, chosen = run.problem, run.mechanism
    return slider_of(
        curve,
        mechanisms,
        problem.table,
        SIDES,
        label="Rate",
        named=lambda row: f"{row['fraction']:.3g} of H(X)",
        axes=INFORMATION_PLANE,
        chosen=(problem.utility(chosen), exact_zero(problem.leakage(chosen))),
        level=("I(S;X)", problem.table.information),
        lower="lower",
    )


def _curve_figure(run: Run, curve: pd.DataFrame) -> Figure:
    """Return the privacy-utility curve with the designed mechanism on it."""
    problem, chosen = run.problem, run.mechanism
    point = (problem.utility(chosen), problem.leakage(chosen))
    own = pd.DataFrame({"utility": [point[0]], "leakage": [point[1]], "rate": [np.nan], "lower": [np.nan]})
    return plot_curve(
        pd.concat([curve[["utility", "leakage", "rate", "lower"]], own]).drop_duplicates(),
        entropy_x=problem.table.entropy_x,
        information=problem.table.information,
        chosen=point,
        lower="lower" if curve["lower"].notna().all() else None,
    )


#: Largest number of cells of a table whose page resamples it, and the replicates; Python has no such limit.
POPULATION_CELLS, POPULATION_REPLICATES = 40, 60


def population_section(problem: Problem, disclosure: Disclosure | None) -> list[Section]:
    """Return what the records say of the population's least leakage; nothing for tables whose replicates take long."""
    table = problem.table
    if disclosure is None or not disclosure.bootstrap or table.counts is None or table.counts.size > POPULATION_CELLS:
        return []
    if table.protection is not None:  # both intervals are of records, and noisy counts are none
        return []
    found = population_interval(table, problem.rate, POPULATION_REPLICATES, disclosure.level, disclosure.seed)
    low, high = zip(found.bootstrap, found.finite, strict=True)
    how = (f"bootstrap, {found.replicates} resamples: approximate", "finite sample: holds for every population")
    rows = pd.DataFrame({"interval": how, f"{found.level:.0%} low": low, f"{found.level:.0%} high": high})
    text = (
        "The least leakage that any mechanism reaches at this rate, had it been designed on everybody and not on "
        f"{found.records:,} records. On the records themselves, without smoothing, it is {format_number(found.value)} "
        "nats."
    )
    return [Section("The best possible in the population", text, tables=[Table(rows, "Nats.")])]
