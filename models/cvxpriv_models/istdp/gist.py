"""GIST, general iterative shrinkage and thresholding (Gong et al. 2013): ISTDP's Algorithm 1 without noise.

One pass: a proximal step (4) of Barzilai-Borwein length, halved until F is low enough (5), then the next length. The
state of a start:

==================  =======================================================================
theta, gradient     the point, and the gradient of the average loss there
value, recent       F(theta), and F at the last points: the search is not monotone
step, taken         the length to try next, and the one that led to `theta`
shortest, longest   bounds of a first length
center, trial, far  of the block `prox`
trial_z, height     predictions and F at the trial
shortfall           by how much F at the trial is too high; at most 0 ends the search
passes, newton      passes done; Newton steps that ended the last one (`support_newton`)
==================  =======================================================================
"""

from collections.abc import Callable, Mapping

import numpy as np

from cvxpriv.errors import ModelError, suggest
from cvxpriv.numerics.arrays import Array, Values, each_start, stack
from cvxpriv.penalties import Penalty
from cvxpriv.penalties.proximal import proximal, proximal_block
from cvxpriv.schedules.history import AnyOf, Below, Moved
from cvxpriv.schedules.steps import Invariant, Loop, Sweep, Update

from . import closed_form, kkt
from .problem import Problem

#: Limit for a loss that is flat far out, whose Barzilai-Borwein lengths are unbounded.
FAR = 1e6


#: The search's constants: share of the requested decrease, factor by which a step shrinks (the paper's eta), number of
#: points whose highest F counts, least first length as a share of the first one (alpha_min), and most trials of a pass.
BETA, SHRINK, MEMORY, SHORTEST, HALVINGS = 1e-4, 0.5, 5, 1e-6, 100


def longest(penalty: Penalty, first: float) -> float:
    """Return the greatest length that a pass begins with, alpha_max in the paper; `first` is that of the first pass.

    Beyond 1/weak_convexity the proximal step thresholds hard and may throw coefficients far out. A convex penalty, and
    capped l1, have no such limit.
    """
    bend = penalty.weak_convexity
    return 1.0 / bend if 0.0 < bend < np.inf else FAR * first


#: Names of the loops in a run's history.
LOOP = "pass"
SEARCH = "line search"

#: F is a sum of terms of its own size: a rise within their rounding does not count.
ROUNDING = 8.0 * np.finfo(float).eps


#: Each rule maps (BB1, BB2, passes done) to the next length.
STEPS: Mapping[str, Callable[[float, float, int], float]] = {
    "bb1": lambda first, second, passes: first,
    "bb2": lambda first, second, passes: second,
    "alternating": lambda first, second, passes: first if passes % 2 else second,
}


def gist(problem: Problem, step: str, tol: float, limit: int, newton: Update | None = None) -> Loop:
    """Return the algorithm: passes until the KKT residual is at most `tol`, or nothing moves."""
    if step not in STEPS:
        raise ModelError(f"step={step!r} is not a rule for the step: {suggest(str(step), STEPS)}")
    halving = Loop(
        Sweep([_aim(), proximal_block(problem.penalty, problem.features), _weigh(problem)]),
        stop=Below("shortfall", 0.0),
        limit=HALVINGS,
        measure=lambda state: {"shortfall": state["shortfall"]},
        name=SEARCH,
    )
    return Loop(
        Sweep([halving, *([newton] if newton else []), _move(problem, step)], invariants=(_no_rise(),)),
        stop=AnyOf((Below("kkt", tol), Moved("theta", 0.0))),
        limit=limit,
        measure=_figures(problem),
        name=LOOP,
    )


def initial_state(problem: Problem, theta: Array) -> dict[str, Array]:
    """Return the state at one start, moved to the nearest theta where P is finite."""
    theta = proximal(problem.penalty, theta, 0.0, problem.features)
    z = problem.predictions(theta)
    gradient = problem.gradient(z)
    value = problem.average_loss(z) + problem.penalty_value(theta)
    first = closed_form.cauchy_step(gradient, problem.predictions(gradient), problem.loss.smoothness)
    bound = longest(problem.penalty, first)
    step = min(first, bound)
    return stack(
        [
            {
                "theta": theta,
                "gradient": gradient,
                "value": value,
                "recent": np.full(MEMORY, value),
                "step": step,
                "shortest": SHORTEST * step,
                "longest": bound,
                "taken": np.nan,
                "center": theta,
                "trial": theta,
                "far": np.nan,
                "trial_z": z,
                "height": value,
                "shortfall": 0.0,
                "passes": 0.0,
                "newton": 0.0,
            }
        ]
    )


def _aim() -> Update:
    """Return the centre u = theta - step g of ISTDP (4)."""

    def fn(state: Values) -> Values:
        return {"center": state["theta"] - state["step"][:, None] * state["gradient"]}

    return Update("center", fn, frozenset({"theta", "gradient", "step"}), frozenset({"center"}))


def _weigh(problem: Problem) -> Update:
    """Compare F at the trial with (5); a trial that is too high halves the step."""

    def one(at: Values) -> Values:
        trial, step = at["trial"], float(at["step"])
        z = problem.predictions(trial)
        height = problem.average_loss(z) + problem.penalty_value(trial)
        allowed = closed_form.allowed_height(at["recent"], BETA, step, trial - at["theta"])
        shortfall = height - allowed - ROUNDING * abs(height)
        return {
            "trial_z": z,
            "height": np.asarray(height),
            "shortfall": np.asarray(shortfall),
            "taken": np.asarray(step),
            "step": np.asarray(step if shortfall <= 0.0 else SHRINK * step),
        }

    reads = frozenset({"theta", "trial", "step", "recent"})
    return Update("F", each_start(one), reads, frozenset({"trial_z", "height", "shortfall", "taken", "step"}))


def _move(problem: Problem, rule: str) -> Update:
    """Take the trial, and find the next length from the change of the gradient; stay where the search found nothing."""

    def one(at: Values) -> Values:
        if at["shortfall"] > 0.0:
            return {name: at[name] for name in writes}
        gradient = problem.gradient(at["trial_z"])
        first, second = closed_form.barzilai_borwein(at["trial"] - at["theta"], gradient - at["gradient"])
        length = STEPS[rule](first, second, int(at["passes"]))
        if not np.isfinite(length):
            length = float(at["taken"])
        return {
            "theta": at["trial"],
            "gradient": gradient,
            "value": at["height"],
            "recent": np.append(at["recent"][1:], at["height"]),
            "step": np.clip(length, at["shortest"], at["longest"]),
            "passes": at["passes"] + 1.0,
        }

    writes = frozenset({"theta", "gradient", "value", "recent", "step", "passes"})
    reads = frozenset({"trial", "trial_z", "height", "shortfall", "taken", "shortest", "longest"})
    return Update("move", each_start(one), writes | reads, writes)


def _figures(problem: Problem) -> Callable[[Values], Mapping[str, Array]]:
    """Return the columns of a history: objective, kkt, support, step, far (`proximal_block`), newton."""

    def figures(state: Values) -> Mapping[str, Array]:
        pairs = zip(state["theta"], state["gradient"], strict=True)
        largest = [kkt.residuals(problem.penalty, theta, g, problem.features).largest for theta, g in pairs]
        return {
            "objective": state["value"],
            "kkt": np.array(largest),
            "support": np.count_nonzero(state["theta"][:, : problem.features], axis=1).astype(float),
            "step": state["taken"],
            "far": state["far"],
            "newton": state["newton"],
        }

    return figures


def _no_rise() -> Invariant:
    def rise(before: Values, after: Values) -> Array:
        return np.asarray(after["value"] - before["recent"].max(axis=1))

    return Invariant("F does not rise above the last ones", rise, 1e-12)
