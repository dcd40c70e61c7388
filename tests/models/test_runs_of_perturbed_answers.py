"""Runs where every number that a solver returns is wrong: what is called converged is right by another reckoning."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest

import cvxpriv as cpv
from cvxpriv.bounds.master import Master, MasterPoint
from cvxpriv.constraints.text import parse
from cvxpriv.errors import Disagreement, SolverFailure
from cvxpriv.models import ISTDP, ADMMSharing, InferenceAsService, PrivacyFunnel, RecycledADMM
from cvxpriv.numerics.arrays import Array
from tests.toolkit.test_supervision import outside_the_disc, product, shards, sharing_data, sparse_data

TABLE = np.array([[12, 3, 5], [1, 8, 6], [2, 2, 9]]) / 48
#: Rounding of an information, nats; and of row sums.
ROUNDING, ROWS = 1e-9, 1e-12
#: How far a first-order point to 1e-7, or 1e-5 in the problems of cvxpy, may be from what another reckoning finds.
NEAR = 1e-5
Rng = np.random.Generator
Lie = Callable[[Array, Rng], Array]


def noise(size: float) -> Lie:
    return lambda given, rng: given * (1.0 + size * rng.normal(size=given.shape))


def swapped(given: Array, rng: Rng) -> Array:
    """Two entries change places."""
    moved = given.ravel().copy()
    if moved.size > 1:
        pair = rng.choice(moved.size, 2, replace=False)
        moved[pair] = moved[pair[::-1]]
    return moved.reshape(given.shape)


def same(given: Array, rng: Rng) -> Array:
    return given


#: The last answer of each shape.
LAST: dict[tuple[int, ...], Array] = {}


def stale(given: Array, rng: Rng) -> Array:
    """The answer before, where one had this shape."""
    before, LAST[given.shape] = LAST.get(given.shape, given), given
    return before


#: (of points, of multipliers, of values).
LIES: dict[str, tuple[Lie, Lie, Lie]] = {
    "noise of 1e-6": (noise(1e-6),) * 3,
    "noise of 1e-4": (noise(1e-4),) * 3,
    "noise of 1e-2": (noise(1e-2),) * 3,
    "values": (same, same, lambda given, rng: 1.01 * given + 0.01),
    "no number": (lambda given, rng: np.full(given.shape, np.nan), same, same),
    "multipliers of the other sign": (same, lambda given, rng: -given, same),
    "points of the other sign": (lambda given, rng: -given, same, same),
    "swapped entries": (swapped, swapped, same),
    "all a thousandth too large": (lambda given, rng: 1.001 * given,) * 3,
    "off by 1e-7": (lambda given, rng: given + 1e-7 * rng.choice([-1.0, 1.0], given.shape),) * 3,
    "the answer before": (stale, stale, stale),
    "multipliers that are no numbers": (same, lambda given, rng: np.full(given.shape, np.nan), same),
    "multipliers of nothing": (same, lambda given, rng: rng.normal(size=given.shape), same),
}


@contextmanager
def lying(lie: str, seed: int = 0) -> Iterator[None]:
    """Let HiGHS and every solver of cvxpy lie."""
    rng, judged, solve = np.random.default_rng(seed), Master._judged, cp.Problem.solve
    LAST.clear()
    point, multiplier, value = (lambda given, of=of: of(np.asarray(given, dtype=float), rng) for of in LIES[lie])

    def of_highs(self: Master, found: MasterPoint) -> MasterPoint | None:
        return judged(self, MasterPoint(point(found.weights), multiplier(found.duals), float(value(found.value))))

    def of_cvxpy(self: cp.Problem, *arguments: Any, **options: Any) -> Any:
        found = solve(self, *arguments, **options)
        for variable in self.variables():
            if variable.value is not None:
                variable.save_value(point(variable.value))
        for constraint in self.constraints:
            for dual in constraint.dual_variables:
                if dual.value is not None:
                    dual.save_value(multiplier(dual.value))
        if self._value is not None:
            self._value = float(value(self._value))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Master, "_judged", of_highs)
        patch.setattr(cp.Problem, "solve", of_cvxpy)
        patch.setattr("cvxpriv.blocks.block.Block._program", lambda *_: None)  # which does not go through cvxpy
        yield


def constrained(model: Any, *rules: str) -> Any:
    for rule in rules:
        model = model.constrain(rule, parse(rule))
    return model


def spread() -> Any:
    """A problem of several outputs whose merging and proof take most of a solve."""
    return PrivacyFunnel(np.random.default_rng(0).dirichlet(np.ones(40)).reshape(5, 8), 0.6)


FEW: dict[str, Any] = {"starts": 1, "max_iter": 10}
MODELS: dict[str, Callable[[], Any]] = {
    "funnel": lambda: PrivacyFunnel(TABLE, 0.6).solve(),
    "funnel, many outputs": lambda: spread().solve(time_limit=8.0),
    "funnel, dcp": lambda: PrivacyFunnel(TABLE, 0.8).solve(engine="dcp", method="aem", **FEW),
    "funnel, local privacy": lambda: constrained(PrivacyFunnel(TABLE, 0.02), "ldp=1.0").solve(**FEW),
    "funnel, rules": lambda: constrained(PrivacyFunnel(TABLE, 0.05), "tv=0.4", "forbidden=0:1").solve(**FEW),
    "inference": lambda: InferenceAsService(TABLE, 0.3).solve(),
    "inference, local privacy": lambda: constrained(InferenceAsService(TABLE, 0.05), "ldp=1.0").solve(**FEW),
    "inference, rules": lambda: constrained(InferenceAsService(TABLE, 0.05), "tv=0.4", "forbidden=0:1").solve(**FEW),
    "sharing": lambda: ADMMSharing(*sharing_data()).solve(engine="dcp", max_iter=60),
    "consensus": lambda: RecycledADMM(nx.path_graph(3), shards()).solve(engine="dcp", max_iter=60, tol=1e-5),
    "sparse": lambda: ISTDP(*sparse_data(), penalty="mcp:0.05:3").solve(engine="dcp", max_iter=40),
    "alternate": lambda: cpv.alternate(product(), starts=1, max_iter=50, engine="dcp"),
    "convex-concave": lambda: cpv.convex_concave(outside_the_disc(), starts=1, max_iter=50),
}


def information(joint: Array) -> float:
    """I of a joint table, nats, by its definition."""
    apart = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    held = joint > 0.0
    return float(np.sum(joint[held] * np.log(joint[held] / apart[held])))


def require_mechanism(run: Any, honest: Any) -> None:
    """A mechanism that keeps its rate and its rules, and an optimum that its gap does not leave out."""
    table, mechanism = run.problem.table.probabilities, run.mechanism
    assert mechanism.min() >= 0.0
    assert abs(mechanism.sum(axis=1) - 1.0).max() <= ROWS
    told = information(table @ mechanism)
    for name, _ in run.constraints:
        used = mechanism[:, mechanism.max(axis=0) > 0.0]
        if name.startswith("ldp"):
            assert (used.max(axis=0) <= np.e * (1.0 + 1e-15) * used.min(axis=0)).all()
        elif name.startswith("forbidden"):
            assert mechanism[0, 1] == 0.0
        else:
            inputs = table.sum(axis=0)
            posteriors = used * inputs[:, None] / (inputs @ used)
            private = table / inputs @ posteriors
            assert 0.5 * abs(private - table.sum(axis=1)[:, None]).sum(axis=0).max() <= 0.4 + 1e-12
    if hasattr(run, "utility"):
        assert information(np.diag(table.sum(axis=0)) @ mechanism) >= run.problem.rate - ROUNDING
        assert run.leakage == pytest.approx(told, abs=ROUNDING)
        better = told - honest.leakage
    else:
        assert run.accuracy == pytest.approx(told, abs=ROUNDING)
        better = honest.objective - run.problem.objective(mechanism)
    if run.gap is not None:
        assert better <= run.gap + ROUNDING
    else:
        assert set(run.certify(("CLARABEL",)).table["verdict"]) <= {"agrees", "loose"}


def require_stationary(value: Callable[[Array], float], point: Array) -> None:
    """No entry's move by 1e-4 in either way lowers a function by more than a residual of NEAR does."""
    step = 1e-4
    for one in np.eye(point.size):
        for sign in (-1.0, 1.0):
            assert value(point + sign * step * one) >= value(point) - NEAR * step


def mcp(theta: Array, lam: float = 0.05, gamma: float = 3.0) -> float:
    """The minimax concave penalty, by its definition."""
    inner = lam * abs(theta) - theta**2 / (2.0 * gamma)
    return float(np.where(abs(theta) <= gamma * lam, inner, gamma * lam**2 / 2.0).sum())


def require_right(name: str, run: Any, honest: Any) -> None:
    """Reckon what a run claims again, from its point and the data alone."""
    if name.startswith(("funnel", "inference")):
        require_mechanism(run, honest)
    elif name == "sparse":
        rows, labels = sparse_data()
        require_stationary(lambda at: float(np.logaddexp(0.0, -labels * (rows @ at)).mean()) + mcp(at), run.theta)
    elif name == "sharing":
        assert run.objective <= honest.objective + run.gap + honest.gap + ROUNDING
    elif name == "consensus":  # the gap is that of the mean: nodes that differ a little can be below the optimum
        least = honest.problem.objective(honest.mean)
        assert run.problem.objective(run.mean) <= least + run.gap + honest.gap + ROUNDING
    elif name == "alternate":
        w, h = run.values["w"], run.values["h"]
        assert min(w.min(), h.min()) >= -run.tol
        assert w.sum() == pytest.approx(1.0, abs=run.tol)
        data = np.random.default_rng(0).uniform(size=(3, 3))
        assert run.objective == pytest.approx(float(((data - w @ h) ** 2).sum()), abs=ROUNDING)
        fitted = np.maximum(w.T @ data / float((w**2).sum()), 0.0)  # the least over h, entry by entry
        assert run.objective <= float(((data - w @ fitted) ** 2).sum()) + NEAR
    else:
        x = run.values["x"]
        assert np.linalg.norm(x) >= 1.0 - run.tol
        assert abs(x).max() <= 2.0 + run.tol
        assert run.objective == pytest.approx(float(x.sum()), abs=ROUNDING)
        assert run.objective == pytest.approx(-4.0, abs=NEAR)  # the only first-order point below the disc


#: What `make test` tries; the others take seconds each.
QUICK = {("inference", lie) for lie in ("no number", "noise of 1e-2")} | {("sparse", "swapped entries")}
QUICK |= {("convex-concave", "swapped entries"), ("alternate", "noise of 1e-6")}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("model", "lie"),
    [
        pytest.param(model, lie, marks=() if (model, lie) in QUICK else pytest.mark.slow)
        for model in MODELS
        for lie in LIES
    ],
)
def test_what_is_called_converged_is_right_by_another_reckoning(model: str, lie: str) -> None:
    honest = MODELS[model]()
    require_right(model, honest, honest)
    try:
        with lying(lie):
            run = MODELS[model]()
    except (SolverFailure, Disagreement):
        return
    if run.converged:
        require_right(model, run, honest)
