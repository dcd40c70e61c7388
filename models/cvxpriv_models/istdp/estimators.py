"""The scikit-learn estimators of ISTDP: `PrivateSparseLogisticRegression` and `PrivateSparseRegression`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cvxpriv.errors import ModelError, PrivacyError, suggest
from cvxpriv.learning.estimators import BinaryLogisticClassifier, LinearEstimator, LinearRegressor
from cvxpriv.learning.labels import LinearFit
from cvxpriv.learning.schema import PublicSchema, relation_of
from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties import Penalty
from cvxpriv.privacy import Budget, Plan

from .model import ISTDP
from .private import planned, solve_private
from .run import PrivateSparseRun

REGRESSION_LOSSES = ("huber", "squared")


class PrivateSparseEstimator(LinearEstimator):
    """The options of both estimators, and the fit of one model for each vector of labels."""

    support_: npt.NDArray[np.intp]
    n_iter_: int
    _weights: Any = None

    def __init__(
        self,
        *,
        penalty: str | Penalty = "auto",
        epsilon: float = 1.0,
        delta: float = 1e-6,
        max_iter: int | None = None,
        clip: float = 1.0,
        step: str = "lipschitz",
        adjacency: str | None = None,
        output: str = "auto",
        row_bound: float | None = None,
        fit_intercept: bool = True,
        noise_seed: int | None = None,
        schema: PublicSchema | str | Path | None = None,
        budget: Budget | str | Path | None = None,
        centre: str = "auto",
        support: int | None = None,
    ) -> None:
        self._keep(locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **refused: Any) -> Self:
        """Fit the model: see `LinearEstimator.fit`; a classifier takes more than two classes, too.

        Parameters
        ----------
        X, y
            Rows, and classes or numbers.
        sample_weight : array, (n,), optional
            Weights of the rows' losses, >= 0, as private as the rows. Each row's *weighted* gradient is clipped, so
            that a large weight costs no privacy, and counts up to the clip: a row of weight 3 is not three rows.
        """
        self._weights = sample_weight
        try:
            super().fit(X, y, **refused)
        finally:
            del self._weights
        return self

    @property
    def _private(self) -> bool:
        return True

    def _plan(self, schema: PublicSchema | None) -> Plan:
        return planned(self.epsilon, self.delta, None, relation_of(schema, self.adjacency))

    def _runs(
        self, rows: Any, labels: Sequence[Array], loss: str, row_bound: float | None
    ) -> tuple[PrivateSparseRun, ...]:
        known = PublicSchema(classes=(-1, 1)) if self._known is None else self._known.encoded()
        if self._known is None and self.adjacency is not None:
            known = replace(known, adjacency=self.adjacency)
        model = ISTDP(rows, labels[0], loss=loss, penalty=self.penalty, intercept=self.fit_intercept, schema=known)
        if row_bound is not None and self.fit_intercept:
            row_bound = float(np.hypot(row_bound, 1.0))
        runs = solve_private(
            model.problem,
            **self._own("epsilon delta adjacency noise_seed max_iter budget clip step output centre support"),
            row_bound=row_bound,
            labels=labels,
            weights=self._weighed(self._weights, rows),
        )
        self.accounting_, self.n_iter_ = runs[0].accounting, runs[0].settings.max_iter
        self.support_ = np.unique(np.concatenate([run.support for run in runs]))
        return runs


class PrivateSparseLogisticRegression(PrivateSparseEstimator, BinaryLogisticClassifier):
    """Sparse logistic regression whose coefficients are (epsilon, delta)-differentially private. ISTDP.

    Minimise (1/n) sum_i log(1 + exp(-y_i (x_i theta + b))) + P(theta) by proximal steps along clipped, noisy gradients.
    The coefficients are private, and so is everything that is computed from them and from other people's rows. The
    schema and every parameter here count as public, and without a schema the classes and the number of rows: choose
    them without these data, since a grid search on them is not private.

    Noise leaves all columns in: `support=K` keeps K of them, chosen privately within the budget.

    More than two classes are learned one against the rest, within the one budget: they share the moments of the rows,
    and each of K classes has a K-th of what is left of mu^2.

    Parameters
    ----------
    penalty : str or Penalty
        `mcp:<lam>:<alpha>`, `l1:<lam>`, ...: see `ISTDP`. "auto" follows from public numbers.
    epsilon, delta : float
        The budget of one fit.
    max_iter, clip, step, adjacency, output, noise_seed, centre, support
        See `ISTDP.solve_private`.
    row_bound : float, optional
        A public bound of the norms of the rows of X. The step rests on it; privacy does not, as longer rows are
        clipped. None: the bound that the clip implies.
    schema : PublicSchema or path, optional
        Public knowledge of X and y: a private fit then infers none of it, rows that lie outside are moved
        inside, and `adjacency` is the schema's. None: the classes are read off y, with a warning.
    budget : Budget or path, optional
        Budget that a private fit spends from; a fit beyond it is refused before a row is read.
    fit_intercept : bool
        Fit an intercept. It is not penalised, and inside the sensitivity: as private as the rest.

    Attributes
    ----------
    classes_, coef_, intercept_, n_features_in_, feature_names_in_
        Attributes as usual in scikit-learn.
    support_ : ndarray
        The positions of the coefficients that are not 0, for any class.
    accounting_ : Accounting
        The guarantee of the fit.
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np
    >>> import cvxpriv as cpv
    >>> from cvxpriv_models import PrivateSparseLogisticRegression
    >>> columns = np.random.default_rng(0).uniform(-0.5, 0.5, size=(5000, 4))
    >>> labels = np.where(columns[:, 2] > 0, "yes", "no")
    >>> known = cpv.PublicSchema(classes=("no", "yes"), ranges=(-0.5, 0.5), rows=5000)
    >>> model = PrivateSparseLogisticRegression(penalty="l1:0.01", epsilon=1.0, delta=1e-6, schema=known)
    >>> model = model.fit(columns, labels)
    >>> print(f"{model.accounting_.epsilon:.4f}, {bool(model.score(columns, labels) > 0.9)}")
    1.0000, True
    """

    _several = True

    def _fit(self, rows: Any, labels: Sequence[Array]) -> Sequence[LinearFit]:
        runs = self._runs(rows, labels, "logistic", self.row_bound)
        return [LinearFit(run.coefficients, run.intercept) for run in runs]


class PrivateSparseRegression(PrivateSparseEstimator, LinearRegressor):
    """Sparse linear regression whose coefficients are (epsilon, delta)-differentially private. ISTDP.

    Minimise (1/n) sum_i l((x_i theta + b - y_i)/h) + P(theta), h half the length of the schema's `target`: the public
    range of y decides the scale. Without a schema h is 1, and y is taken as it is.

    Noise leaves all columns in: `support=K` keeps K of them, chosen privately within the budget.

    A row moves the gradient by at most twice the clip over n, whatever y is. Huber's loss has a slope of at most 1, so
    that rows of norm up to the clip are not clipped at all, and rows are centred privately as for classes. The
    square's slope has no bound: `schema=PublicSchema(target=(low, high))` is needed, which keeps it at most 1 for
    theta = 0 and near 0 for a good fit; steeper rows are clipped, and rows are not centred. Take Huber's unless the
    mean itself is what you want.

    Parameters
    ----------
    loss : str
        `huber`: half the square up to a residual of h, straight beyond. `squared`: half the square.
    penalty, epsilon, delta, max_iter, clip, step, adjacency, output, row_bound, noise_seed, centre, support
        See `PrivateSparseLogisticRegression`. P is a penalty of the coefficients of y/h.
    fit_intercept, schema, budget
        See `PrivateSparseLogisticRegression`.

    Attributes
    ----------
    coef_, intercept_, n_features_in_, feature_names_in_
        Attributes as usual in scikit-learn.
    support_ : ndarray
        The positions of the coefficients that are not 0.
    accounting_ : Accounting
        The guarantee of the fit.
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np
    >>> import cvxpriv as cpv
    >>> from cvxpriv_models import PrivateSparseRegression
    >>> columns = np.random.default_rng(0).uniform(-0.5, 0.5, size=(5000, 4))
    >>> wages = 50 + 40 * columns[:, 2]
    >>> known = cpv.PublicSchema(ranges=(-0.5, 0.5), rows=5000, target=(20, 80))
    >>> model = PrivateSparseRegression(epsilon=1.0, delta=1e-6, schema=known).fit(columns, wages)
    >>> print(f"{model.accounting_.epsilon:.4f}, {bool(model.score(columns, wages) > 0.9)}")
    1.0000, True
    """

    def __init__(
        self,
        *,
        loss: str = "huber",
        penalty: str | Penalty = "auto",
        epsilon: float = 1.0,
        delta: float = 1e-6,
        max_iter: int | None = None,
        clip: float = 1.0,
        step: str = "lipschitz",
        adjacency: str | None = None,
        output: str = "auto",
        row_bound: float | None = None,
        fit_intercept: bool = True,
        noise_seed: int | None = None,
        schema: PublicSchema | str | Path | None = None,
        budget: Budget | str | Path | None = None,
        centre: str = "auto",
        support: int | None = None,
    ) -> None:
        self._keep(locals())

    def _plan(self, schema: PublicSchema | None) -> Plan:
        if self.loss not in REGRESSION_LOSSES:
            raise ModelError(f"loss={self.loss!r}: {suggest(str(self.loss), REGRESSION_LOSSES)}")
        if self.loss == "squared" and (schema is None or schema.target is None):
            raise PrivacyError(
                "loss='squared' has slopes without a bound, and only a public range of y says where to clip them: pass "
                "schema=PublicSchema(target=(low, high)), or loss='huber'"
            )
        return super()._plan(schema)

    def _fit(self, rows: Any, targets: Array) -> LinearFit:
        target = None if self._known is None else self._known.target
        low, high = (-1.0, 1.0) if target is None else target
        middle, half = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
        row_bound = self.clip if self.row_bound is None and self.loss == "squared" else self.row_bound
        (run,) = self._runs(rows, [(targets - middle) / half], self.loss, row_bound)
        return LinearFit(half * run.coefficients, half * run.intercept + middle)
