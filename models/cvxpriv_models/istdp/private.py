"""The entry to private solves: options, public rules, and the algorithm that they choose.

`istdp` takes proximal steps along noisy gradients (`noisy_descent`), `gradient-descent` the same without the proximal
step. `output-perturbation` and `objective-perturbation` are the two other classes that the paper names. `printed` is
its Algorithm 1 as it stands, which is not private.

The returned iterate is chosen without the data: the last one, or the average of the second half, which moves less. The
iterate of least F would have to be selected privately: every comparison of F takes from the budget of the gradients.
"""

from collections.abc import Sequence

import numpy as np

from cvxpriv.errors import ModelError, PrivacyError, warn
from cvxpriv.learning.labels import require_public_classes
from cvxpriv.learning.schema import relation_of
from cvxpriv.numerics.arrays import Array
from cvxpriv.privacy import Budget, Plan, PrivacyWarning, Release, gaussian_mu, noise_source
from cvxpriv.privacy.gaussian import require_budget
from cvxpriv.reports.files import PathLike
from cvxpriv.runs.shared_options import Watch

from . import printed
from .centring import require_centring
from .clipping import ADJACENCIES, ClippedGradient
from .noisy_descent import GRADIENT_DESCENT
from .objective_perturbation import require_smooth, solve_objective_perturbation
from .output_perturbation import require_bounded_minimiser, solve_output_perturbation
from .private_descent import Descent, require_support
from .private_options import (
    Divisor,
    column_bound,
    counted_rows,
    drowned,
    public_divisor,
    public_iterations,
    require_bounds,
)
from .problem import Problem
from .run import PrivateSparseRun

OUTPUT, OBJECTIVE, PRINTED = "output-perturbation", "objective-perturbation", "printed"
PRIVATE_METHODS = ("istdp", GRADIENT_DESCENT, OUTPUT, OBJECTIVE, PRINTED)


def planned(epsilon: float | None, delta: float | None, method: str | None, adjacency: str) -> Plan:
    """Return what a fit is going to spend, from its options alone."""
    chosen = method or PRIVATE_METHODS[0]
    if epsilon is None or (delta is None and chosen != OBJECTIVE):
        raise PrivacyError(
            f"epsilon={epsilon!r} and delta={delta!r}: method={chosen!r} needs both; pass for example epsilon=1.0 and "
            "delta=1e-6, which should be well below one over the number of rows"
        )
    require_budget(epsilon, delta, pure=True)  # objective perturbation is pure
    flaw = printed.LEAK if chosen == PRINTED else ""
    if chosen == OBJECTIVE or delta is None:
        entry = Release(epsilon=epsilon)
    else:
        entry = Release(mu=gaussian_mu(epsilon, delta), flaw=flaw)
    return Plan((entry,), f"ISTDP, {chosen}", adjacency)


def solve_private(
    problem: Problem,
    *,
    epsilon: float | None,
    delta: float | None,
    adjacency: str | None,
    noise_seed: int | None,
    max_iter: int | None,
    budget: Budget | PathLike | None,
    clip: float | None,
    step: str,
    output: str,
    row_bound: float | None,
    centre: str,
    support: int | None,
    method: str | None = None,
    public_rows: int | None = None,
    progress: bool = False,
    callback: Watch | None = None,
    labels: Sequence[Array] = (),
    weights: Array | None = None,
) -> tuple[PrivateSparseRun, ...]:
    """Return a private run, or one for each vector of `labels` within the same budget.

    The other options and the errors are those of `ISTDP.solve_private`. `labels`, and `weights` of the rows, (n,), are
    for the methods that step along noisy gradients.
    """
    if problem.schema is None:
        require_public_classes(problem.classes)
    method, relation = method or PRIVATE_METHODS[0], relation_of(problem.schema, adjacency)
    plan = planned(epsilon, delta, method, relation)
    columns = column_bound(problem, row_bound)
    bound, row_bound = require_bounds(problem, clip, row_bound)
    columns = row_bound if columns is None else columns
    _require_descent(problem, method, centre, support)
    known = public_divisor(problem, relation, public_rows)
    if method in (OUTPUT, OBJECTIVE):
        if max_iter not in (None, 1):
            raise PrivacyError(f"max_iter={max_iter!r}: method={method!r} releases once, leave it out")
        if method == OUTPUT:
            require_bounded_minimiser(problem, row_bound)
        else:
            require_smooth(problem)
    plan.spend(budget)
    noise, (whole,) = noise_source(noise_seed), plan.releases
    total = whole.epsilon if whole.mu is None else whole.mu
    assert total is not None
    if known is None:
        divisor = counted_rows(problem.rows, total, noise, pure=whole.mu is None)
    else:
        divisor = Divisor(known, total)
    if method == OBJECTIVE:
        return (solve_objective_perturbation(problem, divisor, row_bound, relation, noise),)
    assert delta is not None
    if method == OUTPUT:
        return (solve_output_perturbation(problem, divisor, delta, row_bound, relation, noise),)
    if method == PRINTED:
        assert epsilon is not None
        warn(printed.LEAK, PrivacyWarning)
        average = ClippedGradient(problem, bound, divisor.number)
        sensitivity = average.sensitivity(relation)
        chosen = max_iter or public_iterations(bound, sensitivity, divisor.left, problem.size)
        return (printed.solve_printed(average, epsilon, delta, chosen, relation, noise),)
    several = tuple(labels) or (problem.y,)
    each = divisor.left / float(np.sqrt(len(several)))
    if told := drowned(divisor.number, problem.size, each, ADJACENCIES[relation]):
        warn(told, PrivacyWarning)
    descent = Descent(
        *(method, relation, step, output, centre, bound, row_bound, columns, max_iter, support, weights),
        *(delta, noise, callback, progress),
    )
    return descent.solve(problem, several, divisor)


def _require_descent(problem: Problem, method: str, centre: str, support: int | None) -> None:
    require_support(support, problem.features)
    if method in (OUTPUT, OBJECTIVE, PRINTED) and (centre == "private" or support is not None):
        raise ModelError(
            f"method={method!r} releases no centre and chooses no columns: leave centre and support out, or pass "
            "method='istdp'"
        )
    if centre == "private":
        require_centring(problem)
