"""The bound counts constraints: checked by linear programs over fine grids of columns, an independent route."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from cvxpriv_models.inference_service.priced_constraints import PricedConstraints
from cvxpriv_models.privacy_funnel.column_constraints import ColumnConstraints
from cvxpriv_models.privacy_funnel.run import stored_bound
from scipy.optimize import linprog
from scipy.special import entr

import cvxpriv as cpv
from cvxpriv import constraints
from cvxpriv.blocks.declaration import Known
from cvxpriv.bounds.certificate import ConstrainedCertificate
from cvxpriv.errors import DataError, ModelError
from cvxpriv.models import InferenceAsService, PrivacyFunnel
from cvxpriv.numerics.arrays import Array

EPSILON = 1.2
GRID = 60

Asked = Callable[[Array, Array, Array], tuple[Array, Array, list[float]]]
"""Posteriors (3, n), the prior, P(s|y) / P(s) to: which are allowed, what they add to the sums (k, n), their ends."""


def ratios(pi: Array, p: Array) -> Array:
    return pi / p[:, None]


def local_dp(pi: Array, p: Array, told: Array) -> tuple[Array, Array, list[float]]:
    ratio = ratios(pi, p)
    return ratio.max(axis=0) <= np.exp(EPSILON) * ratio.min(axis=0) + 1e-12, np.zeros((0, pi.shape[1])), []


def pointwise(pi: Array, p: Array, told: Array) -> tuple[Array, Array, list[float]]:
    return ratios(pi, p).max(axis=0) <= np.exp(0.6) + 1e-12, np.zeros((0, pi.shape[1])), []


def maximal(pi: Array, p: Array, told: Array) -> tuple[Array, Array, list[float]]:
    return np.ones(pi.shape[1], bool), ratios(pi, p).max(axis=0)[None], [float(np.exp(0.6))]


def variation(pi: Array, p: Array, told: Array) -> tuple[Array, Array, list[float]]:
    return np.ones(pi.shape[1], bool), 0.5 * np.abs(ratios(pi, p) - 1.0), [0.5] * len(p)


def mean_variation(pi: Array, p: Array, told: Array) -> tuple[Array, Array, list[float]]:
    return np.ones(pi.shape[1], bool), 0.5 * np.abs(pi - p[:, None]).sum(axis=0)[None], [0.3]


def both_ways(pi: Array, p: Array, told: Array) -> tuple[Array, Array, list[float]]:
    return np.abs(np.log(np.maximum(ratios(pi, p), 1e-300))).max(axis=0) <= 0.5 + 1e-12, np.zeros((0, pi.shape[1])), []


def private_pointwise(pi: Array, p: Array, told: Array) -> tuple[Array, Array, list[float]]:
    return told.max(axis=0) <= np.exp(0.05) + 1e-12, np.zeros((0, pi.shape[1])), []


def private_both_ways(pi: Array, p: Array, told: Array) -> tuple[Array, Array, list[float]]:
    return np.abs(np.log(told)).max(axis=0) <= 0.1 + 1e-12, np.zeros((0, pi.shape[1])), []


CASES: list[tuple[constraints.ReadyConstraint, Asked]] = [
    (constraints.local_differential_privacy(EPSILON), local_dp),
    (constraints.pointwise_leakage(0.6, of="input"), pointwise),
    (constraints.local_information_privacy(0.5, of="input"), both_ways),
    (constraints.pointwise_leakage(0.05), private_pointwise),
    (constraints.local_information_privacy(0.1), private_both_ways),
    (constraints.maximal_leakage(0.6), maximal),
    (constraints.total_variation_to_prior(0.5), variation),
    (constraints.total_variation_to_prior(0.3, average=True), mean_variation),
]


def grid_optimum(table: Array, rate: float, asked: Asked, more: Array) -> float:
    """The least leakage by columns on a grid and by `more` of them, (3, n)."""
    i, j = np.meshgrid(np.arange(GRID + 1), np.arange(GRID + 1))
    grid = np.stack([i, j, GRID - i - j])[:, (i + j) <= GRID] / GRID
    p = table.sum(axis=0)
    pi = np.concatenate([grid, p[:, None], more], axis=1)
    allowed, sums, ends = asked(pi, p, table / p @ pi / table.sum(axis=1)[:, None])
    pi, sums = pi[:, allowed], sums[:, allowed]
    costs = -entr(table / p @ pi).sum(axis=0)
    found = linprog(
        costs,
        np.vstack([entr(pi).sum(axis=0), sums]),
        [float(entr(p).sum()) - rate + 1e-9, *(end + 1e-9 for end in ends)],
        pi,
        p,
        method="highs",
    )
    assert found.status == 0, found.message
    return float(entr(table.sum(axis=1)).sum() + found.fun)


def most(table: Array, asked: Asked) -> float:
    """The most that columns on the grid tell of X."""
    p = table.sum(axis=0)
    i, j = np.meshgrid(np.arange(GRID + 1), np.arange(GRID + 1))
    pi = np.concatenate([np.stack([i, j, GRID - i - j])[:, (i + j) <= GRID] / GRID, p[:, None]], axis=1)
    allowed, sums, ends = asked(pi, p, table / p @ pi / table.sum(axis=1)[:, None])
    pi, sums = pi[:, allowed], sums[:, allowed]
    rows = sums if len(ends) else None
    found = linprog(entr(pi).sum(axis=0), rows, ends or None, pi, p, method="highs")
    return float(entr(p).sum() - found.fun)


@pytest.mark.grid(every=3)
@pytest.mark.parametrize(("constraint", "asked"), CASES, ids=[case.name for case, _ in CASES])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_bound_under_a_constraint_agrees_with_a_grid_of_columns(
    constraint: constraints.ReadyConstraint, asked: Asked, seed: int
) -> None:
    table = np.random.default_rng(seed).dirichlet(np.ones(6)).reshape(2, 3)
    free = PrivacyFunnel(table, rate=0.0).constrain("mine", constraint)
    for fraction in (0.1, 0.2, 0.4, 0.6):
        told = most(table, asked)
        if free.at_rate(fraction).problem.rate > told:
            continue  # what is refused is tested below
        found = free.at_rate(fraction).bound(gap=1e-7)
        assert found.counted == ("mine",)
        assert found.upper - found.lower <= 1e-6
        model = free.at_rate(fraction).problem
        assert constraint.violation(found.mechanism, Known.of_table(model.table)) <= 1e-9
        assert model.utility(found.mechanism) >= model.rate - 1e-9
        joint = model.p_x[:, None] * found.mechanism[:, found.mechanism.any(axis=0)]
        best = grid_optimum(table, model.rate, asked, joint / joint.sum(axis=0))
        assert found.lower <= best + 1e-7
        assert best <= found.upper + 1e-6  # the mechanism's own columns are among the grid's, at a rate 1e-9 lower


@pytest.mark.slow
@pytest.mark.parametrize(("constraint", "asked"), CASES, ids=[case.name for case, _ in CASES])
def test_no_start_of_the_convex_concave_procedure_is_below_the_bound(
    constraint: constraints.ReadyConstraint, asked: Asked
) -> None:
    table = np.random.default_rng(3).dirichlet(np.ones(6)).reshape(2, 3)
    rate = min(
        0.15 * PrivacyFunnel(table).problem.table.entropy_x, 0.9 * most(table, asked)
    )  # local information privacy lets less be told
    funnel = PrivacyFunnel(table, rate=rate, rate_unit="nats").constrain("mine", constraint)
    run, others = funnel.solve(), funnel.solve(method="ccp", starts=2, max_iter=10)
    assert run.bound is not None
    assert others.starts["leakage"].min() >= run.bound.lower - 1e-7  # the accuracy of a solver's mechanisms
    assert run.leakage <= others.leakage + 1e-7


@pytest.mark.slow
def test_a_feasible_problem_is_not_refused_at_the_default_number_of_outputs() -> None:
    table = np.array([[0.17, 0.15, 0.08], [0.28, 0.31, 0.01]])
    run = PrivacyFunnel(table, 0.4, rate_unit="nats").constrain("most", constraints.maximal_leakage(0.6)).solve()
    assert run.utility >= 0.4 - 1e-9
    assert run.gap is not None
    assert run.gap <= 1e-6
    with pytest.raises(ModelError, match=r"no mechanism that satisfies them tells rate=0.7.* I\(X;Y\) is at most 0.5"):
        PrivacyFunnel(table, 0.7, rate_unit="nats").constrain("most", constraints.maximal_leakage(0.6)).solve()


def test_named_outputs_are_priced_one_by_one() -> None:
    table = np.random.default_rng(5).dirichlet(np.ones(8)).reshape(2, 4)
    hamming = 1.0 - np.eye(4)
    funnel = PrivacyFunnel(table, rate=0.6, size_y=4).constrain("near", constraints.expected_distortion(hamming, 0.25))
    run, plain = funnel.solve(starts=2), PrivacyFunnel(table, rate=0.6).bound()
    assert run.bound is not None
    assert run.bound.counted == ("near",)
    assert plain.lower - 1e-9 <= run.bound.lower <= run.leakage + 1e-9
    masked = PrivacyFunnel(table, rate=0.6, size_y=4).constrain("not", constraints.forbidden([(0, 0), (1, 1), (2, 2)]))
    assert plain.lower - 1e-9 <= masked.bound().lower <= masked.solve(starts=2).leakage + 1e-9


@pytest.mark.parametrize(("seed", "shape"), [(1, (3, 6)), (3, (2, 8)), (6, (3, 6)), (18, (3, 8))])
def test_a_distortion_leaves_a_mechanism_at_the_rate_in_doubles(seed: int, shape: tuple[int, int]) -> None:
    # Posteriors that share an output lose a little of the rate; a distortion is missed by one rounding.
    random = np.random.default_rng(seed)
    table = random.dirichlet(np.full(shape[0] * shape[1], 0.6)).reshape(shape)
    funnel, bound_of = PrivacyFunnel(table, rate=0.7), random.choice([0.3, 0.5])
    far = 1.0 - np.eye(shape[1], funnel.problem.size_y)
    found = funnel.constrain("near", constraints.expected_distortion(far, bound_of)).bound()
    assert (found.reason, found.counted, found.mechanism.shape) == ("", ("near",), far.shape)
    assert funnel.problem.utility(found.mechanism) >= funnel.problem.rate - 1e-13
    assert float((table.sum(axis=0)[:, None] * found.mechanism * far).sum()) <= bound_of
    assert found.upper == pytest.approx(funnel.problem.leakage(found.mechanism), abs=1e-12)
    assert found.upper - found.lower <= 1e-6


@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(one, marks=pytest.mark.slow) for one in range(3, 30))])
def test_fewer_outputs_than_inputs_under_a_distortion_have_a_mechanism_wherever_there_is_one(seed: int) -> None:
    """I(X;Y) is convex: it is largest at a corner, a table of 0 and 1 but for one row, and all of them are tried."""
    random = np.random.default_rng(seed)
    table = random.dirichlet(np.full(8, 0.7)).reshape(2, 4)
    far, p = np.abs(np.arange(4)[:, None] - np.arange(3)[None]).astype(float), table.sum(axis=0)
    least, most = p @ far.min(axis=1), (p @ far).min()
    bound_of = least + random.choice([1e-6, 0.01, 0.05, 0.15]) * (most - least)
    funnel = PrivacyFunnel(table, rate=random.choice([0.3, 0.6]), size_y=3)
    told = 0.0
    for outputs in product(range(3), repeat=4):
        one = np.eye(3)[list(outputs)]
        for row, output in product(range(4), range(3)):
            other = one.copy()
            other[row] = np.eye(3)[output]
            over, under = (float(p @ (each * far).sum(axis=1)) - bound_of for each in (one, other))
            if under <= 0.0:
                share = min(under / (under - over), 1.0) if over > 0.0 else 1.0
                told = max(told, funnel.problem.utility(share * one + (1.0 - share) * other))
    asked = funnel.constrain("near", constraints.expected_distortion(far, bound_of))
    if told < funnel.problem.rate:
        with suppress(ModelError):
            assert asked.bound(gap=1e-4).reason.startswith("no mechanism was found")
        return
    found = asked.bound(gap=1e-4)
    assert funnel.problem.utility(found.mechanism) >= funnel.problem.rate - 1e-13
    assert float((p[:, None] * found.mechanism * far).sum()) <= bound_of
    assert found.upper == pytest.approx(funnel.problem.leakage(found.mechanism), abs=1e-12)


def test_a_saved_run_keeps_the_proof_under_its_constraints_and_a_false_one_is_refused(tmp_path: Path) -> None:
    table = np.array([[0.3, 0.12, 0.02], [0.03, 0.18, 0.35]])
    local = constraints.local_differential_privacy(1.2)
    run = PrivacyFunnel(table, rate=0.12).constrain("mine", local).solve()
    assert run.gap is not None
    assert run.bound is not None
    assert (run.bound.counted, run.bound.ignored) == (("mine",), ())
    run.save(tmp_path / "run.json")
    again = cpv.load(tmp_path / "run.json")
    assert (again.bound.counted, again.bound.ignored) == (run.bound.counted, run.bound.ignored)
    assert again.gap == pytest.approx(run.gap, abs=1e-8)
    plain = PrivacyFunnel(table, rate=0.12).bound()
    assert again.bound.lower > plain.upper + 1e-3  # what is kept is more than the bound without constraints
    proof = run.bound.certificate
    assert isinstance(proof, ConstrainedCertificate)
    tighter = ({**proof.constraints[0], "epsilon": 1.1},)
    for false in (replace(proof, bound=run.bound.upper + 1e-4), replace(proof, constraints=tighter)):
        with pytest.raises(DataError, match="does not prove"):
            stored_bound(false, run.problem, run.constraints)
    with pytest.raises(DataError, match="states others"):  # a run without the constraint claims no such bound
        stored_bound(proof, run.problem)


def test_a_run_that_its_gap_proves_is_loaded_where_its_residual_is_large(tmp_path: Path) -> None:
    """At an optimum of 0 the slopes of the leakage are those of rounding, and the residual is no small number."""
    banned = constraints.forbidden([(0, 1), (2, 0)])
    run = PrivacyFunnel([[0.2, 0.2, 0.1], [0.1, 0.15, 0.25]], rate=0.05).constrain("not", banned).solve(seed=0)
    assert run.converged
    assert run.gap is not None
    assert run.gap <= run.tol < run.kkt.largest
    run.save(tmp_path / "run.json")
    assert cpv.load(tmp_path / "run.json").converged


def test_the_two_ends_under_named_outputs_are_in_order() -> None:
    table = np.array([[0.3, 0.12, 0.02], [0.03, 0.18, 0.35]])
    banned = constraints.forbidden([(0, 0), (1, 0), (1, 1), (2, 2)])
    found = PrivacyFunnel(table, rate=0.6).constrain("not", banned).bound()
    assert found.lower <= found.upper
    assert found.certificate.verify().bound <= found.lower
    assert found.gap <= 1e-6 or found.reason


def test_a_constraint_holds_in_the_doubles_that_the_run_returns() -> None:
    # The mechanism is kept as logarithms: read again it missed this constraint by 2e-17, and the run did not converge.
    table = np.array([[0.3, 0.12, 0.02], [0.03, 0.18, 0.35]])
    run = PrivacyFunnel(table, rate=0.12).constrain("mine", constraints.local_differential_privacy(1.2)).solve()
    assert run.missed == {}
    assert run.converged


def test_like_outputs_are_merged_until_the_optimum_fits_and_no_pass_is_made() -> None:
    # The linear program uses five posteriors, two of them 3e-4 apart; four outputs are allowed.
    table = np.array([[0.3, 0.12, 0.02], [0.03, 0.18, 0.35]])
    average = constraints.total_variation_to_prior(0.3, average=True)
    run = PrivacyFunnel(table, rate=0.4).constrain("mine", average).solve()
    assert run.converged
    assert run.gap is not None
    assert run.gap <= 2e-8
    assert run.utility >= run.problem.rate - 1e-12
    assert run.iterations == 0


def test_forbidden_cells_of_a_large_mechanism_are_read() -> None:
    table = np.random.default_rng(0).dirichlet(np.ones(160)).reshape(2, 80)
    funnel, inference = (
        model(table, 0.1).constrain("hidden", constraints.forbidden([(0, 0), (3, 7)]))
        for model in (PrivacyFunnel, InferenceAsService)
    )
    read = ColumnConstraints.of(funnel.problem, funnel.constraints)
    priced = PricedConstraints.of(inference.problem, inference.constraints)
    assert (read.counted, int((~read.allowed).sum())) == (("hidden",), 2)
    assert priced.forbidden is not None
    assert int(priced.forbidden.sum()) == 2


def test_unused_outputs_are_empty_to_the_bit_and_keep_constraints_on_ratios() -> None:
    distance = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    table = np.array([[0.3, 0.4, 1e-13], [0.2, 0.1, 2e-13]])
    asked = PrivacyFunnel(table, 0.0, rate_unit="nats").constrain(
        "near", constraints.metric_differential_privacy(0.01, distance)
    )
    run = asked.solve()
    assert run.converged
    assert not run.missed


def test_no_other_start_is_made_where_named_outputs_have_a_proved_optimum() -> None:
    table = np.array([[0.3, 0.1, 0.1], [0.1, 0.2, 0.2]])
    run = PrivacyFunnel(table, 0.1).constrain("hidden", constraints.forbidden([(0, 1)])).solve()
    assert run.gap is not None
    assert run.gap <= 1e-7
    assert len(run.starts) == 1


def test_a_symbol_that_hardly_occurs_keeps_the_constraint_and_the_proof() -> None:
    common = np.array([[0.3, 0.1, 0.05], [0.05, 0.25, 0.25]])
    asked = constraints.local_differential_privacy(1.0)
    bounds = []
    for table in (common, np.column_stack([common, [1e-12, 2e-13]])):
        funnel = PrivacyFunnel(table / table.sum(), rate=0.1).constrain("ldp", asked)
        found = funnel.bound(gap=1e-3)
        assert found.reason == ""
        assert asked.violation(found.mechanism, Known.of_table(funnel.problem.table)) <= 1e-12
        assert funnel.problem.utility(found.mechanism) >= funnel.problem.rate - 1e-10
        bounds.append(found.lower)
    assert bounds[0] == pytest.approx(bounds[1], abs=1e-9)
