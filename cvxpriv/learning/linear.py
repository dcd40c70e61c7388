"""A linear model in the form of every report: one coefficient per feature, and an intercept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvxpriv.numerics.arrays import Array


@dataclass(frozen=True, eq=False)
class LinearFit:
    """A linear model.

    `coefficients`, (d,): One coefficient per feature, in the order of the features.
    """

    coefficients: Array
    intercept: float = 0.0

    def margin(self, rows: Array) -> Array:
        """Return the predictions, one per row of (n, d)."""
        return np.asarray(rows @ self.coefficients + self.intercept)
