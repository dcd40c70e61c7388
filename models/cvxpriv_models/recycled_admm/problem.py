"""The consensus problem, RADMM (1) with the sub-objectives of its section V."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from cvxpriv.errors import DataError, ModelError, shown
from cvxpriv.learning.labels import LARGEST, signed_labels
from cvxpriv.learning.learning_model import random_scale
from cvxpriv.learning.matrices import checked_matrix
from cvxpriv.learning.schema import PublicSchema
from cvxpriv.numerics.arguments import as_array, finite_double
from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties import Loss, Penalty, convex_penalty, loss_named

from .graph import Network
from .kinked import centralised_kinked, steepest
from .newton import centralised
from .rows import Part, Rows

#: reg, unless it is named, over C N: the weight of (1/2)||f||^2 beside the mean loss of a row. RADMM section VIII has
#: reg = .22 at C = 1750 and N = 5.
REG = 2.5e-5

Shard = tuple[ArrayLike | sparse.sparray, ArrayLike]


@dataclass(frozen=True, eq=False)
class Problem:
    """The data of RADMM (1), validated.

    Minimise sum_i O_i(f) with O_i(f) = (C/B_i) sum_n l(x_n'f, y_n) + (reg/N) R(f): every node weighs the same, whatever
    its number of rows.

    `y`, (n,): All nodes' labels, node after node; -1 and 1 for a margin loss.
    `penalty`: R; the square is (1/2)||f||^2.
    `reg`: The paper's rho.
    `classes`, (2,): The labels that the user gave for -1 and 1; None for a residual loss.
    `automatic`: Whether reg was left to the model.
    `schema`: Public knowledge of all nodes' rows.
    """

    network: Network
    rows: Rows
    y: Array
    loss: Loss
    penalty: Penalty
    reg: float
    C: float
    classes: np.ndarray | None = None
    automatic: bool = False
    schema: PublicSchema | None = None

    def __repr__(self) -> str:
        counts = self.rows.counts
        size = f"{counts[0]}" if np.ptp(counts) == 0 else f"{counts.min()}..{counts.max()}"
        return (
            f"Problem({self.network!r}, {size} x {self.features} a node, {self.loss.name}, {self.penalty.name}, "
            f"reg={self.reg:g}, C={self.C:g})"
        )

    @classmethod
    def of(
        cls,
        graph: Any,
        shards: Sequence[Shard] | Mapping[Any, Shard],
        loss: str | Loss = "logistic",
        penalty: str | Penalty = "l2",
        reg: float | None = None,
        C: float | None = None,
        schema: PublicSchema | None = None,
    ) -> Problem:
        """Validate what a user passes; see `RecycledADMM`."""
        network = Network.of(graph)
        designs, labels = _shards(shards, network, schema)
        chosen = _smooth(loss)
        rows = Rows.of(designs)
        y, classes = _labels(labels, network, chosen, schema)
        weight = _C(C, rows)
        strength = REG * weight * network.nodes if reg is None else _at_least_0("reg", reg)
        return cls(network, rows, y, chosen, convex_penalty(penalty), strength, weight, classes, reg is None, schema)

    @classmethod
    def unseen(
        cls,
        network: Network,
        counts: Sequence[int],
        features: int,
        *,
        loss: str = "logistic",
        penalty: str = "l2",
        reg: float | None = None,
        C: float | None = None,
        classes: np.ndarray | None = None,
    ) -> Problem:
        """Return the problem of nodes that are apart: rows of 0 stand in for theirs, whose numbers are known."""
        zero = np.zeros(())
        rows = Rows(tuple(np.broadcast_to(zero, (count, features)) for count in counts))
        y, weight = np.broadcast_to(zero, sum(counts)), _C(C, rows)
        strength = REG * weight * network.nodes if reg is None else _at_least_0("reg", reg)
        return cls(network, rows, y, _smooth(loss), convex_penalty(penalty), strength, weight, classes, reg is None)

    @property
    def random_scale(self) -> float:
        """Standard deviation of the entries of a random start."""
        return random_scale(float(self.rows.norms @ self.rows.norms), self.y.size)

    def of_node(self, node: int) -> Problem:
        """Return the problem of one node by itself, whose O is that node's."""
        alone = Network((self.network.labels[node],), np.zeros((1, 1)))
        rows, y = Rows((self.rows.parts[node],)), self.rows.of_node(self.y, node)
        return replace(self, network=alone, rows=rows, y=y, reg=self.reg / self.nodes)

    @property
    def nodes(self) -> int:
        """N."""
        return self.network.nodes

    @property
    def features(self) -> int:
        """d."""
        return self.rows.features

    @cached_property
    def row_weights(self) -> Array:
        """C/B_i of every row, (n,)."""
        return np.repeat(self.C / self.rows.counts, self.rows.counts)

    @property
    def ridge(self) -> float | None:
        """c where (reg/N) R(f) = (c/2)||f||^2; None where R is no square."""
        own = self.penalty.ridge
        return None if own is None else self.reg / self.nodes * own

    @cached_property
    def smoothness(self) -> Array:
        """M_i, (N,): a Lipschitz constant of the gradient of O_i (Assumption 3), for R a square.

        The loss's smoothness times (C/B_i) times the largest eigenvalue of X_i'X_i, plus the square's.
        """
        return self.loss.smoothness * self.C / self.rows.counts * self.rows.spreads + (self.ridge or 0.0)

    @cached_property
    def steepest(self) -> Array:
        """Curvatures that no O_i without R exceeds, (N, d): see `newton.steepest`."""
        return np.stack([steepest(gram, self.loss, self.penalty) for gram in self.rows.grams(self.row_weights)])

    def node_sums(self, values: Array) -> Array:
        """Return the sums over each node's rows, (N,), of numbers a row, (n,)."""
        return np.asarray(np.add.reduceat(values, self.rows.offsets[:-1]))

    def node_losses(self, f: Array) -> Array:
        """Return (1/B_i) sum_n l, (N,), at f, (N, d)."""
        return self.node_sums(self.loss.value(self.rows.predictions(f), self.y)) / self.rows.counts

    def objectives(self, f: Array) -> Array:
        """Return O_i(f_i), (N,), at f, (N, d)."""
        penalties = np.array([self.penalty.value(own) for own in f])
        return self.C * self.node_losses(f) + self.reg / self.nodes * penalties

    def objective(self, f: Array) -> float:
        """Return RADMM (1) at one f, (d,)."""
        return float(self.objectives(np.broadcast_to(f, (self.nodes, self.features))).sum())

    def loss_gradients(self, f: Array) -> Array:
        """Return the gradient of O_i without its penalty at f_i, (N, d)."""
        slopes = self.loss.gradient(self.rows.predictions(f), self.y)
        return self.rows.back(self.row_weights * slopes)

    def gradients(self, f: Array) -> Array:
        """Return the gradient of O_i at f_i, (N, d)."""
        if self.ridge is None:
            raise ModelError(f"penalty={self.penalty.name!r} has no gradient everywhere: use loss_gradients")
        return self.loss_gradients(f) + self.ridge * f

    @cached_property
    def optimum(self) -> Array:
        """The centralised optimum f_c of (1), (d,): by exact Newton."""
        if self.ridge is not None:
            return centralised(self.rows, self.y, self.loss, self.row_weights, self.nodes * self.ridge)
        return centralised_kinked(self.rows, self.y, self.loss, self.row_weights, self.penalty, self.reg)


def checked_rows(name: str, rows: Any) -> Part:
    """Return rows of a node: see `checked_matrix`."""
    return checked_matrix(name, rows, LARGEST)


def _shards(shards: Any, network: Network, schema: PublicSchema | None) -> tuple[list[Part], list[np.ndarray]]:
    """Return every node's rows and labels, in the order of the network."""
    if isinstance(shards, Mapping):
        if set(shards) != set(network.labels):
            strange = [label for label in (*shards, *network.labels) if (label in shards) != (label in network.labels)]
            raise DataError(f"shards and graph differ in node {shown(strange[0])}: give every node one (X, y)")
        several = [shards[label] for label in network.labels]
    else:
        try:
            several = list(islice(shards, network.nodes + 1))
        except Exception as error:  # of an object of any class
            raise DataError(
                f"shards={shown(shards)} is no sequence and no mapping: give every node one (X, y)"
            ) from error
    if len(several) != network.nodes:
        count = f"more than {network.nodes}" if len(several) > network.nodes else len(several)
        raise DataError(f"shards has {count} for {network.nodes} nodes: give every node one (X, y)")
    designs, labels = [], []
    for label, shard in zip(network.labels, several, strict=True):
        if not isinstance(shard, (tuple, list)) or len(shard) != 2:
            raise DataError(f"the shard of node {label!r} is no pair (X, y)")
        x, y = shard
        shape = cast(Any, x).shape if sparse.issparse(x) else as_array(x, f"X of node {label!r}").shape
        if shape[:1] == (0,):
            raise DataError(f"node {label!r} has no rows: give it data, or take it out of the graph")
        design = checked_rows(f"X of node {label!r}", x if schema is None else schema.numbers(x))
        given = as_array(y, f"y of node {label!r}")
        if given.shape != (design.shape[0],):
            raise DataError(f"y of node {label!r} has shape {given.shape}, expected ({design.shape[0]},)")
        designs.append(design)
        labels.append(given)
    widths = [design.shape[1] for design in designs]
    if len(set(widths)) > 1:
        raise DataError(f"shards have {widths} columns: every node must hold the same features")
    return designs, labels


def _labels(
    several: list[np.ndarray], network: Network, loss: Loss, schema: PublicSchema | None
) -> tuple[Array, np.ndarray | None]:
    if schema is not None:
        rows = sum(own.size for own in several)
        return schema.labels(np.concatenate([own.astype(object) for own in several]), rows, margin=loss.margin)
    for label, own in zip(network.labels, several, strict=True):
        if np.issubdtype(own.dtype, np.floating) and not np.isfinite(own).all():
            raise DataError(f"y of node {label!r} holds NaN or infinite labels: drop these rows")
    kinds = {own.dtype.kind for own in several}
    if kinds == {"V"} or (len(kinds) > 1 and not kinds <= set("biuf")):  # numpy would turn 1 into "1", or refuse
        several = [own.astype(object) for own in several]
    together = np.concatenate(several)
    return signed_labels(together, together.size, loss, one_class=True)


def _smooth(loss: str | Loss) -> Loss:
    chosen = loss_named(loss)
    if not chosen.convex or not np.isfinite(chosen.smoothness):
        what = "has a kink" if chosen.convex else "is not convex"
        raise ModelError(
            f"loss={chosen.name!r} {what}, and RADMM's Assumptions 1 and 3 ask for a smooth convex one: pass "
            "'logistic', 'smoothed-hinge', 'squared' or 'huber'"
        )
    return chosen


def _at_least_0(name: str, value: Any) -> float:
    number = finite_double(value)
    if not 0.0 <= number < np.inf:
        raise ModelError(f"{name}={shown(value)} is no finite number >= 0")
    return number


def _C(C: Any, rows: Rows) -> float:
    least = int(rows.counts.min())
    number = float(least) if C is None else _at_least_0("C", C)
    if not 0.0 < number <= least:
        raise ModelError(
            f"C={shown(C)} must be in (0, {least}]: no row may weigh C/B_i > 1 (RADMM section V), and the smallest "
            f"node has {least} rows"
        )
    return number
