"""Anderson acceleration of a pass, type II, safeguarded (Walker and Ni 2011; Zhang, O'Donoghue and Boyd 2020).

A pass that begins with z is a map of (x, p), p = S + y/r: z and y follow from p. From the last few passes the centre
finds the combination whose step is least, and the next pass starts at that combination of images. Parties combine
their own x by the centre's few weights: to find them a party adds one number for each pair of passes remembered, and
no column leaves it. What is returned is always the image of a pass: it lies in X_m, and y in weight dl(z).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cvxpriv.numerics.arrays import Array, Values

from .blocks import total_share
from .factor import Factor
from .problem import Problem
from .schemes import Scheme

__all__ = ["Anderson"]

#: Passes remembered.
MEMORY = 5
#: Of the trace, added to the normal equations: steps become parallel near the end.
DAMPING = 1e-10
#: The n-th combination is kept only if its pass moves at most this times the first pass's step, over n^POWER: a sum
#: that converges, hence so does the run (Zhang et al., Theorem 6). It must not be longer than the last step either.
SAFE, POWER = 2.0, 1.01


class Anderson:
    """The accelerator of one run: it remembers passes, so every run has its own.

    Parameters
    ----------
    problem : Problem
    scheme : Scheme
    factors : sequence of Factor
    """

    def __init__(self, problem: Problem, scheme: Scheme, factors: Sequence[Factor]) -> None:
        self.problem, self.scheme, self.factors = problem, scheme, factors
        self.names = [f"{kind}/{m}" for m in range(problem.parties) for kind in "xv"]  # in the order of _step
        self.first, self.length, self.combined = 0.0, np.inf, 0
        self._forget()

    def __call__(self, body: Callable[[Values], dict[str, Array]], state: Values, iteration: int) -> Values:
        """Run a pass from the best combination of the last images; `state` is the last image."""
        combined = self.kept > 0
        start = self._combination() if combined else self._pack(state)
        image = body(self._unpack(start, state) if combined else state)
        packed = self._pack(image)
        step = self._step(packed - start, image)
        length = float(np.linalg.norm(step))
        if combined and not length <= min(self.length, SAFE * self.first / (self.combined + 1) ** POWER):
            self._forget()
            image = body(state)
            packed = self._pack(image)
            step = self._step(packed - self._pack(state), image)
            length = float(np.linalg.norm(step))
        elif combined:
            self.combined += 1
        else:
            self.first = self.first or length
        self.length = length
        self._remember(step, packed)
        return image

    def _forget(self) -> None:
        self.kept, self.last = 0, (np.zeros(0), np.zeros(0))

    def _remember(self, step: Array, image: Array) -> None:
        """Keep how step and image differ from the last ones, in a ring of `MEMORY` rows, and the steps' products."""
        if self.last[0].size == 0:
            self.steps, self.images = np.zeros((MEMORY, step.size)), np.zeros((MEMORY, image.size))
            self.products = np.zeros((MEMORY, MEMORY))
        else:
            row = self.kept % MEMORY
            np.subtract(step, self.last[0], out=self.steps[row])
            np.subtract(image, self.last[1], out=self.images[row])
            self.products[row] = self.products[:, row] = self.steps @ self.steps[row]
            self.kept += 1
        self.last = step, image

    def _combination(self) -> Array:
        """The combination of images whose step is least."""
        rows = min(self.kept, MEMORY)
        products, (step, image) = self.products[:rows, :rows], self.last
        damping = DAMPING * np.trace(products) * np.eye(rows)
        weights = np.linalg.lstsq(products + damping, self.steps[:rows] @ step, rcond=None)[0]
        return np.asarray(image - weights @ self.images[:rows])

    def _step(self, moved: Array, image: Values) -> Array:
        """What a pass moved, in the norm lam ||x||^2 + rho ||D x||^2 + r ||p||^2 in which ADMM contracts."""
        rho, parts, first = float(image["rho"][0]), [], 0
        for factor in self.factors:
            samples, columns = factor.part.shape
            x, share = moved[first : first + columns], moved[first + columns : first + columns + samples]
            parts += [np.sqrt(self.problem.lam) * x, np.sqrt(rho) * _bent(factor, x, share)]
            first += columns + samples
        return np.concatenate([*parts, np.sqrt(self._weight(image)) * moved[first:]])

    def _pack(self, state: Values) -> Array:
        """x and share of each party, and p = S + y/r, of which z is the proximal step."""
        argument = total_share(state, self.problem.parties)[0] + state["y"][0] / self._weight(state)
        return np.concatenate([*(state[name][0] for name in self.names), argument])

    def _unpack(self, packed: Array, state: Values) -> Values:
        """The state whose x, shares and p are the packed ones: y = r (p - S) makes it so."""
        mixed, first = dict(state), 0
        for name in self.names:
            last = first + state[name].shape[1]
            mixed[name], first = packed[None, first:last], last
        gap = packed[first:] - total_share(mixed, self.problem.parties)[0]
        mixed["y"] = (self._weight(state) * gap)[None]
        return mixed

    def _weight(self, state: Values) -> float:
        return float(self.scheme.weight(state["rho"], self.problem.parties)[0])


def _bent(factor: Factor, x: Array, share: Array) -> Array:
    """A vector as long as D x: as short as the party's columns, if they are few."""
    return np.asarray(factor.root @ x if x.size**2 <= share.size else share)
