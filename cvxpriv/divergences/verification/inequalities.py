"""Checks of the axioms of a divergence: it is never negative, and processing never raises it.

Two symbols suffice to show a failure, and such a pair is easy to read.
"""

from __future__ import annotations

import numpy as np

from cvxpriv.divergences.verification.findings import Finding, judged
from cvxpriv.divergences.verification.setting import DivergenceSetting
from cvxpriv.numerics.arrays import Array

PAIRS, SIZE = 500, 2
TOLERANCE = 1e-10


def nonnegative(setting: DivergenceSetting) -> Finding:
    """D(p, q) >= 0 for random distributions."""
    p, q = setting.distributions(setting.random(3), PAIRS, SIZE)
    values, size = _values(setting, p, q)
    return judged(
        np.maximum(-values, 0.0) + 0.0 * values,
        TOLERANCE * size,
        lambda k: {"p": p[k], "q": q[k]},
        "no distribution is nearer to p than p itself",
        "D(p, q) is negative: f is not convex, or f(1) is not 0",
    )


def data_processing(setting: DivergenceSetting) -> Finding:
    """D(p K, q K) <= D(p, q) for random channels K, from near the identity to near constant."""
    random = setting.random(4)
    p, q = setting.distributions(random, PAIRS, SIZE)
    sharpness = np.repeat([0.05, 0.3, 1.0, 10.0], PAIRS // 4)
    channels = np.stack([random.dirichlet(np.full(SIZE, alpha), SIZE) for alpha in sharpness])
    before, size = _values(setting, p, q)
    after, _ = _values(setting, np.einsum("ni,nij->nj", p, channels), np.einsum("ni,nij->nj", q, channels))
    return judged(
        np.maximum(after - before, 0.0) + 0.0 * (after - before),
        TOLERANCE * size,
        lambda k: {"p": p[k], "q": q[k]},
        "what is released cannot tell more after any processing",
        "a channel raises the divergence: f is not convex, so it measures no leakage",
    )


def _values(setting: DivergenceSetting, p: Array, q: Array) -> tuple[Array, Array]:
    """Return D(p, q) of each pair, and the size of its terms."""
    with np.errstate(all="ignore"):
        terms = setting.f.terms(p, q)
    return terms.sum(axis=1), 1.0 + np.abs(terms).sum(axis=1)
