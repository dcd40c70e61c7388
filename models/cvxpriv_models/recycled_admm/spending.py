"""The privacy cost of one release of a node, and of all of them together. RADMM section V, with the tight bound.

One record of one node is replaced by another. Rows have norm at most 1 and the loss has slope at most 1 times `slope`,
so that its gradient in O_i moves by at most 2 C slope / B_i. The other nodes' releases depend on that record only
through what was released before: the loss of privacy of a pass is that of the worst node, and passes add up.

**Objective perturbation** (Algorithm 3; dual variable perturbation is the same with the conventional schedule). The
map from the noise to the minimiser is one to one. Where the gradient moves by g, the density of the noise changes by at
most exp(alpha ||g||), and the volume element by a ratio of determinants that differ by a matrix of rank one each way:
at most 1 + C c1 / (B_i mu_i), mu_i the strong convexity of what is minimised. The paper's (32) bounds the logarithm of
that by 2.8 C c1 / (B_i mu_i), which needs a condition on eta that this bound does not.

**Penalty perturbation** (M-ADMM) adds the noise to the neighbours' mean inside the penalty: in the objective it is
2 eta_i V_i times the noise, and so alpha counts divided by that.

**Output perturbation** (section VII-B). The minimiser moves by at most 2 C slope / (B_i mu_i).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.packages import pd
from cvxpriv.privacy import Accounting, Claim, Release, account_ledger
from cvxpriv.privacy.gaussian import composed, gaussian_epsilon
from cvxpriv.privacy.ledger import touching

NEIGHBOURS = "one record of one node replaced; the graph and every node's number of records public"
PRINTED = "RADMM (32) as printed"
#: With little noise (32) is below the sum of the ledger, which has the cover of each release in it.
UNCOVERED = "it is about exact minimisers, and leaves out what covers their rounding"


def gradient_move(rows: Array, weight: float, slope: float = 1.0) -> Array:
    """Return by how much one record moves the gradient of O_i, (N,): 2 C slope / B_i."""
    return 2.0 * weight * slope / rows


def output_move(rows: Array, weight: float, convexity: Array, slope: float = 1.0) -> Array:
    """Return by how much one record moves the minimiser, (N,): 2 C slope / (B_i mu_i)."""
    return gradient_move(rows, weight, slope) / convexity


def objective_epsilon(
    alpha: Array, rows: Array, weight: float, convexity: Array, curvature: float, slope: float = 1.0
) -> Array:
    """Return the epsilon of one perturbed minimiser of each node, (N,).

    `alpha`, (N,): The noise has density proportional to exp(-alpha_i ||b||).
    `rows`, (N,): B_i.
    `weight`: C.
    `convexity`, (N,): mu_i, of what node i minimises: rho / N and its penalties.
    `curvature`, `slope`: c1 and the largest |l'|: Lipschitz constants of the loss's slope and of the loss.

    Examples
    --------
    One node of 100 records, C = 100, alpha = .05, mu = 2.5, the logistic loss:

    >>> objective_epsilon(np.array([0.05]), np.array([100.0]), 100.0, np.array([2.5]), 0.25).round(4)
    array([0.1953])
    """
    return alpha * gradient_move(rows, weight, slope) + np.log1p(weight * curvature / (rows * convexity))


def printed_epsilon(alpha: Array, rows: Array, weight: float, convexity: Array, curvature: float) -> Array:
    """Return the same as RADMM (32) states it, (N,): it holds where 2 c1 < B_i mu_i / C, and is looser."""
    return (2.0 * weight / rows) * (1.4 * curvature / convexity + alpha)


def node_name(label: Hashable) -> str:
    """Return how the ledger calls a node, and its records."""
    return f"node {label!r}"


def accounted(
    ledger: Sequence[Release], delta: float | None, printed: Array | None = None, *, secure: bool = True
) -> Accounting:
    """Return what a ledger guarantees a record of any node; beside it what RADMM (32) states, (N,)."""
    claims = [] if printed is None else [Claim(PRINTED, float(printed.max()), 0.0, holds=False, note=UNCOVERED)]
    return account_ledger(ledger, delta, neighbours=NEIGHBOURS, printed=claims, secure=secure)


def node_costs(ledger: Sequence[Release], labels: tuple[Hashable, ...]) -> pd.DataFrame:
    """Return what a ledger's releases cost each node's records: the sum of `epsilon`, and `mu` of them together."""
    several = [touching(ledger, node_name(label)) for label in labels]
    return pd.DataFrame(
        {
            "epsilon": [sum(entry.epsilon for entry in own if entry.epsilon is not None) for own in several],
            "mu": [composed([entry.mu for entry in own if entry.mu is not None]) for own in several],
        },
        index=pd.Index(labels, name="node"),
    )


def worst_nodes(losses: pd.DataFrame, delta: float, recycles: bool) -> tuple[pd.DataFrame, str]:
    """Return what each node spent, the worst first, in words that people read; and what the columns are.

    `losses`: See `PrivateConsensusRun.privacy_loss`. `recycles`: Whether every second step was free.
    """
    if gaussian := "mu" in losses:
        spent = [gaussian_epsilon(delta=delta, mu=mu) for mu in losses["mu"]]
        usual = [gaussian_epsilon(delta=delta, mu=float(np.sqrt(2.0)) * mu) for mu in losses["mu"]]
        losses = losses.assign(tight=spent, conventional=usual, printed=np.nan)
    order = losses.sort_values("tight", ascending=False, kind="stable")
    frame = pd.DataFrame({"node": order.index.map(str), "rows": order["rows"].astype(int), "epsilon": order["tight"]})
    words = "epsilon: of all passes, " + (f"at delta = {delta:g}." if gaussian else "the tight bound; delta is 0.")
    if order["printed"].notna().all():
        frame["paper's (32)"] = order["printed"]
    if recycles:
        frame["ADMM"] = order["conventional"]
        words += " ADMM: what the conventional one spends in as many iterations with the same noise."
    return frame.reset_index(drop=True), words
