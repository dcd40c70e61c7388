"""The model's own options, and its methods by name: which of them is usual, and the penalties that each takes.

The options that all models share stand in `cvxpriv.runs.shared_options`. The penalties are eta_i(2k-1), of every node
and pass.
"""

from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.errors import ModelError, NoGuaranteeWarning, shown, warn
from cvxpriv.numerics.arguments import finite_double, real_numbers
from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties import Loss, Penalty
from cvxpriv.runs.options import Option

from .graph import PRINTED, VARIANTS

LossName = Annotated[
    str | Loss, Option("Loss of a prediction, smooth and convex.", metavar="[logistic|squared|huber|smoothed-hinge]")
]
PenaltyName = Annotated[
    str | Penalty,
    Option(
        "R, convex; `l2` is (1/2)||f||^2. Others (`l1`, `nonneg`, `elastic-net:<weight>:<ratio>` ...) take proximal "
        "steps, node by node.",
        metavar="NAME",
    ),
]
Reg = Annotated[
    float | None,
    Option(
        "The paper's rho, the weight of R.",
        low=0.0,
        usual="2.5e-5 C N, which is about .22 in the paper's setting; in a private solve 1e-3 C N",
    ),
]
Weight = Annotated[
    float | None,
    Option(
        "C, the weight of a node's mean loss, up to min B_i: no row weighs more than 1.",
        above=0.0,
        usual="min B_i, the rows of the smallest node",
        flag="--weight",
    ),
]


def _eta(usual: str) -> Option:
    return Option(
        "Penalty of ADMM on an edge: one number, one a node, or a table of all passes, (max_iter, N).",
        kind="float or array",
        above=0.0,
        usual=usual,
        read=float,
    )


Eta = Annotated[
    ArrayLike | None,
    _eta("the one whose passes shrink errors fastest, by the curvatures of the nodes' objectives and the graph"),
]
PublicEta = Annotated[ArrayLike | None, _eta("from public numbers: C, the numbers of rows, the graph")]
Growth = Annotated[
    ArrayLike,
    Option(
        "eta of a node in pass k is min(eta growth^k, cap): one number >= 1, or one a node.",
        kind="float or array",
        read=float,
    ),
]
EtaCap = Annotated[
    ArrayLike | None,
    Option(
        "Cap of a growing eta, one number or one a node; inf is none. A penalty that grows without end freezes the "
        "iterates.",
        kind="float or array",
        usual="ten times eta",
        read=float,
    ),
]
Gamma = Annotated[float, Option("Gamma of the even steps: a larger one shortens them.", low=0.0)]
Accelerate = Annotated[
    str,
    Option(
        "Combine the last passes (Anderson), with the same optimum and fewer passes: a few numbers a pass are summed "
        "over the network. `auto` does so with exact updates and penalties that stay as they are, and ends a run that "
        "is not at the optimum after 100 passes by Newton steps on all rows together",
        choices=("auto", "none", "anderson"),
    ),
]
Variant = Annotated[
    str,
    Option(
        "edge puts min(eta_i, eta_j) on every edge. printed is (14)-(17) as they stand: with unequal eta_i its limit "
        "is the optimum of sum_i O_i/eta_i",
        choices=VARIANTS,
    ),
]
Alpha = Annotated[
    ArrayLike | None,
    Option(
        "Rate of the noise, in place of epsilon, one number or one a node: its density is proportional to "
        "exp(-alpha ||b||), and a smaller alpha is more private.",
        kind="float or array",
        private=True,
        read=float,
    ),
]
Perturbation = Annotated[
    str | None,
    Option(
        "objective: noise in each node's objective. output: noise on its minimiser, Gaussian where a delta is given",
        choices=("objective", "output"),
        usual="output where a delta is given, else objective",
        private=True,
    ),
]
RowBound = Annotated[float, Option("Public bound of the norms of the rows.", above=0.0, private=True)]
ClipRows = Annotated[bool, Option("Shorten rows beyond the bound instead of refusing them.")]
NodeTol = Annotated[
    float,
    Option("Exactness with which a node minimises, in the norm of the gradient.", above=0.0, high=1e-8, private=True),
]


#: The default cap, as a multiple of each node's eta: a penalty that grows without end freezes the iterates where they
#: are (1e-10 from the optimum at growth 1.04, .05 at 1.3).
CAP = 10.0


def eta_table(eta: ArrayLike, growth: ArrayLike, cap: ArrayLike | None, passes: int, nodes: int) -> Array:
    """Return eta_i(2k-1) = min(eta_i growth_i^k, cap_i) for k = 1.., (passes, N), RADMM Algorithm 2.

    `eta`, (N,) and (passes, N): > 0. A table of all passes is taken as it is.
    `growth`, (N,): >= 1.
    `cap`, (N,): None is `CAP` times eta_i; inf is none.
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
    """Return eta_i(2k-1) of every pass and node, (passes, N), checked against the method.

    `usual`: Number of passes, where neither `max_iter` nor a table of all passes gives it.
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
