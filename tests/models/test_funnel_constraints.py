"""Ready constraints on the funnel's mechanism P(Y|X), and what is said where they leave no mechanism."""

from __future__ import annotations

import numpy as np
import pytest
from cvxpriv_models.privacy_funnel.problem import Cells

from cvxpriv import constraints
from cvxpriv.blocks.declaration import Known
from cvxpriv.errors import ModelError
from cvxpriv.models import PrivacyFunnel
from cvxpriv.tables.joint import JointTable

# PF section V-A: P(S|X), with a uniform prior of X.
S_GIVEN_X = np.array([[0.9, 0.08, 0.4], [0.025, 0.82, 0.05], [0.075, 0.1, 0.55]])
TABLE = JointTable.from_array(S_GIVEN_X / 3.0, public_labels=["young", "middle", "old"])
KNOWN = Known.of_table(TABLE)
EVERY_CELL = Cells(np.ones((3, 4), dtype=bool))
LEAST_AT_TENTH = 0.019582  # certified least I(S;Y) at R = .1 H(X) without constraints


def funnel(rate: float) -> PrivacyFunnel:
    return PrivacyFunnel(TABLE, rate=rate, size_y=4)


@pytest.mark.grid(every=3)
@pytest.mark.parametrize(
    "constraint",
    [
        constraints.local_differential_privacy(3.0),
        constraints.total_variation_to_prior(0.3),
        constraints.total_variation_to_prior(0.25, average=True),
        constraints.maximal_leakage(0.5),
        constraints.expected_distortion(1.0 - np.eye(3, 4), 0.5),
        constraints.floor(0.01),
        constraints.forbidden([(0, 1), (2, 3)]),
        constraints.fixed({(0, 1): 0.3}),
        constraints.symmetric([0, 1, 2], [1, 0, 2, 3]),
        constraints.monotone(),
    ],
    ids=lambda constraint: constraint.name,
)
def test_every_ready_constraint_holds_on_the_mechanism_at_the_rate(constraint: constraints.ReadyConstraint) -> None:
    solved = funnel(0.1).constrain("mine", constraint).solve(starts=1, max_iter=1)
    assert constraint.violation(solved.mechanism, KNOWN) <= 1e-7  # the accuracy of the solvers, as are the next two
    assert solved.utility >= solved.problem.rate - 1e-7
    assert solved.leakage >= LEAST_AT_TENTH - 1e-6


DISTANCES = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
#: Least leakage in nats at a rate of .06 nats with three outputs: the best of four runs of SLSQP on the mechanism's
#: cells, with the excess of the constraint and its own formulas of information.
LEAST = [
    (constraints.local_differential_privacy(1.0), 0.013981),
    (constraints.bayes_vulnerability(0.6, of="input"), 0.010443),
    *(
        pytest.param(constraint, least, marks=pytest.mark.slow)
        for constraint, least in (
            (constraints.metric_differential_privacy(0.6, DISTANCES), 0.013834),
            (constraints.pointwise_leakage(0.5, of="input"), 0.012411),
            (constraints.local_information_privacy(0.25), 0.015470),
            (constraints.local_information_privacy(0.5, of="input"), 0.015102),
            (constraints.pointwise_leakage(0.25), 0.012024),
            (constraints.bayes_vulnerability(0.63), 0.010443),
            (constraints.local_differential_privacy(0.8, 0.05), 0.013381),
            (constraints.renyi_differential_privacy(2.0, 0.4), 0.022551),
        )
    ),
]


@pytest.mark.parametrize(("constraint", "least"), LEAST)
def test_a_constraint_on_inference_costs_what_an_independent_search_finds(
    constraint: constraints.ReadyConstraint, least: float
) -> None:
    solved = PrivacyFunnel(TABLE, rate=0.06, rate_unit="nats", size_y=3).constrain("mine", constraint).solve()
    assert constraint.violation(solved.mechanism, KNOWN) == 0.0
    assert solved.utility >= 0.06 - 1e-9
    assert solved.leakage == pytest.approx(least, abs=1e-6)


def test_the_usual_number_of_outputs_counts_the_constraints_on_a_sum() -> None:
    usual = PrivacyFunnel(TABLE, rate=0.3)
    most = usual.constrain("most", constraints.maximal_leakage(0.5))
    both = most.constrain("mean", constraints.total_variation_to_prior(0.25, average=True))
    local = both.constrain("local", constraints.local_differential_privacy(3.0))
    assert [one.problem.size_y for one in (usual, most, both, local)] == [4, 5, 6, 6]
    assert local.at_rate(0.2).problem.size_y == 6
    assert local.without("most").problem.size_y == 5
    assert usual.problem.size_y == 4
    # A constraint that names outputs is written for a number of them, and so is a size that a user gives.
    near = constraints.expected_distortion(1.0 - np.eye(3, 4), 0.5)
    assert usual.constrain("near", near).constrain("most", constraints.maximal_leakage(1.0)).problem.size_y == 4
    assert funnel(0.5).constrain("most", constraints.maximal_leakage(0.5)).problem.size_y == 4
    solved = most.solve()
    assert solved.mechanism.shape == (3, 5)
    assert solved.gap is not None
    assert solved.gap <= 1e-7


def test_a_private_funnel_converges_and_pays_in_leakage() -> None:
    constraint = constraints.floor(0.02)
    solved = funnel(0.5).constrain("floor", constraint).solve(starts=1)
    assert solved.converged
    assert constraint.violation(solved.mechanism) <= 1e-9
    assert solved.leakage >= 0.121083 - 1e-6  # certified, without a floor


def test_a_constraint_with_a_second_argument_receives_prior_posterior_and_labels_of_x() -> None:
    seen: list[Known] = []

    def constraint(mechanism: object, facts: Known) -> object:
        seen.append(facts)
        return mechanism >= 0.0  # type: ignore[operator]

    for block in funnel(0.5).constrain("look", constraint).blocks().values():
        if block.constraints:
            block.declaration(EVERY_CELL)
    assert len(seen) == 4  # when it was added, and in each block that designs the mechanism
    for facts in seen:
        assert facts.labels == ("young", "middle", "old")
        assert facts.prior == pytest.approx(np.full(3, 1 / 3))
        assert facts.p_s_given_input == pytest.approx(S_GIVEN_X)
        assert facts.p_s == pytest.approx(S_GIVEN_X.mean(axis=1))


def test_a_rate_that_privacy_does_not_allow_is_refused_with_what_can_be_told() -> None:
    private = funnel(0.9).constrain("ldp", constraints.local_differential_privacy(1.0))
    with pytest.raises(ModelError, match=r"constraints ldp: no mechanism .* rate=0.988751 nats .* is at most 0.123284"):
        private.solve(starts=1)


def test_the_whole_of_x_can_be_told_under_a_constraint_that_allows_it() -> None:
    solved = funnel(1.0).constrain("none", lambda mechanism: mechanism >= 0.0).solve(starts=1)
    assert solved.converged
    assert solved.leakage == pytest.approx(TABLE.information, abs=1e-9)  # what a start may lie below the rate
    assert solved.utility == pytest.approx(TABLE.entropy_x, abs=1e-9)


def test_constraints_that_conflict_whatever_the_rate_are_named_with_their_amounts() -> None:
    both = (
        funnel(0.1)
        .constrain("floor", constraints.floor(0.1))
        .constrain("idle", lambda mechanism: mechanism <= 1.0)
        .constrain("cap", lambda mechanism: mechanism[:, 0] <= 0.05)
    )
    message = r"'floor' and 'cap' cannot hold together: relax 'floor' by 0.05000, or 'cap' by 0.05000"
    with pytest.raises(ModelError, match=message):
        both.solve(starts=1)


def test_a_constraint_that_does_not_fit_the_mechanism_is_refused_when_it_is_added() -> None:
    with pytest.raises(ModelError, match=r"constraint 'floor': floor: row 0 of 4 outputs would sum to at least 1.2"):
        funnel(0.5).constrain("floor", constraints.floor(0.3))
    with pytest.raises(ModelError, match=r"takes \(a, b, c\): a constraint takes the mechanism"):
        funnel(0.5).constrain("mine", lambda a, b, c: a >= 0)


def test_a_rate_above_what_constraints_allow_is_refused_with_the_most_that_can_be_told() -> None:
    table = np.array([[0.1, 0.3], [0.4, 0.2]])  # P(X) is even: a posterior's lower share is at least e^-epsilon / 2
    low = 0.5 * np.exp(-0.5)
    most = np.log(2.0) + low * np.log(low) + (1.0 - low) * np.log(1.0 - low)
    limited = constraints.local_information_privacy(0.5, of="input")
    # The bound counts ratios of posteriors to the prior, so the most is proved and no longer only what a climb found.
    with pytest.raises(ModelError, match=rf"no mechanism that satisfies them .*: I\(X;Y\) is at most {most:.6g};"):
        PrivacyFunnel(table, 1.01 * most, rate_unit="nats").constrain("limited", limited).solve(starts=1)
    told = constraints.f_information("mutual-information", 0.1, of="input")
    with pytest.raises(ModelError, match=r"no mechanism that satisfies them .*: I\(X;Y\) is at most 0.1;"):
        PrivacyFunnel(table, 0.11, rate_unit="nats").constrain("told", told).solve(starts=1)


def test_the_climb_to_a_rate_under_local_information_privacy_does_not_end_at_what_tells_nothing() -> None:
    table = np.random.default_rng(2).dirichlet(np.ones(8)).reshape(2, 4)
    funnel = PrivacyFunnel(table, 0.03, rate_unit="nats")
    run = funnel.constrain("limited", constraints.local_information_privacy(0.3, of="input")).solve(
        starts=1, max_iter=1
    )
    assert run.utility >= 0.03 - 1e-9


@pytest.mark.parametrize("seed", [1, 6])
def test_a_forbidden_cell_under_local_privacy_empties_its_output_and_the_run_converges(seed: int) -> None:
    table = JointTable.from_counts(np.random.default_rng(seed).integers(1, 30, (3, 4)))
    funnel = PrivacyFunnel(table, 0.3).constrain("ldp", constraints.local_differential_privacy(2.5))
    run = funnel.constrain("none", constraints.forbidden([(0, 1)])).solve(seed=0)
    assert run.converged
    assert run.missed == {}
    assert run.kkt.largest < 1e-9  # 36 where the multipliers of empty cells were fitted to how far these move
