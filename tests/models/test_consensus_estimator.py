"""scikit-learn's face of recycled ADMM, and the graphs it is spelled with."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

pytest.importorskip("sklearn")

from cvxpriv_models import DecentralizedLogisticRegression
from cvxpriv_models.recycled_admm.node_rows import place, spelled
from cvxpriv_models.recycled_admm.private_settings import PURE, Privacy
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from cvxpriv.errors import DataError, ModelError, PrivacyError

RNG = np.random.default_rng(0)
X = RNG.uniform(-0.4, 0.4, size=(300, 4))
Y = np.where(X @ [4.0, -2.0, 1.0, 0.0] + 0.3 + 0.5 * RNG.normal(size=300) > 0.0, "yes", "no")
SEEDED: dict[str, Any] = {"epsilon": 5.0, "clip_rows": True, "noise_seed": 0, "eta": 1.0}
#: These fit twice and compare: without a seed a private fit is another one each time.
REPEATED = {"check_classifier_data_not_an_array", "check_supervised_y_2d", "check_fit_idempotent"}


@pytest.mark.filterwarnings("ignore::cvxpriv.privacy.PrivacyWarning", "ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.slow
@parametrize_with_checks([DecentralizedLogisticRegression(max_iter=60), DecentralizedLogisticRegression(**SEEDED)])
def test_scikit_learn_s_own_checks_pass(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
def test_without_a_seed_only_the_checks_that_repeat_a_fit_fail() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(
            DecentralizedLogisticRegression(**{**SEEDED, "noise_seed": None, "random_state": 0}), on_fail=None
        )
    assert {one["check_name"] for one in results if one["status"] == "failed"} <= REPEATED


@pytest.mark.parametrize("graph", ["ring", "random:0.5", nx.star_graph(4), nx.to_numpy_array(nx.path_graph(5))])
def test_a_consensus_is_the_pooled_fit_of_scikit_learn_on_every_graph(graph: Any) -> None:
    model = DecentralizedLogisticRegression(
        graph=graph, reg=2.0, eta=1.0, max_iter=1000, tol=1e-9, fit_intercept=False, random_state=0
    )
    model.fit(X, Y)
    # C = 60 rows a node: the losses add up, and reg is 1/C of scikit-learn.
    peer = LogisticRegression(C=0.5, tol=1e-12, solver="newton-cholesky", fit_intercept=False).fit(X, Y)
    assert model.converged_
    np.testing.assert_allclose(
        model.node_coef_, np.tile(peer.coef_, (5, 1)), atol=1e-6
    )  # tol, times a condition number
    np.testing.assert_allclose(model.coef_[0], model.node_coef_.mean(axis=0), atol=1e-12)  # of rounding
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-6)
    assert model.node_intercept_.tolist() == [0.0] * 5


def test_groups_say_which_node_a_row_belongs_to() -> None:
    owners = RNG.choice(["west", "east", "north"], 300, p=[0.5, 0.3, 0.2])
    model = DecentralizedLogisticRegression(graph="path").fit(X, Y, groups=owners)
    assert model.nodes_ == ("east", "north", "west")
    assert model.node_coef_.shape == (3, 4)
    tree = nx.Graph([("west", "east"), ("west", "north")])
    assert DecentralizedLogisticRegression(graph=tree).fit(X, Y, owners).nodes_ == ("west", "east", "north")
    numbered = DecentralizedLogisticRegression().fit(X, Y, groups=np.arange(300) % 3)
    assert numbered.nodes_ == (0, 1, 2)
    assert "_owners" not in vars(numbered)  # no row's node is kept


def test_groups_that_fit_neither_rows_nor_graph_are_refused() -> None:
    with pytest.raises(DataError, match=r"groups has shape \(3,\)"):
        DecentralizedLogisticRegression().fit(X, Y, groups=[0, 1, 2])
    with pytest.raises(DataError, match="belongs to 2, which is no node"):
        DecentralizedLogisticRegression(graph=nx.path_graph(2)).fit(X, Y, groups=np.arange(300) % 3)
    with pytest.raises(DataError, match="node 3 has no rows"):
        DecentralizedLogisticRegression(graph=nx.path_graph(4)).fit(X, Y, groups=np.arange(300) % 3)
    with pytest.raises(DataError, match="301 nodes share 300 rows"):
        DecentralizedLogisticRegression(301).fit(X, Y)
    with pytest.raises(DataError, match="differs"):
        DecentralizedLogisticRegression(3, graph="ring:4").fit(X, Y)
    with pytest.raises(ModelError, match="not connected"):
        DecentralizedLogisticRegression(graph=nx.Graph([(0, 1), (2, 3)])).fit(X, Y)
    with pytest.raises(ModelError, match="did you mean 'complete'"):
        DecentralizedLogisticRegression(graph="compelte").fit(X, Y)


@pytest.mark.filterwarnings("ignore::cvxpriv.privacy.PrivacyWarning")
def test_a_private_fit_guarantees_its_budget_whatever_the_form_of_the_noise() -> None:
    pure = DecentralizedLogisticRegression(epsilon=3.0).fit(X, Y)
    assert pure.accounting_.epsilon == pytest.approx(3.0, rel=1e-9)  # a sum
    assert pure.accounting_.delta == 0.0
    assert not pure.converged_
    gaussian = DecentralizedLogisticRegression(epsilon=3.0, delta=1e-5).fit(X, Y)
    assert gaussian.accounting_.claims[0].rule == "exact Gaussian composition"
    assert gaussian.accounting_.epsilon == pytest.approx(3.0, rel=1e-8)  # found by bisection
    assert DecentralizedLogisticRegression(alpha=1.0).fit(X, Y).accounting_.epsilon > 0.0
    assert DecentralizedLogisticRegression().fit(X, Y).accounting_ is None


@pytest.mark.filterwarnings("ignore::cvxpriv.privacy.PrivacyWarning")
def test_rows_beyond_their_bound_are_refused_or_shortened_where_that_is_said() -> None:
    with pytest.raises(PrivacyError, match="row_bound=1.00499 does not hold"):
        DecentralizedLogisticRegression(epsilon=3.0, row_bound=0.1).fit(X, Y)
    short = DecentralizedLogisticRegression(epsilon=3.0, row_bound=0.1, clip_rows=True).fit(X, Y)
    assert short.accounting_.epsilon == pytest.approx(3.0, rel=1e-9)


def test_a_sparse_matrix_fits_as_its_dense_one_does() -> None:
    dense, sparse = (DecentralizedLogisticRegression(random_state=0).fit(rows, Y) for rows in (X, sp.csr_array(X)))
    np.testing.assert_allclose(dense.node_coef_, sparse.node_coef_, atol=1e-9)  # both steps are exact to 1e-12


def test_too_few_passes_warn_as_scikit_learn_does() -> None:
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        assert not DecentralizedLogisticRegression(max_iter=2, tol=1e-9).fit(X, Y).converged_


def test_a_clone_and_a_pickle_predict_alike() -> None:
    frame = pd.DataFrame(X, columns=list("abcd"))
    fitted = clone(DecentralizedLogisticRegression(random_state=1)).fit(frame, Y)
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict_proba(frame), fitted.predict_proba(frame))
    assert set(again.predict(frame)) <= {"no", "yes"}


def test_defaults_follow_from_what_is_asked() -> None:
    assert Privacy(epsilon=1.0).usual is PURE
    assert Privacy(epsilon=1.0, delta=1e-6).where == "output"
    assert Privacy(epsilon=1.0, delta=1e-6, perturbation="objective").usual is PURE


@pytest.mark.parametrize("text", ["ring:2.5", "ring:5:5", "random:5:0", "random:5:1.5", "random:a:0.5", "complete:-1"])
def test_a_spelling_that_is_none_says_one_that_is(text: str) -> None:
    with pytest.raises(ModelError, match="give "):
        spelled(text)


def test_owners_of_several_types_still_have_an_order() -> None:
    assert list(place(spelled("complete"), 3, owners=[1, "b", 1]).graph.nodes) == [1, "b"]
