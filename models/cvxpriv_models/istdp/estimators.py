"""The scikit-learn estimator of ISTDP: `PrivateSparseLogisticRegression`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cvxpriv.learning.estimators import BinaryLogisticClassifier
from cvxpriv.learning.linear import LinearFit
from cvxpriv.learning.schema import PublicSchema, relation_of
from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties import Penalty
from cvxpriv.privacy import Budget, Plan

from .model import ISTDP
from .private import planned

__all__ = ["PrivateSparseLogisticRegression"]


class PrivateSparseLogisticRegression(BinaryLogisticClassifier):
    """Sparse logistic regression whose coefficients are (epsilon, delta)-differentially private. ISTDP.

    Minimise (1/n) sum_i log(1 + exp(-y_i (x_i theta + b))) + P(theta) by proximal steps along clipped, noisy gradients.
    The coefficients are private, and so is everything that is computed from them and from other people's rows. The
    schema and every parameter here count as public, and without a schema the two classes and the number of rows: choose
    them without these data, since a grid search on them is not private.

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
        inside, and `adjacency` is the schema's. None: the two classes are read off y, with a warning.
    budget : Budget or path, optional
        Budget that a private fit spends from; a fit beyond it is refused before a row is read.
    fit_intercept : bool
        Fit an intercept. It is not penalised, and inside the sensitivity: as private as the rest.

    Attributes
    ----------
    classes_, coef_, intercept_, n_features_in_, feature_names_in_
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
    >>> from cvxpriv_models import PrivateSparseLogisticRegression
    >>> columns = np.random.default_rng(0).uniform(-0.5, 0.5, size=(5000, 4))
    >>> labels = np.where(columns[:, 2] > 0, "yes", "no")
    >>> known = cpv.PublicSchema(classes=("no", "yes"), ranges=(-0.5, 0.5), rows=5000)
    >>> model = PrivateSparseLogisticRegression(penalty="l1:0.01", epsilon=1.0, delta=1e-6, schema=known)
    >>> model = model.fit(columns, labels)
    >>> print(f"{model.accounting_.epsilon:.4f}, {bool(model.score(columns, labels) > 0.9)}")
    1.0000, True
    """

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
        self.penalty = penalty
        self.epsilon = epsilon
        self.delta = delta
        self.max_iter = max_iter
        self.clip = clip
        self.step = step
        self.adjacency = adjacency
        self.output = output
        self.row_bound = row_bound
        self.fit_intercept = fit_intercept
        self.noise_seed = noise_seed
        self.schema = schema
        self.budget = budget
        self.centre = centre
        self.support = support

    @property
    def _private(self) -> bool:
        return True

    def _plan(self, schema: PublicSchema | None) -> Plan:
        return planned(self.epsilon, self.delta, None, relation_of(schema, self.adjacency))

    def _fit(self, rows: Any, labels: Array) -> LinearFit:
        known = PublicSchema(classes=(-1, 1)) if self._known is None else self._known.encoded()
        if self._known is None and self.adjacency is not None:
            known = replace(known, adjacency=self.adjacency)
        model = ISTDP(rows, labels, penalty=self.penalty, intercept=self.fit_intercept, schema=known)
        bound = self.row_bound
        if bound is not None and self.fit_intercept:
            bound = float(np.hypot(bound, 1.0))
        run = model.solve_private(
            epsilon=self.epsilon,
            delta=self.delta,
            max_iter=self.max_iter,
            clip=self.clip,
            step=self.step,
            adjacency=self.adjacency,
            output=self.output,
            row_bound=bound,
            noise_seed=self.noise_seed,
            budget=self.budget,
            centre=self.centre,
            support=self.support,
        )
        self.accounting_, self.support_, self.n_iter_ = run.accounting, run.support, run.settings.max_iter
        return LinearFit(run.coefficients, run.intercept)
