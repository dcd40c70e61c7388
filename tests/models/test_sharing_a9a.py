"""ADMM sharing on a9a, split as the paper splits it: 66 and 57 columns."""

from __future__ import annotations

import pytest
from cvxpriv_models.admm_sharing import ADMMSharing
from cvxpriv_models.admm_sharing.baselines import pooled

from cvxpriv.penalties import LOSSES
from cvxpriv.tables.datasets import load_a9a

#: The optimum at lam = 1 without an intercept, of all columns and of the first party's, by scikit-learn to 1e-12.
POOLED, FIRST = 10529.5625846, 11468.7847518


def test_two_parties_reach_the_pooled_optimum_in_some_sixty_passes() -> None:
    data = load_a9a()
    model = ADMMSharing([data.x_train[:, :66], data.x_train[:, 66:]], data.y_train)
    run = model.solve(
        rho=0.15,
        accelerate="anderson",  # the passes alone, without the Newton steps that end slow runs
        callback=lambda loop, iteration, figures: figures["objective"][0] < POOLED * (1.0 + 1e-6),
    )
    assert run.objective < POOLED * (1.0 + 1e-6)
    assert run.iterations <= 60
    assert run.objective - POOLED <= run.gap


def test_the_certificate_holds_to_the_last_printed_digit_of_the_optimum() -> None:
    data = load_a9a()
    run = ADMMSharing([data.x_train[:, :66], data.x_train[:, 66:]], data.y_train).solve(rho=0.15, tol=1e-6)
    assert run.converged
    assert run.gap < 1e-6
    assert run.objective == pytest.approx(POOLED, abs=1e-7)
    alone = ADMMSharing([data.x_train[:, :66]], data.y_train).solve(rho=0.15, tol=1e-6)
    assert alone.objective == pytest.approx(FIRST, abs=1e-7)


def test_test_log_loss_is_that_of_the_centralised_fit() -> None:
    data = load_a9a()
    model = ADMMSharing([data.x_train[:, :66], data.x_train[:, 66:]], data.y_train)
    test = [data.x_test[:, :66], data.x_test[:, 66:]]
    shared, central = (
        LOSSES["logistic"].value(fit.decision_function(test), data.y_test).mean()
        for fit in (model.solve(rho=0.15, max_iter=30), pooled(model.problem))
    )
    assert central == pytest.approx(0.3241, abs=5e-5)  # scikit-learn's, rounded
    assert abs(shared - central) < 1e-4


def test_dense_columns_of_a9a_make_the_same_passes_as_sparse_ones() -> None:
    data = load_a9a()
    parts = [data.x_train[:, :66], data.x_train[:, 66:]]
    thin, dense = (
        ADMMSharing(given, data.y_train).solve(rho=0.15, max_iter=10) for given in (parts, [p.toarray() for p in parts])
    )
    assert dense.objective == pytest.approx(thin.objective, rel=1e-12)
