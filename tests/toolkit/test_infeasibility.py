"""Constraints that cannot hold: which, together with which, and by how much each would have to give way."""

from __future__ import annotations

from collections.abc import Mapping

import cvxpy as cp
import numpy as np
import pytest

from cvxpriv import constraints
from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Constraint, Declaration, Known, with_constraint
from cvxpriv.blocks.infeasibility import Infeasibility, explain, relaxed
from cvxpriv.errors import ModelError, SolverFailure

KNOWN = Known(np.array([0.5, 0.5]), np.array([0.5, 0.5]), np.array([[0.8, 0.2], [0.2, 0.8]]), ("low", "high"))
NEAR = {"abs": 2e-6}  # of an amount: a slack's solver tolerance times a coefficient


def declared(constraints: Mapping[str, Constraint], columns: int = 2) -> Declaration:
    mechanism = cp.Variable((2, columns), name="m")
    target = cp.Parameter((2, columns), name="target")
    target.value = np.eye(2, columns)
    declaration = Declaration(
        objective=cp.Minimize(cp.sum_squares(mechanism - target)),
        constraints={"rows sum to 1": cp.sum(mechanism, axis=1) == 1, "not negative": mechanism >= 0},
        variables={"m": mechanism},
        parameters={"target": target},
        mechanism=mechanism,
        known=KNOWN,
    )
    for name, constraint in constraints.items():
        declaration = with_constraint(declaration, "test", name, constraint)
    return declaration


def explained(constraints: Mapping[str, Constraint], columns: int = 2) -> Infeasibility:
    found = explain(declared(constraints, columns))
    assert found is not None
    return found


def semidefinite(m: cp.Expression) -> cp.Constraint:
    return m + m.T - 4 * np.eye(2) >> 0  # at most 2 on the diagonal of m + m.T, with zeros beside it


@pytest.mark.filterwarnings(r"ignore:\s*Explicitly invoking")  # deprecated by cvxpy, still taken
@pytest.mark.parametrize(
    ("constraint", "amount"),
    [
        (lambda m: m >= 0.6, 0.1),  # two of them share 1
        (lambda m: cp.sum(m, axis=0) >= [1.5, 1.5], 0.5),  # both share 2
        (lambda m: cp.sum(m) == 3, 1.0),
        (lambda m: 2 * m[0, 0] == 3, 1.0),  # 3 - 2, in the units of the equation
        (lambda m: 1000 * m[0] >= 600, 100.0),  # the units are the constraint's
        (lambda m: cp.SOC(cp.Constant(0.5), m[0]), np.sqrt(0.5) - 0.5),  # the least norm is at (1/2, 1/2)
        (lambda m: cp.norm(m[0], 2) <= 0.5, np.sqrt(0.5) - 0.5),
        (semidefinite, 2.0),
        (lambda m: cp.sum(cp.entr(m)) >= 2.0, 2.0 - 2.0 * np.log(2.0)),
        (lambda m: cp.NonNeg(m - 0.6), 0.1),
        (lambda m: cp.NonPos(0.6 - m), 0.1),
        (lambda m: cp.Zero(cp.sum(m) - 3), 1.0),
        # y = 1 and z = m: exp(x / (1 + s/2)) (1 + s/2) <= 1 + s at x = 0.5: s solves it.
        (lambda m: cp.ExpCone(cp.Constant([0.5]), cp.Constant([1.0]), m[0, :1]), None),
        (lambda m: cp.PowCone3D(m[0, :1], cp.Constant([1.0]), cp.Constant([2.0]), 0.5), np.sqrt(4.0) - 1.0),
        (lambda m: cp.PowConeND(cp.vstack([m[0, 0], 1.0]), cp.Constant([2.0]), np.full((2, 1), 0.5)), 1.0),
    ],
)
def test_each_kind_of_constraint_is_relaxed_by_the_least_that_makes_it_hold(
    constraint: Constraint, amount: float | None
) -> None:
    found = explained({"mine": constraint})
    (conflict,) = found.conflicts
    if amount is None:
        slack = conflict.alone["mine"]
        assert (1 + slack / 2) * np.exp(0.5 / (1 + slack / 2)) == pytest.approx(1 + slack, abs=1e-5)
    else:
        assert dict(conflict.alone) == {"mine": pytest.approx(amount, **NEAR)}
        assert dict(found.together) == {"mine": pytest.approx(amount, **NEAR)}


def test_two_constraints_that_conflict_only_jointly_are_both_named_and_no_third_one() -> None:
    found = explained(
        {
            "idle": lambda m: m <= 0.95,
            "floor": constraints.floor(0.2),
            "cap": lambda m: m[:, 1] <= 0.1,
            "idle too": lambda m: cp.sum(m, axis=0) <= 1.9,
        }
    )
    (conflict,) = found.conflicts
    assert dict(conflict.alone) == {"floor": pytest.approx(0.1, **NEAR), "cap": pytest.approx(0.1, **NEAR)}
    assert str(found).startswith(
        "constraints 'floor' and 'cap' cannot hold together: relax 'floor' by 0.1000, or 'cap'"
    )
    assert sum(found.together.values()) == pytest.approx(0.1, **NEAR)


def test_separate_conflicts_are_all_found_with_what_has_to_give_way_for_all_to_hold() -> None:
    found = explained(
        {
            "high": lambda m: m[0] >= 0.6,
            "private": constraints.local_differential_privacy(0.5),
            "sharp": lambda m: m[0, 0] - m[1, 0] >= 0.9,
        },
    )
    assert {frozenset(conflict.alone) for conflict in found.conflicts} == {
        frozenset({"high"}),
        frozenset({"private", "sharp"}),
    }
    assert {"high"} < set(found.together) <= {"high", "private", "sharp"}
    assert "; all hold together with 'high' by 0.1000" in str(found)


def test_relaxed_by_the_amounts_for_all_the_constraints_hold_and_by_less_they_do_not() -> None:
    asked = {"high": lambda m: m[0] >= 0.6, "low": lambda m: m[:, 0] <= 0.2, "tv": constraints.floor(0.3)}
    found = explained(asked)

    def status(share: float) -> str:
        declaration = declared(asked)
        parts = [declaration.constraints["rows sum to 1"], declaration.constraints["not negative"]]
        for name in asked:
            widened = relaxed(declaration.constraints[name], cp.Constant(share * found.together.get(name, 0.0) + 1e-7))
            assert widened is not None
            parts += widened
        problem = cp.Problem(cp.Minimize(0), parts)
        problem.solve(solver="CLARABEL")
        return str(problem.status)

    assert status(1.0) == "optimal"
    assert status(0.99) == "infeasible"


def test_a_constraint_of_several_constraints_is_one_constraint_with_the_largest_of_their_amounts() -> None:
    found = explained({"box": lambda m: [m[0] >= 0.6, m[1] >= 0.7, m <= 2.0]})
    (conflict,) = found.conflicts
    assert dict(conflict.alone) == {"box": pytest.approx(0.2, **NEAR)}


def test_a_constraint_against_a_domain_that_no_slack_widens_is_named_without_an_amount() -> None:
    found = explained({"zero": lambda m: m[0, 0] == 0.0, "log": lambda m: cp.log(m[0, 0] - 0.5) >= -5.0})
    assert "'zero' by 0.5067" in str(found)  # exp(-5) + 0.5; no slack of the logarithm is enough
    assert "'log' by" not in str(found)


def test_the_domain_of_the_objective_counts() -> None:
    x = cp.Variable(2, name="x")
    declaration = Declaration(cp.Maximize(cp.sum(cp.entr(x))), {"mass": cp.sum(x) == 1}, {"x": x}, mechanism=x)
    found = explain(with_constraint(declaration, "entropy", "out", lambda m: m[0] <= -0.5))
    assert found is not None
    assert found.conflicts[0].alone["out"] == pytest.approx(0.5, **NEAR)


def test_constraints_that_can_hold_are_not_blamed() -> None:
    assert explain(declared({"floor": constraints.floor(0.2), "cap": lambda m: m <= 0.8})) is None


def test_a_floor_that_leaves_a_single_mechanism_is_not_blamed() -> None:
    assert explain(declared({"floor": constraints.floor(0.5)})) is None


def test_a_block_that_fails_without_its_constraints_is_not_explained_by_them() -> None:
    x = cp.Variable(2, name="x")
    own = {"mass": cp.sum(x) == 1, "high": x >= 0.9}
    declaration = Declaration(cp.Minimize(cp.sum(x)), own, {"x": x}, mechanism=x)
    assert explain(with_constraint(declaration, "own", "constraint", lambda m: m <= 0.5)) is None


def test_a_constraint_of_an_unknown_kind_is_not_relaxed() -> None:
    unknown = cp.FiniteSet(cp.Variable(1), np.array([0.0, 1.0]))
    assert relaxed(unknown, cp.Constant(0.1)) is None


def projection(constraints: tuple[tuple[str, Constraint], ...], columns: int = 2) -> Block:
    def declare(_: object) -> Declaration:
        return declared({}, columns)

    block = Block(
        name="projection",
        reads=frozenset({"target"}),
        writes=frozenset({"m"}),
        declare=declare,
        parameters=lambda view: {"target": view["target"]},
        embed=lambda point, at: {"m": point["m"]},
        repair=lambda values, view: values,
        write=lambda solution, view: {"m": solution.values["m"]},
    )
    for name, constraint in constraints:
        block = block.constrain(name, constraint)
    return block


class TestBlock:
    """What a user meets."""

    def test_an_infeasible_solve_names_the_constraint_the_amount_and_the_remedy(self) -> None:
        block = projection((("no certainty", lambda m: m >= 0.53),))
        message = (
            r"block 'projection': constraint 'no certainty' cannot hold: it would have to be relaxed by 0\.03000 "
            r"\(in the units of its inequality\); loosen it, or drop it"
        )
        with pytest.raises(ModelError, match=message) as caught:
            block.solve({"target": np.eye(2)})
        assert isinstance(caught.value.__cause__, SolverFailure)
        assert set(caught.value.__cause__.statuses) == {"infeasible"}

    def test_the_fast_path_is_explained_too(self) -> None:
        block = projection((("sum", lambda m, known: known.prior @ m >= 0.6),))
        for _ in range(3):  # the fast path begins with the second solve
            with pytest.raises(ModelError, match="'sum' cannot hold: it would have to be relaxed by 0.1000"):
                block.solve({"target": np.eye(2)}, solver=("CLARABEL",))

    @pytest.mark.parametrize("solver", ["CLARABEL", "ECOS", "SCS"])
    def test_each_solver_of_the_chain_finds_the_amounts_alone(self, solver: str) -> None:
        block = projection((("high", lambda m: m >= 0.6), ("idle", lambda m: m <= 0.9)))
        with pytest.raises(ModelError, match=r"constraint 'high' cannot hold: .* relaxed by 0\.1000"):
            block.solve({"target": np.eye(2)}, solver=(solver,))

    def test_a_feasible_solve_is_the_same_as_the_constraints_written_by_hand(self) -> None:
        values, solution = projection((("floor", constraints.floor(0.2)),)).solve({"target": np.eye(2)})
        assert values["m"] == pytest.approx(np.array([[0.8, 0.2], [0.2, 0.8]]), abs=1e-7)
        assert solution.status == "optimal"

    def test_a_solver_that_fails_otherwise_is_reported_as_it_was(self) -> None:
        block = projection((("spread", lambda m: cp.sum(cp.entr(m)) >= 0.5),))
        with pytest.raises(SolverFailure, match="HIGHS: solver_error") as caught:
            block.solve({"target": np.eye(2)}, solver=("HIGHS",))  # which takes no entropies
        assert not caught.value.infeasible


class TestRules:
    """What a constraint may take and return."""

    def test_a_constraint_with_two_arguments_receives_what_is_known(self) -> None:
        seen: list[object] = []

        def constraint(mechanism: cp.Expression, facts: Known) -> cp.Constraint:
            seen.append(facts)
            return mechanism >= 0.1

        declared({"mine": constraint})
        assert seen == [KNOWN]

    def test_a_second_argument_with_a_default_is_the_constraints_own_unless_it_is_called_known(self) -> None:
        seen: list[object] = []

        def own(mechanism: cp.Expression, least: float = 0.1) -> cp.Constraint:
            seen.append(least)
            return mechanism >= least

        def asking(mechanism: cp.Expression, known: Known | None = None) -> cp.Constraint:
            seen.append(known)
            return mechanism >= 0.1

        declared({"own": own, "asking": asking, "many": lambda *parts: parts[0] >= 0.1})
        assert seen == [0.1, KNOWN]

    @pytest.mark.parametrize(
        ("constraint", "shown"),
        [
            (lambda: 1, r"takes \(\): a constraint takes the mechanism"),
            (lambda a, b, c: a >= 0, r"takes \(a, b, c\): a constraint takes the mechanism, or"),
            (lambda a, *, b: a >= 0, r"takes \(a, \*, b\)"),
            (0.01, "is 0.01, no function"),
        ],
    )
    def test_a_constraint_of_another_arity_is_refused(self, constraint: Constraint, shown: str) -> None:
        with pytest.raises(ModelError, match=f"constraint 'mine' {shown}"):
            declared({"mine": constraint})

    def test_a_constraint_that_raises_is_named_with_what_it_raised(self) -> None:
        with pytest.raises(
            ModelError, match=r"constraint 'mine' raised .*: .*; a constraint takes the mechanism"
        ) as caught:
            declared({"mine": lambda m: 0 <= m <= 1})
        assert caught.value.__cause__ is not None
        with pytest.raises(ModelError, match="constraint 'mine' raised KeyError: 'x'"):
            declared({"mine": lambda m: {}["x"]})

    def test_a_ready_constraint_that_does_not_fit_is_named(self) -> None:
        with pytest.raises(ModelError, match="constraint 'low': floor: row 0 of 2 outputs"):
            declared({"low": constraints.floor(0.6)})

    def test_a_constraint_that_returns_no_constraint_at_all_is_refused(self) -> None:
        with pytest.raises(ModelError, match="'mine' returned list, not a cvxpy constraint"):
            declared({"mine": lambda m: []})

    def test_empty_parameters_of_a_constraints_own_are_refused(self) -> None:
        empty = cp.Parameter(name="a")
        with pytest.raises(ModelError, match="'mine' has Parameters without values: set the value of a"):
            declared({"mine": lambda m: m <= empty})

    def test_a_constraint_that_needs_what_is_known_is_refused_where_nothing_is(self) -> None:
        x = cp.Variable(2, name="x")
        declaration = Declaration(cp.Minimize(cp.sum(x)), {"mass": cp.sum(x) == 1}, {"x": x}, mechanism=x)
        with pytest.raises(ModelError, match="the block knows nothing beside the mechanism"):
            with_constraint(declaration, "plain", "mine", lambda m, known: m >= 0)
