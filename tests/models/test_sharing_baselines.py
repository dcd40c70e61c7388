"""What SHARING is compared with: SGD over local models, and scikit-learn on pooled columns."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from cvxpriv_models.admm_sharing import ADMMSharing
from cvxpriv_models.admm_sharing.baselines import pooled, sgd
from cvxpriv_models.admm_sharing.problem import Problem
from scipy import sparse

from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array

from .sharing_cases import columns, split

X, Y = columns(200, 6)


def problem(loss: str = "logistic", penalty: str = "l2", lam: float = 1.0) -> Problem:
    return Problem.of(split(X, 3), Y, loss, penalty, lam)


@pytest.mark.parametrize(("loss", "penalty"), [("logistic", "l2"), ("squared", "l1"), ("huber", "nonneg")])
def test_sgd_with_whole_batches_and_small_steps_ends_at_the_optimum(loss: str, penalty: str) -> None:
    given = problem(loss, penalty, 2.0)
    found = sgd(given, step=10.0 if loss == "logistic" else 1.0, epochs=600, batch=200)  # below 2/curvature
    scheme = "averaged" if penalty == "l2" else "proximal_jacobi"
    model = ADMMSharing(split(X, 3), Y, loss=loss, penalty=penalty, lam=2.0)
    best = model.solve(method=scheme, max_iter=2000, gap=0.0)
    # Proximal gradient steps of a well-conditioned problem: linear convergence to rounding.
    assert found.history["objective"].iloc[-1] == pytest.approx(best.objective, rel=1e-9)


def test_a_minibatch_step_is_the_gradient_step_of_the_pooled_average() -> None:
    given, seen = problem(), []
    sgd(given, step=0.3, epochs=2, batch=200, callback=lambda epoch, x: seen.append(np.concatenate(x)))
    before, after = seen
    slope = X.T @ given.loss.gradient(X @ before, Y) / 200
    step = 0.3 / np.sqrt(2.0)
    expected = (before - step * slope) / (1.0 + step * given.lam / 200)  # the proximal step of (lam/N)/2 ||x||^2
    np.testing.assert_allclose(after, expected, atol=1e-14)


def test_sgd_repeats_from_its_seed_and_predicts_like_any_fit() -> None:
    first, again, other = (sgd(problem(), 1.0, 2, 16, seed) for seed in (3, 3, 4))
    assert np.array_equal(first.coefficients[1], again.coefficients[1])
    assert not np.array_equal(first.coefficients[1], other.coefficients[1])
    margin = X @ np.concatenate(first.coefficients)
    np.testing.assert_allclose(first.predict_proba(split(X, 3))[:, 1], 1.0 / (1.0 + np.exp(-margin)), atol=1e-14)


def test_sparse_and_dense_columns_take_the_same_steps() -> None:
    thin = Problem.of([sparse.csr_array(part) for part in split(X, 3)], Y)
    assert np.allclose(sgd(thin, 1.0, 2).coefficients[0], sgd(problem(), 1.0, 2).coefficients[0], atol=1e-13)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_scikit_learn_on_all_columns_is_the_optimum_of_sharing(loss: str) -> None:
    shared = ADMMSharing(split(X, 3), Y, loss=loss, lam=0.7).solve(tol=1e-10, max_iter=2000)
    found = pooled(problem(loss, lam=0.7))
    # A relative residual of 1e-10, gradients of a hundred, curvatures of a hundred.
    for x, other in zip(shared.coefficients, found.coefficients, strict=True):
        np.testing.assert_allclose(x, other, atol=1e-8)


def test_the_first_party_alone_sees_only_its_columns() -> None:
    alone = ADMMSharing([split(X, 3)[0]], Y).solve(tol=1e-10, max_iter=2000)
    found = pooled(problem(), parties=(0,))
    np.testing.assert_allclose(found.coefficients[0], alone.coefficients[0], atol=1e-8)
    assert found.predict([X[:5, :2]]).shape == (5,)


def test_sample_weights_count_in_both() -> None:
    weights = np.where(np.arange(200) < 50, 3.0, 1.0)
    given = Problem.of([sparse.csr_array(X[:, :3]), X[:, 3:]], Y, weights=weights)
    exact = pooled(given)
    found = sgd(given, step=5.0, epochs=900, batch=200)
    assert found.history["objective"].iloc[-1] == pytest.approx(given.objective(exact.coefficients), rel=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"step": 0.0}, "step=0.0"),
        ({"epochs": 0}, "epochs=0"),
        ({"batch": 1.5}, "batch=1.5"),
        ({"seed": -1}, "seed=-1"),
    ],
)
def test_bad_options_of_sgd_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        sgd(problem(), **{"step": 1.0, **options})  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.filterwarnings("ignore:invalid")
def test_a_step_that_explodes_is_named_and_returns_no_nan() -> None:
    with pytest.raises(ModelError, match=r"step=1000 is too large.*halve it"):
        sgd(problem("squared"), 1000.0, 60)


def test_what_scikit_learn_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for given in (problem("huber"), problem(penalty="l1"), problem(lam=0.0)):
        with pytest.raises(ModelError, match="scikit-learn fits the logistic and the squared loss"):
            pooled(given)
    for parties in ((), (3,)):
        with pytest.raises(ModelError, match=r"parties=.* are not among 0..2"):
            pooled(problem(), parties)
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    with pytest.raises(ModelError, match="cvxpriv\\[learn\\]"):
        pooled(problem())


def test_dense_columns_that_are_mostly_zeros_are_multiplied_by_rows() -> None:
    from cvxpriv_models.admm_sharing.factor import Factor

    thin: Array = np.where(np.abs(X) > 1.5, X, 0.0)
    factor = Factor(thin)
    assert sparse.issparse(factor.stored)
    assert Factor(X).stored is X
    u = np.arange(200.0)
    np.testing.assert_allclose(factor.pull(u), thin.T @ u, rtol=1e-13)
    np.testing.assert_allclose(factor.share(u[:6]), thin @ u[:6], atol=1e-11)
