"""scikit-learn's face of recycled ADMM: `DecentralizedLogisticRegression`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import networkx as nx
import numpy as np

from cvxpriv.errors import DataError, PrivacyError
from cvxpriv.learning.estimators import BinaryLogisticClassifier
from cvxpriv.learning.labels import LinearFit
from cvxpriv.learning.schema import PublicSchema
from cvxpriv.numerics.arrays import Array
from cvxpriv.privacy import Budget, Plan

from .graph import Network
from .model import RecycledADMM
from .node_rows import Placement, Spelling, place, spelled
from .private import planned


class DecentralizedLogisticRegression(BinaryLogisticClassifier):
    """Logistic regression over rows of the nodes of a graph; a private fit loses to averages of private ones. RADMM.

    **A private fit loses, on small tables, to nodes that fit alone and average once.** At epsilon 1 and five nodes its
    log loss and AUC are .738 and .627 on COMPAS. The average of `PrivateSparseLogisticRegression` at each node, whose
    guarantee is the same since a row is at one node, has .659 and .673 (`docs/learning.md`).

    Rows are split among the nodes, and neighbours exchange coefficients.

    Minimise sum_i (C/B_i) sum_n log(1 + exp(-y_n x_n'f)) + (reg/2) ||f||^2, B_i the rows of node i. The intercept is
    penalised as the rest.

    Parameters
    ----------
    nodes : int, optional
        Number of nodes. None: that of `graph` or of the `groups` of `fit`, or else five.
    graph : str, networkx.Graph or adjacency matrix
        `complete`, `ring`, `path`, `star`, `random:<chance of an edge>`, or a connected graph.
    method, eta, growth, gamma, max_iter, tol
        See `RecycledADMM.solve`.
    reg, C : float, optional
        See `RecycledADMM`.
    epsilon, delta, alpha, perturbation, row_bound, clip_rows, noise_seed
        See `RecycledADMM.solve_private`; without epsilon and alpha nothing is private. `row_bound` is a public bound of
        the norms of the rows of X.
    schema : PublicSchema or path, optional
        Public knowledge of X and y: a private fit then infers none of it, rows that lie outside are moved
        inside, and `adjacency` is the schema's. None: the two classes are read off y, with a warning.
    budget : Budget or path, optional
        Budget that a private fit spends from; a fit beyond it is refused before a row is read.
    fit_intercept : bool
    random_state : int, RandomState or None
        Deals rows to nodes, and draws a random graph.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_
        As ever in scikit-learn.
    coef_, intercept_ : ndarray, (1, d), (1,)
        Means over the nodes.
    node_coef_, node_intercept_ : ndarray, (N, d), (N,)
    nodes_ : tuple
        The nodes' labels.
    graph_ : networkx.Graph
    n_iter_ : int
        Passes.
    converged_ : bool
        A private fit does not converge, and says False.
    accounting_ : Accounting or None
        The guarantee of a private fit, for every node's coefficients together.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxpriv_models import DecentralizedLogisticRegression
    >>> columns = np.random.default_rng(0).uniform(-0.5, 0.5, size=(600, 3))
    >>> labels = np.where(columns @ [2.0, -1.0, 0.5] > 0, "yes", "no")
    >>> model = DecentralizedLogisticRegression(3, graph="ring", random_state=0).fit(columns, labels)
    >>> model.node_coef_.shape, bool(model.score(columns, labels) > 0.95)
    ((3, 3), True)
    """

    def __init__(
        self,
        nodes: int | None = None,
        graph: Any = "complete",
        *,
        method: str | None = None,
        eta: float | None = None,
        growth: float = 1.0,
        gamma: float = 0.5,
        max_iter: int | None = None,
        tol: float = 1e-7,
        reg: float | None = None,
        C: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        alpha: float | None = None,
        perturbation: str | None = None,
        row_bound: float = 1.0,
        clip_rows: bool = False,
        noise_seed: int | None = None,
        schema: PublicSchema | str | Path | None = None,
        budget: Budget | str | Path | None = None,
        fit_intercept: bool = True,
        random_state: Any = None,
    ) -> None:
        self._keep(locals())

    @property
    def _private(self) -> bool:
        return self.epsilon is not None or self.alpha is not None

    def _plan(self, schema: PublicSchema | None) -> Plan:
        if schema is not None and schema.adjacency != "replace-one":
            raise PrivacyError("adjacency='add-remove': every node's number of rows is public, and weighs them")
        if self.budget is None:
            return Plan((), "", "replace-one")
        return planned(self.epsilon, self.delta, self.perturbation)

    def fit(self, X: Any, y: Any, groups: Any = None, **refused: Any) -> Self:
        """Fit the model: see `LinearEstimator.fit`.

        Parameters
        ----------
        X, y
            Rows, and two classes.
        groups : array, (n,), optional
            The node of each row, by label; None deals rows to nodes at random.
        """
        self._owners = None if groups is None else np.asarray(groups)
        try:
            super().fit(X, y, **refused)
        finally:
            del self._owners
        return self

    def _fit(self, rows: Any, labels: Sequence[Array]) -> Sequence[LinearFit]:
        placement = self._placed(rows.shape[0])
        shards = placement.shards(rows, labels[0], self.fit_intercept)
        model = RecycledADMM(placement.graph, shards, reg=self.reg, C=self.C)
        parameters = self._solved_private(model) if self._private else self._solved(model)
        self.graph_, self.nodes_ = placement.graph, model.problem.network.labels
        width = rows.shape[1]
        self.node_coef_ = parameters[:, :width]
        self.node_intercept_ = parameters[:, width] if self.fit_intercept else np.zeros(len(parameters))
        return [LinearFit(self.node_coef_.mean(axis=0), float(self.node_intercept_.mean()))]

    def _placed(self, rows: int) -> Placement:
        from sklearn.utils import check_random_state

        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        owners = None
        if self._owners is not None:
            if self._owners.shape != (rows,):
                raise DataError(f"groups has shape {self._owners.shape}, expected ({rows},): the node of each row")
            owners = self._owners.tolist()
        return place(_graph(self.graph), rows, self.nodes, owners, seed)

    def _solved(self, model: RecycledADMM) -> Array:
        run = model.solve(**self._own("method max_iter eta growth gamma tol"))
        self._solved_openly(run, "eta")
        return run.parameters

    def _solved_private(self, model: RecycledADMM) -> Array:
        run = model.solve_private(
            **self._own("method max_iter eta growth gamma alpha epsilon delta perturbation noise_seed budget"),
            row_bound=float(np.hypot(self.row_bound, float(self.fit_intercept))),
            clip_rows=self.clip_rows or (self._known is not None and self._known.beyond == "clip"),
        )
        self.n_iter_, self.converged_, self.accounting_ = len(run.released), False, run.accounting
        return run.parameters


def _graph(given: Any) -> nx.Graph | Spelling:
    if isinstance(given, str):
        return spelled(given)
    if isinstance(given, nx.Graph):
        return given
    return nx.from_numpy_array(Network.of(given).adjacency)
