"""The bundle of a release, and what a recipient estimates from it: likelihood, inversion, intervals, damage."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize

import cvxpriv as cpv
from cvxpriv.errors import CvxprivError, DataError
from cvxpriv.mechanisms.bundle import contents_of
from cvxpriv.mechanisms.codebook import LEAST, Stated, parts
from cvxpriv.mechanisms.frequencies import estimates
from cvxpriv.mechanisms.likelihood import most_likely
from cvxpriv.mechanisms.noisy_frequencies import NoisyCounts, counts_in
from cvxpriv.tables.information import mutual_information
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


STATISTICS = np.vstack([np.eye(4), [1.0, 0.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 1.0, 0.0]])


@pytest.mark.parametrize(("rows", "studies"), [(30, 60), (500, 60), pytest.param(2000, 300, marks=pytest.mark.slow)])
def test_intervals_from_stated_frequencies_hold_the_truth(rows: int, studies: int) -> None:
    rng, held = np.random.default_rng(rows), np.zeros(len(STATISTICS))
    for _ in range(studies):
        truth = rng.dirichlet(np.full(4, 0.5))
        low, high = Stated.of(INPUTS, rng.multinomial(rows, truth).astype(float)).intervals(STATISTICS)
        held += (low <= STATISTICS @ truth + 1e-12) & (STATISTICS @ truth <= high + 1e-12)  # rounding
    assert held.min() >= 0.95 * studies  # cautious: of 60, 57


def test_ranges_hold_what_every_table_of_that_rounding_has() -> None:
    counts = np.array([[a, b, c, 24 - a - b - c] for a in range(25) for b in range(25 - a) for c in range(25 - a - b)])
    seen: dict[bytes, list[np.ndarray]] = {}
    for one in counts[:: len(counts) // 400]:
        seen.setdefault(Stated.of(INPUTS, one.astype(float)).shares.tobytes(), []).append(one / 24)
    for table in map(np.array, seen.values()):
        low, high = Stated.of(INPUTS, 24 * table[0]).ranges(STATISTICS)
        assert (low <= (table @ STATISTICS.T).min(axis=0) + 1e-9).all()
        assert (high >= (table @ STATISTICS.T).max(axis=0) - 1e-9).all()


@pytest.mark.parametrize("rows", [3, 20, 61, 200, 5000])
def test_a_stated_frequency_stands_for_ten_numbers_of_records(rows: int) -> None:
    pair = Alphabet.numbered("x", 2)
    told = [Stated.of(pair, np.array([k, rows - k], dtype=float)) for k in range(rows + 1)]
    runs = [len(list(same)) for _, same in itertools.groupby(one.shares.tobytes() for one in told)]
    assert min(runs[1:-1], default=LEAST) >= LEAST - 1  # a step of 10 records from tie to tie: 9, 10 or 11
    assert all(one.shares[0] + one.shares[1] in (0.0, 1.0) for one in told)
    for k, one in enumerate(told):
        low, high = one.ranges(np.eye(2))
        assert low[0] * rows <= k + 1e-6
        assert high[0] * rows >= k - 1e-6


def test_the_likely_distribution_is_near_to_what_is_stated() -> None:
    truth = np.array([0.33, 0.12, 0.01, 0.54])
    stated = Stated.of(INPUTS, 5000 * truth)
    assert np.abs(parts(INPUTS) @ (stated.likely - truth)).max() < 0.03  # the rounding is 0.025
    assert stated.likely.min() > 0


def test_the_codebook_gives_an_output_the_meaning_of_those_who_are_there() -> None:
    # Rows of the first two symbols cannot be told apart; nine in ten of them are of the second.
    merged = cpv.Mechanism([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], INPUTS)
    rows = pd.DataFrame({"y": ["y0"] * 600 + ["y1"] * 400})
    files = contents_of(merged, rows, np.array([60.0, 540.0, 200.0, 200.0]), name="y")
    posterior = json.loads(files["bundle.json"])["posterior"]
    assert posterior == [[pytest.approx(0.1), pytest.approx(0.9), 0, 0], [0, 0, 0.5, 0.5]]


def test_a_private_bundle_is_the_same_for_matrices_that_the_rounding_does_not_tell_apart() -> None:
    rows = pd.DataFrame({"y": ["y0"] * 50})
    near = np.array([[0.001, -0.001, 0.0, 0.0]] + [[0.0] * 4] * 3)
    made = [cpv.Mechanism(one, INPUTS, figures={"leakage": 0.1 + one[0, 0] / 1e4}) for one in (MATRIX, MATRIX + near)]
    symbols = np.array([50.0, 0, 0, 0])
    assert contents_of(made[0], rows, symbols, name="y") == contents_of(made[1], rows, symbols, name="y")
    assert contents_of(made[0], rows, symbols, True, name="y") != contents_of(made[1], rows, symbols, True, name="y")
    # Nor does it tell apart rows whose frequencies are rounded to the same.
    other = np.array([48.0, 1, 1, 0])
    assert contents_of(made[0], rows, symbols, name="y") == contents_of(made[0], rows, other, name="y")


def test_the_bundle_says_how_many_rows_were_left_out(tmp_path: Path) -> None:
    people = pd.concat([PEOPLE, pd.DataFrame({"age": ["unknown"] * 3, "sex": ["F"] * 3, "ill": ["no"] * 3})])
    MECHANISM.bundle(people, tmp_path / "b", unseen="drop")
    assert json.loads((tmp_path / "b" / "bundle.json").read_text())["left_out"] == 3
    assert "Rows left out: 3. " in (tmp_path / "b" / "README.txt").read_text()


def test_what_merged_symbols_hide_is_said_and_bounded() -> None:
    merged = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    found = estimates(merged, np.array([60.0, 40.0]), np.array([[1.0, 0, 0], [1.0, 1.0, 0]]))
    assert found.known.tolist() == [False, True]
    assert np.isnan(found.unbiased[0])
    assert found.low[0] == 0.0
    assert 0.6 < found.high[0] < 0.75
    assert found.likely[1] == pytest.approx(found.unbiased[1]) == pytest.approx(0.6)


@pytest.mark.parametrize("where", ["bundle", "bundle.zip"])
def test_a_recipient_reads_the_bundle_alone(tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))  # a kill would leave rows there
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


def test_without_the_matrix_stated_frequencies_give_the_estimate(tmp_path: Path) -> None:
    MECHANISM.bundle(PEOPLE, tmp_path / "b")
    decoded = cpv.decode(tmp_path / "b")
    for columns in (("age",), ("age", "sex")):
        found = decoded.frequencies(*columns)
        assert list(found.columns) == ["estimate", "low", "high"]
        assert found["estimate"].to_numpy() == pytest.approx(1 / len(found), abs=0.01)
        assert found["estimate"].sum() == pytest.approx(1.0)
        assert ((found["low"] <= 1 / len(found)) & (found["high"] >= 1 / len(found))).all()
        assert (found["high"] - found["low"]).max() < 0.1  # half a step on both sides, and 2,000 rows: .095
    assert "rounded to 5%" in decoded.notes[1]


def test_what_outputs_do_not_determine_is_stated_beside_the_matrix_too(tmp_path: Path) -> None:
    merged = cpv.Mechanism([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], INPUTS)
    merged.bundle(PEOPLE, tmp_path / "b", matrix=True)
    found = cpv.decode(tmp_path / "b").frequencies("sex")
    assert not found["identifiable"].any()
    assert found["unbiased"].isna().all()
    assert (found["high"] - found["low"]).max() < 0.1
    assert found.loc["F", "estimate"] == pytest.approx(0.5, abs=0.03)


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
    made.save(tmp_path / "m.json")
    cpv.Mechanism.load(tmp_path / "m.json").bundle(pd.DataFrame({"X": ["0", "1"] * 20}), tmp_path / "b")
    held = json.loads((tmp_path / "b" / "bundle.json").read_text())
    assert held["matrix"] is not None
    assert made.noisy is not None  # those of the rows would be without noise
    assert held["frequencies"] == json.loads(json.dumps(made.noisy.document()))
    assert np.allclose(made.noisy.prior, table.p_x, rtol=0, atol=0)
    assert cpv.models.PrivacyFunnel(cpv.JointTable.from_counts([[4, 1], [1, 4]])).solve().as_mechanism().noisy is None
    decoded = cpv.decode(tmp_path / "b")
    assert "noisy counts" in decoded.notes[1]
    found = decoded.frequencies("X")
    assert list(found) == ["estimate", "low", "high", "unbiased", "identifiable"]
    assert ((found["low"] <= found["estimate"]) & (found["estimate"] <= found["high"])).all()
    assert "noisy counts" in " ".join((tmp_path / "b" / "README.txt").read_text().split())


def noisy_counts(rng: np.random.Generator, truth: np.ndarray, epsilon: float, delta: float, adjacency: str) -> Any:
    table = cpv.JointTable.from_counts(rng.multinomial(300, truth.ravel()).reshape(2, 4))
    domain, seed = {"S": [0, 1], "X": [0, 1, 2, 3]}, int(rng.integers(2**40))
    return cpv.private_table(table, epsilon, delta, domain=domain, adjacency=adjacency, noise_seed=seed)


@pytest.mark.parametrize(
    ("epsilon", "delta", "adjacency"),
    [(1.0, 0.0, "replace-one"), (0.1, 0.0, "replace-one"), (1.0, 1e-6, "replace-one"), (1.0, 0.0, "add-remove")],
)
@pytest.mark.parametrize("studies", [8, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore:noise_seed makes:UserWarning")
def test_intervals_of_noisy_counts_hold_the_truth(epsilon: float, delta: float, adjacency: str, studies: int) -> None:
    rng, held, half = np.random.default_rng(3), np.zeros(len(STATISTICS)), np.zeros(len(STATISTICS))
    truth = rng.dirichlet(np.full(8, 0.7)).reshape(2, 4)
    for _ in range(studies):
        told = NoisyCounts.of(noisy_counts(rng, truth, epsilon, delta, adjacency))
        assert told is not None
        low, high = told.intervals(STATISTICS)
        held += (low <= STATISTICS @ truth.sum(axis=0)) & (STATISTICS @ truth.sum(axis=0) <= high)
        half += (high - low) / 2 / studies
    # Cautious at 95%. Four standard deviations below it, for each of seven statistics.
    assert held.min() >= 0.95 * studies - 4 * np.sqrt(0.05 * 0.95 * studies), held
    wider = 0.03 if adjacency == "replace-one" else 0.05  # the number of records is uncertain too
    assert (half <= told.half_widths(STATISTICS) + wider).all()  # about what is expected: no caution beyond need


@pytest.mark.filterwarnings("ignore:noise_seed makes:UserWarning")
def test_outputs_give_the_interval_where_the_noise_tells_less(tmp_path: Path) -> None:
    rng, truth, held, places = np.random.default_rng(4), np.full((2, 4), 0.125), 0, 0
    for epsilon, from_outputs in ((0.01, True), (2.0, False)):
        for _ in range(3):
            told = NoisyCounts.of(noisy_counts(rng, truth, epsilon, 0.0, "replace-one"))
            made = replace(MECHANISM, noisy=told, origin={"publish": "may be published"})
            rows = PEOPLE.iloc[rng.integers(len(PEOPLE), size=300)]
            made.bundle(rows, tmp_path / "b.zip")
            found = cpv.decode(tmp_path / "b.zip").frequencies()
            assert not from_outputs or (found["high"] - found["low"] < 0.5).all()
            held += int(((found["low"] <= 0.25) & (found["high"] >= 0.25)).sum())
            places += len(found)
    assert held >= 0.95 * places - 4 * np.sqrt(0.05 * 0.95 * places)


@pytest.mark.filterwarnings("ignore:noise_seed makes:UserWarning")
def test_damaged_noisy_counts_are_refused() -> None:
    told = NoisyCounts.of(noisy_counts(np.random.default_rng(5), np.full((2, 4), 0.125), 1.0, 0.0, "replace-one"))
    assert told is not None
    document = told.document()
    assert counts_in(document, told.inputs).document() == document
    for change in ({"cells": 0}, {"scale": -1.0}, {"records": "many"}, {"prior": [0.5] * 4}, {"noisy_counts": [1.0]}):
        with pytest.raises(DataError, match="design the mechanism again"):
            counts_in({**document, **change}, INPUTS)


def test_a_bundle_that_was_changed_is_refused(tmp_path: Path) -> None:
    MECHANISM.bundle(PEOPLE, tmp_path / "b", matrix=True)
    rows = tmp_path / "b" / "rows.csv"
    rows.write_text(rows.read_text().replace("y0", "y1"))
    with pytest.raises(CvxprivError, match="is not the file that the manifest names"):
        cpv.decode(tmp_path / "b")
    MECHANISM.bundle(PEOPLE, tmp_path / "b", matrix=True)
    (tmp_path / "b" / "codebook.csv").write_text("another")
    with pytest.raises(CvxprivError, match="codebook.csv is not the file that the manifest names"):
        cpv.decode(tmp_path / "b")
    (tmp_path / "c.zip").write_bytes(b"PK nothing")
    for wrong in ("c.zip", "missing"):
        with pytest.raises(CvxprivError, match="cannot be used"):
            cpv.decode(tmp_path / wrong)


def test_an_unknown_column_is_named_with_its_nearest(tmp_path: Path) -> None:
    MECHANISM.bundle(PEOPLE, tmp_path / "b")
    with pytest.raises(CvxprivError, match="did you mean 'sex'"):
        cpv.decode(tmp_path / "b").frequencies("sexx")


def test_two_outputs_of_a_person_can_tell_together_what_neither_tells_alone() -> None:
    # X is two fair bits and S their difference; an output is one of the bits, drawn afresh: both come half the time.
    joint = np.array([[1.0, 0, 0, 1], [0, 1, 1, 0]]) / 4
    one = np.array([[1.0, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]]) / 2
    two = (one[:, :, None] * one[:, None, :]).reshape(4, -1)
    assert mutual_information(joint @ one) == pytest.approx(0.0, abs=1e-15)
    assert mutual_information(joint @ two) == pytest.approx(np.log(2) / 2)


def test_bundles_of_the_same_rows_are_one_sample() -> None:
    rng, shares, studies = np.random.default_rng(3), np.array([0.4, 0.6]), 400
    matrix = np.array([[0.95, 0.05], [0.05, 0.95]])
    statistic, both, pooled = np.array([[1.0, 0.0]]), 0, 0
    for _ in range(studies):
        people = rng.multinomial(300, shares)
        drawn = [sum(rng.multinomial(n, row) for n, row in zip(people, matrix, strict=True)) for _ in range(2)]
        each = [estimates(matrix, counts.astype(float), statistic, 0.975) for counts in drawn]
        both += all(found.low[0] <= shares[0] <= found.high[0] for found in each)
        together = estimates(matrix, sum(drawn).astype(float), statistic)
        pooled += bool(together.low[0] <= shares[0] <= together.high[0])
    # By the union of two misses of 2.5 %; the normal law of 400 studies leaves .95 - 3 * .011.
    assert both / studies >= 0.917
    assert pooled / studies < 0.91  # the intervals of 600 rows for 300 people: too narrow by up to sqrt(2)


@pytest.mark.parametrize("several", [["a.zip", "b.zip"], ("a.zip",), None])
def test_several_bundles_are_refused_with_the_way_out(several: object) -> None:
    with pytest.raises(DataError, match="one sample"):
        cpv.decode(several)  # type: ignore[arg-type]
