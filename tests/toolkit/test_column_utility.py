"""What a recipient learns of each column, held against enumeration and against the spread of estimates."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cvxpriv.mechanisms.frequencies import column_utility, estimates, private_columns, worth
from cvxpriv.mechanisms.mechanism import Mechanism
from cvxpriv.models import PrivacyFunnel
from cvxpriv.tables.alphabets import Alphabet
from cvxpriv.tables.joint import JointTable

INPUTS = Alphabet(("age", "sex"), (("young", "f"), ("young", "m"), ("old", "f"), ("old", "m")))
PRIOR = np.array([0.4, 0.1, 0.2, 0.3])
MATRIX = np.array([[0.8, 0.1, 0.1], [0.6, 0.3, 0.1], [0.1, 0.2, 0.7], [0.1, 0.8, 0.1]])


def test_a_guess_is_the_best_of_all_guessing_rules() -> None:
    found = column_utility(MATRIX, INPUTS, PRIOR).set_index("column")
    for place, column in enumerate(INPUTS.columns):
        values = sorted({symbol[place] for symbol in INPUTS.symbols})
        best = max(
            sum(
                PRIOR[x] * MATRIX[x, y] * (symbol[place] == rule[y])
                for x, symbol in enumerate(INPUTS.symbols)
                for y in range(3)
            )
            for rule in itertools.product(values, repeat=3)
        )
        assert found.loc[column, "guess_y"] == pytest.approx(best, abs=1e-12)  # rounding


def test_a_row_s_worth_is_the_quotient_of_the_variances_that_estimates_have() -> None:
    matrix, sums = np.array([[0.9, 0.1], [0.3, 0.7]]), np.eye(2)
    prior, rows = np.array([0.35, 0.65]), 4000
    drawn = np.random.default_rng(0).multinomial(rows, prior @ matrix, 400)
    spread = np.var([estimates(matrix, counts.astype(float), sums).unbiased[0] for counts in drawn])
    # The variance of 400 draws is known to 7 % (its standard error); three of these.
    assert worth(matrix, prior, sums) == pytest.approx(0.35 * 0.65 / rows / spread, rel=0.22)


def test_what_is_passed_on_whole_is_worth_a_row_and_what_is_merged_nothing() -> None:
    assert worth(np.eye(4), PRIOR, np.eye(4)) == pytest.approx(1.0, abs=1e-12)
    merged = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    found = column_utility(merged, INPUTS, PRIOR).set_index("column")["row_worth"]
    assert found["age"] == pytest.approx(1.0, abs=1e-9)
    assert found["sex"] == 0.0


def test_the_adversary_s_guess_of_a_private_column_stands_beside() -> None:
    table = JointTable.from_counts([[30, 10, 5], [5, 15, 35]])
    found = private_columns(table, np.full((3, 1), 1.0))
    assert found.loc[0, ["guess_nothing", "guess_y", "guess_x"]].tolist() == pytest.approx([0.55, 0.55, 0.8])


def test_page_json_and_bundle_have_it(tmp_path: Path) -> None:
    table = JointTable.from_counts([[30, 10, 5], [5, 15, 35]], ["no", "yes"], ["a", "b", "c"])
    facts = PrivacyFunnel(table, rate=0.7).solve().facts
    assert facts.tables["columns"]["role"].tolist() == ["private", "public"]
    (section,) = [one for one in facts.sections if one.title.startswith("What a recipient")]
    assert section.shared is not None
    assert all(cell.count(".") == 0 for cell in section.shared.tables[0].frame["from Y"])
    rows = pd.DataFrame({"age": ["young", "old"] * 50, "sex": ["f", "m"] * 50, "ward": ["1", "2"] * 50})
    Mechanism(MATRIX, INPUTS).bundle(rows, tmp_path / "bundle", keep=["ward"])
    held = json.loads((tmp_path / "bundle/bundle.json").read_text())["utility"]
    assert [(one["column"], one["role"]) for one in held] == [("age", "public"), ("sex", "public"), ("ward", "kept")]
    assert held[0]["guess_y"] == round(held[0]["guess_y"], 2)  # whole per cent, for P(Y|X) stays at home
    assert "What these rows tell of each column" in (tmp_path / "bundle/README.txt").read_text()
