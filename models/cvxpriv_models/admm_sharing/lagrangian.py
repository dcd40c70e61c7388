"""The augmented Lagrangian (5), the paper's stationarity measure V^t, and the bound of its complexity theorem.

The theorem (SHARING, complexity): with T(eps) the first t at which V^t <= eps, T(eps) eps <= C (L^1 - f), f a lower
bound of the objective. Its C = C_1/C_2 takes C_2 from Lemma 4, whose Lemma 3 has a wrong sign: here C_2 is derived with
the right one, and for the scheme that runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cvxpriv.numerics.arrays import Array, Values

from .blocks import total_share
from .factor import Factor
from .problem import Problem
from .schemes import Scheme


def augmented_lagrangian(problem: Problem, state: Values, r: float) -> float:
    """Return (5) at one start of a state, with the penalty r of S = z."""
    parties, z = problem.parties, state["z"]
    gap = total_share(state, parties) - z
    loss = float(problem.weights @ problem.loss.value(z, problem.y))
    return (
        loss
        + problem.penalty_value([state[f"x/{m}"] for m in range(parties)])
        + float((state["y"] + 0.5 * r * gap) @ gap)
    )


def stationarity(problem: Problem, factors: Sequence[Factor], state: Values, r: float) -> float:
    """Return V^t at one start of a state: squared gradients of (5) in x_m and z, and ||S - z||^2.

    In x_m it is the proximal gradient x - prox(x - grad) of the paper; for a square the plain gradient.
    """
    z, y = state["z"], state["y"]
    gap = total_share(state, problem.parties) - z
    pushed = y + r * gap
    total = float(np.sum((problem.weights * problem.loss.gradient(z, problem.y) - pushed) ** 2) + gap @ gap)
    for m, (factor, penalty) in enumerate(zip(factors, problem.penalties, strict=True)):
        x, slope = state[f"x/{m}"], factor.pull(pushed)
        if penalty.ridge is not None:
            moved: Array = problem.lam * penalty.ridge * x + slope
        else:
            moved = x - penalty.prox(x - slope, problem.lam)
        total += float(moved @ moved)
    return total


@dataclass(frozen=True)
class Descent:
    """The guaranteed fall of (5) from pass to pass, and the bound of V^t that follows.

    `x`: Coefficients of the fall x_m ||x_m^{t+1} - x_m^t||^2, one per party.
    `z`: Coefficient of the fall z ||z^{t+1} - z^t||^2.
    `constant`: Constant C with V^2 + ... + V^T <= C (L^1 - f) for every T, hence (T - 1) min V^t <= C (L^1 - f); inf
    where (5) need not fall.
    """

    x: tuple[float, ...]
    z: float
    constant: float


def descent(problem: Problem, scheme: Scheme, factors: Sequence[Factor], rho: float) -> Descent:
    """Return the constants of descent of a scheme whose parties step at once, from y = weight dl(z) on.

    With delta_m = D_m (x_m^{t+1} - x_m^t) the Jacobi step costs (r/2) (M-1) sum ||delta_m||^2 at most: Lemma 3 with
    the right sign. The proximal term P_m pays for it.

    `rho`: The rho passed to `solve`; r below is the scheme's penalty.
    """
    parties, r = problem.parties, float(scheme.weight(np.asarray(rho), problem.parties))
    smoothness = float(problem.weights.max()) * problem.loss.smoothness
    falls, grows = [], []
    for factor, penalty in zip(factors, problem.penalties, strict=True):
        kappa = problem.lam * (penalty.ridge or 0.0)
        low, high = factor.smallest, factor.largest
        held = r * (parties - 1) * high if scheme.averages else scheme.tau(factor, penalty, rho, parties)
        least_held = r * (parties - 1) * low if scheme.averages else held
        # kappa/2 + P - (r/2)(M - 2) D'D at the worst eigenvalue; P is a multiple of D'D when averaging.
        at_ends = [
            0.5 * kappa + pull - 0.5 * r * (parties - 2) * value for pull, value in ((least_held, low), (held, high))
        ]
        falls.append(min(at_ends))
        own = kappa if penalty.ridge is not None else 2.0
        grows.append((own + r * high + held) ** 2)
    bend = 0.0 if problem.loss.convex else smoothness
    z = 0.5 * (r - bend) - smoothness**2 / r
    gap = (1.0 + r**2) * (smoothness / r) ** 2
    sound = z > 0.0 and min(falls) > 0.0 and not scheme.in_turn
    ratios = [grow / fall for grow, fall in zip(grows, falls, strict=True)] if sound else [np.inf]
    return Descent(tuple(falls), z, max(*ratios, gap / z if sound else np.inf))
