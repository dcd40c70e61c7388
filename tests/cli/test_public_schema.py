"""Commands on private rows with a schema: whatever is printed or written is the same for neighbours, to the byte.

A release is replaced by its noise alone, without what it hides. Then everything that a command says follows from the
noise, the schema and the options: a byte that differs between neighbours was read off the rows.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cvxpriv.certify.answers import Answer
from cvxpriv.cli.options import Reading
from cvxpriv.cli.row_labels import blind_labels
from cvxpriv.cli.rows import RowOptions
from cvxpriv.errors import PrivacyError
from cvxpriv.privacy import BallNoise, Budget, GaussianNoise, Noise
from cvxpriv.tables.datasets.named_rows import NAMED
from cvxpriv.tables.frames import symbol

from .conftest import Run, one_error_line

SCHEMA: dict[str, Any] = {
    "label": "income",
    "classes": ["low", "high"],
    "columns": ["age", "job", "hours"],
    "ranges": {"age": [0, 100], "hours": [0, 80]},
    "categories": {"job": ["clerk", "farmer"]},
}
SPARSE = ("sparse", "--delta", "1e-6", "--max-iter", "3")
OBJECTIVE = ("sparse", "--method", "objective-perturbation", "--penalty", "l2:0.1", "--no-intercept")
SHARING = ("sharing", "--delta", "1e-6", "--party", "age,job", "--party", "hours", "--max-iter", "2")
CONSENSUS = ("consensus", "--delta", "1e-6", "--nodes", "2", "--max-iter", "2")
PURE = ("consensus", "--nodes", "2", "--max-iter", "1", "--eta", "1")

FIRST: dict[str, list[Any]] = {
    "one class": [30, "clerk", 40, "high"],
    "beyond its range": [1e12, "clerk", -7, "high"],
    "missing": [None, None, None, "low"],
    "no number": ["old", "clerk", 40, "low"],
    "no such value": [30, "miner", 40, "high"],
    "no such class": [30, "clerk", 40, "middle"],
    "no class": [30, "clerk", 40, None],
    "thousands and decimals": ["1.234,5", "clerk", 40, "low"],
    "all at once": [1e12, "miner", "1.234,5", None],
}
QUICK = ("one class", "all at once")
#: Place of a row among the half of sixty rows that seed 0 holds out.
HELD_OUT = int(np.random.default_rng(0).permutation(60)[0])


@pytest.fixture(autouse=True)
def _noise_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def gaussian(self: GaussianNoise, query: np.ndarray, noise: Noise) -> np.ndarray:
        return self.step * noise.rounded_normals(self.scale / self.step, self.size).astype(float)

    def ball(self: BallNoise, query: np.ndarray, noise: Noise) -> np.ndarray:
        return self.step * noise.rounded_ball(1.0 / (self.rate * self.step), self.size).astype(float)

    monkeypatch.setattr(GaussianNoise, "release", gaussian)
    monkeypatch.setattr(BallNoise, "release", ball)


@pytest.fixture(autouse=True)
def _no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds of a cross-check differ from run to run, on the same rows too."""
    answered = Answer.__init__

    def timeless(self: Answer, *given: Any, **named: Any) -> None:
        answered(self, *given, **{**named, "seconds": 0.0, "solver_seconds": 0.0})

    monkeypatch.setattr(Answer, "__init__", timeless)


def people(first: list[Any], rows: int = 60) -> pd.DataFrame:
    """Rows of one class but for the first one."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(18, 90, rows), "job": "farmer", "hours": rng.integers(1, 80, rows)})
    frame = frame.astype(object).assign(income="high")
    frame.iloc[0] = first
    return frame


def told(run: Run, frame: pd.DataFrame, schema: dict[str, Any], command: tuple[str, ...], *more: str) -> Any:
    """Exit, terminal, errors and files of a private command on a table."""
    frame.to_csv("people.csv", index=False)
    Path("schema.json").write_text(json.dumps(schema))
    name, *options = command
    chosen = ("--schema", "schema.json", "--epsilon", "3", "--noise-seed", "0", "--test-fraction", "0", *more)
    result = run(name, "people.csv", *options, *chosen, "--out", "out")
    files = {path.name: path.read_bytes() for path in sorted(Path("out").iterdir())} if Path("out").exists() else {}
    assert result.exit_code == 0, result.stderr
    return result.exit_code, result.stdout, result.stderr, files


@pytest.mark.parametrize(
    ("report", "kinds"),
    [("--no-report", QUICK), pytest.param("--report", tuple(FIRST), marks=pytest.mark.slow)],
    ids=["quick", "all"],
)
@pytest.mark.parametrize("command", [SPARSE, OBJECTIVE, SHARING, CONSENSUS, PURE], ids=lambda one: " ".join(one[:3]))
def test_a_replaced_row_changes_no_byte(
    run: Run, command: tuple[str, ...], report: str, kinds: tuple[str, ...]
) -> None:
    schema, more = {**SCHEMA, "rows": 60}, (report, "--no-crosscheck")
    neighbours = {kind: FIRST[kind] for kind in kinds}
    if command[0] == "sharing":  # its guarantee is not about labels that are shared, and they are in what it released
        neighbours = {kind: [*row[:3], "low"] for kind, row in neighbours.items()}
    said = {kind: told(run, people(row), schema, command, *more) for kind, row in neighbours.items()}
    first, *others = said.values()
    for kind, other in zip(list(said)[1:], others, strict=True):
        assert other == first, kind
    assert {"model.json", "history.csv", "accounting.csv"} <= set(first[3])


@pytest.mark.parametrize(
    "more",
    [("--no-crosscheck", "--no-report", "--json"), pytest.param(("--crosscheck",), marks=pytest.mark.slow)],
    ids=["json", "page"],
)
@pytest.mark.parametrize("about", [None, pytest.param(80, marks=pytest.mark.slow)])
@pytest.mark.parametrize("command", [SPARSE, OBJECTIVE], ids=lambda one: " ".join(one[:3]))
def test_a_row_more_changes_no_byte(
    run: Run, command: tuple[str, ...], about: int | None, more: tuple[str, ...]
) -> None:
    schema = {**SCHEMA, "adjacency": "add-remove", **({} if about is None else {"rows": about})}
    both = people(FIRST["missing"])
    first, second = (told(run, table, schema, command, *more) for table in (both, both.iloc[1:]))
    assert first == second
    assert "rows" not in json.loads(first[3]["model.json"])["rows"]


def test_rows_held_out_are_drawn_each_by_itself_where_their_number_is_private(run: Run) -> None:
    schema = {**SCHEMA, "adjacency": "add-remove", "rows": 80}
    both = people(FIRST["one class"])
    both["income"] = np.where(np.arange(60) % 2, "high", "low")
    found = [
        told(run, both.iloc[:n], schema, SPARSE, "--no-crosscheck", "--no-report", "--test-fraction", "0.3")[3]
        for n in (60, 59)
    ]
    assert found[0]["model.json"] == found[1]["model.json"]
    assert b"rows" not in found[0]["scores.csv"]


def test_a_private_row_that_is_refused_is_refused_in_words_that_tell_nothing(run: Run) -> None:
    ranges = ("--range", "age:0:100", "--range", "hours:0:80", "--category", "job:clerk,farmer")
    options = ("--label", "income", "--positive", "high", *ranges, "--epsilon", "1")
    lines = set()
    for kind in ("beyond its range", "missing", "no number", "no such value", "no class"):
        people(FIRST[kind]).to_csv("people.csv", index=False)
        lines.add(one_error_line(run("sparse", "people.csv", *options)))
    assert len(lines) == 1
    assert "Which one is not said" in lines.pop()


def test_no_row_tells_how_others_are_read(run: Run) -> None:
    table = people(FIRST["one class"])
    table["age"] = pd.Series(["1.500"] * len(table), dtype=object)
    found = []
    for row in (FIRST["one class"], FIRST["thousands and decimals"]):
        table.iloc[0] = row
        table.to_csv("people.csv", index=False)
        found.append(Reading().rows("people.csv", private=True)["age"].iloc[1:].tolist())
    assert found[0] == found[1] == ["1.500"] * 59


#: Lines of a file that change how a table is read where rows are read together.
LINES = {
    "more cells": b"41,clerk,40,low,7,8",
    "a separator more": b"41,clerk,40,low,",
    "fewer cells": b"41",
    "other separators": b"41;clerk;40;low",
    "a comment": b"#41,clerk",
    "a null": b"41,cl\0erk,40,low",
    "no UTF-8": b"41,cl\xe9rk\xff\xfe,40,low",
    "a mark": b"\xff\xfe41,clerk,40,low",
    "a quoted line": b'41,"cl\nerk",40,low',
    "a long cell": b"41," + b"x" * 200_000 + b",40,low",
    "nothing": b",,,",
    "decimals": b'"1.234,5","1.234,5","1.234,5",low',
}


@pytest.mark.parametrize(
    ("header", "between"),
    [("age,job,hours,income", b","), ("age,job,,income", b";"), ("age,job,age,income", b",")],
    ids=["named", "a name missing", "a name twice"],
)
def test_no_line_of_a_private_file_changes_another_one_or_whether_the_file_is_read(header: str, between: bytes) -> None:
    rows = [f"{age},clerk,{age},low".encode() for age in range(20, 30)]
    whole = Reading().rows(_written([header.encode(), *rows], between), private=True)
    for kind, line in LINES.items():
        lines = [header.encode(), *rows[:3], line, *rows[3:]]
        found = Reading().rows(_written(lines, between), private=True)
        assert found.drop(index=3).reset_index(drop=True).equals(whole), kind


def _written(lines: list[bytes], between: bytes) -> str:
    Path("people.csv").write_bytes(b"\n".join(lines).replace(b",", between) + b"\n")
    return "people.csv"


def test_no_row_of_a_workbook_changes_another_one() -> None:
    openpyxl, found = pytest.importorskip("openpyxl"), []
    pytest.importorskip("pyarrow")
    for more in ([], [[None, "miner", "beyond the header"]]):
        book = openpyxl.Workbook()
        for row in (["id", "job"], [30, "clerk"], [41.5, "smith"], *more):
            book.active.append(row)
        book.save("people.xlsx")
        ids = pd.array([2**53 + 1, 2**53 + 3, *(None for _ in more)], dtype="Int64")
        pd.DataFrame({"id": ids}).to_parquet("people.parquet")
        read = [Reading().rows(f"people.{kind}", private=True) for kind in ("xlsx", "parquet")]
        found.append([(list(one), [[symbol(cell) for cell in row] for row in one.iloc[:2].to_numpy()]) for one in read])
    assert found[0] == found[1]


def test_a_named_set_brings_its_classes_and_another_label_of_it_does_not() -> None:
    frame = pd.DataFrame({"credit": ["good", "bad"], "housing": ["own", "rent"]})
    for chosen, name, classes in ((None, "credit", ("good", "bad")), ("own", "housing", ("not own", "own"))):
        own = (NAMED["german"].negative, NAMED["german"].positive) if name == "credit" else None
        signs, found, labelled = blind_labels(frame[name], chosen, own)
        assert (found, sorted(signs), labelled.all()) == (classes, [-1.0, 1.0], True)
    with pytest.raises(PrivacyError, match="two classes of column 'housing' would be read off"):
        RowOptions(label="housing")._labels(frame["housing"], NAMED["german"], blind=True)


def test_what_a_schema_says_is_not_said_again(run: Run) -> None:
    people(FIRST["one class"]).to_csv("people.csv", index=False)
    Path("schema.json").write_text(json.dumps(SCHEMA))
    said = one_error_line(
        run("sparse", "people.csv", "--schema", "schema.json", "--range", "age:0:90", "--epsilon", "1")
    )
    assert "--range and --schema" in said
    for command in (SHARING, CONSENSUS):
        Path("schema.json").write_text(json.dumps({**SCHEMA, "adjacency": "add-remove"}))
        name, *options = command
        line = one_error_line(run(name, "people.csv", *options, "--schema", "schema.json", "--epsilon", "1"))
        assert "adjacency='add-remove'" in line


def test_commands_spend_from_one_file_and_stop_before_they_read_a_row(run: Run) -> None:
    budget = Budget(3.5, 1e-6, "budget.json")
    more = ("--no-crosscheck", "--no-report", "--budget", "budget.json")
    told(run, people(FIRST["one class"]), {**SCHEMA, "rows": 60}, SPARSE, *more)
    assert [one.step for one in budget.ledger] == ["ISTDP, istdp"]
    Path("people.csv").unlink()  # nobody looks for it
    for name, *options in (SPARSE, SHARING, CONSENSUS):
        chosen = ("--schema", "schema.json", "--epsilon", "3", *more)
        assert "does not hold" in one_error_line(run(name, "people.csv", *options, *chosen))
    assert len(budget.ledger) == 1


@pytest.mark.parametrize("command", [SPARSE, CONSENSUS, SHARING, PURE], ids=lambda one: " ".join(one[:3]))
def test_a_budget_covers_the_rows_held_out_as_well(run: Run, command: tuple[str, ...]) -> None:
    """Whichever row is replaced, learned from or held out: with a budget nothing that is said moves by it."""
    schema, said = {**SCHEMA, "rows": 60}, []
    more = ("--no-crosscheck", "--no-report", "--test-fraction", "0.5", "--budget", "budget.json")
    for label in ("high", "low"):
        table = people(FIRST["one class"])
        table.iloc[HELD_OUT] = [99, "clerk", 1, label]
        Path("budget.json").unlink(missing_ok=True)
        budget = Budget(3.5, 1e-6, "budget.json")
        said.append(told(run, table, schema, command, *more))
        assert len(budget.ledger) == 1  # the rows held out are others than those of the fit: nothing is added
    assert said[0] == said[1]
    shown = "were released with noise" if command in (SPARSE, CONSENSUS) else "they were left out"
    assert shown in " ".join(said[0][1].split())


def test_without_a_budget_scores_are_those_of_the_rows_and_said_to_be_uncovered(run: Run) -> None:
    more = ("--no-crosscheck", "--no-report", "--test-fraction", "0.5")
    said = []
    for label in ("high", "low"):
        table = people(FIRST["one class"])
        table.iloc[HELD_OUT] = [99, "clerk", 1, label]
        said.append(told(run, table, {**SCHEMA, "rows": 60}, SPARSE, *more))
    assert said[0][3]["scores.csv"] != said[1][3]["scores.csv"]
    assert "does not cover those" in " ".join(said[0][1].split())
