"""The orchestrator, on problems whose answers are known without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cvxpriv.blocks.engines import DCP, Checked, ClosedForm, Until, engine_named
from cvxpriv.errors import Disagreement, ModelError, PrivacyError
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.privacy import Noise, Release
from cvxpriv.schedules.history import AnyOf, Below, Context, Moved, Never, Stop
from cvxpriv.schedules.running import run
from cvxpriv.schedules.steps import Draw, Invariant, Loop, Measure, Parallel, Public, Sweep, Update
from tests.toolkit.test_block import TARGET, projection

KEYS = frozenset({"a", "b"})


def context(engine: object = None) -> Context:
    return Context(engine or ClosedForm())  # type: ignore[arg-type]


def update(name: str, fn: object) -> Update:
    return Update(name, fn, KEYS, frozenset({name}))  # type: ignore[arg-type]


def start(a: float = 1.0, b: float = 2.0) -> dict[str, np.ndarray]:
    return {"a": np.array([a]), "b": np.array([b])}


A_FROM_B = update("a", lambda view: {"a": 10 * view["b"]})
B_FROM_A = update("b", lambda view: {"b": view["a"] + 1})


def test_a_sweep_is_gauss_seidel_and_a_parallel_is_jacobi() -> None:
    assert run(Sweep([A_FROM_B, B_FROM_A]), start(), context())["b"] == [21.0]
    assert run(Parallel([A_FROM_B, B_FROM_A]), start(), context())["b"] == [2.0]


def test_a_run_leaves_the_state_it_was_given_alone() -> None:
    given = start()
    run(Loop(Sweep([A_FROM_B, B_FROM_A]), Never(), 3, lambda state: {}), given, context())
    assert (given["a"][0], given["b"][0]) == (1.0, 2.0)


def test_parallel_steps_may_not_write_the_same_entry() -> None:
    with pytest.raises(ModelError, match=r"parallel steps write \['a'\] twice"):
        Parallel([A_FROM_B, A_FROM_B])


def halving(limit: int = 100, **options: object) -> Loop:
    halve = Update("halve", lambda view: {"a": view["a"] / 2}, frozenset({"a"}), frozenset({"a"}))
    return Loop(halve, Below("size", 1e-3), limit, lambda state: {"size": np.abs(state["a"])}, **options)  # type: ignore[arg-type]


def test_each_start_stops_on_its_own_and_is_left_alone_afterwards() -> None:
    here = context()
    done = run(halving(), {"a": np.array([1.0, 1e-3, 100.0])}, here)
    assert here.reports["loop"].iterations.tolist() == [10, 1, 17]  # the first n with a / 2^n <= 1e-3
    assert done["a"].tolist() == [1.0 / 2**10, 1e-3 / 2, 100.0 / 2**17]


def test_a_loop_that_reaches_its_limit_says_which_starts_did_not_converge() -> None:
    here = context()
    run(halving(limit=10), {"a": np.array([1.0, 100.0])}, here)
    assert here.reports["loop"].converged.tolist() == [True, False]


def test_batched_starts_equal_the_same_starts_one_by_one() -> None:
    values = np.random.default_rng(0).uniform(0.1, 50.0, size=9)
    together = run(halving(), {"a": values}, context())["a"]
    apart = [run(halving(), {"a": value[None]}, context())["a"][0] for value in values]
    assert together.tolist() == apart


def test_a_step_that_is_not_accepted_leaves_the_start_where_it_was() -> None:
    loop = halving(limit=5, accept=lambda before, after: after["a"] > 0.2)
    assert run(loop, {"a": np.array([1.0])}, context())["a"].tolist() == [0.25]


def test_loops_nest() -> None:
    inner = Loop(
        Update("grow", lambda view: {"b": view["b"] + 1}, KEYS, frozenset({"b"})),
        Never(),
        3,
        lambda s: {},
        name="inner",
    )
    outer = Loop(Sweep([inner, A_FROM_B]), Below("a", -1.0), 2, lambda state: {"a": state["a"]}, name="outer")
    here = context()
    assert run(outer, start(b=0.0), here)["a"] == [60.0]
    assert set(here.reports) == {"inner", "outer"}


def test_an_accelerator_gets_the_body_as_a_map_and_replaces_one_run_of_it() -> None:
    def thrice(body: object, state: Values, iteration: int) -> Values:
        return body(body(body(state)))  # type: ignore[operator]

    here = context()
    run(halving(accelerate=thrice), {"a": np.array([1.0])}, here)
    assert here.reports["loop"].iterations.tolist() == [4]  # 2^-12 is the first of 2^-3n below 1e-3


def test_a_keyboard_interrupt_returns_what_there_is() -> None:
    def interrupt(view: Values) -> Values:
        if view["a"][0] < 0.1:
            raise KeyboardInterrupt
        return {"a": view["a"] / 2}

    loop = Loop(Update("halve", interrupt, frozenset({"a"}), frozenset({"a"})), Never(), 99, lambda s: {"a": s["a"]})
    here = context()
    assert run(loop, {"a": np.array([1.0])}, here)["a"].tolist() == [0.0625]
    assert here.interrupted


def test_a_callback_sees_every_iteration_and_can_end_the_run() -> None:
    seen: list[int] = []
    here = context()
    here.callback = lambda loop, iteration, measured: seen.append(iteration) or iteration == 4  # type: ignore[func-returns-value]
    run(halving(), {"a": np.array([1.0])}, here)
    assert seen == [1, 2, 3, 4]


def test_the_checked_engine_asserts_invariants_and_names_what_broke() -> None:
    rising = Invariant("a never falls", lambda before, after: before["a"] - after["a"], 1e-12)
    sweep = Sweep([halving().body], invariants=[rising])
    loop = Loop(sweep, Never(), 3, lambda state: {})
    run(loop, {"a": np.array([1.0, 1.0])}, context())
    with pytest.raises(Disagreement, match="'sweep', iteration 1, start 0: a never falls is violated by 5.00e-01"):
        run(loop, {"a": np.array([1.0, 1.0])}, context(Checked()))


def test_history_has_a_row_for_each_block_and_each_iteration_of_each_start() -> None:
    here = context(DCP())
    loop = Loop(projection(), Never(), 2, lambda state: {"worst": state["x"].max(axis=1)})
    run(loop, {"y": np.array([TARGET, TARGET[::-1]]), "x": np.zeros((2, 3))}, here)
    table = here.history.frame()
    assert len(table) == 2 * 2 * 2
    assert set(table["block"]) == {"projection", "loop"}
    solved = table[table["block"] == "projection"]
    assert set(solved["solver"]) == {"CLARABEL"}
    assert len(here.history.frame(start=1)) == 4


def test_the_stopping_constraints_say_what_their_names_say() -> None:
    before, after = {"a": np.zeros((2, 3))}, {"a": np.array([[0.0, 0.1, 0.0], [0.0, 0.0, 0.0]])}
    measured = {"f": np.array([1.0, 3.0])}
    assert Moved("a", 0.05)(1, before, after, measured).tolist() == [False, True]
    assert Below("f", 2.0)(1, before, after, measured).tolist() == [True, False]
    assert AnyOf((Moved("a", 0.05), Below("f", 2.0)))(1, before, after, measured).tolist() == [True, True]
    assert not Never()(1, before, after, measured).any()


def test_the_closed_form_engine_goes_to_a_solver_where_a_block_has_no_exact_update_and_says_so() -> None:
    block = projection(direct=None)
    outcome = ClosedForm().solve(block, {"y": TARGET[None]})
    assert (outcome.engine, outcome.solver) == ("dcp", ("CLARABEL",))


def test_the_checked_engine_catches_a_wrong_exact_update() -> None:
    wrong = projection(direct=lambda state: {"x": np.array([[0.6, 0.3, 0.1]])})
    with pytest.raises(Disagreement, match="block 'projection', start 0: the closed form reaches 0.02"):
        Checked().solve(wrong, {"y": TARGET[None]})


def test_the_checked_engine_agrees_with_a_right_one() -> None:
    outcome = Checked().solve(projection(), {"y": TARGET[None]})
    assert outcome.values["x"].tolist() == [TARGET.tolist()]


def test_the_checked_engine_blames_a_solver_that_stops_short_of_a_feasible_exact_update() -> None:
    loose = Checked(DCP(("SCS",), tolerance=1e-2))
    away = np.array([1.4, -0.3, 0.8])
    block = projection(
        repair=lambda values, view: {"x": np.maximum(values["x"], 0.0) / np.maximum(values["x"], 0.0).sum()},
        direct=lambda state: {"x": np.array([[0.8, 0.0, 0.2]])},
    )
    outcome = loose.solve(block, {"y": away[None]})
    assert outcome.status[0].endswith("short of the closed form")
    assert outcome.values["x"].tolist() == [[0.8, 0.0, 0.2]]


def test_the_checked_engine_catches_an_exact_update_that_is_better_because_it_is_infeasible() -> None:
    outside = projection(direct=lambda state: {"x": np.array(state["y"])})
    with pytest.raises(Disagreement, match="the closed form reaches 0,"):
        Checked().solve(outside, {"y": TARGET[None] + 0.3})


def test_an_unknown_engine_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(ModelError, match="did you mean 'closed_form'"):
        engine_named("closed-form")


def _doubled(view: Values) -> Values:
    return {"after": 2.0 * view["released"]}


def test_a_draw_step_takes_the_runs_noise_and_enters_the_ledger() -> None:
    shared = Context(ClosedForm(), noise=Noise(np.random.default_rng(0)))
    release = Draw(
        "gradient",
        lambda view, noise: {"released": view["secret"] + noise.normal(1.0, view["secret"].shape)},
        frozenset({"secret"}),
        frozenset({"released"}),
        cost=[Release(mu=0.5)],
    )
    loop = Loop(release, stop=Never(), limit=3, measure=lambda state: {})
    after = run(loop, {"secret": np.zeros((1, 2))}, shared)
    assert [(entry.step, entry.iteration, entry.mu) for entry in shared.ledger] == [
        ("gradient", 1, 0.5),
        ("gradient", 2, 0.5),
        ("gradient", 3, 0.5),
    ]
    assert (after["released"] != 0.0).all()


def test_a_public_step_runs_on_what_was_released() -> None:
    step = Public(Update("double", _doubled, frozenset({"released"}), frozenset({"after"})), frozenset({"released"}))
    after = run(step, {"released": np.ones((1, 2)), "secret": np.ones((1, 2))}, context())
    np.testing.assert_array_equal(after["after"], [[2.0, 2.0]])


def test_a_public_step_that_declares_a_private_read_is_refused() -> None:
    update = Update("peek", _doubled, frozenset({"released", "secret"}), frozenset({"after"}))
    with pytest.raises(PrivacyError, match="'peek' reads secret, which was not released"):
        Public(update, frozenset({"released"}))


def test_a_public_step_that_reads_more_than_it_declares_is_caught_when_it_runs() -> None:
    update = Update("peek", lambda view: {"after": view["secret"]}, frozenset({"released"}), frozenset({"after"}))
    with pytest.raises(PrivacyError, match="'peek' reads secret, which it does not declare"):
        run(
            Public(update, frozenset({"released"})),
            {"released": np.ones((1, 1)), "secret": np.ones((1, 1))},
            context(),
        )


def test_a_loop_that_draws_noise_cannot_be_accelerated() -> None:
    draw = Draw("noise", lambda view, noise: {}, frozenset(), frozenset(), [Release(mu=1.0)])
    with pytest.raises(ModelError, match="each draw costs privacy"):
        Loop(
            Sweep([Public(Update("x", _doubled, frozenset(), frozenset()), frozenset()), draw]),
            stop=Never(),
            limit=1,
            measure=lambda state: {},
            accelerate=lambda body, state, iteration: state,
        )


def test_a_sweep_that_draws_noise_cannot_be_fused_past_the_ledger() -> None:
    draw = Draw("noise", lambda view, noise: {}, frozenset(), frozenset(), [Release(mu=1.0)])
    with pytest.raises(ModelError, match="the ledger would miss its releases"):
        Sweep([Sweep([draw])], fused=lambda state: state)


def test_a_draw_of_several_starts_is_as_many_releases_and_finished_starts_release_no_more() -> None:
    draw = Draw("half", lambda view, noise: {"a": view["a"] / 2}, frozenset({"a"}), frozenset({"a"}), [Release(mu=0.5)])
    here = context()
    loop = Loop(draw, Below("size", 1.0), 3, lambda state: {"size": state["a"]})
    run(loop, {"a": np.array([2.0, 8.0, 4.0])}, here)  # done after 1, 3 and 2 iterations
    assert [(entry.iteration, entry.mu) for entry in here.ledger] == [(1, 0.5)] * 3 + [(2, 0.5)] * 2 + [(3, 0.5)]


def test_a_release_that_is_not_gaussian_enters_the_ledger_with_the_epsilon_of_the_moment() -> None:
    draw = Draw(
        "release",
        lambda view, noise: {"x": view["x"] / 2.0},
        frozenset({"x", "turn"}),
        frozenset({"x"}),
        cost=lambda view: [Release(epsilon=1.0 / float(view["turn"][0]))],
    )
    on = Update("on", lambda view: {"turn": view["turn"] + 1.0}, frozenset({"turn"}), frozenset({"turn"}))
    context, start = Context(ClosedForm()), {"x": np.array([1.0]), "turn": np.zeros(1)}
    run(Loop(Sweep([Public(on, on.reads), draw]), Never(), 2, lambda state: {}), start, context)
    assert [(entry.mu, entry.epsilon) for entry in context.ledger] == [(None, 1.0), (None, 0.5)]


NEVER, ONCE = Never(), (Release(mu=0.5),)


def _private(name: str) -> Update:
    return Update(name, lambda view: {"secret": view["secret"] / 2.0}, frozenset({"secret"}), frozenset({"secret"}))


def _secret(state: Values) -> dict[str, Array]:
    return {"size": state["secret"][:, 0]}


def _guarded(
    stop: Stop = NEVER,
    measure: Measure = lambda state: {},
    accept: Any = None,
    cost: Any = ONCE,
    invariants: Any = (),
    more: Any = (),
) -> Loop:
    """A loop around a draw, with a private entry `secret` that an update at home changes, and a released one."""
    draw = Draw(
        "release",
        lambda view, noise: {"released": view["secret"] + 1.0},
        frozenset({"secret"}),
        frozenset({"released"}),
        cost,
    )
    after = Public(Update("after", _doubled, frozenset({"released"}), frozenset({"after"})), frozenset({"released"}))
    return Loop(Sweep([*more, _private("home"), draw, after], invariants=invariants), stop, 3, measure, accept)


_SECRET = {"secret": np.ones((1, 1)), "released": np.zeros((1, 1)), "after": np.zeros((1, 1))}
#: One reader of each kind: whatever shows in a result, a ledger, a history, an exception or the number of passes.
_PEEKS = {
    "measure": _guarded(measure=_secret),
    "stop": _guarded(Moved("secret", 1e-3)),
    "one of several stops": _guarded(AnyOf((Never(), Moved("secret", 1e-3)))),
    "accept": _guarded(accept=lambda before, after: after["secret"][:, 0] < 1.0),
    "cost": _guarded(cost=lambda view: [Release(mu=float(view["secret"][0, 0]))]),
    "invariant": _guarded(invariants=[Invariant("small", lambda before, after: after["secret"][:, 0], 0.1)]),
    "measure of a loop at home": _guarded(more=[Loop(_private("inner"), Never(), 2, _secret)]),
    "stop of a loop at home": _guarded(more=[Loop(_private("inner"), Moved("secret", 0.3), 9, lambda state: {})]),
    "loop before the draw": Sweep([Loop(_private("inner"), Never(), 2, _secret), _guarded()]),
    "loop after the draw": Sweep([_guarded(), Loop(_private("inner"), Never(), 2, _secret)]),
    "loop around the loop": Loop(_guarded(), Never(), 2, _secret),
    "public step that calls a private entry public": _guarded(
        more=[_private("home"), Public(Update("x", _secret, frozenset({"secret"}), frozenset()), frozenset({"secret"}))]
    ),
    "an entry before its draw": Loop(
        Draw("half", lambda view, _: {"secret": view["secret"]}, *[frozenset({"secret"})] * 2, [Release(mu=0.5)]),
        Moved("secret", 1e-3),
        2,
        lambda state: {},
    ),
    "a snapshot before its draw": Parallel(
        [
            Draw("half", lambda view, _: {"secret": view["secret"]}, *[frozenset({"secret"})] * 2, [Release(mu=0.5)]),
            Loop(Sweep([]), Never(), 1, _secret),
        ]
    ),
}


@pytest.mark.parametrize("kind", _PEEKS)
def test_beside_a_draw_whatever_shows_reads_nothing_that_was_not_released(kind: str) -> None:
    with pytest.raises(PrivacyError, match="reads secret, which .* was not released"):
        run(_PEEKS[kind], _SECRET, context(engine_named("checked")))


def test_a_run_after_a_draw_is_beside_it_and_blocks_at_home_leave_no_record() -> None:
    here = context()
    run(Sweep([Loop(_private("nothing is released yet"), Never(), 1, lambda state: {}), _guarded()]), _SECRET, here)
    with pytest.raises(PrivacyError, match="reads secret"):
        run(Loop(_private("inner"), Never(), 2, _secret), _SECRET, here)
    run(projection(), {"y": TARGET[None]}, here)
    assert "project" not in {record.block for record in here.history.records}


def test_beside_a_draw_a_loop_may_read_what_was_released_or_follows_from_it() -> None:
    here = context()
    measure = lambda state: {"size": state["after"][:, 0]}  # noqa: E731
    run(_guarded(AnyOf((Below("size", 2.6), Moved("released", 0.1))), measure), _SECRET, here)
    assert here.reports["loop"].iterations.tolist() == [2]  # after is 3 and 2.5
    assert [sorted(written) for written in here.published] == [["released"]] * 2


def test_a_loop_whose_draws_claim_nothing_may_read_everything() -> None:
    loop = _guarded(Never(), lambda state: {"size": state["secret"][:, 0]}, cost=[Release(mu=0.5, flaw="as printed")])
    assert run(loop, _SECRET, context())["secret"].tolist() == [[0.125]]


def test_a_draw_without_a_cost_is_refused() -> None:
    with pytest.raises(PrivacyError, match="'free' has no cost"):
        Draw("free", lambda view, noise: {}, frozenset(), frozenset(), [])


def test_a_deadline_within_a_pass_of_solvers_drops_the_pass_and_keeps_the_last_whole_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]
    monkeypatch.setattr("cvxpriv.blocks.engines.now", lambda: clock[0])

    def step(name: str, seconds: float) -> Update:
        def fn(state: Values) -> Values:
            clock[0] += seconds
            return {name: state[name] + 1.0}

        return Update(name, fn, reads=frozenset({name}), writes=frozenset({name}))

    loop = Loop(Sweep([step("a", 1.0), step("b", 1.0)]), Below("never", -1.0), 9, lambda state: {"never": state["a"]})
    for engine, passes in ((DCP(), 2.0), (ClosedForm(), 3.0)):
        clock[0] = 0.0
        here = context(Until(engine, 4.5))
        ended = run(loop, {"a": np.zeros(1), "b": np.zeros(1)}, here)
        assert (ended["a"][0], ended["b"][0]) == (passes, passes)
        assert here.overdue
        assert here.reports["loop"].iterations.tolist() == [passes]
