"""Three problems that are not convex, and convex in one block of variables at a time: `cpv.alternate` on each.

python examples/alternate_convex_blocks.py
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np

import cvxpriv as cpv

RNG = np.random.default_rng(7)


def factorisation() -> cp.Problem:
    """Nonnegative factors of a matrix that has them."""
    data = RNG.random((6, 2)) @ RNG.random((2, 5))
    W, H = cp.Variable((6, 2), name="W"), cp.Variable((2, 5), name="H")
    return cp.Problem(cp.Minimize(cp.sum_squares(data - W @ H)), [W >= 0, H >= 0])


def deconvolution() -> cp.Problem:
    """A sparse signal and the filter that blurred it, of which it is known where the signal may be."""
    signal, kernel = np.array([0.0, 2.0, 0.0, 0.0, 1.0, 0.0]), np.array([0.6, 0.3, 0.1])
    x, k = cp.Variable(6, nonneg=True, name="signal"), cp.Variable(3, nonneg=True, name="filter")
    blurred = sum(k[j] * cp.hstack([np.zeros(j), x, np.zeros(2 - j)]) for j in range(3))
    misfit = cp.sum_squares(np.convolve(kernel, signal) - blurred)
    return cp.Problem(cp.Minimize(misfit), [cp.sum(k) == 1, k[0] >= 0.5, x[[0, 2, 3, 5]] == 0])


def clusters() -> cp.Problem:
    """k-means: linear in the shares of points, quadratic in the centres."""
    points = RNG.normal(size=(8, 2)) + np.repeat([[0.0, 0.0], [4.0, 4.0]], 4, axis=0)
    share, centre = cp.Variable((8, 2), nonneg=True, name="share"), cp.Variable((2, 2), name="centre")
    far = [cp.sum(cp.square(points - np.ones((8, 1)) @ centre[k : k + 1]), axis=1) for k in range(2)]
    cost = cp.sum(cp.hstack([share[:, k] @ far[k] for k in range(2)]))
    return cp.Problem(cp.Minimize(cost), [cp.sum(share, axis=1) == 1])


for make in (factorisation, deconvolution, clusters):
    problem = make()
    run = cpv.alternate(problem, starts=2, seed=1, tol=1e-4)  # the blocks are found
    blocks = " | ".join(", ".join(variable.name() for variable in group) for group in run.groups)
    verdicts = {one.verdict for one in run.certify(["CLARABEL"]).verdicts.values()}
    print(
        f"{make.__name__:14} blocks {blocks:15} objective {run.objective:.6f}  residual {run.residual:.0e}  "
        f"{int(run.starts['converged'].sum())} of {len(run.starts)} starts converged, {'/'.join(sorted(verdicts))}"
    )
