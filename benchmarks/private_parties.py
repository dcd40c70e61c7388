"""Private fits over parties and nodes beside what costs no exchange: means of ten seeds, log loss and AUC.

python -m benchmarks private_parties

One row replaced, delta = 1e-6, 30 % of the rows held out by each seed. Two parties hold halves of the columns; five
nodes hold rows at random. "own fits" exchange nothing: each party or node fits alone without privacy, and margins
are averaged. "own private fits" are private fits of ISTDP at each node on its own rows, whose coefficients are
averaged: a row is at one node, so that all of them together cost what one does.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np
from cvxpriv_models import (
    DecentralizedLogisticRegression,
    PrivateSparseLogisticRegression,
    VerticalLogisticRegression,
)
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression

import cvxpriv as cpv
from benchmarks.private_learning import Split, split_of
from cvxpriv.learning.scores import area_under_curve, log_loss
from cvxpriv.numerics.arrays import Array

EPSILONS, DELTA, SEEDS, NODES = (1.0, 2.0, 4.0), 1e-6, 10, 5
SETS = ("german", "compas", "breast cancer")
KNOWN = cpv.PublicSchema(classes=(-1, 1))

Margin = Callable[[Split, float, int], Array]


def rows_of(name: str, seed: int) -> Split:
    """Return a split; breast cancer's columns go from 0 to 1 by the ranges of its description, over sqrt(30)."""
    if name != "breast cancer":
        return split_of(name, seed)
    x, labels = load_breast_cancer(return_X_y=True)
    x = (x - x.min(axis=0)) / (x.max(axis=0) - x.min(axis=0)) / 30.0**0.5
    y, order = np.where(labels == 1, 1.0, -1.0), np.random.default_rng(seed).permutation(labels.size)
    test, train = order[:171], order[171:]
    return Split(x[train], y[train], x[test], y[test], 30.0)


def halves(width: int) -> list[Array]:
    """Return the columns of two parties."""
    return np.array_split(np.arange(width), 2)


def vertical(split: Split, epsilon: float, seed: int) -> Array:
    """VerticalLogisticRegression with public bounds of the halves, lam as the command has it."""
    model = VerticalLogisticRegression(2, epsilon=epsilon, delta=DELTA, lam=30.0, row_bound=1.0, noise_seed=seed)
    return model.fit(split.x, split.y).decision_function(split.test_x)


def own_columns(split: Split, epsilon: float, seed: int) -> Array:
    """The average of margins of two parties' own fits."""
    fits = [
        LogisticRegression(max_iter=1000).fit(split.x[:, part], split.y).decision_function(split.test_x[:, part])
        for part in halves(split.x.shape[1])
    ]
    return np.mean(fits, axis=0)


def decentralized(split: Split, epsilon: float, seed: int) -> Array:
    """DecentralizedLogisticRegression on five nodes of a complete graph."""
    model = DecentralizedLogisticRegression(
        NODES, epsilon=epsilon, delta=DELTA, clip_rows=True, noise_seed=seed, random_state=seed
    )
    return model.fit(split.x, split.y).decision_function(split.test_x)


def shards(split: Split, seed: int) -> list[Array]:
    """Return the rows of five nodes."""
    return np.array_split(np.random.default_rng(seed).permutation(split.y.size), NODES)


def own_rows(split: Split, epsilon: float, seed: int) -> Array:
    """The average of margins of five nodes' own fits."""
    fits = [LogisticRegression(max_iter=1000).fit(split.x[part], split.y[part]) for part in shards(split, seed)]
    return np.mean([one.decision_function(split.test_x) for one in fits], axis=0)


def own_private(split: Split, epsilon: float, seed: int) -> Array:
    """The average of five private fits on the nodes' own rows."""
    fits = [
        PrivateSparseLogisticRegression(epsilon=epsilon, delta=DELTA, schema=KNOWN, noise_seed=seed + 100 * node).fit(
            split.x[part], split.y[part]
        )
        for node, part in enumerate(shards(split, seed))
    ]
    return np.mean([one.decision_function(split.test_x) for one in fits], axis=0)


def pooled(split: Split, epsilon: float, seed: int) -> Array:
    """scikit-learn on all columns and rows in one place."""
    return LogisticRegression(max_iter=1000).fit(split.x, split.y).decision_function(split.test_x)


LEARNERS: dict[str, Margin] = {
    "columns: private": vertical,
    "columns: own fits": own_columns,
    "rows: private": decentralized,
    "rows: own private fits": own_private,
    "rows: own fits": own_rows,
    "not private, in one place": pooled,
}


def main(arguments: Sequence[str] = ()) -> None:
    """Print the table."""
    print(f"{__doc__}\n| rows | epsilon | {' | '.join(LEARNERS)} |\n|{' --- |' * (len(LEARNERS) + 2)}", flush=True)
    warnings.simplefilter("ignore")
    for name in SETS:
        splits = [rows_of(name, seed) for seed in range(SEEDS)]
        for epsilon in EPSILONS:
            cells = []
            for fit in LEARNERS.values():
                margins = [fit(split, epsilon, seed) for seed, split in enumerate(splits)]
                pairs = list(zip(splits, margins, strict=True))
                losses = [log_loss(split.test_y, z) for split, z in pairs]
                areas = [area_under_curve(split.test_y, z) for split, z in pairs]
                cells.append(f"{np.mean(losses):.3f} +- {np.std(losses, ddof=1):.3f}, {np.mean(areas):.3f}")
            print(f"| {name} | {epsilon:g} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
