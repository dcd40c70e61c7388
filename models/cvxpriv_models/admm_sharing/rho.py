"""The penalty rho of a run whose user names none: a number to begin with, then a multiple of each sample's curvature.

With r equal to the curvature of the loss at its minimiser, the z step of a quadratic loss goes halfway to it whatever
the data, and the x step of one party is Newton's. One number for all samples would have to serve those that are
decided, whose curvature is small, and those that are not. The multiple balances the two residuals of a pass, both in
the norm of r: where parties' columns say the same, how they share it out is settled by their penalties alone, and a
large rho holds it back.
"""

from collections.abc import Callable, Sequence

import numpy as np

from cvxpriv.numerics.anderson import Anderson
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.penalties import Loss

from .accelerated import ARGUMENT
from .blocks import total_share
from .factor import Factor
from .problem import Problem
from .schemes import Scheme

#: Mean curvature of a loss, as a part of the largest: that of a logistic loss where predictions are of some use.
MEAN = 0.3
#: The largest curvature of a loss with a kink.
KINKED = 0.25
#: Factor by which the penalty exceeds the curvature of a loss that is not convex.
ABOVE = 1.1
#: Passes after which rho may change. Convergence is proved for a penalty that changes finitely often. A change after 20
#: to 60 passes is faster on most data, and ruins unscaled columns (breast cancer).
AFTER = (4, 10, 100, 300)
#: Part of all curvature that must have moved for a change: a new rho is a new factorisation, and forgets the passes.
MOVED = 0.1
#: Least penalty of a sample, as a part of the mean: a loss that is linear somewhere has no curvature there.
LEAST = 0.01
#: Largest factor by which the multiple of the curvature changes at once, and its bounds.
FACTOR, LOWEST, HIGHEST = 3.0, 1e-4, 10.0


def default_rho(loss: Loss, scheme: Scheme, parties: int) -> float:
    """Return a rho whose penalty of S = z is about the mean curvature of the loss."""
    bend = loss.smoothness if np.isfinite(loss.smoothness) else KINKED
    return scheme.rho((MEAN if loss.convex else ABOVE) * bend, parties)


def may_follow(problem: Problem, scheme: Scheme) -> bool:
    """Return whether rho may follow the curvature: the loss has one, every step is exact, and any rho converges."""
    exact = all(scheme.linearises(one) or one.ridge is not None for one in problem.penalties)
    return exact and scheme.name != "printed" and problem.loss.convex and bool(np.isfinite(problem.loss.smoothness))


class Following:
    """The accelerator of a run whose rho follows the curvature of the loss, itself accelerated or not.

    `inner`: The accelerator, which begins anew where rho changes; its passes begin with z. None: there is none.
    `factors`: The parties' columns, needed beside `inner`.
    """

    def __init__(
        self, problem: Problem, scheme: Scheme, inner: Anderson | None, factors: Sequence[Factor] = ()
    ) -> None:
        self.problem, self.scheme, self.inner, self.factors = problem, scheme, inner, factors
        self.multiple, self.bend = 1.0, np.zeros(problem.samples)

    def __call__(self, body: Callable[[Values], dict[str, Array]], state: dict[str, Array], iteration: int) -> Values:
        """Run a pass, and change rho after some of them."""
        begun = [state]

        def watched(at: Values) -> dict[str, Array]:
            begun[0] = dict(at)
            return body(at)

        image = body(state) if self.inner is None else self.inner(watched, state, iteration)
        linearised = any(self.scheme.linearises(one) for one in self.problem.penalties)
        if iteration not in (AFTER[:2] if linearised else AFTER):  # its slow steps mislead the balance later on
            return image
        bend = self.problem.weights * self.problem.loss.curvature(image["z"][0], self.problem.y)
        if not np.abs(bend - self.bend).sum() > MOVED * self.bend.sum() or not bend.mean() > 0.0:
            return image
        factor = np.clip(self._balance(begun[0], image), 1.0 / FACTOR, FACTOR)
        self.multiple = float(np.clip(self.multiple * factor, LOWEST, HIGHEST))
        self.bend = bend
        if self.inner is not None:
            self.inner.restart()
        r = self.multiple * np.maximum(bend, LEAST * bend.mean())
        argument = (total_share(image, self.problem.parties) + image["y"] / r) if ARGUMENT in image else None
        changed = {**image, "rho": self.scheme.rho(r, self.problem.parties)[None]}
        return changed if argument is None else {**changed, ARGUMENT: argument}

    def _balance(self, before: Values, after: Values) -> float:
        """Return the size of S - z over that of the parties' distances from their targets, in the norm of rho."""
        parties, rho = self.problem.parties, after["rho"][0]
        if self.inner is not None:  # a combination of passes need not bring its shares
            before = {
                **before,
                **{f"v/{m}": one.share(before[f"x/{m}"][0])[None] for m, one in enumerate(self.factors)},
            }
        z = (after if self.inner is not None else before)["z"]
        total = total_share(before, parties)
        off = 0.0
        for m in range(parties):
            target = self.scheme.target(before[f"v/{m}"], total, z, parties)
            off += float(np.sum(rho * (after[f"v/{m}"] - target)[0] ** 2))
            if self.scheme.in_turn:
                total = total + after[f"v/{m}"] - before[f"v/{m}"]
        lag = (total_share(after, parties) - after["z"])[0]
        primal = float(np.sum(self.scheme.weight(rho, parties) * lag**2))
        return float(np.sqrt(primal / off)) if off > 0.0 else 1.0
