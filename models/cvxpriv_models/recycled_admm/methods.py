"""The methods by name, which of them is usual, and the penalties that each takes."""

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.errors import ModelError, NoGuaranteeWarning, warn
from cvxpriv.numerics.arguments import real_numbers
from cvxpriv.numerics.arrays import Array

from .eta import eta_table
from .updates import PRINTED

#: `admm` is RADMM (8)-(9); `m-admm` the same with each node's own growing penalty, as section II-D tells of [22];
#: `r-admm` and `mr-admm` are Algorithms 1 and 2.
METHODS = ("admm", "r-admm", "mr-admm", "m-admm")
#: `dvp` is `admm` with noise on the dual variable.
PRIVATE_METHODS = (*METHODS, "dvp")
#: With an even step.
RECYCLING = ("r-admm", "mr-admm")
#: With one penalty for all nodes and passes.
COMMON = ("admm", "r-admm", "dvp")


def usual_method(eta: ArrayLike | None, growth: ArrayLike) -> str:
    """Return the method where none is named: `r-admm` for one eta, `mr-admm` for several.

    >>> usual_method(None, 1.0), usual_method([0.5, 1.0], 1.0), usual_method(0.5, 1.04)
    ('r-admm', 'mr-admm', 'mr-admm')
    """
    factor = real_numbers(growth, "growth", ModelError)
    one = (eta is None or real_numbers(eta, "eta", ModelError).ndim == 0) and factor.ndim == 0 and bool(factor == 1.0)
    return "r-admm" if one else "mr-admm"


def penalty_table(
    method: str,
    variant: str,
    eta: ArrayLike,
    growth: ArrayLike,
    eta_cap: ArrayLike | None,
    max_iter: int | None,
    nodes: int,
    usual: int,
) -> Array:
    """Return eta_i(2k-1) of every pass and node, (passes, N), checked against the method. `usual`: Number of passes,
    where neither `max_iter` nor a table of all passes gives it.
    """
    given = real_numbers(eta, "eta", ModelError)
    passes = max_iter or (len(given) if given.ndim == 2 else usual)
    table = eta_table(eta, growth, eta_cap, passes, nodes)
    if method in COMMON and np.ptp(table) > 0.0:
        other = "mr-admm" if method in RECYCLING else "m-admm"
        raise ModelError(
            f"method={method!r} has one eta for all nodes and passes: pass method={other!r} for several, or growth=1"
        )
    if variant == PRINTED and np.ptp(table, axis=1).max() > 0.0:
        warn(
            "variant='printed' with penalties that differ between nodes converges to the optimum of sum_i O_i/eta_i, "
            "not of sum_i O_i: variant='edge' converges to the latter",
            NoGuaranteeWarning,
        )
    return table
