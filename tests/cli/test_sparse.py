"""`cvxpriv sparse`: files, scores, privacy, named rows, and bad input of its own."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cvxpriv as cpv
from cvxpriv.learning.encoding import Encoding
from cvxpriv.reports.sets import require_whole

from .conftest import Run, one_error_line, scores_of

PUBLIC = tuple(part for name in "abcdef" for part in ("--range", f"{name}:-1:1"))
BARE = ("--no-crosscheck", "--no-report")


@pytest.fixture
def rows(tmp_path: Path) -> str:
    """600 rows of six columns, of which b and e matter."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(-1, 1, size=(600, 6)).round(3), columns=list("abcdef"))
    frame["y"] = (3 * frame["b"] - 2 * frame["e"] + 0.3 * rng.normal(size=600) > 0).astype(int)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    return "rows.csv"


def fitted(run: Run, table: str, *options: str) -> dict[str, Any]:
    """The JSON result of a fit that must succeed."""
    result = run("sparse", table, "--label", "y", *BARE, "--json", *options)
    assert result.exit_code == 0, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def test_a_fit_finds_the_columns_that_matter_and_its_files_predict_alike(run: Run, rows: str) -> None:
    document = fitted(run, rows, *PUBLIC, "--penalty", "mcp:0.01:20")
    coefficients = {row["feature"]: row["coefficient"] for row in document["tables"]["coefficients"]}
    assert [name for name in "abcdef" if coefficients[name]] == ["b", "e"]
    encoding, loaded = Encoding.load("out/model.json"), cpv.load("out/model.json")
    people = pd.read_csv(rows)
    assert encoding.scaled
    margin = loaded.decision_function(encoding.encode(people))
    table = pd.read_csv("out/coefficients.csv", index_col="feature")["coefficient"]
    plain = Encoding(encoding.columns).encode(people)  # coefficients.csv is of columns from 0 to 1
    np.testing.assert_allclose(plain @ table[list(encoding.features)] + table["(intercept)"], margin, atol=1e-12)
    assert scores_of(document)["this model, 2 columns"]["auc"] > 0.95


def test_a_fit_writes_what_it_says_and_stays_within_80_columns(run: Run, rows: str) -> None:
    result = run("sparse", rows, "--label", "y", "--out", "o")
    assert result.exit_code == 0, result.stderr
    tables = {"scores.csv", "columns.csv", "coefficients.csv", "crosscheck.csv"}
    names = {"report.html", "history.csv", "model.json", *tables}
    assert set(require_whole("o")) == names
    assert max(map(len, result.stdout.splitlines())) <= 100
    assert "Not private" in result.stdout


def test_a_private_fit_releases_coefficients_and_tells_nothing_else(run: Run, rows: str) -> None:
    document = fitted(run, rows, *PUBLIC, "--positive", "1", "--epsilon", "3", "--delta", "1e-5")
    assert document["facts"]["epsilon"]["value"] == pytest.approx(3.0, rel=1e-8)  # found by bisection
    assert not {"objective", "kkt", "seconds", "iterations"} & set(document["facts"])
    scores = scores_of(document)
    own, constant = scores["this model, 6 columns"], scores["no column, the larger class"]
    share = constant["accuracy"]  # of the rows held out, the larger class
    assert constant["log_loss"] == pytest.approx(-share * math.log(share) - (1 - share) * math.log(1 - share))
    assert len(scores) == 2
    assert own["log_loss"] < constant["log_loss"]
    assert list(pd.read_csv("out/history.csv")) == ["iteration", "step", "noisy_gradient", "support"]
    loaded = cpv.load("out/model.json")
    assert loaded.accounting.releases == document["facts"]["releases"]["value"]
    assert {verdict.verdict for verdict in loaded.certify(("CLARABEL",)).verdicts.values()} == {"agrees"}


def test_the_page_of_a_private_fit_has_its_accounting_and_no_times(run: Run, rows: str) -> None:
    result = run("sparse", rows, "--label", "y", *PUBLIC, "--positive", "1", "--epsilon", "3", "--out", "o")
    assert result.exit_code == 0, result.stderr
    page = Path("o/report.html").read_text()
    assert "exact Gaussian composition" in page
    assert "Coefficients</h2>" in page
    assert "seconds" not in page


def test_bounds_that_are_not_public_are_refused_unless_that_is_said(run: Run, rows: str) -> None:
    assert "--bounds-from-data" in one_error_line(
        run("sparse", rows, "--label", "y", "--positive", "1", "--epsilon", "1", *BARE)
    )
    assert fitted(run, rows, "--epsilon", "1", "--bounds-from-data")["about"]["read_off"] == list("abcdef")


def test_named_rows_bring_public_bounds_of_their_own(run: Run) -> None:
    from cvxpriv.cli.rows import RowOptions
    from cvxpriv.tables.datasets.named_rows import NAMED

    for name, (held, features) in {"compas": (2164, 9), "german": (300, 54)}.items():
        found = RowOptions().load(name, None, scaled=True, private=True)
        assert (found.test_y.size, len(found.encoding.features)) == (held, features)
        assert np.linalg.norm(found.x, axis=1).max() <= 1.0 + 1e-12  # rounding of a norm
        assert found.classes[1] == NAMED[name].positive


def test_every_bound_of_the_named_rows_holds_for_their_rows(run: Run) -> None:
    from cvxpriv.cli.rows import RowOptions
    from cvxpriv.tables.datasets.named_rows import NAMED

    for name, rows in NAMED.items():
        every = sorted({*rows.ranges, *rows.categories})
        RowOptions(test_fraction=0.0).load(name, every, scaled=False, private=True)  # beyond="refuse" is the test


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--penalty", "mcp:0.05:1"), "MCP needs alpha > 1"),
        (("--penalty", "lasso:1"), "lasso"),
        (("--loss", "hinge"), "has a kink"),
        (("--epsilon", "-1"), "epsilon=-1.0 is not a finite number > 0"),
        (("--positive", "1", "--epsilon", "1", *PUBLIC, "--max-iter", "0"), "--max-iter=0"),
        (("--positive", "1", "--epsilon", "1", *PUBLIC, "--clip", "0"), "clip=0.0"),
        (("--positive", "1", "--epsilon", "1", *PUBLIC, "--step", "long"), "step='long'"),
        (("--positive", "1", "--epsilon", "1", *PUBLIC, "--loss", "squared"), "clip is missing"),
        (("--columns", "a,z"), "'z' is no column"),
    ],
)
def test_bad_input_is_one_line(run: Run, rows: str, arguments: tuple[str, ...], message: str) -> None:
    assert message in one_error_line(run("sparse", rows, "--label", "y", *BARE, *arguments))


def test_a_fit_that_did_not_converge_exits_with_3(run: Run, rows: str) -> None:
    result = run("sparse", rows, "--label", "y", *BARE, "--max-iter", "1", "--tol", "1e-15")
    assert result.exit_code == 3
    assert "did NOT converge" in result.stdout
