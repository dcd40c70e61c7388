"""The funnel's blocks: what the solvers find is what the exact updates say."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from cvxpriv_models.privacy_funnel import closed_form
from cvxpriv_models.privacy_funnel.blocks import blocks
from cvxpriv_models.privacy_funnel.model import PrivacyFunnel
from cvxpriv_models.privacy_funnel.problem import RESOLUTION, Cells, Problem
from cvxpriv_models.privacy_funnel.starts import feasible_starts

from cvxpriv import datasets
from cvxpriv.blocks.block import Block
from cvxpriv.blocks.engines import DCP, ClosedForm
from cvxpriv.certify.check import CLOSED_FORM, case_of_block, crosscheck
from cvxpriv.numerics.arrays import Array, single
from tests.models.solver_gaps import best_gap

CLOSED = ("q", "u", "r", "w")
SOLVERS = ("CLARABEL", "ECOS")


def random_problem(seed: int, shape: tuple[int, int] = (3, 4), rate: float = 0.5) -> Problem:
    rng = np.random.default_rng(seed)
    return Problem.of(rng.dirichlet(np.ones(shape[0] * shape[1])).reshape(shape), rate, "fraction", shape[1] + 1)


def random_state(problem: Problem, seed: int, passes: int = 3, starts: int = 1) -> dict[str, Array]:
    """A state some passes away from a random start: no block is at its own optimum, none is degenerate."""
    log_u = feasible_starts(problem.p_x, problem.rate, problem.size_y, starts, seed)
    state = closed_form.complete(log_u, problem.p_s_given_x)
    for _ in range(passes):
        state = closed_form.iteration(state, problem.p_x, problem.p_s_given_x, problem.target)
    return state


@pytest.mark.grid(every=3)
@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize("seed", [0, *(pytest.param(one, marks=pytest.mark.slow) for one in (1, 2))])
def test_the_best_solver_agrees_with_the_exact_update_at_random_states(name: str, seed: int) -> None:
    problem = random_problem(seed)
    view = single(random_state(problem, seed), 0)
    report = crosscheck([case_of_block(blocks(problem)[name], view)], SOLVERS)
    assert best_gap(report)[name] <= 1e-7  # what the toolkit promises of the best solver
    assert report.verdicts[CLOSED_FORM].verdict == "agrees"
    assert report.verdicts["CLARABEL"].verdict in ("agrees", "loose")


@pytest.mark.parametrize("name", ["(u, r)", "(q, u, r)"])
def test_solvers_agree_with_each_other_on_the_blocks_without_an_exact_update(name: str) -> None:
    problem = random_problem(1)
    view = single(random_state(problem, 1), 0)
    table = crosscheck([case_of_block(blocks(problem)[name], view)], SOLVERS).table
    assert table["gap"].max() <= 1e-7
    assert set(table["verdict"]) <= {"agrees", "loose"}


def test_u_and_r_together_reach_the_limit_of_alternating_them() -> None:
    problem = random_problem(2)
    state = random_state(problem, 2)
    together = DCP(SOLVERS).solve(blocks(problem)["(u, r)"], state)
    apart = {**state, "lam": state["lam"].copy()}
    for _ in range(3000):
        log_u, lam = closed_form.mechanism(
            apart["phi"], apart["log_r"], apart["log_w"], problem.p_x, problem.target, apart["lam"]
        )
        apart = {**apart, "log_u": log_u, "lam": lam, "log_r": closed_form.marginal(log_u)}
    block = blocks(problem)["(u, r)"]
    limit = block.objective(single(apart, 0), single(state, 0))
    assert together.objective[0] == pytest.approx(limit, abs=1e-7)


def test_a_convex_concave_step_lowers_the_leakage_at_least_as_far_as_a_pass_of_aem() -> None:
    problem = random_problem(3)
    state = random_state(problem, 3)
    block = blocks(problem)["(q, u, r)"]
    step = DCP(SOLVERS).solve(block, state)
    plain = closed_form.iteration(state, problem.p_x, problem.p_s_given_x, problem.target)
    view = single(state, 0)
    assert step.objective[0] <= block.objective({**view, **single(plain, 0)}, view) + 1e-9
    assert step.objective[0] <= block.objective(view, view) + 1e-9


def test_the_convex_concave_block_keeps_every_cell_positive_although_its_objective_does_not_ask() -> None:
    # Its domain is S u >= 0, which negative cells can satisfy: without the explicit bound solvers return them.
    problem = Problem.of(datasets.heart_failure(), 0.6, "fraction", None)
    view = single(random_state(problem, 0, passes=50), 0)
    block = blocks(problem)["(q, u, r)"]
    declaration = block.place(view, view)
    assert "u_ij >= 0" in declaration.constraints
    _, solution = block.solve(view, solver=("CLARABEL",))
    assert solution.values["u"].min() >= 0.0
    without = [constraint for name, constraint in declaration.constraints.items() if name != "u_ij >= 0"]
    cp.Problem(declaration.objective, without).solve(solver="CLARABEL")
    assert float(declaration.variables["u"].value.min()) < -1e-4


def test_a_symbol_that_hardly_occurs_keeps_a_cell_in_the_convex_concave_block() -> None:
    table = np.array([[1.0, 6e-28], [1e-6, 7e-14]])
    funnel = PrivacyFunnel(table / table.sum(), rate=0.9)
    log_u = closed_form.log_joint(funnel.problem.p_x, np.eye(2, 3))
    assert funnel.blocks()["(q, u, r)"].structure({"log_u": log_u}).mask.any(axis=1).all()


def test_the_printed_u_block_breaks_real_solvers_and_the_pruned_one_does_not() -> None:
    problem = Problem.of(datasets.heart_failure(), 0.6, "fraction", None)
    view = single(random_state(problem, 0, passes=400), 0)
    weights = np.exp(view["phi"] + view["log_r"] - (view["phi"] + view["log_r"]).max(axis=1, keepdims=True))
    prior = problem.p_x[:, None] * weights / weights.sum(axis=1, keepdims=True)
    exact, _ = closed_form.mechanism(
        *(view[name][None] for name in ("phi", "log_r", "log_w")), problem.p_x, problem.target, view["lam"][None]
    )
    u = cp.Variable(prior.shape)
    rows = cp.sum(u, axis=1) == problem.p_x
    rate = cp.sum(cp.multiply(view["log_w"], u)) >= problem.target
    printed = cp.Problem(cp.Minimize(cp.sum(-cp.entr(u) - cp.multiply(np.log(prior), u))), [rows, rate])
    best = float((np.exp(exact[0]) * (exact[0] - np.log(prior))).sum())
    failures = [name for name in SOLVERS if not _solved(printed, name, best)]
    assert failures  # at least one of the two breaks on the printed form
    _, solution = blocks(problem)["u"].solve(view, solver=SOLVERS)
    assert solution.objective == pytest.approx(best, abs=5e-7)


def _solved(problem: cp.Problem, solver: str, best: float) -> bool:
    try:
        problem.solve(solver=solver)
    except cp.error.SolverError:
        return False
    return problem.status == "optimal" and abs(problem.value - best) <= 5e-7


@pytest.mark.parametrize("name", CLOSED)
def test_an_exact_update_of_many_starts_is_that_of_each(name: str) -> None:
    problem = random_problem(4)
    state = random_state(problem, 4, starts=5)
    block = blocks(problem)[name]
    together = ClosedForm().solve(block, state).values
    for start in range(5):
        alone = ClosedForm().solve(block, {key: value[[start]] for key, value in state.items()}).values
        for key in block.writes:
            assert np.array_equal(together[key][start], alone[key][0])


def test_one_fused_pass_is_the_four_blocks_one_after_the_other() -> None:
    problem = random_problem(5)
    state = random_state(problem, 5, starts=4)
    fused = closed_form.iteration(dict(state), problem.p_x, problem.p_s_given_x, problem.target)
    steps = dict(state)
    for name in ("u", "r", "w", "q"):
        steps |= ClosedForm().solve(blocks(problem)[name], steps).values
    for key in ("log_u", "phi", "log_r", "log_w", "lam"):
        assert steps[key] == pytest.approx(fused[key], abs=1e-12)


class TestCells:
    """The cells that a solver sees."""

    MASK = Cells(np.array([[True, False, True], [True, False, False]]))

    def test_they_sum_by_rows_and_by_the_columns_that_have_one(self) -> None:
        vector = np.array([1.0, 2.0, 4.0])
        assert (self.MASK.sums(1) @ vector).tolist() == [3.0, 4.0]
        assert (self.MASK.sums(0) @ vector).tolist() == [5.0, 2.0]
        assert self.MASK.columns.tolist() == [0, 2]

    def test_they_are_scaled_to_given_sums_and_never_below_zero(self) -> None:
        scaled = self.MASK.normalised(np.array([1.0, 3.0, -2.0]), axis=1, to=np.array([0.4, 0.6]))
        assert scaled == pytest.approx([0.1, 0.3, 0.6])

    def test_the_expression_is_the_table_with_each_row_scaled(self) -> None:
        table = self.MASK.expression(cp.Constant([1.0, 2.0, 4.0]), scale=np.array([1.0, 0.5]))
        assert table.value.tolist() == [[1.0, 0.0, 2.0], [2.0, 0.0, 0.0]]

    def test_equal_masks_are_one_structure(self) -> None:
        assert Cells(self.MASK.mask.copy()) == self.MASK
        assert hash(Cells(self.MASK.mask.copy())) == hash(self.MASK)
        assert Cells(~self.MASK.mask) != self.MASK


def test_no_number_below_the_resolution_reaches_a_solver() -> None:
    problem = Problem.of(datasets.heart_failure(), 0.6, "fraction", None)
    view = single(random_state(problem, 0, passes=300), 0)
    for name in CLOSED:
        block: Block = blocks(problem)[name]
        for parameter, value in block.parameters(view).items():
            if parameter in ("A", "weight"):
                assert value.min() >= 0.9 * RESOLUTION * problem.p_x.min(), (name, parameter)
