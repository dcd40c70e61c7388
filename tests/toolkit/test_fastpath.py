"""The fast path: the answers of `Problem.solve`, from the Parameters' values alone, whatever was solved before."""

from __future__ import annotations

import gc
import os
import tracemalloc
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Declaration
from cvxpriv.blocks.fastpath.problem import FastProblem, NotFast, supported
from cvxpriv.blocks.fastpath.solvers import Scs
from cvxpriv.errors import DataError, ModelError

Draw = Callable[[np.random.Generator], dict[str, Any]]


@dataclass(frozen=True)
class Family:
    """One kind of problem: how to make it, how to draw its Parameters, and who can solve it."""

    make: Callable[[], cp.Problem]
    draw: Draw
    solvers: tuple[str, ...]


def linear() -> cp.Problem:
    """Every Parameter in another place: c, A of the inequalities, b, and the constant."""
    x = cp.Variable(5, name="x")
    cost, rows = cp.Parameter(5, name="cost", nonneg=True), cp.Parameter((3, 5), name="rows")
    side, offset = cp.Parameter(3, name="side"), cp.Parameter(name="offset")
    return cp.Problem(cp.Minimize(cost @ x + offset), [rows @ x >= side, cp.sum(x) == 4, x >= 0])


def draw_linear(generator: np.random.Generator) -> dict[str, Any]:
    return {
        "cost": generator.uniform(0.5, 2, 5),
        "rows": generator.uniform(0.1, 1, (3, 5)),
        "side": generator.uniform(0, 0.3, 3),
        "offset": generator.normal(),
    }


def quadratic() -> cp.Problem:
    """A maximisation with a matrix variable, so that the order of the entries shows."""
    X = cp.Variable((2, 3), name="X")
    target, weight = cp.Parameter((2, 3), name="target"), cp.Parameter(name="weight", nonneg=True)
    objective = cp.Maximize(cp.sum(cp.multiply(target, X)) - weight * cp.sum_squares(X) + 7)
    return cp.Problem(objective, [cp.sum(X, axis=0) == 1, X >= 0, X[0, 0] <= 0.6])


def draw_quadratic(generator: np.random.Generator) -> dict[str, Any]:
    return {"target": generator.normal(size=(2, 3)), "weight": generator.uniform(0.5, 2)}


def second_order() -> cp.Problem:
    """A written second-order cone of several rows, whose multiplier is a list, and a norm in the objective."""
    x, T = cp.Variable(3, name="x"), cp.Variable(2, name="t")
    centre, slope = cp.Parameter((3, 2), name="centre"), cp.Parameter(3, name="slope")
    columns = cp.vstack([x, x]).T - centre
    return cp.Problem(cp.Minimize(cp.sum(T) + slope @ x + cp.norm(x)), [cp.SOC(T, columns, axis=0), x <= 2])


def draw_second_order(generator: np.random.Generator) -> dict[str, Any]:
    return {"centre": generator.normal(size=(3, 2)), "slope": 0.3 * generator.normal(size=3)}


def entropic() -> cp.Problem:
    """Relative entropy to a Parameter: the block the fast path is there for."""
    x = cp.Variable(6, name="x")
    prior, cost = cp.Parameter(6, name="prior", nonneg=True), cp.Parameter(6, name="cost")
    return cp.Problem(cp.Minimize(cp.sum(cp.rel_entr(x, prior)) + cost @ x), [cp.sum(x) == 1, x >= 1e-3])


def draw_entropic(generator: np.random.Generator) -> dict[str, Any]:
    return {"prior": generator.dirichlet(np.full(6, 3.0)), "cost": generator.normal(size=6)}


def exponential() -> cp.Problem:
    """A written exponential cone: its multiplier is a list, and ECOS orders the cone otherwise."""
    x, y, z = (cp.Variable(2, name=name) for name in "xyz")
    reach, price = cp.Parameter(2, name="reach"), cp.Parameter((2, 2), name="price", nonneg=True)
    return cp.Problem(cp.Minimize(cp.sum(price @ z) + cp.sum(y)), [cp.ExpCone(x, y, z), x >= reach, y >= 0.2, z <= 50])


def draw_exponential(generator: np.random.Generator) -> dict[str, Any]:
    return {"reach": generator.uniform(0, 1, 2), "price": generator.uniform(0.2, 1, (2, 2))}


def power() -> cp.Problem:
    """A written power cone."""
    x, y, z = (cp.Variable(2, name=name) for name in "xyz")
    cost, least = cp.Parameter(2, name="cost", nonneg=True), cp.Parameter(2, name="least")
    return cp.Problem(cp.Minimize(cost @ x + cp.sum(y)), [cp.PowCone3D(x, y, z, [0.3, 0.6]), z >= least])


def draw_power(generator: np.random.Generator) -> dict[str, Any]:
    return {"cost": generator.uniform(0.5, 2, 2), "least": generator.uniform(0.5, 2, 2)}


def semidefinite() -> cp.Problem:
    """A matrix that a Parameter shapes: each solver stores another triangle of it, scaled."""
    x, C = cp.Variable(3, name="x"), cp.Parameter((3, 3), name="C")
    base = np.array([[2.0, 0.3, 0.1], [0.3, 1.5, 0.2], [0.1, 0.2, 1.0]])
    matrix = base + cp.diag(x) + 0.1 * (C + C.T)
    return cp.Problem(cp.Minimize(cp.sum(x)), [matrix >> 0])


def draw_semidefinite(generator: np.random.Generator) -> dict[str, Any]:
    return {"C": generator.normal(size=(3, 3))}


def nuclear() -> cp.Problem:
    """A semidefinite cone that cvxpy makes; only b moves, and CLARABEL has something to equilibrate."""
    X, least = cp.Variable((2, 2), name="X"), cp.Parameter((2, 2), name="least")
    return cp.Problem(cp.Minimize(cp.norm(X, "nuc") + 0.1 * cp.sum(X)), [least <= X])


def draw_nuclear(generator: np.random.Generator) -> dict[str, Any]:
    return {"least": generator.uniform(0.2, 1, (2, 2))}


def rowwise() -> cp.Problem:
    """Cones along the rows of a matrix, one of them a power cone of three variables."""
    W, z, t = cp.Variable((2, 3), name="W"), cp.Variable(2, name="z"), cp.Variable(2, name="t")
    most, weights = cp.Parameter(2, name="most", nonneg=True), np.array([[0.2, 0.3, 0.5], [0.5, 0.25, 0.25]])
    cones = [cp.PowConeND(W, z, weights, axis=1), cp.SOC(t, W, axis=1)]
    return cp.Problem(cp.Maximize(cp.sum(z) - 0.1 * cp.sum(t)), [*cones, cp.sum(W, axis=1) <= most])


def draw_rowwise(generator: np.random.Generator) -> dict[str, Any]:
    return {"most": generator.uniform(1, 3, 2)}


def sides() -> cp.Problem:
    """A linear program of which only the sides move: nothing else of OSQP's data."""
    x, side = cp.Variable(4, name="x"), cp.Parameter(3, name="side")
    rows = np.array([[1.0, 2.0, 0.5, 1.0], [0.3, 1.0, 1.0, 2.0], [1.0, 0.2, 0.7, 0.1]])
    return cp.Problem(cp.Minimize(np.array([1.0, 2.0, 1.5, 1.2]) @ x), [rows @ x >= side, x >= 0, x <= 3])


def draw_sides(generator: np.random.Generator) -> dict[str, Any]:
    return {"side": generator.uniform(0.5, 2, 3)}


def smooth() -> cp.Problem:
    """Logistic losses with labels as Parameters, beside a log-sum-exp of a Parameter matrix."""
    x = cp.Variable(3, name="x")
    label, rows = cp.Parameter(4, name="label"), cp.Parameter((4, 3), name="rows")
    data = np.array([[1.0, 0.5, -1], [0.2, -1, 0.3], [-0.7, 0.1, 1], [0.4, 0.9, 0.2]])
    loss = cp.sum(cp.logistic(cp.multiply(label, data @ x))) + cp.log_sum_exp(rows @ x)
    return cp.Problem(cp.Minimize(loss), [cp.norm(x) <= 2])


def draw_smooth(generator: np.random.Generator) -> dict[str, Any]:
    return {"label": generator.choice([-1.0, 1.0], 4), "rows": generator.normal(size=(4, 3))}


def robust() -> cp.Problem:
    """Huber losses and a maximum, each with a Parameter inside."""
    x = cp.Variable(3, name="x")
    side, rows = cp.Parameter(3, name="side"), cp.Parameter((2, 3), name="rows")
    return cp.Problem(cp.Minimize(cp.sum(cp.huber(x - side)) + cp.max(rows @ x)), [cp.sum(x) == 1])


def draw_robust(generator: np.random.Generator) -> dict[str, Any]:
    return {"side": 3 * generator.normal(size=3), "rows": generator.normal(size=(2, 3))}


def determinant() -> cp.Problem:
    """Exponential and semidefinite cones in one problem; X = C^-1."""
    X, C = cp.Variable((2, 2), name="X"), cp.Parameter((2, 2), name="C")
    return cp.Problem(cp.Maximize(cp.log_det(X) - cp.trace(C @ X)), [X == X.T])


def draw_determinant(generator: np.random.Generator) -> dict[str, Any]:
    root = generator.normal(size=(2, 2))
    return {"C": root @ root.T + np.eye(2)}


def mean() -> cp.Problem:
    """Maximise a geometric mean under a Parameter's budget."""
    x, budget = cp.Variable(4, name="x"), cp.Parameter(name="budget")
    return cp.Problem(cp.Maximize(cp.geo_mean(x)), [cp.sum(x) <= budget, x >= 0.1])


def draw_mean(generator: np.random.Generator) -> dict[str, Any]:
    return {"budget": generator.uniform(1, 3)}


def marked() -> cp.Problem:
    """Bounds that variables have as attributes, and a symmetric one; cvxpy moves answers into bounds."""
    x, y, z = cp.Variable(2, nonneg=True, name="x"), cp.Variable(2, nonpos=True, name="y"), cp.Variable(name="z")
    w, S = cp.Variable(2, bounds=[-0.5, 0.3], name="w"), cp.Variable((2, 2), symmetric=True, name="S")
    a, D = cp.Parameter(2, name="a"), cp.Parameter((2, 2), symmetric=True, name="D")
    far = sum(cp.sum_squares(one - a) for one in (x, y, w)) + cp.sum_squares(S - D) + cp.square(z)
    return cp.Problem(cp.Minimize(far), [cp.sum(x) + z <= 1, cp.trace(S) == 1])


def draw_marked(generator: np.random.Generator) -> dict[str, Any]:
    root = generator.normal(size=(2, 2))
    return {"a": generator.normal(size=2), "D": root + root.T}


def matrix() -> cp.Problem:
    """A semidefinite variable as an attribute."""
    S, C = cp.Variable((2, 2), PSD=True, name="S"), cp.Parameter((2, 2), symmetric=True, name="C")
    return cp.Problem(cp.Minimize(cp.sum_squares(S - C)), [cp.trace(S) == 1])


def draw_matrix(generator: np.random.Generator) -> dict[str, Any]:
    root = generator.normal(size=(2, 2))
    return {"C": root + root.T}


def unconstrained() -> cp.Problem:
    x, a = cp.Variable(3, name="x"), cp.Parameter(3, name="a")
    return cp.Problem(cp.Minimize(cp.sum_squares(x - a) + cp.sum(x)))


def draw_unconstrained(generator: np.random.Generator) -> dict[str, Any]:
    return {"a": generator.normal(size=3)}


FAMILIES = {
    "linear": Family(linear, draw_linear, ("CLARABEL", "ECOS", "HIGHS", "OSQP", "SCS")),
    "quadratic": Family(quadratic, draw_quadratic, ("CLARABEL", "HIGHS", "OSQP", "SCS")),
    "second order": Family(second_order, draw_second_order, ("CLARABEL", "ECOS", "SCS")),
    "entropic": Family(entropic, draw_entropic, ("CLARABEL", "ECOS", "SCS")),
    "exponential": Family(exponential, draw_exponential, ("CLARABEL", "ECOS", "SCS")),
    "power": Family(power, draw_power, ("CLARABEL", "SCS")),
    "semidefinite": Family(semidefinite, draw_semidefinite, ("CLARABEL", "SCS")),
    "nuclear": Family(nuclear, draw_nuclear, ("CLARABEL", "SCS")),
    "rowwise": Family(rowwise, draw_rowwise, ("CLARABEL", "SCS")),
    "smooth": Family(smooth, draw_smooth, ("CLARABEL", "ECOS", "SCS")),
    "robust": Family(robust, draw_robust, ("CLARABEL", "HIGHS", "OSQP", "SCS")),
    "determinant": Family(determinant, draw_determinant, ("CLARABEL", "SCS")),
    "mean": Family(mean, draw_mean, ("CLARABEL", "ECOS", "SCS")),
    "marked": Family(marked, draw_marked, ("CLARABEL", "HIGHS", "OSQP")),
    "matrix": Family(matrix, draw_matrix, ("CLARABEL",)),
    "unconstrained": Family(unconstrained, draw_unconstrained, ("CLARABEL", "HIGHS", "OSQP", "SCS")),
    "sides": Family(sides, draw_sides, ("CLARABEL", "ECOS", "HIGHS", "OSQP", "SCS")),
}

TIGHT: dict[str, dict[str, Any]] = {
    "CLARABEL": {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11},
    "ECOS": {"abstol": 1e-11, "reltol": 1e-11, "feastol": 1e-11},
    "SCS": {"eps_abs": 1e-11, "eps_rel": 1e-11, "max_iters": 50_000},
    "HIGHS": {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    "OSQP": {"eps_abs": 1e-10, "eps_rel": 1e-10, "max_iter": 100_000},
}

PAIRS = [(name, solver) for name, family in FAMILIES.items() for solver in family.solvers]
pairs = pytest.mark.parametrize(("name", "solver"), PAIRS)


def cvxpys(problem: cp.Problem, solver: str, options: dict[str, Any]) -> str:
    """Solve as cvxpy does, from a cold start; the status, also where cvxpy raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "may be inaccurate": the status says so
        try:
            problem.solve(solver=solver, warm_start=False, **options)
        except cp.error.SolverError:
            return str(cp.SOLVER_ERROR)
    return str(problem.status)


def place(problem: cp.Problem, values: dict[str, Any]) -> None:
    for parameter in problem.parameters():
        parameter.value = values[parameter.name()]


def flat(parts: Any) -> np.ndarray:
    return np.concatenate([np.ravel(part) for part in (parts if isinstance(parts, list) else [parts])])


def assert_same(fast: FastProblem, values: dict[str, Any], options: dict[str, Any], tolerance: float) -> None:
    """Solve one set of values both ways, and compare status, objective, values and multipliers, shapes included."""
    mine = fast.solve(values)
    problem = fast.problem
    place(problem, values)
    assert mine.status == cvxpys(problem, fast.solver, options)
    if mine.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        assert mine.objective == problem.value
        assert not mine.values
        assert not mine.duals
        return
    assert mine.objective == pytest.approx(problem.value, rel=1e-9, abs=1e-9)
    if fast.solver != "SCS":  # its other factorisation rounds otherwise
        assert mine.iterations == problem.solver_stats.num_iters
    for variable in problem.variables():
        assert mine.values[variable.name()].shape == variable.shape
        np.testing.assert_allclose(mine.values[variable.name()], variable.value, rtol=0, atol=tolerance)
    for index, constraint in enumerate(problem.constraints):
        dual = mine.duals[f"constraint[{index}]"]
        assert isinstance(dual, list) == isinstance(constraint.dual_value, list)
        np.testing.assert_allclose(flat(dual), flat(constraint.dual_value), rtol=0, atol=tolerance)


@pytest.mark.grid(every=7)
@pairs
def test_values_multipliers_objective_and_status_are_those_of_problem_solve(name: str, solver: str) -> None:
    family, generator = FAMILIES[name], np.random.default_rng(3)
    fast = FastProblem(family.make(), solver, TIGHT[solver])
    for _ in range(6):
        # 1e-9: what issue and design ask. The same arithmetic up to the order of SCS's sums (another factorisation).
        assert_same(fast, family.draw(generator), TIGHT[solver], 1e-9)


@pytest.mark.grid(every=7)
@pairs
def test_the_answer_has_the_bits_of_a_new_problem_whatever_was_solved_before(name: str, solver: str) -> None:
    family, generator = FAMILIES[name], np.random.default_rng(4)
    values = family.draw(generator)
    fast = FastProblem(family.make(), solver, TIGHT[solver])
    for scale in (1e-2, 1.0, 1e2):  # some of them infeasible
        fast.solve({key: scale * np.asarray(value) for key, value in family.draw(generator).items()})
    mine = fast.solve(values)
    problem = family.make()
    place(problem, values)
    assert mine.status == cvxpys(problem, solver, TIGHT[solver])
    for variable in problem.variables():
        assert np.array_equal(mine.values[variable.name()], variable.value)


@pytest.mark.parametrize(
    ("name", "solver", "kept"),
    [
        ("entropic", "CLARABEL", True),  # entries of 1: nothing to equilibrate
        ("sides", "CLARABEL", False),  # b moves alone, but what equilibration rounds differs
        ("linear", "CLARABEL", False),
        ("quadratic", "OSQP", False),
        ("sides", "OSQP", False),
        ("entropic", "SCS", False),
    ],
)
def test_a_solver_s_object_is_kept_only_where_it_gives_the_bits_of_a_new_one(
    name: str, solver: str, kept: bool
) -> None:
    family = FAMILIES[name]
    fast = FastProblem(family.make(), solver)
    fast.solve(family.draw(np.random.default_rng(0)))
    assert (fast._object._solver is not None) == kept


@pytest.mark.grid(every=7)
@pytest.mark.parametrize(("name", "solver"), [pair for pair in PAIRS if pair[1] != "ECOS"])
def test_a_reused_object_still_agrees_within_what_was_asked(name: str, solver: str) -> None:
    family, generator = FAMILIES[name], np.random.default_rng(5)
    problem = family.make()
    fast = FastProblem(problem, solver, TIGHT[solver], reuse=True)
    for _ in range(8):
        values = family.draw(generator)
        mine = fast.solve(values)
        place(problem, values)
        # 1e-11 is CLARABEL's limit with power cones: rounding decides whether it calls itself inaccurate there.
        assert {mine.status, cvxpys(problem, solver, TIGHT[solver])} <= {cp.OPTIMAL, cp.OPTIMAL_INACCURATE}
        assert mine.objective == pytest.approx(problem.value, rel=1e-8, abs=1e-8)
        for variable in problem.variables():
            # A minimiser is known to about the root of the gap that was asked for, 1e-11.
            np.testing.assert_allclose(mine.values[variable.name()], variable.value, rtol=0, atol=1e-5)


def test_scs_is_made_anew_where_the_penalty_it_kept_leads_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    size, made = 11, []
    new = Scs._new
    monkeypatch.setattr(Scs, "_new", lambda self: made.append(1) or new(self))
    x = cp.Variable(size, name="x")
    prior, cost = cp.Parameter(size, name="prior", nonneg=True), cp.Parameter(size, name="cost")
    problem = cp.Problem(cp.Minimize(cp.sum(cp.rel_entr(x, prior)) + cost @ x), [cp.sum(x) == 1, x >= 1e-9])
    fast = FastProblem(problem, "SCS", {"eps_abs": 1e-7, "eps_rel": 1e-7, "max_iters": 2_000}, reuse=True)
    generator = np.random.default_rng(3)  # four of these hundred would end as inaccurate with scs 3.3.1
    draws = [{"prior": generator.dirichlet(np.ones(size)), "cost": generator.normal(size=size)} for _ in range(100)]
    assert {fast.solve(values).status for values in draws} == {cp.OPTIMAL}
    assert len(made) < 20  # and yet the object is mostly kept


def dense(problem: cp.Problem, solver: str) -> dict[str, np.ndarray]:
    """P's upper triangle, q, d, A, b as cvxpy hands them over, equality rows first."""
    solver = "OSQP" if solver == "HIGHS" else solver  # the form that HiGHS gets here, too
    data, _, inverse = problem.get_problem_data(solver)
    q = data["q"] if "q" in data else data["c"]
    later = {"ECOS": ("G", "h"), "OSQP": ("F", "G")}.get(solver)
    pairs_of_rows = [("A", "b"), *([later] if later else [])]
    parts = [(data[matrix], data[side]) for matrix, side in pairs_of_rows if data[matrix] is not None]
    return {
        "P": np.triu(data["P"].toarray()) if data.get("P") is not None else np.zeros((q.size, q.size)),
        "q": q,
        "d": np.ravel(inverse[-1].inverse_data["offset"]),
        "A": np.vstack([matrix.toarray() for matrix, _ in parts]),
        "b": np.concatenate([np.ravel(side) for _, side in parts]),
    }


@pytest.mark.grid(every=7)
@pairs
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_the_map_gives_the_numbers_that_cvxpy_would_have_computed(name: str, solver: str, data: st.DataObject) -> None:
    problem = MADE.setdefault((name, solver), FAMILIES[name].make())
    fast = COMPILED.setdefault((name, solver), FastProblem(problem, solver))
    values = {}
    for parameter in problem.parameters():
        low = 0.0 if parameter.is_nonneg() else -1e3
        drawn = data.draw(hnp.arrays(float, parameter.shape, elements=st.floats(low, 1e3)))
        values[parameter.name()] = drawn + drawn.T if parameter.attributes["symmetric"] else drawn
    place(problem, values)
    cone = fast._cone
    cone.apply(fast._entries.stack(values))
    theirs = dense(problem, solver)
    assert np.array_equal(cone.P.toarray(), theirs["P"])
    assert np.array_equal(cone.A.toarray(), theirs["A"])
    for section in ("q", "d", "b"):
        assert np.array_equal(cone[section], theirs[section])


MADE: dict[tuple[str, str], cp.Problem] = {}
COMPILED: dict[tuple[str, str], FastProblem] = {}


@pairs
def test_matrices_are_views_of_the_one_buffer(name: str, solver: str) -> None:
    # scipy copies a view that is less than half of its base when it builds a matrix; updates would then be lost.
    cone = FastProblem(FAMILIES[name].make(), solver)._cone
    assert np.shares_memory(cone.A.data, cone.buffer)
    assert cone.P.nnz == 0 or np.shares_memory(cone.P.data, cone.buffer)


def test_only_what_parameters_reach_is_written() -> None:
    fast = FastProblem(entropic(), "CLARABEL")
    cone = fast._cone
    assert cone.moving() == {"q", "b"}
    assert cone.touched.size == 12  # six of `prior`, six of `cost`
    before = cone.buffer.copy()
    fast.solve(draw_entropic(np.random.default_rng(0)))
    assert set(np.flatnonzero(before != cone.buffer)) <= set(cone.touched)


def box() -> cp.Problem:
    """Infeasible where low > high, unbounded where high is not in force and the cost is negative."""
    x, t = cp.Variable(2, name="x"), cp.Variable(name="t")
    low, high, cost = cp.Parameter(name="low"), cp.Parameter(name="high"), cp.Parameter(2, name="cost")
    force = cp.Parameter(name="force")
    return cp.Problem(cp.Minimize(cost @ x + t), [x >= low, force * x <= high, t >= cp.abs(x[0]) - 3])


SOLVABLE: dict[str, Any] = {"low": 0.0, "high": 2.0, "cost": np.array([1.0, -1.0]), "force": 1.0}
INFEASIBLE = {**SOLVABLE, "low": 3.0}
UNBOUNDED = {**SOLVABLE, "force": 0.0}


@pytest.mark.parametrize("reuse", [False, True])
@pytest.mark.parametrize("solver", ["CLARABEL", "ECOS", "HIGHS", "OSQP", "SCS"])
def test_infeasible_and_unbounded_instances_leave_nothing_behind(solver: str, reuse: bool) -> None:
    fast = FastProblem(box(), solver, TIGHT[solver], reuse=reuse)
    order = [SOLVABLE, INFEASIBLE, SOLVABLE, UNBOUNDED, SOLVABLE, UNBOUNDED, INFEASIBLE, SOLVABLE]
    for values in order:
        if not reuse:
            assert_same(fast, values, TIGHT[solver], 1e-9)
        solution = fast.solve(values)
        if values is SOLVABLE:
            assert solution.status == cp.OPTIMAL
            # x = (0, 2) and t = -3 by hand: 0 - 2 - 3.
            assert solution.objective == pytest.approx(-5.0, abs=1e-7)
        else:
            assert solution.status == (cp.INFEASIBLE if values is INFEASIBLE else cp.UNBOUNDED)
            assert solution.objective == (np.inf if values is INFEASIBLE else -np.inf)
            assert not solution.values


def test_a_maximisation_that_is_infeasible_is_worth_minus_infinity() -> None:
    x, low = cp.Variable(name="x"), cp.Parameter(name="low")
    fast = FastProblem(cp.Problem(cp.Maximize(-x), [x >= low, x <= 1]), "CLARABEL")
    assert fast.solve({"low": 2.0}).objective == -np.inf
    assert fast.solve({"low": 0.5}).objective == pytest.approx(-0.5, abs=1e-7)  # CLARABEL's default tolerance, 1e-8


def test_names_come_from_the_caller_and_a_label_names_a_constraint() -> None:
    x, y, a = cp.Variable(2), cp.Variable(2), cp.Parameter(2)
    mass, floor = (cp.sum(x + y) == 1).set_label("mass"), x >= a
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x) + cp.sum_squares(y)), [mass, floor])
    own = FastProblem(problem, "CLARABEL").solve({a.name(): np.zeros(2)})
    assert set(own.duals) == {"mass", "constraint[1]"}
    chosen = FastProblem(problem, "CLARABEL", variables={"first": x}, parameters={"a": a}, constraints={"floor": floor})
    solution = chosen.solve({"a": np.array([0.4, 0.0])})
    assert set(solution.values) == {"first"}
    assert set(solution.duals) == {"floor"}
    assert solution.values["first"] == pytest.approx([0.4, 0.2], abs=1e-7)  # the rest of the mass is shared out evenly


def test_two_variables_of_one_name_need_names() -> None:
    x, y = cp.Variable(name="x"), cp.Variable(name="x")
    problem = cp.Problem(cp.Minimize(x + y), [x >= 0, y >= 1])
    with pytest.raises(ModelError, match="variables: 'x' stands for several"):
        FastProblem(problem, "CLARABEL")
    assert FastProblem(problem, "CLARABEL", variables={"x": x, "y": y}).solve().objective == pytest.approx(1, abs=1e-7)
    assert supported(problem, "CLARABEL") == (True, "")


def test_names_for_what_the_problem_does_not_have_are_refused() -> None:
    with pytest.raises(ModelError, match="variables: 'other' not in the problem"):
        FastProblem(entropic(), "CLARABEL", variables={"other": cp.Variable()})
    with pytest.raises(ModelError, match="parameters: 'cost', 'prior' of the problem is not among them"):
        FastProblem(entropic(), "CLARABEL", parameters={})


def test_compiling_leaves_parameters_without_values_and_multipliers_as_they_were() -> None:
    problem = entropic()
    FastProblem(problem, "CLARABEL")
    assert all(parameter.value is None for parameter in problem.parameters())
    place(problem, draw_entropic(np.random.default_rng(0)))
    cvxpys(problem, "CLARABEL", {})
    before = [np.array(constraint.dual_value) for constraint in problem.constraints]
    FastProblem(problem, "CLARABEL")
    assert all(np.array_equal(a, b.dual_value) for a, b in zip(before, problem.constraints, strict=True))


def test_without_values_the_parameters_own_are_taken() -> None:
    problem = entropic()
    fast = FastProblem(problem, "CLARABEL")
    with pytest.raises(ModelError, match="no value for parameter 'cost', 'prior'"):
        fast.solve()
    values = draw_entropic(np.random.default_rng(0))
    place(problem, values)
    assert np.array_equal(fast.solve().values["x"], fast.solve(values).values["x"])


def test_a_problem_without_parameters_is_solved_again_and_again() -> None:
    x = cp.Variable(3, name="x")
    fast = FastProblem(cp.Problem(cp.Minimize(cp.sum_squares(x)), [cp.sum(x) == 3]), "CLARABEL")
    for _ in range(2):
        assert fast.solve().values["x"] == pytest.approx(np.ones(3), abs=1e-8)


GOOD: dict[str, Any] = {"prior": np.full(6, 1 / 6), "cost": np.zeros(6)}


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"prior": np.ones(5)}, ModelError, r"'prior' is an array of float64 of shape \(5,\), expected .* \(6,\)"),
        ({"prior": np.ones((6, 1))}, ModelError, r"'prior' .* of shape \(6, 1\)"),
        ({"cost": "cheap"}, ModelError, "'cost' is an array of <U5"),
        ({"cost": None}, ModelError, "'cost' is an array of object"),
        ({"cost": np.ones(6) * 1j}, ModelError, "'cost' is an array of complex128"),
        ({"cost": [0, 0, 0, np.nan, 0, 0]}, DataError, r"'cost' has the entry nan at \(3,\)"),
        ({"prior": [1, np.inf, 1, 1, 1, 1]}, DataError, r"'prior' has the entry inf at \(1,\)"),
        ({"prior": [1, 1, -0.5, 1, 1, 1]}, ModelError, r"'prior' has the entry -0.5 at \(2,\): it was declared >= 0"),
        ({"extra": np.ones(1)}, ModelError, "'extra' is not in the problem"),
    ],
)
def test_bad_values_are_refused_by_name_before_the_solver_starts(
    changed: dict[str, Any], error: type[Exception], message: str
) -> None:
    fast = FastProblem(entropic(), "CLARABEL")
    before = fast.solve(GOOD)
    with pytest.raises(error, match=message):
        fast.solve({**GOOD, **changed})
    assert np.array_equal(fast.solve(GOOD).values["x"], before.values["x"])


def test_missing_values_are_named_together() -> None:
    with pytest.raises(ModelError, match="no value for parameter 'cost', 'prior'"):
        FastProblem(entropic(), "CLARABEL").solve({})


def test_a_position_in_a_matrix_parameter_is_named_by_row_and_column() -> None:
    values = draw_quadratic(np.random.default_rng(0))
    values["target"][1, 2] = np.nan
    with pytest.raises(DataError, match=r"'target' has the entry nan at \(1, 2\)"):
        FastProblem(quadratic(), "CLARABEL").solve(values)


def test_a_wrong_sign_within_rounding_passes_as_with_cvxpy() -> None:
    x, a = cp.Variable(name="x"), cp.Parameter(name="a", nonpos=True)
    problem = cp.Problem(cp.Minimize(x), [x >= a])
    fast = FastProblem(problem, "CLARABEL")
    assert fast.solve({"a": 1e-12}).status == cp.OPTIMAL
    a.value = 1e-12
    with pytest.raises(ModelError, match="declared <= 0"):
        fast.solve({"a": 1e-3})
    with pytest.raises(ValueError, match="nonpositive"):
        a.value = 1e-3


def test_data_that_overflow_are_refused_and_forgotten() -> None:
    x, a = cp.Variable(name="x"), cp.Parameter(name="a")
    fast = FastProblem(cp.Problem(cp.Minimize(x), [x >= 1e200 * a, x >= 1]), "CLARABEL")
    with pytest.raises(DataError, match="overflow"):
        fast.solve({"a": 1e200})
    assert fast.solve({"a": 0.0}).objective == pytest.approx(1.0, abs=1e-7)


def unsupported_problems() -> dict[str, tuple[cp.Problem, str, str]]:
    """Problem, solver, and words of the reason."""
    x, a = cp.Variable(3, name="x"), cp.Parameter(name="a", nonneg=True)
    whole, D = cp.Variable(integer=True), cp.Variable((2, 2), diag=True, name="D")
    least = cp.Parameter(3, name="least")
    above = cp.Variable(3, bounds=[least, None], name="above")
    E = cp.Parameter((2, 2), diag=True, name="E")
    return {
        "no update": (cp.Problem(cp.Minimize(cp.sum(x)), [x >= a]), "SCIPY", "no fast path to solver 'SCIPY'"),
        "not DPP": (cp.Problem(cp.Minimize(cp.exp(a) * cp.norm(x)), [x >= 1]), "CLARABEL", "not DPP"),
        "not DCP": (cp.Problem(cp.Minimize(-cp.norm(x)), [x >= 1]), "CLARABEL", "not DCP"),
        "integer": (cp.Problem(cp.Minimize(whole), [whole >= a]), "CLARABEL", "integer"),
        "diagonal variable": (
            cp.Problem(cp.Minimize(cp.trace(D)), [D[0, 0] >= 1]),
            "CLARABEL",
            "'D' .* attribute diag",
        ),
        "moving bounds": (
            cp.Problem(cp.Minimize(cp.sum(above))),
            "CLARABEL",
            "'above' has bounds that are expressions",
        ),
        "diagonal parameter": (cp.Problem(cp.Minimize(cp.sum(x)), [x >= E[0, 0]]), "CLARABEL", "'E' .* diag"),
        "cones": (cp.Problem(cp.Minimize(cp.sum(cp.exp(x))), [x >= a]), "OSQP", "cannot solve"),
        "infinite constant": (cp.Problem(cp.Minimize(cp.sum(x)), [x >= a, x <= np.inf]), "CLARABEL", "infinite"),
        "complex": (cp.Problem(cp.Minimize(cp.abs(cp.Variable(complex=True) - a)), [a <= 2]), "CLARABEL", "complex"),
    }


@pytest.mark.parametrize("name", unsupported_problems())
def test_what_the_fast_path_does_not_take_is_said_with_the_reason(name: str) -> None:
    problem, solver, words = unsupported_problems()[name]
    fine, reason = supported(problem, solver)
    assert not fine
    with pytest.raises(NotFast, match=words):
        FastProblem(problem, solver)
    with pytest.raises(NotFast, match=words):
        raise NotFast(reason)


def test_a_sparse_parameter_is_given_as_a_sparse_matrix_or_whole() -> None:
    x, S = cp.Variable(3, name="x"), cp.Parameter((3, 3), sparsity=([0, 1, 2], [1, 2, 0]), name="S")
    fast = FastProblem(cp.Problem(cp.Minimize(cp.sum_squares(S @ x - 1)), [cp.sum(x) == 1]), "CLARABEL")
    whole = np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 3.0], [0.5, 0.0, 0.0]])
    S.value_sparse = sp.coo_array(whole)
    cvxpys(fast.problem, "CLARABEL", {})
    for values in ({"S": whole}, {"S": sp.csr_array(whole)}, None):
        np.testing.assert_array_equal(fast.solve(values).values["x"], x.value)
    with pytest.raises(ModelError, match="'S' is not sparse as declared"):
        fast.solve({"S": whole + 1.0})


def test_a_symmetric_parameter_that_is_not_symmetric_is_refused() -> None:
    with pytest.raises(ModelError, match="'C' is not symmetric as declared"):
        FastProblem(matrix(), "CLARABEL").solve({"C": np.array([[1.0, 2.0], [0.0, 1.0]])})


def test_a_block_without_a_fast_path_has_the_answers_of_cvxpy_at_every_solve() -> None:
    D, a = cp.Variable((2, 2), diag=True, name="D"), cp.Parameter(2, name="a")
    distance, total = cp.sum_squares(cp.diag(D) - a), cp.trace(D) == 1

    block = Block(
        name="diagonal",
        reads=frozenset({"a"}),
        writes=frozenset({"D"}),
        declare=lambda _: Declaration(cp.Minimize(distance), {"total": total}, {"D": D}, {"a": a}),
        parameters=lambda view: {"a": view["a"]},
        embed=lambda point, at: {"D": point["D"]},
        repair=lambda values, view: dict(values),
        write=lambda solution, view: {"D": solution.values["D"]},
    )
    for target in np.random.default_rng(0).normal(size=(4, 2)):  # the fast path would begin at the second
        found, _ = block.solve({"a": target}, solver="CLARABEL")
        # The projection onto the line of sum 1.
        np.testing.assert_allclose(found["D"], np.diag(target + (1.0 - target.sum()) / 2), atol=1e-7)


def test_an_equality_row_without_coefficients_is_not_for_ecos() -> None:
    x, a = cp.Variable(name="x"), cp.Parameter(name="a")
    problem = cp.Problem(cp.Minimize(x), [0 * x == a, x >= a])
    assert supported(problem, "ECOS") == (False, "ECOS does not take equality rows without any coefficient")
    assert FastProblem(problem, "CLARABEL").solve({"a": 1.0}).status == cp.INFEASIBLE


def test_an_option_that_the_interface_does_not_know_is_refused() -> None:
    with pytest.raises(ModelError, match=r"not options of CLARABEL: .*tolerance"):
        FastProblem(entropic(), "CLARABEL", {"tolerance": 1e-9})


def test_options_reach_the_solver() -> None:
    limits = {"CLARABEL": "max_iter", "ECOS": "max_iters", "SCS": "max_iters", "OSQP": "max_iter"}
    for solver, option in [*limits.items(), ("HIGHS", "simplex_iteration_limit")]:
        family = FAMILIES["linear"]
        most = 0 if solver == "HIGHS" else 2  # one step of the simplex method ends it
        solution = FastProblem(family.make(), solver, {option: most}).solve(family.draw(np.random.default_rng(0)))
        assert solution.iterations <= most
        assert solution.status != cp.OPTIMAL


def test_a_limit_of_highs_counts_for_each_solve_and_without_a_point_there_is_none() -> None:
    family, generator = FAMILIES["sides"], np.random.default_rng(0)
    fast = FastProblem(family.make(), "HIGHS", {"highs_options": {"time_limit": 0.0}})
    solution = fast.solve(family.draw(generator))
    assert (solution.status, solution.values) == (cp.SOLVER_ERROR, {})
    assert fast._object._new() is not fast._object._new()  # HiGHS's clock runs on over the solves of one object
    with pytest.raises(ModelError, match="not options of HIGHS: time_limit='soon' is refused"):
        FastProblem(family.make(), "HIGHS", {"time_limit": "soon"})


def test_highs_gets_no_bounds_that_cvxpy_found() -> None:
    x, centre = cp.Variable(2, name="x"), cp.Parameter(2, name="centre")
    labels, features = np.array([1.0, -1.0]), np.array([[1.0, 2.0], [-1.0, 1.0]])
    hinge = cp.sum(cp.pos(1 - cp.multiply(labels, features @ x)))  # cvxpy 1.9.3 gives HiGHS both bounds 1
    fast = FastProblem(cp.Problem(cp.Minimize(hinge + cp.sum_squares(x - centre))), "HIGHS")
    # At x = (-2, 1.5), the first hinge at its kink.
    assert fast.solve({"centre": np.array([-3.0, 1.0])}).objective == pytest.approx(5.75, abs=1e-6)


def test_the_objective_is_that_of_the_point_whatever_the_solver_says() -> None:
    x, target = cp.Variable(3, name="x"), cp.Parameter(3, name="target", value=np.arange(3.0))
    form = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    problem = cp.Problem(cp.Maximize(7 + target @ x - cp.quad_form(x, form)), [cp.sum(x) == 1])
    for solver, options in (("SCS", {"max_iters": 3}), ("OSQP", {"max_iter": 20}), ("CLARABEL", {})):
        found = FastProblem(problem, solver, options).solve()
        at = found.values["x"]
        assert found.objective == pytest.approx(7 + target.value @ at - at @ form @ at, rel=1e-12), solver


def test_whatever_a_solver_raises_becomes_a_status_and_the_next_solve_is_sound() -> None:
    fast = FastProblem(entropic(), "ECOS", {"no_such_option": 1})
    solution = fast.solve(GOOD)
    assert (solution.status, solution.values) == (cp.SOLVER_ERROR, {})
    assert np.isnan(solution.objective)
    assert "no_such_option" in solution.message


def test_ecos_leaves_the_data_as_they_are() -> None:
    family, generator = FAMILIES["second order"], np.random.default_rng(0)
    fast = FastProblem(family.make(), "ECOS")
    values = {key: 1e3 / 3 * value for key, value in family.draw(generator).items()}
    fast.solve(values)
    before = fast._cone.buffer.copy()
    for _ in range(50):
        fast.solve(values)
    assert np.array_equal(before, fast._cone.buffer)


def python_bytes() -> int:
    return tracemalloc.get_traced_memory()[0]


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def grown(solver: str, solves: int, held: Callable[[], int]) -> int:
    """Bytes that are held more after a quarter of a sequence than before it, the smallest over the four quarters.

    A leak grows in each of them; a table of the interpreter's own that happens to be made larger grows once.
    """
    fast, generator = FastProblem(entropic(), solver), np.random.default_rng(0)
    draws = [draw_entropic(generator) for _ in range(20)]
    fast.solve(draws[0])
    if held is python_bytes:
        tracemalloc.start()  # which makes all else several times slower
    growth = []
    for _ in range(4):
        gc.collect()  # what awaits the collector is no leak
        before = held()
        for turn in range(solves // 4):
            fast.solve(draws[turn % 20])
        gc.collect()
        growth.append(held() - before)
    tracemalloc.stop()
    return min(growth)


@pytest.mark.parametrize(
    ("solver", "solves"),
    [
        ("CLARABEL", 100),
        *(pytest.param(name, 2_000, marks=pytest.mark.slow) for name in ("CLARABEL", "ECOS", "SCS")),
    ],
)
def test_memory_stays_flat_over_many_solves(solver: str, solves: int) -> None:
    assert grown(solver, solves, python_bytes) < 10 * solves  # one array of six numbers a solve would be 40 each


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads the process's size from /proc")
@pytest.mark.parametrize("solver", ["CLARABEL", "ECOS", "SCS"])
def test_what_solvers_hold_outside_python_stays_flat_over_ten_thousand_solves(solver: str) -> None:
    assert grown(solver, 10_000, resident_bytes) < 500_000  # 200 bytes a solve


@pytest.mark.parametrize("solver", ["CLARABEL", "ECOS", "HIGHS", "OSQP", "SCS"])
def test_threads_that_share_a_problem_get_the_answers_of_their_own_parameters(solver: str) -> None:
    x, target = cp.Variable(4, name="x"), cp.Parameter(4, name="target")
    fast = FastProblem(cp.Problem(cp.Minimize(cp.sum_squares(x - target)), [cp.sum(x) == 1, x >= 0]), solver)
    targets = np.random.default_rng(0).normal(size=(60, 4))
    alone = [fast.solve({"target": one}) for one in targets]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda one: fast.solve({"target": one}), targets))
    for here, there in zip(alone, together, strict=True):
        np.testing.assert_array_equal(here.values["x"], there.values["x"])
        assert here.objective == there.objective
