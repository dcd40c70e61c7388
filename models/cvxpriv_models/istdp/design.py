"""The design X in a model's form: dense by columns, or sparse by rows; checked once."""

from typing import Any, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cvxpriv.errors import DataError
from cvxpriv.learning.labels import LARGEST
from cvxpriv.numerics.arguments import real_numbers
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.later import pd

Design = Array | sp.csr_array


def read_design(x: Any, least: int = 2) -> tuple[Design, tuple[str, ...]]:
    """Return X in the form that products need, and its columns' names."""
    if isinstance(x, pd.DataFrame):
        names = tuple(str(name) for name in x.columns)
        x = x.to_numpy()
    else:
        names = ()
    if sp.issparse(x) and cast(Any, x).dtype.kind == "c":
        raise DataError("X holds complex numbers: pass real ones, for example real and imaginary part apart")
    design: Design = _sparse(x) if sp.issparse(x) else np.array(real_numbers(x, "X", copy=False), order="F")
    if design.ndim != 2 or design.shape[0] < least or design.shape[1] < 1:
        raise DataError(f"X has shape {design.shape}, expected (n, d) with n >= {least} rows and d >= 1 columns")
    names = names or tuple(f"x{index}" for index in range(design.shape[1]))
    if isinstance(design, np.ndarray):
        bad = np.asarray(~np.isfinite(design).all(axis=0))
    else:
        bad = np.bincount(design.indices[~np.isfinite(design.data)], minlength=design.shape[1]) > 0
    if bad.any():
        raise DataError(f"X holds NaN or infinite values in {_named(bad, names)}: impute or drop them first")
    return design, names


def too_large(design: Design, y: Array) -> str:
    """Return the refusal of entries or labels whose sums of squares overflow; empty where there are none."""
    entries = design if isinstance(design, np.ndarray) else design.data
    if max(entries.max(initial=0.0), -entries.min(initial=0.0)) > LARGEST:
        return f"X holds entries above {LARGEST:g}, whose squares overflow: scale its columns"
    if np.abs(y).max(initial=0.0) > LARGEST:
        return f"y holds labels above {LARGEST:g}, whose squares overflow: scale them"
    return ""


def refuse_constant(design: Design, names: tuple[str, ...]) -> None:
    """Refuse columns that would be a penalised intercept. A column of zeros is allowed: its coefficient is 0."""
    if isinstance(design, np.ndarray):
        constant = np.asarray((design == design[0]).all(axis=0)) & (design[0] != 0.0)
    else:
        most, least = (np.asarray(side.todense()).ravel() for side in (design.max(axis=0), design.min(axis=0)))
        constant = (most == least) & (most != 0.0)
    if constant.any():
        raise DataError(
            f"X is constant in {_named(constant, names)}: such a coefficient is an intercept that would be penalised; "
            "drop the columns and pass intercept=True, or pass allow_constant=True to keep them"
        )


def _sparse(x: Any) -> sp.csr_array:
    return sp.csr_array(x, dtype=float)


def _named(chosen: npt.NDArray[np.bool_], names: tuple[str, ...]) -> str:
    which = [names[index] for index in np.flatnonzero(chosen)]
    more = f" and {len(which) - 3} more" if len(which) > 3 else ""
    return f"column{'s' if len(which) > 1 else ''} {', '.join(which[:3])}{more}"
