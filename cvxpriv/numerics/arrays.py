"""The state of a run: named arrays, each with a leading axis of starts.

Thirty starts of one problem are one state whose arrays have 30 as their first dimension; a single start is a state
with 1 there. Nothing else holds values while an algorithm runs.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar, get_args, get_origin

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
Values = Mapping[str, Array]
Scalar = TypeVar("Scalar", bound=np.generic)


def starts_in(state: Values) -> int:
    """Return the number of starts that a state holds.

    >>> starts_in({"u": np.zeros((30, 3, 4))})
    30
    """
    return len(next(iter(state.values())))


def given_count(init: object) -> int:
    """Return the number of starts in `init`, 0 where it is None, before it is read: too many are refused at once."""
    if init is None:
        return 0
    try:
        several = isinstance(init, (list, tuple))
        shape = (len(init), *np.shape(init[0])) if several else np.shape(init)  # type: ignore[arg-type,index,call-overload]
    except Exception:  # what is no mechanism is refused where it is read
        return 1
    return int(shape[0]) if len(shape) == 3 else 1


def take(state: Values, index: npt.NDArray[np.intp]) -> dict[str, Array]:
    """Return the starts in `index` as a state of their own (a copy, unless `index` is all of them in order)."""
    if index.size == starts_in(state) and np.array_equal(index, np.arange(index.size)):
        return dict(state)
    return {name: array[index] for name, array in state.items()}


def put(state: Values, index: npt.NDArray[np.intp], part: Values) -> dict[str, Array]:
    """Return `state` with the starts in `index` replaced by those of `part`; the arguments stay as they were."""
    whole = starts_in(state)
    if index.size == whole and np.array_equal(index, np.arange(whole)):
        return {**state, **part}
    result = dict(state)
    for name, array in part.items():
        result[name] = result[name].copy() if name in result else np.full((whole, *array.shape[1:]), np.nan)
        result[name][index] = array
    return result


def single(state: Values, start: int) -> dict[str, Array]:
    """Return one start without its leading axis, in the form that a block's declaration sees."""
    return {name: array[start] for name, array in state.items()}


def stack(parts: list[dict[str, Any]]) -> dict[str, Array]:
    """Return the state whose starts are `parts`, each without a leading axis."""
    return {name: np.stack([np.asarray(part[name], dtype=float) for part in parts]) for name in parts[0]}


def worst(figures: Sequence[float]) -> float:
    """Return the largest of figures >= 0; inf where one is no finite number: `max` passes over NaN.

    >>> worst([0.5, float("nan")])
    inf
    """
    return float(max(figures)) if math.isfinite(sum(figures)) else math.inf


def relative_residual(figures: Sequence[float], scales: Sequence[float]) -> float:
    """Return the largest figure over its scale, which is at least 1; inf where one of either is no finite number."""
    if worst(scales) == math.inf:
        return math.inf
    return worst([figure / max(1.0, scale) for figure, scale in zip(figures, scales, strict=True)])


def each_start(update: Callable[[Values], Mapping[str, Any]]) -> Callable[[Values], dict[str, Array]]:
    """Return an update of one start as one of all starts."""

    def every(state: Values) -> dict[str, Array]:
        if starts_in(state) == 1:  # without a copy
            return {name: np.asarray(value, dtype=float)[None] for name, value in update(single(state, 0)).items()}
        return stack([dict(update(single(state, start))) for start in range(starts_in(state))])

    return every


def measured_each(figures: Callable[[Values], Mapping[str, float]]) -> Callable[[Values], dict[str, Array]]:
    """Return the figures of one start as those of all starts."""

    def every(state: Values) -> dict[str, Array]:
        several = [figures(single(state, start)) for start in range(starts_in(state))]
        return {name: np.array([each[name] for each in several]) for name in several[0]}

    return every


#: Most cells of columns that are worked on at once: with their costs and rows they take a few megabytes.
CELLS_AT_ONCE = 200_000


def parts(symbols: int, columns: int) -> list[slice]:
    """Return slices of that many columns, each of at most `CELLS_AT_ONCE` cells."""
    ends = [*range(0, columns, max(1, CELLS_AT_ONCE // max(1, symbols))), columns]
    return [slice(*two) for two in pairwise(ends)]


def read_only(array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """Return the same array, closed to writing."""
    array.setflags(write=False)
    return array


def unaliased(kind: Any) -> Any:
    """Return the type that an alias of a `type` statement stands for, as numpy has them from 2.5; others as they are.

    >>> get_origin(unaliased(Array))
    <class 'numpy.ndarray'>
    """
    meant = getattr(get_origin(kind) or kind, "__value__", None)
    if meant is None:
        return kind
    return unaliased(meant[get_args(kind)] if get_args(kind) else meant)
