"""Convexity of typed functions: proved by rules or intervals, refuted at a point, and never claimed without a proof."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from cvxpriv.divergences import FDivergence
from cvxpriv.divergences.breakpoints import branches_of, roots_of
from cvxpriv.divergences.convexity import adjoint, bends, convexity_of, second_derivative
from cvxpriv.divergences.expansions import END_INFINITY, END_ZERO, settled
from cvxpriv.divergences.intervals import INTERVALS, Interval
from cvxpriv.divergences.jets import MANY_DIGITS, jet, value_at
from cvxpriv.divergences.parsing import line_of
from cvxpriv.divergences.spellings import spellings
from cvxpriv.errors import ModelError

from .divergence_corpus import CORPUS, TANGENTS
from .divergence_traps import hidden_dips

SOME = list(CORPUS.values())[::4]


@pytest.mark.parametrize(
    ("seed", "count"), [(1, 4), *(pytest.param(one, 12, marks=pytest.mark.slow) for one in (1, 4))]
)
def test_a_dip_of_the_curvature_is_never_called_convex_and_is_nearly_always_found(seed: int, count: int) -> None:
    missed = 0
    for trap in hidden_dips(seed, count):
        branches = branches_of(line_of(trap.text).f)
        found = convexity_of(branches)
        assert found.verdict != "proved", trap
        missed += found.verdict != "refuted"
        if found.verdict == "refuted":
            tree = branches.trees[sum(float(t) < found.t for t in branches.at)]
            assert second_derivative(tree, found.t) < 0, trap
    assert missed <= 1  # one in a hundred is narrower than the intervals that are looked at


def test_a_bump_of_width_one_thousandth_is_refused_where_it_stands() -> None:
    with pytest.raises(ModelError, match=r"is not convex: f''\((19.99|20.00)\d*\) = -\d+"):
        FDivergence.parse("(t-1)**2 - 0.01*exp(-((t-20)/0.001)**2)")


@pytest.mark.parametrize("text", [*TANGENTS.values(), "exp(t-1) - t", "t**4 + 1/t - 2"])
def test_what_intervals_prove_or_leave_open_is_convex_at_many_points(text: str) -> None:
    branches = branches_of(line_of(text).f)
    found = convexity_of(branches)
    assert found.verdict == "proved" or (found.verdict == "not refuted" and found.cells > 0)
    for t in np.geomspace(1e-5, 1e2, 43):
        assert second_derivative(branches.trees[0], float(t)) >= 0


@pytest.mark.parametrize(
    "text",
    [
        "(t**2-1)*log(t)",
        "(t-1)**2*exp((t-1)**2/t)",
        "(1-t)**2 - 0.1*(1-t)**2/(t+1)",
        "1/(1+exp(-t)) + (t-1)**2 - 1/(1+1/e)",  # far out the adjoint is 0 times infinity, and f itself is not
        "exp(-t**2) + t**2 - 1/e - 1",
        "-log(1-exp(-t)) + log(1-1/e)",
        "(t-1)*log(t)**3",  # f'' touches 0 at 1
    ],
)
def test_intervals_prove_over_the_whole_half_line_with_its_ends(text: str) -> None:
    f = FDivergence.parse(text)
    assert (f.convexity, f.expression) == ("proved", None)
    assert f.notes[0].startswith("convexity is proved by interval arithmetic")


def twice_integrated(powers: dict[Fraction, Fraction]) -> str:
    """An f whose f'' is sum c t^e."""
    special = {Fraction(-1): "t*log(t)", Fraction(-2): "-log(t)"}
    return " + ".join(
        f"({c})*{special[e]}" if e in special else f"({c / ((e + 1) * (e + 2))})*t**({e + 2})"
        for e, c in powers.items()
    )


def squared(random: np.random.Generator) -> dict[Fraction, Fraction]:
    """(t^a - b)^2 (c + t^d) t^e with b that is mostly no power of a rational number, multiplied out."""
    a, b, c = Fraction(int(random.integers(1, 7)), 2), -Fraction(int(random.integers(2, 9)), 3), random.integers(1, 4)
    d, e = Fraction(int(random.integers(0, 5))), Fraction(int(random.integers(-5, 3)))
    found: dict[Fraction, Fraction] = {}
    for inner, x in ((2 * a, Fraction(1)), (a, 2 * b), (Fraction(0), b * b)):
        for outer, y in ((Fraction(0), Fraction(int(c))), (d, Fraction(1))):
            found[inner + outer + e] = found.get(inner + outer + e, Fraction(0)) + x * y
    return found


@pytest.mark.parametrize(("seed", "count"), [(1, 2), pytest.param(2, 12, marks=pytest.mark.slow)])
def test_a_double_root_anywhere_is_proved_and_a_dip_beside_it_is_refuted(seed: int, count: int) -> None:
    random = np.random.default_rng(seed)
    for _ in range(count):
        powers = squared(random)
        text, other = twice_integrated(powers), twice_integrated({random.choice(list(powers)): Fraction(1)})
        for depth, verdict in ((0, "proved"), (1, "proved"), (-1, "refuted")):
            moved = f"{text} + ({depth}e-{random.integers(3, 13)})*({other})"
            assert convexity_of(branches_of(line_of(moved).f)).verdict == verdict, moved


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("log(1+t**2) + t**2/8", "proved"),  # f'' = (t^2 - 3)^2/(4 (1 + t^2)^2)
        ("exp(2*t)/4 - 4*exp(t) + 2*t**2", "proved"),  # (e^t - 2)^2
        ("exp(2*t)/4 - 4*exp(t) + 2*t**2 - 1e-12*t**2", "refuted"),
        ("t**2*log(t)**2/2 - 5*t**2*log(t)/2 + 15*t**2/4", "proved"),  # (log t - 1)^2
        ("t**2*log(t)**2/2 - 5*t**2*log(t)/2 + (15/4 - 1e-12)*t**2", "refuted"),
        ("exp(-t)*(t**4 + 8*t**3 + 32*t**2 + 80*t + 100)", "proved"),  # (t^2 - 2)^2 exp(-t)
    ],
)
def test_squares_of_other_functions_are_squares(text: str, verdict: str) -> None:
    assert convexity_of(branches_of(line_of(text).f)).verdict == verdict


def test_sizes_that_differ_hide_no_bend() -> None:
    for text in ("t**64 - t**63", "1e-20*(t**60 - t**59)"):
        with pytest.raises(ModelError, match="is not convex"):
            FDivergence.parse(text)


def test_what_is_not_proved_says_what_was_tried() -> None:
    f = FDivergence.parse("t**4/12 - 2**0.5*t**3/3 + t**2 - 13/12 + 2**0.5/3")  # f'' = (t - 2^(1/2))^2
    assert f.convexity == "not refuted"
    assert "none is known to hold a point where" in f.notes[0]


@pytest.mark.parametrize("text", SOME)
def test_the_second_derivative_lies_in_its_interval(text: str) -> None:
    f, random = line_of(text).f, np.random.default_rng(1)
    low = np.exp(random.uniform(-5.0, 3.0, 20))
    high = low * (1.0 + 10.0 ** random.uniform(-6.0, 0.0, 20))
    with np.errstate(all="ignore"):
        found = jet(f, Interval(low, high), INTERVALS)
    for k in range(20):
        t = mpmath.mpf(low[k]) + (mpmath.mpf(high[k]) - low[k]) * mpmath.mpf("0.37")
        for order, one in enumerate(jet(f, t, MANY_DIGITS)):
            if isinstance(found[order], Interval):
                least, most = (np.broadcast_to(side, (20,))[k] for side in (found[order].low, found[order].high))
                assert least <= one <= most, (text, order, t)


@pytest.mark.parametrize("text", SOME)
def test_the_adjoint_and_every_spelling_are_the_same_function(text: str) -> None:
    f = line_of(text).f
    for t in (mpmath.mpf("0.37"), mpmath.mpf("2.9")):
        with mpmath.workdps(40):
            true = value_at(f, t)
            assert abs(value_at(adjoint(f), 1 / t) - true / t) < mpmath.mpf(10) ** -35 * (1 + abs(true))
            assert all(abs(value_at(one, t) - true) < mpmath.mpf(10) ** -35 * (1 + abs(true)) for one in spellings(f))


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("abs(t-1)", [1.0]),
        ("min(abs(t-1), 0.5)**2 + pos(abs(t-1)-0.5)", [0.5, 1.0, 1.5]),
        ("pos(-log(t)-3)", [np.exp(-3.0)]),
        ("pos(t**2-400)", [20.0]),
        ("max(t, 1/t, 3)", [1.0 / 3.0, 1.0, 3.0]),
        ("pos(exp(t) - e**3)", [3.0]),
        ("abs(pos(t-2) - pos(1-t))", [1.0, 2.0]),  # 0 on an interval
        ("t*log(t)", []),
    ],
)
def test_breakpoints_are_found_whatever_stands_in_the_branches(text: str, places: list[float]) -> None:
    branches = branches_of(line_of(text).f)
    assert branches.complete
    assert list(map(float, branches.at)) == pytest.approx(places, rel=1e-14)
    for low, high, tree in zip([0.0, *places], [*places, np.inf], branches.trees, strict=True):
        t = (low + high) / 2.0 if np.isfinite(high) else 2.0 * low + 1.0
        assert value_at(tree, t) == value_at(line_of(text).f, t)


def test_a_double_root_is_no_change_of_sign_but_is_seen() -> None:
    roots = roots_of(line_of("t**2 - 4*t + 4").f)
    assert (roots.at, roots.complete) == ((), False)
    assert min(abs(t - 2.0) for t in roots.touching) < 1e-6


@pytest.mark.parametrize(
    "text",
    [
        "(t-1)**4 - 2*(t-1)**3 + 1.5*(t-1)**2",
        "(t-1)**4/(t**3+t)",
        "-log(sqrt(t)+t**2) + log(2)",
        "log(1+1/t**2) - log(2)",
        "t*log(t) - 0.001*log((1+t**2)/2)",
    ],
)
def test_a_second_derivative_that_touches_zero_or_vanishes_at_an_end_is_proved(text: str) -> None:
    assert FDivergence.parse(text).convexity == "proved"


@pytest.mark.parametrize("soft", ["10*log(1+exp(t))", "log(2+3*exp(2*t-20))", "log(1+exp(t)+exp(2*t))"])
def test_a_soft_maximum_hides_no_tiny_dip_and_a_square_outweighs_it(soft: str) -> None:
    dip = "1e-9/(1+(t-40)**2)"  # where the soft maximum has a bend of 1e-17
    proved = convexity_of(branches_of(line_of(f"{soft} + (t-1)**2 - {dip}").f))
    assert (proved.verdict, proved.cells < 3_000) == ("proved", True)  # 30,000 cells did not tell
    assert convexity_of(branches_of(line_of(f"{soft} + 1e-12*(t-1)**2 - {dip}").f)).verdict == "refuted"


def test_an_interval_on_which_f_is_straight_is_told_from_one_on_which_it_bends() -> None:
    assert bends(branches_of(line_of("pos(1-t)**2").f)) == (True, False)
    assert FDivergence.parse("abs(t-1)/2 + (t-1)**4").strictly_convex
    assert not FDivergence.parse("pos(1-t)**2").strictly_convex


@pytest.mark.parametrize("steep", ["20", "1e3", "1e6"])
def test_a_bend_that_is_small_far_from_its_place_is_no_straight_line(steep: str) -> None:
    found = FDivergence.parse(f"log(1 + exp({steep}*(t-1))) - log(2)")  # f'' = k^2/4 at 1, e^-k of that elsewhere
    assert (found.convexity, found.strictly_convex) == ("proved", True)
    assert found.second_derivative(np.array([1.0])) == pytest.approx(float(steep) ** 2 / 4, rel=1e-12)


@pytest.mark.parametrize("text", ["sqrt(t**2+2*t+1)-2", "log(1+t)-log((1+t)/2)-log(2)", "log(exp(pi*t))-pi", "t/3*3-1"])
def test_a_straight_line_is_refused_however_it_is_written(text: str) -> None:
    with pytest.raises(ModelError, match=r"straight line|simplifies"):
        FDivergence.parse(text)


@pytest.mark.parametrize(
    ("text", "place", "holds"),
    [
        ("t*log(t) - 5*t**1.5", END_ZERO, True),  # f'' = 1/t - 15/(4 sqrt t)
        ("t*log(t) - 5*t**1.5", END_INFINITY, False),
        ("-log(1-exp(-t))", END_ZERO, True),  # f'' = e^-t/(1 - e^-t)^2
        ("-log(1-exp(-t))", END_INFINITY, True),
        ("t*t**pi*log(t)", END_INFINITY, True),
        ("(t-1)*log(t)**3", Fraction(1), True),  # f'' = 12 (t - 1)^2 + ...
        ("log(t)**4 - (t-1)**4", Fraction(1), False),  # f'' = -40 (t - 1)^3 on the right
        ("exp(-1/t)/100 - t**9", END_ZERO, False),
        ("t + exp(-t**2) - exp(-2*t)", END_INFINITY, False),
        ("1e-9*log(1+exp(t)) - exp(-t)/1e8", END_INFINITY, False),
        ("-t**pi/t**3.1415926535897932384626433832", END_INFINITY, True),
    ],
)
def test_the_leading_term_decides_at_an_end_and_where_it_is_zero(text: str, place: str | Fraction, holds: bool) -> None:
    tree = line_of(text).f
    found = settled(tree, place)
    assert found is not None
    assert found[0] == holds
    with mpmath.workdps(120):
        for beyond in (0, 0.4, 2):
            u = mpmath.exp(found[1] + beyond)
            t = u if place == END_INFINITY else 1 / u if place == END_ZERO else place.numerator + 1 / u  # type: ignore[union-attr]
            assert (jet(tree, t, MANY_DIGITS)[2] >= 0) == holds


def test_where_leading_terms_cancel_nothing_is_decided() -> None:
    assert settled(line_of("e*t*log(t) - t*log(t)*exp(1)").f, END_INFINITY) in (None, (True, 1))
    assert settled(line_of("log(1+t)*log(log(2+t))*log(log(3+log(4+t)))").f, END_INFINITY) is None


FAR = {  # by text: parts that make it concave far out, or nowhere
    "exp(-t**2) + t**2": (
        ["t**2*log(t)", "t**4", "exp(t/4)", "t**-0.01", "1/t**9", "1/(1+(t-1e7)**2)"],
        "t*log(1+1/t)",
    ),
    "-log(1-exp(-t))": (["t**4", "exp(t/4)", "1/t**9", "t*log(t)"], "exp(-t)"),
    "(t-1)**2*exp(-t) + (t-1)**2": (["t**2*log(t)", "1/t**9", "t**-0.01"], "1/(1+(t-1e7)**2)"),
    "(t-1)*log(t)**3": (["t**4", "t**-0.01", "t*log(t)", "1/(1+(t-1e7)**2)"], "(t-1)**4*exp(-t)"),
    "1/log(1+t)": (["t**2*log(t)", "t*log(t)", "1/t**9"], "t**-0.01"),
}


def test_a_fault_beyond_all_doubles_is_told() -> None:
    with pytest.raises(ModelError, match=r"f'' < 0 from t=2.14042e\+7286252 on"):
        FDivergence.parse("(t-1)**2 - 1e-7*t**2*log(t)")


@pytest.mark.slow
@pytest.mark.parametrize("text", list(FAR))
def test_a_part_that_wins_only_far_out_is_refuted_there(text: str) -> None:
    dips, harmless = FAR[text]
    assert convexity_of(branches_of(line_of(f"{text} - 1e-7*{harmless}").f)).verdict == "proved"
    for dip in dips:
        assert convexity_of(branches_of(line_of(f"{text} - 1e-7*{dip}").f)).verdict == "refuted", dip
