"""Points a hair outside the domain are moved into it, and no others."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from cvxpriv.certify import Stored, crosscheck
from cvxpriv.certify.domains import ROOM, Domain
from cvxpriv.kkt.written import Written


def moved(objective: cp.Expression, **values: object) -> tuple[float, float]:
    """The move and the objective afterwards."""
    problem = cp.Problem(cp.Minimize(objective))
    for variable in problem.variables():
        variable.save_value(np.asarray(values[variable.name()], dtype=float))
    written = Written.of(problem)
    coordinates = written.flat.coordinates
    inside, step = Domain.of(problem, written).moved(coordinates.point())
    coordinates.place(inside)
    with np.errstate(all="ignore"):
        return step, float(problem.objective.value)


x, y, t = cp.Variable(2, name="x"), cp.Variable(name="y"), cp.Variable(name="t", nonneg=True)


def test_an_entropy_at_minus_a_billionth_is_evaluated_at_zero() -> None:
    assert moved(-cp.sum(cp.entr(x)), x=[-1e-9, 1.0]) == (1e-9, 0.0)


def test_a_logarithm_is_evaluated_just_inside() -> None:
    step, value = moved(-cp.log(y), y=-1e-9)
    assert step == pytest.approx(1e-9, rel=1e-5)
    assert value == pytest.approx(-np.log(1e-15))


def test_a_bound_given_as_an_attribute_is_part_of_the_domain() -> None:
    step, value = moved(-cp.sqrt(t), t=-1e-9)
    assert (step, value) == (1e-9, 0.0)


def test_an_argument_of_several_variables_is_met_by_the_shortest_move() -> None:
    # 1 - x0 - x1 = -2e-9: the nearest point takes half of it from each.
    step, value = moved(-cp.entr(1 - cp.sum(x)) - cp.sum(cp.entr(x)), x=[0.25, 0.75 + 2e-9])
    assert step == pytest.approx(1e-9, rel=1e-5)
    assert value == pytest.approx(0.25 * np.log(0.25) + 0.75 * np.log(0.75), abs=1e-7)


@pytest.mark.parametrize("point", [[-10 * ROOM, 1.0], [-0.5, 1.5]])
def test_a_point_further_outside_stays_where_it_is(point: list[float]) -> None:
    assert moved(-cp.sum(cp.entr(x)), x=point) == (0.0, np.inf)


@pytest.mark.parametrize("point", [[0.0, 1.0], [0.5, 0.5]])
def test_a_point_inside_stays_where_it_is(point: list[float]) -> None:
    assert moved(-cp.sum(cp.entr(x)), x=point)[0] == 0.0


def test_where_nothing_helps_the_point_stays() -> None:
    # The denominator is zero where the numerator is not: no small step gives a number of any use.
    step, value = moved(cp.quad_over_lin(x, y), x=[1.0, 1.0], y=-1e-30)
    assert step in (0.0, pytest.approx(1e-15), pytest.approx(1e-9))
    assert value > 1e8 or not np.isfinite(value)


def test_an_objective_without_a_domain_needs_no_move() -> None:
    assert moved(cp.sum_squares(x), x=[1.0, -1.0]) == (0.0, 2.0)


@pytest.mark.parametrize(("low", "verdict"), [(-1e-9, "agrees"), (-1e-2, "WRONG")])
def test_a_constraint_without_a_value_beside_its_domain_is_measured_inside(low: float, verdict: str) -> None:
    z = cp.Variable(2, name="z")
    problem = cp.Problem(cp.Minimize(z[0] - z[1]), [cp.power(z, 3.3) <= 1])
    answer = Stored({"z": [low, 1.0]}, asked=1e-8, solver="a solver", version="1", machine="any")
    rows = crosscheck(problem, ["CLARABEL"], answers={"beside": answer}).table.set_index("solver")
    assert rows.loc["beside", "verdict"] == verdict


def test_a_support_function_is_judged_by_the_dual_of_its_set() -> None:
    z, s = cp.Variable(3, name="z"), cp.Variable(3)
    # The largest of z's over all s is 0 at z = a, infinite elsewhere.
    a = np.array([0.3, 0.7, 1.1])
    problem = cp.Problem(cp.Minimize(cp.sum(z)), [cp.suppfunc(s, [])(z - a) <= 0])
    table = crosscheck(problem, ["CLARABEL"], answers={"truth": {z: a}, "lie": {z: a + 0.01}}).table
    assert table["verdict"].tolist() == ["agrees", "WRONG", "agrees"]  # its multipliers follow from the values
    assert table.loc[2, "known_by"] == "certified"
    assert table.loc[2, "objective"] == pytest.approx(a.sum())


def test_a_perspective_has_its_limit_at_a_scale_of_zero() -> None:
    x, s = cp.Variable(name="x"), cp.Variable(nonneg=True, name="s")
    problem = cp.Problem(cp.Minimize(s), [cp.perspective(cp.square(x), s) <= 1, x == 0])
    check = crosscheck(problem, ["CLARABEL"], answers={"truth": {x: 0.0, s: 0.0}, "lie": {x: 0.0, s: 0.1}})
    verdicts = {name: one.verdict for name, one in check.verdicts.items()}
    assert verdicts == {"truth": "agrees", "lie": "WRONG", "CLARABEL": "agrees"}


def test_multipliers_of_a_constant_objective_cannot_make_a_feasible_point_wrong() -> None:
    z = cp.Variable(2, name="z")
    lie = Stored({"z": [2.0, 3.0]}, cone=([2.0, 3.0], [1.0, 1.0]), asked=1e-8, solver="ECOS", version="1", machine="m")
    rows = crosscheck(cp.Problem(cp.Minimize(4), [z >= 1]), ["ECOS"], answers={"lie": lie}).table.set_index("solver")
    assert rows.loc["lie", "verdict"] == "loose"
    assert rows.loc["lie", "known_by"] == "certified"
