"""The figures of a state of IAS, the stopping rules on them, and outer steps of inner passes.

The inner iterations of ADMM need not raise F, so the state carries `kept`, the best mechanism seen so far, and a
nested loop begins its next outer step there.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Constraint
from cvxpriv.numerics.arrays import Array, Values, single, starts_in
from cvxpriv.schedules.history import Below, Moved, Stop
from cvxpriv.schedules.steps import Loop, Measure, Sweep, Update

from . import closed_form, kkt, measures
from .blocks import accuracy_block
from .joint import joint
from .problem import Problem

#: Fall of F that an exact joint step may have: its certified gap.
ROUNDING = 1e-11

Constraints = tuple[tuple[str, Constraint], ...]


def figures(problem: Problem) -> Measure:
    """Return the figures of a state, per start.

    objective F, accuracy and leakage of the mechanism (whose p(u) is its own), delta = |q - p(u)|_1, and the largest
    |lambda|.
    """

    def of_state(state: Values) -> dict[str, Array]:
        mechanism = state["mechanism"]
        accuracy = measures.accuracy(mechanism, problem.p_y, problem.p_s_given_y)
        leakage = measures.leakage(mechanism, problem.p_y, problem.divergence)
        return {
            "objective": accuracy - problem.beta * leakage,
            "accuracy": accuracy,
            "leakage": leakage,
            "delta": np.abs(state["q"] - problem.p_y @ mechanism).sum(axis=-1),
            "multiplier": np.abs(state["lam"]).max(axis=-1),
        }

    return of_state


def measure(problem: Problem, constraints: Constraints = ()) -> Measure:
    """Return `figures` and the KKT residual of IAS (1); with constraints that of the joint block at its own point."""
    of_state = figures(problem)
    block = joint(problem).constrained(constraints) if constraints else None

    def with_residual(state: Values) -> dict[str, Array]:
        residual = (
            block.own_residuals(_own(problem, state)) if block else kkt.residuals(problem, state["mechanism"]).largest
        )
        return {**of_state(state), "kkt": residual}

    return with_residual


def constrained(problem: Problem, constraints: Constraints) -> Measure:
    """Return `figures` and the gap under constraints: the gain of one more joint step, by a solver's value.

    The residual would take far longer than the step itself.
    """
    of_state, block = figures(problem), joint(problem).constrained(constraints)

    def with_gap(state: Values) -> dict[str, Array]:
        found = of_state(state)
        own = _own(problem, state)
        best = [block.solve(single(own, start))[1].objective for start in range(starts_in(state))]
        return {**found, "gap": np.array(best) - found["objective"]}

    return with_gap


def _own(problem: Problem, state: Values) -> Values:
    """Return a state at its mechanism's own P(S|U): where a step was not taken, the state's is that of another."""
    posterior = closed_form.posterior(state["mechanism"], problem.p_y, problem.p_s_given_y)
    return {**state, "posterior": posterior}


@dataclass(frozen=True)
class Risen:
    """Stop a start when a step raised its value by at most a bound."""

    value: Callable[[Array], Array]
    bound: float

    def __call__(
        self, iteration: int, before: Values, after: Values, measured: Mapping[str, Array]
    ) -> npt.NDArray[np.bool_]:
        return np.asarray(self.value(after["mechanism"]) <= self.value(before["mechanism"]) + self.bound)


def rises(problem: Problem, before: Values, after: Values) -> npt.NDArray[np.bool_]:
    """Return which starts' F rose, or fell by no more than rounding."""
    return np.asarray(problem.objective(after["mechanism"]) >= problem.objective(before["mechanism"]) - ROUNDING)


#: Names under which loops stand in a run's history.
OUTER, INNER = "outer", "inner"
#: Difference of the cells of a joint step that stays.
STILL = 1e-13
#: With constraints joint steps end when F rises by less, which is what solvers know of it.
SOLVED = 1e-11


@dataclass(frozen=True)
class Options:
    """The options of the algorithms.

    `tol`: The KKT residual of IAS (1) at which a start has converged.
    `max_iter`: Most outer steps.
    `rho`: The penalty of IAS (16).
    `inner`: Most passes an outer step.
    `inner_tol`: The paper's eta_p: an inner loop ends when no p(u) moves by more.
    `c`: The modulus of the kernels of IAS (29).
    `step`: Step of the gradient. None is a line search.
    `accelerate`, {"auto", "none"}: Whether joint steps look ahead (`cvxpriv_models.inference_service.algorithm`).
    """

    tol: float = 1e-7
    max_iter: int = 1000
    rho: float = 1.0
    inner: int = 100
    inner_tol: float = 1e-6
    c: float = 10.0
    step: float | None = None
    accelerate: str = "auto"


def nested(
    problem: Problem,
    steps: list[Block | Update],
    options: Options,
    constraints: Constraints,
    fused: Callable[[Values], Values] | None = None,
) -> Loop:
    """Return outer steps of inner passes; with inner=1 one flat loop of passes, each followed by (9)."""
    p_s_u = accuracy_block(problem)
    every_step, stop = _watch(problem, options, constraints)
    if options.inner == 1:
        body = Sweep([Sweep(steps, fused=fused), p_s_u, keep(problem, back=False)])
        return Loop(body, stop, options.max_iter, every_step, name=OUTER)
    inner = Loop(
        Sweep(steps, fused=fused),
        stop=Moved("q", options.inner_tol),
        limit=options.inner,
        measure=lambda state: {"delta": np.abs(state["q"] - problem.p_y @ state["mechanism"]).sum(axis=-1)},
        name=INNER,
    )
    return Loop(Sweep([inner, p_s_u, keep(problem, back=True)]), stop, options.max_iter, every_step, name=OUTER)


def _watch(problem: Problem, options: Options, constraints: Constraints) -> tuple[Measure, Stop]:
    """Return the measurements after an outer step, and the rule for the last one.

    Where f has kinks the residual asks for a program of its own: it is left to the end of the run.
    """
    if constraints:
        return constrained(problem, constraints), Risen(problem.objective, SOLVED)
    if not problem.divergence.smooth:
        return figures(problem), Moved("mechanism", STILL)
    return measure(problem), Below("kkt", options.tol)


def keep(problem: Problem, back: bool) -> Update:
    """Return the step that keeps the better of the mechanism and the kept one, and, if asked, goes back to it.

    q and lambda go on as they are: from the same mechanism the next inner loop then ends elsewhere.
    """

    def fn(state: Values) -> Values:
        better = problem.objective(state["mechanism"]) > problem.objective(state["kept"])
        kept = np.where(better[:, None, None], state["mechanism"], state["kept"])
        if not back:
            return {"kept": kept}
        posterior = closed_form.posterior(kept, problem.p_y, problem.p_s_given_y)
        return {"kept": kept, "mechanism": kept, "posterior": posterior}

    written = {"kept", "mechanism", "posterior"} if back else {"kept"}
    return Update("keep", fn, reads=frozenset({"mechanism", "kept"}), writes=frozenset(written))


def consistent(problem: Problem) -> Update:
    """Return the step that sets q to the mechanism's own p(u)."""
    return Update(
        "p(u)",
        lambda state: {"q": problem.p_y @ state["mechanism"]},
        reads=frozenset({"mechanism"}),
        writes=frozenset({"q"}),
    )
