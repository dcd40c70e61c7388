"""Problems and states for the tests of ADMM sharing."""

from __future__ import annotations

import numpy as np
from cvxpriv_models.admm_sharing import algorithm, sensitivity
from cvxpriv_models.admm_sharing.factor import Factor
from cvxpriv_models.admm_sharing.problem import Problem
from cvxpriv_models.admm_sharing.schemes import SCHEMES, scheme_named
from sklearn.linear_model import LogisticRegression

from cvxpriv.blocks.engines import ClosedForm
from cvxpriv.numerics.arrays import Array
from cvxpriv.schedules.history import Context
from cvxpriv.schedules.running import run
from cvxpriv.schedules.steps import Sweep

CONVERGENT = ("averaged", "gauss_seidel", "proximal_jacobi")
EVERY = tuple(SCHEMES)


def columns(samples: int = 300, width: int = 12, seed: int = 0) -> tuple[Array, Array]:
    """Normal columns, and labels -1 and 1 of a noisy linear model."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(samples, width))
    return x, np.where(x @ rng.normal(size=width) + rng.normal(size=samples) > 0.0, 1.0, -1.0)


def split(x: Array, parties: int) -> list[Array]:
    """The columns dealt to parties in equal shares."""
    return [np.ascontiguousarray(part) for part in np.split(x, parties, axis=1)]


def pooled(x: Array, y: Array, loss: str, lam: float = 1.0) -> Array:
    """The optimum on all columns, lam/2 ||x||^2: by scikit-learn for the logistic loss, by one linear system else."""
    if loss == "logistic":
        model = LogisticRegression(C=1.0 / lam, fit_intercept=False, solver="newton-cholesky", tol=1e-12, max_iter=100)
        return np.asarray(model.fit(x, y).coef_.ravel())
    return np.linalg.solve(x.T @ x + lam * np.eye(x.shape[1]), x.T @ y)


def small(loss: str = "logistic", penalty: str = "l2", parties: int = 2, lam: float = 0.7) -> Problem:
    """Sixty samples of six columns."""
    x, y = columns(60, 6)
    return Problem.of(split(x, parties), y, loss, penalty, lam)


def factors_of(problem: Problem) -> tuple[Factor, ...]:
    return tuple(Factor(part) for part in problem.parts)


def some_passes(problem: Problem, scheme: str, rho: float = 0.8, passes: int = 3) -> dict[str, Array]:
    """A state some plain passes away from zero: no block is at its own optimum."""
    state = algorithm.initial_state(problem, rho)
    steps = Sweep(algorithm.one_pass(problem, scheme_named(scheme), factors_of(problem)))
    for _ in range(passes):
        state = run(steps, state, Context(ClosedForm()))
    return state


def operator_bound(target: Array, kappa: float, norm: float, change: float) -> float:
    """Return a bound for any two D, D' of spectral norm at most `norm` with ||D - D'||_2 <= `change`.

    The bound is ||a|| min{ B^2/(B^2 + kappa), change/sqrt(kappa) }.

    `target`, (N,): The target a. `kappa`: > 0.
    """
    return float(np.linalg.norm(target) * min(sensitivity.shrinkage(norm, kappa), change / np.sqrt(kappa)))


def printed_lemma_1(columns: int, parties: int, rho: float, lam: float, size: float, curvature: float) -> float:
    """Return the constant of SHARING Lemma 1, which is **no** bound: 3/(d_m rho) (lam c_1 + (1 + M rho) b_1).

    `columns`, `parties`: The numbers d_m and M.
    `size`, `curvature`: The constants b_1 and c_1 of the paper's Assumption 2.
    """
    return 3.0 / (columns * rho) * (lam * curvature + (1.0 + parties * rho) * size)
