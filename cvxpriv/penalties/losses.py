"""Losses of a prediction z against a label b, one value per sample, and their exact proximal steps.

A margin loss is phi(b z) with labels b of -1 and 1; a residual loss is phi(z - b) with any labels. Every splitting
method needs the proximal step of a sample, the minimiser of weight l(z, b) + (r/2) (z - v)^2.
"""

from collections.abc import Callable
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
from scipy import sparse
from scipy.special import expit

from cvxpriv.errors import ModelError, shown, suggest
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.doors import door
from cvxpriv.penalties.loss_steps import falling_sigmoid, falling_slope, in_pieces, logistic_root, monotone_root

Scalar = Callable[[Array], Array]
#: Maps (argument v, rho over weight) to the minimiser of phi(t) + (ratio/2) (t - v)^2.
Proximal = Callable[[Array, Array], Array]
#: The same map from a guess: (v, ratio, guess, phi' at the guess or None where it is not known).
Iterated = Callable[[Array, Array, Array, Array | None], Array]


@door
@dataclass(frozen=True)
class Loss:
    """A loss l(z, b) = phi(b z) or phi(z - b).

    Attributes
    ----------
    name : str
    phi, derivative, second : callable
        Functions phi, phi' and phi'' of an array, elementwise. At a kink phi' is any slope between left and right.
    expression : callable, optional
        Maps a cvxpy expression to phi of it, elementwise and convex; None for a loss that is not convex.
    margin : bool
        Whether the argument is b z (labels -1 and 1) or z - b.
    smoothness : float
        Lipschitz constant of phi'; inf at a kink.
    slope : float
        Lipschitz constant of phi; inf where it has none.
    proximal : callable, optional
        Minimiser of phi(t) + (ratio/2) (t - v)^2 in closed form. None: bracketed Newton on phi'.
    iterated : callable, optional
        The same minimiser by an iteration of its own, which starts from a guess.
    kink : float, optional
        Place where phi' jumps.
    convex : bool

    Examples
    --------
    >>> logistic = loss_named("logistic")
    >>> z = logistic.prox(np.array([0.0]), np.array([1.0]), weight=1.0, rho=0.5)
    >>> bool(abs(logistic.gradient(z, np.array([1.0])) + 0.5 * z)[0] < 1e-14)
    True
    """

    name: str
    phi: Scalar
    derivative: Scalar
    second: Scalar
    expression: Callable[[cp.Expression], cp.Expression] | None
    margin: bool
    smoothness: float
    slope: float
    proximal: Proximal | None = None
    iterated: Iterated | None = None
    kink: float | None = None
    convex: bool = True

    def __repr__(self) -> str:
        return f"Loss({self.name!r}, of {'the margin b z' if self.margin else 'the residual z - b'})"

    def __reduce__(self) -> str | tuple[object, ...]:
        """Pickle a loss of the list by its name: its functions are written in place."""
        return (loss_named, (self.name,)) if LOSSES.get(self.name) is self else super().__reduce__()

    def argument(self, z: Array, b: Array) -> Array:
        """Return the argument of phi."""
        return b * z if self.margin else z - b

    def value(self, z: Array, b: Array) -> Array:
        """Return l(z, b), one value per sample."""
        return self.phi(self.argument(z, b))

    def gradient(self, z: Array, b: Array) -> Array:
        """Return dl/dz, one value per sample."""
        slope = self.derivative(self.argument(z, b))
        return b * slope if self.margin else slope

    def curvature(self, z: Array, b: Array) -> Array:
        """Return d2l/dz2, one value per sample; labels of a margin loss have square 1."""
        return self.second(self.argument(z, b))

    def slopes(self, z: Array, b: Array, within: float = 0.0) -> tuple[Array, Array]:
        """Return the least and the largest subgradient in z, one per sample; they differ at a kink.

        Parameters
        ----------
        within : float
            Distance from the kink that counts as on it.
        """
        if self.kink is None:
            gradient = self.gradient(z, b)
            return gradient, gradient
        t = self.argument(z, b)
        slope = self.derivative(t)
        at = np.abs(t - self.kink) <= within
        left, right = (self.derivative(np.array([self.kink + side]))[0] for side in (-1e-9, 1e-9))
        low, high = np.where(at, min(left, right), slope), np.where(at, max(left, right), slope)
        if not self.margin:
            return low, high
        return np.where(b > 0, low, -high), np.where(b > 0, high, -low)

    def of(self, z: cp.Expression, b: Array) -> cp.Expression:
        """Return l(z, b) as a convex cvxpy expression, one value per sample.

        Raises
        ------
        ModelError
            The loss is not convex.
        """
        if self.expression is None:
            raise ModelError(f"loss {shown(self.name)} is not convex and has no DCP form: use its exact step")
        return self.expression(cp.multiply(b, z) if self.margin else z - b)

    def of_rows(self, rows: Array | sparse.csr_array, f: cp.Expression, b: Array) -> cp.Expression:
        """Return l(rows f, b) as a convex cvxpy expression, one value per row.

        The labels of a margin go into the rows: cvxpy 1.9 bounds the product of labels and `rows @ f` wrongly, and
        hands the bounds to HiGHS.

        Raises
        ------
        ModelError
            The loss is not convex.
        """
        if self.expression is None or not self.margin:
            return self.of(rows @ f, b)
        return self.expression((sparse.diags_array(b) @ rows) @ f)

    def prox(
        self,
        v: Array,
        b: Array,
        weight: float | Array = 1.0,
        rho: float | Array = 1.0,
        start: Array | None = None,
        slope: Array | None = None,
    ) -> Array:
        """Return the minimiser of weight l(z, b) + (rho/2) (z - v)^2 in z, one per sample.

        Parameters
        ----------
        v, b : ndarray
        weight : float or ndarray
            Weight of the loss, > 0.
        rho : float or ndarray
            Weight of the square, > 0; for a loss that is not convex above weight times its smoothness, so that the
            minimiser is unique.
        start : ndarray, optional
            A first guess; the last answer saves steps.
        slope : ndarray, optional
            weight dl/dz at `start`, where it is known: it saves one evaluation.
        """
        ratio = np.broadcast_to(np.asarray(rho / weight, dtype=float), v.shape)
        argument = self.argument(v, b)
        if self.proximal is not None:
            t = self.proximal(argument, ratio)
        else:
            guess = argument if start is None else self.argument(start, b)
            if self.iterated is not None:
                known = None if slope is None else (b * slope if self.margin else slope) / weight
                t = self.iterated(argument, ratio, guess, known)
            else:
                t = monotone_root(self.derivative, self.second, argument, ratio, guess)
        return b * t if self.margin else b + t


def _hinge_prox(v: Array, ratio: Array) -> Array:
    return np.where(v >= 1.0, v, np.minimum(v + 1.0 / ratio, 1.0))


def _smoothed_hinge_prox(v: Array, ratio: Array) -> Array:
    width = SMOOTHING
    curved = (1.0 / width + ratio * v) / (1.0 / width + ratio)
    linear = v + 1.0 / ratio
    return np.where(v >= 1.0, v, np.where(linear <= 1.0 - width, linear, curved))


def _huber_prox(v: Array, ratio: Array) -> Array:
    inside = ratio * v / (1.0 + ratio)
    return np.where(np.abs(inside) <= HUBER_WIDTH, inside, v - np.sign(v) * HUBER_WIDTH / ratio)


def _sigmoid_second(t: Array) -> Array:
    p = expit(-t)
    return p * (1.0 - p) * (1.0 - 2.0 * p)


#: Width of the margin over which the smoothed hinge bends, and largest residual at which Huber's loss is a square.
SMOOTHING, HUBER_WIDTH = 0.5, 1.0

LOGISTIC = Loss(
    "logistic",
    # np.logaddexp(0, -t), five times faster
    phi=in_pieces(lambda t: np.maximum(-t, 0.0) + np.log1p(np.exp(-np.abs(t)))),
    derivative=lambda t: -falling_sigmoid(t),
    second=falling_slope,
    expression=lambda t: cp.logistic(-t),
    margin=True,
    smoothness=0.25,
    slope=1.0,
    iterated=logistic_root,
)
SQUARED = Loss(
    "squared",
    phi=lambda t: 0.5 * t**2,
    derivative=lambda t: t,
    second=np.ones_like,
    expression=lambda t: 0.5 * cp.square(t),
    margin=False,
    smoothness=1.0,
    slope=float("inf"),
    proximal=lambda v, ratio: ratio * v / (1.0 + ratio),
)
HUBER = Loss(
    "huber",
    phi=lambda t: np.where(np.abs(t) <= HUBER_WIDTH, 0.5 * t**2, HUBER_WIDTH * (np.abs(t) - 0.5 * HUBER_WIDTH)),
    derivative=lambda t: np.clip(t, -HUBER_WIDTH, HUBER_WIDTH),
    second=lambda t: np.where(np.abs(t) <= HUBER_WIDTH, 1.0, 0.0),
    expression=lambda t: 0.5 * cp.huber(t, HUBER_WIDTH),
    margin=False,
    smoothness=1.0,
    slope=HUBER_WIDTH,
    proximal=_huber_prox,
)
HINGE = Loss(
    "hinge",
    phi=lambda t: np.maximum(1.0 - t, 0.0),
    derivative=lambda t: np.where(t < 1.0, -1.0, 0.0),
    second=np.zeros_like,
    expression=lambda t: cp.pos(1.0 - t),
    margin=True,
    smoothness=float("inf"),
    slope=1.0,
    proximal=_hinge_prox,
    kink=1.0,
)
SMOOTHED_HINGE = Loss(
    "smoothed-hinge",
    phi=lambda t: np.where(
        t >= 1.0, 0.0, np.where(t <= 1.0 - SMOOTHING, 1.0 - t - SMOOTHING / 2.0, (1.0 - t) ** 2 / (2.0 * SMOOTHING))
    ),
    derivative=lambda t: -np.clip((1.0 - t) / SMOOTHING, 0.0, 1.0),
    second=lambda t: np.where((t < 1.0) & (t > 1.0 - SMOOTHING), 1.0 / SMOOTHING, 0.0),
    # huber of the part below 1 is its square up to the width and linear beyond.
    expression=lambda t: cp.huber(cp.pos(1.0 - t), SMOOTHING) / (2.0 * SMOOTHING),
    margin=True,
    smoothness=1.0 / SMOOTHING,
    slope=1.0,
    proximal=_smoothed_hinge_prox,
)
SIGMOID = Loss(
    "sigmoid",
    phi=lambda t: expit(-t),
    derivative=lambda t: -expit(t) * expit(-t),
    second=_sigmoid_second,
    expression=None,
    margin=True,
    smoothness=1.0 / (6.0 * np.sqrt(3.0)),
    slope=0.25,
    convex=False,
)

LOSSES = {loss.name: loss for loss in (LOGISTIC, SQUARED, HUBER, HINGE, SMOOTHED_HINGE, SIGMOID)}


def loss_named(loss: str | Loss) -> Loss:
    """Return the loss of a name; a `Loss` passes through.

    Raises
    ------
    ModelError
        There is no such loss, or the object lacks a part of the contract; the message names it.
    """
    if isinstance(loss, Loss):
        return loss
    if not isinstance(loss, str):
        parts = ("phi", "derivative", "second", "margin", "smoothness", "slope")
        lacking = [part for part in parts if not hasattr(loss, part)]
        raise ModelError(
            f"loss={shown(loss)} is no Loss, it lacks {', '.join(lacking) or 'the class'}: pass a name, or a cpv.Loss"
        )
    if loss not in LOSSES:
        raise ModelError(f"loss={shown(loss)} is not known: {suggest(loss, LOSSES)}")
    return LOSSES[loss]
