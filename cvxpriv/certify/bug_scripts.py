"""The script of a bug report: plain numbers, the solver's own interface, the given and the expected answer."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from cvxpriv.certify.bug_interfaces import CALLS, OTHER
from cvxpriv.certify.trials import Trial
from cvxpriv.kkt.conic.data import ConeData, extract
from cvxpriv.numerics.arrays import Array
from cvxpriv.solvers.registry import package_of

__all__ = ["script_of"]

REFERENCE = "CLARABEL"
"""Whose cone program stands in the script of an answer that is stored, and that no solver gives again."""
_VALUE = "value = float(SIGN * (0.5 * x @ (P @ x) + c @ x + d))"
_TAIL = """
given = {name: x[places] for name, places in VARIABLES.items()}
gap = abs(value - EXPECTED) / max(1.0, abs(EXPECTED))
distance = max((float(np.abs(given[name] - np.array(POINT[name])).max()) for name in POINT), default=np.inf)
print(f"status      given {status}    expected {EXPECTED_STATUS}")
print(f"value       given {value!r}    expected {EXPECTED!r}    off by {gap:.1e} (relative)")
for name in POINT:
    print(f"{name}: given {given[name].tolist()}    expected {POINT[name]}")
print(f"largest difference of a variable: {distance:.1e}")
shown = str(status).lower() == CLAIMED.lower() and (SIZE == 0.0 or max(gap, distance) > 0.5 * SIZE)
print("the bug is shown" if shown else "the bug is not shown by this version on this machine")
"""


def script_of(problem: cp.Problem, solver: str, options: Mapping[str, Any] | None, trial: Trial) -> str:
    """Return the script.

    Parameters
    ----------
    options : mapping, optional
        The solver's; None where the answer is stored.
    """
    stored = options is None
    compiled = extract(problem, REFERENCE if stored else solver, options or {})
    places = _places(problem, compiled)
    parts = [_heading(solver, trial), _imports(), _data(compiled, options or {})]
    if stored:
        parts.append(_recalled(compiled, places, trial))
    else:
        parts.append(CALLS.get(solver, OTHER.replace("SOLVER", repr(solver))))
    parts.append(_claims(problem, places, trial))
    parts.append(f"value = {_number(trial.objective)}" if stored else _VALUE)
    return "\n".join([*parts, _TAIL.strip(), ""])


def _heading(solver: str, trial: Trial) -> str:
    said = trial.version or _versions(solver)
    lines = [
        f'"""{solver} ({said}) answers {trial.status!r} with the value {trial.objective:.12g}.',
        "",
        f"Expected: {trial.expected_status!r}" + (f", {trial.expected:.12g}." if np.isfinite(trial.expected) else "."),
        trial.reason.replace("\\", "/").replace('"""', "'''"),
        f"Seen with {_versions(solver)} on {platform.machine()}, Python {platform.python_version()}.",
        '"""',
    ]
    return "\n".join(lines)


def _versions(solver: str) -> str:
    found = []
    for package in (package_of(solver), "cvxpy", "numpy", "scipy"):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:  # an answer of a solver that is not here
            continue
    return ", ".join(found)


def _imports() -> str:
    return "\nimport numpy as np\nimport scipy.sparse as sp\n"


def _data(compiled: ConeData, options: Mapping[str, Any]) -> str:
    fields, layout = compiled.fields, compiled.fields["layout"]
    cones = {
        "zero": layout.zero,
        "nonneg": layout.nonneg,
        "soc": list(layout.soc),
        "psd": list(layout.psd),
        "exp": layout.exp,
        "power": [list(alpha) for alpha in layout.power],
    }
    return "\n".join(
        [
            "# minimise x'Px/2 + c'x + d  over  b - A x in zero x nonneg x soc x psd x exp x power",
            f"P = {_matrix(fields['P'])}",
            f"c = {_vector(fields['c'])}",
            f"d = {float(fields['d'])!r}",
            f"A = {_matrix(fields['A'])}",
            f"b = {_vector(fields['b'])}",
            f"cones = {cones!r}",
            f"options = {_plain(options)!r}",
            "",
        ]
    )


def _matrix(matrix: Any) -> str:
    entries = sp.coo_array(matrix)
    rows, columns = (part.tolist() for part in entries.coords)
    values = [float(value) for value in entries.data]
    return f"sp.csc_matrix(({values!r}, ({rows!r}, {columns!r})), shape={tuple(map(int, entries.shape))!r})"


def _vector(values: Array) -> str:
    return f"np.array({[float(value) for value in values]!r})"


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in options.items()}


def _places(problem: cp.Problem, compiled: ConeData) -> dict[str, list[int]]:
    """The columns of each of the problem's variables, column-major; those that have columns of their own."""
    numbers = np.arange(compiled.fields["c"].size, dtype=float)
    entries = compiled.variables(numbers) or {}
    found = {}
    for variable in problem.variables():
        flat = entries.get(variable.id, np.array([np.nan])).ravel(order="F")
        if flat.size == variable.size and np.isin(flat, numbers).all():
            found[variable.name()] = [int(entry) for entry in flat]
    return found


def _flat(values: Mapping[str, Array] | None, places: Mapping[str, list[int]]) -> dict[str, list[float]]:
    known = values or {}
    return {
        name: [float(entry) for entry in np.asarray(known[name]).ravel(order="F")] for name in places if name in known
    }


def _recalled(compiled: ConeData, places: Mapping[str, list[int]], trial: Trial) -> str:
    """The stored answer: its own variables; those that cvxpy adds stay at zero, and its value is the one evaluated."""
    given = f"# The answer as it was given ({trial.version or 'no version'})."
    lines = [given, f"x = np.zeros({compiled.fields['c'].size})"]
    lines += [f"x[{places[name]!r}] = {entries!r}" for name, entries in _flat(trial.values, places).items()]
    return "\n".join([*lines, f"status = {trial.status!r}", ""])


def _claims(problem: cp.Problem, places: Mapping[str, list[int]], trial: Trial) -> str:
    given, right = _flat(trial.values, places), _flat(trial.expected_values, places)
    both = [(given[name], right[name]) for name in given if name in right]
    distances = [float(np.abs(np.subtract(one, other)).max(initial=0.0)) for one, other in both]
    gap = abs(trial.objective - trial.expected) / max(1.0, abs(trial.expected))
    size = max([*distances, gap if np.isfinite(gap) else 0.0], default=0.0)
    sign = -1.0 if isinstance(problem.objective, cp.Maximize) else 1.0
    return "\n".join(
        [
            f"SIGN, EXPECTED, EXPECTED_STATUS = {sign!r}, {_number(trial.expected)}, {trial.expected_status!r}",
            f"VARIABLES = {dict(places)!r}",
            f"POINT = {right!r}",
            "# This claim is to be seen again, with at least half of this error.",
            f"CLAIMED, SIZE = {trial.status!r}, {size!r}",
        ]
    )


def _number(value: float) -> str:
    return repr(float(value)) if np.isfinite(value) else f"float({str(float(value))!r})"
