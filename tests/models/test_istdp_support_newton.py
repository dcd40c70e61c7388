"""Newton steps on the support: the same from sparse columns as from dense ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from cvxpriv.models import ISTDP


def test_sparse_columns_give_the_newton_steps_of_dense_ones() -> None:
    rng = np.random.default_rng(3)
    x = sparse.random_array((400, 3000), density=0.01, rng=rng, format="csr")
    x.data[:] = rng.normal(size=x.nnz)
    y = np.where(x[:, :10].sum(axis=1) + 0.1 * rng.normal(size=400) > 0.0, 1.0, -1.0)
    options: dict[str, Any] = {"loss": "logistic", "intercept": True}
    share = 0.5 * ISTDP(x, y, penalty="mcp:0.1:20", **options).lambda_max
    runs = [ISTDP(rows, y, penalty=f"mcp:{share!r}:20", **options).solve() for rows in (x, x.toarray())]
    for run in runs:
        assert run.converged
        assert run.history["newton"].max() > 0.0
    np.testing.assert_allclose(runs[0].theta, runs[1].theta, atol=1e-6)
