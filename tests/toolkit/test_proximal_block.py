"""The proximal block: DCP in the convex regime, two pieces beyond it, and the same answers as the closed form."""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import pytest

from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array, Values, single
from cvxpriv.penalties import L1, L2, MCP, SCAD, Box, CappedL1, ElasticNet, GroupLasso, Penalty, Within
from cvxpriv.penalties.contract import Form
from cvxpriv.penalties.proximal import CONVEX, PIECES, proximal_block, regime

EVERY = [
    MCP(1.0, 3.0),
    MCP(0.3, 1.5),
    SCAD(1.0, 3.7),
    SCAD(0.4, 2.2),
    CappedL1(1.0, 0.8),
    L1(0.7),
    L2(0.4),
    ElasticNet(0.6, 0.3),
    MCP(0.0, 3.0),
    SCAD(0.0, 3.0),
    CappedL1(0.0, 1.0),
    Box(-0.5, 1.0),
    Within(L1(0.7), Box()),
    GroupLasso([[0, 1], [2, 3, 4]]),
]
STEPS = (0.05, 1.0, 1.2, 1.5, 2.7, 3.5, 8.0)


def view(step: float, size: int = 24, seed: int = 0) -> dict[str, Array]:
    return {"center": 3.0 * np.random.default_rng(seed).normal(size=size), "step": np.asarray(step)}


def exact(penalty: Penalty, at: Values) -> dict[str, Array]:
    block = proximal_block(penalty, at["center"].size)
    assert block.direct is not None
    return {**at, **single(block.direct({name: value[None] for name, value in at.items()}), 0)}


@pytest.mark.grid(every=5)
@pytest.mark.parametrize("penalty", EVERY, ids=lambda one: one.name)
@pytest.mark.parametrize("step", STEPS)
def test_a_solver_finds_the_closed_form_in_every_regime(penalty: Penalty, step: float) -> None:
    at = view(step)
    block = proximal_block(penalty, 24)
    written, _ = block.solve(at)
    mine = exact(penalty, at)

    def height(t: Array) -> float:
        return float(0.5 * ((t - at["center"]) ** 2).sum() + step * penalty.value(t))

    # What CLARABEL's default gap leaves of a height of about 100.
    assert height(written["trial"]) == pytest.approx(height(mine["trial"]), abs=1e-8)
    # A minimiser is known to the square root of that.
    np.testing.assert_allclose(written["trial"], mine["trial"], atol=3e-5)
    np.testing.assert_array_equal(written["far"], mine["far"])


@pytest.mark.grid(every=5)
@pytest.mark.parametrize("penalty", EVERY, ids=lambda one: one.name)
@pytest.mark.parametrize("step", STEPS)
def test_the_closed_form_is_optimal_for_the_declared_problem(penalty: Penalty, step: float) -> None:
    at = view(step)
    assert proximal_block(penalty, 24).residual(exact(penalty, at), at).largest < 1e-12


@pytest.mark.parametrize("penalty", EVERY, ids=lambda one: one.name)
def test_every_form_is_dpp_and_compiled_once_for_all_steps(penalty: Penalty) -> None:
    block = proximal_block(penalty, 5)
    kinds = {regime(penalty, step) for step in STEPS}
    assert all(block.declaration(kind).problem.is_dcp(dpp=True) for kind in kinds)
    if 0.0 < penalty.weak_convexity < np.inf:
        assert kinds == {CONVEX, PIECES}


def test_the_history_entry_says_how_many_coordinates_took_the_far_piece() -> None:
    center = np.array([-9.0, 0.1, 4.9, 5.1])  # hard threshold: 1 * sqrt(8.333 * 3) = 5
    at = {"center": center, "step": np.asarray(25.0 / 3.0)}
    written, _ = proximal_block(MCP(1.0, 3.0), 4).solve(at)
    np.testing.assert_allclose(written["trial"], [-9.0, 0.0, 0.0, 5.1], atol=1e-6)  # solver's tolerance
    assert written["far"] == 2.0
    convex, _ = proximal_block(MCP(1.0, 3.0), 4).solve({**at, "step": np.asarray(1.0)})
    assert np.isnan(convex["far"])


def test_an_intercept_stays_at_its_centre() -> None:
    at = view(1.0, size=4)
    written, _ = proximal_block(L1(100.0), 3).solve(at)
    np.testing.assert_array_equal(written["trial"], [0.0, 0.0, 0.0, at["center"][3]])


@dataclass(frozen=True)
class Ridge:
    """A user's own penalty with the four parts of the contract and no more."""

    lam: float
    weak_convexity: float = 0.0

    def value(self, theta: Array) -> float:
        return float(0.5 * self.lam * theta @ theta)

    def prox(self, s: Array, step: float) -> Array:
        return np.asarray(s / (1.0 + step * self.lam))

    def residual(self, theta: Array, gradient: Array) -> Array:
        return np.abs(gradient + self.lam * theta)


def test_a_penalty_of_a_user_has_a_dcp_form_once_it_has_an_expression() -> None:
    class Declared(Ridge):
        def expression(self, x: cp.Expression) -> Form:
            return 0.5 * self.lam * cp.sum_squares(x), []

    at = view(2.0, size=3)
    with pytest.raises(ModelError, match="has no DCP form: solve with engine='closed_form'"):
        proximal_block(Ridge(1.0), 3).solve(at)  # type: ignore[arg-type]
    written, _ = proximal_block(Declared(1.0), 3).solve(at)  # type: ignore[arg-type]
    np.testing.assert_allclose(written["trial"], at["center"] / 3.0, atol=1e-6)  # solver's tolerance
