"""The fast path: from Parameters to a solver's own answer, without cvxpy between two solves.

`Problem.solve` spends most of a small re-solve on applying Parameters and on unpacking. `FastProblem` compiles a DPP
problem once for one solver, and then goes from the Parameters' values straight to the solver's numbers and back.
Every solve starts cold, and by default its answer depends on its Parameters alone, not on what was solved before.
"""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from cvxpy.reductions.cvx_attr2constr import lower_value, recover_value_for_leaf
from numpy.typing import NDArray

from cvxpriv.blocks.fastpath.answer import NotFast, Raw, answer_map
from cvxpriv.blocks.fastpath.compile import SIGNS, Compiled, compiled, named, value_of
from cvxpriv.blocks.fastpath.data import CONSTANT, cone_map
from cvxpriv.blocks.fastpath.solvers import solver_object
from cvxpriv.errors import DataError, ModelError, suggest
from cvxpriv.numerics.arrays import Array, Values

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


_WITH_POINT = (cp.OPTIMAL, cp.OPTIMAL_INACCURATE, cp.USER_LIMIT)


@dataclass(frozen=True)
class FastSolution:
    """A solver's solution on the fast path.

    `values`: Variables by name; empty where the status comes without a point.
    `duals`: Constraints' multipliers by name, with cvxpy's signs; empty where the status comes without a point.
    `status`: The status in cvxpy's words; ``solver_error`` also where the solver raised an error.
    `objective`: Objective of the cone program at the solver's point, in the sense of the problem: infinite where it is
    infeasible or unbounded, NaN after an error. Where the answer is inaccurate, a variable that cvxpy added for a
    function's value may be off that value, and the objective with it: evaluate the problem's own at `values`.
    `seconds`: Wall time of the call.
    `message`: The error that the solver raised, or "".
    """

    values: Values
    duals: Mapping[str, Any]
    status: str
    objective: float
    seconds: float
    iterations: int
    message: str = ""


def supported(problem: cp.Problem, solver: str, options: Mapping[str, Any] | None = None) -> tuple[bool, str]:
    """Return whether the fast path takes a problem with a solver, and otherwise the reason.

    >>> x, target = cp.Variable(2), cp.Parameter(2, name="target")
    >>> supported(cp.Problem(cp.Minimize(cp.sum_squares(x - target)), [x >= 0]), "CLARABEL")
    (True, '')
    >>> supported(cp.Problem(cp.Minimize(cp.sum_squares(x - target)), [x >= 0]), "SCIPY")
    (False, "no fast path to solver 'SCIPY': it has one to CLARABEL, ECOS, HIGHS, OSQP, SCS")
    """
    try:
        FastProblem(
            problem,
            solver,
            options,
            variables=_numbered(problem.variables()),
            parameters=_numbered(problem.parameters()),
            constraints=_numbered(problem.constraints),
        )
    except NotFast as error:
        return False, str(error)
    return True, ""


def _numbered(several: list[Any]) -> dict[str, Any]:
    return {str(place): one for place, one in enumerate(several)}


def _clipped(variable: cp.Variable) -> bool:
    return any(variable.attributes[one] for one in (*SIGNS, "bounds"))


class FastProblem:
    """A DPP problem compiled for one solver.

    `problem`: The problem. It stays as it is, except for cvxpy's own cache of the compilation.
    `solver`: CLARABEL, ECOS, HIGHS, OSQP or SCS.
    `options`: The solver's options, as `Problem.solve` takes them; the same at each solve.
    `variables`, `parameters`, `constraints`: Names for these objects, such as a `Declaration`'s. By default their own
    names, and a constraint's label or ``constraint[k]``.
    `reuse`: Also keep the solver's object between solves where earlier solves change its later answers, within its
    tolerance: faster, above all with OSQP. See `cvxpriv.blocks.fastpath.solvers`.
    Raises NotFast: The fast path does not take the problem; `supported` asks the same without an error.
    Raises ModelError: If a name stands for nothing in the problem or for several things in it, a Parameter has no name,
    or an option is not one that the solver's interface knows.

    >>> x, target = cp.Variable(3, name="x"), cp.Parameter(3, name="target")
    >>> problem = cp.Problem(cp.Minimize(cp.sum_squares(x - target)), [cp.sum(x) == 1, x >= 0])
    >>> fast = FastProblem(problem, "CLARABEL")
    >>> solution = fast.solve({"target": np.array([1.0, 0.8, 0.0])})
    >>> solution.status, solution.values["x"].round(6).tolist()
    ('optimal', [0.6, 0.4, 0.0])
    """

    def __init__(
        self,
        problem: cp.Problem,
        solver: str,
        options: Mapping[str, Any] | None = None,
        *,
        variables: Mapping[str, cp.Variable] | None = None,
        parameters: Mapping[str, cp.Parameter] | None = None,
        constraints: Mapping[str, cp.Constraint] | None = None,
        reuse: bool = False,
    ) -> None:
        self._lock = threading.Lock()
        chosen = dict(options or {})
        known = compiled(problem, solver, chosen)
        self.problem, self.solver = problem, known.solver
        self._cone = cone_map(known.program)
        self._sign = -1.0 if isinstance(problem.objective, cp.Maximize) else 1.0
        self._object = solver_object(known.solver, self._cone, known.interface, known.dims, chosen, reuse=reuse)
        self._entries = entries(known, named(parameters, problem.parameters(), "parameters"))
        called = named(variables, problem.variables(), "variables")
        #: Variables that cvxpy moves into their bounds when it reads an answer.
        self._clipped = {name: one for name, one in called.items() if _clipped(one)}
        self._answer = answer_map(
            lambda x, z: known.invert(self._object.fake(x, z, self._cone.zero)),
            self._cone["q"].size,
            self._cone["b"].size,
            called,
            named(constraints, problem.constraints, "constraints"),
        )

    def solve(self, parameters: Mapping[str, npt.ArrayLike] | None = None) -> FastSolution:
        """Solve from a cold start; threads that share a problem wait for each other.

        `parameters`: Every Parameter's value by name. None: the values that the Parameters hold.
        Raises ModelError: If a Parameter is missing, unknown, of another shape, no array of numbers, or of the wrong
        sign.
        Raises DataError: If a value is NaN or infinite.
        """
        with self._lock:  # the data's buffer and the solver's object are shared
            return self._solve(parameters)

    def _solve(self, parameters: Mapping[str, npt.ArrayLike] | None) -> FastSolution:
        begun = time.perf_counter()
        self._cone.apply(self._entries.stack(self._entries.held() if parameters is None else parameters))
        try:
            raw, message = self._object.solve(), ""
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a solver may raise anything, a panic too; its status must reach the caller
            raw, message = Raw(cp.SOLVER_ERROR, None, None, 0), f"{type(error).__name__}: {error}"
            self._object.forget()
        values: dict[str, Any] = {}
        duals: dict[str, Any] = {}
        if raw.status in _WITH_POINT:
            values, duals = self._answer.values(raw.x), self._answer.duals(raw.z)
            for name, variable in self._clipped.items():
                values[name] = np.asarray(variable.project(values[name]))
        return FastSolution(
            values, duals, raw.status, self._objective(raw), time.perf_counter() - begun, raw.iterations, message
        )

    def _objective(self, raw: Raw) -> float:
        if raw.status in _WITH_POINT:
            return self._sign * self._cone.value(raw.x)
        if raw.status == cp.SOLVER_ERROR:
            return float("nan")
        return self._sign * (np.inf if raw.status.startswith("infeasible") else -np.inf)
