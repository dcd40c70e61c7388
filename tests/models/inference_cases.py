"""Problems and states for the tests of inference as a service."""

from __future__ import annotations

import numpy as np
from cvxpriv_models.inference_service import closed_form, measures
from cvxpriv_models.inference_service.problem import Problem

from cvxpriv.divergences import FDivergence
from cvxpriv.numerics.arrays import Array

#: The paper's four f, and the other built-in ones with a derivative everywhere.
PAPER = ("mutual-information", "jensen-shannon", "le-cam", "hellinger")
SMOOTH = (*PAPER, "reverse-kl", "chi-square", "neyman", "alpha:0.5", "alpha:2", "alpha:-1")
KINKED = ("total-variation", "hockey-stick:1.5")


def g10(divergence: str | FDivergence, beta: float = 0.5, floor: float = 0.0, size_u: int = 11) -> Problem:
    """Case G10: P_S uniform on 3, |Y| = 10, three bell-shaped rows of P_{Y|S}."""
    y = np.arange(10.0)
    rows = np.stack([np.exp(-((y - centre) ** 2) / (2.0 * 1.5**2)) for centre in (2.0, 4.5, 7.0)])
    return Problem.of(rows / rows.sum(axis=1, keepdims=True) / 3.0, beta, divergence, size_u, floor)


def random_mechanisms(problem: Problem, starts: int, seed: int = 0) -> Array:
    """Rows uniform at random, at least the floor."""
    rows = np.random.default_rng(seed).uniform(size=(starts, problem.p_y.size, problem.size_u))
    rows /= rows.sum(axis=-1, keepdims=True)
    return np.asarray(problem.floor + (1.0 - problem.size_u * problem.floor) * rows)


def random_state(
    problem: Problem, starts: int = 1, seed: int = 0, passes: int = 3, rho: float = 1.0
) -> dict[str, Array]:
    """A state some ADMM passes away from random mechanisms: no block is at its own optimum, none is degenerate."""
    mechanism = random_mechanisms(problem, starts, seed)
    state: dict[str, Array] = {
        "mechanism": mechanism,
        "q": problem.p_y @ mechanism,
        "lam": np.zeros((starts, problem.size_u)),
        "posterior": closed_form.posterior(mechanism, problem.p_y, problem.p_s_given_y),
    }
    for _ in range(passes):
        state.update(closed_form.one_pass(problem, state, rho))
    return state


def augmented(
    mechanism: Array,
    q: Array,
    lam: Array,
    posterior: Array,
    rho: float,
    p_y: Array,
    p_s_given_y: Array,
    beta: float,
    divergence: FDivergence,
) -> Array:
    """L of IAS (16): F + sum_u lam delta - (rho/2) sum_u delta^2, delta = q - p(u), (...)."""
    delta = q - p_y @ mechanism
    return np.asarray(
        measures.information(p_y, p_s_given_y)
        - measures._expected_cost(mechanism, posterior, p_y, p_s_given_y)
        - beta * measures.leakage(mechanism, p_y, divergence, q)
        + np.vecdot(lam, delta)
        - 0.5 * rho * np.vecdot(delta, delta)
    )
