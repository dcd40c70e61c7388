"""Tables with noise in their counts: the law of the noise, the domain, and what is said of what follows."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import LinearConstraint, minimize
from scipy.stats import chisquare

import cvxpriv as cpv
from cvxpriv.errors import CvxprivError
from cvxpriv.mechanisms.disclosure import disclosure
from cvxpriv.privacy import PrivacyWarning, account_ledger
from cvxpriv.privacy.gaussian import gaussian_delta
from cvxpriv.privacy.private_tables import LEAST, private_table, release_of
from cvxpriv.tables.documents import table_document, table_of
from cvxpriv.tables.information import measure
from cvxpriv.tables.joint import Alphabet, JointTable
from cvxpriv.tables.noisy_counts import nearest_shares, whole_counts
from tests.models.private_searches import CELLS

pytestmark = pytest.mark.filterwarnings("ignore::cvxpriv.privacy.PrivacyWarning")
TABLE = JointTable.from_counts([[40, 10], [10, 40]], ["no", "yes"], ["0", "1"])
DOMAIN = {"S": ["no", "yes"], "X": ["0", "1", "2"]}


def laplace_chances(scale: float, most: int) -> np.ndarray:
    """The chances of -most, ..., most under Laplace noise rounded to whole numbers, by its distribution function."""
    edges = np.arange(-most, most + 2) - 0.5
    below = np.where(edges < 0, 0.5 * np.exp(edges / scale), 1.0 - 0.5 * np.exp(-edges / scale))
    return np.diff(below)


@pytest.mark.parametrize(("adjacency", "moved"), [("replace-one", 2), ("add-remove", 1)])
def test_neighbours_differ_by_epsilon_in_no_cell_more_than_the_scale_allows(adjacency: str, moved: int) -> None:
    found = private_table(TABLE, 0.7, domain=DOMAIN, adjacency=adjacency).protection
    assert found is not None
    chances = laplace_chances(found.scale, 12)
    losses = np.abs(np.diff(np.log(chances)))
    # A neighbour moves `moved` independent cells by one record each, and no loss is smaller than needed in the tails.
    assert moved * losses.max() <= 0.7 * (1 + 1e-9)  # rounding of differences of a distribution function
    assert moved * losses.max() == pytest.approx(0.7, rel=1e-6)


def test_the_noise_has_the_law_that_is_claimed() -> None:
    counts = np.full((100, 40), 1000)
    table = JointTable.from_counts(counts)
    found = private_table(table, 1.0, domain="table", adjacency="add-remove", noise_seed=3)
    assert found.counts is not None
    noise = (found.counts - 1000).ravel()
    shift = found.records - 100 * 40 * 1000 if found.records else 0
    assert abs(shift) < 6 * math.sqrt(2 * 4000)  # the total is the sum of the noisy counts
    expected = laplace_chances(1.0, 3)
    seen = np.array([(noise == k).sum() for k in range(-3, 4)])
    assert chisquare(seen, expected / expected.sum() * seen.sum()).pvalue > 1e-4


def test_with_a_delta_the_noise_is_gaussian_and_costs_what_is_claimed() -> None:
    found = private_table(TABLE, 1.0, 1e-6, domain=DOMAIN).protection
    assert found is not None
    mu = release_of(found).mu
    assert mu == pytest.approx(math.sqrt(2.0) / found.scale)
    assert gaussian_delta(1.0, mu) <= 1e-6
    assert account_ledger([release_of(found)], 1e-6, neighbours="replace-one").epsilon <= 1.0 + 1e-9


def test_the_number_of_records_stays_where_it_is_public_and_no_count_is_negative() -> None:
    for seed in range(20):
        found = private_table(TABLE, 0.1, domain=DOMAIN, noise_seed=seed)
        assert found.records == 100
        assert found.counts is not None
        assert found.counts.min() >= 0
        assert found.probabilities.sum(axis=0).min() > 0


def test_the_domain_holds_cells_that_do_not_occur_and_refuses_records_outside_it() -> None:
    pairs = JointTable.from_counts([[3, 4]], ["s"], Alphabet(("a", "b"), (("0", "0"), ("1", "1"))))
    assert private_table(pairs, 1.0, domain="table").public.labels == ("0, 0", "0, 1", "1, 0", "1, 1")
    with pytest.raises(CvxprivError, match="a record lies outside the domain"):
        private_table(TABLE, 1.0, domain={"S": ["no", "yes"], "X": ["0"]})


def test_classes_of_public_edges_are_their_own_domain() -> None:
    people = pd.DataFrame({"ill": ["no", "yes"] * 10, "age": [20, 30] * 10})
    made = cpv.prepare(people, bins={"age": [25, 40]}, missing="symbol")
    table = cpv.JointTable.from_frame(made, private=["ill"], public=["age"])
    found = private_table(table, 1.0, domain={"ill": ["no", "yes"]})
    assert found.public.labels == ("below 25", "25 to below 40", "40 and above", "missing")
    alone = cpv.JointTable.from_frame(cpv.prepare(people, bins={"age": [25, 40], "ill": "first:1"}), ["ill"], ["age"])
    with pytest.raises(CvxprivError, match=r"no value of column 'ill'.* \(for 'ill' all first characters that are"):
        private_table(alone, 1.0)


def test_a_fraction_among_the_records_renames_no_class_and_merges_of_classes_keep_their_meaning() -> None:
    def noisy(age: float) -> JointTable:
        people = pd.DataFrame({"ill": ["no", "yes"] * 10, "age": [age, *[27] * 9, *[33] * 10]})
        made = cpv.prepare(people, bins={"age": [25, 30, 40]}, columns=["ill", "age"])
        table = cpv.JointTable.from_frame(made, private=["ill"], public=["age"])
        return private_table(table, 1.0, domain={"ill": ["no", "yes"]}, noise_seed=0)

    one, other = noisy(31), noisy(31.5)
    assert one.public == other.public
    assert one.recipe == other.recipe
    people = pd.DataFrame({"ill": ["no", "yes"] * 10, "age": [20, 27, 33, 44] * 5})
    made = cpv.prepare(people, bins={"age": [25, 30, 40]}, merge={"age": {"middle": ["25 to 29", "30 to 39"]}})
    table = cpv.JointTable.from_frame(made, private=["ill"], public=["age"])
    domain = {"ill": ["no", "yes"], "age": ["below 25", "middle", "40 and above"]}
    found = private_table(table, 1.0, domain=domain)
    assert found.recipe is not None
    raw = pd.DataFrame({"age": [28, 39, 50], "ill": "no"})
    assert found.recipe.apply(raw)["age"].to_list() == ["middle", "middle", "40 and above"]


def test_a_budget_is_spent_once_and_refuses_the_second_table() -> None:
    budget = cpv.Budget(1.0, 0.0)
    private_table(TABLE, 0.7, domain=DOMAIN, budget=budget)
    with pytest.raises(CvxprivError, match="does not hold"):
        private_table(TABLE, 0.7, domain=DOMAIN, budget=budget)
    assert len(budget.ledger) == 1


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (TABLE, {"domain": None}, "which cells occur tells of the records"),
        (TABLE, {"epsilon": 0.0}, "epsilon=0.0 is no budget"),
        (TABLE, {"epsilon": 9e-10}, "leaves noise alone"),
        (TABLE, {"delta": 1.0}, "delta=1.0 is not in"),
        (TABLE, {"delta": 1.5}, r"delta=1.5 is not in \[0"),
        (TABLE, {"adjacency": "one"}, "adjacency='one'"),
        (TABLE, {"domain": {"S": ["no", "yes"]}}, "domain names no value of column 'X'"),
        (TABLE, {"domain": {**DOMAIN, "Z": [1]}}, "domain names column 'Z'"),
        (JointTable.from_array([[0.5, 0.5]]), {}, "without counts"),
        (JointTable.from_counts([[1, 2]], smoothing=1.0), {}, "the table is smoothed"),
        (private_table(TABLE, 1.0, domain=DOMAIN), {}, "has noise already"),
    ],
)
def test_wrong_arguments_are_refused(table: JointTable, options: dict[str, object], message: str) -> None:
    given = {"epsilon": 1.0, "domain": DOMAIN} | options
    with pytest.raises(CvxprivError, match=message):
        private_table(table, **given)  # type: ignore[arg-type]


def test_the_least_epsilon_and_any_delta_below_1_are_taken() -> None:
    assert private_table(TABLE, LEAST, 0.75, domain=DOMAIN).records == TABLE.records


def test_a_seed_warns_and_the_sentence_says_that_it_must_stay_secret() -> None:
    with pytest.warns(PrivacyWarning, match="noise_seed"):
        found = private_table(TABLE, 1.0, domain=DOMAIN, noise_seed=1)
    assert found.protection is not None
    assert found.protection.sentence.endswith("may be published while the seed of its noise is secret")


def test_a_saved_table_keeps_its_protection() -> None:
    found = private_table(TABLE, 1.0, domain=DOMAIN)
    assert table_of(table_document(found)).protection == found.protection


def test_intervals_allow_for_the_noise_and_the_statement_says_that_it_may_be_published() -> None:
    found = private_table(TABLE, 0.5, domain="table", noise_seed=0)
    bare = JointTable.from_counts(found.counts, found.private, found.public)  # type: ignore[arg-type]
    noisy, without = disclosure(found, np.eye(2)), disclosure(bare, np.eye(2))
    width = [high - low for low, high in (noisy.interval("information"), without.interval("information"))]  # type: ignore[misc]
    assert width[0] > width[1]
    assert "may be published" in noisy.statement
    assert "stay at home" in without.statement


CASES = ((2, 2, 100, 4.0), (2, 6, 100, 0.2), (4, 16, 100, 0.2), (4, 16, 1000, 1.0), (4, 16, 10000, 0.2))


@pytest.mark.filterwarnings("ignore:.*seed")
@pytest.mark.parametrize("tables", [15, pytest.param(1000, marks=pytest.mark.slow)])
def test_intervals_hold_the_truth_also_where_noise_rules(tables: int) -> None:
    rng, held = np.random.default_rng(4), np.zeros(6)
    for number in range(tables):
        s, x, records, epsilon = CASES[number % len(CASES)]
        # Half of the populations are independent, where noise alone looks like information.
        sides = np.outer(rng.dirichlet(np.full(s, 2.0)), rng.dirichlet(np.full(x, 2.0)))
        truth = sides if number % 2 else rng.dirichlet(np.full(s * x, 2.0)).reshape(s, x)
        response = 0.1 + 0.7 * np.eye(3)[rng.integers(0, 3, x)]
        counts = rng.multinomial(records, truth.ravel()).reshape(s, x)
        domain = {"S": list(map(str, range(s))), "X": list(map(str, range(x)))}
        table = JointTable.from_counts(counts, *domain.values(), drop_empty=True)
        delta, adjacency = (1e-6, "replace-one") if number % 3 else (0.0, "add-remove")
        noisy = private_table(table, epsilon, delta, domain=domain, adjacency=adjacency, noise_seed=number)
        frame = disclosure(noisy, response, bootstrap=100, seed=number, same_records=False).frame
        measures = measure(truth[None], response)[0]
        held += (frame["low"] <= measures + 1e-12) & (measures <= frame["high"] + 1e-12)
    # The level is 95%; three standard deviations are 2.1% of 1000 tables.
    assert held.min() >= (0.93 * tables if tables > 100 else tables - 3), held / tables


@given(st.lists(st.integers(-30, 30), min_size=1, max_size=8), st.integers(1, 50))
def test_the_nearest_counts_are_nearest_and_whole_ones_keep_the_sum(noisy: list[int], total: int) -> None:
    point = np.array(noisy, dtype=np.float64)
    found = nearest_shares(point, float(total))
    assert found.min() >= 0
    assert found.sum() == pytest.approx(total)
    # Optimality: a feasible direction from the projection makes no acute angle with what was cut off.
    corners = total * np.eye(len(point))
    assert ((corners - found) @ (point - found)).max() <= 1e-8 * (1 + total) * 60
    whole = whole_counts(found, total)
    assert int(whole.sum()) == total
    assert np.abs(whole - found).max() <= 1 + 1e-9


def test_the_projection_is_that_of_a_solver() -> None:
    point = np.array([5.0, -2.0, 1.0, 7.5])
    solved = minimize(
        lambda q: ((q - point) ** 2).sum(),
        np.full(4, 2.0),
        bounds=[(0, None)] * 4,
        constraints=[LinearConstraint(np.ones((1, 4)), 8.0, 8.0)],
        method="SLSQP",
    )
    assert np.allclose(solved.x, nearest_shares(point, 8.0), atol=1e-5)  # the solver's own accuracy


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bins": {"age": "quantiles:2"}}, "was prepared by what its records are"),
        ({"rare": 2}, "was prepared by what its records are"),
        ({"missing": "drop"}, "the number of records tells of them"),
    ],
)
def test_a_preparation_that_was_read_off_the_records_is_refused(options: dict[str, object], message: str) -> None:
    ages = [20, 30, 40, 50, 50, None if "missing" in options else 60]
    rows = pd.DataFrame({"age": ages, "ill": list("nynyny")})
    prepared = cpv.prepare(rows, columns=["age", "ill"], **options)  # type: ignore[arg-type]
    table = JointTable.from_frame(prepared, ["ill"], ["age"])
    with pytest.raises(CvxprivError, match=message):
        private_table(table, 1.0, domain="table")


def test_no_odd_cell_of_private_rows_is_told_by_its_refusal() -> None:
    """One of two sentences, whatever the cell is; without a word on which, or of what kind."""
    said = set()
    for column, cell in [(column, cell) for column in ("age", "ill") for cell in CELLS]:
        rows = pd.DataFrame({"age": [20, 35, 60, 60], "ill": list("ynyn")}, dtype=object)
        odd = np.empty(4, dtype=object)
        odd[:] = rows[column]
        odd[3] = cell
        rows[column] = pd.Series(odd, dtype=object)
        try:
            made = cpv.prepare(rows, bins={"age": [30, 50]}, missing="symbol", public_recipe=True)
            private_table(JointTable.from_frame(made, ["ill"], ["age"]), 1.0, domain={"ill": ["y", "n", "missing"]})
        except CvxprivError as error:
            said.add(str(error).split(":")[0].split(",")[0])
    assert said == {"some row lacks a value", "a record lies outside the domain"}
