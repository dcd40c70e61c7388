"""Newton's method on the whole objective: where U has fewer outputs than the optimum, and where |Y| is large."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cvxpriv_models.inference_service import kkt
from cvxpriv_models.inference_service.bound import bound
from cvxpriv_models.inference_service.pricing import Inner, Pricing
from cvxpriv_models.inference_service.problem import Problem
from cvxpriv_models.inference_service.whole_newton import risen

from cvxpriv.models import InferenceAsService
from cvxpriv.numerics import sizes
from cvxpriv.numerics.arrays import Array

from .inference_cases import g10, random_mechanisms


def bells(size: int) -> Array:
    """P(S, Y), (3, size): three smooth rows of one hump each."""
    y = np.linspace(0.0, 1.0, size)
    rows = np.stack([np.exp(-((y - centre) ** 2) / (2.0 * 0.12**2)) for centre in (0.15, 0.5, 0.85)])
    return np.asarray(rows / rows.sum(axis=1, keepdims=True) / 3.0)


@pytest.mark.parametrize("name", ["jensen-shannon", "hellinger", "mutual-information"])
def test_it_ends_at_a_stationary_point_that_joint_steps_do_not_improve(name: str) -> None:
    problem = g10(name, 0.3, size_u=3)
    found = bound(problem, gap=1e-4)
    end = risen(problem, found.mechanism, 1e-7, np.inf)
    assert end.shape == (10, 3)
    assert kkt.residuals(problem, end).largest[0] <= 1e-8
    assert problem.objective(end) <= found.upper
    on = InferenceAsService(problem.table, 0.3, divergence=name, size_u=3).solve(method="joint", init=end, max_iter=20)
    assert on.objective <= problem.objective(end) + 1e-10


def test_it_keeps_the_optimum_where_it_starts_there() -> None:
    problem = g10("jensen-shannon", 0.3)
    best = bound(problem).mechanism
    assert problem.objective(risen(problem, best, 1e-7, np.inf)) == pytest.approx(problem.objective(best), abs=1e-12)


@pytest.mark.slow
def test_it_never_falls_from_random_starts() -> None:
    problem = g10("jensen-shannon", 0.3)
    for start in random_mechanisms(problem, 3, 0):
        assert problem.objective(risen(problem, start, 1e-7, np.inf)) >= problem.objective(start)


def test_a_past_deadline_returns_the_start() -> None:
    problem = g10("jensen-shannon", 0.3)
    start = random_mechanisms(problem, 1, 0)[0]
    assert np.allclose(risen(problem, start, 1e-7, -np.inf), start)


@pytest.mark.parametrize("looks", [2, 12, 40])
def test_little_is_worked_out_once_the_time_is_over(looks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock jumps past the deadline at a look: no loop goes on for long without another one."""
    looked, late = 0, 0
    inner = Pricing.inner

    def clock() -> float:
        nonlocal looked
        looked += 1
        return 0.0 if looked <= looks else 1e9

    def counted(*given: Any, **named: Any) -> Inner:
        nonlocal late
        late += looked > looks
        return inner(*given, **named)

    monkeypatch.setattr(Pricing, "inner", counted)
    before = sizes._seconds.set(clock)
    try:
        found = bound(Problem.of(bells(30), 0.3), time_limit=1.0)
    finally:
        sizes._seconds.reset(before)
    assert found.lower <= found.upper
    assert late <= 5  # a climb and its sharpening alone would take 50


@pytest.mark.parametrize(
    ("size", "size_u"), [(60, 10), *(pytest.param(many, 20, marks=pytest.mark.slow) for many in (300, 1000))]
)
def test_the_usual_run_converges_with_fewer_outputs_than_the_optimum_has(size: int, size_u: int) -> None:
    run = InferenceAsService(bells(size), 0.3, size_u=size_u).solve()
    assert run.converged
    assert run.residual <= 1e-7
    assert run.iterations == 0  # Newton's method arrived: no joint step is left to take
    assert run.gap is not None
    assert run.bound is not None
    assert run.bound.lower - 0.02 <= run.objective <= run.bound.upper
