"""The stored ledger is the accounting: of every private run of every model, saved and read back, it gives epsilon."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import cvxpriv as cpv
from cvxpriv.errors import PrivacyError
from cvxpriv.models import ISTDP, ADMMSharing, RecycledADMM
from cvxpriv.privacy import Accounting, account_ledger, ledger_of

pytestmark = pytest.mark.filterwarnings("ignore::cvxpriv.privacy.PrivacyWarning")

RNG = np.random.default_rng(0)
ROWS = RNG.uniform(-0.5, 0.5, size=(90, 4))
LABELS = np.where(ROWS @ [2.0, -1.0, 0.5, 0.0] > 0.0, 1, -1)
BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def sharing(**options: Any) -> Any:
    bound = {"replace-one": "row", "party-row": "row", "column": "column", "cell": "cell"}[options["adjacency"]]
    parts = [ROWS[:, :2], ROWS[:, 2:3], ROWS[:, 3:]]
    limit = {f"{bound}_bound": 6.0 if bound == "column" else 1.0}
    return ADMMSharing(parts, LABELS, lam=5.0).solve_private(**BUDGET, max_iter=2, **limit, **options)


def sparse(**options: Any) -> Any:
    method = options["method"]
    many = {"max_iter": 3} if method in ("istdp", "gradient-descent", "printed") else {}
    public = {"public_rows": 100} if options["adjacency"] == "add-remove" else {}
    model = ISTDP(ROWS, LABELS, penalty="l2:0.1")
    return model.solve_private(**BUDGET, **many, **public, **options)


def consensus(**options: Any) -> Any:
    shards = [(ROWS[node::3], LABELS[node::3]) for node in range(3)]
    model = RecycledADMM(nx.path_graph(3), shards, reg=0.3, C=20.0)
    growth = {"growth": 1.2} if options["method"] in ("mr-admm", "m-admm") else {}
    return model.solve_private(max_iter=3, eta=1.0, **growth, **options)


def chosen(**lists: tuple[Any, ...]) -> list[dict[str, Any]]:
    return [dict(zip(lists, values, strict=True)) for values in itertools.product(*lists.values())]


CASES: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    *(
        (sharing, options)
        for options in chosen(
            adjacency=("replace-one", "party-row", "column", "cell"),
            labels=("shared", "held"),
            noise=("gaussian", "printed"),
        )
    ),
    (sharing, {"adjacency": "replace-one", "method": "gauss_seidel"}),
    (sharing, {"adjacency": "replace-one", "method": "proximal_jacobi", "clip": 0.5}),
    *(
        (sparse, options)
        for options in chosen(
            adjacency=("replace-one", "add-remove"),
            method=("istdp", "gradient-descent", "output-perturbation", "objective-perturbation", "printed"),
        )
    ),
    *(
        (consensus, options)
        for options in chosen(
            method=("admm", "r-admm", "mr-admm", "m-admm", "dvp"),
            perturbation=("objective", "output"),
            epsilon=(2.0,),
        )
    ),
    *(
        (consensus, {"method": "r-admm", "alpha": [0.5, 1.0, 2.0], "perturbation": one})
        for one in ("objective", "output")
    ),
    *(
        (consensus, {"method": "mr-admm", "perturbation": one, **BUDGET, "epsilon": 3.0})
        for one in ("objective", "output")
    ),
]


def again(run: Any, entries: Any) -> Accounting:
    """The accounting of nothing but the entries, at the delta at which the run states its own."""
    found: Accounting = run.accounting
    delta = max(claim.delta for claim in found.claims) or None
    return account_ledger(entries, delta, neighbours=found.neighbours, secure=found.secure)


@pytest.mark.parametrize(
    ("fit", "options"),
    CASES,
    ids=lambda one: " ".join(map(str, one.values())) if isinstance(one, dict) else one.__name__,
)
def test_the_saved_ledger_of_a_run_accounts_for_its_epsilon(
    fit: Callable[..., Any], options: dict[str, Any], tmp_path: Path
) -> None:
    run = fit(**options)
    path = run.save(tmp_path / "run.json")
    stored = ledger_of(json.loads(path.read_text())["ledger"])
    assert stored == run.ledger == cpv.load(path).ledger
    found, stated = again(run, stored), run.accounting
    own = len(found.claims)
    assert found.claims == stated.claims[:own]  # a paper's printed claims follow
    assert (found.mu, found.releases) == (stated.mu, stated.releases)
    if "printed" in options.values():
        with pytest.raises(PrivacyError, match="no rule holds"):
            _ = found.epsilon
    else:
        assert (found.epsilon, found.delta) == (stated.epsilon, stated.delta)


@pytest.mark.parametrize("labels", ["shared", "held"])
def test_a_person_over_all_parties_is_touched_by_each_and_one_in_a_party_by_its_own(labels: str) -> None:
    held = int(labels == "held")
    for adjacency, touched in (("replace-one", 6), ("party-row", 2), ("column", 2), ("cell", 2)):
        run = sharing(adjacency=adjacency, labels=labels)
        assert len(run.ledger) == 6 + held
        assert run.accounting.releases == touched + held


def test_a_record_of_a_node_is_touched_by_that_nodes_releases_alone() -> None:
    run = consensus(method="r-admm", alpha=[0.5, 1.0, 2.0])
    assert {entry.touches for entry in run.ledger} == {"node 0", "node 1", "node 2"}
    worst = [entry.epsilon for entry in run.ledger if entry.touches == "node 2"]
    assert run.accounting.epsilon == pytest.approx(sum(worst), rel=1e-12)
    assert (len(run.ledger), run.accounting.releases) == (9, 3)
