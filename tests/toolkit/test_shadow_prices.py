"""Shadow prices: equal to finite differences of optima that cvxpy finds with the constraint moved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest

import cvxpriv as cpv
from cvxpriv import constraints
from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Constraint, Declaration, Known, constraints_of
from cvxpriv.errors import ModelError, SolverFailure
from cvxpriv.runs.shadow_prices import shadow_prices

JOINT = np.array([[0.20, 0.05, 0.15], [0.05, 0.35, 0.20]])
TABLE = cpv.JointTable.from_array(JOINT, public_labels=["young, smoker", "young", "old"])
KNOWN = Known.of_table(TABLE)
WANTED = np.array([[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.05, 0.25, 0.7]])
STATE = {"mechanism": np.full((3, 3), 1.0 / 3.0)}


def cost(mechanism: cp.Expression) -> cp.Expression:
    return 10.0 * cp.sum_squares(mechanism - WANTED)


def block(sign: float = 1.0) -> Block:
    """The mechanism nearest to `WANTED`, as a minimisation, or as a maximisation of the negative."""

    def declare(_: object) -> Declaration:
        mechanism = cp.Variable((3, 3), name="P(U|Y)")
        return Declaration(
            objective=cp.Minimize(cost(mechanism)) if sign > 0 else cp.Maximize(-cost(mechanism)),
            constraints={"rows": cp.sum(mechanism, axis=1) == 1, "cells": mechanism >= 0},
            variables={"P(U|Y)": mechanism},
            mechanism=mechanism,
            known=KNOWN,
        )

    return Block(
        name="nearest",
        reads=frozenset({"mechanism"}),
        writes=frozenset({"mechanism"}),
        declare=declare,
        parameters=lambda view: {},
        embed=lambda point, at: {"P(U|Y)": point["mechanism"]},
        repair=lambda values, view: dict(values),
        write=lambda solution, view: {"mechanism": solution.values["P(U|Y)"]},
    )


def least(constraint: Constraint) -> float:
    mechanism = cp.Variable((3, 3))
    several = constraints_of("mine", constraint, mechanism, KNOWN)
    problem = cp.Problem(cp.Minimize(cost(mechanism)), [cp.sum(mechanism, axis=1) == 1, mechanism >= 0, *several])
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return float(problem.value)


def norm(most: float) -> Constraint:
    return lambda mechanism: cp.SOC(cp.Constant(most), cp.vec(mechanism, order="C"))


def spectral(most: float) -> Constraint:
    def constraint(mechanism: cp.Expression) -> cp.Constraint:
        part = mechanism[:2, :2]
        return cp.bmat([[most * np.eye(2), part], [part.T, most * np.eye(2)]]) >> 0

    return constraint


def exponential(slack: float) -> Constraint:
    return lambda mechanism: cp.ExpCone(mechanism[0, 0], cp.Constant(1.0 + slack / 2), cp.Constant(2.0 + slack))


def power(slack: float) -> Constraint:
    return lambda mechanism: cp.PowCone3D(mechanism[0, 1] + slack, mechanism[1, 0] + slack, cp.Constant(0.3), 0.4)


def column(slack: float) -> Constraint:
    if slack == 0.0:
        return lambda mechanism: mechanism[:, 0] == 0.3
    return lambda mechanism: cp.abs(mechanism[:, 0] - 0.3) <= slack


def epigraph(most: float) -> Constraint:
    def constraint(mechanism: cp.Expression) -> list[cp.Constraint]:
        t = cp.Variable(3)
        return [cp.square(mechanism[0]) <= t, cp.sum(t) <= most]

    return constraint


PRICED: dict[str, tuple[Callable[[float], Constraint], float, str]] = {
    "ldp": (constraints.local_differential_privacy, 1.0, "epsilon"),
    "ldp with a delta": (lambda epsilon: constraints.local_differential_privacy(epsilon, 0.05), 0.5, "epsilon"),
    "delta": (lambda delta: constraints.local_differential_privacy(0.5, delta), 0.05, "delta"),
    "renyi": (lambda epsilon: constraints.renyi_differential_privacy(2.0, epsilon), 0.4, "epsilon"),
    "information privacy": (constraints.local_information_privacy, 0.2, "epsilon"),
    "fairness": (constraints.group_fairness, 0.1, "bound"),
    "information": (lambda bound: constraints.f_information("mutual-information", bound), 0.03, "bound"),
    "vulnerability": (constraints.bayes_vulnerability, 0.63, "bound"),
    "distortion": (lambda bound: constraints.expected_distortion(1.0 - np.eye(3), bound), 0.1, "bound"),
    "leakage": (constraints.maximal_leakage, 0.3, "bound"),
    "floor": (constraints.floor, 0.06, "value"),
    "norm": (norm, 1.1, "slack"),
    "spectral norm": (spectral, 0.8, "slack"),
    "exponential cone": (exponential, 0.0, "slack"),
    "power cone": (power, 0.0, "slack"),
    "equality": (column, 0.0, "slack"),
}


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("name", PRICED)
def test_a_price_is_the_derivative_of_the_optimum(name: str) -> None:
    make, value, per = PRICED[name]
    prices = shadow_prices(block().constrain("mine", make(value)), STATE).set_index("per")["price"]
    step = 1e-3
    if name == "equality":  # a slack opens it to both sides, and its optimum has a kink at 0
        at, one, two = (least(make(slack)) for slack in (0.0, step, 2 * step))
        derivative = -(4 * one - 3 * at - two) / (2 * step)
    else:
        derivative = (least(make(value - step)) - least(make(value + step))) / (2 * step)
    assert abs(derivative) > 0.1  # the constraint binds
    # The optima are good to 1e-9, and a central difference of this step to about its square.
    assert prices[per] == pytest.approx(derivative, rel=1e-3)


def test_a_constraint_with_variables_of_its_own_is_priced_part_by_part() -> None:
    ours = constraints.ReadyConstraint("none", lambda mechanism, known: [mechanism <= 2.0], lambda *_: 0.0)
    both = block().constrain("mine", epigraph(0.6)).constrain("idle", ours)
    prices = shadow_prices(both, STATE).set_index("constraint")["price"]
    step = 1e-3
    derivative = (least(epigraph(0.6 - step)) - least(epigraph(0.6 + step))) / (2 * step)
    assert prices["mine[1]"] == pytest.approx(derivative, rel=1e-3)
    # A slack in the first three inequalities widens the sum that the last one bounds.
    assert prices["mine[0]"] == pytest.approx(3.0 * derivative, rel=1e-3)
    assert prices["idle"] == pytest.approx(0.0, abs=1e-7)


def test_a_cell_that_is_empty_anyway_costs_nothing_to_forbid_and_another_what_it_adds() -> None:
    whole = block().constrain("whole", constraints.fixed({(0, 0): 1.0}))
    idle = whole.constrain("none", constraints.forbidden([(0, 1)]))
    prices = shadow_prices(idle, STATE).set_index("constraint")["price"]
    assert prices["none"] == 0.0
    assert prices["whole"] == pytest.approx(2.0, rel=1e-3)  # 10 (1 - s - .9)^2 + 10 s^2, s in the third cell
    dear = shadow_prices(block().constrain("none", constraints.forbidden([(1, 1)])), STATE)["price"][0]
    at, one, two = (
        least(lambda mechanism, slack=slack: cp.abs(mechanism[1, 1]) <= slack)  # type: ignore[misc]
        for slack in (0.0, 1e-3, 2e-3)
    )
    assert dear == pytest.approx(-(4.0 * one - 3.0 * at - two) / 2e-3, rel=1e-3)


def ratios(epsilon: cp.Parameter | float) -> Constraint:
    """Local differential privacy by hand: many inequalities, and one number that they share."""
    factor = cp.exp(epsilon) if isinstance(epsilon, cp.Parameter) else np.exp(epsilon)
    return lambda mechanism: [mechanism[i] <= factor * mechanism[j] for i in range(3) for j in range(3) if i != j]


@pytest.mark.filterwarnings("ignore::cvxpriv.blocks.declaration.NotDPPWarning")
def test_a_hand_written_constraint_of_many_inequalities_is_priced_by_its_parameter() -> None:
    epsilon = cp.Parameter(nonneg=True, value=1.0, name="epsilon")
    prices = shadow_prices(block().constrain("mine", ratios(epsilon)), STATE)
    step = 1e-3
    derivative = (least(ratios(1.0 - step)) - least(ratios(1.0 + step))) / (2 * step)
    assert prices["per"].tolist() == ["epsilon"]
    assert prices["price"][0] == pytest.approx(derivative, rel=1e-3)
    ready = shadow_prices(block().constrain("mine", constraints.local_differential_privacy(1.0)), STATE)
    assert prices["price"][0] == pytest.approx(ready["price"][0], rel=1e-4)
    assert epsilon.value == 1.0
    epsilon.value = 0.0  # the range ends here: the step goes the other way
    assert np.isfinite(shadow_prices(block().constrain("mine", ratios(epsilon)), STATE)["price"][0])


def test_a_maximisation_has_the_same_prices() -> None:
    constraint = constraints.local_differential_privacy(0.5, 0.05)
    one, other = (shadow_prices(block(sign).constrain("mine", constraint), STATE)["price"] for sign in (1.0, -1.0))
    assert other.to_numpy() == pytest.approx(one.to_numpy(), rel=1e-6)


def test_a_run_says_its_prices_in_facts_and_tables() -> None:
    inference = cpv.models.InferenceAsService(TABLE, 0.1, size_u=3)
    assert inference.solve(starts=1, max_iter=1).shadow_prices.empty
    run = inference.constrain("floor", constraints.floor(0.03)).solve(starts=1)
    assert run.converged
    prices = run.shadow_prices
    assert prices[["constraint", "per"]].to_numpy().tolist() == [["floor", "value"]]
    assert run.facts.tables["shadow_prices"].equals(prices)
    section = next(section for section in run.facts.sections if section.title == "Constraints")
    assert section.tables[1].frame["price in nats"].tolist() == prices["price"].tolist()


def test_a_run_without_multipliers_has_facts_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    inference = cpv.models.InferenceAsService(TABLE, 0.1, size_u=3).constrain("floor", constraints.floor(0.03))
    run = inference.solve(starts=1, max_iter=1)

    def failing(*_: object) -> None:
        raise SolverFailure("none of them")

    monkeypatch.setattr("cvxpriv.runs.mechanism_run.shadow_prices", failing)
    section = next(section for section in run.facts.sections if section.title == "Constraints")
    assert section.notes == ["No prices: none of them"]
    assert run.facts.tables["shadow_prices"].empty


@pytest.mark.slow
def test_the_price_in_a_model_is_the_derivative_of_its_objective() -> None:
    inference = cpv.models.InferenceAsService(TABLE, 0.1, size_u=3)
    funnel = cpv.models.PrivacyFunnel(TABLE, rate=0.3)
    step = 1e-3

    at = inference.constrain("floor", constraints.floor(0.03)).solve(starts=1)
    low, high = (
        inference.constrain("floor", constraints.floor(value)).solve(init=at.mechanism).objective
        for value in (0.03 - step, 0.03 + step)
    )
    # Objectives are good to the tolerance of 1e-7, so differences of this step to 1e-4.
    assert at.shadow_prices["price"][0] == pytest.approx((high - low) / (2 * step), rel=1e-3, abs=2e-4)

    best = funnel.constrain("floor", constraints.floor(0.03)).solve(starts=1)
    less, more = (
        funnel.constrain("floor", constraints.floor(value)).solve(starts=1).leakage
        for value in (0.03 - step, 0.03 + step)
    )
    assert best.shadow_prices["price"][0] == pytest.approx(-(more - less) / (2 * step), rel=1e-3, abs=2e-4)


def test_constraints_are_removed_and_renamed_and_read_from_a_saved_run(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    made = cpv.models.InferenceAsService(TABLE, 0.1).constrain("cap", lambda m: m <= 0.9)
    both = made.constrain("floor", constraints.floor(0.01))
    assert [name for name, _ in both.constraints] == ["cap", "floor"]
    assert [name for name, _ in both.without("cap").constraints] == ["floor"]
    assert [name for name, _ in both.renamed("cap", "top").constraints] == ["top", "floor"]
    private = made.without("cap").constrain("ldp", constraints.parse("ldp=2"))
    again = cpv.load(private.solve(starts=1).save(path)).as_model()
    assert repr(again.constraints) == "(('ldp', local_differential_privacy(epsilon=2)),)"
    assert repr(again.without("ldp")) == repr(made)
    with pytest.raises(ModelError, match=r"name='flor' is no constraint of the model: did you mean 'floor'"):
        both.without("flor")
    with pytest.raises(ModelError, match=r"to='floor' is already a constraint"):
        both.renamed("cap", "floor")


def test_cells_are_named_by_the_labels_of_inputs() -> None:
    mechanism = np.full((3, 3), 1.0 / 3.0)
    several: list[list[tuple[int | str, int]]] = [[("young, smoker", 2), (2, 0)], [("young|smoker", 2), ("old", 0)]]
    for named in several:
        constraint = constraints.forbidden(named)
        state, _ = block().constrain("mine", constraint).solve(STATE)
        assert np.abs([state["mechanism"][0, 2], state["mechanism"][2, 0]]).max() <= 1e-7
        assert constraint.violation(mechanism, KNOWN) == pytest.approx(1.0 / 3.0)
    fixed = constraints.parse("fixed=old:1:0.5")
    again = constraints.from_document(constraints.to_document(fixed))
    assert again is not None
    assert again.violation(mechanism, KNOWN) == pytest.approx(1 / 6)
    with pytest.raises(ModelError, match=r"no input is called 'yung'; did you mean 'young'"):
        constraints.forbidden([("yung", 0)]).violation(mechanism, KNOWN)
    with pytest.raises(ModelError, match=r"Known: old, young, young\|smoker"):  # a bar, which a list does not hold
        constraints.forbidden([("yung", 0)]).violation(mechanism, KNOWN)
    with pytest.raises(ModelError, match=r"no labels are known: name them by number"):
        constraints.forbidden([("young", 0)]).violation(mechanism)
    with pytest.raises(ModelError, match=r"cell \(1, 0\) is named twice, by number and by its label"):
        constraints.forbidden([("young", 0), (1, 0)]).violation(mechanism, KNOWN)
