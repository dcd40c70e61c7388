"""Whether a method goes with the constraints, and which guarantees it forgoes."""

from __future__ import annotations

import warnings

from cvxpriv.blocks.declaration import Known
from cvxpriv.constraints import couples_rows
from cvxpriv.errors import ModelError, NoGuaranteeWarning

from .algorithm import AUTO, ROW_CONSTRAINTS, Options
from .convergence import moduli
from .measured import Constraints
from .problem import Problem

__all__ = ["require_solvable", "warn_without_guarantee"]


def require_solvable(problem: Problem, constraints: Constraints, method: str) -> None:
    """Refuse a method that does not go with the constraints.

    Raises
    ------
    ModelError
        The constraints ask for another method.
    """
    if not constraints or method in (AUTO, "joint"):
        return
    if method not in ROW_CONSTRAINTS:
        names = ", ".join(name for name, _ in constraints)
        raise ModelError(f"method={method!r} does not see constraints ({names}): pass method='joint', or 'auto'")
    shape, known = (problem.p_y.size, problem.size_u), Known.of_table(problem.table)
    coupling = [name for name, constraint in constraints if couples_rows(constraint, shape, known, name)]
    if coupling:
        raise ModelError(
            f"method={method!r} changes one row at a time and stalls short of the optimum under constraints that "
            f"couple rows ({', '.join(coupling)}): pass method='joint', or 'auto'"
        )


def warn_without_guarantee(problem: Problem, method: str, options: Options) -> None:
    """Warn of "printed", and of "bregman" with c <= l_g."""
    if method == "printed":
        warnings.warn(
            "method='printed' takes the multiplier's sign of (19) as printed: it diverges; method='admm' has the "
            "right one",
            NoGuaranteeWarning,
            stacklevel=4,
        )
    constants = moduli(problem, options.c, options.rho)
    if method == "bregman" and not constants.printed_assumption:
        warnings.warn(
            f"method='bregman' with c={options.c:g}: its convergence proof needs c > l_g={constants.l_g:.3g} "
            "(2 beta l_f / floor^2), with which steps are tiny; method='joint' solves the same problem exactly",
            NoGuaranteeWarning,
            stacklevel=4,
        )
