"""A consensus over nodes that are apart: the same bits as in one process, what crosses along which edges, faults."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from cvxpriv_models.admm_sharing.apart import SharingApart
from cvxpriv_models.recycled_admm import model as face
from cvxpriv_models.recycled_admm.apart import ConsensusApart
from cvxpriv_models.recycled_admm.apart_messages import SPOKEN
from cvxpriv_models.recycled_admm.apart_node import Allowance, ConsensusNode

from cvxpriv.distributed import participant
from cvxpriv.distributed.carriers import HOLDER, InProcess
from cvxpriv.distributed.checkpoint import Checkpoint
from cvxpriv.distributed.flight_holder import FlightHolder
from cvxpriv.distributed.flight_party import serve
from cvxpriv.distributed.keys import Keys, add_member, create_team, keys_in
from cvxpriv.distributed.messages import Message
from cvxpriv.errors import DataError, ModelError, PartyError, PrivacyError
from cvxpriv.models import RecycledADMM
from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties import loss_named
from cvxpriv.privacy import EVERYONE, BallNoise, Budget, Noise, PrivacyWarning, Release, ledger_document

EXACT = Allowance(exact=True)
ENTRIES = ("f", "odd", "dual", "loss", "eta")
Shards = dict[str, tuple[Array, Array]]


def shards_of(nodes: int, rows: int = 30, features: int = 4, uneven: int = 0) -> Shards:
    rng = np.random.default_rng(nodes)
    truth, found = rng.normal(size=features), {}
    for node in range(nodes):
        x = rng.normal(size=(rows + uneven * node, features))
        found[f"n{node}"] = (x, np.where(x @ truth + 0.5 * rng.normal(size=len(x)) > 0.0, 1.0, -1.0))
    return found


def graph_of(nodes: int) -> nx.Graph:
    return nx.relabel_nodes(nx.path_graph(nodes), lambda node: f"n{node}")


def roles_of(shards: Shards, **more: Any) -> dict[str, ConsensusNode]:
    """Nodes; the order of their rows in memory, which is another one than in one process, changes no bit."""
    return {name: ConsensusNode(np.asfortranarray(x), y, EXACT, **more) for name, (x, y) in shards.items()}


class Listening(InProcess):
    """A carrier that keeps the messages."""

    def __init__(self, roles: Mapping[str, ConsensusNode]) -> None:
        super().__init__(roles, SPOKEN)
        self.seen: list[tuple[str, Message, Message]] = []

    def step_all(self, messages: Mapping[str, Message], *, opening: bool = False) -> dict[str, Message]:
        answers = super().step_all(messages, opening=opening)
        self.seen += [(name, messages[name], answers[name]) for name in messages]
        return answers


@pytest.mark.grid(every=3)
@pytest.mark.parametrize(
    ("nodes", "options", "solving"),
    [
        (3, {}, {"max_iter": 30}),
        (5, {"loss": "huber"}, {"method": "mr-admm", "eta": 1.0, "growth": 1.05, "max_iter": 25}),
        (4, {"penalty": "l1", "reg": 0.5}, {"method": "admm", "max_iter": 15}),
        (6, {"loss": "squared", "C": 7.0}, {"gamma": 0.0, "max_iter": 25}),
        (4, {"reg": 3.0}, {"method": "m-admm", "eta": [1.0, 2.0, 3.0, 4.0], "max_iter": 30}),
    ],
)
@pytest.mark.parametrize("uneven", [0, 3])
def test_nodes_apart_have_the_bits_of_nodes_together(
    nodes: int, options: dict[str, Any], solving: dict[str, Any], uneven: int
) -> None:
    shards, graph = shards_of(nodes, uneven=uneven), graph_of(nodes)
    roles = roles_of(shards)
    apart = ConsensusApart(InProcess(roles, SPOKEN), graph, **options).solve(**solving)
    together = RecycledADMM(graph, shards, **options).solve(accelerate="none", **solving)
    assert all(apart.state[name].tobytes() == together.state[name].tobytes() for name in ENTRIES)
    assert [role.coefficients.tobytes() for role in roles.values()] == [f.tobytes() for f in together.parameters]
    assert (apart.iterations, apart.kkt, apart.objective) == (together.iterations, together.kkt, together.objective)
    figures = ["iteration", "objective", "loss", "stationarity", "consensus", "dual_sum", "kkt"]
    passes = [run.history[run.history["block"] == "pass"][figures].to_numpy().tolist() for run in (apart, together)]
    assert passes[0] == passes[1]


def test_the_gap_bounds_the_excess() -> None:
    shards, graph = shards_of(4), graph_of(4)
    model = RecycledADMM(graph, shards, reg=2.0)
    least = model.problem.objective(model.optimum)
    for passes in (3, 20):
        run = ConsensusApart(InProcess(roles_of(shards), SPOKEN), graph, reg=2.0).solve(max_iter=passes)
        excess = model.problem.objective(run.mean) - least
        assert 0.0 < excess <= run.gap


def test_a_node_learns_its_neighbours_vectors_alone() -> None:
    """n0 - n1 - n2 - n3: what comes to a node is what its neighbours sent, nothing else, and the log says so."""
    shards, graph = shards_of(4), graph_of(4)
    carrier = Listening(roles_of(shards))
    ConsensusApart(carrier, graph).solve(max_iter=12)
    stated = {(kind, name) for side in ("party", "holder") for kind, name, _ in SPOKEN.statement(side)}
    sent = {(one.kind, name) for _, *pair in carrier.seen for one in pair for name in (*one.vectors, *one.texts)}
    assert sent <= stated
    assert {kind for kind, _ in sent} == {
        "begin",
        "ready",
        "odd",
        "published",
        "even",
        "recycled",
        "finish",
        "finished",
    }
    answered = {
        (name, answer.kind, answer.number("pass")): answer
        for name, _, answer in carrier.seen
        if "pass" in answer.vectors
    }
    for name, message, _ in carrier.seen:
        near = sorted(graph[name])
        if message.kind == "even":
            told = [answered[one, "published", message.number("pass")].vectors["odd"] for one in near]
            assert message.vectors["odd"].tobytes() == np.concatenate(told).tobytes()
        elif message.kind == "odd" and message.number("pass") > 1.0:
            told = [answered[one, "recycled", message.number("pass") - 1.0].vectors["f"] for one in near]
            assert message.vectors["f"].tobytes() == np.concatenate(told).tobytes()
    log = carrier.log.frame()
    edges = log[(log["sender"] != HOLDER) & (log["receiver"] != HOLDER)]
    assert set(zip(edges["sender"], edges["receiver"], strict=True)) == set(graph.to_directed().edges)
    assert len(edges) == 12 * 2 * 2 * graph.number_of_edges()  # two vectors a pass, both ways
    crossed = b"".join(v.tobytes() for _, *pair in carrier.seen for one in pair for v in one.vectors.values())
    secrets = [row for x, _ in shards.values() for row in (*x, *x.T)] + [y for _, y in shards.values()]
    assert not any(secret.tobytes() in crossed for secret in secrets)


def private_roles(
    shards: Shards, noise: Noise | None = None, folder: Path | None = None, **limits: Any
) -> dict[str, ConsensusNode]:
    allowed = Allowance(**{"epsilon": 1.0, "delta": 1e-6, "clip_rows": True, **limits})
    return {
        name: ConsensusNode(*shard, allowed, noise=noise, folder=None if folder is None else folder / name)
        for name, shard in shards.items()
    }


@pytest.mark.parametrize("uneven", [0, 3])
@pytest.mark.parametrize("options", [{}, {"method": "m-admm", "eta": 2.0, "growth": 1.1}, {"method": "admm"}])
def test_private_nodes_release_the_bits_of_one_process(uneven: int, options: dict[str, Any]) -> None:
    """Each node draws in its turn from one seeded source, as one process does."""
    shards, graph = shards_of(4, uneven=uneven), graph_of(4)
    given = {"epsilon": 1.0, "delta": 1e-6, "perturbation": "output", "max_iter": 12, **options}
    roles = private_roles(shards, Noise(np.random.default_rng(5)))
    apart = ConsensusApart(InProcess(roles, SPOKEN), graph).solve_private(**given)
    with pytest.warns(PrivacyWarning):
        together = RecycledADMM(graph, shards).solve_private(**given, noise_seed=5, clip_rows=True)
    assert apart.released.tobytes() == together.released.tobytes()
    assert apart.history.to_numpy().tolist() == together.history.to_numpy().tolist()
    assert apart.privacy_loss.to_numpy().tolist() == together.privacy_loss.to_numpy().tolist()
    assert (apart.ledger, apart.accounting) == (together.ledger, together.accounting)
    for name, role in roles.items():  # a node's own ledger is its part of it, and all of its records are its own
        part = [replace(entry, touches=EVERYONE) for entry in together.ledger if entry.source == f"node {name!r}"]
        assert [replace(entry, source=f"node {name!r}") for entry in role.ledger] == part


@pytest.mark.parametrize("given", [{"max_iter": 3}, {"max_iter": 5, "delta": 1e-6}])  # in the objective, and after it
def test_private_nodes_send_what_the_statement_lists_and_no_row_or_label(given: dict[str, Any]) -> None:
    shards, graph = shards_of(4, features=12), graph_of(4)
    carrier = Listening(private_roles(shards))
    run = ConsensusApart(carrier, graph).solve_private(epsilon=1.0, **given)
    assert run.accounting.secure
    assert run.accounting.epsilon == pytest.approx(1.0, rel=1e-6)  # sums of costs, or the margin of the noise's scale
    stated = {(kind, name) for side in ("party", "holder") for kind, name, _ in SPOKEN.statement(side)}
    sent = {(one.kind, name) for _, *pair in carrier.seen for one in pair for name in (*one.vectors, *one.texts)}
    assert sent <= stated
    assert {kind for kind, _ in sent} == {"begin-private", "agreed", "release", "released", "recycle", "reused"}
    places = {name: place for place, name in enumerate(shards)}
    released = {}
    for name, message, answer in carrier.seen:
        number = int(answer.number("pass")) if "pass" in answer.vectors else 0
        if answer.kind == "released":
            released[name, number] = answer.vectors["odd"].tobytes()
            assert released[name, number] == run.released[number - 1, places[name]].tobytes()
        elif answer.kind == "reused":
            told = b"".join(released[one, number] for one in sorted(graph[name]))
            assert message.vectors["odd"].tobytes() == told
    log = carrier.log.frame()
    edges = log[(log["sender"] != HOLDER) & (log["receiver"] != HOLDER)]
    assert set(zip(edges["sender"], edges["receiver"], strict=True)) == set(graph.to_directed().edges)
    crossed = [vector for _, *pair in carrier.seen for one in pair for vector in one.vectors.values()]
    secrets = [row for x, _ in shards.values() for row in (*x, *x.T)] + [y for _, y in shards.values()]
    assert not any(holds(vector, secret) for vector in crossed for secret in secrets)


def holds(vector: Array, secret: Array) -> bool:
    """Whether a vector has the secret's entries in it, in order, or is a multiple of it."""
    if secret.tobytes() in vector.tobytes():
        return True
    if vector.shape != secret.shape:
        return False
    return bool(abs(vector @ secret) > (1.0 - 1e-9) * np.linalg.norm(vector) * np.linalg.norm(secret) > 0.0)


def test_with_noise_in_the_objective_each_node_releases_the_bits_that_its_own_draws_make(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One process draws for all nodes at once: one seed is spread otherwise, and given the draws the bits are equal."""
    shards, graph = shards_of(4, uneven=3), graph_of(4)

    def sources() -> list[Noise]:
        return [Noise(np.random.default_rng(seed)) for seed in range(4)]

    class Spread(Noise):
        """A source that gives each node the next draw of its own."""

        each = sources()

        def gamma_ball(self, size: int, rate: float, count: int = 1) -> Array:
            assert count == 4
            return np.concatenate([one.gamma_ball(size, rate, 1) for one in self.each])

    release, turns = BallNoise.release, count()

    def own(self: BallNoise, value: Array, noise: Noise) -> Array:
        return release(self, value, Spread.each[next(turns) % 4])

    own_sources = dict(zip(shards, sources(), strict=True))
    allowed = Allowance(epsilon=20.0)
    roles = {name: ConsensusNode(*shards[name], allowed, noise=own_sources[name]) for name in shards}
    given: dict[str, Any] = {"epsilon": 20.0, "max_iter": 4, "eta": 3.0, "row_bound": 8.0}
    apart = ConsensusApart(InProcess(roles, SPOKEN), graph, reg=40.0).solve_private(**given)
    one = Noise(np.random.default_rng(5))
    of_one_seed = {name: ConsensusNode(*shards[name], allowed, noise=one) for name in shards}
    in_turn = ConsensusApart(InProcess(of_one_seed, SPOKEN), graph, reg=40.0).solve_private(**given)
    with pytest.warns(PrivacyWarning):
        at_once = RecycledADMM(graph, shards, reg=40.0).solve_private(**given, noise_seed=5)
    assert (in_turn.released != at_once.released).any()
    monkeypatch.setattr(face, "noise_source", lambda _: Spread())
    monkeypatch.setattr(BallNoise, "release", own)
    together = RecycledADMM(graph, shards, reg=40.0).solve_private(**given)
    assert apart.settings.perturbation == "objective"
    assert apart.released.tobytes() == together.released.tobytes()
    assert apart.ledger == together.ledger


def private_fit(roles: dict[str, ConsensusNode], graph: nx.Graph, **given: Any) -> Listening:
    carrier = Listening(roles)
    ConsensusApart(carrier, graph).solve_private(**{"epsilon": 1.0, "delta": 1e-6, "max_iter": 2, **given})
    return carrier


def test_a_node_takes_part_in_the_private_runs_that_it_allows() -> None:
    shards, graph = shards_of(2), graph_of(2)
    for limits, said in (
        ({"epsilon": None}, "no budget"),
        ({"epsilon": 0.5}, "allows 0.5"),
        ({"delta": 1e-9}, "1e-09"),
        ({"clip_rows": False}, "does not hold"),
    ):
        with pytest.raises(PrivacyError, match=said):
            private_fit(private_roles(shards, **limits), graph)
    with pytest.raises(PrivacyError, match="allows 1"):
        private_fit(private_roles(shards), graph, epsilon=None, delta=None, alpha=50.0)
    with pytest.raises(PrivacyError, match="epsilon=1 at .* allows 0.6"):  # pure: the sum of two halves
        private_fit(private_roles(shards, epsilon=0.6), graph, delta=None, perturbation="output")


def test_a_private_node_draws_once_and_comes_back_to_its_run_alone(tmp_path: Path) -> None:
    shards, graph = shards_of(2), graph_of(2)
    roles = private_roles(shards, folder=tmp_path)
    begin, first, _, _, last = [message for name, message, _ in private_fit(roles, graph).seen if name == "n0"]
    again = private_roles(shards, folder=tmp_path)["n0"]  # its process died after the last step
    again.answer(begin)
    assert len(again.ledger) == 2
    assert again.answer(last).vectors["f"].tobytes() == roles["n0"].state["f"][0].tobytes()
    for kind in ("odd", "even", "finish"):
        with pytest.raises(PrivacyError, match="in a private run"):
            again.answer(Message(kind, {"pass": np.full(1, 2.0)}))
    with pytest.raises(PartyError, match="step 1 was asked for"):
        again.answer(first)
    with pytest.raises(PrivacyError, match="3 was asked for, and 2 were announced"):
        again.answer(Message("release", {**first.vectors, "pass": np.full(1, 3.0)}))
    with pytest.raises(PrivacyError, match="other terms"):
        again.answer(Message(begin.kind, {**begin.vectors, "row_bound": np.array([9.0])}, begin.texts))
    fresh = private_roles(shards)["n0"]
    with pytest.raises(PartyError, match="no run has begun"):
        fresh.answer(first)
    fresh.answer(begin)
    one, two = fresh.answer(first), fresh.answer(first)
    assert one.vectors["odd"].tobytes() == two.vectors["odd"].tobytes()
    assert len(fresh.ledger) == 1


def test_a_run_that_a_node_did_not_pay_for_changes_nothing_there(tmp_path: Path) -> None:
    shards, graph = shards_of(2), graph_of(2)

    def served() -> dict[str, ConsensusNode]:
        return private_roles(shards, folder=tmp_path, exact=True)

    roles = served()
    heard = [message for name, message, _ in private_fit(roles, graph).seen if name == "n0"]
    entries = {name: ledger_document(role.ledger) for name, role in roles.items()}
    assert [len(each) for each in entries.values()] == [2, 2]
    for same in (roles, roles, served(), served()):  # a refusal forgets nothing, nor does a process that begins anew
        with pytest.raises(PrivacyError, match="second private run"):
            private_fit(same, graph)
    for same in (roles, served()):  # and neither does a run without privacy
        ConsensusApart(InProcess(same, SPOKEN), graph).solve(max_iter=2)
        assert {name: ledger_document(role.ledger) for name, role in same.items()} == entries
        for asked in (same, served()):
            with pytest.raises(PrivacyError, match="second private run"):
                private_fit(asked, graph)
    spent = tmp_path / "budget.json"
    Budget(1.0, 1e-6, path=spent).spend([Release(mu=0.1)])
    role = private_roles(shards, budget=spent)["n0"]
    for _ in range(2):
        with pytest.raises(PrivacyError, match="budget"):
            role.answer(heard[0])
        with pytest.raises(PartyError, match="no run has begun"):
            role.answer(heard[1])
    assert role.ledger == []


def test_a_run_is_paid_once_and_is_on_the_disk_before_anything_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards, graph = shards_of(2), graph_of(2)
    spent, flushed, write = tmp_path / "budget.json", list[bool](), participant.write_checkpoint

    def written(path: Path, found: Checkpoint, *, durable: bool) -> None:
        flushed.append(durable)
        write(path, found, durable=durable)

    monkeypatch.setattr(participant, "write_checkpoint", written)

    def served() -> ConsensusNode:
        return private_roles(shards, folder=tmp_path, exact=True, budget=spent)["n0"]

    half = private_fit(private_roles(shards), graph, epsilon=0.5)
    begin = next(message for name, message, _ in half.seen if name == "n0")
    for role in (served(), served()):  # the first process dies before its first release
        role.answer(begin)
    assert len(Budget.open(spent).ledger) == 1
    assert flushed == [True]
    roles = {name: ConsensusNode(*shards[name], EXACT, folder=tmp_path / name) for name in ("n0", "n1")}
    roles["n0"] = served()
    private_fit({**roles, "n1": private_roles(shards)["n1"]}, graph, epsilon=0.01)
    flushed.clear()
    ConsensusApart(InProcess(roles, SPOKEN), graph).solve(max_iter=1)
    assert flushed == [True, False, True, False]  # n0 has a ledger to lose, n1 has none


def test_a_run_under_way_goes_on_after_another_one_was_refused() -> None:
    shards, graph = shards_of(3), graph_of(3)
    roles = roles_of(shards)
    begin = Listening(private_roles(shards))
    ConsensusApart(begin, graph).solve_private(epsilon=1.0, delta=1e-6, max_iter=1)
    unpaid = {name: message for name, message, _ in begin.seen if message.kind == "begin-private"}
    answer = roles["n1"].answer

    def disturbed(message: Message) -> Message:
        if message.kind != "begin":
            with pytest.raises(PrivacyError, match="no budget"):
                answer(unpaid["n1"])
        return answer(message)

    roles["n1"].answer = disturbed  # type: ignore[method-assign]
    run = ConsensusApart(InProcess(roles, SPOKEN), graph).solve(max_iter=5)
    expected = RecycledADMM(graph, shards).solve(accelerate="none", max_iter=5)
    assert run.parameters.tobytes() == expected.parameters.tobytes()


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Keys]:
    folder = create_team(tmp_path_factory.mktemp("keys") / "team")
    return {name: keys_in(add_member(folder, name)) for name in ("coordinator", "n0", "n1", "n2")}


class Killed(Exception):
    """The end of a node's process, as a test plays it."""


def dying(role: ConsensusNode, kind: str, at: float, after: bool) -> ConsensusNode:
    """A node that dies at a step, before it has taken it or after it has written its checkpoint."""
    answer = role.answer

    def listening(message: Message) -> Message:
        doomed = message.kind == kind and message.number("pass") == at
        if doomed and not after:
            raise Killed
        found = answer(message)
        if doomed:
            raise Killed
        return found

    role.answer = listening  # type: ignore[method-assign]
    return role


def test_flight_carries_the_same_bits_and_a_node_that_dies_comes_back(team: Mapping[str, Keys], tmp_path: Path) -> None:
    shards, graph = shards_of(3), graph_of(3)
    carrier = FlightHolder("127.0.0.1:0", team["coordinator"], list(shards), SPOKEN, wait=20.0)
    last: dict[str, ConsensusNode] = {}
    deaths = [("odd", 3.0, False), ("odd", 5.0, True), ("even", 7.0, True), ("even", 9.0, False)]

    def live(name: str) -> None:
        for life in range(len(deaths) + 1):
            last[name] = ConsensusNode(*shards[name], EXACT, folder=tmp_path / name)
            if name == "n1" and life < len(deaths):
                dying(last[name], *deaths[life])
            try:
                serve(last[name], carrier.address, team[name], holder="coordinator", wait=10.0)
                return
            except Killed:
                continue

    threads = [threading.Thread(target=live, args=(name,)) for name in shards]
    for thread in threads:
        thread.start()
    try:
        there = ConsensusApart(carrier, graph).solve(max_iter=15)
    finally:
        carrier.close()
    for thread in threads:
        thread.join()
    here = RecycledADMM(graph, shards).solve(accelerate="none", max_iter=15)
    assert all(there.state[name].tobytes() == here.state[name].tobytes() for name in ENTRIES)
    assert [last[name].coefficients.tobytes() for name in shards] == [f.tobytes() for f in here.parameters]
    assert sum(entry.kind == "hello" for entry in carrier.log.entries) == 3 + len(deaths)


@pytest.mark.parametrize("kind", ["odd", "even"])
def test_a_node_that_is_lost_ends_the_run_with_the_last_state_saved(kind: str, tmp_path: Path) -> None:
    shards, graph = shards_of(3), graph_of(3)
    roles = roles_of(shards)
    answer = roles["n1"].answer

    def lost(message: Message) -> Message:
        if message.kind == kind and message.number("pass") == 4.0:
            raise PartyError("n1 did not answer")
        return answer(message)

    roles["n1"].answer = lost  # type: ignore[method-assign]
    with pytest.raises(PartyError, match="the state after 3 passes"):
        ConsensusApart(InProcess(roles, SPOKEN), graph, reg=1.0).solve(save=tmp_path / "state.npz", eta=1.0)
    saved = np.load(tmp_path / "state.npz")
    shorter = RecycledADMM(graph, shards, reg=1.0).solve(accelerate="none", max_iter=3, eta=1.0)
    assert all(saved[name][0].tobytes() == shorter.state[name].tobytes() for name in ("f", "odd", "dual"))


def test_what_does_not_fit_is_refused() -> None:
    shards, graph = shards_of(3), graph_of(3)
    closed = {name: ConsensusNode(x, y, Allowance()) for name, (x, y) in shards.items()}
    with pytest.raises(PrivacyError, match="give it --exact"):
        ConsensusApart(InProcess(closed, SPOKEN), graph).solve()
    stray = nx.relabel_nodes(graph, {"n2": "nowhere"})
    with pytest.raises(DataError, match="differ in nowhere"):
        ConsensusApart(InProcess(roles_of(shards), SPOKEN), stray)
    fit = ConsensusApart(InProcess(roles_of(shards), SPOKEN), graph)
    for wrong in ({"tol": 0.0}, {"max_iter": 0}, {"method": "dvp"}, {"gamma": -1.0}, {"eta": 0.0}):
        with pytest.raises(ModelError, match=next(iter(wrong))):
            fit.solve(**wrong)
    with pytest.raises(ModelError, match="told names"):
        ConsensusApart(InProcess(roles_of(shards), SPOKEN), graph, loss=loss_named("logistic"))  # type: ignore[arg-type]
    narrow = {**shards, "n1": (shards["n1"][0][:, :2], shards["n1"][1])}
    with pytest.raises(DataError, match="n1 has 2"):
        ConsensusApart(InProcess(roles_of(narrow), SPOKEN), graph)
    other = {**roles_of(shards), "n2": ConsensusNode(*shards["n2"], EXACT, layout=7)}
    with pytest.raises(DataError, match="n2 and n0 have other columns"):
        ConsensusApart(InProcess(other, SPOKEN), graph).solve()
    with pytest.raises(DataError, match="labels of -1 and 1"):
        ConsensusApart(InProcess(roles_of({n: (x, y + 3.0) for n, (x, y) in shards.items()}), SPOKEN), graph).solve()
    with pytest.raises(DataError, match="none of classes"):
        ConsensusNode(*shards["n0"], EXACT, classes=("no", "yes"))
    role = roles_of(shards)["n0"]
    with pytest.raises(PartyError, match="no run has begun"):
        role.answer(Message("odd", {"pass": np.ones(1), "f": np.zeros(4), "eta": np.ones(2)}))


@pytest.mark.parametrize("model", [ConsensusApart, SharingApart])
def test_each_message_of_a_pass_says_of_which_run_it_is_and_a_party_answers_it(
    model: type[ConsensusApart] | type[SharingApart],
) -> None:
    asked = [kind for kind in model.spoken.kinds.values() if kind.answer and "pass" in kind.vectors]
    assert {kind.run for kind in asked} == {"exact", "private", "release"}
    assert [kind.name for kind in asked if kind.run == "release"] == ["release"]
    assert all(callable(getattr(model.party, f"_{kind.name.replace('-', '_')}")) for kind in asked)
