"""Calls of a solver by its own interface, for scripts: from ``P, c, A, b, cones, options`` to ``x`` and ``status``."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["CALLS", "OTHER"]

_SCS = """
import scs

data = {"P": sp.triu(P, format="csc"), "A": A, "b": b, "c": c}
product = {"z": cones["zero"], "l": cones["nonneg"], "q": cones["soc"], "s": cones["psd"], "ep": cones["exp"]}
product["p"] = [alpha[0] for alpha in cones["power"]]
answer = scs.solve(data, product, verbose=False, **options)
x, status = answer["x"], {1: "optimal", -1: "unbounded", -2: "infeasible"}.get(answer["info"]["status_val"], "other")
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
words = {0: "optimal", 1: "infeasible", 2: "unbounded", 10: "optimal_inaccurate"}
x, status = answer["x"], words.get(answer["info"]["exitFlag"], "other")
"""
_OSQP = """
import osqp

low = np.where(np.arange(b.size) < cones["zero"], b, -np.inf)
solver = osqp.OSQP()
solver.setup(sp.triu(P, format="csc"), c, A, low, b, verbose=False, **options)
answer = solver.solve()
words = {"solved": "optimal", "primal infeasible": "infeasible", "dual infeasible": "unbounded"}
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

variable = cp.Variable(c.size)
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
