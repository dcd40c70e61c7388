"""`cpv.verify`: what is right passes, and each of the usual mistakes is caught where it is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import cvxpriv as cpv
from cvxpriv.divergences import FDivergence, divergence, forms
from cvxpriv.divergences.verification import checks, curve, dcp_form
from cvxpriv.divergences.verification.agreement import row_optimum
from cvxpriv.divergences.verification.derivatives import numerical_slope
from cvxpriv.divergences.verification.findings import Check, Finding, judged, run_checks
from cvxpriv.divergences.verification.setting import DivergenceSetting
from cvxpriv.errors import ModelError

from .divergence_cases import BUILT_IN, NOT_STRICT

MI, KL, JS, LE_CAM, TV, NEYMAN, CHI = (
    divergence(name)
    for name in (
        "mutual-information",
        "reverse-kl",
        "jensen-shannon",
        "le-cam",
        "total-variation",
        "neyman",
        "chi-square",
    )
)
FAST = ["ECOS", "CLARABEL"]


def failures(f: FDivergence | str, **options: object) -> dict[str, Finding]:
    return {one.check: one for one in cpv.verify(f, solvers=FAST, **options).failed}  # type: ignore[arg-type]


def verdict(f: FDivergence | str, check: str) -> Finding:
    return next(one for one in cpv.verify(f, solvers=FAST).findings if one.check == check)


@pytest.mark.grid(every=3)
@pytest.mark.parametrize("name", BUILT_IN)
def test_every_built_in_divergence_passes(name: str) -> None:
    found = cpv.verify(name)
    assert found.passed, str(found)
    found.raise_if_failed()


@pytest.mark.parametrize(
    ("interval", "seed"),
    [
        ((0.2, 50.0), 1),
        *(pytest.param(*one, marks=pytest.mark.slow) for one in (((0.2, 50.0), 2), ((1e-5, 1e5), 1), ((1e-5, 1e5), 2))),
    ],
)
def test_the_verdict_is_one_of_the_divergence_and_not_of_the_draw(seed: int, interval: tuple[float, float]) -> None:
    for name in ("chi-square", "alpha:3", "jensen-shannon"):
        assert failures(name, seed=seed, interval=interval) == {}


@pytest.mark.grid(every=2)
@pytest.mark.parametrize("text", ["t*log(t)", "abs(t-1)/2", "(t-1)**4", "(1-t)**2/(t+2)"])
def test_one_line_of_text_is_verified_with_a_known_form_or_with_tangents(text: str) -> None:
    assert failures(text) == {}


def constrained_le_cam(p: cp.Expression, q: cp.Expression) -> forms.Form:
    value, constraints = forms.squares_over(2.0, 2.0)(p, q)
    return value, [*constraints, p <= 2.0 * q]


def doubled_chi_square(p: cp.Expression, q: cp.Expression) -> forms.Form:
    value, constraints = forms.squares_over(0.0, 1.0)(p, q)
    return 2.0 * value, constraints


def unbounded(p: cp.Expression, q: cp.Expression) -> forms.Form:
    return cp.sum(cp.Variable(p.shape)), []


def turns_down_at_50(t: np.ndarray) -> np.ndarray:
    return np.where(t < 50.0, (t - 1.0) ** 2, 2401.0 + 98.0 * (t - 50.0) - 1e-3 * (t - 50.0) ** 2)


def tiny_kink(t: np.ndarray) -> np.ndarray:
    return (t - 1.0) ** 2 + 1e-6 * np.maximum(t - 3.0, 0.0)


def narrow_bump(t: np.ndarray) -> np.ndarray:
    return (t - 1.0) ** 2 + 1e-3 * np.maximum(0.0, 1.0 - np.abs(t - 7.0) / 1e-3)


def convex_near_1(t: np.ndarray) -> np.ndarray:
    away = np.abs(t - 1.0)
    return np.where(away < 0.5, away**2, 0.25 + np.sqrt(np.maximum(away - 0.5, 0.0)))


def changes_its_argument(t: np.ndarray) -> np.ndarray:
    t -= 1.0
    return t**2


def leaves(t: np.ndarray) -> np.ndarray:
    raise SystemExit(0)


def only_where_sums_are_1(p: cp.Expression, q: cp.Expression) -> forms.Form:
    return cp.sum(cp.rel_entr(p, q)), [cp.sum(p) == 1.0]


VALUE, CONVEX = "expression is sum p f(q/p)", "f is convex"
TRAPS: dict[str, tuple[FDivergence, str, str]] = {
    "concave": (FDivergence("x", f=np.log), CONVEX, "above a chord"),
    "not convex on a part": (FDivergence("x", f=turns_down_at_50), CONVEX, "above a chord"),
    "wrong derivative": (replace(KL, fprime=np.log), "f' is right", "fprime gives"),
    "derivative off by 1e-6 of t": (replace(KL, fprime=lambda t: np.log(t) + 1.0 + 1e-6 * t), "f' is right", "gives"),
    "wrong second derivative": (replace(JS, fsecond=lambda t: 1.0 / (t * (t + 2.0))), "f'' is right", "fsecond gives"),
    "wrong partials": (
        replace(MI, partials=lambda p, q: (np.log(p / q), -p / q)),
        "partials are right",
        "the one in p is wrong",
    ),
    "expression of another f": (replace(JS, expression=MI.expression), VALUE, "it is that of mutual-information"),
    "kl_div for rel_entr": (
        replace(MI, expression=lambda p, q: (cp.sum(cp.kl_div(p, q)), [])),
        VALUE,
        "as kl_div is from rel_entr",
    ),
    "arguments swapped": (
        replace(MI, expression=lambda p, q: (cp.sum(cp.rel_entr(q, p)), [])),
        VALUE,
        "so swap P and Q",
    ),
    "twice the value": (replace(CHI, expression=doubled_chi_square, auxiliary=None), VALUE, "it is twice that"),
    "f(1) is not 0": (FDivergence("x", f=lambda t: 0.1 - np.log(t)), "f(1) = 0", "subtract f(1)"),
    "wrong limit at zero": (replace(KL, at_zero=1.0), "limit of f at 0", "correct at_zero"),
    "wrong slope at infinity": (replace(KL, slope_at_infinity=0.0), "limit of f(t)/t at infinity", "grows without end"),
    "constraints that exclude points": (
        replace(LE_CAM, expression=constrained_le_cam, auxiliary=None),
        "constraints exclude nothing",
        "mechanisms are excluded",
    ),
    "a constraint is missing": (replace(KL, expression=unbounded), VALUE, "a side constraint is missing"),
    "weights are missing": (
        replace(NEYMAN, expression=lambda p, q: (cp.sum(cp.square(p - q)), []), auxiliary=None),
        "expression is homogeneous",
        "lacks its weight",
    ),
    "not DCP": (
        replace(KL, expression=lambda p, q: (cp.sum(cp.multiply(q, cp.log(q) - cp.log(p))), [])),
        "expression is DCP",
        "not DCP: the expression",
    ),
    "no pair": (replace(KL, expression=lambda p, q: cp.rel_entr(q, p)), "expression is DCP", "a scalar cvxpy expr"),
    "wrong auxiliary": (replace(NEYMAN, auxiliary=lambda p, q: (p - q,)), "auxiliary is right", "does not give"),
    "NaN inside the interval": (
        FDivergence("x", f=lambda t: np.where(np.abs(t - 3.0) < 0.05, np.nan, (t - 1.0) ** 2)),
        "f is finite",
        "f is nan at",
    ),
    "not element by element": (FDivergence("x", f=lambda t: np.float64(0.0)), "f is finite", "element by element"),
    "raises": (FDivergence("x", f=lambda t: t / 0), "f is finite", "narrow the interval"),
    "strict convexity claimed": (
        replace(TV, strictly_convex=True),
        "(a) f is strictly convex",
        "strictly_convex=False",
    ),
    "convex near 1 only": (FDivergence("x", f=convex_near_1), CONVEX, "above a chord"),
    "a bump as narrow as 1e-3": (FDivergence("x", f=narrow_bump), CONVEX, "above a chord"),
    "a step": (FDivergence("x", f=lambda t: t * np.log(t) + 0.01 * (t >= 5.0)), CONVEX, "above a chord"),
    "single precision": (FDivergence("x", f=lambda t: ((t - 1.0) ** 2).astype(np.float32)), CONVEX, "above a chord"),
    "a gap as narrow as 2e-3": (
        FDivergence("x", f=lambda t: np.where(np.abs(t - 7.0) < 1e-3, np.nan, (t - 1.0) ** 2)),
        "f is finite",
        "f is nan at",
    ),
    "complex numbers": (FDivergence("x", f=lambda t: t * np.log(t) + 0j), "f is finite", "return real numbers"),
    "texts": (FDivergence("x", f=lambda t: t.astype(str)), "f is finite", "return real numbers"),
    "scalars only": (FDivergence("x", f=lambda t: t * np.log(t) if t > 0 else 0.0), "f is finite", "ValueError"),
    "changes its argument": (FDivergence("x", f=changes_its_argument), "f is finite", "work on a copy"),
    "ends the process": (FDivergence("x", f=leaves), "f is finite", "raised SystemExit"),
    "f(1) is 1e-9": (FDivergence("x", f=lambda t: t * np.log(t) + 1e-9), "f(1) = 0", "subtract f(1)"),
    "a limit that is no number": (replace(JS, at_zero=np.nan), "limit of f at 0", "correct at_zero"),
    "wrong curvature along q": (
        replace(JS, in_q=lambda p, q: (JS.partials(p, q)[1], 2.0 * JS.fsecond(q / p) / p)),
        "partials are right",
        "the second one of in_q is wrong",
    ),
    "right only where sums are 1": (
        replace(MI, expression=only_where_sums_are_1),
        "constraints exclude nothing",
        "mechanisms are excluded",
    ),
    "a kink of 1e-6": (FDivergence("x", f=tiny_kink), "(b) f' is Lipschitz", "pass kinks=(...)"),
    "a kink of 1e-6 in a given derivative": (
        FDivergence("x", f=tiny_kink, fprime=lambda t: 2.0 * (t - 1.0) + 1e-6 * (t >= 3.0)),
        "(b) f' is Lipschitz",
        "pass kinks=(...)",
    ),
    "kink not declared": (replace(TV, kinks=()), "(b) f' is Lipschitz", "pass kinks=(...)"),
}


@pytest.mark.grid(every=6)
@pytest.mark.parametrize("trap", TRAPS)
def test_a_wrong_divergence_is_caught_by_the_check_of_what_is_wrong(trap: str) -> None:
    f, check, meaning = TRAPS[trap]
    found = failures(f)
    assert check in found
    assert meaning in found[check].meaning


def test_an_f_that_outgrows_doubles_is_checked_up_to_there_and_it_is_said() -> None:
    found = cpv.verify(FDivergence("x", f=lambda t: np.exp(t) - np.e), solvers=FAST)
    assert found.passed, str(found)
    assert "t = q/p in [0.001, 229.615]" in found.subject  # log 1e100 = 230, less a step of the grid
    assert found.about == ("f is larger than 1e+100 above t = 229.615: it is checked up to there",)


def test_the_example_of_the_documentation_passes() -> None:
    text = (Path(__file__).parents[2] / "docs" / "divergences.md").read_text(encoding="utf-8")
    section = text[text.index("## Your own, as an object") :]
    code = section[section.index("```python") + 9 :]
    names: dict[str, object] = {"cpv": cpv}
    exec(code[: code.index("```")], names)
    assert failures(names["f"]) == {}


POWERS = "1.21*t*log(t) + 1.24*abs(1.83*t + 1.27)**1.5 - 0.85*t**0.43*(0.83*t + 0.19)**0.17"


@pytest.mark.slow
def test_powers_of_small_cells_which_solvers_lose_digits_of_refute_no_right_f() -> None:
    at_one = 1.24 * 3.1**1.5 - 0.85 * 1.02**0.17
    cpv.verify(f"{POWERS} - {at_one!r}", solvers=("CLARABEL",)).raise_if_failed()


def test_kl_div_equals_rel_entr_on_distributions_and_is_caught_all_the_same() -> None:
    f = TRAPS["kl_div for rel_entr"][0]
    found = failures(f)
    assert "solvers find the optimum" not in found  # q - p sums to 0 there
    assert {VALUE, "the same in variables"} <= set(found)


def test_the_worst_point_of_a_local_mistake_lies_where_it_was_made() -> None:
    local = replace(NEYMAN, fprime=lambda t: 2.0 * (t - 1.0) + np.where(np.abs(t - 5.0) < 0.3, 1e-3, 0.0))
    point = failures(local)["f' is right"].worst_point
    assert abs(point["t"] - 5.0) < 0.3


@pytest.mark.parametrize(
    ("name", "constant"),  # f'' at the floor of 1e-3: 1/t^2, 2, t^-1.5/2
    [("mutual-information", 1e6), ("neyman", 2.0), ("hellinger", 0.5 * 1e-3**-1.5)],
)
def test_the_lipschitz_constant_is_the_largest_second_derivative(name: str, constant: float) -> None:
    # The steepest part has a relative width of 7e-6, on which f'' of these changes by 3e-5 at most.
    assert verdict(name, "(b) f' is Lipschitz").worst_value == pytest.approx(constant, rel=1e-4)


@pytest.mark.parametrize("name", NOT_STRICT)
def test_what_is_declared_not_strict_or_kinked_says_which_guarantees_go_and_does_not_fail(name: str) -> None:
    strict, lipschitz = (verdict(name, check) for check in ("(a) f is strictly convex", "(b) f' is Lipschitz"))
    assert {strict.verdict, lipschitz.verdict} == {"not applicable"}
    assert "minimisers need not be unique" in strict.meaning
    assert "lose their guarantees" in lipschitz.meaning


def test_an_undeclared_kink_is_found_without_a_derivative_too() -> None:
    bare = FDivergence("x", f=lambda t: np.maximum(t - 1.0, 0.0) + (t - 1.0) ** 2)
    assert failures(bare)["(b) f' is Lipschitz"].worst_point["t"] == pytest.approx(1.0, rel=1e-4)


@pytest.mark.parametrize("power", [1.2, 2.5, 4.0])
def test_a_corner_of_a_higher_derivative_is_no_kink(power: float) -> None:
    f = FDivergence("x", f=lambda t: np.abs(t - 1.0) ** power, fprime=None)
    # |t - 1|^0.2 is no Lipschitz f', though it does not jump; those of larger powers are.
    assert verdict(f, "(b) f' is Lipschitz").verdict == ("not applicable" if power < 2.0 else "holds")


def test_a_small_kink_beside_a_declared_one_is_found() -> None:
    f = replace(TV, f=lambda t: TV.f(t) + tiny_kink(t), fprime=None, partials=None, fsecond=None, strictly_convex=True)
    assert failures(f)["(b) f' is Lipschitz"].worst_point["t"] == pytest.approx(3.0, rel=1e-4)


def test_without_an_expression_tangents_are_solved_and_the_form_is_not_judged() -> None:
    found = cpv.verify(replace(JS, expression=None), solvers=FAST)
    verdicts = {one.check: one.verdict for one in found.findings}
    assert found.passed
    assert verdicts["solvers find the optimum"] == "holds"
    assert {verdicts[check] for check in ("expression is DCP", VALUE, "expression is homogeneous")} == {
        "not applicable"
    }


def test_the_same_seed_gives_the_same_table() -> None:
    timed = ["check", "verdict", "worst_value", "worst_point", "meaning"]
    first, second = (cpv.verify("le-cam", solvers=["ECOS"], seed=3).table[timed] for _ in range(2))
    assert first.equals(second)


def test_a_failure_raises_with_the_check_the_point_and_the_remedy() -> None:
    found = cpv.verify(TRAPS["wrong limit at zero"][0], solvers=FAST)
    with pytest.raises(ModelError, match=r"limit of f at 0 fails at t = 1e-150: .*correct at_zero"):
        found.raise_if_failed()
    assert not found.passed


def test_the_text_names_the_formula_the_interval_every_check_and_the_count() -> None:
    found = cpv.verify("total-variation", solvers=["HIGHS"])
    text = str(found)
    assert text.splitlines()[0] == "total-variation: f(t) = |1-t|/2, t = q/p in [0.001, 1000]"
    assert all(check in text for check in found.table["check"])
    assert text.splitlines()[-1] == found.summary
    assert max(map(len, text.splitlines()[: len(found.findings) + 2])) <= 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("jensen-shanon",), "did you mean 'jensen-shannon'"),
        (("js", (2.0, 3.0)), "0 < low < 1 < high"),
        (("js", (0.0, 3.0)), "0 < low < 1 < high"),
        (("js", 1e-3), "0 < low < 1 < high"),
        ((3.5,), "cannot be verified: pass an FDivergence"),
        (("__import__('os')",), "is refused"),
    ],
)
def test_what_cannot_be_verified_is_refused_at_the_door(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ModelError, match=message.replace("(", r"\(").replace(")", r"\)")):
        cpv.verify(*arguments)  # type: ignore[arg-type]


def test_a_formula_that_makes_no_divergence_is_verified_to_show_why() -> None:
    assert {"f is convex", "data processing"} <= set(failures("log(t)"))
    assert "f(1) = 0" in failures("t*log(t) + 1")


def test_checks_that_presuppose_a_failed_one_do_not_apply_and_what_raises_fails() -> None:
    def raises(setting: int) -> Finding:
        raise KeyError(setting)

    checks = (
        Check("first", raises),
        Check("second", lambda _: Finding("holds", ""), needs=("first",)),
        Check("third", lambda _: Finding("holds", ""), barred_by=("first",)),
        Check("fourth", lambda _: Finding("not applicable", "there is none")),
        Check("fifth", lambda _: Finding("holds", ""), needs=("fourth",)),
        Check("sixth", lambda _: Finding("holds", ""), barred_by=("fourth",)),
    )
    found = run_checks(checks, 7)
    assert [one.verdict for one in found] == ["fails", *["not applicable"] * 4, "holds"]
    assert found[0].meaning == "raised KeyError: 7"
    assert found[4].meaning == "there is none"


def test_no_number_is_the_largest_error() -> None:
    found = judged(np.array([0.5, np.nan, 3.0]), 1.0, lambda k: {"k": k}, "good", "bad")
    assert (found.verdict, found.worst_point) == ("fails", {"k": 1})


@settings(max_examples=25, deadline=None)
@given(st.floats(-3.0, 4.0).filter(lambda a: min(abs(a), abs(a - 1.0)) > 0.05), st.floats(0.01, 50.0))
def test_the_slope_from_values_alone_is_exact_for_what_takes_complex_numbers(a: float, t: float) -> None:
    f = divergence(f"alpha:{a:.3f}")
    at = np.array([t])
    slope, tolerance = numerical_slope(f.f, at, f.f)
    assert abs(slope - f.derivative(at)) <= tolerance
    assert tolerance[0] <= 1e-9 * (1.0 + abs(slope[0]))  # the complex step, not differences


def test_the_complex_step_of_a_modulus_is_not_believed() -> None:
    slope, _ = numerical_slope(TV.f, np.array([0.3, 7.0]), TV.f)
    assert slope == pytest.approx([-0.5, 0.5], abs=1e-9)  # the imaginary part of |1 - t| is 0


@pytest.mark.parametrize(
    ("cost", "optimum"),
    [
        # min sum p log p + c p on the simplex = -log sum exp(-c)
        (lambda p: p * np.log(p) + np.array([0.1, 0.5, 0.9]) * p, -np.log(np.exp([-0.1, -0.5, -0.9]).sum())),
        # min sum (p - c)^2 with sum c = 1.3: each moves by 0.1
        (lambda p: (p - np.array([0.3, 0.4, 0.6])) ** 2, 0.03),
        # linear: all on the cheapest, up to the lower bounds of 1e-4
        (lambda p: np.array([0.2, 0.1, 0.4]) * p, 0.1 + 1e-4 * (0.1 + 0.3)),
    ],
)
def test_the_row_optimum_from_values_alone_is_the_known_one(
    cost: Callable[[np.ndarray], np.ndarray], optimum: float
) -> None:
    low, high = np.full(3, 1e-4), np.ones(3)
    assert row_optimum(cost, low, high) == pytest.approx(optimum, abs=1e-10)  # golden sections: values to rounding


TINY = ("-log(t)+1e-10*t*log(t)", "1e-31*t*log(t)-log(t)", "1e-31*(t*log(t))+(1/t-1)", "(1-sqrt(t))**2-1e-31*log(t)")


@pytest.mark.parametrize("text", [*TINY, "1-t**0.01", "1e-20*(t**(-0.01)-1)"])
def test_a_limit_that_tiny_or_slow_parts_decide_refutes_no_right_f(text: str) -> None:
    f = FDivergence.parse(text)
    setting = DivergenceSetting(f, (1e-3, 1e3), None, 0)
    assert {check(setting).verdict for check in (checks.at_zero, checks.at_infinity)} == {"holds"}


def test_solves_at_two_scales_may_each_be_off_by_their_own_accuracy() -> None:
    setting = DivergenceSetting(FDivergence.parse("(t**(1/3)-1)**6/t"), (1e-3, 1e3), None, 0)
    assert dcp_form.homogeneous(setting).verdict == "holds"


def test_a_wrong_limit_of_a_tiny_f_is_found() -> None:
    f = replace(FDivergence.parse("1e-10*t*log(t)"), slope_at_infinity=0.0, convexity="declared")
    assert checks.at_infinity(DivergenceSetting(f, (1e-3, 1e3), None, 0)).verdict == "fails"
    dip = FDivergence("dip", f=lambda t: -1e-20 * (t - 1.0) ** 2)
    assert curve.convex(DivergenceSetting(dip, (1e-3, 1e3), None, 0)).verdict == "fails"


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["1e8*(t-1)**2", "-1e8*log(t)", "1e5*abs(t-1)", "1e9*(exp(t)-e)", "1e-9*(t-1)**2", "t**64-1"]
)
def test_a_right_divergence_of_any_size_passes(text: str) -> None:
    found = cpv.verify(text)
    assert found.passed, str(found)


def test_one_that_is_large_around_one_is_checked_in_units_of_its_size() -> None:
    f, unit = checks._in_units(divergence("1e8*(t-1)**2"))
    p, q = np.array([0.2, 0.8]), np.array([0.5, 0.5])
    assert unit == 1e6
    assert f.between(p, q) == pytest.approx(100.0 * NEYMAN.between(p, q), rel=1e-12)
    assert np.array(f.gradients(p, q)) == pytest.approx(100.0 * np.array(NEYMAN.gradients(p, q)), rel=1e-9)
    assert checks._in_units(MI) == (MI, 1.0)
