"""The steps of GIST, as pure functions of one start's arrays; its proximal step is `cvxpriv.penalties.proximal`.

theta is (d,), or (d + 1,) with an intercept last; only the first d coordinates are penalised.
"""

from cvxpriv.numerics.arrays import Array


def barzilai_borwein(moved: Array, turned: Array) -> tuple[float, float]:
    """Return the steps BB1 = dtheta'dtheta / dtheta'dg and BB2 = dtheta'dg / dg'dg; NaN where they have none.

    Algorithm 1, step 1.2, prints dtheta'dtheta / dg'dg, which is the square of a step (ERRATA ISTDP 1).

    `moved`, `turned`: The differences dtheta and dg of two points and of their gradients.
    """
    along, across = float(moved @ turned), float(turned @ turned)
    if not (along > 0.0 and across > 0.0):  # the loss bends down along the move, nothing moved, or dg'dg underflows
        return float("nan"), float("nan")
    return float(moved @ moved) / along, along / across


def cauchy_step(gradient: Array, image: Array, smoothness: float) -> float:
    """Return the step to the minimum of the quadratic bound along -gradient: g'g / (smoothness (Xg)'(Xg) / n).

    `gradient`: (size,).
    `image`, (n,): The product X gradient.
    `smoothness`: Smoothness of the loss in its prediction.
    """
    bend = smoothness * float(image @ image) / image.size
    return float(gradient @ gradient) / bend if bend > 0.0 else 1.0


def allowed_height(recent: Array, beta: float, step: float, moved: Array) -> float:
    """Return the F up to which a trial is accepted: max(recent) - beta / (2 step) ||moved||^2.

    ISTDP (5) prints beta step / 2 in place of beta / (2 step) (ERRATA ISTDP 4). Against the last of `recent` alone
    the search is monotone.
    """
    return float(recent.max() - 0.5 * beta / step * (moved @ moved))
