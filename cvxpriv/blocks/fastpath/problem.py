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

from cvxpriv.blocks.fastpath.answer import NotFast, answer_map
from cvxpriv.blocks.fastpath.compile import SIGNS, compiled, named
from cvxpriv.blocks.fastpath.data import cone_map
from cvxpriv.blocks.fastpath.parameters import entries
from cvxpriv.blocks.fastpath.solver_interface import Raw
from cvxpriv.blocks.fastpath.solvers import solver_object
from cvxpriv.numerics.arrays import Values

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
