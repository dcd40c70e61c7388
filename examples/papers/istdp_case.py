"""The data of the ISTDP scripts: the paper has no experiments, so they are invented here."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

Labelled = tuple[np.ndarray, np.ndarray, np.ndarray]


def correlated(rows: int, columns: int, seed: int = 0) -> Labelled:
    """Return X with standardised columns of correlation .6^|i - j|, a noisy y, and the ten true coefficients."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, columns))
    for column in range(1, columns):
        x[:, column] = 0.6 * x[:, column - 1] + 0.8 * x[:, column]
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    truth = np.zeros(columns)
    truth[random.choice(columns, size=10, replace=False)] = random.choice([-1.0, 1.0], size=10)
    signal = x @ truth
    return x, signal + 0.3 * signal.std() * random.normal(size=rows), truth


def unit_rows(rows: int, columns: int, seed: int = 0) -> Labelled:
    """Return rows of norm 1, labels drawn from a logistic model of four coefficients, and those."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, columns))
    x /= np.linalg.norm(x, axis=1)[:, None]
    truth = np.concatenate([[6.0, -6.0, 4.0, -4.0], np.zeros(columns - 4)]) * np.sqrt(columns / 20.0)
    return x, np.where(random.uniform(size=rows) < expit(x @ truth), 1.0, -1.0), truth
