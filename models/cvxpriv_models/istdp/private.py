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
from cvxpriv.reports.progress import with_bar
from cvxpriv.runs.shared_options import Watch

from . import printed
from .clipping import ClippedGradient
from .gradient_descent import smooth_weight
from .noisy_descent import GRADIENT_DESCENT, solve_noisy_descent
from .objective_perturbation import solve_objective_perturbation
from .output_perturbation import solve_output_perturbation
from .private_options import public_step_limit, require_bounds, require_divisor
from .private_run import PrivateSettings, PrivateSparseRun
from .problem import Problem
from .public_rules import noise_level_penalty, public_iterations

__all__ = ["PRIVATE_METHODS", "solve_private"]

OUTPUT, OBJECTIVE, PRINTED = "output-perturbation", "objective-perturbation", "printed"
PRIVATE_METHODS = ("istdp", GRADIENT_DESCENT, OUTPUT, OBJECTIVE, PRINTED)


def solve_private(
    problem: Problem,
    *,
    epsilon: float | None,
    delta: float | None,
    adjacency: str,
    noise_seed: int | None,
    method: str,
    max_iter: int | None,
    progress: bool,
    callback: Watch | None,
    clip: float | None,
    step: str,
    output: str,
    row_bound: float | None,
    public_rows: int | None,
) -> PrivateSparseRun:
    """Return a private run; the options and errors are those of `ISTDP.solve_private`."""
    if epsilon is None or (delta is None and method != OBJECTIVE):
        raise PrivacyError(
            f"epsilon={epsilon!r} and delta={delta!r}: method={method!r} needs both; pass for example epsilon=1.0 and "
            "delta=1e-6, which should be well below one over the number of rows"
        )
    delta = 0.5 if delta is None else delta  # objective perturbation is pure
    require_budget(epsilon, delta)
    bound, row_bound = require_bounds(problem, clip, row_bound)
    divisor = require_divisor(problem, adjacency, public_rows)
    if method in (OUTPUT, OBJECTIVE):
        _require_one_release(method, max_iter)
        if method == OBJECTIVE:
            return solve_objective_perturbation(
                problem, epsilon, row_bound, adjacency, divisor, noise_source(noise_seed)
            )
        return solve_output_perturbation(
            problem, epsilon, delta, row_bound, adjacency, divisor, noise_source(noise_seed)
        )
    average = ClippedGradient(problem, bound, divisor)
    sensitivity, mu = average.sensitivity(adjacency), gaussian_mu(epsilon, delta)
    chosen = max_iter or public_iterations(bound, sensitivity, mu, problem.size)
    if method == PRINTED:
        warnings.warn(printed.LEAK, PrivacyWarning, stacklevel=4)
        return printed.solve_printed(average, epsilon, delta, chosen, adjacency, noise_source(noise_seed))
    limit = public_step_limit(problem, row_bound)
    if method == GRADIENT_DESCENT:
        limit = 1.0 / (1.0 / limit + smooth_weight(problem.penalty))
    elif problem.automatic:
        penalty = noise_level_penalty(sensitivity, mu, chosen * limit, problem.features)
        average = replace(average, problem=problem.with_penalty(penalty))
    gaussian = GaussianNoise(sensitivity, mu / float(np.sqrt(chosen)), problem.size)
    settings = PrivateSettings(method, chosen, bound, step, adjacency, output, gaussian.scale, limit)
    watch = with_bar(callback, chosen, "passes", progress)
    return solve_noisy_descent(average, delta, settings, gaussian, noise_source(noise_seed), watch)


def _require_one_release(method: str, max_iter: int | None) -> None:
    if max_iter not in (None, 1):
        raise PrivacyError(f"max_iter={max_iter!r}: method={method!r} releases once, leave it out")
