"""A line of text to a divergence: nothing is executed, nothing hangs, and everything found is right."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import cache
from pathlib import Path

import cloudpickle
import cvxpy as cp
import mpmath
import numpy as np
import pytest

from cvxpriv.divergences import FDivergence, divergence
from cvxpriv.divergences.jets import MANY_DIGITS
from cvxpriv.divergences.parsing import FUNCTIONS, LENGTH, OTHER_NAMES, line_of
from cvxpriv.errors import ModelError

from .divergence_cases import TEXTS

T = np.geomspace(1e-3, 1e3, 61) * 1.01
parsed = cache(FDivergence.parse)


@pytest.mark.parametrize("name", TEXTS)
def test_a_typed_built_in_is_the_built_in(name: str) -> None:
    typed, known = parsed(TEXTS[name]), divergence(name)
    for mine, theirs in (
        (typed.f, known.f),
        (typed.derivative, known.derivative),
        (typed.second_derivative, known.second_derivative),
    ):
        assert mine(T) == pytest.approx(theirs(T), rel=1e-13, abs=1e-13)
    assert typed.limit_at_zero == pytest.approx(known.limit_at_zero, abs=1e-12)
    assert typed.limit_slope == pytest.approx(known.limit_slope, abs=1e-12)
    assert typed.kinks == pytest.approx(known.kinks, rel=1e-15)
    assert (typed.strictly_convex, typed.convexity) == (known.strictly_convex, "proved")


@pytest.mark.parametrize("t", [1000, 1 - 10**6, 10**32 + 0.5, -(10**32), 2**200])
def test_the_exponential_of_a_large_integer_has_its_digits(t: float) -> None:
    with mpmath.workdps(300):
        found = MANY_DIGITS.exp(mpmath.mpf(t))
    with mpmath.workdps(400):
        assert abs(found / mpmath.exp(mpmath.mpf(t)) - 1) < mpmath.mpf(10) ** -298


@pytest.mark.parametrize("name", TEXTS)
def test_a_typed_built_in_has_its_dcp_form(name: str) -> None:
    f, rng = parsed(TEXTS[name]), np.random.default_rng(2)
    p, q = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4))
    assert form_value(f, p, q) == pytest.approx(divergence(name).between(p, q), abs=1e-12)


def form_value(f: FDivergence, p: np.ndarray, q: np.ndarray) -> float:
    """The form at numbers, with what it brings along set by `auxiliary`."""
    expression, constraints = f.form(cp.Constant(p), cp.Constant(q))
    new = {v.id: v for part in [expression, *constraints] for v in part.variables()}
    assert f.auxiliary is not None
    for key, value in zip(sorted(new), f.auxiliary(p, q), strict=True):
        new[key].value = value
    assert all(np.max(constraint.violation()) < 1e-7 for constraint in constraints)  # a solver projects on power cones
    return float(expression.value)


@pytest.mark.parametrize(
    "text",
    [
        "2*t*log(t) + (1-t)**2 + 3*(t-1)",
        "0.3*log(1/(0.3+0.7*t)) + 0.7*t*log(t/(0.3+0.7*t))",  # skewed Jensen-Shannon
        "(t-1)**2/(3*t+5)",
        "(t-1)*log(t)",  # Jeffreys
        "abs(t-1) + abs(t-2) - 1",
        "max(1-t, t-1, 0)",
        "t**1.5 - t",
        "(t-1)**2 + 0.01*pos(t-2)",
        "1 - t**0.01",
    ],
)
def test_sums_of_known_functions_have_a_dcp_form(text: str) -> None:
    f, rng = FDivergence.parse(text), np.random.default_rng(1)
    p, q = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5))
    one, other = cp.Variable(5), cp.Variable(5)
    expression, constraints = f.form(one, other)
    assert cp.Problem(cp.Minimize(expression), constraints).is_dcp()
    assert form_value(f, p, q) == pytest.approx(f.between(p, q), abs=1e-12)
    assert f.convexity == "proved"


@pytest.mark.parametrize("text", ["(t**2-1)*log(t)", "(1-t)**2 - 0.1*(1-t)**2/(t+1)"])
def test_what_no_rule_composes_has_no_form_and_says_so(text: str) -> None:
    f = FDivergence.parse(text)
    assert f.expression is None
    assert f.notes[1] == "no DCP form is derived: blocks take adaptive tangents"


@pytest.mark.parametrize(
    ("text", "at_zero", "slope"),
    [
        ("exp(-t) - exp(-1)", 1.0 - np.exp(-1.0), 0.0),
        ("t**t - 1", 0.0, np.inf),
        ("exp(1/t) - e", np.inf, 0.0),
        ("sqrt(1+t**2) - (1+t)/sqrt(2)", 1.0 - 0.5**0.5, 1.0 - 0.5**0.5),
        ("t**-0.01 - 1", np.inf, 0.0),
        ("1 - t**0.01", 1.0, 0.0),
        ("(t-1)*log(t)", np.inf, np.inf),
        ("1/log(t+1) - 1/log(2)", np.inf, 0.0),
        ("max(t, 1/t) - 1", np.inf, 1.0),
        ("pos(t - 1000)", 0.0, 1.0),
    ],
)
def test_limits_are_found_to_the_last_digits(text: str, at_zero: float, slope: float) -> None:
    f = FDivergence.parse(text)
    # t^0.01 is 6e-11 where limits are read, and extrapolated from there
    assert f.limit_at_zero == pytest.approx(at_zero, abs=1e-7 if "0.01" in text else 1e-12)
    assert f.limit_slope == pytest.approx(slope, abs=1e-12)


def test_a_slope_at_a_kink_is_the_one_from_the_right() -> None:
    f = FDivergence.parse("max(1-t, 2*(t-1)) + pos(1-3*t)")
    assert f.kinks == pytest.approx((1.0 / 3.0, 1.0), rel=1e-15)
    assert f.derivative(np.array([0.2, 1.0 / 3.0, 0.5, 1.0, 2.0])) == pytest.approx([-4.0, -1.0, -1.0, 2.0, 2.0])
    assert not f.smooth
    assert not f.strictly_convex


@pytest.mark.parametrize("text", ["pos(t-1)**1.5 + pos(1-t)**1.5", "(pos(t-1)**3)**0.5", "pos(2-t)**1.5 - 1"])
def test_a_power_of_a_branch_that_is_zero_has_no_bend_there(text: str) -> None:
    t = np.array([1e-9, 1e-2, 30.0, 1e9])
    one, two = (np.maximum(t - 1.0, 0.0), np.maximum((2.0 if "2-t" in text else 1.0) - t, 0.0))
    parts = [x for x, sign in ((one, "(t-"), (two, "-t)")) if sign in text]
    bend = sum(0.75 * np.divide(1.0, np.sqrt(x), out=np.zeros(4), where=x > 0.0) for x in parts)
    assert FDivergence.parse(text).second_derivative(t) == pytest.approx(bend, rel=1e-12)


def test_where_two_branches_touch_many_digits_say_which_is_the_largest() -> None:
    # They differ by (|t-1|-1)^2/2, at these t less than doubles can tell; only the square has a second derivative.
    t = np.array([1.708276393808712e-10, 1e-14, 3e-9, 2.0 - 1e-9, 2.0 + 1e-9])
    f = FDivergence.parse("max((t-1)**2/2, abs(t-1)-1/2)")
    assert f.second_derivative(t) == pytest.approx(np.ones(5), rel=1e-12)
    assert f.derivative(t) == pytest.approx(t - 1.0, rel=1e-12)


def test_what_only_looks_like_a_kink_is_none() -> None:
    assert FDivergence.parse("abs(t-1)**1.5").kinks == ()
    assert FDivergence.parse("max(t-1, 2*(t-1), abs(t-1))").kinks == pytest.approx((1.0,))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("log(t)", r"is not convex: f''\(0.944\d*\) = -1"),
        ("abs(log(t))", "is not convex: f''"),
        ("log(1+exp(t-1)) - log(2) - 1e-6*(t-1)**2", "is not convex: f''"),  # its enclosures far out are infinite
        ("5", "is a straight line"),
        ("3*t - 3", "is a straight line"),
        ("min(t, 1) - 1", "its slope falls by 1 at t=1"),
        ("2**-0.001 - (1+1/t)**-0.001", r"its limit of f\(t\) at 0 to be read off: pass it as functions"),
        ("t*log(t) + 1", r"f\(1\) = 1, and .* subtract it, 't\*log\(t\) \+ 1 - \(1\*log\(1\) \+ 1\)'"),
        ("exp(t)", r"f\(1\) = 2.71828, .* - \(exp\(1\)\)'"),
        ("log(t-1)", "is no real number at t=1e-06"),
        ("1/(t-2)**2 - 1", "divides by zero at t=2"),
        ("sqrt(1-t)", "is no real number at t=1.3"),
    ],
)
def test_what_makes_no_divergence_is_refused_with_the_place(text: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        FDivergence.parse(text)


def test_what_a_refusal_proposes_to_subtract_works() -> None:
    assert FDivergence.parse("exp(t) - (exp(1))").f(np.ones(1))[0] == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('touch {file}')",
        "exec(\"open('{file}', 'w')\")",
        "open('{file}', 'w')",
        "().__class__.__bases__[0].__subclasses__()",
        "(lambda: open('{file}', 'w'))()",
        "[open('{file}', 'w') for t in (1,)]",
        "log(open('{file}', 'w'))",
        "t.__class__",
        "t if open('{file}', 'w') else t",
        'f\'{{open("{file}", "w")}}\'',
        "(x := open('{file}', 'w'))",
    ],
)
def test_code_in_the_text_is_refused_and_never_runs(text: str, tmp_path: Path) -> None:
    made = tmp_path / "made"
    with pytest.raises(ModelError, match="is refused at"):
        FDivergence.parse(text.format(file=made.as_posix()))
    assert not made.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("9**9**9", "more than 256 bits"),
        ("((9**60)**60)**60", "more than 256 bits"),
        ("t**1e9", "a power beyond 64"),
        ("1 - t**0.9995", "within 0.001 of a whole number"),
        ("((t+1)**60)**60", "a power beyond 64"),
        ("exp(exp(exp(t)))", "an exponential within an exponential"),
        ("2**2**t**2**t", "an exponential within an exponential"),
        ("exp(1e9)", "exp of a number beyond 64"),
        ("exp(t**9) - e", "a power beyond 8 within an exponential"),
        ("(1+t)**(t**9) - 2", "a power beyond 8 within an exponential"),
        ("*".join(f"(t+{k})**9" for k in range(1, 9)), "a power beyond 64"),
        ("(" * 7 + "t" + "**2+1)" * 7, "a power beyond 64"),
        ("exp(1e9*t)", r"f\(1\) = inf"),
        ("1e400*t", "not a real number of at most 1e"),
        ("1e-300*t", "more than 256 bits"),
        ("9" * 400, "not a real number of at most 1e"),
        ("t+" * LENGTH + "t", "has 4001 characters: at most 2000"),
        ("-" * 450 + "t", "nested deeper than 40|cannot be read|too many parts"),
        ("(" * 240 + "t" + ")" * 240, "cannot be read"),
        ("+".join(["t"] * 1000), "too many parts"),
    ],
)
def test_hostile_sizes_are_refused_before_they_cost_anything(text: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        FDivergence.parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f='' is no formula"),
        ("ｔ*log(ｔ)", r"holds 'ｔ', U\+FF54: write it in plain ASCII"),
        ("t − 1", r"holds '−', U\+2212"),
        ("t*log(t)\u200b", r"U\+200B"),
        (None, "f=None is no formula"),
        ("t^2", r"refused at 't\^2': .*write \*\*"),
        ("ln(t)", "no such function; .*Known: abs, exp, log"),
        ("x*log(x)", "unknown name; .*Known: abs, e, exp"),
        ("log(t, 2)", "log takes 1 argument$"),
        ("max(t)", "max takes 2 to 8 arguments"),
        ("log(x=t)", "arguments have no names"),
        ("t*log", r"a function without an argument: write log\(...\)"),
        ("t*log(t) + t - 1 # mine", "holds a comment"),
        ("t*log2(t)", r"no such function; write log\(x\)/log\(2\)"),
        ("huber(t - 1)", r"no such function; write x\*\*2 - pos\(abs\(x\) - 1\)\*\*2"),
        ("2(t - 1)**2", r"two factors without a sign between them: write \* for products"),
        ("np.log(t)", "no such function"),
        ("t(t - 1)", r"write \* for products"),
        ("(t - 1)(t - 1)", r"write \* for products"),
        ("|t - 1|", r"abs\(t\) for \|t\|"),
        ("2t", r"cannot be read \(.*\): write it as in Python"),
        ("t - 1 = 0", "cannot be read"),
        ("1/0", "division by zero"),
        ("1/(t-t)", "division by zero"),
        ("log(0) - t", "it must be a real number for every t > 0"),
        ("sqrt(-1)*t", "it must be a real number"),
        ("max(log(-2), t)", "not a real number"),
        ("t**log(-2)", "not a real number"),
        ("True", "not a real number"),
        ("1e-400*(t-1)**2", "refused at '1e-400': a number that doubles round to 0"),
        ("1j*t", "not a real number"),
        ("t < 1", "only numbers, t, pi, e"),
        ("t // 2", r"only \+ - \* / and \*\* are operators"),
    ],
)
def test_what_cannot_be_read_is_refused_at_its_part(text: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        line_of(text)


@pytest.mark.grid(every=5)
@pytest.mark.parametrize("size", ["1e-12*", "1e-35*", "1e9*1e3*"])
@pytest.mark.parametrize(
    "text",
    [
        "t*log(t) - t + 1",
        "abs(t-1)/2",
        "(t-1)**2/(t+1)",
        "max(t, 1/t) - 1",
        "log(t)**2 - 2*log(t) + 2*t*log(t)",
        "pos(t**2-400)",
    ],
)
def test_a_multiple_of_f_is_known_as_well_as_f(text: str, size: str) -> None:
    f, times = parsed(text), 1e12 if size.endswith("1e3*") else float(size[:-1])
    multiple = FDivergence.parse(f"{size}({text})")
    for name in ("convexity", "kinks", "strictly_convex"):
        assert getattr(multiple, name) == getattr(f, name)
    assert (multiple.expression is None) == (f.expression is None)
    at = np.array([1e-9, 0.3, 1.0, 2.5, 1e9])
    for ours, theirs in (
        (multiple.f(at), f.f(at)),
        (multiple.derivative(at), f.derivative(at)),
        (multiple.second_derivative(at), f.second_derivative(at)),
        (np.array([multiple.limit_at_zero, multiple.limit_slope]), np.array([f.limit_at_zero, f.limit_slope])),
    ):
        assert ours == pytest.approx(times * theirs, rel=1e-12, abs=0.0)


def test_parts_of_very_different_size_all_count() -> None:
    f = FDivergence.parse("-log(t) + 1e-16*t*log(t)")
    assert f.expression is not None
    assert f.limit_slope == np.inf
    assert f.f(np.array([1e25]))[0] == pytest.approx((1e9 - 1.0) * np.log(1e25), rel=1e-12)


def test_where_an_exponential_overflows_in_f_the_second_derivative_is_a_number() -> None:
    f = FDivergence.parse("1/(1+exp(t)) + t**2/10 - 1/(1+e) - 0.1")
    assert f.second_derivative(np.array([400.0, 588.7, 5000.0])) == pytest.approx(0.2, rel=1e-14)


def test_the_modulus_of_a_root_has_a_derivative() -> None:
    f = FDivergence.parse("abs(sqrt(t**2-t+1)) - 1")
    assert f.derivative(np.array([2.0])) == pytest.approx(1.5 / np.sqrt(3.0))


@pytest.mark.parametrize("t", [1e-12, 0.3, 0.5, 0.9, 1.1, 1e9])
def test_a_power_of_a_difference_of_powers_is_exact_near_its_ends(t: float) -> None:
    f, exact = parsed("abs(t**(1/4)-1)**4"), Decimal(t) ** Decimal("0.25") - 1
    assert f.f(np.array([t]))[0] == pytest.approx(float(exact**4), rel=1e-13)  # a few roundings
    slope = float(exact**3 * Decimal(t) ** Decimal("-0.75"))
    assert f.derivative(np.array([t]))[0] == pytest.approx(slope, rel=1e-13)


def test_exponents_that_sum_to_1_but_for_rounding_make_a_mean() -> None:
    assert FDivergence.parse("abs(t-1)**2.2/(t+1)**1.2").expression is not None


def test_a_line_of_text_is_taken_wherever_a_name_is() -> None:
    assert divergence("(t - 1)**4").formula == "(t - 1)**4"
    assert FDivergence.parse("(t - 1)**4", name="quartic").name == "quartic"
    hints = {"t^2-1": r"write \*\* for it", "t ln t": "as in Python", "|t-1|": r"abs\(t\) for", "2t-2": "as in Python"}
    for text, hint in (hints | {"t²-1": "plain ASCII", "np.maximum(t,1)": "write max; "}).items():
        with pytest.raises(ModelError, match=hint):
            divergence(text)
    with pytest.raises(ModelError, match="did you mean 'chi-square'"):
        divergence("chi squar")


def test_a_parsed_divergence_goes_to_workers() -> None:
    f = FDivergence.parse("t*log(t) + (1-t)**2")
    again = cloudpickle.loads(cloudpickle.dumps(f))
    assert again.f(T) == pytest.approx(f.f(T), abs=0.0)
    assert form_value(again, np.array([0.5, 0.5]), np.array([0.2, 0.8])) == pytest.approx(
        f.between(np.array([0.5, 0.5]), np.array([0.2, 0.8])), abs=1e-14
    )


def test_one_number_is_taken_like_an_array_by_an_f_without_a_form() -> None:
    f = FDivergence.parse("(t-1)**2/(1+abs(t-1)) + 0.1*(t-1)**2")
    assert f.expression is None
    assert float(f.f(3.0)) == pytest.approx(4.0 / 3.0 + 0.4, abs=1e-14)
    assert float(f.second_derivative(2.0)) == pytest.approx(0.45, abs=1e-14)
    assert float(f.second_derivative(1.0)) == pytest.approx(2.2, abs=1e-14)  # where two pieces meet


def test_two_spellings_of_a_square_have_one_form() -> None:
    broken = FDivergence.parse("min(abs(t-1), 1)**2 + pos(abs(t-1) - 1)*(abs(t-1) + 1)")
    q, p = np.array([0.6, 0.3, 0.1]), np.array([0.1, 0.2, 0.7])
    assert form_value(broken, q, p) == pytest.approx(float(np.sum((q - p) ** 2 / q)), abs=1e-7)
    assert float(broken.second_derivative(2.0)) == pytest.approx(2.0, abs=1e-14)


@pytest.mark.parametrize("tiny", ["1e-31", "1e-50", "1e-70"])
@pytest.mark.parametrize("beside", ["log(t)", "log(2) - log(1 + 1/t)"])
def test_a_tiny_part_that_outgrows_the_others_decides_the_slope_at_infinity(tiny: str, beside: str) -> None:
    assert FDivergence.parse(f"{tiny}*t*log(t) - ({beside})").limit_slope == np.inf


@pytest.mark.parametrize("t", [1.0 - 1e-4, 1.0 + 1e-6, 1.0 + 1e-9])
def test_entropies_that_cancel_near_one_keep_their_digits(t: float) -> None:
    jensen = FDivergence.parse("t*log(t) - (1+t)*log((1+t)/2)").f(np.array([t]))
    d = t - 1.0  # f = d^2/4 - d^3/8 + ..., whose next term is below d^4/13
    assert jensen == pytest.approx(d**2 / 4 - d**3 / 8, rel=d**2 + 1e-6, abs=0.0)


FAR_OUT = [
    "-t*log(1+1/t) + log(2)",
    "(t**2+1)/(t+1) - (1+t)/2",
    "sqrt((t-1)**2+1e-6) - 1e-3",
    "t**3 - 1",
]
FARTHER = [
    "(t-1)**2/(t+1)*exp((t-1)**2/(t+1)**2)",  # without a form
    "log(1+1/t) - log(2)",
    "log((t+1)/(2*t))",
    "(t-1)**2/(0.25+0.75*t)",
    "(1+t**3)**(1/3) - 2**(-2/3)*(1+t)",
    "(1+t)/2 - ((1+sqrt(t))/2)**2",
    "abs(1-t**0.3)**(1/0.3)",
    "t*log(1+exp(-1/t)) - log(1+exp(-1))",
    "(t+1e6)*log((t+1e6)/(1+1e6))",
    "max(t**2, 1/t) - 1",
    "t*exp(1/t) - e",
    "exp(-t) - exp(-1)",
    "-log(log(1+t)/log(2))",
]


@pytest.mark.parametrize("text", [*FAR_OUT, *(pytest.param(one, marks=pytest.mark.slow) for one in FARTHER)])
def test_values_far_out_keep_their_digits_where_large_parts_cancel(text: str) -> None:
    f = FDivergence.parse(text)
    exact = re.sub(r"\b(\d[\d.]*(e-?\d+)?)", r"mpf('\1')", f.formula)
    for t in (1e-300, 1e-120, 1e-16, 1e-6, 5e3, 1e6, 1e8, 1e16, 1e22, 1e170, 1e300):
        with mpmath.workdps(100 + round(6 * abs(np.log10(t)))):
            step = mpmath.mpf(t) * mpmath.mpf(10) ** (-20 - round(abs(np.log10(t))))
            low, at, high = (eval(exact, vars(mpmath) | {"abs": abs, "t": t + k * step}) for k in (-1, 0, 1))
            true = [float(at), float((high - low) / (2 * step)), float((low - 2 * at + high) / step**2)]
        found = [float(one(np.array([t]))[0]) for one in (f.f, f.derivative, f.second_derivative)]
        assert found == pytest.approx(true, rel=1e-9, abs=1e-306)


@pytest.mark.parametrize(
    ("text", "at_zero", "slope"),
    [
        ("1 - t**0.01", 1.0, 0.0),
        ("(t**1e-3 - 1)/(-0.000999)", 1.0 / 0.000999, 0.0),
        ("1 - t**0.999", 1.0, 0.0),
        pytest.param("log(3) - t**0.001*log(2+t)", np.log(3.0), 0.0, marks=pytest.mark.slow),
    ],
)
def test_a_slow_power_has_the_limit_of_its_formula(text: str, at_zero: float, slope: float) -> None:
    f = FDivergence.parse(text)
    assert (f.limit_at_zero, f.limit_slope) == pytest.approx((at_zero, slope), rel=1e-10, abs=1e-10)


@pytest.mark.slow
def test_a_slow_power_of_a_logarithm_is_not_called_infinite() -> None:
    """log(2+1/t)**-0.01 goes to 0 with differences whose ratio is .993."""
    found = FDivergence.parse("log(3)**(-0.01) - log(2+1/t)**(-0.01)").limit_at_zero
    assert found == pytest.approx(np.log(3.0) ** -0.01, abs=1e-6)


@pytest.mark.parametrize("text", ["-log(log(1+e*t)/log(1+e))", "-log(log(1+t)/log(2))", "-log(log(2+t)/log(3))"])
def test_a_logarithm_of_a_logarithm_keeps_its_digits_near_zero(text: str) -> None:
    """The derivative in p was off by 1e-3 at t = 1e-15, and not a number at 1e-200."""
    f = FDivergence.parse(text)
    t = np.array([1e-290, 1e-200, 1e-15, 1e-12, 1e-9, 1e-6, 1e-3])
    inner = {"-log(log(1+e*t)/log(1+e))": (1, mpmath.e), "-log(log(1+t)/log(2))": (1, 1)}.get(text, (2, 1))
    with mpmath.workdps(400):
        first, factor = map(mpmath.mpf, inner)
        wanted = []
        for one in map(mpmath.mpf, t.tolist()):
            log = mpmath.log(first + factor * one)
            value = -mpmath.log(log / mpmath.log(first + factor))
            wanted.append(float(value + one * factor / ((first + factor * one) * log)))
    assert f.gradients(np.ones(t.size), t)[0] == pytest.approx(wanted, rel=1e-11)


@pytest.mark.parametrize("rate", ["1e3", "1e6", "1e9"])
def test_an_f_that_bends_far_from_1_alone_is_no_straight_line(rate: str) -> None:
    f = FDivergence.parse(f"exp(-{rate}*t)-exp(-{rate})")
    assert f.limit_at_zero == 1.0
    assert float(f.f(np.array([1.0 / float(rate)]))[0]) == pytest.approx(np.exp(-1.0))


@pytest.mark.parametrize(("share", "rest"), [(0.9, 0.1), (0.99, 0.01)])
def test_parts_of_a_form_that_cancel_cost_no_digits(share: float, rest: float) -> None:
    t = np.geomspace(1e-3, 1e3, 61)
    for text in (f"-log(t/({share}*t+{rest}))", f"log({share}*t+{rest}) - log(t)"):  # entropies of 300, whose sum is .1
        assert FDivergence.parse(text).f(t) == pytest.approx(np.log(share + rest / t), abs=1e-13)


@pytest.mark.parametrize("spelling", sorted({one.partition(" of ")[0] for one in OTHER_NAMES.values()} - {*FUNCTIONS}))
def test_the_spelling_that_a_hint_names_is_read(spelling: str) -> None:
    line_of(re.sub(r"\b[abxy]\b", lambda one: {"x": "(t - 1)", "y": "t"}.get(one[0], "3"), spelling))


def test_the_spelling_of_huber_is_cvxpys_atom_and_has_a_form() -> None:
    f = parsed(OTHER_NAMES["huber"].replace("x", "(t - 1)"))
    assert f.convexity == "proved"
    assert f.expression is not None
    assert f.f(T) == pytest.approx(cp.huber(T - 1.0).value, rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("text", ["exp(t - 1) - 1 - pi*(t - 1)", "sqrt(2)*(3*t - 3 + (t - 1)**2)"])
def test_a_multiple_of_t_within_a_sum_times_a_number_is_seen(text: str) -> None:
    f = parsed(text)
    assert "f is least at t = 1" in f.notes[-1]
    assert f.f(T).min() >= 0.0
