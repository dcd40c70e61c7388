"""The tree of cells of s = P(S|Y) x in a constrained certificate, with each constraint's numbers at its leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxpriv.bounds.cell_numbers import DECIMALS, in_order
from cvxpriv.bounds.check_costs import Cost, short
from cvxpriv.bounds.check_service_certificate import GRID
from cvxpriv.numerics.arrays import Array, Flags
from cvxpriv.numerics.sizes import now

from .cell_numbers import At, Part
from .cells_of_s import bisected, kl_to_prior
from .summed_pricing import SummedPricing

#: Nats by which rounding may move a price.
ROOM = 1e-10


@dataclass(frozen=True, eq=False)
class Tree:
    """Cells for outputs of one sort at given multipliers.

    `sort`: The sort. `duals`: Those of P(Y), negative, then of the sums. `parts`, `costs`: The constraints, alike.
    """

    pricing: SummedPricing
    sort: int
    duals: Array
    parts: list[Part]
    costs: list[Cost]

    def grown(self, threshold: float, most: int, end: float) -> tuple[list[Any], float]:
        """Return the tree of cells in order, its root first, and the largest price that its leaves leave."""
        own, alpha, _ = self.pricing.costs_of_class(self.sort, self.duals)
        plain = own.plain
        lows = np.maximum(np.floor(plain.channel.min(axis=1) * GRID) - 1.0, 0.0) / GRID
        cells, worst, made = (lows + (1.0 - lows.sum()) * np.eye(len(lows)))[None], -np.inf, 1
        nodes: list[Any] = [None]
        names = np.array([0])
        while True:
            c = np.linalg.solve(cells, kl_to_prior(cells, plain.p_s)[:, :, None])[:, :, 0] @ plain.channel - alpha
            at, values = At.of(self.pricing, self.sort, self.duals, c)
            done = (values <= threshold - ROOM) | (made > most) | (now() > end)
            worst = max(worst, values[done].max(initial=-np.inf))
            for name, entry in zip(names[done].tolist(), self._entries(at, done, own.allowed), strict=True):
                nodes[name] = entry
            kept = names[~done]
            if not len(kept):
                break
            cells, edges = bisected(cells[~done], plain.p_s)
            names = made + np.arange(2 * len(kept))
            for k, name in enumerate(kept.tolist()):
                nodes[name] = (int(edges[k]), int(names[k]), int(names[len(kept) + k]))
            nodes += [None] * len(names)
            made += len(names)
        return in_order(nodes), float(worst)

    def _entries(self, at: At, done: Flags, some: Flags) -> list[list[Any]]:
        """Return n and each constraint's numbers for some cells, with n for what the checker makes of them."""
        numbers = [part.numbers(at)[done] if part.numbers else np.zeros((int(done.sum()), 0)) for part in self.parts]
        numbers = [np.round(one, DECIMALS) for one in numbers]
        found = []
        for k, (c, rest, n) in enumerate(zip(at.c[done], at.rest[done], at.n[done], strict=True)):
            taken = np.zeros_like(c)
            for one, cost in zip(numbers, self.costs, strict=True):
                u = cost.weaken(short(one[k].tolist()))[0] if cost.size else []
                for w, row in zip(u, cost.ratios, strict=False):
                    for y, t in row if w else []:
                        taken[y] += float(w * t)
            shift = float((c - taken - rest)[some].mean())
            found.append([round(float(n) + shift, DECIMALS), *(one[k].tolist() for one in numbers)])
        return found
