"""Inference as a service as a user meets it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from cvxpriv_models.inference_service import closed_form, measures

import cvxpriv as cpv
from cvxpriv.errors import DataError, ModelError
from cvxpriv.models import InferenceAsService

from .inference_cases import PAPER, g10, random_mechanisms

#: Case G10 at floor 0: certified upper bound by subdividing the simplex of posteriors, and the best mechanism known.
CERTIFIED = {
    "jensen-shannon": {0.3: (0.25856, 0.25765), 0.6: (0.11833, 0.11780), 1.0: (0.022073, 0.022068)},
    "mutual-information": {0.3: (0.143957, 0.143920), 0.6: (0.009247, 0.009246), 1.0: (1e-6, 0.0)},
    "le-cam": {0.3: (0.29844, 0.29409), 0.6: (0.16151, 0.15914), 1.0: (0.043134, 0.043045)},
    "hellinger": {0.3: (0.23097, 0.22995), 0.6: (0.09896, 0.09883), 1.0: (0.0188392, 0.0188389)},
}
TABLE = np.array([[0.18, 0.12, 0.06, 0.03], [0.06, 0.12, 0.12, 0.31]])

COUNTED = cpv.JointTable.from_counts([[14, 10, 6], [4, 9, 17]])


def small(divergence: str | cpv.FDivergence = "jensen-shannon", **options: float) -> InferenceAsService:
    chosen = {"beta": 0.3, "floor": 1e-3, **options}
    return InferenceAsService(TABLE, divergence=divergence, size_u=4, **chosen)


@pytest.mark.slow
@pytest.mark.parametrize("divergence", PAPER)
def test_the_default_reaches_the_best_mechanism_known_and_no_more_than_the_bound(divergence: str) -> None:
    for beta, (bound, best) in CERTIFIED[divergence].items():
        solved = InferenceAsService(g10(divergence).table, beta, divergence=divergence, size_u=11).solve()
        assert best - 3e-5 <= solved.objective <= bound
        assert solved.mechanism.sum(axis=1) == pytest.approx(np.ones(10))


@pytest.mark.parametrize(
    "divergence", [pytest.param(one, marks=() if one == "mutual-information" else pytest.mark.slow) for one in PAPER]
)
def test_the_grid_start_alone_is_within_a_thousandth_of_the_bound_on_a_middling_beta(divergence: str) -> None:
    solved = InferenceAsService(g10(divergence).table, 0.6, divergence=divergence, size_u=11).solve(
        starts=1, max_iter=10
    )
    bound, best = CERTIFIED[divergence][0.6]
    assert best - 1e-4 <= solved.objective <= bound
    assert solved.starts["origin"].tolist() == ["grid"]


@pytest.mark.grid(every=2)
@pytest.mark.parametrize(
    ("divergence", "method"),
    [
        pytest.param(divergence, method, marks=pytest.mark.slow if (divergence != PAPER[0]) else ())
        for divergence in PAPER
        for method in ("auto", "admm", "joint")
    ],
)
def test_a_whole_run_agrees_with_the_solvers_at_every_step(divergence: str, method: str) -> None:
    solved = small(divergence).solve(method=method, engine="checked", starts=1, max_iter=3, inner=4)
    blocks = solved.history[solved.history["engine"] == "checked"]["block"]
    assert blocks.nunique() >= (2 if method == "joint" else 6)
    assert solved.mechanism.min() >= 1e-3 - 1e-12


@pytest.mark.parametrize(
    "text",
    [
        "(t-1)*log(t)",
        *(pytest.param(one, marks=pytest.mark.slow) for one in ("t*log(2*t/(t+1)) + log(2/(t+1))", "(1-t)**2/(t+3)")),
    ],
)
def test_a_divergence_from_one_line_of_text_runs_checked(text: str) -> None:
    inference = small(cpv.FDivergence.parse(text), beta=0.1)
    solved = inference.solve(engine="checked", starts=1, max_iter=1)
    assert solved.objective == pytest.approx(inference.solve(starts=1).objective, abs=1e-6)


@pytest.mark.grid(every=3)
@pytest.mark.parametrize("divergence", PAPER)
def test_an_outer_step_of_admm_ends_where_the_joint_problem_does(divergence: str) -> None:
    problem = (inference := small(divergence, beta=0.1)).problem
    init = random_mechanisms(problem, 1, seed=4)
    posterior = closed_form.posterior(init, problem.p_y, problem.p_s_given_y)
    nested = inference.solve(method="admm", init=init, inner=6000, inner_tol=1e-13, max_iter=1)
    exact = inference.solve(method="joint", init=init, accelerate="none", max_iter=1)
    values = [
        measures.surrogate(
            solved.mechanism[None], posterior, problem.p_y, problem.p_s_given_y, problem.beta, problem.divergence
        )[0]
        for solved in (nested, exact)
    ]
    assert values[0] == pytest.approx(values[1], abs=1e-6)


@pytest.mark.parametrize("accelerate", ["auto", "none"])
def test_no_joint_step_lowers_the_objective(accelerate: str) -> None:
    solved = InferenceAsService(g10("le-cam").table, 0.6, divergence="le-cam").solve(
        method="joint", starts=4, accelerate=accelerate, max_iter=8
    )
    for start in range(4):
        objective = solved.log.frame(start)["objective"].dropna()
        assert (objective.diff().dropna() >= -1e-11).all()  # the certified gap of a joint step


@pytest.mark.slow
def test_looking_ahead_converges_where_plain_joint_steps_crawl() -> None:
    inference = InferenceAsService(g10("jensen-shannon").table, 0.6)
    init = random_mechanisms(inference.problem, 1, seed=1)
    plain = inference.solve(method="joint", init=init, accelerate="none", max_iter=120)
    ahead = inference.solve(method="joint", init=init, max_iter=40)  # three joint problems a step: as many
    assert ahead.kkt.largest < 0.1 * plain.kkt.largest
    assert ahead.objective >= plain.objective - 1e-9


@pytest.mark.slow
def test_gradient_ascent_climbs_by_line_search_and_by_a_small_step() -> None:
    inference = small()
    for step in (None, 0.05):
        solved = inference.solve(method="gradient", starts=3, step=step, max_iter=300)
        objective = solved.history["objective"].dropna()
        assert objective.iloc[-1] > 0.5 * inference.solve(starts=4).objective
        assert objective.diff().min() >= -1e-9


def test_the_gradient_is_that_of_the_objective_along_the_simplex() -> None:
    from cvxpriv_models.inference_service.bregman import gradient

    problem = g10("hellinger", beta=0.4)
    mechanism = random_mechanisms(problem, 1, seed=2)
    slope = gradient(problem, mechanism)[0]
    direction = np.random.default_rng(0).standard_normal(mechanism[0].shape) * 1e-6
    direction -= direction.mean(axis=1, keepdims=True)  # rows keep their sum: F means nothing elsewhere
    change = problem.objective(mechanism[0] + direction) - problem.objective(mechanism[0] - direction)
    assert change / 2 == pytest.approx(np.sum(slope * direction), rel=1e-5)


def test_the_result_does_not_depend_on_the_number_of_workers() -> None:
    one, two = (small(floor=0.0).solve(starts=5, seed=3, n_jobs=jobs, max_iter=2) for jobs in (1, 2))
    assert np.array_equal(one.mechanism, two.mechanism)
    assert one.starts.equals(two.starts)
    assert one.history.drop(columns="seconds").equals(two.history.drop(columns="seconds"))


def test_every_start_is_recorded_with_its_origin() -> None:
    solved = small().solve(starts=6, max_iter=5)
    assert solved.starts["origin"].tolist() == ["grid", "trivial", "clustering", "identity", "random", "random"]
    assert solved.objective == pytest.approx(solved.starts["objective"].max(), abs=1e-9)
    assert solved.starts.at[1, "objective"] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.slow
def test_the_grid_start_ends_highest_where_s_has_more_values_than_a_grid_can_cover() -> None:
    rng = np.random.default_rng(1)
    p_sy = rng.dirichlet(np.full(4, 0.5), size=20).T * rng.dirichlet(np.full(20, 5.0))
    solved = InferenceAsService(p_sy, 0.6, divergence="le-cam", size_u=20).solve(starts=8, max_iter=10)
    ends = solved.starts.groupby("origin")["objective"].max()
    assert ends["grid"] > ends[["trivial", "clustering", "identity", "random"]].max() + 1e-4


def test_a_mechanism_given_to_start_from_is_improved_on() -> None:
    inference = small()
    init = random_mechanisms(inference.problem, 2)
    solved = inference.solve(init=init, max_iter=10)
    assert solved.starts["origin"].tolist() == ["init", "init"]
    assert solved.objective > max(inference.problem.objective(mechanism) for mechanism in init)


def test_a_callback_ends_a_run_and_the_best_so_far_comes_back() -> None:
    solved = small().solve(starts=3, callback=lambda loop, iteration, measured: loop == "outer" and iteration == 2)
    assert solved.interrupted
    assert solved.objective >= 0.0


def test_a_saved_run_comes_back_the_same(tmp_path: Path) -> None:
    solved = InferenceAsService(COUNTED, beta=0.4, divergence="le-cam").solve(starts=2, max_iter=2)
    path = solved.save(tmp_path / "run.json")
    loaded = cpv.load(path)
    assert np.array_equal(loaded.mechanism, solved.mechanism)
    assert loaded.starts.equals(solved.starts)
    assert loaded.settings == solved.settings
    assert (loaded.objective, loaded.converged) == (solved.objective, solved.converged)
    assert loaded.problem.table.public == solved.problem.table.public


def test_a_run_with_a_user_s_own_divergence_is_loaded_with_it(tmp_path: Path) -> None:
    own = cpv.FDivergence("fourth-root", f=lambda t: 1 - t**0.25)
    solved = small(own).solve(method="admm", starts=1, max_iter=2)
    path = solved.save(tmp_path / "run.json")
    with pytest.raises(DataError, match=r"divergence 'fourth-root' is not built in: pass it to InferenceRun\.load"):
        cpv.load(path)
    assert type(solved).load(path, own=own).objective == pytest.approx(solved.objective, abs=1e-15)


def test_a_run_becomes_a_mechanism_that_can_be_released() -> None:
    solved = InferenceAsService(COUNTED, beta=0.4).solve(starts=1, max_iter=2)
    mechanism = solved.as_mechanism()
    assert mechanism.inputs == solved.problem.table.public
    assert mechanism.figures["accuracy"] == solved.accuracy
    assert mechanism.origin["divergence"] == "jensen-shannon"


def test_every_block_is_certified_at_the_answer() -> None:
    report = small().solve(starts=1).certify(("CLARABEL",))
    assert {verdict.verdict for verdict in report.verdicts.values()} == {"agrees"}


@pytest.mark.slow
def test_the_curve_trades_accuracy_for_leakage() -> None:
    curve = small(floor=0.0).curve([0.05, 0.2, 0.5, 3.0], starts=4)
    assert (curve["accuracy"].diff().dropna() <= 1e-7).all()
    assert (curve["leakage"].diff().dropna() <= 1e-7).all()
    assert curve["trivial"].tolist() == [False, False, False, True]


@pytest.mark.parametrize(
    "divergence",
    [
        "total-variation",
        *(pytest.param(one, marks=pytest.mark.slow) for one in ("jensen-shannon", "mutual-information")),
    ],
)
def test_a_huge_beta_makes_no_mechanism_of_the_rounding_of_its_leakage(divergence: str) -> None:
    solved = InferenceAsService(TABLE, 1e8, divergence=divergence).solve(starts=2, max_iter=20)
    assert solved.converged
    assert solved.objective == pytest.approx(0.0, abs=1e-7)  # beta times the rounding of a leakage


@pytest.mark.grid(every=4)
@pytest.mark.parametrize(
    "divergence", ["jensen-shannon", "total-variation", pytest.param("reverse-kl", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("options", [{"size_u": 1}, {"size_u": 9}, {"size_u": 4, "floor": 0.25}])
def test_alphabets_of_any_size_and_a_floor_that_leaves_no_room_are_solved(
    divergence: str, options: dict[str, float]
) -> None:
    solved = InferenceAsService(TABLE, 0.2, divergence=divergence, **options).solve(starts=1)
    assert solved.converged
    assert solved.mechanism.shape == (4, options["size_u"])
    assert solved.objective >= -1e-15


class TestConstraints:
    """`constrain`."""

    def test_the_history_has_the_gap_of_every_step(self) -> None:
        private = small().constrain("ldp", cpv.constraints.local_differential_privacy(1.0)).solve(starts=1)
        gap = private.history["gap"].dropna()
        assert len(gap) == private.iterations
        assert gap.iloc[-1] == pytest.approx(0.0, abs=1e-8)  # what a solver knows of its value
        assert (gap >= -1e-8).all()  # a step that was not taken leaves the gap of the mechanism that stays

    def test_every_other_start_is_the_end_of_one_without_constraints(self) -> None:
        capped = small().constrain("cap", lambda mechanism: mechanism <= 0.6).solve(starts=4, max_iter=2)
        assert [origin.startswith("free ") for origin in capped.starts["origin"]] == [True, False, True, False]

    def test_the_gap_is_a_number_where_no_solver_s_dual_can_be_repaired(self) -> None:
        fixed = small("mutual-information", beta=0.1, floor=0.01)
        solved = fixed.constrain("half", cpv.constraints.fixed({(0, 0): 0.5})).solve(starts=1)
        assert 0.0 <= solved.local_gap < 1e-3

    def test_a_constraint_that_couples_rows_holds_and_costs(self) -> None:
        free = small().solve(starts=1)
        private = small().constrain("ldp", cpv.constraints.local_differential_privacy(1.0)).solve(starts=1)
        ratio = private.mechanism.max(axis=0) / private.mechanism.min(axis=0)
        assert ratio.max() <= np.exp(1.0) + 1e-6
        assert 0.0 < private.objective < free.objective - 1e-3
        assert private.kkt.largest <= 1e-5

    def test_a_constraint_that_couples_rows_runs_with_the_joint_block_only(self) -> None:
        private = small().constrain("ldp", cpv.constraints.local_differential_privacy(1.0))
        with pytest.raises(ModelError, match=r"couple rows \(ldp\): pass method='joint', or 'auto'"):
            private.solve(method="admm")

    @pytest.mark.parametrize("method", ["bregman", "gradient"])
    def test_a_method_that_does_not_see_constraints_refuses_them(self, method: str) -> None:
        with pytest.raises(ModelError, match=r"does not see constraints \(cap\): pass method='joint'"):
            small().constrain("cap", lambda mechanism: mechanism <= 0.6).solve(method=method)

    @pytest.mark.slow
    def test_a_constraint_on_single_rows_runs_with_admm_too(self) -> None:
        capped = small().constrain("cap", lambda mechanism: mechanism <= 0.6)
        by_rows = capped.solve(method="admm", starts=1, max_iter=3, inner=10)
        assert by_rows.mechanism.max() <= 0.6 + 1e-7
        assert by_rows.objective <= capped.solve(starts=2).objective + 1e-6

    def test_a_constraint_that_cannot_hold_is_named(self) -> None:
        with pytest.raises(ModelError, match="'low' cannot hold: it would have to be relaxed by 0.05"):
            small().constrain("low", lambda mechanism: mechanism <= 0.2).solve()

    @pytest.mark.parametrize(
        ("constraint", "message"),
        [
            (lambda mechanism: 3.0, "constraint 'x'"),
            (lambda mechanism: cp.multiply(mechanism[0], mechanism[1]) >= 0.1, "is not DCP in x"),
        ],
    )
    def test_what_is_no_constraint_is_refused_at_once(self, constraint: object, message: str) -> None:
        with pytest.raises(ModelError, match=message):
            small().constrain("x", constraint)

    def test_a_name_is_given_once(self) -> None:
        capped = small().constrain("cap", lambda mechanism: mechanism <= 0.6)
        with pytest.raises(ModelError, match="'cap' is already a constraint"):
            capped.constrain("cap", lambda mechanism: mechanism <= 0.5)


class TestBadInput:
    """Whatever is out of range is refused with its name, its value and a remedy."""

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"beta": 0.0}, r"beta=0\.0 is not a finite number > 0"),
            ({"beta": float("nan")}, r"beta=nan is not a finite number"),
            ({"size_u": 0}, r"size_u=0 is not a whole number >= 1"),
            ({"size_u": 11, "floor": 0.1}, r"floor=0\.1 does not fit: rows of size_u=11"),
            ({"divergence": "jensen-shanon"}, "did you mean 'jensen-shannon'"),
            ({"divergence": object()}, "it lacks name, f, derivative"),
        ],
    )
    def test_of_the_model(self, options: dict[str, object], message: str) -> None:
        with pytest.raises(ModelError, match=message):
            InferenceAsService(TABLE, **options)

    def test_of_a_divergence_that_is_not_finite_inside_the_interval(self) -> None:
        bad = cpv.FDivergence("cut", f=lambda t: np.where(t < 100.0, (t - 1) ** 2, np.nan))
        with pytest.raises(ModelError, match=r"f of divergence 'cut' is nan at t = q/p = 1\d\d"):
            InferenceAsService(TABLE, divergence=bad)

    @pytest.mark.parametrize(
        ("f", "message"),
        [
            (lambda t: -((t - 1) ** 2), r"'own' is not convex near t = q/p ="),
            (lambda t: np.minimum((t - 1) ** 2, 4.0), r"'own' is not convex near t = q/p = [23]\."),
            (lambda t: float(t) ** 2, r"'own' does not take an array"),
        ],
    )
    def test_of_a_divergence_that_is_none(self, f: Callable[[np.ndarray], np.ndarray], message: str) -> None:
        with pytest.raises(ModelError, match=message):
            InferenceAsService(TABLE, divergence=cpv.FDivergence("own", f=f))

    def test_of_the_table(self) -> None:
        with pytest.raises(DataError):
            InferenceAsService([[0.5, 0.6], [0.1, 0.1]])

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"method": "adm"}, "method='adm' is not known: did you mean 'admm'"),
            ({"engine": "closed"}, "engine='closed' is not known: did you mean 'closed_form'"),
            ({"starts": 0}, "starts=0 is not a whole number >= 1"),
            ({"seed": -1}, "seed=-1 is not a whole number >= 0"),
            ({"tol": 0.0}, r"tol=0\.0 is not a finite number > 0"),
            ({"rho": -1.0}, r"rho=-1\.0 is not a finite number > 0"),
            ({"inner": 0}, "inner=0 is not a whole number >= 1"),
            ({"max_iter": 1.5}, r"max_iter=1\.5 is not a whole number >= 1"),
            ({"init": np.ones((2, 2))}, r"init has shape \(2, 2\), expected \(4, 4\)"),
            ({"init": np.eye(4)}, r"init\[0\] has a cell of 0, below floor=0\.001"),
            ({"init": "abc"}, "init='abc' does not hold numbers"),
            ({"callback": print, "n_jobs": 2}, "n_jobs=1 to call it here"),
        ],
    )
    def test_of_a_solve(self, options: dict[str, object], message: str) -> None:
        with pytest.raises(ModelError, match=message):
            small().solve(**options)

    def test_of_a_curve(self) -> None:
        with pytest.raises(ModelError, match="holds no number"):
            small().curve([])


def test_the_note_names_the_guarantees_that_a_kinked_f_forgoes() -> None:
    solved = small("total-variation").solve(starts=2, max_iter=5)
    assert "is not strictly convex and has kinks" in solved.note


def test_few_steps_asked_for_are_few_passes() -> None:
    model = InferenceAsService([[0.3, 0.1, 0.1], [0.1, 0.2, 0.2]], 0.05, divergence=cpv.divergence("(t-1)*log(t)"))
    assert model.solve(starts=1, seed=0, max_iter=2).starts["iterations"].max() <= 250  # 2,206 before
