"""The blocks of inference as a service: what the solvers find is what the exact updates say."""

from __future__ import annotations

from collections.abc import Callable

import cvxpy as cp
import numpy as np
import pytest
from cvxpriv_models.inference_service import blocks, bregman, closed_form, interior, kkt, measures
from cvxpriv_models.inference_service.interior import inverse
from cvxpriv_models.inference_service.joint import joint
from cvxpriv_models.inference_service.problem import Problem

import cvxpriv as cpv
from cvxpriv.blocks.block import Block
from cvxpriv.blocks.engines import Checked
from cvxpriv.certify.check import CLOSED_FORM, case_of_block, crosscheck
from cvxpriv.errors import DataError, ModelError
from cvxpriv.numerics.arrays import Values, single
from tests.models.solver_gaps import best_gap

from .inference_cases import KINKED, PAPER, SMOOTH, g10, random_state

RHO, C = 1.0, 10.0

BLOCKS: dict[str, Callable[[Problem], Block]] = {
    "P(S|U)": blocks.accuracy_block,
    "row": lambda problem: blocks.row(problem, 3, RHO),
    "row of the whole mechanism": lambda problem: blocks.row(problem, 3, RHO, whole=True),
    "P_U": lambda problem: blocks.marginal(problem, RHO),
    "joint": joint,
    "Bregman row": lambda problem: bregman.bregman_mechanism(problem, 3, RHO, C),
    "Bregman P_U": lambda problem: bregman.bregman_marginal(problem, RHO, C),
}


def exact_objective(block: Block, view: Values) -> float:
    assert block.direct is not None
    written = block.direct({key: value[None] for key, value in view.items()})
    return block.objective({**view, **{key: value[0] for key, value in written.items()}}, view)


#: A kinked f has no exact joint update.
PAIRS = [(which, name) for which in BLOCKS for name in (*SMOOTH, *KINKED) if which != "joint" or name in SMOOTH]


@pytest.mark.grid(every=5)
@pytest.mark.parametrize("floor", [0.0, 1e-3])
@pytest.mark.parametrize(("which", "name"), PAIRS)
def test_a_solver_agrees_with_the_exact_update(which: str, name: str, floor: float) -> None:
    problem = g10(name, 0.5, floor)
    view = single(random_state(problem), 0)
    block = BLOCKS[which](problem)
    best, (_, found) = exact_objective(block, view), block.solve(view, solver=("CLARABEL",))
    assert found.objective <= best + 1e-8  # a joint update is certified to 1e-8, the others are exact
    assert found.objective == pytest.approx(best, abs=1e-8)


@pytest.mark.grid(every=3)
@pytest.mark.parametrize("name", PAPER)
@pytest.mark.parametrize("which", BLOCKS)
def test_the_best_of_three_solvers_agrees_to_1e_8_on_the_papers_divergences(which: str, name: str) -> None:
    problem = g10(name, 0.5, 1e-3)
    view = single(random_state(problem), 0)
    report = crosscheck([case_of_block(BLOCKS[which](problem), view)], ("CLARABEL", "ECOS", "SCS"))
    assert best_gap(report).max() <= 1e-8  # what the toolkit promises of the best solver
    assert report.verdicts[CLOSED_FORM].verdict == "agrees"


def test_the_checked_engine_passes_a_block_of_each_kind() -> None:
    problem = g10("jensen-shannon", 0.5, 1e-3)
    state = random_state(problem, 2)
    for build in BLOCKS.values():
        assert Checked().solve(build(problem), state).engine == "checked"


def test_every_declaration_is_dpp() -> None:
    for name in (*SMOOTH, *KINKED):
        for build in BLOCKS.values():
            declaration = build(g10(name, 0.5, 1e-3)).declaration()
            assert declaration.problem.is_dcp(dpp=True)


USERS = cpv.FDivergence(
    "mine",
    f=lambda t: (t - 1.0) ** 2 + (t - 1.0) ** 4,
    fprime=lambda t: 2.0 * (t - 1.0) + 4.0 * (t - 1.0) ** 3,
    fsecond=lambda t: 2.0 + 12.0 * (t - 1.0) ** 2,
)


@pytest.mark.parametrize("which", ["row", "row of the whole mechanism", "P_U", "joint", "Bregman P_U"])
def test_a_users_divergence_without_a_cone_form_runs_by_tangents(which: str) -> None:
    problem = g10(USERS, 0.5, 1e-2, 4)
    view = single(random_state(problem), 0)
    block = BLOCKS[which](problem)
    _, found = block.solve(view)
    assert found.objective == pytest.approx(exact_objective(block, view), abs=1e-7)  # the gap that tangents stop at


@pytest.mark.grid(every=7)
@pytest.mark.parametrize("floor", [0.0, 1e-8, 1e-3])
@pytest.mark.parametrize("name", SMOOTH)
def test_the_interior_point_method_certifies_the_joint_problem(name: str, floor: float) -> None:
    for beta in (0.3, 1.0):
        problem = g10(name, beta, floor)
        posterior = random_state(problem, 8, seed=1)["posterior"]
        mechanism, gap = interior.maximise(problem, posterior)
        assert gap.max() <= 1e-8
        np.testing.assert_allclose(kkt.joint_gap(problem, mechanism, posterior), gap, atol=1e-12)
        assert mechanism.min() >= floor
        assert np.abs(mechanism.sum(axis=-1) - 1.0).max() <= 1e-14


def test_a_floor_that_leaves_no_room_gives_the_uniform_mechanism() -> None:
    problem = g10("jensen-shannon", 0.5, 1.0 / 11)
    mechanism, gap = interior.maximise(problem, random_state(g10("jensen-shannon"), 2)["posterior"])
    np.testing.assert_allclose(mechanism, 1.0 / 11)
    assert (gap == 0.0).all()


@pytest.mark.grid(every=3)
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=pytest.mark.slow if one == "mutual-information" else ()) for one in PAPER]
)
def test_admm_with_the_right_sign_reaches_the_joint_optimum(name: str) -> None:
    problem = g10(name, 0.6)
    state = random_state(problem, 2, passes=0)
    parts = (problem.p_y, problem.p_s_given_y, problem.beta, problem.divergence)
    exact, _ = interior.maximise(problem, state["posterior"])
    best = measures.surrogate(exact, state["posterior"], *parts)
    reached = np.full(2, np.inf)
    for count in range(8000):  # -log t needs 3,000 passes and more, the others 1,000
        state.update(closed_form.one_pass(problem, state, RHO))
        if count % 500 == 499:
            reached = measures.surrogate(state["mechanism"], state["posterior"], *parts)
            if np.abs(best - reached).max() <= 1e-6:
                break
    assert np.abs(best - reached).max() <= 1e-6


def test_the_inverse_of_the_hessian_is_one_however_thin_the_barrier() -> None:
    problem = g10("jensen-shannon", 0.5)
    mechanism, p_y = random_state(problem)["mechanism"], problem.p_y
    h = np.random.default_rng(0).uniform(0.1, 2.0, mechanism.shape)
    right = np.random.default_rng(1).normal(size=mechanism.shape)
    for thin in (1.0, 1e-6):
        found = inverse(mechanism, p_y, h, thin * np.ones_like(h))
        for u in range(problem.size_u):
            project = np.eye(10) - np.outer(mechanism[0, :, u] / (p_y @ mechanism[0, :, u]), p_y)
            matrix = project.T @ np.diag(h[0, :, u]) @ project + thin * np.eye(10)
            back = matrix @ found.times(right)[0, :, u]
            np.testing.assert_allclose(back, right[0, :, u], atol=1e-14 / thin)


@pytest.mark.parametrize("name", SMOOTH)
def test_slopes_are_the_derivatives_of_the_surrogate(name: str) -> None:
    problem = g10(name, 0.5, 1e-3)
    state = random_state(problem)
    mechanism, posterior = state["mechanism"], state["posterior"]
    parts = (problem.p_y, problem.p_s_given_y, problem.beta, problem.divergence)
    s = kkt.slopes(problem, mechanism, posterior)[0]
    for y, u in ((0, 0), (3, 5), (9, 10)):
        up, down = mechanism.copy(), mechanism.copy()
        step = 1e-4 * mechanism[0, y, u]
        up[0, y, u] += step
        down[0, y, u] -= step
        rise = measures.surrogate(up, posterior, *parts) - measures.surrogate(down, posterior, *parts)
        # Central differences: the error is the square of the relative step, and rounding over it.
        assert rise[0] / (2.0 * step * problem.p_y[y]) == pytest.approx(s[y, u], rel=1e-5, abs=1e-6)


@pytest.mark.grid(every=5)
@pytest.mark.parametrize("name", [*SMOOTH, *KINKED])
@pytest.mark.parametrize("floor", [0.0, 1e-3])
def test_no_mechanism_is_above_the_certified_bound(name: str, floor: float) -> None:
    problem = g10(name, 0.3, floor)
    state = random_state(problem, 3)
    posterior = state["posterior"]
    parts = (problem.p_y, problem.p_s_given_y, problem.beta, problem.divergence)
    value = measures.surrogate(state["mechanism"], posterior, *parts)
    gap = kkt.joint_gap(problem, state["mechanism"], posterior)
    block = joint(problem)
    for start in range(3):
        _, found = block.solve(single(state, start))
        assert found.objective <= value[start] + gap[start] + 1e-12


@pytest.mark.parametrize("name", KINKED)
def test_tangents_at_kinks_certify_a_solvers_joint_optimum(name: str) -> None:
    for floor in (0.0, 1e-3):
        problem = g10(name, 0.3, floor)
        view = single(random_state(problem), 0)
        written, _ = joint(problem).solve(view)
        assert kkt.joint_gap(problem, written["mechanism"][None], view["posterior"][None]) <= 1e-8


@pytest.mark.parametrize("name", ["mutual-information", "le-cam", "hellinger"])
def test_symbols_that_are_never_sent_are_certified_too(name: str) -> None:
    problem = g10(name, 1.0)
    posterior = random_state(problem)["posterior"]
    mechanism, _ = interior.maximise(problem, posterior)
    mechanism[..., problem.p_y @ mechanism[0] < 1e-9] = 0.0
    mechanism /= mechanism.sum(axis=-1, keepdims=True)
    assert (mechanism.sum(axis=-2) == 0.0).any()
    assert kkt.joint_gap(problem, mechanism, posterior) <= 1e-7  # a thousandth part in a million was cut off
    assert kkt.residuals(problem, mechanism).unused[0] == (mechanism.sum(axis=-2) == 0.0).sum()


def test_the_trivial_mechanism_is_stationary_and_a_perturbed_one_is_not() -> None:
    problem = g10("jensen-shannon", 0.5)
    trivial = np.full((10, 11), 1.0 / 11)
    assert kkt.residuals(problem, trivial).largest[0] <= 1e-15
    perturbed = random_state(problem, passes=0)["mechanism"]
    assert kkt.residuals(problem, perturbed).largest[0] > 1e-3


def test_an_empty_cell_is_not_stationary_where_its_slope_is_infinite() -> None:
    problem = g10("mutual-information", 0.3, size_u=2)
    mechanism = np.full((10, 2), 0.5)
    mechanism[0] = [1.0, 0.0]
    assert kkt.residuals(problem, mechanism).stationarity[0] >= 0.4


def test_the_concave_convex_procedure_climbs() -> None:
    problem = g10("hellinger", 0.3)
    state, last = random_state(problem, 4), np.full(4, -np.inf)
    block, posterior = joint(problem), blocks.accuracy_block(problem)
    assert block.direct is not None
    assert posterior.direct is not None
    for _ in range(10):
        state.update(posterior.direct(state))
        state.update(block.direct(state))
        value = problem.objective(state["mechanism"])
        assert (value >= last - 1e-8).all()  # the joint update is certified to 1e-8
        last = value


def test_a_constraint_on_rows_reaches_the_row_block_and_what_is_known_with_it() -> None:
    problem = g10("jensen-shannon", 0.3)
    view = single(random_state(problem), 0)

    def cap(mechanism: cp.Expression, known: object) -> cp.Constraint:
        assert known.prior.shape == (10,)  # type: ignore[attr-defined]
        return mechanism <= 0.2

    for build in (lambda: blocks.row(problem, 2, RHO, whole=True), lambda: joint(problem)):
        written, _ = build().constrain("cap", cap).solve(view)
        assert written["mechanism"][2].max() <= 0.2 + 1e-6  # solvers are feasible to their own tolerance


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"beta": 0.0}, "beta=0.0 is not positive"),
        ({"beta": float("nan")}, "not a finite number"),
        ({"beta": "much"}, "not a finite number"),
        ({"size_u": 0}, "size_u=0"),
        ({"size_u": 2.5}, "size_u=2.5"),
        ({"floor": 0.2, "size_u": 6}, "floor=0.2"),
        ({"floor": -1e-3}, "floor=-0.001"),
        ({"divergence": "renyi"}, "renyi"),
        ({"divergence": cpv.FDivergence("bad", f=lambda t: np.log(t - 1.0))}, "bad"),
        ({"divergence": cpv.FDivergence("scalar", f=lambda t: np.array(1.0))}, "element by element"),
    ],
)
def test_what_makes_no_problem_is_refused_with_its_name(change: dict[str, object], part: str) -> None:
    with pytest.raises(ModelError, match=part):
        Problem.of(**{"p_sy": np.full((2, 5), 0.1), "beta": 0.5, **change})  # type: ignore[arg-type]


def test_a_table_that_is_none_is_refused() -> None:
    with pytest.raises(DataError):
        Problem.of([[0.5, 0.6]], 0.5)


def test_size_u_is_one_more_than_y_by_default() -> None:
    assert Problem.of(np.full((2, 5), 0.1), 0.5).size_u == 6
