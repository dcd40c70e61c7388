"""Accelerated passes: the last ones combined (`Packed`), and a penalty rho that follows the loss (`Following`).

A pass begins with z, so that x_1..x_M and p = S + y/r decide it: z is the proximal step of the loss at p, the new dual
is y+ = r (p - z), and a party that steps at once with the others sees y + r (S - z) = 2 y+ - y in place of target and
dual. With D_m'y beside x_m and p it needs D_m'(2 y+ - y) = 2 D_m'y+ - D_m'y alone: a pass takes one product by D_m and
one by D_m' for each party, and all of them may be combined.

Where its user names no rho, a run begins with one number, and goes on with a multiple of each sample's curvature. With
r equal to the curvature of the loss at its minimiser, the z step of a quadratic loss goes halfway to it whatever the
data, and the x step of one party is Newton's. One number for all samples would have to serve those that are decided,
whose curvature is small, and those that are not. The multiple balances the two residuals of a pass, both in the norm of
r: where parties' columns say the same, how they share it out is settled by their penalties alone, and a large rho holds
it back.
"""

from collections.abc import Callable, Sequence

import numpy as np

from cvxpriv.numerics.anderson import Anderson
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.penalties import Loss
from cvxpriv.penalties.loss_steps import in_pieces

from .blocks import total_share
from .factor import Factor
from .problem import Problem
from .schemes import Scheme

#: Number of passes remembered.
MEMORY = 15
#: Name of p in a state.
ARGUMENT = "argument"


class Packed:
    """The packing of x_1..x_M, of D_1'y..D_M'y or else the shares, and of p.

    `constrained`: Whether a solver does some of the steps.
    """

    def __init__(self, problem: Problem, scheme: Scheme, factors: Sequence[Factor], *, constrained: bool) -> None:
        self.problem, self.scheme, self.factors = problem, scheme, factors
        self.linear = [scheme.linearises(one) for one in problem.penalties]
        direct = all(linear or factor.tall for linear, factor in zip(self.linear, factors, strict=True))
        self.known = np.zeros(0), np.zeros(0), np.zeros(0)  # rho, r and its root: those of the last pass
        #: Whether D_m'y is packed rather than the share: no step needs the share of a combination.
        self.lean = direct and not scheme.in_turn and not constrained
        self.names = [f"{kind}/{m}" for m in range(problem.parties) for kind in ("x", "pulled" if self.lean else "v")]

    def step(self, moved: Array, image: Values) -> Array:
        """Return the move of a pass, with the squares of each party's step as the norm of x, and r ||p||^2."""
        rho, parts, first = image["rho"][0], [], 0
        for m, (factor, penalty) in enumerate(zip(self.factors, self.problem.penalties, strict=True)):
            x = moved[first : first + factor.part.shape[1]]
            first += x.size + (x.size if self.lean else self.problem.samples)
            tau = self.scheme.tau(factor, penalty, rho, self.problem.parties)
            shift = self.problem.lam * (penalty.ridge or 0.0) + tau
            parts.append(np.sqrt(tau) * x if self.linear[m] else factor.stretched(x, rho, shift))
        self._weight(image)
        return np.concatenate([*parts, self.known[2] * moved[first:]])

    def pack(self, state: Values) -> Array:
        """Return x and D_m'y or the share of each party, and p."""
        whole = self._begun(state)
        return np.concatenate([whole[name][0] for name in (*self.names, ARGUMENT)])

    def unpack(self, packed: Array, state: Values) -> Values:
        """Return the state with the packed entries; a step that needs y has it by y = r (p - S)."""
        mixed, first = dict(state), 0
        for name in self.names:
            last = first + mixed[name].shape[1]
            mixed[name], first = packed[None, first:last], last
        mixed[ARGUMENT] = packed[None, first:]
        if not self.lean:
            gap = mixed[ARGUMENT] - total_share(mixed, self.problem.parties)
            mixed["y"] = self._weight(state) * gap
        return mixed

    def one_pass(self, state: Values) -> dict[str, Array]:
        """Return z, y and all parties' steps, with their shares, D_m'y, and the next p."""
        view = {name: value[0] for name, value in self._begun(state).items()}
        problem, r = self.problem, self._weight(state)
        slope = view["y"] if ARGUMENT in state else None  # after a pass y is the slope of the loss at z
        z = in_pieces(problem.loss.prox)(view[ARGUMENT], problem.y, problem.weights, r, view["z"], slope)
        y = in_pieces(lambda r, argument, z: r * (argument - z))(np.broadcast_to(r, z.shape), view[ARGUMENT], z)
        after = {"z": z, "y": y}
        for m, (factor, penalty) in enumerate(zip(self.factors, problem.penalties, strict=True)):
            x, pulled = view[f"x/{m}"], factor.pull_dual(y)
            pushed = 2.0 * pulled - view[f"pulled/{m}"]
            tau = self.scheme.tau(factor, penalty, view["rho"], problem.parties)
            if self.linear[m]:
                x = penalty.prox(x - pushed / tau, problem.lam / tau)
            else:
                ridge = problem.lam * (penalty.ridge or 0.0)
                x = x - factor.weighed_system(view["rho"], ridge + tau).solve(ridge * x + pushed)
            after |= {f"x/{m}": x, f"v/{m}": factor.share(x), f"pulled/{m}": pulled}
        several = {name: value[None] for name, value in after.items()}
        return {**several, ARGUMENT: self._argument({**state, **several})}

    def _begun(self, state: Values) -> Values:
        """Return a state with the packed entries: it lacks them before the first pass."""
        whole = dict(state)
        if not self.lean or ARGUMENT not in state:
            whole[ARGUMENT] = self._argument(state)
        for m in range(self.problem.parties if self.lean else 0):
            if f"pulled/{m}" not in whole:
                whole[f"pulled/{m}"] = self.factors[m].pull_dual(state["y"][0])[None]
        return whole

    def _argument(self, state: Values) -> Array:
        return np.asarray(total_share(state, self.problem.parties) + state["y"] / self._weight(state))

    def _weight(self, state: Values) -> Array:
        if state["rho"] is not self.known[0]:
            r = np.asarray(self.scheme.weight(state["rho"][0], self.problem.parties))
            self.known = state["rho"], r, np.sqrt(r)
        return self.known[1]


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
