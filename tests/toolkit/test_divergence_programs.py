"""Symbolic expressions as programs: the same numbers as sympy, no cancellation, fast forms that are right far out."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import sympy

from cvxpriv.divergences import FDivergence, divergence
from cvxpriv.divergences.cancellation import adjoint, derivative, tidied
from cvxpriv.divergences.parsing import T, expression_of
from cvxpriv.divergences.programs import MPMATH, NUMPY, compiled
from cvxpriv.divergences.symbolic import array_function

from .divergence_cases import TEXTS

EXPRESSIONS = (
    *TEXTS.values(),
    "exp(t-1) - t",
    "t**t - 1",
    "(t-1)**7/(3*t+2)**4 - 5/t**3",
    "t**1.5 - sqrt(t)/t**2 + t**0.3",
    "sqrt(1+t**2) - (1+t)/sqrt(2)",
    "-3 - t",
    "7",
    "max(t, 1/t, 2) - min(t, 3)*pi",
)
SMOOTH = {name: text for name, text in TEXTS.items() if divergence(name).smooth}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_a_program_gives_what_sympy_gives(text: str) -> None:
    expression, t = expression_of(text), np.geomspace(1e-3, 1e3, 25)
    expected = [float(expression.subs(T, sympy.Float(one, 40))) for one in t]
    assert array_function(expression)(t) == pytest.approx(expected, rel=1e-13, abs=1e-13)
    (precise,) = compiled([expression]).bound(MPMATH)(mpmath.mpf(t[3]))
    assert float(precise) == pytest.approx(expected[3], rel=1e-13)


def test_equal_parts_are_computed_once_in_all_results() -> None:
    program = compiled([expression_of("log(2*t/(t+1))"), expression_of("1/(t*(t+1))")])
    assert [name for name, _ in program.steps].count("add") == 1


def test_powers_are_products_and_quotients_divide_once() -> None:
    program = compiled([expression_of("3*t**8/(2*(t+1)**3)")])
    names = [name for name, _ in program.steps]
    assert names.count("divide") == 1
    assert "power" not in names


def test_a_result_has_the_shape_of_t_and_is_nobody_elses() -> None:
    t = np.ones((2, 3))
    for text in ("t", "7", "t + 0*t"):
        assert array_function(expression_of(text))(t).shape == (2, 3)


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_tidied_expressions_are_equal(text: str) -> None:
    f = expression_of(text)
    for one in (f, f - T * f.diff(T), adjoint(f)):
        other = tidied(one)
        for t in (sympy.Rational(1, 7), sympy.Rational(22, 7)):
            assert abs((one - other).subs(T, t).evalf(30)) < 1e-20


def test_what_cancels_in_f_less_t_times_its_derivative_is_gone() -> None:
    f = expression_of(TEXTS["jensen-shannon"])
    assert tidied(f - T * derivative(f)) == sympy.log(2 / (T + 1))


def test_a_large_polynomial_is_left_as_it_is() -> None:
    f = expression_of("(t**60 - 1)**1 - 60*(t - 1)")
    assert tidied(f) == f


@pytest.mark.parametrize("name", SMOOTH)
def test_both_derivatives_of_a_typed_built_in_are_right_far_out(name: str) -> None:
    f, symbolic = FDivergence.parse(SMOOTH[name]), expression_of(SMOOTH[name])
    assert f.in_p is not None
    assert f.in_q is not None
    exact = compiled([symbolic, symbolic.diff(T), symbolic.diff(T, 2)]).bound(MPMATH)
    for ratio in (-140, -60, -8, -1, 0, 1, 8, 60, 140):
        p, q = 10.0 ** -max(ratio, 0), 10.0 ** min(ratio, 0)
        with np.errstate(all="ignore"), mpmath.workdps(400):
            t = mpmath.mpf(q) / mpmath.mpf(p)
            value, slope, curvature = exact(t)
            found = (*f.in_p(np.array([p]), np.array([q])), *f.in_q(np.array([p]), np.array([q])))
            expected = (value - t * slope, t**2 * curvature / p, slope, curvature / p)
        for mine, theirs in zip(found, expected, strict=True):
            # Beyond 1e90 double precision may end before the true value does; 1e-12 is a rounding of a logarithm, 320.
            assert abs(theirs) > 1e90 or float(mine[0]) == pytest.approx(float(theirs), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_where_a_cell_is_empty_are_limits(name: str) -> None:
    f = FDivergence.parse(SMOOTH[name])
    assert f.in_p is not None
    assert f.in_q is not None
    with np.errstate(all="ignore"):
        in_p, _ = f.in_p(np.array([0.5]), np.array([0.0]))
        in_q, _ = f.in_q(np.array([0.0]), np.array([0.5]))
    assert in_p[0] == pytest.approx(f.limit_at_zero)
    assert in_q[0] == pytest.approx(f.limit_slope)


def test_arrays_broadcast_and_constants_are_spread() -> None:
    f = FDivergence.parse("(1-t)**2")
    assert f.in_q is not None
    first, second = f.in_q(np.full((2, 3, 4), 0.2), np.full((2, 1, 4), 0.3))
    assert first.shape == second.shape == (2, 3, 4)
    first *= 2.0  # callers work in place
    assert second == pytest.approx(np.full((2, 3, 4), 10.0))


def test_kinked_functions_have_no_newton_form() -> None:
    assert FDivergence.parse("abs(t-1)/2").in_p is None


def test_programs_run_in_numpy_without_touching_their_argument() -> None:
    t = np.array([1.0, 2.0])
    compiled([expression_of("(t-1)**2/t")]).bound(NUMPY)(t)
    assert t.tolist() == [1.0, 2.0]
