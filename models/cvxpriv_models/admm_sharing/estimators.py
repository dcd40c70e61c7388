"""The scikit-learn estimator of ADMM sharing: `VerticalLogisticRegression`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from cvxpriv.errors import DataError, ModelError
from cvxpriv.learning.estimators import BinaryLogisticClassifier
from cvxpriv.learning.labels import LinearFit
from cvxpriv.learning.schema import PublicSchema, relation_of
from cvxpriv.numerics.arguments import is_whole
from cvxpriv.numerics.arrays import Array
from cvxpriv.privacy import Budget, Plan

from .model import ADMMSharing
from .private_settings import planned
from .problem import Part, bounds_with_ones, with_intercept


class VerticalLogisticRegression(BinaryLogisticClassifier):
    """Logistic regression over columns of several parties; a private fit loses to averages of own fits. SHARING.

    **A private fit loses to no exchange at all on small tables**: at epsilon 1 log loss and AUC are .630 and .720 on
    German credit, where the average of two parties' own fits, which releases nothing, has .531 and .796. On a9a it pays
    in log loss, .342 against .351, and loses in AUC, .893 against .898 (`docs/learning.md`).

    Columns are split among parties that share one value per row.

    Minimise sum_i log(1 + exp(-y_i (S_i + b))) + lam sum_m R(x_m), S = sum_m D_m x_m: the loss is **summed**, and lam
    is 1/C of scikit-learn's `LogisticRegression`, whose coefficients these are without privacy.

    Parameters
    ----------
    groups : int, or sequence of sequences of int or str
        The columns of each party, by position or name, each column with one party. A number is the number of parties,
        with equal parts of the columns in order.
    lam : float
    penalty : str
        `l2` (half the square), `l1`, `elastic-net:<weight>:<ratio>`, ...: see `ADMMSharing`.
    rho : float, optional
        The penalty parameter of ADMM. None is a good one, or with `epsilon` one that suits noise.
    method : str, optional
        See `ADMMSharing.solve`.
    max_iter, tol
        Largest number of passes, and the relative KKT residual to reach. A private fit has `max_iter` passes, four
        unless named.
    fit_intercept : bool
        Fit an intercept. Without privacy it is practically not penalised; with `epsilon` it is, as a coefficient of the
        first party: see `intercept`.
    epsilon : float, optional
        None: no privacy. Otherwise the messages between parties are (epsilon, delta)-private. **Coefficients and
        predictions are not**: each party's coefficients stay with it, see `warnings_`.
    delta, adjacency, clip, clip_entries, labels, noise_seed
        See `ADMMSharing.solve_private`; `adjacency` is `replace-one` or `party-row`.
    row_bound : float or one a group, optional
        A public bound of the norm of a group's part of any row. Needed with `epsilon`, unless `clip` is given, or the
        schema has ranges.
    schema : PublicSchema or path, optional
        Public knowledge of X and y: a private fit then infers none of it, rows that lie outside are moved
        inside, and `adjacency` is the schema's. None: the two classes are read off y, with a warning.
    budget : Budget or path, optional
        Budget that a private fit spends from; a fit beyond it is refused before a row is read.

    Attributes
    ----------
    classes_, coef_, intercept_, n_features_in_, feature_names_in_
        Attributes as usual in scikit-learn.
    groups_ : list of ndarray
        The positions of each party's columns.
    n_iter_ : int
    converged_ : bool
        Whether the fit converged; False for a private fit, which does not.
    accounting_ : Accounting or None
        The guarantee of a private fit.
    warnings_ : tuple of str
        Quantities that the guarantee does not cover.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxpriv_models import VerticalLogisticRegression
    >>> columns = np.random.default_rng(0).normal(size=(200, 4))
    >>> labels = np.where(columns @ [1.0, -1.0, 0.5, 0.0] > 0, "yes", "no")
    >>> model = VerticalLogisticRegression(groups=[[0, 1], [2, 3]]).fit(columns, labels)
    >>> model.predict(columns[:2]).tolist(), bool(model.score(columns, labels) > 0.9)
    (['yes', 'no'], True)
    """

    def __init__(
        self,
        groups: int | Sequence[Sequence[int | str]] = 2,
        *,
        lam: float = 1.0,
        penalty: str = "l2",
        rho: float | None = None,
        method: str | None = None,
        max_iter: int | None = None,
        tol: float = 1e-7,
        fit_intercept: bool = True,
        epsilon: float | None = None,
        delta: float = 1e-6,
        adjacency: str | None = None,
        row_bound: float | Sequence[float] | None = None,
        clip: float | None = None,
        clip_entries: float | None = None,
        labels: str = "shared",
        noise_seed: int | None = None,
        schema: PublicSchema | str | Path | None = None,
        budget: Budget | str | Path | None = None,
    ) -> None:
        self._keep(locals())

    @property
    def _private(self) -> bool:
        return self.epsilon is not None

    def _plan(self, schema: PublicSchema | None) -> Plan:
        return planned(self.epsilon, self.delta, self.labels, "gaussian", relation_of(schema, self.adjacency))

    def _fit(self, rows: Any, labels: Sequence[Array]) -> Sequence[LinearFit]:
        names = getattr(self, "feature_names_in_", None)
        self.groups_ = column_groups(self.groups, rows.shape[1], None if names is None else list(names))
        parts = [_columns(rows, group) for group in self.groups_]
        if self.fit_intercept:
            tall, penalties, where = with_intercept(parts, self.penalty, private=self._private)
            model = ADMMSharing(tall, labels[0], penalty=penalties, lam=self.lam)
            coefficients, intercept = where.split(self._coefficients(model))
        else:
            model = ADMMSharing(parts, labels[0], penalty=self.penalty, lam=self.lam)
            coefficients, intercept = self._coefficients(model), 0.0
        together = np.zeros(rows.shape[1])
        for group, x in zip(self.groups_, coefficients, strict=True):
            together[group] = x
        return [LinearFit(together, intercept)]

    def _coefficients(self, model: ADMMSharing) -> list[Array]:
        return self._solved_private(model) if self._private else self._solved(model)

    def _solved(self, model: ADMMSharing) -> list[Array]:
        run = model.solve(method=self.method, rho=self.rho, max_iter=self.max_iter, tol=self.tol, gap=0.0)
        self._solved_openly(run, "rho")
        self.warnings_: tuple[str, ...] = ()
        return run.coefficients

    def _solved_private(self, model: ADMMSharing) -> list[Array]:
        schema = self._known
        if self.adjacency not in (None, "replace-one", "party-row"):
            raise ModelError(
                f"adjacency={self.adjacency!r} is not 'replace-one' or 'party-row': use ADMMSharing for others"
            )
        run = model.solve_private(
            **self._own("epsilon delta adjacency method max_iter clip clip_entries labels rho noise_seed budget"),
            row_bound=self._row_bounds(),
            clip_data=schema is not None and schema.beyond == "clip",
        )
        self.n_iter_, self.converged_ = run.settings.max_iter, False
        self.accounting_, self.warnings_ = run.accounting, run.warnings
        return run.not_private.coefficients

    def _row_bounds(self) -> list[float] | None:
        parties, given = len(self.groups_), self.row_bound
        if given is None and self.clip is None and self._known is not None:
            known = [self._known.row_bound(group.tolist()) for group in self.groups_]
            given = None if None in known else [one for one in known if one is not None]
        if given is None:
            return None
        bounds = [given] * parties if isinstance(given, (int, float)) else list(given)
        if len(bounds) != parties:
            raise DataError(f"row_bound has {len(bounds)} numbers for {parties} groups: pass one for all, or one each")
        return bounds_with_ones(bounds, self.adjacency or "replace-one", 1) if self.fit_intercept else bounds


def column_groups(groups: object, columns: int, names: list[str] | None) -> list[npt.NDArray[np.intp]]:
    """Return the positions of each party's columns.

    `groups`: See `VerticalLogisticRegression`.
    `names`: Names of the columns.
    Raises DataError: The number of parties is not valid, a group is empty, or a column is unknown or not in exactly one
    group.

    Examples
    --------
    >>> [group.tolist() for group in column_groups(2, 5, None)]
    [[0, 1, 2], [3, 4]]
    """
    if is_whole(groups):
        if groups < 1:
            raise DataError(f"groups={groups!r} is no number of parties: pass a whole number >= 1, or lists of columns")
        return [np.asarray(part) for part in np.array_split(np.arange(columns), min(int(groups), columns))]
    if isinstance(groups, str) or not isinstance(groups, (Sequence, np.ndarray)):
        raise DataError(f"groups={groups!r} are no groups of columns: pass [[0, 1], [2]], names, or how many parties")
    found = [np.array([_position(one, columns, names) for one in group], dtype=np.intp) for group in groups]
    if not found or any(group.size == 0 for group in found):
        raise DataError("groups holds an empty group: leave out a party without columns")
    counts = np.bincount(np.concatenate(found), minlength=columns)
    wrong = np.flatnonzero(counts != 1)
    if wrong.size:
        column = wrong[0] if names is None else repr(names[wrong[0]])
        raise DataError(
            f"column {column} is in {counts[wrong[0]]} groups: put each column of X in one, and drop from X what no "
            "party holds"
        )
    return found


def _position(column: object, columns: int, names: list[str] | None) -> int:
    if isinstance(column, str):
        if names is None or column not in names:
            known = "X has no column names" if names is None else f"X has {', '.join(names[:10])}"
            raise DataError(f"groups names column {column!r}: {known}")
        return names.index(column)
    if not is_whole(column, 0) or column >= columns:
        raise DataError(f"groups names column {column!r}: pass positions from 0 to {columns - 1}, or names")
    return int(column)


def _columns(rows: Any, group: npt.NDArray[np.intp]) -> Part:
    chosen = rows[:, group]
    return sparse.csr_array(chosen) if sparse.issparse(rows) else np.asarray(chosen)
