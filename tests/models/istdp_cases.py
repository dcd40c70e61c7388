"""Small data for the tests of ISTDP: correlated columns, few of which matter."""

from __future__ import annotations

import numpy as np
import pandas as pd

from cvxpriv.numerics.arrays import Array

__all__ = ["correlated", "frame"]


def correlated(rows: int, columns: int, rho: float, seed: int, kind: str = "squared") -> tuple[Array, Array, Array]:
    """Return X with standardised columns of correlation rho^|i - j|, y, and the true coefficients.

    `kind` is the loss: labels of -1 and 1 for "logistic", a tenth of them flipped so that few columns do not separate
    them, and numbers of deviation 1 for others.
    """
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, columns))
    for column in range(1, columns):
        x[:, column] = rho * x[:, column - 1] + np.sqrt(1.0 - rho**2) * x[:, column]
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    truth = np.zeros(columns)
    chosen = random.choice(columns, size=max(3, columns // 100), replace=False)
    truth[chosen] = random.choice([-1.0, 1.0], size=chosen.size)
    signal = x @ truth
    y = signal + 0.2 * signal.std() * random.normal(size=rows)
    if kind == "logistic":
        return x, np.sign(y) * np.where(random.uniform(size=rows) < 0.1, -1.0, 1.0), truth
    return x, (y - y.mean()) / y.std(), truth


def frame(x: Array) -> pd.DataFrame:
    """Return X with named columns."""
    return pd.DataFrame(x, columns=[f"feature {index}" for index in range(x.shape[1])])
