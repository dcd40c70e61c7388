"""Constraints that compare the rows of a mechanism: symmetry, order, and metric or Renyi privacy of every pair."""

from collections.abc import Sequence

import cvxpy as cp
import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from cvxpriv.blocks.declaration import Known
from cvxpriv.constraints.documents import kept
from cvxpriv.constraints.ready import ReadyConstraint, finite_matrix, number, pairs, ratio, ready
from cvxpriv.errors import DataError, ModelError, shown
from cvxpriv.numerics.arguments import real_numbers
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
    return ready(name, _cycles_form, _cycles_excess, rows, columns)


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
    return ready(f"monotone(increasing={increasing})", _order_form, _order_excess, increasing)


def _order_form(increasing: bool, mechanism: cp.Expression, known: Known | None) -> list[cp.Constraint]:
    if min(mechanism.shape) < 2:
        raise ModelError(f"monotone: a mechanism of shape {mechanism.shape} has nothing to order; leave it out")
    cumulative = cp.cumsum(mechanism, axis=1)[:, :-1]
    lower, upper = (cumulative[1:], cumulative[:-1]) if increasing else (cumulative[:-1], cumulative[1:])
    return [lower <= upper]


def _order_excess(increasing: bool, mechanism: Array, known: Known | None) -> float:
    rise = np.diff(np.cumsum(mechanism, axis=1)[:, :-1], axis=0)
    return float((rise if increasing else -rise).max())


@door
@kept
def metric_differential_privacy(epsilon: float, distance: ArrayLike) -> ReadyConstraint:
    """Return the constraint p(u|y) <= exp(epsilon d(y, y')) p(u|y') for all y, y', u (Chatzikokolakis and others 2013).

    Its violation is max p(u|y) - exp(epsilon d(y, y')) p(u|y'), in units of probability.

    Parameters
    ----------
    epsilon : float
        Privacy loss in nats per unit of distance, > 0.
    distance : array, (|inputs|, |inputs|)
        Distances d >= 0, with 0 on the diagonal, and inf between inputs that need not be alike.

    Raises
    ------
    DataError, ModelError
        An argument is none of this kind; when applied, the number of inputs differs.

    Examples
    --------
    >>> metric_differential_privacy(0.5, [[0, 1], [1, 0]])
    metric_differential_privacy(epsilon=0.5, 2 inputs)
    """
    limit = number("epsilon", epsilon, 0.0, np.inf, "a privacy loss in nats a unit of distance, for example 1.0")
    d = real_numbers(distance, "distance")
    finite_matrix("distance", np.where(np.isposinf(d), 0.0, d), "distances between inputs")
    if d.shape[0] != d.shape[1] or (d < 0.0).any() or np.diag(d).any():
        raise DataError("distance: expected a square matrix of numbers >= 0 with 0 on its diagonal")
    name = f"metric_differential_privacy(epsilon={limit:g}, {len(d)} inputs)"
    return ready(name, _metric_form, _metric_excess, limit, d)


def _metric_form(epsilon: float, d: Array, mechanism: cp.Expression, known: Known | None) -> list[cp.Constraint]:
    if len(d) != mechanism.shape[0]:
        raise ModelError(f"distance is between {len(d)} inputs, the mechanism has {mechanism.shape[0]}: name each once")
    one, other = pairs(len(d))
    near = np.isfinite(d[one, other])
    least = 1.0 / _allowed(epsilon, d[one, other][near])
    return [cp.multiply(least[:, None], mechanism[one[near]]) <= mechanism[other[near]]]


def _metric_excess(epsilon: float, d: Array, mechanism: Array, known: Known | None) -> float:
    near = np.isfinite(d)
    most = _allowed(epsilon, np.where(near, d, 0.0))
    return float((mechanism[:, None] - most[:, :, None] * mechanism)[near].max())


def _allowed(epsilon: float, d: Array) -> Array:
    with np.errstate(over="ignore"):  # a loss beyond all numbers counts as the largest, too
        return np.asarray(ratio(epsilon * d))


@door
@kept
def renyi_differential_privacy(order: float, epsilon: float) -> ReadyConstraint:
    """Return the constraint D_order(P(U|y) || P(U|y')) <= epsilon for all inputs y, y', Renyi's divergence in nats.

    D_a = log(sum_u p(u|y)^a p(u|y')^(1-a)) / (a - 1); power cones, with a variable for each pair and output. At order 1
    it is the Kullback-Leibler divergence; `local_differential_privacy` is the limit of large orders. Its violation is
    in nats.

    Parameters
    ----------
    order : float
        Order of Renyi's divergence, > 0.
    epsilon : float
        Bound of the divergence in nats, >= 0.

    Raises
    ------
    ModelError
        An argument is no such number.

    Examples
    --------
    >>> constraint = renyi_differential_privacy(2.0, 0.5)
    >>> constraint, round(constraint.violation([[0.8, 0.2], [0.2, 0.8]]), 6)  # log(0.64/0.2 + 0.04/0.8) - 0.5
    (renyi_differential_privacy(order=2, epsilon=0.5), 0.678655)
    """
    a = number("order", order, 1e-3, 1e3, "an order above 0, for example 2")
    limit = number("epsilon", epsilon, 0.0, np.inf, "a divergence in nats, for example 0.5")
    name = f"renyi_differential_privacy(order={a:g}, epsilon={limit:g})"
    return ready(name, _renyi_form, _renyi_excess, a, limit)


def _renyi_form(a: float, epsilon: float, mechanism: cp.Expression, known: Known | None) -> list[cp.Constraint]:
    one, other = pairs(mechanism.shape[0])
    p, q = mechanism[one], mechanism[other]
    if a == 1.0:
        return [cp.sum(cp.rel_entr(p, q), axis=1) <= epsilon]
    z, most = cp.Variable(p.shape), ratio((a - 1.0) * epsilon)
    x, y, w = (cp.vec(part, order="C") for part in (p, q, z))
    if a < 1.0:
        return [cp.PowCone3D(x, y, w, a), cp.sum(z, axis=1) >= most]
    return [cp.PowCone3D(w, y, x, 1.0 / a), cp.sum(z, axis=1) <= most]


def _renyi_excess(a: float, epsilon: float, mechanism: Array, known: Known | None) -> float:
    worst = 0.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for row in mechanism:
            terms = np.where(row > 0.0, row * (row / mechanism) ** (a - 1.0), 0.0)
            if a == 1.0:
                found = np.where(row > 0.0, row * np.log(row / mechanism), 0.0).sum(axis=1)
            else:
                found = np.log(terms.sum(axis=1)) / (a - 1.0)
            worst = max(worst, float(found.max()))
    return worst - epsilon
