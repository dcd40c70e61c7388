"""Random and awkward tables: the default answer lies within 1e-6 nats of its bound, and never below it."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.bounds_statistics import ROUNDING, WANTED, cases
from cvxpriv.models import PrivacyFunnel
from cvxpriv.numerics.arrays import Array

PAPER = np.array([[0.9, 0.08, 0.4], [0.025, 0.82, 0.05], [0.075, 0.1, 0.55]]) / 3  # PF, section V-A


def require_proved(table: Array, rate: float, unit: str = "fraction") -> None:
    run = PrivacyFunnel(table, rate=rate, rate_unit=unit).solve()
    assert run.bound is not None
    gap = run.leakage - run.bound.lower
    assert -ROUNDING <= gap <= WANTED, (table.shape, rate, gap)
    assert run.gap == max(gap, 0.0)
    assert run.utility >= run.problem.rate - 1e-12
    assert run.converged


def test_half_a_dozen_random_tables() -> None:
    for table, fraction in cases(6):
        require_proved(table, fraction)


@pytest.mark.slow
def test_sixty_random_tables() -> None:
    for table, fraction in cases(60, seed=1):
        require_proved(table, fraction)


def test_awkward_tables_and_rates() -> None:
    twice = np.repeat(PAPER / 2.0, 2, axis=1)  # every symbol of X stands twice
    zeros = np.array([[0.3, 0.0, 0.2, 0.0], [0.0, 0.25, 0.1, 0.15]])
    for table in (twice, zeros, np.vstack([zeros, zeros[:1] * 0.0])):
        for fraction in (0.0, 0.8, 1.0):
            require_proved(table, fraction)
    free = PrivacyFunnel(zeros).perfect_privacy().rate
    for rate in (free, free + 1e-9, free + 1e-4):
        require_proved(zeros, rate, "nats")
