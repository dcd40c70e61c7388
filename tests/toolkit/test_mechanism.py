"""A mechanism is kept to the last digit, read strictly, and released with secure noise and nothing beside it."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from cvxpriv.errors import DataError, ModelError, PrivacyError
from cvxpriv.mechanisms.mechanism import Mechanism
from cvxpriv.mechanisms.release import SeededNoiseWarning, draw
from cvxpriv.numerics.packages import versions
from cvxpriv.tables.alphabets import Alphabet
from cvxpriv.tables.arrays import stochastic_matrix
from cvxpriv.tables.joint import JointTable

MATRIX = [[0.5, 0.5, 0.0], [0.1, 0.2, 0.7], [1 / 3, 1 / 3, 1 / 3], [0.0, 0.0, 1.0]]
INPUTS = Alphabet(("age", "sex"), (("30", "F"), ("30", "M"), ("40.5", "F"), ("40.5", "M")))


@pytest.fixture
def mechanism() -> Mechanism:
    return Mechanism(
        MATRIX,
        INPUTS,
        model="test",
        figures={"leakage": 0.1 + 0.2, "kkt": 1e-9},
        private_columns=["income"],
        origin={**versions(["numpy", "cvxpy"]), "engine": "closed_form", "seed": 0, "starts": 30, "solver": None},
    )


@pytest.fixture
def people() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "name": ["a", "b", "c", "d"],
            "age": [30, 30.0, 40.5, 40.5],
            "sex": ["F", " M", "F", "M"],
            "income": ["low", "high", "low", "high"],
        },
        index=[11, 12, 13, 14],
    )


# -- the file


def test_a_saved_mechanism_comes_back_to_the_last_digit(tmp_path: Path, mechanism: Mechanism) -> None:
    back = Mechanism.load(mechanism.save(tmp_path / "m.json"))
    assert np.array_equal(back.array, mechanism.array)
    for name in ("inputs", "outputs", "model", "private_columns", "figures", "origin"):
        assert getattr(back, name) == getattr(mechanism, name)


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(1, 6))
def test_any_random_matrix_survives_the_text_exactly(seed: int, rows: int, columns: int) -> None:
    from cvxpriv.mechanisms.file import dump, parse

    matrix = np.random.default_rng(seed).dirichlet(np.full(columns, 0.1), size=rows)
    content = {
        "model": "m",
        "columns": ["X"],
        "symbols": [[str(i)] for i in range(rows)],
        "outputs": ["y"] * columns,
        "private_columns": [],
        "matrix": matrix.tolist(),
        "figures": {},
        "origin": {},
        "constraints": [],
        "recipe": None,
        "noisy": None,
    }
    assert np.array_equal(np.array(parse(dump(content))["matrix"]), matrix)


def test_the_same_mechanism_gives_the_same_file(tmp_path: Path, mechanism: Mechanism) -> None:
    first, second = mechanism.save(tmp_path / "1.json"), mechanism.save(tmp_path / "2.json")
    assert first.read_bytes() == second.read_bytes()


def test_the_file_holds_names_of_private_columns_but_no_symbol_or_number_of_the_private_table(tmp_path: Path) -> None:
    counts = [[3, 7], [19, 2]]
    table = JointTable.from_counts(counts, ["secretlow", "secrethigh"], ["young", "old"])
    made = Mechanism([[0.5, 0.5], [0.25, 0.75]], table.public, private_columns=table.private.columns)
    document = json.loads(made.save(tmp_path / "m.json").read_text())
    assert set(document) == {
        "format", "version", "model", "columns", "symbols", "outputs", "private_columns", "matrix", "figures", "origin",
        "constraints",
    }  # fmt: skip
    text = json.dumps(document)
    assert "secret" not in text
    assert document["private_columns"] == ["S"]
    assert not any(repr(float(p)) in text for p in (*table.p_s, *table.p_x, *table.probabilities.ravel()))


def test_provenance_names_versions_and_no_place(mechanism: Mechanism) -> None:
    assert {"cvxpriv", "python", "numpy", "cvxpy", "engine", "seed", "starts"} <= set(mechanism.origin)
    assert not any("/" in str(value) for value in mechanism.origin.values())


def broken(change: Callable[[dict[str, Any]], object]) -> Callable[[dict[str, Any]], str]:
    def text(document: dict[str, Any]) -> str:
        change(document)
        return json.dumps(document)

    return text


BAD = {
    "another format": (broken(lambda d: d.update(format="recipe")), "format='recipe', expected 'cvxpriv-mechanism'"),
    "no format": (broken(lambda d: d.pop("format")), "format=None"),
    "a later version": (broken(lambda d: d.update(version=3)), "version=3 of the format, this cvxpriv reads 2"),
    "a truth value for a version": (broken(lambda d: d.update(version=True)), "version=True"),
    "not JSON": (lambda d: "{", "not JSON"),
    "too deep": (lambda d: "[" * 100_000, "not JSON"),
    "a list": (lambda d: "[]", "holds a list"),
    "a missing key": (broken(lambda d: d.pop("matrix")), "keys matrix are missing"),
    "an unknown key": (broken(lambda d: d.update(figuers={})), "'figuers' is unknown: did you mean 'figures'"),
    "a doubled key": (lambda d: json.dumps(d)[:-1] + ', "model": "x"}', "'model' stands twice"),
    "NaN": (broken(lambda d: d["matrix"][0].__setitem__(0, float("nan"))), "holds NaN"),
    "infinity": (lambda d: json.dumps(d).replace("0.7", "1e999"), "expected finite numbers"),
    "a huge whole number": (broken(lambda d: d["matrix"][0].__setitem__(0, 10**400)), "a double can hold"),
    "a negative entry": (broken(lambda d: d["matrix"].__setitem__(0, [-0.5, 1.5, 0])), r"\[0, 0\]=-0.5.*numbers >= 0"),
    "a row above 1": (broken(lambda d: d["matrix"][0].__setitem__(0, 0.5 + 2e-9)), "row 0 sums to 1.000000002"),
    "a text for a number": (broken(lambda d: d["matrix"][0].__setitem__(0, "0.5")), r"matrix\[0, 0\]='0.5'"),
    "true for a number": (broken(lambda d: d["matrix"][3].__setitem__(2, True)), r"matrix\[3, 2\]=True"),
    "ragged rows": (broken(lambda d: d["matrix"][1].pop()), "row 1 has 2 numbers, row 0 has 3"),
    "a row too few": (broken(lambda d: d["matrix"].pop()), r"shape \(3, 3\), expected \(4, 3\)"),
    "no rows": (broken(lambda d: d.update(matrix=[])), "has shape"),
    "a label too few": (broken(lambda d: d["outputs"].pop()), r"shape \(4, 3\), expected \(4, 2\)"),
    "a label twice": (broken(lambda d: d["outputs"].__setitem__(1, "y0")), "outputs holds 'y0' 2 times"),
    "a symbol twice": (broken(lambda d: d["symbols"].__setitem__(1, ["30.0", "F"])), "'30, F' twice"),
    "a symbol too short": (broken(lambda d: d["symbols"].__setitem__(1, ["30"])), "has 1 values, expected 2"),
    "a number as symbol": (
        broken(lambda d: d["symbols"].__setitem__(1, [30, "F"])),
        r"symbols\[1, 0\]=30: expected",
    ),
    "one text for columns": (broken(lambda d: d.update(columns="age")), "columns='age': expected a list of texts"),
    "a list of figures": (broken(lambda d: d.update(figures=[])), r"figures=\[\]: expected an object"),
    "a list in the origin": (broken(lambda d: d["origin"].update(seed=[1])), r"origin\['seed'\]=\[1\]"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_file_that_is_not_right_is_refused_with_its_name_and_what_is_wrong(
    tmp_path: Path, mechanism: Mechanism, case: str
) -> None:
    text, message = BAD[case]
    path = mechanism.save(tmp_path / "m.json")
    path.write_text(text(json.loads(path.read_text())))
    with pytest.raises(DataError, match=rf"(?s)m\.json' holds no usable mechanism: .*{message}"):
        Mechanism.load(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        Mechanism.load(tmp_path / "none.json")


def test_a_row_may_miss_1_by_rounding_and_is_kept_as_it_is() -> None:
    row = [0.1] * 10
    assert np.cumsum(row)[-1] != 1.0
    assert stochastic_matrix([row], "matrix").tolist() == [row]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"matrix": [[0.5, 0.5]]}, "one row per symbol of age, sex"),
        ({"matrix": [0.5, 0.5]}, "no mechanism P"),
        ({"outputs": ("a", "b", "")}, "holds '' 1 times"),
        ({"outputs": "abc"}, "is one text"),
        ({"figures": {"leakage": float("inf")}}, r"figures\['leakage'\]=inf: expected a finite number"),
    ],
)
def test_a_mechanism_that_does_not_fit_together_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Mechanism(**({"matrix": MATRIX, "inputs": INPUTS} | change))


def test_what_json_cannot_hold_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    made = Mechanism(MATRIX, INPUTS, origin={"table": object()})  # type: ignore[dict-item]
    with pytest.raises(DataError, match="cannot be written as JSON"):
        made.save(tmp_path / "m.json")
    assert not list(tmp_path.iterdir())


def test_a_mechanism_cannot_be_changed(mechanism: Mechanism) -> None:
    with pytest.raises(ValueError, match="read-only"):
        mechanism.array[0, 0] = 1.0
    with pytest.raises(TypeError):
        mechanism.figures["leakage"] = 0.0  # type: ignore[index]


# -- the release


def test_only_the_new_column_comes_out_with_a_fresh_index(mechanism: Mechanism, people: pd.DataFrame) -> None:
    released = mechanism.release(people)
    assert list(released.columns) == ["released"]
    assert list(released.index) == [0, 1, 2, 3]
    assert list(released["released"].cat.categories) == ["y0", "y1", "y2"]
    assert released["released"].iloc[3] == "y2"  # the row of 40.5, M gives y2 for certain


def test_named_columns_are_kept_and_the_new_one_can_be_renamed(mechanism: Mechanism, people: pd.DataFrame) -> None:
    released = mechanism.release(people, keep=["name"], name="group")
    assert list(released.columns) == ["name", "group"]
    assert list(released["name"]) == ["a", "b", "c", "d"]


def test_the_private_column_need_not_be_there(mechanism: Mechanism, people: pd.DataFrame) -> None:
    assert len(mechanism.release(people.drop(columns="income"))) == 4


@pytest.mark.parametrize(("column", "role"), [("age", "public"), ("income", "private")])
def test_keeping_a_private_or_public_column_is_a_privacy_error(
    mechanism: Mechanism, people: pd.DataFrame, column: str, role: str
) -> None:
    with pytest.raises(PrivacyError, match=f"keep='{column}' is a {role} column"):
        mechanism.release(people, keep=["name", column])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"keep": ["nmae"]}, "keep='nmae' is no column of the table: did you mean 'name'"),
        ({"keep": ["name"], "name": "name"}, "is also a kept column"),
        ({"name": "age"}, "name='age' is a public column"),
        ({"name": "income"}, "name='income' is a private column"),
        ({"seed": -1}, "seed=-1: expected a whole number"),
        ({"seed": 0.5}, "seed=0.5"),
        ({"seed": True}, "seed=True"),
    ],
)
def test_wrong_options_of_a_release_are_refused(
    mechanism: Mechanism, people: pd.DataFrame, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        mechanism.release(people, **change)


def test_a_missing_public_column_is_named_with_its_nearest(mechanism: Mechanism, people: pd.DataFrame) -> None:
    with pytest.raises(DataError, match="'sex' is no column of the table: did you mean 'sexx'"):
        mechanism.release(people.rename(columns={"sex": "sexx"}))


def test_missing_values_are_refused(mechanism: Mechanism, people: pd.DataFrame) -> None:
    people.loc[12, "age"] = np.nan
    with pytest.raises(DataError, match="'age' has 1 missing value in 4 rows"):
        mechanism.release(people)


def test_unseen_cells_are_counted_shown_and_refused(mechanism: Mechanism, people: pd.DataFrame) -> None:
    strange = pd.concat([people, people.assign(age=[50, 50, 60, 70]), people.assign(age=80)])
    with pytest.raises(DataError) as caught:
        mechanism.release(strange)
    message = str(caught.value)
    assert "8 of 12 rows have one of 6 cells of age, sex" in message
    assert "(50, F; 50, M; 60, F; ...)" in message
    assert "unseen='drop'" in message


def test_unseen_cells_can_be_dropped(mechanism: Mechanism, people: pd.DataFrame) -> None:
    people.loc[12, "age"] = 31
    released = mechanism.release(people, unseen="drop", keep=["name"])
    assert list(released["name"]) == ["a", "c", "d"]
    assert released["released"].notna().all()


def test_an_unknown_way_to_treat_unseen_cells_is_a_model_error(mechanism: Mechanism, people: pd.DataFrame) -> None:
    with pytest.raises(ModelError, match="unseen='dorp': did you mean 'drop'"):
        mechanism.release(people, unseen="dorp")  # type: ignore[arg-type]


def test_no_rows_release_no_rows(mechanism: Mechanism, people: pd.DataFrame) -> None:
    assert mechanism.release(people.iloc[:0], keep=["name"]).shape == (0, 2)


def test_the_same_seed_gives_the_same_release_and_warns(mechanism: Mechanism, people: pd.DataFrame) -> None:
    many = pd.concat([people] * 50)
    with pytest.warns(SeededNoiseWarning, match="from a seed.*secret") as caught:
        first = mechanism.release(many, seed=7)
    assert caught[0].filename == __file__  # the warning points at the caller
    with pytest.warns(SeededNoiseWarning):
        again, other = mechanism.release(many, seed=7), mechanism.release(many, seed=8)
    assert first.equals(again)
    assert not first.equals(other)


def test_without_a_seed_the_noise_is_the_systems_and_nothing_warns(
    mechanism: Mechanism, people: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def zeros(size: int) -> bytes:
        asked.append(size)
        return bytes(size)

    monkeypatch.setattr(os, "urandom", zeros)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        released = mechanism.release(people)
    assert asked == [8 * len(people)]
    # A uniform number of exactly 0 picks the first output of positive probability, never one of probability 0.
    assert list(released["released"]) == ["y0", "y0", "y0", "y2"]


class Told:
    """Words that are told, and zeros after them."""

    def __init__(self, *told: int) -> None:
        self.left = list(told)

    def words(self, count: int) -> np.ndarray:
        found, self.left = self.left[:count], self.left[count:]
        return np.array(found + [0] * (count - len(found)), dtype=np.uint64)


CODES = np.zeros(1, dtype=np.int64)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8).filter(any), st.lists(st.integers(0, 2**64 - 1), min_size=3))
def test_draw_inverts_the_exact_distribution_function_and_never_gives_an_impossible_output(
    weights: list[float], words: list[int]
) -> None:
    j = int(draw(np.array([weights]), CODES, Told(*words))[0])  # type: ignore[arg-type]
    exact, uniform = (
        [Fraction(one) for one in weights],
        sum(Fraction(w, 2 ** (64 * k + 64)) for k, w in enumerate(words)),
    )
    assert weights[j] > 0
    assert sum(exact[:j]) <= uniform * sum(exact) < sum(exact[: j + 1])


def test_a_word_at_an_end_and_one_beside_it_are_decided_by_what_follows() -> None:
    row = np.array([[1e-20, 0.5, 0.0, 2.0**-60, 0.5]])
    ends = np.cumsum([Fraction(one) for one in row[0].tolist()])
    for place in (0, 1, 3):
        word, rest = divmod(ends[place] / ends[-1] * 2**128, 2**64)
        above = int(word), min(int(rest) + 1, 2**64 - 1)
        assert draw(row, CODES, Told(int(word), int(rest) - 1)).tolist() == [place]  # type: ignore[arg-type]
        assert draw(row, CODES, Told(*above)).tolist() == [{0: 1, 1: 3, 3: 4}[place]]  # type: ignore[arg-type]
    assert draw(row, CODES, Told(*[2**64 - 1] * 9)).tolist() == [4]  # type: ignore[arg-type]


def test_a_row_that_sums_to_a_little_less_than_1_still_gives_an_output() -> None:
    row = np.array([[0.5, 0.5 - 9e-10, 0.0]])
    assert draw(row, CODES, Told(*[2**64 - 1] * 9)).tolist() == [1]  # type: ignore[arg-type]


def test_frequencies_of_a_release_follow_the_matrix() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, size=200_000)
    frame = pd.DataFrame([INPUTS.symbols[i] for i in codes], columns=INPUTS.columns)
    with pytest.warns(SeededNoiseWarning):
        drawn = Mechanism(MATRIX, INPUTS).release(frame, seed=1)["released"].cat.codes.to_numpy()
    for x, row in enumerate(MATRIX):
        counts = np.bincount(drawn[codes == x], minlength=3)
        possible = np.array(row) > 0
        assert counts[~possible].sum() == 0
        expected = np.array(row)[possible] * counts.sum()
        # The seed is fixed, so this does not vary; a wrong row is off by thousands.
        assert ((counts[possible] - expected) ** 2 / expected).sum() < 20
