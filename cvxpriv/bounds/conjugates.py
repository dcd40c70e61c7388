"""The convex conjugate of the price of a posterior, which the bound of inference as a service needs of f.

A column x = P(Y|u) costs sum_y p(y) H(x(y)/p(y)) with H(r) = r f(1/r). Since x and P_Y both sum to 1, H may be tilted
by a multiple of r - 1 without changing that sum; here H'(1) = 0, so that nothing cancels at large beta. The conjugate
is H*(t) = max over r >= 0 of t r - H(r). Source: IAS (1), columns of the mechanism.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from cvxpriv.divergences import FDivergence
from cvxpriv.numerics.arrays import Array

#: Points where a closed form is compared with the f of its name, and the largest relative difference.
COMPARED, SAME = np.geomspace(1e-4, 1e4, 41), 1e-9
#: The point compared at which the tilt is read, about 1.6.
TWO = 21


@dataclass(frozen=True)
class Conjugate:
    """H* and its derivatives; every function takes an array and returns one of the same shape.

    `value`: t to H*(t), or to a number that is above it by less than rounding.
    `response`: t to the maximiser r = H*'(t) and to its derivative H*''(t).
    `price`, `slope`: r > 0 to H(r), and to H'(r).
    `jumps`: Whether the maximiser jumps, or stands still: f has straight pieces or kinks.
    `ends`: The t up to which the response is the smallest that there is, and from which it is the largest. None: it is
    1 at t = 0, and agrees with `slope`.
    `boxed`: Whether the ratios r are limited, to those from the smallest response to the largest.
    """

    value: Callable[[Array], Array]
    response: Callable[[Array], tuple[Array, Array]]
    price: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    jumps: bool = False
    ends: tuple[float, float] | None = None
    boxed: bool = False


#: A least ratio up to this limits nothing: there H' may have no digits.
NO_LIMIT = 1e-9


def within(conjugate: Conjugate, low: float, high: float) -> Conjugate:
    """Return the conjugate where r is limited to [low, high], 0 < low <= 1 <= high.

    Examples
    --------
    >>> limited = within(MUTUAL_INFORMATION, 0.5, 2.0)
    >>> limited.response(np.array([-9.0, 0.0, 9.0]))[0].tolist()
    [0.5, 1.0, 2.0]
    """
    ends = np.array([low, high])
    slopes, prices = conjugate.slope(ends), conjugate.price(ends)

    def value(t: Array) -> Array:
        inside = conjugate.value(np.clip(t, slopes[0], slopes[1]))
        below = t * low - prices[0] if low > NO_LIMIT else conjugate.value(np.minimum(t, slopes[0]))
        beyond = np.where(t < slopes[0], below, t * high - prices[1])
        return np.asarray(np.where((t >= slopes[0]) & (t < slopes[1]), inside, beyond))

    def response(t: Array) -> tuple[Array, Array]:
        with np.errstate(divide="ignore"):  # of a slope that is its limit in doubles
            r, turn = conjugate.response(np.clip(t, slopes[0], slopes[1]))
        free = (t > slopes[0]) & (t < slopes[1])
        return np.clip(r, low, high), np.where(free, turn, 0.0)

    limits = (float(slopes[0]), float(slopes[1]))
    return replace(conjugate, value=value, response=response, ends=limits, boxed=True)


def moved_away(conjugate: Conjugate, price: Array) -> Conjugate:
    """Return the conjugate of H(r) + price |r - 1|: leading away from r = 1 costs more.

    `price`, (|Y|,): >= 0, one for each column of what its functions take.

    Examples
    --------
    >>> dear = moved_away(MUTUAL_INFORMATION, np.array([0.5]))
    >>> dear.response(np.array([[-0.5], [0.3], [0.5 + np.log(2.0)]]))[0].ravel().tolist()
    [1.0, 1.0, 2.0]
    """
    flat, steep = (0.0, 0.0) if conjugate.ends is None else conjugate.ends
    most = float(price.max())

    def value(t: Array) -> Array:
        near = np.clip(t, -price, price)
        return np.asarray(conjugate.value(t - near) + near)

    def response(t: Array) -> tuple[Array, Array]:
        r, turn = conjugate.response(t - np.clip(t, -price, price))
        return r, np.where(np.abs(t) > price, turn, 0.0)

    return replace(
        conjugate,
        value=value,
        response=response,
        price=lambda r: conjugate.price(r) + price * np.abs(r - 1.0),
        slope=lambda r: conjugate.slope(r) + price * np.sign(r - 1.0),
        ends=None if conjugate.ends is None else (flat - most, steep + most),
    )


def closed_form(divergence: FDivergence) -> Conjugate | None:
    """Return the conjugate of a built-in divergence without kinks; None for every other.

    Examples
    --------
    >>> from cvxpriv.divergences import divergence
    >>> le_cam = closed_form(divergence("le-cam"))
    >>> float(le_cam.value(np.array(-10.0))), float(le_cam.response(np.array(0.0))[0])
    (-0.5, 1.0)
    """
    family, _, number = divergence.name.partition(":")
    if family == "alpha" and number:
        found: Conjugate | None = alpha(float(number))
    else:
        found = _CLOSED.get(divergence.name)
    return found if found is not None and _is_of(found, divergence) else None


def _is_of(found: Conjugate, divergence: FDivergence) -> bool:
    """Whether H is r f(1/r) up to a multiple of r - 1: a user's own f may bear any name."""
    with np.errstate(all="ignore"):
        own = COMPARED * np.asarray(divergence.f(1.0 / COMPARED), dtype=float)
        difference = own - found.price(COMPARED)
        tilt = difference[TWO] / (COMPARED[TWO] - 1.0)
        return bool(np.all(np.abs(difference - tilt * (COMPARED - 1.0)) <= SAME * (1.0 + np.abs(own))))


def _jensen_shannon_response(t: Array) -> tuple[Array, Array]:
    power = np.exp(t)
    below = 2.0 - power
    r = power / below
    return r, 2.0 * r / below


def _jensen_shannon_value(t: Array) -> Array:
    inside = np.minimum(t, np.log(2.0) - 1e-15)
    return np.asarray(np.where(t == inside, -np.log1p(-np.expm1(inside)), np.inf))


def _jensen_shannon_price(r: Array) -> Array:
    return np.asarray(r * np.log(2.0 * r / (1.0 + r)) - np.log1p((r - 1.0) / 2.0))


JENSEN_SHANNON = Conjugate(
    value=_jensen_shannon_value,
    response=_jensen_shannon_response,
    price=_jensen_shannon_price,
    slope=lambda r: np.log(2.0 * r / (1.0 + r)),
)


def _mutual_information_response(t: Array) -> tuple[Array, Array]:
    r = np.exp(t)
    return r, r


MUTUAL_INFORMATION = Conjugate(
    value=np.expm1,
    response=_mutual_information_response,
    price=lambda r: r * np.log(r) - (r - 1.0),
    slope=np.log,
)


def _reverse_kl_response(t: Array) -> tuple[Array, Array]:
    r = 1.0 / (1.0 - t)
    return r, r * r


REVERSE_KL = Conjugate(
    value=lambda t: -np.log1p(-t),
    response=_reverse_kl_response,
    price=lambda r: (r - 1.0) - np.log(r),
    slope=lambda r: 1.0 - 1.0 / r,
)


def _le_cam_value(t: Array) -> Array:
    root = np.sqrt(1.0 - 2.0 * np.maximum(t, -1.5))
    return np.asarray(np.maximum(t, -1.5) * (3.0 - root) / (1.0 + root))


def _le_cam_response(t: Array) -> tuple[Array, Array]:
    root = np.sqrt(1.0 - 2.0 * t)
    return np.maximum(2.0 / root - 1.0, 0.0), np.where(t > -1.5, 2.0 / root**3, 0.0)


LE_CAM = Conjugate(
    value=_le_cam_value,
    response=_le_cam_response,
    price=lambda r: (1.0 - r) * ((1.0 - r) / (2.0 + 2.0 * r)),
    slope=lambda r: 0.5 - 2.0 / (1.0 + r) ** 2,
)


def _hellinger_response(t: Array) -> tuple[Array, Array]:
    root = 1.0 / (1.0 - t)
    return root * root, 2.0 * root**3


HELLINGER = Conjugate(
    value=lambda t: t / (1.0 - t),
    response=_hellinger_response,
    price=lambda r: (1.0 - np.sqrt(r)) ** 2,
    slope=lambda r: 1.0 - 1.0 / np.sqrt(r),
)


def _chi_square_response(t: Array) -> tuple[Array, Array]:
    return np.maximum(1.0 + t / 2.0, 0.0), np.where(t > -2.0, 0.5, 0.0)


CHI_SQUARE = Conjugate(
    value=lambda t: np.maximum(t, -2.0) * (1.0 + np.maximum(t, -2.0) / 4.0),
    response=_chi_square_response,
    price=lambda r: (r - 1.0) ** 2,
    slope=lambda r: 2.0 * (r - 1.0),
)


def _neyman_response(t: Array) -> tuple[Array, Array]:
    r = 1.0 / np.sqrt(1.0 - t)
    return r, r**3 / 2.0


NEYMAN = Conjugate(
    value=lambda t: 2.0 * t / (1.0 + np.sqrt(1.0 - t)),
    response=_neyman_response,
    price=lambda r: (r - 1.0) * ((r - 1.0) / r),
    slope=lambda r: 1.0 - 1.0 / r**2,
)


def alpha(a: float) -> Conjugate:
    """H(r) = (r^a - 1 - a (r - 1)) / (a (a - 1)), whose slope is (r^(a-1) - 1) / (a - 1).

    >>> float(alpha(2.0).value(np.array(-9.0)))
    -0.5
    """
    power = 1.0 / (a - 1.0)

    def inside(t: Array) -> Array:
        return np.asarray(np.maximum((a - 1.0) * t, -1.0))

    def value(t: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.asarray(np.expm1(a * power * np.log1p(inside(t))) / a)

    def response(t: Array) -> tuple[Array, Array]:
        base = 1.0 + inside(t)
        with np.errstate(divide="ignore"):
            return base**power, np.where(base > 0.0, base ** (power - 1.0), 0.0)

    return Conjugate(
        value=value,
        response=response,
        price=lambda r: (r**a - 1.0 - a * (r - 1.0)) / (a * (a - 1.0)),
        slope=lambda r: np.expm1((a - 1.0) * np.log(r)) / (a - 1.0),
    )


_CLOSED = {
    "jensen-shannon": JENSEN_SHANNON,
    "mutual-information": MUTUAL_INFORMATION,
    "reverse-kl": REVERSE_KL,
    "le-cam": LE_CAM,
    "hellinger": HELLINGER,
    "chi-square": CHI_SQUARE,
    "neyman": NEYMAN,
}
