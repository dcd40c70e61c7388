"""The usual run of inference as a service says how good it is: with constraints, kinks, a floor, few outputs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cvxpriv_models.inference_service import bound_search, smoothed_master
from cvxpriv_models.inference_service.bound import bound
from cvxpriv_models.inference_service.model import InferenceAsService
from cvxpriv_models.inference_service.problem import Problem
from cvxpriv_models.privacy_funnel import bound as funnel_bound
from cvxpriv_models.privacy_funnel.pricing import FunnelPricing

import cvxpriv as cpv
from cvxpriv import constraints, datasets
from cvxpriv.blocks.block import Block
from cvxpriv.bounds.master import Master
from cvxpriv.errors import DataError, ModelError
from cvxpriv.models import PrivacyFunnel

from .inference_cases import g10

TABLE = np.array([[0.3, 0.1, 0.1], [0.05, 0.15, 0.3]])
#: G10 with JS and local differential privacy at 1, beta = .1, by another program, nats.
LOCAL_DP_ON_G10 = 0.0546159736529


def service(**given: Any) -> InferenceAsService:
    return InferenceAsService(TABLE, **{"beta": 0.1, **given})


def test_local_differential_privacy_is_part_of_the_bound_on_g10() -> None:
    asked = constraints.local_differential_privacy(1.0)
    model = InferenceAsService(g10("jensen-shannon", 0.1).table, 0.1).constrain("ldp", asked)
    found = model.bound(gap=1e-4)
    assert found.certified
    assert found.ignored == ()
    assert found.certificate is not None
    assert found.certificate.verify().bound <= found.upper + 1e-4 * found.lower
    assert found.lower == pytest.approx(LOCAL_DP_ON_G10, rel=1e-8)
    assert asked.violation(found.mechanism) <= 1e-12
    assert found.upper < InferenceAsService(g10("jensen-shannon", 0.1).table, 0.1).bound().lower


@pytest.mark.parametrize(
    "asked",
    [
        constraints.local_differential_privacy(0.8),
        pytest.param(constraints.pointwise_leakage(0.3, of="input"), marks=pytest.mark.slow),
        pytest.param(constraints.local_information_privacy(0.3, of="input"), marks=pytest.mark.slow),
    ],
)
def test_a_run_under_constraints_on_columns_is_certified(asked: constraints.ReadyConstraint, tmp_path: Path) -> None:
    model = service().constrain("asked", asked)
    run = model.solve()
    assert run.converged
    assert run.settings.method == "columns"
    assert run.gap is not None
    assert run.gap <= 2e-5 * max(run.objective, 1e-3)
    assert run.objective < service().bound().lower
    # Solved by the paper's alternation from the usual starts, with cvxpy's own form of the constraint:
    assert model.solve(method="joint", starts=1).objective <= run.objective + run.gap + 1e-8
    again = cpv.load(run.save(tmp_path / "run.json"))
    assert again.gap == pytest.approx(run.gap, abs=2e-3 * run.objective)
    assert again.bound.ignored == ()


def test_a_run_says_why_it_keeps_no_certificate(tmp_path: Path) -> None:
    asked = constraints.f_information("total-variation", 0.1)
    run = service().constrain("told", asked).solve(gap=0.5, time_limit=1.0, max_iter=1)
    assert run.bound is not None
    if run.bound.certificate is None:  # else there was no time for the constraint
        assert "No certificate of the bound is kept (told: the checker knows no f but" in run.note


def test_a_constraint_that_is_no_matter_of_columns_leaves_a_bound_that_holds(tmp_path: Path) -> None:
    run = service(floor=1e-3).constrain("least", constraints.floor(0.01)).solve(max_iter=1)
    assert run.bound is not None
    assert run.bound.ignored == ("least", "floor")
    assert "The bound is that without least, since it asks a least mass of every output" in run.note
    again = cpv.load(run.save(tmp_path / "run.json"))
    assert again.bound.ignored == run.bound.ignored
    assert run.bound.upper == pytest.approx(service().bound().upper, abs=1e-7)
    assert run.gap == pytest.approx(run.bound.upper - run.objective)
    assert "without least" in str(run.facts["gap"].detail)


@pytest.mark.parametrize(
    "given",
    [
        {"divergence": "total-variation"},
        pytest.param({"floor": 1e-3, "size_u": 3}, marks=pytest.mark.slow),
        {"size_u": 2},
    ],
)
def test_kinks_a_floor_and_few_outputs_have_a_gap_too(given: dict[str, Any]) -> None:
    run = service(**given).solve()
    assert run.gap is not None
    assert run.mechanism.shape[1] == run.problem.size_u
    assert run.mechanism.min() >= run.problem.floor
    assert 0.0 <= run.gap <= 0.05
    assert run.objective <= service(divergence=given.get("divergence", "jensen-shannon")).bound().upper + 1e-12


@pytest.mark.parametrize("divergence", ["jensen-shannon", "mutual-information", "total-variation"])
def test_an_enormous_beta_has_the_trivial_mechanism_and_says_so(divergence: str) -> None:
    for seed, beta in enumerate((1e9, 1e15)):
        table = np.random.default_rng(seed).dirichlet(np.ones(12)).reshape(3, 4)
        run = InferenceAsService(table, beta, divergence=divergence).solve()
        assert (run.objective, run.accuracy, run.leakage) == (0.0, 0.0, 0.0)
        assert not np.signbit([run.objective, run.accuracy, run.leakage]).any()
        assert run.converged
        assert run.trivial
        assert run.bound is not None
        assert run.gap is not None
        assert 0.0 <= run.gap <= 1e-9
        assert f"no mechanism is worth more than {run.bound.upper:.2g} nats" in run.note
        assert "the trivial mechanism, which says nothing, is optimal" in run.note


@pytest.mark.parametrize("divergence", ["jensen-shannon", "total-variation"])
def test_an_enormous_beta_needs_no_solver_from_any_start(divergence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a solver was asked")

    monkeypatch.setattr(Block, "solve", refuse)
    for options in ({"starts": 1}, {"method": "joint", "starts": 1}, {"init": np.eye(4, 5)}):
        table = np.random.default_rng(0).dirichlet(np.ones(12)).reshape(3, 4)
        run = InferenceAsService(table, 1e300, divergence=divergence).solve(max_iter=2, **options)
        assert (run.objective, run.trivial, run.converged) == (0.0, True, True)


def test_a_proved_run_has_converged_and_a_loaded_one_is_proved_again(tmp_path: Path) -> None:
    run = InferenceAsService(datasets.heart_failure(), 0.1).solve()
    assert run.converged
    path = run.save(tmp_path / "run.json")
    again = cpv.load(path)
    assert again.gap is not None
    assert run.gap <= again.gap <= 1.1e-6 * run.objective
    path.write_text(path.read_text().replace('"beta": 0.1', '"beta": 0.11'))
    with pytest.raises(DataError):
        cpv.load(path)


def test_columns_needs_few_symbols_of_s() -> None:
    table = np.random.default_rng(0).dirichlet(np.ones(30)).reshape(6, 5)
    with pytest.raises(ModelError, match="choose 'auto'"):
        InferenceAsService(table, 0.2).solve(method="columns")
    run = InferenceAsService(table, 0.2).solve(starts=1)
    assert run.gap is None
    assert "S has more than 4 symbols" in run.no_gap
    assert run.no_gap in run.facts["gap"].detail


def interrupted_at(call: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, but for one call that the keyboard interrupts."""
    calls = 0

    def wrapped(*given: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call:
            raise KeyboardInterrupt
        return function(*given, **named)

    return wrapped


@pytest.mark.parametrize(("name", "call"), [("verify", 1), ("cross_over", 1), ("settle", 1), ("settle", 3)])
def test_an_interrupt_leaves_the_best_so_far_and_a_bound_that_holds(
    name: str, call: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    optimum = bound(Problem.of(TABLE, 0.1)).lower
    home = smoothed_master if name == "settle" else bound_search
    monkeypatch.setattr(home, name, interrupted_at(call, getattr(home, name)))
    run = service().solve()
    assert run.interrupted
    assert not run.converged
    assert run.bound is not None
    assert "keyboard" in run.bound.reason
    assert run.bound.lower <= optimum <= run.bound.upper <= Problem.of(TABLE, 0.1).table.information + 1e-12


@pytest.mark.grid(every=3)
@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("size_s", [3, 6])
@pytest.mark.parametrize(
    ("home", "name"),
    [
        (FunnelPricing, "verify"),
        (FunnelPricing, "rows"),
        (Master, "add"),
        (Master, "solve"),
        (funnel_bound, "mechanism_of"),
    ],
)
def test_an_interrupt_of_the_funnel_s_bound_leaves_a_bound_that_holds(
    home: Any, name: str, size_s: int, constrained: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    funnel = PrivacyFunnel(np.random.default_rng(0).dirichlet(np.ones(4 * size_s)).reshape(size_s, 4), 0.6)
    if constrained:
        funnel = funnel.constrain("privacy", constraints.local_differential_privacy(4.0))
    optimum = funnel.bound(gap=1e-8)
    interrupted = interrupted_at(1, getattr(home, name))
    monkeypatch.setattr(home, name, interrupted)
    found = funnel.bound(gap=1e-8)
    assert "keyboard" in found.reason or size_s > 5 or found.gap <= 1e-8  # six are never proved
    assert found.lower <= optimum.upper + 1e-12  # rounding
    assert found.ignored or found.upper >= optimum.lower - 1e-12
    assert funnel.problem.utility(found.mechanism) >= funnel.problem.rate


@pytest.mark.parametrize("f", ["(t-1)**2", "jensen-shannon"])
def test_a_bound_that_had_no_time_is_proved_by_its_certificate(f: str) -> None:
    found = bound(Problem.of(TABLE, 1.0, f, None), gap=1e-6, time_limit=1e-6)
    assert not found.certified
    assert found.certificate is not None
    assert found.certificate.verify().bound >= found.lower


def test_a_bound_that_needs_more_outputs_than_u_has_is_said_to_be_one_without_that_limit() -> None:
    table = np.random.default_rng(1).dirichlet(np.ones(24)).reshape(4, 6)
    whole, few = (InferenceAsService(table, 0.1, size_u=size).solve() for size in (6, 2))
    assert whole.bound is not None
    assert few.bound is not None
    outputs = few.bound.mechanism.shape[1]
    assert "size_u" not in whole.bound.ignored
    assert few.bound.left_out == {"size_u": f"its mechanism has {outputs} outputs where 2 are allowed"}
    assert few.objective + (few.gap or 0.0) >= whole.objective > few.objective
    assert "without size_u" in repr(few)
    assert "without size_u" in few.note
