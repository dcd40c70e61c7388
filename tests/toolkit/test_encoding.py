"""Columns as numbers: bounds that hold whatever the data are, what was read off them, and labels as signs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from cvxpriv.errors import DataError, ModelError, PrivacyError
from cvxpriv.learning.columns import Category, Number
from cvxpriv.learning.encoding import Encoding, complete_rows
from cvxpriv.learning.labels import class_probabilities, predicted, signed_labels
from cvxpriv.penalties import loss_named

PEOPLE = pd.DataFrame({"age": ["30", "50", "40"], "job": ["clerk", None, "farmer"], "zip": ["01", "02", "01"]})
GIVEN: dict[str, Any] = {
    "ranges": {"age": (0, 100)},
    "categories": {"job": ["clerk", "farmer"], "zip": ["01", "02", "03"]},
}


def test_numbers_are_scaled_and_categories_have_a_column_each_in_the_given_order() -> None:
    encoding = Encoding.of(PEOPLE, **GIVEN)
    assert encoding.features == ("age", "job=clerk", "job=farmer", "zip=01", "zip=02", "zip=03")
    assert encoding.encode(PEOPLE).tolist() == [
        [0.3, 1.0, 0.0, 1.0, 0.0, 0.0],
        [0.5, 0.0, 0.0, 0.0, 1.0, 0.0],
        [0.4, 0.0, 1.0, 1.0, 0.0, 0.0],
    ]
    assert encoding.positions(["zip", "age"]).tolist() == [3, 4, 5, 0]


@settings(deadline=None, max_examples=40)
@given(
    ages=st.lists(st.one_of(st.floats(-1e300, 1e300), st.integers(-5, 200)), min_size=1, max_size=8),
    jobs=st.lists(st.sampled_from(["clerk", "farmer", "spy", None, "", " "]), min_size=8, max_size=8),
    scaled=st.booleans(),
)
def test_no_row_is_longer_than_the_public_bound_whatever_its_values(
    ages: list[float], jobs: list[str | None], scaled: bool
) -> None:
    encoding = Encoding((Number("age", 0.0, 100.0), Category("job", ("clerk", "farmer"))), scaled)
    rows = encoding.encode(pd.DataFrame({"age": ages, "job": jobs[: len(ages)]}), beyond="move")
    assert (np.linalg.norm(rows, axis=1) <= encoding.row_bound() * (1 + 1e-15)).all()  # rounding of one division
    assert encoding.row_bound() == pytest.approx(1.0 if scaled else np.sqrt(2.0), rel=1e-15)
    assert np.abs(rows[:, 0]).max() <= encoding.row_bound(["age"])


def test_bounds_read_off_the_rows_are_named_and_refused_where_they_must_be_public() -> None:
    encoding = Encoding.of(PEOPLE, ranges={"age": (0, 100)})
    assert encoding.read_off == ("job", "zip")
    with pytest.raises(PrivacyError, match="values of 'job', 'zip' would be read off the private rows"):
        encoding.require_public()
    Encoding.of(PEOPLE, **GIVEN).require_public()
    with pytest.raises(PrivacyError, match="range of 'age' and the values of 'job'"):
        Encoding.of(PEOPLE, ["age", "job"]).require_public()


def test_values_beyond_what_was_given_are_refused_or_moved_and_those_beyond_what_was_read_off_are_moved() -> None:
    later = pd.DataFrame({"age": [20, 120], "job": ["spy", "clerk"]}, index=[7, 9])
    told = Encoding.of(PEOPLE, ["age", "job"], ranges={"age": (0, 100)}, categories={"job": ["clerk"]})
    with pytest.raises(DataError, match=r"holds 120 in row 9 .* beyond its range 0 to 100.*beyond='move'"):
        told.encode(later)
    with pytest.raises(DataError, match="'spy', which is none of its values"):
        told.encode(later.iloc[:1])
    assert told.encode(later, beyond="move").tolist() == [[0.2, 0.0], [1.0, 1.0]]
    read = Encoding.of(PEOPLE, ["age", "job"])
    assert read.encode(later).tolist() == [[0.0, 0.0, 0.0], [1.0, 1.0, 0.0]]


def test_a_missing_number_is_refused_with_a_remedy_and_found_beforehand() -> None:
    rows = pd.DataFrame({"age": ["30", " ", None], "job": ["clerk", None, "x"]})
    encoding = Encoding.of(rows, ranges={"age": (0, 100)})
    with pytest.raises(DataError, match="2 missing numbers in 3 rows: drop those rows"):
        encoding.encode(rows)
    assert complete_rows(rows, encoding).tolist() == [True, False, False]


def test_an_encoding_comes_back_from_its_document() -> None:
    for scaled in (False, True):
        encoding = Encoding.of(PEOPLE, ranges={"age": (0, 100)}, scaled=scaled)
        assert Encoding.of_document(encoding.document()) == encoding


def test_a_file_without_an_encoding_is_told_apart(tmp_path: Path) -> None:
    from cvxpriv.runs.saved import write_run

    with pytest.raises(DataError, match="holds no encoding"):
        Encoding.load(write_run(tmp_path / "run.json", "ISTDP", {}))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": ["salary"]}, "'salary' is no column"),
        ({"ranges": {"salary": (0, 1)}}, "ranges names 'salary', which is not encoded"),
        ({"ranges": {"age": (5, 5)}}, r"ranges of 'age' is \(5, 5\): give two finite numbers"),
        ({"ranges": {"age": (0, np.inf)}}, "two finite numbers"),
        ({"ranges": {"age": (0, 1)}, "categories": {"age": [1]}}, "has a range and values"),
        ({"categories": {"job": []}}, "give at least one value"),
        ({"columns": ["age"], "frame": PEOPLE.assign(age="7")}, "holds 7 alone, which has no range"),
        ({"columns": ["id"], "frame": pd.DataFrame({"id": [f"n{i}" for i in range(1001)]})}, "1,001 different values"),
    ],
)
def test_an_encoding_that_cannot_be_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Encoding.of(arguments.pop("frame", PEOPLE), **arguments)


def test_text_in_a_column_of_numbers_is_named_by_its_row() -> None:
    with pytest.raises(DataError, match="'old' in row 1"):
        Encoding.of(PEOPLE, ["age"], ranges={"age": (0, 9)}).encode(pd.DataFrame({"age": ["1", "old"]}))
    with pytest.raises(DataError, match="beyond='clip' is not known"):
        Encoding.of(PEOPLE, ["age"]).encode(PEOPLE, beyond="clip")


# -- labels ----------------------------------------------------------------------------------------------------------

LOGISTIC, SQUARED = loss_named("logistic"), loss_named("squared")


@pytest.mark.parametrize(
    ("labels", "classes"),
    [(["no", "yes"], ["no", "yes"]), ([0, 1], [0, 1]), ([-1.0, 1.0], [-1.0, 1.0]), ([False, True], [False, True])],
)
def test_the_smaller_of_two_labels_is_minus_one_and_predictions_are_spelled_alike(
    labels: list[Any], classes: list[Any]
) -> None:
    signs, found = signed_labels(labels, 2, LOGISTIC)
    assert signs.tolist() == [-1.0, 1.0]
    assert found is not None
    assert found.tolist() == classes
    assert predicted(np.array([3.0, -0.5, 0.0]), found).tolist() == [classes[1], classes[0], classes[0]]


@pytest.mark.parametrize(("label", "sign", "low"), [(0, -1.0, 0.0), (1, 1.0, -1.0), (-1, -1.0, -1.0)])
def test_one_class_alone_is_taken_only_where_the_other_is_known_and_the_model_allows_it(
    label: int, sign: float, low: float
) -> None:
    signs, classes = signed_labels([label] * 3, 3, LOGISTIC, one_class=True)
    assert classes is not None
    assert (signs.tolist(), classes.tolist()) == ([sign] * 3, [low, 1.0])
    for bad, allowed in (([label] * 3, False), ([7] * 3, True), (["a"] * 3, True)):
        with pytest.raises(DataError, match=r"y has 1 class \("):
            signed_labels(bad, 3, LOGISTIC, one_class=allowed)


def test_a_residual_loss_takes_numbers_and_has_no_classes() -> None:
    signs, classes = signed_labels([3, 4.5], 2, SQUARED)
    assert (signs.tolist(), classes) == ([3.0, 4.5], None)
    with pytest.raises(DataError, match="not numbers"):
        signed_labels(["a", "b"], 2, SQUARED)


def test_labels_that_mix_types_or_lack_one_are_refused() -> None:
    with pytest.raises(DataError, match="mixes labels of several types"):
        signed_labels(np.array(["a", None], dtype=object), 2, LOGISTIC)
    with pytest.raises(DataError, match="y holds NaN"):
        signed_labels([1.0, np.nan], 2, LOGISTIC)
    with pytest.raises(DataError, match=r"y has shape \(2,\), expected \(3,\)"):
        signed_labels([0, 1], 3, LOGISTIC)


def test_probabilities_are_those_of_the_logistic_model_alone() -> None:
    assert class_probabilities(np.log([1.0, 3.0]), "logistic").tolist() == [[0.5, 0.5], [0.25, 0.75]]
    with pytest.raises(ModelError, match="gives no probabilities"):
        class_probabilities(np.zeros(1), "hinge")


def test_amounts_of_money_and_percentages_are_numbers_and_identifiers_are_no_category() -> None:
    frame = pd.DataFrame({"pay": ["$30", "$40.5", "50 $"], "share": ["5%", "10%", "20 %"]})
    encoding = Encoding.of(frame)
    assert [(one.name, one.low, one.high) for one in encoding.columns if isinstance(one, Number)] == [
        ("pay", 30.0, 50.0),
        ("share", 5.0, 20.0),
    ]
    assert encoding.encode(frame)[:, 0].tolist() == [0.0, 0.525, 1.0]
    people = pd.DataFrame({"name": [f"n{i}" for i in range(40)]})
    with pytest.raises(DataError, match="40 values in 40 rows"):
        Encoding.of(people)
    assert len(Encoding.of(people, categories={"name": None}).features) == 40
