"""What RADMM's privacy analysis has loose, and what would break it."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from cvxpriv_models.recycled_admm.private_settings import COVER
from cvxpriv_models.recycled_admm.spending import objective_epsilon, printed_epsilon
from scipy.special import expit

from cvxpriv.models import RecycledADMM
from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties import loss_named
from cvxpriv.privacy import gaussian_delta

ONE = np.ones(1)


def test_the_curvature_part_of_32_is_loose_by_a_factor_near_2_8() -> None:
    # ERRATA RADMM 4: observed over printed is .356.
    tight = objective_epsilon(0.0 * ONE, 1000.0 * ONE, 1000.0, 20.0 * ONE, 0.25)[0]
    printed = printed_epsilon(0.0 * ONE, 1000.0 * ONE, 1000.0, 20.0 * ONE, 0.25)[0]
    assert tight / printed == pytest.approx(0.356, abs=0.002)


def test_one_newton_step_is_not_the_minimiser_and_its_loss_has_no_bound() -> None:
    # ERRATA RADMM 4: f = -(g + b) / h with g, h of the data at 0, so that ln p(f) = -alpha |h f + g| + ln h.
    loss, alpha, bend = loss_named("logistic"), 1.0, 0.5

    def log_density(f: Array, x: float, y: float) -> Array:
        zero, label = np.zeros(1), np.array([y])
        slope = float(loss.gradient(zero, label)[0]) * x
        curvature = float(loss.curvature(zero, label)[0]) * x**2 + bend
        return np.asarray(-alpha * np.abs(curvature * f + slope) + np.log(curvature))

    f = np.array([-100.0, 100.0])
    lost = np.abs(log_density(f, 1.0, 1.0) - log_density(f, 0.0, 1.0))
    bound = objective_epsilon(alpha * ONE, ONE, 1.0, bend * ONE, loss.smoothness)[0]
    assert lost.min() > 20.0 > bound


def test_gaussian_noise_in_the_objective_is_no_additive_gaussian_release() -> None:
    # MATH, Gaussian accounting: one record, bend .05, noise of scale 8, epsilon .5: delta is .035, not .0027.
    f = np.linspace(-2000.0, 2000.0, 400_001)

    def density(x: float) -> Array:
        slope = -x * expit(-x * f) + 0.05 * f
        curvature = x**2 * expit(x * f) * expit(-x * f) + 0.05
        return np.asarray(np.exp(-(slope**2) / 128.0) / np.sqrt(128.0 * np.pi) * curvature)

    assert density(1.0).sum() * (f[1] - f[0]) == pytest.approx(1.0, abs=1e-6)
    true = np.maximum(density(1.0) - np.exp(0.5) * density(0.0), 0.0).sum() * (f[1] - f[0])
    assert true == pytest.approx(0.035, abs=0.001)
    assert gaussian_delta(0.5, 2.0 / 8.0) == pytest.approx(0.0027, abs=5e-5)


def test_the_condition_on_the_first_penalty_is_not_needed() -> None:
    # Algorithm 3 asks for 2 c1 < B_i (rho/N + 2 eta V_i) / C. The bound here holds without, and is finite.
    x, y = np.array([[1.0], [0.5]]), np.array([1, -1])
    model = RecycledADMM(nx.path_graph(2), [(x, y), (x, y)], reg=0.02, C=2.0)
    run = model.solve_private(method="r-admm", alpha=0.1, eta=0.01, max_iter=3)
    convexity = 0.02 / 2.0 + 2.0 * 0.01
    assert convexity * 2.0 / 2.0 < 2.0 * 0.25  # the condition fails
    per_round = objective_epsilon(0.1 * ONE, 2.0 * ONE, 2.0, convexity * ONE, 0.25)[0]
    # What covers the inexact minimiser is a part of 2^-8.
    assert run.accounting.epsilon == pytest.approx(3.0 * per_round * (1.0 + COVER), rel=1e-9)
