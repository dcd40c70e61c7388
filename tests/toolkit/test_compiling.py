"""Solvers share the steps of a compilation that are the same, and get the data that cvxpy alone would give them."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from cvxpriv import crosscheck
from cvxpriv.kkt.conic.data import Compilations, extract
from cvxpriv.solvers.registry import among_installed

SOLVERS = among_installed("CLARABEL", "SCS", "ECOS", "OSQP", "HIGHS")
x = cp.Variable(3, name="x", bounds=[-2, 5])
y, s = cp.Variable(name="y"), cp.Variable(name="s", nonneg=True)
level = cp.Parameter(value=1.0)
PROBLEMS = {
    "linear": cp.Problem(cp.Maximize(cp.sum(x)), [x <= level]),
    "quadratic": cp.Problem(cp.Minimize(cp.sum_squares(x - 1) + cp.norm1(x)), [cp.sum(x) == 1]),
    "root": cp.Problem(cp.Minimize(cp.sum(x)), [cp.geo_mean(x) >= 1, cp.sum(x**1.5) <= 9, cp.pnorm(x, 3) <= 4]),
    "entropy": cp.Problem(cp.Maximize(cp.sum(cp.entr(x))), [cp.norm(x) <= 2]),
    "perspective": cp.Problem(cp.Minimize(cp.perspective(cp.square(y), s)), [s <= 1]),
}


def _numbers(compiled: object) -> list[np.ndarray]:
    fields = compiled.fields  # type: ignore[attr-defined]
    parts = [fields[name] for name in ("P", "A", "c", "b", "d")]
    return [part.toarray() if sp.issparse(part) else np.atleast_1d(part) for part in parts]


@pytest.mark.parametrize("name", PROBLEMS)
def test_shared_steps_give_every_solver_the_data_that_cvxpy_alone_gives_it(name: str) -> None:
    problem, shared, compared = PROBLEMS[name], Compilations(), 0
    for solver in SOLVERS:
        try:
            alone = extract(cp.Problem(problem.objective, problem.constraints), solver, {})
        except cp.error.SolverError:
            continue
        together = extract(cp.Problem(problem.objective, problem.constraints), solver, {}, shared)
        compared += 1
        for one, other in zip(_numbers(alone), _numbers(together), strict=True):
            np.testing.assert_array_equal(one, other)
        assert alone.fields["layout"].names == together.fields["layout"].names
    assert compared >= 2


def test_another_parameter_s_value_is_compiled_anew() -> None:
    problem, shared = PROBLEMS["linear"], Compilations()
    before = extract(problem, "CLARABEL", {}, shared).fields["b"].sum()
    level.value = 2.0
    after = extract(problem, "CLARABEL", {}, shared).fields["b"].sum()
    level.value = 1.0
    assert after - before == pytest.approx(3.0)


def test_alike_solvers_compile_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from cvxpy.reductions.dcp2cone.dcp2cone import Dcp2Cone

    count, apply = [0], Dcp2Cone.apply

    def counted(self: Dcp2Cone, problem: cp.Problem) -> object:
        count[0] += 1
        return apply(self, problem)

    monkeypatch.setattr(Dcp2Cone, "apply", counted)
    solvers = among_installed("CLARABEL", "SCS", "ECOS")
    z = cp.Variable(2, name="z")
    found = crosscheck(cp.Problem(cp.Minimize(cp.sum(z)), [cp.exp(z) <= 2, z >= -1]), solvers)
    assert {verdict.verdict for verdict in found.verdicts.values()} == {"agrees"}
    assert count[0] == 1
