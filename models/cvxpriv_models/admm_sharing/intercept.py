"""An intercept of a sharing model: a column of one number, which is nobody's data.

It is the last column of the first party. Without privacy its height of `TALL` makes its coefficient so small that the
square penalises the intercept with a millionth of its weight: as good as not at all, and in far fewer passes than a
party of its own takes (124 against 865 on Adult). Other penalties are no squares; there the column is a party of its
own, without one. A private fit has no bounded step for an unpenalised coefficient: there the height is 1, the
intercept is penalised like the rest, and it is inside the sensitivity of the first party's shares.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cvxpriv.errors import ModelError
from cvxpriv.learning.matrices import with_column
from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties import Penalty, convex_penalty

from .problem import Part

TALL = 1000.0


@dataclass(frozen=True)
class Intercept:
    """The place of a model's intercept.

    `height`: Value of its column.
    `own`: Whether that column is a party of its own, the last one; otherwise it is the last column of the first party.
    """

    height: float
    own: bool = False

    def split(self, coefficients: Sequence[Array]) -> tuple[list[Array], float]:
        """Return each party's coefficients without the intercept, and the intercept."""
        if self.own:
            return list(coefficients[:-1]), float(coefficients[-1][0]) * self.height
        return [coefficients[0][:-1], *coefficients[1:]], float(coefficients[0][-1]) * self.height


def with_intercept(
    parts: Sequence[Part], penalty: str | Penalty, *, private: bool
) -> tuple[list[Part], list[str | Penalty], Intercept]:
    """Return the parties' columns with an intercept's column, each party's penalty, and the intercept's place."""
    square = convex_penalty(penalty).ridge is not None
    if private and not square:
        raise ModelError(
            f"penalty={penalty!r} is no square, and a private intercept would be penalised by it: leave the "
            "intercept out, or take 'l2'"
        )
    each: list[str | Penalty] = [penalty] * len(parts)
    if square:
        found = Intercept(1.0 if private else TALL)
        return [with_column(parts[0], found.height), *parts[1:]], each, found
    ones = np.ones((parts[0].shape[0], 1))
    return [*parts, ones], [*each, "none"], Intercept(1.0, own=True)


def bounds_with_ones(bounds: Sequence[float], adjacency: str, rows: int) -> list[float]:
    """Return the public bound of each party, where the first one also has a private model's column of ones.

    `bounds`: Bounds of a party's part of any row, of any column, or of any entry, as `adjacency` says.
    """
    ones = {"column": float(np.sqrt(rows)), "cell": 1.0}
    first = max(bounds[0], ones[adjacency]) if adjacency in ones else float(np.hypot(bounds[0], 1.0))
    return [first, *bounds[1:]]
