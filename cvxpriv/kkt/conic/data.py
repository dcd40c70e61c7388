"""A problem's data for a solver, compiled by cvxpy and brought to one uniform form.

cvxpy's data differ by solver. CLARABEL and SCS get ``A x + s = b`` in one piece. ECOS keeps equalities ``A x = b``
apart from ``G x + s = h`` and orders an exponential cone as ``(x, z, y)``. OSQP and HIGHS get ``A x = b`` and
``F x <= g``, and HIGHS takes bounds on variables apart from all rows. The semidefinite triangle is the upper one for
CLARABEL, else the lower one.

cvxpy compiles a problem in a chain of reductions, of which only the last depends on the solver by name. The steps
before it depend on a few of the solver's abilities: a quadratic objective, bounds on variables, power cones.
`Compilations` does them once for all solvers that are alike in these.

Any other solver that cvxpy has is read as cvxpy reads it, as long as its rows are equalities, inequalities and
second-order cones: `cvxpriv.kkt.conic.generic`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.constraints import PowCone3D, PowConeND
from cvxpy.reductions.cvx_attr2constr import CvxAttr2Constr
from cvxpy.reductions.dcp2cone.cone_matrix_stuffing import ConeMatrixStuffing
from cvxpy.reductions.dcp2cone.dcp2cone import Dcp2Cone
from cvxpy.reductions.eliminate_zero_sized import EliminateZeroSized
from cvxpy.reductions.eval_params import EvalParams
from cvxpy.reductions.flip_objective import FlipObjective
from cvxpy.reductions.solution import Solution
from cvxpy.reductions.solvers.defines import INSTALLED_SOLVERS
from cvxpy.reductions.solvers.solver_inverse_data import SolverInverseData
from cvxpy.reductions.solvers.solving_chain import SolvingChain

from cvxpriv.errors import ModelError, suggest
from cvxpriv.kkt.conic.cones import ConeLayout
from cvxpriv.kkt.conic.generic import require_plain
from cvxpriv.kkt.coordinates import held
from cvxpriv.numerics.arrays import Array
from cvxpriv.solvers.place import quiet

SOLVERS = ("CLARABEL", "ECOS", "HIGHS", "OSQP", "SCS")
ECOS_ORDER = (0, 2, 1)
SHARED = (EvalParams, FlipObjective, Dcp2Cone, CvxAttr2Constr, EliminateZeroSized, ConeMatrixStuffing)
"""The steps that solvers share where they are alike; a chain with others is compiled for its solver alone."""
CONTEXTUAL = (cp.perspective,)
"""Atoms that ask for the solver by name."""
POWERS = (PowCone3D, PowConeND)
"""Cones whose support decides how these atoms are written:"""
POWERED = {"Power", "Pnorm", "GeoMean"}


class Compilations:
    """Compilations of one problem. A problem of other expressions or other Parameter values is compiled anew."""

    def __init__(self) -> None:
        self._begun: dict[Hashable, tuple[Any, SolvingChain, list[Any]]] = {}
        self._subject: tuple[Any, ...] = ()
        self._values: list[Any] = []

    def data(self, problem: cp.Problem, solver: str, options: Mapping[str, object]) -> tuple[Any, Any, list[Any]]:
        """Return data, chain and inverse data, as `cvxpy.Problem.get_problem_data` does."""
        self._require_same(problem)
        chain = problem._construct_chain(solver=solver, ignore_dpp=True, solver_opts=dict(options))
        key = _likeness(problem, chain)
        if key is None:
            alone = solver, str(options.get("use_quad_obj"))
            if alone not in self._begun:
                data, inverse = chain.apply(problem)
                self._begun[alone] = data, chain, inverse
            data, chain, inverse = self._begun[alone]
        else:
            if key not in self._begun:
                stuffed: Any = problem
                undone = []
                for reduction in chain.reductions[:-1]:
                    stuffed, undo = reduction.apply(stuffed)
                    undone.append(undo)
                self._begun[key] = stuffed, chain, undone
            stuffed, first, before = self._begun[key]
            # Reductions remember what they did: the chain that inverts has to hold those that were applied.
            chain = SolvingChain(
                reductions=[*first.reductions[:-1], chain.reductions[-1]], solver_context=chain.solver_context
            )
            data, last = chain.reductions[-1].apply(stuffed)
            inverse = [*before, last]
        return data, chain, [*inverse[:-1], SolverInverseData(inverse[-1], chain.solver, dict(options))]

    def _require_same(self, problem: cp.Problem) -> None:
        """Forget what was compiled of other expressions or with other values."""
        subject = (problem.objective, *problem.constraints)
        given = [parameter.value for parameter in problem.parameters()]
        values = [value.toarray() if hasattr(value, "toarray") else value for value in given]
        same = len(subject) == len(self._subject) and all(a is b for a, b in zip(subject, self._subject, strict=True))
        if not (same and all(np.array_equal(a, b) for a, b in zip(values, self._values, strict=True))):
            self._begun.clear()
        self._subject, self._values = subject, values


def _likeness(problem: cp.Problem, chain: SolvingChain) -> Hashable | None:
    """Return what the steps before the solver's own depend on; None where nothing is to be shared."""
    steps = chain.reductions[:-1]
    atoms = problem.atoms()
    names = {one.__name__.removesuffix("Approx") for atom in atoms for one in atom.__mro__}
    if not all(type(step) in SHARED for step in steps) or any(issubclass(atom, CONTEXTUAL) for atom in atoms):
        return None
    context = chain.solver_context
    return (
        tuple(type(step) for step in steps),
        chain.get(Dcp2Cone).quad_obj,
        chain.get(ConeMatrixStuffing).quad_obj,
        chain.get(CvxAttr2Constr).reduce_bounds,
        context.solver_supports_bounds,
        tuple(cone in context.solver_supported_constraints for cone in POWERS) if POWERED & names else (),
    )


@dataclass(frozen=True, eq=False)
class ConeData:
    """A compiled problem: the fields of a `ConeProgram`, and all that solving it and reading the answer needs.

    ``order`` gives, for each row, its place in the solver's own order; ``bounded`` the columns and signs of the rows
    that stand for bounds on variables; ``altered_by_cvxpy`` whether some are on variables that cvxpy added,
    whose bounds it may have wrong, or the entropy of a matrix is replaced by a quadrature.
    """

    fields: Mapping[str, Any]
    solver: str
    order: np.ndarray
    bounded: tuple[np.ndarray, np.ndarray]
    altered_by_cvxpy: bool
    data: dict[str, Any]
    chain: Any
    inverse: Any

    def variables(self, x: Array) -> dict[int, Array] | None:
        """Return the entries of the user's variables in a vector of columns, by id; None where cvxpy has none."""
        solution = Solution(cp.OPTIMAL, 0.0, {self.data["param_prob"].x.id: x}, {}, {})
        try:
            for reduction, inverse in zip(self.chain.reductions[-2::-1], self.inverse[-2::-1], strict=True):
                solution = reduction.invert(solution, inverse)
        except (KeyError, AttributeError, TypeError, ValueError):  # a reduction that wants what is not there
            return None
        return {number: np.asarray(value, dtype=float) for number, value in solution.primal_vars.items()}

    def portable(self) -> ConeData:
        """Return only the numbers and cones, which can be sent to another process; no answer can be read with them."""
        return replace(self, data={"dims": self.data["dims"]}, chain=None, inverse=None)


def extract(
    problem: cp.Problem, solver: str, options: Mapping[str, object], shared: Compilations | None = None
) -> ConeData:
    """Compile ``problem`` for ``solver`` and bring its data to the uniform form.

    `shared`: Earlier compilations of the same expressions, whose steps are used again.
    Raises Unreadable: If the solver is not known here, and its data are of a form that is not known either. ModelError:
    If the problem has integer variables.
    """
    if problem.is_mixed_integer():
        raise ModelError("the problem has boolean or integer variables: only convex problems have residuals and duals")
    if solver not in INSTALLED_SOLVERS and solver not in (present := cp.installed_solvers()):
        raise ModelError(f"solver={solver!r} is not installed: {suggest(solver, present)}")
    # Parameters enter by their values: nobody re-solves here, and with cvxpy's map for re-solves a block of 2.6e5 cells
    # would take 500 GB instead of 1.6 s.
    with without_values(problem), quiet():  # of bounds that are no numbers, of backends: what comes of it is judged
        if shared is None:
            data, chain, inverse = problem.get_problem_data(solver, ignore_dpp=True, solver_opts=dict(options))
        else:
            data, chain, inverse = shared.data(problem, solver, options)
    if solver not in SOLVERS:
        require_plain(solver, data)
    A, b, layout, order = _rows(data, solver)
    c = np.asarray(data["q"] if "q" in data else data["c"], dtype=float)
    bound_A, bound_b, bounded = _bound_rows(data, c.size)
    stuffed = data["param_prob"]
    variables = sorted(stuffed.variables, key=lambda variable: stuffed.var_id_to_col[variable.id])
    owners = np.repeat([variable.id for variable in variables], [variable.size for variable in variables])
    added = ~np.isin(owners, [variable.id for variable in problem.variables()])
    if bound_b.size:
        A, b = sp.vstack([A, bound_A]), np.concatenate([b, bound_b])
        layout = ConeLayout(zero=layout.zero, nonneg=layout.nonneg + bound_b.size)
    offset = getattr(inverse[-1], "inverse_data", inverse[-1])["offset"]
    fields = {
        "P": _symmetric(data.get("P"), c.size),
        "c": c,
        "d": float(np.squeeze(offset)),
        "A": sp.csc_array(A),
        "b": b,
        "layout": layout,
        "maximise": isinstance(problem.objective, cp.Maximize),
        "columns": tuple((str(variable.name()), int(variable.size)) for variable in variables),
    }
    replaced = {cp.von_neumann_entr, cp.quantum_rel_entr} & set(problem.atoms())
    altered = bool(added[bounded[0]].any()) or (
        bool(replaced) and any(map(approximated, [problem.objective, *problem.constraints]))
    )
    return ConeData(fields, solver, order, bounded, altered, data, chain, inverse)


def approximated(node: Any) -> bool:
    """Return whether cvxpy puts a quadrature in the place of an atom: an optimum is 3e-5 off with two nodes."""
    return bool(getattr(node, "quad_approx", ())) or any(map(approximated, node.args))


@contextmanager
def without_values(problem: cp.Problem) -> Iterator[None]:
    """Hide the variables' values while cvxpy compiles: it checks them against its own bounds, which may be wrong."""
    variables = problem.variables()
    with held(variables):
        for variable in variables:
            variable.save_value(None)
        yield


def _symmetric(P: Any, size: int) -> sp.csc_array:
    """Return the whole quadratic form, also where only one triangle of it came."""
    if P is None:
        return sp.csc_array((size, size))
    P = sp.csc_array(P)
    lower, upper = sp.tril(P, -1), sp.triu(P, 1)
    if bool(lower.nnz) != bool(upper.nnz):
        P = P + lower.T + upper.T
    return sp.csc_array(P)


def _rows(data: dict[str, Any], solver: str) -> tuple[sp.csr_array, Array, ConeLayout, np.ndarray]:
    """Return rows, right-hand side, layout, and each row's place in the solver's own order."""
    dims = data["dims"]
    later = ("F", "G") if "F" in data else ("G", "h") if "h" in data else None
    pairs = [("A", "b"), *([later] if later else [])]
    parts = [(data[M], data[v]) for M, v in pairs if data[M] is not None]
    width = (data["q"] if "q" in data else data["c"]).size
    A = sp.vstack([sp.csr_array((0, width)), *(sp.csr_array(M) for M, _ in parts)]).tocsr()
    b = np.concatenate([np.zeros(0), *(np.asarray(v, dtype=float).ravel() for _, v in parts)])
    layout = ConeLayout(
        zero=int(dims.zero),
        nonneg=int(dims.nonneg),
        soc=tuple(map(int, dims.soc)),
        psd=tuple(map(int, dims.psd)),
        exp=int(dims.exp),
        power=(*((float(a), 1.0 - float(a)) for a in dims.p3d), *(tuple(map(float, alpha)) for alpha in dims.pnd)),
        triangle="upper" if solver == "CLARABEL" else "lower",
    )
    order = np.arange(b.size)
    if solver == "ECOS" and layout.exp:
        first = b.size - 3 * layout.exp
        order[first:] = (first + 3 * np.arange(layout.exp)[:, None] + np.array(ECOS_ORDER)).ravel()
    return A[order], b[order], layout, order


def _bound_rows(data: dict[str, Any], width: int) -> tuple[sp.csr_array, Array, tuple[np.ndarray, np.ndarray]]:
    """Return rows ``-x <= -lower`` and ``x <= upper`` for finite bounds outside the rows, with columns and signs."""
    pieces = [(np.zeros(0, dtype=int), np.zeros(0), np.zeros(0))]
    for key, sign in (("lower_bounds", -1.0), ("upper_bounds", 1.0)):
        if data.get(key) is not None:
            bound = np.asarray(data[key], dtype=float)
            finite = np.flatnonzero(np.isfinite(bound))
            pieces.append((finite, np.full(finite.size, sign), sign * bound[finite]))
    columns, signs, sides = (np.concatenate(part) for part in zip(*pieces, strict=True))
    A = sp.csr_array(sp.coo_array((signs, (np.arange(columns.size), columns)), shape=(columns.size, width)))
    return A, sides, (columns, signs)


def finite(part: Any, size: int) -> Array | None:
    """Return a solver's vector as an array; None where there is none, of another size, or an entry is not finite."""
    if part is None:
        return None
    array = np.asarray(part, dtype=float).ravel()
    return array if array.size == size and np.isfinite(array).all() else None
