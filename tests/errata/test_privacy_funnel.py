"""What PF prints and what is right: for each line the printed form fails and the corrected one holds.

The formulas as printed stand here and nowhere in the product.
"""

from __future__ import annotations

import numpy as np
import pytest
from cvxpriv_models.privacy_funnel import closed_form
from cvxpriv_models.privacy_funnel.optimum import price
from cvxpriv_models.privacy_funnel.starts import feasible_starts
from scipy.special import rel_entr

from cvxpriv import datasets
from cvxpriv.models import PrivacyFunnel
from cvxpriv.tables.information import entropy, mutual_information

# PF section V-A
S_GIVEN_X = np.array([[0.9, 0.08, 0.4], [0.025, 0.82, 0.05], [0.075, 0.1, 0.55]])
UNIFORM = np.full(3, 1 / 3)
SKEWED = np.array([0.1, 0.3, 0.6])


def printed_start(size_x: int, size_y: int) -> np.ndarray:
    """Algorithm 1: u_ij = 1{i = j} / M."""
    return np.eye(size_x, size_y) / size_x


def root_exists(log_w: np.ndarray, p: np.ndarray, target: float) -> np.ndarray:
    """Whether G has a root or is nowhere negative, per start: sum_i p_i max_j log w_ij >= R^, to rounding."""
    return log_w.max(axis=-1) @ p >= target - 1e-13


def steps(log_u: np.ndarray, p: np.ndarray, target: float, count: int) -> np.ndarray:
    """Plain AEM passes from log u, (B, M, N)."""
    lam = np.zeros(len(log_u))
    log_r = closed_form.marginal(log_u)
    log_w = closed_form.posterior(log_u, log_r)
    for _ in range(count):
        phi = closed_form.expectation(log_u, S_GIVEN_X)
        log_u, lam = closed_form.mechanism(phi, log_r, log_w, p, target, lam)
        log_r = closed_form.marginal(log_u)
        log_w = closed_form.posterior(log_u, log_r)
    return log_u


def leakage(u: np.ndarray) -> float:
    return mutual_information(S_GIVEN_X @ u)


class TestStart:
    """PF Algorithm 1, initialisation."""

    def test_the_printed_start_does_not_have_the_marginal_of_x_unless_x_is_uniform(self) -> None:
        u = printed_start(3, 3)
        assert u.sum(axis=1) == pytest.approx(UNIFORM)
        assert np.abs(u.sum(axis=1) - SKEWED).max() > 0.2

    def test_the_printed_start_is_undefined_for_more_symbols_than_x_has(self) -> None:
        u = printed_start(3, 4)
        with np.errstate(invalid="ignore", divide="ignore"):
            w = u / u.sum(axis=0)  # its fourth symbol has no mass
        assert np.isnan(w).any()

    def test_the_printed_start_never_moves(self) -> None:
        log_u = np.log(np.maximum(printed_start(3, 3), 1e-300))[None]
        target = 0.5 * np.log(3) - np.log(3)
        assert np.exp(steps(log_u, UNIFORM, target, 50)) == pytest.approx(np.exp(log_u), abs=1e-12)

    def test_a_plain_dirichlet_start_seldom_leaves_a_multiplier(self) -> None:
        rng = np.random.default_rng(0)
        u = UNIFORM[:, None] * rng.dirichlet(np.ones(4), size=(200, 3))
        target = 0.7 * np.log(3) - np.log(3)
        log_w = np.log(u) - np.log(u.sum(axis=1, keepdims=True))
        assert root_exists(log_w, UNIFORM, target).mean() < 0.1

    def test_a_bisected_start_is_feasible_positive_and_leaves_a_multiplier_at_every_step(self) -> None:
        for p in (UNIFORM, SKEWED):
            rate = 0.7 * entropy(p)
            log_u = feasible_starts(p, rate, 4, 30, 0)
            assert np.exp(log_u).sum(axis=2) == pytest.approx(np.tile(p, (30, 1)))
            assert (mutual_information(np.exp(log_u), axis=(-2, -1)) >= rate - 1e-12).all()
            for _ in range(20):
                log_w = closed_form.posterior(log_u, closed_form.marginal(log_u))
                assert root_exists(log_w, p, rate - entropy(p)).all()
                log_u = steps(log_u, p, rate - entropy(p), 1)


class TestBox:
    """PF Algorithm 1, the box: what it prints differs from the derivation in two places."""

    RATE = 0.5

    def printed_steps(self, u: np.ndarray, p: np.ndarray, count: int) -> np.ndarray:
        """The denominator of q with s_ki in place of s_ki', everything else right."""
        target = self.RATE * entropy(p) - entropy(p)
        lam = np.zeros(1)
        for _ in range(count):
            r = u.sum(axis=0)
            w = u / r
            q = S_GIVEN_X.T[:, None, :] * u[:, :, None] / (S_GIVEN_X.T[:, None, :] * r[None, :, None])
            phi = np.einsum("ki,ijk->ij", S_GIVEN_X, np.log(q) - np.log(S_GIVEN_X.T)[:, None, :])
            log_u, lam = closed_form.mechanism(phi[None], np.log(r)[None], np.log(w)[None], p, target, lam)
            u = np.exp(log_u[0])
        return u

    def test_the_printed_q_never_leaves_its_start(self) -> None:
        # With s_ki in the denominator q is w, phi is log w, and u is a fixed point whatever it is.
        starts = np.exp(feasible_starts(UNIFORM, self.RATE * np.log(3), 4, 10, 0))
        target = (self.RATE - 1) * np.log(3)
        for u in starts:
            assert self.printed_steps(u, UNIFORM, 50) == pytest.approx(u, abs=1e-12)
        right = min(leakage(u) for u in np.exp(steps(np.log(starts), UNIFORM, target, 500)))
        assert right == pytest.approx(0.121083, abs=5e-5)  # certified value at R = .5 H(X)
        assert min(leakage(u) for u in starts) > 0.13

    def test_the_printed_u_does_not_keep_the_marginal_of_x(self) -> None:
        # Its denominator lacks r_j', so that the rows do not sum to p.
        u = np.exp(feasible_starts(UNIFORM, 0.5 * np.log(3), 4, 1, 3))[0]
        r = u.sum(axis=0)
        weights = np.exp(closed_form.expectation(np.log(u)[None], S_GIVEN_X)[0])
        printed = UNIFORM[:, None] * weights * r / weights.sum(axis=1, keepdims=True)
        right = UNIFORM[:, None] * weights * r / (weights * r).sum(axis=1, keepdims=True)
        assert np.abs(printed.sum(axis=1) - UNIFORM).max() > 0.1
        assert right.sum(axis=1) == pytest.approx(UNIFORM)


def relaxed_objective(u: np.ndarray) -> float:
    """PF (3) at the optimal q and r."""
    joint = S_GIVEN_X @ u
    return float(rel_entr(joint, u.sum(axis=0)).sum())


def test_lemma_2_is_false_the_objective_is_minus_a_conditional_entropy() -> None:
    u = np.exp(feasible_starts(UNIFORM, 0.3, 4, 1, 0))[0]
    value = relaxed_objective(u)
    assert value < -0.5  # the lemma says >= 0
    p_s = (S_GIVEN_X @ u).sum(axis=1)
    assert entropy(p_s) + value == pytest.approx(leakage(u), abs=1e-14)


def test_the_last_term_of_10_needs_the_slack_of_the_old_constraint() -> None:
    # (10) ends in lambda sum_j r_j D(w_j^n || w_j^(n-1)), which takes the old constraint for tight. In general the fall
    # of the u step is D(u^n || u^(n+1)) + lambda (sum u^n log w^n - R^). Start slack: the constraint becomes tight at
    # some step, and just there the two differ.
    target = (0.5 - 1) * np.log(3)
    log_u = feasible_starts(UNIFORM, 0.95 * np.log(3), 4, 1, 1)
    log_r = closed_form.marginal(log_u)
    old_w = log_w = closed_form.posterior(log_u, log_r)
    lam = np.zeros(1)
    differed = False
    for step in range(20):
        phi = closed_form.expectation(log_u, S_GIVEN_X)
        after, lam = closed_form.mechanism(phi, log_r, log_w, UNIFORM, target, lam)
        u, v, linear = np.exp(log_u[0]), np.exp(after[0]), (phi + log_r[:, None])[0]
        fall = float((u * (log_u[0] - linear)).sum() - (v * (after[0] - linear)).sum())
        general = float(rel_entr(u, v).sum()) + lam[0] * (float((u * log_w[0]).sum()) - target)
        printed = float(rel_entr(u, v).sum()) + lam[0] * float((u * (log_w - old_w)[0]).sum())
        assert fall == pytest.approx(general, abs=1e-12)
        differed = differed or (step > 0 and abs(fall - printed) > 1e-3)
        log_u, log_r, old_w = after, closed_form.marginal(after), log_w
        log_w = closed_form.posterior(log_u, log_r)
    assert differed


def test_the_slope_of_g_is_a_variance() -> None:
    log_u = feasible_starts(SKEWED, 0.6 * entropy(SKEWED), 4, 1, 2)
    log_r = closed_form.marginal(log_u)
    log_w = closed_form.posterior(log_u, log_r)
    base = (closed_form.expectation(log_u, S_GIVEN_X) + log_r[:, None])[0]

    def g(lam: float) -> float:
        weights = np.exp(base + lam * log_w[0])
        rows = weights / weights.sum(axis=1, keepdims=True)
        return float(SKEWED @ (rows * log_w[0]).sum(axis=1))

    for lam in (0.0, 0.7, 3.0):
        weights = np.exp(base + lam * log_w[0])
        rows = weights / weights.sum(axis=1, keepdims=True)
        mean = (rows * log_w[0]).sum(axis=1)
        variance = float(SKEWED @ (rows * (log_w[0] - mean[:, None]) ** 2).sum(axis=1))
        step = 1e-5
        assert (g(lam + step) - g(lam - step)) / (2 * step) == pytest.approx(variance, rel=1e-6)
        assert variance >= 0.0


def test_an_empty_output_makes_the_ordinary_residual_say_nothing() -> None:
    # The best mechanism on three outputs at .9 H(X), padded: each row's mass sits where g is least, and yet a posterior
    # for the fourth output pays.
    table = S_GIVEN_X * UNIFORM
    best = PrivacyFunnel(table, rate=0.9, size_y=3).solve(method="aem", starts=10)
    padded = PrivacyFunnel(table, rate=0.9, size_y=4).solve(init=np.pad(best.mechanism, ((0, 0), (0, 1))), max_iter=1)
    assert max(padded.kkt.stationarity, padded.kkt.complementarity) <= 1e-6
    assert price(table, best.mechanism, best.problem.rate).free > 1e-3
    assert PrivacyFunnel(table, rate=0.9).bound().upper < best.leakage - 4e-3


@pytest.mark.slow
def test_the_optimum_of_the_first_real_table_is_proved() -> None:
    heart = datasets.heart_failure()
    found = PrivacyFunnel(heart, rate=0.8).bound()
    assert found.lower <= 0.0207928 <= found.upper + 1e-7
    assert found.certificate.verify(heart.probabilities).bound >= found.upper - 1e-6
