"""Exact draws: a rounded Gaussian number or vector, a coin and a choice, as if known to infinite precision.

A random real number is a stream of bits. Its first 64 decide nearly always what it is rounded to: a double is computed
from them with a bound of its error, and where that bound leaves a doubt, more bits are read and the same number is
computed more exactly, until there is none. So the answer is that of the real number, not of a double, and its law is
exactly that of the rounded real number.

This rests on: `scipy.special.ndtri` and `erfinv` right to 2^-44 (they are to 2^-50; a test compares them), NumPy's
logarithm to 2^-46, and mpmath's functions to all but 30 of the bits that they are asked for.
"""

from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import erfinv, expit, ndtri

from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.packages import mpmath

#: Maps a number n to n random 64-bit words.
Words = Callable[[int], npt.NDArray[np.uint64]]
Integers = npt.NDArray[np.int64]

#: Bits of a word, and of the tail of a half-normal that is drawn from it.
BITS, TAIL = 64, 63
#: Error bounds of doubles: of a Gaussian number z relative to 1 + |z|, and of a vector relative to its norm.
NORMAL_ERROR, BALL_ERROR = 2.0**-44, 2.0**-42
#: Least word with enough leading bits for a double: below it more bits are read.
LEAST = 2**46
#: Whole numbers are clipped here: this moves no two apart, and leaves room for sums.
MOST = 2**61


def rounded_normals(words: Words, sigma: float, count: int) -> Integers:
    """Return `count` independent numbers of N(0, sigma^2), each rounded to the nearest whole number.

    `sigma`: > 0; as this double stands for.

    >>> draw = np.random.default_rng(0).bit_generator.random_raw
    >>> bool(abs(rounded_normals(draw, 2.0**20, 1000).std() / 2.0**20 - 1.0) < 0.1)
    True
    """
    drawn = words(count)
    tails = drawn >> np.uint64(1)
    size = sigma * -ndtri((tails.astype(np.float64) + 0.5) * 2.0**-BITS)
    error = NORMAL_ERROR * (sigma + size)
    found = np.floor(size + 0.5)
    doubt = (np.floor(size + 0.5 - error) != np.floor(size + 0.5 + error)) | (tails < LEAST)
    for place in np.flatnonzero(doubt):
        found[place] = _settled_normal(words, int(tails[place]), sigma)
    whole = np.minimum(found, float(MOST)).astype(np.int64)
    return whole * _signs(drawn).astype(np.int64)


def rounded_balls(words: Words, scale: float, count: int, dimension: int) -> Integers:
    """Return vectors of density proportional to exp(-||x||/scale), each entry rounded to the nearest whole number.

    The direction is uniform, and the norm a sum of `dimension` exponentials.

    `scale`: Scale of the noise, > 0; the exact value of this double.
    Returns (count, dimension).
    """
    drawn, vectors, error, doubt = _balls(words, scale, count, dimension)
    found = np.floor(vectors + 0.5)
    doubt |= (np.floor(vectors + 0.5 - error) != np.floor(vectors + 0.5 + error)).any(axis=1)
    for place in np.flatnonzero(doubt):
        found[place] = _settled_ball(words, drawn[:, place], scale, rounded=True)
    return np.clip(found, -float(MOST), float(MOST)).astype(np.int64)


def balls(words: Words, scale: float, count: int, dimension: int) -> Array:
    """Return such vectors as doubles, (count, dimension); `BALL_ERROR` bounds their error relative to the norm."""
    drawn, vectors, _, doubt = _balls(words, scale, count, dimension)
    for place in np.flatnonzero(doubt):
        vectors[place] = _settled_ball(words, drawn[:, place], scale, rounded=False)
    return vectors


def exact_coins(words: Words, epsilon: float, count: int) -> npt.NDArray[np.bool_]:
    """Return independent coins that are True with probability 1/(1 + exp(epsilon)), exactly.

    >>> coins = exact_coins(np.random.default_rng(0).bit_generator.random_raw, 1.0, 10_000)
    >>> bool(abs(coins.mean() - 0.2689) < 0.02)
    True
    """
    drawn = words(count)
    chance = float(expit(-epsilon)) * 2.0**BITS
    error = NORMAL_ERROR * chance + 2.0**12  # the second, of a word as a double
    values = drawn.astype(np.float64)
    coins = values < chance
    for place in np.flatnonzero(np.abs(values - chance) <= error):
        coins[place] = _settled_coin(words, int(drawn[place]), epsilon)
    return coins


def exact_choices(words: Words, drawn: npt.NDArray[np.uint64], weights: Array) -> Integers:
    """Return a place for each word, (k,): each with exactly the chance that its weight has in the sum of all.

    `drawn`, (k,): The first words. More come from `words` where they leave a doubt.
    `weights`, (n,): Weights >= 0, not all 0, as these doubles stand for; a place of weight 0 is never chosen.

    >>> draw = np.random.default_rng(0).bit_generator.random_raw
    >>> np.bincount(exact_choices(draw, draw(10_000), np.array([0.5, 0.0, 1.5]))).tolist()
    [2524, 0, 7476]
    """
    ends = np.cumsum(weights)
    ends /= ends[-1]
    values = (drawn >> np.uint64(11)).astype(np.float64) * 2.0**-53
    error = (weights.size + 4) * 2.0**-51  # of the sums, and of a word cut to 53 bits
    found = np.searchsorted(ends, values - error, side="right").astype(np.int64)
    for place in np.flatnonzero(found != np.searchsorted(ends, values + error, side="right")):
        found[place] = _settled_choice(words, int(drawn[place]), weights)
    return found


def half_normals(drawn: npt.NDArray[np.uint64]) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
    """Return |z| and the sign of Gaussian numbers from words, and a mask where |z| is not right to 2^-44 of itself."""
    tails = drawn >> np.uint64(1)
    inner = np.uint64(2**TAIL - 1) - tails
    centre = erfinv((inner.astype(np.float64) + 0.5) * 2.0**-TAIL) * np.sqrt(2.0)
    outer = -ndtri((tails.astype(np.float64) + 0.5) * 2.0**-BITS)
    size = np.where(tails > np.uint64(2 ** (TAIL - 1)), centre, outer)
    return size, _signs(drawn), np.minimum(tails, inner) < LEAST


def _balls(
    words: Words, scale: float, count: int, dimension: int
) -> tuple[npt.NDArray[np.uint64], Array, Array, npt.NDArray[np.bool_]]:
    """Return the words, the vectors as doubles, their error bounds, and the vectors whose words are too few."""
    drawn = words(2 * count * dimension).reshape(2, count, dimension)
    normals, signs, doubt = half_normals(drawn[0])
    exponentials, short = _exponentials(drawn[1])
    norms = scale * exponentials.sum(axis=1, keepdims=True)
    vectors = norms * signs * normals / np.linalg.norm(normals, axis=1, keepdims=True)
    return drawn, np.asarray(vectors), np.asarray(BALL_ERROR * norms), np.asarray((doubt | short).any(axis=1))


def _exponentials(drawn: npt.NDArray[np.uint64]) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return -log of a uniform number from words, and a mask where it is not right to 2^-44 of itself."""
    inner = np.uint64(2**BITS - 1) - drawn
    low = -np.log((drawn.astype(np.float64) + 0.5) * 2.0**-BITS)
    high = -np.log1p(-np.minimum((inner.astype(np.float64) + 0.5) * 2.0**-BITS, 0.75))
    return np.where(drawn > np.uint64(2 ** (BITS - 1)), high, low), np.minimum(drawn, inner) < LEAST


def _signs(drawn: npt.NDArray[np.uint64]) -> Array:
    return np.where((drawn & np.uint64(1)).astype(bool), 1.0, -1.0)


def _settled_normal(words: Words, tail: int, sigma: float) -> float:
    """Return the rounded size of the Gaussian number whose tail probability begins with these bits."""
    bits = BITS
    while True:
        if tail >= LEAST:
            size = -float(ndtri((2 * tail + 1) / 2 ** (bits + 1)))
            error = NORMAL_ERROR * sigma * (1.0 + size)
            low, high = (int(np.floor(sigma * size + 0.5 + sign * error)) for sign in (-1.0, 1.0))
            while low < high:
                middle = (low + high) // 2
                match _beyond(tail, bits, sigma, middle):
                    case True:
                        low = middle + 1
                    case False:
                        high = middle
                    case None:
                        break
            else:
                return float(low)
        tail, bits = tail << BITS | int(words(1)[0]), bits + BITS


def _beyond(tail: int, bits: int, sigma: float, whole: int) -> bool | None:
    """Return whether the size is above whole + 1/2; None where the bits of its tail probability leave it open."""
    with mpmath.workprec(bits + 100):
        edge = mpmath.erfc((mpmath.mpf(whole) + 0.5) / mpmath.mpf(sigma) / mpmath.sqrt(2)) * mpmath.mpf(2) ** (bits - 1)
        slack = edge * mpmath.mpf(2) ** -(bits + 60)
        above, below = bool(tail + 1 <= edge - slack), bool(tail >= edge + slack)
    return True if above else False if below else None


def _settled_ball(words: Words, drawn: npt.NDArray[np.uint64], scale: float, *, rounded: bool) -> Array:
    """Return the vector, rounded or not, whose Gaussian and uniform numbers begin with these words, (2, dimension)."""
    signs = _signs(drawn[0])
    normals, uniforms = [word >> 1 for word in drawn[0].tolist()], drawn[1].tolist()
    bits = BITS
    while True:
        for own in (normals, uniforms):
            own[:] = [word << 3 * BITS | _together(words(3).tolist()) for word in own]
        bits += 3 * BITS
        known = all(_known(own, bits - 1) for own in normals) and all(_known(own, bits) for own in uniforms)
        with mpmath.workprec(bits + 100):
            sizes = [_precise_normal(tail, bits) for tail in normals]
            norm = mpmath.mpf(scale) * -sum(mpmath.log((mpmath.mpf(word) + 0.5) / 2**bits) for word in uniforms)
            length = mpmath.sqrt(sum(size**2 for size in sizes))
            entries = [norm * size / length for size in sizes]
            if known and not rounded:
                return np.asarray(signs * np.array([float(entry) for entry in entries]))
            slack = norm * (1 + 1 / length) * mpmath.mpf(2) ** -100
            whole = [mpmath.floor(entry + 0.5 - slack) for entry in entries]
            if known and whole == [mpmath.floor(entry + 0.5 + slack) for entry in entries]:
                return np.asarray(signs * np.array([float(one) for one in whole]))


def _together(words: list[int]) -> int:
    return sum(word << BITS * place for place, word in enumerate(words))


def _known(word: int, bits: int) -> bool:
    """Return whether a probability of so many bits, and its complement, are known to 150 leading bits."""
    return int(min(word, 2**bits - 1 - word)).bit_length() >= 150


def _precise_normal(tail: int, bits: int) -> Any:
    """Return the size of a Gaussian number of this tail probability to some 160 bits, by Newton's method."""
    chance = (mpmath.mpf(tail) + 0.5) / mpmath.mpf(2) ** bits
    inner = mpmath.mpf(1) - 2 * chance
    start = float(erfinv(float(inner))) * np.sqrt(2.0) if chance > 0.25 else -float(ndtri(float(chance)))
    size = mpmath.mpf(start)
    for _ in range(2):
        size += (mpmath.erfc(size / mpmath.sqrt(2)) / 2 - chance) / mpmath.npdf(size)
    return size


def _settled_coin(words: Words, word: int, epsilon: float) -> bool:
    bits = BITS
    while True:
        with mpmath.workprec(bits + 100):
            edge = mpmath.mpf(2) ** bits / (1 + mpmath.exp(mpmath.mpf(epsilon)))
            slack = edge * mpmath.mpf(2) ** -(bits + 60)
            if word + 1 <= edge - slack:
                return True
            if word >= edge + slack:
                return False
        word, bits = word << BITS | int(words(1)[0]), bits + BITS


def _settled_choice(words: Words, word: int, weights: Array) -> int:
    ratios = [one.as_integer_ratio() for one in weights.tolist()]
    common = max(below for _, below in ratios)
    ends = list(accumulate(above * (common // below) for above, below in ratios))
    bits = BITS
    while True:
        least, most = word * ends[-1] >> bits, (word + 1) * ends[-1] - 1 >> bits
        if (place := bisect_right(ends, least)) == bisect_right(ends, most):
            return place
        word, bits = word << BITS | int(words(1)[0]), bits + BITS
