"""The scikit-learn faces: scikit-learn's own checks, its tools, equality with its models, and what is refused."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

pytest.importorskip("sklearn")

from cvxpriv_models import DecentralizedLogisticRegression, PrivateSparseLogisticRegression, VerticalLogisticRegression
from cvxpriv_models.admm_sharing.estimators import column_groups
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from cvxpriv.errors import DataError, ModelError, PrivacyError
from cvxpriv.privacy import PrivacyWarning

RNG = np.random.default_rng(0)
X = RNG.uniform(-1.0, 1.0, size=(300, 5))
Y = np.where(X @ [2.0, -1.0, 0.5, 0.0, 1.0] + 0.5 + 0.5 * RNG.normal(size=300) > 0.0, "yes", "no")
FRAME = pd.DataFrame(X, columns=list("abcde"))

#: These fit twice and compare: without a seed a private fit is another one each time.
REPEATED = {"check_classifier_data_not_an_array", "check_supervised_y_2d", "check_fit_idempotent"}
#: A weight counts within the clip of one row: a row of weight 3 is not three rows.
WEIGHTED = {"check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"}


@pytest.mark.filterwarnings("ignore::cvxpriv.privacy.PrivacyWarning", "ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.slow
@parametrize_with_checks(
    [
        VerticalLogisticRegression(),
        VerticalLogisticRegression(epsilon=1.0, clip=1.0, noise_seed=0),
    ]
)
def test_scikit_learn_s_own_checks_pass(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
def test_without_a_seed_only_the_checks_that_repeat_a_fit_fail() -> None:
    for estimator in (PrivateSparseLogisticRegression(), VerticalLogisticRegression(epsilon=1.0, clip=1.0)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = check_estimator(estimator, on_fail=None)
        assert {one["check_name"] for one in results if one["status"] == "failed"} <= REPEATED | WEIGHTED


@pytest.mark.parametrize("lam", [0.1, 1.0])
def test_a_vertical_fit_is_the_pooled_one_of_scikit_learn_intercept_included(lam: float) -> None:
    model = VerticalLogisticRegression([["a", "e"], ["b", "c"], ["d"]], lam=lam, tol=1e-10).fit(FRAME, Y)
    peer = LogisticRegression(C=1.0 / lam, tol=1e-12, solver="newton-cholesky").fit(FRAME, Y)
    # 1e-5: the intercept is penalised by a millionth of lam, which moves it by about 1e-6 lam / curvature.
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=1e-5)
    np.testing.assert_allclose(model.predict_proba(FRAME), peer.predict_proba(FRAME), atol=1e-5)
    assert model.converged_
    assert [group.tolist() for group in model.groups_] == [[0, 4], [1, 2], [3]]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_an_intercept_beside_a_penalty_that_is_no_square_is_free_of_it() -> None:
    model = VerticalLogisticRegression(2, penalty="nonneg", lam=0.1, max_iter=200, method="proximal_jacobi")
    shifted = np.where(X[:, 0] > 0.9, "yes", "no")  # wants a negative intercept
    model.fit(X, shifted)
    assert model.intercept_[0] < -1.0
    assert (model.coef_ >= 0.0).all()


def test_a_sparse_matrix_fits_as_its_dense_one_does() -> None:
    dense, sparse = (VerticalLogisticRegression(tol=1e-9).fit(rows, Y) for rows in (X, sp.csr_array(X)))
    np.testing.assert_allclose(dense.coef_, sparse.coef_, atol=1e-7)
    with pytest.warns(PrivacyWarning):
        both = [
            PrivateSparseLogisticRegression(penalty="l1:0.01", noise_seed=1).fit(r, Y) for r in (X, sp.csr_array(X))
        ]
    np.testing.assert_allclose(both[0].coef_, both[1].coef_, atol=1e-9)


@pytest.mark.filterwarnings("ignore::cvxpriv.privacy.PrivacyWarning")
def test_both_work_in_a_pipeline_a_grid_search_a_clone_and_a_pickle() -> None:
    for model, name in (
        (VerticalLogisticRegression(), "lam"),
        (PrivateSparseLogisticRegression(penalty="l1:0.01", epsilon=50.0), "epsilon"),
    ):
        search = GridSearchCV(
            make_pipeline(StandardScaler(), model), {f"{type(model).__name__.lower()}__{name}": [9.0]}
        )
        search.fit(FRAME, Y)
        assert search.best_score_ > 0.7
        fitted = clone(model).set_params(**{name: 8.0}).fit(FRAME, Y)
        again = pickle.loads(pickle.dumps(fitted))
        assert np.array_equal(again.predict_proba(FRAME), fitted.predict_proba(FRAME))
        assert set(again.predict(FRAME)) <= {"no", "yes"}


@pytest.mark.filterwarnings("ignore::cvxpriv.privacy.PrivacyWarning")
def test_a_private_fit_says_what_it_guarantees_and_a_vertical_one_what_it_does_not() -> None:
    sparse = PrivateSparseLogisticRegression(epsilon=2.0, delta=1e-5).fit(X, Y)
    assert sparse.accounting_.epsilon == pytest.approx(2.0, rel=1e-8)  # found by bisection
    assert sparse.accounting_.delta == 1e-5
    vertical = VerticalLogisticRegression(lam=10.0, epsilon=2.0, row_bound=[3**0.5, 2**0.5]).fit(X, Y)
    assert vertical.accounting_.epsilon == pytest.approx(2.0, rel=1e-8)
    assert "each part of norm at most 2, 1.41421" in vertical.accounting_.neighbours  # sqrt(3 + 1 of the intercept)
    assert any("stay with it" in line for line in vertical.warnings_)
    assert VerticalLogisticRegression().fit(X, Y).accounting_ is None


@pytest.mark.filterwarnings("ignore::cvxpriv.privacy.PrivacyWarning")
def test_a_private_vertical_fit_without_a_bound_is_refused() -> None:
    with pytest.raises(PrivacyError, match="without a bound"):
        VerticalLogisticRegression(epsilon=1.0).fit(X, Y)
    with pytest.raises(PrivacyError, match="does not hold"):
        VerticalLogisticRegression(epsilon=1.0, row_bound=0.1).fit(X, Y)
    with pytest.raises(ModelError, match="is no square, and a private intercept"):
        VerticalLogisticRegression(epsilon=1.0, clip=1.0, penalty="l1").fit(X, Y)
    with pytest.raises(ModelError, match="adjacency='cell'"):
        VerticalLogisticRegression(epsilon=1.0, clip=1.0, adjacency="cell").fit(X, Y)
    with pytest.raises(DataError, match="row_bound has 3 numbers for 2 groups"):
        VerticalLogisticRegression(epsilon=1.0, row_bound=[1.0, 1.0, 1.0]).fit(X, Y)


@pytest.mark.filterwarnings("ignore::cvxpriv.privacy.PrivacyWarning")
@pytest.mark.parametrize("kind", [PrivateSparseLogisticRegression, DecentralizedLogisticRegression])
def test_no_error_of_a_private_fit_holds_an_entry_of_its_rows(kind: type[Any]) -> None:
    text, long = np.full((300, 2), "31415x"), np.full((300, 2), 3.1415)
    wrong = [(text, Y), (long + 1j, Y), (long[:, 0], Y), (long[:, :, None], Y), (long, long), (long, long[:, 0] + 1j)]
    for rows, labels in wrong:
        with pytest.raises(ValueError, match=r".") as refused:
            kind(epsilon=1.0).fit(rows, labels)
        assert "1415" not in str(refused.value), refused.value


@pytest.mark.parametrize("model", [VerticalLogisticRegression, DecentralizedLogisticRegression])
def test_weights_where_they_would_be_public_are_refused_with_the_reason(model: Any) -> None:
    with pytest.raises(ModelError, match=f"{model.__name__} takes none, since private weights"):
        model(epsilon=1.0).fit(X, Y, sample_weight=np.ones(300))
    with pytest.raises(TypeError, match="'weight'"):
        model().fit(X, Y, weight=np.ones(300))


def test_too_few_passes_warn_as_scikit_learn_does() -> None:
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        assert not VerticalLogisticRegression(max_iter=2).fit(X, Y).converged_


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (0, "no number of parties"),
        ("ab", "no groups of columns"),
        ([[0, 1], []], "empty group"),
        ([[0, 1], [1, 2]], "column 'b' is in 2 groups"),
        ([[0, 1]], "column 'c' is in 0 groups"),
        ([[0, 1], [2, 3]], "positions from 0 to 2"),
        ([["a", "z"]], "'z': X has a, b, c"),
        ([[True]], "positions from 0 to 2"),
    ],
)
def test_groups_that_are_none_are_refused(groups: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        column_groups(groups, 3, ["a", "b", "c"])


def test_names_without_a_data_frame_are_refused() -> None:
    with pytest.raises(DataError, match="X has no column names"):
        VerticalLogisticRegression([["a"]]).fit(X, Y)


def test_the_models_package_has_its_estimators_and_no_other_name() -> None:
    import cvxpriv_models

    assert set(cvxpriv_models.__all__) <= set(dir(cvxpriv_models))
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        cvxpriv_models.Nothing  # noqa: B018


def test_a_model_is_imported_without_pandas_mpmath_and_scikit_learn_which_its_estimators_load() -> None:
    program = (
        "import sys; from cvxpriv.models import ISTDP, ADMMSharing;"
        "print('pandas' in sys.modules, 'mpmath' in sys.modules);"
        "from cvxpriv.models import InferenceAsService, PrivacyFunnel; print('pandas' in sys.modules);"
        "import copy, pickle; from cvxpriv.numerics.packages import pd; pickle.loads(pickle.dumps(copy.copy(pd)));"
        "print('pandas' in sys.modules, pd.DataFrame([1]).shape, 'pandas' in sys.modules);"
        "import cvxpriv_models.istdp, cvxpriv_models.admm_sharing; print('sklearn' in sys.modules);"
        "cvxpriv_models.VerticalLogisticRegression; print('sklearn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["False False", "False", "False (1, 1) True", "False", "True"]
