"""The model's own options; those that all models share stand in `cvxpriv.runs.shared_options`."""

from collections.abc import Sequence
from typing import Annotated

from cvxpriv.penalties import Loss, Penalty
from cvxpriv.runs.options import Option

Bound = float | Sequence[float] | None

Lam = Annotated[
    float,
    Option("Weight of every penalty, whatever the weight in its text; the loss is summed over the samples.", low=0.0),
]
LossName = Annotated[
    str | Loss,
    Option(
        "Loss of a prediction. `sigmoid` is not convex: it needs a large enough rho, and reaches a stationary point.",
        metavar="[logistic|squared|huber|hinge|smoothed-hinge|sigmoid]",
    ),
]
PenaltyName = Annotated[
    str | Penalty | Sequence[str | Penalty],
    Option(
        "R_m, convex: `l2` is (1/2)||x||^2, `l1` is ||x||_1, `elastic-net:<weight>:<ratio>`, `nonneg`, "
        "`box:<low>:<high>`, `none` (`cvxpriv.penalties.penalty_named`), or an object such as "
        "`cvxpriv.penalties.GroupLasso(...)`.",
        kind="str or Penalty, or one a party",
        metavar="NAME",
    ),
]

Rho = Annotated[
    float | None,
    Option(
        "Penalty of ADMM. The method `averaged` puts rho/M on S = z.",
        above=0.0,
        usual="near the mean curvature of the loss, then each sample's own curvature, where all steps are exact",
    ),
]
Gap = Annotated[
    float | None,
    Option(
        "Certified duality gap, as a part of the objective, at which a start has converged too; 0 for none.",
        low=0.0,
        usual="1e-6; none where another tol than 1e-7 is asked for, or no gap is known",
    ),
]
Accelerate = Annotated[
    str,
    Option(
        "Combine the last passes (Anderson), with the same optimum and fewer passes. `auto` does so where it has a "
        "guarantee: a convex loss, exact updates, a method that converges. Where passes are slow on few columns, or "
        "systems of many columns would cost too much, it ends the run by Newton steps on all columns together",
        choices=("auto", "none", "anderson"),
    ),
]
RowBound = Annotated[
    Bound, Option("Public bound of the norm of a party's part of any row: one number, or one per party.", private=True)
]
ColumnBound = Annotated[
    Bound, Option("Public bound of the norm of any column: one number, or one per party.", private=True)
]
CellBound = Annotated[
    Bound, Option("Public bound of the absolute value of any entry: one number, or one per party.", private=True)
]
Clip = Annotated[
    float | None,
    Option(
        "Clip each share to this norm: sensitivity 2 clip, whatever the penalty. Needed for a penalty that is no "
        "square, with `constrain`, and with lam = 0.",
        above=0.0,
        usual="no clipping",
        private=True,
    ),
]
ClipEntries = Annotated[
    float | None,
    Option(
        "Clip each value of a share to +- this: the most that one party adds to one person's prediction.",
        above=0.0,
        usual="2 for two classes, else no clipping",
        private=True,
    ),
]
ClipData = Annotated[
    bool, Option("Scale rows, columns or cells beyond their bound down to it instead of refusing them.")
]
Labels = Annotated[
    str,
    Option(
        "shared: labels are public, as weights are. held: their holder flips each at random, once, for half of epsilon",
        choices=("shared", "held"),
        private=True,
    ),
]
NoiseKind = Annotated[
    str,
    Option(
        "printed is the paper's D_m xi, at the same scale: no guarantee", choices=("gaussian", "printed"), private=True
    ),
]
PrivateRho = Annotated[
    float | None,
    Option(
        "Penalty of ADMM.",
        above=0.0,
        usual="a fifth of the curvature of the loss, as the penalty of S = z; from public numbers",
    ),
]
Shrink = Annotated[bool, Option("Remove the noise from released shares as far as it can be told from them.")]
