"""Constraints hold in the doubles of the mechanism that a run returns, in every cell; else it has not converged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cvxpriv_models.inference_service.facts import local_privacy

import cvxpriv as cpv
from cvxpriv import constraints, datasets
from cvxpriv.blocks.declaration import Known
from cvxpriv.constraints.gate import brought_inside, missed, on_equalities
from cvxpriv.errors import DataError
from cvxpriv.models import InferenceAsService, PrivacyFunnel
from cvxpriv.numerics.arrays import Array


def largest_log_ratio(mechanism: Array) -> float:
    """Return max over outputs of log max_y p(u|y) / min_y p(u|y); an output of no mass has none."""
    used = mechanism[:, mechanism.max(axis=0) > 0.0]
    with np.errstate(divide="ignore"):
        return float(np.log(used.max(axis=0) / used.min(axis=0)).max())


@pytest.mark.parametrize("noise", [1e-12, 1e-9, 1e-6])
def test_what_a_solver_leaves_outside_is_brought_inside_and_hardly_moves(noise: float) -> None:
    rng = np.random.default_rng(5)
    for _ in range(30):
        inputs, outputs = rng.integers(2, 7, size=2)
        epsilon = float(rng.uniform(0.1, 2.0))
        known = Known(rng.dirichlet(np.ones(inputs)), np.ones(1), np.ones((1, inputs)))
        column = rng.dirichlet(np.ones(outputs))
        column[rng.integers(outputs)] *= rng.choice([1.0, 1e-9])  # an output of nearly no mass
        low, high = column * np.exp(-epsilon / 2), column * np.exp(epsilon / 2)
        inside = np.where(rng.random((inputs, outputs)) < 0.5, low, high)
        inside = inside / inside.sum(axis=1).max()
        inside[:, int(np.argmax(inside.min(axis=0)))] += 1.0 - inside.sum(axis=1)
        outside = np.maximum(inside + noise * rng.normal(size=inside.shape), 0.0)
        outside /= outside.sum(axis=1, keepdims=True)
        rules = [("ldp", constraints.local_differential_privacy(max(epsilon, largest_log_ratio(inside))))]
        moved = brought_inside(outside, rules, known)
        assert not missed(moved, rules, known)
        assert largest_log_ratio(moved) <= float(rules[0][1].parameters["epsilon"]) + 1e-12
        assert abs(moved - outside).max() <= 1e4 * noise + 1e-5
        assert abs(moved.sum(axis=1) - 1.0).max() < 1e-15 * outputs + 1e-15


def death() -> cpv.JointTable:
    counts = datasets.load_table("heart-failure")
    return cpv.JointTable.from_frame(counts, ["death"], ["anaemia", "diabetes", "smoking"], count="count")


@pytest.mark.parametrize("beta", [0.01, *(pytest.param(one, marks=pytest.mark.slow) for one in (0.03, 0.1))])
def test_a_first_order_solver_keeps_a_promise_about_every_cell(beta: float) -> None:
    service = InferenceAsService(death(), beta).constrain("ldp", constraints.local_differential_privacy(1.0))
    run = service.solve(solver="SCS", starts=1)
    assert not run.missed
    assert largest_log_ratio(run.mechanism) <= 1.0 + 1e-12


def test_a_funnel_keeps_it_too() -> None:
    funnel = PrivacyFunnel(death(), 0.02).constrain("ldp", constraints.local_differential_privacy(1.0))
    run = funnel.solve(starts=1)
    assert not run.missed
    assert largest_log_ratio(run.mechanism) <= 1.0 + 1e-12


def test_a_run_outside_of_its_constraints_has_not_converged_and_says_so() -> None:
    tight = (("ldp", constraints.local_differential_privacy(0.1)),)
    free = InferenceAsService(death(), 0.01).solve(starts=2)
    assert free.converged
    claimed = replace(free, constraints=tight)
    assert not claimed.converged
    assert claimed.missed["ldp"] > 0.0
    assert "MISSES its constraints: ldp" in " ".join(claimed.facts.messages)


def test_a_mechanism_s_file_keeps_its_promises_or_is_refused(tmp_path: Path) -> None:
    service = InferenceAsService(death(), 0.03).constrain("ldp", constraints.local_differential_privacy(1.0))
    path = service.solve(starts=1).as_mechanism().save(tmp_path / "m.json")
    assert [one["constraint"] for one in cpv.Mechanism.load(path).constraints] == ["local_differential_privacy"]
    document = json.loads(path.read_text())
    row = document["matrix"][0]
    row[0], row[1] = row[0] * 1e-3, row[1] + row[0] * (1.0 - 1e-3)
    path.write_text(json.dumps(document))
    with pytest.raises(DataError, match=r"misses local_differential_privacy\(epsilon=1\)"):
        cpv.Mechanism.load(path)


@pytest.mark.parametrize("text", ["forbidden=0:1,2:0", "fixed=0:1:0.5", "output=0.5:0.3:0.2", "symmetric=1,0,2:1,0,2"])
def test_equalities_hold_to_the_rounding_of_a_double(text: str) -> None:
    rng = np.random.default_rng(3)
    known = Known(np.array([0.4, 0.4, 0.2]), np.ones(1), np.ones((1, 3)))
    rule = constraints.parse(text)
    assert isinstance(rule, constraints.ReadyConstraint)
    inside = on_equalities(rng.dirichlet(np.full(3, 30.0), size=3), [("rule", rule)], known)
    assert abs(inside.sum(axis=1) - 1.0).max() < 1e-14
    solved = inside + 1e-9 * rng.random((3, 3))
    solved /= solved.sum(axis=1, keepdims=True)
    assert "rule" in missed(solved, [("rule", rule)], known)
    moved = brought_inside(solved, [("rule", rule)], known)
    assert not missed(moved, [("rule", rule)], known)
    assert abs(moved - solved).max() < 1e-8
    if text.startswith("forbidden"):
        assert moved[0, 1] == moved[2, 0] == 0.0


def test_a_forbidden_cell_stays_empty_where_another_constraint_asks_for_mixing() -> None:
    known = Known(np.array([0.5, 0.5]), np.ones(1), np.ones((1, 2)))
    rules = [
        ("none", constraints.forbidden([(0, 2)])),
        ("ldp", constraints.local_differential_privacy(1.0, 0.1)),
    ]
    wide = (1.0 - 0.1) / (1.0 + np.e)  # the input's own side of the two other outputs, at the bound
    solved = np.array([[1.0 - wide, wide, 0.0], [wide, 0.9 - wide, 0.1 + 1e-10]])
    moved = brought_inside(solved / solved.sum(axis=1, keepdims=True), rules, known)
    assert not missed(moved, rules, known)
    assert moved[0, 2] == 0.0
    assert abs(moved - solved).max() < 0.1


def test_what_is_promised_under_an_approximate_local_privacy_names_its_delta() -> None:
    rules = [("pure", constraints.local_differential_privacy(2.0)), ("loose", constraints.parse("ldp=1.0:0.05"))]
    told = local_privacy(tuple(rules), {"pure": 0.0, "loose": 0.0})
    assert [one.split(" each draw")[0] for one in told] == ["With pure", "With loose"]
    assert "2-locally differentially private" in told[0]
    assert "delta" not in told[0]
    assert "to within delta = 0.05" in told[1]
