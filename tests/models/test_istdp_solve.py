"""GIST: stationary to 1e-9, by every engine, with every penalty and loss; what a run keeps and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from cvxpriv_models.istdp import ISTDP, SparseRun, gist
from cvxpriv_models.istdp.closed_form import barzilai_borwein
from cvxpriv_models.istdp.gist import LOOP
from scipy.optimize import minimize
from scipy.special import expit

import cvxpriv as cpv
from cvxpriv.errors import DataError, ModelError
from cvxpriv.penalties import L1, L2, MCP, SCAD, CappedL1, Penalty
from tests.models.istdp_cases import correlated
from tests.toolkit.test_proximal_block import Ridge

WIDE = {kind: correlated(500, 1000, 0.9, seed=1, kind=kind) for kind in ("squared", "logistic")}
SMALL = {kind: correlated(80, 12, 0.6, seed=2, kind=kind) for kind in ("squared", "logistic")}


def model(kind: str, penalty: Penalty, cases: dict = SMALL, intercept: bool = False) -> ISTDP:
    x, y, _ = cases[kind]
    return ISTDP(x, y, loss=kind, penalty=penalty, intercept=intercept)


def recomputed(one: ISTDP, theta: np.ndarray) -> float:
    """The largest residual, from the data and the formulas of MATH ISTDP for MCP."""
    x, y, penalty = np.asarray(one.problem.design), one.problem.y, one.problem.penalty
    assert isinstance(penalty, MCP)
    z = x @ theta
    slope = -y * expit(-y * z) if one.problem.loss.margin else z - y
    g = x.T @ slope / y.size
    free = np.abs(g + np.sign(theta) * np.maximum(penalty.lam - np.abs(theta) / penalty.alpha, 0.0))
    return float(np.where(theta != 0.0, free, np.maximum(np.abs(g) - penalty.lam, 0.0)).max())


@pytest.mark.parametrize("kind", ["squared", "logistic"])
@pytest.mark.parametrize("share", [0.5, 0.3])
def test_a_correlated_design_of_500_by_1000_is_solved_to_stationarity_1e9(kind: str, share: float) -> None:
    one = model(kind, MCP(1.0), WIDE)
    one = one.with_penalty(MCP(share * one.lambda_max, 3.0))
    run = one.solve(tol=1e-9)
    assert run.converged
    assert recomputed(one, run.theta) <= 1.01e-9  # sums in another order
    assert 0 < run.support.size < 60
    assert run.objective == pytest.approx(one.problem.objective(run.theta), rel=1e-14)


@pytest.mark.parametrize("penalty", [MCP(0.1), SCAD(0.1), CappedL1(0.1, 0.5), L1(0.1), L2(0.1)], ids=lambda p: p.name)
@pytest.mark.parametrize("loss", ["squared", "huber", "logistic", "smoothed-hinge"])
@pytest.mark.parametrize("accelerate", ["none", "newton"])
def test_every_penalty_and_loss_reaches_a_stationary_point(penalty: Penalty, loss: str, accelerate: str) -> None:
    x, y, _ = SMALL["logistic" if loss in ("logistic", "smoothed-hinge") else "squared"]
    model = ISTDP(x, y, loss=loss, penalty=penalty, intercept=True)
    run = model.solve(accelerate=accelerate, max_iter=20_000, tol=1e-9)
    assert run.converged
    assert run.kkt.intercept <= 1e-9


@pytest.mark.parametrize("kind", ["squared", "logistic"])
@pytest.mark.parametrize("accelerate", ["none", "newton"])
def test_a_convex_problem_has_the_optimum_that_a_cone_solver_finds(kind: str, accelerate: str) -> None:
    import cvxpy as cp

    x, y, _ = SMALL[kind]
    run = model(kind, L1(0.05), intercept=True).solve(accelerate=accelerate, max_iter=5000)
    theta, c = cp.Variable(12), cp.Variable()
    loss = run.loss.of(x @ theta + c, y)
    optimum = cp.Problem(cp.Minimize(cp.sum(loss) / 80 + 0.05 * cp.norm1(theta))).solve(solver="CLARABEL")
    assert run.objective == pytest.approx(optimum, abs=1e-7)  # the solver's tolerance


def test_where_the_loss_outweighs_the_penalty_the_one_stationary_point_is_found_from_everywhere() -> None:
    # Convex, since the least eigenvalue of X'X/n is above 1/alpha (MATH ISTDP).
    x = SMALL["squared"][0]
    alpha = 1.1 / np.linalg.eigvalsh(x.T @ x / 80).min()
    one = model("squared", MCP(0.1, alpha))
    starts = np.random.default_rng(0).normal(size=(4, 12))
    first, *rest = (one.solve(init=start, tol=1e-10).theta for start in starts)
    for other in rest:
        np.testing.assert_allclose(other, first, atol=1e-7)  # residual over the least curvature


@pytest.mark.parametrize("step", ["bb1", "bb2", "alternating"])
def test_every_rule_for_the_step_ends_at_a_stationary_point(step: str) -> None:
    assert model("logistic", SCAD(0.02)).solve(step=step, accelerate="none", max_iter=20_000).converged


@pytest.mark.parametrize("longest", [None, 30.0])
@pytest.mark.parametrize("penalty", [MCP(0.1, 3.0), CappedL1(0.1, 0.5), L1(0.1)], ids=lambda p: p.name)
def test_engines_end_at_the_same_point(
    penalty: Penalty, longest: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if longest is not None:
        monkeypatch.setattr(gist, "longest", lambda penalty, first: longest)
    one = model("squared", penalty)
    exact, dcp, checked = (one.solve(engine=engine, tol=1e-7) for engine in ("closed_form", "dcp", "checked"))
    assert exact.converged
    assert dcp.converged
    np.testing.assert_allclose(dcp.theta, exact.theta, atol=1e-6)  # what tol 1e-7 leaves
    np.testing.assert_array_equal(checked.theta, exact.theta)
    blocks = dcp.history[dcp.history["block"] == "prox"]
    assert set(blocks["engine"]) == {"dcp"}
    assert set(blocks["status"]) == {"optimal"}


def test_a_run_says_whether_two_pieces_were_compared_and_which_was_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    short = model("squared", MCP(0.1, 3.0)).solve(accelerate="none").history
    assert short["far"].isna().all()
    monkeypatch.setattr(gist, "longest", lambda penalty, first: 50.0)
    long = model("squared", MCP(0.1, 1.2)).solve(accelerate="none").history
    passes = long[long["block"] == LOOP]
    assert (passes["far"][passes["step"] > 1.2] > 0).any()
    assert passes["far"][passes["step"] <= 1.2].isna().all()


def test_the_objective_never_rises_above_the_last_ones() -> None:
    run = model("logistic", MCP(0.05)).solve(engine="checked", accelerate="none", max_iter=60)
    heights = run.history.query("block == @LOOP")["objective"].to_numpy()
    for k in range(1, heights.size):
        assert heights[k] <= heights[max(0, k - 5) : k].max() + 1e-15


def test_newton_steps_are_told_and_none_raises_the_objective() -> None:
    one = model("squared", MCP(1.0), WIDE)
    one = one.with_penalty(MCP(0.1 * one.lambda_max, 3.0))
    passes = one.solve(tol=1e-9).history.query("block == @LOOP")
    assert passes["newton"].sum() > 0
    assert (passes["objective"].diff().dropna() <= 1e-15).all()


def test_newton_saves_most_passes() -> None:
    one = model("squared", MCP(1.0), WIDE)
    one = one.with_penalty(MCP(0.1 * one.lambda_max, 3.0))
    plain, fast = (one.solve(tol=1e-9, accelerate=accelerate).iterations for accelerate in ("none", "newton"))
    assert fast < plain / 3


def test_a_sparse_matrix_gives_what_a_dense_one_gives() -> None:
    x, y, _ = SMALL["logistic"]
    x = np.where(np.abs(x) < 0.5, 0.0, x)
    dense, sparse = (
        ISTDP(one, y, penalty="mcp:0.05:3", intercept=True).solve(tol=1e-10) for one in (x, sp.coo_array(x))
    )
    np.testing.assert_allclose(sparse.theta, dense.theta, atol=1e-8)  # 1e-10 over the least curvature


def test_a_penalty_of_a_user_is_solved_without_newton() -> None:
    x, y, _ = SMALL["squared"]
    one = ISTDP(x, y, loss="squared", penalty=Ridge(0.3))
    run = one.solve(tol=1e-10, max_iter=5000)
    np.testing.assert_allclose(run.theta, np.linalg.solve(x.T @ x / 80 + 0.3 * np.eye(12), x.T @ y / 80), atol=1e-9)
    with pytest.raises(ModelError, match="needs slope"):
        one.solve(accelerate="newton")


def test_a_stationary_start_stays() -> None:
    one = model("logistic", MCP(0.05))
    run = one.solve(tol=1e-10)
    again = one.solve(tol=1e-9, init=run.theta)
    assert again.iterations == 1
    np.testing.assert_allclose(again.theta, run.theta, atol=1e-8)


def test_barzilai_borwein_lengths_are_those_that_fit_the_secant_equation() -> None:
    random = np.random.default_rng(0)
    moved = random.normal(size=5)
    turned = 2.0 * moved + 0.1 * random.normal(size=5)
    first, second = barzilai_borwein(moved, turned)
    assert 1.0 / first == pytest.approx(minimize(lambda c: ((c * moved - turned) ** 2).sum(), 1.0).x[0], rel=1e-6)
    assert second == pytest.approx(minimize(lambda a: ((moved - a * turned) ** 2).sum(), 1.0).x[0], rel=1e-6)
    assert np.isnan(barzilai_borwein(moved, -moved)).all()
    assert np.isnan(barzilai_borwein(moved, 1e-170 * np.abs(moved) * np.sign(moved))).all()  # dg'dg is 0 in doubles


def test_a_saved_run_comes_back_without_any_row_of_the_data(tmp_path: Path) -> None:
    x, y, _ = SMALL["logistic"]
    run = ISTDP(x, (y + 1) / 2, penalty=MCP(0.1 / 3.0, 3.0), intercept=True).solve()
    path = run.save(tmp_path / "run.json")
    back = cpv.load(path)
    assert isinstance(back, SparseRun)
    np.testing.assert_array_equal(back.theta, run.theta)
    assert (back.penalty, back.objective, back.kkt.largest) == (run.penalty, run.objective, run.kkt.largest)
    np.testing.assert_array_equal(back.predict(x), run.predict(x))
    assert repr(float(x[0, 0])) not in path.read_text()


def test_code_is_not_saved(tmp_path: Path) -> None:
    x, y, _ = SMALL["squared"]
    with pytest.raises(ModelError, match="is code and cannot be saved"):
        ISTDP(x, y, loss="squared", penalty=Ridge(0.3)).solve().save(tmp_path / "run.json")


def test_predictions_are_labels_of_the_user_and_probabilities_of_the_logistic_model() -> None:
    x, y, _ = SMALL["logistic"]
    run = ISTDP(x, (y + 1) / 2, penalty="mcp:0.05:3", intercept=True).solve()
    assert set(run.predict(x)) == {0.0, 1.0}
    assert np.mean(run.predict(x) == (y + 1) / 2) > 0.8
    z = x @ run.coefficients + run.intercept
    np.testing.assert_allclose(run.decision_function(sp.csr_array(x)), z, atol=1e-12)
    np.testing.assert_allclose(run.predict_proba(x)[:, 1], expit(z), rtol=1e-12)
    with pytest.raises(DataError, match=r"expected \(n, 12\)"):
        run.predict(x[:, :3])
    with pytest.raises(ModelError, match="gives no probabilities"):
        model("squared", L1(0.1)).solve().predict_proba(x)


def test_solvers_certify_the_final_point() -> None:
    report = model("squared", MCP(0.1)).solve().certify()
    assert {verdict.verdict for verdict in report.verdicts.values()} == {"agrees"}


def test_a_path_is_warm_started_from_the_largest_weight() -> None:
    one = model("squared", MCP(1.0), intercept=True)
    table = one.path(8)
    assert table.index.is_monotonic_decreasing
    assert table.index[0] == one.lambda_max
    assert table["converged"].all()
    assert table["support"].iloc[0] == 0 < table["support"].iloc[-1]
    last = table.iloc[-1]
    theta = last[[*(f"theta[x{i}]" for i in range(12)), "(intercept)"]].to_numpy(dtype=float)
    assert one.with_penalty(MCP(table.index[-1])).problem.objective(theta) == pytest.approx(last["objective"])
    np.testing.assert_array_equal(one.path([0.1, 0.3]).index, [0.3, 0.1])


def test_a_callback_ends_a_run() -> None:
    run = model("squared", MCP(0.1)).solve(accelerate="none", callback=lambda loop, k, _: loop == LOOP and k == 2)
    assert (run.iterations, run.interrupted) == (2, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tol": 0.0}, "tol=0.0"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"step": "bb3"}, "step='bb3'"),
        ({"method": "istdp"}, "method='istdp' is not known"),
        ({"accelerate": "squarem"}, "accelerate='squarem'"),
        ({"engine": "closed"}, "engine='closed'"),
        ({"init": np.zeros(3)}, r"init has shape \(3,\), expected \(12,\)"),
        ({"init": np.full(12, np.nan)}, "finite"),
        ({"callback": 3}, "callback=3"),
    ],
)
def test_an_option_that_is_none_is_refused(options: dict, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        model("squared", MCP(0.1)).solve(**options)


def test_a_path_of_a_penalty_without_weight_is_refused() -> None:
    class Plain:
        weak_convexity = 0.0

        def value(self, theta: np.ndarray) -> float:
            return 0.0

        def prox(self, s: np.ndarray, step: float) -> np.ndarray:
            return s

        def residual(self, theta: np.ndarray, gradient: np.ndarray) -> np.ndarray:
            return np.abs(gradient)

    x, y, _ = SMALL["squared"]
    with pytest.raises(ModelError, match="has no weight lam"):
        ISTDP(x, y, loss="squared", penalty=Plain()).path([1.0])
    with pytest.raises(ModelError, match="holds no weights"):
        model("squared", MCP(0.1)).path([-1.0])
