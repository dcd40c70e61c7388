"""The schemes of ADMM sharing: each reaches the pooled optimum, and what is claimed of them holds."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from cvxpriv_models.admm_sharing import ADMMSharing, algorithm
from cvxpriv_models.admm_sharing.accelerated import ARGUMENT, MEMORY, Packed
from cvxpriv_models.admm_sharing.assumptions import augmented_lagrangian, descent, stationarity
from cvxpriv_models.admm_sharing.factor import Factor
from cvxpriv_models.admm_sharing.problem import Problem
from cvxpriv_models.admm_sharing.schemes import SCHEMES, scheme_named

from cvxpriv.blocks.engines import ClosedForm
from cvxpriv.numerics.anderson import Anderson
from cvxpriv.numerics.arrays import Array, Values, single
from cvxpriv.penalties import ElasticNet
from cvxpriv.schedules.history import Context
from cvxpriv.schedules.running import run
from cvxpriv.schedules.steps import Sweep

from .sharing_cases import CONVERGENT, EVERY, columns, factors_of, pooled, small, split

#: ERRATA's iterations to 1e-6 in the coefficients on 300 x 12 at the best rho of a grid, for M = 2, 3, 6.
TABLE = {
    ("logistic", "printed"): (71, 64, 94),
    ("logistic", "gauss_seidel"): (65, 72, 86),
    ("logistic", "averaged"): (116, 114, 253),
    ("logistic", "proximal_jacobi"): (131, 186, 253),
    ("squared", "printed"): (80, 180, 461),
    ("squared", "gauss_seidel"): (33, 37, 51),
    ("squared", "averaged"): (45, 65, 83),
    ("squared", "proximal_jacobi"): (71, 73, 84),
}
#: The penalty r that a grid found best for the plain schemes on these columns.
BEST = {"logistic": 0.05, "squared": 0.8}


def passes_to(x: Array, y: Array, parties: int, loss: str, scheme: str, accelerate: bool, limit: int) -> int:
    """Passes until every coefficient is within 1e-6 of the pooled optimum; more than the limit if it takes more."""
    optimum = pooled(x, y, loss)
    problem, chosen = Problem.of(split(x, parties), y, loss), SCHEMES[scheme]
    loop = algorithm.schedule(problem, chosen, factors_of(problem), tol=1e-6, limit=limit, accelerate=accelerate)

    def off(state: Values) -> dict[str, Array]:
        found = np.concatenate([state[f"x/{m}"][0] for m in range(parties)])
        return {"kkt": np.array([np.abs(found - optimum).max()])}

    context = Context(ClosedForm())
    run(replace(loop, measure=off), algorithm.initial_state(problem, chosen.rho(BEST[loss], parties)), context)
    report = context.reports[algorithm.LOOP]
    return int(report.iterations[0]) if report.converged[0] else limit + 1


@pytest.mark.grid(every=3)
@pytest.mark.parametrize(("loss", "scheme"), TABLE)
def test_the_pooled_optimum_is_reached_within_the_iterations_of_the_errata(loss: str, scheme: str) -> None:
    x, y = columns()
    for parties, most in zip((2, 3, 6), TABLE[loss, scheme], strict=True):
        assert passes_to(x, y, parties, loss, scheme, False, most) <= most
        if scheme != "printed":
            assert passes_to(x, y, parties, loss, scheme, True, most) <= most // 2


@pytest.mark.parametrize("parties", [2, 3, 6])
def test_averaging_is_the_proximal_jacobi_scheme_held_by_the_parties_own_squares(parties: int) -> None:
    # ERRATA SHARING 1: rho' = rho/M and P_m = rho'(M-1) D_m'D_m. The other scheme stands here in plain algebra.
    x, y = columns(80, 6)
    problem, rho, lam = Problem.of(split(x, parties), y, "squared"), 0.9, 1.0
    parts, r = problem.parts, rho / parties
    steps = Sweep(algorithm.one_pass(problem, SCHEMES["averaged"], factors_of(problem)))
    state = algorithm.initial_state(problem, rho)
    own = [np.zeros(part.shape[1]) for part in parts]
    z, dual = np.zeros(80), np.zeros(80)
    for _ in range(40):
        state = run(steps, state, Context(ClosedForm()))
        shares = [part @ one for part, one in zip(parts, own, strict=True)]
        total = np.sum(shares, axis=0)
        moved = []
        for part, one, share in zip(parts, own, shares, strict=True):
            square = part.T @ part
            held = r * (parties - 1) * square
            right = held @ one - part.T @ (dual + r * (total - share - z))
            moved.append(np.linalg.solve(lam * np.eye(one.size) + r * square + held, right))
        own = moved
        total = np.sum([part @ one for part, one in zip(parts, own, strict=True)], axis=0)
        z = (y + dual + r * total) / (1.0 + r)
        dual = dual + r * (total - z)
    # Iterates of size one and forty passes: 1e-12 is rounding.
    for m in range(parties):
        np.testing.assert_allclose(state[f"x/{m}"][0], own[m], atol=1e-12)
    np.testing.assert_allclose(state["y"][0], dual, atol=1e-12)


@pytest.mark.parametrize("parties", [2, 3])
def test_the_direct_steps_of_averaging_are_those_of_the_proximal_jacobi_scheme_at_rho_over_m(parties: int) -> None:
    problem = small("logistic", "l1", parties)
    averaged, held = scheme_named("averaged", direct=True), SCHEMES["proximal_jacobi"]
    factors, context = factors_of(problem), Context(ClosedForm())
    states = [algorithm.initial_state(problem, rho) for rho in (0.9, 0.9 / parties)]
    passes = [Sweep(algorithm.one_pass(problem, one, factors)) for one in (averaged, held)]
    for _ in range(40):
        states = [run(one, state, context) for one, state in zip(passes, states, strict=True)]
    for name in ("x/0", "x/1", "z", "y"):  # of size one: rounding
        np.testing.assert_allclose(states[0][name], states[1][name], atol=1e-12)
    assert states[0]["x/0"].any()


@pytest.mark.grid(every=3)
@pytest.mark.parametrize("scheme", CONVERGENT)
@pytest.mark.parametrize("loss", ["logistic", "squared", "huber", "smoothed-hinge"])
def test_anderson_and_the_plain_scheme_end_at_the_same_point(loss: str, scheme: str) -> None:
    x, y = columns(60, 6)
    model = ADMMSharing(split(x, 2), y, loss=loss)
    fast = model.solve(rho=0.5, method=scheme, gap=0.0)
    slow = model.solve(rho=0.5, method=scheme, accelerate="none", max_iter=5000, gap=0.0)
    assert fast.converged
    assert slow.converged
    assert fast.iterations < slow.iterations
    # A relative residual of 1e-8 leaves errors of 1e-8 times gradients of ten, over curvatures of at least lam = 1.
    np.testing.assert_allclose(np.concatenate(fast.coefficients), np.concatenate(slow.coefficients), atol=1e-6)


def test_anderson_drops_a_combination_that_moves_too_far_and_takes_a_plain_pass() -> None:
    problem = small()
    factors = factors_of(problem)
    parties, z, y = algorithm.one_pass(problem, SCHEMES["averaged"], factors)
    packing = Packed(problem, SCHEMES["averaged"], factors, constrained=False)
    accelerated, body = Anderson(packing, MEMORY), Sweep([z, y, parties], fused=packing.one_pass)

    def pass_of(state: Values) -> dict[str, Array]:
        return run(body, state, Context(ClosedForm()))

    state: Values = algorithm.initial_state(problem, 0.5)
    for iteration in range(4):
        state = accelerated(pass_of, state, iteration)
    accelerated.length = 0.0  # as if the last pass had not moved: no combination can be as short
    after = accelerated(pass_of, state, 4)
    np.testing.assert_array_equal(after["x/0"], pass_of(state)["x/0"])


def test_a_pass_that_begins_with_z_makes_the_same_iterates() -> None:
    problem = small()
    parties, z, y = algorithm.one_pass(problem, SCHEMES["averaged"], factors_of(problem))
    plain = rotated = algorithm.initial_state(problem, 0.5)
    plain = run(Sweep([parties, z, y]), plain, Context(ClosedForm()))
    assert not plain["x/0"].any()  # from zero the first x step stays there
    for _ in range(3):
        plain = run(Sweep([parties, z, y]), plain, Context(ClosedForm()))
        rotated = run(Sweep([z, y, parties]), rotated, Context(ClosedForm()))
    np.testing.assert_allclose(rotated["x/1"], plain["x/1"], atol=1e-14)  # z from another guess


@pytest.mark.parametrize("penalty", ["l2", "l1:0.3", "nonneg"])
@pytest.mark.parametrize("name", ["averaged", "proximal_jacobi"])
def test_a_pass_that_pulls_the_dual_alone_is_that_of_its_steps_from_a_combination_too(name: str, penalty: str) -> None:
    x, labels = columns(60, 6)
    problem, scheme = Problem.of(split(x, 3), labels, penalty=penalty), scheme_named(name, direct=True)
    factors, context = factors_of(problem), Context(ClosedForm())
    parties, z, y = algorithm.one_pass(problem, scheme, factors)
    packing = Packed(problem, scheme, factors, constrained=False)
    whole, fused = Sweep([z, y, parties]), Sweep([z, y, parties], fused=packing.one_pass)
    for rho in (np.array([0.7]), np.linspace(0.1, 2.0, 60)[None]):
        first = {**algorithm.initial_state(problem, 0.7), "rho": rho}
        images = [run(fused, first, context)]
        images.append(run(fused, images[0], context))
        mixed = packing.unpack(1.6 * packing.pack(images[1]) - 0.6 * packing.pack(images[0]), images[1])
        after = run(fused, mixed, context)
        # The same point with its shares and its dual, which the combination does not bring.
        shares = {f"v/{m}": one.share(mixed[f"x/{m}"][0])[None] for m, one in enumerate(factors)}
        r = scheme.weight(rho, 3)
        dual = r * (mixed[ARGUMENT] - np.sum(list(shares.values()), axis=0))
        expected = run(whole, {**mixed, **shares, "y": dual}, context)
        for entry in ("x/0", "x/2", "v/1", "z", "y"):
            np.testing.assert_allclose(after[entry], expected[entry], atol=1e-11)


@pytest.mark.parametrize("scheme", ["averaged", "proximal_jacobi", "printed"])
class TestNonConvex:
    """The sigmoid loss, which is not convex: (5) falls from pass to pass, and V^t obeys the complexity bound (42)."""

    @staticmethod
    def iterates(scheme: str) -> tuple[Problem, float, list[Values]]:
        problem = small("sigmoid", parties=2, lam=1.0)
        rho = SCHEMES[scheme].rho(0.4, 2)
        steps = Sweep(algorithm.one_pass(problem, SCHEMES[scheme], factors_of(problem)))
        states = [algorithm.initial_state(problem, rho)]
        for _ in range(400):
            states.append(run(steps, states[-1], Context(ClosedForm())))
        return problem, rho, [single(state, 0) for state in states]

    def test_the_augmented_lagrangian_falls_by_what_the_moves_explain(self, scheme: str) -> None:
        problem, rho, states = self.iterates(scheme)
        r = float(SCHEMES[scheme].weight(np.array(rho), 2))
        falls = descent(problem, SCHEMES[scheme], factors_of(problem), rho)
        assert min(falls.x) > 0.0
        assert falls.z > 0.0
        # From the first pass on y is the gradient of the loss at z, which the proof needs.
        for before, after in pairwise(states[1:]):
            drop = augmented_lagrangian(problem, before, r) - augmented_lagrangian(problem, after, r)
            explained = falls.z * float(np.sum((after["z"] - before["z"]) ** 2))
            for m, each in enumerate(falls.x):
                explained += each * float(np.sum((after[f"x/{m}"] - before[f"x/{m}"]) ** 2))
            assert drop >= explained - 1e-12  # values of size thirty, rounding

    def test_the_sum_of_stationarity_is_within_the_bound_and_tends_to_zero(self, scheme: str) -> None:
        problem, rho, states = self.iterates(scheme)
        r = float(SCHEMES[scheme].weight(np.array(rho), 2))
        constant = descent(problem, SCHEMES[scheme], factors_of(problem), rho).constant
        values = np.array([stationarity(problem, factors_of(problem), state, r) for state in states])
        # Loss and penalty are >= 0: f = 0.
        budget = constant * augmented_lagrangian(problem, states[1], r)
        assert np.isfinite(budget)
        assert values[2:].sum() <= budget
        for accuracy in (1e-1, 1e-2, 1e-3):  # T(eps) eps <= C (L^1 - f), counted from the second pass
            reached = int(np.argmax(values[2:] <= accuracy))
            assert values[2 + reached] <= accuracy
            assert reached * accuracy <= budget


def test_a_non_convex_run_records_the_lagrangian_and_v() -> None:
    x, y = columns(60, 6)
    run_of = ADMMSharing(split(x, 2), y, loss="sigmoid").solve(rho=1.0, max_iter=100)
    recorded = run_of.history.dropna(subset=["V"])
    assert len(recorded) == run_of.iterations
    assert recorded["V"].iloc[-1] < 1e-3 * recorded["V"].iloc[1]
    assert (recorded["lagrangian"].diff().iloc[2:] <= 1e-12).all()


def test_where_three_parties_step_at_once_unheld_nothing_says_that_the_lagrangian_falls() -> None:
    problem = small(parties=3)
    assert np.isinf(descent(problem, SCHEMES["printed"], factors_of(problem), 5.0).constant)
    assert np.isfinite(descent(problem, SCHEMES["averaged"], factors_of(problem), 5.0).constant)
    assert np.isinf(descent(problem, SCHEMES["gauss_seidel"], factors_of(problem), 5.0).constant)


@pytest.mark.parametrize("scheme", EVERY)
def test_one_party_alone_reaches_the_optimum_in_every_scheme(scheme: str) -> None:
    x, y = columns(60, 6)
    found = ADMMSharing([x], y).solve(rho=0.8, method=scheme, tol=1e-9, accelerate="none", max_iter=2000)
    # A relative residual of 1e-9, gradients of ten.
    np.testing.assert_allclose(found.coefficients[0], pooled(x, y, "logistic"), atol=1e-7)


def test_the_hold_of_a_party_is_just_large_enough_in_each_scheme() -> None:
    factor = Factor(np.array([[3.0, 0.0], [0.0, 1.0]]))  # ||D||^2 = 9
    square, absolute = ElasticNet(0.5, 0.0), ElasticNet(0.5, 1.0)
    held, averaged = SCHEMES["proximal_jacobi"], SCHEMES["averaged"]
    # P_m = tau I >= rho (M-1) D'D; a linearised step has tau I - rho D'D in its place.
    assert held.tau(factor, square, 2.0, 3) == pytest.approx(2.0 * 2.0 * 9.0)
    assert held.tau(factor, absolute, 2.0, 3) == pytest.approx(3.0 * 2.0 * 9.0)
    assert held.tau(factor, square, np.array([2.0, 8.0]), 3) == pytest.approx(2.0 * 18.0)  # rows of their own weights
    assert averaged.tau(factor, square, 2.0, 3) == 0.0
    assert held.tau(Factor(np.zeros((2, 1))), absolute, 2.0, 3) == pytest.approx(6.0)
    for name in ("averaged", "gauss_seidel"):  # rho/M for rho, and one party after the other
        assert scheme_named(name, direct=True).tau(factor, absolute, 2.0, 3) == pytest.approx(2.0 * 9.0)
        assert scheme_named(name, direct=True).tau(factor, square, 2.0, 3) == 0.0
    assert not scheme_named("printed", direct=True).linearises(absolute)
    share, total, z = np.array([1.0]), np.array([5.0]), np.array([2.0])
    assert averaged.target(share, total, z, 3) == pytest.approx([0.0])
    assert held.target(share, total, z, 3) == pytest.approx([-2.0])
    for scheme, weight in ((averaged, 0.5), (held, 1.5)):
        assert scheme.weight(np.array(1.5), 3) == pytest.approx(weight)
        assert scheme.rho(weight, 3) == pytest.approx(1.5)
