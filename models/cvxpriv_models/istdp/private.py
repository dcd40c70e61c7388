"""The door of private solves: options, public rules, and the algorithm that they choose.

`istdp` takes proximal steps along noisy gradients (`noisy_descent`), `gradient-descent` the same without the proximal
step. `output-perturbation` and `objective-perturbation` are the two other classes that the paper names. `printed` is
its Algorithm 1 as it stands, which is not private.

Which iterate is returned is decided without the data: the last one, which is sparse, or the average of the second half,
which moves less and is not sparse. The iterate of least F would have to be selected privately: every comparison of F
takes from the budget that the gradients have.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from cvxpriv.errors import PrivacyError
from cvxpriv.privacy import GaussianNoise, PrivacyWarning, gaussian_mu, noise_source
from cvxpriv.privacy.gaussian import require_budget

from . import printed
from .clipping import ADJACENCIES, ClippedGradient
from .gradient_descent import smooth_weight
from .noisy_descent import GRADIENT_DESCENT, OUTPUTS, PUBLIC, STEPS, private_loop, solve_noisy_descent
from .objective_perturbation import solve_objective_perturbation
from .output_perturbation import solve_output_perturbation
from .private_options import public_step_limit, require_bounds, require_choices, require_divisor, require_whole
from .private_run import PrivateSettings, PrivateSparseRun
from .problem import Problem
from .public_rules import noise_level_penalty, public_iterations

__all__ = ["ALGORITHMS", "OUTPUTS", "PUBLIC", "STEPS", "PrivateSparseRun", "private_loop", "solve_private"]

OUTPUT, OBJECTIVE, PRINTED = "output-perturbation", "objective-perturbation", "printed"
ALGORITHMS = ("istdp", GRADIENT_DESCENT, OUTPUT, OBJECTIVE, PRINTED)


def solve_private(
    problem: Problem,
    epsilon: float,
    delta: float,
    *,
    iterations: int | str = "auto",
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
        loss, the penalty and the options count as public: choose them without these data. A penalty that was left out
        is the MCP of `public_rules.noise_level_penalty`.
    epsilon, delta : float
        The budget of the whole run.
    iterations : int or "auto"
        Noisy gradients that are released; more of them take more noise each. "auto" is n mu / sqrt(e d), from public
        numbers, and costs no privacy (`public_rules`).
    clip : float
        The most, in Euclidean norm, that one row's gradient counts. None takes it from `row_bound`.
    step : {"lipschitz", "noisy-bb"}
        The greatest step, 1/L, or the Barzilai-Borwein one from noisy gradients, between a tenth of the greatest and
        it. L is public: `private_options.public_step_limit`.
    adjacency : {"replace-one", "add-remove"}
        What one person may change: a row is replaced, n being public; or a row is there or not, and the sum of
        gradients is divided by a public number.
    algorithm : {"istdp", "gradient-descent", "output-perturbation", "objective-perturbation", "printed"}
        The baselines need an l2 penalty (output perturbation also takes an elastic net) and no kink. Objective
        perturbation spends no delta. "printed" is Algorithm 1 as the paper has it: it is not private, and warns.
    output : {"last", "average"}
        The last iterate, or the average of the second half.
    row_bound : float, optional
        A public bound of the norms of the rows (with a 1 for an intercept). The step of an iterative algorithm rests on
        it, its privacy does not. Output and objective perturbation shorten longer rows to it. None is clip / slope of
        the loss: up to there no row is clipped.
    public_rows : int, optional
        For "add-remove", and needed there: what the sum is divided by.
    noise_seed : int, optional
        For tests: makes the noise repeatable, and warns.

    Raises
    ------
    PrivacyError
        The budget, `clip`, `iterations` or a public bound is none, or the loss needs a `row_bound`.
    ModelError
        There is no such algorithm, step, adjacency or output, or it does not cover the loss or the penalty.

    Notes
    -----
    A keyboard interrupt returns the point so far, and the accounting of what was released up to there.

    Examples
    --------
    >>> import numpy as np
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
    if iterations != "auto":
        require_whole("iterations", iterations, 1)
    bound, row_bound = require_bounds(problem, clip, row_bound)
    divisor = require_divisor(problem, adjacency, public_rows)
    if algorithm in (OUTPUT, OBJECTIVE):
        _require_one_release(algorithm, iterations)
        if algorithm == OBJECTIVE:
            return solve_objective_perturbation(
                problem, epsilon, row_bound, adjacency, divisor, noise_source(noise_seed)
            )
        return solve_output_perturbation(
            problem, epsilon, delta, row_bound, adjacency, divisor, noise_source(noise_seed)
        )
    average = ClippedGradient(problem, bound, divisor)
    sensitivity, mu = average.sensitivity(adjacency), gaussian_mu(epsilon, delta)
    chosen = public_iterations(bound, sensitivity, mu, problem.size) if iterations == "auto" else int(iterations)
    if algorithm == PRINTED:
        warnings.warn(printed.LEAK, PrivacyWarning, stacklevel=3)
        return printed.solve_printed(average, epsilon, delta, chosen, adjacency, noise_source(noise_seed))
    limit = public_step_limit(problem, row_bound)
    if algorithm == GRADIENT_DESCENT:
        limit = 1.0 / (1.0 / limit + smooth_weight(problem.penalty))
    elif problem.automatic:
        penalty = noise_level_penalty(sensitivity, mu, chosen * limit, problem.features)
        average = replace(average, problem=problem.with_penalty(penalty))
    gaussian = GaussianNoise(sensitivity, mu / float(np.sqrt(chosen)), problem.size)
    settings = PrivateSettings(algorithm, chosen, bound, step, adjacency, output, gaussian.scale, limit)
    return solve_noisy_descent(average, delta, settings, gaussian, noise_source(noise_seed))


def _require_one_release(algorithm: str, iterations: int | str) -> None:
    if iterations not in ("auto", 1):
        raise PrivacyError(f"iterations={iterations!r}: algorithm={algorithm!r} releases once, leave them out")
