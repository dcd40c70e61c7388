"""Private ISTDP: proximal steps along clipped gradients with Gaussian noise, accounted exactly.

One iteration releases one noisy gradient; whatever follows from it is public. ::

    Loop(Sweep([noisy gradient, step, prox, move]))

Only the first reads the data. The line search (5) is left out: it would read the clean objective, and under noise no
step passes it near a solution (ERRATA ISTDP 4).

Which iterate is returned is decided without the data: the last one, which is sparse, or the average of the second half,
which moves less and is not sparse. The iterate of least F would have to be selected privately, at a cost that a longer
run spends better.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np

from cvxpriv.block import Block
from cvxpriv.engines import ClosedForm
from cvxpriv.privacy import Noise, PrivacyWarning, account, noise_scale, noise_source
from cvxpriv.privacy.gaussian import require_budget
from cvxpriv.running import run
from cvxpriv.schedule import Context, Draw, Loop, Public, Sweep, Update
from cvxpriv.state import Array, Values, single, stack
from cvxpriv.stopping import Never

from . import printed
from .blocks import proximal_block
from .clipping import ADJACENCIES, ClippedGradient
from .closed_form import barzilai_borwein
from .private_options import public_step_limit, require_choices, require_clip, require_divisor, require_whole
from .private_run import LOOP, PrivateSettings, PrivateSparseRun, released_history
from .problem import Problem

__all__ = [
    "ALGORITHMS",
    "OUTPUTS",
    "PUBLIC",
    "STEPS",
    "PrivateSparseRun",
    "private_loop",
    "solve_private",
]

ALGORITHMS = ("istdp", "printed")
STEPS = ("lipschitz", "noisy-bb")
OUTPUTS = ("last", "average")

#: The least Barzilai-Borwein length as a share of the greatest: noise alone makes gradients turn.
SHORTEST = 0.1

PUBLIC = frozenset({"theta", "noisy", "last_theta", "last_noisy", "step", "center", "trial", "far", "total", "passes"})
"""The whole state: there is nothing in it that was not released, or public from the start."""


def solve_private(
    problem: Problem,
    epsilon: float,
    delta: float,
    *,
    iterations: int = 50,
    clip: float | None = 1.0,
    step: str = "lipschitz",
    adjacency: str = "replace-one",
    algorithm: str = "istdp",
    output: str = "last",
    row_bound: float | None = None,
    public_rows: int | None = None,
    noise_seed: int | None = None,
) -> PrivateSparseRun:
    """Find coefficients with (epsilon, delta)-differential privacy.

    Parameters
    ----------
    problem : Problem
        Made with `allow_constant=True` where it must not become known that a column is constant. The shape of X, the
        loss, the penalty and the options count as public: choose them without these data.
    epsilon, delta : float
        The budget of the whole run.
    iterations : int
        Noisy gradients that are released. More of them take more noise each: some 50 do for a thousand rows.
    clip : float
        The most, in Euclidean norm, that one row's gradient counts.
    step : {"lipschitz", "noisy-bb"}
        The greatest step, or the Barzilai-Borwein one from noisy gradients, between a tenth of the greatest and it.
        The greatest is that of `public_step_limit`.
    adjacency : {"replace-one", "add-remove"}
        What one person may change: a row is replaced, n being public; or a row is there or not, and the sum of
        gradients is divided by a public number.
    algorithm : {"istdp", "printed"}
        "printed" is Algorithm 1 as the paper has it: it is not private, and warns.
    output : {"last", "average"}
        The last iterate, or the average of the second half.
    row_bound : float, optional
        A public bound of the norms of the rows (with a 1 for an intercept); the step rests on it, privacy does not.
        None is clip / slope of the loss: up to there no row is clipped.
    public_rows : int, optional
        For "add-remove": what the sum is divided by. None takes the number of rows, and so takes it for public.
    noise_seed : int, optional
        For tests: makes the noise repeatable, and warns.

    Raises
    ------
    PrivacyError
        The budget, `clip`, `iterations` or a public bound is none, or the loss needs a `row_bound`.
    ModelError
        There is no such algorithm, step, adjacency or output.

    Notes
    -----
    A keyboard interrupt returns the point so far, and the accounting of what was released up to there.

    Examples
    --------
    >>> from cvxpriv.models import ISTDP
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-0.5, 0.5, size=(2000, 4))
    >>> y = np.where(x[:, 2] + 0.1 * rng.normal(size=2000) > 0.0, 1, -1)
    >>> run = ISTDP(x, y, penalty="l1:0.02").solve_private(epsilon=1.0, delta=1e-6, iterations=30)
    >>> run.accounting.releases, round(run.accounting.epsilon, 6), bool(run.coefficients[2] > 0.5)
    (30, 1.0, True)
    """
    require_budget(epsilon, delta)
    require_choices(algorithm=(algorithm, ALGORITHMS), step=(step, STEPS), output=(output, OUTPUTS))
    require_choices(adjacency=(adjacency, tuple(ADJACENCIES)))
    require_whole("iterations", iterations, 1)
    bound = require_clip(clip)
    average = ClippedGradient(problem, bound, require_divisor(problem, adjacency, public_rows))
    if algorithm == "printed":
        warnings.warn(printed.LEAK, PrivacyWarning, stacklevel=3)
        return printed.solve_printed(average, epsilon, delta, iterations, adjacency, noise_source(noise_seed))
    limit = public_step_limit(problem, bound, row_bound)
    scale = noise_scale(average.sensitivity(adjacency), epsilon, delta, iterations)
    settings = PrivateSettings(algorithm, iterations, bound, step, adjacency, output, scale, limit)
    return _solve(average, delta, settings, noise_source(noise_seed))


def private_loop(average: ClippedGradient, settings: PrivateSettings) -> Loop:
    """Return the algorithm; every step but the noisy gradient is `Public`."""
    problem = average.problem
    after: list[Update | Block] = [
        _step(settings),
        proximal_block(problem.penalty, problem.features),
        _move(settings.iterations),
    ]
    return Loop(
        Sweep([_noisy_gradient(average, settings), *(Public(part, PUBLIC) for part in after)]),
        stop=Never(),
        limit=settings.iterations,
        measure=_figures(problem.features),
        name=LOOP,
    )


def _solve(average: ClippedGradient, delta: float, settings: PrivateSettings, noise: Noise) -> PrivateSparseRun:
    problem = average.problem
    zero = np.zeros(problem.size)
    vectors = ("theta", "noisy", "last_theta", "last_noisy", "center", "trial", "total")
    start = stack([{**dict.fromkeys(vectors, zero), "step": settings.step_limit, "far": np.nan, "passes": 0.0}])
    context = Context(ClosedForm(), starts=np.arange(1), noise=noise)
    final = single(run(private_loop(average, settings), start, context), 0)
    counted = float(final["passes"]) - settings.iterations // 2
    averaged = settings.output == "average" and counted > 0.0
    return PrivateSparseRun(
        theta=final["total"] / counted if averaged else final["theta"],
        loss=problem.loss,
        penalty=problem.penalty,
        classes=problem.classes,
        names=problem.names,
        accounting=account(
            [release.mu for release in context.ledger],
            delta,
            neighbours=_neighbours(settings.adjacency, average.divisor),
            secure=noise.secure,
        ),
        settings=settings,
        history=released_history(context.history),
        interrupted=context.interrupted,
    )


def _noisy_gradient(average: ClippedGradient, settings: PrivateSettings) -> Draw:
    def fn(state: Values, noise: Noise) -> Values:
        clean = average.at(state["theta"][0])
        return {"noisy": (clean + noise.normal(settings.noise_scale, clean.shape))[None]}

    mu = average.sensitivity(settings.adjacency) / settings.noise_scale
    return Draw("noisy gradient", fn, frozenset({"theta"}), frozenset({"noisy"}), mu)


def _step(settings: PrivateSettings) -> Update:
    """The length, and the centre theta - step xi of ISTDP (4), from noisy gradients alone."""
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
    """Of public entries alone: length of the step, norm of the noisy gradient, size of the support."""

    def figures(state: Values) -> Mapping[str, Array]:
        return {
            "step": state["step"],
            "noisy_gradient": np.linalg.norm(state["noisy"], axis=1),
            "support": np.count_nonzero(state["theta"][:, :features], axis=1).astype(float),
        }

    return figures


def _neighbours(adjacency: str, divisor: int) -> str:
    if adjacency == "replace-one":
        return f"one row replaced, n = {divisor} public"
    return f"one row added or removed, the divisor {divisor} public"
