"""The choices of a private solve that follow from public numbers alone and cost no privacy.

The public numbers are n, d, epsilon, delta, the clip and the step. Let c = sensitivity / mu be the noise of one release
that spends the whole budget. Then each of T releases has noise of deviation c sqrt(T).

**How many.** Along a direction in which the average loss has curvature h, T steps of length 1/L from 0 leave (h/2) R^2
exp(-2 T h / L) of the excess, at most R^2 L / (4 e T) over all h; R is the distance of the solution. Noise adds T c^2 /
(4 L) at most in each of d directions. Both are equal at T = R L / (c sqrt(e d)). R is not public: two of the longest
steps there are, 2 clip/L, stand for it. That is 8 for logistic loss and rows of norm 1, and was chosen on German
credit, COMPAS and synthetic data. For one row replaced T is n mu / sqrt(e d), free of the clip and of the scale of X.

Steps along centred rows are longer, and what they leave falls like T^-2 rather than T^-1 where the solution lies along
large curvatures. Then the balance is at a number that grows like T^(2/3); it is T at `LIKE` = 40, chosen on COMPAS,
German credit, digits and synthetic data.

**When to give up.** Noise of one release of the whole budget has norm c sqrt(d), and no gradient is longer than the
clip. Where the first exceeds a tenth of the second, fits of breast cancer's 426 rows, German credit and 300 rows of
COMPAS were at most .02 better in log loss than the majority's share, most of them worse: then a fit warns.

**How much penalty.** Over the whole run, T/L long, noise alone moves a coefficient by c T / L. With alpha = T/L and lam
= c sqrt(log(2 d) / 2), MCP shrinks coefficients below alpha lam, half of the largest of d such moves, and leaves larger
ones alone.
"""

import numpy as np

from cvxpriv.penalties import MCP

#: Largest number of gradients: noise would hide what more of them could gain.
MOST_ITERATIONS = 2000
#: Least alpha: MCP needs alpha > 1, and rows of large norm have short steps.
LEAST_ALPHA = 1.5

#: The number of noisy gradients that is the same for centred rows.
LIKE = 40

#: Part of the clip that the noise of the whole budget may have in one gradient, before a fit warns.
LOUD = 0.1


def drowned(rows: int, size: int, mu: float, moved: float) -> str:
    """Return a warning where noise is likely to drown the signal, by public numbers alone; else an empty text.

    `rows`: The divisor of the sum of gradients. `size`: Number d of coefficients. `moved`: Number of clipped gradients
    by which neighbours differ.

    Examples
    --------
    >>> from cvxpriv.privacy import gaussian_mu
    >>> drowned(426, 31, gaussian_mu(1.0, 1e-6), 2.0)[:40], drowned(5000, 31, gaussian_mu(1.0, 1e-6), 2.0)
    ('privacy is likely to drown the signal: t', '')
    """
    share = moved * float(np.sqrt(size)) / (rows * mu)
    if share <= LOUD:
        return ""
    return (
        f"privacy is likely to drown the signal: the noise of this budget in one gradient is {share:.2f} of the clip "
        f"for {rows} rows and {size} coefficients, and beyond {LOUD:g} fits hardly beat the share of the larger class; "
        "take more rows, fewer columns or a larger epsilon"
    )


def centred_iterations(usual: int) -> int:
    """Return the number of noisy gradients of centred rows, where it is `usual` for rows as they are.

    >>> centred_iterations(40), centred_iterations(320)
    (40, 160)
    """
    return max(round(float(LIKE ** (1.0 / 3.0) * usual ** (2.0 / 3.0))), 1)


def public_iterations(clip: float, sensitivity: float, mu: float, size: int) -> int:
    """Return the number of noisy gradients, T = 2 clip mu / (sensitivity sqrt(e d)), in [1, MOST_ITERATIONS].

    `clip`: Clipping bound of one row's gradient. `sensitivity`: Sensitivity of the average gradient. `mu`: The mu of
    the whole budget (`gaussian_mu`). `size`: Number d of coefficients, with 1 for an intercept.

    Examples
    --------
    >>> from cvxpriv.privacy import gaussian_mu
    >>> public_iterations(1.0, 2.0 / 1000, gaussian_mu(1.0, 1e-5), size=20)
    36
    """
    return int(np.clip(round(2.0 * clip * mu / (sensitivity * np.sqrt(np.e * size))), 1, MOST_ITERATIONS))


def noise_level_penalty(sensitivity: float, mu: float, travel: float, features: int) -> MCP:
    """Return the MCP that shrinks coefficients that noise alone could have moved, and no larger ones. `sensitivity`,
    `mu`: See `public_iterations`. `travel`: Number of iterations times the greatest step. `features`: Number d of
    features, without an intercept.
    """
    return MCP(float(sensitivity / mu * np.sqrt(0.5 * np.log(2.0 * features))), max(float(travel), LEAST_ALPHA))
