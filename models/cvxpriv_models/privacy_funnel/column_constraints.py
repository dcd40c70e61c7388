"""The user's constraints that the bound takes into account, as conditions on columns pi = P(X|y).

A constraint on single columns keeps pi in a polytope: local differential privacy, local information privacy, pointwise
leakage, forbidden cells. One on a sum over columns adds a row to the linear program: maximal leakage sum_y r_y max_x
pi_x / p_x, total variation sum_y r_y |pi_x / p_x - 1|, expected distortion sum_y r_y d_y.pi. Both are covered by
generators: posteriors of which every allowed column is a mixture, chosen such that the row is a sum over the mixture.
For maximal leakage these are the prior restricted to each set of symbols, since max_x pi_x / p_x is linear on chains of
sets; for total variation, what is left of the prior when some symbols hand their mass to another one.

A bound that leaves a constraint out still holds with it: it only lowers the optimum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvxpriv.blocks.declaration import Constraint, Known
from cvxpriv.bounds.check_certificate import sums
from cvxpriv.bounds.check_constrained_certificate import generators, told
from cvxpriv.bounds.output_names import alike, forbidden_cells
from cvxpriv.constraints import ReadyConstraint
from cvxpriv.numerics.arrays import Array

from .problem import Problem

#: Largest number of generators: 2^8 sets of symbols, with which a verification takes seconds.
MOST_GENERATORS = 260
#: A constraint that allows ratios above e^40 is left out: nothing is proved with such numbers.
LARGEST_EXPONENT = 40.0
#: Room for the rounding of a limit's own number: the corners are those of a region that is so much wider.
WIDER = Fraction(1, 10**12)
#: Generators that agree to so many digits are one.
MERGED_DIGITS = 12


@dataclass(frozen=True, eq=False)
class ColumnConstraints:
    """The conditions of the constraints on columns.

    `generators`: Every allowed column is a mixture of them.
    `rows`: Part of each generator in each sum over columns; a class is a set of outputs that are alike.
    `upper`: The sums' upper ends.
    `allowed`: Mask of the generators that a class may use.
    `outputs`: One output of each class; empty where all outputs are alike.
    `counted`, `ignored`: The names of the constraints that the bound takes into account, and of those that it leaves
    out.
    `stated`: Those that are counted, as a certificate states them.
    """

    generators: Array
    rows: Array
    upper: Array
    allowed: NDArray[np.bool_]
    outputs: tuple[int, ...]
    counted: tuple[str, ...]
    ignored: tuple[str, ...]
    stated: tuple[dict[str, Any], ...]

    @property
    def plain(self) -> bool:
        """Whether the generators are the symbols themselves."""
        return np.array_equal(self.generators, np.eye(len(self.generators)))

    @classmethod
    def of(cls, problem: Problem, constraints: Sequence[tuple[str, Constraint]]) -> ColumnConstraints:
        """Read constraints; those that are of another kind, or would take too many generators, are ignored."""
        read = _Reading(problem)
        for name, constraint in constraints:
            if isinstance(constraint, ReadyConstraint) and (stated := read.take(constraint)) is not None:
                read.counted.append(name)
                read.stated.append({"kind": constraint.kind, **stated})
            else:
                read.ignored.append(name)
        return read.result()


class _Reading:
    """Constraints, one after the other."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.p, self.size_y = problem, problem.p_x, problem.size_y
        self.generators = np.eye(len(self.p))
        self.shape: tuple[str, float] = ("", np.inf)
        self.low = 0.0
        self.sums: list[tuple[str, float]] = []
        self.distortions: list[tuple[Array, float]] = []
        self.forbidden: NDArray[np.bool_] = np.zeros((len(self.p), self.size_y), dtype=bool)
        self.counted: list[str] = []
        self.ignored: list[str] = []
        self.stated: list[dict[str, Any]] = []

    def take(self, constraint: ReadyConstraint) -> dict[str, Any] | None:
        """Return a certificate's statement of a constraint that is taken into account; None for any other."""
        kind, given = constraint.kind, constraint.parameters
        if kind == "expected_distortion":
            self.distortions.append((np.asarray(given["distortion"], dtype=np.float64), float(given["bound"])))
            return {"distortion": self.distortions[-1][0].tolist(), "bound": float(given["bound"])}
        if kind == "forbidden":
            cells = forbidden_cells(constraint, Known.of_table(self.problem.table), self.forbidden.shape)
            self.forbidden |= cells
            return {"cells": np.argwhere(cells).tolist(), "outputs": self.size_y}
        of = given.get("of", "input")
        if given.get("delta", 0.0) or not (of == "input" or kind in _OF_RATIOS):
            return None
        limit = float(given.get("epsilon", given.get("bound", np.inf)))
        average = bool(given.get("average", False))
        if kind == "total_variation_to_prior" and self._shaped("moved"):
            self.sums.append(("mean" if average else "each", limit))
            return {"bound": limit, "average": average}
        if kind == "maximal_leakage" and limit <= LARGEST_EXPONENT and self._shaped("sets"):
            self.sums.append(("maximal", limit))
            return {"bound": limit}
        if kind not in ("local_differential_privacy", *_OF_RATIOS) or limit > LARGEST_EXPONENT:
            return None
        shape = "ratio" if kind not in _OF_RATIOS else "peak" if of == "input" else "told"
        low = np.exp(-limit) if kind == "local_information_privacy" else 0.0
        return {"epsilon": limit, "of": of} if self._shaped(shape, limit, low) else None

    def _shaped(self, shape: str, epsilon: float = np.inf, low: float = 0.0) -> bool:
        """Whether the generators can be of a shape; ratios of likelihoods serve maximal leakage too."""
        name, before = self.shape
        low = max(low, self.low)
        if name == shape:
            epsilon = min(epsilon, before)
        elif {name, shape} == {"ratio", "sets"}:
            shape, epsilon = "ratio", min(epsilon, before)
        elif name:
            return False
        if _SIZES[shape](len(self.p)) > MOST_GENERATORS:
            return False
        joint = [[Fraction(one) for one in row] for row in self.problem.table.probabilities]
        most = Fraction(np.exp(min(epsilon, LARGEST_EXPONENT)))
        try:
            if shape == "told":
                found = _columns(told(joint, most * (1 + WIDER), Fraction(low) * (1 - WIDER)))
            else:
                found = _distinct(_columns(generators(shape, sums(joint), most, Fraction(low))))
        except ValueError:  # the corners are too many
            return False
        self.shape, self.low, self.generators = (shape, epsilon), low, found
        return True

    def result(self) -> ColumnConstraints:
        common, ends = self._common()
        labelled = bool(self.distortions) or bool(self.forbidden.any())
        every = range(self.size_y) if labelled else range(1)
        rows = np.array([np.vstack([common, *(d[:, y] @ self.generators for d, _ in self.distortions)]) for y in every])
        allowed = np.array([~(self.generators[self.forbidden[:, y]] > 0.0).any(axis=0) for y in every])
        first, _ = alike(np.concatenate([rows.reshape(len(rows), -1), allowed], axis=1))
        upper = np.array([*ends, *(bound for _, bound in self.distortions)])
        return ColumnConstraints(
            self.generators,
            rows[first],
            upper,
            allowed[first],
            tuple(int(y) for y in first) if labelled else (),
            tuple(self.counted),
            tuple(self.ignored),
            tuple(self.stated),
        )

    def _common(self) -> tuple[Array, list[float]]:
        """Rows that do not depend on the output, (k, G), and their upper ends."""
        rows, upper = [np.zeros((0, self.generators.shape[1]))], []
        ratios = self.generators / self.p[:, None]
        for what, bound in self.sums:
            if what == "maximal":
                rows.append(ratios.max(axis=0)[None])
                upper.append(float(np.exp(min(bound, np.log(len(self.p))))))
            elif what == "mean":
                rows.append(0.5 * np.abs(self.generators - self.p[:, None]).sum(axis=0)[None])
                upper.append(bound)
            else:
                rows.append(0.5 * np.abs(ratios - 1.0))
                upper += [bound] * len(self.p)
        return np.vstack(rows), upper


_OF_RATIOS = ("pointwise_leakage", "local_information_privacy")
_SIZES = {
    "ratio": lambda size: 2**size - 1,
    "sets": lambda size: 2**size - 1,
    "peak": lambda size: size * 2 ** (size - 1),
    "moved": lambda size: size * 2 ** (size - 1),
    "told": lambda size: size,
}


def _columns(corners: list[list[Fraction]]) -> Array:
    return np.array(corners, dtype=np.float64).T


def _distinct(columns: Array) -> Array:
    _, first = np.unique(np.round(columns, MERGED_DIGITS), axis=1, return_index=True)
    return np.asarray(columns[:, np.sort(first)])
