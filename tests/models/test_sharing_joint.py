"""Newton steps on all columns together, which end slow runs of ADMM sharing."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from cvxpriv_models.admm_sharing import ADMMSharing
from cvxpriv_models.admm_sharing.joint import may_join
from cvxpriv_models.admm_sharing.problem import Problem

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


def test_passes_alone_are_kept_where_they_are_asked_for_or_penalties_tie_coefficients() -> None:
    parts, y, _, _ = drawn(3)
    assert not ADMMSharing(parts, y, loss="hinge", penalty="l1").solve(accelerate="anderson", max_iter=60).joint
    assert may_join(Problem.of([parts[0]], y, "hinge", "l1"))
    assert not may_join(Problem.of([parts[0]], y, "hinge", GroupLasso(((0, 1),))))
    assert not may_join(Problem.of([parts[0]], y, "sigmoid"))
