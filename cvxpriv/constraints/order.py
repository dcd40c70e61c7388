"""Constraints on the shape of a mechanism: the same under a permutation, or ordered as its inputs are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxpriv.blocks.declaration import Known
from cvxpriv.constraints.documents import kept
from cvxpriv.constraints.ready import ReadyConstraint
from cvxpriv.errors import DataError, ModelError, shown
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.doors import door

Permutation = npt.NDArray[np.intp]


@door
@kept
def symmetric(inputs: Sequence[int], outputs: Sequence[int]) -> ReadyConstraint:
    """Return the constraint p(outputs[u] | inputs[y]) = p(u|y) for all y, u. Its violation is in units of probability.

    Both cells of a pair that the permutations exchange are equal, and so are all cells of a longer cycle; each cycle
    gives one equation less than it has cells.

    Parameters
    ----------
    inputs, outputs : sequence of int
        Permutations of the numbers 0 to |inputs| - 1, and 0 to |outputs| - 1.

    Raises
    ------
    DataError, ModelError
        One is no permutation, or neither moves anything; when applied, a length does not fit.

    Examples
    --------
    >>> swap = symmetric([1, 0], [1, 0])
    >>> swap, round(swap.violation([[0.75, 0.25], [0.5, 0.5]]), 6)
    (symmetric(inputs=[1, 0], outputs=[1, 0]), 0.25)
    """
    rows, columns = _permutation("inputs", inputs), _permutation("outputs", outputs)
    if (rows == np.arange(rows.size)).all() and (columns == np.arange(columns.size)).all():
        raise DataError("inputs and outputs move nothing: give at least one permutation that moves a symbol")
    name = f"symmetric(inputs={rows.tolist()}, outputs={columns.tolist()})"
    return ReadyConstraint(name, partial(_cycles_form, rows, columns), partial(_cycles_excess, rows, columns))


def _permutation(argument: str, values: Sequence[int]) -> Permutation:
    numbers = np.asarray(values)
    if (
        numbers.ndim != 1
        or numbers.size == 0
        or numbers.dtype.kind not in "iu"
        or not np.array_equal(np.sort(numbers), np.arange(numbers.size))
    ):
        raise DataError(f"{argument}={shown(values)}: expected a permutation of 0, 1, ..., such as [1, 0, 2]")
    return numbers.astype(np.intp)


def _cycles_form(
    inputs: Permutation, outputs: Permutation, mechanism: cp.Expression, known: Known | None
) -> list[cp.Constraint]:
    if (inputs.size, outputs.size) != mechanism.shape:
        raise ModelError(
            f"inputs and outputs permute {inputs.size} and {outputs.size} symbols, the mechanism has shape "
            f"{mechanism.shape}: name every symbol, also those that stay"
        )
    # A cell's cycle is called by its smallest number: each other cell equals that one.
    number = np.arange(mechanism.size).reshape(mechanism.shape)
    cycle, image = number, number[np.ix_(inputs, outputs)]
    while not np.array_equal(image, number):
        cycle, image = np.minimum(cycle, image), image[np.ix_(inputs, outputs)]
    moved = np.nonzero(cycle != number)
    first = np.unravel_index(cycle[moved], mechanism.shape)
    return [mechanism[moved] == mechanism[first]]


def _cycles_excess(inputs: Permutation, outputs: Permutation, mechanism: Array, known: Known | None) -> float:
    return float(np.abs(mechanism[np.ix_(inputs, outputs)] - mechanism).max())


@door
@kept
def monotone(increasing: bool = True) -> ReadyConstraint:
    """Return the constraint that a larger input makes larger outputs likelier, both in the order of rows and columns.

    This is stochastic monotonicity: P(U <= u | y) falls from each input y to the next, for every u; with `increasing`
    False it rises. Its violation is in units of probability.

    Examples
    --------
    >>> constraint = monotone()
    >>> constraint, round(constraint.violation([[0.25, 0.75], [0.5, 0.5]]), 6)
    (monotone(increasing=True), 0.25)
    """
    if not isinstance(increasing, bool):
        raise ModelError(f"increasing={shown(increasing)}: expected True or False")
    return ReadyConstraint(
        f"monotone(increasing={increasing})", partial(_order_form, increasing), partial(_order_excess, increasing)
    )


def _order_form(increasing: bool, mechanism: cp.Expression, known: Known | None) -> list[cp.Constraint]:
    if min(mechanism.shape) < 2:
        raise ModelError(f"monotone: a mechanism of shape {mechanism.shape} has nothing to order; leave it out")
    cumulative = cp.cumsum(mechanism, axis=1)[:, :-1]
    lower, upper = (cumulative[1:], cumulative[:-1]) if increasing else (cumulative[:-1], cumulative[1:])
    return [lower <= upper]


def _order_excess(increasing: bool, mechanism: Array, known: Known | None) -> float:
    rise = np.diff(np.cumsum(mechanism, axis=1)[:, :-1], axis=0)
    return float((rise if increasing else -rise).max())
