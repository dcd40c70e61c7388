"""The disclosure of labels by their holder, and its prevention.

The paper broadcasts y^t = grad l(z^t). For a margin loss l(z, b) = phi(b z) with phi' < 0 the sign of -y_i **is** the
label, at the first pass and, but for y_i that are 0 to rounding, at every later one: no noise on the shares hides it.
`labels="shared"` states this openly: labels are known to all parties and no guarantee is about them.

With `labels="held"` they stay with their party, which is the centre. It flips each label once, at random, and uses
the flipped ones in place of the true ones ever after (randomised response, Warner 1965). Whatever it sends is then
computed from released values: it costs epsilon once, however many passes follow. Noise on every broadcast y^t would
cost at each pass, and at one pass already more: at epsilon = 0.5 a flip keeps a quarter of each label's signal, while
Gaussian noise at delta = 1e-6 keeps a sixteenth. A fit to flipped labels is a fit to weaker ones: the logistic loss
is corrected to be unbiased (Natarajan et al. 2013), and its noise stays.
"""

from dataclasses import replace

import cvxpy as cp
import numpy as np
from scipy.special import expit

from cvxpriv.numerics.arrays import Values
from cvxpriv.penalties import Loss
from cvxpriv.privacy import Noise, Release
from cvxpriv.schedules.steps import Draw

#: Name of the labels in the state, and of their release.
LABELS = "labels"


def flip_probability(epsilon: float) -> float:
    """Return the probability with which randomised response flips a label: 1/(1 + exp(epsilon)).

    >>> round(flip_probability(1.0), 4)
    0.2689
    """
    return float(expit(-epsilon))


def flipping(epsilon: float) -> Draw:
    """Return the step that replaces the labels by flipped ones; (epsilon, 0)-private for one person's label."""

    def flip(view: Values, noise: Noise) -> Values:
        flips = noise.coins(epsilon, view[LABELS].size).reshape(view[LABELS].shape)
        return {LABELS: np.where(flips, -view[LABELS], view[LABELS])}

    only = frozenset({LABELS})
    note = f"{epsilon:g} of it for the randomised labels"
    return Draw(LABELS, flip, only, only, [Release(epsilon=epsilon, source="centre", note=note)])


def unbiased(loss: Loss, flipped: float) -> Loss:
    """Return the loss of a flipped label whose mean over the flips is the logistic loss of the true one.

    ((1 - f) l(z, b) - f l(z, -b))/(1 - 2f) = l(z, b) - f/(1 - 2f) b z, as l(z, b) - l(z, -b) = -b z: still convex. The
    other losses have no such form and come back as they are.

    `flipped`: Probability f of a flip, below 1/2.
    """
    if loss.name != "logistic" or loss.iterated is None or loss.expression is None:
        return loss
    tilt = flipped / (1.0 - 2.0 * flipped)
    root, form = loss.iterated, loss.expression

    def expression(t: cp.Expression) -> cp.Expression:
        return form(t) - tilt * t

    return replace(
        loss,
        name="logistic, unbiased under flips",
        phi=lambda t: loss.phi(t) - tilt * t,
        derivative=lambda t: loss.derivative(t) - tilt,
        expression=expression,
        slope=loss.slope + tilt,
        iterated=lambda v, ratio, guess, slope: root(v + tilt / ratio, ratio, guess, None),
    )
