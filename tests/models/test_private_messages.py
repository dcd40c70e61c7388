"""What a private fit says when it refuses or warns is the same for neighbours: no number in it comes from the data."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from cvxpriv_models.admm_sharing import mechanism
from cvxpriv_models.istdp import objective_perturbation, output_perturbation
from cvxpriv_models.recycled_admm import newton

from cvxpriv.learning.schema import PublicSchema
from cvxpriv.models import ISTDP, ADMMSharing, RecycledADMM
from cvxpriv.numerics.arrays import Array

RNG = np.random.default_rng(0)
ROWS = RNG.uniform(-0.5, 0.5, size=(60, 4))
LABELS = np.where(ROWS @ [2.0, -1.0, 0.5, 0.0] > 0.0, 1, -1)
BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def sharing(rows: Array, **options: Any) -> Any:
    model = ADMMSharing([rows[:, :2], rows[:, 2:]], LABELS, lam=options.pop("lam", 5.0))
    return model.solve_private(**{**BUDGET, "row_bound": 1.0, **options})


def sparse(rows: Array, **options: Any) -> Any:
    return ISTDP(rows, LABELS, penalty="l2:0.1").solve_private(**{**BUDGET, **options})


def consensus(rows: Array, **options: Any) -> Any:
    shards = [(rows[node::3], LABELS[node::3]) for node in range(3)]
    model = RecycledADMM(nx.path_graph(3), shards, reg=options.pop("reg", 0.3), C=10.0)
    return model.solve_private(**{"epsilon": 4.0, "max_iter": 2, "eta": 1.0, **options})


def said(fit: Callable[..., Any], rows: Array, options: dict[str, Any]) -> list[str]:
    """Every warning and the error of a fit, as text."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fit(rows, **options)
            last = "no error"
        except Exception as error:
            last = f"{type(error).__name__}: {error}"
    return [*(f"{one.category.__name__}: {one.message}" for one in caught), last]


def neighbours(first: float, second: float) -> tuple[Array, Array]:
    """Rows that differ in the first one, whose entries are all the one number or the other."""
    pair = ROWS.copy(), ROWS.copy()
    pair[0][0], pair[1][0] = first, second
    return pair


@pytest.mark.parametrize(
    ("fit", "options"),
    [
        (sharing, {"row_bound": 0.6}),
        (sharing, {"adjacency": "cell", "row_bound": None, "cell_bound": 0.6}),
        (sharing, {"adjacency": "column", "row_bound": None, "column_bound": 0.1}),
        (sharing, {"noise": "printed", "clip_data": True}),
        (sparse, {"method": "printed", "max_iter": 2}),
        (consensus, {"row_bound": 1.0}),
        (consensus, {"row_bound": 1.0, "perturbation": "output"}),
    ],
)
def test_rows_beyond_their_bound_are_refused_in_words_that_do_not_tell_by_how_much(
    fit: Callable[..., Any], options: dict[str, Any]
) -> None:
    first, second = (said(fit, rows, options) for rows in neighbours(0.798221, 0.9131))
    assert first == second
    assert len(first) > 1 or first[0] != "no error"
    assert not any("798" in line or "913" in line for line in (*first, *second))


@pytest.mark.parametrize("entry", [1e200, 1e250])
def test_entries_whose_squares_overflow_are_refused_in_words_that_do_not_tell_them(entry: float) -> None:
    assert said(sharing, neighbours(entry, 0.0)[0], {})[-1].startswith("DataError: parts[0] holds entries above 1e+75,")


def test_a_step_that_is_not_solved_says_so_without_a_number_of_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mechanism, "INEXACT", 0.0)
    monkeypatch.setattr(objective_perturbation, "STEPS", 1)
    monkeypatch.setattr(output_perturbation, "solve_from", lambda *args, **named: SimpleNamespace(converged=False))
    monkeypatch.setattr(newton, "LIMIT", 1)
    cases: list[tuple[Callable[..., Any], dict[str, Any]]] = [
        (sharing, {}),
        (sparse, {"method": "objective-perturbation"}),
        (sparse, {"method": "output-perturbation"}),
        (consensus, {}),
        (consensus, {"perturbation": "output"}),
    ]
    for fit, options in cases:
        first, second = (said(fit, rows, options) for rows in neighbours(0.4, -0.3))
        assert first == second
        assert first[-1].startswith("PrivacyError")


HOSTILE: list[tuple[Any, Any]] = [
    (0.798221e200, 1),
    (-798221.0, 1),
    (np.nan, 1),
    (np.inf, 1),
    ("0.798221x", 1),
    (0.1, 798221),
    (0.1, 0.798221),
    (0.1, "label 798221"),
    (0.1, None),
    (0.1, np.nan),
]


def estimators(schema: PublicSchema | None) -> list[Any]:
    found = pytest.importorskip("cvxpriv_models")
    known: dict[str, Any] = {"schema": schema, "epsilon": 3.0, "delta": 1e-6, "noise_seed": 0}
    return [
        found.PrivateSparseLogisticRegression(max_iter=2, **known),
        found.VerticalLogisticRegression(lam=5.0, row_bound=0.6, labels="held", max_iter=2, **known),
        found.DecentralizedLogisticRegression(2, reg=0.3, max_iter=2, row_bound=0.6, **known),
    ]


@pytest.mark.parametrize("schema", [None, PublicSchema(classes=(-1, 1), ranges=(-0.5, 0.5), columns=4, rows=60)])
def test_no_message_of_a_private_estimator_quotes_a_hostile_row_or_label(schema: PublicSchema | None) -> None:
    for cell, label in HOSTILE:
        x, y = ROWS.astype(object), LABELS.astype(object)
        x[7, 2], y[7] = cell, label
        for estimator in estimators(schema):
            told = said(lambda rows, own=estimator, y=y: own.fit(rows, y), x, {})
            assert not any("798221" in line or "7.98" in line for line in told), told
            if schema is not None:  # each row is brought within it: only the seed and public numbers are named
                assert told[-1] == "no error"
                assert all("noise_seed" in line or "drown the signal" in line for line in told[:-1])


@pytest.mark.parametrize("kind", ["one class", "many classes"])
def test_labels_of_other_than_two_classes_are_not_quoted_by_a_private_estimator(kind: str) -> None:
    y = np.full(60, 798221) if kind == "one class" else 798221 + np.arange(60)
    for estimator in estimators(None):
        told = said(lambda rows, own=estimator: own.fit(rows, y), ROWS, {})
        learns_many = kind == "many classes" and type(estimator).__name__ == "PrivateSparseLogisticRegression"
        assert told[-1].startswith("no error" if learns_many else "DataError: ")
        assert not any("7982" in line for line in told), told


def test_a_fit_without_trouble_says_nothing() -> None:
    for fit, options in ((sharing, {}), (sparse, {"epsilon": 8.0}), (consensus, {})):
        assert said(fit, ROWS, options) == ["no error"]
