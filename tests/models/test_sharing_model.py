"""The face of ADMM sharing: what a user passes, gets, saves and may ask for."""

from __future__ import annotations

import warnings
from pathlib import Path

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from cvxpriv_models.admm_sharing import ADMMSharing, SharingRun, kkt
from scipy import sparse
from sklearn.linear_model import LogisticRegression

import cvxpriv as cpv
from cvxpriv.errors import DataError, ModelError, NoGuaranteeWarning
from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties import LOSSES, GroupLasso, convex_penalty, loss_named

from .sharing_cases import columns, pooled, split

X, Y = columns(60, 6)
PARTS = split(X, 2)


def cone_optimum(
    loss: str, penalty: str, lam: float, inside: list[object] | None = None, within: str | None = None
) -> float:
    """The pooled problem, written anew and solved tightly."""
    x = [cp.Variable(3), cp.Variable(3)]
    cost = cp.sum(loss_named(loss).of(PARTS[0] @ x[0] + PARTS[1] @ x[1], Y))
    held = []
    for one in x:
        value, bounds = convex_penalty(penalty).expression(one)
        cost, held = cost + lam * value, [*held, *bounds]
        held += convex_penalty(within).expression(one)[1] if within else []
    held += [constraint(x[1]) for constraint in inside or []]  # type: ignore[operator]
    problem = cp.Problem(cp.Minimize(cost), held)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "inaccurate": here and there it stops at 1e-8
        problem.solve(solver="CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return float(problem.value)


class TestOptimum:
    """What comes out is the pooled optimum."""

    @pytest.mark.parametrize("loss", [name for name, one in LOSSES.items() if one.convex and name != "hinge"])
    @pytest.mark.parametrize("penalty", ["l2", "l1", "elastic-net:1:0.3", "nonneg", "box:-0.2:0.3"])
    def test_proximal_jacobi_reaches_the_cone_programs_optimum(self, loss: str, penalty: str) -> None:
        run = ADMMSharing(PARTS, Y, loss=loss, penalty=penalty, lam=0.7).solve(
            method="proximal_jacobi", max_iter=1000, gap=0.0
        )
        assert run.converged
        # CLARABEL's relative gap, 1e-9 or a little above.
        assert run.objective == pytest.approx(cone_optimum(loss, penalty, 0.7), rel=1e-8)

    def test_the_hinge_too(self) -> None:
        run = ADMMSharing(PARTS, Y, loss="hinge").solve(max_iter=3000, tol=1e-7)
        assert run.converged
        assert run.objective == pytest.approx(cone_optimum("hinge", "l2", 1.0), rel=1e-6)

    @pytest.mark.parametrize("scheme", ["averaged", "gauss_seidel"])
    @pytest.mark.parametrize("penalty", ["l1", "elastic-net:1:0.3", "nonneg", "box:-0.2:0.3"])
    def test_other_schemes_reach_it_without_a_solver(self, scheme: str, penalty: str) -> None:
        run = ADMMSharing(PARTS, Y, penalty=penalty, lam=0.7).solve(method=scheme, max_iter=60)
        assert run.converged
        assert set(run.history["engine"].dropna()) == {"closed_form"}
        assert run.objective == pytest.approx(cone_optimum("logistic", penalty, 0.7), rel=1e-8)

    def test_a_penalty_that_is_no_square_goes_to_a_solver_where_one_is_asked_for(self) -> None:
        model = ADMMSharing(PARTS, Y, loss="squared", penalty="l1")
        exact, direct = (model.solve(engine=one, rho=2.0, tol=1e-6, max_iter=200) for one in ("dcp", "closed_form"))
        assert exact.converged
        assert set(exact.history["engine"].dropna()) >= {"dcp"}
        assert exact.objective == pytest.approx(direct.objective, rel=1e-8)

    def test_a_group_penalty_drops_whole_groups(self) -> None:
        pairs = GroupLasso([[0, 1], [2]])
        run = ADMMSharing(PARTS, Y, loss="squared", penalty=pairs, lam=15.0).solve(
            method="proximal_jacobi", max_iter=2000
        )
        assert run.converged
        zero = [float(np.abs(x[one]).max()) == 0.0 for x in run.coefficients for one in ([0, 1], [2])]
        assert any(zero)
        assert not all(zero)

    def test_a_ready_set_comes_on_top_of_the_penalty(self) -> None:
        run = ADMMSharing(PARTS, Y, sets=["nonneg", None]).solve(method="proximal_jacobi", max_iter=1000)
        assert run.converged
        assert run.coefficients[0].min() >= 0.0 > run.coefficients[1].min()
        both = ADMMSharing(PARTS, Y, sets="nonneg").solve(method="proximal_jacobi", max_iter=1000)
        assert both.objective == pytest.approx(cone_optimum("logistic", "l2", 1.0, within="nonneg"), rel=1e-8)

    def test_a_users_constraint_on_a_party_holds_and_the_run_is_optimal_for_it(self) -> None:
        model = ADMMSharing(PARTS, Y).constrain("sums to one", lambda x: cp.sum(x) == 1, party=1)
        run = model.solve(max_iter=100, tol=1e-6)
        assert run.converged
        assert run.coefficients[1].sum() == pytest.approx(1.0, abs=1e-7)  # a solver's feasibility
        expected = cone_optimum("logistic", "l2", 1.0, [lambda x: cp.sum(x) == 1])
        assert run.objective == pytest.approx(expected, rel=1e-7)

    def test_engines_agree(self) -> None:
        model = ADMMSharing(PARTS, Y)
        exact = model.solve(max_iter=5, accelerate="none", rho=0.15)
        for engine in ("dcp", "checked"):
            other = model.solve(engine=engine, max_iter=5, rho=0.15)
            # CLARABEL's z is known to about the square root of its gap.
            np.testing.assert_allclose(other.coefficients[0], exact.coefficients[0], atol=1e-5)

    def test_dependent_columns_and_no_penalty_are_handled(self) -> None:
        doubled = [np.column_stack([PARTS[0], PARTS[0][:, 0]]), PARTS[1]]
        run = ADMMSharing(doubled, Y, loss="squared", lam=0.0).solve(max_iter=2000)
        assert run.converged
        least = 0.5 * float(np.sum((X @ np.linalg.lstsq(X, Y, rcond=None)[0] - Y) ** 2))
        assert run.objective == pytest.approx(least, rel=1e-12)
        assert run.coefficients[0][0] == pytest.approx(run.coefficients[0][3], abs=1e-10)  # least norm

    def test_sparse_and_dense_columns_give_the_same_run(self) -> None:
        thinned = [part * (np.abs(part) > 0.8) for part in PARTS]
        dense = ADMMSharing(thinned, Y).solve()
        thin = ADMMSharing([sparse.csc_array(part) for part in thinned], Y).solve()
        np.testing.assert_allclose(thin.coefficients[1], dense.coefficients[1], atol=1e-8)
        assert thin.iterations == dense.iterations

    @pytest.mark.parametrize(("penalty", "scheme"), [("l2", "averaged"), ("l1", "proximal_jacobi")])
    def test_a_party_whose_columns_are_zeros_adds_nothing(self, penalty: str, scheme: str) -> None:
        both = ADMMSharing([0.0 * PARTS[0], PARTS[1]], Y, loss="squared", penalty=penalty).solve(
            method=scheme, max_iter=2000
        )
        alone = ADMMSharing([PARTS[1]], Y, loss="squared", penalty=penalty).solve(method=scheme, max_iter=2000)
        assert both.converged
        assert not both.coefficients[0].any()
        assert both.objective == pytest.approx(alone.objective, rel=1e-9)

    def test_more_columns_than_samples_reach_the_pooled_optimum(self) -> None:
        wide = np.random.default_rng(5).normal(size=(20, 90))
        y = np.where(wide[:, 0] > 0.0, 1.0, -1.0)
        run = ADMMSharing(split(wide, 3), y).solve(rho=0.3, tol=1e-9)
        # A relative residual of 1e-9, gradients of ten, curvature at least lam = 1.
        np.testing.assert_allclose(np.concatenate(run.coefficients), pooled(wide, y, "logistic"), atol=1e-7)


class TestCertificates:
    """Residuals and the duality gap say how good a point is."""

    @pytest.mark.parametrize("passes", [1, 5, 20])
    def test_the_gap_bounds_the_distance_to_the_optimum_at_every_pass(self, passes: int) -> None:
        run = ADMMSharing(PARTS, Y).solve(max_iter=passes)
        excess = run.objective - ADMMSharing(PARTS, Y).solve(tol=1e-11, max_iter=2000).objective
        assert -1e-12 <= excess <= run.gap + 1e-12
        assert run.gap < 1e3 * max(excess, 1e-10)

    @pytest.mark.parametrize("penalty", ["l2", "l1", "nonneg"])
    def test_residuals_vanish_at_the_optimum_and_nowhere_near_it(self, penalty: str) -> None:
        model = ADMMSharing(PARTS, Y, loss="smoothed-hinge", penalty=penalty)
        run = model.solve(method="proximal_jacobi", tol=1e-9, max_iter=2000)
        assert run.kkt.largest <= 1e-9
        assert run.kkt.fit <= 1e-12  # y is the gradient at z after every pass
        moved = {**run.state, "x/0": run.state["x/0"] + np.array([0.1, 0.0, 0.0])}
        moved["v/0"] = PARTS[0] @ moved["x/0"]
        assert kkt.residuals(model.problem, model.factors, moved).largest > 1e-3

    @pytest.mark.filterwarnings("ignore:overflow")
    @pytest.mark.parametrize("rho", [1e-12, 1e-3, 1e6])
    def test_the_gap_is_a_bound_at_a_penalty_that_leads_nowhere(self, rho: float) -> None:
        best = ADMMSharing(PARTS, Y).solve(tol=1e-11, max_iter=2000).objective
        run = ADMMSharing(PARTS, Y).solve(rho=rho, max_iter=3)
        assert run.gap >= run.objective - best - 1e-12  # of values of forty, rounding
        assert ADMMSharing(PARTS, Y).solve(rho=1e-90, max_iter=3).gap >= 0.0

    def test_a_kink_of_the_loss_has_a_whole_interval_of_slopes(self) -> None:
        run = ADMMSharing(PARTS, Y, loss="hinge").solve(max_iter=3000, tol=1e-7)
        assert (np.abs(Y * run.state["z"] - 1.0) < 1e-12).any()
        assert run.kkt.fit <= 1e-10

    def test_certify_asks_every_solver_about_every_block(self) -> None:
        report = ADMMSharing(PARTS, Y).solve().certify(("CLARABEL", "SCS"), rows=30)
        assert set(report.table["case"]) == {"x/0", "x/1", "z"}
        report.raise_if_failed()

    def test_certify_leaves_out_a_centre_block_without_a_cone_program(self) -> None:
        report = ADMMSharing(PARTS, Y, loss="sigmoid").solve(max_iter=20).certify(("CLARABEL",))
        assert set(report.table["case"]) == {"x/0", "x/1"}

    def test_example_cases_are_right(self) -> None:
        cpv.crosscheck(ADMMSharing.example_cases(), ["CLARABEL"]).raise_if_failed()


class TestPrediction:
    """A fitted model predicts on the parties' columns of other rows."""

    def test_probabilities_are_those_of_scikit_learn_on_the_pooled_columns(self) -> None:
        labels = np.where(Y > 0.0, "yes", "no")
        run = ADMMSharing(PARTS, labels).solve(tol=1e-10, max_iter=1000)
        peer = LogisticRegression(fit_intercept=False, tol=1e-12, solver="newton-cholesky").fit(X, labels)
        other = columns(30, 6, seed=9)[0]
        parts = [other[:, :3], other[:, 3:]]
        assert run.classes is not None
        assert run.classes.tolist() == peer.classes_.tolist()
        np.testing.assert_allclose(run.predict_proba(parts), peer.predict_proba(other), atol=1e-7)
        assert (run.predict(parts) == peer.predict(other)).all()

    def test_a_residual_loss_predicts_numbers_and_no_probability(self) -> None:
        run = ADMMSharing(PARTS, Y, loss="squared").solve(gap=0.0)
        assert run.predict(PARTS) == pytest.approx(X @ pooled(X, Y, "squared"), abs=1e-6)
        with pytest.raises(ModelError, match="gives no probabilities"):
            run.predict_proba(PARTS)

    @pytest.mark.parametrize("parts", [PARTS[:1], [PARTS[0], PARTS[1][:, :2]], [PARTS[0], PARTS[1][:5]]])
    def test_other_columns_than_those_fitted_are_refused(self, parts: list[Array]) -> None:
        with pytest.raises(DataError, match="part"):
            ADMMSharing(PARTS, Y).solve(max_iter=2).predict(parts)

    def test_a_saved_run_predicts_the_same_and_holds_no_column(self, tmp_path: Path) -> None:
        run = ADMMSharing(PARTS, np.where(Y > 0.0, "b", "a")).solve()
        path = run.save(tmp_path / "run.json")
        back = cpv.load(path)
        assert isinstance(back, SharingRun)
        np.testing.assert_array_equal(back.predict_proba(PARTS), run.predict_proba(PARTS))
        assert (back.predict(PARTS) == run.predict(PARTS)).all()
        assert (back.kkt, back.gap, back.settings) == (run.kkt, run.gap, run.settings)
        assert str(PARTS[0][0, 0]) not in path.read_text()
        with pytest.raises(ModelError, match="solve again"):
            back.certify()


class TestRun:
    """How a run goes."""

    def test_the_history_has_every_pass_and_its_figures(self) -> None:
        run = ADMMSharing(PARTS, Y).solve()
        passes = run.history[run.history["block"] == "pass"]
        assert len(passes) == run.iterations
        assert {"objective", "primal", "stationarity", "kkt", "rho"} <= set(passes.columns)
        assert passes["kkt"].iloc[-1] == pytest.approx(run.kkt.largest)

    def test_a_callback_ends_the_run(self) -> None:
        run = ADMMSharing(PARTS, Y).solve(callback=lambda loop, iteration, figures: iteration == 3)
        assert run.iterations == 3
        assert run.interrupted
        assert not run.converged

    def test_the_printed_scheme_warns_below_its_bound_and_only_there(self) -> None:
        model = ADMMSharing(PARTS, Y, loss="squared")
        with pytest.warns(NoGuaranteeWarning, match="1.5 M L = 3"):
            model.solve(rho=2.9, method="printed", max_iter=2)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.solve(rho=3.0, method="printed", max_iter=2)
            model.solve(rho=0.1, max_iter=2)
        with pytest.warns(NoGuaranteeWarning, match="a smooth loss"):
            ADMMSharing(PARTS, Y, loss="hinge").solve(rho=50.0, method="printed", max_iter=2)


class TestAssumptions:
    """Assumptions 1 and 2 of the paper, measured."""

    def test_measured_numbers_are_those_of_the_columns(self) -> None:
        model = ADMMSharing(PARTS, Y, lam=0.7)
        table = model.check_assumptions(rho=2.0).table
        squares = [np.linalg.svd(part, compute_uv=False) ** 2 for part in PARTS]
        for part in squares:
            assert f"{0.7 + 2.0 * part[-1]:.4g}" in table.at["1.2b the x steps descend", "measured"]
            assert f"{part[0]:.4g}" in table.at["1.2b the x steps descend", "measured"]
        assert table.at["1.1 full column rank", "measured"] == "3 of 3, 3 of 3"
        assert not table.at["2.3 rows of norm 1", "holds"]

    def test_unit_rows_and_dependent_columns_are_seen(self) -> None:
        rows = [part / np.linalg.norm(part, axis=1, keepdims=True) for part in PARTS]
        assert ADMMSharing(rows, Y).check_assumptions(rho=1.0).table.at["2.3 rows of norm 1", "holds"]
        doubled = [PARTS[0][:, [0, 0]], PARTS[1]]
        table = ADMMSharing(doubled, Y).check_assumptions(rho=1.0).table
        assert table.at["1.1 full column rank", "measured"] == "1 of 2, 3 of 3"
        assert table.at["1.1 full column rank", "right_holds"]

    def test_the_right_condition_stands_beside_the_printed_one(self) -> None:
        model = ADMMSharing(split(X, 3), Y)
        printed = model.check_assumptions(rho=5.0).table
        assert printed.at["1.2b the x steps descend", "holds"] != printed.at["1.2b the x steps descend", "right_holds"]
        averaged = model.check_assumptions(rho=5.0, method="averaged").table
        assert averaged["right_holds"].all()
        assert "1.1 smooth loss" in str(model.check_assumptions(rho=5.0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"parts": [PARTS[0], PARTS[1][:50]]}, r"parts have \[60, 50\] rows"),
        ({"parts": X}, "list of parties"),
        ({"parts": []}, "parts is empty"),
        ({"parts": [PARTS[0], np.zeros((60, 0))]}, r"parts\[1\] has shape \(60, 0\)"),
        ({"parts": [PARTS[0], np.full((60, 2), np.nan)]}, r"parts\[1\] holds NaN"),
        ({"parts": [PARTS[0], np.full((60, 2), "a")]}, r"parts\[1\] does not hold numbers"),
        ({"parts": [PARTS[0] * 1j, PARTS[1]]}, r"parts\[0\] holds complex numbers"),
        ({"parts": [PARTS[0], 1e200 * PARTS[1]]}, r"parts\[1\] holds entries above 1e\+75, .* scale its columns"),
        ({"parts": [sparse.csr_array(np.full((60, 1), np.inf)), PARTS[1]]}, r"parts\[0\] holds NaN or infinite"),
        ({"weights": np.full(60, 1e200)}, "at most 1e[+]75"),
        ({"weights": np.full(60, 1e-200)}, "at least 1e-75"),
        ({"y": np.arange(60) % 3}, r"3 classes \(0, 1, 2\)"),
        ({"y": np.full(60, 2.0)}, r"1 class \(2.0\)"),
        ({"y": Y[:59]}, r"y has shape \(59,\)"),
        ({"y": np.where(Y > 0, np.nan, 1.0)}, "y holds NaN"),
        ({"y": np.where(Y > 0, "b", "a"), "loss": "squared"}, "not numbers"),
        ({"weights": np.zeros(60)}, "weights must be 60 finite numbers > 0"),
        ({"weights": np.ones(3)}, "weights must be 60"),
    ],
)
def test_bad_data_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        ADMMSharing(**{"parts": PARTS, "y": Y, **arguments})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lam": -1.0}, "lam=-1.0"),
        ({"lam": float("nan")}, "lam=nan"),
        ({"loss": "logit"}, "did you mean 'logistic'"),
        ({"penalty": "l3"}, "penalty='l3' is not known"),
        ({"penalty": ["l2", "l1", "l2"]}, "names 3 for 2 parties"),
        ({"sets": "l1"}, "no ready set"),
        ({"penalty": GroupLasso([[0, 1]]), "sets": "nonneg"}, "ties coordinates together"),
    ],
)
def test_a_bad_model_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        ADMMSharing(PARTS, Y, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rho": 0.0}, "rho=0.0"),
        ({"method": "jacobi"}, "method='jacobi' is not known"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"tol": -1.0}, "tol=-1.0"),
        ({"accelerate": "nesterov"}, "is not known"),
        ({"accelerate": "anderson", "method": "printed"}, "other than 'printed'"),
        ({"engine": "exact"}, "engine='exact'"),
        ({"callback": 3}, "callback=3"),
    ],
)
@pytest.mark.filterwarnings("ignore:method='printed' with rho")
def test_bad_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        ADMMSharing(PARTS, Y).solve(**options)  # type: ignore[arg-type]


def test_a_non_convex_loss_needs_a_penalty_above_its_curvature() -> None:
    with pytest.raises(ModelError, match=r"choose rho > 0\.1925"):  # 2 / (6 sqrt 3)
        ADMMSharing(PARTS, Y, loss="sigmoid").solve(rho=0.1)


@pytest.mark.parametrize("penalty", ["l1", "elastic-net", "nonneg", "box:-0.5:0.5"])
def test_the_default_call_converges_by_direct_steps_and_its_zeros_are_exact(penalty: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, size=(299, 8))
    y = np.where(x @ [3.0, -2.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.1] + rng.logistic(size=299) > 0.0, 1.0, -1.0)
    model = ADMMSharing([x[:, :4], x[:, 4:]], y, penalty=penalty, lam=8.0)
    run, peer = model.solve(max_iter=200), model.solve(method="proximal_jacobi", tol=1e-9)
    assert run.converged
    assert run.objective == pytest.approx(peer.objective, rel=1e-9)  # both have a residual of 1e-7 at most
    found, expected = np.concatenate(run.coefficients), np.concatenate(peer.coefficients)
    np.testing.assert_array_equal(found == 0.0, expected == 0.0)
    assert (found == 0.0).any() == (penalty != "box:-0.5:0.5")


def test_a_users_constraint_beside_a_penalty_that_is_no_square_holds() -> None:
    run = ADMMSharing(PARTS, Y, penalty="l1").constrain("sums to one", lambda x: cp.sum(x) == 1, party=1).solve()
    assert run.coefficients[1].sum() == pytest.approx(1.0, abs=1e-7)  # as a cone solver leaves it
    run.certify(("CLARABEL",)).raise_if_failed()


def test_a_constraint_on_no_party_or_that_is_no_constraint_is_refused() -> None:
    with pytest.raises(ModelError, match="party=2"):
        ADMMSharing(PARTS, Y).constrain("late", lambda x: x >= 0, party=2)
    with pytest.raises(ModelError, match="not DCP"):
        ADMMSharing(PARTS, Y).constrain("outside a ball", lambda x: cp.norm(x) >= 1)


def test_a_frame_is_a_party() -> None:
    frames = [pd.DataFrame(part) for part in PARTS]
    assert ADMMSharing(frames, pd.Series(Y)).solve(max_iter=3).iterations == 3
