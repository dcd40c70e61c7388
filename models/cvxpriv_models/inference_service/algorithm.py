"""IAS Algorithm 1 and its relatives, as schedules.

=========  ==============================================  =====================================================
algorithm  one outer step                                  what it is
=========  ==============================================  =====================================================
admm       [rows, P_U, lambda] x inner, P(S|U)             the paper's Algorithm 1; inner=1 is a single sweep
joint      joint, P(S|U)                                   (10) solved exactly: the convex-concave procedure
bregman    [rows, P_U, lambda] x inner, P(S|U)             Bregman ADMM, IAS (29)
gradient   mechanism                                       projected gradient ascent on IAS (1), the paper's GA
printed    [rows, P_U, lambda] x inner, P(S|U)             Algorithm 1 with (19) as printed: diverges
=========  ==============================================  =====================================================

The inner iterations of ADMM need not raise F, so the state carries `kept`, the best mechanism seen so far, and a
nested loop begins its next outer step there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from cvxpriv.block import Block
from cvxpriv.errors import ModelError, suggest
from cvxpriv.options import require_counts, require_positive
from cvxpriv.schedule import Loop, Measure, Sweep, Update
from cvxpriv.state import Values
from cvxpriv.stopping import AnyOf, Below, Moved, Stop

from . import closed_form
from .accelerated import squarem
from .blocks import accuracy_block, marginal, row
from .bregman import bregman_marginal, bregman_mechanism
from .figures import Risen, Rules, figures, measure, objective, rises, ruled, with_rules
from .gradient import ascent
from .joint import joint
from .problem import Problem

__all__ = ["ALGORITHMS", "AUTO", "JOINT", "OUTER", "Options", "blocks", "joint_step", "joint_steps", "schedule"]

AUTO = "auto"
#: Names under which loops stand in a run's history.
OUTER, INNER, JOINT = "outer", "inner", "joint steps"
#: What the cells of a joint step that stays can differ by.
STILL = 1e-13
#: With rules joint steps end when F rises by less, which is what solvers know of it.
SOLVED = 1e-11


@dataclass(frozen=True)
class Options:
    """What the algorithms can be told.

    Attributes
    ----------
    tol : float
        The KKT residual of IAS (1) at which a start has converged.
    max_iter : int
        Most outer steps.
    rho : float
        The penalty of IAS (16).
    inner : int
        Most sweeps an outer step.
    inner_tol : float
        The paper's eta_p: an inner loop ends when no p(u) moves by more.
    c : float
        The modulus of the kernels of IAS (29).
    step : float, optional
        Of the gradient; None is a line search.
    accelerate : bool
        Whether joint steps look ahead (`cvxpriv_models.inference_service.accelerated`).
    """

    tol: float = 1e-7
    max_iter: int = 1000
    rho: float = 1.0
    inner: int = 100
    inner_tol: float = 1e-6
    c: float = 10.0
    step: float | None = None
    accelerate: bool = True

    def __post_init__(self) -> None:
        require_counts(max_iter=self.max_iter, inner=self.inner)
        require_positive(tol=self.tol, rho=self.rho, inner_tol=self.inner_tol, c=self.c)
        if self.step is not None:
            require_positive(step=self.step)


def alternating_direction(problem: Problem, options: Options, rules: Rules = ()) -> Loop:
    """IAS Algorithm 1 with lambda <- lambda - rho delta."""
    rho = options.rho
    rows = _rows(problem, rho, rules)
    p_u = marginal(problem, rho)
    multiplier = Update(
        "lambda",
        lambda state: {"lam": closed_form.multiplier(problem, state, rho)},
        reads=frozenset({"lam", "q", "mechanism"}),
        writes=frozenset({"lam"}),
    )
    return _nested(problem, [*rows, p_u, multiplier], options, rules, partial(closed_form.sweep, problem, rho=rho))


def joint_steps(problem: Problem, options: Options, rules: Rules = ()) -> Loop:
    """The convex-concave procedure: (10) solved exactly, then (9); a step that lowers F is not taken."""
    converged: Stop = Risen(partial(objective, problem), SOLVED) if rules else Below("kkt", options.tol)
    return Loop(
        joint_step(problem, rules),
        stop=AnyOf((converged, Moved("mechanism", STILL))),
        limit=options.max_iter,
        measure=ruled(problem, rules) if rules else measure(problem),
        accept=partial(rises, problem),
        # Where f is made of straight pieces plain steps end by themselves, at a vertex.
        accelerate=squarem(problem) if options.accelerate and problem.divergence.smooth else None,
        name=JOINT,
    )


def joint_step(problem: Problem, rules: Rules = ()) -> Sweep:
    """One joint step: (10) solved for the mechanism and q, then (9)."""
    return Sweep([with_rules(joint(problem), rules), accuracy_block(problem)])


def bregman(problem: Problem, options: Options, rules: Rules = ()) -> Loop:
    """IAS (29): the leakage is linearised in the rows, kernels (c/2)||.||^2 hold them near."""
    rho, c = options.rho, options.c
    rows = [bregman_mechanism(problem, index, rho, c) for index in range(problem.p_y.size)]
    multiplier = Update(
        "lambda",
        lambda state: {"lam": closed_form.multiplier(problem, state, rho)},
        reads=frozenset({"lam", "q", "mechanism"}),
        writes=frozenset({"lam"}),
    )
    return _nested(problem, [*rows, bregman_marginal(problem, rho, c), multiplier], options, rules)


def gradient(problem: Problem, options: Options, rules: Rules = ()) -> Loop:
    """Projected gradient ascent, the paper's GA: a fixed step as in IAS IV-B, or a line search."""
    step = Update(
        "gradient",
        partial(ascent, problem, step=options.step),
        reads=frozenset({"mechanism"}),
        writes=frozenset({"mechanism"}),
    )
    body = Sweep([step, accuracy_block(problem), _consistent(problem), _keep(problem, back=False)])
    stop = AnyOf((Below("kkt", options.tol), Moved("mechanism", 0.0)))  # a line search that finds no rise stays
    return Loop(body, stop, options.max_iter, measure(problem), name=OUTER)


def printed(problem: Problem, options: Options, rules: Rules = ()) -> Loop:
    """Algorithm 1 with (19) as printed, lambda <- lambda + rho delta: the multiplier runs away (docs/errata.md)."""
    rho = options.rho

    def climbing(state: Values) -> Values:
        return {"lam": state["lam"] + rho * (state["q"] - problem.p_y @ state["mechanism"])}

    multiplier = Update("lambda", climbing, frozenset({"lam", "q", "mechanism"}), frozenset({"lam"}))
    return _nested(problem, [*_rows(problem, rho, rules), marginal(problem, rho), multiplier], options, rules)


ALGORITHMS: Mapping[str, Callable[[Problem, Options, Rules], Loop]] = {
    "admm": alternating_direction,
    "joint": joint_steps,
    "bregman": bregman,
    "gradient": gradient,
    "printed": printed,
}

#: Which of them may run with rules that do not couple rows; rules that do need "joint".
ROW_RULES = ("admm", "printed")


def schedule(problem: Problem, algorithm: str, options: Options, rules: Rules = ()) -> Loop:
    """Return an algorithm by name; "auto" is no schedule but several (`cvxpriv_models.inference_service.solving`)."""
    require_algorithm(algorithm)
    return ALGORITHMS[algorithm](problem, options, rules)


def require_algorithm(algorithm: object) -> None:
    """Refuse a name that is no algorithm.

    Raises
    ------
    ModelError
        With the nearest name.
    """
    if algorithm not in (AUTO, *ALGORITHMS):
        known = suggest(str(algorithm), (AUTO, *ALGORITHMS))
        raise ModelError(f"algorithm={algorithm!r} is not an algorithm of this model: {known}")


def blocks(problem: Problem, rho: float = 1.0, rules: Rules = ()) -> dict[str, Block]:
    """Return the model's blocks by name; with rules, those that can carry them do and the rows are left out."""
    rows = [] if rules else _rows(problem, rho)
    every = (accuracy_block(problem), *rows, marginal(problem, rho), with_rules(joint(problem), rules))
    return {block.name: block for block in every}


def _rows(problem: Problem, rho: float, rules: Rules = ()) -> list[Block]:
    return [with_rules(row(problem, index, rho, bool(rules)), rules) for index in range(problem.p_y.size)]


def _nested(
    problem: Problem,
    steps: list[Block | Update],
    options: Options,
    rules: Rules,
    fused: Callable[[Values], Values] | None = None,
) -> Loop:
    """Return outer steps of inner sweeps; with inner=1 one flat loop of sweeps, each followed by (9)."""
    p_s_u = accuracy_block(problem)
    every_step, stop = _watch(problem, options, rules)
    if options.inner == 1:
        body = Sweep([Sweep(steps, fused=fused), p_s_u, _keep(problem, back=False)])
        return Loop(body, stop, options.max_iter, every_step, name=OUTER)
    inner = Loop(
        Sweep(steps, fused=fused),
        stop=Moved("q", options.inner_tol),
        limit=options.inner,
        measure=lambda state: {"delta": np.abs(state["q"] - problem.p_y @ state["mechanism"]).sum(axis=-1)},
        name=INNER,
    )
    return Loop(Sweep([inner, p_s_u, _keep(problem, back=True)]), stop, options.max_iter, every_step, name=OUTER)


def _watch(problem: Problem, options: Options, rules: Rules) -> tuple[Measure, Stop]:
    """What is measured after an outer step, and when it was the last.

    Where f has kinks the residual asks for a program of its own: it is left to the end of the run.
    """
    if rules:
        return ruled(problem, rules), Risen(partial(objective, problem), SOLVED)
    if not problem.divergence.smooth:
        return figures(problem), Moved("mechanism", STILL)
    return measure(problem), Below("kkt", options.tol)


def _keep(problem: Problem, back: bool) -> Update:
    """Return the step that keeps the better of the mechanism and the kept one, and, if asked, goes back to it.

    q and lambda go on as they are: from the same mechanism the next inner loop then ends elsewhere.
    """

    def fn(state: Values) -> Values:
        better = objective(problem, state["mechanism"]) > objective(problem, state["kept"])
        kept = np.where(better[:, None, None], state["mechanism"], state["kept"])
        if not back:
            return {"kept": kept}
        posterior = closed_form.posterior(kept, problem.p_y, problem.p_s_given_y)
        return {"kept": kept, "mechanism": kept, "posterior": posterior}

    written = {"kept", "mechanism", "posterior"} if back else {"kept"}
    return Update("keep", fn, reads=frozenset({"mechanism", "kept"}), writes=frozenset(written))


def _consistent(problem: Problem) -> Update:
    """Return the step that sets q to the mechanism's own p(u)."""
    return Update(
        "p(u)",
        lambda state: {"q": problem.p_y @ state["mechanism"]},
        reads=frozenset({"mechanism"}),
        writes=frozenset({"q"}),
    )
