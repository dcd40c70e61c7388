"""The blocks of ADMM sharing: exact updates, cone programs and plain linear algebra give the same step."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from cvxpriv_models.admm_sharing import algorithm
from cvxpriv_models.admm_sharing.blocks import MOST_PARAMETERS, centre
from cvxpriv_models.admm_sharing.factor import Factor, weighted_gram
from cvxpriv_models.admm_sharing.problem import Problem
from cvxpriv_models.admm_sharing.schemes import SCHEMES, scheme_named
from scipy import sparse

from cvxpriv.blocks.engines import DCP
from cvxpriv.certify.check import CLOSED_FORM, case_of_block, crosscheck
from cvxpriv.numerics.arrays import Array, single
from cvxpriv.penalties import LOSSES, Loss
from tests.models.solver_gaps import best_gap

from .sharing_cases import EVERY, columns, factors_of, small, some_passes, split

CONVEX = [name for name, loss in LOSSES.items() if loss.convex]
PROXIMAL = ("l1", "elastic-net:1:0.3", "nonneg", "box:-0.2:0.3")


def agree(problem: Problem, scheme: str, block: str, *, direct: bool = False) -> None:
    """The exact update and CLARABEL reach one objective, and the exact residual of the former vanishes."""
    blocks = algorithm.blocks(problem, scheme_named(scheme, direct=direct), factors_of(problem))
    view = single(some_passes(problem, scheme), 0)
    report = crosscheck([case_of_block(blocks[block], view)], ["CLARABEL"])
    assert report.verdicts[CLOSED_FORM].verdict == "agrees"
    # What the toolkit promises of a solver's objective; the closed form is right to rounding.
    assert best_gap(report)[block] <= 1e-7
    direct = blocks[block].direct
    assert direct is not None
    written = direct({name: value[None] for name, value in view.items()})
    after = {**view, **single(written, 0)}
    assert blocks[block].residual(after, view).largest <= 1e-9  # relative to slopes of a few hundred, rounding


@pytest.mark.grid(every=3)
@pytest.mark.parametrize("scheme", EVERY)
@pytest.mark.parametrize("block", ["x/0", "x/1", "z"])
def test_exact_updates_are_the_cone_programs_answers_in_every_scheme(scheme: str, block: str) -> None:
    agree(small(), scheme, block)


@pytest.mark.parametrize("loss", CONVEX)
def test_the_centre_step_is_the_cone_programs_answer_for_every_convex_loss(loss: str) -> None:
    agree(small(loss), "averaged", "z")


@pytest.mark.parametrize("penalty", PROXIMAL)
def test_the_linearised_party_step_is_the_cone_programs_answer(penalty: str) -> None:
    agree(small("squared", penalty), "proximal_jacobi", "x/1")


@pytest.mark.parametrize("scheme", ["averaged", "gauss_seidel"])
def test_a_direct_step_of_the_other_schemes_is_the_cone_programs_answer(scheme: str) -> None:
    agree(small("squared", "l1"), scheme, "x/1", direct=True)


def test_a_party_with_neither_a_square_nor_a_proximal_scheme_has_only_its_cone_program() -> None:
    problem = small("squared", "l1")
    blocks = algorithm.blocks(problem, SCHEMES["averaged"], factors_of(problem))
    assert blocks["x/0"].direct is None
    view = single(some_passes(problem, "averaged"), 0)
    after = blocks["x/0"].solve(view)[0]
    # CLARABEL's x is right to about the square root of its gap of 1e-12.
    assert blocks["x/0"].residual({**view, **after}, view).largest <= 1e-5


def test_a_users_loss_gets_an_exact_step_and_its_cone_program() -> None:
    expectile = Loss(
        "expectile",
        phi=lambda t: np.where(t > 0.0, 0.8, 0.2) * t**2,
        derivative=lambda t: 2.0 * np.where(t > 0.0, 0.8, 0.2) * t,
        second=lambda t: 2.0 * np.where(t > 0.0, 0.8, 0.2),
        expression=lambda t: 0.8 * cp.square(cp.pos(t)) + 0.2 * cp.square(cp.neg(t)),
        margin=False,
        smoothness=1.6,
        slope=float("inf"),
    )
    x, y = columns(60, 6)
    agree(Problem.of(split(x, 2), y, expectile), "averaged", "z")


def test_weights_count_a_sample_as_often_as_they_say() -> None:
    x, y = columns(40, 4)
    weights = np.where(np.arange(40) < 10, 3.0, 1.0)
    again = np.concatenate([np.arange(40), np.repeat(np.arange(10), 2)])
    weighted = Problem.of(split(x, 2), y, weights=weights)
    repeated = Problem.of(split(x[again], 2), y[again])
    point = [np.array([0.3, -0.2]), np.array([0.1, 0.5])]
    assert weighted.objective(point) == pytest.approx(repeated.objective(point), rel=1e-14)


def test_a_large_centre_block_holds_numbers_and_gives_the_same_answer() -> None:
    x, y = columns(MOST_PARAMETERS + 1, 4)
    problem = Problem.of(split(x, 2), y)
    state = some_passes(problem, "averaged")
    block = centre(problem, SCHEMES["averaged"])
    assert block.parameters(single(state, 0)) == {}
    assert block.direct is not None
    solved = DCP(("CLARABEL",)).solve(block, state).values["z"]
    # CLARABEL's minimiser is known to about the square root of its gap, 1e-9 of the objective.
    np.testing.assert_allclose(solved, block.direct(state)["z"], atol=1e-4)


class TestFactor:
    """One linear system, on the smaller side."""

    @staticmethod
    def least(part: Array, u: Array, rho: float, ridge: float, tau: float, anchor: Array) -> Array:
        system = (ridge + tau) * np.eye(part.shape[1]) + rho * part.T @ part
        return np.linalg.lstsq(system, part.T @ u + tau * anchor, rcond=1e-12)[0]

    @pytest.mark.parametrize("shape", [(30, 5), (5, 30), (8, 8)])
    @pytest.mark.parametrize(("ridge", "tau"), [(0.7, 0.0), (0.0, 2.0), (0.3, 2.0)])
    def test_tall_and_wide_sparse_and_dense_solve_the_same_system(
        self, shape: tuple[int, int], ridge: float, tau: float
    ) -> None:
        rng = np.random.default_rng(0)
        part = rng.normal(size=shape) * (rng.random(shape) < 0.5)
        u, anchor = rng.normal(size=shape[0]), rng.normal(size=shape[1])
        expected = self.least(part, u, 1.3, ridge, tau, anchor)
        for stored in (part, sparse.csr_array(part)):
            found = Factor(stored).minimiser(u, 1.3, ridge, tau, anchor)
            np.testing.assert_allclose(found, expected, atol=1e-11)  # conditions of a hundred

    @pytest.mark.parametrize("shape", [(30, 6), (5, 30)])
    def test_without_a_ridge_dependent_columns_get_the_answer_of_least_norm(self, shape: tuple[int, int]) -> None:
        rng = np.random.default_rng(1)
        part = rng.normal(size=shape)
        part[:, 1] = part[:, 0]
        u = rng.normal(size=shape[0])
        found = Factor(part).minimiser(u, 0.5, 0.0)
        # The least of (1/4)||Dx||^2 - u'Dx: D x is twice the projection of u on the range of D.
        np.testing.assert_allclose(found, 2.0 * np.linalg.pinv(part) @ u, atol=1e-11)
        assert Factor(part).rank == np.linalg.matrix_rank(part)

    def test_the_root_stands_for_the_columns(self) -> None:
        rng = np.random.default_rng(2)
        for shape in ((30, 5), (5, 30)):
            factor = Factor(rng.normal(size=shape))
            np.testing.assert_allclose(factor.root.T @ factor.root, factor.part.T @ factor.part, atol=1e-12)
            assert factor.root.shape[0] == min(shape)

    def test_the_largest_and_least_eigenvalues_are_squared_singular_values(self) -> None:
        part = np.random.default_rng(3).normal(size=(20, 4))
        values = np.linalg.svd(part, compute_uv=False) ** 2
        assert Factor(part).largest == pytest.approx(values[0], rel=1e-12)
        assert Factor(part).smallest == pytest.approx(values[-1], rel=1e-12)
        assert Factor(part.T).smallest == 0.0

    @pytest.mark.parametrize(("samples", "columns", "each"), [(3000, 50, 3), (3000, 50, 10), (200, 150, 2)])
    @pytest.mark.parametrize("ones", [True, False])
    def test_the_gram_matrix_of_sparse_columns_is_that_of_dense_ones_by_pairs_by_pieces_and_by_a_product(
        self, samples: int, columns: int, each: int, ones: bool
    ) -> None:
        rng = np.random.default_rng(4)
        part = (rng.random((samples, columns)) < each / columns) * (1.0 if ones else rng.normal(size=columns))
        weights = rng.uniform(0.1, 2.0, size=samples)
        for given in (None, weights):
            expected = part.T @ (part if given is None else given[:, None] * part)
            found = weighted_gram(sparse.csr_array(part), given)
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-11)  # sums of thousands of terms

    @pytest.mark.parametrize("shape", [(60, 5), (12, 30)])
    @pytest.mark.parametrize("shift", [0.0, 0.4])
    @pytest.mark.parametrize("each", [True, False])
    def test_the_length_of_a_step_is_that_of_its_squares(
        self, shape: tuple[int, int], shift: float, each: bool
    ) -> None:
        rng = np.random.default_rng(6)
        part, x = rng.normal(size=shape), rng.normal(size=shape[1])
        rho = rng.uniform(0.5, 2.0, size=shape[0]) if each else np.array(0.7)
        expected = shift * x @ x + np.sum(rho * (part @ x) ** 2)
        found = Factor(part).stretched(x, rho, shift)
        assert found @ found == pytest.approx(expected, rel=1e-12)
