"""Checks of the arguments of a solve: the algorithm, the constraints, the callback, and guarantees that are missing."""

from __future__ import annotations

import warnings

from cvxpriv.blocks.declaration import Known
from cvxpriv.constraints import couples_rows
from cvxpriv.errors import ModelError, NoGuaranteeWarning
from cvxpriv.numerics.arguments import require_counts, require_seed

from .algorithm import AUTO, ROW_CONSTRAINTS, Options, require_algorithm
from .convergence import moduli
from .measured import Constraints
from .problem import Problem
from .solving import Callback

__all__ = ["require_solvable", "warn_without_guarantee"]


def require_solvable(
    problem: Problem,
    constraints: Constraints,
    algorithm: str,
    starts: int | None,
    seed: int,
    callback: Callback | None,
    n_jobs: int,
) -> None:
    """Refuse what `InferenceAsService.solve` cannot do.

    Raises
    ------
    ModelError
        An option is out of range, or the constraints ask for another algorithm.
    """
    require_algorithm(algorithm)
    require_counts(starts=starts)
    require_seed(seed)
    if callback is not None and (not callable(callback) or n_jobs != 1):
        raise ModelError(f"callback={callback!r} with n_jobs={n_jobs!r}: pass a function, and n_jobs=1 to call it here")
    if not constraints or algorithm in (AUTO, "joint"):
        return
    if algorithm not in ROW_CONSTRAINTS:
        names = ", ".join(name for name, _ in constraints)
        raise ModelError(
            f"algorithm={algorithm!r} does not see constraints ({names}): pass algorithm='joint', or 'auto'"
        )
    shape, known = (problem.p_y.size, problem.size_u), Known.of_table(problem.table)
    coupling = [name for name, constraint in constraints if couples_rows(constraint, shape, known, name)]
    if coupling:
        raise ModelError(
            f"algorithm={algorithm!r} changes one row at a time and stalls short of the optimum under constraints that "
            f"couple rows ({', '.join(coupling)}): pass algorithm='joint', or 'auto'"
        )


def warn_without_guarantee(problem: Problem, algorithm: str, options: Options) -> None:
    """Warn of "printed", and of "bregman" with c <= l_g."""
    if algorithm == "printed":
        warnings.warn(
            "algorithm='printed' takes the multiplier's sign of (19) as printed: it diverges; algorithm='admm' has the "
            "right one",
            NoGuaranteeWarning,
            stacklevel=3,
        )
    constants = moduli(problem, options.c, options.rho)
    if algorithm == "bregman" and not constants.printed_assumption:
        warnings.warn(
            f"algorithm='bregman' with c={options.c:g}: its convergence proof needs c > l_g={constants.l_g:.3g} "
            "(2 beta l_f / floor^2), with which steps are tiny; algorithm='joint' solves the same problem exactly",
            NoGuaranteeWarning,
            stacklevel=3,
        )
