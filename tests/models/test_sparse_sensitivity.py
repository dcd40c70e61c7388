"""How far a neighbour moves the minimiser of output perturbation, put together once more in exact fractions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from cvxpriv_models.istdp import ISTDP, output_perturbation
from cvxpriv_models.istdp.clipping import MOST_ROWS
from cvxpriv_models.istdp.output_perturbation import minimiser_sensitivity

from cvxpriv.errors import ModelError
from cvxpriv.penalties import ElasticNet, loss_named

ROWS, FEATURES = 5, 3


def problem(loss: str, penalty: str, **options: bool) -> ISTDP:
    rng = np.random.default_rng(0)
    return ISTDP(rng.normal(size=(ROWS, FEATURES)), [1.0, -1.0, 1.0, 1.0, -1.0], loss=loss, penalty=penalty, **options)


def sum_error(terms: int) -> Fraction:
    """A rounding so coarse that it shows; `test_rounding` holds the real one."""
    return Fraction(terms, 1000)


@pytest.mark.parametrize(
    ("adjacency", "row_bound", "divisor"),
    list(product(("replace-one", "add-remove"), (0.5, 3.0), (7, 2000))),
)
@pytest.mark.parametrize(("penalty", "modulus"), [("l2:0.25", "0.25"), ("elastic-net:2:0.75", "0.5"), ("l2:8", "8")])
@pytest.mark.parametrize("loss", ["logistic", "smoothed-hinge"])
def test_a_minimiser_moves_by_the_rows_slope_the_residual_and_what_rounding_may_do(
    loss: str,
    penalty: str,
    modulus: str,
    adjacency: str,
    row_bound: float,
    divisor: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(output_perturbation, "TOLERANCE", 0.125)
    monkeypatch.setattr(output_perturbation, "sum_rounding", lambda terms: float(sum_error(terms)))
    named = replace(loss_named(loss), slope=0.75)  # the losses themselves all have slope 1
    slope, bend, bound, strong = (Fraction(x) for x in (named.slope, named.smoothness, row_bound, float(modulus)))
    most = MOST_ROWS if adjacency == "add-remove" else 1  # times the divisor, the rows that may be summed
    rows_moved = 2 if adjacency == "replace-one" else 1
    given = replace(problem(loss, penalty).problem, loss=named)
    found = minimiser_sensitivity(given, row_bound, adjacency, divisor)
    # The gradient is a sum of at most `most * divisor` rows, divided; its terms are sums over the features, and the
    # prediction's own rounding moves each slope by `bend` times a norm of theta, which is at most steepest/strong.
    steepest = slope * bound * most
    of_gradient = sum_error(most * divisor + FEATURES + 16) * steepest
    of_predictions = of_gradient * bend * bound**2 * most / strong
    of_residual = Fraction(float(np.sqrt(FEATURES))) / 8
    own = rows_moved * slope * bound / (divisor * strong)
    exact = own + 2 * (of_residual + 2 * of_gradient + of_predictions) / strong
    assert found == pytest.approx(float(exact), rel=1e-13)


def test_a_ridge_of_no_weight_is_none() -> None:
    given = replace(problem("logistic", "l2:1").problem, penalty=ElasticNet(0.0, 0.25))
    with pytest.raises(ModelError, match="not strongly convex"):
        minimiser_sensitivity(given, 1.0, "replace-one", ROWS)


def test_what_has_no_ridge_an_intercept_or_a_loss_without_bounds_is_refused() -> None:
    for given in (
        problem("logistic", "l1:0.1"),
        problem("squared", "l2:1"),
        problem("logistic", "l2:1", intercept=True),
    ):
        with pytest.raises(ModelError):
            minimiser_sensitivity(given.problem, 1.0, "replace-one", ROWS)
