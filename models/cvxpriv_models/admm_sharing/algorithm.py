"""ADMM sharing as schedules: SHARING Algorithm 1 and its convergent relatives (`schemes`)."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Constraint
from cvxpriv.numerics.anderson import Anderson
from cvxpriv.numerics.arrays import Array, Values, measured_each
from cvxpriv.schedules.history import AnyOf, Below, Stop
from cvxpriv.schedules.steps import AnyStep, Loop, Measure, Parallel, Sweep

from . import assumptions, kkt
from .accelerated import MEMORY, Following, Packed
from .blocks import centre, dual, party, total_share
from .factor import Factor
from .joint import Joining
from .problem import Problem
from .schemes import Scheme

#: Name of the loop in a run's history.
LOOP = "pass"

#: Every constraint that a user added, as (party, name, constraint).
Constraints = tuple[tuple[int, str, Constraint], ...]


def one_pass(
    problem: Problem, scheme: Scheme, factors: Sequence[Factor], constraints: Constraints = ()
) -> list[AnyStep]:
    """Return the steps of SHARING Algorithm 1."""
    x = [constrained(party(problem, scheme, factors, m), m, constraints) for m in range(problem.parties)]
    parties = Sweep(x, name="parties") if scheme.in_turn else Parallel(x, name="parties")  # lines 1-6
    z = centre(problem, scheme)  # line 10
    y = dual(problem, scheme)  # line 11
    return [parties, z, y]


def schedule(
    problem: Problem,
    scheme: Scheme,
    factors: Sequence[Factor],
    *,
    tol: float,
    limit: int,
    follow: bool = False,
    accelerate: bool = False,
    joint: bool = False,
    constraints: Constraints = (),
    gap: float = 0.0,
) -> Loop:
    """Return the whole algorithm: passes until the KKT residual of (1) is at most `tol`.

    An accelerated pass begins with z: the result of a pass is then determined by x and y alone, and the first x-step of
    the plain order, from x = z = y = 0, leaves x where it is.

    `follow`: Whether rho follows the curvature of the loss (`accelerated.Following`).
    `joint`: Whether Newton's method on all columns may begin or end a run (`joint.Joining`).
    `gap`: Certified gap, as a part of the objective, at which a start is done too; 0 for none.
    """
    parties, z, y = one_pass(problem, scheme, factors, constraints)
    steps = [z, y, parties] if accelerate else [parties, z, y]
    packing = Packed(problem, scheme, factors, constrained=bool(constraints))
    anderson = Anderson(packing, MEMORY) if accelerate else None
    accelerator = Following(problem, scheme, anderson, factors) if follow else anderson
    return Loop(
        Sweep(steps, fused=packing.one_pass if accelerate and packing.lean else None),
        stop=stopping(tol, gap),
        limit=limit,
        measure=measure(problem, scheme, factors, constraints, gap),
        accelerate=Joining(problem, scheme, factors, accelerator, tol, 0.99 * gap) if joint else accelerator,
        name=LOOP,
    )


def blocks(
    problem: Problem, scheme: Scheme, factors: Sequence[Factor], constraints: Constraints = ()
) -> dict[str, Block]:
    """Return the model's blocks by name; a party's carries the constraints on its coefficients."""
    several = [constrained(party(problem, scheme, factors, m), m, constraints) for m in range(problem.parties)]
    return {block.name: block for block in (*several, centre(problem, scheme))}


def constrained(block: Block, m: int, constraints: Constraints) -> Block:
    """Return the block of party m with its constraints."""
    for party_number, name, constraint in constraints:
        if party_number == m:
            block = block.constrain(name, constraint)
    return block


def initial_state(problem: Problem, rho: float, coefficients: Array | None = None) -> dict[str, Array]:
    """Return the start z = S and y = 0 at given coefficients, (d_1 + ... + d_M,), with the penalty.

    None means the paper's start, x = z = y = 0.
    """
    zeros = np.zeros((1, problem.samples))
    x = problem.split(np.zeros(problem.columns) if coefficients is None else coefficients)
    shares = [part @ own for part, own in zip(problem.parts, x, strict=True)]
    state = {f"x/{m}": own[None] for m, own in enumerate(x)}
    state |= {f"v/{m}": np.asarray(share)[None] for m, share in enumerate(shares)}
    return {**state, "z": np.sum(shares, axis=0)[None], "y": zeros, "rho": np.array([rho])}


def stopping(tol: float, gap: float) -> Stop:
    """Return the rule of a loop whose gap is measured where `gap` > 0; the final one, after rounding, is below it."""
    return AnyOf((Below("kkt", tol), Below("gap", 0.99 * gap))) if gap > 0.0 else Below("kkt", tol)


def measure(
    problem: Problem, scheme: Scheme, factors: Sequence[Factor], constraints: Constraints = (), gap: float = 0.0
) -> Measure:
    """Return the figures of a state, per start: objective, primal, stationarity, kkt; V^t for a non-convex loss.

    `gap`: > 0 adds the figure `gap`: see `kkt.relative_gap`.
    """

    def one(view: Values) -> dict[str, float]:
        found = residuals_with_constraints(problem, scheme, factors, view, constraints)
        x = [view[f"x/{m}"] for m in range(problem.parties)]
        figures = figures_of(problem, found, problem.value_at(total_share(view, problem.parties), x), view, gap)
        if not problem.loss.convex:
            r = float(scheme.weight(view["rho"], problem.parties))
            figures["lagrangian"] = assumptions.augmented_lagrangian(problem, view, r)
            figures["V"] = assumptions.stationarity(problem, factors, view, r)
        return figures

    return measured_each(one)


def figures_of(
    problem: Problem, found: kkt.SharingResiduals, objective: float, view: Values, gap: float
) -> dict[str, float]:
    """Return the figures of a pass at one start, from its residuals and its objective; `gap` as in `measure`."""
    figures = {
        "objective": objective,
        "primal": found.primal,
        "stationarity": max(found.stationarity),
        "kkt": found.largest,
        "rho": float(np.mean(view["rho"])),
    }
    return {**figures, "gap": kkt.relative_gap(problem, view, found, objective, gap)} if gap > 0.0 else figures


def residuals_with_constraints(
    problem: Problem, scheme: Scheme, factors: Sequence[Factor], view: Values, constraints: Constraints
) -> kkt.SharingResiduals:
    """Return the residuals of one start; a party with constraints has the residual of its own block there.

    A user's constraint has no closed distance: the party is stationary where its block would stay.
    """
    found = kkt.residuals(problem, factors, view)
    if not constraints:
        return found
    stationarity = list(found.stationarity)
    for m in {number for number, _, _ in constraints}:
        block = constrained(party(problem, scheme, factors, m), m, constraints)
        stationarity[m] = block.residual(view, view).largest
    return replace(found, stationarity=tuple(stationarity))
