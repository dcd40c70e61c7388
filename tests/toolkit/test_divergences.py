"""Divergences: values, derivatives, limits and DCP forms, each by two routes."""

from __future__ import annotations

import re
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cvxpriv.certify.problem_checks import capable
from cvxpriv.divergences import FDivergence, divergence, names
from cvxpriv.divergences.limits import limit_of
from cvxpriv.divergences.registry import ALIASES
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array
from cvxpriv.solvers.chain import try_solver
from cvxpriv.solvers.registry import solver_spec

NAMES = [
    "mutual-information",
    "reverse-kl",
    "jensen-shannon",
    "le-cam",
    "hellinger",
    "chi-square",
    "neyman",
    "total-variation",
    "alpha:3",
    "alpha:0.3",
    "alpha:-1.5",
    "hockey-stick:1.5",
]
#: t away from the kinks at 1 and 2/3, where difference quotients mean nothing.
T = np.geomspace(1e-2, 1e2, 41) * 1.01
P, Q = np.array([0.5, 0.2, 0.3, 0.0]), np.array([0.1, 0.25, 0.05, 0.6])
#: Every pattern of zeros that a pair of distributions can have.
ZEROS = [
    (np.array([0.5, 0.5, 0.0]), np.array([0.5, 0.3, 0.2])),
    (np.array([0.4, 0.4, 0.2]), np.array([0.9, 0.1, 0.0])),
    (np.array([0.6, 0.4, 0.0, 0.0]), np.array([0.0, 0.7, 0.3, 0.0])),
]


def quotient(of: object, at: Array, step: float = 1e-6) -> Array:
    """Central difference quotient, good to about step^2 = 1e-12 and rounding over step = 1e-10, relatively."""
    return np.asarray((of(at * (1 + step)) - of(at * (1 - step))) / (2 * step * at))  # type: ignore[operator]


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_are_those_of_f(name: str) -> None:
    f = divergence(name)
    assert f.derivative(T) == pytest.approx(quotient(f.f, T), rel=1e-7, abs=1e-7)  # rounding of f over the step
    assert f.second_derivative(T) == pytest.approx(quotient(f.derivative, T), rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_partials_are_the_derivatives_of_p_f_of_q_over_p(name: str) -> None:
    f, p, q = divergence(name), np.full(T.shape, 0.37), 0.37 * T
    of_p, of_q = f.gradients(p, q)
    assert of_p == pytest.approx(quotient(lambda x: f.terms(x, q), p), rel=1e-6, abs=1e-6)
    assert of_q == pytest.approx(quotient(lambda x: f.terms(p, x), q), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_partials_add_up_as_euler_says(name: str) -> None:
    f = divergence(name)
    of_p, of_q = f.gradients(P[:3], Q[:3])
    assert P[:3] * of_p + Q[:3] * of_q == pytest.approx(f.terms(P[:3], Q[:3]), abs=1e-14)  # homogeneous of degree 1


@pytest.mark.parametrize("name", [name for name in NAMES if name not in {"alpha:0.3", "alpha:3", "alpha:-1.5"}])
def test_limits_are_what_f_tends_to(name: str) -> None:
    f = divergence(name)
    near, far = f.f(np.array([1e-12]))[0], f.f(np.array([1e12]))[0] / 1e12
    for given_, seen in ((f.limit_at_zero, near), (f.limit_slope, far)):
        # at 1e-12 the slowest of them, log t / t and sqrt t, are within 1e-5 of their limit, and -log has come to 27
        assert seen == pytest.approx(given_, abs=1e-5) if np.isfinite(given_) else seen > 20.0


@pytest.mark.parametrize("name", NAMES)
def test_limits_read_off_f_are_those_given(name: str) -> None:
    f = divergence(name)
    bare = FDivergence("bare", f=f.f)
    # t^0.7 and t^1.3 at 1e-48 are far below the tolerance; rounding of 1 + t is not
    assert bare.limit_at_zero == pytest.approx(f.limit_at_zero, abs=1e-9)
    assert bare.limit_slope == pytest.approx(f.limit_slope, abs=1e-9)


def test_a_limit_is_told_from_slow_growth() -> None:
    powers = [2.0**k for k in range(2, 9)]
    assert limit_of((1.0 / power for power in powers), 1e-12) == pytest.approx(0.0, abs=1e-12)  # 1/log t: extrapolated
    assert limit_of((np.log(power) for power in powers), 1e-12) == np.inf  # log log t
    assert np.isnan(limit_of([np.nan], 1e-12))


def solved(f: FDivergence, p: Array, q: Array, solver: str) -> float:
    """The DCP form's minimum with P and Q pinned."""
    one, other = cp.Variable(p.size), cp.Variable(p.size)
    expression, constraints = f.form(one, other)
    problem = cp.Problem(cp.Minimize(expression), [*constraints, one == p, other == q])
    attempt = try_solver(problem, solver, solver_spec(solver).full_options(None, {}))
    assert attempt.status in {cp.OPTIMAL, cp.OPTIMAL_INACCURATE}  # a pin at zero leaves a cone without interior
    if np.isfinite(problem.value):
        return float(problem.value)
    one.value, other.value = p, q  # a solver's zero may be -1e-10, where a logarithm has no value
    return float(expression.value)


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS"])
@pytest.mark.parametrize("name", NAMES)
def test_the_dcp_form_is_the_sum_of_p_f_of_q_over_p(name: str, solver: str) -> None:
    f, rng = divergence(name), np.random.default_rng(3)
    p, q = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5))
    assert solved(f, p, q, solver) == pytest.approx(f.between(p, q), abs=1e-6)  # a pinned point is feasible to 1e-8


@pytest.mark.parametrize("solver", ["CLARABEL", "ECOS"])
@pytest.mark.parametrize("pair", ZEROS, ids=["p", "q", "both"])
@pytest.mark.parametrize("name", ["jensen-shannon", "le-cam", "hellinger", "total-variation", "hockey-stick:1.5"])
def test_the_dcp_form_holds_at_zeros(name: str, pair: tuple[Array, Array], solver: str) -> None:
    f = divergence(name)
    # a zero is met to the solver's 1e-8: sqrt and x log x turn that into 1e-4 and 2e-7
    assert solved(f, *pair, solver) == pytest.approx(f.between(*pair), abs=5e-4 if name == "hellinger" else 3e-6)


@pytest.mark.parametrize("name", NAMES)
def test_what_the_form_brings_along_has_the_value_that_auxiliary_says(name: str) -> None:
    f, rng = divergence(name), np.random.default_rng(4)
    p, q = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4))
    expression, constraints = f.form(cp.Constant(p), cp.Constant(q))
    new = sorted({v.id: v for part in [expression, *constraints] for v in part.variables()}.items())
    held = f.auxiliary(p, q) if f.auxiliary is not None else ()
    assert len(new) == len(held)
    for (_, variable), value in zip(new, held, strict=True):
        variable.value = value
    assert expression.value == pytest.approx(f.between(p, q), abs=1e-14)
    # cvxpy projects on a power cone by a solver: its violations are good to 1e-8
    assert all(np.max(constraint.violation()) < 1e-7 for constraint in constraints)


@pytest.mark.parametrize("name", NAMES)
def test_zeros_cost_what_the_limits_say(name: str) -> None:
    f = divergence(name)
    with_zeros = f.terms(np.array([0.4, 0.0, 0.0]), np.array([0.0, 0.3, 0.0]))
    assert with_zeros.tolist() == [0.4 * f.limit_at_zero, 0.3 * f.limit_slope if f.limit_slope else 0.0, 0.0]


@pytest.mark.parametrize("name", NAMES)
def test_a_quotient_that_no_float_holds_counts_as_its_limit(name: str) -> None:
    f, tiny = divergence(name), 1e-320
    found = f.terms(np.array([0.4, tiny]), np.array([tiny, 0.3]))
    assert not np.isnan(found).any()
    assert found[1] == (0.3 * f.limit_slope if f.limit_slope else 0.0)


def test_between_sums_over_the_axes_that_are_asked_for() -> None:
    f, rng = divergence("js"), np.random.default_rng(5)
    p, q = rng.dirichlet(np.ones(4), size=(2, 3)), rng.dirichlet(np.ones(4))
    each = f.between(p, q, axis=-1)
    assert isinstance(each, np.ndarray)
    assert each.shape == (2, 3)
    assert each[1, 2] == pytest.approx(f.between(p[1, 2], q), abs=1e-15)
    assert f.between(p, q) == pytest.approx(each.sum(), abs=1e-14)


pairs = st.lists(st.tuples(st.floats(1e-6, 1.0), st.floats(1e-6, 1.0)), min_size=2, max_size=6).map(
    lambda cells: tuple(np.array(side) / np.sum(side) for side in zip(*cells, strict=True))
)


@settings(max_examples=40, deadline=None)
@given(pair=pairs, name=st.sampled_from(NAMES))
def test_a_divergence_is_not_negative_and_nothing_from_itself(pair: tuple[Array, Array], name: str) -> None:
    f, (p, q) = divergence(name), pair
    least = -1e-13 * max(1.0, float(np.abs(f.terms(p, q)).max()))  # the terms cancel
    assert f.between(p, q) >= least
    assert f.between(p, p) == pytest.approx(0.0, abs=1e-15)


@settings(max_examples=40, deadline=None)
@given(pair=pairs, other=pairs, share=st.floats(0.0, 1.0), name=st.sampled_from(NAMES))
def test_p_f_of_q_over_p_is_jointly_convex(
    pair: tuple[Array, Array], other: tuple[Array, Array], share: float, name: str
) -> None:
    f, size = divergence(name), min(pair[0].size, other[0].size)
    (p, q), (r, s) = ([side[:size] for side in one] for one in (pair, other))
    mixed = f.between(share * p + (1 - share) * r, share * q + (1 - share) * s)
    chord = float(share * f.between(p, q) + (1 - share) * f.between(r, s))
    assert mixed <= chord + 1e-12 * max(1.0, abs(chord))


@settings(max_examples=40, deadline=None)
@given(pair=pairs, scale=st.floats(0.01, 100.0), name=st.sampled_from(NAMES))
def test_weights_enter_by_homogeneity(pair: tuple[Array, Array], scale: float, name: str) -> None:
    f, (p, q) = divergence(name), pair
    assert f.terms(scale * p, scale * q) == pytest.approx(scale * f.terms(p, q), rel=1e-9, abs=1e-12)


def test_known_values() -> None:
    p, q = np.array([0.5, 0.5]), np.array([0.25, 0.75])
    for name, value in {
        "mutual-information": 0.5 * np.log(2.0) + 0.5 * np.log(2.0 / 3.0),  # KL(p || q)
        "reverse-kl": 0.25 * np.log(0.5) + 0.75 * np.log(1.5),  # KL(q || p)
        "total-variation": 0.25,  # half of |1/4| + |1/4|
        "chi-square": 1.0 / 3.0,  # 1/16 (4 + 4/3), over q
        "neyman": 0.25,  # 1/16 (2 + 2), over p
        "hellinger": 2.0 - 2.0 * (np.sqrt(0.125) + np.sqrt(0.375)),
        "le-cam": 0.5 * (0.0625 / 0.75 + 0.0625 / 1.25),
        "hockey-stick:1.5": 0.5 - 1.5 * 0.25,  # only the first cell has p > 1.5 q
    }.items():
        assert divergence(name).between(p, q) == pytest.approx(value, abs=1e-15), name


@pytest.mark.parametrize(
    ("alpha", "other", "factor"),
    [("alpha:0.5", "hellinger", 2.0), ("alpha:2", "chi-square", 0.5), ("alpha:-1", "neyman", 0.5)],
)
def test_members_of_the_alpha_family_have_names_of_their_own(alpha: str, other: str, factor: float) -> None:
    p, q = P[:3] / P[:3].sum(), Q[:3] / Q[:3].sum()
    assert divergence(alpha).between(p, q) == pytest.approx(factor * divergence(other).between(p, q), abs=1e-14)


def test_an_object_needs_nothing_but_f() -> None:
    full = divergence("js")
    bare = FDivergence("bare", f=full.f)
    assert bare.derivative(T) == pytest.approx(full.derivative(T), abs=1e-8)
    assert bare.second_derivative(T) == pytest.approx(full.second_derivative(T), rel=1e-5, abs=1e-6)
    of_p, of_q = bare.gradients(P[:3], Q[:3])
    assert of_p == pytest.approx(full.gradients(P[:3], Q[:3])[0], abs=1e-8)
    assert of_q == pytest.approx(full.gradients(P[:3], Q[:3])[1], abs=1e-8)
    with_partials = FDivergence("partials", f=full.f, partials=full.partials)
    assert with_partials.derivative(T) == pytest.approx(full.derivative(T), abs=1e-15)
    assert (bare.smooth, divergence("tv").smooth) == (True, False)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": ""}, "name='' is not a name"),
        ({"f": 3.0}, "f=3.0 of divergence 'mine' is not callable: pass a function$"),
        ({"fprime": "1/t"}, "fprime='1/t' of divergence 'mine' is not callable: .*leave it out"),
        ({"auxiliary": 1}, "auxiliary=1 of divergence 'mine' is not callable"),
    ],
)
def test_an_object_that_is_none_is_refused_by_its_field(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        FDivergence(**{"name": "mine", "f": np.square, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "returned", [None, 3.0, cp.Constant(1.0), (cp.Constant(1.0), [True]), (cp.Constant([1.0, 2.0]), []), (1.0, [])]
)
def test_an_expression_that_returns_something_else_is_refused(returned: object) -> None:
    f = FDivergence("mine", f=np.square, expression=lambda p, q: returned)  # type: ignore[arg-type, return-value]
    with pytest.raises(ModelError, match="expression of divergence 'mine' returned .* return a scalar"):
        f.form(cp.Variable(2), cp.Variable(2))


def test_a_divergence_without_a_form_says_so() -> None:
    with pytest.raises(ModelError, match="'mine' has no DCP form: pass expression="):
        FDivergence("mine", f=np.square).form(cp.Variable(2), cp.Variable(2))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("jensen-shanon", "did you mean 'jensen-shannon'"),
        ("alpha", "takes a number, and none was given: write, for example, alpha:2"),
        ("alpha:x", "takes a number, and 'x' is not one"),
        ("alpha:0", "pass mutual-information for a = 1, reverse-kl for a = 0"),
        ("alpha:inf", "choose a finite a"),
        ("hockey-stick:0.5", "choose a finite gamma >= 1"),
        (3, "is no FDivergence, it lacks name, f, derivative"),
        (None, "pass a name, or cpv.FDivergence"),
    ],
)
def test_a_name_that_is_none_is_refused_with_a_remedy(name: object, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        divergence(name)  # type: ignore[arg-type]


def test_names_may_be_written_as_people_write_them() -> None:
    assert divergence(" Jensen_Shannon ").name == "jensen-shannon"
    assert {divergence(alias).name for alias in ALIASES} <= set(names())
    mine = FDivergence("mine", f=np.square)
    assert divergence(mine) is mine


def documented() -> dict[str, list[str]]:
    """The rows of the table in docs/divergences.md."""
    text = (Path(__file__).parents[2] / "docs" / "divergences.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines() if line.startswith("| `")
    ]
    return {row[0].strip("|` "): row[1:] for row in rows}


def test_the_documented_names_are_the_registered_ones() -> None:
    assert tuple(sorted(documented())) == tuple(sorted(names()))
    text = (Path(__file__).parents[2] / "docs" / "divergences.md").read_text(encoding="utf-8")
    aliases = text[text.index("Aliases:") : text.index("## Your own, as one line")]
    assert set(re.findall(r"`([^`]+)`", aliases)) == {*ALIASES, *ALIASES.values()}


@pytest.mark.parametrize("row", documented(), ids=str)
def test_the_documented_formula_lipschitz_constant_and_solvers_are_right(row: str) -> None:
    formula, _, _, curvature, lipschitz, _, _, solvers = documented()[row]
    number, floor = 1.7, 0.05
    f = divergence(row.replace("<number>", str(number)))
    symbols = {"a": number, "gamma": number, "floor": floor, "max": max}
    text = re.sub(r"\b(a|gamma)\b", str(number), formula.strip("`"))
    assert FDivergence.parse(text).f(T) == pytest.approx(f.f(T), abs=1e-13, rel=1e-13)
    if f.smooth:
        assert f.second_derivative(np.ones(1))[0] == pytest.approx(eval(curvature), abs=1e-14)
        inside = np.geomspace(floor, 1.0 / floor, 101)
        assert f.second_derivative(inside).max() == pytest.approx(eval(lipschitz.strip("`"), symbols), rel=1e-12)
    one, other = cp.Variable(3), cp.Variable(3)
    expression, constraints = f.form(one, other)
    problem = cp.Problem(cp.Minimize(expression), [*constraints, one >= 0, other >= 0, cp.sum(one + other) == 2])
    assert set(solvers.split(", ")) == set(capable(problem)[0])
