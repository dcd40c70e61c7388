"""The facts of an alternating model's run: its figures, its mechanism, its curve, and the facts of all mechanisms."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from cvxpriv.certify.sections import crosscheck_section
from cvxpriv.mechanisms.disclosure import statement_of
from cvxpriv.reports.facts import Fact, Facts, Section, Table
from cvxpriv.reports.formatting import exact_zero, format_number
from cvxpriv.runs import mechanism_facts as common
from cvxpriv.runs.mechanism_run import Beside, MechanismRun
from cvxpriv.runs.sides import Sides, columns_section, counts_section


def alternating_facts(
    run: MechanismRun[Any, Any], beside: Beside, sides: Sides, figures: Mapping[str, float], options: Mapping[str, Any]
) -> Facts:
    """Return the facts of a run.

    `sides`: The model's names for the sides of its table.
    `figures`: The model's figures for its mechanism, in nats; the first one is minimised.
    `options`: The options that pose the problem.
    """
    purpose = (inspect.getdoc(type(run.problem)) or run.model).partition("\n")[0]
    missed = f"a KKT residual of {format_number(run.residual, 2)} nats"
    size = run.mechanism.shape
    symbols = f"P({sides.output}|{sides.public.symbol})"
    heat = common.heatmap(run.mechanism, run.problem.table, sides, "Each row is an input, each column an output.")
    return Facts(
        title=f"{run.model}: {beside.source}".removesuffix(": "),
        summary=purpose,
        facts=[
            *(Fact(name, exact_zero(value), "nats", main=True) for name, value in figures.items()),
            *common.guess(beside.disclosure, sides),
            common.residual(run),
            *common.effort(run),
        ],
        sections=[
            *_curve(beside),
            Section(f"The mechanism {symbols}", f"{size[0]} inputs, {size[1]} outputs.", **heat),
            *counts_section(run.problem.table, sides),
            *common.constraints_section(run),
            *crosscheck_section(beside.check, common.BLOCKS),
            *common.disclosure_section(beside.disclosure, sides, "What a release discloses", ""),
            *columns_section(run, beside, sides),
            *common.reveals_section(run, sides),
            *common.noise_sections(run, beside.costs),
            common.starts_section(run, {next(iter(figures)): True, "kkt": True}, run.log.frame(), "Figures in nats."),
        ],
        about=common.about_table(run.problem.table, sides, size[1]),
        settings=common.settings_of(run, *(Fact(name, value) for name, value in options.items())),
        messages=common.not_converged(run, missed),
        promises=[
            f"The mechanism is {common.best_of(run)}: each block is optimal given the others, to the residual above. "
            "Whether a better mechanism exists elsewhere is not known.",
            statement_of(run.problem.table.protection),
        ],
        tables=common.tables_of(run, beside, sides),
        files=common.files_of(run),
        converged=run.converged,
        interrupted=beside.interrupted or run.interrupted,
        unmet=common.unmet(run, missed, beside.curve),
        published=run.problem.table.protection is not None,
        outline=purpose,
    )


def _curve(beside: Beside) -> list[Section]:
    if beside.curve is None:
        return []
    shown = {name: name for name in beside.curve.columns if name not in ("kkt", "converged", "iterations", "seconds")}
    return [Section("Curve", tables=[Table(beside.curve)], brief=common.brief_curve("Curve", beside.curve, shown))]
