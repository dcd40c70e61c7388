"""The options that are this model's own; those that all models share stand in `cvxpriv.runs.shared_options`."""

from typing import Annotated

from numpy.typing import ArrayLike

from cvxpriv.penalties import Loss, Penalty
from cvxpriv.runs.options import Option

from .graph import VARIANTS

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
        "over the network. `auto` does so with exact updates and penalties that stay as they are",
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
