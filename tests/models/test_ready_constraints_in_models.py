"""Ready constraints in the funnel and in inference: optimum and price by another route.

Those whose sets are polytopes are written out here as inequalities between cells: a sum of peaks or of positive parts
over three outputs is at most a bound iff each choice of outputs, or of an input for each output, is. SLSQP starts from
random corners of that polytope, and the price is compared with what it finds a little to both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

import cvxpriv as cpv
from cvxpriv.constraints import ReadyConstraint, from_document
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array

from .test_inference_counted import EVERY, MAKERS, TABLE

OUTPUTS, RATE, BETA, STEP = 3, 0.03, 0.1, 2e-3
THREE = np.array([[0.9, 0.08, 0.4], [0.025, 0.82, 0.05], [0.075, 0.1, 0.55]]) * [0.3, 0.4, 0.3]
SUBSETS = [np.array(chosen, dtype=float) for chosen in product((0, 1), repeat=OUTPUTS)]
NUMBERS = ("epsilon", "delta", "bound")


def upper_limits(constraint: ReadyConstraint, table: Array) -> Iterator[tuple[Array, float]]:
    """Matrices A, (|inputs|, |outputs|), and bounds b with sum A p(u|y) <= b."""
    kind, given = constraint.kind, dict[str, Any](constraint.parameters)
    prior, inputs, cells = table.sum(axis=0), table.shape[1], np.eye(OUTPUTS)
    by_s, bound, epsilon = table / table.sum(axis=1, keepdims=True), given.get("bound"), given.get("epsilon")
    if kind in ("local_differential_privacy", "metric_differential_privacy"):
        for y, z in product(range(inputs), repeat=2):
            loss = epsilon * np.asarray(given["distance"])[y, z] if "distance" in given else epsilon
            for chosen in SUBSETS if y != z else []:
                pair = np.outer(np.eye(inputs)[y] - np.exp(loss) * np.eye(inputs)[z], chosen)
                if given.get("delta") or chosen.sum() == 1:
                    yield pair, given.get("delta", 0.0)
    elif kind in ("local_information_privacy", "pointwise_leakage"):
        for row, output in product(np.eye(inputs) if given["of"] == "input" else by_s, cells):
            yield np.outer(row - np.exp(epsilon) * prior, output), 0.0
            if kind == "local_information_privacy":
                yield np.outer(np.exp(-epsilon) * prior - row, output), 0.0
    elif kind == "bayes_vulnerability":
        worlds = np.diag(prior) if given["of"] == "input" else table
        gains = worlds if given["gain"] is None else np.asarray(given["gain"]) @ worlds
        yield from ((np.stack(choice, axis=1), bound) for choice in product(gains, repeat=OUTPUTS))
    elif kind == "group_fairness":
        members = by_s
        if given["groups"] is not None:
            members = np.stack([prior * (np.asarray(given["groups"]) == g) for g in sorted(set(given["groups"]))])
            members /= members.sum(axis=1, keepdims=True)
        for one, other in product(members, repeat=2):
            yield from ((np.outer(one - other, chosen), bound) for chosen in SUBSETS)
    elif kind == "total_variation_to_prior":
        away = np.eye(inputs) - prior
        if given["average"]:
            for chosen in product(SUBSETS, repeat=inputs):
                yield sum(prior[y] * np.outer(away[y], chosen[y]) for y in range(inputs)), bound
        else:
            yield from ((np.outer(row, chosen), bound) for row in away for chosen in SUBSETS)
    elif kind == "maximal_leakage":
        for choice in product(np.eye(inputs), repeat=OUTPUTS):
            yield np.stack(choice, axis=1), float(np.exp(bound))
    elif kind == "expected_distortion":
        yield prior[:, None] * np.asarray(given["distortion"]), bound
    elif kind == "f_information" and given["f"] == "total-variation":
        worlds, weights = (np.eye(inputs), prior) if given["of"] == "input" else (by_s, table.sum(axis=1))
        for chosen in product(SUBSETS, repeat=len(worlds)):
            yield sum(weights[w] * np.outer(worlds[w] - prior, chosen[w]) for w in range(len(worlds))), bound
    elif kind in ("floor", "monotone"):
        one = np.eye(inputs)
        for y, u in product(range(inputs), range(OUTPUTS)):
            if kind == "floor":
                yield -np.outer(one[y], cells[u]), -given["value"]
            elif y and u < OUTPUTS - 1:
                yield np.outer(one[y] - one[y - 1], cells[: u + 1].sum(axis=0)), 0.0
    else:
        for matrix, value in equalities(constraint, table):
            yield from ((matrix, value), (-matrix, -value))


def equalities(constraint: ReadyConstraint, table: Array) -> Iterator[tuple[Array, float]]:
    """Matrices A and numbers b with sum A p(u|y) = b."""
    kind, given, inputs = constraint.kind, dict[str, Any](constraint.parameters), table.shape[1]
    one = {(y, u): np.outer(np.eye(inputs)[y], np.eye(OUTPUTS)[u]) for y in range(inputs) for u in range(OUTPUTS)}
    if kind == "forbidden":
        yield from ((one[y, u], 0.0) for y, u in given["cells"])
    elif kind == "fixed":
        yield from ((one[y, u], value) for y, u, value in given["values"])
    elif kind == "output_marginal":
        for u, wanted in enumerate(given["marginal"]):
            yield np.outer(table.sum(axis=0), np.eye(OUTPUTS)[u]), wanted
    elif kind == "symmetric":
        for y, u in one:
            yield one[given["inputs"][y], given["outputs"][u]] - one[y, u], 0.0


def curved(constraint: ReadyConstraint, table: Array) -> Callable[[Array], Array] | None:
    """A mechanism, (|inputs|, |outputs|), to what is left of each bound, where the set is no polytope."""
    kind, given, prior = constraint.kind, dict[str, Any](constraint.parameters), table.sum(axis=0)
    if kind == "f_information" and given["f"] == "mutual-information":
        joint = np.diag(prior) if given["of"] == "input" else table
        return lambda m: np.array([given["bound"] - information(joint @ m)])
    if kind != "renyi_differential_privacy":
        return None

    def left(m: Array) -> Array:
        m, a = np.maximum(m, 1e-15), given["order"]
        ratio = m[:, None] / m
        if a == 1.0:
            told = (m[:, None] * np.log(ratio)).sum(axis=2)
        else:
            told = np.log((m[:, None] * ratio ** (a - 1.0)).sum(axis=2)) / (a - 1.0)
        return np.asarray(given["epsilon"] - told[~np.eye(len(m), dtype=bool)])

    return left


def information(joint: Array) -> float:
    joint = np.maximum(joint, 1e-15)
    alone = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    return float((joint * np.log(joint / alone)).sum())


def slopes_of_information(joint: Array) -> Array:
    joint = np.maximum(joint, 1e-15)
    return np.asarray(np.log(joint / (joint.sum(axis=1, keepdims=True) * joint.sum(axis=0))) - 1.0)


def polytope(asked_for: Sequence[ReadyConstraint], table: Array) -> tuple[Array, Array]:
    """A matrix and numbers b with A p(u|y) <= b, p(u|y) row by row."""
    every = [limit for one in asked_for for limit in upper_limits(one, table)]
    return np.reshape([A for A, _ in every], (-1, table.shape[1] * OUTPUTS)), np.array([b for _, b in every])


def searched(model: str, asked_for: Sequence[ReadyConstraint], near: Array) -> float:
    """The least leakage, or negative worth, by SLSQP from a mechanism and from mixtures of random corners."""
    table = THREE if model == "funnel" else TABLE
    prior, s_given_y = table.sum(axis=0), table / table.sum(axis=0)
    rows, limits = polytope(asked_for, table)
    equal, values = np.kron(np.eye(prior.size), np.ones(OUTPUTS)), np.ones(prior.size)
    slack = [left for one in asked_for if (left := curved(one, table)) is not None]

    def told(x: Array) -> float:
        return information(prior[:, None] * x.reshape(-1, OUTPUTS))

    def told_slopes(x: Array) -> Array:
        return (prior[:, None] * slopes_of_information(prior[:, None] * x.reshape(-1, OUTPUTS))).ravel()

    def objective(x: Array) -> tuple[float, Array]:
        mechanism = np.maximum(x.reshape(-1, OUTPUTS), 1e-15)
        joint = s_given_y @ (prior[:, None] * mechanism)
        accuracy, slopes = information(joint), prior[:, None] * (s_given_y.T @ slopes_of_information(joint))
        if model == "funnel":
            return accuracy, slopes.ravel()
        whole = prior @ mechanism
        middle = (mechanism + whole) / 2
        apart, together = np.log(mechanism / middle), np.log(whole / middle)
        leakage = float(prior @ (mechanism * apart + whole * together).sum(axis=1))
        return BETA * leakage - accuracy, (BETA * prior[:, None] * (apart + prior @ together) - slopes).ravel()

    asked: list[dict[str, Any]] = [
        {"type": "eq", "fun": lambda x: equal @ x - values, "jac": lambda x: equal},
        {"type": "ineq", "fun": lambda x: limits - rows @ x, "jac": lambda x: -rows},
    ]
    if model == "funnel":
        asked.append({"type": "ineq", "fun": lambda x: told(x) - RATE, "jac": told_slopes})
    asked += [{"type": "ineq", "fun": lambda x, one=one: one(x.reshape(-1, OUTPUTS))} for one in slack]
    random, starts = np.random.default_rng(0), [near.ravel()]
    for share in (0.0, 0.1, 0.2, 0.3, 0.5):
        ends = [linprog(random.normal(size=near.size), rows, limits, equal, values, bounds=(0, 1)).x for _ in range(2)]
        starts.append((1.0 - share) * ends[0] + share * ends[1])
    best = np.inf
    for start in starts:
        options = {"maxiter": 300, "ftol": 1e-12}
        x = minimize(objective, start, jac=True, bounds=[(0, 1)] * near.size, constraints=asked, options=options).x
        missed = [np.abs(equal @ x - values).max(), -x.min(), *(rows @ x - limits)]
        missed += [-one(x.reshape(-1, OUTPUTS)).min() for one in slack]
        if max([*missed, RATE - told(x) if model == "funnel" else 0.0]) <= 1e-7:
            best = min(best, objective(x)[0])
    return best


CASES = [
    pytest.param(model, one, marks=[] if quick else pytest.mark.slow, id=f"{model}-{one.name}")
    for model in ("funnel", "inference")
    for one, *_ in EVERY
    if np.shape(one.parameters.get("gain")) in ((), (len(TABLE), len(TABLE)))
    for quick in [model == "funnel" and one.kind == "pointwise_leakage"]
]


def test_every_ready_constraint_is_among_the_cases() -> None:
    assert {case.values[1].kind for case in CASES} == MAKERS


def solved(model: str, *asked_for: ReadyConstraint) -> Any:
    if model == "funnel":
        run: Any = cpv.models.PrivacyFunnel(THREE, RATE, rate_unit="nats", size_y=OUTPUTS)
    else:
        run = cpv.models.InferenceAsService(TABLE, BETA, size_u=OUTPUTS)
    for place, one in enumerate(asked_for):
        run = run.constrain(f"asked {place}", one)
    return run.solve()


@pytest.mark.parametrize(("model", "constraint"), CASES)
def test_optimum_and_price_are_those_of_a_search_over_inequalities(model: str, constraint: ReadyConstraint) -> None:
    run = solved(model, constraint)
    least = searched(model, [constraint], run.mechanism)
    assert (run.leakage if model == "funnel" else -run.objective) == pytest.approx(least, abs=1e-6)
    given = constraint.parameters
    for _, per, price in run.shadow_prices.itertuples(index=False):
        if per in NUMBERS:
            value = given[per]
            low, high = (
                searched(model, [moved], run.mechanism)
                for to in (value - STEP, value + STEP)
                if (moved := from_document({"constraint": constraint.kind, "parameters": {**given, per: to}}))
            )
            # Nearby, the optimum is concave or convex in the number: the price lies between the two chords.
            chords = sorted([(low - least) / STEP, (least - high) / STEP])
            assert chords[0] - 2e-3 <= price <= chords[1] + 2e-3


#: One pair of inference is quick, and `test_funnel_costed_bound` holds one of the funnel against a grid. The others are
#: some of all pairs, which a search compared.
TOGETHER = [
    pytest.param(model, (one, other), marks=[] if quick else pytest.mark.slow, id=f"{model}-{one.kind}-{other.kind}")
    for model in ("funnel", "inference")
    for place, (one, other) in enumerate(combinations([case.values[1] for case in CASES if case.values[0] == model], 2))
    for kinds in [(one.kind, other.kind)]
    for quick in [model == "inference" and kinds == ("local_information_privacy", "bayes_vulnerability")]
    if place % 7 == 0
]


@pytest.mark.parametrize(("model", "several"), TOGETHER)
def test_the_optimum_under_two_constraints_is_that_of_a_search(
    model: str, several: tuple[ReadyConstraint, ReadyConstraint]
) -> None:
    table = THREE if model == "funnel" else TABLE
    inputs, (rows, b) = table.shape[1], polytope(several, table)
    equal = np.kron(np.eye(inputs), np.ones(OUTPUTS))
    if linprog(np.zeros(rows.shape[1]), rows, b, equal, np.ones(inputs), bounds=(0, 1)).x is None:
        with pytest.raises(ModelError, match="cannot hold together"):
            solved(model, *several)
        return
    try:
        run = solved(model, *several)
    except ModelError:  # curved sets may have no point in common either
        assert searched(model, several, np.full((inputs, OUTPUTS), 1.0 / OUTPUTS)) == np.inf
        return
    assert (run.leakage if model == "funnel" else -run.objective) == pytest.approx(
        searched(model, several, run.mechanism), abs=1e-6
    )
