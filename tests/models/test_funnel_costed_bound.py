"""The funnel's bound under convex costs of a column, against linear programs over fine grids of columns."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from cvxpriv_models.privacy_funnel.costed_cells import least_phi
from cvxpriv_models.privacy_funnel.costed_pricing import CostedPricing, Costs
from cvxpriv_models.privacy_funnel.pricing import FunnelPricing
from cvxpriv_models.privacy_funnel.problem import Problem
from scipy.optimize import linprog
from scipy.special import entr

import cvxpriv as cpv
from cvxpriv import constraints
from cvxpriv.blocks.declaration import Known
from cvxpriv.errors import ModelError
from cvxpriv.models import PrivacyFunnel
from cvxpriv.numerics.arrays import Array

TABLE = np.array([[0.22, 0.08, 0.05], [0.04, 0.13, 0.17], [0.09, 0.12, 0.10]])
PRIOR = TABLE.sum(axis=0)
PAIRS = list(permutations(range(3), 2))
GRID = 60

Asked = Callable[[Array, Array], tuple[Array, list[float]]]
"""Ratios pi / p, (3, n), and posteriors (3, n) to costs (k, n), and their ends; an infinite cost is not allowed."""


def hellinger(r: Array, pi: Array) -> tuple[Array, list[float]]:
    return ((np.sqrt(r) - 1.0) ** 2 * PRIOR[:, None]).sum(axis=0)[None], [0.2]


def renyi(r: Array, pi: Array) -> tuple[Array, list[float]]:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.array([np.where(r[i] > 0.0, r[i] ** 2 / r[j], 0.0) for i, j in PAIRS]), 6 * [np.exp(1.5)]


def approximate(r: Array, pi: Array) -> tuple[Array, list[float]]:
    return np.array([np.maximum(r[i] - np.e * r[j], 0.0) for i, j in PAIRS]), 6 * [0.3]


def metric(r: Array, pi: Array) -> tuple[Array, list[float]]:
    return np.array([np.where(r[i] <= np.exp(2.0) * r[j] + 1e-12, 0.0, np.inf) for i, j in PAIRS]), 6 * [0.0]


def vulnerability(r: Array, pi: Array) -> tuple[Array, list[float]]:
    return pi.max(axis=0)[None], [0.55]


def fairness(r: Array, pi: Array) -> tuple[Array, list[float]]:
    s = TABLE / PRIOR @ pi / TABLE.sum(axis=1)[:, None]
    return np.array([0.5 * np.abs(s[i] - s[j]) for i, j in ((0, 1), (0, 2), (1, 2))]), 3 * [0.12]


def both(r: Array, pi: Array) -> tuple[Array, list[float]]:
    return np.vstack([hellinger(r, pi)[0], 0.5 * np.abs(pi - PRIOR[:, None]).sum(axis=0)]), [0.2, 0.3]


CASES: dict[str, tuple[list[constraints.ReadyConstraint], Asked, float]] = {
    "hellinger": ([constraints.f_information("hellinger", 0.2, "input")], hellinger, 0.3),
    "renyi": ([constraints.renyi_differential_privacy(2.0, 1.5)], renyi, 0.15),
    "approximate": ([constraints.local_differential_privacy(1.0, 0.3)], approximate, 0.2),
    "metric": ([constraints.metric_differential_privacy(2.0, 1.0 - np.eye(3))], metric, 0.15),
    "vulnerability": ([constraints.bayes_vulnerability(0.55, of="input")], vulnerability, 0.15),
    "fairness": ([constraints.group_fairness(0.12)], fairness, 0.15),
    "both": (
        [
            constraints.f_information("hellinger", 0.2, "input"),
            constraints.total_variation_to_prior(0.3, average=True),
        ],
        both,
        0.25,
    ),
}


def columns() -> Array:
    i, j = np.meshgrid(np.arange(GRID + 1), np.arange(GRID + 1))
    return np.asarray(np.stack([i, j, GRID - i - j])[:, (i + j) <= GRID] / GRID)


def grid_optimum(rate: float, asked: Asked, own: Array) -> float:
    """The least leakage with columns on the grid and a mechanism's own, by a linear program."""
    pi = np.concatenate([columns(), PRIOR[:, None], own], axis=1)
    costs, ends = asked(pi / PRIOR[:, None], pi)
    allowed = np.isfinite(costs).all(axis=0)
    pi, costs = pi[:, allowed], costs[:, allowed]
    rows = np.vstack([entr(pi).sum(axis=0), costs])
    upper = np.array([entr(PRIOR).sum() - rate + 1e-9, *(end * (1.0 + 1e-9) for end in ends)])
    found = linprog(-entr(TABLE / PRIOR @ pi).sum(axis=0), rows, upper, pi, PRIOR, method="highs")
    return float(entr(TABLE.sum(axis=1)).sum() + found.fun)


def funnel(case: str, size_y: int | None = None) -> PrivacyFunnel:
    asked, _, fraction = CASES[case]
    model = PrivacyFunnel(TABLE, rate=fraction, size_y=size_y)
    for k, one in enumerate(asked):
        model = model.constrain(f"c{k}", one)
    return model


@pytest.mark.grid(every=3)
@pytest.mark.parametrize("case", CASES)
def test_the_bound_closes_and_agrees_with_a_grid_of_columns(case: str) -> None:
    model = funnel(case)
    found = model.bound(gap=1e-6)
    assert (found.ignored, found.reason) == ((), "")
    assert found.gap <= 1e-6 + 1e-9  # the mechanism is moved inside its constraints in the last digits
    assert all(one.violation(found.mechanism, Known.of_table(model.problem.table)) == 0.0 for one in CASES[case][0])
    assert model.problem.utility(found.mechanism) >= model.problem.rate - 1e-9
    joint = PRIOR[:, None] * found.mechanism[:, found.mechanism.any(axis=0)]
    best = grid_optimum(model.problem.rate, CASES[case][1], joint / joint.sum(axis=0))
    assert found.lower <= best + 1e-7
    assert best <= found.upper + 1e-6  # the mechanism's own columns are among the grid's, at a rate 1e-9 lower
    assert found.lower >= PrivacyFunnel(TABLE, rate=CASES[case][2]).bound(gap=1e-6).lower - 1e-9


@pytest.mark.grid(every=4)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", range(4))
def test_what_is_proved_of_phi_is_never_above_it(case: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = Problem.of(TABLE, 0.2, "nats", None)
    pricing = CostedPricing(FunnelPricing(TABLE, 0.2), Costs.of(problem, [("c", one) for one in CASES[case][0]]))
    duals = np.concatenate([rng.normal(size=3), -0.7 * rng.random(1), -0.5 * rng.random(len(pricing.upper))])
    phi = pricing.phi(0, duals)
    value = phi.at(np.vstack([columns().T, rng.dirichlet(np.ones(3), 2000)]))
    least = float(value.min())
    proved = least_phi(phi, least - 1e-2, lambda: False)
    assert proved.least <= least
    assert not proved.columns.shape[1] or phi.at(proved.columns.T).min() < least
    beside = least_phi(phi, least + 1e-2, lambda: False)
    assert beside.columns.shape[1]
    assert beside.least <= least
    ticks = iter(range(10**9))
    ended = least_phi(phi, least - 1e-9, lambda: next(ticks) > 6)
    assert ended.least <= least
    assert proved.reason == ""


def test_a_page_and_a_file_state_such_constraints(tmp_path: Path) -> None:
    run = funnel("approximate", size_y=6).solve()
    assert run.bound is not None
    assert run.gap is not None
    assert run.gap <= 1e-5
    assert run.bound.uncertified == {}
    assert "It counts c0, which the certificate states." in run.facts.promises[0]
    assert set(run.facts.files) >= {"certificate.json", "check_constrained_certificate.py", "check_costs.py"}
    run.save(tmp_path / "run.json")
    again = cpv.load(tmp_path / "run.json").bound
    assert (again.counted, again.ignored, again.lower) == (("c0",), (), run.bound.lower)


@pytest.mark.parametrize("case", ["hellinger", "vulnerability"])
def test_a_rate_that_the_constraints_do_not_allow_is_refused_with_the_most_that_can_be_told(case: str) -> None:
    pi = columns()
    costs, ends = CASES[case][1](pi / PRIOR[:, None], pi)
    told = entr(PRIOR).sum() - linprog(entr(pi).sum(axis=0), costs, ends, pi, PRIOR, method="highs").fun
    with pytest.raises(ModelError, match=r"c0: no mechanism that satisfies them tells rate=.*is at most") as refusal:
        funnel(case).at_rate(0.8).bound()
    most = float(re.search(r"is at most ([\d.]+);", str(refusal.value))[1])
    assert told - 1e-6 <= most <= told + 3e-3  # the proof allows what lacks as much as H(S) pays: a thousandth of it


def test_a_rate_above_a_known_limit_is_refused_at_once() -> None:
    """A Renyi divergence of order >= 1 bounds I(X;Y); with a symbol that hardly occurs no search would end well."""
    table = np.array([[0.3, 0.2, 5e-14], [0.1, 0.4, 5e-14]])
    model = PrivacyFunnel(table, rate=0.0951, rate_unit="nats")
    model = model.constrain("mine", constraints.renyi_differential_privacy(1.0, 0.01))
    with pytest.raises(ModelError, match=r"mine: no mechanism .* is at most 0\.01;"):
        model.bound()


BETWEEN = constraints.expected_distortion(1.0 - np.eye(3), 0.05)


@pytest.mark.parametrize(
    "other",
    [
        constraints.local_differential_privacy(0.1),
        constraints.total_variation_to_prior(0.1),
        constraints.f_information("mutual-information", 0.1, of="input"),
        constraints.group_fairness(0.0),
    ],
)
def test_constraints_that_no_mechanism_satisfies_are_refused_by_the_bound_too(
    other: constraints.ReadyConstraint,
) -> None:
    model = PrivacyFunnel(TABLE, rate=0.1, rate_unit="nats", size_y=3).constrain("near", BETWEEN)
    with pytest.raises(ModelError, match="'near' and 'other' cannot hold together"):
        model.constrain("other", other).bound(time_limit=2.0)


@pytest.mark.parametrize(
    "one", [constraints.group_fairness(0.0), constraints.bayes_vulnerability(float(TABLE.sum(axis=1).max()))]
)
def test_without_a_mechanism_for_the_rate_constraints_are_counted_and_the_upper_end_is_that_of_x(
    one: constraints.ReadyConstraint,
) -> None:
    model = PrivacyFunnel(TABLE, rate=1e-3, rate_unit="nats").constrain("one", one)
    found, known = model.bound(time_limit=0.5), Known.of_table(model.problem.table)
    assert (found.counted, found.ignored) == (("one",), ())
    kept = one.excess(found.mechanism, known) <= 0.0
    assert kept or (found.upper == model.problem.table.information and "no mechanism was found" in found.reason)


def test_a_rate_just_above_what_two_constraints_allow_drops_neither() -> None:
    table = np.array([[0.04705329, 0.13726716], [0.65815647, 0.15752308]])
    model = PrivacyFunnel(table, rate=0.061349, rate_unit="nats")
    model = model.constrain("lip", constraints.local_information_privacy(0.8317224589, of="input"))
    model = model.constrain("ldp", constraints.local_differential_privacy(0.58697411, 0.08935438))
    with pytest.raises(ModelError, match=r"lip, ldp: no mechanism that satisfies them tells rate=0\.061349"):
        model.bound(time_limit=5.0)
