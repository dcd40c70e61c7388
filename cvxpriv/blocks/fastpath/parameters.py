"""Parameters' values, checked, and stacked as cvxpy's tensors want them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from cvxpy.reductions.cvx_attr2constr import lower_value, recover_value_for_leaf
from numpy.typing import NDArray

from cvxpriv.blocks.fastpath.compile import Compiled, value_of
from cvxpriv.blocks.fastpath.data import CONSTANT
from cvxpriv.errors import DataError, ModelError, suggest
from cvxpriv.numerics.arrays import Array

SIGN_TOLERANCE = 1e-10  # cvxpy's own, for a value that has to have a sign


@dataclass(frozen=True, eq=False)
class Entries:
    """The places of each Parameter's entries in the stacked vector.

    `spans`: (start, stop, shape).
    `stacked`, (1 + sum of sizes,): Written at each call of `stack`; the constant's place holds 1.
    `least`, `most`: Entries that must not be negative, or not positive.
    `reduced`: Parameters of which fewer entries are stored: symmetric and sparse ones.
    """

    parameters: Mapping[str, cp.Parameter]
    spans: Mapping[str, tuple[int, int, tuple[int, ...]]]
    stacked: Array
    least: NDArray[np.int64]
    most: NDArray[np.int64]
    reduced: Mapping[str, cp.Parameter]

    def held(self) -> dict[str, Any]:
        """Return the values that the Parameters hold; raises ModelError with the names of those that hold none."""
        values = {name: value_of(parameter) for name, parameter in self.parameters.items()}
        self._require([name for name, value in values.items() if value is not None])
        return values

    def stack(self, values: Mapping[str, npt.ArrayLike]) -> Array:
        """Return the stacked vector, valid until the next call; `FastProblem.solve` lists the refusals."""
        stacked = self.stacked
        for name, (start, stop, shape) in self.spans.items():
            if name not in values:
                self._require(values)
            given = values[name]
            value = np.asarray(given.toarray() if sp.issparse(given) else given)
            if value.shape != shape or value.dtype.kind not in "fiub":
                raise ModelError(
                    f"parameter {name!r} is {_described(value)}, expected real numbers of shape {shape}: "
                    "reshape it, or declare the Parameter with that shape"
                )
            stacked[start:stop] = self._lowered(name, value) if name in self.reduced else value.ravel(order="F")
        if len(values) != len(self.spans):
            unknown = next(name for name in values if name not in self.spans)
            raise ModelError(f"parameter {unknown!r} is not in the problem: {suggest(unknown, self.spans)}")
        if not np.isfinite(stacked).all():
            name, entry, wrong = self._first(~np.isfinite(stacked))
            raise DataError(f"parameter {name!r} has the entry {wrong} at {entry}: expected finite numbers")
        self._check_signs()
        return stacked

    def _lowered(self, name: str, value: NDArray[Any]) -> Array:
        """Return the entries that are stored of a value; raises ModelError where others would be lost."""
        parameter = self.reduced[name]
        lowered = np.asarray(lower_value(parameter, value), dtype=float).ravel(order="F")
        whole = np.asarray(recover_value_for_leaf(parameter, lowered, project=False))
        if np.abs(whole - value).max(initial=0.0) > SIGN_TOLERANCE * max(1.0, float(np.abs(value).max(initial=0.0))):
            kind = "sparse" if parameter.attributes["sparsity"] else "symmetric"
            raise ModelError(f"parameter {name!r} is not {kind} as declared: change the value or the declaration")
        return lowered

    def _require(self, present: Any) -> None:
        missing = [name for name in self.spans if name not in present]
        if missing:
            raise ModelError(f"no value for parameter {', '.join(map(repr, missing))}: pass one for every Parameter")

    def _check_signs(self) -> None:
        for places, sign, wanted in ((self.least, 1.0, ">= 0"), (self.most, -1.0, "<= 0")):
            if places.size and (sign * self.stacked[places]).min() < -SIGN_TOLERANCE:
                wrong = np.zeros(self.stacked.size, dtype=bool)
                wrong[places] = sign * self.stacked[places] < -SIGN_TOLERANCE
                name, entry, value = self._first(wrong)
                raise ModelError(
                    f"parameter {name!r} has the entry {value} at {entry}: it was declared {wanted}; "
                    "change the value or the declaration"
                )

    def _first(self, wrong: NDArray[np.bool_]) -> tuple[str, tuple[int, ...], float]:
        """Return name, position and value of the first entry that is wrong."""
        place = int(np.flatnonzero(wrong)[0])
        for name, (start, stop, shape) in self.spans.items():
            if start <= place < stop:
                entry = np.unravel_index(place - start, shape, order="F") if shape else ()
                return name, tuple(int(one) for one in entry), float(self.stacked[place])
        raise AssertionError("the constant's place never changes")


def _described(value: NDArray[Any]) -> str:
    return f"an array of {value.dtype} of shape {value.shape}"


def entries(known: Compiled, parameters: Mapping[str, cp.Parameter]) -> Entries:
    """Return the places of a compiled problem's Parameters.

    Raises ModelError: A Parameter of the problem has no name among `parameters`.
    """
    program, stored = known.program, known.stored
    names = {parameter.id: name for name, parameter in parameters.items()}
    columns: Mapping[int, int] = program.param_id_to_col if program.total_param_size else {CONSTANT: 0}
    used = {one: stored[one] for one in columns if one != CONSTANT}
    nameless = [parameter.name() for parameter in used.values() if parameter.id not in names]
    if nameless:
        raise ModelError(f"parameters: {', '.join(map(repr, nameless))} of the problem is not among them: add it")
    stacked = np.zeros(int(program.total_param_size) + 1)
    stacked[columns[CONSTANT]] = 1.0
    spans, least, most = {}, [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for identity, parameter in used.items():
        start = int(columns[identity])
        size = int(program.id_to_param[identity].size)
        spans[names[parameter.id]] = (start, start + size, tuple(parameter.shape))
        places = np.arange(start, start + size)
        if parameter.is_nonneg():
            least.append(places)
        if parameter.is_nonpos():
            most.append(places)
    return Entries(dict(parameters), spans, stacked, np.concatenate(least), np.concatenate(most), _reduced(parameters))


def _reduced(parameters: Mapping[str, cp.Parameter]) -> dict[str, cp.Parameter]:
    """Return the Parameters of which cvxpy stores fewer entries than they have."""
    return {name: one for name, one in parameters.items() if one._has_dim_reducing_attr}
