"""Divergences that a user brings as one line of text, in blocks and in whole runs that solvers check."""

from __future__ import annotations

import numpy as np
import pytest
from cvxpriv_models.inference_service import closed_form
from cvxpriv_models.inference_service.joint import joint
from cvxpriv_models.inference_service.problem import lifted_rows
from cvxpriv_models.inference_service.starts import trial_posteriors

from cvxpriv.divergences import FDivergence
from cvxpriv.models import InferenceAsService
from cvxpriv.numerics.arrays import single
from cvxpriv.numerics.simplex import simplex_grid

from .inference_cases import KINKED, PAPER, SMOOTH, g10, random_state

#: The second has a DCP form of its own, the third runs on adaptive tangents.
TEXTS = ("1 - sqrt(t)", "(t-1)**2/(t+2)", "exp(-t) - exp(-1)")

#: Every registered f, and three more texts: strictly convex, with f'' infinite at 1, without a second derivative there.
EVERY = (
    *SMOOTH,
    *KINKED,
    *TEXTS,
    "alpha:-2",
    "alpha:3",
    "(sqrt(t)-1)**4 + (t-1)**2",
    "abs(t-1)**1.5",
    "max(t-1, 0)**2",
)


def test_a_text_and_the_built_in_f_agree_where_cells_are_empty() -> None:
    # (t-1)^2/(t+1) is twice Le Cam's f. f''(t)/x of an empty cell is huge unless t and x are bounded together: Newton
    # then stands still and looks as if it had converged.
    built_in, own = g10("le-cam", 0.6), g10(FDivergence.parse("(t-1)**2/(t+1)"), 0.3)
    state = random_state(built_in, 2)
    empty = np.where(np.eye(10, 11, dtype=bool), 0.0, state["mechanism"])
    state["mechanism"] = empty / empty.sum(axis=-1, keepdims=True)
    state["q"] = 1.3 * state["q"]
    expected = closed_form.marginal(built_in, state, 1.0)
    # 1e-12: the same equation, Newton to rounding.
    assert closed_form.marginal(own, state, 1.0) == pytest.approx(expected, abs=1e-12)
    assert closed_form.row(own, 3, state, 1.0) == pytest.approx(closed_form.row(built_in, 3, state, 1.0), abs=1e-12)


def test_lifted_rows_are_rows_above_the_floor_and_empty_only_with_their_symbol() -> None:
    rows = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0 - 1e-12, 1e-12, 0.0]])
    q = np.array([0.5, 0.5, 5e-13, 0.0])
    lifted = lifted_rows(rows, q, 0.0)
    assert lifted.sum(axis=1) == pytest.approx(np.ones(2), abs=1e-15)
    assert (lifted[:, :3] > 0.0).all()
    assert (lifted[:, 3] == 0.0).all()
    assert np.abs(lifted - rows).max() < 1e-9
    assert lifted_rows(np.full((1, 4), 0.25), np.full(4, 0.25), 0.25).min() == 0.25


def test_a_symbol_that_is_all_but_dead_gets_its_own_mass_and_not_the_rounding_of_a_difference() -> None:
    q = np.array([1.0, 1.5e-22])
    # 0.06 + (1.5e-22 - 0.06) would be 0, which is worth -inf where f(0) p -> inf.
    assert lifted_rows(np.array([[0.94, 0.06]]), q, 0.0)[0, 1] == pytest.approx(1.5e-22 / 0.94, rel=1e-9)


def test_the_grid_of_posteriors_is_inside_the_simplex_and_still_covers_it() -> None:
    trial = trial_posteriors(g10("jensen-shannon"))
    assert trial.min() > 1e-4  # so that no price KL(P(S|y) || P(S|u)) is infinite
    nearest = np.abs(trial[:, :, None] - simplex_grid(3, 4)[:, None, :]).max(axis=0).min(axis=0)
    assert nearest.max() < 0.05


@pytest.mark.parametrize("divergence", ["reverse-kl", "neyman", "chi-square"])
def test_a_solver_s_empty_cells_are_not_worth_minus_infinity(divergence: str) -> None:
    problem = g10(divergence, 0.3, size_u=30)
    state = random_state(g10("jensen-shannon", 0.3, size_u=30), 1)
    view = {"mechanism": state["mechanism"][0], "posterior": trial_posteriors(problem)[:, :30]}
    block = joint(problem)
    _, solution = block.solve(view)
    assert block.direct is not None
    exact = single(block.direct({name: value[None] for name, value in view.items()}), 0)
    # 1e-6: ten times what the `checked` engine allows, for f with vertical walls.
    assert solution.objective == pytest.approx(block.objective({**view, **exact}, view), abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("divergence", [*PAPER, *TEXTS])
def test_every_block_of_a_whole_run_on_g10_agrees_with_the_solvers(divergence: str) -> None:
    # The paper's domain: p(u|y) at least epsilon. A disagreement would raise.
    solved = InferenceAsService(g10("jensen-shannon").table, 0.3, divergence=divergence, size_u=11, floor=1e-3).solve(
        engine="checked"
    )
    compared = solved.history[(solved.history["engine"] == "checked") & (solved.history["solver"] != "")]
    assert compared["block"].nunique() >= 13  # joint, P(S|U), ten rows, P_U
    assert solved.objective > 0.05


@pytest.mark.slow
@pytest.mark.parametrize("floor", [0.0, 1e-3])
@pytest.mark.parametrize("divergence", EVERY)
def test_a_whole_run_agrees_with_the_solvers_whatever_f_is(divergence: str, floor: float) -> None:
    table = [[0.18, 0.12, 0.06, 0.03], [0.06, 0.12, 0.12, 0.31]]
    solved = InferenceAsService(table, 0.1, divergence=divergence, size_u=4, floor=floor).solve(
        engine="checked", max_iter=20
    )
    compared = solved.history[(solved.history["engine"] == "checked") & (solved.history["solver"] != "")]
    assert compared["block"].nunique() == 7  # joint, P(S|U), four rows, P_U: a disagreement would raise
    assert solved.objective >= -1e-12
