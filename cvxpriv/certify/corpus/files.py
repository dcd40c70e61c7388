"""Linear and quadratic problems from files: those that HiGHS reads, and .mat files of P, q, r, A, l, u."""

import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from cvxpriv.certify.corpus.known import UNKNOWN, Known
from cvxpriv.errors import DataError, ModelError
from cvxpriv.numerics.arrays import Array
from cvxpriv.solvers.place import quiet_highs

MATRICES, READ_BY_HIGHS = ".mat", {".mps": "mps", ".qps": "mps", ".lp": "lp"}
"""Endings of names, and those by which HiGHS knows the format."""
SUFFIXES = (*READ_BY_HIGHS, *(f"{one}.gz" for one in READ_BY_HIGHS), MATRICES)
_ENDED = re.compile(rb"^ENDATA\b", re.MULTILINE)
INFINITE = 1e20
"""Size from which on a bound counts as infinite."""


@dataclass(frozen=True, eq=False)
class _Data:
    """Data of minimise (or maximise) x'Px/2 + q'x + r over low <= A x <= high and least <= x <= most.

    `whole`: Places of the variables that take whole numbers.
    """

    P: sp.csc_array
    q: Array
    r: float
    A: sp.csr_array
    low: Array
    high: Array
    least: Array
    most: Array
    maximise: bool = False
    whole: tuple[int, ...] = ()

    def problem(self) -> cp.Problem:
        x = cp.Variable(self.q.size, name="x", integer=[self.whole] if self.whole else False)
        cost = self.q @ x + self.r
        if self.P.nnz:  # a P of the wrong sign is refused where the problem is checked
            sign = -1.0 if self.maximise else 1.0
            cost = cost + sign * 0.5 * cp.quad_form(x, cp.psd_wrap(sign * self.P))
        rows = [*_between(self.A, x, self.low, self.high)]
        rows += _between(sp.csr_array(sp.eye_array(self.q.size)), x, self.least, self.most)
        return cp.Problem(cp.Maximize(cost) if self.maximise else cp.Minimize(cost), rows)


def _between(A: sp.csr_array, x: cp.Variable, low: Array, high: Array) -> Iterator[cp.Constraint]:
    same = low == high
    below, above = ~same & (high < INFINITE), ~same & (low > -INFINITE)
    if same.any():
        yield A[np.flatnonzero(same)] @ x == high[same]
    if below.any():
        yield A[np.flatnonzero(below)] @ x <= high[below]
    if above.any():
        yield A[np.flatnonzero(above)] @ x >= low[above]


def problem_of_file(path: str | Path, largest: int | None = None) -> cp.Problem:
    """Return the problem of a file.

    `largest`: Largest number of variables or rows; larger problems are refused.
    Raises DataError: The file cannot be read, is cut off, or holds no variables or entries that are not numbers.
    ModelError: The problem has semi-continuous variables, or is larger than `largest`.
    """
    path = Path(path)
    if not path.name.lower().endswith(SUFFIXES):
        raise DataError(f"path={str(path)!r}: expected a file that ends with {', '.join(SUFFIXES)}")
    data = _of_matrices(path) if path.suffix.lower() == MATRICES else _of_highs(path)
    if not data.q.size:
        raise DataError(f"{path.name} holds no variables")
    size = max(data.q.size, data.A.shape[0])
    if largest is not None and size > largest:
        raise ModelError(f"{path.name} has {data.q.size} variables and {data.A.shape[0]} rows: more than {largest}")
    numbers = (data.P.data, data.q, data.A.data, np.array([data.r]))
    sides = (data.low, data.high, data.least, data.most)
    if not all(np.isfinite(one).all() for one in numbers) or any(np.isnan(one).any() for one in sides):
        raise DataError(f"{path.name} holds numbers that are not finite: correct it")
    return data.problem()


def files_of_folder(folder: str | Path) -> list[Path]:
    """Return the files of a folder, and of its folders, that may hold a problem.

    Raises DataError: There is no such folder, or it holds no such file.
    """
    root = Path(folder)
    paths = sorted(one for one in root.rglob("*") if one.name.lower().endswith(SUFFIXES)) if root.is_dir() else []
    if not paths:
        raise DataError(f"folder={str(folder)!r} holds no file that ends with {', '.join(SUFFIXES)}")
    return paths


def problems_of_folder(folder: str | Path, largest: int | None = None) -> Iterator[Known | tuple[str, str]]:
    """Yield the problem of each file of a folder, or the file's name and the reason why it has none."""
    for path in files_of_folder(folder):
        name = str(path.relative_to(folder))
        try:
            yield Known(problem_of_file(path, largest), UNKNOWN, name=name)
        except (DataError, ModelError) as error:
            yield name, str(error)


def _of_highs(path: Path) -> _Data:
    import highspy

    zipped = path.suffix.lower() == ".gz"
    form_of_file = READ_BY_HIGHS[Path(path.stem if zipped else path).suffix.lower()]
    try:
        text = gzip.decompress(path.read_bytes()) if zipped else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path.name} cannot be read ({type(error).__name__}: {error})") from error
    if form_of_file == "mps" and not _ENDED.search(text):  # HiGHS reads some of these as far as they go
        raise DataError(f"{path.name} has no ENDATA: it is cut off")
    reader = quiet_highs()
    with TemporaryDirectory() as folder:
        named = Path(folder) / f"problem.{form_of_file}"
        named.write_bytes(text)
        status = reader.readModel(str(named))
    if status == highspy.HighsStatus.kError:
        raise DataError(f"{path.name} cannot be read by HiGHS")
    lp, hessian = reader.getLp(), reader.getModel().hessian_
    kinds = [kind.name for kind in lp.integrality_]
    if any(kind.startswith("kSemi") for kind in kinds):
        raise ModelError(
            f"{path.name} has semi-continuous variables, which cvxpy has not: write x <= u b, x >= l b with a binary b"
        )
    whole = tuple(place for place, kind in enumerate(kinds) if kind != "kContinuous")
    size, rows = lp.num_col_, lp.num_row_
    form = sp.csc_array if lp.a_matrix_.format_ == highspy.MatrixFormat.kColwise else sp.csr_array
    A = form((lp.a_matrix_.value_, lp.a_matrix_.index_, lp.a_matrix_.start_), shape=(rows, size))
    lower = sp.csc_array((size, size))
    if hessian.dim_:
        lower = sp.csc_array((hessian.value_, hessian.index_, hessian.start_), shape=(size, size))
        if hessian.format_ == highspy.HessianFormat.kTriangular:
            lower = sp.csc_array(lower + sp.tril(lower, -1).T)
    low, high, least, most = (
        np.array(side, dtype=float) for side in (lp.row_lower_, lp.row_upper_, lp.col_lower_, lp.col_upper_)
    )
    cost, maximise = np.array(lp.col_cost_, dtype=float), lp.sense_ == highspy.ObjSense.kMaximize
    return _Data(lower, cost, float(lp.offset_), sp.csr_array(A), low, high, least, most, maximise, whole)


def _of_matrices(path: Path) -> _Data:
    from scipy.io import loadmat

    try:
        held = loadmat(path)
        P, A = (sp.csc_array(held[name], dtype=float) for name in "PA")
        q, low, high = (np.asarray(held[name], dtype=float).ravel() for name in ("q", "l", "u"))
        r = float(np.asarray(held["r"]).ravel()[0])
    except (OSError, ValueError, KeyError, NotImplementedError) as error:
        raise DataError(f"{path.name} holds no P, q, r, A, l, u ({type(error).__name__}: {error})") from error
    free = np.full(q.size, np.inf)
    return _Data(P, q, r, sp.csr_array(A), low, high, -free, free)
