"""Ready constraints: the cvxpy form, the array form and brute force say the same; bad arguments are refused."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from pathlib import Path

import cloudpickle
import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import cvxpriv as cpv
from cvxpriv import constraints
from cvxpriv.blocks.declaration import Known
from cvxpriv.constraints import ReadyConstraint, couples_rows
from cvxpriv.errors import DataError, ModelError
from cvxpriv.numerics.arrays import Array

SHAPE = (4, 3)
DISTORTION = np.abs(np.arange(4)[:, None] - np.arange(3)) ** 1.5


def known(rng: np.random.Generator) -> Known:
    joint = rng.dirichlet(np.ones(8)).reshape(2, 4)
    prior = joint.sum(axis=0)
    return Known(prior, joint.sum(axis=1), joint / prior, ("a", "b", "c", "d"))


# Brute force: each property in its textbook words, over all events, pairs or cells, in plain loops.


def events(outputs: int) -> list[list[int]]:
    return [list(chosen) for size in range(outputs + 1) for chosen in itertools.combinations(range(outputs), size)]


def brute_ldp(m: Array, k: Known) -> float:
    return max(
        m[a, event].sum() - np.exp(0.7) * m[b, event].sum() for a in range(4) for b in range(4) for event in events(3)
    )


def brute_tv(m: Array, k: Known) -> float:
    out = [sum(k.prior[y] * m[y, u] for y in range(4)) for u in range(3)]
    return max(m[y, event].sum() - sum(out[u] for u in event) for y in range(4) for event in events(3)) - 0.2


def brute_mean_tv(m: Array, k: Known) -> float:
    out = k.prior @ m
    # The other reading: the belief about the input after each output against the prior.
    after = [[k.prior[y] * m[y, u] / out[u] for y in range(4)] for u in range(3)]
    moved = [sum(max(after[u][y] - k.prior[y], 0.0) for y in range(4)) for u in range(3)]
    return sum(out[u] * moved[u] for u in range(3)) - 0.15


def brute_maximal_leakage(m: Array, k: Known) -> float:
    # log of the factor by which seeing U raises the chance to guess a uniform input right: Issa et al., Theorem 1.
    return float(np.log(4.0 * sum(0.25 * max(m[y, u] for y in range(4)) for u in range(3)))) - 0.3


def brute_distortion(m: Array, k: Known) -> float:
    return sum(k.prior[y] * m[y, u] * DISTORTION[y, u] for y in range(4) for u in range(3)) - 1.1


def brute_symmetric(m: Array, k: Known) -> float:
    where_y, where_u = [1, 2, 0, 3], [2, 1, 0]
    return max(abs(m[where_y[y], where_u[u]] - m[y, u]) for y in range(4) for u in range(3))


def brute_monotone(m: Array, k: Known) -> float:
    return max(m[y + 1, : u + 1].sum() - m[y, : u + 1].sum() for y in range(3) for u in range(2))


FLOORS = np.array([[0.1, 0.2, 0.0], [0.0, 0.3, 0.3], [0.2, 0.2, 0.2], [0.0, 0.0, 0.5]])
RULES: dict[str, tuple[ReadyConstraint, Callable[[Array, Known], float]]] = {
    "ldp": (constraints.local_differential_privacy(0.7), brute_ldp),
    "tv": (constraints.total_variation_to_prior(0.2), brute_tv),
    "mean tv": (constraints.total_variation_to_prior(0.15, average=True), brute_mean_tv),
    "maximal leakage": (constraints.maximal_leakage(0.3), brute_maximal_leakage),
    "distortion": (constraints.expected_distortion(DISTORTION, 1.1), brute_distortion),
    "floor": (constraints.floor(0.1), lambda m, k: max(0.1 - m[y, u] for y in range(4) for u in range(3))),
    "floors": (constraints.floor(FLOORS), lambda m, k: max((FLOORS - m).ravel())),
    "forbidden": (constraints.forbidden([(0, 1), (3, 2)]), lambda m, k: max(m[0, 1], m[3, 2])),
    "fixed": (
        constraints.fixed({(1, 0): 0.25, (2, 2): 0.5}),
        lambda m, k: max(abs(m[1, 0] - 0.25), abs(m[2, 2] - 0.5)),
    ),
    "symmetric": (constraints.symmetric([1, 2, 0, 3], [2, 1, 0]), brute_symmetric),
    "monotone": (constraints.monotone(), brute_monotone),
    "falling": (constraints.monotone(False), lambda m, k: brute_monotone(m[::-1], k)),
}
every_rule = pytest.mark.parametrize("name", RULES)


@every_rule
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), sharpness=st.sampled_from([0.2, 1.0, 20.0]))
def test_the_violation_is_what_brute_force_finds(name: str, seed: int, sharpness: float) -> None:
    rng = np.random.default_rng(seed)
    mechanism, facts = rng.dirichlet(np.full(3, sharpness), size=4), known(rng)
    constraint, brute = RULES[name]
    assert constraint.violation(mechanism, facts) == pytest.approx(max(0.0, brute(mechanism, facts)), abs=1e-12)


@every_rule
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), sharpness=st.sampled_from([0.2, 1.0, 20.0]))
def test_the_cvxpy_form_holds_where_the_violation_is_zero_and_only_there(
    name: str, seed: int, sharpness: float
) -> None:
    rng = np.random.default_rng(seed)
    array, facts = rng.dirichlet(np.full(3, sharpness), size=4), known(rng)
    constraint, _ = RULES[name]
    mechanism = cp.Variable(SHAPE)
    mechanism.value = array
    missed = max(float(np.max(one.violation())) for one in constraint(mechanism, facts))
    assert (missed > 1e-12) == (constraint.violation(array, facts) > 1e-12)  # rounding of sums


@every_rule
def test_the_nearest_mechanism_that_a_solver_finds_satisfies_brute_force_and_touches_the_bound(name: str) -> None:
    rng = np.random.default_rng(0)
    facts, constraint, brute = known(rng), *RULES[name]
    target = rng.dirichlet(np.full(3, 0.3), size=4)
    assert brute(target, facts) > 0.05  # else the constraint would not be tested
    mechanism = cp.Variable(SHAPE, name="m")
    rest = [mechanism >= 0, cp.sum(mechanism, axis=1) == 1]
    problem = cp.Problem(cp.Minimize(cp.sum_squares(mechanism - target)), rest + constraint(mechanism, facts))
    assert problem.is_dcp(dpp=True)
    problem.solve(solver="CLARABEL", tol_feas=1e-10, tol_gap_abs=1e-10, tol_gap_rel=1e-10)
    assert brute(mechanism.value, facts) == pytest.approx(0.0, abs=1e-6)  # minimisers: the root of the gap


@pytest.mark.parametrize("solver", ["CLARABEL", "ECOS", "SCS"])
@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
def test_randomised_response_is_the_most_accurate_private_mechanism(solver: str, epsilon: float) -> None:
    # Kairouz, Oh, Viswanath 2016: the largest chance of U = Y is exp(epsilon) / (exp(epsilon) + k - 1).
    mechanism = cp.Variable((3, 3), name="m")
    constraint = constraints.local_differential_privacy(epsilon)
    rest = [mechanism >= 0, cp.sum(mechanism, axis=1) == 1]
    value = cp.Problem(cp.Maximize(cp.trace(mechanism) / 3), rest + constraint(mechanism)).solve(solver=solver)
    assert value == pytest.approx(np.exp(epsilon) / (np.exp(epsilon) + 2.0), abs=1e-4)  # SCS's own tolerance


@pytest.mark.parametrize("bound", [0.0, 0.5, 1.0, 5.0])
def test_maximal_leakage_bounds_the_chance_of_a_right_guess(bound: float) -> None:
    # sum_u max_y p(u|y) <= exp(bound), so that the trace of a 3 x 3 mechanism is at most exp(bound), and at most 3.
    mechanism = cp.Variable((3, 3), name="m")
    rest = [mechanism >= 0, cp.sum(mechanism, axis=1) == 1]
    constraint = constraints.maximal_leakage(bound)
    value = cp.Problem(cp.Maximize(cp.trace(mechanism)), rest + constraint(mechanism)).solve(solver="CLARABEL")
    assert value == pytest.approx(min(np.exp(bound), 3.0), abs=1e-6)


def test_a_mechanism_without_total_variation_is_constant_and_without_bound_is_free() -> None:
    facts = known(np.random.default_rng(1))
    constant, identity = np.full((4, 3), 1.0 / 3.0), np.eye(4)[:, :3] + np.eye(4)[:, 3:]
    assert constraints.total_variation_to_prior(0.0).violation(constant, facts) <= 1e-15
    assert constraints.total_variation_to_prior(1.0).violation(identity, facts) == 0.0
    assert constraints.total_variation_to_prior(0.0, average=True).violation(constant, facts) <= 1e-15


@pytest.mark.parametrize(
    "constraint",
    [
        constraints.local_differential_privacy(1.0),
        constraints.total_variation_to_prior(0.1),
        constraints.maximal_leakage(0.5),
        constraints.monotone(),
    ],
    ids=lambda constraint: constraint.name,
)
def test_the_cone_form_grows_with_the_number_of_cells_and_no_faster(constraint: ReadyConstraint) -> None:
    size = 40  # all pairs of inputs, or a marginal written out in each cell, take 64,000 coefficients
    facts = Known(np.full(size, 1 / size), np.ones(1), np.ones((1, size)))
    problem = cp.Problem(cp.Minimize(0), constraint(cp.Variable((size, size), name="m"), facts))
    assert problem.get_problem_data("CLARABEL")[0]["A"].nnz <= 11 * size**2


def test_extreme_bounds_stay_finite() -> None:
    identity = np.eye(3)
    mechanism = cp.Variable((3, 3))
    mechanism.value = identity
    for constraint in (constraints.local_differential_privacy(800.0), constraints.maximal_leakage(800.0)):
        assert all(np.isfinite(one.violation()).all() for one in constraint(mechanism))
    assert constraints.local_differential_privacy(800.0).violation(identity) == 1.0  # a zero beside a one
    assert constraints.maximal_leakage(800.0).violation(identity) == 0.0


@every_rule
def test_a_constraint_has_a_telling_name_and_survives_pickling(name: str) -> None:
    constraint, _ = RULES[name]
    rng = np.random.default_rng(2)
    mechanism, facts = rng.dirichlet(np.ones(3), size=4), known(rng)
    again = pickle.loads(pickle.dumps(constraint))
    assert repr(again) == repr(constraint)
    assert "0x" not in repr(constraint)
    assert again.violation(mechanism, facts) == constraint.violation(mechanism, facts)


def test_they_are_reached_from_the_package() -> None:
    assert cpv.constraints.local_differential_privacy(1.0).name == "local_differential_privacy(epsilon=1)"


def test_a_symmetric_constraint_has_one_equation_less_than_a_cycle_has_cells() -> None:
    # Cycles of the 12 cells under y: (0 1 2)(3), u: (0 2)(1): lcm(3, 2) = 6, 3, 2 and 1 cells, 5 + 2 + 1 + 0 equations.
    (constraint,) = constraints.symmetric([1, 2, 0, 3], [2, 1, 0])(cp.Variable(SHAPE))
    assert constraint.size == 8


class TestCoupling:
    """Which constraints tie rows together."""

    @pytest.mark.parametrize(
        ("name", "couples"),
        [
            ("ldp", True),
            ("tv", True),
            ("mean tv", True),
            ("maximal leakage", True),
            ("distortion", True),
            ("floor", False),
            ("floors", False),
            ("forbidden", False),
            ("fixed", False),
            ("symmetric", True),
            ("monotone", True),
        ],
    )
    def test_a_ready_constraint_does_as_the_documentation_says(self, name: str, couples: bool) -> None:
        assert couples_rows(RULES[name][0], SHAPE, known(np.random.default_rng(0))) is couples

    @pytest.mark.parametrize(
        ("constraint", "couples"),
        [
            (lambda m: cp.sum(cp.entr(m), axis=1) >= 0.5, False),
            (lambda m: [cp.norm(m[y], 2) <= 0.8 for y in range(4)], False),
            (lambda m: cp.norm(m, 2) <= 1.5, True),
            (lambda m: cp.norm(m, "fro") <= 1.5, True),
            (lambda m: cp.log_sum_exp(m, axis=1) <= 1.5, False),
            (lambda m: cp.log_sum_exp(m, axis=0) <= 1.9, True),
            (lambda m: m[0] - 0.0 * m[1] <= 0.9, False),
            (lambda m: m[0] + m[1] - m[1] <= 0.9, False),
            (lambda m: cp.bmat([[cp.diag(m[0]), np.eye(3)], [np.eye(3), 5 * np.eye(3)]]) >> 0, False),
            (lambda m: m[0] == m[1], True),
            (lambda m: cp.max(m) <= 0.5, True),  # one auxiliary variable for all rows: the form decides
            (constraints.symmetric([0, 1, 2, 3], [1, 0, 2]), False),
        ],
    )
    def test_a_users_constraint_is_read_off_its_cone_form(self, constraint: object, couples: bool) -> None:
        assert couples_rows(constraint, SHAPE) is couples  # type: ignore[arg-type]

    def test_a_constraint_that_uses_what_is_known_receives_it(self) -> None:
        facts = known(np.random.default_rng(0))
        assert couples_rows(lambda m, k: k.prior @ m <= 0.7, SHAPE, facts)
        assert not couples_rows(lambda m, k: cp.multiply(k.prior[:, None], m) <= 0.7, SHAPE, facts)

    def test_a_constraint_that_is_not_dcp_is_refused_with_the_reason(self) -> None:
        with pytest.raises(ModelError, match=r"'mine' is not DCP\. cvxpy says: .*subexpressions are not"):
            couples_rows(lambda m: cp.sum_squares(m) >= 1, SHAPE, name="mine")


class TestRefusals:
    """Arguments at construction, shapes at use."""

    @pytest.mark.parametrize(
        ("make", "error", "message"),
        [
            (
                lambda: constraints.local_differential_privacy(-1.0),
                ModelError,
                r"epsilon=-1.0: .* >= 0; a privacy loss",
            ),
            (lambda: constraints.local_differential_privacy(np.inf), ModelError, "epsilon=inf: expected a finite"),
            (lambda: constraints.local_differential_privacy("1"), ModelError, "epsilon='1'"),
            (lambda: constraints.local_differential_privacy(True), ModelError, "epsilon=True"),
            (lambda: constraints.total_variation_to_prior(1.5), ModelError, r"bound=1.5: .* from 0 to 1"),
            (lambda: constraints.maximal_leakage(np.nan), ModelError, "bound=nan"),
            (lambda: constraints.expected_distortion([1.0, 2.0], 0.1), DataError, r"distortion has shape \(2,\)"),
            (lambda: constraints.expected_distortion([[1.0, np.inf]], 0.1), DataError, r"distortion\[0, 1\]=inf"),
            (lambda: constraints.expected_distortion([["a"]], 0.1), DataError, "distortion does not hold numbers"),
            (lambda: constraints.floor(1.5), ModelError, "floor=1.5: .* from 0 to 1"),
            (lambda: constraints.floor([[0.1, -0.1]]), DataError, r"floor\[0, 1\]=-0.1: expected a probability"),
            (lambda: constraints.forbidden([]), DataError, "forbidden: no cell is given"),
            (lambda: constraints.forbidden([(0, 1), (0, 1)]), DataError, r"cell \(0, 1\) is named twice"),
            (lambda: constraints.forbidden([(0, -1)]), DataError, r"cell \(0, -1\): expected \(input, output\)"),
            (lambda: constraints.forbidden([(0.0, 1)]), DataError, r"cell \(0.0, 1\)"),
            (lambda: constraints.forbidden([3]), DataError, "are no pairs"),
            (lambda: constraints.forbidden(np.ones(3, dtype=bool)), DataError, r"cells has shape \(3,\)"),
            (lambda: constraints.fixed([(0, 1)]), DataError, "expected a mapping"),
            (lambda: constraints.fixed({(0, 1): 2.0}), ModelError, r"values\[\(0, 1\)\]=2.0"),
            (lambda: constraints.symmetric([0, 0], [0, 1]), DataError, r"inputs=\[0, 0\]: expected a permutation"),
            (lambda: constraints.symmetric([0, 1], [0, 1]), DataError, "move nothing"),
            (lambda: constraints.monotone("up"), ModelError, "increasing='up'"),
        ],
    )
    def test_an_argument_that_is_wrong_is_refused_at_construction(
        self, make: Callable[[], object], error: type[Exception], message: str
    ) -> None:
        with pytest.raises(error, match=message):
            make()

    @pytest.mark.parametrize(
        ("constraint", "message"),
        [
            (constraints.floor(0.4), r"row 0 of 3 outputs would sum to at least 1.2, .* 0.333333 at most"),
            (constraints.floor(np.full((2, 3), 0.1)), r"floor has shape \(2, 3\), the mechanism \(4, 3\)"),
            (constraints.forbidden([(0, 3)]), r"cell \(0, 3\) lies outside the mechanism of 4 inputs and 3 outputs"),
            (constraints.forbidden([(0, 0), (0, 1), (0, 2)]), "row 0 would hold 0 with no cell left free"),
            (constraints.fixed({(1, 0): 0.7, (1, 1): 0.6}), "row 1 would hold 1.3 with other cells free"),
            (constraints.expected_distortion(np.ones((3, 3)), 2.0), r"distortion has shape \(3, 3\)"),
            (constraints.expected_distortion(DISTORTION, -0.5), "every mechanism has a distortion of at least"),
            (constraints.symmetric([1, 0], [1, 0, 2]), "permute 2 and 3 symbols"),
        ],
    )
    def test_a_constraint_that_does_not_fit_the_mechanism_is_refused_when_applied(
        self, constraint: ReadyConstraint, message: str
    ) -> None:
        facts = known(np.random.default_rng(0))
        with pytest.raises(ModelError, match=message):
            constraint(cp.Variable(SHAPE), facts)
        with pytest.raises(ModelError, match=message):
            constraint.violation(np.full(SHAPE, 1.0 / 3.0), facts)

    def test_a_constraint_that_needs_the_prior_says_so(self) -> None:
        with pytest.raises(ModelError, match="needs the prior of the inputs"):
            constraints.total_variation_to_prior(0.1)(cp.Variable(SHAPE))

    def test_a_mechanism_of_one_row_has_no_order(self) -> None:
        with pytest.raises(ModelError, match="has nothing to order"):
            constraints.monotone()(cp.Variable((1, 3)))


class TestText:
    """What the command line reads."""

    @pytest.mark.parametrize(
        ("text", "name"),
        [
            ("ldp=1.0", "local_differential_privacy(epsilon=1)"),
            (" LDP = 0.5 ", "local_differential_privacy(epsilon=0.5)"),
            ("tv=0.1", "total_variation_to_prior(bound=0.1)"),
            ("mean_tv=0.1", "total_variation_to_prior(bound=0.1, average=True)"),
            ("maximal-leakage=0.5", "maximal_leakage(bound=0.5)"),
            ("floor=0.01", "floor(0.01)"),
            ("forbidden=0:1,2:0", "forbidden([(0, 1), (2, 0)])"),
            ("fixed=0:1:0.5", "fixed({(0, 1): 0.5})"),
            ("symmetric=1,0:0,1,2", "symmetric(inputs=[1, 0], outputs=[0, 1, 2])"),
            ("monotone", "monotone(increasing=True)"),
            ("monotone=decreasing", "monotone(increasing=False)"),
        ],
    )
    def test_each_form_makes_its_constraint(self, text: str, name: str) -> None:
        assert repr(constraints.parse(text)) == name

    @pytest.mark.parametrize("gap", [",", ", ", ";", "\t", "  "])
    def test_a_matrix_comes_from_a_file(self, tmp_path: Path, gap: str) -> None:
        path = tmp_path / "costs.csv"
        path.write_text("\n".join(gap.join(map(str, row)) for row in DISTORTION) + "\n\n")
        mechanism, facts = np.full(SHAPE, 1.0 / 3.0), known(np.random.default_rng(3))
        expected = constraints.expected_distortion(DISTORTION, 0.5).violation(mechanism, facts)
        assert constraints.parse(f"distortion={path}:0.5").violation(mechanism, facts) == pytest.approx(expected)
        (tmp_path / "floors.csv").write_text("0.1,0.2,0.3")
        assert repr(constraints.parse(f"floor={tmp_path / 'floors.csv'}")) == "floor(1 x 3 matrix)"

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("ldq=1", "'ldq' is not a constraint; did you mean 'ldp'?"),
            ("maximal-leakge=1", "did you mean 'maximal-leakage'?"),
            ("ldp", "constraint='ldp' cannot be read: write ldp=EPSILON"),
            ("ldp=one", "write ldp=EPSILON"),
            ("ldp=-1", r"constraint='ldp=-1': epsilon=-1.0: expected a finite number >= 0"),
            ("floor=", "write floor=VALUE or floor=FILE"),
            ("distortion=0.5", "write distortion=FILE:BOUND"),
            ("distortion=file:much", "write distortion=FILE:BOUND"),
            ("forbidden=0", "write forbidden=INPUT:OUTPUT,..."),
            ("forbidden=0:-1", "write forbidden=INPUT:OUTPUT,..."),
            ("fixed=0:1:0.5,0:1:0.6", "write fixed=INPUT:OUTPUT:VALUE,..."),
            ("symmetric=1,0", "write symmetric="),
            ("monotone=up", "write monotone or monotone=decreasing"),
        ],
    )
    def test_a_text_that_is_none_is_refused_with_its_form(self, text: str, message: str) -> None:
        with pytest.raises(ModelError, match=message.replace("?", r"\?")):
            constraints.parse(text)

    def test_what_is_no_text_is_refused(self) -> None:
        with pytest.raises(ModelError, match="is no text"):
            constraints.parse(1.0)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("content", "message"),
        [("a,b\n1,2\n", "line 1: 'a,b' is no row of numbers"), ("1,2\n3\n", "line 2: 1 numbers, 2 in the first row")],
    )
    def test_a_file_that_holds_no_matrix_is_refused_with_its_line(
        self, tmp_path: Path, content: str, message: str
    ) -> None:
        path = tmp_path / "costs.csv"
        path.write_text(content)
        with pytest.raises(DataError, match=message):
            constraints.parse(f"distortion={path}:1")

    def test_a_file_that_is_not_there_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="none.csv"):
            constraints.parse(f"floor={tmp_path / 'none.csv'}")

    def test_every_form_is_listed(self) -> None:
        assert " ".join(constraints.FORMS) == (
            "ldp metric-dp renyi lip pointwise-leakage vulnerability f-information fairness output tv mean-tv "
            "maximal-leakage distortion floor forbidden fixed symmetric monotone"
        )
        assert all(form.startswith(name) for name, form in constraints.FORMS.items())


def test_what_the_excess_of_another_package_raises_is_typed() -> None:
    rare = ReadyConstraint(
        "rare", lambda m, known: [known.prior @ m <= 0.5], lambda m, known: float((known.prior @ m).max() - 0.5)
    )
    with pytest.raises(ModelError, match="excess of rare raised AttributeError, where nothing is known"):
        rare.excess(np.eye(2), None)
    assert cloudpickle.loads(cloudpickle.dumps(rare)).violation(np.eye(4, 3), known(np.random.default_rng(0))) >= 0.0
