"""The privacy funnel, PF (1): minimise I(S;Y) over P(Y|X) subject to I(X;Y) >= R."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.blocks.declaration import Constraint
from cvxpriv.constraints import ReadyConstraint
from cvxpriv.errors import ModelError, shown, suggest
from cvxpriv.numerics.arguments import real_number
from cvxpriv.numerics.arrays import Array
from cvxpriv.tables.information import mutual_information
from cvxpriv.tables.joint import JointTable

RATE_UNITS = ("fraction", "nats", "bits")

#: Distance above H(X) at which a rate still counts as H(X): the rounding of |X| logarithms in another order.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Problem:
    """The data of PF (1), validated.

    `table`: P(S, X), (|S|, |X|).
    `rate`: R in nats, 0 <= R <= H(X).
    `size_y`: |Y|.
    """

    table: JointTable
    rate: float
    size_y: int

    @property
    def p_x(self) -> Array:
        """P(X), (|X|,)."""
        return self.table.p_x

    @property
    def p_s_given_x(self) -> Array:
        """P(S|X), (|S|, |X|), columns sum to 1."""
        return self.table.p_s_given_x

    @property
    def target(self) -> float:
        """R^ = R + sum p log p, the paper's right side of (2d)."""
        return self.rate - self.table.entropy_x

    @classmethod
    def of(cls, p_sx: JointTable | ArrayLike, rate: float, rate_unit: str, size_y: int | None) -> Problem:
        """Validate what a user passes."""
        table = p_sx if isinstance(p_sx, JointTable) else JointTable.from_array(p_sx)
        nats = _rate_in_nats(rate, rate_unit, table.entropy_x)
        symbols = table.p_x.size + 1 if size_y is None else size_y
        most = min(float(np.log(symbols)), table.entropy_x)
        if nats > most + ROUNDING:
            raise ModelError(
                f"size_y={symbols} symbols carry at most {most:.6g} nats, less than rate={nats:.6g} nats: "
                "raise size_y or lower rate"
            )
        return cls(table, nats, int(symbols))

    def leakage(self, mechanism: Array) -> float:
        """Return I(S;Y) in nats of a mechanism P(Y|X), (|X|, |Y|): the objective of PF (1)."""
        return mutual_information(self.p_s_given_x @ (self.p_x[:, None] * mechanism))

    def utility(self, mechanism: Array) -> float:
        """Return I(X;Y) in nats of a mechanism P(Y|X), (|X|, |Y|)."""
        return mutual_information(self.p_x[:, None] * mechanism)


def _rate_in_nats(rate: float, unit: str, entropy_x: float) -> float:
    if unit not in RATE_UNITS:
        raise ModelError(f"rate_unit={unit!r} is not a unit: {suggest(str(unit), RATE_UNITS)}")
    number = real_number(rate, "rate", f"a rate in {unit}")
    nats = number * {"fraction": entropy_x, "nats": 1.0, "bits": float(np.log(2.0))}[unit]
    if not np.isfinite(nats) or nats < 0.0:
        raise ModelError(f"rate={rate!r} is not a rate: choose 0 <= rate <= H(X)={entropy_x:.6g} nats")
    if nats > entropy_x * (1.0 + ROUNDING):
        remedy = "rate <= 1" if unit == "fraction" else f'rate <= {entropy_x:.6g} nats or rate_unit="fraction"'
        raise ModelError(
            f"rate={shown(rate)} {unit} is {nats:.6g} nats and exceeds H(X)={entropy_x:.6g} nats by "
            f"{nats - entropy_x:.1e}: choose {remedy}"
        )
    return min(nats, entropy_x)


#: Kinds of constraints that treat all outputs alike, and allow any number of them.
ON_COLUMNS = (
    *("local_differential_privacy", "local_information_privacy", "pointwise_leakage"),
    *("maximal_leakage", "total_variation_to_prior"),
)


def usual_size(size_x: int, constraints: Sequence[tuple[str, Constraint]]) -> int:
    """Return |X| + 1, and one more for each constraint on one sum over all outputs.

    A vertex of the linear program over posteriors uses as many of them as it has rows: P(X), the rate, and the sums.
    Where any constraint names outputs, or is of a kind that is not known, it is |X| + 1: the constraint may have been
    written for so many. The bound on the total variation of each symbol of X is |X| sums, and is not counted either.
    """
    ready = [constraint for _, constraint in constraints if isinstance(constraint, ReadyConstraint)]
    if len(ready) < len(constraints) or any(one.kind not in ON_COLUMNS for one in ready):
        return size_x + 1
    sums = [one for one in ready if one.kind == "maximal_leakage" or one.parameters.get("average", False)]
    return size_x + 1 + len(sums)
