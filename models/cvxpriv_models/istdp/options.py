"""The model's own options; those that all models share stand in `cvxpriv.runs.shared_options`."""

from typing import Annotated

from cvxpriv.penalties import Loss, Penalty
from cvxpriv.runs.options import Option

from .centring import CENTRES
from .gist import STEPS

LossName = Annotated[
    str | Loss,
    Option(
        "`logistic`, `smoothed-hinge`, `sigmoid` (of the margin), `squared`, `huber` (of the residual), or a smooth "
        "`cvxpriv.penalties.Loss` of your own.",
        metavar="[logistic|squared|huber|smoothed-hinge|sigmoid]",
    ),
]
PenaltyName = Annotated[
    str | Penalty,
    Option(
        "`mcp:<lam>:<alpha>`, `scad:<lam>:<a>`, `capped-l1:<lam>:<cap>`, `l1:<lam>`, `l2:<lam>`, "
        "`elastic-net:<lam>:<ratio>`, `nonneg`, `box:<low>:<high>` (`cvxpriv.penalties.penalty_named`), a `Penalty`, "
        'or an object with value, prox, residual and weak_convexity. "auto" is `mcp:0.05:3`, and in a private solve an '
        "MCP of the size that its noise asks for (`private_options.noise_level_penalty`).",
        metavar="NAME",
    ),
]

Step = Annotated[str, Option("Barzilai-Borwein length with which a pass begins", choices=tuple(STEPS))]
Accelerate = Annotated[
    str,
    Option(
        "End of a pass: Newton steps on the support, taken only if F falls, or nothing. `auto` is `newton` where "
        "the penalty has `slope` and `bend`",
        choices=("auto", "none", "newton"),
    ),
]

Clip = Annotated[
    float | None,
    Option(
        "Clipping bound: each row's gradient is scaled to at most this Euclidean norm.",
        above=0.0,
        usual="the loss's greatest slope times row_bound",
        private=True,
    ),
]
RowBound = Annotated[
    float | None,
    Option(
        "Public bound of the norms of the rows, with a 1 for an intercept. The step of an iterative method rests on "
        "it, its privacy does not; output and objective perturbation shorten longer rows to it.",
        above=0.0,
        usual="clip over the loss's greatest slope: up to there no row is clipped",
        private=True,
    ),
]
PrivateStep = Annotated[
    str,
    Option(
        "lipschitz: the greatest step, 1/L. noisy-bb: the Barzilai-Borwein one from noisy gradients, between a tenth "
        "of the greatest and it. L is public",
        choices=("lipschitz", "noisy-bb"),
    ),
]
Output = Annotated[
    str,
    Option(
        "The last iterate, or the average of the second half, which moves less. auto: the average of centred rows, "
        "else the last",
        choices=("auto", "last", "average"),
    ),
]
PublicRows = Annotated[
    int | None,
    Option(
        "For add-remove: the public number that the sum of gradients is divided by.",
        low=2,
        usual="rows of the schema, or their number with noise, which is accounted for",
        private=True,
    ),
]
Centre = Annotated[
    str,
    Option(
        "private: mean and second moment of the rows are released for a tenth of mu^2, and the fit is of rows "
        "without their mean; it needs an intercept. auto: where the noise of the moments is small by public numbers",
        choices=CENTRES,
        private=True,
    ),
]
Support = Annotated[
    int | None,
    Option(
        "Keep at most so many columns, chosen by noisy scores for a quarter of mu^2.",
        low=1,
        usual="all columns: under noise the answer is dense",
        private=True,
    ),
]
