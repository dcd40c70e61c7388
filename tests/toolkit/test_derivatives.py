"""Derivatives of expressions: finite differences inside, known intervals and limits at boundaries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from cvxpriv.errors import ModelError
from cvxpriv.kkt.closures import value_of
from cvxpriv.kkt.coordinates import Coordinates
from cvxpriv.kkt.derivatives import Derivative, DerivativeError, Slopes, slopes_at, stacked
from cvxpriv.kkt.flat import flatten
from cvxpriv.kkt.vector_rules import RULES

C = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 3.0]])
M = np.array([[1.0, -2.0, 0.5], [0.3, 1.0, 1.0]])

INSIDE: dict[str, Callable[[cp.Variable, cp.Variable], cp.Expression]] = {
    "entr": lambda x, y: cp.entr(x),
    "rel_entr": lambda x, y: cp.rel_entr(x, y),
    "rel_entr of affine": lambda x, y: cp.rel_entr(cp.abs(M) @ x, 2 * y[:2] + 1),
    "rel_entr broadcast": lambda x, y: cp.rel_entr(x, cp.sum(y)),
    "kl_div": lambda x, y: cp.kl_div(x, 3 * y),
    "log": lambda x, y: cp.log(x + y),
    "log1p": lambda x, y: cp.log1p(x),
    "sqrt": lambda x, y: cp.sqrt(x),
    "inverse": lambda x, y: cp.inv_pos(x),
    "power 1.5": lambda x, y: cp.power(x, 1.5),
    "power 3": lambda x, y: cp.power(x, 3),
    "square of affine": lambda x, y: cp.square(M @ x - y[:2]),
    "exp": lambda x, y: cp.exp(x - y),
    "logistic": lambda x, y: cp.logistic(3 * x - 50 * y),
    "xexp": lambda x, y: cp.xexp(x),
    "abs": lambda x, y: cp.abs(x - y),
    "huber": lambda x, y: cp.huber(4 * x - y, 0.5),
    "maximum": lambda x, y: cp.maximum(x, y, 0.5),
    "minimum": lambda x, y: cp.minimum(x, 2 * y),
    "norm1": lambda x, y: cp.norm1(x - y),
    "norm2": lambda x, y: cp.norm(M @ x),
    "pnorm 3": lambda x, y: cp.pnorm(x - y, 3),
    "norm_inf": lambda x, y: cp.norm_inf(x - 3 * y),
    "max": lambda x, y: cp.max(x + y),
    "min": lambda x, y: cp.min(x + y),
    "quad_over_lin": lambda x, y: cp.quad_over_lin(x, cp.sum(y)),
    "sum_squares": lambda x, y: cp.sum_squares(M @ x),
    "quad_form": lambda x, y: cp.quad_form(x, C),
    "geo_mean": lambda x, y: cp.geo_mean(x, [0.2, 0, 0.8]),
    "log_sum_exp": lambda x, y: cp.log_sum_exp(x - y),
    "sum_largest": lambda x, y: cp.sum_largest(x + y, 2),
    "perspective by hand": lambda x, y: cp.sum(cp.multiply(np.arange(3), cp.rel_entr(x, y))) - cp.sum(cp.entr(y)),
    "nested": lambda x, y: cp.exp(cp.sum_squares(x) - cp.log(y)),
    "outer product": lambda x, y: cp.vec(cp.reshape(x, (3, 1), order="F") @ np.ones((1, 2)), order="C"),
    "harmonic_mean": lambda x, y: cp.harmonic_mean(x),
    "dotsort": lambda x, y: cp.dotsort(x - y, np.array([1.0, 2, 4])),
}


def derivative(
    expression: cp.Expression,
    coordinates: Coordinates,
    *,
    kink_tolerance: float = 0.0,
    domain_tolerance: float = 0.0,
    floor: float = 0.0,
) -> Derivative:
    """Return the generalised Jacobian of an expression at its variables' current values."""
    flat = flatten([expression], coordinates)
    state = flat.state(coordinates.point())
    return stacked(flat.M[flat.places[0]], slopes_at(flat, state, Slopes(kink_tolerance, domain_tolerance, floor)))


@pytest.fixture
def variables() -> tuple[cp.Variable, cp.Variable]:
    x, y = cp.Variable(3, name="x"), cp.Variable(3, name="y")
    x.value, y.value = np.array([0.3, 0.7, 1.9]), np.array([0.4, 1.1, 0.2])
    return x, y


def numeric(expression: cp.Expression, coordinates: Coordinates) -> np.ndarray:
    """Central differences, entry by entry."""
    step, columns = 1e-6, []
    for variable in coordinates.variables:
        start = variable.value.copy()
        for k in range(variable.size):
            ends = []
            for sign in (1, -1):
                moved = start.ravel(order="F").copy()
                moved[k] += sign * step
                variable.value = moved.reshape(variable.shape, order="F")
                ends.append(np.asarray(expression.value, dtype=float).ravel(order="F"))
            columns.append((ends[0] - ends[1]) / (2 * step))
        variable.value = start
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("name", INSIDE)
def test_inside_the_domain_derivatives_are_finite_differences(
    name: str, variables: tuple[cp.Variable, cp.Variable]
) -> None:
    expression, coordinates = INSIDE[name](*variables), Coordinates(variables)
    found = derivative(expression, coordinates)
    assert found.low.size == 0
    # Central differences of step 1e-6 are good to about 1e-9 relative.
    np.testing.assert_allclose(found.base.toarray(), numeric(expression, coordinates), rtol=1e-7, atol=1e-8)


SORTED: dict[str, Callable[[cp.Variable], cp.Expression]] = {
    "lambda_max": cp.lambda_max,
    "lambda_sum_largest": lambda X: cp.lambda_sum_largest(X, 2),
    "sigma_max": lambda X: cp.sigma_max(X[:, :2]),
    "nuclear norm": lambda X: cp.normNuc(X[:, :2]),
    "sum_largest": lambda X: cp.sum_largest(X, 4),
}


@pytest.mark.parametrize("name", SORTED)
def test_atoms_of_sorted_values_are_smooth_where_nothing_ties_and_marked_where_something_does(name: str) -> None:
    X = cp.Variable((3, 3), name="X")
    X.value = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, -0.5]])
    coordinates = Coordinates([X])
    if name == "sum_largest":
        X.value = np.arange(9.0).reshape(3, 3)
    expression = SORTED[name](X)
    found = derivative(expression, coordinates, kink_tolerance=1e-6)
    assert found.exact
    if not name.startswith("lambda"):  # an eigenvalue of a matrix that is not symmetric is another function
        np.testing.assert_allclose(found.base.toarray(), numeric(expression, coordinates), rtol=1e-7, atol=1e-8)
    X.value = {"nuclear norm": np.diag([1.0, 1e-7, 0]), "lambda_sum_largest": np.diag([2, 1, 1 + 1e-7])}.get(
        name, np.eye(3)
    )
    assert not derivative(expression, coordinates, kink_tolerance=1e-6).exact


@pytest.mark.parametrize("name", ["lambda_max", "lambda_sum_largest"])
def test_derivatives_of_eigenvalues_are_finite_differences_along_symmetric_directions(name: str) -> None:
    X = cp.Variable((3, 3), name="X")
    base, push = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, -0.5]]), np.ones((3, 3)) - np.eye(3)
    X.value = base
    expression = SORTED[name](X)
    slope = float((derivative(expression, Coordinates([X])).base @ push.ravel()).item())
    ends = []
    for step in (1e-6, -1e-6):
        X.value = base + step * push
        ends.append(float(expression.value))
    assert slope == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-7)


@pytest.mark.parametrize("atom", [cp.von_neumann_entr, cp.quantum_rel_entr])
def test_entropies_of_matrices_have_the_slopes_of_their_values_and_none_beside_a_singular_matrix(atom: Any) -> None:
    count = 1 if atom is cp.von_neumann_entr else 2
    values = [np.array([[2.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 0.5]]), np.diag([2.0, 2.0, 1.0])][:count]
    variables = [cp.Variable((3, 3), name="X", symmetric=True) for _ in values]
    node, push = atom(*variables), np.array([[1.0, 0.5, -1.0], [0.5, 2.0, 0.7], [-1.0, 0.7, 0.3]])
    rule = RULES[atom](node, values, 0.0, 0.0)
    assert rule is not None
    for k, local in enumerate(rule):
        ends = [
            float(value_of(node, [one + step * push * (k == j) for j, one in enumerate(values)])[0].item())
            for step in (1e-5, -1e-5)
        ]
        _, entries, slopes = local.base
        assert float(slopes @ push.ravel()[entries]) == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-7)
    assert RULES[atom](node, [np.diag([1.0, 1.0, 1e-9])] * count, 0.0, 0.0) is None


def at(expression: Callable[[cp.Variable], cp.Expression], *values: float) -> Derivative:
    x = cp.Variable(len(values), name="x")
    x.value = np.array(values)
    return derivative(expression(x), Coordinates([x]))


def test_entropy_rises_infinitely_steeply_at_zero() -> None:
    found = at(cp.entr, 0.0, 1.0)
    np.testing.assert_array_equal(found.base.toarray(), [[np.inf, 0], [0, -1]])


def test_a_zero_weight_on_an_infinite_slope_is_zero() -> None:
    found = at(lambda x: cp.sum(cp.multiply(np.array([0.0, 1.0]), cp.entr(x))), 0.0, 2.0)
    np.testing.assert_allclose(found.base.toarray(), [[0, -1 - np.log(2)]], rtol=1e-15)


def test_relative_entropy_at_its_boundary() -> None:
    found = at(lambda x: cp.rel_entr(x[0], x[1]), 0.0, 2.0)
    np.testing.assert_array_equal(found.base.toarray(), [[-np.inf, 0.0]])
    # rel_entr(u, 0) at u = 0 is the indicator of {0}: any slope is right.
    apex = at(lambda x: cp.rel_entr(x[0], 0), 0.0)
    assert (apex.low[0], apex.high[0]) == (-np.inf, np.inf)
    both = at(lambda x: cp.rel_entr(x[0], x[1]), 0.0, 0.0)
    np.testing.assert_array_equal(both.low, [-np.inf, -np.inf])
    np.testing.assert_array_equal(both.high, [np.inf, 0.0])


def test_square_root_logarithm_and_geometric_mean_at_zero() -> None:
    assert at(cp.sqrt, 0.0).base[0, 0] == np.inf
    assert at(cp.log, 0.0).base[0, 0] == np.inf
    np.testing.assert_array_equal(at(cp.geo_mean, 0.0, 2.0).base.toarray(), [[np.inf, 0]])


def interval_at(expression: Callable[[cp.Variable], cp.Expression]) -> tuple[float, float]:
    """The set of slopes of a scalar function of one variable at zero."""
    found = at(expression, 0.0)
    ends = found.outer.toarray()[0] * found.inner.toarray()[:, 0]
    low, high = np.minimum(ends * found.low, ends * found.high), np.maximum(ends * found.low, ends * found.high)
    slope = found.base.toarray()[0, 0]
    return float(slope + low.sum()), float(slope + high.sum())


@pytest.mark.parametrize(
    ("expression", "low", "high"),
    [
        (lambda x: cp.abs(x[0]), -1, 1),
        (lambda x: cp.pos(x[0]), 0, 1),
        (lambda x: cp.neg(x[0]), -1, 0),
        (lambda x: cp.norm1(3 * x), -3, 3),
        (lambda x: cp.norm(x), -1, 1),
        (lambda x: cp.norm_inf(x), -1, 1),
        (lambda x: cp.maximum(x[0], 2 * x[0]), 1, 2),
        (lambda x: cp.minimum(x[0], 2 * x[0]), 1, 2),
        (lambda x: cp.max(cp.hstack([x, 4 * x])), 1, 4),
        (lambda x: 2 * cp.abs(x[0]) + x[0], -1, 3),
        (lambda x: cp.maximum(cp.abs(x[0]), -1), -1, 1),
        (lambda x: cp.exp(cp.abs(x[0])), -1, 1),
    ],
)
def test_kinks_give_the_whole_subdifferential(
    expression: Callable[[cp.Variable], cp.Expression], low: float, high: float
) -> None:
    assert interval_at(expression) == (low, high)


def test_a_near_kink_counts_as_one_within_the_tolerance() -> None:
    x = cp.Variable(1)
    x.value = np.array([1e-10])
    assert derivative(cp.norm1(x), Coordinates([x])).low.size == 0
    assert derivative(cp.norm1(x), Coordinates([x]), kink_tolerance=1e-8).low.size == 1


def test_a_floor_makes_every_slope_finite() -> None:
    x = cp.Variable(2)
    x.value = np.zeros(2)
    found = derivative(cp.sum(cp.entr(x)), Coordinates([x]), floor=1e-300)
    np.testing.assert_allclose(found.base.toarray(), [[300 * np.log(10) - 1] * 2], rtol=1e-15)


def test_parameters_and_matrices_are_followed() -> None:
    X, weight = cp.Variable((2, 3), name="X"), cp.Parameter((2, 3), nonneg=True)
    X.value, weight.value = np.arange(1.0, 7.0).reshape(2, 3), np.arange(6.0).reshape(2, 3)
    expression = cp.sum(cp.multiply(weight, cp.rel_entr(X, cp.sum(X, axis=1, keepdims=True) @ np.ones((1, 3)))))
    coordinates = Coordinates([X])
    found = derivative(expression, coordinates).base.toarray()
    np.testing.assert_allclose(found, numeric(expression, coordinates), rtol=1e-7, atol=1e-8)
    assert coordinates.name(3) == "X[1, 1]"


def test_outside_the_domain_or_unknown_is_a_typed_error_that_names_the_atom() -> None:
    x = cp.Variable(2, name="x")
    x.value = np.array([-0.5, 1.0])
    with pytest.raises(DerivativeError, match=r"entr.*0\.5 outside the domain"):
        derivative(cp.sum(cp.entr(x)), Coordinates([x]))
    assert derivative(cp.entr(x), Coordinates([x]), domain_tolerance=1.0).base[0, 0] == np.inf
    S = cp.Variable((2, 2), symmetric=True)
    S.value = np.zeros((2, 2))
    with pytest.raises(DerivativeError, match="log_det"):
        derivative(cp.log_det(S), Coordinates([S]))
    y = cp.Variable(name="missing")
    with pytest.raises(ModelError, match="missing"):
        derivative(cp.exp(y), Coordinates([y]))
    x.value = np.zeros(2)
    with pytest.raises(DerivativeError, match="opposite infinite"):
        derivative(cp.entr(x[0]) - cp.sqrt(x[0]), Coordinates([x]))


def test_inexact_sets_are_marked() -> None:
    assert not at(cp.norm, 0.0, 0.0).exact
    assert not at(cp.max, 1.0, 1.0, 1.0).exact
    assert not at(lambda x: cp.pos(cp.abs(x)), 0.0).exact
    assert at(cp.max, 1.0, 1.0, 0.0).exact
    assert at(cp.norm1, 0.0, 0.0).exact
