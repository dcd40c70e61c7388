"""Joint tables: what they hold, how they are made, and what they refuse."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import cvxpriv.tables.alphabets
import cvxpriv.tables.joint
from cvxpriv.errors import DataError
from cvxpriv.tables.frames import in_order, read_table, symbol
from cvxpriv.tables.joint import Alphabet, JointTable

ROUNDING = 1e-12  # sums of at most 36 terms below 1

PEOPLE = pd.DataFrame(
    {
        "income": ["low", "low", "high", "low", "high"],
        "age": [30, 9, 40, 30, 40],
        "sex": ["F", "M", "M", "F", "F"],
    }
)
CELLS = pd.DataFrame({"income": ["low", "high", "low"], "age": [1, 2, 3], "n": [2, 1, 0]})

count_tables = arrays(np.int64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.integers(0, 20))


# --- properties ------------------------------------------------------------------------------------------------------


@given(count_tables, st.floats(1e-6, 10), st.sampled_from(["counts", "probabilities"]))
def test_smoothed_tables_are_positive_distributions(counts, smoothing, smoothing_on):
    counts[0, 0] += 1
    table = JointTable.from_counts(counts, smoothing=smoothing, smoothing_on=smoothing_on)
    assert table.probabilities.min() > 0
    assert table.probabilities.sum() == pytest.approx(1, abs=ROUNDING)
    np.testing.assert_allclose(table.p_s_given_x.sum(axis=0), 1, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(table.p_s_given_x * table.p_x, table.probabilities, rtol=0, atol=ROUNDING)
    assert 0 <= table.information <= min(table.entropy_s, table.entropy_x) + ROUNDING


@given(count_tables)
def test_rows_cells_and_arrays_make_the_same_table(counts):
    counts[0, 0] += 1
    s, x = np.indices(counts.shape).reshape(2, -1)
    cells = pd.DataFrame({"s": s, "x": x, "n": counts.reshape(-1)})
    rows = cells.loc[cells.index.repeat(cells["n"]), ["s", "x"]]
    from_cells = JointTable.from_frame(cells, ["s"], ["x"], count="n")
    from_rows = JointTable.from_frame(rows.sample(frac=1, random_state=0), ["s"], ["x"])
    from_array = JointTable.from_counts(counts, drop_empty=True)
    for table in (from_cells, from_rows):
        np.testing.assert_array_equal(table.counts, from_array.counts)
        assert table.private.labels == from_array.private.labels
        assert table.public.labels == from_array.public.labels


@given(st.one_of(st.text(max_size=12), st.integers(), st.floats(), st.booleans()))
def test_the_symbol_rule_is_idempotent(value):
    assert symbol(symbol(value)) == symbol(value)


@given(st.integers(-(10**6), 10**6), st.integers(0, 3))
def test_a_whole_number_is_one_symbol_however_it_is_written(value, zeros):
    spellings = [value, float(value), np.int64(value), f" {value} ", f"{value}." + "0" * (zeros + 1)]
    assert {symbol(spelling) for spelling in spellings} == {str(value)}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_the_symbol_of_its_own_text(value):
    assert symbol(value) == symbol(repr(value)) or "e" in repr(value)  # text with an exponent stays: a code


@given(st.lists(st.text(max_size=6) | st.integers().map(str), min_size=1, max_size=6))
def test_the_order_of_symbols_does_not_depend_on_the_order_of_rows(texts):
    assert in_order(texts) == in_order(reversed(texts))
    assert set(in_order(texts)) == set(texts)


# --- symbols and alphabets -------------------------------------------------------------------------------------------


def test_codes_that_only_look_like_numbers_stay_as_they_are():
    codes = ["01234", "1E3", "17-25", "007", "1.", "--1"]
    assert [symbol(code) for code in codes] == codes


def test_long_identifiers_keep_all_their_digits():
    assert symbol("12345678901234567891.0") == "12345678901234567891"


def test_truth_values_are_not_numbers():
    assert (symbol(True), symbol(np.bool_(False)), symbol(1)) == ("True", "False", "1")


def test_symbols_sort_as_a_reader_would():
    assert in_order(["10", "9", "0.5", "-1"]) == ("-1", "0.5", "9", "10")
    assert in_order(["50+", "17-25", "9-16"]) == ("9-16", "17-25", "50+")
    assert in_order(["b", "10", "a", "9"]) == ("9", "10", "a", "b")
    assert in_order(["a10", "a2", "a02", "²"]) == ("a02", "a2", "a10", "²")


def test_an_alphabet_finds_its_rows_by_value():
    alphabet = Alphabet(("age", "sex"), (("17-25", "Female"), ("9", "Male")))
    assert alphabet.label(0) == "17-25, Female"
    assert alphabet.index((9.0, "Male")) == 1
    with pytest.raises(DataError, match="'9, Female' is no symbol over age, sex"):
        alphabet.index((9, "Female"))


def test_an_alphabet_codes_raw_rows_and_marks_unseen_ones():
    table = JointTable.from_frame(PEOPLE, private=["income"], public=["age", "sex"])
    raw = pd.DataFrame({"sex": ["F", "M", "F"], "age": ["30.0", "9", "77"], "other": [1, 2, 3]})
    assert table.public.codes(raw).tolist() == [table.public.index((30, "F")), table.public.index((9, "M")), -1]
    with pytest.raises(DataError, match="column='age' is no column of the table"):
        table.public.codes(raw[["sex"]])


def test_an_alphabet_codes_no_rows_as_no_codes():
    assert Alphabet.numbered("x", 2).codes(pd.DataFrame({"x": []})).shape == (0,)


@pytest.mark.parametrize(
    ("columns", "symbols", "message"),
    [
        (("a",), (), "at least one symbol"),
        ((), (), "one or more names"),
        (("a", "a"), (("1", "2"),), "each once"),
        (("a", "b"), (("1",),), "has 1 values, expected 2"),
        (("a",), (("1",), (1.0,)), "'1' twice"),
        ("age", (("1", "2", "3"),), "is one text"),
    ],
)
def test_a_malformed_alphabet_is_refused(columns, symbols, message):
    with pytest.raises(DataError, match=message):
        Alphabet(columns, symbols)


# --- frames ----------------------------------------------------------------------------------------------------------


def test_only_cells_that_occur_are_kept():
    table = JointTable.from_frame(PEOPLE, private=["income"], public=["age", "sex"])
    assert table.public.labels == ("9, M", "30, F", "40, F", "40, M")
    assert table.shape == (2, 4)
    assert table.records == 5


def test_cells_of_count_zero_do_not_occur():
    assert JointTable.from_frame(CELLS, ["income"], ["age"], count="n").public.labels == ("1", "2")


def test_keep_unseen_with_smoothing_keeps_the_full_product():
    table = JointTable.from_frame(PEOPLE, ["income"], ["age", "sex"], smoothing=1.0, keep_unseen=True)
    assert table.public.labels == ("9, F", "9, M", "30, F", "30, M", "40, F", "40, M")
    np.testing.assert_allclose(table.probabilities, (table.counts + 1) / (5 + 12), rtol=0, atol=ROUNDING)


def test_keep_unseen_without_smoothing_names_the_empty_cells():
    with pytest.raises(DataError, match=r"2 of 6 public symbols have probability 0 \(9, F; 30, M\).*smoothing > 0"):
        JointTable.from_frame(PEOPLE, ["income"], ["age", "sex"], keep_unseen=True)


def test_a_categorical_column_keeps_its_order_and_its_unused_categories_when_asked():
    sizes = pd.Categorical(["big", "small"], categories=["small", "middle", "big"], ordered=True)
    frame = pd.DataFrame({"s": [0, 1], "size": sizes})
    assert JointTable.from_frame(frame, ["s"], ["size"]).public.labels == ("small", "big")
    full = JointTable.from_frame(frame, ["s"], ["size"], smoothing=1, keep_unseen=True)
    assert full.public.labels == ("small", "middle", "big")


def test_both_readings_of_smoothing_do_what_they_say():
    counts = np.array([[3, 1], [0, 4]])
    on_counts = JointTable.from_counts(counts, smoothing=0.5)
    np.testing.assert_allclose(on_counts.probabilities, [[0.35, 0.15], [0.05, 0.45]], rtol=0, atol=ROUNDING)
    on_probabilities = JointTable.from_counts(counts, smoothing=0.25, smoothing_on="probabilities")
    np.testing.assert_allclose(
        on_probabilities.probabilities, np.array([[5, 3], [2, 6]]) / 16, rtol=0, atol=ROUNDING
    )  # (3/8 + 1/4) / 2 and so on
    assert "0.5 added to each count" in on_counts.description
    assert "0.25 added to each empirical probability" in on_probabilities.description


def test_a_column_on_both_sides_is_refused_unless_allowed():
    with pytest.raises(DataError, match=r"'age' is private and public.*allow_overlap=True"):
        JointTable.from_frame(PEOPLE, ["income", "age"], ["age", "sex"])
    table = JointTable.from_frame(PEOPLE, ["income", "age"], ["age", "sex"], allow_overlap=True)
    assert table.information > 0
    assert table.to_frame().loc[("low", "30"), ("30", "F")] == pytest.approx(0.4, abs=ROUNDING)


@pytest.mark.parametrize(
    ("frame", "arguments", "message"),
    [
        (PEOPLE, {"private": ["incme"], "public": ["age"]}, "private='incme'.*did you mean 'income'"),
        (PEOPLE, {"private": ["income"], "public": ["agee"]}, "public='agee'.*did you mean 'age'"),
        (PEOPLE, {"private": [], "public": ["age"]}, r"private=\[\] names no column"),
        (PEOPLE, {"private": ["income"], "public": ["age", "age"]}, "public names column 'age' 2 times"),
        (PEOPLE, {"private": ["income"], "public": ["age"], "count": "m"}, "count='m' is no column"),
        (PEOPLE, {"private": ["income"], "public": ["age"], "count": "age"}, "count='age' is also"),
        (PEOPLE, {"private": ["income"], "public": ["age"], "count": "sex"}, "row 0 .*holds 'F'.*whole number"),
        (PEOPLE.iloc[:0], {"private": ["income"], "public": ["age"]}, "no records"),
        (PEOPLE.assign(sex=[None, "M", np.nan, "F", " "]), {"private": ["income"], "public": ["sex"]}, "'sex' has 3"),
        (CELLS.assign(n=[1, -1, 0]), {"private": ["income"], "public": ["age"], "count": "n"}, "row 1 .*'-1'"),
        (CELLS.assign(n=[1, 0.5, 0]), {"private": ["income"], "public": ["age"], "count": "n"}, "row 1 .*'0.5'"),
        (CELLS.assign(n=[1, None, 0]), {"private": ["income"], "public": ["age"], "count": "n"}, "row 1 .*'nan'"),
        (CELLS.assign(n=0), {"private": ["income"], "public": ["age"], "count": "n"}, "no records"),
    ],
)
def test_a_bad_frame_is_refused(frame, arguments, message):
    with pytest.raises(DataError, match=message):
        JointTable.from_frame(frame, **arguments)


def test_a_doubled_column_in_the_frame_is_refused():
    doubled = pd.concat([PEOPLE, PEOPLE["age"]], axis=1)
    with pytest.raises(DataError, match="2 columns of that name"):
        JointTable.from_frame(doubled, ["income"], ["age"])


def test_missing_values_in_unused_columns_do_no_harm():
    assert JointTable.from_frame(PEOPLE.assign(sex=None), ["income"], ["age"]).records == 5


def test_an_alphabet_too_large_to_hold_is_refused(monkeypatch):
    monkeypatch.setattr(cvxpriv.tables.joint, "MAX_CELLS", 5)
    with pytest.raises(DataError, match="2 x 3 cells"):
        JointTable.from_frame(PEOPLE, ["income"], ["age"])
    monkeypatch.setattr(cvxpriv.tables.alphabets, "MAX_SYMBOLS", 5)
    with pytest.raises(DataError, match="keep_unseen=True makes 6 symbols of age, sex"):
        JointTable.from_frame(PEOPLE, ["income"], ["age", "sex"], keep_unseen=True)


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "separator"), [("p.csv", ","), ("p.TSV", "\t"), ("p.csv.gz", ",")])
def test_a_file_and_its_frame_make_the_same_table(tmp_path, name, separator):
    PEOPLE.to_csv(tmp_path / name, sep=separator, index=False)
    from_file = JointTable.from_csv(tmp_path / name, ["income"], ["age", "sex"])
    from_frame = JointTable.from_frame(PEOPLE, ["income"], ["age", "sex"])
    assert from_file.public == from_frame.public
    assert from_file.private == from_frame.private
    np.testing.assert_array_equal(from_file.counts, from_frame.counts)


def test_whole_numbers_that_a_missing_neighbour_turned_into_floats_still_match(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("s,x,other\n0,1,5\n1,2,\n")
    inferred = pd.read_csv(path)
    assert inferred["other"].dtype == np.float64  # 5 became 5.0
    assert Alphabet.numbered("other", 6).codes(inferred.iloc[:1]).tolist() == [5]
    assert Alphabet.numbered("other", 6).codes(read_table(path).iloc[:1]).tolist() == [5]


def test_counts_are_read_from_a_file(tmp_path):
    CELLS.to_csv(tmp_path / "c.csv", index=False)
    assert JointTable.from_csv(tmp_path / "c.csv", ["income"], ["age"], count="n").records == 3


def test_the_spellings_of_missing_values_can_be_chosen(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("s,x\n0,None\n1,?\n")
    with pytest.raises(DataError, match="'x' has 1 missing value in 2 rows"):
        JointTable.from_csv(path, ["s"], ["x"])
    assert JointTable.from_csv(path, ["s"], ["x"], missing=[""]).public.labels == ("?", "None")
    with pytest.raises(DataError, match="'x' has 1 missing value"):
        JointTable.from_csv(path, ["s"], ["x"], missing=["?"])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.csv", b"", "is no table"),
        ("p.csv", b"s,x\n0,1\n0,1,2\n", "is no table"),
        ("p.csv", b"s,x\n0\n", "'x' has 1 missing value"),
        ("p.csv", b"s,x\n\xff\x81,1\n", "neither UTF-8 nor cp1252"),
        ("p.csv", b"s,x,x\n0,1,2\n", "2 columns of that name"),
        ("p.csv", b"s,x\n", "no records"),
        ("p.csv.gz", b"s,x\n0,1\n", "is damaged"),
        ("p.ods", b"s,x\n0,1\n", "ends in neither of .csv, .tsv, .tab"),
    ],
)
def test_a_bad_file_is_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        JointTable.from_csv(tmp_path / name, ["s"], ["x"])


def test_a_file_that_is_not_there_is_refused_by_name(tmp_path):
    with pytest.raises(DataError, match=r"nowhere\.csv.*No such file"):
        JointTable.from_csv(tmp_path / "nowhere.csv", ["s"], ["x"])


# --- arrays ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("array", "message"),
    [
        ([[0.5, np.nan], [0.25, 0.25]], r"p_sx\[0, 1\]=nan: expected finite"),
        ([[0.5, np.inf], [0.25, 0.25]], r"p_sx\[0, 1\]=inf: expected finite"),
        ([[0.75, -0.25], [0.25, 0.25]], r"p_sx\[0, 1\]=-0.25: expected numbers >= 0"),
        ([[0.5, 0.5], [0.25, 0.25]], "sums to 1.5.*from_counts"),
        ([[1e308, 1e308], [1e308, 1e308]], "sums to inf"),
        ([[0.0, 0.0], [0.0, 0.0]], "all zero"),
        ([[0.5, 0.0], [0.5, 0.0]], r"1 of 2 public symbols have probability 0 \(1\).*drop_empty=True"),
        ([0.5, 0.5], r"shape \(2,\)"),
        (np.empty((0, 3)), r"shape \(0, 3\)"),
        (np.empty((3, 0)), r"shape \(3, 0\)"),
        ([["a", "b"]], "does not hold numbers"),
        ([[0.5], [0.25, 0.25]], "does not hold numbers"),
    ],
)
def test_a_bad_table_is_refused(array, message):
    with pytest.raises(DataError, match=message):
        JointTable.from_array(array)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([[1, -1]], r"counts\[0, 1\]=-1"),
        ([[1, 0.5]], r"counts\[0, 1\]=0.5: expected whole numbers"),
        ([[1, 1e300]], r"counts\[0, 1\]=1e\+300: expected whole numbers up to"),
        ([[0, 0]], "counts is all zero"),
    ],
)
def test_bad_counts_are_refused(counts, message):
    with pytest.raises(DataError, match=message):
        JointTable.from_counts(counts)


@pytest.mark.parametrize("smoothing", [-1e-3, np.nan, np.inf])
def test_a_smoothing_that_is_no_amount_is_refused(smoothing):
    with pytest.raises(DataError, match="smoothing="):
        JointTable.from_counts([[1, 2]], smoothing=smoothing)


def test_an_unknown_reading_of_smoothing_is_refused_with_the_nearest():
    with pytest.raises(DataError, match="did you mean 'counts'"):
        JointTable.from_counts([[1, 2]], smoothing=1, smoothing_on="count")


def test_labels_must_fit_the_table():
    with pytest.raises(DataError, match=r"shape \(1, 2\), its alphabets have sizes \(2, 2\)"):
        JointTable.from_array([[0.5, 0.5]], private_labels=["a", "b"])
    with pytest.raises(DataError, match="counts have shape"):
        JointTable(
            np.full((1, 2), 0.5), Alphabet.numbered("S", 1), Alphabet.numbered("X", 2), counts=np.ones((2, 1), int)
        )


def test_the_sum_may_be_off_by_rounding_only_and_is_then_made_exact():
    assert JointTable.from_array([[0.5, 0.5 + 0.9e-9]]).probabilities.sum() == pytest.approx(1, abs=1e-15)
    with pytest.raises(DataError, match=r"sums to 1\.0000000011"):
        JointTable.from_array([[0.5, 0.5 + 1.1e-9]])


def test_drop_empty_leaves_out_rows_and_columns_without_mass():
    table = JointTable.from_array([[0.5, 0, 0.5], [0, 0, 0]], ["a", "b"], ["u", "v", "w"], drop_empty=True)
    assert table.private.labels == ("a",)
    assert table.public.labels == ("u", "w")


def test_a_private_symbol_without_mass_is_harmless():
    with_row = JointTable.from_array([[0.4, 0.1], [0.1, 0.4], [0, 0]])
    without = JointTable.from_array([[0.4, 0.1], [0.1, 0.4]])
    assert with_row.information == without.information
    assert with_row.p_s_given_x[2].tolist() == [0, 0]


def test_a_table_cannot_be_changed_from_outside():
    source = np.full((2, 2), 0.25)
    table = JointTable.from_array(source)
    source[0, 0] = 9
    assert table.probabilities[0, 0] == 0.25
    for array in (table.probabilities, table.p_x, table.p_s, table.p_s_given_x):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 9


def test_a_table_describes_itself_and_shows_as_a_frame():
    table = JointTable.from_array([[0.5, 0.25], [0.0, 0.25]], ["no", "yes"], ["a", "b"])
    assert repr(table) == (
        "<JointTable: S = S (2 symbols), X = X (2 symbols), given as probabilities, smoothing: none>"
    )
    assert table.records is None
    assert table.to_frame().loc["no", "b"] == 0.25


def test_many_wide_columns_are_told_apart_although_their_product_overflows() -> None:
    # Twelve columns of 100 values span 1e24 symbols: more than a 64-bit number can count.
    values = np.random.default_rng(0).integers(0, 100, size=(500, 12))
    frame = pd.DataFrame(values, columns=[f"c{j}" for j in range(12)])
    alphabet, codes = Alphabet.from_frame(frame, list(frame.columns))
    assert len(alphabet) == len(np.unique(values, axis=0))
    assert [alphabet.symbols[code] for code in codes] == [tuple(map(str, row)) for row in values]
    assert alphabet.codes(frame).tolist() == codes.tolist()
