"""Answers of any solver that cvxpy has, read through cvxpy's own interface to it.

cvxpy gives a solver's multipliers by constraint, in the order in which it gave the solver the rows. Where all rows are
equalities, inequalities and second-order cones, that order is one of the uniform form. Other cones are ordered and
scaled by each solver in its own way, and are read only for solvers that are known one by one.
"""

from typing import Any

import numpy as np

from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array

OTHER_CONES = ("exp", "psd", "p3d", "pnd")


class Unreadable(ModelError):
    """cvxpy hands data to a solver in a form that is not known here."""


def require_plain(solver: str, data: dict[str, Any]) -> None:
    """Refuse data that are not equalities, inequalities and second-order cones in one of cvxpy's usual forms.

    Raises Unreadable.
    """
    dims = data.get("dims")
    plain = dims is not None and "param_prob" in data and "A" in data and ("c" in data or "q" in data)
    others = [] if dims is None else [name for name in OTHER_CONES if np.any(getattr(dims, name, 0))]
    if not plain or others:
        what = f"its {', '.join(others)} cones" if others else "the form that cvxpy gives it"
        raise Unreadable(f"solver={solver!r}: its cone data cannot be read, for {what}")


def generic_answer(interface: Any, raw: Any, inverse: Any) -> tuple[Array | None, Array | None]:
    """Return point and multipliers of the rows as cvxpy reads them; None where a solver gives none.

    `raw`, `inverse`: The raw answer, and the record that cvxpy kept of the problem.
    """
    solution = interface.invert(raw, inverse)
    if not solution.primal_vars:
        return None, None
    x = np.asarray(next(iter(solution.primal_vars.values())), dtype=float).ravel()
    multipliers = solution.dual_vars or {}
    rows = [*inverse.get(interface.EQ_CONSTR, ()), *inverse.get(interface.NEQ_CONSTR, ())]
    if any(multipliers.get(constraint.id) is None for constraint in rows):
        return x, None
    parts = [np.asarray(multipliers[constraint.id], dtype=float).ravel(order="F") for constraint in rows]
    return x, np.concatenate([np.zeros(0), *parts])


def bound_multipliers(pull: Array, columns: np.ndarray, signs: Array) -> Array:
    """Return the multipliers of bounds on variables that a solver takes apart from its rows.

    A reduced cost belongs to the bound that it pushes against: the lower one if positive, the upper if negative.

    `pull`, (n,): The gradient of the Lagrangian of all other rows.
    `columns`, `signs`, (k,): The variable of each bound, and -1 for a lower, 1 for an upper one.
    """
    return np.asarray(np.maximum(-signs * pull[columns], 0.0))
