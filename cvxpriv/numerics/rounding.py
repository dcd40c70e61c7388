"""Worst-case rounding of sums and products: bounds that hold for any order of summation."""

import numpy as np

from cvxpriv.errors import ModelError

#: Half the distance from 1 to the next double.
UNIT = float(np.finfo(float).eps) / 2.0


def sum_rounding(terms: int) -> float:
    """Return the largest error of a sum of so many doubles, as a part of the sum of their absolute values.

    terms u/(1 - terms u), with u the unit roundoff (Higham, "Accuracy and Stability of Numerical Algorithms", 2002,
    section 3.1). It holds for a sum of products too, where each product counts as one term more.

    >>> f"{sum_rounding(1000):.2e}"
    '1.11e-13'
    """
    part = terms * UNIT
    if part >= 0.5:
        raise ModelError(f"terms={terms!r} are too many for a bound of what rounding does")
    return part / (1.0 - part)
