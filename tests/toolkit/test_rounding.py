"""The bound of what rounding does to a sum: never exceeded, the formula in exact fractions, and where it ends."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce

import numpy as np
import pytest

from cvxpriv.errors import ModelError
from cvxpriv.numerics.rounding import UNIT, sum_rounding


@pytest.mark.parametrize("terms", [1, 3, 1000, 2**30])
def test_the_bound_is_highams_in_exact_fractions(terms: int) -> None:
    u = Fraction(1, 2**53)
    assert float(u) == UNIT
    assert sum_rounding(terms) == pytest.approx(float(terms * u / (1 - terms * u)), rel=1e-15)


def test_a_sum_in_the_worst_order_stays_within_it_and_needs_a_part_of_it() -> None:
    # Every addition of a half unit to 1 rounds down: all of them are lost.
    numbers = [1.0] + [UNIT] * 1000
    off = sum(Fraction(one) for one in numbers) - Fraction(reduce(lambda one, other: one + other, numbers))
    part = float(off / sum(Fraction(one) for one in numbers))
    assert 0.99 * sum_rounding(1001) < part <= sum_rounding(1001)


def test_so_many_terms_that_nothing_is_known_are_refused() -> None:
    assert sum_rounding(2**52 - 1) == pytest.approx(1.0, rel=1e-12)
    for terms in (2**52, 2**53):
        with pytest.raises(ModelError, match="too many"):
            sum_rounding(terms)
    assert np.isfinite(sum_rounding(0))
