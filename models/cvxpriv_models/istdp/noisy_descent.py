"""The loop of noisy gradients: ISTDP's own, and gradient descent's. One iteration releases one noisy gradient.

    Loop(Sweep([noisy gradient, step, prox or descent, move]))

Only the first step reads the data. The line search (5) is left out: it would read the clean objective, and under noise
no step passes it near a solution (ERRATA ISTDP 4).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.engines import ClosedForm
from cvxpriv.numerics.arrays import Array, Values, single, stack
from cvxpriv.penalties.proximal import proximal_block
from cvxpriv.privacy import GaussianNoise, Noise, Release, account_ledger
from cvxpriv.runs.learning_run import history_of_loop
from cvxpriv.runs.shared_options import Watch
from cvxpriv.schedules.running import run
from cvxpriv.schedules.steps import Context, Draw, Loop, Public, Sweep, Update
from cvxpriv.schedules.stopping import Never

from . import printed
from .clipping import ClippedGradient, neighbours
from .closed_form import barzilai_borwein
from .gradient_descent import descent
from .private_run import LOOP, PrivateSettings, PrivateSparseRun

GRADIENT_DESCENT = "gradient-descent"

#: The least Barzilai-Borwein length as a share of the greatest: noise alone makes gradients turn.
SHORTEST = 0.1

PUBLIC = frozenset({"theta", "noisy", "last_theta", "last_noisy", "step", "center", "trial", "far", "total", "passes"})
"""The whole state: every entry was released, or public from the start."""


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
    return PrivateSparseRun(
        theta=final["total"] / counted if averaged else final["theta"],
        loss=problem.loss,
        penalty=problem.penalty,
        classes=problem.classes,
        names=problem.names,
        accounting=account_ledger(
            context.ledger, delta, neighbours=neighbours(settings.adjacency, average.divisor), secure=noise.secure
        ),
        ledger=tuple(context.ledger),
        settings=settings,
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


def _figures(features: int) -> printed.Figures:
    """Return figures of public entries alone: length of the step, norm of the noisy gradient, size of the support."""

    def figures(state: Values) -> Mapping[str, Array]:
        return {
            "step": state["step"],
            "noisy_gradient": np.linalg.norm(state["noisy"], axis=1),
            "support": np.count_nonzero(state["theta"][:, :features], axis=1).astype(float),
        }

    return figures
