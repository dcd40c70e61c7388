"""The exact solution from the smoothed master's points: Newton's method on the conditions of optimality.

At the optimum a few columns u carry weights q_u: sum_u q_u x_u = P_Y, and J(mu_u) = 0 and A x_u = s_u, the slope of L,
at each. The unknowns are alpha, every mu_u and every q_u; the mu_u are eliminated one by one.
"""

import numpy as np
from scipy.optimize import nnls

from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.sizes import now

from .pricing import FAR, Inner, Pricing, Surface, curvature, distinct, sharpened
from .smoothed_master import Columns, Master

#: Local maxima this near, in s, are one; the second is tried where the first leads nowhere.
CLUSTERS = (1e-5, 2e-3)
#: Columns this near are one after Newton's method. A residual up to `ARRIVED` is good enough.
SAME, ARRIVED = 1e-7, 1e-9
#: Newton steps, and the residual that ends them.
STEPS, EXACT = 30, 1e-14
#: Weights below this are dropped; the weight with which a column enters.
LIGHT, ENTERING = 1e-11, 1e-6


def cross_over(pricing: Pricing, master: Master, deadline: float) -> Columns:
    """Return the exact solution near a master's; its residual says whether Newton's method arrived."""
    share = sharpened(pricing, master.share, master.alpha)
    value = pricing.surface(pricing.mu_of(share), master.alpha).value
    share = share[np.argsort(-value, kind="stable")]
    found = []
    for near in CLUSTERS:
        found.append(_from_points(pricing, master.alpha, pricing.mu_of(distinct(share, near)), deadline))
        if found[-1].residual <= ARRIVED or now() > deadline:
            break
    return min(found, key=lambda columns: columns.residual)


def _from_points(pricing: Pricing, alpha: Array, mu: Array, deadline: float) -> Columns:
    """Newton's method from the least squares mixture of the points' columns; columns without weight are dropped."""
    surface = pricing.surface(mu, alpha)
    weight = nnls(surface.inner.x.T, pricing.p_y, maxiter=50 * len(mu) + 50)[0]
    used = weight > min(
        LIGHT, 0.5 * float(weight.max())
    )  # the only column may be that of a symbol with hardly any mass
    first = _polish(pricing, alpha + surface.value[used].max(), mu[used], weight[used], deadline)
    return _without_light(pricing, first, deadline)


def extended(pricing: Pricing, columns: Columns, share: Array, deadline: float) -> Columns:
    """Return the solution with columns at rows s added, (K, |S|), which an exact solution lacks."""
    mu = np.vstack([columns.mu, pricing.mu_of(distinct(share, CLUSTERS[0]))])
    weight = np.append(columns.weight, np.full(len(mu) - len(columns.weight), ENTERING))
    return _without_light(pricing, _polish(pricing, columns.alpha, mu, weight, deadline), deadline)


def _without_light(pricing: Pricing, columns: Columns, deadline: float) -> Columns:
    while True:
        keep = _worth_keeping(columns)
        if keep.all() or not keep.any() or now() > deadline:
            return columns
        columns = _polish(pricing, columns.alpha, columns.mu[keep], np.maximum(columns.weight[keep], LIGHT), deadline)


def _worth_keeping(columns: Columns) -> Array:
    """All but the most negative weight, or all but the later one of two columns that met."""
    keep = np.ones(len(columns.weight), dtype=bool)
    worst = int(columns.weight.argmin())
    if columns.weight[worst] <= LIGHT:
        keep[worst] = False
        return keep
    for index in range(1, len(columns.weight)):
        keep[index] = np.abs(columns.x[:index] - columns.x[index]).sum(axis=1).min() > SAME
    return keep


def _polish(pricing: Pricing, alpha: Array, mu: Array, weight: Array, deadline: float) -> Columns:
    """Newton's method at a fixed number of columns; the best point seen is returned."""
    best = None
    for _ in range(STEPS):
        surface = pricing.surface(mu, alpha)
        columns = _columns(pricing, alpha, mu, weight, surface)
        if best is None or columns.residual < best.residual:
            best, patience = columns, 0
        else:
            patience += 1
        if not np.isfinite(columns.residual) or columns.residual <= EXACT or patience > 6 or now() > deadline:
            break
        try:
            alpha, mu, weight = newton_step(pricing, columns, surface)
        except np.linalg.LinAlgError:  # masses near 1e-12: the system holds no numbers any more
            break
    assert best is not None, "STEPS is positive"
    return best


def _columns(pricing: Pricing, alpha: Array, mu: Array, weight: Array, surface: Surface) -> Columns:
    mixed = pricing.p_y - weight @ surface.inner.x
    tilted = np.where(mu > -FAR, surface.inner.x @ pricing.channel.T - surface.share, 0.0)
    parts = [np.abs(mixed).sum(), np.abs(surface.value).max(), np.abs(tilted).max()]
    return Columns(alpha, mu, weight, surface.inner.x, float(np.max(parts)))


def newton_step(
    pricing: Pricing, columns: Columns, surface: Surface, damping: float = 0.0
) -> tuple[Array, Array, Array]:
    """Return alpha, mu and the weights after one Newton step from columns, at which J need not be 0.

    Eliminating mu_u leaves a symmetric system in alpha and q. `damping` holds mu back: without bound, mu stays.
    """
    channel, q, x = pricing.channel, columns.weight, surface.inner.x
    cells, count = x.shape[1], len(q)
    moved = _moved(channel, surface.inner)  # M_u A', (U, |Y|, |S|)
    slope = x @ channel.T - surface.share
    right = np.concatenate([moved.transpose(0, 2, 1), slope[:, :, None]], axis=2)
    answer = np.linalg.solve(curvature(channel, surface, damping), right)
    back, ahead = answer[:, :, :cells], answer[:, :, cells]
    hessian = _weighted(surface.inner, q) + np.einsum("u,uys,usz->yz", q, moved, back, optimize=True)
    mixed = pricing.p_y - q @ x - np.einsum("u,uys,us->y", q, moved, ahead, optimize=True)
    system = np.zeros((cells + count, cells + count))
    system[:cells, :cells], system[:cells, cells:], system[cells:, :cells] = hessian, -x.T, -x
    right = np.concatenate([-mixed, -(surface.value + (slope * ahead).sum(axis=1))])
    move = _solved(system, right)
    change, more = move[:cells], move[cells:]
    turn = ahead - back @ change
    mu = np.maximum(columns.mu + np.clip(turn, -1.0, 1.0), -FAR)
    return columns.alpha + change, mu, q + more


def _solved(system: Array, right: Array) -> Array:
    try:
        found = np.linalg.solve(system, right)
        if np.isfinite(found).all() and np.abs(system @ found - right).max() <= 1e-8 * (1.0 + np.abs(right).max()):
            return np.asarray(found)
    except np.linalg.LinAlgError:
        pass
    if not np.isfinite(system).all():
        return np.full_like(right, np.nan)
    return np.asarray(np.linalg.lstsq(system, right, rcond=1e-13)[0])


def _moved(channel: Array, inner: Inner) -> Array:
    """dx/dmu = M A', (U, |Y|, |S|)."""
    across = inner.spread[:, :, None] * channel.T
    total = np.maximum(inner.spread.sum(axis=1), 1e-300)[:, None]
    return np.asarray(across - inner.spread[:, :, None] * ((inner.spread @ channel.T) / total)[:, None, :])


def _weighted(inner: Inner, q: Array) -> Array:
    """sum_u q_u M_u, M = D - D1 1'D / 1'D1."""
    total = np.maximum(inner.spread.sum(axis=1), 1e-300)
    return np.asarray(np.diag(q @ inner.spread) - (inner.spread / total[:, None] * q[:, None]).T @ inner.spread)
