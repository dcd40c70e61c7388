"""`cvxpriv consensus`: graphs, nodes, files, privacy, and every kind of bad input of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cvxpriv_models.recycled_admm.node_rows import graph_of_file, place, spelled

import cvxpriv as cpv
from cvxpriv.errors import DataError, ModelError
from cvxpriv.learning.encoding import Encoding
from cvxpriv.reports.sets import require_whole

from .conftest import Run, one_error_line, scores_of

PUBLIC = ("--range", "a:-1:1", "--range", "b:-1:1")
BARE = ("--no-crosscheck", "--no-report")
PRIVATE = (*PUBLIC, "--positive", "1", "--columns", "a,b", "--epsilon", "2")
EDGES = "from,to\neast,west\nwest,north\n"


@pytest.fixture
def rows(tmp_path: Path) -> str:
    """600 rows of two columns, each of one of three places."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(-1, 1, size=(600, 2)).round(3), columns=list("ab"))
    frame["y"] = (3 * frame["a"] - 2 * frame["b"] + 0.3 * rng.normal(size=600) > 0).astype(int)
    frame["place"] = rng.choice(["east", "west", "north"], 600, p=[0.5, 0.3, 0.2])
    frame.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "edges.csv").write_text(EDGES)
    return "rows.csv"


def fitted(run: Run, table: str, *options: str) -> dict[str, Any]:
    """The JSON result of a fit that must succeed."""
    result = run("consensus", table, "--label", "y", *BARE, "--json", *options)
    assert result.exit_code == 0, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def rows_of_nodes(document: dict[str, Any]) -> dict[str, int]:
    """The rows of each node."""
    return {row["node"]: row["rows"] for row in document["tables"]["nodes"]}


def test_a_fit_writes_what_it_says_and_stays_within_100_columns(run: Run, rows: str) -> None:
    result = run("consensus", rows, "--label", "y", "--columns", "a,b", "--graph", "random:5:0.5", "--out", "o")
    assert result.exit_code == 0, result.stderr
    tables = {"scores.csv", "columns.csv", "coefficients.csv", "nodes.csv", "edges.csv", "crosscheck.csv"}
    names = {"report.html", "history.csv", "model.json", *tables}
    assert set(require_whole("o")) == names
    assert max(map(len, result.stdout.splitlines())) <= 100
    assert "all rows in one place" in result.stdout
    assert "alone (the median one)" in result.stdout
    assert "solved again at this answer" in result.stdout
    page = Path("o/report.html").read_text()
    assert "The graph" in page
    assert "largest relative distance of a node from the optimum" in page


def test_the_files_hold_every_node_s_model_and_the_mean_that_is_scored(run: Run, rows: str) -> None:
    options = ("--graph", "ring:4", "--tol", "1e-6", "--reg", "9", "--eta", "2")
    document = fitted(run, rows, *PUBLIC, "--columns", "a,b", *options)
    encoding, loaded = Encoding.load("out/model.json"), cpv.load("out/model.json")
    table = pd.read_csv("out/coefficients.csv", index_col="feature")
    nodes = [f"node {label}" for label in range(4)]
    assert list(table) == ["coefficient", *nodes]
    np.testing.assert_allclose(table["coefficient"], table[nodes].mean(axis=1), rtol=1e-12)  # of rounding
    people = pd.read_csv(rows)
    plain = Encoding(encoding.columns).encode(people)  # coefficients.csv is of columns from -1 to 1
    tall = np.hstack([encoding.encode(people), np.ones((600, 1))])
    for column, node in (("coefficient", None), ("node 2", 2)):
        margin = plain @ table[column][["a", "b"]] + table[column]["(intercept)"]
        np.testing.assert_allclose(loaded.decision_function(tall, node), margin, atol=1e-10)  # of rounding
    assert document["converged"]
    # A relative KKT residual of 1e-6, times a condition number of about a hundred.
    assert document["facts"]["distance"]["value"] < 1e-3
    assert sum(rows_of_nodes(document).values()) == 420


def test_rows_belong_to_the_node_that_their_column_names(run: Run, rows: str) -> None:
    document = fitted(run, rows, "--node-column", "place", "--graph", "edges.csv")
    assert list(rows_of_nodes(document)) == ["east", "west", "north"]
    assert [list(row.values()) for row in document["tables"]["edges"]] == [["east", "west"], ["west", "north"]]
    assert rows_of_nodes(document)["east"] > rows_of_nodes(document)["north"]
    assert document["tables"]["columns"][-1]["column"] == "b"  # the place is not learned from
    spelled_out = fitted(run, rows, "--node-column", "place", "--graph", "path")
    assert list(rows_of_nodes(spelled_out)) == ["east", "north", "west"]  # a spelled graph takes them in order


def test_a_private_fit_guarantees_what_was_asked_and_tells_nothing_that_was_not_released(run: Run, rows: str) -> None:
    document = fitted(run, rows, *PRIVATE, "--nodes", "3")
    assert document["facts"]["epsilon"]["value"] == pytest.approx(2.0, rel=1e-9)  # a sum
    assert document["facts"]["delta"]["value"] == 0.0
    assert not {"objective", "kkt", "seconds", "distance", "excess"} & set(document["facts"])
    assert list(scores_of(document)) == ["consensus of 3 nodes", "no column, the larger class"]  # others: no noise
    assert list(pd.read_csv("out/history.csv")) == ["iteration", "spread", "dual_sum"]
    assert {row["conventional"] for row in document["tables"]["privacy_loss"]} == {
        2.0 * row["tight"] for row in document["tables"]["privacy_loss"]
    }
    assert cpv.load("out/model.json").accounting.epsilon == document["facts"]["epsilon"]["value"]


def test_a_delta_makes_the_noise_gaussian(run: Run, rows: str) -> None:
    document = fitted(run, rows, *PRIVATE, "--delta", "1e-6")
    assert document["tables"]["accounting"][0]["rule"] == "exact Gaussian composition"
    assert document["facts"]["epsilon"]["value"] == pytest.approx(2.0, rel=1e-8)  # found by bisection
    kept = fitted(run, rows, *PRIVATE, "--delta", "1e-6", "--perturbation", "objective")
    assert kept["tables"]["accounting"][0]["rule"] == "adding up pure epsilons"


@pytest.mark.parametrize("options", [(), ("--delta", "1e-6")])
def test_a_private_fit_says_per_node_what_was_spent_and_shows_no_time(
    run: Run, rows: str, options: tuple[str, ...]
) -> None:
    result = run("consensus", rows, "--label", "y", *PRIVATE, *options, "--nodes", "3", "--out", "o")
    assert result.exit_code == 0, result.stderr
    assert "Privacy of each node" in result.stdout
    words = " ".join(result.stdout.split())
    assert "ADMM: what the conventional one spends" in words
    assert "by the sum of what these nodes guarantee" in words
    assert max(map(len, result.stdout.splitlines())) <= 100
    page = Path("o/report.html").read_text()
    assert "Pass by pass" in page
    assert "seconds" not in page
    assert ("pure: delta is 0" in page) == (not options)
    assert ("paper&#39;s (32)" in page) == (not options)


def test_a_rate_of_noise_is_a_budget_too(run: Run, rows: str) -> None:
    document = fitted(
        run,
        rows,
        *PUBLIC,
        "--positive",
        "1",
        "--columns",
        "a,b",
        "--alpha",
        "0.5",
        "--method",
        "dvp",
        "--max-iter",
        "2",
    )
    assert document["settings"]["private"]
    assert {row["alpha"] for row in document["tables"]["privacy_loss"]} == {0.5}


def test_a_fit_that_did_not_converge_writes_its_files_says_so_and_exits_with_3(run: Run, rows: str) -> None:
    result = run("consensus", rows, "--label", "y", *BARE, "--max-iter", "2", "--tol", "1e-9")
    assert result.exit_code == 3
    assert "did NOT converge" in result.stdout
    assert "raise --max-iter" in result.stderr
    assert Path("out/model.json").exists()


def test_without_rows_held_out_there_is_a_fit_and_no_score(run: Run, rows: str) -> None:
    document = fitted(run, rows, "--test-fraction", "0", "--loss", "squared", "--no-intercept")
    assert {row["accuracy"] for row in scores_of(document).values()} == {None}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--graph", "rign:5"), "did you mean 'ring'"),
        (("--graph", "ring:x"), "no spelling of a ring graph: give ring:5 or ring"),
        (("--graph", "random:5"), "give random:5:0.5 or random:0.5"),
        (("--graph", "random:30:0.001"), "raise the chance"),
        (("--graph", "ring:5", "--nodes", "4"), "differs (graph: 5, nodes: 4)"),
        (("--graph", "ring:5", "--node-column", "place"), "the nodes that rows name: 3"),
        (("--nodes", "1"), "a consensus needs two or more"),
        (("--nodes", "0"), "nodes=0"),
        (("--nodes", "421"), "421 nodes share 420 rows"),
        (("--graph", "no.csv"), "no.csv"),
        (("--graph", "apart.csv", "--node-column", "place"), "is not connected: it has 2 parts"),
        (("--graph", "strange.csv", "--node-column", "place"), "'north', which is no node of the graph"),
        (("--graph", "more.csv", "--node-column", "place"), "node 'south' has no rows"),
        (("--graph", "bare.csv", "--node-column", "place"), "begins with the edge east,west: put a header line"),
        (("--graph", "rows.csv"), "has 4 columns: a file of edges has two"),
        (("--node-column", "plaec"), "did you mean 'place'"),
        (("--method", "radmm"), "did you mean 'r-admm'"),
        (("--method", "r-admm", "--growth", "1.1"), "pass --method='mr-admm' for several"),
        (("--eta", "0"), "eta=0.0 must be finite and > 0"),
        (("--gamma", "-1"), "gamma=-1.0"),
        (("--max-iter", "0"), "--max-iter=0"),
        (("--weight", "1e6"), "--weight=1000000.0 must be in (0, 84]"),
        (("--loss", "hinge"), "has a kink"),
        (("--epsilon", "0"), "epsilon=0.0 is not a finite number > 0"),
        (("--epsilon", "1", "--delta", "1"), "delta=1.0 is not a finite number > 0 and < 1"),
        (("--epsilon", "1", "--alpha", "1"), "are two budgets"),
        (("--delta", "1e-6"), "goes with --epsilon"),
        (("--epsilon", "1", "--positive", "1"), "would be read off the private rows"),
        ((*PRIVATE, "--max-iter", "5000"), "take fewer passes"),
        ((*PRIVATE, "--perturbation", "input"), "perturbation='input'"),
        ((*PRIVATE, "--loss", "squared"), "no bounded slope"),
        (("--method", "dvp"), "method='dvp'"),
    ],
)
def test_bad_input_is_one_line(run: Run, rows: str, arguments: tuple[str, ...], message: str) -> None:
    files = {
        "apart": EDGES.replace("west,north", "north,south"),
        "strange": "from,to\neast,west\n",
        "more": EDGES + "north,south\n",
        "bare": EDGES.removeprefix("from,to\n") + "north,east\n",
    }
    for name, text in files.items():
        Path(f"{name}.csv").write_text(text)
    assert message in one_error_line(run("consensus", rows, "--label", "y", *BARE, *arguments))


def test_a_row_without_a_node_is_refused(run: Run, rows: str) -> None:
    frame = pd.read_csv(rows)
    frame.loc[:9, "place"] = None
    frame.to_csv("gaps.csv", index=False)
    message = one_error_line(run("consensus", "gaps.csv", "--label", "y", "--node-column", "place", *BARE))
    assert "rows have no value in 'place'" in message


def test_a_random_graph_is_connected_and_the_same_for_the_same_seed() -> None:
    graphs = [spelled("random:8:0.2").graph(8, seed) for seed in (0, 0, 500)]
    assert all(graph.number_of_edges() >= 7 for graph in graphs)
    assert set(graphs[0].edges) == set(graphs[1].edges) != set(graphs[2].edges)
    assert set(spelled("random:1.0").graph(4).edges) == set(spelled("complete").graph(4).edges)


def test_a_file_of_edges_needs_its_header_both_ends_and_an_edge(tmp_path: Path) -> None:
    for text, message in {
        "0,1\n1,2\n": "begins with the edge 0,1",
        "0,1\n2,3\n": "begins with the edge 0,1",
        "a,b\nx,\n": "lacks an end of the edge in line 2",
        "a,b\n": "holds no edge|begins with",
    }.items():
        (tmp_path / "g.csv").write_text(text)
        with pytest.raises(DataError, match=message):
            graph_of_file(str(tmp_path / "g.csv"))


def test_dealt_rows_are_every_row_once_in_parts_that_differ_by_one_at_most() -> None:
    found = place(spelled("star"), 23, 5, seed=3)
    assert sorted(np.concatenate(found.parts).tolist()) == list(range(23))
    assert sorted(part.size for part in found.parts) == [4, 4, 5, 5, 5]
    assert dict(found.graph.degree)[0] == 4
    with pytest.raises(ModelError, match="two or more"):
        place(spelled("star"), 23, 1)
