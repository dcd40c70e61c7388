"""Losses: derivatives, convexity, DCP forms and proximal steps, each against an independent route."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import sparse
from scipy.optimize import minimize_scalar
from scipy.special import expit

from cvxpriv.errors import ModelError
from cvxpriv.penalties import LOSSES, Loss, loss_named
from cvxpriv.penalties.loss_steps import logistic_root, monotone_root

CONVEX = [loss for loss in LOSSES.values() if loss.convex]
EVERY = list(LOSSES.values())


def samples(loss: Loss, count: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random(count) < 0.5, -1.0, 1.0) if loss.margin else rng.normal(size=count)
    return 3.0 * rng.normal(size=count), labels


@pytest.mark.parametrize("loss", EVERY, ids=lambda loss: loss.name)
def test_derivatives_are_those_of_the_value(loss: Loss) -> None:
    z, b = samples(loss)
    h = 1e-6
    slope = (loss.value(z + h, b) - loss.value(z - h, b)) / (2 * h)
    bend = (loss.gradient(z + h, b) - loss.gradient(z - h, b)) / (2 * h)
    # Central differences of step 1e-6 in doubles carry about 1e-9.
    np.testing.assert_allclose(loss.gradient(z, b), slope, atol=1e-7)
    np.testing.assert_allclose(loss.curvature(z, b), bend, atol=1e-7)


@pytest.mark.parametrize("loss", EVERY, ids=lambda loss: loss.name)
def test_the_stated_constants_bound_slope_and_curvature_and_are_reached(loss: Loss) -> None:
    t = np.linspace(-8.0, 8.0, 160_001)
    assert np.abs(loss.derivative(t)).max() <= loss.slope * (1 + 1e-12)
    assert np.abs(loss.second(t)).max() <= loss.smoothness * (1 + 1e-9)
    if np.isfinite(loss.smoothness):
        assert np.abs(loss.second(t)).max() == pytest.approx(loss.smoothness, rel=1e-6)


@pytest.mark.parametrize("loss", CONVEX, ids=lambda loss: loss.name)
def test_the_dcp_form_is_the_value(loss: Loss) -> None:
    z, b = samples(loss)
    held = cp.Constant(z)
    np.testing.assert_allclose(loss.of(held, b).value, loss.value(z, b), atol=1e-12)
    assert cp.Problem(cp.Minimize(cp.sum(loss.of(cp.Variable(200), b)))).is_dcp()


@pytest.mark.parametrize("loss", CONVEX, ids=lambda loss: loss.name)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_the_form_over_rows_is_the_loss_of_their_predictions(
    loss: Loss, form: Callable[[np.ndarray], np.ndarray | sparse.csr_array]
) -> None:
    _, b = samples(loss, 20)
    rows, f = np.random.default_rng(1).normal(size=(20, 3)), cp.Variable(3)
    expression = loss.of_rows(form(rows), f, b)
    f.value = np.array([0.5, -1.0, 2.0])
    np.testing.assert_allclose(expression.value, loss.value(rows @ f.value, b), atol=1e-12)


@pytest.mark.parametrize("loss", CONVEX, ids=lambda loss: loss.name)
@pytest.mark.parametrize("penalty", [0.01, 0.3, 5.0])
def test_the_proximal_step_is_stationary_to_rounding(loss: Loss, penalty: float) -> None:
    rng = np.random.default_rng(1)
    v, b = rng.uniform(-60, 60, 500), samples(loss, 500)[1]
    weight = rng.uniform(0.5, 2.0, 500)
    z = loss.prox(v, b, weight, penalty)
    low, high = loss.slopes(z, b, within=1e-9)
    pull = penalty * (v - z)
    outside = np.maximum(0.0, np.maximum(weight * low - pull, pull - weight * high))
    # z is right to the last bits, and the penalty times 60 scales them.
    assert outside.max() <= 1e-15 * (1.0 + 400.0 * penalty)


@pytest.mark.parametrize("loss", EVERY, ids=lambda loss: loss.name)
@given(v=st.floats(-30, 30), ratio=st.floats(0.2, 5.0), label=st.sampled_from([-1.0, 1.0]))
def test_no_point_of_a_grid_beats_the_proximal_step(loss: Loss, v: float, ratio: float, label: float) -> None:
    def energy(z: np.ndarray) -> np.ndarray:
        return loss.value(z, np.full_like(z, label)) + 0.5 * ratio * (z - v) ** 2

    z = loss.prox(np.array([v]), np.array([label]), 1.0, ratio)
    grid = np.concatenate([z + np.linspace(-1e-3, 1e-3, 201), np.linspace(v - 40, v + 40, 2001)])
    assert energy(z)[0] <= energy(grid).min() + 1e-9


def test_plain_newton_fails_where_the_bracketed_step_does_not() -> None:
    # ERRATA SHARING 2: at a penalty of .01 plain Newton from v is lost on about half of v in [-60, 60].
    loss, penalty = LOSSES["logistic"], 0.01
    v, b = np.linspace(-60, 60, 601), np.ones(601)
    z = v.copy()
    for _ in range(100):
        z = z - (loss.gradient(z, b) + penalty * (z - v)) / (loss.curvature(z, b) + penalty)
    lost = np.abs(loss.gradient(z, b) + penalty * (z - v)) > 1e-6
    assert 0.4 < lost.mean() < 0.6
    exact = loss.prox(v, b, 1.0, penalty)
    assert np.abs(loss.gradient(exact, b) + penalty * (exact - v)).max() < 1e-14


@pytest.mark.parametrize("ratio", [1e-4, 0.01, 0.3, 5.0, 1e3])
def test_the_fast_logistic_step_is_the_bracketed_root_from_any_guess(ratio: float) -> None:
    rng = np.random.default_rng(4)
    v = np.concatenate([rng.uniform(-60, 60, 500), rng.normal(size=500), [800.0, -800.0]])
    ratios = np.full_like(v, ratio)
    exact = monotone_root(lambda t: -expit(-t), lambda t: expit(t) * expit(-t), v, ratios, v)
    for guess in (v, exact, exact + 1e-3, np.full_like(v, 1e6), np.full_like(v, -1e6)):
        t = logistic_root(v, ratios, guess)
        # Roots of up to 1/ratio, or 800, in doubles.
        np.testing.assert_allclose(t, exact, rtol=1e-12, atol=1e-13)


def test_a_guess_changes_the_steps_and_not_the_answer() -> None:
    loss = LOSSES["logistic"]
    z, b = samples(loss)
    cold = loss.prox(z, b, 1.0, 0.3)
    np.testing.assert_allclose(loss.prox(z, b, 1.0, 0.3, start=cold + 0.1), cold, atol=1e-14)
    np.testing.assert_allclose(loss.prox(z, b, 1.0, 0.3, start=np.full_like(z, 1e9)), cold, atol=1e-14)
    for away in (1e-6, 0.1, 3.0, 50.0):  # with the slope at the guess, as an earlier step leaves it
        guess = cold + away
        slope = 0.7 * loss.gradient(guess, b)
        found = loss.prox(z, b, 0.7, 0.21, start=guess, slope=slope)
        np.testing.assert_allclose(found, cold, rtol=1e-14, atol=1e-14)


def test_a_users_loss_without_a_closed_step_gets_the_bracketed_one() -> None:
    cosh = Loss(
        "log-cosh",
        phi=lambda t: np.logaddexp(t, -t) - np.log(2.0),
        derivative=np.tanh,
        second=lambda t: 1.0 - np.tanh(t) ** 2,
        expression=None,
        margin=False,
        smoothness=1.0,
        slope=1.0,
    )
    z = cosh.prox(np.array([5.0]), np.array([1.0]), 2.0, 0.7)[0]
    brute = minimize_scalar(
        lambda t: 2.0 * (np.logaddexp(t - 1, 1 - t) - np.log(2.0)) + 0.35 * (t - 5.0) ** 2, options={"xtol": 1e-12}
    )
    assert z == pytest.approx(brute.x, abs=1e-7)


def test_a_loss_that_is_not_convex_has_no_dcp_form() -> None:
    with pytest.raises(ModelError, match="'sigmoid' is not convex"):
        LOSSES["sigmoid"].of(cp.Variable(2), np.ones(2))


@pytest.mark.parametrize(
    ("loss", "message"), [("logistc", "did you mean 'logistic'"), (3.0, "lacks phi, derivative, second")]
)
def test_a_loss_that_is_none_is_refused(loss: object, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        loss_named(loss)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_goes_to_another_process_and_comes_back(name: str) -> None:
    assert pickle.loads(pickle.dumps(LOSSES[name])) is copy.deepcopy(LOSSES[name]) is LOSSES[name]
    changes = {"phi": np.square, "derivative": np.abs, "second": np.abs, "expression": None, "proximal": None}
    own = dataclasses.replace(LOSSES["squared"], **changes)  # of the same name, and another one
    assert pickle.loads(pickle.dumps(own)).phi is np.square
