"""Tables as people have them, made here: from the file's bytes to a mechanism and a release, in one command each."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
import pytest

import cvxpriv as cpv
from cvxpriv.cli import main
from cvxpriv.models import PrivacyFunnel
from cvxpriv.tables.frames import read_table

from .conftest import Run, one_error_line

QUICK = ("--no-report", "--bootstrap", "0", "--no-crosscheck")


@dataclass(frozen=True)
class Raw:
    """A file's name and its bytes, the options that make a mechanism of it, and what the symbols are then.

    The command without ``needed`` is refused with ``refusal``.
    """

    name: str
    made: Callable[[np.random.Generator], bytes]
    options: tuple[str, ...]
    labels: dict[str, set[str]]
    needed: tuple[str, ...] = ()
    refusal: str = ""
    dropped: int = 0
    warning: str = ""


def _lines(head: str, rows: list[list[object]], between: str = ",", end: str = "\n") -> str:
    return end.join([head, *(between.join(map(str, row)) for row in rows)]) + end


def penguins(draw: np.random.Generator) -> bytes:
    rows: list[list[object]] = []
    for i in range(240):
        kind = int(draw.integers(3))
        flipper = round(float(draw.normal((190, 196, 217)[kind], 6)), 1)
        sex = "NA" if i % 30 == 4 else ("male", "female")[int(draw.integers(2))]
        island = ("Torgersen", "Dream", "Biscoe")[kind]
        rows.append([("Adelie", "Chinstrap", "Gentoo")[kind], island, flipper, sex])
    return _lines("species,island,flipper_mm,sex", rows).encode()


def weather(draw: np.random.Generator) -> bytes:
    rows: list[list[object]] = []
    for i in range(365):
        warm = 12 + 10 * float(np.sin(i / 58.0)) + float(draw.normal(0, 3))
        rain = max(0.0, float(draw.normal(1, 3)))
        rows.append([f"2025-01-01T{i:03d}", round(warm, 1), round(rain, 1), ("rain" if rain > 2 else "dry")])
    return _lines("time\ttemperature\train\tsky", rows, "\t", "\r\n").encode("utf-8-sig")


def cars(draw: np.random.Generator) -> bytes:
    makers = ["Audi", "BMW", "Fiat", "Ford", *(f"rare{i}" for i in range(12))]
    weights = np.array([60.0, 50, 40, 40, *([1] * 12)])
    rows: list[list[object]] = []
    for maker in draw.choice(makers, 300, p=weights / weights.sum()):
        power = int(draw.integers(50, 300))
        rows.append([maker, power, "yes" if power + draw.normal(0, 40) > 160 else "no"])
    return _lines("maker,horse power,fast", rows).encode("utf-16")


def survey(draw: np.random.Generator) -> bytes:
    rows: list[list[object]] = []
    for _ in range(800):
        school = int(draw.integers(4, 17))
        job = ("Bäcker", "Schreiner", "Ärztin")[min(2, max(0, (school - 4 + int(draw.integers(-3, 4))) // 5))]
        tall = f"{draw.normal(172, 9):.1f}".replace(".", ",")
        rows.append([school, tall, job, ("ja", "nein")[int(draw.random() < 0.3 + 0.03 * school)]])
    return _lines("Schuljahre;Größe;Beruf;wählt", rows, ";").encode("latin-1")


def hospital(draw: np.random.Generator) -> bytes:
    rows: list[list[object]] = []
    for i in range(320):
        age = int(draw.integers(18, 95))
        ill = int(draw.random() < age / 130)
        lab = "" if i % 40 == 9 else round(float(draw.lognormal(0.2 + 0.4 * ill, 0.4)), 2)
        rows.append([f"P{i:05d}", age, "FM"[int(draw.integers(2))], lab, ("no", "yes")[ill]])
    return _lines("patient,age,sex,creatinine,died", rows).encode()


MERGES = ("--merge", "Schuljahre<=8=wenig", "--merge", "Schuljahre>8=viel")
POWERS = {"below 100", "100 to 179", "180 and above"}
AGES = {"below 40", "40 to 64", "65 and above"}
TABLES = [
    Raw(
        "penguins.csv",
        penguins,
        ("--private", "sex,island", "--public", "species,flipper_mm", "--bins", "flipper_mm=quantiles:3"),
        {"species": {"Adelie", "Chinstrap", "Gentoo"}},
        ("--missing", "drop"),
        "8 missing values in 240 rows",
    ),
    Raw(
        "weather.tsv",
        weather,
        ("--private", "sky", "--public", "temperature"),
        {"temperature": {"below 5", "5 to below 12", "12 to below 18", "18 and above"}},
        ("--bins", "temperature=5,12,18"),
        "column 'temperature' has",
    ),
    Raw(
        "cars.csv",
        cars,
        ("--private", "fast", "--public", "maker,horse power", "--bins", "horse power=100,180", "--rare", "maker=8"),
        {
            "maker": {"Audi", "BMW", "Fiat", "Ford", "other"},
            "horse power": {"below 100", "100 to 179", "180 and above"},
        },
    ),
    Raw(
        "survey.csv",
        survey,
        ("--private", "wählt", "--public", "Schuljahre,Beruf,Größe", *MERGES, "--bins", "Größe=170"),
        {
            "Schuljahre": {"viel", "wenig"},
            "Beruf": {"Bäcker", "Schreiner", "Ärztin"},
            "Größe": {"below 170", "170 and above"},
        },
        warning="no UTF-8 and was read as cp1252",
    ),
    Raw(
        "hospital.csv",
        hospital,
        ("--private", "died", "--public", "age,sex,creatinine", "--bins", "age=40,65", "--bins", "creatinine=1.2,2"),
        {"age": AGES, "creatinine": {"below 1.2", "1.2 to below 2", "2 and above"}},
        ("--missing", "drop"),
        "'creatinine' has 8 missing values in 320 rows",
        dropped=8,
    ),
]


@pytest.mark.parametrize("raw", TABLES, ids=[raw.name for raw in TABLES])
def test_from_a_raw_file_to_a_release_in_one_command_each(run: Run, tmp_path: Path, raw: Raw) -> None:
    (tmp_path / raw.name).write_bytes(raw.made(np.random.default_rng(11)))
    if raw.refusal:
        assert raw.refusal in one_error_line(run("funnel", raw.name, *raw.options, *QUICK))
    made = run("funnel", raw.name, *raw.options, *raw.needed, *QUICK, "--release", "bundle.zip", "--json")
    assert made.exit_code == 0, made.stderr
    assert made.stderr.count(raw.warning) == 1 or not raw.warning
    assert "leakage is not estimable" not in made.stderr
    document = json.loads(Path("out/mechanism.json").read_text(encoding="utf-8"))
    for column, labels in raw.labels.items():
        place = document["columns"].index(column)
        assert {symbol[place] for symbol in document["symbols"]} == labels
    told = json.loads(made.stdout)["release"]
    assert (told["dropped"], told["files"]) == (raw.dropped, ["bundle.zip"])
    shutil.rmtree("out")
    Path(raw.name).unlink()
    decoded = cpv.decode("bundle.zip")  # a recipient has nothing else
    assert decoded.bundle.counts.sum() == told["released"] == told["rows"] - raw.dropped
    for column, labels in raw.labels.items():
        found = decoded.frequencies(column)["estimate"]
        assert set(found.index) == labels
        assert found.sum() == pytest.approx(1)


def test_release_is_refused_where_nothing_can_be_released(run: Run, counts: str, people: str) -> None:
    columns = ("--private", "income", "--public", "age", "--release")
    assert "no records" in one_error_line(run("funnel", counts, "--count", "count", *columns, "b.zip"))
    assert "no records" in one_error_line(run("funnel", "heart-failure", "--release", "b.zip"))
    assert "is the file" in one_error_line(run("funnel", people, *columns, people))
    assert "stays at home" in one_error_line(run("funnel", people, *columns, "out"))
    assert not Path("out").exists()


def test_the_sizes_come_before_the_search(
    people: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    # The real descriptor: what is printed while solvers are silent would be lost.
    def searching(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(PrivacyFunnel, "solve", searching)
    with pytest.raises((KeyboardInterrupt, SystemExit, click.Abort)):
        main(["funnel", people, "--private", "income", "--public", "age", "--rate", "0.5", *QUICK])
    assert capfd.readouterr().out.startswith("60 records for 2 x 3 cells, 10.00 a cell; the work takes at most about")


def test_nothing_is_released_by_a_mechanism_that_is_not_finished(run: Run, people: str) -> None:
    columns = ("--private", "income", "--public", "age", "--rate", "0.5", "--method", "aem", "--max-iter", "1")
    made = run("funnel", people, *columns, *QUICK, "--release", "b.zip")
    assert made.exit_code == 3, made.stdout
    assert "no row was released" in made.stderr
    assert not Path("b.zip").exists()


def test_a_spreadsheet_goes_in_and_comes_out(run: Run, mechanism: str, people: str) -> None:
    pytest.importorskip("openpyxl")
    read_table(people).to_excel("people.xlsx", index=False)
    assert run("release", mechanism, "people.xlsx", "--out", "released.xlsx", "--keep", "id", "--yes").exit_code == 0
    assert Path("released.xlsx").read_bytes()[:2] == b"PK"
    assert list(read_table("released.xlsx")) == ["id", "released"]
    assert "ends in neither of" in one_error_line(run("release", mechanism, people, "--out", "released.ods"))
