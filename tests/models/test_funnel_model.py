"""The funnel as a user meets it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cvxpriv_models.inference_service.run import InferenceRun
from cvxpriv_models.privacy_funnel import closed_form
from cvxpriv_models.privacy_funnel.baselines import agglomerative
from cvxpriv_models.privacy_funnel.run import FunnelRun

import cvxpriv as cpv
from cvxpriv import datasets
from cvxpriv.errors import DataError, Disagreement, ModelError
from cvxpriv.models import PrivacyFunnel
from cvxpriv.tables.information import entropy, mutual_information
from tests.models.solver_gaps import best_gap

# PF section V-A: P(S|X), and the two priors of X.
S_GIVEN_X = np.array([[0.9, 0.08, 0.4], [0.025, 0.82, 0.05], [0.075, 0.1, 0.55]])
PRIORS = {"uniform": np.full(3, 1 / 3), "skewed": np.array([0.1, 0.3, 0.6])}
# Least I(S;Y) in nats at R = .1, .2, ..., 1 H(X), lower bound and achievable value within 1e-6 of each other, by
# subdividing the simplex of posteriors: a linear program from below, one over the vertices from above.
CERTIFIED = {
    "uniform": [0.019582, 0.039838, 0.060181, 0.080609, 0.121083, 0.175318, 0.243661, 0.313809, 0.383957, 0.454106],
    "skewed": [0.008006, 0.022057, 0.038726, 0.074165, 0.118697, 0.164488, 0.210617, 0.256902, 0.310461, 0.367797],
}


def paper(prior: str = "uniform", rate: float = 0.5) -> PrivacyFunnel:
    return PrivacyFunnel(S_GIVEN_X * PRIORS[prior], rate=rate, size_y=4)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_the_best_of_thirty_is_the_certified_optimum_at_every_rate(prior: str, every: int) -> None:
    funnel = paper(prior)
    rates = list(zip(np.arange(1, 11) / 10, CERTIFIED[prior], strict=True))
    for fraction, certified in rates[::every]:
        solved = funnel.at_rate(fraction).solve(starts=30, seed=0)
        assert solved.leakage == pytest.approx(certified, abs=5e-5)
        assert solved.leakage >= certified - 2e-6  # the certified values are within 1e-6 of the optimum
        assert solved.utility >= fraction * entropy(PRIORS[prior]) - 1e-12
        assert solved.kkt.largest <= 1e-7


def test_a_stationary_point_is_reached_where_the_paper_crawls() -> None:
    rng = np.random.default_rng(0)
    p_sx = rng.dirichlet(np.ones(4), size=16).T * rng.dirichlet(np.ones(16))
    fast = PrivacyFunnel(p_sx, rate=0.6).solve(method="aem", starts=3)
    plain = PrivacyFunnel(p_sx, rate=0.6).solve(method="aem", starts=3, accelerate="none", max_iter=600)
    others = fast.starts.drop(index=fast.start)  # the best one is asked for more: no free output may pay
    assert others["converged"].all()
    assert not plain.starts["converged"][1:].any()  # the first, from clustering, begins next to its end
    assert fast.leakage <= plain.leakage + 1e-9


@pytest.mark.parametrize("accelerate", ["none", "auto"])
def test_no_iteration_of_any_acceleration_raises_the_leakage_or_loses_the_rate(accelerate: str) -> None:
    solved = paper("skewed", 0.7).solve(method="aem", starts=6, accelerate=accelerate, max_iter=40)
    for start in range(6):
        history = solved.log.frame(start)
        assert history["objective"].diff().max() <= 1e-12
        assert history["utility"].min() >= solved.problem.rate - 1e-12


@pytest.mark.grid(every=2)
@pytest.mark.parametrize("method", ["aem", "merged", "ccp"])
def test_every_method_and_engine_ends_at_a_stationary_point(method: str) -> None:
    for engine in ("closed_form", "dcp", "checked"):
        solved = paper().solve(engine=engine, method=method, starts=1, max_iter=60, tol=1e-6)
        usual = replace(solved.kkt, free=0.0)  # an empty output may pay elsewhere: one start is not the optimum
        assert usual.largest <= 1e-6, (method, engine)


def test_the_checked_engine_asserts_the_paper_s_identities_at_every_pass() -> None:
    solved = paper().solve(engine="checked", accelerate="none", starts=1, max_iter=5)
    blocks = solved.history[solved.history["block"].isin(["q", "u", "r", "w"])]
    assert len(blocks) == 5 * 4
    assert set(blocks["engine"]) == {"checked"}


def test_the_checked_engine_catches_a_wrong_update(monkeypatch: pytest.MonkeyPatch) -> None:
    right = closed_form.marginal
    monkeypatch.setattr(closed_form, "marginal", lambda log_u: right(log_u) * 0.9)
    with pytest.raises(Disagreement, match=r"'sweep', iteration 1, start 0: the (objective|descent)"):
        paper().solve(engine="checked", accelerate="none", starts=1, max_iter=3)


def test_full_disclosure_is_the_only_answer_at_the_entropy_of_x() -> None:
    for prior in PRIORS:
        solved = paper(prior, 1.0).solve(starts=3)
        assert solved.converged
        assert solved.leakage == pytest.approx(mutual_information(S_GIVEN_X * PRIORS[prior]), abs=1e-9)
        assert (solved.mechanism.max(axis=1) > 1 - 1e-9).all()


def test_answers_carry_the_rate_in_doubles() -> None:
    rng = np.random.default_rng(295)
    tables = [np.array([[0.3532393688942293, 0.1368572352198546], [0.0, 0.509903395885916]])]  # 2.6e-14 below it once
    tables += [rng.dirichlet(np.full(6, 0.6)).reshape(2, 3) for _ in range(2)]
    for table in tables:
        top = float(entropy(table.sum(axis=0)))
        for rate in (0.6462397423305392, 1e-6 * top, 0.995 * top):
            if rate < top:
                run = PrivacyFunnel(table, rate=rate, rate_unit="nats").solve()
                assert run.converged
                assert mutual_information(table.sum(axis=0)[:, None] * run.mechanism) >= rate


def test_nothing_need_leak_at_rate_zero() -> None:
    run = paper(rate=0.0).solve()
    assert run.leakage == pytest.approx(0.0, abs=1e-15)
    assert run.converged
    assert run.iterations == 0  # the mechanism that says nothing is known


def test_the_result_does_not_depend_on_the_number_of_workers() -> None:
    one, two = (paper().solve(starts=7, seed=3, n_jobs=jobs) for jobs in (1, 2))
    assert np.array_equal(one.mechanism, two.mechanism)
    assert one.starts.equals(two.starts)
    assert one.history.drop(columns="seconds").equals(two.history.drop(columns="seconds"))


def test_a_start_is_the_same_whatever_their_number() -> None:
    few, many = (paper().solve(method="aem", starts=count, seed=5) for count in (3, 9))
    assert few.starts.equals(many.starts[:3])
    assert few.starts["origin"].tolist() == ["clustering", "random", "random"]


def test_the_best_start_is_the_one_that_leaks_least() -> None:
    solved = paper("skewed", 0.4).solve(method="aem", starts=20)
    assert solved.leakage == pytest.approx(solved.starts["leakage"].min(), abs=1e-9)
    assert solved.starts["leakage"].max() > solved.leakage + 1e-4  # local optima exist: one start is not enough


def test_a_callback_ends_a_run_and_the_best_so_far_comes_back() -> None:
    solved = paper().solve(starts=3, accelerate="none", callback=lambda loop, iteration, measured: iteration == 4)
    assert (solved.starts["iterations"] == 4).all()
    assert not solved.converged
    assert solved.utility >= solved.problem.rate - 1e-12


def test_a_run_starts_from_a_mechanism_of_the_user_s() -> None:
    first = paper().solve(method="aem", starts=1)
    again = paper().solve(init=first.mechanism)
    assert again.iterations <= 5 < first.iterations  # 2 or 3, by the rounding of the linear algebra
    assert again.leakage == pytest.approx(first.leakage, abs=1e-7)  # the tolerance of both runs


@pytest.mark.parametrize(
    ("init", "message"),
    [
        (np.eye(3), r"init has shape \(3, 3\), expected \(3, 4\)"),
        (np.full((3, 4), 0.25), "below rate"),
        (np.eye(3, 4) * 0.9, "row 0 sums to 0.9"),
    ],
)
def test_a_start_that_does_not_fit_is_refused(init: np.ndarray, message: str) -> None:
    with pytest.raises((ModelError, DataError), match=message):
        paper().solve(init=init)


class TestCurve:
    """The trade-off curve."""

    def test_it_never_falls_as_the_rate_rises_and_says_where_each_point_was_found(self) -> None:
        curve = paper("skewed").curve(12, starts=2)
        assert (curve["leakage"].diff().dropna() >= 0).all()
        assert (curve["found_at"] >= curve["fraction"]).all()
        assert (curve["utility"] >= curve["rate"] - 1e-12).all()

    def test_it_does_not_depend_on_the_number_of_workers(self) -> None:
        one, two = (paper().curve([0.3, 0.6, 0.9], starts=2, n_jobs=jobs) for jobs in (1, 2))
        assert one.drop(columns="seconds").equals(two.drop(columns="seconds"))

    def test_an_interrupt_ends_it_and_the_rates_so_far_come_back(self) -> None:
        calls = 0

        def third(loop: str, iteration: int, measured: object) -> bool:
            nonlocal calls
            calls += iteration == 1
            return calls == 3

        curve = paper().curve([0.2, 0.4, 0.6, 0.8], method="aem", starts=2, callback=third)
        assert curve["fraction"].tolist() == [0.2, 0.4]

    @pytest.mark.parametrize("fractions", [0, -3, True, 1.5j, "abc", []])
    def test_points_that_are_no_rates_are_refused(self, fractions: object) -> None:
        with pytest.raises(ModelError, match="points"):
            paper().curve(fractions)  # type: ignore[arg-type]


class TestConstraints:
    """A user's own constraints on the whole mechanism."""

    def test_they_hold_and_cost_leakage_and_switch_the_closed_form_off(self) -> None:
        free = paper().solve(starts=3)
        floored = paper().constrain("floor", lambda mechanism: mechanism >= 0.02).solve(starts=3)
        assert floored.converged
        assert floored.mechanism.min() >= 0.02 - 1e-9
        assert floored.leakage >= free.leakage
        assert "dcp" in set(floored.history["engine"])

    def test_a_constraint_that_does_not_bind_changes_nothing(self) -> None:
        free = paper().solve(starts=1, method="ccp")
        idle = paper().constrain("idle", lambda mechanism: mechanism <= 1.5).solve(starts=1)
        assert idle.leakage == pytest.approx(free.leakage, abs=1e-7)

    def test_the_residual_of_a_constrained_point_is_not_small_where_it_is_not_stationary(self) -> None:
        floored = paper().constrain("floor", lambda mechanism: mechanism >= 0.02)
        early = floored.solve(starts=1, max_iter=1)
        assert not early.converged
        assert early.kkt.largest > 1e-4

    def test_a_constraint_that_no_mechanism_satisfies_is_named_with_the_amount_it_misses_by(self) -> None:
        funnel = paper().constrain("high", lambda mechanism: mechanism >= 0.26)
        with pytest.raises(ModelError, match=r"'high' cannot hold: it would have to be relaxed by 0\.01000"):
            funnel.solve(starts=1)  # four outputs share 1: at most 0.25 each

    def test_a_constraint_that_leaves_too_little_to_tell_is_named_with_what_can_be_told(self) -> None:
        blurred = paper(rate=0.9).constrain("blur", lambda mechanism: mechanism >= 0.24)
        with pytest.raises(
            ModelError, match=r"constraints blur: no mechanism .* rate=0.988751 nats .* best one found tells 0.00"
        ):
            blurred.solve(starts=1)

    def test_a_floor_can_raise_cells_that_were_empty_at_the_start(self) -> None:
        table = datasets.heart_failure()
        floored = PrivacyFunnel(table, rate=0.8).constrain("floor", lambda mechanism: mechanism >= 1e-3)
        solved = floored.solve(starts=1, max_iter=1)
        assert solved.mechanism.min() >= 1e-3 - 1e-9
        assert solved.utility >= solved.problem.rate - 1e-7  # the accuracy of the solvers

    def test_what_is_no_constraint_or_not_dcp_is_refused_at_once(self) -> None:
        with pytest.raises(ModelError, match="not a cvxpy constraint"):
            paper().constrain("mine", lambda mechanism: 1.0)  # type: ignore[arg-type, return-value]
        with pytest.raises(ModelError, match="not DCP in hole"):
            paper().constrain("hole", lambda mechanism: mechanism**2 >= 0.1)


class TestRun:
    """What a solve returns."""

    @pytest.fixture(scope="class")
    @staticmethod
    def solved() -> FunnelRun:
        return PrivacyFunnel(datasets.heart_failure(), rate=0.5).solve(starts=2)

    def test_it_survives_saving_and_loading(self, solved: FunnelRun, tmp_path: Path) -> None:
        solved.save(tmp_path / "run.json")
        again = cpv.load(tmp_path / "run.json")
        assert np.array_equal(again.mechanism, solved.mechanism)
        assert again.starts.equals(solved.starts)
        assert (again.leakage, again.kkt.largest) == (solved.leakage, solved.kkt.largest)
        assert again.problem.table.public.columns == solved.problem.table.public.columns

    @pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "cvxpriv run", "version": 99}'])
    def test_what_is_no_saved_run_is_refused(self, text: str, tmp_path: Path) -> None:
        (tmp_path / "run.json").write_text(text)
        with pytest.raises(DataError, match="run.json"):
            cpv.load(tmp_path / "run.json")

    def test_its_mechanism_carries_alphabets_figures_and_no_private_table(self, solved: FunnelRun) -> None:
        mechanism = solved.as_mechanism()
        assert mechanism.inputs.columns == ("anaemia", "high_blood_pressure", "diabetes", "smoking")
        assert mechanism.private_columns == ("sex", "death")
        assert mechanism.figures["leakage"] == solved.leakage
        assert np.array_equal(mechanism.array, solved.mechanism)

    def test_every_block_is_certified_by_every_solver(self) -> None:
        report = paper().solve(starts=1).certify(("CLARABEL", "ECOS"))
        assert set(report.table["case"]) == {"q", "u", "r", "w", "(u, r)", "(q, u, r)", "columns"}
        report.raise_if_failed()
        assert best_gap(report).max() <= 1e-7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": -0.1}, r"rate=-0.1 is not a rate"),
        ({"rate": float("nan")}, "rate=nan is not a finite number"),
        ({"rate": "half"}, "rate='half' is not a finite number"),
        ({"rate": 1.1}, "exceeds H"),
        ({"rate": 3.2, "rate_unit": "nats"}, r"choose rate <= 1.09861 nats or rate_unit=.fraction."),
        ({"rate_unit": "nat"}, "did you mean 'nats'"),
        ({"size_y": 0}, "size_y=0"),
        ({"size_y": 2.5}, "size_y=2.5"),
        ({"size_y": 1, "rate": 0.5}, "size_y=1 symbols carry at most 0 nats"),
    ],
)
def test_bad_arguments_are_refused_with_a_remedy(options: dict[str, object], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        PrivacyFunnel(S_GIVEN_X / 3, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "closed"}, "did you mean 'closed_form'"),
        ({"method": "em"}, "did you mean 'aem'"),
        ({"accelerate": "squarem"}, "accelerate='squarem'"),
        ({"solver": "CLARABELLE"}, "did you mean 'CLARABEL'"),
        ({"starts": 0}, "starts=0"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"tol": 0.0}, "tol=0.0"),
        ({"n_jobs": 0}, "n_jobs=0"),
        ({"seed": -1}, "seed=-1"),
        ({"seed": "a"}, "seed='a'"),
        ({"engine": 3}, "engine=3"),
        ({"solver": 3}, "solver=3"),
        ({"init": "a"}, "init='a' does not hold numbers"),
        ({"callback": 3}, "callback=3"),
        ({"callback": print, "n_jobs": 2}, "n_jobs=1 to call it here"),
    ],
)
def test_bad_options_are_refused_before_any_solver_starts(options: dict[str, object], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        paper().solve(**options)  # type: ignore[arg-type]


def test_a_rate_above_the_entropy_by_rounding_is_the_entropy() -> None:
    assert paper(rate=1.0 + 1e-15).problem.rate == pytest.approx(np.log(3), abs=1e-15)


def test_a_table_that_is_no_distribution_is_refused() -> None:
    for table in (np.full((2, 2), 0.3), np.array([[0.5, -0.1], [0.3, 0.3]]), np.array([[np.nan, 1.0]])):
        with pytest.raises(DataError):
            PrivacyFunnel(table)


def test_a_public_value_that_everybody_has_tells_nothing() -> None:
    # P(X) sums to 1 + 2e-16 here; H(X) must not be negative.
    column = np.array([[0.1], [0.2], [0.3], [0.15], [0.25000000000000006]])
    solved = PrivacyFunnel(column, rate=0.9).solve(starts=2)
    assert (solved.utility, solved.leakage) == (pytest.approx(0.0, abs=1e-12), pytest.approx(0.0, abs=1e-12))


def test_converged_means_what_the_residual_says() -> None:
    for table, rate in ((np.eye(3) / 3, 1e-12), (np.diag([0.2, 0.3, 0.5]), 1 - 1e-9)):
        solved = PrivacyFunnel(table, rate=rate).solve(starts=3)
        assert solved.converged == (solved.kkt.largest <= 1e-7)
        assert solved.residual == solved.kkt.largest


def test_the_residual_of_the_table_of_starts_is_that_of_the_point_to_the_bit() -> None:
    rng = np.random.default_rng(3)
    for options in ({}, {"method": "aem"}, {"method": "aem", "max_iter": 3}):  # by a bound, converged, ended early
        for table in rng.dirichlet(np.ones(6), size=2):
            solved = PrivacyFunnel(table.reshape(2, 3), rate=0.4).solve(**{"starts": 2, **options})
            assert solved.residual == solved.kkt.largest


def test_a_run_is_read_as_the_model_that_wrote_it_and_no_other(tmp_path: Path) -> None:
    path = PrivacyFunnel([[0.4, 0.1], [0.1, 0.4]], rate=0.2).solve(starts=1).save(tmp_path / "run.json")
    assert type(cpv.load(path)) is FunnelRun
    with pytest.raises(DataError, match="a run of PrivacyFunnel, not of InferenceAsService"):
        InferenceRun.load(path)


def test_no_mechanism_leaks_less_than_the_rate_exceeds_what_s_leaves_open() -> None:
    table = datasets.joint_table("adult", smoothing=1e-3, smoothing_on="counts")
    funnel = PrivacyFunnel(table, rate=0.8)
    clustered = agglomerative(table.probabilities, funnel.problem.rate).leakage
    # I(S;Y) = I(X;Y) - I(X;Y|S) with I(X;Y|S) <= H(X|S): age stands in S and in X, so that the bound is nearly reached,
    # and the multiplier is 1 there.
    least = funnel.problem.rate - (table.entropy_x - table.information)
    assert least == pytest.approx(0.8409489, abs=1e-7)
    assert least <= clustered <= least + 1e-4
