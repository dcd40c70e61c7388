"""Problems with complex numbers, in real and imaginary parts, as cvxpy itself writes them.

A complex variable ``x`` becomes ``Re x`` and ``Im x``; the imaginary part of a Hermitian matrix is its strict upper
triangle. Rows of an equality that hold nothing but rounding, such as the imaginary part of ``trace(A X)`` for Hermitian
``A`` and ``X``, are left out. All measurements are of that problem.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints import Equality, Zero
from cvxpy.reductions.complex2real.complex2real import Complex2Real
from cvxpy.reductions.eval_params import EvalParams

from cvxpriv.errors import DataError
from cvxpriv.kkt.coordinates import Coordinates, dense
from cvxpriv.kkt.flat import flatten

ROUNDING = 64.0 * float(np.finfo(float).eps)
"""Size of a row's coefficients, relative to the equality's largest, up to which it is rounding."""


@dataclass(frozen=True, eq=False)
class RealForm:
    """A complex problem in real numbers.

    `parts`, (variable, real part, imaginary part): The parts by the name of the complex variable; a part that is always
    zero is None.
    """

    problem: cp.Problem
    parts: Mapping[str, tuple[cp.Variable, cp.Variable | None, cp.Variable | None]]

    def split(self, values: Mapping[Any, Any]) -> dict[Any, Any]:
        """Return values by complex variable or its name, as values of the parts; others unchanged.

        Raises DataError: A value of another shape.
        """
        found: dict[Any, Any] = {}
        for key, value in values.items():
            name = key.name() if isinstance(key, cp.Variable) else str(key)
            if name not in self.parts:
                found[key] = value
                continue
            variable, real, imaginary = self.parts[name]
            try:
                array = np.asarray(value, dtype=complex)
            except (TypeError, ValueError) as error:
                raise DataError(f"the value of {name!r} does not hold numbers: {error}") from error
            if array.shape != variable.shape:
                raise DataError(f"the value of {name!r} has the shape {array.shape}: expected {variable.shape}")
            if real is not None:
                found[real] = array.real
            if imaginary is not None:
                triangle = variable.is_hermitian() and imaginary.shape != variable.shape
                found[imaginary] = array.imag[np.triu_indices(variable.shape[0], 1)] if triangle else array.imag
        return found

    def place(self) -> None:
        """Set the parts to the current values of the complex variables."""
        for name, (variable, _, _) in self.parts.items():
            if variable.value is not None:
                for part, value in self.split({name: dense_complex(variable.value)}).items():
                    part.save_value(value)


def dense_complex(value: Any) -> Any:
    """Return a value as an array, complex where it is."""
    return np.asarray(value) if np.iscomplexobj(value) else dense(value)


def is_complex(problem: cp.Problem) -> bool:
    """Return whether a problem has complex variables, Parameters or constants."""
    return any(leaf.is_complex() for leaf in [*problem.variables(), *problem.parameters(), *problem.constants()])


def real_form(problem: cp.Problem) -> RealForm:
    """Return a complex problem in real numbers, its Parameters at their values.

    >>> x = cp.Variable(complex=True, name="x")
    >>> form = real_form(cp.Problem(cp.Minimize(cp.abs(x - 1j))))
    >>> sorted(variable.name() for variable in form.problem.variables())
    ['Im x', 'Re x']
    """
    plain = EvalParams().apply(problem)[0] if problem.parameters() else problem
    reduction = Complex2Real()
    real, inverse = reduction.apply(plain)
    real = _without_rounding(real, inverse.real2imag)
    parts = {}
    for variable, (whole, imaginary) in reduction.canon_methods._variables.items():
        for part, prefix in ((whole, "Re"), (imaginary, "Im")):
            if part is not None:
                part._name = f"{prefix} {variable.name()}"
        parts[variable.name()] = (variable, whole, imaginary)
    return RealForm(real, parts)


def _without_rounding(real: cp.Problem, imaginary: Mapping[int, int]) -> cp.Problem:
    """Return a problem without the rows of split equalities that are rounding of the whole equality's coefficients."""
    by_id = {constraint.id: constraint for constraint in real.constraints}
    for whole, part in imaginary.items():
        pair = [by_id[key] for key in (whole, part) if isinstance(by_id.get(key), Equality | Zero)]
        if len(pair) < 2:
            continue
        flat = flatten([one.expr for one in pair], Coordinates(real.variables()))
        sizes = abs(flat.M).max(axis=1).toarray().ravel()
        for one, place in zip(pair, flat.places, strict=True):
            kept = np.flatnonzero(sizes[place] > ROUNDING * sizes.max(initial=0.0))
            if kept.size < one.size:
                by_id[one.id] = one.expr.flatten(order="F")[kept] == 0 if kept.size else None
    return cp.Problem(real.objective, [one for one in by_id.values() if one is not None])
