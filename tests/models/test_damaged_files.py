"""Saved files of every kind, forged or torn: a typed error that can be shown, or an object whose numbers hold."""

from __future__ import annotations

import copy
import hashlib
import json
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import cvxpy as cp
import networkx as nx
import numpy as np
import pandas as pd
import pytest

import cvxpriv as cpv
from cvxpriv.bounds.certificate import Certificate
from cvxpriv.bounds.service_certificate import ServiceCertificate
from cvxpriv.cli.members import MembersFile
from cvxpriv.cli.sharing_parties import PARTIES
from cvxpriv.constraints import local_differential_privacy
from cvxpriv.distributed.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from cvxpriv.errors import LONGEST_MESSAGE, CvxprivError
from cvxpriv.models import ISTDP, ADMMSharing, InferenceAsService, PrivacyFunnel, RecycledADMM
from cvxpriv.privacy import Budget, Release, account_ledger, ledger_document, ledger_of
from cvxpriv.reports.files import read_document
from cvxpriv.reports.text import text_of
from cvxpriv.runs.sweep_checkpoint import opened
from cvxpriv.tables.recipe import Recipe
from cvxpriv.tables.steps import Bins, Kept

Rng = np.random.Generator
FAST, MANY = 300, 100_000
"""How many files `make test` reads, and the slow test."""
DEAR, SHARE = ("inference", "constrained", "AlternationRun", "ConvexConcaveRun"), 8
"""Kinds whose reading takes cone programs, and how many files of every other kind there are to one of these."""
TABLE = cpv.JointTable.from_counts([[12, 3, 5], [1, 8, 6], [2, 2, 9]])
PEOPLE = pd.DataFrame({"smokes": [0, 1] * 40})
SCHEMA = cpv.PublicSchema(classes=("no", "yes"), ranges=(-0.5, 0.5), columns=("a", "b", "c"), rows=30)
NEWS: list[Any] = [
    *(
        float("nan"),
        float("inf"),
        -float("inf"),
        None,
        "x",
        "",
        -1,
        0,
        1,
        2**63,
        [],
        {},
        [[1.0]],
        1e308,
        -1e308,
        5e-324,
    ),
    *(True, False, 10**400, "\x1b[2J", "a" * 5000, "\ud800", [None], {"x": 1}, "1", "nan", [[]], -0.0, 1.5, "\0"),
]


def paths(document: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a document."""
    inner = (
        document.items() if isinstance(document, dict) else enumerate(document if isinstance(document, list) else ())
    )
    for key, value in inner:
        yield (*above, key)
        yield from paths(value, (*above, key))


def forged(document: dict[str, Any], rng: Rng) -> dict[str, Any]:
    """One to three values of a document taken out, repeated, renamed, swapped, or replaced."""
    result = copy.deepcopy(document)
    for _ in range(int(rng.integers(1, 4))):
        found = list(paths(result))
        if not found:
            break
        *above, last = found[rng.integers(len(found))]
        holder: Any = result
        for key in above:
            holder = holder[key]
        value, kind = holder[last], int(rng.integers(8))
        if kind == 0:
            del holder[last]
        elif kind == 1 and isinstance(holder, list):
            holder.insert(last, copy.deepcopy(value))
        elif kind == 2 and isinstance(holder, dict):
            holder["stray"] = holder.pop(last)
        elif kind == 3:
            other = next(paths(holder))[0]
            holder[last], holder[other] = holder[other], value
        elif kind == 4 and isinstance(value, float):
            holder[last] = (value * 1.01, -value, value + 1e-3, value * 1e9)[rng.integers(4)]
        else:
            holder[last] = copy.deepcopy(NEWS[rng.integers(len(NEWS))])
    return result


def sealed(document: dict[str, Any]) -> bytes:
    """The file of a document, with the hash that belongs to it where its kind has one."""
    if "origin" in document and "sha256" in document:
        del document["sha256"]
        document["sha256"] = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    return json.dumps(document).encode()


def torn(data: bytes, rng: Rng) -> bytes:
    """Bytes cut off, turned, put in, left out, repeated."""
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        place, kind = int(rng.integers(len(out) + 1)), int(rng.integers(6))
        if kind == 0:
            del out[place:]
        elif kind == 1:
            out[place : place + 1] = bytes([int(rng.integers(256))])
        elif kind == 2:
            out[place:place] = rng.integers(0, 256, 9, dtype=np.uint8).tobytes()
        elif kind == 3:
            del out[place : place + int(rng.integers(1, 50))]
        elif kind == 4:
            out += out[place : place + 1000]
        else:
            out[place : place + 1] = rng.choice(list(b'"{}[]0,:-9eE\\n.')).astype(np.uint8).tobytes()
    return bytes(out)


# -- kinds of files, and what is done with one that was read


def of_run(path: Path) -> None:
    run = cpv.load(path)
    if len(path.read_bytes()) % 8 == 0:  # the facts take a hundred times as long as reading
        assert text_of(run.facts)
        assert repr(run)
    if isinstance(leakage := getattr(run, "leakage", None), float):
        assert np.isfinite(leakage)
        assert abs(run.mechanism.sum(axis=1) - 1.0).max() < 1e-9
        proved = run.gap is not None and run.gap <= run.tol  # whatever multipliers the file holds
        assert proved or not run.converged or run.kkt.largest < 1e-3
    for name in ("coefficients", "parameters"):
        for values in v if isinstance(v := getattr(run, name, ()), (list, tuple)) else (v,):
            assert np.isfinite(values).all()
    if hasattr(run, "accounting"):
        assert 0.0 <= run.accounting.epsilon < np.inf
        account_ledger(run.ledger, run.accounting.delta or None, neighbours="")


def of_mechanism(path: Path) -> None:
    read = cpv.Mechanism.load(path)
    assert abs(read.matrix.sum(axis=1) - 1.0).max() < 1e-9
    assert (read.matrix >= 0.0).all()
    assert repr(read)


def of_bundle(path: Path) -> None:
    (path.parent / "b" / "bundle.json").write_bytes(path.read_bytes())
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    manifest = json.loads((path.parent / "b" / "manifest.json").read_text())
    (path.parent / "b" / "manifest.json").write_text(
        json.dumps({**manifest, "sha256": {**manifest["sha256"], "bundle.json": digest}})
    )
    found = cpv.decode(path.parent / "b")
    assert found.notes
    assert found.frequencies()["estimate"].between(0.0, 1.0).all()


def of_certificate(kind: Any) -> Callable[[Path], None]:
    def read(path: Path) -> None:
        certificate = kind.load(path)
        assert (
            certificate.verify(None if certificate.table is not None else TABLE.probabilities).bound
            <= certificate.bound + 1e-9
        )

    return read


def of_budget(path: Path) -> None:
    budget = Budget.open(path)
    assert 0.0 <= budget.left <= budget.epsilon * (1.0 + 1e-9)
    before = len(budget.ledger)
    budget.spend([Release(epsilon=1e-4)])
    assert len(budget.ledger) == before + 1


def of_ledger(path: Path) -> None:
    assert account_ledger(ledger_of(read_document(path, "a ledger").get("ledger")), 1e-6, neighbours="").epsilon >= 0.0


def of_checkpoint(path: Path) -> None:
    found = read_checkpoint(path)
    assert found is not None
    assert found.passes >= 0
    assert all(isinstance(one, Release) for one in ledger_of(found.ledger))
    assert isinstance(dict(found.terms), dict)


def of_sweep(path: Path) -> None:
    with opened(path) as checkpoint:
        assert all(isinstance(row, dict) for row in checkpoint.rows)


def of_schema(path: Path) -> None:
    schema = cpv.PublicSchema.load(path)
    assert repr(schema)
    schema.row_bound()


def of_recipe(path: Path) -> None:
    Recipe.of(read_document(path, "a recipe")).apply(pd.DataFrame({"age": ["20", "30"], "job": ["a", "b"]}))


def of_members(path: Path) -> None:
    found = MembersFile.load(str(path), PARTIES, "cvxpriv sharing")
    assert found.path("keys")


def of_problem(kind: Any) -> Callable[[Path], None]:
    def read(path: Path) -> None:
        found = kind.load(path, problem(kind))
        assert not found.converged or np.isfinite(found.objective)
        assert repr(found)

    return read


def problem(kind: Any) -> cp.Problem:
    if kind is cpv.AlternationRun:
        w, h = cp.Variable((3, 1), name="w"), cp.Variable((1, 2), name="h")
        return cp.Problem(cp.Minimize(cp.sum_squares(np.ones((3, 2)) - w @ h) + 0.1 * cp.sum_squares(w)))
    x = cp.Variable(2, name="x")
    return cp.Problem(cp.Minimize(cp.sum(cp.sqrt(x + 1.0))), [x >= 0.0, cp.sum(x) >= 1.0])


@cache
def kinds() -> dict[str, tuple[bytes, Callable[[Path], None]]]:
    """A file of each kind, and its reader."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-0.5, 0.5, size=(30, 3))
    y = np.where(x[:, 0] + 0.2 * rng.normal(size=30) > 0.0, 1, -1)
    named = np.where(y > 0, "yes", "no")
    funnel, service = PrivacyFunnel(TABLE, 0.8), InferenceAsService(TABLE, 0.5)
    graph = RecycledADMM(nx.path_graph(3), [(x[k::3], y[k::3]) for k in range(3)], reg=5.0)
    parts, sparse = ADMMSharing([x[:, :1], x[:, 1:]], y, lam=5.0), ISTDP(x, named, penalty="l2:0.5", schema=SCHEMA)
    spent: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-6}
    runs: dict[str, Any] = {
        "funnel": funnel.solve(),
        "inference": service.solve(),
        "constrained": service.constrain("ldp", local_differential_privacy(2.0)).solve(starts=1),
        "consensus": graph.solve(),
        "pure consensus": graph.solve_private(epsilon=9.0, max_iter=2),
        "Gaussian consensus": graph.solve_private(**spent, max_iter=2),
        "sharing": parts.solve(),
        "private sharing": parts.solve_private(**spent, row_bound=1.0, labels="held"),
        "sparse": ISTDP(x, y, penalty="mcp:0.05:3").solve(),
        "private sparse": sparse.solve_private(**spent, max_iter=3),
        "pure sparse": sparse.solve_private(epsilon=2.0, method="objective-perturbation"),
    }
    ledger = runs["private sharing"].ledger
    recipe = Recipe((Bins("age", (18, 65)), Kept("job", ("a",))))
    members = dict.fromkeys((*PARTIES.texts, "keys", "listen"), "x") | {PARTIES.members: ["a", "b"], "wait": 5.0}
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        bounds = [one.bound().certificate for one in (funnel, service)]
        coin = cpv.Mechanism([[0.9, 0.1], [0.2, 0.8]], cpv.Alphabet.numbered("smokes", 2))
        coin.bundle(PEOPLE, at / "b", matrix=True)
        coin.save(at / "mechanism.json")
        Budget(3.0, 1e-6, at / "budget.json").spend(ledger[1:3])
        write_checkpoint(
            at / "c.bin", Checkpoint("run", 3, {"x": np.ones(4)}, ledger_document(ledger), {"a": 1}), durable=True
        )
        cpv.sweep(PrivacyFunnel, TABLE, rate=[0.5, 0.8], starts=[1], checkpoint=at / "s.jsonl")
        found = {name: (run.save(at / "run.json").read_bytes(), of_run) for name, run in runs.items()}
        for kind, solve in ((cpv.AlternationRun, cpv.alternate), (cpv.ConvexConcaveRun, cpv.convex_concave)):
            found[kind.__name__] = (
                solve(problem(kind), seed=0, max_iter=5).save(at / "run.json").read_bytes(),
                of_problem(kind),
            )
        for name, kind, one in zip(
            ("funnel's bound", "service's bound"), (Certificate, ServiceCertificate), bounds, strict=True
        ):
            found[name] = (one.save(at / "bound.json").read_bytes(), of_certificate(kind))
        return found | {
            "mechanism": ((at / "mechanism.json").read_bytes(), of_mechanism),
            "bundle": ((at / "b" / "bundle.json").read_bytes(), of_bundle),
            "budget": ((at / "budget.json").read_bytes(), of_budget),
            "ledger": (json.dumps({"ledger": ledger_document(ledger)}).encode(), of_ledger),
            "checkpoint of a party": ((at / "c.bin").read_bytes(), of_checkpoint),
            "checkpoint of a sweep": ((at / "s.jsonl").read_bytes(), of_sweep),
            "schema": (json.dumps(SCHEMA.document()).encode(), of_schema),
            "recipe": (json.dumps(recipe.document()).encode(), of_recipe),
            "members": (json.dumps(members).encode(), of_members),
        }


def changed(name: str, data: bytes, rng: Rng) -> bytes:
    """Another file of a kind: torn, or with changed values and a hash that belongs to them."""
    if rng.random() < 0.25:
        return torn(data, rng)
    if name == "checkpoint of a party":
        head, _, rest = data.partition(b"\n")
        return sealed(forged(json.loads(head), rng)) + b"\n" + rest
    if name == "checkpoint of a sweep":
        first, *others = data.splitlines()
        row = {key: value for key, value in forged(json.loads(first), rng).items() if key != "check"}
        check = hashlib.sha256(json.dumps(row, sort_keys=True).encode()).hexdigest()[:16]
        return b"\n".join([json.dumps({**row, "check": check}).encode(), *others, b""])
    return sealed(forged(json.loads(data), rng))


def fault(read: Callable[[Path], None], path: Path) -> str:
    """Return what is wrong with how a file is read; "" where it is refused in one sentence, or holds what it says."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read(path)
    except CvxprivError as error:
        said = str(error)
        return "" if said and len(said) <= LONGEST_MESSAGE and "\x1b" not in said else f"message {said[:80]!r}"
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {str(error)[:80]!r} at {Path(place.filename).name}:{place.lineno}"
    return ""


def faults(count: int, seed: int, folder: Path) -> dict[str, str]:
    rng, found = np.random.default_rng(seed), {}
    coin = cpv.Mechanism([[0.9, 0.1], [0.2, 0.8]], cpv.Alphabet.numbered("smokes", 2))
    coin.bundle(PEOPLE, folder / "b", matrix=True)
    turns = [name for share in range(SHARE) for name in kinds() if share == 0 or name not in DEAR]
    for number in range(count):
        name = turns[number % len(turns)]
        data, read = kinds()[name]
        path = folder / "file.json"
        path.write_bytes(changed(name, data, rng))
        if said := fault(read, path):
            found.setdefault(f"{name}: {said}", path.read_text(errors="replace"))
    return found


@pytest.mark.filterwarnings("ignore:privacy is likely to drown")
def test_files_that_nobody_touched_are_read(tmp_path: Path) -> None:
    cpv.Mechanism([[0.9, 0.1], [0.2, 0.8]], cpv.Alphabet.numbered("smokes", 2)).bundle(PEOPLE, tmp_path / "b")
    for data, read in kinds().values():
        (tmp_path / "file.json").write_bytes(data)
        read(tmp_path / "file.json")


def test_a_run_without_a_column_of_its_starts_and_a_recipe_of_half_a_pair_are_refused(tmp_path: Path) -> None:
    for name in ("funnel", "inference"):
        data, _ = kinds()[name]
        for column in json.loads(data)["starts"]["columns"]:
            document = json.loads(data)
            del document["starts"]["columns"][column]
            (tmp_path / "file.json").write_bytes(sealed(document))
            assert fault(lambda path: text_of(cpv.load(path).facts), tmp_path / "file.json") == "", (name, column)
    (tmp_path / "file.json").write_bytes(kinds()["recipe"][0].replace(b'"job"', b'"\\ud800"'))
    with pytest.raises(CvxprivError, match="is no column of the table"):
        of_recipe(tmp_path / "file.json")


def test_a_run_at_another_posterior_than_its_mechanism_s_is_refused_or_has_not_converged(tmp_path: Path) -> None:
    refused = 0
    for changed in (float("inf"), float("nan"), -float("inf"), 0.9, 0.0):
        document = json.loads(kinds()["constrained"][0])
        document["state"]["posterior"][0][2] = changed
        (tmp_path / "file.json").write_bytes(sealed(document))
        try:
            assert not cpv.load(tmp_path / "file.json").converged
        except CvxprivError:
            refused += 1
    assert refused >= 3  # what is no number


def test_damaged_files_are_refused_in_a_sentence_or_hold_what_they_say(tmp_path: Path) -> None:
    assert faults(FAST, 0, tmp_path) == {}


@pytest.mark.slow
def test_many_damaged_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = faults(MANY, 1, tmp_path)
    with capsys.disabled():
        sys.stdout.write(f"\n{MANY:,} damaged files\n")
    assert found == {}
