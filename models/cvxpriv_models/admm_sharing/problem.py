"""The sharing problem, SHARING (1): a linear model whose columns are split among parties.

An intercept is the last column of the first party. Without privacy its height of `TALL` makes its coefficient so small
that the square penalises the intercept with a millionth of its weight: as good as not at all, and in far fewer passes
than a party of its own takes (124 against 865 on Adult). Other penalties are no squares; there the column is a party of
its own, without one. A private fit has no bounded step for an unpenalised coefficient: there the height is 1, and the
penalty counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from cvxpriv.errors import DataError, ModelError, shown
from cvxpriv.learning.labels import signed_labels
from cvxpriv.learning.learning_model import random_scale
from cvxpriv.learning.matrices import Matrix, checked_matrix, with_column
from cvxpriv.learning.schema import PublicSchema
from cvxpriv.numerics.arguments import finite_double, real_numbers
from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties import Loss, Penalty, Within, convex_penalty, loss_named
from cvxpriv.penalties.loss_steps import in_pieces

#: One party's columns, (N, d_m): dense, or sparse by rows.
Part = Matrix

#: Largest entry, lam and weight of a sample, and inverse of the least weight: products of a few of them stay finite.
LARGEST = 1e75


@dataclass(frozen=True, eq=False)
class Problem:
    """The data of SHARING (1), validated.

    Minimise sum_i weight_i l(S_i, y_i) + lam sum_m R_m(x_m) with S = sum_m D_m x_m. The loss is **summed** over the
    samples, not averaged: the paper's (1) drops the 1/N of the line above it. lam is N times that of an average.

    `parts`: The columns D_m, (N, d_m), one array per party.
    `y`, (N,): Labels -1 and 1 for a margin loss; any numbers for a residual loss.
    `penalties`: The penalties R_m, one per party. The square is (1/2) ||x||^2. A ready set X_m is part of it.
    `lam`: Weight of the penalties, >= 0.
    `weights`, (N,): Weights of the samples, > 0; ones unless given.
    `classes`, (2,): The user's labels for -1 and 1; None for a residual loss.
    `schema`: Public knowledge of all parties' columns together.
    """

    parts: tuple[Part, ...]
    y: Array
    loss: Loss
    penalties: tuple[Penalty, ...]
    lam: float
    weights: Array
    classes: np.ndarray | None = None
    schema: PublicSchema | None = None

    def __repr__(self) -> str:
        columns = " + ".join(str(part.shape[1]) for part in self.parts)
        names = ", ".join(dict.fromkeys(one.name for one in self.penalties))
        return f"Problem({self.samples} x ({columns}), {self.loss.name}, {names}, lam={self.lam:g})"

    @property
    def samples(self) -> int:
        """Number of samples, N."""
        return int(self.y.size)

    @property
    def parties(self) -> int:
        """Number of parties, M."""
        return len(self.parts)

    @property
    def columns(self) -> int:
        """Number of columns of all parties: d_1 + ... + d_M."""
        return sum(int(part.shape[1]) for part in self.parts)

    def split(self, coefficients: Array) -> list[Array]:
        """Return each party's part of all coefficients, (d_1 + ... + d_M,)."""
        ends = np.cumsum([part.shape[1] for part in self.parts])[:-1]
        return np.split(coefficients, ends)

    @property
    def random_scale(self) -> float:
        """Standard deviation of the entries of a random start."""
        entries = [part if isinstance(part, np.ndarray) else part.data for part in self.parts]
        return random_scale(sum(float(np.vdot(one, one)) for one in entries), self.samples)

    @classmethod
    def of(
        cls,
        parts: Sequence[ArrayLike | sparse.sparray],
        y: ArrayLike,
        loss: str | Loss = "logistic",
        penalty: str | Penalty | Sequence[str | Penalty] = "l2",
        lam: float = 1.0,
        weights: ArrayLike | None = None,
        sets: str | Penalty | Sequence[str | Penalty | None] | None = None,
        schema: PublicSchema | None = None,
    ) -> Problem:
        """Validate a user's data. Columns may depend on each other: D_m of deficient rank is handled.

        `parts`: (N, d_m).
        `y`, (N,): Labels. A margin loss takes two classes, of any type: the smaller one becomes -1.
        `weights`: (N,).
        `sets`: Sets X_m: `nonneg` or `box:<low>:<high>`; None leaves a party free.
        `schema`: Names of the parties' columns, one party after the other.
        """
        matrices = _parts(parts if schema is None else _within(schema, parts))
        chosen, rows = loss_named(loss), matrices[0].shape[0]
        if schema is None:
            labels, classes = signed_labels(y, rows, chosen, one_class=True)
        else:
            labels, classes = schema.labels(y, rows, margin=chosen.margin)
        penalties = _one_a_party("penalty", penalty, len(matrices))
        bounds = _one_a_party("sets", sets, len(matrices))
        within = tuple(
            convex_penalty(one) if bound is None else Within(convex_penalty(one), convex_penalty(bound))
            for one, bound in zip(penalties, bounds, strict=True)
        )
        return cls(matrices, labels, chosen, within, checked_lam(lam), _weights(weights, labels.size), classes, schema)

    def predictions(self, coefficients: Sequence[Array], parts: Sequence[Part] | None = None) -> Array:
        """Return S = sum_m D_m x_m, (N,), on the training rows or on other `parts`."""
        chosen = self.parts if parts is None else parts
        total = np.zeros(chosen[0].shape[0])
        for part, x in zip(chosen, coefficients, strict=True):
            total += part @ x
        return total

    def objective(self, coefficients: Sequence[Array]) -> float:
        """Return the objective of (1) at x_1..x_M."""
        return self.value_at(self.predictions(coefficients), coefficients)

    def value_at(self, predictions: Array, coefficients: Sequence[Array]) -> float:
        """Return the objective of (1) where S is known already."""
        return self.fit_value(predictions) + self.penalty_value(coefficients)

    def fit_value(self, predictions: Array) -> float:
        """Return sum_i weight_i l(S_i, y_i)."""
        return float(self.weights @ in_pieces(self.loss.value)(predictions, self.y))

    def penalty_value(self, coefficients: Sequence[Array]) -> float:
        """Return lam sum_m R_m(x_m); outside a set it is inf, whatever lam is."""
        return self.weighted([one.value(x) for one, x in zip(self.penalties, coefficients, strict=True)])

    def weighted(self, values: Sequence[float]) -> float:
        """Return lam sum_m of the values R_m(x_m)."""
        return float("inf") if np.isinf(values).any() else self.lam * sum(values)


def checked_part(name: str, part: Any) -> Part:
    """Return a party's columns: see `checked_matrix`."""
    advice = ": leave out a party without columns"
    return checked_matrix(name, part, LARGEST, axes="samples, columns", remedy=advice)


def _parts(parts: Any) -> tuple[Part, ...]:
    if sparse.issparse(parts) or not isinstance(parts, Sequence):
        raise DataError("parts is no list of parties: pass [D1, D2, ...], or [D] for one party")
    matrices = tuple(checked_part(f"parts[{m}]", part) for m, part in enumerate(parts))
    if not matrices:
        raise DataError("parts is empty: pass the columns of at least one party")
    rows = [matrix.shape[0] for matrix in matrices]
    if len(set(rows)) > 1:
        raise DataError(f"parts have {rows} rows: every party must hold the same samples, in the same order")
    return matrices


def _within(schema: PublicSchema, parts: Any) -> list[Any]:
    """The parties' columns, each within what the schema says of them."""
    if sparse.issparse(parts) or not isinstance(parts, Sequence):
        return list(_parts(parts))  # refuses
    found, place = [], 0
    for part in parts:
        found.append(schema.numbers(part, place))
        place += found[-1].shape[1]
    return found


def _one_a_party(name: str, given: Any, parties: int) -> tuple[Any, ...]:
    several = tuple(given) if isinstance(given, (list, tuple)) else (given,) * parties
    if len(several) != parties:
        raise ModelError(f"{name} names {len(several)} for {parties} parties: pass one for all, or one a party")
    return several


def checked_lam(lam: Any) -> float:
    """Return the weight of the penalties."""
    number = finite_double(lam)
    if not 0.0 <= number <= LARGEST:
        raise ModelError(f"lam={shown(lam)} is no weight of the penalty: pass a number from 0 to {LARGEST:g}")
    return number


def _weights(weights: ArrayLike | None, samples: int) -> Array:
    if weights is None:
        return np.ones(samples)
    given = real_numbers(weights, "weights")
    if given.shape != (samples,) or not ((given >= 1.0 / LARGEST) & (given <= LARGEST)).all():
        raise DataError(
            f"weights must be {samples} finite numbers > 0, one a sample, at least {1.0 / LARGEST:g} and at most "
            f"{LARGEST:g}: drop samples of weight 0"
        )
    return given


def together(parts: Sequence[Part]) -> Part:
    """Return the columns of all parties side by side, (N, d)."""
    if any(sparse.issparse(part) for part in parts):
        return sparse.csr_array(sparse.hstack([sparse.csr_array(part) for part in parts]))
    return np.hstack([np.asarray(part) for part in parts])


TALL = 1000.0


@dataclass(frozen=True)
class Intercept:
    """The place of a model's intercept.

    `height`: Value of its column.
    `own`: Whether that column is a party of its own, the last one; otherwise it is the last column of the first party.
    """

    height: float
    own: bool = False

    def split(self, coefficients: Sequence[Array]) -> tuple[list[Array], float]:
        """Return each party's coefficients without the intercept, and the intercept."""
        if self.own:
            return list(coefficients[:-1]), float(coefficients[-1][0]) * self.height
        return [coefficients[0][:-1], *coefficients[1:]], float(coefficients[0][-1]) * self.height


def with_intercept(
    parts: Sequence[Part], penalty: str | Penalty, *, private: bool
) -> tuple[list[Part], list[str | Penalty], Intercept]:
    """Return the parties' columns with an intercept's column, each party's penalty, and the intercept's place."""
    square = convex_penalty(penalty).ridge is not None
    if private and not square:
        raise ModelError(
            f"penalty={penalty!r} is no square, and a private intercept would be penalised by it: leave the "
            "intercept out, or take 'l2'"
        )
    each: list[str | Penalty] = [penalty] * len(parts)
    if square:
        found = Intercept(1.0 if private else TALL)
        return [with_column(parts[0], found.height), *parts[1:]], each, found
    ones = np.ones((parts[0].shape[0], 1))
    return [*parts, ones], [*each, "none"], Intercept(1.0, own=True)


def bounds_with_ones(bounds: Sequence[float], adjacency: str, rows: int) -> list[float]:
    """Return the public bound of each party, where the first one also has a private model's column of ones.

    `bounds`: Bounds of a party's part of any row, of any column, or of any entry, as `adjacency` says.
    """
    ones = {"column": float(np.sqrt(rows)), "cell": 1.0}
    first = max(bounds[0], ones[adjacency]) if adjacency in ones else float(np.hypot(bounds[0], 1.0))
    return [first, *bounds[1:]]
