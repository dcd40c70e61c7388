"""Blocks: declared once, compiled once a solver, honest about what they cannot do."""

from __future__ import annotations

import pickle
import tracemalloc

import cvxpy as cp
import numpy as np
import pytest

from cvxpriv.blocks.block import KEPT, Block
from cvxpriv.blocks.declaration import Declaration, NotDPPWarning
from cvxpriv.blocks.distributions import distribution_block
from cvxpriv.errors import ModelError, SolverFailure
from cvxpriv.numerics.arrays import Values
from cvxpriv.solvers.chain import Solution

TARGET = np.array([0.7, 0.2, 0.1])


def declare_projection(_: object) -> Declaration:
    x, target = cp.Variable(3, name="x"), cp.Parameter(3, name="target")
    return Declaration(
        objective=cp.Minimize(cp.sum_squares(x - target)),
        constraints={"mass": cp.sum(x) == 1, "floor": x >= 0},
        variables={"x": x},
        parameters={"target": target},
        mechanism=cp.reshape(x, (1, 3), order="C"),
    )


def projection(**changes: object) -> Block:
    """The Euclidean projection of `y` on the simplex, with its answer for a `y` that lies in it."""
    fields: dict[str, object] = {
        "name": "projection",
        "reads": frozenset({"y"}),
        "writes": frozenset({"x"}),
        "declare": declare_projection,
        "parameters": lambda view: {"target": view["y"]},
        "embed": lambda point, at: {"x": point["x"]},
        "repair": lambda values, view: {"x": np.maximum(values["x"], 0.0)},
        "write": lambda solution, view: {"x": solution.values["x"]},
        "direct": lambda state: {"x": np.array(state["y"])},
    }
    return Block(**{**fields, **changes})  # type: ignore[arg-type]


def test_a_solve_gives_the_state_entries_the_duals_by_name_and_who_answered() -> None:
    values, solution = projection().solve({"y": TARGET + 0.3})
    assert values["x"] == pytest.approx(TARGET, abs=1e-8)  # a square's minimiser is as good as the gap's root
    assert solution.duals["mass"] == pytest.approx(0.6, abs=1e-7)  # 2 * 0.3, sign of L = f + nu (sum x - 1)
    assert (solution.solver, solution.status) == ("CLARABEL", "optimal")


def test_a_point_beside_a_kink_is_measured_there_and_its_distance_counts() -> None:
    def declare(_: object) -> Declaration:
        x = cp.Variable((2, 2), name="x")
        return Declaration(cp.Minimize(cp.sum(cp.max(x, axis=0))), {"rows": cp.sum(x, axis=1) == 1}, {"x": x}, {})

    block = projection(declare=declare, parameters=lambda view: {}, direct=None)

    def residual(beside: float) -> float:
        found = {"x": np.array([[0.5 + beside, 0.5 - beside], [0.5, 0.5]])}
        return float(block.residual(found, found).largest)

    assert residual(0.0) <= 1e-12
    assert 5e-9 <= residual(5e-9) <= 2e-7  # a solver's answer
    assert residual(1e-6) >= 0.1  # no tie


def test_one_problem_is_compiled_for_each_solver_and_kept() -> None:
    block = projection()
    assert block.declaration((), "ECOS") is block.declaration((), "ECOS")
    assert block.declaration((), "ECOS") is not block.declaration((), "SCS")


def test_compiled_problems_do_not_pile_up_when_the_structure_changes_at_each_step() -> None:
    block = projection()
    for structure in range(3 * KEPT):
        block.declaration(structure)
    assert len(block._compiled) == KEPT


def test_a_block_that_a_solver_has_touched_can_be_pickled() -> None:
    block = Block("p", frozenset({"y"}), frozenset({"x"}), declare_projection, _parameters, _embed, _repair, _write)
    block.solve({"y": TARGET})
    again = pickle.loads(pickle.dumps(block))
    assert again.solve({"y": TARGET})[0]["x"] == pytest.approx(TARGET, abs=1e-8)


def _parameters(view: Values) -> Values:
    return {"target": view["y"]}


def _embed(point: Values, at: Values) -> Values:
    return {"x": point["x"]}


def _repair(values: Values, view: Values) -> Values:
    return values


def _write(solution: Solution, view: Values) -> Values:
    return solution.values


def test_values_are_repaired_before_the_objective_is_evaluated() -> None:
    seen: list[float] = []

    def declare(_: object) -> Declaration:
        x = cp.Variable(2, name="x")
        return Declaration(cp.Minimize(-cp.sum(cp.entr(x))), {"mass": cp.sum(x) == 1}, {"x": x})

    def repair(values: Values, view: Values) -> Values:
        seen.append(float(values["x"].sum()))
        return {"x": np.array([1.0, 0.0])}

    block = projection(declare=declare, parameters=lambda view: {}, repair=repair)
    _, solution = block.solve({"y": TARGET})
    assert seen == [pytest.approx(1.0)]
    assert solution.objective == 0.0  # the entropy of (1, 0), not of the solver's (1/2, 1/2)


def test_a_constraint_joins_the_problem_and_switches_the_exact_update_off() -> None:
    block = projection().constrain("cap", lambda mechanism: mechanism <= 0.5)
    values, solution = block.solve({"y": TARGET})
    assert block.direct is None
    assert values["x"] == pytest.approx([0.5, 0.3, 0.2], abs=1e-7)  # the projection by hand: nu = 0.1
    assert solution.duals["cap"].max() == pytest.approx(0.6, abs=1e-6)


def test_a_constraint_may_return_several_constraints_and_each_gets_a_name() -> None:
    block = projection().constrain("box", lambda mechanism: [mechanism <= 0.6, mechanism >= 0.1])
    assert {"box[0]", "box[1]"} <= set(block.declaration().constraints)


@pytest.mark.parametrize("returned", [None, 3.0, [True], "x >= 0"])
def test_a_constraint_that_returns_no_constraint_is_refused(returned: object) -> None:
    block = projection().constrain("mine", lambda mechanism: returned)  # type: ignore[arg-type, return-value]
    with pytest.raises(ModelError, match="'mine' returned .* not a cvxpy constraint"):
        block.declaration()


def test_a_constraint_that_is_not_dcp_is_named_with_its_expression() -> None:
    block = projection().constrain("hole", lambda mechanism: cp.sum_squares(mechanism) >= 1)
    message = r"block 'projection' is not DCP in hole: 1.0 <= .* cvxpy says: .* subexpressions are not"
    with pytest.raises(ModelError, match=message):
        block.declaration()


def test_a_name_is_taken_once() -> None:
    block = projection().constrain("cap", lambda mechanism: mechanism <= 0.5)
    with pytest.raises(ModelError, match="'cap' is already a constraint"):
        block.constrain("cap", lambda mechanism: mechanism <= 0.4)


def test_a_block_without_a_mechanism_cannot_be_constrained() -> None:
    def declare(_: object) -> Declaration:
        x = cp.Variable(2, name="x")
        return Declaration(cp.Minimize(cp.sum_squares(x)), {"mass": cp.sum(x) == 1}, {"x": x})

    with pytest.raises(ModelError, match="has no mechanism to constrain"):
        projection(declare=declare).constrain("cap", lambda mechanism: mechanism <= 1).declaration()


def test_a_problem_that_is_not_dpp_is_compiled_with_a_warning() -> None:
    def declare(_: object) -> Declaration:
        x, a = cp.Variable(2, name="x"), cp.Parameter(nonneg=True, name="a")
        return Declaration(cp.Minimize(cp.sum_squares(x) * cp.exp(a)), {"mass": cp.sum(x) == 1}, {"x": x}, {"a": a})

    with pytest.warns(NotDPPWarning, match="'projection' is not DPP"):
        projection(declare=declare).declaration()


@pytest.mark.parametrize("solver", ["CLARABEL", "ECOS", "SCS"])
def test_the_fast_path_and_cvxpy_give_the_same_answers(solver: str) -> None:
    quick, slow = projection(), projection()
    for shift in (0.3, -0.2, 0.1):
        view = {"y": TARGET + shift}
        fast_values, fast = quick.solve(view, solver=(solver,))
        slow_values, slow_solution = slow.solve(view, solver=(solver,), fast=False)
        assert fast_values["x"] == pytest.approx(slow_values["x"], abs=1e-9)
        assert fast.duals["mass"] == pytest.approx(slow_solution.duals["mass"], abs=1e-8)


def test_an_infeasible_block_fails_with_every_attempt_listed() -> None:
    def declare(_: object) -> Declaration:
        x = cp.Variable(3, name="x")
        return Declaration(cp.Minimize(cp.sum_squares(x)), {"mass": cp.sum(x) == 1, "high": x >= 0.9}, {"x": x})

    block = projection(declare=declare, parameters=lambda view: {})
    with pytest.raises(SolverFailure, match="CLARABEL: infeasible; ECOS: infeasible; SCS: infeasible"):
        block.solve({"y": TARGET})


def test_a_constraint_that_no_solution_satisfies_is_named_with_the_amount_it_misses_by() -> None:
    block = projection().constrain("too much", lambda mechanism: mechanism >= 0.9)
    with pytest.raises(ModelError, match=r"block 'projection': constraint 'too much' cannot hold.* relaxed by 0\.5667"):
        block.solve({"y": TARGET})  # three entries of a third each: 0.9 - 1/3


def squares(side: int) -> Block:
    """A projection of a matrix on the row-stochastic ones, whose Parameter weighs every entry of it."""
    size = side * side

    def declare(_: object) -> Declaration:
        x, weight = cp.Variable((side, side)), cp.Parameter((side, side), nonneg=True)
        root = cp.Variable(size)
        return Declaration(
            cp.Minimize(cp.sum_squares(root)),
            {"root": root == cp.vec(cp.multiply(weight, x), order="C"), "rows": cp.sum(x, axis=1) == 1, "sign": x >= 0},
            {"x": x, "root": root},
            {"weight": weight},
        )

    return projection(
        declare=declare,
        parameters=lambda view: {"weight": view["y"]},
        embed=lambda point, at: {"x": point["x"], "root": (at["y"] * point["x"]).ravel()},
        repair=lambda values, view: {"x": np.maximum(values["x"], 0.0), "root": values["root"]},
        direct=None,
    )


def test_a_block_past_the_largest_tensor_gives_the_same_answers_and_changes_its_parameters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = np.random.default_rng(0).uniform(0.5, 2.0, (2, 5, 5))
    small = squares(5)
    expected = [small.solve({"y": one})[0]["x"] for one in (first, second, first)]
    monkeypatch.setattr("cvxpriv.blocks.declaration.LARGEST_TENSOR", 0)
    large = squares(5)
    for one, known in zip((first, second, first), expected, strict=True):
        assert large.solve({"y": one})[0]["x"] == pytest.approx(known, abs=1e-6)  # the root of a gap near 1e-12


def test_a_large_block_with_parameters_does_not_build_the_tensor_of_them() -> None:
    side = 60
    weight = np.random.default_rng(0).uniform(0.5, 2.0, (side, side))
    block = squares(side)
    assert not block.declaration((), "CLARABEL").symbolic
    tracemalloc.start()
    values, _ = block.solve({"y": weight})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    optimum = weight**-2.0 / (weight**-2.0).sum(axis=1, keepdims=True)  # min of sum (w x)^2 over sum x = 1
    assert values["x"] == pytest.approx(optimum, abs=1e-6)
    assert peak < 40e6  # bytes; 3e6 here, 104e6 with the tensor


def test_what_memory_does_not_hold_is_a_solver_failure_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(cp.Problem, "solve", full)
    with pytest.raises(SolverFailure, match=r"out of memory: merge symbols, or take an engine with exact updates"):
        projection().solve({"y": TARGET})


@pytest.mark.parametrize("axis", [-2, None])
def test_a_distribution_is_repaired_along_its_own_axis_alone(axis: int | None) -> None:
    """Columns that sum to 1 must not be divided by the sums of their rows."""
    aim = np.array([[0.9, 0.6, 0.3], [0.1, 0.4, 0.7]])

    def declare() -> Declaration:
        d, target = cp.Variable((2, 3)), cp.Parameter((2, 3))
        objective = cp.Minimize(cp.sum_squares(d - target))
        return Declaration(objective, {"columns": cp.sum(d, axis=0) == 1}, {"d": d}, {"target": target})

    axes = None if axis is None else {"d": axis}
    block = distribution_block("reader", declare, {"aim"}, lambda view: {"target": view["aim"]}, axes=axes)
    if axis is None:
        with pytest.raises(ModelError, match="d does not sum to 1 along axis -1: .* name its axis in axes"):
            block.solve({"aim": aim})
    else:
        np.testing.assert_allclose(block.solve({"aim": aim})[0]["d"], aim, atol=1e-6)  # CLARABEL's square root of 1e-12
