"""Anderson acceleration of a pass, type II, safeguarded (Walker and Ni 2011; Zhang, O'Donoghue and Boyd 2020).

A pass that begins with z is a map of (x, p), p = S + y/r: z and y follow from p. From the last few passes the centre
finds the combination whose step is least, and the next pass starts at that combination of images. Parties combine
their own x by the centre's few weights: to find them a party adds one number for each pair of passes remembered, and
no column leaves it. What is returned is always the image of a pass: it lies in X_m, and y in weight dl(z).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cvxpriv.state import Array, Values, single

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
        self.names = [f"{kind}/{m}" for m in range(problem.parties) for kind in "xv"]
        self.first, self.length, self.combined = 0.0, np.inf, 0
        self._forget()

    def __call__(self, body: Callable[[Values], dict[str, Array]], state: Values, iteration: int) -> Values:
        """Run a pass from the best combination of the last images; `state` is the last image."""
        combined = self.kept > 0
        start = self._combination(state) if combined else state
        image = body(start)
        step = self._step(single(start, 0), single(image, 0))
        length = float(np.linalg.norm(step))
        if combined and not length <= min(self.length, SAFE * self.first / (self.combined + 1) ** POWER):
            self._forget()
            image = body(state)
            step = self._step(single(state, 0), single(image, 0))
            length = float(np.linalg.norm(step))
        elif combined:
            self.combined += 1
        else:
            self.first = self.first or length
        self.length = length
        self._remember(step, self._pack(single(image, 0)))
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

    def _combination(self, state: Values) -> Values:
        """The state at the combination of images whose step is least."""
        rows = min(self.kept, MEMORY)
        products, (step, image) = self.products[:rows, :rows], self.last
        damping = DAMPING * np.trace(products) * np.eye(rows)
        weights = np.linalg.lstsq(products + damping, self.steps[:rows] @ step, rcond=None)[0]
        return self._unpack(image - weights @ self.images[:rows], state)

    def _step(self, before: Values, after: Values) -> Array:
        """What a pass moved, in the norm lam ||x||^2 + rho ||D x||^2 + r ||p||^2 in which ADMM contracts."""
        rho = float(after["rho"])
        moved = [
            _in_metric(
                self.factors[m],
                after[f"x/{m}"] - before[f"x/{m}"],
                after[f"v/{m}"] - before[f"v/{m}"],
                self.problem.lam,
                rho,
            )
            for m in range(self.problem.parties)
        ]
        moved.append(np.sqrt(self._penalty(after)) * (self._argument(after) - self._argument(before)))
        return np.concatenate(moved)

    def _pack(self, view: Values) -> Array:
        return np.concatenate([*(view[name] for name in self.names), self._argument(view)])

    def _unpack(self, packed: Array, state: Values) -> Values:
        """The state whose x, shares and p are the packed ones: y = r (p - S) makes it so."""
        mixed, first = dict(state), 0
        for name in self.names:
            last = first + state[name].shape[1]
            mixed[name], first = packed[None, first:last], last
        gap = packed[first:] - total_share(mixed, self.problem.parties)[0]
        mixed["y"] = (self._penalty(single(state, 0)) * gap)[None]
        return mixed

    def _argument(self, view: Values) -> Array:
        """p = S + y/r, of which z is the proximal step."""
        return total_share(view, self.problem.parties) + view["y"] / self._penalty(view)

    def _penalty(self, view: Values) -> float:
        return float(self.scheme.penalty(view["rho"], self.problem.parties))


def _in_metric(factor: Factor, x: Array, share: Array, lam: float, rho: float) -> Array:
    """A vector whose square is lam ||x||^2 + rho ||D x||^2: as short as the party's columns, if they are few."""
    bent = factor.root @ x if x.size**2 <= share.size else share
    return np.concatenate([np.sqrt(lam) * x, np.sqrt(rho) * bent])
