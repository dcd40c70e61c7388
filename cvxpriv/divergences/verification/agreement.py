"""Check of a whole block: every solver against the optimum of f itself, computed without a cone program."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Declaration
from cvxpriv.certify import case_of_block, crosscheck
from cvxpriv.divergences.definition import FDivergence
from cvxpriv.divergences.term import DivergenceTerm
from cvxpriv.divergences.verification.findings import FAILS, HOLDS, Finding
from cvxpriv.divergences.verification.setting import DivergenceSetting
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.solvers.chain import try_solver
from cvxpriv.solvers.registry import fallback_chain, solver_spec

CELLS = 5
#: Relative accuracy that the best solver must reach, and that every solver must reach that the cross-check does not
#: refuse.
BEST, EVERY = 1e-6, 1e-4
GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
HALVINGS = 90
"""Number of golden sections: 0.618^90 is 1.5e-19 of a bracket."""
SECTIONS = 18
"""Number of sections by 8 of the bracket of a price: 8^-18 is 5.5e-17."""


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
    at, best = np.array([slopes.min() - 1.0, slopes.max() + 1.0]), -np.inf
    for _ in range(SECTIONS):  # a row of the inner search is one price: 17 take as long as one
        prices = np.linspace(at[0], at[-1], 17)
        values = dual(prices)
        best = np.maximum(best, values.max())
        place = int(values.argmax())
        at = prices[max(place - 1, 0) : place + 2]
    return float(best)


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


Leaf = Literal["parameter", "variable"]
#: Accuracies that are requested: at p = 0 or q = 0 a cone has no interior, and a solver may reach less.
ACCURACIES = (1e-10, 1e-7)


@dataclass(frozen=True)
class FormAt:
    """A DCP form over a vector of cells, which is evaluated at numbers.

    `size`: Number of cells.
    `leaf`, {"parameter", "variable"}: Whether p and q enter as Parameters, or as variables that equality constraints
    fix.
    """

    f: FDivergence
    size: int
    leaf: Leaf = "parameter"

    @cached_property
    def _problem(self) -> tuple[cp.Problem, cp.Parameter, cp.Parameter]:
        p, q = (cp.Parameter(self.size, nonneg=True, name=name) for name in "pq")
        if self.leaf == "parameter":
            expression, constraints = self.f.form(p, q)
            return cp.Problem(cp.Minimize(expression), constraints), p, q
        at_p, at_q = cp.Variable(self.size), cp.Variable(self.size)
        expression, constraints = self.f.form(at_p, at_q)
        return cp.Problem(cp.Minimize(expression), [*constraints, at_p == p, at_q == q]), p, q

    @cached_property
    def constraints(self) -> int:
        """Number of side constraints of the form."""
        return len(self._problem[0].constraints) - 2 * (self.leaf == "variable")

    def value(self, p: Array, q: Array, expected: float | None = None, tolerance: float = 0.0) -> float:
        """Return the form's value: inf if the side constraints exclude (p, q), NaN if no solver has an answer.

        Where a solver's answer is not within a tolerance of the expected value the others are asked too, and what most
        of them say counts: one of them may be off, and none of them comes near by chance.
        """
        problem, at_p, at_q = self._problem
        at_p.value, at_q.value = p, q
        if not problem.variables() and not problem.constraints:
            with np.errstate(all="ignore"):
                return float(np.squeeze(problem.objective.args[0].value))
        return _least(problem, expected, tolerance)


def joint_form(f: FDivergence, shape: tuple[int, ...]) -> cp.Problem:
    """Return the form as a problem in variables P and Q without further constraints."""
    expression, constraints = f.form(cp.Variable(shape, name="P"), cp.Variable(shape, name="Q"))
    return cp.Problem(cp.Minimize(expression), constraints)


def why_not_dcp(problem: cp.Problem) -> str:
    """Return the part of a form that is not DCP; empty if all are."""
    parts = [("the expression", problem.objective.args[0])]
    parts += [(f"side constraint [{index}]", one) for index, one in enumerate(problem.constraints)]
    wrong = [
        f"{name} {' '.join(str(part).split())[:120]}"
        for index, (name, part) in enumerate(parts)
        if not (part.is_convex() if index == 0 else part.is_dcp())
    ]
    return "; ".join(wrong)


def is_dpp(f: FDivergence, shape: tuple[int, ...], fixed: Literal["p", "q"]) -> bool:
    """Return whether the form with one of P, Q a Parameter is compiled once for all its values."""
    given, free = cp.Parameter(shape, nonneg=True), cp.Variable(shape)
    expression, constraints = f.form(*((given, free) if fixed == "p" else (free, given)))
    return bool(cp.Problem(cp.Minimize(expression), constraints).is_dcp(dpp=True))


def _least(problem: cp.Problem, expected: float | None, tolerance: float) -> float:
    """Return the smallest value, by a solver that finds the expected one or else by most of them."""
    claimed: list[float] = []
    rough: list[float] = []
    for name in fallback_chain(None):
        for accuracy in ACCURACIES:
            status = try_solver(problem, name, solver_spec(name).options(accuracy)).status
            value = {cp.INFEASIBLE: np.inf, cp.UNBOUNDED: -np.inf}.get(status, problem.value)
            if value is None or np.isnan(value):
                continue
            if status in (cp.OPTIMAL, cp.INFEASIBLE, cp.UNBOUNDED):
                claimed.append(float(value))
                break
            if status == cp.OPTIMAL_INACCURATE:
                rough.append(float(value))
        if claimed and (expected is None or np.isclose(claimed[-1], expected, rtol=0.0, atol=tolerance)):
            return claimed[-1]
    values = claimed or rough or [np.nan]
    return max(values, key=lambda value: np.isclose(value, values, rtol=1e-6, atol=tolerance).sum())
