"""The bracketed root finder: against scipy's brentq, from any start, at singular ends, jumps and flat parts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.roots import Rows, increasing_root

RNG = np.random.default_rng(0)
SHIFT, POWER = RNG.normal(size=200) * 10.0 ** RNG.integers(-3, 4, size=200), RNG.uniform(0.3, 9.0, size=200)


def bent(t: Array, rows: Rows) -> tuple[Array, Array]:
    """sign(t - c) |t - c|^a + (t - c): steep or flat at its root."""
    off, a = t - SHIFT[rows], POWER[rows]
    with np.errstate(all="ignore"):
        return np.sign(off) * np.abs(off) ** a + off, a * np.abs(off) ** (a - 1.0) + 1.0


@pytest.mark.parametrize("start", [0.0, -1e6, 1e-9, 3e3])
def test_from_any_start_and_open_ends_the_root_is_right_to_the_last_bits(start: float) -> None:
    ends = np.full(200, np.inf)
    found = increasing_root(bent, -ends, ends, np.full(200, start))
    assert (np.abs(found - SHIFT) <= 4e-15 * np.maximum(1.0, np.abs(SHIFT))).all()


def test_it_finds_what_brentq_finds() -> None:
    level, weight = RNG.normal(size=50) * 10.0, 10.0 ** RNG.uniform(-4, 4, size=50)

    def gap(t: Array, rows: Rows) -> tuple[Array, Array]:
        return np.exp(t) + weight[rows] * t - level[rows], np.exp(t) + weight[rows]

    found = increasing_root(gap, np.full(50, -1e7), np.full(50, 50.0), np.zeros(50))
    for k in range(50):
        one = slice(k, k + 1)
        known = brentq(lambda t, one=one: gap(np.array([t]), one)[0][0], -1e7, 50.0, xtol=1e-14, rtol=1e-15)
        assert found[k] == pytest.approx(known, rel=1e-14, abs=1e-14)


def test_a_root_does_not_depend_on_the_others_of_its_batch() -> None:
    start, ends = RNG.normal(size=200), np.full(200, np.inf)
    together = increasing_root(bent, -ends, ends, start)
    for k in (0, 17, 199):
        alone = increasing_root(lambda t, _, k=k: bent(t, np.array([k])), -ends[:1], ends[:1], start[k : k + 1])
        assert alone[0] == together[k]


def test_an_end_is_the_answer_where_there_is_no_root_before_it() -> None:
    def line(t: Array, rows: Rows) -> tuple[Array, Array]:
        return t - 5.0, np.ones_like(t)

    low, high = np.array([0.0, 6.0, 2.0]), np.array([1.0, 9.0, 2.0])
    np.testing.assert_allclose(increasing_root(line, low, high, np.array([0.5, 8.0, 7.0])), [1.0, 6.0, 2.0], atol=1e-14)


def test_a_jump_and_a_slope_that_misleads_are_met_by_halving() -> None:
    def step(t: Array, rows: Rows) -> tuple[Array, Array]:
        return np.where(t < 0.3, -1.0, 1.0), np.full(t.shape, np.nan)

    assert increasing_root(step, -np.ones(1), np.ones(1), np.zeros(1))[0] == pytest.approx(0.3, abs=1e-15)


def test_infinite_values_tell_their_side_only() -> None:
    def walled(t: Array, rows: Rows) -> tuple[Array, Array]:
        with np.errstate(all="ignore"):
            return np.where(t <= 0.0, -np.inf, np.log(t) - 2.0), 1.0 / t

    found = increasing_root(walled, np.full(1, -10.0), np.full(1, np.inf), np.array([-3.0]))
    assert found[0] == pytest.approx(np.exp(2.0), rel=1e-15)


def test_a_value_that_is_close_enough_ends_the_search() -> None:
    asked = []

    def line(t: Array, rows: Rows) -> tuple[Array, Array]:
        asked.append(t.size)
        return t - 1.0, np.full(t.shape, 0.9)

    found = increasing_root(line, np.zeros(1), np.full(1, 2.0), np.full(1, 1.5), close=0.1)
    assert abs(found[0] - 1.0) <= 0.1
    assert len(asked) < 4


@pytest.mark.parametrize("root", [-1e-3, 3.0, 1e9])
def test_a_root_near_the_start_is_found_in_a_bracket_of_any_width(root: float) -> None:
    asked: list[float] = []

    def cubic(t: np.ndarray, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        asked.append(float(t[0]))
        return (t - root) ** 3, np.full(t.shape, np.nan)  # a slope that helps nobody

    found = increasing_root(cubic, np.full(1, -1e300), np.full(1, 1e300), np.full(1, 0.5))
    assert found[0] == pytest.approx(root, rel=1e-15, abs=1e-15)
    assert len(asked) <= 120  # halving alone would begin at 1e300: a thousand
