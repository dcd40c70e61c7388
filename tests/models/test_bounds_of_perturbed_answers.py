"""Certified bounds where every number that a solver returns is a little wrong: they get looser, and never false."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from cvxpriv.blocks.declaration import Known
from cvxpriv.bounds.master import Master, MasterPoint
from cvxpriv.constraints import expected_distortion
from cvxpriv.constraints.gate import missed
from cvxpriv.constraints.text import parse
from cvxpriv.models import InferenceAsService, PrivacyFunnel

TABLE = np.array([[12, 3, 5], [1, 8, 6], [2, 2, 9]]) / 48
#: Rounding of a bound beside another one, nats.
ROUNDING = 1e-9
SIZES = (1e-3, 1e-7)
RULES = ("", "ldp=1.0", "pointwise-leakage=0.5:input", "lip=0.5:input", "maximal-leakage=0.3", "tv=0.2", "mean-tv=0.1")
NAMED = ("forbidden=0:1", "forbidden=0:1 pointwise-leakage=0.5:input", "forbidden=0:1 tv=0.2", "distortion=0.3")


@contextmanager
def perturbed(size: float, seed: int = 0) -> Iterator[None]:
    """Multiply each number that HiGHS or a solver of cvxpy returns by 1 + size times a normal one."""
    rng, judged, solve = np.random.default_rng(seed), Master._judged, cp.Problem.solve

    def moved(numbers: Any) -> Any:
        return np.asarray(numbers) * (1.0 + size * rng.normal(size=np.shape(numbers)))

    def of_highs(self: Master, point: MasterPoint) -> MasterPoint | None:
        return judged(self, MasterPoint(moved(point.weights), moved(point.duals), float(moved(point.value))))

    def of_cvxpy(self: cp.Problem, *arguments: Any, **options: Any) -> Any:
        found = solve(self, *arguments, **options)
        for variable in self.variables():
            variable.save_value(moved(variable.value))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Master, "_judged", of_highs)
        patch.setattr(cp.Problem, "solve", of_cvxpy)
        yield


def constrained(model: Any, rules: str, outputs: int) -> Any:
    for rule in rules.split():
        name, _, value = rule.partition("=")
        distorting = name == "distortion"
        made = expected_distortion(1.0 - np.eye(3, outputs), float(value)) if distorting else parse(rule)
        model = model.constrain(name, made)
    return model


@pytest.mark.parametrize("rules", [*RULES, *NAMED])
def test_inference_is_bounded_rightly_whatever_solvers_answer(rules: str) -> None:
    model = constrained(InferenceAsService(TABLE, 0.1), rules, 4)
    right, known = model.bound(gap=1e-4, time_limit=1.0), Known.of_table(model.problem.table)
    for size in SIZES:
        with perturbed(size):
            found = model.bound(gap=1e-4, time_limit=1.0)
        assert found.upper >= right.lower - ROUNDING
        assert found.lower == model.problem.objective(found.mechanism)
        counted = [(name, one) for name, one in model.constraints if name not in found.left_out]
        assert not missed(found.mechanism, counted, known)
        if set(found.left_out) <= set(right.left_out):
            assert found.lower <= right.upper + ROUNDING
        if found.certificate is not None:
            found.certificate.verify(TABLE)


@pytest.mark.parametrize("rules", [*RULES, *NAMED, "renyi=2:0.5", "f-information=jensen-shannon:0.05"])
def test_the_funnel_is_bounded_rightly_whatever_solvers_answer(rules: str) -> None:
    model = constrained(PrivacyFunnel(TABLE, 0.06), rules, 4)
    problem = model.problem
    right, known = model.bound(time_limit=2.0), Known.of_table(problem.table)
    for size in SIZES:
        with perturbed(size):
            found = model.bound(time_limit=2.0)
        assert found.lower <= right.upper + ROUNDING
        assert problem.utility(found.mechanism) >= problem.rate - ROUNDING
        if set(found.ignored) <= set(right.ignored):
            assert found.upper >= right.lower - ROUNDING
        off = missed(found.mechanism, [(name, one) for name, one in model.constraints if name in found.counted], known)
        assert not off or (found.upper == problem.table.information and "no mechanism was found" in found.reason)
        found.certificate.verify()


def test_perfect_privacy_is_bounded_rightly_whatever_highs_answers() -> None:
    model = PrivacyFunnel(np.random.default_rng(3).dirichlet(np.ones(12)).reshape(2, 6), 0.5)
    right = model.perfect_privacy()
    for seed in range(5):
        with perturbed(1e-3, seed):
            found = model.perfect_privacy()
        assert found.leakage <= 1e-12
        assert found.rate <= right.upper + ROUNDING
        assert found.upper >= right.rate
