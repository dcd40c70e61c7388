"""A penalty's text means one thing: in every model that takes texts it is the same P, weight included."""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest

from cvxpriv.errors import ModelError
from cvxpriv.models import ISTDP, ADMMSharing, RecycledADMM
from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties import penalty_named
from cvxpriv.penalties.named import FAMILIES

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(30, 4)), RNG.normal(size=30)
POINT = np.array([1.0, 0.3, 0.0, 0.6])
#: P(1) and P at POINT, by hand from the formulas.
KNOWN = {
    "none": (0.0, 0.0),
    "l1": (1.0, 1.9),
    "l1:0.2": (0.2, 0.38),
    "l2": (0.5, 0.725),
    "l2:0.2": (0.1, 0.145),
    "elastic-net": (0.75, 1.3125),
    "elastic-net:0.1": (0.075, 0.13125),
    "elastic-net:1:0.1": (0.55, 0.8425),
    "nonneg": (0.0, 0.0),
    "box:-1:1": (0.0, 0.0),
    "mcp:0.5:3": (1 / 3, 0.3333333333333333 + 0.135 + 0.24),
    "scad:0.5:3": (0.4375, 0.4375 + 0.15 + 0.2975),
    "capped-l1:0.5:0.4": (0.2, 0.2 + 0.15 + 0.2),
}


def sharing(penalty: str) -> Callable[[Array], float]:
    problem = ADMMSharing([X], Y, loss="squared", penalty=penalty).problem
    return lambda x: problem.objective([x]) - float(problem.loss.value(X @ x, Y).sum())


def consensus(penalty: str) -> Callable[[Array], float]:
    shards = [(X[i::3], Y[i::3]) for i in range(3)]
    problem = RecycledADMM(nx.path_graph(3), shards, loss="squared", C=5.0, reg=3.0, penalty=penalty).problem
    # Each node holds reg / N of it.
    return lambda x: float(
        (problem.objectives(np.tile(x, (3, 1))) - problem.C * problem.node_losses(np.tile(x, (3, 1))))[0]
    )


def sparse(penalty: str) -> Callable[[Array], float]:
    problem = ISTDP(X, Y, loss="squared", penalty=penalty).problem
    return lambda x: problem.objective(x) - problem.average_loss(X @ x)


@pytest.mark.parametrize("text", KNOWN)
@pytest.mark.parametrize("model", [sharing, consensus, sparse])
def test_a_text_is_the_same_penalty_in_every_model(model: Callable[[str], Callable[[Array], float]], text: str) -> None:
    if penalty_named(text).weak_convexity > 0.0 and model is not sparse:
        with pytest.raises(ModelError, match="is not convex"):
            model(text)
        return
    value = model(text)
    for point, known in zip((np.eye(4)[0], POINT), KNOWN[text], strict=True):
        # Differences of objectives of about 50.
        assert value(point) == pytest.approx(known, abs=1e-12)


def test_every_family_of_texts_is_among_them() -> None:
    assert {text.split(":")[0] for text in KNOWN} == set(FAMILIES)


@pytest.mark.parametrize("text", ["nonneg", "box:0.1:0.5", "none"])
def test_the_sparse_model_keeps_to_a_set_and_certifies_it(text: str) -> None:
    penalty = penalty_named(text)
    run = ISTDP(X, Y, loss="squared", penalty=text).solve(tol=1e-9, max_iter=5000)
    assert run.converged
    assert np.isfinite(penalty.value(run.coefficients))
    other = ADMMSharing([X], Y, loss="squared", penalty=text).solve(method="proximal_jacobi", tol=1e-10, max_iter=5000)
    # ISTDP's loss is the mean of the other's: without a weight the minimisers are the same, to their tolerances.
    np.testing.assert_allclose(run.coefficients, other.coefficients[0], atol=1e-6)
    run.certify(("CLARABEL",)).raise_if_failed()
