"""Ready constraints on pairs, on inferences and on outputs: their optima by a route without cvxpy, and their files."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog, minimize

import cvxpriv as cpv
from cvxpriv import constraints
from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Declaration, Known
from cvxpriv.constraints import ReadyConstraint, from_document, parse, to_document
from cvxpriv.errors import DataError, ModelError
from cvxpriv.numerics.arrays import Array

JOINT = np.array([[0.20, 0.05, 0.15], [0.05, 0.35, 0.20]])
PRIOR = JOINT.sum(axis=0)
KNOWN = Known(PRIOR, JOINT.sum(axis=1), JOINT / PRIOR, ("a", "b", "c"))
#: What a mechanism of three outputs costs: the inputs differ in which output is cheap.
COST = np.array([[0.0, 1.0, 0.7], [0.9, 0.0, 0.4], [0.5, 0.8, 0.0]])
DISTANCE = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])

READY = {
    "approximate LDP": constraints.local_differential_privacy(0.5, 0.05),
    "metric": constraints.metric_differential_privacy(0.7, DISTANCE),
    "Renyi 2": constraints.renyi_differential_privacy(2.0, 0.3),
    "Renyi 1": constraints.renyi_differential_privacy(1.0, 0.2),
    "Renyi 1/2": constraints.renyi_differential_privacy(0.5, 0.2),
    "information privacy": constraints.local_information_privacy(0.15),
    "information privacy of inputs": constraints.local_information_privacy(0.4, of="input"),
    "pointwise leakage": constraints.pointwise_leakage(0.2),
    "pointwise leakage of inputs": constraints.pointwise_leakage(0.4, of="input"),
    "fairness between private symbols": constraints.group_fairness(0.1),
    "fairness between groups": constraints.group_fairness(0.2, [0, 0, 1]),
    "mutual information": constraints.f_information("mutual-information", 0.02),
    "chi-square information of inputs": constraints.f_information("chi-square", 0.3, of="input"),
    "Hellinger information": constraints.f_information("(1-sqrt(t))**2", 0.02),
    "vulnerability": constraints.bayes_vulnerability(0.63),
    "vulnerability with gains": constraints.bayes_vulnerability(0.74, [[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]]),
    "outputs": constraints.output_marginal([0.5, 0.3, 0.2]),
}


def by_cvxpy(constraint: ReadyConstraint) -> tuple[float, Array]:
    """The least cost of a mechanism under a constraint's form, and that mechanism."""
    mechanism = cp.Variable((3, 3))
    problem = cp.Problem(
        cp.Minimize(cp.sum(cp.multiply(PRIOR[:, None] * COST, mechanism))),
        [cp.sum(mechanism, axis=1) == 1, mechanism >= 0, *constraint(mechanism, KNOWN)],
    )
    problem.solve(solver="CLARABEL")
    return float(problem.value), np.asarray(mechanism.value)


def by_values(constraint: ReadyConstraint, reached: Array) -> float:
    """The least cost by sequential quadratic programs that see the constraint's `excess` alone, from three starts."""
    weight = (PRIOR[:, None] * COST).ravel()

    def excess(x: Array) -> float:
        return constraint.excess(np.maximum(x.reshape(3, 3), 1e-12), KNOWN)

    best = np.inf
    uniform = np.full((3, 3), 1.0 / 3.0)
    for start in (uniform, 0.5 * uniform + 0.5 * reached, 0.05 * uniform + 0.95 * reached):
        found = minimize(
            lambda x: weight @ x,
            start.ravel(),
            jac=lambda x: weight,
            bounds=[(0.0, 1.0)] * 9,
            constraints=[
                {"type": "eq", "fun": lambda x: x.reshape(3, 3).sum(axis=1) - 1.0},
                {"type": "ineq", "fun": lambda x: -excess(x)},
            ],
            options={"maxiter": 400, "ftol": 1e-12},
        )
        rows = np.maximum(found.x.reshape(3, 3), 0.0)
        rows /= rows.sum(axis=1, keepdims=True)
        inside = [
            x for x in ((1.0 - t) * rows + t * uniform for t in (0.0, *np.logspace(-9, 0, 400))) if excess(x) <= 0.0
        ]
        best = min([best, *(float(weight @ x.ravel()) for x in inside[:1])])  # the first: nearest to where it ended
    return best


SMOOTH = [name for name in READY if name.startswith(("Renyi", "mutual", "chi", "Hellinger"))]


@pytest.mark.grid(every=3)
@pytest.mark.parametrize("name", SMOOTH)
def test_the_optimum_of_a_curved_form_is_that_found_from_values_alone(name: str) -> None:
    least, mechanism = by_cvxpy(READY[name])
    # The root of 1e-7 of an excess, times a slope below 1.
    assert by_values(READY[name], mechanism) == pytest.approx(least, abs=2e-4)
    assert READY[name].violation(np.maximum(mechanism, 0.0), KNOWN) <= 1e-6


def linear_rows(name: str) -> tuple[Array, Array, Array, Array]:
    """Every linear constraint written out cell by cell: A x <= b and C x = d, slack variables behind the nine cells."""
    rows: list[Array] = []
    bounds: list[float] = []
    slacks = 6 * 3

    def row(cells: dict[tuple[int, int], float], own: dict[int, float], bound: float) -> None:
        one = np.zeros(9 + slacks)
        for (y, u), value in cells.items():
            one[3 * y + u] += value
        for index, value in own.items():
            one[9 + index] += value
        rows.append(one)
        bounds.append(bound)

    equal, values = [np.eye(27)[0] * 0.0], [0.0]
    by_s = JOINT / JOINT.sum(axis=1, keepdims=True)
    given = {"private": by_s, "input": np.eye(3)}
    if name == "approximate LDP":
        for k, (y, z) in enumerate((y, z) for y in range(3) for z in range(3) if y != z):
            for u in range(3):
                row({(y, u): 1.0, (z, u): -np.exp(0.5)}, {3 * k + u: -1.0}, 0.0)
            row({}, {3 * k + u: 1.0 for u in range(3)}, 0.05)
    elif name == "metric":
        for y in range(3):
            for z in range(3):
                for u in range(3):
                    row({(y, u): 1.0, (z, u): -np.exp(0.7 * DISTANCE[y, z])} if y != z else {}, {}, 0.0)
    elif "privacy" in name or "leakage" in name:
        epsilon = {"information privacy": 0.15, "pointwise leakage": 0.2}.get(name, 0.4)
        for conditional in given["input" if "inputs" in name else "private"]:
            for u in range(3):
                row({(y, u): conditional[y] - np.exp(epsilon) * PRIOR[y] for y in range(3)}, {}, 0.0)
                if "privacy" in name:
                    row({(y, u): np.exp(-epsilon) * PRIOR[y] - conditional[y] for y in range(3)}, {}, 0.0)
    elif "fairness" in name:
        groups = by_s if "private" in name else np.array([[PRIOR[0], PRIOR[1], 0.0], [0.0, 0.0, PRIOR[2]]])
        groups = groups / groups.sum(axis=1, keepdims=True)
        for u in range(3):
            for sign in (1.0, -1.0):
                row({(y, u): sign * (groups[0, y] - groups[1, y]) for y in range(3)}, {u: -1.0}, 0.0)
        row({}, dict.fromkeys(range(3), 0.5), 0.1 if "private" in name else 0.2)
    elif "vulnerability" in name:
        gains = np.eye(2) if name == "vulnerability" else np.array([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]])
        for action in gains:
            for u in range(3):
                row({(y, u): float(action @ JOINT[:, y]) for y in range(3)}, {u: -1.0}, 0.0)
        row({}, dict.fromkeys(range(3), 1.0), 0.63 if name == "vulnerability" else 0.74)
    else:
        for u, share in enumerate((0.5, 0.3, 0.2)):
            one = np.zeros(27)
            one[[u, 3 + u, 6 + u]] = PRIOR
            equal.append(one)
            values.append(share)
        row({}, {}, 0.0)
    return np.array(rows), np.array(bounds), np.array(equal), np.array(values)


@pytest.mark.parametrize("name", [name for name in READY if name not in SMOOTH])
def test_the_optimum_of_a_linear_form_is_that_of_its_inequalities_written_out(name: str) -> None:
    least, mechanism = by_cvxpy(READY[name])
    rows, bounds, equal, values = linear_rows(name)
    for y in range(3):
        one = np.zeros(27)
        one[3 * y : 3 * y + 3] = 1.0
        equal, values = np.vstack([equal, one]), np.append(values, 1.0)
    cost = np.concatenate([(PRIOR[:, None] * COST).ravel(), np.zeros(18)])
    lower = [(0.0, None)] * 9 + [(0.0 if name == "approximate LDP" else None, None)] * 18
    found = linprog(cost, rows, bounds, equal, values, bounds=lower, method="highs")
    assert least == pytest.approx(found.fun, abs=1e-7)  # two solvers' own accuracy
    assert READY[name].violation(np.maximum(mechanism, 0.0), KNOWN) <= 1e-6
    assert least > 1e-3  # the constraint binds: without it the cost is 0


@pytest.mark.parametrize("name", READY)
def test_a_file_brings_a_constraint_back_with_its_parameters(name: str) -> None:
    document = json.loads(json.dumps(to_document(READY[name])))
    again = from_document(document)
    assert again is not None
    assert repr(again) == repr(READY[name])
    random = np.random.default_rng(3).dirichlet(np.ones(3), 3)
    assert again.violation(random, KNOWN) == READY[name].violation(random, KNOWN)


@pytest.mark.parametrize(
    "constraint",
    [
        constraints.floor(0.01),
        constraints.floor([[0.1, 0.2], [0.0, 0.3]]),
        constraints.forbidden([(0, 1), (1, 0)]),
        constraints.forbidden(np.array([[False, True], [True, False]])),
        constraints.fixed({(0, 1): 0.5}),
        constraints.symmetric([1, 0], [1, 0]),
        constraints.monotone(False),
        constraints.maximal_leakage(0.3),
        constraints.total_variation_to_prior(0.2, average=True),
        constraints.expected_distortion([[0.0, 1.0], [1.0, 0.0]], 0.2),
    ],
    ids=str,
)
def test_so_do_those_on_cells_and_order(constraint: ReadyConstraint) -> None:
    again = from_document(json.loads(json.dumps(to_document(constraint))))
    assert repr(again) == repr(constraint)


def test_a_function_of_the_users_own_is_not_kept_and_a_wrong_document_is_refused() -> None:
    assert from_document(to_document(lambda mechanism: mechanism >= 0.1)) is None
    with pytest.raises(ModelError, match="constraint 'ldpp' is not known"):
        from_document({"constraint": "ldpp", "parameters": {}})
    with pytest.raises(DataError, match="local_differential_privacy.*epsilom"):
        from_document({"constraint": "local_differential_privacy", "parameters": {"epsilom": 1.0}})
    with pytest.raises(DataError, match="is no constraint"):
        from_document({"name": "ldp"})


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("ldp=0.5:0.05", "approximate LDP"),
        ("renyi=2:0.3", "Renyi 2"),
        ("lip=0.15", "information privacy"),
        ("lip=0.4:input", "information privacy of inputs"),
        ("pointwise-leakage=0.2", "pointwise leakage"),
        ("fairness=0.1", "fairness between private symbols"),
        ("fairness=0,0,1:0.2", "fairness between groups"),
        ("f-information=mutual-information:0.02", "mutual information"),
        ("f-information=chi-square:0.3:input", "chi-square information of inputs"),
        ("vulnerability=0.63", "vulnerability"),
        ("output=0.5:0.3:0.2", "outputs"),
    ],
)
def test_each_has_a_text(text: str, same: str) -> None:
    assert repr(parse(text)) == repr(READY[same])


def test_matrices_come_from_files(tmp_path: Path) -> None:
    distances, gains = tmp_path / "distances.csv", tmp_path / "gains.csv"
    distances.write_text("0,1,2\n1,0,1\n2,1,0\n", encoding="utf-8")
    gains.write_text("1,0\n0,1\n0.7,0.7\n", encoding="utf-8")
    assert repr(parse(f"metric-dp={distances}:0.7")) == repr(READY["metric"])
    assert repr(parse(f"vulnerability={gains}:0.74")) == repr(READY["vulnerability with gains"])


@pytest.mark.parametrize("text", ["ldp=1:2:3", "renyi=2", "lip=a", "f-information=0.1", "metric-dp=0.5", "fairness="])
def test_a_text_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ModelError, match=r"cannot be read: write"):
        parse(text)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: constraints.local_differential_privacy(1.0, 2.0), "delta=2.0"),
        (lambda: constraints.renyi_differential_privacy(0.0, 1.0), "order=0.0"),
        (lambda: constraints.local_information_privacy(1.0, of="secret"), "of='secret': expected one of"),
        (lambda: constraints.f_information("(t**2-1)*log(t)", 0.1), "has no DCP form"),
        (lambda: constraints.output_marginal([0.5, 0.4]), "marginal sums to 0.9"),
        (lambda: constraints.metric_differential_privacy(1.0, [[1.0]]), "0 on its diagonal"),
        (lambda: constraints.group_fairness(0.1, [0.5]), "the number of the group"),
        (lambda: constraints.bayes_vulnerability(0.5)(cp.Variable((3, 3)), KNOWN), "without any output .* 0.6"),
        (lambda: constraints.bayes_vulnerability(0.9, np.eye(3))(cp.Variable((3, 3)), KNOWN), "gain has 3 columns"),
        (lambda: constraints.group_fairness(0.1, [0, 1])(cp.Variable((3, 3)), KNOWN), "groups has 2 entries"),
        (lambda: constraints.pointwise_leakage(0.1)(cp.Variable((3, 3))), "needs the prior"),
        (lambda: constraints.metric_differential_privacy(1.0, DISTANCE)(cp.Variable((2, 3))), "between 3 inputs"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_argument(make: object, message: str) -> None:
    with pytest.raises((ModelError, DataError), match=message):
        make()  # type: ignore[operator]


ARGUMENTS: dict[str, dict[str, object]] = {
    "local_differential_privacy": {"epsilon": 0.5, "delta": 0.05},
    "metric_differential_privacy": {"epsilon": 0.7, "distance": DISTANCE},
    "renyi_differential_privacy": {"order": 2.0, "epsilon": 0.3},
    "local_information_privacy": {"epsilon": 0.2, "of": "private"},
    "pointwise_leakage": {"epsilon": 0.2, "of": "input"},
    "group_fairness": {"bound": 0.1, "groups": [0, 0, 1]},
    "f_information": {"f": "chi-square", "bound": 0.1, "of": "input"},
    "bayes_vulnerability": {"bound": 0.74, "gain": [[1.0, 0.0], [0.7, 0.7]], "of": "private"},
    "output_marginal": {"marginal": [0.5, 0.3, 0.2]},
    "total_variation_to_prior": {"bound": 0.1, "average": False},
    "maximal_leakage": {"bound": 0.3},
    "expected_distortion": {"distortion": 1.0 - np.eye(3), "bound": 0.1},
    "floor": {"value": 0.05},
    "forbidden": {"cells": [(0, 1)]},
    "fixed": {"values": {(0, 1): 0.2}},
    "symmetric": {"inputs": [1, 0, 2], "outputs": [1, 0, 2]},
    "monotone": {"increasing": True},
}
#: What no argument is, and what some are: whatever is not taken must be refused by the argument's name.
WRONG: list[object] = [
    *(
        None,
        np.nan,
        np.inf,
        -1,
        0,
        1e308,
        10**400,
        True,
        "x",
        b"1",
        "private",
        "exp(1e9*t)",
        "t**2-1",
        "chi-square",
        "",
    ),
    *([], {}, {1}, object(), 1j, np.array([]), np.full(3, np.nan), np.full((3, 3), -1.0), np.full((3, 3), 1e308)),
    *([["a"]], [[1, 2], [3]], [0.5, 0.5, 0.0], [2, 0, 1], [0, 1, 5], [(0, 1, 2)], [(0, "b")], [("b", 1)], [("zz", 1)]),
    *(
        {(0, 1): np.nan},
        {(0, 1): "a"},
        {(0, 0): 0.5, (0, 1): 0.6},
        {0: 1},
        [(0, 10**400)],
        np.zeros((3, 3, 3)),
        range(3),
    ),
]


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("kind", ARGUMENTS)
def test_whatever_is_given_for_an_argument_is_taken_or_refused_by_its_name(kind: str) -> None:
    make = getattr(constraints, kind)
    for argument, wrong in ((argument, one) for argument in ARGUMENTS[kind] for one in [*WRONG, iter([1])]):
        refused = ""
        try:
            made = make(**{**ARGUMENTS[kind], argument: wrong})
        except (DataError, ModelError) as error:
            refused = str(error)
        if refused:
            assert argument in refused or kind in refused
            continue
        assert from_document(json.loads(json.dumps(to_document(made)))) is not None
        for known in (KNOWN, None):
            with contextlib.suppress(DataError, ModelError):  # it may need another mechanism, or what is known
                assert all(part.is_dcp() for part in made(cp.Variable((3, 3)), known))
                assert made.violation(np.eye(3), known) >= 0.0


def test_cells_that_are_read_but_once_come_back_from_a_file() -> None:
    assert to_document(constraints.forbidden((0, u) for u in (1, 2)))["parameters"] == {"cells": [[0, 1], [0, 2]]}


def block() -> Block:
    """The least cost of a mechanism, as a block of a model would declare it."""

    def declare(_: object) -> Declaration:
        mechanism = cp.Variable((3, 3), name="P(U|Y)")
        return Declaration(
            cp.Minimize(cp.sum(cp.multiply(PRIOR[:, None] * COST, mechanism))),
            {"rows": cp.sum(mechanism, axis=1) == 1, "cells": mechanism >= 0},
            {"P(U|Y)": mechanism},
            mechanism=mechanism,
            known=KNOWN,
        )

    return Block(
        name="cost",
        reads=frozenset(),
        writes=frozenset({"mechanism"}),
        declare=declare,
        parameters=lambda view: {},
        embed=lambda point, at: {"P(U|Y)": point["mechanism"]},
        repair=lambda values, view: {"P(U|Y)": np.maximum(values["P(U|Y)"], 0.0)},
        write=lambda solution, view: {"mechanism": solution.values["P(U|Y)"]},
    )


def transport(mechanism: cp.Expression, known: Known) -> list[cp.Constraint]:
    """The outputs' distribution is at most 0.1 of transport away from (.4, .3, .3): a plan of its own."""
    plan = cp.Variable((3, 3), nonneg=False)
    return [
        plan >= 0,
        cp.sum(plan, axis=1) == known.prior @ mechanism,
        cp.sum(plan, axis=0) == np.array([0.4, 0.3, 0.3]),
        cp.sum(cp.multiply(DISTANCE, plan)) <= 0.1,
    ]


def epigraph(mechanism: cp.Expression, known: Known) -> list[cp.Constraint]:
    t = cp.Variable()
    return [t >= cp.max(mechanism), t <= 0.8]


def hellinger(mechanism: cp.Expression, known: Known) -> list[cp.Constraint]:
    marginal = cp.reshape(known.prior @ mechanism, (1, 3), order="C")
    each = known.prior[:, None]
    total, own = cpv.divergences.divergence("hellinger").form(cp.multiply(each, mechanism), each @ marginal)
    return [*own, total <= 0.2]


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("constraint", [transport, epigraph, hellinger])
def test_a_constraint_may_bring_variables_of_its_own(constraint: object) -> None:
    constrained = block().constrain("mine", constraint)  # type: ignore[arg-type]
    state, solution = constrained.solve({"mechanism": np.full((3, 3), 1.0 / 3.0)})
    mechanism = cp.Variable((3, 3))
    problem = cp.Problem(
        cp.Minimize(cp.sum(cp.multiply(PRIOR[:, None] * COST, mechanism))),
        [cp.sum(mechanism, axis=1) == 1, mechanism >= 0, *constraint(mechanism, KNOWN)],  # type: ignore[operator]
    )
    problem.solve(solver="ECOS", abstol=1e-11, reltol=1e-11, feastol=1e-11)
    assert solution.objective == pytest.approx(problem.value, abs=1e-6)
    declared = constrained.declaration()
    assert declared.brought["mine"] == tuple(name for name in declared.variables if name.startswith("mine/own"))
    # At a mechanism that is only given its variables are found again, and the conditions hold there.
    residuals = constrained.residual(state, state)
    assert residuals.primal <= 1e-6
    assert residuals.natural <= 1e-3  # a solver's mechanism is good to the root of its gap


def test_a_loss_beyond_doubles_and_an_infinite_distance_keep_their_meaning() -> None:
    known = Known(np.array([0.5, 0.5]), np.array([0.5, 0.5]), np.eye(2), ("a", "b"))
    unused, hidden = np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[0.7, 0.3], [1.0, 0.0]])
    apart = constraints.metric_differential_privacy(1.0, [[0.0, np.inf], [np.inf, 0.0]])
    assert apart.violation(hidden) <= 0.0
    for epsilon in (300.0, 1000.0, 1e300):
        for make in (constraints.local_information_privacy, constraints.pointwise_leakage):
            assert make(epsilon, "input").violation(unused, known) <= 0.0
        for delta in (0.0, 0.1):
            local = constraints.local_differential_privacy(epsilon, delta)
            assert local.violation(hidden) == pytest.approx(0.3 - delta)
            assert local.violation([[0.7, 0.3], [1.0 - 1e-100, 1e-100]]) == 0.0


def test_values_of_own_variables_are_found_at_a_mechanism_that_misses_the_constraint() -> None:
    constrained = block().constrain("mine", epigraph)
    declaration = constrained.place({"mechanism": np.eye(3)}, {"mechanism": np.eye(3)})
    t = declaration.variables["mine/own[0]"]
    assert 0.8 - 1e-6 <= float(t.value) <= 1.0 + 1e-6  # between what it must be and what it may be
    assert np.array_equal(declaration.variables["P(U|Y)"].value, np.eye(3))


MODULE = """
import cvxpy as cp
from cvxpriv.constraints import ReadyConstraint

def capped(most):
    return ReadyConstraint(
        f"capped({most:g})",
        lambda mechanism, known: [mechanism <= most],
        lambda mechanism, known: float(mechanism.max()) - most,
    )

NUMBER = 3
"""


def test_another_package_brings_a_constraint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "outside_constraints.py").write_text(MODULE, encoding="utf-8")
    meta = tmp_path / "outside_constraints-1.0.dist-info"
    meta.mkdir()
    (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: outside-constraints\nVersion: 1.0\n", encoding="utf-8")
    points = "[cvxpriv.constraints]\ncapped = outside_constraints:capped\nbroken = outside_constraints:NUMBER\n"
    (meta / "entry_points.txt").write_text(points, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    capped = parse("capped=0.6")
    assert capped.violation(np.array([[0.9, 0.1]])) == pytest.approx(0.3)
    document = json.loads(json.dumps(to_document(capped)))
    assert document == {"constraint": "capped", "parameters": {"most": 0.6}}
    assert repr(from_document(document)) == "capped(0.6)"
    with pytest.raises(ModelError, match="'broken' is a int: its package must name a function"):
        parse("broken=1")


@pytest.mark.filterwarnings("ignore:constraint mine was a function")
@pytest.mark.parametrize("model", ["PrivacyFunnel", "InferenceAsService"])
def test_a_saved_run_comes_back_with_its_constraints(model: str, tmp_path: Path) -> None:
    table = cpv.JointTable.from_array(JOINT)
    made = (
        cpv.models.PrivacyFunnel(table, rate=0.3)
        if model == "PrivacyFunnel"
        else cpv.models.InferenceAsService(table, 0.1)
    )
    made = made.constrain("private", constraints.local_information_privacy(0.8)).constrain("mine", lambda m: m <= 0.99)
    run = made.solve(starts=1, max_iter=3)
    again = type(run).load(run.save(tmp_path / "run.json"))
    assert [(name, repr(one)) for name, one in again.constraints] == [
        ("private", "local_information_privacy(epsilon=0.8, of='private')")
    ]
    assert constraints.local_information_privacy(0.8).violation(again.mechanism, KNOWN) <= 1e-5  # a solver's accuracy


@pytest.mark.parametrize("form", [pd.DataFrame, memoryview, np.vectorize(Fraction, otypes=[object])])
def test_a_file_keeps_the_numbers_of_a_matrix_whatever_holds_them(form: Callable[[np.ndarray], Any]) -> None:
    matrix = np.array([[0.0, 1.0], [0.5, 0.0]])  # of the frame it kept the names of the columns
    kept = constraints.to_document(constraints.expected_distortion(form(matrix), 0.5))
    assert kept == constraints.to_document(constraints.expected_distortion(matrix, 0.5))
