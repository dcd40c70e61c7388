"""The posteriors that tell nothing of S: the polytope {pi >= 0, A pi = P_S}, A = P(S|X), and its vertices."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr

from cvxpriv.bounds.master import Master
from cvxpriv.numerics.arrays import Array, IntArray

CHUNK = 100_000
#: A probability above minus this is none: rounding of a system of at most ten equations.
ZERO = 1e-12
#: A diagonal entry of R in A' = Q R, relative to the first, below which rows of A are dependent.
DEPENDENT = 1e-12


def listed_silent(joint: Array, most: int) -> tuple[IntArray, Array]:
    """Return the vertices among posteriors that tell nothing of S: supports and probabilities, (n, rank of A) each.

    `joint`: P(S, X), every row and column with mass. `most`: Largest number of supports; there are none for more.
    """
    polytope = SilentPolytope.of(joint / joint.sum(axis=0), joint.sum(axis=1))
    if math.comb(joint.shape[1], polytope.rank) > most:
        return np.zeros((0, 1), dtype=np.intp), np.zeros((0, 1))
    return polytope.every_vertex()


@dataclass(frozen=True)
class SilentPolytope:
    """{pi >= 0 : a pi = s} with independent rows only; sum pi = 1 follows, as A's columns sum to 1."""

    a: Array  # (rank, |X|)
    s: Array

    @classmethod
    def of(cls, a: Array, s: Array) -> SilentPolytope:
        _, r, order = qr(a.T, mode="economic", pivoting=True)
        diagonal = np.abs(np.diag(r))
        rows = np.sort(order[: int(np.sum(diagonal > DEPENDENT * diagonal[0]))])
        return cls(a[rows], s[rows])

    @property
    def rank(self) -> int:
        return len(self.s)

    def vertices(self, supports: IntArray) -> tuple[IntArray, Array]:
        """The vertices on those supports (n, rank) that have one: their supports and probabilities, (k, rank) each."""
        bases = self.a[:, supports].transpose(1, 0, 2)
        with np.errstate(divide="ignore"):  # a pivot of a base with cells of 1e-300 may underflow
            sizes = np.abs(np.linalg.det(bases))
        regular = sizes > np.finfo(np.float64).tiny
        weights = np.linalg.solve(bases[regular], np.broadcast_to(self.s[:, None], (regular.sum(), self.rank, 1)))[
            ..., 0
        ]
        good = (weights.min(axis=1) >= -ZERO) & (np.abs(weights.sum(axis=1) - 1.0) <= 1e-9)
        kept = np.maximum(weights[good], 0.0)
        return supports[regular][good], kept / kept.sum(axis=1, keepdims=True)

    def every_vertex(self) -> tuple[IntArray, Array]:
        """All of them, as `vertices` gives them."""
        supports, parts = itertools.combinations(range(self.a.shape[1]), self.rank), []
        while chunk := list(itertools.islice(supports, CHUNK)):
            parts.append(self.vertices(np.array(chunk, dtype=np.intp)))
        return np.concatenate([one for one, _ in parts]), np.concatenate([weights for _, weights in parts])

    def program(self) -> Master:
        """The linear program over the polytope, to be solved for many costs."""
        program = Master(self.s, self.s)
        program.add(np.zeros(self.a.shape[1]), self.a)
        return program
