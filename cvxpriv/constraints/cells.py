"""Constraints on single cells of a mechanism: none of them couples its rows."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.blocks.declaration import Known
from cvxpriv.constraints.documents import kept
from cvxpriv.constraints.ready import ReadyConstraint, finite_matrix, number, ready, require_shape
from cvxpriv.errors import DataError, ModelError, shown, suggest
from cvxpriv.numerics.arguments import is_whole
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.doors import door

#: An input, by number from 0 or by name, and an output by number.
Cell: TypeAlias = tuple[int | str, int]

#: Amount above 1 that a row of floors or fixed values may sum to: the rounding of a sum.
ROUNDING = 1e-12


@door
@kept
def floor(value: float | ArrayLike) -> ReadyConstraint:
    """Return the constraint p(u|y) >= value. Its violation is in units of probability.

    Parameters
    ----------
    value : float, or array (|inputs|, |outputs|)
        Lower bound of each probability, from 0 to 1.

    Raises
    ------
    DataError, ModelError
        `value` is no number from 0 to 1 and no matrix of such numbers; when applied, the shapes differ, or a row's
        floors sum to more than 1.

    Examples
    --------
    >>> constraint = floor(0.01)
    >>> constraint, constraint.violation([[1.0, 0.0]])
    (floor(0.01), 0.01)
    """
    if np.ndim(value) == 0:
        least: float | Array = number("floor", value, 0.0, 1.0, "a probability, for example 0.01")
        name = f"floor({least:g})"
    else:
        least = finite_matrix("floor", value, "a matrix of probabilities")
        _require_probabilities("floor", least)
        name = f"floor({least.shape[0]} x {least.shape[1]} matrix)"
    return ready(name, _floor_form, _floor_excess, least)


def _floor_form(least: float | Array, mechanism: cp.Expression, known: Known | None) -> list[cp.Constraint]:
    if isinstance(least, np.ndarray):
        require_shape("floor", least.shape, mechanism)
    total = np.broadcast_to(least, mechanism.shape).sum(axis=1)
    if total.max() > 1.0 + ROUNDING:
        row = int(total.argmax())
        raise ModelError(
            f"floor: row {row} of {mechanism.shape[1]} outputs would sum to at least {total[row]:.6g}, more than 1; "
            f"lower it, for example to {1.0 / mechanism.shape[1]:.6g} at most, or take fewer outputs"
        )
    return [mechanism >= least]


def _floor_excess(least: float | Array, mechanism: Array, known: Known | None) -> float:
    return float((least - mechanism).max())


@door
@kept
def forbidden(cells: Iterable[Cell]) -> ReadyConstraint:
    """Return the constraint p(u|y) = 0 for the cells (y, u) given. Its violation is in units of probability.

    Parameters
    ----------
    cells : iterable of (int or str, int), or array of bool (|inputs|, |outputs|)
        Pairs of an input, by number from 0 or by label ("smoker, old" or "smoker|old"), and an output, by number; or a
        mask.

    Raises
    ------
    DataError, ModelError
        There is no cell, one is no such pair or is named twice; when applied, one lies outside the mechanism, no input
        has that label, or a row has no cell left.

    Examples
    --------
    >>> forbidden([(0, 1), (2, 0)]), forbidden([("smoker, old", 2)])
    (forbidden([(0, 1), (2, 0)]), forbidden([('smoker, old', 2)]))
    """
    if isinstance(cells, np.ndarray) and cells.dtype == bool:
        if cells.ndim != 2:
            raise DataError(f"cells has shape {cells.shape}: expected a mask, (|inputs|, |outputs|)")
        cells = [(int(row), int(column)) for row, column in np.argwhere(cells)]
    if isinstance(cells, Mapping):
        raise DataError(f"forbidden: cells={shown(cells)} has values: pass pairs alone, or call fixed(...)")
    return _fixed_constraint("forbidden", dict.fromkeys(_cells("forbidden", cells), 0.0))


@door
@kept
def fixed(values: Mapping[Cell, float] | Iterable[tuple[int | str, int, float]]) -> ReadyConstraint:
    """Return the constraint p(u|y) = value for the cells (y, u) given. Its violation is in units of probability.

    Parameters
    ----------
    values : mapping of (int or str, int) to float, or iterable of (int or str, int, float)
        Maps an input (by number from 0 or by label) and an output (by number) to a probability.

    Raises
    ------
    DataError, ModelError
        There is no cell, one is no such pair, or a value is no number from 0 to 1; when applied, a cell lies outside
        the mechanism, no input has that label, or a row cannot sum to 1.

    Examples
    --------
    >>> constraint = fixed({(0, 0): 0.5})
    >>> constraint, constraint.violation([[0.25, 0.75]])
    (fixed({(0, 0): 0.5}), 0.25)
    """
    if not isinstance(values, Mapping):
        try:
            triples = [(row, column, value) for row, column, value in values]
        except (TypeError, ValueError):
            raise DataError(
                f"values={shown(values)}: expected a mapping of cells to probabilities, such as {{(0, 1): 0.5}}"
            ) from None
        _cells("fixed", [(row, column) for row, column, _ in triples])
        values = {(row, column): value for row, column, value in triples}
    wanted = _cells("fixed", values)
    return _fixed_constraint(
        "fixed",
        {
            cell: number(f"values[{cell}]", value, 0.0, 1.0, "a probability, for example 0.5")
            for cell, value in zip(wanted, values.values(), strict=True)
        },
    )


def _fixed_constraint(kind: str, values: dict[Cell, float]) -> ReadyConstraint:
    shown = list(values) if kind == "forbidden" else values
    name = f"{kind}({shown})" if len(values) <= 4 else f"{kind}({len(values)} cells)"
    return ready(name, _fixed_form, _fixed_excess, kind, values)


def _fixed_form(
    kind: str, values: dict[Cell, float], mechanism: cp.Expression, known: Known | None
) -> list[cp.Constraint]:
    wanted = np.full(mechanism.shape, np.nan)
    for (row, column), value in _numbered(kind, values, known).items():
        if row >= wanted.shape[0] or column >= wanted.shape[1]:
            raise ModelError(
                f"{kind}: cell {(row, column)} lies outside the mechanism of {wanted.shape[0]} inputs and "
                f"{wanted.shape[1]} outputs; numbers begin at 0"
            )
        wanted[row, column] = value
    totals, whole = np.nansum(wanted, axis=1), np.asarray(np.isfinite(wanted).all(axis=1))
    wrong = (totals > 1.0 + ROUNDING) | (whole & (np.abs(totals - 1.0) > ROUNDING))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        free = "with no cell left free" if whole[row] else "with other cells free"
        raise ModelError(
            f"{kind}: row {row} would hold {totals[row]:.6g} {free}, and has to sum to 1; leave a cell out"
        )
    rows, columns = np.nonzero(~np.isnan(wanted))
    return [mechanism[rows, columns] == wanted[rows, columns]]


def _fixed_excess(kind: str, values: dict[Cell, float], mechanism: Array, known: Known | None) -> float:
    return max(abs(float(mechanism[cell]) - value) for cell, value in _numbered(kind, values, known).items())


def cell_values(constraint: ReadyConstraint, known: Known | None) -> dict[tuple[int, int], float]:
    """Return the values of a fixed or forbidden constraint, with every input by number."""
    given = constraint.parameters
    triples = given["values"] if "values" in given else [[*cell, 0.0] for cell in given["cells"]]
    return _numbered(constraint.kind, {(row, column): value for row, column, value in triples}, known)


def _numbered(kind: str, values: Mapping[Cell, float], known: Known | None) -> dict[tuple[int, int], float]:
    """Return values with every input by number."""
    numbers: dict[str, int] = {}
    barred: list[str] = []
    if any(isinstance(row, str) for row, _ in values):
        labels = () if known is None else known.labels
        if not labels:
            raise ModelError(f"{kind}: inputs are named, and no labels are known: name them by number")
        barred = [label.replace(", ", "|") for label in labels]
        numbers = {label: row for row, label in (*enumerate(barred), *enumerate(labels))}
    found: dict[tuple[int, int], float] = {}
    for (row, column), value in values.items():
        if isinstance(row, str) and row not in numbers:
            raise ModelError(f"{kind}: no input is called {row!r}; {suggest(row, barred)}")
        cell = (numbers[row] if isinstance(row, str) else row, column)
        if cell in found:
            raise ModelError(f"{kind}: cell {cell} is named twice, by number and by its label; name each once")
        found[cell] = value
    return found


def _cells(kind: str, cells: Iterable[Cell]) -> list[Cell]:
    """Return cells as pairs of an input and an output, each named once."""
    try:
        pairs = [tuple(cell) for cell in cells]
    except TypeError:
        raise DataError(f"{kind}: cells={shown(cells)} are no pairs (input, output), such as [(0, 1)]") from None
    found: list[Cell] = []
    for pair in pairs:
        named = len(pair) == 2 and isinstance(pair[0], str) and pair[0] != ""
        if not (len(pair) == 2 and (named or _whole(pair[0])) and _whole(pair[1])):
            raise DataError(
                f"{kind}: cell {shown(pair)}: expected (input, output), whole numbers >= 0, or an input's label and one"
            )
        found.append((pair[0] if isinstance(pair[0], str) else int(pair[0]), int(pair[1])))
    if not found or len(set(found)) < len(found):
        twice = next((cell for cell in found if found.count(cell) > 1), None)
        raise DataError(
            f"{kind}: " + (f"cell {twice} is named twice" if found else "no cell is given") + "; name each once"
        )
    return found


def _whole(value: object) -> bool:
    return is_whole(value, 0)


def _require_probabilities(argument: str, matrix: Array) -> None:
    outside = (matrix < 0.0) | (matrix > 1.0)
    if outside.any():
        row, column = map(int, np.argwhere(outside)[0])
        raise DataError(f"{argument}[{row}, {column}]={matrix[row, column]:g}: expected a probability from 0 to 1")
