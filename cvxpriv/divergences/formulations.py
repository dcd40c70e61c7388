"""The same divergence written in different but equivalent ways, compared on one problem.

The ways (`cvxpriv.divergences.equivalent_forms`) differ in cones, size, time and accuracy.
"""

from collections.abc import Sequence
from dataclasses import replace

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Declaration
from cvxpriv.certify import Case, Formulations, case_of_block, compare_formulations
from cvxpriv.certify.references import accurate_answer
from cvxpriv.divergences.definition import FDivergence
from cvxpriv.divergences.equivalent_forms import TANGENTS, ways_of
from cvxpriv.divergences.registry import divergence
from cvxpriv.divergences.term import DivergenceTerm
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array, Values

MEANS, FLOOR, CAP = (0.3, 0.6), 1e-3, 1.8
LARGEST = 100
"""Largest number of points: with more, cvxpy's `perspective` takes seconds to compile."""
PROBLEM = (
    "the smallest D(p, q) between a distribution p with mean 0.3 and a distribution q with mean 0.6 on N points "
    "from 0 to 1, each probability from 0.001 to 1.8/N"
)
"""The problem on which the ways are compared: p and q both move, as in the joint block of IAS (10). The means are not
mirror images of each other, so that D(p, q) and D(q, p) differ."""


def formulations(
    target: FDivergence | str, size: int = 6, solvers: Sequence[str] | None = None, tolerance: float | None = None
) -> Formulations:
    """Write a divergence in every known way, and compare them on `PROBLEM`.

    Parameters
    ----------
    target : FDivergence or str
        The divergence. One without known ways is written by its own `expression`, if it has one, and by tangents.
    size : int
        Number N of points, 3 to `LARGEST`.
    solvers : sequence of str, optional
        Names of solvers. None is every installed one that takes a way's cones.
    tolerance : float, optional
        Tolerance requested of every solver. None is each solver's own.

    Raises
    ------
    ModelError
        Unknown name or solver, or a size that is out of range.

    Examples
    --------
    >>> found = formulations("total-variation", 3, ["CLARABEL"])
    >>> set(found.table["verdict"])
    {'agrees'}
    """
    f = divergence(target)
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or not 3 <= size <= LARGEST:
        raise ModelError(f"size={size!r}: give a whole number from 3 to {LARGEST}")
    ways = {name: replace(f, expression=form, auxiliary=None) for name, form in ways_of(f).items()}
    written = {**ways, TANGENTS: replace(f, expression=None, auxiliary=None)}
    cases = {name: _case(name, way, int(size)) for name, way in written.items()}
    if not ways:
        return compare_formulations(cases, solvers, tolerance=tolerance)
    # Tangents have the smallest residuals of all, and a value that is their gap off: they are no reference.
    first = next(iter(ways))
    best, how = accurate_answer(cases[first])
    found = compare_formulations(cases, solvers, reference=best.objective, tolerance=tolerance)
    asked = f"{best.solver} at {best.asked:.0e}"
    return replace(found, why=f"{first} by {asked}, {how} (exact residual {best.quality:.1e})")


def pair_block(f: FDivergence, size: int) -> Block:
    """Return `PROBLEM` as a block, with the DCP form that f has; f without one gets adaptive tangents."""
    term = DivergenceTerm(f, (size,))
    points = np.linspace(0.0, 1.0, size)

    def declare(_: object) -> Declaration:
        p, q = cp.Variable(size, name="p"), cp.Variable(size, name="q")
        form = term.declare(p, q)
        constraints: dict[str, cp.Constraint] = {}
        for name, one, mean in (("p", p, MEANS[0]), ("q", q, MEANS[1])):
            constraints[f"sum {name}"], constraints[f"mean {name}"] = cp.sum(one) == 1.0, points @ one == mean
            constraints[f"floor {name}"], constraints[f"cap {name}"] = one >= FLOOR, one <= CAP / size
        return Declaration(
            cp.Minimize(form.expression),
            {**constraints, **form.constraints},
            {"p": p, "q": q, **form.variables},
            form.parameters,
        )

    def complete(values: Values, _: Values) -> dict[str, Array]:
        p, q = np.maximum(values["p"], FLOOR), np.maximum(values["q"], FLOOR)
        return {"p": p, "q": q, **term.values(p, q)}

    return Block(
        name=f.name,
        reads=frozenset({"p", "q"}),
        writes=frozenset({"p", "q"}),
        declare=declare,
        parameters=term.parameters,
        embed=complete,
        write=lambda solution, _: {"p": solution.values["p"], "q": solution.values["q"]},
        repair=complete,
        refinement=term.refinement(lambda values, _: (values["p"], values["q"])),
    )


def _case(name: str, f: FDivergence, size: int) -> Case:
    uniform = np.full(size, 1.0 / size)
    case = case_of_block(pair_block(f, size), {"p": uniform, "q": uniform})
    # A form's own variables are as the solver left them; only under cuts do true values take their place.
    return replace(case, name=name, repair=case.repair if f.expression is None else None)
