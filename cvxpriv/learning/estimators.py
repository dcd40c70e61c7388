"""The bases of the scikit-learn estimators: linear classifiers and a linear regressor.

It needs scikit-learn, which comes with ``pip install "cvxpriv[learn]"``; nothing else in cvxpriv imports this module.
"""

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import log_expit, logsumexp

from cvxpriv.errors import DataError, ModelError, warn
from cvxpriv.learning.labels import LinearFit, predicted
from cvxpriv.learning.schema import PublicSchema, schema_named
from cvxpriv.learning.schema_parts import numbers_in
from cvxpriv.numerics.arrays import Array
from cvxpriv.privacy import Accounting, Plan, PrivacyWarning
from cvxpriv.runs.learning_run import LearningRun

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
except ImportError as error:
    raise ModelError('estimators need scikit-learn 1.6 or newer: pip install "cvxpriv[learn]"') from error

READ_OFF = (
    "the classes were read off the private rows, and errors tell whether a row lacks a number: no guarantee covers "
    "that; pass schema=PublicSchema(classes=(negative, positive))"
)
ROWS_READ = (
    "errors tell whether a private row lacks a number, and no guarantee covers that; pass schema=PublicSchema(target="
    "(low, high))"
)


class LinearEstimator(BaseEstimator):  # type: ignore[misc]
    """The part that classifiers and regressors share: valid rows, a plan before any row is read, linear predictions."""

    coef_: Array
    intercept_: Array
    accounting_: Accounting | None
    _known: PublicSchema | None

    def _keep(self, given: Mapping[str, Any]) -> None:
        """Keep a constructor's parameters as they are, as scikit-learn asks; `given` is its `locals()`."""
        self.__dict__.update({name: given[name] for name in self._get_param_names()})

    def _own(self, names: str) -> dict[str, Any]:
        """Return parameters by their names, for a call that has the same ones."""
        return {name: getattr(self, name) for name in names.split()}

    @abstractmethod
    def _plan(self, schema: PublicSchema | None) -> Plan:
        """Return what a private fit is going to spend."""

    @property
    @abstractmethod
    def _private(self) -> bool:
        """Whether fits draw noise."""

    @abstractmethod
    def _read(self, X: Any, y: Any, schema: PublicSchema | None) -> tuple[Any, Any]:
        """Return valid rows, dense or sparse, and what `_fit` takes beside them."""

    @abstractmethod
    def _fit(self, rows: Any, targets: Any) -> Any:
        """Fit to valid rows, and return what `_take` takes."""

    @abstractmethod
    def _take(self, found: Any) -> None:
        """Keep the coefficients and intercepts of a fit."""

    def fit(self, X: Any, y: Any, **refused: Any) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, DataFrame or sparse array, (n, d)
        y : array, (n,)
            Two classes, of any type, or the numbers of a regressor. With a schema: the classes that it names, or
            numbers that are brought into its `target`.
        refused
            Nothing: `sample_weight` where an estimator has none is answered with the reason.

        Raises
        ------
        ValueError
            X or y is malformed: scikit-learn's own errors, or a `DataError` or `ModelError` of cvxpriv.
        PrivacyError
            The guarantee that was asked for cannot be given, or the budget does not hold it.
        """
        name = type(self).__name__
        if "sample_weight" in refused:  # by a signature, scikit-learn tells who takes weights
            raise ModelError(
                f"sample_weight: {name} takes none, since private weights would be part of an objective that everyone "
                "knows; leave it out, or take PrivateSparseLogisticRegression"
            )
        if refused:
            raise TypeError(f"{name}.fit() got an unexpected keyword argument {min(refused)!r}")
        schema = schema_named(getattr(self, "schema", None))
        if self._private:
            self._plan(schema).require(getattr(self, "budget", None))
        rows, targets = self._read(X, y, schema)
        self._known = schema
        try:
            self._take(self._fit(rows, targets))
        finally:
            del self._known
        return self

    def _within(self, X: Any, schema: PublicSchema) -> Any:
        """Return rows that were brought within the schema."""
        least = 0 if schema.adjacency == "add-remove" else 2
        return validate_data(self, schema.table(X), accept_sparse="csr", dtype=np.float64, ensure_min_samples=least)

    def _as_they_are(self, X: Any, y: Any, warning: str, **checks: Any) -> tuple[Any, Any]:
        """Return rows and labels without a schema; a private fit warns."""
        if self._private:
            warn(warning, PrivacyWarning)
        try:
            rows, labels = validate_data(
                self, X, y, accept_sparse="csr", dtype=np.float64, ensure_min_samples=2, **checks
            )
        except ValueError as error:
            if self._private and "convert" in str(error):  # NumPy's words quote the cell
                raise DataError(
                    "X or y holds a cell that is no number; which one is not said, the rows are private"
                ) from None
            if self._private and type(error) is ValueError:  # scikit-learn's quote all of X
                raise ValueError(re.sub(r"\[.*\]", "[...]", str(error), flags=re.DOTALL)) from None
            raise
        return rows, labels

    def _weighed(self, sample_weight: Any, rows: Any) -> Array | None:
        """Return the weights of rows, (n,): with a schema what is no number >= 0 counts as 0, else it is an error.

        Raises
        ------
        DataError
            A weight is negative, or there is not one for each row.
        """
        if sample_weight is None:
            return None
        if self._known is not None:
            weights = numbers_in(sample_weight, 1)
            if weights.size != rows.shape[0]:
                raise DataError("X and sample_weight have different numbers of rows: pass one weight for each")
            return np.maximum(np.nan_to_num(weights, nan=0.0), 0.0)
        weights = np.asarray(_check_sample_weight(sample_weight, rows, dtype=np.float64))
        if (weights < 0.0).any():
            raise DataError("sample_weight holds a negative weight: pass numbers >= 0")
        return weights

    def _solved_openly(self, run: LearningRun, tuned: str) -> None:
        """Take the figures of a run without privacy; warn where it did not converge, and name what else is tuned."""
        if not run.converged:
            warn(
                f"the KKT residual is {run.kkt.largest:.1e} after {run.iterations} passes, above tol={self.tol:g}: "
                f"raise max_iter, scale the columns, or choose another {tuned}",
                ConvergenceWarning,
            )
        self.n_iter_, self.converged_, self.accounting_ = run.iterations, run.converged, None

    def _margins(self, X: Any) -> Array:
        """Return the linear predictions, (n, number of fits)."""
        check_is_fitted(self)
        rows = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return np.asarray(rows @ self.coef_.T + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.non_deterministic = self._private and getattr(self, "noise_seed", None) is None
        return tags


class BinaryLogisticClassifier(ClassifierMixin, LinearEstimator):  # type: ignore[misc]
    """A logistic model of two classes, `coef_` (1, d), or of K, one against the rest, (K, d)."""

    #: Support of more than two classes.
    _several: ClassVar[bool] = False

    classes_: npt.NDArray[np.generic]

    @abstractmethod
    def _fit(self, rows: Any, labels: Sequence[Array]) -> Sequence[LinearFit]:
        """Fit to valid rows, dense or sparse, one model for each vector of labels of -1 and 1.

        There is one vector for two classes, else one a class. Set the attributes that the model adds.
        """

    def _read(self, X: Any, y: Any, schema: PublicSchema | None) -> tuple[Any, list[Array]]:
        if schema is None:
            rows, places = self._checked(X, y)
        else:
            rows = self._within(X, schema)
            if not self._several:
                schema.require_two_classes()
            places = schema.places(y)
            if places.size != rows.shape[0]:
                raise DataError("X and y have different numbers of rows: pass one label for each")
            schema.require_rows(rows.shape[0])
            self.classes_ = schema.class_names()
        count = self.classes_.size
        return rows, [np.where(places == one, 1.0, -1.0) for one in (range(count) if count > 2 else (1,))]

    def _take(self, found: Sequence[LinearFit]) -> None:
        self.coef_ = np.array([one.coefficients for one in found])
        self.intercept_ = np.array([one.intercept for one in found])

    def _checked(self, X: Any, y: Any) -> tuple[Any, npt.NDArray[np.intp]]:
        """Return valid rows and the places of their labels among the classes, which are those that occur."""
        rows, labels = self._as_they_are(X, y, READ_OFF)
        check_classification_targets(labels)
        classes, places = np.unique(labels, return_inverse=True)
        if classes.size > 2 and not self._several:
            kind = type_of_target(labels, input_name="y")
            raise DataError(f"Only binary classification is supported. The type of the target is {kind}.")
        if classes.size < 2:
            which = "" if self._private else f", {classes.tolist()[0]!r}"
            raise DataError(f"y has one class only{which}: pass rows of both classes")
        self.classes_ = classes
        return rows, places

    def decision_function(self, X: Any) -> Array:
        """Return the log odds of `classes_[1]`, (n,); of K > 2 classes those of each against the rest, (n, K)."""
        margins = self._margins(X)
        return margins[:, 0] if margins.shape[1] == 1 else margins

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of `predict_proba`, (n, K), finite also where a probability is 0 in doubles."""
        margins = self._margins(X)
        if margins.shape[1] == 1:
            return np.asarray(log_expit(np.hstack([-margins, margins])))
        logs = log_expit(margins)
        return np.asarray(logs - logsumexp(logs, axis=1, keepdims=True))

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, (n, K), in the order of `classes_`.

        Of more than two classes each has its own against the rest; they are divided by their sum.
        """
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def predict(self, X: Any) -> npt.NDArray[np.generic]:
        """Return the class of each row, (n,)."""
        margins = self._margins(X)
        if margins.shape[1] == 1:
            return predicted(margins[:, 0], self.classes_)
        return np.asarray(self.classes_[np.argmax(margins, axis=1)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._several
        tags.classifier_tags.poor_score = self._private  # on the few rows of scikit-learn's own checks
        return tags


class LinearRegressor(RegressorMixin, LinearEstimator):  # type: ignore[misc]
    """A linear model of a number, `coef_` (d,); a subclass brings `_fit`."""

    @abstractmethod
    def _fit(self, rows: Any, targets: Array) -> LinearFit:
        """Fit to valid rows, dense or sparse, and targets."""

    def _read(self, X: Any, y: Any, schema: PublicSchema | None) -> tuple[Any, Array]:
        if schema is None:
            rows, targets = self._as_they_are(X, y, ROWS_READ, y_numeric=True)
        else:
            rows = self._within(X, schema)
            targets, _ = schema.labels(y, rows.shape[0], margin=False)
        return rows, np.asarray(targets, dtype=np.float64)

    def _take(self, found: LinearFit) -> None:
        self.coef_, self.intercept_ = found.coefficients, np.asarray(found.intercept)[()]

    def predict(self, X: Any) -> Array:
        """Return the predicted number of each row, (n,)."""
        return self._margins(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = self._private  # on the few rows of scikit-learn's own checks
        return tags
