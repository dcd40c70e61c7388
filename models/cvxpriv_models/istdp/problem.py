"""ISTDP (2): minimise F(theta) = (1/n) sum_i l(x_i theta, y_i) + P(theta), the loss averaged and P sparse.

The design X is dense by columns, or sparse by rows, and checked once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.sparse.linalg import svds

from cvxpriv.errors import DataError, ModelError, shown
from cvxpriv.learning.labels import LARGEST, signed_labels
from cvxpriv.learning.learning_model import random_scale
from cvxpriv.learning.matrices import sparse_rows, with_column
from cvxpriv.learning.schema import PublicSchema
from cvxpriv.numerics.arguments import real_numbers
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.packages import pd
from cvxpriv.penalties import MCP, Loss, Penalty, loss_named, penalty_named, require_penalty

Design = Array | sp.csr_array


def read_design(x: Any, least: int = 2) -> tuple[Design, tuple[str, ...]]:
    """Return X in the form that products need, and its columns' names."""
    if isinstance(x, pd.DataFrame):
        names = tuple(str(name) for name in x.columns)
        x = x.to_numpy()
    else:
        names = ()
    design: Design = sparse_rows("X", x) if sp.issparse(x) else np.array(real_numbers(x, "X", copy=False), order="F")
    if design.ndim != 2 or design.shape[0] < least or design.shape[1] < 1:
        raise DataError(f"X has shape {design.shape}, expected (n, d) with n >= {least} rows and d >= 1 columns")
    names = names or tuple(f"x{index}" for index in range(design.shape[1]))
    if isinstance(design, np.ndarray):
        bad = np.asarray(~np.isfinite(design).all(axis=0))
    else:
        bad = np.bincount(design.indices[~np.isfinite(design.data)], minlength=design.shape[1]) > 0
    if bad.any():
        raise DataError(f"X holds NaN or infinite values in {_named(bad, names)}: impute or drop them first")
    return design, names


def too_large(design: Design, y: Array) -> str:
    """Return the refusal of entries or labels whose sums of squares overflow; empty where there are none."""
    entries = design if isinstance(design, np.ndarray) else design.data
    if max(entries.max(initial=0.0), -entries.min(initial=0.0)) > LARGEST:
        return f"X holds entries above {LARGEST:g}, whose squares overflow: scale its columns"
    if np.abs(y).max(initial=0.0) > LARGEST:
        return f"y holds labels above {LARGEST:g}, whose squares overflow: scale them"
    return ""


def refuse_constant(design: Design, names: tuple[str, ...]) -> None:
    """Refuse columns that would be a penalised intercept. A column of zeros is allowed: its coefficient is 0."""
    if isinstance(design, np.ndarray):
        constant = np.asarray((design == design[0]).all(axis=0)) & (design[0] != 0.0)
    else:
        most, least = (np.asarray(side.todense()).ravel() for side in (design.max(axis=0), design.min(axis=0)))
        constant = (most == least) & (most != 0.0)
    if constant.any():
        raise DataError(
            f"X is constant in {_named(constant, names)}: such a coefficient is an intercept that would be penalised; "
            "drop the columns and pass intercept=True, or pass allow_constant=True to keep them"
        )


def _named(chosen: npt.NDArray[np.bool_], names: tuple[str, ...]) -> str:
    which = [names[index] for index in np.flatnonzero(chosen)]
    more = f" and {len(which) - 3} more" if len(which) > 3 else ""
    return f"column{'s' if len(which) > 1 else ''} {', '.join(which[:3])}{more}"


#: Largest share of coefficients other than 0 for which only their columns are multiplied.
FEW = 0.25
#: Largest share of entries other than 0 for which some columns of a sparse design stay sparse.
SPARSE = 0.1
#: The name that leaves the penalty to the model, and the penalty of a solve without privacy in that case.
AUTOMATIC, DEFAULT = "auto", MCP(0.05, 3.0)
#: Largest size of an intercept that is searched.
FAR = 1e6


@dataclass(frozen=True, eq=False)
class Problem:
    """The data of ISTDP (2), validated.

    `design`, (n, d) or (n, d + 1): The rows x_i. With an intercept there is a last column of ones, whose coefficient is
    not penalised: it is one more coordinate of theta.
    `y`, (n,): Labels, -1 and 1 for a margin loss.
    `classes`, (2,): The user's labels for -1 and 1; None for a residual loss.
    `names`: Names of the d features.
    `automatic`: Whether the penalty was left to the model.
    `schema`: Public knowledge of the rows.
    """

    design: Design
    y: Array
    loss: Loss
    penalty: Penalty
    intercept: bool
    classes: npt.NDArray[np.generic] | None
    names: tuple[str, ...]
    automatic: bool = False
    schema: PublicSchema | None = None

    @classmethod
    def of(
        cls,
        x: ArrayLike | pd.DataFrame | sp.sparray | sp.spmatrix,
        y: ArrayLike,
        loss: str | Loss,
        penalty: str | Penalty,
        intercept: bool,
        allow_constant: bool,
        schema: PublicSchema | None = None,
    ) -> Problem:
        """Validate a user's data; see `ISTDP`."""
        for name, value in (("intercept", intercept), ("allow_constant", allow_constant)):
            if not isinstance(value, (bool, np.bool_)):
                raise ModelError(f"{name}={shown(value)} is neither True nor False")
        smooth = _smooth(loss)
        chosen = _penalty(penalty)
        if schema is None:
            design, names = read_design(x)
            labels, classes = signed_labels(y, design.shape[0], smooth, one_class=True, any_size=True)
            if not allow_constant:
                refuse_constant(design, names)
        else:
            design, names = read_design(schema.table(x), least=0)
            labels, classes = schema.labels(y, design.shape[0], margin=smooth.margin)
        if intercept:
            ones = with_column(design)
            design = np.asfortranarray(ones) if isinstance(ones, np.ndarray) else ones
        automatic = isinstance(penalty, str) and penalty == AUTOMATIC
        return cls(design, labels, smooth, chosen, bool(intercept), classes, names, automatic, schema)

    @property
    def rows(self) -> int:
        """Number of rows, n."""
        return self.y.size

    @property
    def features(self) -> int:
        """Number of penalised coefficients, d: the first d of theta."""
        return len(self.names)

    @property
    def size(self) -> int:
        """Length of theta: d, and 1 more for an intercept."""
        return int(self.design.shape[1])

    @property
    def random_scale(self) -> float:
        """Standard deviation of the entries of a random start."""
        entries = self.design if isinstance(self.design, np.ndarray) else self.design.data
        flat = entries.ravel(order="K")  # a view of columns, where vdot would copy them
        return random_scale(float(flat @ flat), self.rows)

    def with_penalty(self, penalty: Penalty) -> Problem:
        """Return the same problem with another penalty."""
        return replace(self, penalty=_penalty(penalty), automatic=False)

    def columns(self, chosen: npt.NDArray[np.intp]) -> Design:
        """Return columns of the design, (n, len(chosen)): sparse where few of their entries are not 0."""
        if isinstance(self.design, np.ndarray):
            return self.design[:, chosen]
        part = self._by_column[:, chosen]
        return sp.csr_array(part) if part.nnz <= SPARSE * self.rows * chosen.size else np.asarray(part.toarray())

    def restricted(self, chosen: npt.NDArray[np.intp]) -> Problem:
        """Return the problem on some features alone, in their order, with the intercept of the whole one."""
        design = self.columns(np.append(chosen, np.arange(self.features, self.size)))
        return replace(self, design=design, names=tuple(self.names[index] for index in chosen))

    def predictions(self, theta: Array) -> Array:
        """Return z = X theta, (n,)."""
        if isinstance(self.design, np.ndarray):
            support = np.flatnonzero(theta)
            if support.size <= FEW * theta.size:
                return np.asarray(self.design[:, support] @ theta[support])
        return np.asarray(self.design @ theta)

    def average_loss(self, z: Array) -> float:
        """Return L = (1/n) sum_i l(z_i, y_i)."""
        return float(np.mean(self.loss.value(z, self.y)))

    def gradient(self, z: Array) -> Array:
        """Return the gradient of L by theta, (size,), where the predictions are z."""
        return np.asarray(self._transposed @ (self.loss.gradient(z, self.y) / self.rows))

    def penalty_value(self, theta: Array) -> float:
        """Return P, which leaves the intercept out."""
        return float(self.penalty.value(theta[: self.features]))

    def objective(self, theta: Array) -> float:
        """Return F(theta), ISTDP (2)."""
        return self.average_loss(self.predictions(theta)) + self.penalty_value(theta)

    @cached_property
    def too_large(self) -> str:
        """The refusal of entries or labels too large for a solve; a private fit clips them, and tells nobody."""
        return too_large(self.design, self.y)

    @cached_property
    def lipschitz(self) -> float:
        """The Lipschitz constant of the gradient of L that the loss's smoothness gives: smoothness ||X||^2 / n."""
        if isinstance(self.design, np.ndarray):
            norm = float(np.linalg.norm(self.design, 2))
        elif min(self.design.shape) < 3:
            norm = float(np.linalg.norm(self.design.toarray(), 2))
        else:
            norm = float(svds(self.design, k=1, return_singular_vectors=False, random_state=0)[0])
        return self.loss.smoothness * norm**2 / self.rows

    @cached_property
    def lambda_max(self) -> float:
        """The largest |dL/dtheta_i| where only the intercept is fitted: an l1 weight above it leaves no coefficient.

        The same holds for the weights of MCP, SCAD and capped l1, for the start at 0.
        """
        theta = np.zeros(self.size)
        if self.intercept:
            theta[-1] = self._best_intercept()
        return float(np.abs(self.gradient(self.predictions(theta))[: self.features]).max())

    def _best_intercept(self) -> float:
        def slope(at: float) -> float:
            return float(np.mean(self.loss.gradient(np.full(self.rows, at), self.y)))

        if slope(-FAR) >= 0.0 or slope(FAR) <= 0.0:
            raise ModelError(
                f"lambda_max: loss={self.loss.name!r} of an intercept alone is least at infinity, since y holds one "
                "class only or the loss is not convex: choose weights yourself"
            )
        return float(brentq(slope, -FAR, FAR, xtol=1e-13))

    @cached_property
    def _by_column(self) -> sp.csc_array:
        return sp.csc_array(self.design)

    @cached_property
    def _transposed(self) -> Array | sp.csr_array:
        return self.design.T if isinstance(self.design, np.ndarray) else sp.csr_array(self.design.T)


def _smooth(loss: str | Loss) -> Loss:
    chosen = loss_named(loss)
    if not np.isfinite(chosen.smoothness):
        raise ModelError(
            f"loss={chosen.name!r} has a kink, and ISTDP steps along a gradient: pass, for example, "
            "loss='smoothed-hinge' or loss='logistic'"
        )
    return chosen


def _penalty(penalty: str | Penalty) -> Penalty:
    if isinstance(penalty, str):
        return DEFAULT if penalty == AUTOMATIC else penalty_named(penalty)
    require_penalty(penalty)
    return penalty
