"""The blocks of ADMM sharing: each party's x_m (6), the centre's z (7), and the dual step (8).

The state: `x/0`.. the coefficients (d_m,), `v/0`.. the shares D_m x_m (N,), `z` and `y` (N,), and `rho`, a number, or
one for each sample (N,).
Every penalty is read from the state, so that it may change from pass to pass. Objectives differ from the paper's by
constants.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Declaration
from cvxpriv.numerics.arrays import Array, Values, each_start
from cvxpriv.penalties import Penalty
from cvxpriv.penalties.loss_steps import in_pieces
from cvxpriv.schedules.steps import Update

from . import closed_form
from .factor import Factor
from .problem import Problem
from .schemes import Scheme

#: Largest number of samples for which the z block has Parameters. cvxpy's memory for a Parameter of N entries grows as
#: N^2: 32 GiB at 32,561, where the same problem with numbers takes CLARABEL six seconds.
MOST_PARAMETERS = 1000
#: Longest proximal step after a solver's answer, as a part of its norm. A solver leaves 1e-9 where a coefficient is 0,
#: which is no zero of a subgradient; the step puts it there. At an added constraint that holds the step is longer.
LANDED = 1e-6


def total_share(state: Values, parties: int) -> Array:
    """Return S = sum_m D_m x_m of a state, whatever leading axes it has."""
    return _summed(_shares(state, parties))


def _shares(state: Values, parties: int) -> list[Array]:
    return [state[f"v/{m}"] for m in range(parties)]


def _summed(shares: Sequence[Array]) -> Array:
    total = shares[0]
    for place, share in enumerate(shares[1:]):
        total = np.add(total, share, out=total if place else None)
    return total


def party(problem: Problem, scheme: Scheme, factors: Sequence[Factor], m: int) -> Block:
    """x_m, SHARING (6): minimise lam R_m(x) + y'D_m x + (rho/2)||D_m x - target||^2 + (tau/2)||x - x_m||^2.

    Target and tau belong to the scheme (`schemes`). D_m enters the cone program by the root of D_m'D_m, which makes it
    as small as the party's columns.
    """
    parties, own = problem.parties, f"v/{m}"

    aim = in_pieces(lambda share, z, *shares: scheme.target(share, _summed(shares), z, parties))

    def target(view: Values) -> Array:
        return aim(view[own], view["z"], *_shares(view, parties))

    shares = frozenset({"z", *(f"v/{k}" for k in range(parties))})
    return party_towards(target, shares, factors[m], problem.penalties[m], problem.lam, scheme, parties, m)


def party_towards(
    target: Callable[[Values], Array],
    shares: frozenset[str],
    factor: Factor,
    penalty: Penalty,
    lam: float,
    scheme: Scheme,
    parties: int,
    m: int,
) -> Block:
    """Return the step of `party`, whatever its target is read from.

    `target`: Maps the entries read to the target of D_m x_m, (N,).
    `shares`: The entries that it reads.
    """
    own_x, own_v = f"x/{m}", f"v/{m}"
    linear = scheme.linearises(penalty)  # the square is replaced by its tangent at x_m

    def declare(structure: bytes | tuple[()]) -> Declaration:
        root = factor.scaled(np.frombuffer(structure)).root if structure else factor.root
        x = cp.Variable(factor.part.shape[1], name="x")
        half_rho, half_tau = cp.Parameter(nonneg=True, name="rho/2"), cp.Parameter(nonneg=True, name="tau/2")
        slope = cp.Parameter(x.size, name="slope")
        cost, inside = penalty.expression(x)
        squares = half_rho * cp.sum_squares(root @ x) + half_tau * cp.sum_squares(x)
        return Declaration(
            objective=cp.Minimize(lam * cost + squares - slope @ x),
            constraints={f"X[{index}]": one for index, one in enumerate(inside)},
            variables={"x": x},
            parameters={"rho/2": half_rho, "tau/2": half_tau, "slope": slope},
            mechanism=x,
        )

    def parameters(view: Values) -> Values:
        rho = view["rho"]
        tau = scheme.tau(factor, penalty, rho, parties)
        aim = target(view) - view[own_v] if linear else target(view)
        return {
            "rho/2": np.asarray(0.0 if linear else 0.5 if rho.ndim else 0.5 * float(rho)),
            "tau/2": np.asarray(0.5 * tau),
            "slope": factor.pull(rho * aim - view["y"]) + tau * view[own_x],
        }

    def exact(view: Values) -> Values:
        rho, x = view["rho"], view[own_x]
        tau = scheme.tau(factor, penalty, rho, parties)
        if linear:
            aim = target(view) - view[own_v]
            return written(closed_form.party_linearised(factor, penalty, aim, view["y"], rho, lam, tau, x))
        ridge = lam * (penalty.ridge or 0.0)
        return written(closed_form.party(factor, target(view), view["y"], rho, ridge, tau, x))

    def repair(values: Values, view: Values) -> Values:
        x, given = penalty.prox(values["x"], 0.0), parameters(view)  # the projection onto X_m
        own = factor.scaled(view["rho"]) if view["rho"].ndim else factor
        square, hold = 2.0 * float(given["rho/2"]), 2.0 * float(given["tau/2"])
        bend = square * own.largest + hold
        if penalty.ridge is not None or not bend > 0.0:
            return {"x": x}
        gradient = square * own.pull(own.share(x)) + hold * x - given["slope"]
        landed = penalty.prox(x - gradient / bend, lam / bend)
        near = np.linalg.norm(landed - x) <= LANDED * max(1.0, float(np.linalg.norm(x)))
        return {"x": landed if near else x}

    def written(x: Array) -> Values:
        return {own_x: x, own_v: factor.share(x)}

    return Block(
        name=own_x,
        reads=shares | {own_x, own_v, "y", "rho"},
        writes=frozenset({own_x, own_v}),
        declare=declare,
        parameters=parameters,
        embed=lambda point, at: {"x": point[own_x]},
        repair=repair,
        write=lambda solution, view: written(solution.values["x"]),
        direct=each_start(exact) if linear or penalty.ridge is not None else None,
        structure=lambda view: view["rho"].tobytes() if view["rho"].ndim else (),
    )


@dataclass(frozen=True)
class Constants:
    """The constants of the z block's objective, where it goes into the declaration as numbers.

    `r`, `slope`: The bytes of r and of y + r S, (N,), in memory: comparable, which an array is not.
    """

    r: bytes
    slope: bytes


def centre(problem: Problem, scheme: Scheme) -> Block:
    """z, SHARING (7): minimise sum_i weight_i l(z_i) - y'z + (r/2)||S - z||^2.

    A loss that is not convex has no DCP form: its step is exact, sample by sample. Beyond `MOST_PARAMETERS` samples the
    declaration holds numbers in place of Parameters and is compiled anew each time.
    """
    parties, loss, samples = problem.parties, problem.loss, problem.samples
    large = samples > MOST_PARAMETERS

    def weight(view: Values) -> Array:
        return np.asarray(scheme.weight(view["rho"], parties))

    def slope_of(view: Values) -> Array:
        return np.asarray(view["y"] + weight(view) * total_share(view, parties))

    def declare(structure: Constants | tuple[()]) -> Declaration:
        z = cp.Variable(samples, name="z")
        square: cp.Expression
        slope: cp.Expression | Array
        if isinstance(structure, Constants):
            slope, named = np.frombuffer(structure.slope), {}
            square = 0.5 * cp.sum_squares(cp.multiply(np.sqrt(np.frombuffer(structure.r)), z))
        else:
            half_r, slope = cp.Parameter(nonneg=True, name="r/2"), cp.Parameter(samples, name="slope")
            square, named = half_r * cp.sum_squares(z), {"r/2": half_r, "slope": slope}
        cost = problem.weights @ loss.of(z, problem.y) + square - slope @ z
        return Declaration(cp.Minimize(cost), constraints={}, variables={"z": z}, parameters=named)

    def structure(view: Values) -> Constants | tuple[()]:
        if large or view["rho"].ndim:
            return Constants(np.broadcast_to(weight(view), samples).tobytes(), slope_of(view).tobytes())
        return ()

    def parameters(view: Values) -> Values:
        if large or view["rho"].ndim:
            return {}
        return {"r/2": 0.5 * weight(view), "slope": slope_of(view)}

    def of_samples(z: Array, y: Array, labels: Array, weights: Array, rho: Array, *shares: Array) -> Array:
        r = scheme.weight(rho, parties)
        return closed_form.consensus(loss, _summed(shares), y, labels, weights, r, z)

    def exact(view: Values) -> Values:
        given = problem.y, problem.weights, view["rho"], *_shares(view, parties)
        return {"z": in_pieces(of_samples)(view["z"], view["y"], *given)}

    return Block(
        name="z",
        reads=frozenset({"z", "y", "rho", *(f"v/{k}" for k in range(parties))}),
        writes=frozenset({"z"}),
        declare=declare,
        parameters=parameters,
        embed=lambda point, at: {"z": point["z"]},
        repair=lambda values, view: values,
        write=lambda solution, view: {"z": solution.values["z"]},
        direct=each_start(exact),
        structure=structure,
    )


def dual(problem: Problem, scheme: Scheme) -> Update:
    """y, SHARING (8): y + r (S - z)."""
    parties = problem.parties

    def of_samples(y: Array, z: Array, rho: Array, *shares: Array) -> Array:
        return closed_form.dual(y, _summed(shares), z, scheme.weight(rho, parties))

    def step(view: Values) -> Values:
        return {"y": in_pieces(of_samples)(view["y"], view["z"], view["rho"], *_shares(view, parties))}

    reads = frozenset({"y", "z", "rho", *(f"v/{k}" for k in range(parties))})
    return Update("y", each_start(step), reads, frozenset({"y"}))
