"""Newton steps on all columns together, which end slow runs of ADMM sharing."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from cvxpriv_models.admm_sharing import ADMMSharing, joint, truncated
from cvxpriv_models.admm_sharing.joint import may_join
from cvxpriv_models.admm_sharing.problem import Problem
from scipy import sparse

from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties.convex import GroupLasso

PENALTIES = ("l1", "nonneg", "l2", "elastic-net:1:0.5", "elastic-net:1:0.9")


def drawn(seed: int) -> tuple[list[Array], Array, str, float]:
    """Parties' columns, labels, a penalty and its weight, of scales over four orders of magnitude."""
    rng = np.random.default_rng(seed)
    samples, columns = int(rng.choice([30, 60, 120, 250])), int(rng.integers(4, 30))
    x = rng.normal(size=(samples, columns)) * 10.0 ** rng.uniform(-2.0, 2.0)
    if rng.uniform() < 0.5:
        x *= 10.0 ** rng.uniform(-1.0, 1.0, size=columns)
    signal = x @ rng.normal(size=columns)
    y = np.where(signal / signal.std() + rng.logistic(size=samples) > 0.0, 1.0, -1.0)
    parties = np.array_split(x, int(rng.integers(1, 4)), axis=1)
    return parties, y, str(rng.choice(PENALTIES)), float(10.0 ** rng.uniform(-1.0, 1.5))


@pytest.mark.grid(every=3)
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("seed", range(12))
def test_the_default_call_converges_beside_kinks_and_on_unequal_columns(seed: int, loss: str) -> None:
    parts, y, penalty, lam = drawn(seed)
    run = ADMMSharing(parts, y, loss=loss, penalty=penalty, lam=lam).solve()
    assert run.converged
    assert run.iterations <= 400


def test_the_answer_is_the_optimum_of_a_linear_program_by_another_solver() -> None:
    parts, y, _, _ = drawn(3)
    run = ADMMSharing(parts, y, loss="hinge", penalty="l1", lam=0.5).solve()
    x = cp.Variable(sum(one.shape[1] for one in parts))
    cost = cp.sum(cp.pos(1.0 - (y[:, None] * np.hstack(parts)) @ x)) + 0.5 * cp.norm1(x)
    best = cp.Problem(cp.Minimize(cost)).solve(solver="CLARABEL")
    assert run.joint
    assert "Newton steps" in run.reached
    assert run.kkt.largest <= run.settings.tol
    assert run.kkt.fit == 0.0
    assert run.objective == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("seed", [1, 3, 9])
def test_the_lasso_converges_on_columns_of_sizes_over_twelve_orders_of_magnitude(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = 10.0 ** rng.uniform(-6.0, 6.0, size=20)
    x, y = sizes * (10.0 + rng.normal(size=(30, 20))), rng.normal(size=30)
    run = ADMMSharing([x], y, loss="squared", penalty="l1:0.05").solve()
    w = cp.Variable(20)  # of columns of one size
    fit, norm = 0.5 * cp.sum_squares(x / sizes @ w - y), 0.05 * (1.0 / sizes) @ cp.abs(w)
    assert run.converged
    assert run.objective == pytest.approx(cp.Problem(cp.Minimize(fit + norm)).solve(solver="CLARABEL"), rel=1e-8)


def test_passes_alone_are_kept_where_they_are_asked_for_or_penalties_tie_coefficients() -> None:
    parts, y, _, _ = drawn(3)
    assert not ADMMSharing(parts, y, loss="hinge", penalty="l1").solve(accelerate="anderson", max_iter=60).joint
    assert may_join(Problem.of([parts[0]], y, "hinge", "l1"))
    assert not may_join(Problem.of([parts[0]], y, "hinge", GroupLasso(((0, 1),))))
    assert not may_join(Problem.of([parts[0]], y, "sigmoid"))


def beginning(seed: int) -> ADMMSharing:
    """A smooth problem with squares: columns of any size and rank, rows of zeros, any weight, dense or sparse."""
    rng = np.random.default_rng(seed)
    samples, columns = int(rng.choice([5, 30, 80])), int(rng.choice([1, 4, 30, 100]))
    x = rng.normal(size=(samples, columns)) * 10.0 ** rng.uniform(-3.0, 3.0)
    x *= 10.0 ** rng.uniform(-2.0, 2.0, size=columns) if seed % 2 else 1.0
    x[rng.uniform(size=samples) < 0.2] = 0.0
    x[:, -1] = x[:, 0]
    loss = str(rng.choice(["logistic", "huber", "squared", "smoothed-hinge"]))
    signal = x @ rng.normal(size=columns)
    y = signal / max(signal.std(), 1e-9) + rng.logistic(size=samples)
    parts = np.array_split(x, min(columns, 1 + seed % 3), axis=1)
    several = [sparse.csr_array(part) if seed % 5 == 0 else part for part in parts]
    labels = np.where(y > np.median(y), 1.0, -1.0) if loss in ("logistic", "smoothed-hinge") else y
    weights = 10.0 ** rng.uniform(-2.0, 2.0, size=samples) if seed % 4 == 0 else None
    return ADMMSharing(several, labels, loss=loss, lam=float(10.0 ** rng.uniform(-6.0, 6.0)), weights=weights)


@pytest.mark.grid(every=3)
@pytest.mark.parametrize("gap", [None, 0.0])
@pytest.mark.parametrize("block", range(4))
def test_a_run_that_begins_with_newton_steps_converges_to_the_same_optimum(
    block: int, gap: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(truncated, "COSTLY", 0.0)
    ended = 0
    for seed in range(5 * block, 5 * block + 5):
        model = beginning(seed)
        run, passes = model.solve(gap=gap), model.solve(gap=gap, accelerate="anderson", max_iter=40)
        assert run.converged, seed
        assert run.gap is not None
        ended += run.iterations == 1 and run.joint
        if passes.converged and passes.gap is not None:  # each is within its own certified gap
            lowest = max(run.objective - run.gap, passes.objective - passes.gap)
            assert lowest <= min(run.objective, passes.objective), seed
    assert ended == 5


@pytest.mark.parametrize("seed", [39, 84, 96, 118])  # long plateaus, and steps far away and back, which cost digits
def test_newton_steps_end_hard_runs_at_the_residual(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(truncated, "COSTLY", 0.0)
    run = beginning(seed).solve(gap=0.0, max_iter=1)
    assert run.converged
    assert run.joint
    assert run.kkt.largest <= 1e-7


def test_a_run_begins_with_newton_steps_where_systems_cost_far_more_than_products(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(truncated, "COSTLY", 100.0)
    x = np.random.default_rng(0).normal(size=(200, 400))
    labels = np.where(x[:, 0] > 0.0, 1, -1)
    run = ADMMSharing([x[:, :200], x[:, 200:]], labels).solve()
    assert run.joint
    assert run.iterations == 1
    assert run.converged
    assert "certified gap" in run.reached
    assert not truncated.may_begin(Problem.of([x[:, :50]], labels))
    assert not truncated.may_begin(Problem.of([x], labels, "hinge"))
    assert not truncated.may_begin(Problem.of([x], labels, penalty="l1"))
    assert not truncated.may_begin(Problem.of([x], labels, lam=0.0))


def test_newton_steps_end_where_doubles_reach_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, newton = [], joint.Joint._newton
    monkeypatch.setattr(joint.Joint, "_newton", lambda *given: steps.append(1) or newton(*given))
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(400, 40)), np.where(rng.normal(size=400) > 0.0, 1.0, -1.0)
    run = ADMMSharing([x[:, :20], x[:, 20:]], labels).solve(tol=1e-30, gap=0.0, max_iter=45)
    assert not run.converged
    assert 0 < len(steps) < 20
