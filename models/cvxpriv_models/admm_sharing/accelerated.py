"""The state of an accelerated pass as a vector, and that pass with one product by D_m and one by D_m' for each party.

A pass begins with z, so that x_1..x_M and p = S + y/r decide it: z is the proximal step of the loss at p, the new dual
is y+ = r (p - z), and a party that steps at once with the others sees y + r (S - z) = 2 y+ - y in place of target and
dual. With D_m'y beside x_m and p it needs D_m'(2 y+ - y) = 2 D_m'y+ - D_m'y alone, and all of them may be combined.
"""

from collections.abc import Sequence

import numpy as np

from cvxpriv.numerics.arrays import Array, Values
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
