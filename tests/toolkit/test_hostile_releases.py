"""Recipes, noise in tables and bundles under random options and damage: an answer or a typed error, never a bug."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import cvxpriv as cpv
from cvxpriv.cli import main
from tests.toolkit.hostile_values import fault, values

FAST, MANY = 25, 2000
"""How many cases of each kind a fast test tries, and the slow one."""
MECHANISM = cpv.Mechanism(
    [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.1, 0.7], [0.3, 0.3, 0.4]],
    cpv.Alphabet(("age", "sex"), (("old", "F"), ("old", "M"), ("young", "F"), ("young", "M"))),
)
PEOPLE = pd.DataFrame(list(MECHANISM.inputs.symbols) * 12, columns=list(MECHANISM.inputs.columns))
TEXTS = (
    "quantiles:3",
    "quantiles:0",
    "quantiles:x",
    "<=8",
    ">=nan",
    "s",
    "x",
    "age",
    "table",
    "drop",
    "\udcff",
    "other",
)
NUMBERS = (0, 1, -1, 3, 0.5, 1e-9, 1e-12, 1e300, 5e-324, 2**63, 10**400, float("nan"), float("inf"), True, "1", None)
PLACES = ("bundle.json", "rows.csv", "manifest.json")


def anything(rng: np.random.Generator) -> Any:
    """Return a hostile value, a number, a text, or a small collection of them."""
    kind = int(rng.integers(5))
    if kind == 0:
        found = values()
        return found[str(rng.choice(list(found)))]
    if kind == 1:
        return NUMBERS[int(rng.integers(len(NUMBERS)))]
    if kind == 2:
        return TEXTS[int(rng.integers(len(TEXTS)))]
    if kind == 3:
        return [anything(rng) for _ in range(int(rng.integers(4)))]
    return {TEXTS[int(rng.integers(len(TEXTS)))]: anything(rng) for _ in range(int(rng.integers(4)))}


def some(rng: np.random.Generator, right: dict[str, Any]) -> dict[str, Any]:
    """Return options, of which most are right and some are anything."""
    return {name: anything(rng) if rng.random() < 0.35 else one for name, one in right.items() if rng.random() < 0.7}


def column(rng: np.random.Generator) -> list[Any]:
    """Return a column of thirty values: numbers, texts, missing or strange ones."""
    kinds: tuple[Callable[[], Any], ...] = (
        lambda: float(rng.normal()),
        lambda: int(rng.integers(5)),
        lambda: "abc"[int(rng.integers(3))],
        lambda: NUMBERS[int(rng.integers(len(NUMBERS)))],
        lambda: TEXTS[int(rng.integers(len(TEXTS)))],
    )
    kind = kinds[int(rng.integers(len(kinds)))]
    return [None if rng.random() < 0.02 else kind() for _ in range(30)]


def of_recipes(rng: np.random.Generator, folder: Path) -> str:
    frame, later = (pd.DataFrame({name: column(rng) for name in ("s", "x", "age")}, dtype=object) for _ in range(2))
    right = {
        "bins": {"x": [0.0, 1.0]},
        "merge": {"s": {"low": "<=1"}},
        "rare": 3,
        "top": {"age": 2},
        "missing": "symbol",
        "columns": ["s", "x", "age"],
    }
    options = some(rng, right)

    def prepared() -> None:
        made = cpv.prepare(frame, **options)
        made.recipe.apply(later)

    return fault(prepared)


def of_noise(rng: np.random.Generator, folder: Path) -> str:
    counts = rng.integers(1, 30, (2, 3))
    table = cpv.JointTable.from_counts(counts, ["a", "b"], ["u", "v", "w"])
    right = {"domain": {"S": ["a", "b"], "X": ["u", "v", "w", "z"]}, "adjacency": "replace-one", "delta": 1e-6}
    options = {"domain": "table", **some(rng, {**right, "noise_seed": 3, "budget": None})}
    epsilon = anything(rng) if rng.random() < 0.4 else float(10.0 ** rng.uniform(-10, 6))

    def noisy() -> None:
        made = cpv.private_table(table, epsilon, **options)
        cpv.disclosure(made, np.full((len(made.public), 2), 0.5), bootstrap=5)

    return fault(noisy)


def of_commands(rng: np.random.Generator, folder: Path) -> str:
    """Design and release in one command: with noise, with a target of any kind, and from damaged records."""
    text = PEOPLE.to_csv(index=False)
    if rng.random() < 0.3:
        text = damaged(text.encode(), rng).decode("utf-8", "surrogateescape")
    (folder / "people.csv").write_bytes(text.encode("utf-8", "surrogateescape"))
    given = ["funnel", "people.csv", "--private", "sex", "--public", "age", "--starts", "1", "--max-iter", "9"]
    given += ["--bootstrap", "0", "--no-crosscheck", "--no-report", "--out", "home"]
    targets = ("b.zip", "b", "b/", "b.csv", "people.csv", "home", "", "\0", "\udcff.zip", "no/such/b.zip", "b.xyz")
    if rng.random() < 0.6:
        given += ["--release", str(rng.choice(targets))]
    if rng.random() < 0.7:
        given += ["--table-epsilon", str(rng.choice(["1", "0.01", "1e-9", "1e-12", "1e300", "nan", "0", "-1", "x"]))]
        domains = ("table", "sex=F,M", "age=old,young", "sex=F", "sex=", "=", "age=old,old", "no=1", "", "\udcff=1")
        given += [part for one in rng.choice(domains, int(rng.integers(4))) for part in ("--domain", str(one))]
    for name, texts in {"--table-delta": ("1e-6", "1", "nan"), "--adjacency": ("add-remove", "none")}.items():
        given += [name, str(rng.choice(texts))] if rng.random() < 0.3 else []
    result = CliRunner().invoke(main, [*given, "--json"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return f"{type(result.exception).__name__} {str(result.exception)[:200]}"
    bug = "(a bug" in result.stderr or result.exit_code not in (0, 2, 3) or not json.loads(result.stdout)
    return f"{given}: {result.stderr[-300:]}" if bug else ""


def of_bundles(rng: np.random.Generator, folder: Path) -> str:
    """Damage a bundle; half of the time the manifest is made to fit, as a forger would."""
    MECHANISM.bundle(PEOPLE, folder / "b", matrix=bool(rng.random() < 0.5), seed=1)
    files = {name: (folder / "b" / name).read_bytes() for name in PLACES}
    name = PLACES[int(rng.integers(3))] if rng.random() < 0.4 else "bundle.json"
    if name == "bundle.json" and rng.random() < 0.8:
        document = json.loads(files[name])
        forge(document, rng)
        files[name] = json.dumps(document).encode()
    else:
        files[name] = damaged(files[name], rng)
    if rng.random() < 0.7 and name != "manifest.json":
        manifest = json.loads(files["manifest.json"])
        manifest["sha256"] |= {one: hashlib.sha256(files[one]).hexdigest() for one in PLACES[:2]}
        files["manifest.json"] = json.dumps(manifest).encode()
    if rng.random() < 0.5:
        where = folder / "b"
        for one, data in files.items():
            (where / one).write_bytes(data)
    else:
        where, packed = folder / "b.zip", io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for one, data in files.items():
                archive.writestr(one, data)
        where.write_bytes(damaged(packed.getvalue(), rng) if rng.random() < 0.3 else packed.getvalue())

    def read() -> None:
        decoded = cpv.decode(where)
        found = decoded.frequencies(*decoded.bundle.inputs.columns[:1])
        assert found["estimate"].between(-1e-9, 1 + 1e-9).all(), found
        assert repr(decoded)
        assert decoded.notes

    return fault(read)


def forge(document: dict[str, Any], rng: np.random.Generator) -> None:
    """Replace, take away or repeat a value somewhere in a document."""
    holder: Any = document
    while True:
        places = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        place = places[int(rng.integers(len(places)))]
        inner = holder[place]
        if not isinstance(inner, (dict, list)) or not inner or rng.random() < 0.35:
            break
        holder = inner
    kind = int(rng.integers(4))
    if kind == 0:
        del holder[place]
    elif kind == 1 and isinstance(holder, list):
        holder.append(inner)
    else:
        told = (None, True, "", "\ud800", "x", -1, 0, 0.5, 2, 1e300, float("nan"), float("inf"), [], {}, [[]], [None])
        holder[place] = told[int(rng.integers(len(told)))]


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """Return bytes with a few changed, cut off, or written twice."""
    kind, place = int(rng.integers(4)), int(rng.integers(max(len(data), 1)))
    if kind == 0:
        return data[:place]
    if kind == 1:
        return data[:place] + data[place // 2 :]
    changed = bytearray(data)
    for spot in rng.integers(0, max(len(data), 1), 3 if kind == 2 else 1):
        if changed:
            changed[int(spot)] = int(rng.integers(256))
    return bytes(changed)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", [of_recipes, of_noise, of_commands, of_bundles])
@pytest.mark.parametrize("many", [FAST, pytest.param(MANY, marks=pytest.mark.slow)])
def test_every_case_ends_with_an_answer_or_a_typed_error(
    case: Callable[[np.random.Generator, Path], str],
    many: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    found = {}
    for number in range(many):
        if said := case(np.random.default_rng([many, number]), tmp_path):
            found[number] = said
    assert not found, f"{len(found)} of {many}: {list(found.items())[:5]}"
