"""The constrained funnel's end: linear rows of constraints, the face that binds, Newton's method, unused symbols."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from cvxpriv_models.privacy_funnel import algorithm, closed_form, faces
from cvxpriv_models.privacy_funnel.active_set import copied, newton_on_the_face, priced
from cvxpriv_models.privacy_funnel.faces import linear_rows
from cvxpriv_models.privacy_funnel.problem import Problem
from cvxpriv_models.privacy_funnel.run import Settings
from cvxpriv_models.privacy_funnel.solving import best_run

from cvxpriv import constraints, datasets
from cvxpriv.blocks.declaration import Known
from cvxpriv.blocks.engines import ClosedForm
from cvxpriv.models import PrivacyFunnel
from cvxpriv.numerics.arrays import Values
from cvxpriv.numerics.sizes import now, until
from cvxpriv.schedules.history import Context, LoopReport

S_GIVEN_X = np.array([[0.9, 0.08, 0.4], [0.025, 0.82, 0.05], [0.075, 0.1, 0.55]])  # PF section V-A
PROBLEM = Problem.of(S_GIVEN_X / 3.0, 0.6, "fraction", 4)
KNOWN = Known.of_table(PROBLEM.table)
P_X = PROBLEM.p_x[:, None]


@pytest.mark.parametrize(
    "constraint",
    [
        constraints.floor(0.02),
        constraints.expected_distortion(1.0 - np.eye(3, 4), 0.3),
        constraints.forbidden([(0, 1), (2, 3)]),
    ],
    ids=lambda constraint: constraint.name,
)
def test_a_constraint_holds_exactly_where_its_rows_do(constraint: constraints.ReadyConstraint) -> None:
    rows = linear_rows(PROBLEM, [("mine", constraint)])
    assert rows is not None
    assert rows.matrix.shape[1] == P_X.size * 4
    rng = np.random.default_rng(0)
    for mechanism in [*rng.dirichlet(np.ones(4), size=(20, 3)), np.full((3, 4), 0.25), np.eye(3, 4)]:
        left = rows.bound - rows.matrix @ (P_X * mechanism).ravel()
        missed = max(np.abs(left[: rows.equalities]).max(initial=0.0), -left.min())
        assert (missed <= 1e-12) == (constraint.violation(mechanism, KNOWN) <= 1e-12)  # rounding


def test_a_constraint_that_is_not_linear_has_no_rows_and_is_left_to_the_passes() -> None:
    def bound(mechanism: cp.Expression) -> cp.Constraint:
        return cp.sum_squares(mechanism) <= 2.9

    assert linear_rows(PROBLEM, [("energy", bound)]) is None
    funnel = PrivacyFunnel(S_GIVEN_X / 3.0, rate=0.5, size_y=4).constrain("energy", bound)
    once = funnel.solve(starts=1, max_iter=1)
    assert once.iterations == 1
    assert not once.converged
    assert once.kkt.largest > once.settings.tol


def test_once_time_is_over_a_step_is_one_pass_and_only_the_best_start_is_measured() -> None:
    mine = (("mine", constraints.total_variation_to_prior(0.9)),)
    log_u = np.log(P_X * np.random.default_rng(0).dirichlet(np.ones(4), size=(3, 3)))
    state, passes = closed_form.complete(log_u, PROBLEM.p_s_given_x), list[Values]()
    step = newton_on_the_face(PROBLEM, mine, lambda _: 0.0)
    assert step is not None
    context = Context(ClosedForm())
    context.reports[algorithm.LOOP] = LoopReport(np.ones(3, dtype=np.intp), np.zeros(3, dtype=bool))

    def one_pass(state: Values) -> dict[str, np.ndarray]:
        passes.append(state)
        return {**state, "log_u": state["log_u"] + 1e-6}

    settings = Settings("closed_form", "ccp", "auto", 3, 0, 500, 1e-7)
    with until(now() - 1.0):
        step(one_pass, state, 1)
        assert len(passes) == 1
        assert np.isinf(algorithm.measure(PROBLEM, mine)(state)["kkt"]).all()
        run = best_run(PROBLEM, mine, [(state, context)], ["random"] * 3, settings, 0.0)
    assert np.isfinite(run.starts["kkt"]).tolist() == (run.starts["leakage"] == run.starts["leakage"].min()).tolist()


def test_the_curvature_is_the_derivative_of_the_slopes() -> None:
    u = P_X * np.random.default_rng(1).dirichlet(np.ones(4), size=3)
    live = faces.Live.of(u, PROBLEM, linear_rows(PROBLEM, []))  # type: ignore[arg-type]
    x, lam, step = u[live.rows, live.columns], 0.3, 1e-6

    def slope(x: np.ndarray) -> np.ndarray:
        rise, log_w = faces.slopes(live.table(x), PROBLEM)
        return (rise - lam * log_w)[live.rows, live.columns]

    found = faces.curvature(x, np.arange(x.size), lam, PROBLEM, live, np.ones(x.size))
    for cell in range(x.size):
        towards = step * np.eye(x.size)[cell]
        numeric = (slope(x + towards) - slope(x - towards)) / (2.0 * step)
        # Central differences: the error of their step and of rounding, against entries of up to 50.
        assert found[cell] == pytest.approx(numeric, abs=1e-5)


@pytest.mark.parametrize(
    ("rate", "constraint"),
    [
        pytest.param(0.8, constraints.floor(0.001), marks=pytest.mark.slow),
        pytest.param(0.8, constraints.forbidden([(0, 1), (2, 3), (5, 5)]), marks=pytest.mark.slow),
        (0.8, constraints.maximal_leakage(2.4)),
        pytest.param(0.5, constraints.maximal_leakage(1.5), marks=pytest.mark.slow),
    ],
    ids=lambda value: str(value),
)
def test_constraints_on_a_real_table_are_solved_to_rounding_in_a_few_rounds(
    rate: float, constraint: constraints.ReadyConstraint
) -> None:
    funnel = PrivacyFunnel(datasets.heart_failure(), rate=rate).constrain("mine", constraint)
    solved = funnel.solve(starts=1, max_iter=10)
    assert solved.converged
    assert solved.kkt.largest <= 1e-10  # plain passes end between 1e-7 and 3e-4 after 500
    assert solved.utility >= solved.problem.rate - 1e-12
    assert constraint.violation(solved.mechanism) <= 1e-9  # what Newton's method is held to


def test_newton_on_the_face_agrees_with_passes_alone_and_no_feasible_neighbour_leaks_less() -> None:
    funnel = PrivacyFunnel(S_GIVEN_X / 3.0, rate=0.6, size_y=4).constrain("floor", constraints.floor(0.02))
    fast, plain = funnel.solve(starts=1), funnel.solve(starts=1, accelerate="none")
    assert fast.kkt.largest <= 1e-12
    assert fast.leakage == pytest.approx(plain.leakage, abs=1e-6)  # where passes stop: a residual of 1e-7
    rng = np.random.default_rng(0)
    feasible = 0
    for share in (1e-2, 1e-3, 1e-4):
        for other in 0.02 + 0.92 * rng.dirichlet(np.full(4, 0.05), size=(2000, 3)):
            near = (1.0 - share) * fast.mechanism + share * other  # on the floor or above, like both
            if fast.problem.utility(near) >= fast.problem.rate:
                feasible += 1
                assert fast.problem.leakage(near) >= fast.leakage - 1e-12  # rounding
    assert feasible > 20


def test_an_unused_symbol_that_would_pay_comes_back() -> None:
    table = datasets.heart_failure()
    constraint = constraints.expected_distortion(1.0 - np.eye(16, 17), 0.5)
    start = PrivacyFunnel(table, rate=0.8).solve(method="aem", starts=30).mechanism
    solved = PrivacyFunnel(table, rate=0.8).constrain("distortion", constraint).solve(init=start, max_iter=20)
    assert solved.converged
    # With the symbols left aside the same start ends at 0.028469, with a residual of 7e-4 that says so.
    # Two starts that differ by 7e-17 end at .027722 and at .028093, both stationary: rounding chooses between them.
    assert solved.leakage < 0.0282


def test_traces_of_unused_symbols_add_no_mass_and_copy_the_nearest() -> None:
    before = P_X * np.array([[0.5, 0.3, 0.0, 0.2], [0.1, 0.8, 0.1, 0.0], [0.0, 0.0, 1.0, 0.0]])
    u = before.copy()
    u[:, 3] = 0.0
    u[0] *= 1.25
    log_u = copied(u, before)
    assert np.exp(log_u).sum() == pytest.approx(1.0, abs=1e-12)
    assert log_u[:, 3] - log_u[:, 0] == pytest.approx(np.full(3, np.log(faces.ASIDE)), abs=700.0)
    assert log_u[0, 3] - log_u[1, 3] == pytest.approx(log_u[0, 0] - log_u[1, 0], abs=1e-9)


def test_a_priced_symbol_lowers_the_lagrangian_no_more_than_any_other_posterior() -> None:
    rows = linear_rows(PROBLEM, [])
    assert rows is not None
    u = P_X * np.array([[0.6, 0.4, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]])
    live = faces.Live.of(u, PROBLEM, rows)
    x = u[live.rows, live.columns]
    lam, prices = 0.2, np.array([0.3, 0.1, 0.2])
    face = faces.Face(x, np.flatnonzero(x), np.arange(3), prices, lam)
    w = np.exp(priced(u, face, PROBLEM, live, rows)[:, 3] - np.log(faces.ASIDE))

    def price(w: np.ndarray) -> np.ndarray:
        told = S_GIVEN_X @ w
        return np.sum(told * np.log(told), axis=0) - lam * np.sum(w * np.log(w), axis=0) + prices @ w

    assert w.sum() == pytest.approx(1.0, abs=1e-9)
    grid = np.random.default_rng(0).dirichlet(np.full(3, 0.3), size=20000).T
    grid = np.maximum(grid, 1e-12)
    assert price(np.maximum(w, 1e-300)) <= np.nanmin(price(grid / grid.sum(axis=0))) + 1e-6
