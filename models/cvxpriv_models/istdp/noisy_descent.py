"""The loop of noisy gradients: ISTDP's own, and gradient descent's. One iteration releases one noisy gradient.

    Loop(Sweep([noisy gradient, step, prox or descent, move]))

Only the first step reads the data. The line search (5) is left out: it would read the clean objective, and under noise
no step passes it near a solution (ERRATA ISTDP 4).
"""

from collections.abc import Mapping

import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.engines import ClosedForm
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array, Values, single, stack
from cvxpriv.penalties import ElasticNet, Penalty
from cvxpriv.penalties.proximal import proximal_block
from cvxpriv.privacy import GaussianNoise, Noise, Release
from cvxpriv.runs.learning_run import history_of_loop
from cvxpriv.runs.shared_options import Watch
from cvxpriv.schedules.history import Context, Never
from cvxpriv.schedules.running import run
from cvxpriv.schedules.steps import Draw, Loop, Measure, Public, Sweep, Update

from .clipping import ClippedGradient
from .closed_form import barzilai_borwein
from .problem import Problem
from .run import LOOP, PrivateSettings, PrivateSparseRun

GRADIENT_DESCENT = "gradient-descent"

#: The least Barzilai-Borwein length as a share of the greatest: noise alone makes gradients turn.
SHORTEST = 0.1

#: The whole state: every entry was released, or public from the start.
PUBLIC = frozenset({"theta", "noisy", "last_theta", "last_noisy", "step", "center", "trial", "far", "total", "passes"})


def private_loop(average: ClippedGradient, settings: PrivateSettings, gaussian: GaussianNoise) -> Loop:
    """Return the algorithm with this noise on every gradient; every step except the noisy gradient is `Public`."""
    problem = average.problem
    plain = settings.method == GRADIENT_DESCENT
    taken = descent(problem) if plain else proximal_block(problem.penalty, problem.features)
    after: list[Update | Block] = [_step(settings), taken, _move(settings.max_iter)]
    return Loop(
        Sweep([_noisy_gradient(average, gaussian), *(Public(part, PUBLIC) for part in after)]),
        stop=Never(),
        limit=settings.max_iter,
        measure=_figures(problem.features),
        name=LOOP,
    )


def solve_noisy_descent(
    average: ClippedGradient,
    delta: float,
    settings: PrivateSettings,
    gaussian: GaussianNoise,
    noise: Noise,
    before: tuple[Release, ...] = (),
    callback: Watch | None = None,
) -> PrivateSparseRun:
    """Run the loop from 0 and account for its releases, and for those before it."""
    problem = average.problem
    zero = np.zeros(problem.size)
    vectors = ("theta", "noisy", "last_theta", "last_noisy", "center", "trial", "total")
    start = stack([{**dict.fromkeys(vectors, zero), "step": settings.step_limit, "far": np.nan, "passes": 0.0}])
    context = Context(ClosedForm(), callback=callback, starts=np.arange(1), noise=noise, ledger=[*before])
    final = single(run(private_loop(average, settings, gaussian), start, context), 0)
    counted = float(final["passes"]) - settings.max_iter // 2
    averaged = settings.output == "average" and counted > 0.0
    plain = settings.method == GRADIENT_DESCENT
    return PrivateSparseRun.of(
        problem,
        final["total"] / counted if averaged else final["theta"],
        settings,
        context.ledger,
        average.divisor,
        delta=delta,
        secure=noise.secure,
        history=history_of_loop(context.history, LOOP),
        interrupted=context.interrupted,
        center=None if plain else final["center"],
        last_step=None if plain else float(final["step"]),
    )


def _noisy_gradient(average: ClippedGradient, gaussian: GaussianNoise) -> Draw:
    def fn(state: Values, noise: Noise) -> Values:
        return {"noisy": gaussian.release(average.at(state["theta"][0]), noise)[None]}

    return Draw("noisy gradient", fn, frozenset({"theta"}), frozenset({"noisy"}), [Release(mu=gaussian.mu)])


def _step(settings: PrivateSettings) -> Update:
    """Return the length, and the centre theta - step xi of ISTDP (4), from noisy gradients alone."""
    limit = settings.step_limit

    def fn(state: Values) -> Values:
        theta, noisy = state["theta"], state["noisy"]
        length = limit
        if settings.step == "noisy-bb" and state["passes"][0] > 0.0:
            found, _ = barzilai_borwein((theta - state["last_theta"])[0], (noisy - state["last_noisy"])[0])
            length = float(np.clip(found, SHORTEST * limit, limit)) if np.isfinite(found) else limit
        return {"step": np.array([length]), "center": theta - length * noisy, "last_theta": theta, "last_noisy": noisy}

    reads = frozenset({"theta", "noisy", "last_theta", "last_noisy", "passes"})
    return Update("step", fn, reads, frozenset({"step", "center", "last_theta", "last_noisy"}))


def _move(iterations: int) -> Update:
    """Take the proximal step; the second half adds up for the average."""

    def fn(state: Values) -> Values:
        passes = state["passes"] + 1.0
        counts = float(passes[0] > iterations // 2)
        return {"theta": state["trial"], "total": state["total"] + counts * state["trial"], "passes": passes}

    return Update("move", fn, frozenset({"trial", "total", "passes"}), frozenset({"theta", "total", "passes"}))


def _figures(features: int) -> Measure:
    """Return figures of public entries alone: length of the step, norm of the noisy gradient, size of the support."""

    def figures(state: Values) -> Mapping[str, Array]:
        return {
            "step": state["step"],
            "noisy_gradient": np.linalg.norm(state["noisy"], axis=1),
            "support": np.count_nonzero(state["theta"][:, :features], axis=1).astype(float),
        }

    return figures


def smooth_weight(penalty: Penalty) -> float:
    """Return lam of an l2 penalty."""
    if isinstance(penalty, ElasticNet) and (penalty.ratio == 0.0 or penalty.lam == 0.0):
        return penalty.lam
    raise ModelError(
        f"penalty={penalty!r} has no gradient at 0, and this algorithm takes no proximal step: pass "
        "penalty='l2:<lam>', 'l2:0' for none, or method='istdp'"
    )


def descent(problem: Problem) -> Update:
    """Return the step theta - step (xi + lam theta), with the noisy gradient xi; an intercept has no lam."""
    weights = np.zeros(problem.size)
    weights[: problem.features] = smooth_weight(problem.penalty)

    def fn(state: Values) -> Values:
        trial = state["center"] - state["step"][:, None] * weights * state["last_theta"]
        return {"trial": trial, "far": np.full(len(trial), np.nan)}

    return Update("descent", fn, frozenset({"center", "step", "last_theta"}), frozenset({"trial", "far"}))
