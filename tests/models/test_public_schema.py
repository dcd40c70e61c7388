"""With a schema nothing that a private fit says tells of a row, but for the numbers that it releases with noise.

Fits of neighbours, with the noise held equal, are taken apart: every attribute, the saved file, the text, the warnings
and the errors. What may differ is named, and differs in value alone.
"""

from __future__ import annotations

import dataclasses
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from cvxpriv.errors import DataError, PrivacyError
from cvxpriv.learning.schema import PublicSchema
from cvxpriv.models import ISTDP, ADMMSharing, RecycledADMM
from cvxpriv.numerics.arrays import Array
from cvxpriv.reports.text import text_of

from .taken_apart import Rule, parts_of

RNG = np.random.default_rng(0)
ROWS = RNG.uniform(-0.5, 0.5, size=(50, 4))
LABELS = np.array(["no"] + ["yes"] * 49, dtype=object)
NAMES = tuple("abcd")
BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "noise_seed": 0}
REPLACE = PublicSchema(classes=("no", "yes"), ranges=(-0.5, 0.5), columns=NAMES, rows=50)
REMOVE = PublicSchema(classes=("no", "yes"), ranges=(-0.5, 0.5), columns=NAMES, adjacency="add-remove")
#: What is released with noise, or follows from that: it may differ, in value alone.
RELEASED: Rule = dict.fromkeys(
    (
        *("theta", "parameters", "released", "center", "history", "coefficients", "intercept", "mean", "support"),
        *("coef_", "intercept_", "support_", "node_coef_", "node_intercept_", "last_step"),
        "hidden",  # of each party: it stays with it, and no guarantee covers it
    ),
    lambda value: (type(value).__name__, getattr(value, "dtype", None), list(getattr(value, "columns", []))),
)


def replaced(row: Any, label: Any) -> tuple[Array, Array]:
    """Rows and labels of which the first is another one."""
    x, y = ROWS.astype(object), LABELS.copy()
    x[0], y[0] = row, label
    return x, y


NEIGHBOURS = {
    "one class": replaced(ROWS[1], "yes"),
    "beyond its range": replaced([1e9, -1e300, np.inf, 0.0], "yes"),
    "missing": replaced([np.nan, None, 0.1, 0.1], "no"),
    "no number": replaced(["x", "0.2", 0.1, 0.1], "no"),
    "no such class": replaced(ROWS[1], "perhaps"),
    "no class": replaced(ROWS[1], None),
}


def sparse_run(x: Array, y: Array, schema: PublicSchema, **options: Any) -> Any:
    penalty = "l2:0.5" if "method" in options else "auto"
    return ISTDP(x, y, penalty=penalty, schema=schema).solve_private(**{**BUDGET, **options})


def sharing_run(x: Array, y: Array, schema: PublicSchema, **options: Any) -> Any:
    model = ADMMSharing([x[:, :2], x[:, 2:]], y, lam=5.0, schema=schema)
    return model.solve_private(**{**BUDGET, "labels": "held", "max_iter": 2, **options})


def consensus_run(x: Array, y: Array, schema: PublicSchema, **options: Any) -> Any:
    shards = [(x[node::2], y[node::2]) for node in range(2)]
    return RecycledADMM(nx.path_graph(2), shards, reg=0.3, C=20.0, schema=schema).solve_private(
        **{**BUDGET, "epsilon": 3.0, "max_iter": 2, **options}
    )


def sparse_estimator(x: Array, y: Array, schema: PublicSchema, **options: Any) -> Any:
    estimators = pytest.importorskip("cvxpriv_models")
    return estimators.PrivateSparseLogisticRegression(schema=schema, max_iter=3, **BUDGET, **options).fit(x, y)


def several_classes(x: Array, y: Array, schema: PublicSchema, **options: Any) -> Any:
    estimators = pytest.importorskip("cvxpriv_models")
    three = dataclasses.replace(schema, classes=("no", "yes", "never"))
    weights = np.where(y == "no", 3.0, 1.0)
    model = estimators.PrivateSparseLogisticRegression(schema=three, max_iter=3, **BUDGET, **options)
    return model.fit(x, y, sample_weight=weights)


def regression_estimator(x: Array, y: Array, schema: PublicSchema, **options: Any) -> Any:
    estimators = pytest.importorskip("cvxpriv_models")
    numbers = np.array([{"no": -7.0, "yes": 1.0}.get(one, one) for one in y], dtype=object)
    known = dataclasses.replace(schema, target=(0.0, 2.0))
    return estimators.PrivateSparseRegression(schema=known, max_iter=3, **BUDGET, **options).fit(x, numbers)


def sharing_estimator(x: Array, y: Array, schema: PublicSchema, **options: Any) -> Any:
    estimators = pytest.importorskip("cvxpriv_models")
    chosen = {**BUDGET, "labels": "held", "max_iter": 2, "lam": 5.0, **options}
    return estimators.VerticalLogisticRegression([["a", "b"], ["c", "d"]], schema=schema, **chosen).fit(
        pd.DataFrame(x, columns=list(NAMES)), y
    )


def consensus_estimator(x: Array, y: Array, schema: PublicSchema, **options: Any) -> Any:
    estimators = pytest.importorskip("cvxpriv_models")
    chosen = {**BUDGET, "epsilon": 3.0, "max_iter": 2, "random_state": 0, "reg": 0.3, "C": 20.0, **options}
    return estimators.DecentralizedLogisticRegression(2, schema=schema, **chosen).fit(x, y)


REPLACED: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (sparse_run, {}),
    (sparse_run, {"method": "gradient-descent"}),
    (sparse_run, {"method": "output-perturbation"}),
    (sparse_run, {"method": "objective-perturbation"}),
    (sharing_run, {}),
    (sharing_run, {"adjacency": "party-row"}),
    (consensus_run, {}),
    (consensus_run, {"perturbation": "objective"}),
    (sparse_estimator, {}),
    (several_classes, {}),
    (regression_estimator, {}),
    (regression_estimator, {"loss": "squared"}),
    (sharing_estimator, {}),
    (consensus_estimator, {}),
]
ALONE = (sparse_run, sparse_estimator, several_classes, regression_estimator)
REMOVED = [case for case in REPLACED if case[0] in ALONE]


def named(one: Any) -> str | None:
    return " ".join(map(str, one.values())) if isinstance(one, dict) else getattr(one, "__name__", None)


def told(fit: Callable[..., Any], x: Array, y: Array, schema: PublicSchema, options: dict[str, Any]) -> Any:
    """Everything that a fit says and leaves behind; times are not in it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            run = fit(x, y, schema, **options)
        except Exception as error:  # whatever it is, it must be the same
            return [str(one.message) for one in caught], f"{type(error).__name__}: {error}"
    said = [str(one.message) for one in caught]
    if not dataclasses.is_dataclass(run):
        return said, dict(parts_of(vars(run), RELEASED))
    path = Path("run.json")
    run.save(path)
    facts = run.facts
    sentences = [facts.title, facts.summary, *facts.promises, *facts.messages, text_of(facts).count("\n")]
    options_shown = [(one.name, repr(one.value)) for one in facts.settings]
    saved = {name: value for name, value in json.loads(path.read_text()).items() if name not in ("sha256", "origin")}
    return (
        said,
        dict(parts_of(run, RELEASED)),
        dict(parts_of(saved, RELEASED)),
        sentences,
        options_shown,
        run.accounting.table.to_dict(),
    )


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.grid(every=3)
@pytest.mark.parametrize(("fit", "options"), REPLACED, ids=named)
def test_a_replaced_row_shows_in_released_numbers_alone(fit: Callable[..., Any], options: dict[str, Any]) -> None:
    first = told(fit, ROWS, LABELS, REPLACE, options)
    assert not isinstance(first[-1], str), first[-1]
    for kind, (x, y) in NEIGHBOURS.items():
        assert told(fit, x, y, REPLACE, options) == first, kind


@pytest.mark.parametrize("about", [None, 60])
@pytest.mark.parametrize(("fit", "options"), REMOVED, ids=named)
def test_a_removed_row_shows_in_released_numbers_alone(
    fit: Callable[..., Any], options: dict[str, Any], about: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = dataclasses.replace(REMOVE, rows=about)
    if about is None:  # the count is released: held equal too, as the divisor stands in every line
        from cvxpriv_models.istdp import private
        from cvxpriv_models.istdp.private_options import counted_rows

        def counted(rows: int, budget: float, noise: Any, *, pure: bool) -> Any:
            assert rows in (49, 50)
            return counted_rows(50, budget, noise, pure=pure)

        monkeypatch.setattr(private, "counted_rows", counted)
    first = told(fit, ROWS, LABELS, schema, options)
    assert not isinstance(first[-1], str), first[-1]
    assert told(fit, ROWS[1:], LABELS[1:], schema, options) == first  # without the only "no"
    assert told(fit, ROWS[:49], LABELS[:49], schema, options) == first


@pytest.mark.parametrize(("fit", "options"), REMOVED, ids=named)
def test_no_row_at_all_is_a_table_like_any_other(fit: Callable[..., Any], options: dict[str, Any]) -> None:
    schema = dataclasses.replace(REMOVE, rows=60)
    none, one = (told(fit, ROWS[:count], LABELS[:count], schema, options) for count in (0, 1))
    assert none == one
    assert not isinstance(none[-1], str), none[-1]


@pytest.mark.filterwarnings("ignore:noise_seed makes", "ignore:privacy is likely to drown")
def test_a_count_with_noise_is_in_the_ledger_and_within_the_budget() -> None:
    for method in ("istdp", "output-perturbation", "objective-perturbation"):
        run = sparse_run(ROWS, LABELS, REMOVE, method=method)
        assert run.ledger[0].step == "number of rows"
        assert run.accounting.epsilon == pytest.approx(1.0, rel=1e-8)  # found by bisection
        assert "50" not in repr(run.settings)
    assert repr(ISTDP(ROWS, LABELS, schema=REMOVE)).startswith("ISTDP(private rows x 4 data")


@pytest.mark.filterwarnings("ignore:privacy is likely to drown")
def test_without_a_schema_classes_that_only_labels_tell_are_refused() -> None:
    zeros = np.array([0] + [1] * 49)
    shards = [(ROWS[node::2], zeros[node::2]) for node in range(2)]
    for model, held in (
        (ISTDP(ROWS, zeros), {}),
        (ADMMSharing([ROWS], zeros), {"labels": "held", "row_bound": 1.0}),
        (RecycledADMM(nx.path_graph(2), shards), {}),
    ):
        with pytest.raises(PrivacyError, match="the two classes would be read off the private labels"):
            model.solve_private(**{**BUDGET, "noise_seed": None}, **held)  # type: ignore[attr-defined]
    signs, ones = np.where(zeros == 0, -1, 1), np.ones(50, dtype=int)
    runs = [ISTDP(ROWS, y).solve_private(epsilon=1.0, delta=1e-6).classes for y in (signs, ones)]
    assert runs[0].tolist() == runs[1].tolist() == [-1, 1]
    assert runs[0].dtype == runs[1].dtype


@pytest.mark.filterwarnings("ignore:privacy is likely to drown")
def test_an_estimator_without_a_schema_says_what_it_read_off() -> None:
    estimators = pytest.importorskip("cvxpriv_models")
    with pytest.warns(UserWarning, match="the classes were read off the private rows"):
        estimators.PrivateSparseLogisticRegression(epsilon=1.0).fit(ROWS, LABELS.astype(str))
    with pytest.warns(UserWarning, match="read off"):
        run = estimators.PrivateSparseLogisticRegression(adjacency="add-remove").fit(ROWS, LABELS.astype(str))
    assert "one row added or removed" in run.accounting_.neighbours


def test_beyond_refuse_is_one_sentence_for_every_row() -> None:
    strict = dataclasses.replace(REPLACE, beyond="refuse")
    said = {told(sparse_run, x, y, strict, {})[-1] for name, (x, y) in NEIGHBOURS.items() if name != "one class"}
    assert len(said) == 1
    assert next(iter(said)).startswith("DataError: a row or a label lies outside of the schema")


def test_a_sparse_table_is_brought_within_its_ranges_as_a_dense_one_is() -> None:
    x = ROWS.copy()
    x[x < 0.0] = 0.0
    x[0] = [7.0, np.nan, 0.0, -9.0]
    found = REPLACE.numbers(sp.csr_array(x))
    assert isinstance(found, sp.csr_array)
    np.testing.assert_array_equal(found.toarray(), REPLACE.numbers(x))
    with pytest.raises(PrivacyError, match="a sparse X holds zeros"):
        PublicSchema(ranges=(1.0, 2.0)).numbers(sp.csr_array(x))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"classes": ("a",)}, "are not two labels"),
        ({"classes": ("1", 1.0)}, "are not two labels"),
        ({"ranges": (1.0, 1.0)}, "give two finite numbers"),
        ({"ranges": {"e": (0, 1)}, "columns": NAMES}, "column 'e' is none of columns"),
        ({"columns": "abc"}, "pass the columns' names"),
        ({"rows": 1}, "rows=1 is no number of rows"),
        ({"adjacency": "cell"}, "adjacency='cell'"),
        ({"beyond": "move"}, "beyond='move'"),
    ],
)
def test_what_is_no_schema_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(PrivacyError, match=message):
        PublicSchema(**given)


def test_a_schema_is_read_from_json_and_toml(tmp_path: Path) -> None:
    whole = PublicSchema(
        classes=("no", "yes"),
        ranges={"age": (0, 100)},
        categories={"job": ("clerk", "2")},
        columns=("age", "job"),
        rows=100,
        label="income",
    )
    (tmp_path / "s.json").write_text(json.dumps(whole.document()))
    toml = 'classes = ["no", "yes"]\ncolumns = ["age", "job"]\nrows = 100\nlabel = "income"\n'
    (tmp_path / "s.toml").write_text(toml + '[ranges]\nage = [0, 100]\n[categories]\njob = ["clerk", "2"]\n')
    assert PublicSchema.load(tmp_path / "s.json") == whole == PublicSchema.load(tmp_path / "s.toml")
    (tmp_path / "bad.json").write_text('{"clases": []}')
    with pytest.raises(DataError, match="did you mean 'classes'"):
        PublicSchema.load(tmp_path / "bad.json")
    with pytest.raises(DataError, match="is not the number of rows"):
        ISTDP(ROWS[:49], LABELS[:49], schema=REPLACE)
