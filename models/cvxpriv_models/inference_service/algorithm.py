"""IAS Algorithm 1 and its relatives, as schedules.

=========  ==============================================  =====================================================
method     one outer step                                  what it is
=========  ==============================================  =====================================================
admm       [rows, P_U, lambda] x inner, P(S|U)             the paper's Algorithm 1; inner=1 is a single pass
joint      joint, P(S|U)                                   (10) solved exactly: the convex-concave procedure
bregman    [rows, P_U, lambda] x inner, P(S|U)             Bregman ADMM, IAS (29)
gradient   mechanism                                       projected gradient ascent on IAS (1), the paper's GA
printed    [rows, P_U, lambda] x inner, P(S|U)             Algorithm 1 with (19) as printed: diverges
=========  ==============================================  =====================================================
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.divergences import FDivergence
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.schedules.history import AnyOf, Below, Moved, Stop
from cvxpriv.schedules.steps import Accelerator, Loop, Sweep, Update

from . import closed_form
from .blocks import accuracy_block, marginal, row
from .bregman import ascent, bregman_marginal, bregman_mechanism
from .joint import joint
from .measured import (
    OUTER,
    SOLVED,
    STILL,
    Constraints,
    Options,
    Risen,
    consistent,
    constrained,
    keep,
    measure,
    nested,
    rises,
)
from .problem import Problem

AUTO = "auto"
#: The method that proves its answer: column generation, and joint steps from there.
COLUMNS = "columns"
#: The name under which joint steps stand in a run's history.
JOINT = "joint steps"


def alternating_direction(problem: Problem, options: Options, constraints: Constraints = ()) -> Loop:
    """IAS Algorithm 1 with lambda <- lambda - rho delta."""
    rho = options.rho
    rows = _rows(problem, rho, constraints)
    p_u = marginal(problem, rho)
    fused = partial(closed_form.one_pass, problem, rho=rho)
    return nested(problem, [*rows, p_u, _multiplier(problem, rho)], options, constraints, fused)


def joint_steps(problem: Problem, options: Options, constraints: Constraints = ()) -> Loop:
    """The convex-concave procedure: (10) solved exactly, then (9); a step that lowers F is not taken."""
    converged: Stop = Risen(problem.objective, SOLVED) if constraints else Below("kkt", options.tol)
    return Loop(
        joint_step(problem, constraints),
        stop=AnyOf((converged, Moved("mechanism", STILL))),
        limit=options.max_iter,
        measure=constrained(problem, constraints) if constraints else measure(problem),
        accept=partial(rises, problem),
        # Where f is made of straight pieces plain steps end by themselves, at a vertex.
        accelerate=squarem(problem) if options.accelerate == "auto" and problem.divergence.smooth else None,
        name=JOINT,
    )


def joint_step(problem: Problem, constraints: Constraints = ()) -> Sweep:
    """One joint step: (10) solved for the mechanism and q, then (9)."""
    return Sweep([joint(problem).constrained(constraints), accuracy_block(problem)])


def bregman(problem: Problem, options: Options, constraints: Constraints = ()) -> Loop:
    """IAS (29): the leakage is linearised in the rows, kernels (c/2)||.||^2 hold them near."""
    rho, c = options.rho, options.c
    rows = [bregman_mechanism(problem, index, rho, c) for index in range(problem.p_y.size)]
    steps: list[Block | Update] = [*rows, bregman_marginal(problem, rho, c), _multiplier(problem, rho)]
    return nested(problem, steps, options, constraints)


def gradient(problem: Problem, options: Options, constraints: Constraints = ()) -> Loop:
    """Projected gradient ascent, the paper's GA: a fixed step as in IAS IV-B, or a line search."""
    step = Update(
        "gradient",
        partial(ascent, problem, step=options.step),
        reads=frozenset({"mechanism"}),
        writes=frozenset({"mechanism"}),
    )
    body = Sweep([step, accuracy_block(problem), consistent(problem), keep(problem, back=False)])
    stop = AnyOf((Below("kkt", options.tol), Moved("mechanism", 0.0)))  # a line search that finds no rise stays
    return Loop(body, stop, options.max_iter, measure(problem), name=OUTER)


def printed(problem: Problem, options: Options, constraints: Constraints = ()) -> Loop:
    """Algorithm 1 with (19) as printed, lambda <- lambda + rho delta: the multiplier runs away (docs/errata.md)."""
    rho = options.rho
    steps: list[Block | Update] = [
        *_rows(problem, rho, constraints),
        marginal(problem, rho),
        _multiplier(problem, -rho),
    ]
    return nested(problem, steps, options, constraints)


def _multiplier(problem: Problem, rho: float) -> Update:
    """lambda <- lambda - rho delta."""
    return Update(
        "lambda",
        lambda state: {"lam": closed_form.multiplier(problem, state, rho)},
        reads=frozenset({"lam", "q", "mechanism"}),
        writes=frozenset({"lam"}),
    )


METHODS: Mapping[str, Callable[[Problem, Options, Constraints], Loop]] = {
    "admm": alternating_direction,
    "joint": joint_steps,
    "bregman": bregman,
    "gradient": gradient,
    "printed": printed,
}

#: Methods that may run with constraints that do not couple rows; constraints that do need "joint".
ROW_CONSTRAINTS = ("admm", "printed")


def schedule(problem: Problem, method: str, options: Options, constraints: Constraints = ()) -> Loop:
    """Return a method by name; "auto" is no schedule but several (`cvxpriv_models.inference_service.solving`)."""
    return METHODS[method](problem, options, constraints)


def blocks(problem: Problem, rho: float = 1.0, constraints: Constraints = ()) -> dict[str, Block]:
    """Return the model's blocks by name; with constraints, those that can carry them do and the rows are left out."""
    rows = [] if constraints else _rows(problem, rho)
    every = (accuracy_block(problem), *rows, marginal(problem, rho), joint(problem).constrained(constraints))
    return {block.name: block for block in every}


def _rows(problem: Problem, rho: float, constraints: Constraints = ()) -> list[Block]:
    return [row(problem, index, rho, bool(constraints)).constrained(constraints) for index in range(problem.p_y.size)]


#: The longest leap, in units of the first step.
LONGEST = 100.0
#: An extrapolated posterior stays above this share of the last one: it must not leave the simplex.
SHARE = 1e-12


def squarem(problem: Problem) -> Accelerator:
    """Two joint steps, then a third from P(S|U) extrapolated by the ratio of first to second differences, per start.

    A start takes the third where its F is larger, so F rises as under plain steps. Varadhan and Roland (2008), scheme
    S3. Where plain steps need thousands, tens of these reach a stationary point.
    """

    def accelerate(body: Callable[[Values], dict[str, Array]], state: dict[str, Array], iteration: int) -> Values:
        once = body(state)
        twice = body(once)
        ahead = body({**twice, "posterior": _leap(state["posterior"], once["posterior"], twice["posterior"])})
        better = problem.objective(ahead["mechanism"]) > problem.objective(twice["mechanism"])
        return {name: np.where(_along(better, value), ahead[name], value) for name, value in twice.items()}

    return accelerate


def _leap(start: Array, once: Array, twice: Array) -> Array:
    """P(S|U) ahead of three in a row, (starts, |S|, |U|), columns sum to 1."""
    first = once - start
    second = twice - once - first
    norms = [np.sqrt(np.sum(change**2, axis=(-2, -1), keepdims=True)) for change in (first, second)]
    length = np.clip(norms[0] / np.maximum(norms[1], np.finfo(float).tiny), 1.0, LONGEST)
    leap = np.maximum(start + 2.0 * length * first + length**2 * second, SHARE * twice)
    return np.asarray(leap / leap.sum(axis=-2, keepdims=True))


def _along(mask: np.ndarray[tuple[int], np.dtype[np.bool_]], value: Array) -> Array:
    """The mask with axes of length 1 after the first, to broadcast against a state entry."""
    return np.asarray(mask.reshape(-1, *(1,) * (value.ndim - 1)))


#: f'' is sampled this finely on [floor, 1/floor], both ends included.
POINTS = 2001


@dataclass(frozen=True)
class Moduli:
    """The moduli of Bregman ADMM, IAS (29), with the kernel (c/2)||.||^2: those needed, and those present.

    `l_f`: Lipschitz constant of f' on [floor, 1/floor]; inf at floor 0, and for an f with a kink.
    `l_g`: 2 beta l_f / floor^2, Lemma 8.
    `c`, `rho`: The modulus of the kernels, and the penalty.
    `rho_needed`: The least rho with which the step of Lemma 10, corrected by the multiplier's -||dLambda||^2 / rho,
    provably rises: max(6 l_g^2 / (c - l_g), 6 (l_g^2 + 2 c^2) / c); inf for c <= l_g.
    """

    l_f: float
    l_g: float
    c: float
    rho: float
    rho_needed: float

    @property
    def printed_assumption(self) -> bool:
        """Assumption 3 of IAS III-C: c > l_g."""
        return self.c > self.l_g


def moduli(problem: Problem, c: float, rho: float) -> Moduli:
    """Return the constants of a problem for Bregman ADMM with kernel modulus `c` and penalty `rho`."""
    l_f = lipschitz_of_slope(problem.divergence, problem.floor)
    l_g = 2.0 * problem.beta * l_f / problem.floor**2 if problem.floor > 0.0 else np.inf
    needed = max(6.0 * l_g**2 / (c - l_g), 6.0 * (l_g**2 + 2.0 * c**2) / c) if c > l_g else np.inf
    return Moduli(l_f, l_g, c, rho, needed)


def lipschitz_of_slope(divergence: FDivergence, floor: float) -> float:
    """Return l_f, the largest f'' on [floor, 1/floor] (sampled); inf at floor 0 and where f' jumps."""
    if floor <= 0.0 or any(floor < kink < 1.0 / floor for kink in divergence.kinks):
        return np.inf
    t = np.geomspace(floor, 1.0 / floor, POINTS)
    return float(np.abs(divergence.second_derivative(t)).max())
