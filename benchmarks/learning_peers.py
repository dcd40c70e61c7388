"""Two private learners of the literature, as peers: approximate minima perturbation, and a private Newton's method.

Both are written for logistic loss and rows of norm at most 1, one row replaced, n public. Noise is NumPy's: these are
for measuring, and no release.

**Approximate minima perturbation** (Iyengar et al. 2019): minimise J(theta) = sum_i l_i(theta) + (weight/2)
||theta||^2 + b'theta with b ~ N(0, s^2 I), to a small gradient, and add a little noise. Each l_i has its slope clipped
at C, as a clipped gradient's is. Exactly one b leads to each theta: minus the gradient of the rest. So the log density
of theta at data against that at a neighbour is

    log det ratio + (||b + v||^2 - ||b||^2)/(2 s^2),   v = c_1 u_1 - c_2 u_2,   0 <= c_1, c_2 <= C,

u the two rows times their labels. The Hessians share all but one row of curvature at most 1/4 each: the first term is
at most e = log(1 + 1/(4 weight)). The second is convex in (c_1, c_2), so greatest at a corner, and at each corner it is
the loss of a Gaussian release of mu = ||v||/s: 2 C/s at one, C/s at two, nothing at the last. Hence

    delta(epsilon) <= D(epsilon - e, 2 C/s) + 2 D(epsilon - e, C/s),   D(x, mu) of a Gaussian release, x >= 0.

**Private Newton's method** (Ganesh, Haghifam, Steinke and Thakurta 2023): each step releases a clipped gradient g with
noise and then the direction (H + lam)^-1 g with noise. H = (1/n) sum_i q(z_i) x_i x_i', q(z) = tanh(z/2)/(2 z) <= 1/4,
majorises the loss, so that no step overshoots. One row a a' of H, ||a||^2 <= 1/(4 n), moves the direction by
A a (a'A g)/(1 + a'A a) with A = (H + lam)^-1 of the other rows, and (A a)'(A a) <= a'A a/lam: at most ||g||
/(lam (1 + 4 n lam)). Replacing a row is leaving one out and adding another: twice that.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import brentq
from scipy.special import expit

from cvxpriv.numerics.arrays import Array
from cvxpriv.privacy import gaussian_delta, gaussian_mu

__all__ = ["direction_sensitivity", "majoriser", "minima_perturbation", "newton", "slopes_and_bends", "tilt_deviation"]

Rows = Array | sparse.csr_array

#: Part of mu^2 that the directions of Newton's method get.
DIRECTIONS = 0.5
#: Gradient of J, over the tilt's deviation, at which its minimisation stops: noise that hides the rest costs nothing.
LEFT = 1e-6


def tilt_deviation(epsilon: float, delta: float, weight: float, clip: float, before: float = 0.0) -> float:
    """Return the least s of the tilt b, or inf where the weight alone costs more than epsilon.

    `before` is the mu of Gaussian releases before it: at each corner they add to the loss as to that of any Gaussian.
    """
    rest = float(epsilon - np.log1p(0.25 / weight))
    if rest <= 0.0:
        return float("inf")

    def excess(mu: float) -> float:
        corners = (float(np.hypot(before, part * mu)) for part in (1.0, 0.5, 0.5))
        return sum(gaussian_delta(rest, corner) for corner in corners) + nothing - delta

    most, nothing = gaussian_mu(rest, delta), gaussian_delta(rest, before) if before else 0.0
    if excess(1e-3 * most) >= 0.0:
        return float("inf")
    return 2.0 * clip / float(brentq(excess, 1e-3 * most, 1.01 * most, rtol=1e-10))


def slopes_and_bends(z: Array, norms: Array, clip: float) -> tuple[Array, Array]:
    """Return minus the slopes and the curvatures of the clipped losses at margins z, (n,) each."""
    with np.errstate(divide="ignore"):
        most = np.minimum(clip / norms, 1.0)
    slopes = expit(-z)
    return np.minimum(slopes, most), np.where(slopes < most, slopes * (1.0 - slopes), 0.0)


def minima_perturbation(
    x: Rows,
    y: Array,
    epsilon: float,
    delta: float,
    weight: float,
    clip: float,
    random: np.random.Generator,
    before: float = 0.0,
) -> Array:
    """Return theta, (d,); the weight is one for which `tilt_deviation` is finite."""
    deviation = tilt_deviation(epsilon, delta, weight, clip, before)
    tilt = deviation * random.normal(size=x.shape[1])
    signed, norms = _signed(x, y)

    def gradient(theta: Array) -> tuple[Array, Array]:
        slopes, bends = slopes_and_bends(signed @ theta, norms, clip)
        return weight * theta + tilt - signed.T @ slopes, bends

    theta = np.zeros(x.shape[1])
    own, bends = gradient(theta)
    for _ in range(200):
        size, length = float(np.linalg.norm(own)), 1.0
        if size <= LEFT * deviation:
            break
        step = _solved(_gram(signed, bends) + weight * np.eye(theta.size), own)
        while True:  # Newton's direction lessens the norm of the gradient where it is short enough
            own, bends = gradient(theta - length * step)
            if np.linalg.norm(own) <= (1.0 - 1e-4 * length) * size or length < 1e-6:
                break
            length *= 0.5
        theta = theta - length * step
    return theta


def direction_sensitivity(rows: int, lam: float) -> float:
    """Return the largest Euclidean norm by which a replaced row moves (H + lam)^-1 g, as a multiple of that of g."""
    return 2.0 / (lam * (1.0 + 4.0 * rows * lam))


def majoriser(signed: Rows, theta: Array) -> Array:
    """Return H, (d, d)."""
    z = np.abs(signed @ theta)
    curvature = np.where(z < 1e-6, 0.25, np.tanh(z / 2.0) / np.maximum(2.0 * z, 1e-300))
    return _gram(signed, curvature) / signed.shape[0]


def newton(
    x: Rows,
    y: Array,
    epsilon: float,
    delta: float,
    steps: int,
    lam: float,
    clip: float,
    random: np.random.Generator,
) -> Array:
    """Return theta, (d,), after `steps` steps."""
    rows, size = x.shape
    mu = gaussian_mu(epsilon, delta) / np.sqrt(steps)
    of_gradient = 2.0 * clip / rows / (mu * np.sqrt(1.0 - DIRECTIONS))
    of_direction = direction_sensitivity(rows, lam) / (mu * np.sqrt(DIRECTIONS))
    (signed, norms), theta = _signed(x, y), np.zeros(size)
    for _ in range(steps):
        slopes, _bends = slopes_and_bends(signed @ theta, norms, clip)
        gradient = -(signed.T @ slopes) / rows + of_gradient * random.normal(size=size)
        direction = _solved(majoriser(signed, theta) + lam * np.eye(size), gradient)
        theta = theta - direction - of_direction * float(np.linalg.norm(gradient)) * random.normal(size=size)
    return theta


def _signed(x: Rows, y: Array) -> tuple[Rows, Array]:
    if isinstance(x, np.ndarray):
        return x * y[:, None], np.linalg.norm(x, axis=1)
    signed = sparse.csr_array(sparse.diags_array(y) @ x)
    return signed, np.sqrt(np.asarray(signed.multiply(signed).sum(axis=1)).ravel())


def _gram(rows: Rows, weights: Array) -> Array:
    if isinstance(rows, np.ndarray):
        return np.asarray((rows * weights[:, None]).T @ rows)
    return np.asarray((rows.T @ (sparse.diags_array(weights) @ rows)).toarray())


def _solved(matrix: Array, vector: Array) -> Array:
    return np.asarray(cho_solve(cho_factor(matrix), vector))
