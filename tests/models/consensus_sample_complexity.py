"""How many rows a node needs: Theorems VI.1 and VI.2, with every constant an argument.

The papers they build on leave w as "some constant": the functions give the shape of the requirement, in multiples of w.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.errors import ModelError
from cvxpriv.numerics.arguments import real_numbers, require_counts, require_positive
from cvxpriv.numerics.arrays import Array

__all__ = ["samples_needed", "samples_needed_privately"]


def samples_needed(
    reference_norm: float, tau: float, delta: float, excess: ArrayLike = 0.0, *, w: float = 1.0
) -> float:
    """Return w max_k ||f_ref||^2 log(1/delta) / (tau - Delta_i(k))^2, Theorem VI.1.

    With so many rows at node i, f_i(2k-1) has an expected loss of at most that of f_ref plus tau, with probability
    1 - delta.

    Parameters
    ----------
    reference_norm : float
        ||f_ref||.
    tau : float
        > every Delta_i(k).
    delta : float
        In (0, 1).
    excess : float or array, (K,)
        Delta_i(k), the expected loss of f_i(2k-1) beyond that of f_c.
    w : float

    Examples
    --------
    >>> round(samples_needed(2.0, tau=0.1, delta=0.05))
    1198
    """
    left = _left(reference_norm, tau, delta, excess, w)
    return float(w * np.max(reference_norm**2 * np.log(1.0 / delta) / left**2))


def samples_needed_privately(
    reference_norm: float,
    tau: float,
    delta: float,
    excess: ArrayLike = 0.0,
    *,
    alpha: ArrayLike,
    C: float,
    nodes: int,
    features: int,
    w: float = 1.0,
    a: float = 1.0,
) -> float:
    """Return what Theorem VI.2 asks of B_i for the private algorithm, with probability 1 - 2 delta; inf if none does.

    w max_k C N log(1/delta) / (N C (tau - Delta)^2 / (2 ||f_ref||^2) - (1 + a) N d^2 log(d/delta)^2 / (C alpha^2)).

    Where the denominator is not positive no number of rows is enough: the noise alone costs more than tau. Without
    noise it is twice Theorem VI.1's, which the paper calls the same.

    Parameters
    ----------
    reference_norm, tau, delta, excess
        See `samples_needed`; the excess is that of the noisy problem.
    alpha : float or array, (K,)
        Of the noise exp(-alpha_i(k) ||eps||).
    C : float
    nodes, features : int
        N and d.
    w, a : float
    """
    left = _left(reference_norm, tau, delta, excess, w)
    require_positive(C=C, a=a)
    require_counts(nodes=nodes, features=features)
    scale = real_numbers(alpha, "alpha", ModelError)
    if not (scale > 0.0).all():
        raise ModelError(f"alpha={alpha!r} must be > 0")
    gain = nodes * C * left**2 / (2.0 * reference_norm**2)
    noise = (1.0 + a) * nodes * features**2 * np.log(features / delta) ** 2 / (C * scale**2)
    room = np.min(gain - noise)
    return float(w * C * nodes * np.log(1.0 / delta) / room) if room > 0.0 else float("inf")


def _left(reference_norm: float, tau: float, delta: float, excess: ArrayLike, w: float) -> Array:
    """tau - Delta_i(k), checked."""
    require_positive(reference_norm=reference_norm, tau=tau, delta=delta, w=w)
    if delta >= 1.0:
        raise ModelError(f"delta={delta!r} is no probability: choose one in (0, 1)")
    left = tau - real_numbers(excess, "excess", ModelError)
    if not (left > 0.0).all():
        raise ModelError(f"tau={tau!r} must exceed every excess: run more passes, or allow a larger tau")
    return np.asarray(left)
