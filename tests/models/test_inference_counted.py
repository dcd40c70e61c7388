"""Which constraints are part of the bounds, and the inner problem that prices them in inference as a service."""

from __future__ import annotations

from itertools import combinations, permutations
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from cvxpriv_models.inference_service.bound import bound
from cvxpriv_models.inference_service.priced_constraints import OWN, PricedConstraints, pricing_of
from cvxpriv_models.inference_service.pricing import Inner, solve_simplex
from cvxpriv_models.inference_service.problem import Problem
from cvxpriv_models.inference_service.summed_costs import under_lines
from cvxpriv_models.inference_service.summed_pricing import SummedPricing
from cvxpriv_models.inference_service.summed_search import _late
from cvxpriv_models.privacy_funnel.costed_pricing import Costs
from cvxpriv_models.privacy_funnel.problem import Problem as Funnel
from scipy.optimize import linprog

from cvxpriv import constraints
from cvxpriv.blocks.declaration import Known
from cvxpriv.bounds.any_conjugate import conjugate_of
from cvxpriv.bounds.column_costs import NOT_COUNTED, costs_of
from cvxpriv.bounds.columns import Generation
from cvxpriv.bounds.lines import Lines
from cvxpriv.constraints import ReadyConstraint
from cvxpriv.numerics.arrays import Array

TABLE = np.array([[0.3, 0.1, 0.1], [0.05, 0.15, 0.3]])
PROBLEM = Problem.of(TABLE, 0.1, size_u=3)
KNOWN = Known.of_table(PROBLEM.table)
#: The optimum of a random 3 x 4 table under Renyi differential privacy, certified to 7e-9 by a search run to its end.
BEST_OF_RENYI = 0.00838897
DISTANCE = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
MAKERS = set(constraints.__all__) - {
    "FORMS", "ReadyConstraint", "couples_rows", "from_document", "parse", "to_document"
}  # fmt: skip
EVERY = [
    (constraints.local_differential_privacy(1.0), True),
    (constraints.local_differential_privacy(0.5, 0.05), True),
    (constraints.metric_differential_privacy(0.5, DISTANCE), True),
    (constraints.renyi_differential_privacy(2.0, 0.2), True),
    (constraints.renyi_differential_privacy(1.0, 0.2), True),
    (constraints.renyi_differential_privacy(0.5, 0.2), True),
    (constraints.local_information_privacy(0.3), True),
    (constraints.local_information_privacy(0.3, "input"), True),
    (constraints.pointwise_leakage(0.3), True),
    (constraints.pointwise_leakage(0.3, "input"), True),
    (constraints.f_information("mutual-information", 0.02), True),
    (constraints.f_information("total-variation", 0.05, "input"), True),
    (constraints.bayes_vulnerability(0.6), True),
    (constraints.bayes_vulnerability(0.6, of="input"), True),
    (constraints.bayes_vulnerability(0.6, [[1.0, 0.0], [0.0, 2.0], [0.5, 0.5]]), True),
    (constraints.group_fairness(0.1), True),
    (constraints.group_fairness(0.1, [0, 0, 1]), True),
    (constraints.total_variation_to_prior(0.1), True),
    (constraints.total_variation_to_prior(0.1, average=True), True),
    (constraints.maximal_leakage(0.3), True),
    (constraints.expected_distortion(DISTANCE, 0.5), True),
    (constraints.forbidden([(0, 1)]), True),
    (constraints.output_marginal([0.5, 0.3, 0.2]), False),
    (constraints.floor(0.01), False),
    (constraints.fixed({(0, 0): 0.5}), False),
    (constraints.symmetric([1, 0, 2], [0, 1, 2]), False),
    (constraints.monotone(), False),
    (constraints.f_information("total-variation", 0.05), True),
]
INFORMATION_OF_S = len(EVERY) - 1


def test_the_list_below_has_every_ready_constraint() -> None:
    assert {one.kind for one, _ in EVERY} == MAKERS


@pytest.mark.parametrize(("asked", "counted"), EVERY, ids=[one.name for one, _ in EVERY])
def test_each_is_part_of_the_bound_or_left_out_with_its_reason(asked: ReadyConstraint, counted: bool) -> None:
    found = PricedConstraints.of(PROBLEM, (("asked", asked),))
    assert found.ignored == (() if counted else (("asked", NOT_COUNTED[asked.kind]),))
    alone = Costs.of(Funnel.of(TABLE, 0.3, "nats", 3), (("asked", asked),))
    assert alone.ignored == (() if counted else ("asked",))


def test_the_documents_name_the_same_ones() -> None:
    page = (Path(__file__).parents[2] / "docs" / "constraints.md").read_text()
    rows = page.split("## Constraints and the certified bound")[1].split("\n| --- ")[1].split("\n\n")[0]
    listed = {
        line.split("`")[1]: [cell.strip()[:2] != "no" for cell in line.split("|")[2:4]]
        for line in rows.splitlines()[1:]
    }
    assert set(listed) == MAKERS
    for kind, said in listed.items():
        assert said == 2 * [any(counted for one, counted in EVERY if one.kind == kind)]


@pytest.mark.parametrize(("epsilon", "lines"), [(0.0, 4), (0.5, 4), (1e308, 0)])
def test_a_distance_that_asks_nothing_makes_no_line_and_no_warning(epsilon: float, lines: int) -> None:
    far = [[0.0, 10.0, np.inf], [10.0, 0.0, 10.0], [np.inf, 10.0, 0.0]]
    (found,) = costs_of(constraints.metric_differential_privacy(epsilon, far), KNOWN)
    assert found.lines.shape == (3, lines)
    assert np.isfinite(found.lines).all()


def test_functions_of_the_user_s_are_left_out_with_that_reason() -> None:
    found = bound(PROBLEM, constraints=(("mine", lambda mechanism: mechanism >= 0.01),), gap=1e-3)
    assert found.left_out == {"mine": OWN}


def _plain(c: Array, limit: int, precision: float, near: Array | None) -> Inner:
    return solve_simplex(c, PROBLEM.p_y, PROBLEM.beta, conjugate_of(PROBLEM.divergence, 10.0), limit, precision, near)


def _by_a_solver(c: Array, every: tuple[Lines, ...], prices: Array) -> float:
    """The inner problem with Jensen-Shannon's cost, by a cone program."""
    x, p = cp.Variable(3, nonneg=True), PROBLEM.p_y
    value = c @ x - PROBLEM.beta * cp.sum(cp.rel_entr(x, (x + p) / 2) + cp.rel_entr(p, (x + p) / 2))
    obeyed = [cp.sum(x) == 1]
    for one in every:
        own, prices, told = prices[: len(one.ends)], prices[len(one.ends) :], one.lines.T @ x
        if one.sort == "never":
            obeyed.append(told <= 0)
        elif one.sort == "most":
            value -= own[0] * cp.max(told)
        else:
            value -= own @ (cp.pos(told) if one.sort == "above" else cp.abs(told))
    program = cp.Problem(cp.Maximize(value), obeyed)
    program.solve(solver="CLARABEL")
    return float(program.value)


KINDS = {"local_information_privacy": 6, "bayes_vulnerability": 14, "group_fairness": 16, "delta": 1}


@pytest.mark.parametrize("which", KINDS.values(), ids=KINDS)
def test_the_inner_problem_under_lines_is_that_of_a_cone_program(which: int) -> None:
    lines = costs_of(EVERY[which][0], KNOWN)
    assert isinstance(lines, tuple)
    rng = np.random.default_rng(which)
    prices, c = 0.3 * rng.random(sum(len(one.ends) for one in lines)), rng.standard_normal((3, 3))
    found = under_lines(_plain, lines, prices)(c, 80, 1e-10, None)
    wanted = [_by_a_solver(row, lines, prices) for row in c]
    assert found.value == pytest.approx(wanted, abs=1e-7)  # the accuracy of the solver's value
    assert (_plain(c, 80, 1e-10, None).value >= found.value - 1e-10).all()


#: Constraints that bend, alone and beside others, by their places in `EVERY`; the f of the objective.
BENT = {
    **{EVERY[which][0].name: ((which,), "jensen-shannon") for which in (3, 4, 5, 10)},
    "kinks": ((10, 12), "total-variation"),
    "an f with kinks": ((INFORMATION_OF_S,), "jensen-shannon"),
    "a largest line": ((10, 12), "jensen-shannon"),
    "lines above": ((3, 1), "jensen-shannon"),
    "lines that are obeyed, and ratios": ((5, 0, 9), "mutual-information"),
    "peak and distance": ((10, 17, 18, 19), "jensen-shannon"),
    "two that bend": ((3, 10, 15), "le-cam"),
    "a cell that is 0": ((10, 21), "jensen-shannon"),
}


@pytest.mark.grid(every=3)
@pytest.mark.parametrize(("several", "f"), BENT.values(), ids=BENT)
def test_the_inner_problem_under_costs_that_bend_is_met_by_its_column(several: tuple[int, ...], f: str) -> None:
    """Its value bounds that of every column, and is that of its own."""
    problem = Problem.of(TABLE, 0.1, f, size_u=3)
    asked = PricedConstraints.of(problem, tuple((str(which), EVERY[which][0]) for which in several))
    pricing = SummedPricing(pricing_of(problem, TABLE, asked), problem.divergence, asked, np.inf)
    assert len(asked.counted) == len(several)
    rng = np.random.default_rng(several[0])
    duals = np.append(np.zeros(3), -0.3 * rng.random(len(pricing.upper)))
    c = rng.standard_normal((3, 3))
    found = pricing.of_class(0, duals)[0].solve(c, 80, 1e-10, None)
    allowed = np.ones(3) if asked.forbidden is None else 1.0 * ~asked.forbidden[:, pricing.first[0]]

    def worth(x: Array) -> Array:
        leaked = pricing.bare.price(np.maximum(x / problem.p_y, 1e-300)) @ problem.p_y
        paid = pricing.sums(np.zeros(len(x), dtype=np.intp), x) @ -duals[3:]
        return np.asarray((c * x).sum(axis=1) - problem.beta * leaked - paid)

    close = 1e-10 if len(several) == 1 and several != (INFORMATION_OF_S,) else 2e-8  # a barrier of 1e-10 for each line
    assert found.value == pytest.approx(worth(pricing.kept(0, found.x)), abs=close)
    for x in rng.dirichlet(np.ones(3), 400):
        one = pricing.kept(0, (x * allowed / (x @ allowed))[None])
        if pricing.obeying(one)[0]:
            assert (worth(np.tile(one, (3, 1))) <= found.value + 1e-12).all()


def test_a_search_under_costs_that_bend_begins_and_is_cut_near_the_optimum() -> None:
    """Few passes from its first columns, of which the prior alone is worth 0, leave ends that are not far apart."""
    table = np.random.default_rng(3).dirichlet(np.ones(12)).reshape(3, 4)
    problem = Problem.of(table, 0.1)
    asked = PricedConstraints.of(problem, (("rule", constraints.renyi_differential_privacy(2.0, 0.5)),))
    pricing = SummedPricing(pricing_of(problem, table, asked), problem.divergence, asked, np.inf)
    columns, passes = pricing.first_columns(), iter(range(16))
    generation = Generation(pricing, pricing.master(), columns)
    generation.drop(columns[0] < 0.0)
    assert -generation.master.solve().value > 0.9 * BEST_OF_RENYI
    found = generation.run(1e-8, lambda: next(passes, None) is None)
    bound, _ = _late(pricing, generation, found)
    assert -found.value <= BEST_OF_RENYI <= -bound < 1.2 * BEST_OF_RENYI


@pytest.mark.parametrize("seed", [1, 3, *(pytest.param(one, marks=pytest.mark.slow) for one in (2, 4, 7, 9, 10, 11))])
def test_an_input_of_a_mass_within_the_tolerance_of_a_linear_program_leaves_the_bound_tight(seed: int) -> None:
    random = np.random.default_rng(seed)
    table = random.dirichlet(np.ones(12)).reshape(3, 4)
    table[:, seed % 4] *= 10.0 ** -random.uniform(11.0, 15.0)
    table /= table.sum()
    rule = constraints.maximal_leakage(float(random.uniform(0.1, 0.5)))
    problem = Problem.of(table, 0.1)
    found = bound(problem, constraints=(("rule", rule),), gap=1e-3)
    assert (found.reason, found.left_out) == ("", {})
    assert rule.excess(found.mechanism, Known.of_table(problem.table)) <= 0.0


@pytest.mark.parametrize("which", [3, 4, 5, 10])
def test_the_sum_of_costs_that_bend_is_what_the_constraint_measures(which: int) -> None:
    cost = PricedConstraints.of(PROBLEM, (("asked", EVERY[which][0]),)).bent[0].values
    mechanism = np.random.default_rng(which).dirichlet(np.ones(2), 3)
    q = PROBLEM.p_y @ mechanism
    sums = q @ cost((PROBLEM.p_y[:, None] * mechanism / q).T)
    parameters, excess = EVERY[which][0].parameters, EVERY[which][0].excess(mechanism, Known.of_table(PROBLEM.table))
    if which == 10 or parameters["order"] == 1.0:
        expected = excess + float(parameters.get("epsilon", parameters.get("bound", 0.0)))
    else:
        a = float(parameters["order"])
        expected = np.copysign(1.0, a - 1.0) * np.exp((a - 1.0) * (excess + float(parameters["epsilon"])))
    assert sums.max() == pytest.approx(expected, rel=1e-9)


CLOSED = {
    "kinks": [constraints.f_information("total-variation", 0.05)],
    "three": [EVERY[10][0], constraints.bayes_vulnerability(0.55), EVERY[15][0]],
    "ratios": [EVERY[3][0], constraints.pointwise_leakage(0.1)],
}


@pytest.mark.parametrize("which", [pytest.param(n, marks=[] if n == "kinks" else pytest.mark.slow) for n in CLOSED])
def test_the_bound_closes_where_costs_bend_or_have_kinks(which: str) -> None:
    found = bound(PROBLEM, constraints=tuple((str(k), one) for k, one in enumerate(CLOSED[which])), time_limit=600.0)
    assert found.certified
    assert not found.left_out


def test_any_weights_that_the_prices_allow_bound_the_inner_problem() -> None:
    lines = Lines("most", np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5], [0.2, 0.1, 0.0]]), 1.0)
    c = np.array([[0.4, -0.2, 0.1]])
    best = under_lines(_plain, (lines,), np.array([0.7]))(c, 80, 1e-10, None).value[0]
    for w in 0.7 * np.random.default_rng(0).dirichlet(np.ones(3), 200):
        assert _plain(c - lines.lines @ w, 80, 1e-10, None).value[0] >= best - 1e-9


def test_columns_are_moved_into_what_each_of_them_has_to_obey() -> None:
    costs = costs_of(constraints.local_information_privacy(0.3), KNOWN)
    assert isinstance(costs, tuple)
    moved = costs[0].kept(np.eye(3), PROBLEM.p_y)
    assert (moved @ costs[0].lines).max() == pytest.approx(0.0, abs=1e-15)
    assert moved.sum(axis=1) == pytest.approx(1.0)


CONES = {
    "metric": (constraints.metric_differential_privacy(0.5, DISTANCE), 2),
    "private": (constraints.local_information_privacy(0.3), 6),
}


@pytest.mark.slow
@pytest.mark.parametrize(("asked", "which"), CONES.values(), ids=CONES)
def test_conditions_on_each_column_agree_with_a_linear_program_over_a_grid(asked: ReadyConstraint, which: int) -> None:
    p, steps = PROBLEM.p_y, 120
    if which == 2:
        rows = [
            np.eye(3)[i] / p[i] - np.exp(0.5 * DISTANCE[i, j]) * np.eye(3)[j] / p[j]
            for i, j in permutations(range(3), 2)
        ]
    else:
        ratios = TABLE / p / TABLE.sum(axis=1)[:, None]
        rows = [*(ratios - np.exp(0.3)), *(np.exp(-0.3) - ratios)]
    obeyed = np.array([*rows, *-np.eye(3)])
    # Where two of the conditions meet: a grid alone misses these corners.
    met = np.array([np.cross(one, other) for one, other in combinations(obeyed, 2)])
    met = met[abs(met.sum(axis=1)) > 1e-9]
    grid = np.array([[i, j, steps - i - j] for i in range(steps + 1) for j in range(steps + 1 - i)]) / steps
    x = np.vstack([grid, met / met.sum(axis=1, keepdims=True)])
    x = np.vstack([np.maximum(x[(obeyed @ x.T <= 1e-12).all(axis=0)], 0.0), p])
    s = x @ (TABLE / p).T
    worth = (s * np.log(s / PROBLEM.p_s)).sum(axis=1) - 0.1 * PROBLEM.divergence.terms(x, p).sum(axis=1)
    program = linprog(-worth, A_eq=x.T, b_eq=p, method="highs")
    found = bound(PROBLEM, constraints=(("asked", asked),))
    assert program.fun is not None
    assert found.certified
    assert -program.fun <= found.upper
    assert -program.fun == pytest.approx(found.lower, rel=1e-2)  # between corners, a grid of 1/120 misses edges
