"""Newton's method on columns and multipliers together: against the conditions, and against column generation."""

from __future__ import annotations

import numpy as np
import pytest
from cvxpriv_models.privacy_funnel.bound import Prover
from cvxpriv_models.privacy_funnel.columns import joint_newton
from cvxpriv_models.privacy_funnel.pricing import FunnelPricing
from scipy.special import entr

from cvxpriv.bounds.columns import Clock, Verified
from cvxpriv.numerics.arrays import Array

PAPER = np.array([[0.9, 0.08, 0.4], [0.025, 0.82, 0.05], [0.075, 0.1, 0.55]]) / 3  # PF, section V-A


def test_it_ends_where_the_conditions_hold_and_the_bound_is_tight() -> None:
    p, total = PAPER.sum(axis=0), float(entr(PAPER.sum(axis=0)).sum())
    prover = Prover(PAPER)
    for fraction in (0.2, 0.5, 0.8):
        found = prover.at(fraction * total, gap=1e-5)
        joint = p[:, None] * found.mechanism
        active = joint[:, joint.sum(axis=0) > 1e-9] / joint[:, joint.sum(axis=0) > 1e-9].sum(axis=0)
        proof = found.certificate
        end = joint_newton(PAPER / p, p, fraction * total - total, active, proof.lam, proof.nu)
        if end is None:  # like columns that cannot be merged: column generation goes on without it
            continue
        posteriors, duals = end.columns, end.duals
        nu, lam = duals[:-1], -duals[-1]
        rows = np.vstack([posteriors, entr(posteriors).sum(axis=0)])
        ends = np.append(p, (1.0 - fraction) * total)
        weights = np.linalg.lstsq(rows, ends, rcond=None)[0]
        assert np.abs(rows @ weights - ends).max() <= 1e-12
        assert weights.min() > 0.0
        t = PAPER / p @ posteriors
        with np.errstate(divide="ignore"):
            slopes = (PAPER / p).T @ np.log(t) - lam * np.log(posteriors) - nu[:, None]
        assert np.abs(slopes[posteriors > 0.0]).max() <= 1e-10
        leakage = float(entr(PAPER.sum(axis=1)).sum() - weights @ entr(t).sum(axis=0))
        assert found.lower - 1e-12 <= leakage <= found.upper + 1e-12


def test_what_cannot_be_solved_is_left_to_column_generation() -> None:
    p = PAPER.sum(axis=0)
    assert joint_newton(PAPER / p, p, -0.5, np.eye(3)[:, :2], 0.3, np.zeros(3)) is None  # no weights make P(X)
    assert joint_newton(PAPER / p, p, -0.5, np.eye(3), 0.0, np.zeros(3)) is None  # the rate does not bind


def test_its_multipliers_are_verified_once_on_a_small_table(monkeypatch: pytest.MonkeyPatch) -> None:
    verify, levels = FunnelPricing.verify, list[float]()

    def counted(
        pricing: FunnelPricing, duals: Array, level: float, out_of_time: Clock, known: Array | None = None
    ) -> Verified:
        levels.append(level)
        return verify(pricing, duals, level, out_of_time, known)

    monkeypatch.setattr(FunnelPricing, "verify", counted)
    total = float(entr(PAPER.sum(axis=0)).sum())
    for fraction in (0.1, 0.3, 0.8):
        assert Prover(PAPER).at(fraction * total, gap=1e-8).gap <= 1e-8
    assert len(levels) == 3


def test_a_small_table_needs_no_column_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    total = float(entr(PAPER.sum(axis=0)).sum())
    generated = [Prover(PAPER) for _ in range(3)]
    for prover, fraction in zip(generated, (0.05, 0.4, 0.7), strict=True):
        monkeypatch.setattr(prover, "_at_once", lambda *_: None)
        slow = prover.at(fraction * total, gap=1e-9)
        with monkeypatch.context() as patched:
            patched.setattr(Prover, "generation", None)
            fast = Prover(PAPER).at(fraction * total, gap=1e-9)
        assert fast.gap <= 1e-9
        assert fast.upper == pytest.approx(slow.upper, abs=1e-9)
        assert fast.certificate.verify().bound <= slow.upper
