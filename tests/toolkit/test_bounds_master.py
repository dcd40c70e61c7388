"""The master program is the linear program that it says it is, also after columns and rows have changed."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import linprog

from cvxpriv.bounds.master import ColdMaster, Master
from cvxpriv.errors import SolverFailure
from cvxpriv.numerics import sizes

TOLERANCE = 1e-9  # HiGHS solves to 1e-10


@pytest.fixture(params=["highspy", "scipy"])
def whose(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """HiGHS as highspy brings it, and as scipy does where there is no highspy."""
    if request.param == "scipy":
        monkeypatch.setattr("cvxpriv.bounds.master.among_installed", lambda *names: ())
    return str(request.param)


def program(seed: int, rows: int = 5, columns: int = 40) -> tuple[Master, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    matrix, costs = rng.random((rows, columns)), rng.normal(size=columns)
    right = matrix @ rng.random(columns)
    master = Master(np.append(right[:-1], -np.inf), right)
    return master, costs, matrix, right


def peer(costs: np.ndarray, matrix: np.ndarray, right: np.ndarray) -> float:
    found = linprog(costs, A_eq=matrix[:-1], b_eq=right[:-1], A_ub=matrix[-1:], b_ub=right[-1:], method="highs-ipm")
    return float(found.fun)


@pytest.mark.parametrize("seed", range(5))
def test_value_and_duals_are_those_of_another_solver(seed: int, whose: str) -> None:
    master, costs, matrix, right = program(seed)
    assert isinstance(master, ColdMaster) == (whose == "scipy")
    master.add(costs[:25], matrix[:, :25])
    assert master.solve().value == pytest.approx(peer(costs[:25], matrix[:, :25], right), abs=TOLERANCE)
    master.add(costs[25:], matrix[:, 25:])
    point = master.solve()
    assert point.value == pytest.approx(peer(costs, matrix, right), abs=TOLERANCE)
    assert np.min(costs - point.duals @ matrix) >= -TOLERANCE
    assert point.duals @ right == pytest.approx(point.value, abs=TOLERANCE)
    assert point.duals[-1] <= 0.0


@pytest.mark.usefixtures("whose")
def test_a_changed_row_and_dropped_columns_change_the_program() -> None:
    master, costs, matrix, right = program(7)
    master.add(costs, matrix)
    master.solve()
    right = right.copy()
    right[-1] *= 0.9
    master.set_row(len(right) - 1, -np.inf, right[-1])
    point = master.solve()
    assert point.value == pytest.approx(peer(costs, matrix, right), abs=TOLERANCE)
    useless = point.weights == 0.0
    master.drop(useless)
    assert master.size == np.sum(~useless)
    assert master.solve().value == pytest.approx(point.value, abs=TOLERANCE)


@pytest.mark.usefixtures("whose")
def test_changed_costs_give_another_vertex() -> None:
    master = Master(np.array([1.0]), np.array([1.0]))
    master.add(np.array([1.0, 2.0]), np.ones((1, 2)))
    assert master.solve().weights.tolist() == [1.0, 0.0]
    master.set_costs(np.array([2.0, 1.0]))
    assert master.solve().weights.tolist() == [0.0, 1.0]


@pytest.mark.usefixtures("whose")
def test_an_infeasible_program_says_so() -> None:
    master = Master(np.array([1.0]), np.array([1.0]))
    master.add(np.array([1.0]), np.array([[-1.0]]))
    with pytest.raises(SolverFailure, match="Infeasible"):
        master.solve()


def test_usual_limits_count_the_processor_and_limits_that_are_asked_for_the_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, worked = 100.0, 7.0  # a thread that has a tenth of its processor
    times = SimpleNamespace(monotonic=lambda: clock, thread_time=lambda: worked)
    monkeypatch.setattr(sizes, "time", times)
    for usual, spent in ((True, 5.0), (False, 50.0)):
        with sizes.processor_time(usual):
            begun = last = sizes.now()
            for _ in range(1000):
                clock, worked = clock + 0.05, worked + 0.005
                assert sizes.now() >= last
                last = sizes.now()
        assert last - begun == pytest.approx(spent, abs=1e-9)


@pytest.mark.parametrize("answer", [ValueError("broken"), KeyError("k"), [1.0], [np.nan] * 40, None, "zeros", "prices"])
def test_what_highs_raises_or_makes_up_is_a_failure_with_its_words(answer: object) -> None:
    master, costs, matrix, _ = program(3)
    master.add(costs, matrix)
    real = master._solver

    class Broken:
        def __getattr__(self, name: str) -> object:
            return getattr(real, name)

        def getSolution(self) -> object:
            if isinstance(answer, Exception):
                raise answer
            if answer in ("zeros", "prices"):
                weights = np.zeros(len(costs)) if answer == "zeros" else real.getSolution().col_value
                return SimpleNamespace(col_value=weights, row_dual=np.full(5, 1e6))
            return SimpleNamespace(col_value=answer, row_dual=np.zeros(5))

    master._solver = Broken()
    with pytest.raises(SolverFailure, match="HiGHS says"):
        master.solve()
