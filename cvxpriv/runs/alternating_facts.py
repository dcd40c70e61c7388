"""The facts of an alternating model's run: its figures, its mechanism, its curve, beside those of all mechanisms."""

import inspect
from collections.abc import Mapping
from typing import Any

from cvxpriv.mechanisms.disclosure import statement_of
from cvxpriv.numerics.sizes import counted
from cvxpriv.reports.facts import Fact, Facts, Section, Table
from cvxpriv.reports.formatting import exact_zero
from cvxpriv.runs import mechanism_facts as common
from cvxpriv.runs.mechanism_run import Beside, MechanismRun
from cvxpriv.runs.sides import Sides, guess


def alternating_facts(
    run: MechanismRun[Any, Any], beside: Beside, sides: Sides, figures: Mapping[str, float], options: Mapping[str, Any]
) -> Facts:
    """Return the facts of a run.

    `sides`: The model's names for the sides of its table.
    `figures`: The model's figures for its mechanism, in nats; the first one is minimised.
    `options`: The options that pose the problem.
    """
    purpose = (inspect.getdoc(type(run.problem)) or run.model).partition("\n")[0]
    inputs, outputs = run.mechanism.shape
    heat = common.heatmap(run.mechanism, run.problem.table, sides, "Each row is an input, each column an output.")
    return common.mechanism_facts(
        run,
        beside,
        sides,
        title=run.model,
        summary=purpose,
        outline=purpose,
        facts=[
            *(Fact(name, exact_zero(value), "nats", main=True) for name, value in figures.items()),
            *guess(beside.disclosure, sides),
            common.residual(run),
            *common.effort(run),
        ],
        curve=_curve(beside),
        mechanism=Section(
            f"The mechanism P({sides.output}|{sides.public.symbol})",
            f"{counted(inputs, 'input')}, {counted(outputs, 'output')}.",
            **heat,
        ),
        starts=common.starts_section(
            run, {next(iter(figures)): True, "kkt": True}, run.log.frame(), "Figures in nats."
        ),
        promises=[
            f"The mechanism is {common.best_of(run)}: each block is optimal given the others, to the residual above. "
            "Whether a better mechanism exists elsewhere is not known.",
            statement_of(run.problem.table.protection),
        ],
        posed=[Fact(name, value) for name, value in options.items()],
    )


def _curve(beside: Beside) -> list[Section]:
    if beside.curve is None:
        return []
    shown = {name: name for name in beside.curve.columns if name not in ("kkt", "converged", "iterations", "seconds")}
    return [Section("Curve", tables=[Table(beside.curve)], brief=common.brief_curve("Curve", beside.curve, shown))]
