"""The data of ISTDP: losses and gradients by another route, and what is refused at the door."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp
from cvxpriv_models.istdp import ISTDP, Problem

from cvxpriv.errors import DataError, ModelError
from cvxpriv.penalties import L1, LOSSES, MCP
from tests.models.istdp_cases import correlated, frame

X, Y, _ = correlated(40, 6, 0.5, seed=0)
SIGNS = np.sign(Y)
SMOOTH = [loss.name for loss in LOSSES.values() if np.isfinite(loss.smoothness)]


def problem(loss: str, intercept: bool = True, sparse: bool = False) -> Problem:
    labels = SIGNS if LOSSES[loss].margin else Y
    return ISTDP(sp.csr_matrix(X) if sparse else X, labels, loss=loss, penalty=MCP(0.1), intercept=intercept).problem


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("sparse", [False, True])
def test_the_gradient_is_that_of_the_average_loss(loss: str, sparse: bool) -> None:
    one = problem(loss, sparse=sparse)
    theta = np.random.default_rng(1).normal(size=one.size)

    def height(at: np.ndarray) -> float:
        return one.average_loss(one.predictions(at))

    h = 1e-6
    numerical = [(height(theta + h * e) - height(theta - h * e)) / (2 * h) for e in np.eye(one.size)]
    # Differences with h = 1e-6 of values of size 1 keep nine digits; a kink of phi' inside a cell costs one more.
    np.testing.assert_allclose(one.gradient(one.predictions(theta)), numerical, atol=1e-7)


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("sparse", [False, True])
def test_gradients_differ_by_no_more_than_the_lipschitz_constant_times_the_distance(loss: str, sparse: bool) -> None:
    one = problem(loss, sparse=sparse)
    random = np.random.default_rng(2)
    for scale in (1e-3, 1.0):
        a = random.normal(size=(50, one.size))
        b = a + scale * random.normal(size=a.shape)
        for left, right in zip(a, b, strict=True):
            turned = one.gradient(one.predictions(left)) - one.gradient(one.predictions(right))
            assert np.linalg.norm(turned) <= one.lipschitz * np.linalg.norm(left - right) * (1.0 + 1e-12)


def test_the_lipschitz_constant_of_the_squared_loss_is_the_largest_eigenvalue() -> None:
    one = problem("squared", intercept=False)
    assert one.lipschitz == pytest.approx(np.linalg.eigvalsh(X.T @ X / 40).max(), rel=1e-12)


def test_few_columns_are_multiplied_as_all_are() -> None:
    one = problem("squared")
    theta = np.zeros(one.size)
    theta[[2, 6]] = [1.5, -0.5]
    np.testing.assert_allclose(one.predictions(theta), 1.5 * X[:, 2] - 0.5, atol=1e-14)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_no_coefficient_leaves_zero_above_lambda_max_and_one_does_below(loss: str, intercept: bool) -> None:
    x, y = (X, SIGNS) if loss == "logistic" else (X, Y + 3.0)
    most = ISTDP(x, y, loss=loss, penalty=L1(1.0), intercept=intercept).lambda_max
    assert ISTDP(x, y, loss=loss, penalty=L1(1.001 * most), intercept=intercept).solve().support.size == 0
    assert ISTDP(x, y, loss=loss, penalty=L1(0.999 * most), intercept=intercept).solve().support.size > 0


def test_lambda_max_is_refused_where_an_intercept_alone_has_no_best_value() -> None:
    with pytest.raises(ModelError, match="one class only"):
        _ = ISTDP(X, np.ones(40), loss="logistic", penalty=L1(1.0), intercept=True).lambda_max


def test_labels_of_zero_and_one_are_those_of_minus_one_and_one() -> None:
    for theirs, classes in ((SIGNS, (-1.0, 1.0)), ((SIGNS + 1.0) / 2.0, (0.0, 1.0)), (SIGNS > 0, (0.0, 1.0))):
        one = ISTDP(X, theirs).problem
        np.testing.assert_array_equal(one.y, SIGNS)
        assert one.classes is not None
        assert tuple(one.classes.tolist()) == classes


def test_names_come_from_a_data_frame() -> None:
    assert ISTDP(frame(X), SIGNS).problem.names[2] == "feature 2"
    assert ISTDP(X, SIGNS).problem.names[2] == "x2"


def test_an_unpenalised_intercept_is_a_last_column_of_ones() -> None:
    one = problem("logistic")
    theta = np.append(np.zeros(6), 5.0)
    assert one.penalty_value(theta) == 0.0
    np.testing.assert_array_equal(one.predictions(theta), np.full(40, 5.0))


def with_column(value: float) -> np.ndarray:
    x = X.copy()
    x[:, 3] = value
    return x


def with_one(value: float) -> np.ndarray:
    x = X.copy()
    x[2, 3] = value
    return x


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: ISTDP(X[:1], Y[:1], loss="squared"), DataError, "n >= 2 rows"),
        (lambda: ISTDP(X[:, 0], Y, loss="squared"), DataError, r"X has shape \(40,\)"),
        (lambda: ISTDP(X, Y[:-1], loss="squared"), DataError, r"y has shape \(39,\), expected \(40,\)"),
        (lambda: ISTDP(with_column(1.0), SIGNS), DataError, "constant in column x3.*intercept that would be penalised"),
        (lambda: ISTDP(sp.csr_array(with_column(2.0)), SIGNS), DataError, "constant in column x3"),
        (lambda: ISTDP(with_one(np.nan), SIGNS), DataError, "NaN or infinite values in column x3"),
        (lambda: ISTDP(sp.csr_array(with_one(np.inf)), SIGNS), DataError, "NaN or infinite values in column x3"),
        (lambda: ISTDP(X, np.where(SIGNS > 0, np.nan, 1.0)), DataError, "y holds NaN"),
        (lambda: ISTDP(X, Y), DataError, "y has 40 classes .*takes two"),
        (lambda: ISTDP(X, ["a"] * 40), DataError, r"1 class \('a'\)"),
        (lambda: ISTDP([["a"]] * 40, SIGNS), DataError, "X does not hold numbers"),
        (lambda: ISTDP(X, SIGNS, loss="hinge"), ModelError, "has a kink.*smoothed-hinge"),
        (lambda: ISTDP(X, SIGNS, loss="logit"), ModelError, "not known"),
        (lambda: ISTDP(X, SIGNS, penalty="mcp:0.1:1"), ModelError, "MCP needs alpha > 1"),
        (lambda: ISTDP(X, SIGNS, penalty="mcp:-0.1"), ModelError, "lam=-0.1"),
        (lambda: ISTDP(X, SIGNS, penalty=object()), ModelError, "lacks value, prox, residual, weak_convexity"),
    ],
)
def test_data_that_are_none_are_refused(make: Callable[[], ISTDP], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_constant_columns_are_kept_on_demand() -> None:
    assert ISTDP(with_column(1.0), SIGNS, allow_constant=True).problem.features == 6
