"""Check of a whole block: every solver against the optimum of f itself, computed without a cone program."""

from __future__ import annotations

from collections.abc import Callable

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Declaration
from cvxpriv.certify import case_of_block, crosscheck
from cvxpriv.divergences.term import DivergenceTerm
from cvxpriv.divergences.verification.findings import FAILS, HOLDS, Finding
from cvxpriv.divergences.verification.setting import DivergenceSetting
from cvxpriv.numerics.arrays import Array, Values

CELLS = 5
#: Relative accuracy that the best solver must reach, and that every solver must reach that the cross-check does not
#: refuse.
BEST, EVERY = 1e-6, 1e-4
GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
HALVINGS = 90
"""Number of golden sections: 0.618^90 is 1.5e-19 of a bracket."""


def solvers_agree(setting: DivergenceSetting) -> Finding:
    """Minimise sum p f(q/p) + c p over a simplex by every solver; compare with the optimum found from f alone."""
    random = setting.random(20)
    q = random.dirichlet(np.full(CELLS, 3.0))
    cost = random.uniform(0.0, 1.0, CELLS)
    low, high = setting.conic_interval
    bounds = q / high, np.minimum(q / low, 1.0)
    true = row_optimum(lambda p: p * setting.values(q / p) + cost * p, *bounds)
    block = row_block(setting, q, cost, bounds)
    view: Values = {"p": q}
    _, solution = block.solve(view)
    check = crosscheck(case_of_block(block, {**view, **solution.refined}), setting.solvers)
    table = check.table.set_index("solver")
    gaps = (table["objective"] - true).abs() / max(1.0, abs(true))
    accepted = gaps[table["verdict"].isin(["agrees", "loose"])]
    names = ", ".join(map(str, accepted.index))
    refused = [f"{name} is refused: {table.loc[name, 'reason']}" for name in table.index.difference(accepted.index)]
    notes = "".join(f"; {one}" for one in refused)
    if accepted.empty or not (accepted.min() <= BEST and accepted.max() <= EVERY):
        who = f"{names} find another" if names else "no solver finds it"
        meaning = f"the optimum of f itself is {true:.9g}; {who}{notes}"
        worst = float(accepted.max()) if len(accepted) else float("nan")
        point = {"solver": str(accepted.idxmax())} if len(accepted) else {}
        return Finding(FAILS, meaning, worst, point)
    meaning = f"{names} find the optimum of f itself, {true:.9g}{notes}"
    return Finding(HOLDS, meaning, float(accepted.max()), {"solver": str(accepted.idxmax())})


def row_block(setting: DivergenceSetting, q: Array, cost: Array, bounds: tuple[Array, Array]) -> Block:
    """Return the block: minimise sum p f(q/p) + c p over the simplex, with q/p in the interval; q is fixed."""
    term = DivergenceTerm(setting.f, q.shape, fixed="q")

    def declare(_: object) -> Declaration:
        p = cp.Variable(q.size, name="p")
        form = term.declare(p, cp.Constant(q))
        constraints = {"sum": cp.sum(p) == 1.0, "low": p >= bounds[0], "high": p <= bounds[1]}
        return Declaration(
            cp.Minimize(form.expression + cost @ p),
            {**constraints, **form.constraints},
            {"p": p, **form.variables},
            form.parameters,
        )

    def repaired(values: Values, _: Values) -> dict[str, Array]:
        p = np.clip(values["p"], *bounds)
        return {"p": p, **term.values(p, q)}

    return Block(
        name=f"row of {setting.f.name}",
        reads=frozenset({"p"}),
        writes=frozenset({"p"}),
        declare=declare,
        parameters=lambda view: term.parameters(view, q=q),
        embed=repaired,
        write=lambda solution, view: {"p": solution.values["p"]},
        repair=repaired,
        refinement=term.refinement(lambda values, _: (values["p"], q)),
    )


def row_optimum(cost: Callable[[Array], Array], low: Array, high: Array) -> float:
    """Return min sum cost_i(p_i) over the simplex with low <= p <= high, for convex cost_i."""

    def dual(nu: Array) -> Array:
        def tilted(p: Array) -> Array:
            return cost(p) - nu[:, None] * p

        return np.asarray(nu + _golden(tilted, np.tile(low, (nu.size, 1)), np.tile(high, (nu.size, 1))).sum(axis=1))

    ends = np.stack([cost(low + 1e-6 * (high - low)) - cost(low), cost(high) - cost(high - 1e-6 * (high - low))])
    slopes = ends / (1e-6 * (high - low))
    reach = np.array([slopes.min() - 1.0]), np.array([slopes.max() + 1.0])
    return float(-_golden(lambda nu: -dual(nu), *reach)[0])


def _golden(function: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """Return the minimum of a convex function of each element on [low, high]."""
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    best = np.minimum(np.minimum(function(low), function(high)), np.minimum(at_left, at_right))
    for _ in range(HALVINGS):
        lower = at_left <= at_right
        low, high = np.where(lower, low, left), np.where(lower, right, high)
        new = np.where(lower, high - GOLDEN * (high - low), low + GOLDEN * (high - low))
        at_new = function(new)
        left, right = np.where(lower, new, right), np.where(lower, left, new)
        at_left, at_right = np.where(lower, at_new, at_right), np.where(lower, at_left, at_new)
        best = np.minimum(best, at_new)
    return np.asarray(best)
