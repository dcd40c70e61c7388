"""ADMM sharing across parties: the same bits as in one process, what crosses, and what a party refuses."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cvxpriv_models.admm_sharing.apart import SharingApart
from cvxpriv_models.admm_sharing.apart_messages import SPOKEN
from cvxpriv_models.admm_sharing.apart_party import Allowance, SharingParty
from cvxpriv_models.admm_sharing.problem import with_intercept

from cvxpriv.distributed import participant
from cvxpriv.distributed.alignment import digests
from cvxpriv.distributed.carriers import Carrier, InProcess
from cvxpriv.distributed.flight_holder import FlightHolder
from cvxpriv.distributed.flight_party import serve
from cvxpriv.distributed.keys import Keys, add_member, create_team, keys_in
from cvxpriv.distributed.messages import Message
from cvxpriv.errors import CvxprivError, DataError, PartyError, PrivacyError
from cvxpriv.models import ADMMSharing
from cvxpriv.numerics.arrays import Array
from cvxpriv.privacy import Budget, Noise, Release, ledger_document
from cvxpriv.tables.datasets import load_a9a

EXACT = Allowance(exact=True)


def table(seed: int = 0, rows: int = 120) -> tuple[dict[str, Array], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    columns = rng.uniform(-0.5, 0.5, size=(rows, 5))
    labels = np.where(columns @ [2.0, -1.0, 1.0, 0.5, 0.0] + 0.2 * rng.normal(size=rows) > 0.0, "yes", "no")
    return {"a": columns[:, :2], "b": columns[:, 2:]}, labels


def parties(parts: Mapping[str, Array], allowance: Allowance = EXACT, **more: Any) -> dict[str, SharingParty]:
    return {name: SharingParty(part, allowance, **more) for name, part in parts.items()}


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Keys]:
    folder = create_team(tmp_path_factory.mktemp("keys") / "team")
    return {name: keys_in(add_member(folder, name)) for name in ("label-holder", "a", "b")}


class Served:
    """Parties on threads of this process that dial in over real TLS."""

    def __init__(self, team: Mapping[str, Keys], roles: Mapping[str, SharingParty], wait: float = 20.0) -> None:
        self.carrier = FlightHolder("127.0.0.1:0", team["label-holder"], list(roles), SPOKEN, wait)
        self.ended: dict[str, Any] = {}
        self.threads = [threading.Thread(target=self._serve, args=(team[name], roles[name])) for name in roles]

    def _serve(self, keys: Keys, role: SharingParty) -> None:
        try:
            self.ended[keys.name] = serve(role, self.carrier.address, keys, wait=5.0)
        except Exception as error:
            self.ended[keys.name] = error

    def __enter__(self) -> FlightHolder:
        for thread in self.threads:
            thread.start()
        return self.carrier

    def __exit__(self, *_: object) -> None:
        self.carrier.close()
        for thread in self.threads:
            thread.join()


@pytest.mark.parametrize(
    ("options", "solving"),
    [
        ({}, {}),
        ({"penalty": "l1", "lam": 0.5}, {"method": "proximal_jacobi", "max_iter": 40}),
        ({"penalty": "l1", "lam": 0.5}, {"max_iter": 40}),
        ({"loss": "hinge"}, {"max_iter": 25, "rho": 0.7}),
    ],
)
def test_parties_apart_have_the_bits_of_parties_together(options: dict[str, Any], solving: dict[str, Any]) -> None:
    parts, labels = table()
    roles = parties(parts)
    apart = SharingApart(InProcess(roles, SPOKEN), labels, **options).solve(**solving)
    together = ADMMSharing(list(parts.values()), labels, **options).solve(
        accelerate="none", **{"max_iter": 2000, **solving}
    )
    assert [role.coefficients.tobytes() for role in roles.values()] == [x.tobytes() for x in together.coefficients]
    assert all(apart.state[name].tobytes() == together.state[name].tobytes() for name in ("z", "y", "v/0", "v/1"))
    assert (apart.iterations, apart.kkt, apart.gap) == (together.iterations, together.kkt, together.gap)
    passes = [run.history[run.history["block"] == "pass"] for run in (apart, together)]
    figures = ["iteration", "objective", "primal", "stationarity", "kkt", "rho"]
    assert passes[0][figures].to_numpy().tolist() == passes[1][figures].to_numpy().tolist()


@pytest.mark.slow
def test_a9a_has_the_same_bits_over_flight(team: Mapping[str, Keys]) -> None:
    data = load_a9a()
    parts = {"a": data.x_train[:, :66], "b": data.x_train[:, 66:]}
    far = parties(parts)
    with Served(team, far, wait=120.0) as carrier:
        there = SharingApart(carrier, data.y_train).solve(max_iter=30)
    here = ADMMSharing(list(parts.values()), data.y_train).solve(accelerate="none", max_iter=30)
    assert [role.coefficients.tobytes() for role in far.values()] == [x.tobytes() for x in here.coefficients]
    assert (there.state["z"].tobytes(), there.kkt, there.gap) == (here.state["z"].tobytes(), here.kkt, here.gap)


def test_flight_carries_the_same_bits(team: Mapping[str, Keys]) -> None:
    parts, labels = table()
    near, far = parties(parts), parties(parts)
    here = SharingApart(InProcess(near, SPOKEN), labels).solve()
    served = Served(team, far)
    with served as carrier:
        there = SharingApart(carrier, labels).solve()
    assert served.ended == {"a": "done", "b": "done"}
    assert all(here.state[name].tobytes() == there.state[name].tobytes() for name in here.state)
    assert [far[name].coefficients.tobytes() for name in far] == [near[name].coefficients.tobytes() for name in near]


def test_an_intercept_is_a_column_of_the_first_party() -> None:
    parts, labels = table()
    roles = parties(parts)
    SharingApart(InProcess(roles, SPOKEN), labels, intercept=True).solve()
    with_ones, penalties, _ = with_intercept(list(parts.values()), "l2", private=False)
    together = ADMMSharing(with_ones, labels, penalty=penalties).solve(accelerate="none", max_iter=2000)  # type: ignore[arg-type]
    assert [role.coefficients.tobytes() for role in roles.values()] == [x.tobytes() for x in together.coefficients]


def test_a_private_party_draws_what_one_process_draws_from_the_same_bits() -> None:
    parts, labels = table()
    columns = np.hstack(list(parts.values()))
    budget: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5, "adjacency": "replace-one"}
    seeded = Noise(np.random.default_rng(3))
    role = SharingParty(columns, Allowance(epsilon=2.0, delta=1e-5, bounds={"row_bound": 1.2}), noise=seeded)
    apart = SharingApart(InProcess({"a": role}, SPOKEN), labels, lam=10.0).solve_private(**budget)
    with pytest.warns(UserWarning, match="repeatable"):
        together = ADMMSharing([columns], labels, lam=10.0).solve_private(**budget, row_bound=1.2, noise_seed=3)
    assert all(apart.released[name].tobytes() == together.released[name].tobytes() for name in together.released)
    assert role.coefficients.tobytes() == together.not_private.coefficients[0].tobytes()
    assert ledger_document(role.ledger) == ledger_document(together.ledger)
    assert apart.accounting.epsilon == together.accounting.epsilon


def test_held_labels_are_flipped_before_anything_is_sent() -> None:
    parts, labels = table(rows=400)
    bounded = Allowance(epsilon=2.0, bounds={"row_bound": 1.2})
    run = SharingApart(InProcess(parties(parts, bounded), SPOKEN), labels == "yes", lam=10.0).solve_private(
        epsilon=2.0, delta=1e-6, adjacency="replace-one", labels="held"
    )
    kept = np.mean(run.released["labels"] == np.where(labels == "yes", 1.0, -1.0))
    assert 0.6 < kept < 0.85  # each is kept with probability .731: eight standard deviations are .18
    assert run.accounting.epsilon == pytest.approx(2.0, rel=1e-6)  # the budget, to the margin of the noise's scale


def test_what_crosses_is_what_the_statement_lists_and_no_column_row_or_label() -> None:
    parts, labels = table()
    signs = np.where(labels == "yes", 1.0, -1.0)
    seen: list[Message] = []

    class Listening(InProcess):
        def step_all(self, messages: Mapping[str, Message], *, opening: bool = False) -> dict[str, Message]:
            answers = super().step_all(messages, opening=opening)
            seen.extend([*messages.values(), *answers.values()])
            return answers

    secret = b"k" * 16
    hashed = digests([str(row) for row in range(120)], secret)
    for private in (False, True):
        allowed = Allowance(epsilon=1.0, bounds={"row_bound": 1.2}) if private else EXACT
        fit = SharingApart(Listening(parties(parts, allowed, digests=hashed), SPOKEN), labels, digests=hashed, lam=5.0)
        if private:
            fit.solve_private(epsilon=1.0, delta=1e-6, adjacency="replace-one")
        else:
            fit.solve(max_iter=30)
            exact = len(seen)
    stated = {(kind, name) for side in ("party", "holder") for kind, name, _ in SPOKEN.statement(side)}
    sent = {(one.kind, name) for one in seen for name in (*one.vectors, *one.texts)}
    assert sent <= stated
    assert {kind for kind, _ in sent} > {"positions", "begin", "step", "share", "finish", "released", "last"}
    assert "weigh" in {one.kind for one in seen[:exact]}
    assert "weigh" not in {one.kind for one in seen[exact:]}
    secrets = [*(column for part in parts.values() for column in part.T), signs, -signs]
    secrets += [row for part in parts.values() for row in part]
    crossed = [vector for one in seen for vector in one.vectors.values() if vector.dtype.kind == "f"]
    for secret_vector in secrets:
        assert not any(holds(vector, secret_vector) for vector in crossed)


def holds(vector: Array, secret: Array) -> bool:
    """Whether a vector has the secret's entries in it, in order, or is a multiple of it."""
    if secret.tobytes() in vector.tobytes():
        return True
    if vector.size != secret.size or vector.size < 10:
        return False
    return bool(
        abs(float(vector @ secret)) > (1.0 - 1e-9) * float(np.linalg.norm(vector) * np.linalg.norm(secret)) > 0.0
    )


def private_fit(allowance: Allowance, roles: dict[str, SharingParty] | None = None, **budget: Any) -> None:
    parts, labels = table()
    carrier = InProcess(roles or parties(parts, allowance), SPOKEN)
    SharingApart(carrier, labels, lam=5.0).solve_private(
        **{"epsilon": 1.0, "delta": 1e-6, "adjacency": "replace-one", **budget}
    )


def test_a_party_answers_only_what_it_allows() -> None:
    parts, labels = table()
    bounded = {"row_bound": 1.2}
    with pytest.raises(PrivacyError, match="give it --exact"):
        SharingApart(InProcess(parties(parts, Allowance()), SPOKEN), labels).solve()
    with pytest.raises(PrivacyError, match="no budget"):
        private_fit(EXACT)
    with pytest.raises(PrivacyError, match="this party allows 0.5"):
        private_fit(Allowance(epsilon=0.5, bounds=bounded))
    with pytest.raises(PrivacyError, match="this party allows 1"):
        private_fit(Allowance(epsilon=1.0, bounds=bounded), delta=1e-3)
    with pytest.raises(PrivacyError, match="without a public bound"):
        private_fit(Allowance(epsilon=1.0))
    with pytest.raises(PrivacyError, match="does not hold"):
        private_fit(Allowance(epsilon=1.0, bounds={"row_bound": 0.1}))
    roles = parties(parts, Allowance(epsilon=1.0, bounds=bounded))
    private_fit(EXACT, roles)
    with pytest.raises(PartyError, match="outside a run without privacy"):
        roles["a"].answer(Message("weigh", {"rho": np.ones(120)}))
    with pytest.raises(PrivacyError, match="second private run"):
        private_fit(EXACT, roles)


def test_a_run_that_a_party_did_not_pay_for_gets_no_answer_from_it(tmp_path: Path) -> None:
    parts, _ = table()
    allowed = Allowance(epsilon=1.0, bounds={"row_bound": 1.2})
    roles = {name: SharingParty(part, allowed, folder=tmp_path / name) for name, part in parts.items()}
    begun: list[Message] = []
    answer = roles["a"].answer
    roles["a"].answer = lambda message: begun.append(message) or answer(message)  # type: ignore[method-assign,func-returns-value]
    private_fit(EXACT, roles)
    began = {name: len(role.ledger) for name, role in roles.items()}
    again = {name: SharingParty(part, allowed, folder=tmp_path / name) for name, part in parts.items()}
    for same in (roles, roles, again, again):  # a refusal forgets nothing, and neither does a process that begins anew
        with pytest.raises(PrivacyError, match="second private run"):
            private_fit(EXACT, same)
    assert {name: len(role.ledger) for name, role in roles.items()} == began
    spent = tmp_path / "budget.json"
    Budget(1.0, 1e-6, path=spent, adjacency="replace-one").spend([Release(mu=0.1)], adjacency="replace-one")
    role = SharingParty(parts["a"], replace(allowed, budget=spent))
    asked = {message.kind: message for message in reversed(begun)}
    role.answer(asked["positions"])
    for _ in range(2):
        with pytest.raises(PrivacyError, match="budget"):
            role.answer(asked["begin-private"])
        with pytest.raises(PartyError, match="step 1 was asked for"):
            role.answer(asked["release"])
    assert role.ledger == []


def test_a_run_without_privacy_keeps_the_ledger_of_an_earlier_private_one(tmp_path: Path) -> None:
    parts, labels = table()
    allowed = Allowance(exact=True, epsilon=1.0, bounds={"row_bound": 1.2})

    def served() -> dict[str, SharingParty]:
        return {name: SharingParty(part, allowed, folder=tmp_path / name) for name, part in parts.items()}

    roles = served()
    private_fit(allowed, roles)
    entries = {name: ledger_document(role.ledger) for name, role in roles.items()}
    assert all(entries.values())
    for same in (roles, served(), roles):  # in one process, in a new one, and after both
        SharingApart(InProcess(same, SPOKEN), labels).solve(max_iter=3)
        assert {name: ledger_document(role.ledger) for name, role in same.items()} == entries
        for asked in (same, served()):
            with pytest.raises(PrivacyError, match="second private run"):
                private_fit(allowed, asked)


def test_a_release_leaves_only_after_it_is_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts, _ = table()
    role = SharingParty(parts["a"], Allowance(epsilon=1.0, bounds={"row_bound": 1.2}), folder=tmp_path)

    def full(*_: object, **__: object) -> None:
        raise OSError("the disk is full")

    answer, answered = role.answer, []

    def listening(message: Message) -> Message:
        with monkeypatch.context() as broken:
            if message.kind == "release":
                broken.setattr(participant, "write_checkpoint", full)
                with pytest.raises(OSError, match="full"):
                    answer(message)
                assert (role.done, role.ledger) == (int(message.number("pass")) - 1, answered)
        found = answer(message)
        answered[:] = role.ledger
        return found

    role.answer = listening  # type: ignore[method-assign]
    private_fit(EXACT, {"a": role})
    assert len(answered) == 4


def test_a_release_is_drawn_once_however_often_it_is_asked_for_and_a_party_comes_back(tmp_path: Path) -> None:
    parts, labels = table()
    allowed = Allowance(epsilon=1.0, bounds={"row_bound": 1.2})
    role = SharingParty(parts["a"], allowed, folder=tmp_path)
    heard: list[Message] = []
    answer = role.answer

    def listening(message: Message) -> Message:
        heard.append(message)
        return answer(message)

    role.answer = listening  # type: ignore[method-assign]
    SharingApart(InProcess({"a": role}, SPOKEN), labels, lam=5.0).solve_private(
        epsilon=1.0, delta=1e-6, adjacency="replace-one", max_iter=2
    )
    positions, begin, first, second, last = heard
    again = SharingParty(parts["a"], allowed, folder=tmp_path)  # its process died after the last step
    again.answer(positions)
    again.answer(begin)
    assert (again.done, len(again.ledger)) == (3, 2)
    assert again.answer(last).kind == "kept"
    assert again.coefficients.tobytes() == role.coefficients.tobytes()
    with pytest.raises(PartyError, match="this party is at 3"):
        again.answer(second)
    for exact, vectors in (("finish", {"pass": last.vectors["pass"]}), ("step", last.vectors)):
        with pytest.raises(PrivacyError, match="in a private run"):
            again.answer(Message(exact, {"y": last.vectors["y"], **vectors}))
    fresh = SharingParty(parts["a"], allowed)
    fresh.answer(positions)
    fresh.answer(begin)
    one, two = fresh.answer(first), fresh.answer(first)
    assert one.vectors["values"].tobytes() == two.vectors["values"].tobytes()
    assert len(fresh.ledger) == 1
    with pytest.raises(PrivacyError, match="other terms"):
        fresh.answer(Message(begin.kind, {**begin.vectors, "releases": np.array([1.0])}, begin.texts))
    with pytest.raises(PartyError, match="step 3 was asked for"):
        fresh.answer(last)


def test_rows_in_another_order_are_aligned() -> None:
    parts, labels = table()
    names, rng = [f"p{row}" for row in range(120)], np.random.default_rng(1)
    roles = {}
    for name, part in parts.items():
        order = rng.permutation(120)[:110]
        hashed = digests([names[row] for row in order], b"k" * 16)
        roles[name] = SharingParty(part[order], EXACT, digests=hashed)
    fit = SharingApart(InProcess(roles, SPOKEN), labels, digests=digests(names, b"k" * 16))
    assert 95 <= fit.problem.samples <= 110
    direct = {name: roles[name].part for name in roles}
    lines = {row.tobytes(): place for place, row in enumerate(parts["a"])}
    places = [lines[row.tobytes()] for row in direct["a"]]
    assert all((parts[name][places] == direct[name]).all() for name in parts)
    assert (np.where(labels[places] == "yes", 1.0, -1.0) == fit.problem.y).all()


def test_rows_that_do_not_match_are_refused() -> None:
    parts, labels = table()
    with pytest.raises(DataError, match="has other rows than the 119 labels"):
        SharingApart(InProcess(parties(parts), SPOKEN), labels[:-1])
    with pytest.raises(DataError, match="sent no hashes"):
        SharingApart(InProcess(parties(parts), SPOKEN), labels, digests=digests(list(map(str, range(120))), b"k" * 16))


def test_a_party_that_is_lost_ends_the_run_with_the_last_state_saved(team: Mapping[str, Keys], tmp_path: Path) -> None:
    parts, labels = table()
    roles = parties(parts)
    answer = roles["b"].answer

    def dying(message: Message) -> Message:
        if message.kind == "step" and message.number("pass") == 4.0:
            raise RuntimeError("killed")
        return answer(message)

    roles["b"].answer = dying  # type: ignore[method-assign]
    served = Served(team, roles, wait=0.5)
    with (
        served as carrier,
        pytest.raises(PartyError, match="b did not answer within 0.5 seconds; the state after 3 passes"),
    ):
        SharingApart(carrier, labels).solve(save=tmp_path / "state.npz")
    saved = np.load(tmp_path / "state.npz")
    shorter = SharingApart(InProcess(parties(parts), SPOKEN), labels).solve(max_iter=3)
    assert saved["z"][0].tobytes() == shorter.state["z"].tobytes()


def test_what_a_party_refuses_ends_the_run_on_both_sides(team: Mapping[str, Keys]) -> None:
    parts, labels = table()
    served = Served(team, parties(parts, Allowance()))
    with served as carrier, pytest.raises(PartyError, match="refused what it was asked: its own budget or bounds"):
        SharingApart(carrier, labels).solve()
    assert any(isinstance(one, PrivacyError) for one in served.ended.values())


def carriers_have_one_interface(near: InProcess, far: FlightHolder) -> Iterator[Carrier]:
    """Checked by mypy: both are carriers."""
    yield near
    yield far


@pytest.mark.parametrize(
    "wrong",
    [{"lam": -1.0}, {"lam": 10**400}, {"penalty": 2.0}, {"tol": [0, 1]}, {"max_iter": -1}, {"rho": ""}, {"gap": "x"}],
)
def test_odd_options_of_a_fit_apart_are_typed_errors(wrong: dict[str, Any]) -> None:
    parties = {name: SharingParty(np.ones((4, 1)), Allowance(exact=True)) for name in "ab"}
    posed = {name: wrong[name] for name in wrong if name in ("lam", "penalty")}
    with pytest.raises(CvxprivError, match=next(iter(wrong)) + "|penalty"):
        SharingApart(InProcess(parties, SPOKEN), [1, -1, 1, -1], **posed).solve(
            **{name: wrong[name] for name in wrong if name not in posed}
        )
