"""The eta_i(2k-1) of every node and pass, the weights of ADMM on the edges, and gamma, checked."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.errors import ModelError, shown
from cvxpriv.numerics.arguments import finite_double, real_numbers
from cvxpriv.numerics.arrays import Array

#: The default cap, as a multiple of each node's eta: a penalty that grows without end freezes the iterates where they
#: are (1e-10 from the optimum at growth 1.04, .05 at 1.3).
CAP = 10.0


def eta_table(eta: ArrayLike, growth: ArrayLike, cap: ArrayLike | None, passes: int, nodes: int) -> Array:
    """Return eta_i(2k-1) = min(eta_i growth_i^k, cap_i) for k = 1.., (passes, N), RADMM Algorithm 2. `eta`, (N,) and
    (passes, N): > 0. A table of all passes is taken as it is. `growth`, (N,): >= 1. `cap`, (N,): None is `CAP` times
    eta_i; inf is none.
    """
    first, factor = real_numbers(eta, "eta", ModelError), real_numbers(growth, "growth", ModelError)
    cap_given = np.full((), np.inf) if cap is None else real_numbers(cap, "eta_cap", ModelError)
    if not (np.isfinite(first) & (first > 0.0)).all():
        raise ModelError(f"eta={shown(eta)} must be finite and > 0")
    if first.ndim == 2:
        return _table(first, factor, passes, nodes)
    for name, given in (("eta", first), ("growth", factor), ("eta_cap", cap_given)):
        if given.shape not in ((), (nodes,)):
            raise ModelError(f"{name} has shape {given.shape}: pass one number, or one for each of {nodes} nodes")
    if not (np.isfinite(factor) & (factor >= 1.0)).all():
        raise ModelError(f"growth={shown(growth)} must be >= 1: penalties may not decrease (RADMM Algorithm 2)")
    each = np.broadcast_to(first, nodes)
    top = CAP * each if cap is None else np.broadcast_to(cap_given, nodes)
    if not (top >= each).all():
        raise ModelError(
            f"eta_cap={shown(cap)} is below eta={float(each.max()):g}: choose a larger cap, or a smaller eta"
        )
    with np.errstate(over="ignore"):  # to inf, which the cap takes down
        grown = each * np.broadcast_to(factor, nodes) ** np.arange(1, passes + 1)[:, None]
    table = np.minimum(grown, top)
    if not np.isfinite(table).all():
        raise ModelError(f"growth={shown(growth)} overflows within {passes} passes: pass an eta_cap")
    return np.asarray(table)


def checked_gamma(gamma: Any) -> float:
    """Return the gamma of the even step."""
    number = finite_double(gamma)
    if not number >= 0.0:
        raise ModelError(f"gamma={shown(gamma)} is no finite number >= 0")
    return number


def _table(table: Array, growth: Array, passes: int, nodes: int) -> Array:
    if table.shape != (passes, nodes):
        raise ModelError(f"eta has shape {table.shape}, expected ({passes}, {nodes}), one row a pass")
    if (growth != 1.0).any():
        raise ModelError("growth goes with an eta of one pass: a table of all passes has its growth in it")
    if (np.diff(table, axis=0) < 0.0).any():
        worst = int(np.argmin(np.diff(table, axis=0).min(axis=1)))
        raise ModelError(f"eta falls from pass {worst + 1} to {worst + 2}: penalties may not decrease (Algorithm 2)")
    return table
