"""The bundle of a release, and what a recipient estimates from it: likelihood, inversion, intervals, damage."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize

import cvxpriv as cpv
from cvxpriv.errors import CvxprivError
from cvxpriv.mechanisms.bundle import contents_of
from cvxpriv.mechanisms.codebook import codebook
from cvxpriv.mechanisms.frequencies import estimates, ranges
from cvxpriv.mechanisms.likelihood import most_likely
from cvxpriv.tables.joint import Alphabet

INPUTS = Alphabet(("age", "sex"), (("old", "F"), ("old", "M"), ("young", "F"), ("young", "M")))
MATRIX = np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.7, 0.1, 0.1], [0.0, 0.1, 0.8, 0.1], [0.1, 0.0, 0.1, 0.8]])
PEOPLE = pd.DataFrame(list(INPUTS.symbols) * 500, columns=list(INPUTS.columns))
PEOPLE["ill"] = "yes"
MECHANISM = cpv.Mechanism(MATRIX, INPUTS, private_columns=["ill"], figures={"leakage": 0.1, "kkt": 1e-9})


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(2, 6))
def test_no_distribution_is_more_likely_than_the_certificate_allows(seed: int, inputs: int, outputs: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.full(outputs, 0.5), inputs)
    counts = rng.multinomial(200, rng.dirichlet(np.ones(inputs)) @ matrix)
    found = most_likely(matrix, counts)
    assert found.p.sum() == pytest.approx(1.0)
    drawn = counts > 0
    value = (counts / 200)[drawn] @ np.log((found.p @ matrix)[drawn])
    for other in rng.dirichlet(np.ones(inputs), 200):
        assert (counts / 200)[drawn] @ np.log((other @ matrix)[drawn]) <= value + found.gap + 1e-12  # rounding


def test_the_likelihood_is_that_of_a_solver_also_at_the_boundary() -> None:
    counts = np.array([10.0, 60.0, 5.0, 25.0])
    found = most_likely(MATRIX, counts).p
    solved = minimize(
        lambda p: -counts @ np.log(p @ MATRIX) / 100,
        np.full(4, 0.25),
        bounds=[(1e-12, 1)] * 4,
        constraints=[{"type": "eq", "fun": lambda p: p.sum() - 1}],
        tol=1e-14,
    )
    assert np.allclose(solved.x, found, atol=1e-4)  # the solver's own accuracy
    assert found[2] < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(("inputs", "outputs"), [(4, 4), (3, 5), (5, 3)])
def test_intervals_hold_the_truth_as_often_as_they_say(inputs: int, outputs: int) -> None:
    rng = np.random.default_rng(inputs)
    matrix = rng.dirichlet(np.full(outputs, 0.5), inputs)
    truth = rng.dirichlet(np.full(inputs, 3.0))
    sums = np.vstack([np.eye(inputs), [1.0, 1.0, *[0.0] * (inputs - 2)]])
    held, mean = np.zeros(len(sums)), np.zeros(len(sums))
    for _ in range(300):
        counts = rng.multinomial(800, truth @ matrix).astype(float)
        found = estimates(matrix, counts, sums)
        held += (found.low <= sums @ truth) & (sums @ truth <= found.high)
        mean += found.unbiased / 300
    # 95% of 300 is 285, with a standard deviation of 3.8.
    assert held.min() >= 270, held
    if outputs >= inputs:
        assert np.abs(mean - sums @ truth).max() < 0.03


def test_a_few_intervals_hold_the_truth() -> None:
    rng, truth = np.random.default_rng(7), np.array([0.1, 0.2, 0.3, 0.4])
    held = 0
    for _ in range(60):
        found = estimates(MATRIX, rng.multinomial(500, truth @ MATRIX).astype(float), np.eye(4))
        held += int(((found.low <= truth) & (truth <= found.high)).sum())
    assert held >= 216  # 95% of 240 is 228, with a standard deviation of 3.4


@pytest.mark.parametrize(
    ("inputs", "rows", "studies"),
    [
        (4, 2000, 15),
        (2, 30, 15),
        *(pytest.param(k, n, 150, marks=pytest.mark.slow) for k in (2, 7) for n in (40, 2000)),
    ],
)
def test_ranges_from_a_rounded_codebook_hold_the_truth(inputs: int, rows: int, studies: int) -> None:
    rng, held = np.random.default_rng(inputs + rows), 0
    alphabet, outputs = Alphabet.numbered("x", inputs), [f"y{number}" for number in range(4)]
    statistics = np.vstack([np.eye(inputs), [1.0, 1.0, *[0.0] * (inputs - 2)]])
    for _ in range(studies):
        # A sparse truth: the rows then often fit no distribution, and symbols get no chance in the codebook.
        matrix, truth = rng.dirichlet(np.full(4, 0.7), inputs), rng.dirichlet(np.full(inputs, 0.3))
        counts = rng.multinomial(rows, truth @ matrix).astype(float)
        book = codebook(matrix, alphabet, outputs, counts, 0.05)
        low, high = ranges(book.posterior, 0.05, counts, statistics)
        held += bool(((low <= statistics @ truth + 1e-9) & (statistics @ truth <= high + 1e-9)).all())
    assert held >= 0.95 * studies  # simultaneous, and cautious beyond it


def test_a_rounded_codebook_leaves_open_what_cannot_be_told_apart() -> None:
    merged, counts = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.array([600.0, 400.0])
    book = codebook(merged, Alphabet.numbered("x", 3), ["a", "b"], counts, 0.05)
    low, high = ranges(book.posterior, 0.05, counts, np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]))
    assert low[0] < 0.05  # all rows of their output may belong to the other
    assert high[0] > 0.5
    assert 0.45 < low[1] < 0.6 < high[1] < 0.75


def test_a_private_bundle_is_the_same_for_matrices_that_the_rounding_does_not_tell_apart() -> None:
    # All rows hold y0, which no distribution explains: its chances under the likeliest one are a row of the matrix.
    rows = pd.DataFrame({"y": ["y0"] * 50})
    near = np.array([[0.001, -0.001, 0.0, 0.0]] + [[0.0] * 4] * 3)
    made = [cpv.Mechanism(one, INPUTS, figures={"leakage": 0.1 + one[0, 0] / 1e4}) for one in (MATRIX, MATRIX + near)]
    assert contents_of(made[0], rows, name="y") == contents_of(made[1], rows, name="y")
    assert contents_of(made[0], rows, True, name="y") != contents_of(made[1], rows, True, name="y")


def test_the_bundle_says_how_many_rows_were_left_out(tmp_path: Path) -> None:
    people = pd.concat([PEOPLE, pd.DataFrame({"age": ["unknown"] * 3, "sex": ["F"] * 3, "ill": ["no"] * 3})])
    MECHANISM.bundle(people, tmp_path / "b", unseen="drop")
    assert json.loads((tmp_path / "b" / "bundle.json").read_text())["left_out"] == 3
    assert "3 further rows were left out" in (tmp_path / "b" / "README.txt").read_text()


def test_what_merged_symbols_hide_is_said_and_bounded() -> None:
    merged = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    found = estimates(merged, np.array([60.0, 40.0]), np.array([[1.0, 0, 0], [1.0, 1.0, 0]]))
    assert found.known.tolist() == [False, True]
    assert np.isnan(found.unbiased[0])
    assert found.low[0] == 0.0
    assert 0.6 < found.high[0] < 0.75
    assert found.likely[1] == pytest.approx(found.unbiased[1]) == pytest.approx(0.6)


@pytest.mark.parametrize("where", ["bundle", "bundle.zip"])
def test_a_recipient_reads_the_bundle_alone(tmp_path: Path, where: str) -> None:
    MECHANISM.bundle(PEOPLE, tmp_path / where, matrix=True)
    decoded = cpv.decode(tmp_path / where)
    found = decoded.frequencies("sex")
    assert list(found.index) == ["F", "M"]
    assert found["identifiable"].all()
    # The sexes are half each; a share of 2,000 rows has a standard deviation below 0.02 through this mechanism.
    assert abs(found.loc["F", "estimate"] - 0.5) < 0.1
    assert found["estimate"].sum() == pytest.approx(1.0)
    joint = decoded.frequencies("age", "sex")
    assert joint.groupby("sex")["estimate"].sum().to_numpy() == pytest.approx(found["estimate"].to_numpy())
    assert decoded.frequencies().equals(joint)


def test_without_the_matrix_the_estimate_is_the_likely_one_up_to_the_rounding(tmp_path: Path) -> None:
    released = MECHANISM.release(PEOPLE)
    MECHANISM.bundle(PEOPLE, tmp_path / "b")
    decoded = cpv.decode(tmp_path / "b")
    found = decoded.frequencies()
    assert list(found.columns) == ["estimate", "low", "high"]
    assert "every value that fits the rows" in decoded.notes[1]
    assert ((found["low"] <= 0.25) & (found["high"] >= 0.25)).all()  # the truth: each symbol has a quarter
    assert np.abs(found["estimate"] - most_likely(MATRIX, decoded.bundle.counts).p).max() <= 0.03
    assert len(released) == decoded.bundle.counts.sum()


def test_the_bundle_says_what_it_holds_and_hides_the_matrix_of_private_data(tmp_path: Path) -> None:
    MECHANISM.bundle(PEOPLE, tmp_path / "b")
    files = {path.name for path in (tmp_path / "b").iterdir()}
    assert files == {"rows.csv", "codebook.csv", "README.txt", "bundle.json", "manifest.json"}
    document = json.loads((tmp_path / "b" / "bundle.json").read_text())
    assert document["matrix"] is None
    assert all(round(20 * value, 6).is_integer() for row in document["posterior"] for value in row)
    assert document["figures"] == {"leakage": 0.1}
    text = (tmp_path / "b" / "README.txt").read_text()
    assert "They promise nothing about a single person" in " ".join(text.split())
    assert "age old, sex F" in text
    assert "yes" not in (tmp_path / "b" / "rows.csv").read_text()


def test_a_mechanism_that_may_be_published_brings_its_matrix_along(tmp_path: Path) -> None:
    table = cpv.private_table(cpv.JointTable.from_counts([[40, 10], [10, 40]]), 1.0, domain="table")
    made = cpv.models.PrivacyFunnel(table, rate=0.5, rate_unit="fraction").solve(starts=1).as_mechanism()
    made.bundle(pd.DataFrame({"X": ["0", "1"] * 20}), tmp_path / "b")
    assert json.loads((tmp_path / "b" / "bundle.json").read_text())["matrix"] is not None


def test_a_bundle_that_was_changed_is_refused(tmp_path: Path) -> None:
    MECHANISM.bundle(PEOPLE, tmp_path / "b", matrix=True)
    rows = tmp_path / "b" / "rows.csv"
    rows.write_text(rows.read_text().replace("y0", "y1"))
    with pytest.raises(CvxprivError, match="is not the file that the manifest names"):
        cpv.decode(tmp_path / "b")
    (tmp_path / "c.zip").write_bytes(b"PK nothing")
    for wrong in ("c.zip", "missing"):
        with pytest.raises(CvxprivError, match="cannot be used"):
            cpv.decode(tmp_path / wrong)


def test_an_unknown_column_is_named_with_its_nearest(tmp_path: Path) -> None:
    MECHANISM.bundle(PEOPLE, tmp_path / "b")
    with pytest.raises(CvxprivError, match="did you mean 'sex'"):
        cpv.decode(tmp_path / "b").frequencies("sexx")
