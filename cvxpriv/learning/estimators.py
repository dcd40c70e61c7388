"""The base of the scikit-learn estimators: a linear classifier of two classes.

It needs scikit-learn, which comes with ``pip install "cvxpriv[learn]"``; nothing else in cvxpriv imports this module.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxpriv.errors import DataError, ModelError
from cvxpriv.learning.labels import class_probabilities, predicted
from cvxpriv.learning.linear import LinearFit
from cvxpriv.learning.schema import PublicSchema, schema_named
from cvxpriv.numerics.arrays import Array
from cvxpriv.privacy import Plan, PrivacyWarning

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise ModelError('estimators need scikit-learn 1.6 or newer: pip install "cvxpriv[learn]"') from error

__all__ = ["BinaryLogisticClassifier", "ConvergenceWarning"]

READ_OFF = (
    "the two classes were read off the private rows, and errors tell whether a row lacks a number: no guarantee covers "
    "that; pass schema=PublicSchema(classes=(negative, positive))"
)


class BinaryLogisticClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A logistic model of two classes; a subclass brings `_fit`.

    Attributes
    ----------
    classes_ : ndarray, (2,)
    coef_ : ndarray, (1, d)
    intercept_ : ndarray, (1,)
    n_features_in_ : int
    feature_names_in_ : ndarray, (d,)
        Names of the columns, where X was a data frame.
    """

    classes_: npt.NDArray[np.generic]
    coef_: Array
    intercept_: Array
    _known: PublicSchema | None

    @abstractmethod
    def _fit(self, rows: Any, labels: Array) -> LinearFit:
        """Fit to valid rows, dense or sparse, and labels of -1 and 1; set the attributes that the model adds."""

    @abstractmethod
    def _plan(self, schema: PublicSchema | None) -> Plan:
        """Return what a private fit is going to spend."""

    @property
    @abstractmethod
    def _private(self) -> bool:
        """Whether fits draw noise."""

    def fit(self, X: Any, y: Any) -> BinaryLogisticClassifier:
        """Fit the model.

        Parameters
        ----------
        X : array, DataFrame or sparse array, (n, d)
        y : array, (n,)
            Two classes, of any type; with a schema, those that it names.

        Raises
        ------
        ValueError
            X or y is malformed: scikit-learn's own errors, or a `DataError` or `ModelError` of cvxpriv.
        PrivacyError
            The guarantee that was asked for cannot be given, or the budget does not hold it.
        """
        schema = schema_named(getattr(self, "schema", None))
        if self._private:
            plan = self._plan(schema)
            plan.require(getattr(self, "budget", None))
        if schema is None:
            rows, signs = self._checked(X, y)
        else:
            least = 0 if schema.adjacency == "add-remove" else 2
            rows = validate_data(self, schema.table(X), accept_sparse="csr", dtype=np.float64, ensure_min_samples=least)
            signs, _ = schema.labels(y, rows.shape[0], margin=True)
            self.classes_ = schema.class_names()
        self._known = schema
        try:
            found = self._fit(rows, signs)
        finally:
            del self._known
        self.coef_, self.intercept_ = found.coefficients[None], np.array([found.intercept])
        return self

    def _checked(self, X: Any, y: Any) -> tuple[Any, Array]:
        """Return valid rows and labels of -1 and 1; the classes are those that occur."""
        if self._private:
            warnings.warn(READ_OFF, PrivacyWarning, stacklevel=3)
        try:
            rows, labels = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, ensure_min_samples=2)
        except ValueError as error:
            if self._private and "convert" in str(error):  # NumPy's words quote the cell
                raise DataError(
                    "X holds a cell that is no number; which one is not said, the rows are private"
                ) from None
            raise
        check_classification_targets(labels)
        classes, places = np.unique(labels, return_inverse=True)
        if classes.size > 2:
            kind = type_of_target(labels, input_name="y")
            raise DataError(f"Only binary classification is supported. The type of the target is {kind}.")
        if classes.size < 2:
            which = "" if self._private else f", {classes[0]!r}"
            raise DataError(f"y has one class only{which}: pass rows of both classes")
        self.classes_ = classes
        return rows, np.where(places == 1, 1.0, -1.0)

    def decision_function(self, X: Any) -> Array:
        """Return the log odds of `classes_[1]`, one per row."""
        check_is_fitted(self)
        rows = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return np.asarray(rows @ self.coef_[0] + self.intercept_[0])

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, (n, 2), in the order of `classes_`."""
        return class_probabilities(self.decision_function(X), "logistic")

    def predict(self, X: Any) -> npt.NDArray[np.generic]:
        """Return the class of each row, (n,)."""
        return predicted(self.decision_function(X), self.classes_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = self._private  # on the few rows of scikit-learn's own checks
        tags.non_deterministic = self._private and getattr(self, "noise_seed", None) is None
        return tags
