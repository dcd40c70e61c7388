"""Formulations of one problem, compared: value, accuracy, cones, size, time, verdict."""

from __future__ import annotations

from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest

from cvxpriv.certify.formulations import compare_formulations
from cvxpriv.errors import ModelError

SHARES = np.array([0.1, 0.2, 0.3, 0.4])
VALUE = -np.log(2.0)  # of KL(x || 2 shares) on the simplex, at x = shares


def relative_entropy() -> cp.Problem:
    x = cp.Variable(4, name="x")
    return cp.Problem(cp.Minimize(cp.sum(cp.rel_entr(x, 2 * SHARES))), [cp.sum(x) == 1])


def entropy_and_line() -> cp.Problem:
    x = cp.Variable(4, name="x")
    return cp.Problem(cp.Minimize(-cp.sum(cp.entr(x)) - np.log(2 * SHARES) @ x), [cp.sum(x) == 1])


def epigraph() -> cp.Problem:
    x, t = cp.Variable(4, name="x"), cp.Variable(4, name="t")
    rows = [cp.ExpCone(-t, x, cp.Constant(2 * SHARES)), cp.sum(x) == 1]
    return cp.Problem(cp.Minimize(cp.sum(t)), rows)


ALL = {"rel_entr": relative_entropy, "entr": entropy_and_line, "epigraph": epigraph}


def test_equivalent_formulations_agree_and_their_sizes_are_those_of_the_cone_program() -> None:
    found = compare_formulations({name: build() for name, build in ALL.items()}, ["CLARABEL", "ECOS"])
    assert set(found.table["verdict"]) == {"agrees"}
    assert found.reference == pytest.approx(VALUE, abs=1e-10)  # re-solved at tight tolerances
    assert found.table["accuracy"].max() < 1e-6
    assert found.table["cones"].eq("zero 1, exp 4").all()
    assert found.table["rows"].eq(13).all()  # one equality, four cones of three rows
    assert found.table["columns"].eq(8).all()  # four cells and their epigraphs
    assert (found.table[["compile_seconds", "solve_seconds"]] > 0).all(axis=None)


def test_the_reference_may_be_given_and_a_formulation_of_another_value_is_wrong() -> None:
    x = cp.Variable(4, name="x")
    other = cp.Problem(cp.Minimize(cp.sum(cp.kl_div(x, 2 * SHARES))), [cp.sum(x) == 1])
    found = compare_formulations({"right": relative_entropy(), "shifted": other}, ["ECOS"], reference=VALUE)
    assert found.why == "the caller's own value"
    assert found.table.set_index("formulation")["verdict"].to_dict() == {"right": "agrees", "shifted": "WRONG"}
    assert "not the same problem" in found.table["reason"][1]
    assert "WRONG    optimal  solves its own problem" in str(found)


def test_a_solver_that_does_not_take_a_formulation_has_no_row_there() -> None:
    x = cp.Variable(2, name="x")
    plain = cp.Problem(cp.Minimize(cp.sum_squares(x - 1)), [cp.sum(x) == 0])
    conic = cp.Problem(cp.Minimize(cp.square(cp.norm(x - 1))), [cp.sum(x) == 0])
    found = compare_formulations({"plain": plain, "conic": conic}, ["OSQP", "CLARABEL"])
    pairs = set(zip(found.table["formulation"], found.table["solver"], strict=True))
    assert pairs == {("plain", "OSQP"), ("plain", "CLARABEL"), ("conic", "CLARABEL")}


def test_functions_are_formulations_and_problems_keep_their_values() -> None:
    problem = relative_entropy()
    problem.variables()[0].value = np.full(4, 0.25)
    found = compare_formulations({"function": entropy_and_line, "problem": problem}, ["ECOS"])
    assert set(found.table["verdict"]) == {"agrees"}
    assert problem.variables()[0].value.tolist() == [0.25] * 4


def test_unknown_solvers_are_refused() -> None:
    with pytest.raises(ModelError, match="did you mean 'ECOS'"):
        compare_formulations({"a": relative_entropy()}, ["ECSO"])


def test_the_page_holds_every_formulation(tmp_path: Path) -> None:
    found = compare_formulations({name: build() for name, build in ALL.items()}, ["ECOS"])
    text = found.to_html(tmp_path / "f.html").read_text()
    for word in (*ALL, "Accuracy", "Size", "Time", "the most accurate of all"):
        assert word in text
