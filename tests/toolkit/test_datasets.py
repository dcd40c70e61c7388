"""Embedded tables: their published totals, the paper's shapes, and that nothing private rides along."""

from importlib import resources

import numpy as np
import pytest

from cvxpriv.errors import DataError
from cvxpriv.tables.datasets import SOURCES, adult, heart_failure, joint_table, load_table


def test_adult_counts_have_the_published_totals():
    # UCI Adult, adult.data: 32,561 records, 7,841 of them >50K, 21,790 men
    frame = load_table("adult")
    assert len(frame) == 5 * 2 * 16 * 2
    assert frame["count"].sum() == 32_561
    assert frame.groupby("income")["count"].sum().to_dict() == {"<=50K": 24_720, ">50K": 7_841}
    assert frame.groupby("sex")["count"].sum().to_dict() == {"Female": 10_771, "Male": 21_790}


def test_heart_failure_counts_have_the_published_totals():
    # Chicco and Jurman 2020, table 2: 299 patients, 96 deaths, 194 men, 129 with anaemia, 105 with high blood pressure,
    # 125 with diabetes, 96 smokers
    frame = load_table("heart-failure")
    assert len(frame) == 2**6
    assert frame["count"].sum() == 299
    ones = {column: int(frame.loc[frame[column] == 1, "count"].sum()) for column in frame.columns if column != "count"}
    assert ones == {
        "sex": 194,
        "death": 96,
        "anaemia": 129,
        "high_blood_pressure": 105,
        "diabetes": 125,
        "smoking": 96,
    }


@pytest.mark.parametrize("smoothing_on", ["counts", "probabilities"])
def test_the_tables_have_the_papers_shapes_in_both_readings_of_its_smoothing(smoothing_on):
    # PF, section IV-B: |S| = 4, |X| = 16 and |S| = 10, |X| = 160
    assert heart_failure(smoothing_on=smoothing_on).shape == (4, 16)
    assert adult(smoothing_on=smoothing_on).shape == (10, 160)


def test_without_smoothing_only_the_cells_that_occur_are_kept():
    assert heart_failure(smoothing=0).shape == (4, 16)
    table = adult(smoothing=0)
    assert table.shape == (10, 158)  # nobody is 17-25, Male, education 15 or 16
    assert table.smoothing == "none"


def test_marginals_are_those_of_the_records():
    table = adult(smoothing=0)
    rich = [i for i, row in enumerate(table.private.symbols) if row[1] == ">50K"]
    assert table.p_s[rich].sum() == pytest.approx(7_841 / 32_561, abs=1e-12)  # one sum of five: rounding
    died = [i for i, row in enumerate(heart_failure(smoothing=0).private.symbols) if row[1] == "1"]
    assert heart_failure(smoothing=0).p_s[died].sum() == pytest.approx(96 / 299, abs=1e-12)


def test_age_alone_is_known_exactly_from_adults_public_side():
    # Age is on both sides, so I(S;X) >= H(age)
    shares = load_table("adult").groupby("age")["count"].sum().to_numpy() / 32_561
    assert adult(smoothing=0).information > -np.sum(shares * np.log(shares))


def test_smoothing_on_counts_hardly_moves_the_tables_and_on_probabilities_does():
    for name in SOURCES:
        bare = joint_table(name, smoothing=0).information
        assert joint_table(name).information == pytest.approx(bare, abs=1e-3)  # .0004 and .0004 nats measured
        assert joint_table(name, smoothing_on="probabilities").information < bare - 0.04  # .0437 and 1.285 measured


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(DataError, match=r"name='hart-failure'.*did you mean 'heart-failure'"):
        load_table("hart-failure")


def test_a_loaded_table_is_the_callers_own():
    frame = load_table("adult")
    frame["count"] = 0
    assert load_table("adult")["count"].sum() == 32_561


def test_every_embedded_file_has_its_source_written_down():
    folder = resources.files("cvxpriv.tables.datasets") / "data"
    sources = (folder / "SOURCES.md").read_text(encoding="utf-8")
    files = sorted(item.name for item in folder.iterdir() if item.name.endswith(".csv"))
    assert files == sorted(source.file for source in SOURCES.values())
    assert all(f"## {file}" in sources for file in files)
    assert "CC BY 4.0" in sources
