"""One face for each solver's own object: data in, raw ``(x, z)`` out, always from a cold start.

State that a solver keeps when its data are updated, measured (clarabel 0.11.1, scs 3.3.1, osqp 1.1.3, ecos 2.0.14,
highspy 1.16.0):

- CLARABEL starts each solve anew, but keeps the equilibration of the first data, which depends on P, A and, where there
  is a quadratic part, on q. Even where those stand still, it scales new data in one step and not in several: the last
  bits differ, and with them x by up to 1e-5 where a problem is badly conditioned. With entries of 1 in each row and
  column, as in entropy blocks, there is nothing to scale, and an updated object gives the bits of a new one.
- OSQP keeps its penalty, which can be set back, and a scaling of the cost that depends on q; even where neither has
  moved, polishing ends in other last bits.
- SCS keeps its penalty even with ``warm_start=False``, and it cannot be set back. On an 11-variable entropy block up to
  four re-solves in a hundred then did not end in 2,000 iterations, where a new object needs 175.
- ECOS has no update.
- HiGHS keeps its basis, and its clock runs on towards the time limit; a new object costs .1 of .6 ms.

So an object is kept only where the answer has the bits of a new one's. `reuse` keeps it wherever the solver can update.
"""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from cvxpriv.blocks.fastpath.answer import NotFast, Options, Raw, SolverObject
from cvxpriv.blocks.fastpath.data import ConeMap
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array
from cvxpriv.solvers.place import quiet_highs


class Clarabel(SolverObject):
    """The solver Clarabel, updated in place where there is nothing to equilibrate."""

    def __init__(self, cone: ConeMap, interface: Any, dims: Any, options: Options, reuse: bool) -> None:
        from cvxpy.reductions.solvers.conic_solvers.clarabel_conif import dims_to_solver_cones

        moving = cone.moving() - {"d"}
        unscaled = options.get("equilibrate_enable") is False or (moving <= {"q", "b"} and _unit_norms(cone))
        self._keep = reuse or unscaled
        if reuse:  # both may rewrite the problem, and a rewritten problem cannot be updated
            options = {"presolve_enable": False, "chordal_decomposition_enable": False, **options}
        self._cone, self._moving = cone, tuple(sorted(moving))
        self._settings = interface.parse_solver_opts(False, dict(options))
        self._cones = dims_to_solver_cones(dims)
        self._statuses = dict(interface.STATUS_MAP)
        if "accept_unknown" in options:
            self._statuses["InsufficientProgress"] = cp.OPTIMAL_INACCURATE

    def solve(self) -> Raw:
        """See `SolverObject.solve`."""
        import clarabel

        cone = self._cone
        if self._solver is None:
            self._solver = clarabel.DefaultSolver(cone.P, cone["q"], cone.A, cone["b"], self._cones, self._settings)
        elif self._moving:
            self._solver.update(**{section: cone[section] for section in self._moving})
        answer = self._solver.solve()
        if not (self._keep and self._solver.is_data_update_allowed()):
            self._solver = None
        status = self._statuses.get(str(answer.status), cp.SOLVER_ERROR)
        return Raw(status, np.array(answer.x), np.array(answer.z), int(answer.iterations))

    @staticmethod
    def fake(x: Array, z: Array, zero: int) -> Any:
        """See `SolverObject.fake`."""
        return SimpleNamespace(x=x, z=z, status="Solved", obj_val=0.0, solve_time=0.0, iterations=0)


def _unit_norms(cone: ConeMap) -> bool:
    """Return whether there is nothing to equilibrate: no quadratic part, and rows and columns of largest entry 1."""
    size = abs(cone.A)
    largest = np.concatenate([size.max(axis=axis).toarray().ravel() for axis in (0, 1)])
    return cone.P.nnz == 0 and bool(np.isin(largest, (0.0, 1.0)).all())


class Scs(SolverObject):
    """The solver SCS, made anew for each solve; `reuse` updates b and c, and starts anew after an unclear answer."""

    #: Largest numbers of rows and columns, and least tolerance, for which SCS's own factorisation replaces a library's.
    #: Setting up the library (MKL, where there is one) takes as long as such a solve; below 1e-9 SCS's own stops short.
    SMALL, OWN = 1000, 1e-8

    def __init__(self, cone: ConeMap, interface: Any, dims: Any, options: Options, reuse: bool) -> None:
        from cvxpy.reductions.solvers.conic_solvers.scs_conif import dims_to_solver_dict

        self._cone, self._dims, self._statuses = cone, dims_to_solver_dict(dims), interface.STATUS_MAP
        self._keep = reuse and cone.moving() <= {"q", "b", "d"}
        self._options = {**interface.parse_solver_options(dict(options)), "verbose": False}
        loose = min(self._options["eps_abs"], self._options["eps_rel"]) >= self.OWN
        if loose and cone["q"].size + cone["b"].size <= self.SMALL:
            self._options.setdefault("linear_solver", "qdldl")

    def solve(self) -> Raw:
        """See `SolverObject.solve`."""
        kept = self._solver is not None
        if kept:
            self._solver.update(self._cone["b"], self._cone["q"])
        else:
            self._solver = self._new()
        raw = self._run()
        if kept and raw.status not in (cp.OPTIMAL, cp.INFEASIBLE, cp.UNBOUNDED):
            self._solver = self._new()
            raw = self._run()
        if not self._keep:
            self._solver = None
        return raw

    def _new(self) -> Any:
        import scs

        cone = self._cone
        data = {"A": cone.A, "b": cone["b"], "c": cone["q"]}
        if cone.P.nnz:
            data["P"] = cone.P
        return scs.SCS(data, self._dims, **self._options)

    def _run(self) -> Raw:
        answer = self._solver.solve(warm_start=False)
        info = answer["info"]
        status = self._statuses.get(info["status_val"], cp.SOLVER_ERROR)
        return Raw(status, answer["x"], answer["y"], int(info["iter"]))

    @staticmethod
    def fake(x: Array, z: Array, zero: int) -> Any:
        """See `SolverObject.fake`."""
        return {"x": x, "y": z, "info": {"status_val": 1, "solve_time": 0.0, "setup_time": 0.0, "iter": 0, "pobj": 0.0}}


class Ecos(SolverObject):
    """The solver ECOS, called anew for each solve with copies, as it scales its input in place and back."""

    def __init__(self, cone: ConeMap, interface: Any, dims: Any, options: Options, reuse: bool) -> None:
        self._cone, self._options, self._statuses = cone, dict(options), interface.STATUS_MAP
        self._dims = {"l": dims.nonneg, "q": dims.soc, "e": dims.exp}
        # Each matrix holds, for now, where its entries stand in A.
        places = np.arange(1.0, cone.A.nnz + 1)
        whole = sp.csc_matrix((places, cone.A.indices, cone.A.indptr), shape=cone.A.shape)
        self._matrices = [part if part.shape[0] else None for part in (whole[: cone.zero], whole[cone.zero :])]
        self._places = [None if part is None else part.data.astype(int) - 1 for part in self._matrices]
        equality = self._matrices[0]
        if equality is not None and equality.nnz == 0:
            raise NotFast("ECOS does not take equality rows without any coefficient")

    def solve(self) -> Raw:
        """See `SolverObject.solve`."""
        import ecos

        cone, zero = self._cone, self._cone.zero
        for matrix, places in zip(self._matrices, self._places, strict=True):
            if matrix is not None:
                matrix.data = cone.A.data[places]
        A, G = self._matrices
        b = None if A is None else cone["b"][:zero].copy()
        h = None if G is None else cone["b"][zero:].copy()
        answer = ecos.solve(cone["q"].copy(), G, h, self._dims, A, b, verbose=False, **self._options)
        info = answer["info"]
        z = np.concatenate([part for part in (answer["y"], answer["z"]) if part is not None])
        status = self._statuses.get(info["exitFlag"], cp.SOLVER_ERROR)
        return Raw(status, answer["x"], z, int(info["iter"]))

    @staticmethod
    def fake(x: Array, z: Array, zero: int) -> Any:
        """See `SolverObject.fake`."""
        info = {"exitFlag": 0, "timing": {"tsolve": 0.0, "tsetup": 0.0}, "iter": 0, "pcost": 0.0}
        return {"x": x, "y": z[:zero], "z": z[zero:], "info": info}


class Osqp(SolverObject):
    """The solver OSQP, made anew for each solve; `reuse` updates it in place, with its penalty set back."""

    RHO = 0.1  # OSQP's own default

    def __init__(self, cone: ConeMap, interface: Any, dims: Any, options: Options, reuse: bool) -> None:
        import osqp

        self._cone, self._statuses, self._keep = cone, interface.STATUS_MAP, reuse
        self._moving = cone.moving()
        self._algebra = osqp.default_algebra()  # looked for once: OSQP itself searches the path for each object
        # cvxpy's own defaults: OSQP's would stop at 1e-3.
        standing = {"eps_abs": 1e-5, "eps_rel": 1e-5, "max_iter": 10_000, "polishing": True}
        self._options = {**standing, **options, "verbose": False, "warm_starting": False}
        self._lower = np.full(cone["b"].size, -np.inf)

    def solve(self) -> Raw:
        """See `SolverObject.solve`."""
        import osqp

        cone, upper = self._cone, self._cone["b"]
        self._lower[: cone.zero] = upper[: cone.zero]
        if self._solver is None:
            self._solver = osqp.OSQP(algebra=self._algebra)
            P, A = sp.csc_matrix(cone.P), sp.csc_matrix(cone.A)
            self._solver.setup(P, cone["q"], A, self._lower, upper, **self._options)
        else:
            matrices = {f"{section}x": cone[section] for section in ("P", "A") if section in self._moving}
            self._solver.update(l=self._lower, u=upper, q=cone["q"], **matrices)
            self._solver.update_settings(rho=self._options.get("rho", self.RHO))
        answer = self._solver.solve(raise_error=False)
        if not self._keep:
            self._solver = None
        info = answer.info
        status = self._statuses.get(int(info.status_val), cp.SOLVER_ERROR)
        return Raw(status, np.array(answer.x), np.array(answer.y), int(info.iter))

    @staticmethod
    def fake(x: Array, z: Array, zero: int) -> Any:
        """See `SolverObject.fake`."""
        info = SimpleNamespace(status_val=1, run_time=0.0, obj_val=0.0, iter=0)
        return SimpleNamespace(x=x, y=z, info=info)


class Highs(SolverObject):
    """The solver HiGHS, made anew for each solve."""

    def __init__(self, cone: ConeMap, interface: Any, dims: Any, options: Options, reuse: bool) -> None:
        from cvxpy.reductions.solvers.conic_solvers.highs_conif import unpack_highs_options_inplace
        from cvxpy.reductions.solvers.qp_solvers.highs_qpif import HIGHS

        self._cone, self._statuses, self._options = cone, HIGHS.STATUS_MAP, dict(options)
        unpack_highs_options_inplace(self._options)
        self._new()  # refuses options

    def solve(self) -> Raw:
        """See `SolverObject.solve`."""
        solver = self._new()
        solver.passModel(self._model())
        solver.run()
        solution, info = solver.getSolution(), solver.getInfo()
        status = self._statuses.get(solver.getModelStatus().name, cp.SOLVER_ERROR)
        if status in (cp.OPTIMAL, cp.USER_LIMIT) and not (solution.value_valid and solution.dual_valid):
            status = cp.SOLVER_ERROR  # stopped before there was a point
        counts = (getattr(info, f"{kind}_iteration_count") for kind in ("simplex", "ipm", "crossover", "pdlp", "qp"))
        return Raw(status, np.array(solution.col_value), -np.array(solution.row_dual), sum(counts))

    def _new(self) -> Any:
        import highspy

        solver = quiet_highs()
        for name, value in self._options.items():
            if solver.setOptionValue(name, value) == highspy.HighsStatus.kError:
                raise ValueError(f"{name}={value!r} is refused")
        return solver

    def _model(self) -> Any:
        import highspy

        cone, model = self._cone, highspy.HighsModel()
        program, size, upper = model.lp_, cone["q"].size, cone["b"]
        lower = np.full(upper.size, -np.inf)
        lower[: cone.zero] = upper[: cone.zero]
        program.num_col_, program.num_row_ = size, upper.size
        program.col_cost_, program.row_lower_, program.row_upper_ = cone["q"], lower, upper
        program.col_lower_, program.col_upper_ = (np.full(size, end) for end in (-np.inf, np.inf))
        program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        matrices: list[tuple[Any, sp.csc_array]] = [(program.a_matrix_, cone.A)]
        if cone.P.count_nonzero():
            model.hessian_.dim_, model.hessian_.format_ = size, highspy.HessianFormat.kTriangular
            matrices.append((model.hessian_, cone.P))
        for theirs, ours in matrices:
            theirs.start_, theirs.index_, theirs.value_ = ours.indptr, ours.indices, ours.data
        return model

    @staticmethod
    def fake(x: Array, z: Array, zero: int) -> Any:
        """See `SolverObject.fake`: the way back is OSQP's, as the data are (`compiled`)."""
        return Osqp.fake(x, z, zero)


#: Solver objects by cvxpy's name for the solver.
OBJECTS: Mapping[str, Any] = {"CLARABEL": Clarabel, "ECOS": Ecos, "HIGHS": Highs, "OSQP": Osqp, "SCS": Scs}


def solver_object(
    solver: str, cone: ConeMap, interface: Any, dims: Any, options: Options, *, reuse: bool = False
) -> SolverObject:
    """Return the object for a solver."""
    try:
        made: SolverObject = OBJECTS[solver](cone, interface, dims, options, reuse)
    except NotFast:
        raise
    except (TypeError, ValueError) as error:
        raise ModelError(f"options={dict(options)!r} are not options of {solver}: {error}") from error
    return made
