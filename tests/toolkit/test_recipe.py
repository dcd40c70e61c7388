"""Recipes: what they make of raw rows, that later rows become the same, and what they refuse."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cvxpriv as cpv
from cvxpriv.errors import DataError
from cvxpriv.mechanisms.codebook import statistics_of
from cvxpriv.mechanisms.file import FORMAT, VERSION
from cvxpriv.tables.documents import table_document, table_of
from cvxpriv.tables.frames import in_order
from cvxpriv.tables.recipe_texts import bins_in, merge_in, size_in
from cvxpriv.tables.small_counts import require_repeated
from cvxpriv.tables.steps import Bins


def rows(size: int = 300, seed: int = 3) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": draw.integers(18, 90, size),
            "income": draw.lognormal(3.0, 1.0, size).round(2),
            "job": draw.choice(["clerk", "typist", "smith", "pilot"], size, p=[0.5, 0.3, 0.19, 0.01]),
        }
    )


def test_bins_by_edges_are_those_of_pandas() -> None:
    frame = rows()
    made = cpv.prepare(frame, bins={"age": [26, 33, 41, 50]}).frame["age"]
    cut = pd.cut(
        frame["age"], [-np.inf, 26, 33, 41, 50, np.inf], right=False, labels=Bins("age", (26, 33, 41, 50)).labels
    )
    assert made.astype(str).to_list() == cut.astype(str).to_list()


@pytest.mark.parametrize("counted", [False, True])
def test_quantiles_part_the_records_evenly_and_are_called_private(counted: bool) -> None:
    frame = rows().assign(n=np.arange(300) % 4 if counted else 1)
    made = cpv.prepare(frame, bins={"income": "quantiles:5"}, columns=["income"], count="n")
    sizes = frame["n"].groupby(made.frame["income"], observed=True).sum()
    # Each class holds a fifth of the records, but for the records of the one row on its edge at either end.
    assert len(sizes) == 5
    assert abs(sizes - frame["n"].sum() / 5).max() <= 2 * frame["n"].max()
    assert "from the data: private facts" in made.recipe.description[0]


def test_a_heavy_value_makes_fewer_classes_and_none_is_empty() -> None:
    frame = pd.DataFrame({"x": [0] * 80 + list(range(1, 21))})
    made = cpv.prepare(frame, bins={"x": "quantiles:4"}).frame["x"]
    assert made.value_counts().min() > 0
    with pytest.raises(DataError, match="its quantiles all coincide; give edges"):
        cpv.prepare(pd.DataFrame({"x": [1, 1, 1]}), bins={"x": "quantiles:4"})


def test_rare_symbols_leave_none_below_the_least_number() -> None:
    frame = pd.DataFrame({"x": ["a"] * 9 + ["b"] * 6 + ["c"] * 2 + ["d"]})
    counts = cpv.prepare(frame, rare=5).frame["x"].value_counts()
    assert counts.to_dict() == {"a": 9, "other": 9}  # c and d are 3 records, so b joins them
    assert cpv.prepare(frame, rare=2).frame["x"].value_counts().to_dict() == {"a": 9, "b": 6, "other": 3}
    assert cpv.prepare(frame, rare={"x": 1}).recipe.empty


def test_a_frequent_symbol_that_has_to_join_the_rare_ones_is_named() -> None:
    cars = pd.DataFrame({"cylinders": ["4"] * 199 + ["8"] * 103 + ["6"] * 83 + ["3"] * 4 + ["5"] * 3})
    assert "less" not in cpv.prepare(cars, rare=5).recipe.description[0]
    made = cpv.prepare(cars, rare=10)
    assert made.frame["cylinders"].value_counts().to_dict() == {"4": 199, "8": 103, "other": 90}
    assert "(less '6': the rarer ones alone would be fewer)" in made.recipe.description[0]


def test_top_keeps_the_most_frequent_and_later_symbols_become_other() -> None:
    made = cpv.prepare(rows(), top={"job": 2}, columns=["job"])
    assert made.frame["job"].cat.categories.to_list() == ["clerk", "other", "typist"]
    assert made.recipe.apply(pd.DataFrame({"job": ["astronaut", "clerk"]}))["job"].to_list() == ["other", "clerk"]


def test_a_recipe_applied_twice_does_no_more_than_once_and_survives_its_document() -> None:
    merge = {"job": {"office": ["clerk", "typist"]}, "income": {"low": "<20"}}
    made = cpv.prepare(rows(), bins={"age": [30, 60]}, merge=merge, rare={"job": 10, "income": 2})
    pd.testing.assert_frame_equal(made.recipe.apply(made.frame), made.frame)
    again = cpv.Recipe.of(made.recipe.document())
    assert again == made.recipe
    pd.testing.assert_frame_equal(again.apply(rows()), made.frame)


def test_bins_that_are_written_down_twice_are_those_written_once() -> None:
    once, frame = Bins("age", (26, 33, 41)), rows()
    assert cpv.Recipe((once, once)).apply(frame).equals(cpv.Recipe((once,)).apply(frame))


def test_first_and_last_characters_are_dates_and_regions_and_are_public() -> None:
    days, left = ["2024-03-31", "2024-04-01", "2024-03-02"], ["31.03.2023", "1.4.2024", "02.03.2024"]
    frame = pd.DataFrame({"day": days, "zip": ["01230", "01981", "99501"], "left": left})
    made = cpv.prepare(frame, bins={"day": "first:7", "zip": "first:2", "left": "last:4"})
    cells = {"day": ["2024-03", "2024-04", "2024-03"], "zip": ["01", "01", "99"], "left": ["2023", "2024", "2024"]}
    assert made.frame.to_dict("list") == cells
    assert made.recipe.apply(made.frame).equals(made.frame)
    assert cpv.Recipe.of(made.recipe.document()) == made.recipe
    assert not any("private" in line for line in made.recipe.description)
    for text in ("first:x", "last:0"):
        with pytest.raises(DataError, match=f"give {text[:5].rstrip(':')}:"):
            bins_in(f"day={text}")


@pytest.mark.parametrize(
    ("day", "side"), [("2024-%02d-%02d", "first"), ("%02d.%02d.2024", "last"), ("%d/%d/2024", "last")]
)
def test_dates_that_nearly_every_record_has_alone_are_kept_by_year_or_month(day: str, side: str) -> None:
    frame = pd.DataFrame({"day": [day % (i % 12 + 1, i % 28 + 1) for i in range(60)], "ill": ["no", "yes"] * 30})
    with pytest.raises(DataError, match=f"keep the year of dates, --bins 'day={side}:4', or the month, {side}:7"):
        require_repeated(cpv.JointTable.from_frame(frame, private=["ill"], public=["day"]))


def test_classes_stand_in_their_order_whatever_symbols_occur() -> None:
    frame = pd.DataFrame({"sky": ["fog", "rain", "sun"], "warmth": [3.0, -12.5, -7.0]})
    made = cpv.prepare(frame, bins={"warmth": [-10, 0]})
    inputs = cpv.Alphabet.from_frame(made.frame, ["sky", "warmth"])[0]
    assert inputs.symbols[0] == ("fog", "0 and above")
    values = [value for (value,) in statistics_of(inputs, ["warmth"])[0]]
    assert values == ["below -10", "-10 to below 0", "0 and above"] == list(in_order(values))


def test_spellings_of_a_missing_value_and_the_decimal_point_are_part_of_the_recipe() -> None:
    frame = pd.DataFrame({"age": [20, -99, 40, 61], "job": ["clerk", "?", "smith", " ? "]})
    made = cpv.prepare(frame, bins={"age": [30]}, missing="symbol", missing_text=["?", -99])
    assert made.frame["age"].to_list() == ["below 30", "missing", "30 and above", "30 and above"]
    assert made.frame["job"].to_list() == ["clerk", "missing", "smith", "missing"]
    assert made.recipe.apply(frame).equals(made.frame)
    assert made.recipe.apply(made.frame).equals(made.frame)
    kept = replace(made.recipe, decimal=",")
    assert cpv.Recipe.of(kept.document()) == kept
    assert {"missing_text", "decimal"} & set(cpv.Recipe().document()) == set()  # files without them are what they were
    assert not cpv.Recipe(decimal=".").empty
    for wrong in ({"decimal": ";"}, {"missing_text": "?"}):
        with pytest.raises(DataError):
            replace(made.recipe, **wrong)
    with pytest.raises(DataError, match="missing_text is a list of texts"):
        cpv.Recipe.of({**kept.document(), "missing_text": None})


def test_missing_values_are_refused_dropped_or_a_symbol() -> None:
    frame = pd.DataFrame({"x": ["1", None, " ", "30"], "y": ["a", "b", "c", None]})
    with pytest.raises(DataError, match=r"'x' has 2 missing values in 4 rows: .*missing='drop'.*missing='symbol'"):
        cpv.prepare(frame, bins={"x": [18]})
    dropped = cpv.prepare(frame, bins={"x": [18]}, missing="drop")
    assert (dropped.frame["x"].to_list(), dropped.dropped) == (["below 18"], 3)
    kept = cpv.prepare(frame, bins={"x": [18]}, missing="symbol")
    assert kept.frame["x"].to_list() == ["below 18", "missing", "missing", "18 and above"]
    assert kept.frame["y"].to_list() == ["a", "b", "c", "missing"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"bins": {"job": [1]}},
            "bins of 'job': 'typist', .*are no numbers: edges part numbers: take the first or last",
        ),
        ({"bins": {"age": [40, 30]}}, "edges 40, 30: expected finite numbers in rising order"),
        ({"bins": {"age": "quantiles:1"}}, "give edges, or quantiles:5"),
        ({"bins": {"Age": [1]}}, "bins names 'Age', no column of those prepared: did you mean 'age'"),
        ({"merge": {"job": {"office": ["clark"]}}}, "'clark', which does not occur: did you mean 'clerk'"),
        ({"merge": {"age": {"old": ">200"}}}, "takes no value: change the bound"),
        ({"merge": {"age": {"old": "!7"}}}, "is no bound: give a list, or a bound such as '<=8'"),
        ({"rare": 0}, "rare of 'age' is 0: expected a whole number >= 1"),
        ({"missing": "skip"}, "missing='skip': Known: drop, refuse, symbol"),
    ],
)
def test_what_fits_no_column_is_refused_with_its_remedy(options: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        cpv.prepare(rows(), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["age", "=1,2", "age=a,b", "age=quantiles", "age=quantiles:x"])
def test_texts_that_are_no_bins_are_refused(text: str) -> None:
    with pytest.raises(DataError, match="quantiles:5"):
        bins_in(text)


@pytest.mark.parametrize(("read", "text"), [(merge_in, "job=clerk"), (merge_in, "<=8=low"), (size_in, "job=0")])
def test_texts_that_are_no_merge_or_size_are_refused(read: object, text: str) -> None:
    with pytest.raises(DataError, match="give"):
        read(text)  # type: ignore[operator]


def test_the_recipe_goes_with_table_mechanism_and_file(tmp_path: Path) -> None:
    frame = rows().assign(ill=lambda f: (f["age"] > 50).astype(int))
    made = cpv.prepare(frame, bins={"age": [30, 60]}, columns=["age", "ill"])
    table = cpv.JointTable.from_frame(made, private=["ill"], public=["age"])
    assert table.recipe == made.recipe == table_of(table_document(table)).recipe
    assert table.public.labels == ("below 30", "30 to 59", "60 and above")
    told = cpv.Mechanism(np.eye(3), table.public, table.public.labels, recipe=table.recipe)
    told.save(tmp_path / "m.json")
    loaded = cpv.Mechanism.load(tmp_path / "m.json")
    assert loaded.recipe == made.recipe
    released = loaded.release(frame.drop(columns="ill"))["released"]
    assert released.astype(str).to_list() == made.frame["age"].astype(str).to_list()


def test_a_file_without_a_recipe_is_what_it_was_and_a_damaged_recipe_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    cpv.Mechanism(np.eye(2), cpv.Alphabet.numbered("x", 2)).save(path)
    text = path.read_text()
    assert "recipe" not in text
    assert f'"format": "{FORMAT}",\n"version": {VERSION}' in text
    assert cpv.Mechanism.load(path).recipe is None
    for recipe in (
        '{"steps": []}',
        '{"missing": "refuse", "columns": [], "steps": [{"kind": "bins", "column": "x"}]}',
        "1",
    ):
        path.write_text(text.replace('"origin"', f'"recipe": {recipe},\n"origin"'))
        with pytest.raises(DataError, match="recipe"):
            cpv.Mechanism.load(path)
