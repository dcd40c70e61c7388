"""`cvxpriv sharing`: files, scores, privacy, and every kind of bad input; and what both learning commands share."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cvxpriv as cpv
from cvxpriv.learning.encoding import Encoding
from cvxpriv.models import ADMMSharing
from cvxpriv.reports.sets import require_whole

from .conftest import Run, one_error_line, scores_of

PARTIES = ("--party", "age,job", "--party", "hours")
PUBLIC = ("--range", "age:0:100", "--range", "hours:0:80", "--category", "job:clerk,farmer,miner")
BARE = ("--no-crosscheck", "--no-report")
PRIVATE = (*PUBLIC, "--positive", "high", "--epsilon", "2", "--lam", "10")


@pytest.fixture
def rows(tmp_path: Path) -> str:
    """400 people: income depends on age, hours and job."""
    rng = np.random.default_rng(0)
    age, hours = rng.integers(18, 90, 400), rng.integers(1, 80, 400)
    job = rng.choice(["clerk", "farmer", "miner"], 400)
    score = (age - 50) / 20 + (hours - 40) / 15 + (job == "clerk") + rng.normal(size=400)
    frame = pd.DataFrame({"age": age, "job": job, "hours": hours, "income": np.where(score > 0, "high", "low")})
    frame.to_csv(tmp_path / "people.csv", index=False)
    return "people.csv"


def fitted(run: Run, table: str, *options: str) -> dict[str, Any]:
    """The JSON result of a fit that must succeed."""
    result = run("sharing", table, "--label", "income", *PARTIES, *BARE, "--json", *options)
    assert result.exit_code == 0, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def test_a_fit_writes_what_it_says_and_nothing_else(run: Run, rows: str) -> None:
    result = run("sharing", rows, "--label", "income", "--positive", "high", *PARTIES, "--out", "o")
    assert result.exit_code == 0, result.stderr
    tables = {"scores.csv", "columns.csv", "coefficients.csv", "crosscheck.csv"}
    names = {"report.html", "history.csv", "model.json", *tables}
    assert set(require_whole("o")) == names
    assert names == set(re.findall(r"[a-z]+\.[a-z]+", result.stdout.rpartition("Written to")[2]))
    assert result.stderr == ""
    assert max(map(len, result.stdout.splitlines())) <= 100
    page = Path("o/report.html").read_text()
    assert "party 1 alone" in page
    assert page.rstrip().endswith("</html>")


def test_the_files_hold_the_model_its_encoding_and_its_intercept(run: Run, rows: str) -> None:
    document = fitted(run, rows, *PUBLIC, "--positive", "high", "--test-fraction", "0")
    encoding, loaded = Encoding.load("out/model.json"), cpv.load("out/model.json")
    people = pd.read_csv(rows)
    encoded = encoding.encode(people)
    parts = [encoded[:, encoding.positions(document["about"][f"party_{m}"])] for m in (1, 2)]
    table = pd.read_csv("out/coefficients.csv", index_col="feature")["coefficient"]
    margin = encoded @ table[list(encoding.features)] + table["(intercept)"]
    tall = np.hstack([parts[0], np.full((400, 1), 1000.0)])  # the column that carries the intercept
    np.testing.assert_allclose(loaded.decision_function([tall, parts[1]]), margin, atol=1e-9)
    direct = ADMMSharing([tall, parts[1]], people["income"] == "high").solve(tol=1e-9, max_iter=2000)
    np.testing.assert_allclose(direct.decision_function([tall, parts[1]]), margin, atol=1e-3)  # tol 1e-6 against 1e-9
    assert {name: row["accuracy"] for name, row in scores_of(document).items()} == {
        "all parties together": None,
        "party 1 alone": None,
        "party 2 alone": None,
    }


def test_all_parties_together_beat_each_alone_on_rows_that_were_held_out(run: Run, rows: str) -> None:
    document = fitted(run, rows)
    losses = {name: row["log_loss"] for name, row in scores_of(document).items()}
    assert min(losses, key=losses.__getitem__) == "all parties together"
    assert document["about"]["rows"] + document["about"]["held_out"] == 400
    assert document["about"]["read_off"] == ["age", "job", "hours"]
    assert document["facts"]["gap"]["value"] <= 1e-6 * document["facts"]["objective"]["value"]


def test_a_private_fit_guarantees_what_was_asked_and_tells_nothing_that_was_not_released(run: Run, rows: str) -> None:
    document = fitted(run, rows, *PRIVATE)
    assert document["facts"]["epsilon"]["value"] == pytest.approx(2.0, rel=1e-8)  # found by bisection
    # sqrt(2) of two columns, with the column of ones sqrt(3); and 1
    assert "norm at most 1.73205, 1" in document["facts"]["neighbours"]["value"]
    assert list(scores_of(document)) == ["all parties together", "no column, the larger class"]  # others: no noise
    assert not {"objective", "gap", "kkt", "seconds"} & set(document["facts"])
    history = pd.read_csv("out/history.csv")
    assert list(history) == [
        "iteration",
        "gap",
        *(f"{name} {m}" for name in ("noise", "sensitivity", "kept") for m in "01"),
    ]
    assert any("Scores are those of the parties" in line and "publish none" in line for line in document["promises"])
    assert cpv.load("out/model.json").accounting.epsilon == document["facts"]["epsilon"]["value"]


def test_the_page_of_a_private_fit_shows_neither_coefficients_nor_times(run: Run, rows: str) -> None:
    result = run("sharing", rows, "--label", "income", *PARTIES, *PRIVATE, "--out", "o")
    assert result.exit_code == 0, result.stderr
    page = Path("o/report.html").read_text()
    assert "exact Gaussian composition" in page
    assert "Coefficients</h2>" not in page
    assert "seconds" not in page
    assert "solved again at this answer" in result.stdout  # the step that released values pose
    assert "objective" not in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100


@pytest.mark.parametrize(("adjacency", "words"), [("column", "of norm at most 16.7332"), ("cell", "value at most 1")])
def test_the_encoding_gives_the_bound_of_every_neighbouring_relation(
    run: Run, rows: str, adjacency: str, words: str
) -> None:
    document = fitted(run, rows, *PRIVATE, "--adjacency", adjacency)  # sqrt(280) rows
    assert words in document["facts"]["neighbours"]["value"]


def test_a_category_is_several_encoded_columns_and_the_statements_say_so(run: Run, rows: str) -> None:
    for adjacency in ("replace-one", "cell"):
        statements = fitted(run, rows, *PRIVATE, "--adjacency", adjacency)["promises"]
        assert any("changes two entries" in line for line in statements) == (adjacency == "cell")


def test_rows_that_were_left_out_of_a_private_fit_are_said_to_be_public(run: Run, rows: str) -> None:
    said = "Which rows were left out"
    whole = fitted(run, rows, *PRIVATE, "--missing", "drop")
    assert not any(said in line for line in whole["promises"])
    people = pd.read_csv(rows).astype({"age": float})
    people.loc[3, "age"] = np.nan
    people.to_csv(rows, index=False)
    holed = fitted(run, rows, *PRIVATE, "--missing", "drop")
    assert holed["about"]["left_out"] == 1
    assert any(said in line for line in holed["promises"])


def test_bounds_that_are_not_public_are_refused_unless_that_is_said(run: Run, rows: str) -> None:
    options = ("sharing", rows, "--label", "income", *PARTIES, "--positive", "high", "--epsilon", "1", *BARE)
    assert "would be read off the private rows" in one_error_line(run(*options))
    told = run(*options, "--bounds-from-data", "--json")
    assert any("The bounds of age, job, hours were read off" in line for line in json.loads(told.stdout)["promises"])


def test_held_labels_are_said_to_be_protected(run: Run, rows: str) -> None:
    document = fitted(run, rows, *PRIVATE, "--labels", "held")
    assert "one label flipped" in document["facts"]["neighbours"]["value"]
    assert not any("labels='shared'" in line for line in document["promises"])


def test_a_seed_for_noise_warns_and_stands_among_the_statements(run: Run, rows: str) -> None:
    result = run("sharing", rows, "--label", "income", *PARTIES, *PRIVATE, *BARE, "--noise-seed", "1")
    assert result.exit_code == 0
    assert "--noise-seed" in result.stderr
    assert "drawn again by whoever knows its seed" in result.stdout


def test_a_fit_that_did_not_converge_writes_its_files_says_so_and_exits_with_3(run: Run, rows: str) -> None:
    result = run("sharing", rows, "--label", "income", *PARTIES, *BARE, "--max-iter", "2")
    assert result.exit_code == 3
    assert "did NOT converge" in result.stdout
    assert "raise --max-iter" in result.stderr
    assert Path("out/model.json").exists()


def test_rows_without_a_number_or_a_label_are_dropped_when_asked(run: Run, rows: str) -> None:
    people = pd.read_csv(rows).astype(object)
    people.loc[3, "age"], people.loc[5, "income"], people.loc[7, "job"] = None, None, None
    people.to_csv("gaps.csv", index=False)
    options = ("sharing", "gaps.csv", "--label", "income", *PARTIES, *BARE)
    assert "1 missing labels: give --missing drop" in one_error_line(run(*options))
    assert fitted(run, "gaps.csv", "--missing", "drop")["about"]["left_out"] == 2  # a missing category sets no column


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--label", "income"), "--party names no columns"),
        (PARTIES, "--label names no column of people.csv"),
        ((*PARTIES, "--label", "incom"), "did you mean 'income'"),
        (("--party", "age", "--label", "job"), "has 3 values (clerk, farmer, miner), and a label has two"),
        ((*PARTIES, "--party", "age", "--label", "income"), "column 'age' stands in --party twice"),
        (("--party", "age,income", "--label", "income"), "column 'income' is the label"),
        (("--party", "age", "--label", "income", "--positive", "hihg"), "did you mean 'high'"),
        ((*PARTIES, "--label", "income", "--range", "age:0"), "give COLUMN:LOW:HIGH"),
        ((*PARTIES, "--label", "income", "--range", "sex:0:1"), "--range names 'sex', which is not learned from"),
        ((*PARTIES, "--label", "income", "--range", "age:30:40"), "beyond its range 30 to 40"),
        ((*PARTIES, "--label", "income", "--category", "job:clerk"), "--beyond='move' to treat such values"),
        ((*PARTIES, "--label", "income", "--beyond", "clip"), "--beyond='clip' is not known"),
        ((*PARTIES, "--label", "income", "--test-fraction", "1"), "--test-fraction=1 is no part of the rows"),
        ((*PARTIES, "--label", "income", "--seed", "-1"), "--seed=-1 is no seed"),
        ((*PARTIES, "--label", "income", "--lam", "-1"), "lam=-1.0 is not a finite number >= 0"),
        ((*PARTIES, "--label", "income", "--method", "jacobi"), "method='jacobi'"),
        ((*PARTIES, "--label", "income", "--loss", "logit"), "did you mean 'logistic'"),
        ((*PARTIES, "--label", "income", "--epsilon", "0"), "epsilon=0.0 is not a finite number > 0"),
        (
            (*PARTIES, "--label", "income", "--epsilon", "1", "--delta", "1"),
            "delta=1.0 is not a finite number > 0 and < 1",
        ),
        ((*PARTIES, "--label", "income", *PRIVATE, "--adjacency", "party"), "did you mean 'party-row'"),
        ((*PARTIES, "--label", "income", *PRIVATE, "--labels", "hidden"), "labels='hidden' is not known"),
        ((*PARTIES, "--label", "income", *PRIVATE, "--penalty", "l1"), "is no square, and a private intercept"),
        ((*PARTIES, "--label", "income", *PRIVATE, "--tol", "1e-6"), "--tol goes without --epsilon"),
        ((*PARTIES, "--label", "income", "--clip", "1"), "--clip goes with --epsilon"),
        ((*PARTIES, "--label", "income", "--rho", "small"), "'small' is not a valid float"),
    ],
)
def test_bad_input_is_one_line(run: Run, rows: str, arguments: tuple[str, ...], message: str) -> None:
    assert message in one_error_line(run("sharing", rows, *arguments, *BARE))


def test_a_source_that_is_neither_a_file_nor_a_name_is_refused(run: Run) -> None:
    assert "Known: adult, compas, german" in one_error_line(run("sharing", "adlut", "--party", "age", "--label", "x"))
    assert "cannot be read" in one_error_line(run("sharing", "no.csv", "--party", "age", "--label", "x"))


def test_quiet_says_nothing(run: Run, rows: str) -> None:
    result = run("sharing", rows, "--label", "income", *PARTIES, *BARE, "--quiet")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_one_party_alone_fits_and_is_compared_with_nobody(run: Run, rows: str) -> None:
    result = run("sharing", rows, "--label", "income", "--party", "age,hours", *BARE, "--no-intercept", "--json")
    assert list(scores_of(json.loads(result.stdout))) == ["all parties together", "no column, the larger class"]


def test_the_files_of_a_private_fit_hold_coefficients_only_where_that_is_asked_for(run: Run, rows: str) -> None:
    fitted(run, rows, *PRIVATE)
    assert set(require_whole("out")) == {
        "history.csv",
        "model.json",
        "scores.csv",
        "columns.csv",
        "accounting.csv",
    }
    assert not {"coefficients", "not_private"} & set(json.loads(Path("out/model.json").read_text()))
    document = fitted(run, rows, *PRIVATE, "--not-private", "--out", "told")
    assert any("give each party its own" in line for line in document["promises"])
    assert (Path("told") / "coefficients.csv").exists()
    assert len(cpv.load("told/model.json").not_private.coefficients) == 2


def test_the_help_says_the_defaults_of_both_kinds_of_fit(run: Run) -> None:
    text = " ".join(run("sharing", "--help").stdout.split())
    assert "[default: 1; private: 30]" in text  # of lam on rows
    assert "[default: 1000; private: 4]" in text  # of max_iter, as the signatures say
    assert "--seed INTEGER Seed of that split, and of random starts. [default: 0]" in text


@pytest.mark.slow
def test_starts_and_workers_are_those_of_solve(run: Run, rows: str) -> None:
    one = fitted(run, rows, "--starts", "2", "--seed", "1")
    two = fitted(run, rows, "--starts", "2", "--seed", "1", "--jobs", "2")
    assert one["facts"]["objective"] == two["facts"]["objective"]
