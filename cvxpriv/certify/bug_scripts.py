"""The script of a bug report: plain numbers, the solver's own interface, the given and the expected answer."""

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from cvxpriv.certify.written_out import REFERENCE, Written
from cvxpriv.kkt.conic.cones.layout import KINDS
from cvxpriv.kkt.conic.data import ConeData
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.solvers.registry import package_of

_VALUE = "value = float(SIGN * (0.5 * x @ (P @ x) + c @ x + d))"
_TAIL = """
given = {name: x[places] for name, places in VARIABLES.items()}
gap = abs(value - EXPECTED) / max(1.0, abs(EXPECTED))
distance = max((float(np.abs(given[name] - np.array(POINT[name])).max()) for name in POINT), default=np.inf)
print(f"status      given {status}    expected {EXPECTED_STATUS}")
if "optimal" in str(status):
    print(f"value       given {value!r}    expected {EXPECTED!r}    off by {gap:.1e} (relative)")
    for name in POINT:
        print(f"{name}: given {given[name].tolist()}    expected {POINT[name]}")
    print(f"largest difference of a variable: {distance:.1e}")
else:
    print(f"expected    value {EXPECTED!r} at {POINT}")
shown = str(status).lower() == CLAIMED.lower() and not np.max([gap, distance]) < 0.5 * SIZE
print("the bug is shown" if shown else "the bug is not shown by this version on this machine")
"""


@dataclass(frozen=True)
class Trial:
    """The judgement of one answer to one problem.

    `status`: The status that the solver claims.
    `objective`: Objective at its point, in the sense of the problem; NaN without one.
    `values`: The variables' values.
    `expected`: The reference's objective; NaN without one.
    `expected_values`: The reference's.
    `expected_status`: ``"optimal"``, or what is proven of the problem.
    `version`: Version of the solver.
    """

    verdict: str
    reason: str
    status: str
    objective: float
    values: Values | None
    expected: float
    expected_values: Values
    expected_status: str = "optimal"
    version: str = ""

    @property
    def kind(self) -> str:
        """The kind of lie: the status without a word on accuracy, and, of a solution, the first finding's kind."""
        return self.status.removesuffix("_inaccurate")


def script_of(problem: cp.Problem, solver: str, options: Mapping[str, Any] | None, trial: Trial, late: str = "") -> str:
    """Return the script.

    `options`: The solver's; None where the answer is stored.
    `late`: A sentence on a search for a smaller problem that time ended.
    """
    stored = options is None
    written = Written.of(problem, REFERENCE if stored else solver, options or {})
    compiled, places = written.compiled, written.places
    parts = [
        _heading(solver, trial, late),
        "\nimport numpy as np\nimport scipy.sparse as sp\nfrom numpy import inf, nan\n",
        _data(written, options or {}),
    ]
    if stored:
        parts.append(_recalled(compiled, places, trial))
    else:
        parts.append(CALLS.get(solver, OTHER.replace("SOLVER", repr(solver))))
    parts.append(_claims(problem, places, trial))
    parts.append(f"value = {float(trial.objective)!r}" if stored else _VALUE)
    return "\n".join([*parts, _TAIL.strip(), ""])


def _heading(solver: str, trial: Trial, late: str) -> str:
    said = trial.version or _versions(solver)
    lines = [
        f'"""{solver} ({said}) answers {trial.status!r} with the value {trial.objective:.12g}.',
        "",
        f"Expected: {trial.expected_status!r}" + (f", {trial.expected:.12g}." if np.isfinite(trial.expected) else "."),
        trial.reason.replace("\\", "/").replace('"""', "'''"),
        f"Seen with {_versions(solver)} on {platform.machine()}, Python {platform.python_version()}.",
        *([late] * bool(late)),
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


def _data(written: Written, options: Mapping[str, Any]) -> str:
    compiled = written.compiled
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in options.items()}
    fields, layout = compiled.fields, compiled.fields["layout"]
    own = {kind: getattr(layout, kind) for kind in KINDS}
    cones = {kind: size if isinstance(size, int) else list(size) for kind, size in own.items()}
    return "\n".join(
        [
            "# minimise x'Px/2 + c'x + d  over  b - A x in zero x nonneg x soc x psd x exp x power",
            f"P = {_matrix(fields['P'])}",
            f"c = {_vector(fields['c'])}",
            f"d = {float(fields['d'])!r}",
            f"A = {_matrix(fields['A'])}",
            f"b = {_vector(fields['b'])}",
            f"cones = {cones!r}",
            f"integers = {list(written.integers)!r}  # columns that are whole numbers",
            f"options = {plain!r}",
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
    size = float("inf") if np.isnan(distances).any() else size  # only what is not a number is seen again
    sign = -1.0 if isinstance(problem.objective, cp.Maximize) else 1.0
    return "\n".join(
        [
            f"SIGN, EXPECTED, EXPECTED_STATUS = {sign!r}, {float(trial.expected)!r}, {trial.expected_status!r}",
            f"VARIABLES = {dict(places)!r}",
            f"POINT = {right!r}",
            "# This claim is to be seen again, with at least half of this error.",
            f"CLAIMED, SIZE = {trial.status!r}, {size!r}",
        ]
    )


_SCS = """
import scs

data = {"P": sp.triu(P, format="csc"), "A": A, "b": b, "c": c}
product = {"z": cones["zero"], "l": cones["nonneg"], "q": cones["soc"], "s": cones["psd"], "ep": cones["exp"]}
product["p"] = [alpha[0] for alpha in cones["power"]]
answer = scs.solve(data, product, verbose=False, **options)
words = {1: "optimal", -1: "unbounded", -2: "infeasible"}
words |= {2: "optimal_inaccurate", -6: "unbounded_inaccurate", -7: "infeasible_inaccurate"}
x, status = answer["x"], words.get(answer["info"]["status_val"], "other")
"""
_CLARABEL = """
import clarabel

product = [clarabel.ZeroConeT(cones["zero"])] * (cones["zero"] > 0)
product += [clarabel.NonnegativeConeT(cones["nonneg"])] * (cones["nonneg"] > 0)
product += [clarabel.SecondOrderConeT(size) for size in cones["soc"]]
product += [clarabel.PSDTriangleConeT(order) for order in cones["psd"]]
product += [clarabel.ExponentialConeT() for _ in range(cones["exp"])]
product += [clarabel.PowerConeT(alpha[0]) for alpha in cones["power"]]
settings = clarabel.DefaultSettings()
settings.verbose = False
for name, wanted in options.items():
    setattr(settings, name, wanted)
answer = clarabel.DefaultSolver(sp.triu(P, format="csc"), c, A, b, product, settings).solve()
words = {"Solved": "optimal", "PrimalInfeasible": "infeasible", "DualInfeasible": "unbounded"}
words |= {f"Almost{own}": f"{word}_inaccurate" for own, word in words.items()}
x, status = np.array(answer.x), words.get(str(answer.status), str(answer.status))
"""
_ECOS = """
import ecos

m, rows = cones["zero"], A.tocsr()
order = np.arange(m, b.size)
if cones["exp"]:  # ECOS has the entries of an exponential cone in another order
    order[-3 * cones["exp"] :] = order[-3 * cones["exp"] :].reshape(-1, 3)[:, [0, 2, 1]].ravel()
dims = {"l": cones["nonneg"], "q": cones["soc"], "e": cones["exp"]}
equalities = (rows[:m].tocsc(), b[:m]) if m else (None, None)
answer = ecos.solve(c, rows[order].tocsc(), b[order], dims, *equalities, verbose=False, **options)
words = {0: "optimal", 1: "infeasible", 2: "unbounded"}
words |= {10 + own: f"{word}_inaccurate" for own, word in words.items()}
x, status = answer["x"], words.get(answer["info"]["exitFlag"], "other")
"""
_OSQP = """
import osqp

low = np.where(np.arange(b.size) < cones["zero"], b, -np.inf)
solver = osqp.OSQP()
solver.setup(sp.triu(P, format="csc"), c, A, low, b, verbose=False, **options)
answer = solver.solve()
words = {"solved": "optimal", "primal infeasible": "infeasible", "dual infeasible": "unbounded"}
words |= {f"{own} inaccurate": f"{word}_inaccurate" for own, word in words.items()}
status = words.get(answer.info.status, answer.info.status)
x = np.array(answer.x, dtype=float)
"""
_HIGHS = """
import highspy

solver = highspy.Highs()
solver.setOptionValue("output_flag", False)
for name, wanted in options.items():
    solver.setOptionValue(name, wanted)
program, infinite = highspy.HighsLp(), highspy.kHighsInf
program.num_col_, program.num_row_ = c.size, b.size
program.col_cost_, program.offset_ = c, d
program.col_lower_, program.col_upper_ = np.full(c.size, -infinite), np.full(c.size, infinite)
program.row_lower_ = np.where(np.arange(b.size) < cones["zero"], b, -infinite)
program.row_upper_ = b
kinds = highspy.HighsVarType
program.integrality_ = [kinds.kInteger if k in integers else kinds.kContinuous for k in range(c.size)] * bool(integers)
program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
program.a_matrix_.start_, program.a_matrix_.index_, program.a_matrix_.value_ = A.indptr, A.indices, A.data
model = highspy.HighsModel()
model.lp_ = program
if P.nnz:
    lower = sp.tril(P, format="csc")
    model.hessian_.dim_, model.hessian_.format_ = c.size, highspy.HessianFormat.kTriangular
    model.hessian_.start_, model.hessian_.index_, model.hessian_.value_ = lower.indptr, lower.indices, lower.data
solver.passModel(model)
solver.run()
words = {"kOptimal": "optimal", "kInfeasible": "infeasible", "kUnbounded": "unbounded"}
status = words.get(solver.getModelStatus().name, solver.getModelStatus().name)
x = np.array(solver.getSolution().col_value)
"""
OTHER = """
import cvxpy as cp

variable = cp.Variable(c.size, integer=[tuple(integers)] if integers else False)
slack, start, constraints = b - A @ variable, 0, []
for kind, sizes in (("zero", [cones["zero"]]), ("nonneg", [cones["nonneg"]]), ("soc", cones["soc"])):
    for size in sizes:
        part, start = slack[start : start + size], start + size
        if size:
            cone = {"zero": lambda s: s == 0, "nonneg": lambda s: s >= 0, "soc": lambda s: cp.SOC(s[0], s[1:])}[kind]
            constraints.append(cone(part))
for order in cones["psd"]:
    raise SystemExit("semidefinite cones are written out only for solvers with an interface of their own here")
for _ in range(cones["exp"]):
    constraints.append(cp.ExpCone(slack[start], slack[start + 1], slack[start + 2]))
    start += 3
value = c @ variable + d + (cp.quad_form(variable, cp.psd_wrap(P)) / 2 if P.nnz else 0)
problem = cp.Problem(cp.Minimize(value), constraints)
problem.solve(solver=SOLVER, **options)
status = problem.status
x = np.full(c.size, np.nan) if variable.value is None else variable.value
"""
CALLS: Mapping[str, str] = {"SCS": _SCS, "CLARABEL": _CLARABEL, "ECOS": _ECOS, "OSQP": _OSQP, "HIGHS": _HIGHS}
