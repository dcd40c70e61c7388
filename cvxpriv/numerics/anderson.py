"""Anderson acceleration of a pass, type II, safeguarded (Walker and Ni 2011; Zhang, O'Donoghue and Boyd 2020).

The combination of the last few passes with the shortest step is found, and the next pass starts at that combination of
their images. The result is always the image of a pass, so that it has every property that a pass gives.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from cvxpriv.numerics.arrays import Array, Values

#: Part of the trace that is added to the normal equations: steps become parallel near the end.
DAMPING = 1e-10
#: Factor and power of the safeguard: the n-th combination is kept only if its pass moves at most this times the first
#: pass's step, over n^POWER: a sum that converges, hence so does the run (Zhang et al., Theorem 6). It must not be
#: longer than the last step either.
SAFE, POWER = 2.0, 1.01


class Packing(Protocol):
    """The map between the part of a state that decides the next pass and a vector, with the norm of its steps."""

    def pack(self, state: Values) -> Array:
        """Return that part of a state, with a leading axis of one start, as one vector."""

    def unpack(self, packed: Array, state: Values) -> Values:
        """Return the state with that part replaced."""

    def step(self, moved: Array, image: Values) -> Array:
        """Return a vector whose Euclidean norm is the length of a step `moved` that ended at `image`."""


class Anderson:
    """The accelerator of one run: it remembers passes, so every run has its own.

    `memory`: Number of passes remembered.

    The map x -> A x + b, whose largest eigenvalue is .99, in as many passes as it has dimensions, about:

    >>> scales, b = np.array([0.99, 0.5, 0.1]), np.ones(3)
    >>> class Plain:
    ...     pack = staticmethod(lambda state: state["x"][0])
    ...     unpack = staticmethod(lambda packed, state: {"x": packed[None]})
    ...     step = staticmethod(lambda moved, image: moved)
    >>> accelerated, state = Anderson(Plain(), memory=3), {"x": np.zeros((1, 3))}
    >>> for iteration in range(6):
    ...     state = accelerated(lambda at: {"x": scales * at["x"] + b}, state, iteration)
    >>> bool(np.allclose(state["x"][0], b / (1.0 - scales), atol=1e-6))
    True
    """

    def __init__(self, packing: Packing, memory: int) -> None:
        self.packing, self.memory = packing, memory
        self.steps, self.images, self.products = np.zeros((0, 0)), np.zeros((0, 0)), np.zeros((memory, memory))
        self.restart()

    def restart(self) -> None:
        """Begin anew: the passes before were of another map."""
        self.first, self.length, self.combined = 0.0, np.inf, 0
        self._forget()

    def __call__(self, body: Callable[[Values], dict[str, Array]], state: Values, iteration: int) -> Values:
        """Run a pass from the best combination of the last images; `state` is the last image."""
        pack, unpack = self.packing.pack, self.packing.unpack
        combined = self.kept > 0
        start = self._combination() if combined else pack(state)
        image = body(unpack(start, state) if combined else state)
        packed = pack(image)
        step = self.packing.step(packed - start, image)
        length = float(np.linalg.norm(step))
        if combined and not length <= min(self.length, SAFE * self.first / (self.combined + 1) ** POWER):
            self._forget()
            image = body(state)
            packed = pack(image)
            step = self.packing.step(packed - pack(state), image)
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
        """Keep the differences of step and image from the last ones, in a ring of rows, and the steps' products."""
        if self.last[0].size == 0:
            if self.steps.shape[1] != step.size:
                self.steps, self.images = (np.zeros((self.memory, one.size)) for one in (step, image))
        else:
            row = self.kept % self.memory
            np.subtract(step, self.last[0], out=self.steps[row])
            np.subtract(image, self.last[1], out=self.images[row])
            self.kept += 1
            known = min(self.kept, self.memory)
            self.products[row, :known] = self.products[:known, row] = self.steps[:known] @ self.steps[row]
        self.last = step, image

    def _combination(self) -> Array:
        """Return the combination of images whose step is shortest."""
        rows = min(self.kept, self.memory)
        products, (step, image) = self.products[:rows, :rows], self.last
        system, right = products + DAMPING * np.trace(products) * np.eye(rows), self.steps[:rows] @ step
        if not (np.isfinite(system).all() and np.isfinite(right).all()):  # there is no better combination
            return np.asarray(image)
        return np.asarray(image - np.linalg.lstsq(system, right, rcond=None)[0] @ self.images[:rows])
